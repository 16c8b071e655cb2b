//! Statements. `function` writes bodies through it. naga's `Emit` decides where a load happens, so a variable is made there. A loop with a `continuing`
//! block runs that block first in every round but the first. Statements that are never reached are not written.

use naga::{AtomicFunction, Block, Expression, Handle, Statement, SwitchCase, SwitchValue};

use super::function::Body;
use super::place::address;
use super::types::{Ty, is_runtime_sized};
use super::{Result, Writer, scan};
use crate::flow;
use cantus_base::listed::Listed;

/// Expressions nested deeper become variables: to be read, and because compilers limit the nesting.
const MAX_NESTING: u32 = 6;
/// Rounds after which a bounded loop ends.
const MAX_ROUNDS: u64 = 1 << 32;

/// The index of the invocation that a subgroup reads from, or what it is computed from.
fn gathered_from(mode: &naga::GatherMode) -> Option<Handle<Expression>> {
    use naga::GatherMode as Mode;
    match *mode {
        Mode::Broadcast(index)
        | Mode::Shuffle(index)
        | Mode::ShuffleDown(index)
        | Mode::ShuffleUp(index)
        | Mode::ShuffleXor(index)
        | Mode::QuadBroadcast(index) => Some(index),
        Mode::BroadcastFirst | Mode::QuadSwap(_) => None,
    }
}

impl<'m> Writer<'m> {
    pub(super) fn block(&mut self, f: &mut Body<'m>, block: &'m Block) -> Result<()> {
        for (statement, span) in block.span_iter() {
            self.span = *span;
            self.statement(f, statement)?;
            if scan::statement_ends(statement, self.options.bound_loops) {
                break;
            }
        }
        Ok(())
    }

    fn inner_block(&mut self, f: &mut Body<'m>, block: &'m Block) -> Result<()> {
        f.indent += 1;
        let straight = std::mem::replace(&mut f.straight, false);
        self.block(f, block)?;
        f.straight = straight;
        f.indent -= 1;
        Ok(())
    }

    fn statement(&mut self, f: &mut Body<'m>, statement: &'m Statement) -> Result<()> {
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    self.emit(f, handle)?;
                }
            }
            Statement::Block(block) => {
                if !block.is_empty() {
                    f.line("{");
                    f.indent += 1;
                    self.block(f, block)?;
                    f.indent -= 1;
                    f.line("}");
                }
            }
            Statement::If { condition, accept, reject } => self.write_if(f, *condition, accept, reject)?,
            Statement::Switch { selector, cases } => self.switch(f, *selector, cases)?,
            Statement::Loop { body, continuing, break_if } => self.write_loop(f, body, continuing, *break_if)?,
            Statement::Break => f.line("break;"),
            Statement::Continue => f.line("continue;"),
            Statement::Return { value } => match value {
                Some(value) => {
                    let value = self.value(f, *value)?;
                    f.line(format!("return {value};"));
                }
                None => f.line("return;"),
            },
            Statement::Kill => return self.unsupported("discard"),
            Statement::ControlBarrier(flags) => {
                let text = self.barrier(*flags)?;
                f.line(text);
            }
            Statement::MemoryBarrier(flags) => {
                let text = self.language.fence(*flags);
                f.line(text);
            }
            Statement::Store { pointer, value } => self.store(f, *pointer, *value)?,
            Statement::Atomic { pointer, fun, value, result } => self.atomic(f, *pointer, *fun, *value, *result)?,
            Statement::WorkGroupUniformLoad { pointer, result } => self.load_uniform(f, *pointer, *result)?,
            Statement::Call { function, arguments, result } => self.call(f, *function, arguments, *result)?,
            Statement::SubgroupBallot { result, predicate } => {
                let predicate = match predicate {
                    Some(predicate) => self.value(f, *predicate)?,
                    None => "true".to_owned(),
                };
                let text = self.subgroup_ballot(f.straight, &predicate)?;
                self.result(f, Some(*result), &text)?;
            }
            Statement::SubgroupGather { mode, argument, result } => {
                let ty = self.ty_of(f, *argument)?;
                let index = gathered_from(mode).map(|index| self.value(f, index)).transpose()?;
                let index = index.map(|text| format!("(u32){text}"));
                let value = self.value(f, *argument)?;
                let text = self.subgroup_gather(f.straight, mode, ty, &value, index.as_deref())?;
                self.result(f, Some(*result), &text)?;
            }
            Statement::SubgroupCollectiveOperation { op, collective_op, argument, result } => {
                let ty = self.ty_of(f, *argument)?;
                let value = self.value(f, *argument)?;
                let text = self.subgroup_collective(f.straight, *op, *collective_op, ty, &value)?;
                self.result(f, Some(*result), &text)?;
            }
            Statement::ImageStore { .. } | Statement::ImageAtomic { .. } => return self.unsupported("textures"),
            Statement::RayQuery { .. } | Statement::RayPipelineFunction(_) => return self.unsupported("ray tracing"),
            Statement::CooperativeStore { target, data } => {
                let text = self.matrix_store(f, *target, data)?;
                f.line(format!("{text};"));
            }
        }
        Ok(())
    }

    fn write_if(
        &mut self,
        f: &mut Body<'m>,
        condition: Handle<Expression>,
        accept: &'m Block,
        reject: &'m Block,
    ) -> Result<()> {
        let condition = self.value(f, condition)?;
        // `for` and `while` come as a condition with nothing in it and a break beside it.
        if accept.is_empty() {
            f.line(format!("if (!{condition}) {{"));
            self.inner_block(f, reject)?;
        } else {
            f.line(format!("if {} {{", parenthesised(&condition)));
            self.inner_block(f, accept)?;
            if !reject.is_empty() {
                f.line("} else {");
                self.inner_block(f, reject)?;
            }
        }
        f.line("}");
        // Some may have returned.
        if scan::ends(accept, false) || scan::ends(reject, false) {
            f.straight = false;
        }
        Ok(())
    }

    fn load_uniform(
        &mut self,
        f: &mut Body<'m>,
        pointer: Handle<Expression>,
        result: Handle<Expression>,
    ) -> Result<()> {
        let barrier = self.barrier(naga::Barrier::WORK_GROUP)?;
        f.line(&barrier);
        let ty = self.ty_of(f, result)?;
        let value = self.load(f, pointer)?;
        if f.used(result) > 0 {
            self.bake(f, result, ty, &value)?;
        }
        f.line(&barrier);
        Ok(())
    }

    fn barrier(&mut self, flags: naga::Barrier) -> Result<String> {
        if flags.contains(naga::Barrier::SUB_GROUP) {
            if let Some(lacking) = self.language.lacks_subgroups(&self.options) {
                return self.unsupported(lacking);
            }
            self.uses_subgroups = true;
        }
        self.subgroup_sites += 1;
        Ok(self.language.barrier(flags, self.subgroup_sites))
    }

    /// Makes a variable of an emitted expression, where that is needed or nicer to read.
    fn emit(&mut self, f: &mut Body<'m>, handle: Handle<Expression>) -> Result<()> {
        let uses = f.used(handle);
        if uses == 0 || self.is_pointer(f, handle) {
            return Ok(());
        }
        let function = f.function;
        let expression = &function.expressions[handle];
        let nesting = flow::operands(expression)
            .into_iter()
            .filter(|operand| !f.baked.contains_key(operand))
            .map(|operand| f.nesting.get(operand.index()).map_or(1, |nesting| nesting + 1))
            .max()
            .unwrap_or(0);
        let ty = self.ty_of(f, handle)?;
        let composite = matches!(expression, Expression::Compose { .. }) && matches!(ty, Ty::Array(_) | Ty::Struct(_));
        let part = matches!(expression, Expression::AccessIndex { .. });
        let named = function.named_expressions.contains_key(&handle);
        let needed = f.needed.contains(&handle) && !part;
        // In their place: memory changes, and lanes meet.
        let ordered = matches!(
            expression,
            Expression::Load { .. } | Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. }
        );
        let wanted = ordered || composite || named || needed || (uses > 1 && !part) || nesting > MAX_NESTING;
        if !wanted {
            if let Some(entry) = f.nesting.get_mut(handle.index()) {
                *entry = nesting;
            }
            return Ok(());
        }
        self.span = function.expressions.get_span(handle);
        if composite && let Expression::Compose { components, .. } = expression {
            if Self::is_constant(&function.expressions, handle) {
                let table = self.table(&function.expressions, handle, ty)?;
                f.baked.insert(handle, table);
                return Ok(());
            }
            let value = self.composite(f, ty, components)?;
            if f.hoisted.contains(&handle) {
                let type_name = self.type_name(ty)?;
                let name = format!("cantus_part{}", handle.index());
                f.line(format!("const {type_name} {name} = {value};"));
                return self.bake(f, handle, ty, &name);
            }
            return self.bake(f, handle, ty, &value);
        }
        let value = self.value(f, handle)?;
        self.bake(f, handle, ty, &value)
    }

    /// Defines a variable for an expression.
    fn bake(&mut self, f: &mut Body<'m>, handle: Handle<Expression>, ty: Ty, value: &str) -> Result<()> {
        let name = match f.function.named_expressions.get(&handle) {
            Some(name) => self.namer.call(name),
            None => format!("e{}", handle.index()),
        };
        let type_name = self.type_name(ty)?;
        if f.hoisted.contains(&handle) {
            let zero = self.zero_initialiser(ty)?;
            f.declarations.push((name.clone(), format!("{type_name} {name} = {zero};")));
            f.line(format!("{name} = {value};"));
        } else {
            f.line(format!("const {type_name} {name} = {value};"));
        }
        f.baked.insert(handle, name);
        Ok(())
    }

    /// Evaluates a call, and keeps its result if something uses it.
    fn result(&mut self, f: &mut Body<'m>, result: Option<Handle<Expression>>, call: &str) -> Result<()> {
        match result {
            Some(result) if f.used(result) > 0 => {
                let ty = self.ty_of(f, result)?;
                self.bake(f, result, ty, call)
            }
            _ => {
                f.line(format!("{call};"));
                Ok(())
            }
        }
    }

    fn store(&mut self, f: &mut Body<'m>, pointer: Handle<Expression>, value: Handle<Expression>) -> Result<()> {
        let text = self.value(f, value)?;
        let (place, condition) = self.guarded(f, |writer, f| writer.place(f, pointer))?;
        let only = condition.map_or_else(String::new, |condition| format!("if ({condition}) "));
        if self.is_atomic(f, pointer) {
            let kind = self.kind_of(self.pointed_type(f, pointer)?)?;
            let space = self.space_of(f, pointer)?;
            let helper = self.atomic_store(kind, space)?;
            f.line(format!("{only}{helper}({}, {text});", address(&place)));
        } else {
            f.line(format!("{only}{place} = {};", bare(&text)));
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        f: &mut Body<'m>,
        pointer: Handle<Expression>,
        function: AtomicFunction,
        value: Handle<Expression>,
        result: Option<Handle<Expression>>,
    ) -> Result<()> {
        let kind = self.kind_of(self.pointed_type(f, pointer)?)?;
        let space = self.space_of(f, pointer)?;
        let value = self.value(f, value)?;
        let (place, condition) = self.guarded(f, |writer, f| writer.place(f, pointer))?;
        let target = address(&place);
        if let AtomicFunction::Exchange { compare: Some(compare) } = function {
            let compare = self.value(f, compare)?;
            let result = self.known(result, "an exchange without a result")?;
            let ty = self.ty_of(f, result)?;
            let helper = self.compare_exchange(kind, space, ty)?;
            let call = self.or_zero(condition, ty, format!("{helper}({target}, {compare}, {value})"))?;
            return self.result(f, Some(result), &call);
        }
        let helper = self.atomic_operation(kind, space, function)?;
        let call = self.or_zero(condition, Ty::Scalar(kind), format!("{helper}({target}, {value})"))?;
        self.result(f, result, &call)
    }

    fn call(
        &mut self,
        f: &mut Body<'m>,
        function: Handle<naga::Function>,
        arguments: &[Handle<Expression>],
        result: Option<Handle<Expression>>,
    ) -> Result<()> {
        let mut list = Vec::new();
        for argument in arguments {
            if !self.is_pointer(f, *argument) {
                list.push(self.value(f, *argument)?);
                continue;
            }
            if self.runtime_array(f, *argument).is_some() {
                list.push(self.elements(f, *argument)?);
            } else {
                list.push(address(&self.place(f, *argument)?));
            }
            if let naga::TypeInner::Pointer { base, .. } = *f.info[*argument].ty.inner_with(&self.module.types)
                && is_runtime_sized(self.module, base)
            {
                list.push(self.runtime_bytes(f, *argument)?.0);
            }
        }
        list.extend(self.handed_down(f, function));
        let name = self.named(naga::proc::NameKey::Function(function));
        self.result(f, result, &format!("{name}({})", list.join(", ")))
    }

    /// Returns the module's variables that a function receives behind its own arguments.
    pub(super) fn handed_down(&self, f: &Body<'m>, function: Handle<naga::Function>) -> Vec<String> {
        let info = &self.info[function];
        let pointer = |global| {
            let name = self.global_name(global);
            if f.is_pointed(self, global) { name } else { format!("&{name}") }
        };
        let mut list: Vec<String> = self.globals(info).into_iter().map(pointer).listed();
        if self.needs_sizes(info) {
            list.push("cantus_bytes".to_owned());
        }
        list
    }

    fn switch(&mut self, f: &mut Body<'m>, selector: Handle<Expression>, cases: &'m [SwitchCase]) -> Result<()> {
        let selector = self.value(f, selector)?;
        f.line(format!("switch ({selector}) {{"));
        f.indent += 1;
        let mut labels = String::new();
        for case in cases {
            labels.push_str(&match case.value {
                SwitchValue::I32(i32::MIN) => "case -2147483647 - 1: ".to_owned(),
                SwitchValue::I32(value) => format!("case {value}: "),
                SwitchValue::U32(value) => format!("case {value}u: "),
                SwitchValue::Default => "default: ".to_owned(),
            });
            if case.fall_through {
                if !case.body.is_empty() {
                    return self.unsupported("switch cases that fall through");
                }
                continue;
            }
            f.line(format!("{}{{", std::mem::take(&mut labels)));
            self.inner_block(f, &case.body)?;
            if !scan::ends(&case.body, self.options.bound_loops) {
                f.indent += 1;
                f.line("break;");
                f.indent -= 1;
            }
            f.line("}");
            if scan::ends(&case.body, false) {
                f.straight = false;
            }
        }
        f.indent -= 1;
        f.line("}");
        Ok(())
    }

    fn write_loop(
        &mut self,
        f: &mut Body<'m>,
        body: &'m Block,
        continuing: &'m Block,
        break_if: Option<Handle<Expression>>,
    ) -> Result<()> {
        f.loops += 1;
        let number = f.loops;
        let again = flow::continues(body) && (break_if.is_some() || !continuing.is_empty());
        if again {
            // `continue` must run what is at the body's end: that comes first in all rounds but the first one.
            let outer = f.hoisted.clone();
            f.hoisted.extend(scan::closure(f.function, continuing, break_if));
            let before = std::mem::take(&mut f.out);
            let declared = std::mem::take(&mut f.declarations);
            self.inner_block(f, body)?;
            f.hoisted = outer;
            let body_text = std::mem::take(&mut f.out);
            let hoisted = std::mem::replace(&mut f.declarations, declared);
            f.indent += 1;
            self.continuing(f, continuing, break_if)?;
            f.indent -= 1;
            let continuing_text = std::mem::replace(&mut f.out, before);
            for (_, declaration) in hoisted {
                f.line(declaration);
            }
            self.loop_counter(f, number);
            f.line(format!("for (bool again{number} = false;; again{number} = true) {{"));
            f.indent += 1;
            self.loop_bound(f, number);
            f.line(format!("if (again{number}) {{"));
            f.out.push_str(&continuing_text);
            f.line("}");
            f.indent -= 1;
            f.out.push_str(&body_text);
            f.line("}");
        } else {
            // A body that always leaves needs no bound, behind which a compiler would miss what the function returns.
            let repeats = flow::continues(body) || !scan::ends(body, self.options.bound_loops);
            if repeats {
                self.loop_counter(f, number);
            }
            f.line("while (true) {");
            f.indent += 1;
            if repeats {
                self.loop_bound(f, number);
            }
            f.indent -= 1;
            self.inner_block(f, body)?;
            if scan::reaches_continuing(body, self.options.bound_loops) {
                self.continuing(f, continuing, break_if)?;
            }
            f.line("}");
        }
        if scan::has_return(body) {
            f.straight = false;
        }
        Ok(())
    }

    fn continuing(&mut self, f: &mut Body<'m>, block: &'m Block, break_if: Option<Handle<Expression>>) -> Result<()> {
        self.inner_block(f, block)?;
        if let Some(condition) = break_if {
            f.indent += 1;
            let condition = self.value(f, condition)?;
            f.line(format!("if {} {{", parenthesised(&condition)));
            f.line("    break;");
            f.line("}");
            f.indent -= 1;
        }
        Ok(())
    }

    fn loop_counter(&mut self, f: &mut Body<'m>, number: u32) {
        if self.options.bound_loops {
            let zero = self.language.long_zeros().1;
            f.line(format!("u64 rounds{number} = {zero};"));
        }
    }

    fn loop_bound(&mut self, f: &mut Body<'m>, number: u32) {
        if self.options.bound_loops {
            let suffix = self.language.long_suffixes().1;
            f.line(format!("if (rounds{number}++ == {MAX_ROUNDS}{suffix}) {{"));
            f.line("    break;");
            f.line("}");
        }
    }
}

/// A condition with one pair of parentheses around it.
fn parenthesised(text: &str) -> String {
    let bare = bare(text);
    format!("({bare})")
}

/// A text without the pair of parentheses around all of it.
fn bare(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else { return text };
    let mut depth = 0_i32;
    for c in inner.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return text;
        }
    }
    inner
}

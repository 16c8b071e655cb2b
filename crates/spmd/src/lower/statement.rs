//! Statements. `call` lowers bodies through it. Control is divergent or not by the facts of the last attempt; divergent branches get a mask and run one
//! after the other, uniform ones jump. A branch that only chooses a value becomes a selection. Barriers emit nothing.

use naga::{AtomicFunction, Block, Expression, Handle, Statement, SwitchCase, SwitchValue};

use super::super::bytecode::{Atomic, FULL, NONE, Op};
use super::builder::{Label, Operand, Register};
use super::control::{Scope, ScopeKind};
use super::{Fact, Lowering, Result, Value, survey};
use cantus_base::listed::Listed;

impl<'m> Lowering<'m, '_> {
    /// Lowers a statement; true if nothing after it is reached.
    pub(super) fn statement(&mut self, statement: &'m Statement) -> Result<bool> {
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    self.evaluate(handle)?;
                }
            }
            Statement::Block(block) => return self.block(block),
            Statement::If { condition, accept, reject } => return self.lower_if(*condition, accept, reject),
            Statement::Switch { selector, cases } => self.lower_switch(*selector, cases)?,
            Statement::Loop { body, continuing, break_if } => self.lower_loop(body, continuing, *break_if)?,
            Statement::Break => {
                self.lower_break();
                return Ok(true);
            }
            Statement::Continue => {
                self.lower_continue();
                return Ok(true);
            }
            Statement::Return { value } => {
                self.return_value(*value)?;
                return Ok(true);
            }
            Statement::Kill => return self.unsupported("discard"),
            // In lock-step every lane is past what comes before.
            Statement::ControlBarrier(_) | Statement::MemoryBarrier(_) => {}
            Statement::Store { pointer, value } => {
                let value = self.scalars(*value)?;
                let pointer = self.pointer(*pointer)?;
                self.store(&pointer, &value)?;
            }
            Statement::Atomic { pointer, fun, value, result } => self.atomic(*pointer, *fun, *value, *result)?,
            Statement::WorkGroupUniformLoad { pointer, result } => {
                let pointer = self.pointer(*pointer)?;
                let value = self.load(&pointer)?;
                self.set(*result, value)?;
            }
            Statement::Call { function, arguments, result } => {
                let module = self.module;
                let info = &self.info[*function];
                let arguments = arguments.iter().map(|argument| self.evaluate(*argument)).try_listed()?;
                let span = self.span;
                let value = self.function(&module.functions[*function], info, arguments, false)?;
                self.span = span;
                if let (Some(result), Some(value)) = (result, value) {
                    self.set(*result, value)?;
                }
            }
            Statement::SubgroupBallot { result, predicate } => {
                let predicate = match predicate {
                    Some(predicate) => self.scalar(*predicate)?,
                    None => Operand::truth(true),
                };
                self.ballot(*result, predicate)?;
            }
            Statement::SubgroupGather { mode, argument, result } => self.gather(mode, *argument, *result)?,
            Statement::SubgroupCollectiveOperation { op, collective_op, argument, result } => {
                self.collective(*op, *collective_op, *argument, *result)?;
            }
            Statement::ImageStore { .. } | Statement::ImageAtomic { .. } => return self.unsupported("textures"),
            Statement::RayQuery { .. } | Statement::RayPipelineFunction(_) => return self.unsupported("ray tracing"),
            Statement::CooperativeStore { target, data } => self.cooperative_store(*target, data)?,
        }
        Ok(false)
    }

    /// Lets the executor leave out lanes around those of a mask: of a row of pixels, the last rounds of a loop keep few.
    fn narrow_to(&mut self, mask: Register) {
        if !self.is_ahead {
            self.builder.mask(Op::Narrow, NONE, mask, None);
        }
    }

    fn lower_if(&mut self, condition: Handle<Expression>, accept: &'m Block, reject: &'m Block) -> Result<bool> {
        let condition = self.scalar(condition)?;
        if let Some(known) = condition.constant() {
            return self.block(if known != 0 { accept } else { reject });
        }
        if !self.builder.is_uniform(condition) && self.lower_choice(condition, accept, reject)? {
            return Ok(false);
        }
        let left = match (&accept[..], &reject[..]) {
            ([statement], []) => Some((statement, Op::MaskDrop)),
            ([], [statement]) => Some((statement, Op::MaskKeep)),
            _ => None,
        };
        if let Some((statement, op)) = left
            && !self.builder.is_uniform(condition)
            && self.leave_where(statement, op, condition)
        {
            return Ok(false);
        }
        let end = self.builder.label();
        let otherwise = self.builder.label();
        let mut reached = true;
        if self.builder.is_uniform(condition) {
            self.builder.jump(Op::JumpUnless, Some(condition), FULL, otherwise);
            let accept_ends = self.block(accept)?;
            // Even where it ends: a return in the last place of a function is no jump of its own.
            if !reject.is_empty() {
                self.builder.jump(Op::Jump, None, FULL, end);
            }
            self.builder.place(otherwise);
            let reject_ends = self.block(reject)?;
            reached = !(accept_ends && reject_ends);
        } else {
            let around = self.mask();
            if !accept.is_empty() {
                let mask = self.new_mask();
                self.builder.mask(Op::MaskAnd, mask, around, Some(condition));
                self.builder.jump(Op::JumpNone, None, mask, otherwise);
                self.push_branch(Some(mask), otherwise);
                self.block(accept)?;
                self.scopes.pop();
            }
            self.builder.place(otherwise);
            if !reject.is_empty() {
                let mask = self.new_mask();
                self.builder.mask(Op::MaskAndNot, mask, around, Some(condition));
                self.builder.jump(Op::JumpNone, None, mask, end);
                self.push_branch(Some(mask), end);
                self.block(reject)?;
                self.scopes.pop();
            }
        }
        self.builder.place(end);
        self.skip_if_empty();
        Ok(!reached)
    }

    /// Both sides only compute a value for the same variable, as in `a || b`: computes both and chooses, which is
    /// cheaper than a mask. False if it is not so.
    fn lower_choice(&mut self, condition: Operand, accept: &'m Block, reject: &'m Block) -> Result<bool> {
        let function = self.frame()?.function;
        let (Some(target), Some(other)) = (survey::only_store(function, accept), survey::only_store(function, reject))
        else {
            return Ok(false);
        };
        if target != other {
            return Ok(false);
        }
        let accepted = self.choice_value(accept)?;
        let rejected = self.choice_value(reject)?;
        let chosen: Vec<Operand> = accepted
            .iter()
            .zip(rejected.iter())
            .map(|(accept, reject)| self.builder.select(condition, *accept, *reject))
            .listed();
        let variable = self.frame()?.variables.get(&target).copied();
        let variable = self.known(variable, "this variable")?;
        self.store_variable(variable, 0, &chosen)?;
        Ok(true)
    }

    /// Lowers all of a block but its store, and gives what would be stored.
    fn choice_value(&mut self, block: &'m Block) -> Result<std::rc::Rc<[Operand]>> {
        for statement in block {
            if let Statement::Store { value, .. } = statement {
                return self.scalars(*value);
            }
            self.statement(statement)?;
        }
        self.unsupported("a choice without a value")
    }

    fn lower_loop(
        &mut self,
        body: &'m Block,
        continuing: &'m Block,
        break_if: Option<Handle<Expression>>,
    ) -> Result<()> {
        if self.unroll(body)? {
            return Ok(());
        }
        let (id, divergent) = self.construct();
        let (top, next, exit) = (self.builder.label(), self.builder.label(), self.builder.label());
        let live = if divergent {
            let live = self.new_mask();
            let around = self.mask();
            self.builder.mask(Op::MaskCopy, live, around, None);
            Some(live)
        } else {
            None
        };
        self.scopes.push(Scope {
            kind: ScopeKind::Loop,
            id,
            mask: live,
            end: exit,
            exit,
            next,
            divergent,
            reduced: false,
        });
        let carried = self.carry(body)?;
        self.builder.place(top);
        if let Some(live) = live {
            self.narrow_to(live);
        }
        let rests = live.filter(|_| crate::flow::continues(body));
        if let Some(live) = rests {
            // Lanes that continue rest until the others come to the end of the body.
            let awake = self.new_mask();
            self.builder.mask(Op::MaskCopy, awake, live, None);
            self.push_branch(Some(awake), next);
        }
        self.block(body)?;
        if rests.is_some() {
            self.scopes.pop();
        }
        self.builder.place(next);
        self.skip_if_empty();
        self.block(continuing)?;
        let condition = match break_if {
            Some(condition) => Some(self.scalar(condition)?),
            None => None,
        };
        match (condition, live) {
            (Some(condition), _) if self.builder.is_uniform(condition) => match live {
                Some(live) => {
                    self.builder.jump(Op::JumpIf, Some(condition), FULL, exit);
                    self.builder.jump(Op::JumpAny, None, live, top);
                }
                None => self.builder.jump(Op::JumpUnless, Some(condition), FULL, top),
            },
            (Some(condition), Some(live)) => {
                let leaving = self.new_mask();
                self.builder.mask(Op::MaskAnd, leaving, live, Some(condition));
                self.builder.mask(Op::MaskRemove, live, leaving, None);
                self.builder.jump(Op::JumpAny, None, live, top);
            }
            (Some(_), None) => {
                self.found.insert(Fact::Divergent(id));
            }
            (None, Some(live)) => self.builder.jump(Op::JumpAny, None, live, top),
            (None, None) => self.builder.jump(Op::Jump, None, FULL, top),
        }
        self.builder.place(exit);
        self.scopes.pop();
        if live.is_some() {
            let around =
                self.scopes.iter().rev().find_map(|scope| scope.mask.filter(|_| scope.kind == ScopeKind::Loop));
            self.narrow_to(around.unwrap_or(FULL));
        }
        for (variable, depth) in carried {
            self.variables[variable].depth = depth;
        }
        self.skip_if_empty();
        Ok(())
    }

    /// Lets stores in a loop ignore which lanes have left it, for variables that nothing else reads: a counter stays the same in all lanes. Returns
    /// how it was before. Kernels compiled ahead do without: LLVM sees where a lane is no longer used.
    fn carry(&mut self, body: &'m Block) -> Result<Vec<(usize, usize)>> {
        let depth = self.scopes.len();
        if self.is_ahead {
            return Ok(Vec::new());
        }
        let carried = self.frame()?.carried.clone();
        let mut before = Vec::new();
        for local in carried.get(&(std::ptr::from_ref(body) as usize)).into_iter().flatten() {
            let Some(variable) = self.frame()?.variables.get(local).copied() else { continue };
            let known = &mut self.variables[variable];
            // In memory a lane that has left would store at some place, which may be noted as out of range.
            if matches!(known.storage, super::variable::Storage::Registers(_)) {
                before.push((variable, std::mem::replace(&mut known.depth, depth)));
            }
        }
        Ok(before)
    }

    fn lower_switch(&mut self, selector: Handle<Expression>, cases: &'m [SwitchCase]) -> Result<()> {
        let selector = self.scalar(selector)?;
        let (id, divergent) = self.construct();
        let uniform = self.builder.is_uniform(selector);
        let exit = self.builder.label();
        let around = self.mask();
        let mask = if divergent && uniform {
            let mask = self.new_mask();
            self.builder.mask(Op::MaskCopy, mask, around, None);
            Some(mask)
        } else {
            None
        };
        self.scopes.push(Scope {
            kind: ScopeKind::Switch,
            id,
            mask,
            end: exit,
            exit,
            next: exit,
            divergent: divergent || !uniform,
            reduced: false,
        });
        // Selectors that share a body: all but the last are empty and fall through.
        let mut groups: Vec<(Vec<SwitchValue>, &'m Block)> = Vec::new();
        let mut values = Vec::new();
        for case in cases {
            values.push(case.value);
            if case.fall_through && !case.body.is_empty() {
                return self.unsupported("switch cases that fall through");
            }
            if !case.fall_through {
                groups.push((std::mem::take(&mut values), &case.body));
            }
        }
        if uniform {
            self.uniform_switch(selector, &groups, exit)?;
        } else {
            self.varying_switch(selector, &groups, around)?;
        }
        self.builder.place(exit);
        self.scopes.pop();
        self.skip_if_empty();
        Ok(())
    }

    fn uniform_switch(
        &mut self,
        selector: Operand,
        groups: &[(Vec<SwitchValue>, &'m Block)],
        exit: Label,
    ) -> Result<()> {
        let mut default = exit;
        let mut labels = Vec::new();
        for (values, _) in groups {
            let label = self.builder.label();
            labels.push(label);
            for value in values {
                match selector_bits(*value) {
                    Some(bits) => {
                        let chosen = self.builder.equal(selector, Operand::word(bits));
                        self.builder.jump(Op::JumpIf, Some(chosen), FULL, label);
                    }
                    None => default = label,
                }
            }
        }
        self.builder.jump(Op::Jump, None, FULL, default);
        for ((_, body), label) in groups.iter().zip(labels) {
            self.builder.place(label);
            if !self.block(body)? {
                self.builder.jump(Op::Jump, None, FULL, exit);
            }
        }
        Ok(())
    }

    fn varying_switch(
        &mut self,
        selector: Operand,
        groups: &[(Vec<SwitchValue>, &'m Block)],
        around: u32,
    ) -> Result<()> {
        // Which lanes go where, before any body runs. The default takes what no other case does.
        let mut conditions = Vec::new();
        let mut named: Option<Operand> = None;
        for (values, _) in groups {
            let mut condition: Option<Operand> = None;
            let mut default = false;
            for value in values {
                let Some(bits) = selector_bits(*value) else {
                    default = true;
                    continue;
                };
                let chosen = self.builder.equal(selector, Operand::word(bits));
                condition = Some(match condition {
                    Some(condition) => self.builder.or(condition, chosen),
                    None => chosen,
                });
            }
            // Values that share the default's body need no mention.
            if let (Some(condition), false) = (condition, default) {
                named = Some(match named {
                    Some(named) => self.builder.or(named, condition),
                    None => condition,
                });
            }
            conditions.push((condition, default));
        }
        for ((condition, default), (_, body)) in conditions.into_iter().zip(groups) {
            let end = self.builder.label();
            let mask = self.new_mask();
            match (default, condition, named) {
                (true, _, Some(named)) => self.builder.mask(Op::MaskAndNot, mask, around, Some(named)),
                (true, _, None) => self.builder.mask(Op::MaskCopy, mask, around, None),
                (false, Some(condition), _) => self.builder.mask(Op::MaskAnd, mask, around, Some(condition)),
                (false, None, _) => self.builder.mask(Op::MaskNone, mask, FULL, None),
            }
            self.builder.jump(Op::JumpNone, None, mask, end);
            self.push_branch(Some(mask), end);
            self.block(body)?;
            self.scopes.pop();
            self.builder.place(end);
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        pointer: Handle<Expression>,
        function: AtomicFunction,
        value: Handle<Expression>,
        result: Option<Handle<Expression>>,
    ) -> Result<()> {
        let value = self.scalar(value)?;
        let pointer = self.pointer(pointer)?;
        let number = self.number_behind(&pointer)?;
        let (access, index) = self.atomic_access(&pointer)?;
        let mask = self.mask();
        let simple = |atomic| Op::Atomic(atomic, number);
        let op = match function {
            AtomicFunction::Add => simple(Atomic::Add),
            AtomicFunction::Subtract => simple(Atomic::Sub),
            AtomicFunction::And => simple(Atomic::And),
            AtomicFunction::ExclusiveOr => simple(Atomic::Xor),
            AtomicFunction::InclusiveOr => simple(Atomic::Or),
            AtomicFunction::Min => simple(Atomic::Min),
            AtomicFunction::Max => simple(Atomic::Max),
            AtomicFunction::Exchange { compare: None } => simple(Atomic::Exchange),
            AtomicFunction::Exchange { compare: Some(compare) } => {
                let compare = self.scalar(compare)?;
                let op = Op::CompareExchange(number);
                let old = self.builder.atomic(op, access, index, Some(value), Some(compare), mask);
                let exchanged = self.equal_bits(old, compare);
                if let Some(result) = result {
                    self.set(result, Value::Scalars([old, exchanged].into()))?;
                }
                return Ok(());
            }
        };
        let old = self.builder.atomic(op, access, index, Some(value), None, mask);
        if let Some(result) = result {
            self.set(result, Value::Scalars([old].into()))?;
        }
        Ok(())
    }
}

fn selector_bits(value: SwitchValue) -> Option<u32> {
    match value {
        SwitchValue::I32(value) => Some(value as u32),
        SwitchValue::U32(value) => Some(value),
        SwitchValue::Default => None,
    }
}

//! Functions, statement by statement. Expressions are written anew in the order in which they are emitted. `mod` calls `rewrite` for each function of the
//! kernel and of the library. Float expressions go through `number` and `builtin`; everything else is copied with new handles. A function that computes
//! floats loads the word of zeros first, and only such a function asks for that binding.

use naga::valid::FunctionInfo;
use naga::{
    AddressSpace, Block, Expression, Function, Handle, Literal, Module, Range, Scalar, ScalarKind, Span, Statement,
    SwitchCase, Type, TypeInner, VectorSize,
};

use super::{Origin, Outcome, Work, refuse, vector_type, without_small};
use crate::flow;
use cantus_base::listed::Listed;

/// The form of a value of float32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Scalar,
    Vector(VectorSize),
    Matrix(VectorSize, VectorSize),
}

/// A change to a float expression.
type Change<'w, 'a> = dyn Fn(&mut Body<'w, 'a>, Handle<Expression>, Form) -> Handle<Expression>;

/// The most parts of a value that is loaded or stored as a whole.
const MOST_PARTS: u32 = 256;

pub(super) struct Body<'w, 'a> {
    work: &'w mut Work<'a>,
    origin: Origin,
    module: &'a Module,
    function: &'a Function,
    info: &'a FunctionInfo,
    /// Nothing is replaced.
    raw: bool,
    new: Function,
    /// The new handle of each expression.
    map: Vec<Option<Handle<Expression>>>,
    /// Values of two parts that builtins give as a structure.
    pairs: Vec<(Handle<Expression>, [Handle<Expression>; 2])>,
    block: Block,
    pub(super) span: Span,
    /// The word that no compiler knows.
    pub(super) zero: Option<Handle<Expression>>,
    literals: Vec<(Literal, Handle<Expression>)>,
}

impl<'w, 'a> Body<'w, 'a> {
    pub(super) fn rewrite(
        work: &'w mut Work<'a>,
        origin: Origin,
        function: &'a Function,
        info: &'a FunctionInfo,
    ) -> Outcome<Function> {
        let raw = origin == Origin::Library && function.name.as_deref().is_some_and(|name| name.starts_with("raw_"));
        let (module, _) = work.source(origin);
        let mut new = Function {
            name: function.name.clone(),
            arguments: function.arguments.clone(),
            result: function.result.clone(),
            diagnostic_filter_leaf: function.diagnostic_filter_leaf,
            ..Function::default()
        };
        for argument in &mut new.arguments {
            argument.ty = work.ty(origin, argument.ty);
        }
        if let Some(result) = &mut new.result {
            result.ty = work.ty(origin, result.ty);
        }
        let mut body = Body {
            work,
            origin,
            module,
            function,
            info,
            raw,
            new,
            map: vec![None; function.expressions.len()],
            pairs: Vec::new(),
            block: Block::new(),
            span: Span::UNDEFINED,
            zero: None,
            literals: Vec::new(),
        };
        body.locals()?;
        // Every function that computes loads the word first; one that does not would ask for a binding that it does not use.
        let start = body.needs_zero().then(|| {
            let pointer = body.plain(Expression::GlobalVariable(body.work.zero));
            let word = body.new.expressions.append(Expression::Load { pointer }, Span::UNDEFINED);
            body.zero = Some(word);
            Statement::Emit(Range::new_from_bounds(word, word))
        });
        let mut written = body.block(&function.body)?;
        if let Some(start) = start {
            written.splice(0..0, Block::from_vec(vec![start]));
        }
        let Body { mut new, map, .. } = body;
        new.body = written;
        let names = function.named_expressions.iter();
        let names =
            names.filter_map(|(handle, name)| Some((map.get(handle.index()).copied().flatten()?, name.clone())));
        new.named_expressions = names.collect();
        Ok(new)
    }

    /// Returns whether a float is computed: by an operator or a builtin.
    fn needs_zero(&self) -> bool {
        !self.raw
            && self.function.expressions.iter().any(|(handle, expression)| match expression {
                Expression::Binary { left, right, .. } => {
                    [handle, *left, *right].iter().any(|&h| self.form(h).is_some())
                }
                Expression::Math { .. } => self.form(handle).is_some(),
                _ => false,
            })
    }

    fn locals(&mut self) -> Outcome<()> {
        for (_, local) in self.function.local_variables.iter() {
            let mut new = local.clone();
            new.ty = self.work.ty(self.origin, local.ty);
            new.init = local.init.map(|init| self.constant(init)).transpose()?;
            self.new.local_variables.append(new, Span::UNDEFINED);
        }
        Ok(())
    }

    /// An expression of constants, for a variable's initial value: it is in no block.
    fn constant(&mut self, old: Handle<Expression>) -> Outcome<Handle<Expression>> {
        let new = match self.function.expressions[old].clone() {
            Expression::Compose { ty, components } => {
                let components = components.into_iter().map(|part| self.constant(part)).try_listed()?;
                Expression::Compose { ty: self.work.ty(self.origin, ty), components }
            }
            Expression::Splat { size, value } => Expression::Splat { size, value: self.constant(value)? },
            Expression::Literal(literal) => Expression::Literal(without_small(literal)),
            Expression::ZeroValue(ty) => Expression::ZeroValue(self.work.ty(self.origin, ty)),
            Expression::Constant(constant) if self.origin == Origin::Library => self.library_constant(constant),
            other @ (Expression::Constant(_) | Expression::Override(_)) => other,
            mut other => {
                flow::replaced(|mut change| flow::change_operands(&mut other, &mut change), |old| self.constant(old))?;
                other
            }
        };
        Ok(self.new.expressions.append(new, self.function.expressions.get_span(old)))
    }

    fn library_constant(&self, constant: Handle<naga::Constant>) -> Expression {
        let constant = &self.module.constants[constant];
        match self.module.global_expressions[constant.init] {
            Expression::Literal(literal) => Expression::Literal(literal),
            // The library's constants are numbers.
            _ => Expression::Literal(Literal::F32(f32::NAN)),
        }
    }

    // What is written.

    /// An expression outside every block.
    pub(super) fn plain(&mut self, expression: Expression) -> Handle<Expression> {
        self.new.expressions.append(expression, self.span)
    }

    pub(super) fn literal(&mut self, literal: Literal) -> Handle<Expression> {
        let known = self.literals.iter().find(|(known, _)| *known == literal);
        if let Some(&(_, handle)) = known {
            return handle;
        }
        let handle = self.plain(Expression::Literal(literal));
        self.literals.push((literal, handle));
        handle
    }

    pub(super) fn emit(&mut self, expression: Expression) -> Handle<Expression> {
        let handle = self.new.expressions.append(expression, self.span);
        if let Some(Statement::Emit(range)) = self.block.last_mut()
            && let Some((first, last)) = range.first_and_last()
            && last.index() + 1 == handle.index()
        {
            *range = Range::new_from_bounds(first, handle);
        } else {
            self.block.push(Statement::Emit(Range::new_from_bounds(handle, handle)), self.span);
        }
        handle
    }

    /// A call of a function of the library.
    pub(super) fn call(&mut self, name: &str, arguments: Vec<Handle<Expression>>) -> Outcome<Handle<Expression>> {
        let Some(&function) = self.work.library.names.get(name) else {
            return refuse("a function of the library is missing (a defect: please report it)", self.span);
        };
        let function = self.work.function(Origin::Library, function)?;
        let result = self.plain(Expression::CallResult(function));
        self.block.push(Statement::Call { function, arguments, result: Some(result) }, self.span);
        Ok(result)
    }

    pub(super) fn vector_of(&mut self, scalar: Scalar, components: Vec<Handle<Expression>>) -> Handle<Expression> {
        let size = match components.len() {
            2 => VectorSize::Bi,
            3 => VectorSize::Tri,
            4 => VectorSize::Quad,
            _ => return components.first().copied().unwrap_or_else(|| self.literal(Literal::F32(0.0))),
        };
        let ty = vector_type(&mut self.work.new, size, scalar);
        self.emit(Expression::Compose { ty, components })
    }

    pub(super) fn matrix_of(
        &mut self,
        columns: VectorSize,
        rows: VectorSize,
        components: Vec<Handle<Expression>>,
    ) -> Handle<Expression> {
        let inner = TypeInner::Matrix { columns, rows, scalar: Scalar::F32 };
        vector_type(&mut self.work.new, rows, Scalar::F32);
        let ty = self.work.new.types.insert(Type { name: None, inner }, Span::UNDEFINED);
        self.emit(Expression::Compose { ty, components })
    }

    // What is read.

    pub(super) fn is_library(&self) -> bool {
        self.origin == Origin::Library
    }

    pub(super) fn inner(&self, old: Handle<Expression>) -> &'a TypeInner {
        self.info[old].ty.inner_with(&self.module.types)
    }

    pub(super) fn form(&self, old: Handle<Expression>) -> Option<Form> {
        form(self.inner(old))
    }

    /// The new expression for one that was emitted, or that is outside every block.
    pub(super) fn get(&mut self, old: Handle<Expression>) -> Outcome<Handle<Expression>> {
        if let Some(known) = self.map.get(old.index()).copied().flatten() {
            return Ok(known);
        }
        if let Some(&(_, [first, second])) = self.pairs.iter().find(|(pair, _)| *pair == old) {
            let Some(ty) = self.info[old].ty.handle() else {
                return refuse("the result of frexp or modf as a whole", self.span);
            };
            return Ok(self.emit(Expression::Compose { ty, components: vec![first, second] }));
        }
        let new = match self.function.expressions[old].clone() {
            Expression::Literal(literal) => Expression::Literal(without_small(literal)),
            Expression::Constant(constant) if self.origin == Origin::Library => self.library_constant(constant),
            Expression::ZeroValue(ty) => Expression::ZeroValue(self.work.ty(self.origin, ty)),
            Expression::Override(handle) => {
                let value = self.plain(Expression::Override(handle));
                return Ok(match self.form(old) {
                    Some(form) => self.flushed(value, form),
                    None => value,
                });
            }
            same @ (Expression::Constant(_)
            | Expression::FunctionArgument(_)
            | Expression::GlobalVariable(_)
            | Expression::LocalVariable(_)) => same,
            _ => return refuse("an expression out of order (a defect: please report the kernel)", self.span),
        };
        let handle = self.plain(new);
        self.put(old, handle);
        Ok(handle)
    }

    fn put(&mut self, old: Handle<Expression>, new: Handle<Expression>) {
        if let Some(place) = self.map.get_mut(old.index()) {
            *place = Some(new);
        }
    }

    // Statements.

    fn block(&mut self, old: &'a Block) -> Outcome<Block> {
        let outer = std::mem::replace(&mut self.block, Block::new());
        for (statement, span) in old.span_iter() {
            self.span = *span;
            self.statement(statement)?;
        }
        Ok(std::mem::replace(&mut self.block, outer))
    }

    fn statement(&mut self, statement: &'a Statement) -> Outcome<()> {
        let new = match statement {
            Statement::Emit(range) => {
                for old in range.clone() {
                    self.span = self.function.expressions.get_span(old);
                    self.emitted(old)?;
                }
                return Ok(());
            }
            Statement::Block(inner) => Statement::Block(self.block(inner)?),
            Statement::If { condition, accept, reject } => {
                let condition = self.get(*condition)?;
                Statement::If { condition, accept: self.block(accept)?, reject: self.block(reject)? }
            }
            Statement::Switch { selector, cases } => {
                let selector = self.get(*selector)?;
                let cases = cases.iter().map(|case| {
                    Ok(SwitchCase { value: case.value, body: self.block(&case.body)?, fall_through: case.fall_through })
                });
                Statement::Switch { selector, cases: cases.try_listed()? }
            }
            Statement::Loop { body, continuing, break_if } => {
                let body = self.block(body)?;
                // What the condition needs is emitted at the end of the continuing block.
                let outer = std::mem::replace(&mut self.block, Block::new());
                for (statement, span) in continuing.span_iter() {
                    self.span = *span;
                    self.statement(statement)?;
                }
                let break_if = break_if.map(|condition| self.get(condition)).transpose()?;
                let continuing = std::mem::replace(&mut self.block, outer);
                Statement::Loop { body, continuing, break_if }
            }
            Statement::Return { value } => Statement::Return { value: value.map(|value| self.get(value)).transpose()? },
            Statement::Store { pointer, value } => {
                Statement::Store { pointer: self.get(*pointer)?, value: self.stored(*pointer, *value)? }
            }
            Statement::Call { function, arguments, result } => {
                let function = self.work.function(self.origin, *function)?;
                let arguments = arguments.iter().map(|&argument| self.get(argument)).try_listed()?;
                let result = result.map(|old| {
                    let new = self.plain(Expression::CallResult(function));
                    self.put(old, new);
                    new
                });
                Statement::Call { function, arguments, result }
            }
            Statement::Atomic { pointer, fun, value, result } => {
                if self.inner(*value).scalar_kind() == Some(ScalarKind::Float) {
                    return refuse("atomic floats: the order of their sums is the device's", self.span);
                }
                let (pointer, value) = (self.get(*pointer)?, self.get(*value)?);
                let fun = match *fun {
                    naga::AtomicFunction::Exchange { compare: Some(compare) } => {
                        naga::AtomicFunction::Exchange { compare: Some(self.get(compare)?) }
                    }
                    other => other,
                };
                let result = result.map(|old| self.same(old)).transpose()?;
                Statement::Atomic { pointer, fun, value, result }
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                Statement::WorkGroupUniformLoad { pointer: self.get(*pointer)?, result: self.same(*result)? }
            }
            same @ (Statement::Break
            | Statement::Continue
            | Statement::Kill
            | Statement::ControlBarrier(_)
            | Statement::MemoryBarrier(_)) => same.clone(),
            Statement::SubgroupBallot { .. }
            | Statement::SubgroupGather { .. }
            | Statement::SubgroupCollectiveOperation { .. } => {
                return refuse("subgroup operations: their size is the device's", self.span);
            }
            _ => return refuse("a statement that no compute kernel has", self.span),
        };
        self.block.push(new, self.span);
        Ok(())
    }

    /// The value that a statement stores: others see it where it is in a buffer, and its floats are settled.
    fn stored(&mut self, pointer: Handle<Expression>, value: Handle<Expression>) -> Outcome<Handle<Expression>> {
        let visible = matches!(self.inner(pointer).pointer_space(), Some(AddressSpace::Storage { .. }));
        let new = self.get(value)?;
        if !visible || self.raw {
            return Ok(new);
        }
        let ty = self.info[value].ty.handle();
        self.every_float(new, self.inner(value), ty, &mut 0, &Self::settled)
    }

    /// The result of a statement, which is outside every block and refers to nothing.
    fn same(&mut self, old: Handle<Expression>) -> Outcome<Handle<Expression>> {
        let new = self.plain(self.function.expressions[old].clone());
        self.put(old, new);
        Ok(new)
    }

    fn emitted(&mut self, old: Handle<Expression>) -> Outcome<()> {
        let is_other_float = |inner: &TypeInner| {
            inner.scalar().is_some_and(|scalar| scalar.kind == ScalarKind::Float && scalar.width != 4)
        };
        if let TypeInner::CooperativeMatrix { .. } = self.inner(old) {
            return refuse("cooperative matrices: the order of their sums is the device's", self.span);
        }
        if is_other_float(self.inner(old)) {
            return refuse("f16 and f64: use f32, and pack2x16float for halves in memory", self.span);
        }
        let new = if self.raw { self.copied(old)? } else { self.changed(old)? };
        if let Some(new) = new {
            self.put(old, new);
        }
        Ok(())
    }

    /// The expression as it is, of new operands.
    pub(super) fn copied(&mut self, old: Handle<Expression>) -> Outcome<Option<Handle<Expression>>> {
        let mut expression = self.function.expressions[old].clone();
        if !flow::replaced(|mut change| flow::change_operands(&mut expression, &mut change), |old| self.get(old))? {
            return refuse("an expression that no compute kernel has", self.span);
        }
        if let Expression::Compose { ty, .. } = &mut expression {
            *ty = self.work.ty(self.origin, *ty);
        }
        Ok(Some(self.emit(expression)))
    }

    /// The expression in its reproducible form; `None` where it is kept as a pair.
    fn changed(&mut self, old: Handle<Expression>) -> Outcome<Option<Handle<Expression>>> {
        let form = self.form(old);
        let new = match self.function.expressions[old] {
            Expression::Load { pointer } => {
                let outside = matches!(
                    self.inner(pointer).pointer_space(),
                    Some(AddressSpace::Storage { .. } | AddressSpace::Uniform)
                );
                let loaded = self.copied(old)?;
                match loaded {
                    Some(loaded) if outside => {
                        self.every_float(loaded, self.inner(old), self.info[old].ty.handle(), &mut 0, &Self::flushed)?
                    }
                    _ => return Ok(loaded),
                }
            }
            Expression::AccessIndex { base, index } => {
                let pair = self.pairs.iter().find(|(pair, _)| *pair == base).map(|(_, parts)| *parts);
                match pair.and_then(|parts| parts.get(index as usize).copied()) {
                    Some(part) => part,
                    None => return self.copied(old),
                }
            }
            Expression::Unary { op: naga::UnaryOperator::Negate, expr } => match form {
                Some(form) => {
                    let value = self.get(expr)?;
                    self.negated(value, form)
                }
                None => return self.copied(old),
            },
            Expression::Binary { op, left, right } => return self.binary(old, op, left, right),
            Expression::As { expr, kind, convert } => return self.conversion(old, expr, kind, convert),
            Expression::Math { fun, arg, arg1, arg2, .. } => {
                let arguments: Vec<_> = [Some(arg), arg1, arg2].into_iter().flatten().listed();
                if self.form(old).is_none() && self.form(arg).is_none() {
                    return self.copied(old);
                }
                if matches!(fun, naga::MathFunction::Frexp | naga::MathFunction::Modf) {
                    let parts = self.pair(fun, arg)?;
                    self.pairs.push((old, parts));
                    return Ok(None);
                }
                return self.math(old, fun, &arguments).map(Some);
            }
            _ => return self.copied(old),
        };
        Ok(Some(new))
    }

    /// A value whose parts of float32 went through a function.
    fn every_float(
        &mut self,
        value: Handle<Expression>,
        inner: &TypeInner,
        ty: Option<Handle<Type>>,
        parts: &mut u32,
        change: &Change<'w, 'a>,
    ) -> Outcome<Handle<Expression>> {
        if let Some(form) = form(inner) {
            return Ok(change(self, value, form));
        }
        // The kernel's own type: loads and stores of memory outside are never the library's.
        let types: Vec<Handle<Type>> = match inner {
            TypeInner::Struct { members, .. } => members.iter().map(|member| member.ty).listed(),
            TypeInner::Array { base, size: naga::ArraySize::Constant(count), .. } if count.get() <= MOST_PARTS => {
                vec![*base; count.get() as usize]
            }
            TypeInner::Array { .. } => {
                return refuse("a long array that is copied as a whole: copy its elements", self.span);
            }
            _ => return Ok(value),
        };
        if !types.iter().any(|&ty| has_floats(self.module, ty)) {
            return Ok(value);
        }
        *parts += u32::try_from(types.len()).unwrap_or(u32::MAX);
        if *parts > MOST_PARTS {
            return refuse("a large structure or array that is copied as a whole: copy its parts", self.span);
        }
        let Some(ty) = ty else { return refuse("a value of no known type", self.span) };
        let mut components = Vec::with_capacity(types.len());
        for (index, part) in (0..).zip(types) {
            let component = self.emit(Expression::AccessIndex { base: value, index });
            components.push(self.every_float(component, &self.module.types[part].inner, Some(part), parts, change)?);
        }
        Ok(self.emit(Expression::Compose { ty, components }))
    }
}

fn has_floats(module: &Module, ty: Handle<Type>) -> bool {
    match &module.types[ty].inner {
        TypeInner::Struct { members, .. } => members.iter().any(|member| has_floats(module, member.ty)),
        TypeInner::Array { base, .. } => has_floats(module, *base),
        inner => form(inner).is_some(),
    }
}

pub(super) fn form(inner: &TypeInner) -> Option<Form> {
    match *inner {
        TypeInner::Scalar(Scalar::F32) => Some(Form::Scalar),
        TypeInner::Vector { size, scalar: Scalar::F32 } => Some(Form::Vector(size)),
        TypeInner::Matrix { columns, rows, scalar: Scalar::F32 } => Some(Form::Matrix(columns, rows)),
        _ => None,
    }
}

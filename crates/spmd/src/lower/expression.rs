//! Expressions: each is evaluated once, where naga emits it. `statement` evaluates what naga emits, in its place: a load must not move past a store. A
//! value of an array that is indexed at run time is chosen among its elements if they are few, else it goes through memory of each lane.

use std::rc::Rc;

use naga::{Arena, Expression, Handle, Literal, RelationalFunction, UnaryOperator};

use super::super::bytecode::{Compare, Convert, Float, Input, Int, Op};
use super::builder::Operand;
use super::types::{Ty, Units};
use super::{Lowering, Result, Value};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

impl Lowering<'_, '_> {
    /// Returns the value of the expression, computed at its first mention.
    pub(super) fn evaluate(&mut self, handle: Handle<Expression>) -> Result<Value> {
        if let Some(Some(known)) = self.frame()?.values.get(handle.index()) {
            return Ok(known.clone());
        }
        let span = self.span;
        self.span = self.frame()?.function.expressions.get_span(handle);
        let value = self.expression(handle)?;
        self.spend(match &value {
            Value::Scalars(scalars) => scalars.len(),
            Value::Pointer(_) => 1,
        })?;
        self.span = span;
        self.set(handle, value.clone())?;
        let function = self.frame()?.function;
        if let (Value::Scalars(scalars), Some(name)) = (&value, function.named_expressions.get(&handle)) {
            for (part, scalar) in scalars.iter().enumerate() {
                if let Operand::Register(register) = scalar {
                    self.builder.name(*register, name, part, scalars.len());
                }
            }
        }
        Ok(value)
    }

    pub(super) fn set(&mut self, handle: Handle<Expression>, value: Value) -> Result<()> {
        if let Some(entry) = self.frame_mut()?.values.get_mut(handle.index()) {
            *entry = Some(value);
        }
        Ok(())
    }

    pub(super) fn scalars(&mut self, handle: Handle<Expression>) -> Result<Rc<[Operand]>> {
        match self.evaluate(handle)? {
            Value::Scalars(scalars) => Ok(scalars),
            Value::Pointer(_) => self.unsupported("a pointer where a value is expected"),
        }
    }

    pub(super) fn scalar(&mut self, handle: Handle<Expression>) -> Result<Operand> {
        let scalars = self.scalars(handle)?;
        self.known(scalars.first().copied(), "a value without scalars")
    }

    /// The type of an expression of the function being lowered.
    pub(super) fn ty(&self, handle: Handle<Expression>) -> Result<Ty> {
        let resolution = &self.frame()?.info[handle].ty;
        self.known(self.types.resolve(resolution), "values of this type")
    }

    /// The scalar kind of a scalar, vector or matrix expression.
    pub(super) fn kind(&self, handle: Handle<Expression>) -> Result<Scalar> {
        self.known(self.types.kind(self.ty(handle)?), "values of this type")
    }

    fn expression(&mut self, handle: Handle<Expression>) -> Result<Value> {
        let function = self.frame()?.function;
        let scalars = match &function.expressions[handle] {
            Expression::Literal(_) | Expression::Constant(_) | Expression::ZeroValue(_) => {
                self.constant_in(&function.expressions, handle)?
            }
            Expression::Override(_) => return self.unsupported("overrides that are not resolved"),
            Expression::Compose { components, .. } => {
                let mut scalars = Vec::new();
                for component in components {
                    scalars.extend_from_slice(&self.scalars(*component)?);
                }
                scalars.into()
            }
            Expression::Access { base, index } => {
                let index = self.scalar(*index)?;
                return self.access(*base, index);
            }
            Expression::AccessIndex { base, index } => {
                return match self.evaluate(*base)? {
                    Value::Pointer(pointer) => Ok(Value::Pointer(Rc::new(self.part_of(&pointer, *index)?))),
                    Value::Scalars(scalars) => self.part_of_value(&scalars, self.ty(*base)?, *index),
                };
            }
            Expression::Splat { size, value } => {
                let scalar = self.scalar(*value)?;
                vec![scalar; *size as usize].into()
            }
            Expression::Swizzle { size, vector, pattern } => {
                let vector = self.scalars(*vector)?;
                let picked = pattern.iter().take(*size as usize);
                let picked = picked.map(|component| vector.get(*component as usize).copied()).try_listed();
                self.known(picked, "this swizzle")?.into()
            }
            Expression::FunctionArgument(index) => {
                let argument = self.frame()?.arguments.get(*index as usize).cloned();
                return self.known(argument, "this argument");
            }
            Expression::GlobalVariable(variable) => return self.global_pointer(*variable),
            Expression::LocalVariable(variable) => {
                let place = self.frame()?.variables.get(variable).copied();
                let place = self.known(place, "this variable")?;
                return Ok(self.variable_pointer(place, Ty::Handle(function.local_variables[*variable].ty)));
            }
            Expression::Load { pointer } => {
                if let Some(argument) = self.argument(&function.expressions[*pointer]) {
                    return Ok(Value::Scalars([self.builder.input(argument)].into()));
                }
                let pointer = self.pointer(*pointer)?;
                return self.load(&pointer);
            }
            Expression::Unary { op, expr } => self.unary(*op, *expr)?,
            Expression::Binary { op, left, right } => self.binary(*op, *left, *right)?,
            Expression::Select { condition, accept, reject } => {
                let condition = self.scalars(*condition)?;
                let (accept, reject) = (self.scalars(*accept)?, self.scalars(*reject)?);
                self.selected(&condition, &accept, &reject)?.into()
            }
            Expression::Relational { fun, argument } => vec![self.relational(*fun, *argument)?].into(),
            Expression::Math { fun, arg, arg1, arg2, arg3 } => {
                let others = [*arg1, *arg2, *arg3];
                self.math(*fun, *arg, others)?.into()
            }
            Expression::As { expr, kind, convert } => self.cast(*expr, *kind, *convert)?.into(),
            Expression::ArrayLength(pointer) => {
                let pointer = self.pointer(*pointer)?;
                vec![self.array_length(&pointer)?].into()
            }
            Expression::CallResult(_)
            | Expression::AtomicResult { .. }
            | Expression::WorkGroupUniformLoadResult { .. }
            | Expression::SubgroupBallotResult
            | Expression::SubgroupOperationResult { .. } => {
                return self.unsupported("a result that is used before its statement");
            }
            Expression::ImageSample { .. } | Expression::ImageLoad { .. } | Expression::ImageQuery { .. } => {
                return self.unsupported("textures");
            }
            Expression::Derivative { .. } => return self.unsupported("derivatives"),
            Expression::RayQueryVertexPositions { .. }
            | Expression::RayQueryProceedResult
            | Expression::RayQueryGetIntersection { .. } => return self.unsupported("ray tracing"),
            Expression::CooperativeLoad { data, .. } => self.cooperative_load(handle, data)?,
            Expression::CooperativeMultiplyAdd { a, b, c } => self.cooperative_product([*a, *b, *c])?,
        };
        Ok(Value::Scalars(scalars))
    }

    /// The argument of the launch that is read by a pointer to it.
    fn argument(&self, pointer: &Expression) -> Option<Input> {
        let Expression::GlobalVariable(variable) = pointer else { return None };
        match self.globals.places.get(variable) {
            Some(super::Place::Argument(place)) => Some(Input::Argument(*place)),
            _ => None,
        }
    }

    /// Selects by one condition for all, or one for each.
    fn selected(&mut self, conditions: &[Operand], accept: &[Operand], reject: &[Operand]) -> Result<Vec<Operand>> {
        let pick = |place: usize| if conditions.len() == 1 { 0 } else { place };
        let mut scalars = Vec::with_capacity(accept.len());
        for (place, (accept, reject)) in accept.iter().zip(reject).enumerate() {
            let condition = self.known(conditions.get(pick(place)).copied(), "this select")?;
            scalars.push(self.builder.select(condition, *accept, *reject));
        }
        Ok(scalars)
    }

    /// A constant expression, in a function's arena or the module's.
    pub(super) fn constant_in(
        &mut self,
        arena: &Arena<Expression>,
        handle: Handle<Expression>,
    ) -> Result<Rc<[Operand]>> {
        Ok(match &arena[handle] {
            Expression::Literal(literal) => {
                let literal = self.known(literal_bits(*literal), "abstract numbers")?;
                vec![literal].into()
            }
            Expression::Constant(constant) => {
                let module = self.module;
                self.constant_in(&module.global_expressions, module.constants[*constant].init)?
            }
            Expression::ZeroValue(ty) => {
                let flat = self.types.flat(Ty::Handle(*ty));
                let kinds = self.known(flat, "values of this type or size")?;
                kinds.iter().map(|kind| Operand::Constant { bits: 0, wide: kind.is_wide() }).collect()
            }
            Expression::Compose { components, .. } => {
                let mut scalars = Vec::new();
                for component in components {
                    scalars.extend_from_slice(&self.constant_in(arena, *component)?);
                }
                scalars.into()
            }
            Expression::Splat { size, value } => {
                let scalar = self.constant_in(arena, *value)?;
                scalar.repeat(*size as usize).into()
            }
            _ => return self.unsupported("this constant expression"),
        })
    }

    /// `base[index]`, the index being known only at run time.
    fn access(&mut self, base: Handle<Expression>, index: Operand) -> Result<Value> {
        let scalars = match self.evaluate(base)? {
            Value::Pointer(pointer) => return Ok(Value::Pointer(Rc::new(self.element_of(&pointer, index)?))),
            Value::Scalars(scalars) => scalars,
        };
        let ty = self.ty(base)?;
        if let (Some(index), Some(count)) = (index.constant(), self.types.count(ty))
            && index < u64::from(count)
        {
            return self.part_of_value(&scalars, ty, index as u32);
        }
        // A lookup table.
        if scalars.len() > 4
            && scalars.iter().all(|scalar| scalar.constant().is_some())
            && let Some(table) = self.table_pointer(ty, &scalars)
        {
            let element = self.element_of(&table, index)?;
            return self.load(&element);
        }
        let (_, stride) = self.known(self.types.element(ty, Units::Scalars), "indexing of this type")?;
        let stride = stride.max(1) as usize;
        if scalars.len() <= 8 * stride {
            // Few elements: choose between them. Out of range gives the first.
            let mut chosen: Vec<Operand> = scalars.iter().take(stride).copied().listed();
            for (place, element) in scalars.chunks_exact(stride).enumerate().skip(1) {
                let here = self.builder.equal(index, Operand::word(place as u32));
                for (chosen, scalar) in chosen.iter_mut().zip(element) {
                    *chosen = self.builder.select(here, *scalar, *chosen);
                }
            }
            return Ok(Value::Scalars(chosen.into()));
        }
        // Many: through memory. Whatever is inactive here never reads it.
        let variable = self.new_variable(ty, self.scopes.len(), None)?;
        self.initialise(variable, ty, Some(&scalars))?;
        let Value::Pointer(pointer) = self.variable_pointer(variable, ty) else {
            return self.unsupported("indexing of this value");
        };
        let element = self.element_of(&pointer, index)?;
        self.load(&element)
    }

    fn part_of_value(&self, scalars: &[Operand], ty: Ty, index: u32) -> Result<Value> {
        let (part, offset) = self.known(self.types.part(ty, index, Units::Scalars), "members of this type")?;
        let count = self.known(self.types.scalars(part), "members of this type")?;
        let range = offset as usize..offset as usize + count as usize;
        Ok(Value::Scalars(self.known(scalars.get(range), "this member")?.into()))
    }

    fn unary(&mut self, op: UnaryOperator, operand: Handle<Expression>) -> Result<Rc<[Operand]>> {
        let kind = self.kind(operand)?;
        let scalars = self.scalars(operand)?;
        let mut results = Vec::with_capacity(scalars.len());
        for scalar in scalars.iter() {
            let result = match (op, kind) {
                (UnaryOperator::Negate, Scalar::F32 | Scalar::F16) => self.builder.float(Float::Neg, *scalar),
                (UnaryOperator::Negate, Scalar::F64) => self.builder.unary(Op::Double(Float::Neg), *scalar),
                (UnaryOperator::Negate, _) => self.int1(kind, Int::Neg, *scalar),
                (UnaryOperator::LogicalNot | UnaryOperator::BitwiseNot, _) => self.int1(kind, Int::Not, *scalar),
            };
            results.push(result);
        }
        Ok(results.into())
    }

    fn relational(&mut self, function: RelationalFunction, argument: Handle<Expression>) -> Result<Operand> {
        let kind = self.kind(argument)?;
        let scalars = self.scalars(argument)?;
        let first = self.known(scalars.first().copied(), "a value without scalars")?;
        let mut result = first;
        match function {
            RelationalFunction::All => {
                for scalar in scalars.iter().skip(1) {
                    result = self.builder.and(result, *scalar);
                }
            }
            RelationalFunction::Any => {
                for scalar in scalars.iter().skip(1) {
                    result = self.builder.or(result, *scalar);
                }
            }
            RelationalFunction::IsNan => result = self.compare(kind, Compare::NotEqual, first, first),
            RelationalFunction::IsInf => {
                let (size, infinity) = if kind == Scalar::F64 {
                    (self.builder.unary(Op::Double(Float::Abs), first), Operand::wide(f64::INFINITY.to_bits()))
                } else {
                    (self.builder.float(Float::Abs, first), Operand::float(f32::INFINITY))
                };
                result = self.compare(kind, Compare::Equal, size, infinity);
            }
        }
        Ok(result)
    }

    /// Votes of the active lanes, as a `vec4<u32>`.
    pub(super) fn ballot(&mut self, result: Handle<Expression>, predicate: Operand) -> Result<()> {
        let mask = self.mask();
        let votes = self.builder.subgroup(Op::Ballot, predicate, None, mask);
        let zero = Operand::word(0);
        self.set(result, Value::Scalars([votes, zero, zero, zero].into()))
    }

    pub(super) fn gather(
        &mut self,
        mode: &naga::GatherMode,
        argument: Handle<Expression>,
        result: Handle<Expression>,
    ) -> Result<()> {
        use super::super::bytecode::Gather;
        use naga::{Direction, GatherMode};
        let scalars = self.scalars(argument)?;
        let (gather, index) = match mode {
            GatherMode::BroadcastFirst => (Gather::First, None),
            GatherMode::Broadcast(index) => (Gather::Broadcast, Some(*index)),
            GatherMode::Shuffle(index) => (Gather::Shuffle, Some(*index)),
            GatherMode::ShuffleDown(index) => (Gather::Down, Some(*index)),
            GatherMode::ShuffleUp(index) => (Gather::Up, Some(*index)),
            GatherMode::ShuffleXor(index) => (Gather::Xor, Some(*index)),
            GatherMode::QuadBroadcast(index) => (Gather::QuadBroadcast, Some(*index)),
            GatherMode::QuadSwap(Direction::X) => (Gather::QuadX, None),
            GatherMode::QuadSwap(Direction::Y) => (Gather::QuadY, None),
            GatherMode::QuadSwap(Direction::Diagonal) => (Gather::QuadDiagonal, None),
        };
        let index = match index {
            Some(index) => self.scalar(index)?,
            None => Operand::word(0),
        };
        let mask = self.mask();
        let op = Op::Gather(gather);
        let mut results = Vec::with_capacity(scalars.len());
        for scalar in scalars.iter() {
            results.push(if self.builder.is_wide(*scalar) {
                let (low, high) = self.halves(*scalar);
                let low = self.builder.subgroup(op, low, Some(index), mask);
                let high = self.builder.subgroup(op, high, Some(index), mask);
                self.join(low, high)
            } else {
                self.builder.subgroup(op, *scalar, Some(index), mask)
            });
        }
        self.set(result, Value::Scalars(results.into()))
    }

    pub(super) fn collective(
        &mut self,
        operation: naga::SubgroupOperation,
        how: naga::CollectiveOperation,
        argument: Handle<Expression>,
        result: Handle<Expression>,
    ) -> Result<()> {
        use super::super::bytecode::{Collective, Fold, Number, Scan};
        use naga::{CollectiveOperation, SubgroupOperation};
        let kind = self.kind(argument)?;
        let scan = match how {
            CollectiveOperation::Reduce => Scan::Reduce,
            CollectiveOperation::InclusiveScan => Scan::Inclusive,
            CollectiveOperation::ExclusiveScan => Scan::Exclusive,
        };
        let fold = match operation {
            SubgroupOperation::All | SubgroupOperation::And => Fold::And,
            SubgroupOperation::Any | SubgroupOperation::Or => Fold::Or,
            SubgroupOperation::Add => Fold::Add,
            SubgroupOperation::Mul => Fold::Mul,
            SubgroupOperation::Min => Fold::Min,
            SubgroupOperation::Max => Fold::Max,
            SubgroupOperation::Xor => Fold::Xor,
        };
        let number = match kind {
            Scalar::Bool => Some(Number::U32),
            Scalar::I16 => Some(Number::I32),
            Scalar::U16 => Some(Number::U32),
            _ => super::pointer::number(kind),
        };
        let number = self.known(number, "subgroup operations on this type")?;
        let mask = self.mask();
        let scalars = self.scalars(argument)?;
        let mut results = Vec::with_capacity(scalars.len());
        for scalar in scalars.iter() {
            let folded = self.builder.subgroup(Op::Subgroup(Collective { scan, fold }, number), *scalar, None, mask);
            results.push(self.narrow(kind, folded));
        }
        self.set(result, Value::Scalars(results.into()))
    }

    /// Low and high words of an 8-byte value.
    pub(super) fn halves(&mut self, value: Operand) -> (Operand, Operand) {
        let low = self.builder.convert(Convert::I64ToI32, value);
        let high = self.builder.convert(Convert::HighWord, value);
        (low, high)
    }

    pub(super) fn join(&mut self, low: Operand, high: Operand) -> Operand {
        use super::super::bytecode::Int2;
        let low = self.builder.convert(Convert::U32ToU64, low);
        let high = self.builder.convert(Convert::U32ToU64, high);
        let high = self.builder.binary(Op::Wide2(Int2::ShiftLeft), high, Operand::word(32));
        self.builder.binary(Op::Wide2(Int2::Or), low, high)
    }

    /// Compares the bits of two values.
    pub(super) fn equal_bits(&mut self, a: Operand, b: Operand) -> Operand {
        use super::super::bytecode::IntCompare;
        if self.builder.is_wide(a) {
            self.builder.binary(Op::WideCompare(IntCompare::Equal), a, b)
        } else {
            self.builder.equal(a, b)
        }
    }
}

fn literal_bits(literal: Literal) -> Option<Operand> {
    Some(match literal {
        Literal::F64(value) => Operand::wide(value.to_bits()),
        Literal::F32(value) => Operand::float(value),
        Literal::F16(value) => Operand::float(value.to_f32()),
        Literal::U16(value) => Operand::word(u32::from(value)),
        Literal::I16(value) => Operand::word(i32::from(value) as u32),
        Literal::U32(value) => Operand::word(value),
        Literal::I32(value) => Operand::word(value as u32),
        Literal::U64(value) => Operand::wide(value),
        Literal::I64(value) => Operand::wide(value as u64),
        Literal::Bool(value) => Operand::truth(value),
        Literal::AbstractInt(_) | Literal::AbstractFloat(_) => return None,
    })
}

//! Workgroup memory set to zero by all invocations together. naga's writers of GLSL, HLSL and MSL let one invocation do it, by a literal with all
//! elements: for 16 KiB that is 4,096 stores, and Mesa's GL compiler takes a minute.

use cantus_base::listed::Listed;
use naga::valid::ModuleInfo;
use naga::{
    AddressSpace, ArraySize, Barrier, BinaryOperator, Binding, Block, BuiltIn, Expression, Function, FunctionArgument,
    Handle, Literal, LocalVariable, Module, Scalar, Span, Statement, Type, TypeInner, UniqueArena,
};

/// Begins an entry point by setting the workgroup variables that it uses to zero. Returns false if it uses none, or one of a type that cannot be set here.
/// `info` is the module's.
#[doc(hidden)]
pub fn settle(module: &mut Module, info: &ModuleInfo, entry_point: usize) -> bool {
    let number = module.types.insert(Type { name: None, inner: TypeInner::Scalar(Scalar::U32) }, Span::UNDEFINED);
    let Some(entry) = module.entry_points.get_mut(entry_point) else { return false };
    let uses = info.get_entry_point(entry_point);
    let shared = module.global_variables.iter();
    let shared =
        shared.filter(|(handle, variable)| variable.space == AddressSpace::WorkGroup && !uses[*handle].is_empty());
    let shared: Vec<_> = shared.map(|(handle, variable)| (handle, variable.ty)).listed();
    let invocations: u32 = entry.workgroup_size.iter().product();
    let mut function = entry.function.clone();
    let mut zeros = Zeros { types: &module.types, function: &mut function, number };
    let mut block = Block::new();
    let first = zeros.first(&mut block);
    let step = zeros.literal(invocations);
    for &(variable, ty) in &shared {
        let pointer = zeros.append(Expression::GlobalVariable(variable));
        if zeros.set(&mut block, (pointer, ty), (first, step)).is_none() {
            return false;
        }
    }
    if shared.is_empty() {
        return false;
    }
    block.push(Statement::ControlBarrier(Barrier::WORK_GROUP), Span::UNDEFINED);
    block.append(&mut function.body);
    function.body = block;
    entry.function = function;
    true
}

struct Zeros<'a> {
    types: &'a UniqueArena<Type>,
    function: &'a mut Function,
    /// The type u32.
    number: Handle<Type>,
}

impl Zeros<'_> {
    /// The invocation's number in its workgroup.
    fn first(&mut self, block: &mut Block) -> Handle<Expression> {
        let index = Some(Binding::BuiltIn(BuiltIn::LocalInvocationIndex));
        let arguments = &mut self.function.arguments;
        for (place, argument) in (0..).zip(arguments.iter()) {
            if argument.binding == index {
                return self.append(Expression::FunctionArgument(place));
            }
            let TypeInner::Struct { members, .. } = &self.types[argument.ty].inner else { continue };
            if let Some((member, _)) = (0..).zip(members).find(|(_, member)| member.binding == index) {
                let base = self.append(Expression::FunctionArgument(place));
                return self.emit(block, Expression::AccessIndex { base, index: member });
            }
        }
        let place = u32::try_from(arguments.len()).unwrap_or(u32::MAX);
        arguments.push(FunctionArgument { name: None, ty: self.number, binding: index });
        self.append(Expression::FunctionArgument(place))
    }

    /// Sets what lies at a pointer to zero: of its elements, those from `first` on in steps.
    fn set(
        &mut self,
        block: &mut Block,
        (pointer, ty): (Handle<Expression>, Handle<Type>),
        (first, step): (Handle<Expression>, Handle<Expression>),
    ) -> Option<()> {
        let mut counts = Vec::new();
        let mut inner = ty;
        while let TypeInner::Array { base, size, .. } = self.types[inner].inner {
            let ArraySize::Constant(count) = size else { return None };
            counts.push(count.get());
            inner = base;
        }
        let total = counts.iter().try_fold(1_u32, |total, &count| total.checked_mul(count))?;
        let variable = LocalVariable { name: None, ty: self.number, init: None };
        let variable = self.function.local_variables.append(variable, Span::UNDEFINED);
        let counter = self.append(Expression::LocalVariable(variable));
        block.push(Statement::Store { pointer: counter, value: first }, Span::UNDEFINED);

        let mut body = Block::new();
        let at = self.emit(&mut body, Expression::Load { pointer: counter });
        let end = self.literal(total);
        let over = self.binary(&mut body, BinaryOperator::GreaterEqual, at, end);
        let accept = Block::from_vec(vec![Statement::Break]);
        body.push(Statement::If { condition: over, accept, reject: Block::new() }, Span::UNDEFINED);
        let (mut place, mut below) = (pointer, total);
        for (axis, count) in counts.into_iter().enumerate() {
            below /= count;
            let mut index = at;
            if below > 1 {
                let below = self.literal(below);
                index = self.binary(&mut body, BinaryOperator::Divide, index, below);
            }
            if axis > 0 {
                let count = self.literal(count);
                index = self.binary(&mut body, BinaryOperator::Modulo, index, count);
            }
            place = self.emit(&mut body, Expression::Access { base: place, index });
        }
        self.element(&mut body, place, inner)?;

        let mut continuing = Block::new();
        let at = self.emit(&mut continuing, Expression::Load { pointer: counter });
        let next = self.binary(&mut continuing, BinaryOperator::Add, at, step);
        continuing.push(Statement::Store { pointer: counter, value: next }, Span::UNDEFINED);
        block.push(Statement::Loop { body, continuing, break_if: None }, Span::UNDEFINED);
        Some(())
    }

    /// Sets a value that is no array to zero. Atomic numbers are stored one by one.
    fn element(&mut self, block: &mut Block, pointer: Handle<Expression>, ty: Handle<Type>) -> Option<()> {
        let value = match &self.types[ty].inner {
            TypeInner::Atomic(scalar) => Expression::Literal(Literal::zero(*scalar)?),
            TypeInner::Struct { members, .. } if has_atomic(self.types, ty) => {
                let range = (self.literal(0), self.literal(1));
                for (index, member) in (0..).zip(members) {
                    let pointer = self.emit(block, Expression::AccessIndex { base: pointer, index });
                    self.set(block, (pointer, member.ty), range)?;
                }
                return Some(());
            }
            _ => Expression::ZeroValue(ty),
        };
        let value = self.append(value);
        block.push(Statement::Store { pointer, value }, Span::UNDEFINED);
        Some(())
    }

    fn binary(
        &mut self,
        block: &mut Block,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Handle<Expression> {
        self.emit(block, Expression::Binary { op, left, right })
    }

    fn literal(&mut self, value: u32) -> Handle<Expression> {
        self.append(Expression::Literal(Literal::U32(value)))
    }

    /// An expression that is evaluated in the block.
    fn emit(&mut self, block: &mut Block, expression: Expression) -> Handle<Expression> {
        let before = self.function.expressions.len();
        let handle = self.append(expression);
        block.push(Statement::Emit(self.function.expressions.range_from(before)), Span::UNDEFINED);
        handle
    }

    /// An expression that needs no evaluation: arguments, variables, literals.
    fn append(&mut self, expression: Expression) -> Handle<Expression> {
        self.function.expressions.append(expression, Span::UNDEFINED)
    }
}

fn has_atomic(types: &UniqueArena<Type>, ty: Handle<Type>) -> bool {
    match &types[ty].inner {
        TypeInner::Atomic(_) => true,
        TypeInner::Array { base, .. } => has_atomic(types, *base),
        TypeInner::Struct { members, .. } => members.iter().any(|member| has_atomic(types, member.ty)),
        _ => false,
    }
}

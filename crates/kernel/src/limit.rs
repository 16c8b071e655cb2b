//! Loops that end: a rewriting of naga's module after which an invocation makes no more than a given number of rounds, over all of its loops.
//!
//! - A counter of each invocation's own is raised at the start of every round. Beyond the limit the loop is left, and so is each loop after
//!   it, and the number of the first that was left so is kept in a storage binding.
//! - Loops that hold a barrier, a uniform load or a subgroup operation stay as they are: WGSL wants all invocations of a workgroup to agree there.
//! - A kernel whose text shows that it stays within the limit is not changed.

use naga::{
    AddressSpace, Arena, BinaryOperator, Block, Expression, Function, GlobalVariable, Handle, Literal, Module, Range,
    ResourceBinding, Scalar, Span, Statement, StorageAccess, Type, TypeInner,
};

use crate::flow::{blocks, blocks_mut};
use cantus_base::listed::Listed;

/// A module whose loops end, and the places of the loops that are counted.
pub(super) struct Limited {
    pub(super) module: Module,
    pub(super) loops: Vec<Span>,
}

/// The rewritten module; `None` if no loop needs to be counted.
pub(super) fn rewrite(module: &Module, rounds: u32) -> Option<Limited> {
    let bounded = (0..module.entry_points.len())
        .all(|entry| super::rounds::of_entry_point(module, entry).is_some_and(|known| known <= u64::from(rounds)));
    if bounded {
        return None;
    }
    let mut new = module.clone();
    let word = new.types.insert(Type { name: None, inner: TypeInner::Scalar(Scalar::U32) }, Span::UNDEFINED);
    let atomic = new.types.insert(Type { name: None, inner: TypeInner::Atomic(Scalar::U32) }, Span::UNDEFINED);
    let taken: Vec<u32> = module
        .global_variables
        .iter()
        .filter_map(|(_, variable)| variable.binding)
        .filter(|binding| binding.group == 0)
        .map(|binding| binding.binding)
        .listed();
    let binding = (0..=u32::MAX).find(|number| !taken.contains(number)).unwrap_or(u32::MAX);
    let variable = |name: &str, space, binding, ty| GlobalVariable {
        name: Some(name.to_owned()),
        space,
        binding,
        ty,
        init: None,
        memory_decorations: naga::MemoryDecorations::empty(),
    };
    let access = StorageAccess::LOAD | StorageAccess::STORE;
    let place = Some(ResourceBinding { group: 0, binding });
    let stopped = variable(super::Kernel::STOPPED, AddressSpace::Storage { access }, place, atomic);
    let stopped = new.global_variables.append(stopped, Span::UNDEFINED);
    let counter = variable("cantus_rounds", AddressSpace::Private, None, word);
    let counter = new.global_variables.append(counter, Span::UNDEFINED);

    // naga declares functions before their callers.
    let mut meeting: Vec<bool> = Vec::new();
    for (_, function) in module.functions.iter() {
        meeting.push(meets(&function.body, &function.expressions, &meeting));
    }
    let mut work = Work { stopped, counter, rounds, meeting, loops: Vec::new() };
    for (_, function) in new.functions.iter_mut() {
        work.function(function);
    }
    for entry in &mut new.entry_points {
        work.function(&mut entry.function);
    }
    (!work.loops.is_empty()).then_some(Limited { module: new, loops: work.loops })
}

/// Returns whether invocations wait for each other, or for the same value, in a block.
fn meets(block: &Block, expressions: &Arena<Expression>, known: &[bool]) -> bool {
    block.iter().any(|statement| match statement {
        Statement::ControlBarrier(_)
        | Statement::MemoryBarrier(_)
        | Statement::WorkGroupUniformLoad { .. }
        | Statement::SubgroupBallot { .. }
        | Statement::SubgroupGather { .. }
        | Statement::SubgroupCollectiveOperation { .. }
        | Statement::CooperativeStore { .. } => true,
        Statement::Emit(range) => range.clone().any(|handle| {
            use Expression::{CooperativeLoad, CooperativeMultiplyAdd};
            matches!(expressions[handle], CooperativeLoad { .. } | CooperativeMultiplyAdd { .. })
        }),
        Statement::Call { function, .. } => known.get(function.index()).copied().unwrap_or(true),
        other => blocks(other).into_iter().any(|block| meets(block, expressions, known)),
    })
}

struct Work {
    stopped: Handle<GlobalVariable>,
    counter: Handle<GlobalVariable>,
    rounds: u32,
    /// True if each function has a place where invocations meet.
    meeting: Vec<bool>,
    loops: Vec<Span>,
}

impl Work {
    fn function(&mut self, function: &mut Function) {
        let mut body = std::mem::take(&mut function.body);
        self.block(&mut body, &mut function.expressions);
        function.body = body;
    }

    fn block(&mut self, block: &mut Block, expressions: &mut Arena<Expression>) {
        for (statement, span) in block.span_iter_mut() {
            let Statement::Loop { body, continuing, .. } = statement else {
                blocks_mut(statement).into_iter().for_each(|inner| self.block(inner, expressions));
                continue;
            };
            let waits = [&*body, &*continuing].iter().any(|block| meets(block, expressions, &self.meeting));
            self.block(body, expressions);
            if !waits {
                self.loops.push(span.as_deref().copied().unwrap_or(Span::UNDEFINED));
                let counted = self.counted(expressions);
                let rest = std::mem::replace(body, counted);
                for (statement, span) in rest.span_into_iter() {
                    body.push(statement, span);
                }
            }
        }
    }

    /// Returns the beginning of a round, which counts it and leaves the loop after too many.
    fn counted(&self, expressions: &mut Arena<Expression>) -> Block {
        let mut block = Block::new();
        let mut add = |expression| expressions.append(expression, Span::UNDEFINED);
        let counter = add(Expression::GlobalVariable(self.counter));
        let one = add(Expression::Literal(Literal::U32(1)));
        let limit = add(Expression::Literal(Literal::U32(self.rounds)));
        let number = add(Expression::Literal(Literal::U32(u32::try_from(self.loops.len()).unwrap_or(u32::MAX))));
        let stopped = add(Expression::GlobalVariable(self.stopped));
        let before = add(Expression::Load { pointer: counter });
        let now = add(Expression::Binary { op: BinaryOperator::Add, left: before, right: one });
        let beyond = add(Expression::Binary { op: BinaryOperator::GreaterEqual, left: before, right: limit });
        let first = add(Expression::Binary { op: BinaryOperator::Equal, left: before, right: limit });
        block.push(Statement::Emit(Range::new_from_bounds(before, first)), Span::UNDEFINED);
        block.push(Statement::Store { pointer: counter, value: now }, Span::UNDEFINED);
        // Only the loop in which the limit was reached, not those that are left after it.
        let kept = Statement::Atomic { pointer: stopped, fun: naga::AtomicFunction::Max, value: number, result: None };
        let kept = Statement::If { condition: first, accept: Block::from_vec(vec![kept]), reject: Block::new() };
        let accept = Block::from_vec(vec![kept, Statement::Break]);
        block.push(Statement::If { condition: beyond, accept, reject: Block::new() }, Span::UNDEFINED);
        block
    }
}

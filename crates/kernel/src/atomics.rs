//! Misuse of atomics that naga 30 accepts: plain assignment, whole copies of values that contain them, and atomics in read-only memory or in
//! memory of one invocation.

use naga::{
    AddressSpace, Block, Expression, Function, Handle, Module, Span, Statement, StorageAccess, Type, TypeInner,
};

const WRITTEN: &str = "an atomic is assigned to (use atomicStore, or atomicAdd and the like)";
const COPIED: &str =
    "a value that contains atomics is copied whole (copy its members, atomics by atomicLoad and atomicStore)";
const CONSTANT: &str = "an atomic in memory that nothing may write to (use var<storage, read_write> or var<workgroup>)";
const PRIVATE: &str =
    "a pointer to atomics in memory of one invocation (use ptr<storage, …, read_write> or ptr<workgroup, …>)";

/// The first place in a function that is refused, and the reason: asked before naga validates, whose words are about abstract numbers there.
/// `text` is what naga parsed.
pub(super) fn misused(module: &Module, text: &str) -> Option<(Span, &'static str)> {
    if !module.types.iter().any(|(_, ty)| matches!(ty.inner, TypeInner::Atomic(_))) {
        return None;
    }
    let entries = module.entry_points.iter().map(|entry| &entry.function);
    let mut functions = module.functions.iter().map(|(_, function)| function).chain(entries);
    functions.find_map(|function| Uses { module, function, text }.misused())
}

/// A variable of atomic numbers in memory that is read alone, or an invocation's own.
pub(super) fn constant(module: &Module) -> Option<(Span, &'static str)> {
    let mut variables = module.global_variables.iter();
    let (found, _) = variables.find(|(_, variable)| is_constant(variable.space) && holds(module, variable.ty))?;
    Some((module.global_variables.get_span(found), CONSTANT))
}

fn holds(module: &Module, ty: Handle<Type>) -> bool {
    match &module.types[ty].inner {
        TypeInner::Atomic(_) => true,
        TypeInner::Array { base, .. } => holds(module, *base),
        TypeInner::Struct { members, .. } => members.iter().any(|member| holds(module, member.ty)),
        _ => false,
    }
}

fn is_constant(space: AddressSpace) -> bool {
    match space {
        AddressSpace::Storage { access } => !access.contains(StorageAccess::STORE),
        AddressSpace::WorkGroup => false,
        _ => true,
    }
}

struct Uses<'a> {
    module: &'a Module,
    function: &'a Function,
    text: &'a str,
}

impl Uses<'_> {
    fn misused(&self) -> Option<(Span, &'static str)> {
        for (handle, expression) in self.function.expressions.iter() {
            let reason = match *expression {
                Expression::FunctionArgument(number) => {
                    let ty = self.function.arguments.get(number as usize)?.ty;
                    match self.module.types[ty].inner {
                        TypeInner::Pointer { base, space } if is_constant(space) && holds(self.module, base) => PRIVATE,
                        _ => continue,
                    }
                }
                // `atomicLoad` is a load for naga, which refuses any other one of an atomic number.
                Expression::Load { pointer } => match self.pointee(pointer) {
                    Some(ty) if !self.is_atomic(ty) && holds(self.module, ty) => COPIED,
                    _ => continue,
                },
                _ => continue,
            };
            return Some((self.function.expressions.get_span(handle), reason));
        }
        self.stores(&self.function.body)
    }

    /// `atomicStore` is a store for naga: the text tells them apart.
    fn stores(&self, block: &Block) -> Option<(Span, &'static str)> {
        block.span_iter().find_map(|(statement, span)| match statement {
            Statement::Store { pointer, .. } => {
                let ty = self.pointee(*pointer)?;
                if !self.is_atomic(ty) {
                    return holds(self.module, ty).then_some((*span, COPIED));
                }
                let written = self.text.get(span.to_range()?.start..)?;
                let call = written.strip_prefix("atomicStore").map(str::trim_start);
                let is_call = call.is_some_and(|rest| rest.starts_with(['(', '/']));
                (!is_call).then_some((*span, WRITTEN))
            }
            other => crate::flow::blocks(other).into_iter().find_map(|inner| self.stores(inner)),
        })
    }

    fn pointee(&self, pointer: Handle<Expression>) -> Option<Handle<Type>> {
        match self.function.expressions[pointer] {
            Expression::GlobalVariable(variable) => Some(self.module.global_variables[variable].ty),
            Expression::FunctionArgument(number) => {
                match self.module.types[self.function.arguments.get(number as usize)?.ty].inner {
                    TypeInner::Pointer { base, .. } => Some(base),
                    _ => None,
                }
            }
            Expression::Access { base, .. } => self.part(base, 0),
            Expression::AccessIndex { base, index } => self.part(base, index as usize),
            _ => None,
        }
    }

    fn part(&self, base: Handle<Expression>, index: usize) -> Option<Handle<Type>> {
        match &self.module.types[self.pointee(base)?].inner {
            TypeInner::Array { base, .. } => Some(*base),
            TypeInner::Struct { members, .. } => Some(members.get(index)?.ty),
            _ => None,
        }
    }

    fn is_atomic(&self, ty: Handle<Type>) -> bool {
        matches!(self.module.types[ty].inner, TypeInner::Atomic(_))
    }
}

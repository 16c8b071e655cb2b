//! Atomic numbers where WGSL has none, which naga 30 takes: written as other numbers are, copied with what holds them, kept where nothing
//! may write or in memory of one invocation.

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    AddressSpace, Block, Expression, Function, Handle, Module, Span, Statement, StorageAccess, Type, TypeInner,
};

const WRITTEN: &str = "an atomic number is written as others are (use atomicStore, or atomicAdd and its like)";
const COPIED: &str = "a value that holds atomic numbers is read or written as a whole (copy its members, atomic ones by atomicLoad and atomicStore)";
const CONSTANT: &str = "an atomic number that nothing may write (use var<storage, read_write> or var<workgroup>)";
const PRIVATE: &str =
    "a pointer to atomic numbers in memory of one invocation (use ptr<storage, …, read_write> or ptr<workgroup, …>)";

/// The first place that is refused, and the reason. `text` is what naga parsed.
pub(super) fn misused(module: &Module, info: &ModuleInfo, text: &str) -> Option<(Span, &'static str)> {
    if !module.types.iter().any(|(_, ty)| matches!(ty.inner, TypeInner::Atomic(_))) {
        return None;
    }
    let mut variables = module.global_variables.iter();
    let constant = variables.find(|(_, variable)| is_constant(variable.space) && holds(module, variable.ty));
    if let Some((found, _)) = constant {
        return Some((module.global_variables.get_span(found), CONSTANT));
    }
    let functions = module.functions.iter().map(|(handle, function)| (function, &info[handle]));
    let entries = module.entry_points.iter().enumerate().map(|(i, entry)| (&entry.function, info.get_entry_point(i)));
    functions.chain(entries).find_map(|(function, info)| Uses { module, function, info, text }.misused())
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
    info: &'a FunctionInfo,
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
            Statement::Block(block) => self.stores(block),
            Statement::If { accept, reject, .. } => self.stores(accept).or_else(|| self.stores(reject)),
            Statement::Switch { cases, .. } => cases.iter().find_map(|case| self.stores(&case.body)),
            Statement::Loop { body, continuing, .. } => self.stores(body).or_else(|| self.stores(continuing)),
            _ => None,
        })
    }

    fn pointee(&self, pointer: Handle<Expression>) -> Option<Handle<Type>> {
        match *self.info[pointer].ty.inner_with(&self.module.types) {
            TypeInner::Pointer { base, .. } => Some(base),
            _ => None,
        }
    }

    fn is_atomic(&self, ty: Handle<Type>) -> bool {
        matches!(self.module.types[ty].inner, TypeInner::Atomic(_))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Error, Kernel};

    fn refused(text: &str) -> (String, Option<u32>) {
        let error = Kernel::from_wgsl(text).expect_err(text);
        let line = match &error {
            Error::InvalidWgsl { place, .. } => place.map(|place| place.line),
            _ => None,
        };
        (error.to_string(), line)
    }

    fn says(text: &str, line: u32, part: &str) {
        let (message, place) = refused(text);
        assert!(place == Some(line) && message.contains(part), "{message}");
    }

    /// WGSL's rules of atomic numbers: naga takes the first of these texts, and writes plain stores and copies for them.
    #[test]
    fn atomic_numbers_are_used_by_their_functions_alone() {
        let text = |more: &str, statement: &str| {
            format!(
                "struct S {{ n: u32, a: atomic<u32> }} struct T {{ s: S, k: array<atomic<i32>, 4> }}\n\
                 @group(0) @binding(0) var<storage, read_write> y: array<atomic<u32>>;\n\
                 @group(0) @binding(1) var<storage, read_write> t: T;\n\
                 @group(0) @binding(2) var<storage, read_write> z: array<u32>;\n\
                 var<workgroup> w: atomic<u32>; var<workgroup> v: array<atomic<u32>, 4>;\n\
                 {more}\n@compute @workgroup_size(1) fn main() {{ z[1] = 0;\n{statement}\n}}"
            )
        };
        for statement in ["y[0] = 1;", "(v[1]) = 1;", "if z[0] == 1 { w = 1; }", "t.s.a = 2;", "let p = &y[0]; *p = 1;"]
        {
            says(&text("", statement), 8, "atomicStore");
        }
        let atomic_named = "var<workgroup> atomicStore: atomic<u32>;";
        says(&text(atomic_named, "atomicStore = 1;"), 8, "use atomicStore");
        for statement in
            ["let s = t.s;", "let k = t.k;", "let k = v;", "t.s = t.s;", "t.k = t.k;", "let p = &t; t = *p;"]
        {
            says(&text("", statement), 8, "copy its members");
        }
        for statement in [
            "z[0] = y[0];",
            "let q = y[0];",
            "y[0] += 1;",
            "y[0]++;",
            "_ = w;",
            "z[w] = 1;",
            "var a: atomic<u32>;",
            "var s: S;",
            "var s = t.s;",
            "t.s = S();",
            "let a = atomic<u32>(1);",
            "atomicStore(&y[0], y[1]);",
            "z[0] = min(w, 1);",
        ] {
            refused(&text("", statement));
        }
        for pointer in ["ptr<function, atomic<u32>>", "ptr<function, S>", "ptr<private, array<atomic<i32>, 4>>"] {
            says(&text(&format!("fn f(p: {pointer}) {{}}"), ""), 6, "memory of one invocation");
        }
        for function in ["fn f(a: atomic<u32>) {}", "fn f(s: S) {}", "fn f() -> S { return t.s; }"] {
            refused(&text(function, ""));
        }
        for statement in [
            "atomicStore(&y[0], 1);",
            "atomicStore /* , */ (&w, atomicLoad(&v[1]));",
            "t.s.n = t.s.n + 1;",
            "let p = &t; atomicStore(&p.k[2], 4); atomicStore(&(*p).s.a, 1);",
            "atomicStore(&v[f(&y[1])], 2);",
        ] {
            let pointer =
                "fn f(p: ptr<storage, atomic<u32>, read_write>) -> u32 { atomicStore(p, 1); return atomicLoad(p); }";
            Kernel::from_wgsl(&text(pointer, statement)).unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }
}

//! The specification's alias analysis: a call must not give a function two ways to memory of which it writes one. `Front` asks after validation, because
//! naga checks nothing of the kind. Effects of a function are those of what it calls too. Two pointers to the same variable are an error only if one of
//! them is written through; pointers to parts count as pointers to the whole.

use std::collections::HashMap;

use super::tree::{DeclId, DeclKind, ExprId, ExprKind, Function, List, Place, StmtKind, Tree};
use super::uniformity::{callees_first, function_called, is_pointer_parameter};

/// The first call that does, and how.
pub(super) fn conflict(tree: &Tree<'_>) -> Option<(Place, String)> {
    // Without pointers as parameters there is nothing to find.
    if !tree.text.contains("ptr") {
        return None;
    }
    let mut analysis =
        Analysis { tree, roots: vec![None; tree.decls.len()], effects: vec![None; tree.functions.len()] };
    analysis.find_roots();
    callees_first(tree).into_iter().find_map(|function| analysis.function(function))
}

/// A function's effects on memory, its callees' included.
#[derive(Debug, Clone, Default)]
struct Effects {
    /// Variables of the module, one bit for each declaration.
    reads: Bits,
    writes: Bits,
    /// For each parameter: whether the memory behind it is read, and written.
    parameters: Vec<(bool, bool)>,
}

#[derive(Debug, Clone, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn insert(&mut self, id: DeclId) {
        let word = id as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (id % 64);
    }

    fn contains(&self, id: DeclId) -> bool {
        self.0.get(id as usize / 64).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    fn extend(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }
}

struct Analysis<'t> {
    tree: &'t Tree<'t>,
    /// The variable or parameter that each variable or pointer leads to.
    roots: Vec<Option<DeclId>>,
    effects: Vec<Option<Effects>>,
}

impl Analysis<'_> {
    /// Names are declared before they are used within a function; variables of the module lead to themselves.
    fn find_roots(&mut self) {
        for (id, decl) in (0_u32..).zip(&self.tree.decls) {
            self.roots[id as usize] = match decl.kind {
                DeclKind::Var => Some(id),
                DeclKind::Parameter if is_pointer_parameter(self.tree, decl) => Some(id),
                _ => None,
            };
        }
        for (id, decl) in (0_u32..).zip(&self.tree.decls) {
            if let (DeclKind::Let, Some(init)) = (decl.kind, decl.init)
                && self.is_pointer(init)
            {
                self.roots[id as usize] = self.root(init);
            }
        }
    }

    fn root(&self, id: ExprId) -> Option<DeclId> {
        self.roots.get(self.tree.root(id)? as usize).copied().flatten()
    }

    fn is_pointer(&self, mut id: ExprId) -> bool {
        loop {
            match self.tree.expr(id).kind {
                ExprKind::Paren(inner) => id = inner,
                ExprKind::Unary(b'&', _) => return true,
                ExprKind::Name { name, local, .. } => {
                    let Some(decl) = self.tree.named(name, local) else { return false };
                    return self.tree.decl(decl).kind != DeclKind::Var && self.roots[decl as usize].is_some();
                }
                _ => return false,
            }
        }
    }

    fn function(&mut self, number: u32) -> Option<(Place, String)> {
        let function = self.tree.functions[number as usize];
        let parameters = vec![(false, false); function.parameters.count as usize];
        let mut effects = Effects { parameters, ..Effects::default() };
        let (first, end) = function.exprs;
        // Parts of larger views, and what is only written.
        let mut is_part = vec![false; (end - first) as usize];
        let mut part = |id: ExprId| {
            if let Some(found) = id.checked_sub(first).and_then(|at| is_part.get_mut(at as usize)) {
                *found = true;
            }
        };
        for id in first..end {
            match self.tree.expr(id).kind {
                ExprKind::Index(base, _)
                | ExprKind::Member(base, _)
                | ExprKind::Paren(base)
                | ExprKind::Unary(b'*' | b'&', base)
                | ExprKind::Call { callee: base, .. } => part(base),
                _ => {}
            }
        }
        for id in function.first_stmt..=function.body {
            let StmtKind::Assign { target, reads, .. } = self.tree.stmt(id).kind else { continue };
            self.touch(&function, &mut effects, self.root(target), false, true);
            if !reads {
                part(target);
            }
        }
        for id in first..end {
            match self.tree.expr(id).kind {
                ExprKind::Call { callee, arguments, .. } => {
                    let found = self.call(&function, &mut effects, callee, arguments);
                    if found.is_some() {
                        return found;
                    }
                }
                _ if is_part[(id - first) as usize] || self.is_pointer(id) => {}
                _ => self.touch(&function, &mut effects, self.root(id), true, false),
            }
        }
        self.effects[number as usize] = Some(effects);
        None
    }

    fn touch(&self, function: &Function, effects: &mut Effects, root: Option<DeclId>, reads: bool, writes: bool) {
        let Some(root) = root else { return };
        let decl = self.tree.decl(root);
        if decl.kind == DeclKind::Parameter {
            let at = root.checked_sub(function.parameters.first).and_then(|at| effects.parameters.get_mut(at as usize));
            if let Some((read, written)) = at {
                *read |= reads;
                *written |= writes;
            }
        } else if self.is_of_module(root) {
            if reads {
                effects.reads.insert(root);
            }
            if writes {
                effects.writes.insert(root);
            }
        }
    }

    fn is_of_module(&self, id: DeclId) -> bool {
        self.tree.module.get(self.tree.decl(id).name.text(self.tree.text)) == Some(&id)
    }

    fn call(
        &self,
        function: &Function,
        effects: &mut Effects,
        callee: ExprId,
        arguments: List,
    ) -> Option<(Place, String)> {
        let arguments = self.tree.list(arguments);
        let root = |argument: ExprId| if self.is_pointer(argument) { self.root(argument) } else { None };
        let Some(called) = function_called(self.tree, callee) else {
            let name = self.tree.expr(callee).place.text(self.tree.text);
            let (reads, writes) = match name {
                "workgroupUniformLoad" | "atomicLoad" => (true, false),
                "atomicStore" => (false, true),
                _ => (name.starts_with("atomic") || name.starts_with("coopLoad"), name.starts_with("atomic")),
            };
            for &argument in arguments {
                self.touch(function, effects, root(argument), reads, writes);
            }
            return None;
        };
        // One that calls itself has no effects yet; naga refuses it.
        let callee_effects = self.effects.get(called as usize)?.as_ref()?;
        let name = self.tree.functions[called as usize].name.text(self.tree.text);
        let mut seen: HashMap<DeclId, bool> = HashMap::new();
        for (&argument, &(read, written)) in arguments.iter().zip(&callee_effects.parameters) {
            let Some(root) = root(argument).filter(|_| read || written) else { continue };
            let variable = self.tree.decl(root).name.text(self.tree.text);
            let place = self.tree.expr(argument).place;
            let before = seen.get(&root).copied();
            if before.is_some_and(|before| before || written) {
                let reason = format!("two arguments of `{name}` point to `{variable}`, and it writes to one of them");
                return Some((place, reason));
            }
            seen.insert(root, written);
            let by_name = callee_effects.writes.contains(root) || (written && callee_effects.reads.contains(root));
            if by_name {
                let reason =
                    format!("`{name}` gets a pointer to `{variable}`, uses it by its name too, and writes to it");
                return Some((place, reason));
            }
            self.touch(function, effects, Some(root), read, written);
        }
        effects.reads.extend(&callee_effects.reads);
        effects.writes.extend(&callee_effects.writes);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::conflict;

    #[test]
    fn two_ways_to_what_is_written() {
        let functions = "
            struct S { a: i32, b: i32 }
            var<private> x: i32; var<private> z: i32; var<private> s: S;
            fn copy(p: ptr<function, i32>, q: ptr<function, i32>) { *p = *q; }
            fn through(p: ptr<function, i32>, q: ptr<function, i32>) { copy(p, q); }
            fn sum(p: ptr<function, i32>, q: ptr<function, i32>) -> i32 { return *p + *q; }
            fn from(p: ptr<private, i32>) { x = *p; }
            fn add(p: ptr<private, i32>) -> i32 { return x + *p; }
            fn into(p: ptr<private, i32>) { let q = p; *q = x; }
            fn clear(p: ptr<private, i32>) { *p = 0; }
            fn both(p: ptr<private, i32>, q: ptr<private, i32>) { *p = *q; }
            fn one(p: ptr<private, i32>, q: ptr<private, i32>) { let r = &*&*p; *q = 1; }";
        for (body, is_right) in [
            ("copy(&a, &a);", false),
            ("through(&a, &a);", false),
            ("let p = &a; copy(p, &a);", false),
            ("copy(&a, &b);", true),
            ("_ = sum(&a, &a);", true),
            ("from(&x);", false),
            ("from(&z);", true),
            ("_ = add(&x);", true),
            ("into(&x);", false),
            ("into(&z);", true),
            ("clear(&x);", true),
            ("both(&s.a, &s.b);", false),
            ("one(&x, &x);", true),
        ] {
            let text = format!("{functions}\nfn f() {{ var a = 1; var b = 2; {body} }}");
            assert_eq!(conflict(&parse(&text).unwrap()).is_none(), is_right, "{body}");
        }
    }
}

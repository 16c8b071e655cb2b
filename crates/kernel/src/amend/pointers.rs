//! Pointers, and textures that are stored to, as arguments of functions. naga takes whole variables of functions and of the module's private memory only; WGSL takes parts of
//! them, and what storage, uniform and workgroup memory hold.
//!
//! - A pointer into a variable of the module: the callee is copied for it, with the pointer made there; indices become arguments.
//! - A storage texture: likewise. naga stores to variables of the module only.
//! - A pointer to a part of a variable of the function: the part goes into a variable of its own before the call and back after it. WGSL
//!   forbids that the callee reaches it in another way.

use std::collections::HashMap;

use naga::proc::TypeResolution;
use naga::{
    AddressSpace, Arena, Block, Expression, Function, FunctionArgument, GlobalVariable, Handle, ImageClass,
    LocalVariable, Module, Range, Span, Statement, Type, TypeInner,
};

use crate::flow::{self, blocks};
use cantus_base::listed::Listed;

/// A step on the way to a part of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Member(u32),
    /// An index that is an argument, of this type.
    Index(Handle<Type>),
}

/// The value of each pointer argument in a copy of a function: nothing for arguments that stay.
type Bound = Vec<Option<(Handle<GlobalVariable>, Vec<Step>)>>;

/// Calls deeper than this stay as they are. WGSL has no recursion, so this many functions have each a part of the path.
const DEEPEST: u32 = 100;
/// More copies are not made.
const MOST_COPIES: usize = 4096;

pub(super) fn settle(module: &mut Module) {
    let functions = module.functions.iter().map(|(_, function)| function);
    let entries = module.entry_points.iter().map(|entry| &entry.function);
    let is_needed = functions.chain(entries).any(|function| {
        let spaces = function.arguments.iter().map(|argument| space_of(&module.types[argument.ty].inner));
        spaces.flatten().any(is_lacking) || has_parts(function, &function.body)
    });
    if !is_needed {
        return;
    }
    let old = std::mem::take(&mut module.functions);
    let mut entries = module.entry_points.clone();
    let mut work = Work { module, old, new: Arena::new(), plain: HashMap::new(), copies: HashMap::new(), depth: 0 };
    let mut fails = false;
    let handles: Vec<Handle<Function>> = work.old.iter().map(|(handle, _)| handle).listed();
    for &handle in &handles {
        // Those that cannot run by themselves come when they are called.
        if !work.is_generic(handle) {
            fails |= work.plain(handle).is_none();
        }
    }
    for entry in &mut entries {
        match work.rewritten(entry.function.clone()) {
            Some(function) => entry.function = function,
            None => fails = true,
        }
    }
    let Work { old, new, .. } = work;
    if fails {
        // Left to naga, which says what it does not take.
        module.functions = old;
        return;
    }
    module.functions = new;
    module.entry_points = entries;
}

/// The memory of what an argument stands for, unless it is a value.
fn space_of(ty: &TypeInner) -> Option<AddressSpace> {
    match ty {
        TypeInner::Image { class: ImageClass::Storage { .. }, .. } => Some(AddressSpace::Handle),
        other => other.pointer_space(),
    }
}

/// Memory of which naga takes no pointers as arguments.
fn is_lacking(space: AddressSpace) -> bool {
    !matches!(space, AddressSpace::Function | AddressSpace::Private)
}

/// Calls in a block give away a pointer that naga does not take.
fn has_parts(function: &Function, block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Call { arguments, .. } => arguments.iter().any(|&argument| {
            use Expression::{Access, AccessIndex};
            matches!(function.expressions[argument], Access { .. } | AccessIndex { .. })
        }),
        statement => blocks(statement).into_iter().any(|inner| has_parts(function, inner)),
    })
}

struct Work<'a> {
    module: &'a mut Module,
    old: Arena<Function>,
    new: Arena<Function>,
    /// Functions whose arguments stay.
    plain: HashMap<Handle<Function>, Handle<Function>>,
    copies: HashMap<(Handle<Function>, Bound), Handle<Function>>,
    depth: u32,
}

/// A call's arguments as they become.
struct Changed {
    bound: Bound,
    arguments: Vec<Handle<Expression>>,
    /// Pointers to parts of variables of functions, by their place among the arguments, and their types.
    parts: Vec<(usize, Handle<Type>)>,
}

impl Work<'_> {
    fn space(&self, ty: Handle<Type>) -> Option<AddressSpace> {
        space_of(&self.module.types[ty].inner)
    }

    /// It has arguments that point into variables of the module, and is copied for each of them.
    fn is_generic(&self, function: Handle<Function>) -> bool {
        let mut spaces = self.old[function].arguments.iter().filter_map(|argument| self.space(argument.ty));
        spaces.any(|space| space != AddressSpace::Function)
    }

    fn plain(&mut self, function: Handle<Function>) -> Option<Handle<Function>> {
        if let Some(&known) = self.plain.get(&function) {
            return Some(known);
        }
        let rewritten = self.rewritten(self.old[function].clone())?;
        let handle = self.new.append(rewritten, self.old.get_span(function));
        self.plain.insert(function, handle);
        Some(handle)
    }

    fn copy(&mut self, function: Handle<Function>, bound: Bound) -> Option<Handle<Function>> {
        if bound.iter().all(Option::is_none) {
            return self.plain(function);
        }
        let key = (function, bound);
        if let Some(&known) = self.copies.get(&key) {
            return Some(known);
        }
        if self.copies.len() >= MOST_COPIES {
            return None;
        }
        let copy = bind(self.old[function].clone(), &key.1)?;
        let rewritten = self.rewritten(copy)?;
        let handle = self.new.append(rewritten, self.old.get_span(function));
        self.copies.insert(key, handle);
        Some(handle)
    }

    /// The function with its calls rewritten, to functions of the new arena.
    fn rewritten(&mut self, mut function: Function) -> Option<Function> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let types = super::arguments::types(self.module, &self.old, &function)?;
        let mut body = std::mem::take(&mut function.body);
        self.block(&mut function, &types, &mut body)?;
        function.body = body;
        self.depth -= 1;
        Some(function)
    }

    fn block(&mut self, function: &mut Function, types: &[TypeResolution], block: &mut Block) -> Option<()> {
        let mut rewritten = Block::with_capacity(block.len());
        let statements = std::mem::take(block);
        for (mut statement, span) in statements.span_into_iter() {
            match &mut statement {
                Statement::Call { function: callee, arguments, result } => {
                    let changed = self.arguments(function, types, *callee, arguments)?;
                    *callee = self.copy(*callee, changed.bound)?;
                    *arguments = changed.arguments;
                    if let Some(result) = *result {
                        *function.expressions.get_mut(result) = Expression::CallResult(*callee);
                    }
                    let mut after = Block::new();
                    for (at, ty) in changed.parts {
                        let pointer = arguments.get_mut(at)?;
                        *pointer = part(function, ty, *pointer, (&mut rewritten, &mut after), span);
                    }
                    rewritten.push(statement, span);
                    rewritten.append(&mut after);
                    continue;
                }
                other => {
                    for inner in flow::blocks_mut(other) {
                        self.block(function, types, inner)?;
                    }
                }
            }
            rewritten.push(statement, span);
        }
        *block = rewritten;
        Some(())
    }

    /// Returns the arguments of a call after the pass.
    fn arguments(
        &mut self,
        function: &Function,
        types: &[TypeResolution],
        callee: Handle<Function>,
        arguments: &[Handle<Expression>],
    ) -> Option<Changed> {
        let mut changed = Changed { bound: Vec::new(), arguments: Vec::new(), parts: Vec::new() };
        let mut indices = Vec::new();
        for (at, &argument) in arguments.iter().enumerate() {
            let declared = self.old[callee].arguments.get(at)?.ty;
            let Some(space) = self.space(declared) else {
                changed.bound.push(None);
                changed.arguments.push(argument);
                continue;
            };
            let (root, steps) = chain(function, argument)?;
            match function.expressions[root] {
                Expression::GlobalVariable(global) => {
                    let mut path = Vec::new();
                    for step in steps {
                        path.push(match step {
                            Ok(member) => Step::Member(member),
                            Err(index) => {
                                indices.push(index);
                                Step::Index(self.index_type(types, index)?)
                            }
                        });
                    }
                    changed.bound.push(Some((global, path)));
                }
                _ if space != AddressSpace::Function => return None,
                _ => {
                    // A part of what a pointer of the function's own points to is copied likewise.
                    if !steps.is_empty() {
                        let TypeInner::Pointer { base, .. } = self.module.types[declared].inner else { return None };
                        changed.parts.push((changed.arguments.len(), base));
                    }
                    changed.bound.push(None);
                    changed.arguments.push(argument);
                }
            }
        }
        changed.arguments.extend(indices);
        Some(changed)
    }

    fn index_type(&mut self, types: &[TypeResolution], index: Handle<Expression>) -> Option<Handle<Type>> {
        let inner = types.get(index.index())?.inner_with(&self.module.types).clone();
        let TypeInner::Scalar(scalar) = inner else { return None };
        Some(self.module.types.insert(Type { name: None, inner: TypeInner::Scalar(scalar) }, Span::UNDEFINED))
    }
}

/// A variable for a part, filled before the call and written back after it; gives the pointer to it.
fn part(
    function: &mut Function,
    ty: Handle<Type>,
    pointer: Handle<Expression>,
    (before, after): (&mut Block, &mut Block),
    span: Span,
) -> Handle<Expression> {
    let local = function.local_variables.append(LocalVariable { name: None, ty, init: None }, span);
    let variable = function.expressions.append(Expression::LocalVariable(local), span);
    for (block, from, to) in [(before, pointer, variable), (after, variable, pointer)] {
        let value = function.expressions.append(Expression::Load { pointer: from }, span);
        block.push(Statement::Emit(Range::new_from_bounds(value, value)), span);
        block.push(Statement::Store { pointer: to, value }, span);
    }
    variable
}

/// The root of a pointer, and the steps from there: members, or indices.
type Steps = Vec<Result<u32, Handle<Expression>>>;

fn chain(function: &Function, mut pointer: Handle<Expression>) -> Option<(Handle<Expression>, Steps)> {
    let mut steps = Vec::new();
    loop {
        match function.expressions[pointer] {
            Expression::AccessIndex { base, index } => {
                steps.push(Ok(index));
                pointer = base;
            }
            Expression::Access { base, index } => {
                steps.push(Err(index));
                pointer = base;
            }
            Expression::GlobalVariable(_) | Expression::LocalVariable(_) | Expression::FunctionArgument(_) => {
                steps.reverse();
                return Some((pointer, steps));
            }
            _ => return None,
        }
    }
}

/// A copy of a function whose bound arguments are made in it.
fn bind(mut function: Function, bound: &Bound) -> Option<Function> {
    let old_arguments = std::mem::take(&mut function.arguments);
    let mut places = Vec::with_capacity(old_arguments.len());
    for (argument, bound) in old_arguments.into_iter().zip(bound) {
        places.push(function.arguments.len() as u32);
        if bound.is_none() {
            function.arguments.push(argument);
        }
    }
    let mut expressions = Arena::new();
    // What needs no evaluation first, so that the rest is one range.
    let mut starts = Vec::new();
    for (global, steps) in bound.iter().flatten() {
        let root = expressions.append(Expression::GlobalVariable(*global), Span::UNDEFINED);
        let mut indices = Vec::new();
        for step in steps {
            if let Step::Index(ty) = step {
                let place = function.arguments.len() as u32;
                function.arguments.push(FunctionArgument { name: None, ty: *ty, binding: None });
                indices.push(expressions.append(Expression::FunctionArgument(place), Span::UNDEFINED));
            }
        }
        starts.push((root, indices));
    }
    let from = expressions.len();
    let mut pointers = Vec::new();
    for ((_, steps), (root, indices)) in bound.iter().flatten().zip(starts) {
        let (mut pointer, mut indices) = (root, indices.into_iter());
        for step in steps {
            let expression = match step {
                Step::Member(index) => Expression::AccessIndex { base: pointer, index: *index },
                Step::Index(_) => Expression::Access { base: pointer, index: indices.next()? },
            };
            pointer = expressions.append(expression, Span::UNDEFINED);
        }
        pointers.push(pointer);
    }
    let made = expressions.range_from(from);
    let mut pointers = pointers.into_iter();
    let pointers: Vec<Option<Handle<Expression>>> =
        bound.iter().map(|bound| bound.as_ref().and_then(|_| pointers.next())).listed();
    let old = std::mem::take(&mut function.expressions);
    let mut moved: Vec<Handle<Expression>> = Vec::with_capacity(old.len());
    for (handle, expression) in old.iter() {
        let span = old.get_span(handle);
        let mut expression = expression.clone();
        if let Expression::FunctionArgument(place) = &mut expression {
            if let Some(pointer) = pointers.get(*place as usize).copied().flatten() {
                moved.push(pointer);
                continue;
            }
            *place = *places.get(*place as usize)?;
        }
        flow::change_operands(&mut expression, &mut |operand| *operand = moved[operand.index()]).then_some(())?;
        moved.push(expressions.append(expression, span));
    }
    function.expressions = expressions;
    for (_, variable) in function.local_variables.iter_mut() {
        if let Some(init) = &mut variable.init {
            *init = moved[init.index()];
        }
    }
    flow::change_block(&mut function.body, &mut |handle| *handle = moved[handle.index()]).then_some(())?;
    let named = std::mem::take(&mut function.named_expressions);
    function.named_expressions = named.into_iter().map(|(handle, name)| (moved[handle.index()], name)).collect();
    if made.first_and_last().is_some() {
        let mut body = Block::from_vec(vec![Statement::Emit(made)]);
        body.append(&mut function.body);
        function.body = body;
    }
    Some(function)
}

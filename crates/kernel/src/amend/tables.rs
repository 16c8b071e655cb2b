//! Large tables of constants with a computed index as read-only buffers, for drivers whose compilers take such a table for code: constants, and
//! variables of an invocation's own that are read alone.

use std::num::NonZero;

use cantus_base::listed::Listed;
use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{
    AddressSpace, Arena, ArraySize, Block, Expression, Function, GlobalVariable, Handle, LocalVariable, Module,
    ResourceBinding, Span, Statement, StorageAccess, Type, TypeInner, VectorSize,
};

use super::inserted::{self, Insert};
use crate::needs::numbers;

/// The name of each table's binding, and its bytes.
pub(crate) type Tables = Vec<(String, Vec<u8>)>;

/// A module without its large tables, and these.
pub(crate) struct Moved {
    pub(crate) module: Module,
    pub(crate) tables: Tables,
}

/// Moves tables of more numbers than `most`. Returns `None` if it moved none.
pub(crate) fn moved(module: &Module, most: u64) -> Option<Moved> {
    let of = |function: &Function| Uses::of(module, function, most);
    let functions: Vec<Uses> = module.functions.iter().map(|(_, function)| of(function)).try_listed()?;
    let entries: Vec<Uses> = module.entry_points.iter().map(|entry| of(&entry.function)).try_listed()?;
    let mut new = module.clone();
    let mut work = Work { free: free_binding(module)?, tables: Vec::new(), constants: Vec::new() };
    work.privates(module, functions.iter().chain(&entries), &mut new);
    for ((handle, function), uses) in module.functions.iter().zip(&functions) {
        work.function(module, (function, uses), &mut new, |new| &mut new.functions[handle]);
    }
    for (place, (entry, uses)) in module.entry_points.iter().zip(&entries).enumerate() {
        work.function(module, (&entry.function, uses), &mut new, |new| &mut new.entry_points[place].function);
    }
    (!work.tables.is_empty()).then_some(Moved { module: new, tables: work.tables })
}

/// The first number that no binding of the first group has, nor any after it.
fn free_binding(module: &Module) -> Option<u32> {
    let taken = module.global_variables.iter().filter_map(|(_, variable)| variable.binding);
    let last = taken.filter(|place| place.group == 0).map(|place| place.binding).max();
    last.map_or(Some(0), |last| last.checked_add(1))
}

struct Work {
    free: u32,
    tables: Vec<(String, Vec<u8>)>,
    /// The variables of named constants.
    constants: Vec<(Handle<naga::Constant>, Handle<GlobalVariable>)>,
}

/// The variable or constant that an expression is part of.
#[derive(Clone, Copy, PartialEq)]
enum Root {
    Local(Handle<LocalVariable>),
    Global(Handle<GlobalVariable>),
    /// A value that is known.
    Value(Handle<Expression>),
}

/// A function's uses of its tables.
struct Uses {
    /// By expression: the variable or constant that it is a part of.
    roots: Vec<Option<Root>>,
    /// Roots with a computed index into too many numbers.
    large: Vec<Root>,
    /// Variables that something else is done with than reading, and those that are written once, whole, by what is known.
    written: Vec<Root>,
    begun: Vec<(Root, Handle<Expression>)>,
}

impl Uses {
    fn of(module: &Module, function: &Function, most: u64) -> Option<Self> {
        let expressions = &function.expressions;
        let mut known: Vec<bool> = Vec::with_capacity(expressions.len());
        let mut uses = Self { roots: Vec::new(), large: Vec::new(), written: Vec::new(), begun: Vec::new() };
        let context = ResolveContext::with_locals(module, &function.local_variables, &function.arguments);
        let mut types = Typifier::new();
        for (handle, expression) in expressions.iter() {
            // What has no type is for the validator to refuse.
            types.grow(handle, expressions, &context).ok()?;
            let is_known = |of: &Handle<Expression>| known.get(of.index()).copied().unwrap_or(false);
            known.push(match expression {
                Expression::Literal(_) | Expression::ZeroValue(_) | Expression::Constant(_) => true,
                Expression::Compose { components, .. } => components.iter().all(is_known),
                Expression::Splat { value, .. } => is_known(value),
                _ => false,
            });
            let root = match *expression {
                Expression::LocalVariable(variable) => Some(Root::Local(variable)),
                Expression::GlobalVariable(variable) => Some(Root::Global(variable)),
                Expression::AccessIndex { base, .. } | Expression::Access { base, .. } => uses.roots[base.index()],
                _ if known[handle.index()] => Some(Root::Value(handle)),
                _ => None,
            };
            if let (Expression::Access { base, .. }, Some(root)) = (expression, root)
                && numbers(module, types.get(*base, &module.types)) > most
                && !uses.large.contains(&root)
            {
                uses.large.push(root);
            }
            if let Expression::CooperativeLoad { data, .. } = expression {
                uses.written.extend(uses.roots[data.pointer.index()]);
            }
            uses.roots.push(root);
        }
        uses.block(function, &function.body, &known);
        Some(uses)
    }

    fn block(&mut self, function: &Function, block: &Block, known: &[bool]) {
        for statement in block {
            let root = |handle: &Handle<Expression>| self.roots[handle.index()];
            match statement {
                Statement::Store { pointer, value } => {
                    if let Some(root) = root(pointer) {
                        let is_whole = matches!(function.expressions[*pointer], Expression::LocalVariable(_));
                        if is_whole && known[value.index()] && !self.begun.iter().any(|(begun, _)| *begun == root) {
                            self.begun.push((root, *value));
                        } else {
                            self.written.push(root);
                        }
                    }
                }
                Statement::Call { arguments, .. } => {
                    // A value that is handed over stays one.
                    let handed = arguments.iter().filter_map(root).filter(|root| !matches!(root, Root::Value(_)));
                    let handed = handed.listed();
                    self.written.extend(handed);
                }
                Statement::Atomic { pointer, .. } | Statement::WorkGroupUniformLoad { pointer, .. } => {
                    let root = root(pointer);
                    self.written.extend(root);
                }
                Statement::CooperativeStore { data, .. } => {
                    let root = root(&data.pointer);
                    self.written.extend(root);
                }
                other => crate::flow::blocks(other).into_iter().for_each(|inner| self.block(function, inner, known)),
            }
        }
    }
}

impl Work {
    /// Private variables of the module become buffers where no function writes them.
    fn privates<'a>(&mut self, module: &Module, uses: impl Iterator<Item = &'a Uses>, new: &mut Module) {
        let mut large = Vec::new();
        let mut written = Vec::new();
        for uses in uses {
            large.extend(uses.large.iter().copied());
            written.extend(uses.written.iter().copied());
        }
        for root in large {
            let Root::Global(handle) = root else { continue };
            let variable = &new.global_variables[handle];
            let Some(init) = variable.init.filter(|_| !written.contains(&root)) else { continue };
            // Another function may have named it before.
            if variable.space != AddressSpace::Private {
                continue;
            }
            let Some(bytes) = bytes(module, &module.global_expressions, init, variable.ty) else { continue };
            let Some((name, space, binding)) = self.place(bytes) else { continue };
            let variable = &mut new.global_variables[handle];
            (variable.name, variable.space, variable.binding, variable.init) = (Some(name), space, Some(binding), None);
        }
    }

    /// Constants and variables of a function.
    fn function(
        &mut self,
        module: &Module,
        (function, uses): (&Function, &Uses),
        new: &mut Module,
        own: impl Fn(&mut Module) -> &mut Function,
    ) {
        let expressions = &function.expressions;
        let mut moved: Vec<(Root, Handle<GlobalVariable>)> = Vec::new();
        for &root in &uses.large {
            let found = match root {
                Root::Value(value) => match &expressions[value] {
                    Expression::Constant(constant) => Some((module.constants[*constant].ty, value)),
                    Expression::Compose { ty, .. } | Expression::ZeroValue(ty) => Some((*ty, value)),
                    _ => None,
                },
                Root::Local(variable) if !uses.written.contains(&root) => {
                    let begun = uses.begun.iter().find(|(begun, _)| *begun == root).map(|(_, value)| *value);
                    let variable = &function.local_variables[variable];
                    match (variable.init, begun) {
                        (Some(value), None) | (None, Some(value)) => Some((variable.ty, value)),
                        _ => None,
                    }
                }
                _ => None,
            };
            let Some((ty, value)) = found else { continue };
            let constant = match expressions[value] {
                Expression::Constant(constant) => Some(constant),
                _ => None,
            };
            let known = constant.and_then(|constant| self.constants.iter().find(|(known, _)| *known == constant));
            let variable = match known {
                Some((_, variable)) => *variable,
                None => {
                    let Some(bytes) = bytes(module, expressions, value, ty) else { continue };
                    let Some((name, space, binding)) = self.place(bytes) else { continue };
                    let variable = GlobalVariable {
                        name: Some(name),
                        space,
                        binding: Some(binding),
                        ty,
                        init: None,
                        memory_decorations: naga::MemoryDecorations::empty(),
                    };
                    let variable = new.global_variables.append(variable, Span::UNDEFINED);
                    self.constants.extend(constant.map(|constant| (constant, variable)));
                    variable
                }
            };
            moved.push((root, variable));
        }
        if moved.is_empty() {
            return;
        }
        let function = own(new);
        without_stores(&mut function.body, &|pointer| match expressions[pointer] {
            Expression::LocalVariable(variable) => moved.iter().any(|(root, _)| *root == Root::Local(variable)),
            _ => false,
        });
        let pass = Reading { roots: &uses.roots, moved: &moved, variables: Vec::new(), pointers: Vec::new() };
        if let Some(rewritten) = inserted::rewritten(function, pass) {
            *function = rewritten;
        }
        for (root, _) in &moved {
            if let Root::Local(variable) = root {
                function.local_variables[*variable].init = None;
            }
        }
    }

    fn place(&mut self, bytes: Vec<u8>) -> Option<(String, AddressSpace, ResourceBinding)> {
        let name = format!("cantus_table_{}", self.tables.len());
        let binding = ResourceBinding { group: 0, binding: self.free };
        self.free = self.free.checked_add(1)?;
        self.tables.push((name.clone(), bytes));
        Some((name, AddressSpace::Storage { access: StorageAccess::LOAD }, binding))
    }
}

/// Leaves out what begins a variable.
fn without_stores(block: &mut Block, is_moved: &impl Fn(Handle<Expression>) -> bool) {
    for (mut statement, span) in std::mem::take(block).span_into_iter() {
        match &mut statement {
            Statement::Store { pointer, .. } if is_moved(*pointer) => continue,
            other => crate::flow::blocks_mut(other).into_iter().for_each(|inner| without_stores(inner, is_moved)),
        }
        block.push(statement, span);
    }
}

/// Elements of tables are loaded from their buffers.
struct Reading<'a> {
    roots: &'a [Option<Root>],
    moved: &'a [(Root, Handle<GlobalVariable>)],
    /// The expression of each variable.
    variables: Vec<Handle<Expression>>,
    /// A pointer to what each expression is the value of.
    pointers: Vec<Option<Handle<Expression>>>,
}

impl Insert for Reading<'_> {
    fn numbers(&mut self, expressions: &mut Arena<Expression>) {
        let append = |(_, variable): &(Root, Handle<GlobalVariable>)| {
            expressions.append(Expression::GlobalVariable(*variable), Span::UNDEFINED)
        };
        self.variables = self.moved.iter().map(append).listed();
    }

    fn before(
        &mut self,
        old: Handle<Expression>,
        own: &Expression,
        expression: &mut Expression,
        new: &mut Arena<Expression>,
        span: Span,
    ) -> Option<Handle<Expression>> {
        let root = self.roots[old.index()];
        let place = self.moved.iter().position(|(moved, _)| Some(*moved) == root);
        let (pointer, begins) = match (place, own) {
            (None, _) => (None, None),
            (Some(place), Expression::LocalVariable(_)) => {
                *expression = Expression::GlobalVariable(self.moved[place].1);
                (None, None)
            }
            (Some(_), Expression::Access { base, .. } | Expression::AccessIndex { base, .. }) => {
                match self.pointers[base.index()] {
                    // A pointer is one to the buffer by itself.
                    None => (None, None),
                    Some(from) => {
                        let element = match *expression {
                            Expression::Access { index, .. } => Expression::Access { base: from, index },
                            Expression::AccessIndex { index, .. } => Expression::AccessIndex { base: from, index },
                            ref other => other.clone(),
                        };
                        let pointer = new.append(element, span);
                        *expression = Expression::Load { pointer };
                        (Some(pointer), Some(pointer))
                    }
                }
            }
            (Some(place), _) => (Some(self.variables[place]), None),
        };
        self.pointers.push(pointer);
        begins
    }
}

/// The bytes of a constant in a buffer's layout; nothing where buffers hold no such type everywhere.
fn bytes(
    module: &Module,
    expressions: &Arena<Expression>,
    value: Handle<Expression>,
    ty: Handle<Type>,
) -> Option<Vec<u8>> {
    let size = module.types[ty].inner.try_size(module.to_ctx())?;
    let mut bytes = vec![0; size as usize];
    is_shared(module, ty).then_some(())?;
    fill(module, expressions, value, ty, &mut bytes)?;
    Some(bytes)
}

/// Returns whether every device has buffers of a type.
fn is_shared(module: &Module, ty: Handle<Type>) -> bool {
    let is_whole = |scalar: naga::Scalar| {
        scalar.width >= 4
            && matches!(scalar.kind, naga::ScalarKind::Sint | naga::ScalarKind::Uint | naga::ScalarKind::Float)
    };
    match &module.types[ty].inner {
        TypeInner::Scalar(scalar) | TypeInner::Vector { scalar, .. } | TypeInner::Matrix { scalar, .. } => {
            is_whole(*scalar)
        }
        TypeInner::Array { base, .. } => is_shared(module, *base),
        TypeInner::Struct { members, .. } => members.iter().all(|member| is_shared(module, member.ty)),
        _ => false,
    }
}

fn fill(
    module: &Module,
    expressions: &Arena<Expression>,
    value: Handle<Expression>,
    ty: Handle<Type>,
    into: &mut [u8],
) -> Option<()> {
    match &expressions[value] {
        Expression::Constant(constant) => {
            let constant = &module.constants[*constant];
            return fill(module, &module.global_expressions, constant.init, ty, into);
        }
        Expression::ZeroValue(_) => return Some(()),
        _ => {}
    }
    let parts = |place: usize, stride: usize, length: usize| {
        let start = place.checked_mul(stride)?;
        Some(start..start.checked_add(length)?)
    };
    match (&module.types[ty].inner, &expressions[value]) {
        (TypeInner::Scalar(_) | TypeInner::Vector { .. }, _) => {
            let flat = flat(module, expressions, value)?;
            into.get_mut(..flat.len())?.copy_from_slice(&flat);
        }
        (TypeInner::Matrix { rows, scalar, .. }, Expression::Compose { components, .. }) => {
            let rows = if *rows == VectorSize::Tri { 4 } else { *rows as usize };
            for (place, column) in components.iter().enumerate() {
                let flat = flat(module, expressions, *column)?;
                let range = parts(place, rows * usize::from(scalar.width), flat.len())?;
                into.get_mut(range)?.copy_from_slice(&flat);
            }
        }
        (TypeInner::Array { base, stride, size }, Expression::Compose { components, .. }) => {
            let ArraySize::Constant(count) = size else { return None };
            if components.len() != NonZero::get(*count) as usize {
                return None;
            }
            for (place, component) in components.iter().enumerate() {
                let range = parts(place, *stride as usize, *stride as usize)?;
                fill(module, expressions, *component, *base, into.get_mut(range)?)?;
            }
        }
        (TypeInner::Struct { members, .. }, Expression::Compose { components, .. }) => {
            for (member, component) in members.iter().zip(components) {
                fill(module, expressions, *component, member.ty, into.get_mut(member.offset as usize..)?)?;
            }
        }
        _ => return None,
    }
    Some(())
}

/// The bytes of a number or of a vector's numbers.
fn flat(module: &Module, expressions: &Arena<Expression>, value: Handle<Expression>) -> Option<Vec<u8>> {
    use naga::Literal;
    Some(match &expressions[value] {
        Expression::Literal(literal) => match *literal {
            Literal::F32(number) => number.to_le_bytes().to_vec(),
            Literal::F64(number) => number.to_le_bytes().to_vec(),
            Literal::I32(number) => number.to_le_bytes().to_vec(),
            Literal::U32(number) => number.to_le_bytes().to_vec(),
            Literal::I64(number) => number.to_le_bytes().to_vec(),
            Literal::U64(number) => number.to_le_bytes().to_vec(),
            _ => return None,
        },
        Expression::Constant(constant) => flat(module, &module.global_expressions, module.constants[*constant].init)?,
        Expression::ZeroValue(ty) => match module.types[*ty].inner {
            TypeInner::Scalar(scalar) => vec![0; scalar.width.into()],
            TypeInner::Vector { size, scalar } => vec![0; size as usize * usize::from(scalar.width)],
            _ => return None,
        },
        Expression::Splat { size, value } => flat(module, expressions, *value)?.repeat(*size as usize),
        Expression::Compose { components, .. } => {
            let parts = components.iter().map(|component| flat(module, expressions, *component));
            parts.collect::<Option<Vec<_>>>()?.concat()
        }
        _ => return None,
    })
}

//! The reproducible form of a kernel: a rewriting of naga's module after which float32 arithmetic has the same bits on every device.
//!
//! - Sums, differences and products are rounded by themselves. WGSL lets a compiler fuse them, and has no word against it: so each result
//!   passes, as an integer, through an exclusive or with a word of a uniform that is zero, which no compiler knows.
//! - Numbers below the smallest normal one, that one itself, and negative zeros become zero, where they are loaded and where they are computed:
//!   then it does not matter what a device does with them, nor whether it looks before or after rounding.
//! - Quotients, roots, remainders, conversions to integers and halves, packing and all elementary functions are functions of
//!   `arithmetic.wgsl` and of the shipped library, which are rewritten in the same way.
//! - Matrices and builtins of vectors are written out, terms from the first to the last.
//! - NaN has one form of bits wherever bits can be seen.
//!
//! What is refused: f16 and f64, atomic floats, subgroup operations and cooperative matrices.

mod body;
mod builtin;
mod number;

use cantus_base::listed::Listed;
use std::collections::HashMap;
use std::sync::LazyLock;

use naga::valid::ModuleInfo;
use naga::{
    AddressSpace, Arena, Expression, Function, GlobalVariable, Handle, Literal, Module, ResourceBinding, Scalar, Span,
    Type, TypeInner, VectorSize,
};

use body::Body;

/// The reason why a kernel has no reproducible form, with its place.
#[doc(hidden)]
pub struct Refusal {
    pub(super) construct: String,
    pub(super) span: Span,
}

type Outcome<T> = Result<T, Refusal>;

fn refuse<T>(construct: &str, span: Span) -> Outcome<T> {
    Err(Refusal { construct: construct.to_owned(), span })
}

/// Functions that take the place of operators and builtins.
struct Library {
    module: Module,
    info: ModuleInfo,
    names: HashMap<String, Handle<Function>>,
}

/// `None` if the text were invalid, which a test rules out.
static LIBRARY: LazyLock<Option<Library>> = LazyLock::new(|| {
    let text = [include_str!("arithmetic.wgsl"), cantus_shaders::prepared::ELEMENTWISE_FUNCTIONS_PORTABLE].join("\n");
    let module = naga::front::wgsl::parse_str(&text).ok()?;
    // Packing halves, which is rewritten too.
    let halves = naga::valid::Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    let info = super::capabilities::validator(halves).validate(&module).ok()?;
    let names = module.functions.iter().filter_map(|(handle, function)| Some((function.name.clone()?, handle)));
    let names = names.collect();
    Some(Library { module, info, names })
});

/// The origin of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Origin {
    Kernel,
    Library,
}

/// The reproducible form of a module.
pub(super) fn rewrite(module: &Module, info: &ModuleInfo) -> Outcome<Module> {
    let Some(library) = &*LIBRARY else {
        return refuse("the library of its functions cannot be read (a defect: please report it)", Span::UNDEFINED);
    };
    let mut new = module.clone();
    new.functions = Arena::new();
    for (_, expression) in new.global_expressions.iter_mut() {
        if let Expression::Literal(literal) = expression {
            *literal = without_small(*literal);
        }
    }
    let u32_type = scalar_type(&mut new, Scalar::U32);
    let taken: Vec<u32> = module
        .global_variables
        .iter()
        .filter_map(|(_, variable)| variable.binding)
        .filter(|binding| binding.group == 0)
        .map(|binding| binding.binding)
        .listed();
    let binding = (0..=u32::MAX).find(|number| !taken.contains(number)).unwrap_or(u32::MAX);
    let zero = GlobalVariable {
        name: Some(super::Kernel::ZERO.to_owned()),
        space: AddressSpace::Uniform,
        binding: Some(ResourceBinding { group: 0, binding }),
        ty: u32_type,
        init: None,
        memory_decorations: naga::MemoryDecorations::empty(),
    };
    let zero = new.global_variables.append(zero, Span::UNDEFINED);
    let mut work = Work { old: module, info, library, new, zero, done: HashMap::new() };
    for place in 0..module.entry_points.len() {
        let Some(entry) = module.entry_points.get(place) else { continue };
        let function = Body::rewrite(&mut work, Origin::Kernel, &entry.function, info.get_entry_point(place))?;
        if let Some(entry) = work.new.entry_points.get_mut(place) {
            entry.function = function;
        }
    }
    Ok(work.new)
}

/// A literal that is zero or normal, and not -0.
fn without_small(literal: Literal) -> Literal {
    match literal {
        Literal::F32(value) if value.to_bits() & 0x7fff_ffff < 0x0080_0000 => Literal::F32(0.0),
        other => other,
    }
}

fn scalar_type(module: &mut Module, scalar: Scalar) -> Handle<Type> {
    module.types.insert(Type { name: None, inner: TypeInner::Scalar(scalar) }, Span::UNDEFINED)
}

fn vector_type(module: &mut Module, size: VectorSize, scalar: Scalar) -> Handle<Type> {
    module.types.insert(Type { name: None, inner: TypeInner::Vector { size, scalar } }, Span::UNDEFINED)
}

struct Work<'a> {
    old: &'a Module,
    info: &'a ModuleInfo,
    library: &'a Library,
    new: Module,
    zero: Handle<GlobalVariable>,
    done: HashMap<(Origin, Handle<Function>), Handle<Function>>,
}

impl<'a> Work<'a> {
    fn source(&self, origin: Origin) -> (&'a Module, &'a ModuleInfo) {
        match origin {
            Origin::Kernel => (self.old, self.info),
            Origin::Library => (&self.library.module, &self.library.info),
        }
    }

    /// A function of the new module, made when it is first called: callees come before their callers.
    fn function(&mut self, origin: Origin, function: Handle<Function>) -> Outcome<Handle<Function>> {
        if let Some(&known) = self.done.get(&(origin, function)) {
            return Ok(known);
        }
        let (module, info) = self.source(origin);
        let mut new = Body::rewrite(self, origin, &module.functions[function], &info[function])?;
        if origin == Origin::Library {
            new.name = new.name.map(|name| format!("cantus_{name}"));
        }
        let handle = self.new.functions.append(new, module.functions.get_span(function));
        self.done.insert((origin, function), handle);
        Ok(handle)
    }

    /// A type of the new module for one of a function's module.
    fn ty(&mut self, origin: Origin, ty: Handle<Type>) -> Handle<Type> {
        match origin {
            Origin::Kernel => ty,
            // The library has scalars and vectors alone.
            Origin::Library => self.new.types.insert(self.library.module.types[ty].clone(), Span::UNDEFINED),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_library_is_valid() {
        assert!(super::LIBRARY.is_some());
    }
}

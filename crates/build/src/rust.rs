//! Rust from reflections: a structure for each of WGSL's, and for each entry point its bindings and the function that dispatches it. `kernels()` writes a
//! file of these for an app's build. A structure of WGSL is `#[repr(C)]` with padding spelled out, and assertions in the generated code hold it to WGSL's
//! layout. Names are the WGSL's; two files' equal structures become one.

use std::fmt::Write as _;

use cantus_kernel::{AddressSpace, Binding, Layout, Member, Override, Reflection, Scalar};

use crate::identifier;
use crate::kernels::Entry;

/// A structure of WGSL's, and where it is in the written Rust.
pub(crate) struct Structure {
    name: String,
    members: Vec<Member>,
    size: u32,
    /// The names by which Rust knows it: the module of its file, where another file has another structure of that name, and its own.
    path: String,
}

/// All structures that the bindings of a folder have.
#[derive(Default)]
pub(crate) struct Structures(Vec<Structure>);

impl Structures {
    /// Notes those of a layout, inner ones first. `module` is of the file.
    pub(crate) fn note(&mut self, layout: &Layout, module: &str) {
        match layout {
            Layout::Array { element, .. } => self.note(element, module),
            Layout::Struct { name, members, size } => {
                for member in members {
                    self.note(&member.layout, module);
                }
                if layout.is_runtime_sized() || self.find(name, members, *size).is_some() {
                    return;
                }
                let is_new = self.0.iter().all(|known| known.name != *name);
                let own = identifier(name);
                let path = if is_new { own } else { format!("{module}_{own}") };
                self.0.push(Structure { name: name.clone(), members: members.clone(), size: *size, path });
            }
            _ => {}
        }
    }

    fn find(&self, name: &str, members: &[Member], size: u32) -> Option<&Structure> {
        self.0.iter().find(|known| known.name == name && known.members == members && known.size == size)
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.iter().any(|known| known.path == path)
    }

    /// The Rust of all of them.
    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|structure| self.structure(structure)).collect()
    }

    fn structure(&self, structure: &Structure) -> String {
        let Structure { name, members, size, path } = structure;
        let mut fields = String::new();
        let mut checks = String::new();
        let mut is_plain = true;
        for (place, member) in members.iter().enumerate() {
            let end = members.get(place + 1).map_or(*size, |next| next.offset);
            let Some(field) = self.padded(&member.layout, end - member.offset) else {
                is_plain = false;
                break;
            };
            let ident = identifier(&member.name);
            let _ = writeln!(fields, "    /// `{}: {}`\n    pub {ident}: {field},", member.name, member.layout);
            let _ = writeln!(checks, "    assert!(::core::mem::offset_of!({path}, {ident}) == {});", member.offset);
        }
        if !is_plain {
            return String::new();
        }
        let item = if size.is_multiple_of(4) {
            format!("impl ::cantus::typed::Item for {path} {{\n    type Part = u32;\n}}\n")
        } else {
            String::new()
        };
        format!(
            "\n/// `{name}` of the WGSL: {size} bytes.\n#[repr(C)]\n#[derive(Clone, Copy, Debug, PartialEq)]\n{ALLOWED}\n\
             pub struct {path} {{\n{fields}}}\n\n\
             // WGSL's own layout; what is not is an error here.\nconst _: () = {{\n    assert!(::core::mem::size_of::<{path}>() == {size});\n{checks}}};\n\
             // SAFETY: numbers without gaps, as the lines above show; any bytes are such.\n\
             #[allow(unsafe_code, reason = \"generated\")]\nunsafe impl ::cantus::typed::bytemuck::Zeroable for {path} {{}}\n\
             // SAFETY: numbers without gaps, as the lines above show; any bytes are such.\n\
             #[allow(unsafe_code, reason = \"generated\")]\nunsafe impl ::cantus::typed::bytemuck::Pod for {path} {{}}\n{item}"
        )
    }

    /// The Rust type with exactly WGSL's bytes; `None` where no type has them.
    fn exact(&self, layout: &Layout) -> Option<String> {
        Some(match layout {
            Layout::Scalar(scalar) | Layout::Atomic(scalar) => number(*scalar)?.to_owned(),
            Layout::Vector(count, scalar) => format!("[{}; {count}]", number(*scalar)?),
            Layout::Matrix { columns, rows, scalar, stride } => {
                format!("[{}; {columns}]", self.padded(&Layout::Vector(*rows, *scalar), *stride)?)
            }
            Layout::Array { element, count: Some(count), stride } => {
                format!("[{}; {count}]", self.padded(element, *stride)?)
            }
            Layout::Array { count: None, .. } => return None,
            Layout::Struct { name, members, size } => self.find(name, members, *size)?.path.clone(),
        })
    }

    /// The same where it has more bytes to itself.
    fn padded(&self, layout: &Layout, bytes: u32) -> Option<String> {
        let exact = self.exact(layout)?;
        let own = u32::try_from(layout.min_bytes()).ok()?;
        match bytes.checked_sub(own)? {
            0 => Some(exact),
            free => Some(format!("::cantus::typed::Padded<{exact}, {free}>")),
        }
    }

    /// The type of an item of a tensor that is bound to storage; `None` where `TensorOf` has no such items.
    fn item(&self, layout: &Layout) -> Option<String> {
        let (element, stride) = match layout {
            Layout::Array { element, stride, .. } => (&**element, *stride),
            other => (other, u32::try_from(other.min_bytes()).ok()?),
        };
        is_item(element, stride).then(|| self.padded(element, stride)).flatten()
    }
}

/// True if `cantus::typed::Item` is implemented for it.
fn is_item(layout: &Layout, bytes: u32) -> bool {
    let free = bytes.saturating_sub(u32::try_from(layout.min_bytes()).unwrap_or(u32::MAX));
    match layout {
        Layout::Scalar(_) | Layout::Atomic(_) => free == 0,
        Layout::Vector(3, Scalar::F32 | Scalar::I32 | Scalar::U32) => free == 0 || free == 4,
        Layout::Vector(..) => free == 0,
        Layout::Matrix { rows, scalar, stride, .. } => free == 0 && is_item(&Layout::Vector(*rows, *scalar), *stride),
        Layout::Array { element, count, stride } => {
            free == 0 && matches!(count, Some(2..=4)) && is_item(element, *stride)
        }
        Layout::Struct { size, .. } => free == 0 && size.is_multiple_of(4),
    }
}

/// True for a structure, and for arrays of such.
fn is_structure(layout: &Layout) -> bool {
    match layout {
        Layout::Struct { .. } => true,
        Layout::Array { element, .. } => is_structure(element),
        _ => false,
    }
}

fn number(scalar: Scalar) -> Option<&'static str> {
    Some(match scalar {
        Scalar::Bool => return None,
        Scalar::I32 => "i32",
        Scalar::U32 => "u32",
        Scalar::F32 => "f32",
        Scalar::F16 => "::cantus::half::f16",
        Scalar::I64 => "i64",
        Scalar::U64 => "u64",
        Scalar::F64 => "f64",
        Scalar::I16 => "i16",
        Scalar::U16 => "u16",
    })
}

/// Not every build of an app uses every kernel; names are the WGSL's.
const ALLOWED: &str = "#[allow(dead_code, non_snake_case, non_camel_case_types, missing_docs, clippy::all, clippy::pedantic, clippy::panic, reason = \"generated\")]";

/// An argument, and the conversion to its binding.
struct Field {
    name: String,
    about: String,
    kind: String,
    bind: String,
}

fn field(structures: &Structures, binding: &Binding) -> Field {
    let name = identifier(&binding.name);
    let quoted = format!("{:?}", binding.name);
    let access = match (binding.space, binding.access) {
        (AddressSpace::Uniform, _) => "var<uniform>",
        (AddressSpace::Storage, cantus_kernel::Access::Read) => "var<storage>, which is read",
        (AddressSpace::Storage, cantus_kernel::Access::ReadWrite) => "var<storage, read_write>",
    };
    let about = format!("`{}: {}`, {access}.", binding.name, binding.layout);
    let value = format!("bindings.{name}");
    let (kind, bind) = match binding.space {
        AddressSpace::Storage => match structures.item(&binding.layout) {
            Some(item) => {
                // The tensor of a structure has whole words, whatever its members are.
                let call = if is_structure(&binding.layout) { "bind_raw" } else { "bind" };
                (format!("&'a ::cantus::typed::TensorOf<{item}>"), format!(".{call}({quoted}, &**{value})"))
            }
            // Bytes in WGSL's layout.
            None => ("&'a ::cantus::Tensor".to_owned(), format!(".bind_raw({quoted}, {value})")),
        },
        AddressSpace::Uniform => match structures.exact(&binding.layout) {
            Some(kind) => {
                let bytes = format!("::cantus::typed::bytemuck::bytes_of(&{value})");
                (kind, format!(".set_bytes({quoted}, {bytes})"))
            }
            None => ("&'a [u8]".to_owned(), format!(".set_bytes({quoted}, {value})")),
        },
    };
    Field { name, about, kind, bind }
}

fn fields(structures: &Structures, reflection: &Reflection) -> Vec<Field> {
    let mut all: Vec<Field> = reflection.bindings.iter().map(|binding| field(structures, binding)).collect();
    let resource = |name: &str, about: String, kind: &str| Field {
        name: identifier(name),
        about,
        kind: format!("&'a {kind}"),
        bind: format!(".bind({name:?}, bindings.{})", identifier(name)),
    };
    for texture in &reflection.textures {
        all.push(resource(&texture.name, format!("`{}: {texture}`.", texture.name), "::cantus::Texture"));
    }
    for sampler in &reflection.samplers {
        let kind = if sampler.comparison { "sampler_comparison" } else { "sampler" };
        all.push(resource(&sampler.name, format!("`{}: {kind}`.", sampler.name), "::cantus::Sampler"));
    }
    all
}

/// An override that has no value.
fn is_open(constant: &Override) -> bool {
    constant.value.is_none()
}

fn override_ident(constant: &Override) -> String {
    if constant.name.starts_with(|first: char| first.is_ascii_digit()) {
        format!("id_{}", constant.name)
    } else {
        identifier(&constant.name)
    }
}

fn override_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::I32 => "i32",
        Scalar::U32 => "u32",
        Scalar::F64 => "f64",
        _ => "f32",
    }
}

fn override_literal(scalar: Scalar, value: f64) -> String {
    match scalar {
        Scalar::Bool => (value != 0.0).to_string(),
        Scalar::I32 | Scalar::U32 => format!("{value}"),
        Scalar::F64 => format!("{value:?}"),
        _ => format!("{:?}", value as f32),
    }
}

/// The members of a structure of overrides, its default values, and the calls that set them.
fn override_parts(overrides: &[Override]) -> [String; 3] {
    let (mut members, mut defaults, mut sets) = (String::new(), String::new(), String::new());
    for constant in overrides {
        let ident = override_ident(constant);
        let kind = override_type(constant.scalar);
        let literal = constant.value.map(|value| override_literal(constant.scalar, value));
        let known = literal.as_ref().map_or_else(String::new, |literal| format!(" = {literal}"));
        let _ = writeln!(
            members,
            "    /// `override {}: {}{known}`\n    pub {ident}: {kind},",
            constant.name, constant.scalar
        );
        if let Some(literal) = literal {
            let _ = write!(defaults, "{ident}: {literal}, ");
        }
        let value = if constant.scalar == Scalar::Bool {
            format!("u8::from(overrides.{ident})")
        } else {
            format!("overrides.{ident}")
        };
        let _ = write!(sets, "\n            .with_override({:?}, {value})?", constant.name);
    }
    [members, defaults, sets]
}

/// The function of an entry point with its types, and the module that makes its kernel (`code`, with a function `kernel`).
pub(crate) fn entry(structures: &Structures, entry: &Entry, code: &str) -> String {
    let Entry { name, type_name, shown, reflection, .. } = entry;
    let [x, y, z] = reflection.workgroup_size;
    let about = format!("`{}` of `{shown}`, whose workgroups are {x} x {y} x {z}", reflection.entry_point);
    let fields = fields(structures, reflection);
    let mut text = format!("\n#[doc(hidden)]\n{ALLOWED}\nmod {name}_code {{\n{code}}}\n");

    let borrows = fields.iter().any(|field| field.kind.contains("'a"));
    let life = if borrows { "<'a>" } else { "" };
    let mut members = String::new();
    let mut calls = String::new();
    for field in &fields {
        let _ = writeln!(members, "    /// {}\n    pub {}: {},", field.about, field.name, field.kind);
        let _ = write!(calls, "\n        {}", field.bind);
    }
    let bindings = if fields.is_empty() { "_bindings" } else { "bindings" };
    let _ = write!(
        text,
        "\n/// The bindings of [`{name}`].\n{ALLOWED}\n#[derive(Clone, Copy, Debug)]\npub struct {type_name}{life} {{\n{members}}}\n"
    );
    let builder = "::cantus::engine::DispatchBuilder<'a>";
    let fixed = reflection.overrides.iter().all(|constant| !is_open(constant));
    if fixed {
        let _ = write!(
            text,
            "\n/// A dispatch of {about}. Say how much: `.invocations(…)` or `.workgroups(…)`, then `.run()`.\n{ALLOWED}\n\
             pub fn {name}<'a>(engine: &'a ::cantus::Engine, {bindings}: {type_name}{life}) -> {builder} {{\n    \
             engine.dispatch({name}_kernel()){calls}\n}}\n\n\
             /// The kernel of [`{name}`], made once.\n{ALLOWED}\npub fn {name}_kernel() -> &'static ::cantus::Kernel {{\n    \
             static KERNEL: ::std::sync::LazyLock<::cantus::Kernel> = ::std::sync::LazyLock::new(|| match {name}_code::kernel() {{\n        \
             Ok(kernel) => kernel,\n        \
             Err(error) => panic!(\"{{error}} (cantus-build wrote this kernel for another version of cantus)\"),\n    \
             }});\n    &KERNEL\n}}\n"
        );
    }
    if !reflection.overrides.is_empty() {
        let [members, defaults, sets] = override_parts(&reflection.overrides);
        let default = if fixed {
            format!(
                "\nimpl Default for {type_name}Overrides {{\n    fn default() -> Self {{\n        Self {{ {defaults}}}\n    }}\n}}\n"
            )
        } else {
            String::new()
        };
        let _ = write!(
            text,
            "\n/// The overrides of {about}.\n{ALLOWED}\n#[derive(Clone, Copy, Debug, PartialEq)]\npub struct {type_name}Overrides {{\n{members}}}\n{default}\
             \nimpl {type_name}Overrides {{\n    /// The kernel with these values, for [`{name}_with`]. It is parsed anew, by cantus's feature `wgsl`: make it once.\n    ///\n    \
             /// # Errors\n    /// When a value is out of range.\n    {ALLOWED}\n    \
             pub fn kernel(self) -> ::cantus::Result<::cantus::Kernel> {{\n        let overrides = self;\n        \
             Ok({name}_code::kernel()?{sets})\n    }}\n}}\n\
             \n/// A dispatch of {about}, with other overrides.\n{ALLOWED}\n\
             pub fn {name}_with<'a>(engine: &'a ::cantus::Engine, kernel: &'a ::cantus::Kernel, {bindings}: {type_name}{life}) -> {builder} {{\n    \
             engine.dispatch(kernel){calls}\n}}\n"
        );
    }
    text
}

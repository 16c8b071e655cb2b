//! The entry point: arguments, builtins, workgroup memory, and the source put together. `translate` ends here: the body is written first, since only then
//! is known which builtins, workgroup variables and helpers there are. `framed` puts another kernel in the body's place, with the same parameters: vendors'
//! kernels come in by it.

use std::fmt::Write as _;

use naga::proc::NameKey;
use naga::valid::GlobalUse;
use naga::{AddressSpace, Barrier, Binding, BuiltIn, GlobalVariable, Handle, ShaderStage, TypeInner};

use super::dialect::{Entry, FIBERS};
use super::function::{Body, Owner};
#[cfg(feature = "_cuda_hip")]
use super::scan;
use super::types::{Ty, array_count};
use super::{Argument, Dialect, Result, Translation, Writer, mentions};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

/// Declarations and names of parameters.
type Parameters = Vec<(String, String)>;

/// Uniforms of more bytes than this, together, are handed over by pointer: OpenCL guarantees 1024 bytes of parameters.
const MAX_BY_VALUE: u64 = 768;

impl<'m> Writer<'m> {
    /// Returns whether a variable is a parameter by value of the entry point.
    pub(super) fn is_by_value(&self, variable: Handle<GlobalVariable>) -> bool {
        self.options.uniforms_by_value && self.module.global_variables[variable].space == AddressSpace::Uniform
    }

    pub(super) fn entry_point(&mut self, index: usize) -> Result<Translation> {
        let (module, module_info) = (self.module, self.info);
        let entry = self.known(module.entry_points.get(index), "an entry point that does not exist")?;
        if entry.stage != ShaderStage::Compute {
            return self.unsupported("entry points other than compute");
        }
        let info = module_info.get_entry_point(index);
        let uniform_bytes: u64 = self
            .reflection
            .bindings
            .iter()
            .filter(|binding| binding.space == crate::reflection::AddressSpace::Uniform)
            .map(|binding| binding.layout.min_bytes())
            .sum();
        self.options.uniforms_by_value &= uniform_bytes <= MAX_BY_VALUE;
        for (handle, variable) in module.global_variables.iter() {
            self.span = module.global_variables.get_span(handle);
            match variable.space {
                _ if info[handle].is_empty() => {}
                AddressSpace::Handle => return self.unsupported("textures and samplers"),
                AddressSpace::Immediate => return self.unsupported("immediates"),
                AddressSpace::Private
                | AddressSpace::WorkGroup
                | AddressSpace::Uniform
                | AddressSpace::Storage { .. } => {}
                AddressSpace::Function
                | AddressSpace::TaskPayload
                | AddressSpace::RayPayload
                | AddressSpace::IncomingRayPayload => {
                    return self.unsupported("variables of this address space");
                }
            }
        }
        self.callees(&entry.function)?;
        let mut body = Body::new(&entry.function, info, Owner::Entry(index), self.options.bound_loops);
        let mut before = self.private_variables(&body)?;
        self.builtins(&mut body, &mut before)?;
        self.body(&mut body)?;
        // Last: it matters whether there are barriers.
        let (parameters, arguments) = self.parameters()?;
        let mut workgroup = Vec::new();
        let mut clear = String::new();
        for handle in self.globals(info) {
            let variable = &module.global_variables[handle];
            if variable.space == AddressSpace::WorkGroup {
                self.span = module.global_variables.get_span(handle);
                let name = self.global_name(handle);
                workgroup.push((self.handle_name(variable.ty)?, name.clone()));
                let text = self.cleared(self.ty(variable.ty)?, &name)?;
                clear.push_str(&text);
            }
        }
        let meets = self.subgroup_sites > 0;
        if !clear.is_empty() {
            let size = self.reflection.workgroup_size;
            let index = self.local_index(size);
            let barrier = self.language.barrier(Barrier::WORK_GROUP, 0);
            clear = format!("    const u32 cantus_first = {index};\n{clear}    {barrier}\n");
        }
        let name = self.named(NameKey::EntryPoint(index as u16));
        let parts = Entry {
            name: name.clone(),
            workgroup_size: self.reflection.workgroup_size,
            parameters,
            workgroup,
            before,
            clear,
            body: std::mem::take(&mut body.out),
            meets,
        };
        let entry_text = self.language.entry(&parts);
        Ok(self.whole((index, name), arguments, meets, &entry_text))
    }

    /// Another kernel in place of the body.
    #[cfg(feature = "_cuda_hip")]
    pub(super) fn framed(&mut self, index: usize, frame: &super::Frame<'_>) -> Result<Translation> {
        let (module, module_info) = (self.module, self.info);
        let entry = self.known(module.entry_points.get(index), "an entry point that does not exist")?;
        self.kinds.extend([Scalar::F32, Scalar::U32]);
        let mut called = scan::called(&entry.function, self.options.bound_loops);
        called.retain(|&function| {
            module.functions[function].name.as_ref().is_some_and(|name| mentions(frame.source, name))
        });
        for &function in &called {
            self.function(function)?;
        }
        let (parameters, arguments) = self.parameters()?;
        let body = Body::new(&entry.function, module_info.get_entry_point(index), Owner::Entry(index), false);
        let mut text = String::new();
        for function in called {
            let Some(known) = &module.functions[function].name else { continue };
            let mut handed = vec!["__VA_ARGS__".to_owned()];
            handed.extend(self.handed_down(&body, function));
            let own = self.named(NameKey::Function(function));
            let _ = writeln!(text, "#define {known}(...) {own}({})", handed.join(", "));
        }
        let name = self.named(NameKey::EntryPoint(index as u16));
        let declarations: Vec<&str> = parameters.iter().map(|(declaration, _)| declaration.as_str()).listed();
        let _ = writeln!(text, "#define CANTUS_ENTRY {name}\n#define CANTUS_PARAMETERS {}", declarations.join(", "));
        text.push_str(frame.source);
        Ok(self.whole((index, name), arguments, false, &text))
    }

    /// The source, put together.
    fn whole(
        &mut self,
        (index, name): (usize, String),
        arguments: Vec<Argument>,
        meets: bool,
        entry_text: &str,
    ) -> Translation {
        let dialect = self.language.dialect();
        let entry_name = self.module.entry_points.get(index).map_or(&*name, |entry| entry.name.as_str());
        if self.uses_subgroups {
            self.requires.extend(self.language.subgroup_extensions());
        }
        let mut source = String::new();
        if dialect == Dialect::Host && meets {
            source.push_str("#define _DEFAULT_SOURCE\n");
        }
        let _ = writeln!(source, "// {} of the WGSL entry point `{}`.", dialect.name(), entry_name);
        source.push_str(&self.language.prelude(&self.kinds, &self.requires));
        if self.uses_subgroups {
            source.push_str(self.language.lanes_type());
        }
        if dialect == Dialect::Host && meets {
            source.push_str(FIBERS);
        }
        let helpers = self.used_helpers(entry_text);
        for part in [&self.types, &helpers, &self.constants, &self.functions] {
            if !part.is_empty() {
                source.push('\n');
                source.push_str(part.trim_end());
                source.push('\n');
            }
        }
        source.push('\n');
        source.push_str(entry_text);
        Translation {
            source,
            entry: name,
            arguments,
            reflection: self.reflection.clone(),
            requires: self.requires.iter().map(|name| (*name).to_owned()).listed(),
        }
    }

    /// The helpers that something calls: some were asked for and then not needed.
    fn used_helpers(&self, entry: &str) -> String {
        let mut used: Vec<&str> = Vec::new();
        let mut called = format!("{}{}{entry}", self.constants, self.functions);
        for (name, text) in self.helpers.iter().rev() {
            if mentions(&called, name) {
                called.push_str(text);
                used.push(text);
            }
        }
        used.reverse();
        used.concat()
    }

    /// Parameters, by declaration and name, and what a caller hands over for each.
    fn parameters(&mut self) -> Result<(Parameters, Vec<Argument>)> {
        let reflection = self.reflection;
        let module = self.module;
        let mut parameters = Vec::new();
        let mut arguments = Vec::new();
        let mut sized = Vec::new();
        for (index, binding) in reflection.bindings.iter().enumerate() {
            // Another entry point's variable may have the same place.
            let variable = module.global_variables.iter().find(|(_, variable)| {
                variable.binding.is_some_and(|known| (known.group, known.binding) == (binding.group, binding.binding))
                    && variable.name.as_ref().is_none_or(|name| *name == binding.name)
            });
            let (handle, variable) = self.known(variable, "a binding without a variable")?;
            self.span = module.global_variables.get_span(handle);
            let name = self.global_name(handle);
            if self.is_by_value(handle) {
                let ty = self.ty(variable.ty)?;
                let bytes = self.layout(ty)?.0;
                let type_name = self.type_name(ty)?;
                parameters.push((format!("{}{type_name} {name}", self.language.by_value()), name));
                arguments.push(Argument::Value { index, bytes });
                continue;
            }
            // What other invocations write before a barrier must be read after it. A compiler may take a barrier for something that does
            // not touch what only a restricted pointer reaches.
            let shared = binding.access == crate::reflection::Access::ReadWrite && self.subgroup_sites > 0;
            let restrict = if shared { "" } else { self.language.restrict() };
            let restricted = format!("{restrict}{name}");
            parameters.push((self.pointer_declaration(variable.ty, variable.space, &restricted)?, name.clone()));
            arguments.push(Argument::Pointer { index });
            if binding.layout.is_runtime_sized() {
                sized.push((index, name));
            }
        }
        if !sized.is_empty() {
            let members: String = sized.iter().map(|(_, name)| format!("u32 {name}; ")).collect();
            let _ = writeln!(self.types, "// Bytes that are bound.\ntypedef struct {{ {members}}} cantus_sizes;");
            parameters.push(("const cantus_sizes cantus_bytes".to_owned(), "cantus_bytes".to_owned()));
            arguments.push(Argument::Sizes { indices: sized.into_iter().map(|(index, _)| index).listed() });
        }
        Ok((parameters, arguments))
    }

    fn private_variables(&mut self, body: &Body<'m>) -> Result<String> {
        let module = self.module;
        let mut text = String::new();
        for handle in self.globals(body.info) {
            let variable = &module.global_variables[handle];
            if variable.space != AddressSpace::Private {
                continue;
            }
            self.span = module.global_variables.get_span(handle);
            let ty = self.ty(variable.ty)?;
            let value = match variable.init {
                Some(init) => self.initialiser(&module.global_expressions, init, ty)?,
                None => self.zero_initialiser(ty)?,
            };
            let name = self.global_name(handle);
            let _ = writeln!(text, "    {} {name} = {value};", self.type_name(ty)?);
            if !body.info[handle].contains(GlobalUse::READ) {
                let _ = writeln!(text, "    (void){name};");
            }
        }
        Ok(text)
    }

    /// Definitions of the builtins that the entry point takes and uses.
    fn builtins(&mut self, body: &mut Body<'m>, text: &mut String) -> Result<()> {
        let function = body.function;
        for (index, argument) in function.arguments.iter().enumerate() {
            let used = function.expressions.iter().any(|(handle, expression)| {
                matches!(expression, naga::Expression::FunctionArgument(at) if *at == index as u32)
                    && body.used(handle) > 0
            });
            if !used {
                continue;
            }
            let name = body.argument(self, index as u32);
            let type_name = self.handle_name(argument.ty)?;
            match (&argument.binding, &self.module.types[argument.ty].inner) {
                (Some(binding), _) => {
                    let value = self.builtin(binding)?;
                    let _ = writeln!(text, "    const {type_name} {name} = {value};");
                }
                (None, TypeInner::Struct { members, .. }) => {
                    let zero = self.language.zero();
                    let _ = writeln!(text, "    {type_name} {name} = {zero};");
                    for (at, member) in members.iter().enumerate() {
                        let binding = self.known(member.binding.as_ref(), "arguments without a builtin")?;
                        let value = self.builtin(binding)?;
                        let field = self.named(NameKey::StructMember(argument.ty, at as u32));
                        let _ = writeln!(text, "    {name}.{field} = {value};");
                    }
                }
                (None, _) => return self.unsupported("arguments without a builtin"),
            }
        }
        Ok(())
    }

    fn local_index(&self, [x, y, z]: [u32; 3]) -> String {
        let id = |axis| self.language.local_id(axis);
        let mut text = id(0);
        if z > 1 {
            text = format!("{text} + {x}u * ({} + {y}u * {})", id(1), id(2));
        } else if y > 1 {
            text = format!("{text} + {x}u * {}", id(1));
        }
        text
    }

    fn builtin(&mut self, binding: &Binding) -> Result<String> {
        let Binding::BuiltIn(builtin) = binding else { return self.unsupported("@location in compute shaders") };
        let language = self.language;
        let size = self.reflection.workgroup_size;
        let invocations: u32 = size.iter().product();
        let mut vector = |parts: [String; 3]| {
            let make = self.constructor(3, Scalar::U32, &[1; 3])?;
            Ok(format!("{make}({})", parts.join(", ")))
        };
        match builtin {
            BuiltIn::GlobalInvocationId => vector([0, 1, 2].map(|axis| match size[axis] {
                1 => language.workgroup_id(axis),
                side => format!("{} * {side}u + {}", language.workgroup_id(axis), language.local_id(axis)),
            })),
            BuiltIn::LocalInvocationId => vector([0, 1, 2].map(|axis| language.local_id(axis))),
            BuiltIn::WorkGroupId => vector([0, 1, 2].map(|axis| language.workgroup_id(axis))),
            BuiltIn::NumWorkGroups => vector([0, 1, 2].map(|axis| language.workgroups(axis))),
            BuiltIn::WorkGroupSize => vector(size.map(|side| format!("{side}u"))),
            BuiltIn::LocalInvocationIndex => Ok(self.local_index(size)),
            BuiltIn::NumSubgroups | BuiltIn::SubgroupId | BuiltIn::SubgroupSize | BuiltIn::SubgroupInvocationId => {
                if let Some(lacking) = language.lacks_subgroups(&self.options) {
                    return self.unsupported(lacking);
                }
                self.uses_subgroups = true;
                // On the host, a lane is known to fibers only.
                self.subgroup_sites += 1;
                self.subgroup_primitives()?;
                let index = format!("({})", self.local_index(size));
                Ok(match builtin {
                    BuiltIn::NumSubgroups => language.subgroups(invocations),
                    BuiltIn::SubgroupId => language.subgroup_id(&index),
                    BuiltIn::SubgroupSize => language.subgroup_size().to_owned(),
                    _ => language.subgroup_lane().to_owned(),
                })
            }
            other => self.unsupported(format!("the builtin {other:?}")),
        }
    }

    /// Statements in which all invocations together set a workgroup variable to zero.
    fn cleared(&mut self, ty: Ty, name: &str) -> Result<String> {
        let invocations: u32 = self.reflection.workgroup_size.iter().product();
        let mut counts = Vec::new();
        let mut inner = ty;
        while let Ty::Array(handle) = inner {
            let TypeInner::Array { base, size, stride } = self.module.types[handle].inner else { break };
            let count = self.known(array_count(self.module, size), "workgroup variables of this type")?;
            let element = self.ty(base)?;
            counts.push((count, self.element_suffix(element, stride)?));
            inner = element;
        }
        let zero = self.zero(inner)?;
        if counts.is_empty() {
            return Ok(format!("    if (cantus_first == 0u) {{\n        {name} = {zero};\n    }}\n"));
        }
        let mut total = 1_u32;
        let mut path = String::new();
        for (place, (count, suffix)) in counts.iter().enumerate().rev() {
            let index = match (total, place) {
                (1, 0) => "cantus_i".to_owned(),
                (1, _) => format!("cantus_i % {count}u"),
                (_, 0) => format!("cantus_i / {total}u"),
                _ => format!("cantus_i / {total}u % {count}u"),
            };
            path = format!(".e[{index}]{suffix}{path}");
            total = self.known(total.checked_mul(*count), "workgroup variables of this size")?;
        }
        Ok(format!(
            "    for (u32 cantus_i = cantus_first; cantus_i < {total}u; cantus_i += {invocations}u) {{\n        \
             {name}{path} = {zero};\n    }}\n"
        ))
    }
}

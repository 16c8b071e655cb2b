//! Functions: their parameters, variables and bodies.
//!
//! C has no variables of a module that an invocation has for itself, so what a function uses of the module's variables is handed
//! down to it: storage, workgroup and private variables as pointers, the sizes of bindings as a structure.

use std::fmt::Write as _;

use naga::proc::NameKey;
use naga::valid::FunctionInfo;
use naga::{AddressSpace, Expression, Function, GlobalVariable, Handle, LocalVariable, TypeInner};
use rustc_hash::{FxHashMap, FxHashSet};

use super::types::{Ty, is_runtime_sized};
use super::{Result, Writer, mentions, scan};
use cantus_base::listed::Listed;

/// The function that is being written.
pub(super) struct Body<'m> {
    pub function: &'m Function,
    pub info: &'m FunctionInfo,
    pub owner: Owner,
    /// The number of uses of each expression.
    pub uses: Vec<u32>,
    /// Expressions that are variables now.
    pub baked: FxHashMap<Handle<Expression>, String>,
    /// Expressions that must become variables.
    pub needed: FxHashSet<Handle<Expression>>,
    /// The nesting depth of the text of each expression.
    pub nesting: Vec<u32>,
    /// Expressions that are used where a block is left already: they are declared before the loop.
    pub hoisted: FxHashSet<Handle<Expression>>,
    pub declarations: Vec<(String, String)>,
    pub out: String,
    pub indent: usize,
    pub loops: u32,
    /// Every invocation of the workgroup comes here, if the workgroup's size allows: the entry point's body outside of branches.
    pub straight: bool,
    /// Conditions under which the place being written is in range, if it is used only in range.
    pub guards: Option<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Entry(usize),
    Function(Handle<Function>),
}

impl<'m> Body<'m> {
    pub(super) fn new(function: &'m Function, info: &'m FunctionInfo, owner: Owner, bounded: bool) -> Self {
        let uses = scan::uses(function, bounded);
        let mut needed = FxHashSet::default();
        for (_, expression) in function.expressions.iter() {
            // What is indexed must have a name, so that its text does not come twice.
            if let Expression::Access { base, .. } | Expression::AccessIndex { base, .. } = expression {
                needed.insert(*base);
            }
        }
        Body {
            function,
            info,
            owner,
            uses,
            baked: FxHashMap::default(),
            needed,
            nesting: vec![0; function.expressions.len()],
            hoisted: FxHashSet::default(),
            declarations: Vec::new(),
            out: String::new(),
            indent: 1,
            loops: 0,
            straight: matches!(owner, Owner::Entry(_)),
            guards: None,
        }
    }

    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
        self.out.push_str(text.as_ref());
        self.out.push('\n');
    }

    pub(super) fn used(&self, handle: Handle<Expression>) -> u32 {
        self.uses.get(handle.index()).copied().unwrap_or(0)
    }

    pub(super) fn argument(&self, writer: &Writer<'_>, index: u32) -> String {
        writer.named(match self.owner {
            Owner::Entry(entry) => NameKey::EntryPointArgument(entry as u16, index),
            Owner::Function(function) => NameKey::FunctionArgument(function, index),
        })
    }

    pub(super) fn local(&self, writer: &Writer<'_>, variable: Handle<LocalVariable>) -> String {
        writer.named(match self.owner {
            Owner::Entry(entry) => NameKey::EntryPointLocal(entry as u16, variable),
            Owner::Function(function) => NameKey::FunctionLocal(function, variable),
        })
    }

    /// Returns whether a variable of the module is a pointer here.
    pub(super) fn is_pointed(&self, writer: &Writer<'_>, variable: Handle<GlobalVariable>) -> bool {
        match (self.owner, writer.module.global_variables[variable].space) {
            (Owner::Function(_), _) => true,
            (Owner::Entry(_), AddressSpace::Private) => false,
            (Owner::Entry(_), AddressSpace::WorkGroup) => writer.language.workgroup_by_pointer(),
            (Owner::Entry(_), AddressSpace::Uniform) => !writer.is_by_value(variable),
            (Owner::Entry(_), _) => true,
        }
    }
}

/// A parameter, or an argument, of a C function.
pub(super) struct Parameter {
    pub declaration: String,
    pub name: String,
}

impl<'m> Writer<'m> {
    /// The module's variables that a function or what it calls uses.
    pub(super) fn globals(&self, info: &FunctionInfo) -> Vec<Handle<GlobalVariable>> {
        self.module
            .global_variables
            .iter()
            .map(|(handle, _)| handle)
            .filter(|handle| !info[*handle].is_empty())
            .listed()
    }

    /// Returns whether a function needs the sizes of bindings.
    pub(super) fn needs_sizes(&self, info: &FunctionInfo) -> bool {
        self.globals(info)
            .into_iter()
            .any(|handle| is_runtime_sized(self.module, self.module.global_variables[handle].ty))
    }

    /// Type and name of a pointer to a type; runtime-sized arrays by their first element.
    pub(super) fn pointer_declaration(
        &mut self,
        ty: Handle<naga::Type>,
        space: AddressSpace,
        name: &str,
    ) -> Result<String> {
        let qualifier = self.language.space(space, self.options.uniforms_by_value);
        let target = match self.module.types[ty].inner {
            TypeInner::Array { .. } if is_runtime_sized(self.module, ty) => {
                let (element, stride, _) = self.runtime_element(ty)?;
                self.padded_name(element, stride)?
            }
            _ => self.handle_name(ty)?,
        };
        Ok(format!("{qualifier}{target} *{name}"))
    }

    /// Writes a function and, before it, all that it calls.
    pub(super) fn function(&mut self, handle: Handle<Function>) -> Result<()> {
        let name = self.named(NameKey::Function(handle));
        if !self.defined.insert(name.clone()) {
            return Ok(());
        }
        let (module, info) = (self.module, self.info);
        let function = &module.functions[handle];
        self.callees(function)?;
        let mut body = Body::new(function, &info[handle], Owner::Function(handle), self.options.bound_loops);
        let mut parameters = Vec::new();
        for (index, argument) in function.arguments.iter().enumerate() {
            let name = body.argument(self, index as u32);
            let declaration = match module.types[argument.ty].inner {
                TypeInner::Pointer { base, space } => {
                    let declaration = self.pointer_declaration(base, space, &name)?;
                    if is_runtime_sized(module, base) {
                        parameters.push(Parameter { declaration, name: name.clone() });
                        let name = format!("cantus_bytes_{name}");
                        parameters.push(Parameter { declaration: format!("u32 {name}"), name });
                        continue;
                    }
                    declaration
                }
                TypeInner::ValuePointer { size, scalar, space } => {
                    let kind = self.known(crate::reflection::Scalar::of(scalar), "numbers of this type")?;
                    let ty = size.map_or(Ty::Scalar(kind), |size| Ty::Vector(size as u32, kind));
                    let qualifier = self.language.space(space, self.options.uniforms_by_value);
                    format!("{qualifier}{} *{name}", self.type_name(ty)?)
                }
                _ => format!("{} {name}", self.handle_name(argument.ty)?),
            };
            parameters.push(Parameter { declaration, name });
        }
        for global in self.globals(&info[handle]) {
            let name = self.global_name(global);
            let variable = &module.global_variables[global];
            let declaration = self.pointer_declaration(variable.ty, variable.space, &name)?;
            parameters.push(Parameter { declaration, name });
        }
        if self.needs_sizes(&info[handle]) {
            let name = "cantus_bytes".to_owned();
            parameters.push(Parameter { declaration: "cantus_sizes cantus_bytes".to_owned(), name });
        }
        self.body(&mut body)?;
        if let Some(result) = &function.result
            && !scan::ends(&function.body, self.options.bound_loops)
        {
            let ty = self.ty(result.ty)?;
            let zero = self.zero(ty)?;
            body.line(format!("return {zero};"));
        }
        let result = match &function.result {
            Some(result) => self.handle_name(result.ty)?,
            None => "void".to_owned(),
        };
        let list: Vec<&str> = parameters.iter().map(|parameter| parameter.declaration.as_str()).listed();
        let list = if list.is_empty() { "void".to_owned() } else { list.join(", ") };
        let mut text = format!("{}{result} {name}({list}) {{\n", self.language.function());
        for parameter in &parameters {
            if self.language.marks_unused() && !mentions(&body.out, &parameter.name) {
                let _ = writeln!(text, "    (void){};", parameter.name);
            }
        }
        text.push_str(&body.out);
        text.push_str("}\n\n");
        self.functions.push_str(&text);
        Ok(())
    }

    /// Writes the functions that a function calls.
    pub(super) fn callees(&mut self, function: &'m Function) -> Result<()> {
        for function in scan::called(function, self.options.bound_loops) {
            self.function(function)?;
        }
        Ok(())
    }

    /// Writes variables and statements.
    pub(super) fn body(&mut self, f: &mut Body<'m>) -> Result<()> {
        let function = f.function;
        let read = scan::read_variables(function, &f.uses, self.options.bound_loops);
        let mut mentioned = FxHashSet::default();
        for (handle, expression) in function.expressions.iter() {
            if let Expression::LocalVariable(variable) = expression
                && f.used(handle) > 0
            {
                mentioned.insert(*variable);
            }
        }
        for (handle, variable) in function.local_variables.iter() {
            if !mentioned.contains(&handle) {
                continue;
            }
            self.span = function.local_variables.get_span(handle);
            let ty = self.ty(variable.ty)?;
            let type_name = self.type_name(ty)?;
            let name = f.local(self, handle);
            let value = match variable.init {
                Some(init) => self.initialiser(&function.expressions, init, ty)?,
                None => self.zero_initialiser(ty)?,
            };
            f.line(format!("{type_name} {name} = {value};"));
            if !read.contains(&handle) {
                f.line(format!("(void){name};"));
            }
        }
        self.block(f, &function.body)
    }
}

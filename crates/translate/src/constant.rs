//! Constants: literals, and initialisers of variables and tables in braces. `stmt` and `expr` ask it for literals, and `entry` for variables' first values.
//! A float is written so that the language reads the same bits; NaN and infinities have helpers. A constant that is indexed at run time becomes a table,
//! equal ones once.

use naga::proc::NameKey;
use naga::{Arena, Expression, Handle, Literal, TypeInner};

use super::types::Ty;
use super::{Result, Writer};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

impl Writer<'_> {
    pub(super) fn literal(&mut self, literal: Literal) -> Result<String> {
        let (long, unsigned_long) = self.language.long_suffixes();
        Ok(match literal {
            Literal::Bool(value) => value.to_string(),
            Literal::U32(value) => format!("{value}u"),
            Literal::I32(i32::MIN) => "(-2147483647 - 1)".to_owned(),
            Literal::I32(value) if value < 0 => format!("({value})"),
            Literal::I32(value) => value.to_string(),
            Literal::U64(value) => format!("{value}{unsigned_long}"),
            Literal::I64(i64::MIN) => format!("(-9223372036854775807{long} - 1)"),
            Literal::I64(value) if value < 0 => format!("({value}{long})"),
            Literal::I64(value) => format!("{value}{long}"),
            Literal::U16(value) => format!("(u16){value}"),
            Literal::I16(value) => format!("(i16)({value})"),
            Literal::F32(value) => self.float32(value)?,
            Literal::F64(value) => self.float64(value)?,
            Literal::F16(value) => {
                self.kinds.insert(Scalar::F16);
                format!("(f16)0x{:04x}", value.to_bits())
            }
            Literal::AbstractInt(_) | Literal::AbstractFloat(_) => return self.unsupported("abstract numbers"),
        })
    }

    fn float32(&mut self, value: f32) -> Result<String> {
        if value.is_finite() {
            return Ok(decimal(format!("{value:?}f")));
        }
        let cast = self.bit_cast(Scalar::U32, Scalar::F32)?;
        Ok(format!("{cast}(0x{:08x}u)", value.to_bits()))
    }

    fn float64(&mut self, value: f64) -> Result<String> {
        self.type_name(Ty::Scalar(Scalar::F64))?;
        if value.is_finite() {
            return Ok(decimal(format!("{value:?}")));
        }
        let cast = self.bit_cast(Scalar::U64, Scalar::F64)?;
        Ok(format!("{cast}(0x{:016x}{})", value.to_bits(), self.language.long_suffixes().1))
    }

    /// Zero of a type, as an expression.
    pub(super) fn zero(&mut self, ty: Ty) -> Result<String> {
        let Ty::Scalar(kind) = ty else {
            let name = self.type_name(ty)?;
            let helper = format!("cantus_zero_{name}");
            let zero = self.language.zero();
            self.helper(&helper, |_| Ok(format!("{name} {helper}(void) {{ {name} r = {zero}; return r; }}")))?;
            return Ok(format!("{helper}()"));
        };
        self.type_name(ty)?;
        Ok(self.scalar_zero(kind).to_owned())
    }

    fn scalar_zero(&self, kind: Scalar) -> &'static str {
        match kind {
            Scalar::Bool => "false",
            Scalar::I32 => "0",
            Scalar::U32 => "0u",
            Scalar::F32 => "0.0f",
            Scalar::F64 => "0.0",
            Scalar::I16 => "(i16)0",
            Scalar::U16 => "(u16)0",
            Scalar::F16 => "(f16)0",
            Scalar::I64 => self.language.long_zeros().0,
            Scalar::U64 => self.language.long_zeros().1,
        }
    }

    /// Returns the initialiser of a variable without another value.
    pub(super) fn zero_initialiser(&mut self, ty: Ty) -> Result<String> {
        Ok(match ty {
            Ty::Scalar(kind) => self.scalar_zero(kind).to_owned(),
            _ => self.language.zero().to_owned(),
        })
    }

    /// A constant of the module by its name, which is defined from now on.
    pub(super) fn constant(&mut self, handle: Handle<naga::Constant>) -> Result<String> {
        let module = self.module;
        let constant = &module.constants[handle];
        if constant.name.is_none() {
            let ty = self.ty(constant.ty)?;
            if let Ty::Scalar(_) = ty {
                return self.initialiser(&module.global_expressions, constant.init, ty);
            }
        }
        let name = self.named(NameKey::Constant(handle));
        let ty = self.ty(constant.ty)?;
        let type_name = self.type_name(ty)?;
        if self.defined.insert(name.clone()) {
            let value = self.initialiser(&module.global_expressions, constant.init, ty)?;
            let qualifier = self.language.constant();
            self.constants.push_str(&format!("{qualifier}{type_name} {name} = {value};\n"));
        }
        Ok(name)
    }

    /// A table with the value of a constant expression, for what is indexed at run time.
    pub(super) fn table(&mut self, arena: &Arena<Expression>, handle: Handle<Expression>, ty: Ty) -> Result<String> {
        let type_name = self.type_name(ty)?;
        let value = self.initialiser(arena, handle, ty)?;
        let text = format!("{type_name} {value}");
        if let Some(known) = self.tables.get(&text) {
            return Ok(known.clone());
        }
        let name = format!("cantus_table{}", self.tables.len());
        let qualifier = self.language.constant();
        self.constants.push_str(&format!("{qualifier}{type_name} {name} = {value};\n"));
        self.tables.insert(text, name.clone());
        Ok(name)
    }

    /// Returns whether an expression is one that [`Writer::initialiser`] writes.
    pub(super) fn is_constant(arena: &Arena<Expression>, handle: Handle<Expression>) -> bool {
        match &arena[handle] {
            Expression::Literal(_) | Expression::Constant(_) | Expression::ZeroValue(_) => true,
            Expression::Compose { components, .. } => components.iter().all(|part| Self::is_constant(arena, *part)),
            Expression::Splat { value, .. } => Self::is_constant(arena, *value),
            _ => false,
        }
    }

    /// Returns the initialiser of a variable with this constant value.
    pub(super) fn initialiser(
        &mut self,
        arena: &Arena<Expression>,
        handle: Handle<Expression>,
        ty: Ty,
    ) -> Result<String> {
        let module = self.module;
        match &arena[handle] {
            Expression::Literal(literal) => self.literal(*literal),
            Expression::Constant(constant) => {
                self.initialiser(&module.global_expressions, module.constants[*constant].init, ty)
            }
            Expression::ZeroValue(_) => self.zero_initialiser(ty),
            Expression::Splat { size, value } => {
                let kind = self.known(ty.kind(), "this constant")?;
                let value = self.initialiser(arena, *value, Ty::Scalar(kind))?;
                Ok(braces(&vec![value; *size as usize]))
            }
            Expression::Compose { components, .. } => match ty {
                Ty::Scalar(_) => self.unsupported("this constant"),
                Ty::Vector(_, kind) => {
                    let mut scalars = Vec::new();
                    for component in components {
                        self.constant_scalars(arena, *component, kind, &mut scalars)?;
                    }
                    Ok(braces(&scalars))
                }
                _ => {
                    let mut parts = Vec::with_capacity(components.len());
                    for (index, component) in components.iter().enumerate() {
                        let part = self.part_type(ty, index)?;
                        parts.push(self.initialiser(arena, *component, part)?);
                    }
                    self.compose_braces(ty, parts)
                }
            },
            _ => self.unsupported("this constant expression"),
        }
    }

    /// The scalars of a scalar or vector.
    fn constant_scalars(
        &mut self,
        arena: &Arena<Expression>,
        handle: Handle<Expression>,
        kind: Scalar,
        scalars: &mut Vec<String>,
    ) -> Result<()> {
        let module = self.module;
        match &arena[handle] {
            Expression::Literal(literal) => scalars.push(self.literal(*literal)?),
            Expression::Constant(constant) => {
                let init = module.constants[*constant].init;
                self.constant_scalars(&module.global_expressions, init, kind, scalars)?;
            }
            Expression::ZeroValue(ty) => {
                let count = match module.types[*ty].inner {
                    TypeInner::Vector { size, .. } => size as usize,
                    _ => 1,
                };
                scalars.extend(vec![self.scalar_zero(kind).to_owned(); count]);
            }
            Expression::Splat { size, value } => {
                for _ in 0..*size as usize {
                    self.constant_scalars(arena, *value, kind, scalars)?;
                }
            }
            Expression::Compose { components, .. } => {
                for component in components {
                    self.constant_scalars(arena, *component, kind, scalars)?;
                }
            }
            _ => return self.unsupported("this constant expression"),
        }
        Ok(())
    }

    /// The type of a member, element or column.
    pub(super) fn part_type(&self, ty: Ty, index: usize) -> Result<Ty> {
        match ty {
            Ty::Scalar(_) => self.unsupported("parts of a scalar"),
            Ty::Vector(_, kind) => Ok(Ty::Scalar(kind)),
            Ty::Matrix(_, rows, kind) => Ok(Ty::Vector(rows, kind)),
            Ty::Array(handle) => match self.module.types[handle].inner {
                TypeInner::Array { base, .. } => self.ty(base),
                _ => self.unsupported("arrays of this type"),
            },
            Ty::Struct(handle) => match &self.module.types[handle].inner {
                TypeInner::Struct { members, .. } => {
                    let member = self.known(members.get(index), "this member")?;
                    self.ty(member.ty)
                }
                _ => self.unsupported("structures of this type"),
            },
        }
    }

    /// The parts of a matrix, array or structure in braces, with its paddings.
    pub(super) fn compose_braces(&mut self, ty: Ty, parts: Vec<String>) -> Result<String> {
        let padding = self.language.zero();
        let padded = |parts: Vec<String>| -> Vec<String> {
            parts.into_iter().map(|part| format!("{{ {part}, {padding} }}")).listed()
        };
        let parts: Vec<String> = match ty {
            Ty::Scalar(_) | Ty::Vector(..) => parts,
            Ty::Matrix(_, 3, _) => vec![braces(&padded(parts))],
            Ty::Matrix(..) => vec![braces(&parts)],
            Ty::Array(handle) => {
                let TypeInner::Array { base, stride, .. } = self.module.types[handle].inner else {
                    return self.unsupported("arrays of this type");
                };
                let element = self.ty(base)?;
                let parts = if self.element_suffix(element, stride)?.is_empty() { parts } else { padded(parts) };
                vec![braces(&parts)]
            }
            Ty::Struct(handle) => {
                let paddings = self.struct_paddings(handle)?;
                let mut all = Vec::new();
                for (index, is_padded) in paddings.into_iter().enumerate() {
                    if is_padded {
                        all.push(padding.to_owned());
                    }
                    all.extend(parts.get(index).cloned());
                }
                all
            }
        };
        Ok(braces(&parts))
    }

    /// The kind and size of a vector, for shorthand.
    pub(super) fn kind_of(&self, ty: Ty) -> Result<Scalar> {
        self.known(ty.kind(), "numbers of this type")
    }
}

fn braces(parts: &[String]) -> String {
    format!("{{ {} }}", parts.join(", "))
}

/// A float as C reads it: negative ones in parentheses.
fn decimal(text: String) -> String {
    if text.starts_with('-') { format!("({text})") } else { text }
}

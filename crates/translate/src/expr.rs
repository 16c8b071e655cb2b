//! Expressions: values as C expressions, pointers as the C lvalues that they point to. `stmt` asks for the text of each expression. Text stays inline until
//! it is used twice or nested too deeply, so it must have no effects: loads are variables by then. An index is clamped, or the access gets a condition, by
//! `OutOfRange`.

use naga::{Expression, Handle, Literal, RelationalFunction, SwizzleComponent, TypeInner, UnaryOperator};

use naga::proc::NameKey;

use super::function::Body;
use super::types::{COMPONENTS, Ty, array_count};
use super::{Result, Writer};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

/// A number as an operand, which a cast is only in parentheses.
fn operand(text: String) -> String {
    let is_cast = ["(u16)", "(i16)", "(f16)"].iter().any(|cast| text.starts_with(cast));
    if is_cast { format!("({text})") } else { text }
}

impl<'m> Writer<'m> {
    /// The type of a value.
    pub(super) fn ty_of(&self, f: &Body<'m>, handle: Handle<Expression>) -> Result<Ty> {
        match &f.info[handle].ty {
            naga::proc::TypeResolution::Handle(ty) => self.ty(*ty),
            naga::proc::TypeResolution::Value(inner) => self.plain(inner),
        }
    }

    /// A value as a C expression that can be an operand.
    pub(super) fn value(&mut self, f: &mut Body<'m>, handle: Handle<Expression>) -> Result<String> {
        if let Some(name) = f.baked.get(&handle) {
            return Ok(name.clone());
        }
        let span = self.span;
        self.span = f.function.expressions.get_span(handle);
        let text = self.expression(f, handle)?;
        self.span = span;
        Ok(text)
    }

    fn expression(&mut self, f: &mut Body<'m>, handle: Handle<Expression>) -> Result<String> {
        let function = f.function;
        Ok(match &function.expressions[handle] {
            Expression::Literal(literal) => operand(self.literal(*literal)?),
            Expression::Constant(constant) => operand(self.constant(*constant)?),
            Expression::Override(_) => return self.unsupported("overrides that are not resolved"),
            Expression::ZeroValue(ty) => {
                let ty = self.ty(*ty)?;
                operand(self.zero(ty)?)
            }
            Expression::Compose { components, .. } => return self.compose(f, handle, components),
            Expression::Access { .. } | Expression::AccessIndex { .. } if self.is_pointer(f, handle) => {
                return self.unsupported("pointers as values");
            }
            Expression::Access { base, index } => return self.access_value(f, handle, *base, *index),
            Expression::AccessIndex { base, index } => return self.part_of_value(f, *base, *index),
            Expression::Splat { size, value } => {
                let kind = self.kind_of(self.ty_of(f, *value)?)?;
                let value = self.value(f, *value)?;
                self.splat(*size as u32, kind, &value)?
            }
            Expression::Swizzle { size, vector, pattern } => {
                let Ty::Vector(from, kind) = self.ty_of(f, *vector)? else {
                    return self.unsupported("swizzles of this type");
                };
                let vector = self.value(f, *vector)?;
                self.swizzle(from, kind, &pattern[..*size as usize], &vector)?
            }
            Expression::FunctionArgument(index) => f.argument(self, *index),
            Expression::GlobalVariable(_) | Expression::LocalVariable(_) => {
                return self.unsupported("pointers as values");
            }
            Expression::Load { pointer } => return self.load(f, *pointer),
            Expression::Unary { op, expr } => {
                let ty = self.ty_of(f, *expr)?;
                let value = self.value(f, *expr)?;
                self.unary(*op, ty, &value)?
            }
            Expression::Binary { op, left, right } => {
                let types = (self.ty_of(f, *left)?, self.ty_of(f, *right)?);
                let (left, right) = (self.value(f, *left)?, self.value(f, *right)?);
                self.binary(*op, types, &left, &right)?
            }
            Expression::Select { condition, accept, reject } => {
                let ty = self.ty_of(f, *accept)?;
                let many = matches!(self.ty_of(f, *condition)?, Ty::Vector(..));
                let condition = self.value(f, *condition)?;
                let (accept, reject) = (self.value(f, *accept)?, self.value(f, *reject)?);
                self.select(ty, many, &condition, &accept, &reject)?
            }
            Expression::Relational { fun, argument } => {
                let ty = self.ty_of(f, *argument)?;
                let value = self.value(f, *argument)?;
                self.relational(*fun, ty, &value)?
            }
            Expression::Math { fun, arg, arg1, arg2, arg3 } => {
                let result = self.ty_of(f, handle)?;
                let mut types = Vec::new();
                let mut values = Vec::new();
                for argument in [Some(*arg), *arg1, *arg2, *arg3].into_iter().flatten() {
                    types.push(self.ty_of(f, argument)?);
                    values.push(self.value(f, argument)?);
                }
                self.math(*fun, result, &types, &values)?
            }
            Expression::As { expr, kind, convert } => {
                let from = self.ty_of(f, *expr)?;
                let value = self.value(f, *expr)?;
                self.cast(from, *kind, *convert, &value)?
            }
            Expression::ArrayLength(pointer) => {
                let (bytes, stride) = self.runtime_bytes(f, *pointer)?;
                format!("({bytes} / {stride}u)")
            }
            Expression::CallResult(_)
            | Expression::AtomicResult { .. }
            | Expression::WorkGroupUniformLoadResult { .. }
            | Expression::SubgroupBallotResult
            | Expression::SubgroupOperationResult { .. } => {
                return self.unsupported("a result that is used before its statement");
            }
            Expression::ImageSample { .. } | Expression::ImageLoad { .. } | Expression::ImageQuery { .. } => {
                return self.unsupported("textures");
            }
            Expression::Derivative { .. } => return self.unsupported("derivatives"),
            Expression::RayQueryVertexPositions { .. }
            | Expression::RayQueryProceedResult
            | Expression::RayQueryGetIntersection { .. } => return self.unsupported("ray tracing"),
            Expression::CooperativeLoad { data, .. } => return self.matrix_load(f, handle, data),
            Expression::CooperativeMultiplyAdd { a, b, c } => return self.matrix_multiply_add(f, [*a, *b, *c]),
        })
    }

    fn compose(
        &mut self,
        f: &mut Body<'m>,
        handle: Handle<Expression>,
        components: &[Handle<Expression>],
    ) -> Result<String> {
        let ty = self.ty_of(f, handle)?;
        match ty {
            Ty::Scalar(_) => self.unsupported("values of this type"),
            Ty::Vector(size, kind) => {
                let mut sizes = Vec::new();
                let mut values = Vec::new();
                for component in components {
                    sizes.push(match self.ty_of(f, *component)? {
                        Ty::Vector(size, _) => size,
                        _ => 1,
                    });
                    values.push(self.value(f, *component)?);
                }
                let helper = self.constructor(size, kind, &sizes)?;
                Ok(format!("{helper}({})", values.join(", ")))
            }
            Ty::Matrix(columns, rows, kind) => {
                let mut values = Vec::new();
                for component in components {
                    values.push(self.value(f, *component)?);
                }
                let helper = self.matrix_constructor(columns, rows, kind)?;
                Ok(format!("{helper}({})", values.join(", ")))
            }
            // Emitted as variables, with braces.
            Ty::Array(_) | Ty::Struct(_) => {
                let function = f.function;
                if Self::is_constant(&function.expressions, handle) {
                    return self.table(&function.expressions, handle, ty);
                }
                self.unsupported("a composite that is used before it is emitted")
            }
        }
    }

    /// Returns the initialiser of an array or structure of computed parts.
    pub(super) fn composite(&mut self, f: &mut Body<'m>, ty: Ty, components: &[Handle<Expression>]) -> Result<String> {
        let mut parts = Vec::new();
        for component in components {
            parts.push(self.value(f, *component)?);
        }
        self.compose_braces(ty, parts)
    }

    /// `base[index]` of a value.
    fn access_value(
        &mut self,
        f: &mut Body<'m>,
        handle: Handle<Expression>,
        base: Handle<Expression>,
        index: Handle<Expression>,
    ) -> Result<String> {
        let ty = self.ty_of(f, base)?;
        let value = self.value(f, base)?;
        let (part, condition) = self.guarded(f, |writer, f| writer.part_at(f, ty, &value, index))?;
        let ty = self.ty_of(f, handle)?;
        self.or_zero(condition, ty, part)
    }

    fn part_at(&mut self, f: &mut Body<'m>, ty: Ty, value: &str, index: Handle<Expression>) -> Result<String> {
        match ty {
            Ty::Vector(size, kind) => {
                let index = self.clamped(f, index, size)?;
                if let Some(component) = constant_index(&index).and_then(|index| COMPONENTS.get(index)) {
                    return Ok(format!("{value}.{component}"));
                }
                let helper = self.component(size, kind)?;
                Ok(format!("{helper}({value}, {index})"))
            }
            Ty::Matrix(columns, rows, _) => {
                let index = self.clamped(f, index, columns)?;
                Ok(format!("{value}.c[{index}]{}", if rows == 3 { ".v" } else { "" }))
            }
            Ty::Array(handle) => {
                let TypeInner::Array { base, size, stride } = self.module.types[handle].inner else {
                    return self.unsupported("indexing of this type");
                };
                let count = self.known(array_count(self.module, size), "indexing of this type")?;
                let index = self.clamped(f, index, count)?;
                let suffix = self.element_suffix(self.ty(base)?, stride)?;
                Ok(format!("{value}.e[{index}]{suffix}"))
            }
            Ty::Scalar(_) | Ty::Struct(_) => self.unsupported("indexing of this type"),
        }
    }

    fn part_of_value(&mut self, f: &mut Body<'m>, base: Handle<Expression>, index: u32) -> Result<String> {
        let ty = self.ty_of(f, base)?;
        if let Expression::ZeroValue(_) = f.function.expressions[base] {
            let part = self.part_type(ty, index as usize)?;
            return self.zero(part);
        }
        let value = self.value(f, base)?;
        let part = self.part_path(ty, index)?;
        Ok(format!("{value}{part}"))
    }

    /// Returns the suffix of a value or lvalue that reaches a part with a known index.
    pub(super) fn part_path(&mut self, ty: Ty, index: u32) -> Result<String> {
        Ok(match ty {
            Ty::Scalar(_) => return self.unsupported("parts of a scalar"),
            Ty::Vector(..) => {
                let component = self.known(COMPONENTS.get(index as usize), "this component")?;
                format!(".{component}")
            }
            Ty::Matrix(_, rows, _) => format!(".c[{index}]{}", if rows == 3 { ".v" } else { "" }),
            Ty::Array(handle) => {
                let TypeInner::Array { base, stride, .. } = self.module.types[handle].inner else {
                    return self.unsupported("indexing of this type");
                };
                format!(".e[{index}]{}", self.element_suffix(self.ty(base)?, stride)?)
            }
            Ty::Struct(handle) => format!(".{}", self.named(NameKey::StructMember(handle, index))),
        })
    }

    /// An index of an array of `count`, kept within it.
    pub(super) fn clamped(&mut self, f: &mut Body<'m>, index: Handle<Expression>, count: u32) -> Result<String> {
        if let Some(known) = known_index(f, index) {
            if known < u64::from(count) {
                return Ok(known.to_string());
            }
            if let Some(guards) = &mut f.guards {
                guards.push("false".to_owned());
            }
            return Ok(count.saturating_sub(1).to_string());
        }
        let kind = self.kind_of(self.ty_of(f, index)?)?;
        let index = self.value(f, index)?;
        self.in_range(f, kind, &index, &format!("{count}u"), &format!("{}u", count.saturating_sub(1)))
    }

    /// An index below `count`: one beyond it is moved to the last element, or what uses it does not happen.
    pub(super) fn in_range(
        &mut self,
        f: &mut Body<'m>,
        kind: Scalar,
        index: &str,
        count: &str,
        last: &str,
    ) -> Result<String> {
        let index = match kind {
            Scalar::U32 | Scalar::U64 => index.to_owned(),
            Scalar::I64 => format!("(u64){index}"),
            _ => format!("(u32){index}"),
        };
        if let Some(guards) = &mut f.guards {
            guards.push(format!("{index} < {count}"));
            return Ok(index);
        }
        let helper = self.clamp_helper(kind)?;
        Ok(format!("{helper}({index}, {last})"))
    }

    fn relational(&mut self, function: RelationalFunction, ty: Ty, value: &str) -> Result<String> {
        match (function, ty) {
            (RelationalFunction::All | RelationalFunction::Any, Ty::Scalar(_)) => Ok(value.to_owned()),
            (RelationalFunction::All, Ty::Vector(size, _)) => self.fold_bool("all", "&&", size, value),
            (RelationalFunction::Any, Ty::Vector(size, _)) => self.fold_bool("any", "||", size, value),
            (RelationalFunction::IsNan, Ty::Scalar(kind)) => self.is_nan(kind, value),
            (RelationalFunction::IsInf, Ty::Scalar(kind)) => self.is_infinite(kind, value),
            _ => self.unsupported("this test of numbers"),
        }
    }

    fn unary(&mut self, op: UnaryOperator, ty: Ty, value: &str) -> Result<String> {
        let name = if op == UnaryOperator::Negate { "neg" } else { "not" };
        self.map(name, ty, &[(ty, value)], &move |writer, kind, x| match (op, kind) {
            (UnaryOperator::Negate, _) => writer.negate(kind, &x[0]),
            (UnaryOperator::BitwiseNot, Scalar::I16 | Scalar::U16) => Ok(format!("(({})(~{}))", kind.name(), x[0])),
            (UnaryOperator::LogicalNot, _) | (_, Scalar::Bool) => Ok(format!("(!{})", x[0])),
            (UnaryOperator::BitwiseNot, _) => Ok(format!("(~{})", x[0])),
        })
    }

    fn swizzle(&mut self, from: u32, kind: Scalar, pattern: &[SwizzleComponent], vector: &str) -> Result<String> {
        let to = pattern.len() as u32;
        let from_name = self.type_name(Ty::Vector(from, kind))?;
        let letters: Vec<&str> = pattern.iter().filter_map(|part| COMPONENTS.get(*part as usize).copied()).listed();
        let helper = format!("cantus_{}_{from_name}", letters.concat());
        let to_name = self.type_name(Ty::Vector(to, kind))?;
        let make = self.constructor(to, kind, &vec![1; to as usize])?;
        let parts: Vec<String> = letters.iter().map(|letter| format!("v.{letter}")).listed();
        self.helper(&helper, |_| {
            Ok(format!("{to_name} {helper}({from_name} v) {{ return {make}({}); }}", parts.join(", ")))
        })?;
        Ok(format!("{helper}({vector})"))
    }
}

pub(super) fn constant_index(text: &str) -> Option<usize> {
    text.parse().ok()
}

/// The value of an index that is known when translating; negative ones count as beyond the end.
pub(super) fn known_index(f: &Body<'_>, index: Handle<Expression>) -> Option<u64> {
    match f.function.expressions[index] {
        Expression::Literal(Literal::U32(value)) => Some(u64::from(value)),
        Expression::Literal(Literal::I32(value)) => Some(u64::from(value as u32)),
        Expression::ZeroValue(_) => Some(0),
        _ => None,
    }
}

//! Builtins and conversions of float32, each by functions of the library, or written out. `body` calls it for each builtin that takes or gives float32.
//! Most become a call of the library for each component; products of vectors are written out from the first term to the last. What is missing here is
//! refused, never left to a device.

use naga::{BinaryOperator as Op, Expression, Handle, Literal, MathFunction as F, Scalar, ScalarKind, VectorSize};

use super::body::{Body, Form};
use super::{Outcome, refuse};
use cantus_base::listed::Listed;

type Value = Handle<Expression>;

/// The function of the library that takes a builtin's place, component by component.
fn of_library(fun: F) -> Option<&'static str> {
    Some(match fun {
        F::Cos => "float_cos",
        F::Cosh => "float_cosh",
        F::Sin => "float_sin",
        F::Sinh => "float_sinh",
        F::Tan => "float_tan",
        F::Tanh => "float_tanh",
        F::Acos => "float_acos",
        F::Asin => "float_asin",
        F::Atan => "float_atan",
        F::Atan2 => "float_atan2",
        F::Asinh => "float_asinh",
        F::Acosh => "float_acosh",
        F::Atanh => "float_atanh",
        F::Radians => "to_radians",
        F::Degrees => "to_degrees",
        F::Fract => "fraction",
        F::Ldexp => "scale",
        F::Exp => "float_exp",
        F::Exp2 => "float_exp2",
        F::Log => "float_log",
        F::Log2 => "float_log2",
        F::Pow => "float_power",
        F::Sign => "float_sign",
        F::Fma => "fused",
        F::Mix => "blend",
        F::Step => "edge_step",
        F::SmoothStep => "smooth_edge",
        F::Sqrt => "square_root",
        F::InverseSqrt => "inverse_square_root",
        F::QuantizeToF16 => "quantize",
        _ => return None,
    })
}

/// The function of the library that packs a component, how many there are, and of how many bits.
fn packing(fun: F) -> Option<(&'static str, u32, u32)> {
    Some(match fun {
        F::Pack4x8snorm => ("snorm8", 4, 8),
        F::Pack4x8unorm => ("unorm8", 4, 8),
        F::Pack2x16snorm => ("snorm16", 2, 16),
        F::Pack2x16unorm => ("unorm16", 2, 16),
        F::Pack2x16float => ("half_bits", 2, 16),
        _ => return None,
    })
}

fn unpacking(fun: F) -> Option<(&'static str, u32, u32)> {
    Some(match fun {
        F::Unpack4x8snorm => ("from_snorm8", 4, 8),
        F::Unpack4x8unorm => ("from_unorm8", 4, 8),
        F::Unpack2x16snorm => ("from_snorm16", 2, 16),
        F::Unpack2x16unorm => ("from_unorm16", 2, 16),
        F::Unpack2x16float => ("from_half", 2, 16),
        _ => return None,
    })
}

impl Body<'_, '_> {
    /// A builtin that takes or gives float32.
    pub(super) fn math(&mut self, old: Value, fun: F, operands: &[Value]) -> Outcome<Value> {
        let result = self.form(old);
        // `ldexp` has integers beside its floats.
        let forms: Vec<Option<Form>> = operands.iter().map(|&operand| self.operand_form(operand)).listed();
        let values = operands.iter().map(|&operand| self.get(operand)).try_listed()?;
        let pairs: Vec<(Value, Option<Form>)> = values.iter().copied().zip(forms.iter().copied()).listed();
        let (Some(&value), form) = (values.first(), forms.first().copied().flatten().unwrap_or(Form::Scalar)) else {
            return refuse("a builtin without arguments", self.span);
        };
        let second = values.get(1).copied().unwrap_or(value);
        let third = values.get(2).copied().unwrap_or(value);
        if let Some((name, count, width)) = packing(fun) {
            return self.packed(name, value, count, width);
        }
        if let Some((name, count, width)) = unpacking(fun) {
            return self.unpacked(name, value, count, width);
        }
        if let Some(name) = of_library(fun) {
            return self.each(name, &pairs, result.unwrap_or(form));
        }
        Ok(match fun {
            F::Abs | F::Transpose => self.emit(math(fun, value)),
            F::Floor | F::Ceil | F::Trunc | F::Round => {
                let whole = self.emit(math(fun, value));
                self.flushed(whole, form)
            }
            F::Min => self.extreme(Op::Less, value, second, form),
            F::Max => self.extreme(Op::Greater, value, second, form),
            F::Clamp => self.clamped(value, second, third, form),
            F::Saturate => {
                let (zero, one) = (self.splat(Literal::F32(0.0), form), self.splat(Literal::F32(1.0), form));
                self.clamped(value, zero, one, form)
            }
            F::Dot => self.dot(value, second, form),
            F::Cross => self.cross(value, second),
            F::Length => self.length(value, form)?,
            F::Distance => {
                let difference = self.rounded(Op::Subtract, value, second, form);
                self.length(difference, form)?
            }
            F::Normalize => {
                let length = self.length(value, form)?;
                self.each("divide", &[(value, Some(form)), (length, Some(Form::Scalar))], form)?
            }
            F::FaceForward => {
                let along = self.dot(second, third, form);
                let zero = self.literal(Literal::F32(0.0));
                let before = self.compared(Op::Less, along, zero, Form::Scalar);
                let turned = self.negated(value, form);
                self.emit(Expression::Select { condition: before, accept: value, reject: turned })
            }
            F::Reflect => {
                let along = self.dot(second, value, form);
                let two = self.literal(Literal::F32(2.0));
                let twice = self.rounded(Op::Multiply, two, along, Form::Scalar);
                self.moved(value, twice, second, form)
            }
            F::Refract => self.refracted(value, second, third, form)?,
            F::Determinant => {
                let Form::Matrix(size, _) = form else { return refuse("a determinant of no matrix", self.span) };
                let columns = self.columns(value, size);
                let rows: Vec<u32> = (0..size as u32).listed();
                self.determinant(&columns, &rows)
            }
            _ => return refuse(&format!("the builtin {fun:?}"), self.span),
        })
    }

    fn operand_form(&self, operand: Value) -> Option<Form> {
        self.form(operand).or(match *self.inner(operand) {
            naga::TypeInner::Vector { size, .. } => Some(Form::Vector(size)),
            _ => None,
        })
    }

    fn clamped(&mut self, value: Value, low: Value, high: Value, form: Form) -> Value {
        let above = self.extreme(Op::Greater, value, low, form);
        self.extreme(Op::Less, above, high, form)
    }

    fn length(&mut self, value: Value, form: Form) -> Outcome<Value> {
        if form == Form::Scalar {
            return Ok(self.emit(math(F::Abs, value)));
        }
        let square = self.dot(value, value, form);
        self.call("square_root", vec![square])
    }

    /// a - factor * b
    fn moved(&mut self, a: Value, factor: Value, b: Value, form: Form) -> Value {
        let factor = match form {
            Form::Vector(size) => self.emit(Expression::Splat { size, value: factor }),
            _ => factor,
        };
        let step = self.rounded(Op::Multiply, factor, b, form);
        self.rounded(Op::Subtract, a, step, form)
    }

    fn cross(&mut self, a: Value, b: Value) -> Value {
        let form = Some(Form::Vector(VectorSize::Tri));
        let parts = [(1, 2), (2, 0), (0, 1)].map(|(i, j)| {
            let mut product = |left, right| {
                let (left, right) = (self.component(a, form, left), self.component(b, form, right));
                self.rounded(Op::Multiply, left, right, Form::Scalar)
            };
            let (first, second) = (product(i, j), product(j, i));
            self.rounded(Op::Subtract, first, second, Form::Scalar)
        });
        self.vector_of(Scalar::F32, parts.to_vec())
    }

    /// Computes k = 1 - r^2 (1 - (n.i)^2), and returns zero where k is negative, else r i - (r n.i + sqrt k) n.
    fn refracted(&mut self, incident: Value, normal: Value, ratio: Value, form: Form) -> Outcome<Value> {
        let one = self.literal(Literal::F32(1.0));
        let zero = self.literal(Literal::F32(0.0));
        let scalar = Form::Scalar;
        let along = self.dot(normal, incident, form);
        let square = self.rounded(Op::Multiply, along, along, scalar);
        let across = self.rounded(Op::Subtract, one, square, scalar);
        let ratios = self.rounded(Op::Multiply, ratio, ratio, scalar);
        let bent = self.rounded(Op::Multiply, ratios, across, scalar);
        let k = self.rounded(Op::Subtract, one, bent, scalar);
        let root = self.call("square_root", vec![k])?;
        let factor = self.rounded(Op::Multiply, ratio, along, scalar);
        let factor = self.rounded(Op::Add, factor, root, scalar);
        let scale = match form {
            Form::Vector(size) => self.emit(Expression::Splat { size, value: ratio }),
            _ => ratio,
        };
        let straight = self.rounded(Op::Multiply, scale, incident, form);
        let refracted = self.moved(straight, factor, normal, form);
        let total = self.compared(Op::Less, k, zero, scalar);
        let nothing = self.splat(Literal::F32(0.0), form);
        Ok(self.emit(Expression::Select { condition: total, accept: nothing, reject: refracted }))
    }

    /// Expands along the first of the remaining columns, with alternating signs.
    fn determinant(&mut self, columns: &[Value], rows: &[u32]) -> Value {
        let Some((&first, rest)) = columns.split_first() else { return self.literal(Literal::F32(1.0)) };
        let mut sum = None;
        for (place, &row) in rows.iter().enumerate() {
            let factor = self.emit(Expression::AccessIndex { base: first, index: row });
            let term = if rest.is_empty() {
                factor
            } else {
                let others: Vec<u32> = rows.iter().copied().filter(|&other| other != row).listed();
                let minor = self.determinant(rest, &others);
                self.rounded(Op::Multiply, factor, minor, Form::Scalar)
            };
            let op = if place % 2 == 0 { Op::Add } else { Op::Subtract };
            sum = Some(match sum {
                Some(sum) => self.rounded(op, sum, term, Form::Scalar),
                None => term,
            });
        }
        sum.unwrap_or(first)
    }

    fn packed(&mut self, name: &str, value: Value, count: u32, width: u32) -> Outcome<Value> {
        let mut word = None;
        for index in 0..count {
            let component = self.emit(Expression::AccessIndex { base: value, index });
            let bits = self.call(name, vec![component])?;
            word = Some(match word {
                None => bits,
                Some(word) => {
                    let by = self.literal(Literal::U32(index * width));
                    let moved = self.emit(Expression::Binary { op: Op::ShiftLeft, left: bits, right: by });
                    self.emit(Expression::Binary { op: Op::InclusiveOr, left: word, right: moved })
                }
            });
        }
        Ok(word.unwrap_or(value))
    }

    fn unpacked(&mut self, name: &str, word: Value, count: u32, width: u32) -> Outcome<Value> {
        let mut components = Vec::new();
        for index in 0..count {
            let by = self.literal(Literal::U32(index * width));
            let moved = self.emit(Expression::Binary { op: Op::ShiftRight, left: word, right: by });
            components.push(self.call(name, vec![moved])?);
        }
        Ok(self.vector_of(Scalar::F32, components))
    }

    /// The two parts that `frexp` or `modf` gives.
    pub(super) fn pair(&mut self, fun: F, operand: Value) -> Outcome<[Value; 2]> {
        let form = self.form(operand).unwrap_or(Form::Scalar);
        let value = (self.get(operand)?, Some(form));
        Ok(if fun == F::Modf {
            [self.each("modf_fraction", &[value], form)?, self.each("modf_whole", &[value], form)?]
        } else {
            let count = if let Form::Vector(size) = form { size as usize } else { 1 };
            let exponent = self.each_as("frexp_exponent", &[value], count, Scalar::I32)?;
            [self.each("frexp_fraction", &[value], form)?, exponent]
        })
    }

    pub(super) fn conversion(
        &mut self,
        old: Value,
        operand: Value,
        kind: ScalarKind,
        convert: Option<u8>,
    ) -> Outcome<Option<Value>> {
        let library = self.is_library();
        match (self.form(operand), convert, kind) {
            // The library looks at bits that may be NaN's, and says what comes of it.
            (Some(form), None, ScalarKind::Uint | ScalarKind::Sint) if !library => {
                let value = self.get(operand)?;
                let bits = self.seen_bits(value, form);
                Ok(Some(match kind {
                    ScalarKind::Sint => self.emit(Expression::As { expr: bits, kind, convert: None }),
                    _ => bits,
                }))
            }
            (Some(form @ (Form::Scalar | Form::Vector(_))), Some(4), ScalarKind::Uint | ScalarKind::Sint) => {
                let value = (self.get(operand)?, Some(form));
                let count = if let Form::Vector(size) = form { size as usize } else { 1 };
                let (name, scalar) =
                    if kind == ScalarKind::Uint { ("to_u32", Scalar::U32) } else { ("to_i32", Scalar::I32) };
                Ok(Some(self.each_as(name, &[value], count, scalar)?))
            }
            (Some(_), Some(width), ScalarKind::Uint | ScalarKind::Sint | ScalarKind::Float) if width != 4 => {
                refuse("a conversion of f32 to 64 or 16 bits", self.span)
            }
            (Some(form @ (Form::Scalar | Form::Vector(_))), Some(_), ScalarKind::Bool) => {
                let value = self.get(operand)?;
                let zero = self.splat(Literal::F32(0.0), form);
                Ok(Some(self.compared(Op::NotEqual, value, zero, form)))
            }
            (None, _, ScalarKind::Float) => {
                let number = self.copied(old)?;
                let (Some(number), Some(form), None) = (number, self.form(old), convert) else { return Ok(number) };
                Ok(Some(self.flushed(number, form)))
            }
            _ => self.copied(old),
        }
    }
}

fn math(fun: F, arg: Value) -> Expression {
    Expression::Math { fun, arg, arg1: None, arg2: None, arg3: None }
}

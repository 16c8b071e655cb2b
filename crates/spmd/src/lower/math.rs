//! Builtin functions on numbers. `expression` calls `math` for each builtin on numbers. One operation where the executor has it, else WGSL's formula in the
//! order of the specification, so results are those of kernels compiled ahead, which share it. A builtin that is missing is refused with its place.

use naga::{Expression, Handle, MathFunction};

use super::super::bytecode::{Compare, Float, Float2, Int, Int2, Op};
use super::builder::Operand;
use super::types::Ty;
use super::{Lowering, Result};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

impl Lowering<'_, '_> {
    pub(super) fn math(
        &mut self,
        function: MathFunction,
        first: Handle<Expression>,
        others: [Option<Handle<Expression>>; 3],
    ) -> Result<Vec<Operand>> {
        use MathFunction as F;
        let kind = self.kind(first)?;
        let x = self.scalars(first)?;
        let more: Vec<_> = others.into_iter().flatten().map(|other| self.scalars(other)).try_listed()?;
        let argument = |place: usize| more.get(place).map_or(&[] as &[Operand], |scalars| scalars);
        let (y, z) = (argument(0), argument(1));
        if let Some(op) = of_one_float(function, kind) {
            return Ok(x.iter().map(|x| self.float1(kind, op, *x)).listed());
        }
        if let Some(op) = of_two(function) {
            return Ok(x.iter().zip(y).map(|(x, y)| self.arithmetic(kind, op, *x, *y)).listed());
        }
        if let Some(op) = bit_operation(function, kind) {
            if matches!(kind, Scalar::I16 | Scalar::U16) {
                return self.unsupported("bit counts of 16-bit integers");
            }
            return Ok(x.iter().map(|x| self.int1(kind, op, *x)).listed());
        }
        Ok(match function {
            F::Abs if kind.is_signed() => x.iter().map(|x| self.int1(kind, Int::Abs, *x)).listed(),
            F::Sign if kind.is_signed() => x.iter().map(|x| self.int1(kind, Int::Sign, *x)).listed(),
            F::Abs => x.to_vec(),
            F::Sign => return self.unsupported("sign of unsigned numbers"),
            F::Clamp => zip3(&x, y, z, |x, low, high| {
                let x = self.arithmetic(kind, Float2::Max, x, low);
                self.arithmetic(kind, Float2::Min, x, high)
            }),
            F::Saturate => x.iter().map(|x| self.saturate(kind, *x)).listed(),
            F::Radians | F::Degrees => {
                let factor = if function == F::Radians { 1_f64.to_radians() } else { 1_f64.to_degrees() };
                let factor = self.real(kind, factor);
                x.iter().map(|x| self.arithmetic(kind, Float2::Mul, *x, factor)).listed()
            }
            F::Modf => self.modf(kind, &x),
            F::Frexp => self.frexp(kind, &x),
            F::Fma => zip3(&x, y, z, |x, y, z| self.fma(kind, x, y, z)),
            F::Mix => self.mix(kind, &x, y, z)?,
            F::Step => self.step(kind, &x, y),
            F::SmoothStep => zip3(&x, y, z, |low, high, x| self.smooth_step(kind, low, high, x)),
            F::Dot => vec![self.dot(kind, &x, y)],
            F::Cross => self.cross(kind, &x, y),
            F::Length => vec![self.length(kind, &x)],
            F::Distance => {
                let apart = self.differences(kind, &x, y);
                vec![self.length(kind, &apart)]
            }
            F::Normalize => {
                let length = self.length(kind, &x);
                x.iter().map(|x| self.arithmetic(kind, Float2::Div, *x, length)).listed()
            }
            F::FaceForward => self.face_forward(kind, &x, y, z),
            F::Reflect => self.reflect(kind, &x, y),
            F::Refract => {
                let ratio = self.known(z.first().copied(), "this refract")?;
                self.refract(kind, &x, y, ratio)
            }
            F::Transpose => match self.types.plain(self.ty(first)?) {
                Ty::Matrix(columns, rows, _) => transposed(&x, columns as usize, rows as usize),
                _ => return self.unsupported("transpose of this type"),
            },
            F::Determinant if matches!(x.len(), 4 | 9 | 16) => vec![self.determinant(kind, &x)],
            F::Determinant => return self.unsupported("determinant of this type"),
            F::ExtractBits => self.bit_field(kind, &x, None, [y, z])?,
            F::InsertBits => self.bit_field(kind, &x, Some(y), [z, argument(2)])?,
            F::Outer | F::Inverse => return self.unsupported(format!("the function {function:?}")),
            _ => {
                let packed = self.packing(function, &x, y)?;
                return self.known(packed, &format!("the function {function:?}"));
            }
        })
    }

    fn differences(&mut self, kind: Scalar, x: &[Operand], y: &[Operand]) -> Vec<Operand> {
        x.iter().zip(y).map(|(x, y)| self.arithmetic(kind, Float2::Sub, *x, *y)).listed()
    }

    fn step(&mut self, kind: Scalar, edges: &[Operand], x: &[Operand]) -> Vec<Operand> {
        let (zero, one) = (self.real(kind, 0.0), self.real(kind, 1.0));
        let step = |(edge, x): (&Operand, &Operand)| {
            let reached = self.compare(kind, Compare::LessEqual, *edge, *x);
            self.builder.select(reached, one, zero)
        };
        edges.iter().zip(x).map(step).listed()
    }

    /// The fractions, then the whole parts.
    fn modf(&mut self, kind: Scalar, x: &[Operand]) -> Vec<Operand> {
        let whole: Vec<Operand> = x.iter().map(|x| self.float1(kind, Float::Trunc, *x)).listed();
        let mut parts = self.differences(kind, x, &whole);
        parts.extend(whole);
        parts
    }

    /// The fractions, then the exponents.
    fn frexp(&mut self, kind: Scalar, x: &[Operand]) -> Vec<Operand> {
        let mut parts: Vec<Operand> = x.iter().map(|x| self.float1(kind, Float::Fraction, *x)).listed();
        for x in x {
            let wide = kind == Scalar::F64;
            let op = if wide { Op::Double(Float::Exponent) } else { Op::Float(Float::Exponent) };
            parts.push(self.builder.unary(op, *x));
        }
        parts
    }

    fn mix(&mut self, kind: Scalar, x: &[Operand], y: &[Operand], weights: &[Operand]) -> Result<Vec<Operand>> {
        let one = self.real(kind, 1.0);
        let weight = |place: usize| weights.get(if weights.len() == 1 { 0 } else { place }).copied();
        let mut mixed = Vec::with_capacity(x.len());
        for (place, (x, y)) in x.iter().zip(y).enumerate() {
            let weight = self.known(weight(place), "this mix")?;
            let rest = self.arithmetic(kind, Float2::Sub, one, weight);
            let x = self.arithmetic(kind, Float2::Mul, *x, rest);
            let y = self.arithmetic(kind, Float2::Mul, *y, weight);
            mixed.push(self.arithmetic(kind, Float2::Add, x, y));
        }
        Ok(mixed)
    }

    fn face_forward(&mut self, kind: Scalar, x: &[Operand], y: &[Operand], z: &[Operand]) -> Vec<Operand> {
        let cosine = self.dot(kind, y, z);
        let zero = self.real(kind, 0.0);
        let away = self.compare(kind, Compare::Less, cosine, zero);
        let facing = |x: &Operand| {
            let negative = self.float1(kind, Float::Neg, *x);
            self.builder.select(away, *x, negative)
        };
        x.iter().map(facing).listed()
    }

    fn reflect(&mut self, kind: Scalar, x: &[Operand], normal: &[Operand]) -> Vec<Operand> {
        let cosine = self.dot(kind, normal, x);
        let two = self.real(kind, 2.0);
        let twice = self.arithmetic(kind, Float2::Mul, two, cosine);
        let reflected = |(x, normal): (&Operand, &Operand)| {
            let across = self.arithmetic(kind, Float2::Mul, twice, *normal);
            self.arithmetic(kind, Float2::Sub, *x, across)
        };
        x.iter().zip(normal).map(reflected).listed()
    }

    /// Some bits of each number, or each number with other bits in their place. The field is an offset and a count.
    fn bit_field(
        &mut self,
        kind: Scalar,
        x: &[Operand],
        bits: Option<&[Operand]>,
        field: [&[Operand]; 2],
    ) -> Result<Vec<Operand>> {
        if kind.is_wide() || matches!(kind, Scalar::I16 | Scalar::U16) {
            return self.unsupported("bit fields of 64-bit and 16-bit integers");
        }
        let [offset, count] = field.map(|scalars| scalars.first().copied());
        let (offset, count) = (self.known(offset, "a bit field")?, self.known(count, "a bit field")?);
        let op = if kind.is_signed() { Op::ExtractSigned } else { Op::ExtractUnsigned };
        Ok(match bits {
            None => x.iter().map(|x| self.builder.ternary(op, [*x, offset, count])).listed(),
            Some(bits) => x.iter().zip(bits).map(|(x, bits)| self.insert_bits(*x, *bits, offset, count)).listed(),
        })
    }

    pub(super) fn saturate(&mut self, kind: Scalar, x: Operand) -> Operand {
        let (zero, one) = (self.real(kind, 0.0), self.real(kind, 1.0));
        let x = self.arithmetic(kind, Float2::Max, x, zero);
        self.arithmetic(kind, Float2::Min, x, one)
    }

    fn fma(&mut self, kind: Scalar, x: Operand, y: Operand, z: Operand) -> Operand {
        if kind == Scalar::F64 {
            return self.builder.ternary(Op::Fma64, [x, y, z]);
        }
        let result = self.builder.ternary(Op::Fma, [x, y, z]);
        self.narrow(kind, result)
    }

    fn smooth_step(&mut self, kind: Scalar, low: Operand, high: Operand, x: Operand) -> Operand {
        let part = self.arithmetic(kind, Float2::Sub, x, low);
        let whole = self.arithmetic(kind, Float2::Sub, high, low);
        let t = self.arithmetic(kind, Float2::Div, part, whole);
        let t = self.saturate(kind, t);
        let (two, three) = (self.real(kind, 2.0), self.real(kind, 3.0));
        let twice = self.arithmetic(kind, Float2::Mul, two, t);
        let factor = self.arithmetic(kind, Float2::Sub, three, twice);
        let square = self.arithmetic(kind, Float2::Mul, t, t);
        self.arithmetic(kind, Float2::Mul, square, factor)
    }

    /// Euclidean length; the size of a scalar.
    fn length(&mut self, kind: Scalar, x: &[Operand]) -> Operand {
        if let [x] = x {
            return self.float1(kind, Float::Abs, *x);
        }
        let square = self.dot(kind, x, x);
        self.float1(kind, Float::Sqrt, square)
    }

    fn cross(&mut self, kind: Scalar, x: &[Operand], y: &[Operand]) -> Vec<Operand> {
        let (&[x0, x1, x2], &[y0, y1, y2]) = (x, y) else { return Vec::new() };
        [(x1, y2, x2, y1), (x2, y0, x0, y2), (x0, y1, x1, y0)].map(|(a, b, c, d)| self.minor(kind, a, b, c, d)).to_vec()
    }

    /// `a * b - c * d`.
    fn minor(&mut self, kind: Scalar, a: Operand, b: Operand, c: Operand, d: Operand) -> Operand {
        let left = self.arithmetic(kind, Float2::Mul, a, b);
        let right = self.arithmetic(kind, Float2::Mul, c, d);
        self.arithmetic(kind, Float2::Sub, left, right)
    }

    fn refract(&mut self, kind: Scalar, x: &[Operand], normal: &[Operand], ratio: Operand) -> Vec<Operand> {
        let (zero, one) = (self.real(kind, 0.0), self.real(kind, 1.0));
        let cosine = self.dot(kind, normal, x);
        let square = self.arithmetic(kind, Float2::Mul, cosine, cosine);
        let sine = self.arithmetic(kind, Float2::Sub, one, square);
        let ratio_square = self.arithmetic(kind, Float2::Mul, ratio, ratio);
        let bent = self.arithmetic(kind, Float2::Mul, ratio_square, sine);
        let k = self.arithmetic(kind, Float2::Sub, one, bent);
        let reflects = self.compare(kind, Compare::Less, k, zero);
        let root = self.float1(kind, Float::Sqrt, k);
        let along = self.arithmetic(kind, Float2::Mul, ratio, cosine);
        let factor = self.arithmetic(kind, Float2::Add, along, root);
        x.iter()
            .zip(normal)
            .map(|(x, normal)| {
                let straight = self.arithmetic(kind, Float2::Mul, ratio, *x);
                let aside = self.arithmetic(kind, Float2::Mul, factor, *normal);
                let through = self.arithmetic(kind, Float2::Sub, straight, aside);
                self.builder.select(reflects, zero, through)
            })
            .listed()
    }

    /// Expands along the first column.
    fn determinant(&mut self, kind: Scalar, matrix: &[Operand]) -> Operand {
        if let &[a, b, c, d] = matrix {
            return self.minor(kind, a, d, c, b);
        }
        let side = matrix.len().isqrt();
        let mut sum = None;
        for row in 0..side {
            let rest: Vec<Operand> = (1..side)
                .flat_map(|column| (0..side).filter(move |r| *r != row).map(move |r| column * side + r))
                .map(|at| matrix[at])
                .listed();
            let minor = self.determinant(kind, &rest);
            let term = self.arithmetic(kind, Float2::Mul, matrix[row], minor);
            sum = Some(match sum {
                None => term,
                Some(sum) if row % 2 == 1 => self.arithmetic(kind, Float2::Sub, sum, term),
                Some(sum) => self.arithmetic(kind, Float2::Add, sum, term),
            });
        }
        sum.unwrap_or(Operand::word(0))
    }

    fn insert_bits(&mut self, x: Operand, bits: Operand, offset: Operand, count: Operand) -> Operand {
        let size = Operand::word(32);
        let offset = self.builder.int2(Int2::MinUnsigned, offset, size);
        let room = self.builder.int2(Int2::Sub, size, offset);
        let count = self.builder.int2(Int2::MinUnsigned, count, room);
        // Ones in the field: all ones shifted down, then up. An empty field needs a shift by 32, which there is not.
        let down = self.builder.int2(Int2::Sub, size, count);
        let ones = self.builder.int2(Int2::ShiftRightUnsigned, Operand::word(u32::MAX), down);
        let field = self.builder.int2(Int2::ShiftLeft, ones, offset);
        let is_empty = self.builder.equal(count, Operand::word(0));
        let field = self.builder.select(is_empty, Operand::word(0), field);
        let bits = self.builder.int2(Int2::ShiftLeft, bits, offset);
        let bits = self.builder.and(bits, field);
        let others = self.builder.not(field);
        let kept = self.builder.and(x, others);
        self.builder.or(kept, bits)
    }
}

fn of_one_float(function: MathFunction, kind: Scalar) -> Option<Float> {
    use MathFunction as F;
    Some(match function {
        F::Cos => Float::Cos,
        F::Cosh => Float::Cosh,
        F::Sin => Float::Sin,
        F::Sinh => Float::Sinh,
        F::Tan => Float::Tan,
        F::Tanh => Float::Tanh,
        F::Acos => Float::Acos,
        F::Asin => Float::Asin,
        F::Atan => Float::Atan,
        F::Asinh => Float::Asinh,
        F::Acosh => Float::Acosh,
        F::Atanh => Float::Atanh,
        F::Ceil => Float::Ceil,
        F::Floor => Float::Floor,
        F::Round => Float::Round,
        F::Fract => Float::Fract,
        F::Trunc => Float::Trunc,
        F::Exp => Float::Exp,
        F::Exp2 => Float::Exp2,
        F::Log => Float::Log,
        F::Log2 => Float::Log2,
        F::Sqrt => Float::Sqrt,
        F::InverseSqrt => Float::InverseSqrt,
        F::QuantizeToF16 => Float::RoundHalf,
        F::Abs if kind.is_float() => Float::Abs,
        F::Sign if kind.is_float() => Float::Sign,
        _ => return None,
    })
}

fn of_two(function: MathFunction) -> Option<Float2> {
    use MathFunction as F;
    Some(match function {
        F::Min => Float2::Min,
        F::Max => Float2::Max,
        F::Atan2 => Float2::Atan2,
        F::Pow => Float2::Pow,
        F::Ldexp => Float2::Ldexp,
        _ => return None,
    })
}

fn bit_operation(function: MathFunction, kind: Scalar) -> Option<Int> {
    use MathFunction as F;
    Some(match function {
        F::CountTrailingZeros => Int::TrailingZeros,
        F::CountLeadingZeros => Int::LeadingZeros,
        F::CountOneBits => Int::OneBits,
        F::ReverseBits => Int::Reverse,
        F::FirstTrailingBit => Int::FirstTrailing,
        F::FirstLeadingBit if kind.is_signed() => Int::FirstLeadingSigned,
        F::FirstLeadingBit => Int::FirstLeadingUnsigned,
        _ => return None,
    })
}

fn transposed(x: &[Operand], columns: usize, rows: usize) -> Vec<Operand> {
    (0..rows).flat_map(|row| (0..columns).map(move |column| column * rows + row)).map(|at| x[at]).listed()
}

fn zip3(
    x: &[Operand],
    y: &[Operand],
    z: &[Operand],
    mut f: impl FnMut(Operand, Operand, Operand) -> Operand,
) -> Vec<Operand> {
    x.iter().zip(y).zip(z).map(|((x, y), z)| f(*x, *y, *z)).listed()
}

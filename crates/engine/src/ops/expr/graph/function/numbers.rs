//! Arithmetic, conversions and builtin functions of WGSL as nodes of a graph. What a target would leave open is made explicit.

use naga::{BinaryOperator, MathFunction, ScalarKind};

use super::{Inliner, Item, Lowered, refused};
use crate::graph::{Binary, Compare, Unary, Value};
use crate::tensor::DType;

pub(super) fn dtype(kind: ScalarKind, bytes: u8) -> Lowered<DType> {
    Ok(match (kind, bytes) {
        (ScalarKind::Bool, _) => DType::Bool,
        (ScalarKind::Sint, 4) => DType::I32,
        (ScalarKind::Sint, 8) => DType::I64,
        (ScalarKind::Uint, 4) => DType::U32,
        (ScalarKind::Uint, 8) => DType::U64,
        (ScalarKind::Float, 4) => DType::F32,
        (ScalarKind::Float, 8) => DType::F64,
        _ => return refused(format!("{kind:?} of {bytes} bytes")),
    })
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64)
}

fn is_signed(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::I64)
}

impl Inliner<'_> {
    pub(super) fn converted(&mut self, x: Value, kind: ScalarKind, convert: Option<u8>) -> Lowered<Value> {
        let from = self.graph.dtype(x);
        let Some(bytes) = convert else {
            let to = dtype(kind, from.bytes() as u8)?;
            return Ok(self.graph.bitcast(x, to));
        };
        let to = dtype(kind, bytes)?;
        if to == DType::Bool && from != DType::Bool {
            let zero = self.graph.constant(0, from);
            return Ok(self.graph.compare(Compare::Ne, x, zero));
        }
        if is_float(from) && !is_float(to) {
            // As naga has it: NaN is 0, and what is out of range the nearest that a float holds.
            let (low, high) = match to {
                DType::I32 if from == DType::F32 => (-2_147_483_648.0, 2_147_483_520.0),
                DType::I32 => (-2_147_483_648.0, 2_147_483_647.0),
                DType::U32 if from == DType::F32 => (0.0, 4_294_967_040.0),
                DType::U32 => (0.0, 4_294_967_295.0),
                DType::I64 if from == DType::F32 => (-9_223_372_036_854_775_808.0, 9_223_371_487_098_961_920.0),
                DType::I64 => (-9_223_372_036_854_775_808.0, 9_223_372_036_854_774_784.0),
                _ if from == DType::F32 => (0.0, 18_446_742_974_197_923_840.0),
                _ => (0.0, 18_446_744_073_709_549_568.0),
            };
            let [zero, low, high] = [0.0, low, high].map(|number| self.graph.float(number, from));
            let nan = self.graph.compare(Compare::Ne, x, x);
            let number = self.graph.select(nan, zero, x);
            let above = self.graph.binary(Binary::Maximum, number, low);
            let within = self.graph.binary(Binary::Minimum, above, high);
            return Ok(self.graph.convert(within, to));
        }
        Ok(self.graph.convert(x, to))
    }

    /// Divides integers by a divisor that targets accept: x / 0 is x, and so is the least number by -1.
    fn divided(&mut self, op: Binary, x: Value, y: Value) -> Value {
        let dtype = self.graph.dtype(x);
        let (zero, one) = (self.graph.integer(0, dtype), self.graph.integer(1, dtype));
        let mut unfit = self.graph.compare(Compare::Eq, y, zero);
        if is_signed(dtype) {
            let least = if dtype == DType::I64 { i64::MIN } else { i64::from(i32::MIN) };
            let (minus, least) = (self.graph.integer(-1, dtype), self.graph.integer(least, dtype));
            let by_minus = self.graph.compare(Compare::Eq, y, minus);
            let of_least = self.graph.compare(Compare::Eq, x, least);
            let overflow = self.graph.binary(Binary::And, by_minus, of_least);
            unfit = self.graph.binary(Binary::Or, unfit, overflow);
        }
        let divisor = self.graph.select(unfit, one, y);
        self.graph.binary(op, x, divisor)
    }

    pub(super) fn binary(&mut self, op: BinaryOperator, x: Value, y: Value) -> Lowered<Value> {
        let dtype = self.graph.dtype(x);
        let compare = match op {
            BinaryOperator::Equal => Some(Compare::Eq),
            BinaryOperator::NotEqual => Some(Compare::Ne),
            BinaryOperator::Less => Some(Compare::Lt),
            BinaryOperator::LessEqual => Some(Compare::Le),
            BinaryOperator::Greater => Some(Compare::Gt),
            BinaryOperator::GreaterEqual => Some(Compare::Ge),
            _ => None,
        };
        if let Some(compare) = compare {
            return Ok(self.graph.compare(compare, x, y));
        }
        let plain = match op {
            BinaryOperator::Divide if !is_float(dtype) => return Ok(self.divided(Binary::Divide, x, y)),
            BinaryOperator::Modulo if !is_float(dtype) => return Ok(self.divided(Binary::Remainder, x, y)),
            BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight => {
                let op = if op == BinaryOperator::ShiftLeft { Binary::ShiftLeft } else { Binary::ShiftRight };
                let by = self.graph.convert(y, dtype);
                let mask = self.graph.integer(8 * dtype.bytes() as i64 - 1, dtype);
                let by = self.graph.binary(Binary::And, by, mask);
                return Ok(self.graph.binary(op, x, by));
            }
            BinaryOperator::Add => Binary::Add,
            BinaryOperator::Subtract => Binary::Subtract,
            BinaryOperator::Multiply => Binary::Multiply,
            BinaryOperator::Divide => Binary::Divide,
            BinaryOperator::Modulo => Binary::Remainder,
            BinaryOperator::And | BinaryOperator::LogicalAnd => Binary::And,
            BinaryOperator::InclusiveOr | BinaryOperator::LogicalOr => Binary::Or,
            BinaryOperator::ExclusiveOr => Binary::Xor,
            _ => return refused("such an operator"),
        };
        Ok(self.graph.binary(plain, x, y))
    }

    pub(super) fn math(&mut self, fun: MathFunction, x: &Item, more: &[Item]) -> Lowered<Item> {
        let second = || more.first().map_or_else(|| refused("an argument"), Ok);
        let third = || more.get(1).map_or_else(|| refused("an argument"), Ok);
        let plain = match fun {
            MathFunction::Abs => Some(Unary::Abs),
            MathFunction::Floor => Some(Unary::Floor),
            MathFunction::Ceil => Some(Unary::Ceil),
            MathFunction::Round => Some(Unary::RoundEven),
            MathFunction::Sqrt => Some(Unary::Sqrt),
            MathFunction::InverseSqrt => Some(Unary::Rsqrt),
            MathFunction::Exp => Some(Unary::Exp),
            MathFunction::Log => Some(Unary::Log),
            MathFunction::Sin => Some(Unary::Sine),
            MathFunction::Cos => Some(Unary::Cosine),
            MathFunction::Tanh => Some(Unary::Tanh),
            MathFunction::CountOneBits => Some(Unary::Popcnt),
            MathFunction::CountLeadingZeros => Some(Unary::LeadingZeros),
            _ => None,
        };
        if let Some(op) = plain {
            return Ok(x.each(&mut |x| match (op, self.graph.dtype(x)) {
                (Unary::Abs, DType::U32 | DType::U64) => x,
                _ => self.graph.unary(op, x),
            }));
        }
        let pair = match fun {
            MathFunction::Min => Some(Binary::Minimum),
            MathFunction::Max => Some(Binary::Maximum),
            MathFunction::Pow => Some(Binary::Power),
            MathFunction::Atan2 => Some(Binary::Atan2),
            _ => None,
        };
        if let Some(op) = pair {
            return x.with(second()?, &mut |x, y| Ok(self.graph.binary(op, x, y)));
        }
        match fun {
            MathFunction::Clamp => {
                let low = x.with(second()?, &mut |x, y| Ok(self.graph.binary(Binary::Maximum, x, y)))?;
                low.with(third()?, &mut |x, y| Ok(self.graph.binary(Binary::Minimum, x, y)))
            }
            MathFunction::Fma => {
                let product = x.with(second()?, &mut |x, y| Ok(self.graph.binary(Binary::Multiply, x, y)))?;
                product.with(third()?, &mut |x, y| Ok(self.graph.binary(Binary::Add, x, y)))
            }
            MathFunction::Trunc => Ok(x.each(&mut |x| {
                let zero = self.graph.float(0.0, self.graph.dtype(x));
                let below = self.graph.compare(Compare::Lt, x, zero);
                let (up, down) = (self.graph.unary(Unary::Ceil, x), self.graph.unary(Unary::Floor, x));
                self.graph.select(below, up, down)
            })),
            MathFunction::Sign => Ok(x.each(&mut |x| {
                let dtype = self.graph.dtype(x);
                let [zero, one, minus] = [0.0, 1.0, -1.0].map(|number| self.graph.float(number, dtype));
                let above = self.graph.compare(Compare::Gt, x, zero);
                let below = self.graph.compare(Compare::Lt, x, zero);
                let other = self.graph.select(below, minus, zero);
                self.graph.select(above, one, other)
            })),
            MathFunction::Exp2 => Ok(x.each(&mut |x| {
                let scale = self.graph.float(std::f64::consts::LN_2, self.graph.dtype(x));
                let scaled = self.graph.binary(Binary::Multiply, x, scale);
                self.graph.unary(Unary::Exp, scaled)
            })),
            MathFunction::Log2 => Ok(x.each(&mut |x| {
                let scale = self.graph.float(std::f64::consts::LOG2_E, self.graph.dtype(x));
                let log = self.graph.unary(Unary::Log, x);
                self.graph.binary(Binary::Multiply, log, scale)
            })),
            MathFunction::Dot => {
                let products = x.with(second()?, &mut |x, y| Ok(self.graph.binary(Binary::Multiply, x, y)))?;
                let mut flat = Vec::new();
                products.flattened(&mut flat);
                let mut sum = None;
                for part in flat {
                    let part = part.one()?;
                    sum = Some(sum.map_or(part, |sum| self.graph.binary(Binary::Add, sum, part)));
                }
                sum.map_or_else(|| refused("a product of nothing"), |sum| Ok(Item::One(sum)))
            }
            MathFunction::Tan => Ok(x.each(&mut |x| {
                let (sine, cosine) = (self.graph.unary(Unary::Sine, x), self.graph.unary(Unary::Cosine, x));
                self.graph.binary(Binary::Divide, sine, cosine)
            })),
            MathFunction::Atan => Ok(x.each(&mut |x| {
                let one = self.graph.float(1.0, self.graph.dtype(x));
                self.graph.binary(Binary::Atan2, x, one)
            })),
            MathFunction::Asin | MathFunction::Acos => Ok(x.each(&mut |x| {
                // The other leg by (1 - x) (1 + x), which keeps its digits near 1.
                let one = self.graph.float(1.0, self.graph.dtype(x));
                let less = self.graph.binary(Binary::Subtract, one, x);
                let more = self.graph.binary(Binary::Add, one, x);
                let square = self.graph.binary(Binary::Multiply, less, more);
                let leg = self.graph.unary(Unary::Sqrt, square);
                match fun {
                    MathFunction::Asin => self.graph.binary(Binary::Atan2, x, leg),
                    _ => self.graph.binary(Binary::Atan2, leg, x),
                }
            })),
            other => refused(format!("the function {other:?}")),
        }
    }
}

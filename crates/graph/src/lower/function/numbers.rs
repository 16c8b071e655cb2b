//! Arithmetic, conversions and builtin functions of WGSL as nodes of a graph. What a target would leave open is made explicit. The inliner
//! (`lower/function`) comes here for each operation of a function's WGSL. WGSL's rules are written out with nodes: division by zero, shifts, conversions
//! out of range. What has no nodes is refused with its name.

use naga::{BinaryOperator, MathFunction, ScalarKind};

use super::{Inliner, Item, Lowered, refused};
use crate::tensor::DType;
use crate::{Binary, Compare, Unary, Value};

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
        let mut by = |op, x: &Item, y: &Item| x.with(y, &mut |x, y| Ok(self.graph.binary(op, x, y)));
        match fun {
            MathFunction::Min => by(Binary::Minimum, x, second()?),
            MathFunction::Max => by(Binary::Maximum, x, second()?),
            MathFunction::Pow => by(Binary::Power, x, second()?),
            MathFunction::Atan2 => by(Binary::Atan2, x, second()?),
            MathFunction::Clamp => {
                let low = by(Binary::Maximum, x, second()?)?;
                by(Binary::Minimum, &low, third()?)
            }
            MathFunction::Fma => {
                let product = by(Binary::Multiply, x, second()?)?;
                by(Binary::Add, &product, third()?)
            }
            MathFunction::Dot => {
                let products = by(Binary::Multiply, x, second()?)?;
                self.folded(Binary::Add, &products)
            }
            fun => x.with(x, &mut |x, _| self.of_one(fun, x)),
        }
    }

    /// Combines all numbers of an item.
    pub(super) fn folded(&mut self, op: Binary, item: &Item) -> Lowered<Item> {
        let mut all = None;
        for part in item.flattened() {
            let part = part.one()?;
            all = Some(all.map_or(part, |all| self.graph.binary(op, all, part)));
        }
        all.map_or_else(|| refused("a combination of nothing"), |all| Ok(Item::One(all)))
    }

    /// A function of one number.
    fn of_one(&mut self, fun: MathFunction, x: Value) -> Lowered<Value> {
        let dtype = self.graph.dtype(x);
        let plain = match fun {
            MathFunction::Abs if matches!(dtype, DType::U32 | DType::U64) => return Ok(x),
            MathFunction::Abs => Unary::Abs,
            MathFunction::Floor => Unary::Floor,
            MathFunction::Ceil => Unary::Ceil,
            MathFunction::Round => Unary::RoundEven,
            MathFunction::Sqrt => Unary::Sqrt,
            MathFunction::InverseSqrt => Unary::Rsqrt,
            MathFunction::Exp => Unary::Exp,
            MathFunction::Log => Unary::Log,
            MathFunction::Sin => Unary::Sine,
            MathFunction::Cos => Unary::Cosine,
            MathFunction::Tanh => Unary::Tanh,
            MathFunction::CountOneBits => Unary::Popcnt,
            MathFunction::CountLeadingZeros => Unary::LeadingZeros,
            fun => return self.composed(fun, x),
        };
        Ok(self.graph.unary(plain, x))
    }

    /// A function of one number that takes several nodes.
    fn composed(&mut self, fun: MathFunction, x: Value) -> Lowered<Value> {
        let dtype = self.graph.dtype(x);
        Ok(match fun {
            MathFunction::Trunc => {
                let zero = self.graph.float(0.0, dtype);
                let below = self.graph.compare(Compare::Lt, x, zero);
                let (up, down) = (self.graph.unary(Unary::Ceil, x), self.graph.unary(Unary::Floor, x));
                self.graph.select(below, up, down)
            }
            MathFunction::Sign => {
                let [zero, one, minus] = [0.0, 1.0, -1.0].map(|number| self.graph.float(number, dtype));
                let above = self.graph.compare(Compare::Gt, x, zero);
                let below = self.graph.compare(Compare::Lt, x, zero);
                let other = self.graph.select(below, minus, zero);
                self.graph.select(above, one, other)
            }
            MathFunction::Exp2 => {
                let scale = self.graph.float(std::f64::consts::LN_2, dtype);
                let scaled = self.graph.binary(Binary::Multiply, x, scale);
                self.graph.unary(Unary::Exp, scaled)
            }
            MathFunction::Log2 => {
                let scale = self.graph.float(std::f64::consts::LOG2_E, dtype);
                let log = self.graph.unary(Unary::Log, x);
                self.graph.binary(Binary::Multiply, log, scale)
            }
            MathFunction::Tan => {
                let (sine, cosine) = (self.graph.unary(Unary::Sine, x), self.graph.unary(Unary::Cosine, x));
                self.graph.binary(Binary::Divide, sine, cosine)
            }
            MathFunction::Atan => {
                let one = self.graph.float(1.0, dtype);
                self.graph.binary(Binary::Atan2, x, one)
            }
            MathFunction::Asin | MathFunction::Acos => {
                // The other leg by (1 - x) (1 + x), which keeps its digits near 1.
                let one = self.graph.float(1.0, dtype);
                let less = self.graph.binary(Binary::Subtract, one, x);
                let more = self.graph.binary(Binary::Add, one, x);
                let square = self.graph.binary(Binary::Multiply, less, more);
                let leg = self.graph.unary(Unary::Sqrt, square);
                let [y, x] = if fun == MathFunction::Asin { [x, leg] } else { [leg, x] };
                self.graph.binary(Binary::Atan2, y, x)
            }
            other => return refused(format!("the function {other:?}")),
        })
    }
}

//! Builtin functions of constant expressions. Those of floats are computed in float64 and rounded once; errors of WGSL (a domain that is
//! left, a result that has no value) are `None`, so that naga says what is wrong.

use super::super::tree::Operator;
use super::math;
use super::operate::{arithmetic, paired};
use super::types::{Type, common, constructed};
use super::value::{Scalar, Ty, Value, to_half};
use cantus_base::listed::Listed;

/// A call by name.
pub(super) fn call(name: &str, arguments: &[Value]) -> Option<Value> {
    if let Some(value) = packing(name, arguments) {
        return Some(value);
    }
    match (name, arguments) {
        ("select", [reject, accept, condition]) => select(reject, accept, condition),
        ("all" | "any", [value]) => {
            let cells = value.cells()?;
            let cells: Vec<bool> = cells.iter().map(|cell| cell.as_bool()).try_listed()?;
            let result = if name == "all" { cells.iter().all(|&cell| cell) } else { cells.contains(&true) };
            Some(Value::Scalar(Scalar::Bool(result)))
        }
        ("ldexp", [value, exponent]) => {
            let value = floats(value)?;
            paired(&value, exponent, |value, exponent| {
                let (least, most) = match value.ty() {
                    Ty::F16 => (-1000, 16),
                    Ty::F32 => (-1000, 128),
                    _ => (-4000, 1024),
                };
                let exponent = i32::try_from(exponent.as_int()?).ok()?;
                (exponent <= most).then_some(())?;
                value.ty().float(math::scaled(value.as_float()?, exponent.max(least)))
            })
        }
        ("extractBits", [value, offset, count]) => {
            let (offset, count) = (bits(offset)?, bits(count)?);
            concrete(value)?.map(|value| extract(value, offset, count))
        }
        ("insertBits", [value, new, offset, count]) => {
            let (offset, count) = (bits(offset)?, bits(count)?);
            let (value, new) = together(value, new)?;
            paired(&value, &new, |value, new| insert(value, new, offset, count))
        }
        ("transpose", [Value::Matrix { rows, cells }]) => {
            let columns = cells.len() / rows;
            let turned = (0..*rows).flat_map(|row| (0..columns).map(move |column| column * rows + row));
            let cells = turned.map(|at| cells.get(at).copied()).try_listed()?;
            Some(Value::Matrix { rows: columns, cells })
        }
        ("determinant", [Value::Matrix { rows, cells }]) if rows * rows == cells.len() => {
            let ty = cells.first()?.ty();
            let cells: Vec<f64> = cells.iter().map(|cell| cell.as_float()).try_listed()?;
            Some(Value::Scalar(ty.float(determinant(&cells, *rows))?))
        }
        ("frexp", [value]) => {
            let value = floats(value)?;
            let fraction = value.map(|cell| cell.ty().float(math::split(cell.as_float()?).0))?;
            let exponent = value.map(|cell| {
                let ty = if cell.ty() == Ty::Float { Ty::Int } else { Ty::I32 };
                ty.int(math::split(cell.as_float()?).1.into())
            })?;
            Some(Value::Pair("exp", Box::new([fraction, exponent])))
        }
        ("modf", [value]) => {
            let value = floats(value)?;
            let whole = value.map(|cell| cell.ty().float(cell.as_float()?.trunc()))?;
            let fraction = value.map(|cell| {
                let number = cell.as_float()?;
                cell.ty().float(number - number.trunc())
            })?;
            Some(Value::Pair("whole", Box::new([fraction, whole])))
        }
        ("quantizeToF16", [value]) => {
            floats(value)?.coerced(Ty::F32)?.map(|cell| to_half(cell.as_float()?).map(Scalar::F32))
        }
        ("atanh", [value]) => floats(value)?.map(|cell| cell.ty().float(math::atanh(cell.as_float()?))),
        ("sign", [value]) => value.map(|cell| match cell.as_int() {
            Some(whole) => cell.ty().int(whole.signum()),
            None => cell.ty().float(math::sign(cell.as_float()?)),
        }),
        _ => numeric(name, arguments),
    }
}

/// Functions of floats, component by component or of whole vectors.
fn numeric(name: &str, arguments: &[Value]) -> Option<Value> {
    let ty = common(arguments)?;
    let ty = if ty == Ty::Int && !matches!(name, "abs" | "min" | "max" | "clamp" | "dot") { Ty::Float } else { ty };
    let values: Vec<Value> = arguments.iter().map(|value| value.coerced(ty)).try_listed()?;
    if !ty.is_float() {
        return whole(name, &values);
    }
    let one = |apply: fn(f64) -> f64| match values.as_slice() {
        [value] => value.map(|cell| ty.float(apply(cell.as_float()?))),
        _ => None,
    };
    match (name, values.len()) {
        ("abs", 1) => one(f64::abs),
        ("ceil", 1) => one(f64::ceil),
        ("floor", 1) => one(f64::floor),
        ("trunc", 1) => one(f64::trunc),
        ("round", 1) => one(math::round),
        ("fract", 1) => one(|value| value - value.floor()),
        ("saturate", 1) => one(|value| value.clamp(0.0, 1.0)),
        ("sqrt", 1) => one(f64::sqrt),
        ("inverseSqrt", 1) => one(|value| 1.0 / value.sqrt()),
        ("sin", 1) => one(f64::sin),
        ("cos", 1) => one(f64::cos),
        ("tan", 1) => one(f64::tan),
        ("asin", 1) => one(f64::asin),
        ("acos", 1) => one(f64::acos),
        ("atan", 1) => one(f64::atan),
        ("sinh", 1) => one(f64::sinh),
        ("cosh", 1) => one(f64::cosh),
        ("tanh", 1) => one(f64::tanh),
        ("asinh", 1) => one(math::asinh),
        ("acosh", 1) => one(math::acosh),
        ("exp", 1) => one(f64::exp),
        ("exp2", 1) => one(f64::exp2),
        ("log", 1) => one(f64::ln),
        ("log2", 1) => one(f64::log2),
        ("degrees", 1) => one(f64::to_degrees),
        ("radians", 1) => one(f64::to_radians),
        ("min", 2) => each2(&values, ty, f64::min),
        ("max", 2) => each2(&values, ty, f64::max),
        ("step", 2) => each2(&values, ty, |edge, value| if edge <= value { 1.0 } else { 0.0 }),
        ("pow", 2) => each2(&values, ty, f64::powf),
        ("atan2", 2) => each2(&values, ty, f64::atan2),
        ("fma", 3) => each3(&values, ty, |a, b, c| Some(a.mul_add(b, c))),
        ("clamp", 3) => each3(&values, ty, |value, low, high| (low <= high).then(|| value.clamp(low, high))),
        // Where the third is a scalar, it goes with each component.
        ("mix", 3) => each3(&values, ty, |a, b, part| {
            let (left, right) = (a * within(ty, 1.0 - part)?, b * part);
            Some(within(ty, left)? + within(ty, right)?)
        }),
        ("smoothstep", 3) => each3(&values, ty, |low, high, value| {
            let part = ((value - low) / (high - low)).clamp(0.0, 1.0);
            part.is_finite().then_some(part * part * (3.0 - 2.0 * part))
        }),
        _ => geometric(name, &values, ty),
    }
}

/// A number that a function computes on its way: `None` beyond the range of the type, which is an error.
fn within(ty: Ty, number: f64) -> Option<f64> {
    ty.float(number).map(|_| number)
}

/// Functions of whole vectors.
fn geometric(name: &str, values: &[Value], ty: Ty) -> Option<Value> {
    let vector = |at: usize| match values.get(at)? {
        Value::Vector(cells) => cells.iter().map(|cell| cell.as_float()).try_listed(),
        _ => None,
    };
    let number = |at: usize| values.get(at)?.scalar()?.as_float();
    let made = |cells: Vec<f64>| {
        let cells = cells.into_iter().map(|cell| ty.float(cell)).try_listed();
        cells.map(Value::Vector)
    };
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    match (name, values.len()) {
        ("dot", 2) => ty.float(dot(&vector(0)?, &vector(1)?)).map(Value::Scalar),
        ("length", 1) => match &values[0] {
            Value::Scalar(cell) => ty.float(cell.as_float()?.abs()).map(Value::Scalar),
            _ => ty.float(within(ty, dot(&vector(0)?, &vector(0)?))?.sqrt()).map(Value::Scalar),
        },
        ("distance", 2) => {
            let apart: Vec<f64> = match values[0] {
                Value::Scalar(_) => vec![number(0)? - number(1)?],
                _ => {
                    let (a, b) = (vector(0)?, vector(1)?);
                    (a.len() == b.len()).then(|| a.iter().zip(b).map(|(a, b)| a - b).listed())?
                }
            };
            ty.float(within(ty, dot(&apart, &apart))?.sqrt()).map(Value::Scalar)
        }
        ("normalize", 1) => {
            let cells = vector(0)?;
            let length = within(ty, dot(&cells, &cells))?.sqrt();
            made(cells.into_iter().map(|cell| cell / length).listed())
        }
        ("cross", 2) => {
            let (a, b) = (vector(0)?, vector(1)?);
            let ([a0, a1, a2], [b0, b1, b2]) = (a.as_slice(), b.as_slice()) else { return None };
            // Products are values of the type, as in the dot product below: one beyond its range is an error.
            let products = [a1 * b2, a2 * b1, a2 * b0, a0 * b2, a0 * b1, a1 * b0];
            products.into_iter().try_for_each(|product| within(ty, product).map(|_| ()))?;
            made(vec![a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])
        }
        ("reflect", 2) => {
            let (incident, normal) = (vector(0)?, vector(1)?);
            let twice = 2.0 * dot(&normal, &incident);
            ty.float(twice)?;
            made(incident.iter().zip(&normal).map(|(i, n)| i - twice * n).listed())
        }
        ("faceForward", 3) => {
            let (shown, incident, reference) = (vector(0)?, vector(1)?, vector(2)?);
            let along = dot(&reference, &incident);
            ty.float(along)?;
            let keeps = along < 0.0;
            made(shown.into_iter().map(|cell| if keeps { cell } else { -cell }).listed())
        }
        ("refract", 3) => {
            let (incident, normal, ratio) = (vector(0)?, vector(1)?, number(2)?);
            let along = within(ty, dot(&normal, &incident))?;
            let across = within(ty, 1.0 - within(ty, along * along)?)?;
            let rest = within(ty, 1.0 - within(ty, within(ty, ratio * ratio)? * across)?)?;
            if rest < 0.0 {
                return made(vec![0.0; incident.len()]);
            }
            let depth = within(ty, within(ty, ratio * along)? + rest.sqrt())?;
            let bent = |(i, n): (&f64, &f64)| Some(within(ty, ratio * i)? - within(ty, depth * n)?);
            made(incident.iter().zip(&normal).map(bent).try_listed()?)
        }
        _ => None,
    }
}

fn each2(values: &[Value], ty: Ty, apply: fn(f64, f64) -> f64) -> Option<Value> {
    let [a, b] = values else { return None };
    paired(a, b, |a, b| ty.float(apply(a.as_float()?, b.as_float()?)))
}

fn each3(values: &[Value], ty: Ty, apply: impl Fn(f64, f64, f64) -> Option<f64>) -> Option<Value> {
    let [a, b, c] = values else { return None };
    let at = |value: &Value, i: usize| value.cells()?.get(if value.scalar().is_some() { 0 } else { i })?.as_float();
    let compute = |i: usize| ty.float(apply(at(a, i)?, at(b, i)?, at(c, i)?)?);
    Some(match a {
        Value::Scalar(_) => Value::Scalar(compute(0)?),
        Value::Vector(cells) => Value::Vector((0..cells.len()).map(compute).try_listed()?),
        _ => return None,
    })
}

/// Functions of whole numbers that have forms for abstract ones.
fn whole(name: &str, values: &[Value]) -> Option<Value> {
    match (name, values) {
        ("abs", [value]) => value.map(|cell| match cell {
            Scalar::I32(value) => Some(Scalar::I32(value.wrapping_abs())),
            Scalar::Int(value) => Some(Scalar::Int(value.wrapping_abs())),
            _ => cell.ty().int(cell.as_int()?.checked_abs()?),
        }),
        ("min" | "max", [a, b]) => paired(a, b, |a, b| {
            let (x, y) = (a.as_int()?, b.as_int()?);
            a.ty().int(if name == "min" { x.min(y) } else { x.max(y) })
        }),
        ("clamp", [value, low, high]) => {
            let raised = paired(value, low, |a, b| a.ty().int(a.as_int()?.max(b.as_int()?)))?;
            paired(&raised, high, |a, b| a.ty().int(a.as_int()?.min(b.as_int()?)))
        }
        // Concrete sums and products wrap around.
        ("dot", [Value::Vector(a), Value::Vector(b)]) if a.len() == b.len() => {
            let mut sum = a.first()?.ty().zero();
            for (&a, &b) in a.iter().zip(b) {
                sum = arithmetic(Operator::Add, sum, arithmetic(Operator::Multiply, a, b)?)?;
            }
            Some(Value::Scalar(sum))
        }
        _ => None,
    }
}

fn select(reject: &Value, accept: &Value, condition: &Value) -> Option<Value> {
    let (reject, accept) = together(reject, accept)?;
    match condition {
        Value::Scalar(condition) => Some(if condition.as_bool()? { accept } else { reject }),
        Value::Vector(conditions) => {
            let (Value::Vector(reject), Value::Vector(accept)) = (&reject, &accept) else { return None };
            let cells = conditions.iter().zip(reject.iter().zip(accept));
            let cells = cells.map(|(condition, (no, yes))| Some(if condition.as_bool()? { *yes } else { *no }));
            Some(Value::Vector(cells.try_listed()?))
        }
        _ => None,
    }
}

/// Both in the type that they have in common.
fn together(a: &Value, b: &Value) -> Option<(Value, Value)> {
    let ty = a.ty()?.common(b.ty()?)?;
    Some((a.coerced(ty)?, b.coerced(ty)?))
}

/// A number that is to be a float: an abstract integer becomes one.
fn floats(value: &Value) -> Option<Value> {
    match value.ty()? {
        Ty::Int => value.coerced(Ty::Float),
        ty if ty.is_float() => Some(value.clone()),
        _ => None,
    }
}

fn concrete(value: &Value) -> Option<Value> {
    value.coerced(value.ty()?.concrete())
}

/// An offset or a count of bits.
fn bits(value: &Value) -> Option<u32> {
    let value = u32::try_from(value.scalar()?.as_int()?).ok()?;
    (value <= 32).then_some(value)
}

fn word(scalar: Scalar) -> Option<u32> {
    match scalar {
        Scalar::I32(value) => Some(value as u32),
        Scalar::U32(value) => Some(value),
        Scalar::F32(value) => Some(value.to_bits()),
        _ => None,
    }
}

fn from_word(ty: Ty, word: u32) -> Option<Scalar> {
    match ty {
        Ty::I32 => Some(Scalar::I32(word as i32)),
        Ty::U32 => Some(Scalar::U32(word)),
        Ty::F32 => Some(f32::from_bits(word)).filter(|value| value.is_finite()).map(Scalar::F32),
        _ => None,
    }
}

fn extract(value: Scalar, offset: u32, count: u32) -> Option<Scalar> {
    (offset + count <= 32).then_some(())?;
    if count == 0 {
        return from_word(value.ty(), 0);
    }
    let up = word(value)? << (32 - offset - count);
    let down = 32 - count;
    match value {
        Scalar::I32(_) => Some(Scalar::I32((up as i32) >> down)),
        Scalar::U32(_) => Some(Scalar::U32(up >> down)),
        _ => None,
    }
}

fn insert(value: Scalar, new: Scalar, offset: u32, count: u32) -> Option<Scalar> {
    (offset + count <= 32).then_some(())?;
    let ty = value.ty().concrete();
    let (value, new) = (word(value.coerced(ty)?)?, word(new.coerced(ty)?)?);
    let mask = u32::try_from(((1_u64 << count) - 1) << offset).ok()?;
    let shifted = u32::try_from((u64::from(new) << offset) & u64::from(mask)).ok()?;
    matches!(ty, Ty::I32 | Ty::U32).then_some(())?;
    from_word(ty, (value & !mask) | shifted)
}

fn determinant(cells: &[f64], side: usize) -> f64 {
    if side == 1 {
        return cells[0];
    }
    let without = |row: usize| -> Vec<f64> {
        let columns = cells.chunks_exact(side).skip(1);
        columns.flat_map(|column| column.iter().enumerate().filter(move |(at, _)| *at != row).map(|(_, c)| *c)).listed()
    };
    let part = |row: usize| if row.is_multiple_of(2) { cells[row] } else { -cells[row] };
    (0..side).map(|row| part(row) * determinant(&without(row), side - 1)).sum()
}

/// `bitcast` to a type, through 16-bit pieces.
pub(super) fn bitcast(ty: &Type, value: &Value) -> Option<Value> {
    let scalar = ty.scalar()?;
    let value = value.coerced(value.ty()?.concrete())?;
    let mut pieces = Vec::new();
    for &cell in value.cells()? {
        match cell {
            Scalar::F16(value) => pieces.push(half::f16::from_f32(value).to_bits()),
            other => {
                let word = word(other)?;
                pieces.extend([(word & 0xffff) as u16, (word >> 16) as u16]);
            }
        }
    }
    let halves =
        |bits: &u16| Some(Scalar::F16(Some(half::f16::from_bits(*bits)).filter(|half| half.is_finite())?.to_f32()));
    let cells: Vec<Scalar> = if scalar == Ty::F16 {
        pieces.iter().map(halves).try_listed()?
    } else {
        let words = pieces.chunks_exact(2).map(|pair| u32::from(pair[0]) | (u32::from(pair[1]) << 16));
        (pieces.len() % 2 == 0).then_some(())?;
        words.map(|word| from_word(scalar, word)).try_listed()?
    };
    match (ty, cells.as_slice()) {
        (Type::Scalar(_), [one]) => Some(Value::Scalar(*one)),
        (Type::Vector(size, _), cells) if cells.len() == *size => {
            constructed(ty, cells.iter().map(|&cell| Value::Scalar(cell)).listed())
        }
        _ => None,
    }
}

/// The functions that pack and unpack.
fn packing(name: &str, arguments: &[Value]) -> Option<Value> {
    let [value] = arguments else { return None };
    let word = || {
        let value = value.scalar()?.coerced(Ty::U32)?;
        if let Scalar::U32(word) = value { Some(word) } else { None }
    };
    let numbers = |count: usize| {
        let cells = value.cells()?;
        let numbers = cells.iter().map(|cell| cell.coerced(Ty::F32)?.as_float()).try_listed()?;
        (numbers.len() == count).then_some(numbers)
    };
    let wholes = |ty: Ty| {
        let cells = value.cells()?;
        let wholes = cells.iter().map(|cell| cell.coerced(ty)?.as_int()).try_listed()?;
        (wholes.len() == 4).then_some(wholes)
    };
    let packed = |pieces: Vec<u32>, width: u32| {
        let word = pieces.iter().rev().fold(0_u64, |word, piece| (word << width) | u64::from(*piece));
        Value::Scalar(Scalar::U32(word as u32))
    };
    let norm = |count: usize, low: f64, scale: f64, width: u32| {
        let mask = (1_u32 << width) - 1;
        let piece = |number: f64| ((0.5 + scale * number.clamp(low, 1.0)).floor() as i64 as u32) & mask;
        Some(packed(numbers(count)?.into_iter().map(piece).listed(), width))
    };
    let bytes = |signed: bool| {
        let word = word()?;
        let piece = |byte: u8| if signed { f64::from(byte as i8) } else { f64::from(byte) };
        Some(word.to_le_bytes().map(piece).to_vec())
    };
    let singles = |numbers: Vec<f64>| {
        let cells = numbers.into_iter().map(|number| Ty::F32.float(number)).try_listed();
        cells.map(Value::Vector)
    };
    match name {
        "pack4x8snorm" => norm(4, -1.0, 127.0, 8),
        "pack4x8unorm" => norm(4, 0.0, 255.0, 8),
        "pack2x16snorm" => norm(2, -1.0, 32767.0, 16),
        "pack2x16unorm" => norm(2, 0.0, 65535.0, 16),
        "pack2x16float" => {
            // What rounds to the greatest half is beyond the range all the same.
            let is_within = |number: f64| number.abs() <= f64::from(half::f16::MAX);
            let halves = numbers(2)?
                .into_iter()
                .map(|number| is_within(number).then(|| u32::from(half::f16::from_f64(number).to_bits())));
            Some(packed(halves.try_listed()?, 16))
        }
        "pack4xI8" => Some(packed(wholes(Ty::I32)?.into_iter().map(|whole| whole as u32 & 255).listed(), 8)),
        "pack4xU8" => Some(packed(wholes(Ty::U32)?.into_iter().map(|whole| whole as u32 & 255).listed(), 8)),
        "pack4xI8Clamp" => {
            Some(packed(wholes(Ty::I32)?.into_iter().map(|whole| whole.clamp(-128, 127) as u32 & 255).listed(), 8))
        }
        "pack4xU8Clamp" => {
            Some(packed(wholes(Ty::U32)?.into_iter().map(|whole| whole.clamp(0, 255) as u32).listed(), 8))
        }
        "unpack4x8snorm" => singles(bytes(true)?.into_iter().map(|byte: f64| (byte / 127.0).max(-1.0)).listed()),
        "unpack4x8unorm" => singles(bytes(false)?.into_iter().map(|byte: f64| byte / 255.0).listed()),
        "unpack4xI8" => {
            let cells = word()?.to_le_bytes().map(|byte| Scalar::I32(i32::from(byte as i8)));
            Some(Value::Vector(cells.to_vec()))
        }
        "unpack4xU8" => Some(Value::Vector(word()?.to_le_bytes().map(|byte| Scalar::U32(byte.into())).to_vec())),
        "unpack2x16snorm" => {
            let word = word()?;
            let pieces = [word as u16 as i16, (word >> 16) as u16 as i16];
            singles(pieces.map(|piece| (f64::from(piece) / 32767.0).max(-1.0)).to_vec())
        }
        "unpack2x16unorm" => {
            let word = word()?;
            singles([word & 0xffff, word >> 16].map(|piece| f64::from(piece) / 65535.0).to_vec())
        }
        "unpack2x16float" => {
            let word = word()?;
            let pieces = [word as u16, (word >> 16) as u16].map(half::f16::from_bits);
            pieces.iter().all(|half| half.is_finite()).then_some(())?;
            singles(pieces.map(f64::from).to_vec())
        }
        _ => None,
    }
}

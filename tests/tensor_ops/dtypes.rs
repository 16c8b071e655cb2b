//! Every dtype: in and out byte by byte, converted to every other, wrapping, over views that begin inside a word, reduced. The oracles are whole
//! numbers, or float64.

use cantus::ops::{Binary, Expr, Unary};
use cantus::{DType, Engine, Tensor};

use crate::values::{Value, doubles, limits, sampled, supported, tensor_of, values_of};
use crate::{Numbers, by_turns, name};

/// Random elements: integers over their whole range, the limits among them.
pub(crate) fn elements(numbers: &mut Numbers, dtype: DType, count: usize) -> Vec<Value> {
    (0..count)
        .map(|_| match (limits(dtype), dtype) {
            (Some((low, high)), _) => Value::Whole(match numbers.below(8) {
                0 => low,
                1 => high,
                2 => 0,
                3 => i128::from(numbers.below(5) as u32),
                _ => {
                    let wide = ((numbers.below(1 << 30) as i128) << 60) ^ ((numbers.below(1 << 30) as i128) << 30);
                    low + (wide ^ numbers.below(1 << 30) as i128).rem_euclid(high - low + 1)
                }
            }),
            (None, DType::Complex64 | DType::Complex128) => {
                Value::Complex(numbers.float().into(), numbers.float().into())
            }
            _ => Value::Float(numbers.float().into()),
        })
        .map(|value| value.held(dtype))
        .collect()
}

/// The dtypes that a device computes with.
pub(crate) fn dtypes(engine: &Engine) -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(move |dtype| supported(engine, *dtype))
}

#[test]
fn bytes_go_in_and_out_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    for engine in by_turns() {
        for &dtype in DType::ALL {
            for shape in [&[][..], &[0], &[1], &[5], &[3, 7], &[2, 0, 4], &[1, 2, 3, 5]] {
                let what = format!("{dtype}{shape:?} on {}", name(engine));
                let count: usize = shape.iter().product();
                let bytes: Vec<u8> = (0..count * dtype.bytes()).map(|byte| (byte * 37 + 11) as u8).collect();
                let x = engine.tensor_from_bytes(dtype, shape, &bytes).unwrap();
                assert_eq!(x.to_bytes().unwrap(), bytes, "{what}");
                let path = folder.path().join("x.npy");
                x.to_npy(&path).unwrap();
                let again = Tensor::from_npy(engine, &path).unwrap();
                assert_eq!((again.dtype(), again.shape()), (dtype, shape), "{what}");
                assert_eq!(again.to_bytes().unwrap(), bytes, "{what}");
            }
        }
    }
}

#[test]
fn parts_are_read_and_written_at_any_element() {
    for engine in by_turns() {
        let x = engine.tensor(&[1_u8, 2, 3, 4, 5, 6, 7]).unwrap();
        x.write_at(1, &[20_u8, 30, 40, 50]).unwrap();
        x.write_at(6, &[70_u8]).unwrap();
        let mut part = [0_u8; 3];
        x.read_at(4, &mut part).unwrap();
        assert_eq!(
            (x.to_vec::<u8>().unwrap(), part),
            (vec![1, 20, 30, 40, 50, 6, 70], [50, 6, 70]),
            "{}",
            name(engine)
        );
        let y = engine.tensor(&[true, false, true]).unwrap();
        y.write_at(1, &[true]).unwrap();
        assert_eq!(y.to_vec::<bool>().unwrap(), [true; 3]);
        // Any byte but 0 is true.
        let z = engine.tensor_from_bytes(DType::Bool, &[3], &[0, 7, 255]).unwrap();
        assert_eq!(z.to_vec::<bool>().unwrap(), [false, true, true]);
        assert_eq!(z.sum(&[], false).eval().unwrap().item::<u32>().unwrap(), 2);
        let array = ndarray::arr2(&[[true, false], [false, true]]);
        let turned = engine.tensor_from_array(&array.t()).unwrap();
        assert_eq!(turned.to_array::<bool>().unwrap(), array.t().to_owned().into_dyn());
    }
}

/// Converts a number as Rust's `as` does, and for bool returns whether it is not 0.
fn cast(value: Value, to: DType) -> Value {
    let saturated = |x: f64, (low, high): (i128, i128)| {
        // The limits of 64 bits are no float64.
        if x >= high as f64 {
            high
        } else if x <= low as f64 {
            low
        } else {
            x as i128
        }
    };
    match (value, limits(to), to) {
        (Value::Complex(re, im), _, DType::Bool) => Value::Whole(i128::from(re != 0.0 || im != 0.0)),
        (Value::Float(x), _, DType::Bool) => Value::Whole(i128::from(x != 0.0)),
        (Value::Whole(x), Some(_), _) => Value::Whole(x).held(to),
        (Value::Float(x) | Value::Complex(x, _), Some(limits), _) => Value::Whole(saturated(x, limits)),
        (Value::Complex(re, im), None, DType::Complex64 | DType::Complex128) => Value::Complex(re, im).held(to),
        (other, None, DType::Complex64 | DType::Complex128) => Value::Complex(other.real(), 0.0).held(to),
        (other, None, _) => Value::Float(other.real()).held(to),
    }
}

#[test]
fn every_dtype_is_converted_to_every_other() {
    for engine in by_turns() {
        let gpu = engine.selected().device.backend != "cpu";
        for from in dtypes(engine) {
            let mut numbers = Numbers::new(3);
            let mut values = elements(&mut numbers, from, 61);
            if limits(from).is_none() {
                let edges = [0.0, -0.0, 0.5, 1.5, -1.5, 2.5, 127.5, 128.5, 255.9, 256.0, -129.0, 65_535.5, -40_000.0];
                let beyond = [3e9, -3e9, 5e9, 1e10, 2e19, -1e19, 3e38, f64::from(f32::MAX)];
                let kept = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
                // GPUs may take NaN and infinity for any number.
                let kept = kept.into_iter().filter(|_| !gpu);
                let more = edges.into_iter().chain(beyond).chain(kept);
                values.extend(more.map(|x| match from {
                    DType::Complex64 | DType::Complex128 => Value::Complex(x, -x),
                    _ => Value::Float(x),
                }));
                values.iter_mut().for_each(|value| *value = value.held(from));
                // Halves have made infinity of large numbers.
                values.retain(|value| !gpu || value.real().is_finite());
            }
            let x = tensor_of(engine, from, &values, &[values.len()]);
            for to in dtypes(engine).filter(|to| sampled(engine, 16 * from as usize + *to as usize, 2)) {
                let got = values_of(&x.cast(to).eval().unwrap());
                for (place, (got, value)) in got.iter().zip(&values).enumerate() {
                    let want = cast(*value, to);
                    let what = || {
                        format!("{value:?} of {from} to {to}[{place}] is {got:?}, not {want:?}, on {}", name(engine))
                    };
                    let nan = got.real().is_nan() && want.real().is_nan();
                    if gpu && !want.real().is_finite() {
                        continue;
                    }
                    // A wide integer is rounded to float32 before it is rounded to less.
                    let near = match (*got, want) {
                        (got, want) if got == want => true,
                        (Value::Float(got), Value::Float(want)) if value.real().abs() > 1e7 => {
                            let step = if to == DType::BF16 {
                                8e-3
                            } else if to == DType::F64 {
                                0.0
                            } else {
                                1.3e-7
                            };
                            (got - want).abs() <= step * want.abs()
                        }
                        (Value::Complex(got, _), Value::Complex(want, _)) if value.real().abs() > 1e7 => {
                            let step = if to == DType::Complex128 { 0.0 } else { 1.3e-7 };
                            (got - want).abs() <= step * want.abs()
                        }
                        _ => false,
                    };
                    assert!(nan || near, "{}", what());
                }
            }
        }
    }
}

/// Functions of whole numbers, without the wrapping.
fn whole(op: Binary, x: i128, y: i128, dtype: DType) -> i128 {
    let bits = 8 * dtype.bytes() as i128;
    match op {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x.wrapping_mul(y),
        Binary::Div if y == 0 => x,
        Binary::Div => x / y,
        Binary::Min => x.min(y),
        Binary::Max => x.max(y),
        Binary::Fmod | Binary::Remainder if y == 0 => 0,
        Binary::Fmod => x % y,
        Binary::Remainder => x - y * floored(x, y),
        Binary::FloorDivide if y == 0 => x,
        Binary::FloorDivide => floored(x, y),
        Binary::LogicalAnd => i128::from(x != 0 && y != 0),
        Binary::LogicalOr => i128::from(x != 0 || y != 0),
        Binary::LogicalXor => i128::from((x != 0) != (y != 0)),
        Binary::BitwiseAnd => x & y,
        Binary::BitwiseOr => x | y,
        Binary::BitwiseXor => x ^ y,
        // By less than 0 it is not defined.
        Binary::ShiftLeft | Binary::ShiftRight if y < 0 => x,
        Binary::ShiftLeft => {
            if y >= bits {
                0
            } else {
                x << y
            }
        }
        Binary::ShiftRight => x >> y.min(127),
        Binary::Pow if y < 0 => match x {
            1 => 1,
            -1 => 1 - 2 * (y & 1),
            _ => 0,
        },
        Binary::Pow => (0..128).rev().fold(1_i128, |power, bit| {
            let square = power.wrapping_mul(power);
            if y >> bit & 1 == 1 { square.wrapping_mul(x) } else { square }
        }),
        Binary::Eq => i128::from(x == y),
        Binary::Ne => i128::from(x != y),
        Binary::Lt => i128::from(x < y),
        Binary::Le => i128::from(x <= y),
        Binary::Gt => i128::from(x > y),
        Binary::Ge => i128::from(x >= y),
        other => panic!("{other:?}: write its row"),
    }
}

fn floored(x: i128, y: i128) -> i128 {
    x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0)
}

fn whole_of_one(op: Unary, x: i128, dtype: DType) -> i128 {
    match op {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Real | Unary::Conj | Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => x,
        Unary::Imag => 0,
        Unary::Sign => x.signum(),
        Unary::Square => x.wrapping_mul(x),
        Unary::LogicalNot => i128::from(x == 0),
        Unary::BitwiseNot if dtype == DType::Bool => 1 - x,
        Unary::BitwiseNot => !x,
        Unary::CountOnes => (x & ((1 << (8 * dtype.bytes())) - 1)).count_ones().into(),
        other => panic!("{other:?}: write its row"),
    }
}

#[test]
fn integers_of_every_width_wrap() {
    for engine in by_turns() {
        for dtype in dtypes(engine).filter(|dtype| limits(*dtype).is_some()) {
            let mut numbers = Numbers::new(5);
            let (x, y) = (elements(&mut numbers, dtype, 203), elements(&mut numbers, dtype, 203));
            let (a, b) = (tensor_of(engine, dtype, &x, &[203]), tensor_of(engine, dtype, &y, &[203]));
            let taken = |op: usize, mut dtypes: Box<dyn Iterator<Item = DType>>| {
                dtypes.any(|taken| taken == dtype) && sampled(engine, 256 * dtype as usize + op, 4)
            };
            for op in Binary::ALL.iter().filter(|op| taken(128 + **op as usize, Box::new(op.dtypes()))) {
                let result = a.binary(*op, &b).eval().unwrap();
                for (place, got) in values_of(&result).into_iter().enumerate() {
                    let (x, y) = (x[place].whole(), y[place].whole());
                    let shifts = matches!(op, Binary::ShiftLeft | Binary::ShiftRight);
                    if shifts && y < 0 {
                        continue;
                    }
                    let want = Value::Whole(whole(*op, x, y, dtype)).held(result.dtype());
                    assert_eq!(got, want, "{op:?} of {x} and {y}, {dtype} on {}", name(engine));
                }
            }
            for op in Unary::ALL.iter().filter(|op| taken(**op as usize, Box::new(op.dtypes()))) {
                let result = a.unary(*op).eval().unwrap();
                for (x, got) in x.iter().zip(values_of(&result)) {
                    let want = Value::Whole(whole_of_one(*op, x.whole(), dtype)).held(result.dtype());
                    assert_eq!(got, want, "{op:?} of {x:?}, {dtype} on {}", name(engine));
                }
            }
            // Within a chain too: of the sum's bits only those that the dtype has go on.
            if dtype != DType::Bool && sampled(engine, dtype as usize, 2) {
                let chain = values_of(&((&a + &b) / &b).eval().unwrap());
                for (place, got) in chain.into_iter().enumerate() {
                    let (x, y) = (x[place].whole(), y[place].whole());
                    let sum = Value::Whole(x + y).held(dtype).whole();
                    assert_eq!(
                        got,
                        Value::Whole(whole(Binary::Div, sum, y, dtype)).held(dtype),
                        "({x} + {y}) / {y} of {dtype} on {}",
                        name(engine)
                    );
                }
            }
        }
    }
}

/// Rows of an array, as an oracle of views: place by place.
struct Rows {
    values: Vec<Value>,
    shape: Vec<usize>,
}

impl Rows {
    fn at(&self, index: &[usize]) -> Value {
        let place = index.iter().zip(&self.shape).fold(0, |place, (at, side)| place * side + at);
        self.values[place]
    }
}

#[test]
fn views_may_begin_and_end_inside_a_word() {
    for engine in by_turns() {
        for dtype in dtypes(engine) {
            for seed in (0..12).filter(|seed| sampled(engine, 16 * dtype as usize + *seed as usize, 12)) {
                let mut numbers = Numbers::new(seed + 100);
                let shape = [1 + numbers.below(5), 2 + numbers.below(9), 3 + numbers.below(11)];
                let values = elements(&mut numbers, dtype, shape.iter().product());
                let x = tensor_of(engine, dtype, &values, &shape);
                let rows = Rows { values, shape: shape.to_vec() };
                let what = format!("{dtype}{shape:?}, seed {seed}, on {}", name(engine));
                let from = [numbers.below(shape[0]), numbers.below(shape[1]), numbers.below(shape[2])];
                let steps = [1 + numbers.below(2), 1 + numbers.below(3), 1 + numbers.below(4)];
                let ranges: Vec<_> = from.iter().zip(&shape).map(|(&from, &to)| from..to).collect();
                let sides: Vec<usize> =
                    ranges.iter().zip(steps).map(|(range, step)| range.len().div_ceil(step)).collect();
                let part = x.slice_steps(&ranges, &steps).permute(&[2, 0, 1]);
                let got = part.eval().unwrap();
                assert_eq!(got.shape(), [sides[2], sides[0], sides[1]], "{what}");
                let mut expected = Vec::new();
                for k in 0..sides[2] {
                    for i in 0..sides[0] {
                        for j in 0..sides[1] {
                            let index = [from[0] + i * steps[0], from[1] + j * steps[1], from[2] + k * steps[2]];
                            expected.push(rows.at(&index));
                        }
                    }
                }
                assert_eq!(values_of(&got), expected, "{what}");
                // Put together again, and flipped.
                let joined = x.slice(&ranges).concat(&[x.slice(&ranges)], 2).eval().unwrap();
                assert_eq!(joined.len(), 2 * ranges.iter().map(|range| range.len()).product::<usize>(), "{what}");
                let turned = x.reshape(&[rows.values.len()]).flip(&[0]).eval().unwrap();
                let reversed: Vec<Value> = rows.values.iter().rev().copied().collect();
                assert_eq!(values_of(&turned), reversed, "{what}");
                // Broadcast, and compared with itself.
                let row = x.slice(&[from[0]..from[0] + 1, from[1]..from[1] + 1]);
                let same = x.equal(&row).eval().unwrap();
                let expected: Vec<bool> = (0..rows.values.len())
                    .map(|place| {
                        let own = rows.values[place];
                        own == rows.at(&[from[0], from[1], place % shape[2]])
                    })
                    .collect();
                assert_eq!(same.to_vec::<bool>().unwrap(), expected, "{what}");
            }
            if !sampled(engine, dtype as usize, 2) {
                continue;
            }
            let empty = tensor_of(engine, dtype, &[], &[3, 0]);
            assert_eq!(empty.expr().reshape(&[0]).eval().unwrap().len(), 0);
            let one = elements(&mut Numbers::new(1), dtype, 1);
            let spread = tensor_of(engine, dtype, &one, &[]).broadcast_to(&[3, 33]).eval().unwrap();
            assert_eq!(values_of(&spread), vec![one[0]; 99], "{dtype} on {}", name(engine));
        }
    }
}

/// Sums and products in the dtype that they have; the least and the greatest, and their places.
#[test]
fn reductions_of_every_dtype() {
    for engine in by_turns() {
        for dtype in dtypes(engine) {
            for seed in (0..8).filter(|seed| sampled(engine, 8 * dtype as usize + *seed as usize, 16)) {
                let mut numbers = Numbers::new(seed + 40);
                let long = seed == 3;
                let shape = if long { vec![3, 5001] } else { vec![1 + numbers.below(9), 1 + numbers.below(400)] };
                let values = elements(&mut numbers, dtype, shape.iter().product());
                let x = tensor_of(engine, dtype, &values, &shape);
                let what = |op: &str| format!("{op} of {dtype}{shape:?}, seed {seed}, on {}", name(engine));
                let lines: Vec<Vec<Value>> = values.chunks(shape[1]).map(<[Value]>::to_vec).collect();
                let columns: Vec<Vec<Value>> =
                    (0..shape[1]).map(|column| lines.iter().map(|line| line[column]).collect()).collect();
                for (axis, groups) in [(1, &lines), (0, &columns)] {
                    reduced(&x, axis, groups, &|op| what(op));
                }
                let counted = x.count_nonzero(&[1], false).eval().unwrap().to_vec::<u32>().unwrap();
                let zero = |value: &Value| value.complex() == cantus::num_complex::Complex::new(0.0, 0.0);
                let expected: Vec<u32> =
                    lines.iter().map(|line| line.iter().filter(|value| !zero(value)).count() as u32).collect();
                assert_eq!(counted, expected, "{}", what("count_nonzero"));
                let any: Vec<bool> = expected.iter().map(|&count| count > 0).collect();
                assert_eq!(x.any(&[1], false).eval().unwrap().to_vec::<bool>().unwrap(), any, "{}", what("any"));
            }
        }
    }
}

pub(crate) fn reduced(x: &Tensor, axis: isize, groups: &[Vec<Value>], what: &dyn Fn(&str) -> String) {
    if limits(x.dtype()).is_some() {
        summed_exactly(x, axis, groups, what);
    } else {
        summed_nearly(x, axis, groups, what);
    }
    if !matches!(x.dtype(), DType::Complex64 | DType::Complex128) {
        extreme(x, axis, groups, what);
    }
}

fn eval(expr: Expr) -> Tensor {
    expr.eval().unwrap()
}

fn summed_exactly(x: &Tensor, axis: isize, groups: &[Vec<Value>], what: &dyn Fn(&str) -> String) {
    let (sum, running) = (eval(x.sum(&[axis], false)), eval(x.cumsum(axis)));
    let summed = match x.dtype() {
        DType::Bool | DType::U8 | DType::U16 => DType::U32,
        DType::I8 | DType::I16 => DType::I32,
        wide => wide,
    };
    assert_eq!((sum.dtype(), running.dtype()), (summed, summed), "{}", what("sum"));
    let total = |group: &Vec<Value>| Value::Whole(group.iter().map(|value| value.whole()).sum()).held(summed);
    let expected: Vec<Value> = groups.iter().map(total).collect();
    assert_eq!(values_of(&sum), expected, "{}", what("sum"));
    let last = if axis == 1 {
        running.slice(&[0..groups.len(), groups[0].len() - 1..groups[0].len()])
    } else {
        running.slice(&[groups[0].len() - 1..groups[0].len()])
    };
    assert_eq!(values_of(&eval(last)), expected, "{}", what("cumsum"));
    let times = |product: i128, value: &Value| Value::Whole(product.wrapping_mul(value.whole())).held(summed).whole();
    let product = |group: &Vec<Value>| Value::Whole(group.iter().fold(1, times));
    let expected: Vec<Value> = groups.iter().map(product).collect();
    assert_eq!(values_of(&eval(x.prod(&[axis], false))), expected, "{}", what("prod"));
}

fn summed_nearly(x: &Tensor, axis: isize, groups: &[Vec<Value>], what: &dyn Fn(&str) -> String) {
    let tolerance = match x.dtype() {
        DType::BF16 => 4e-3,
        DType::F16 => 5e-4,
        DType::F64 | DType::Complex128 => 1e-15,
        _ => 1e-6,
    };
    let (sum, mean) = (values_of(&eval(x.sum(&[axis], false))), values_of(&eval(x.mean(&[axis], false))));
    for ((sum, mean), group) in sum.iter().zip(&mean).zip(groups) {
        let total = group.iter().map(|value| value.complex()).sum::<cantus::num_complex::Complex<f64>>();
        let size: f64 = group.iter().map(|value| value.complex().norm()).sum();
        assert!((sum.complex() - total).norm() <= tolerance * size, "{}: {sum:?}, not {total}", what("sum"));
        let count = group.len() as f64;
        assert!((mean.complex() - total / count).norm() <= 2.0 * tolerance * size / count, "{}", what("mean"));
    }
}

/// The greatest and the least of each group, and their places.
fn extreme(x: &Tensor, axis: isize, groups: &[Vec<Value>], what: &dyn Fn(&str) -> String) {
    let best = |greatest: bool| -> Vec<(usize, Value)> {
        let better = |a: Value, b: Value| match (a, b) {
            (Value::Whole(a), Value::Whole(b)) if greatest => a > b,
            (Value::Whole(a), Value::Whole(b)) => a < b,
            (a, b) if greatest => a.real() > b.real(),
            (a, b) => a.real() < b.real(),
        };
        let first = |group: &Vec<Value>| {
            group
                .iter()
                .copied()
                .enumerate()
                .fold((0, group[0]), |best, next| if better(next.1, best.1) { next } else { best })
        };
        groups.iter().map(first).collect()
    };
    for (op, place, greatest) in [
        (x.max(&[axis], false), x.argmax(Some(axis), false), true),
        (x.min(&[axis], false), x.argmin(Some(axis), false), false),
    ] {
        let expected = best(greatest);
        let op = eval(op);
        assert_eq!(op.dtype(), x.dtype(), "{}", what("max"));
        assert_eq!(values_of(&op), expected.iter().map(|best| best.1).collect::<Vec<_>>(), "{}", what("max or min"));
        let places: Vec<f64> = expected.iter().map(|best| best.0 as f64).collect();
        assert_eq!(doubles(&eval(place)), places, "{}", what("argmax or argmin"));
    }
}

type Of1 = (Unary, fn(num::C) -> num::C);
type Of2 = (Binary, fn(num::C, num::C) -> num::C);

mod num {
    pub(super) type C = cantus::num_complex::Complex<f64>;

    pub(super) fn real(x: f64) -> C {
        C::new(x, 0.0)
    }

    pub(super) fn truth(x: bool) -> C {
        real(f64::from(u8::from(x)))
    }
}

/// Definitions of what takes complex numbers.
const COMPLEX1: &[Of1] = &[
    (Unary::Neg, |z| -z),
    (Unary::Abs, |z| num::real(z.norm())),
    (Unary::Real, |z| num::real(z.re)),
    (Unary::Imag, |z| num::real(z.im)),
    (Unary::Conj, |z| z.conj()),
    (Unary::Angle, |z| num::real(z.arg())),
    (Unary::Square, |z| z * z),
    (Unary::Reciprocal, |z| z.inv()),
    (Unary::Exp, |z| z.exp()),
    (Unary::Log, |z| z.ln()),
    (Unary::Sqrt, |z| z.sqrt()),
    (Unary::LogicalNot, |z| num::truth(z == num::real(0.0))),
    (Unary::Expm1, |z| z.exp() - 1.0),
    (Unary::Log1p, |z| (z + 1.0).ln()),
    (Unary::Log2, |z| z.ln() / std::f64::consts::LN_2),
    (Unary::Log10, |z| z.ln() / std::f64::consts::LN_10),
    (Unary::Sin, |z| z.sin()),
    (Unary::Cos, |z| z.cos()),
    (Unary::Tan, |z| z.tan()),
    (Unary::Asin, |z| z.asin()),
    (Unary::Acos, |z| z.acos()),
    (Unary::Atan, |z| z.atan()),
    (Unary::Sinh, |z| z.sinh()),
    (Unary::Cosh, |z| z.cosh()),
    (Unary::Tanh, |z| z.tanh()),
    (Unary::Asinh, |z| z.asinh()),
    (Unary::Acosh, |z| z.acosh()),
    (Unary::Atanh, |z| z.atanh()),
    (Unary::Sign, |z| z / z.norm()),
];
const COMPLEX2: &[Of2] = &[
    (Binary::Add, |x, y| x + y),
    (Binary::Sub, |x, y| x - y),
    (Binary::Mul, |x, y| x * y),
    (Binary::Div, |x, y| x / y),
    (Binary::Eq, |x, y| num::truth(x == y)),
    (Binary::Ne, |x, y| num::truth(x != y)),
    (Binary::Pow, |x, y| x.powc(y)),
];

#[test]
fn complex_numbers_are_as_defined() {
    let complex = |dtype: &DType| [DType::Complex64, DType::Complex128].contains(dtype);
    for op in Unary::ALL {
        assert_eq!(op.dtypes().any(|dtype| complex(&dtype)), COMPLEX1.iter().any(|(known, _)| known == op), "{op:?}");
    }
    for op in Binary::ALL {
        assert_eq!(op.dtypes().any(|dtype| complex(&dtype)), COMPLEX2.iter().any(|(known, _)| known == op), "{op:?}");
    }
    for engine in by_turns() {
        for dtype in dtypes(engine).filter(complex) {
            let mut numbers = Numbers::new(77);
            let (x, mut y) = (elements(&mut numbers, dtype, 301), elements(&mut numbers, dtype, 301));
            y[7] = x[7];
            let (a, b) = (tensor_of(engine, dtype, &x, &[301]), tensor_of(engine, dtype, &y, &[301]));
            let near = |got: &Tensor, expected: Vec<num::C>, what: String| {
                let tolerance = if matches!(got.dtype(), DType::F64 | DType::Complex128) { 1e-12 } else { 5e-6 };
                for (place, (got, want)) in values_of(got).iter().zip(expected).enumerate() {
                    let distance = (got.complex() - want).norm();
                    assert!(distance <= tolerance * want.norm().max(1.0), "{what}[{place}]: {got:?}, not {want}");
                }
            };
            let own = |op: &&Of1| op.0.dtypes().any(|taken| taken == dtype) && sampled(engine, op.0 as usize, 1);
            for (op, definition) in COMPLEX1.iter().filter(own) {
                let expected = x.iter().map(|x| definition(x.complex())).collect();
                near(&a.unary(*op).eval().unwrap(), expected, format!("{op:?} of {dtype} on {}", name(engine)));
            }
            for (op, definition) in COMPLEX2.iter().filter(|op| sampled(engine, op.0 as usize, 1)) {
                let expected = x.iter().zip(&y).map(|(x, y)| definition(x.complex(), y.complex())).collect();
                near(&a.binary(*op, &b).eval().unwrap(), expected, format!("{op:?} of {dtype} on {}", name(engine)));
            }
            let parts = a.real().complex(a.imag()).eval().unwrap();
            assert_eq!((values_of(&parts), parts.dtype()), (x.clone(), dtype));
            let product = x.iter().take(9).fold(num::real(1.0), |product, x| product * x.complex());
            let folded = a.slice(&[0..9]).prod(&[], false).eval().unwrap();
            near(&folded, vec![product], format!("prod of {dtype} on {}", name(engine)));
            let norm = x.iter().map(|x| x.complex().norm_sqr()).sum::<f64>().sqrt();
            near(&a.norm(2.0, &[], false).eval().unwrap(), vec![num::real(norm)], format!("norm of {dtype}"));
        }
        // Divisors whose squares are out of range.
        let far = |re: f32, im: f32| engine.tensor(&[cantus::num_complex::Complex::new(re, im)]).unwrap();
        let quotient = (far(3e30, 4e30) / far(1e30, 2e30)).eval().unwrap();
        let got = values_of(&quotient)[0].complex();
        assert!((got - num::C::new(2.2, -0.4)).norm() < 1e-5, "{got} on {}", name(engine));
    }
}

#[test]
fn two_dtypes_are_promoted() {
    for engine in by_turns() {
        for left in dtypes(engine) {
            for right in dtypes(engine).filter(|right| sampled(engine, 16 * left as usize + *right as usize, 8)) {
                let mut numbers = Numbers::new(11);
                let (x, y) = (elements(&mut numbers, left, 9), elements(&mut numbers, right, 9));
                let (a, b) = (tensor_of(engine, left, &x, &[9]), tensor_of(engine, right, &y, &[9]));
                let equal = a.equal(&b);
                match left.promoted(right) {
                    Ok(dtype) if supported(engine, dtype) => {
                        let expected: Vec<bool> =
                            x.iter().zip(&y).map(|(x, y)| cast(*x, dtype) == cast(*y, dtype)).collect();
                        let got = equal.eval().unwrap().to_vec::<bool>().unwrap();
                        assert_eq!(got, expected, "{left} and {right} on {}", name(engine));
                        if dtype != DType::Bool {
                            assert_eq!((&a + &b).dtype().unwrap(), dtype);
                        }
                        let picked = equal.select(&a, &b).eval().unwrap();
                        assert_eq!(picked.dtype(), dtype);
                    }
                    _ => assert!(equal.eval().is_err(), "{left} and {right} on {}", name(engine)),
                }
            }
        }
    }
}

#[test]
fn what_a_dtype_is_not_for_is_said_with_a_remedy() {
    let engine = Engine::builder().backend("cpu").build().unwrap();
    let of = |dtype: DType| engine.zeros_of(dtype, &[4]).unwrap().expr();
    let (truth, byte, pair) = (of(DType::Bool), of(DType::U8), of(DType::Complex64));
    let cases = [
        (&truth + &truth, "add of bool"),
        (&byte + of(DType::F32), "u8 and f32 together"),
        (of(DType::U64) * of(DType::I32), "no integer holds"),
        (&byte + 256, "not a value of u8"),
        (of(DType::I8) + -129, "not a value of i8"),
        (-&byte, "neg of u8"),
        (pair.less(&pair), "less of complex64"),
        (pair.max(&[], false), "maximum of complex64"),
        (pair.argmin(Some(0), false), "minimum of complex64"),
        (pair.floor(), "floor of complex64"),
        (of(DType::Complex64).sort(0, false), "an order of complex64"),
        (pair.select(&byte, &byte), "bool or u32"),
        (byte.take(of(DType::I64), 0), "i32, u32 or a narrower"),
        (of(DType::I64).bincount(3), "i32, u32 or narrower"),
        (cantus::ops::arange(&engine, 0.0, 2.0, 1.0, DType::Bool), "arange of bool"),
        (cantus::ops::linspace(&engine, 0.0, 2.0, 3, DType::U8), "needs floats"),
        (truth.reshape(&[2, 2]).matmul(truth.reshape(&[2, 2])), "numbers of the same dtype"),
        (truth.lerp(&truth, 0.5), "lerp of bool"),
    ];
    for (expr, expected) in cases {
        let text = expr.eval().expect_err(expected).to_string();
        assert!(text.contains(expected), "{text:?} does not say {expected:?}");
    }
    let text = engine.tensor(&[true]).unwrap().to_vec::<u8>().unwrap_err().to_string();
    assert!(text.contains("bool, not u8"), "{text}");
    // Where the device has no i64.
    for engine in by_turns().iter().filter(|engine| !supported(engine, DType::I64)) {
        let (a, b) = (engine.zeros::<i32>(&[2]).unwrap(), engine.zeros::<u32>(&[2]).unwrap());
        let text = (a + b).eval().unwrap_err().to_string();
        assert!(text.contains("the result is i64") && text.contains(".cast(DType::I32)"), "{text}");
    }
}

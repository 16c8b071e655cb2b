//! Native operations of the CPU for every dtype, against plain Rust: complex chains, functions of float64, orders.

use std::cmp::Ordering;

use cantus::num_complex::Complex;
use cantus::ops::Expr;
use cantus::{DType, Engine, Fallback};

use crate::Numbers;

type C = Complex<f64>;
/// The number that is due at a place.
type At<'a> = &'a dyn Fn(usize) -> C;
type Function<'a> = &'a dyn Fn(f64) -> f64;

fn engine() -> Engine {
    Engine::builder().backend("cpu").fallback(Fallback::Never).build().unwrap()
}

/// Returns whether something whose name ends so ran.
fn ran(engine: &Engine, name: &str) -> bool {
    engine.metrics().iter().any(|row| row.operation.ends_with(name))
}

fn complexes(numbers: &mut Numbers, count: usize) -> Vec<C> {
    (0..count).map(|_| C::new(numbers.float().into(), numbers.float().into())).collect()
}

fn read(expr: &Expr) -> Vec<C> {
    expr.eval().unwrap().cast(DType::Complex128).eval().unwrap().to_vec::<C>().unwrap()
}

#[test]
fn complex_chains_compute_both_parts() {
    let mut numbers = Numbers::new(56);
    for [rows, columns] in [[1, 1], [1, 7], [3, 70], [70, 3], [41, 100], [2, 1500], [300, 31]] {
        let (a, b) = (complexes(&mut numbers, rows * columns), complexes(&mut numbers, rows * columns));
        let across: Vec<C> = (0..rows * columns).map(|at| b[at % columns * rows + at / columns]).collect();
        for dtype in [DType::Complex64, DType::Complex128] {
            let engine = engine();
            let tensor = |values: &[C], shape: &[usize]| {
                let tensor = engine.tensor_from(values, shape).unwrap();
                if dtype == DType::Complex128 { tensor } else { tensor.cast(dtype).eval().unwrap() }
            };
            let (x, y) = (tensor(&a, &[rows, columns]).expr(), tensor(&b, &[columns, rows]).expr().transpose());
            let row = x.slice(&[0..1, 0..columns]);
            let same = x.equal(&y);
            let cases: [(&str, Expr, At<'_>); 12] = [
                ("sum", &x + &y, &|at| a[at] + across[at]),
                ("difference with a row", &y - &row, &|at| across[at] - a[at % columns]),
                ("product", &x * &y, &|at| a[at] * across[at]),
                ("quotient", &x / &y, &|at| a[at] / across[at]),
                ("twice and one more", &x * 2.0 + 1.0, &|at| a[at] * 2.0 + 1.0),
                ("negative conjugate", -x.conj(), &|at| -a[at].conj()),
                ("square", x.square() - &x, &|at| a[at] * a[at] - a[at]),
                ("reciprocal", x.reciprocal(), &|at| a[at].inv()),
                ("magnitude", &x.abs() * 3.0, &|at| (a[at].norm() * 3.0).into()),
                ("choice", x.r#where(same.logical_or(x.real().greater(0.0)), &y), &|at| {
                    if a[at] == across[at] || a[at].re > 0.0 { a[at] } else { across[at] }
                }),
                ("parts", (x.real() + 1.0).complex(x.imag() * 2.0), &|at| C::new(a[at].re + 1.0, a[at].im * 2.0)),
                ("equality", x.not_equal(&row).cast(DType::F32), &|at| {
                    f64::from(u8::from(a[at] != a[at % columns])).into()
                }),
            ];
            let tolerance = if dtype == DType::Complex128 { 1e-13 } else { 1e-5 };
            for (what, got, want) in cases {
                for (at, got) in read(&got).into_iter().enumerate() {
                    let want = want(at);
                    let near = (got - want).norm() <= tolerance * want.norm().max(1.0);
                    assert!(near, "{what} of {dtype} [{rows}, {columns}] at {at}: {got}, not {want}");
                }
            }
            assert!(ran(&engine, "elementwise (native)") && !ran(&engine, "elementwise"), "{:?}", engine.metrics());
        }
    }
}

#[test]
fn magnitudes_of_special_complex_numbers_are_hypot() {
    let special = [0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e300, -3e-310, 5e-324];
    let values: Vec<C> = special.iter().flat_map(|&re| special.map(|im| C::new(re, im))).collect();
    let engine = engine();
    let got = engine.tensor(&values).unwrap().abs().eval().unwrap().to_vec::<f64>().unwrap();
    for (z, got) in values.iter().zip(got) {
        let want = z.re.hypot(z.im);
        let near = (got - want).abs() <= 1e-15 * want + 5e-324;
        assert!(got == want || near || got.is_nan() && want.is_nan(), "{z}: {got}, not {want}");
    }
}

/// The distance in units of the last place.
fn units(got: f64, want: f64) -> u64 {
    let key = |x: f64| {
        let bits = x.to_bits().cast_signed();
        i128::from(if bits < 0 { i64::MIN - bits } else { bits })
    };
    if got.is_nan() && want.is_nan() { 0 } else { (key(got) - key(want)).unsigned_abs().try_into().unwrap_or(u64::MAX) }
}

/// Against the library of C, which is within a unit of the true value.
#[test]
fn functions_of_float64_have_all_digits() {
    let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324, -5e-324, 1e-310, f64::MAX, f64::MIN];
    let near = [1.0, -1.0, 709.78, 709.79, -708.4, -745.13, -745.14, 0.5, 1e-9, -1e-9, 1e5, 1e5 + 1.0, 1e22, 0.999_999];
    let mut numbers = Numbers::new(64);
    let mut values: Vec<f64> = special.into_iter().chain(near).collect();
    for scale in [1e-12, 1e-3, 0.2, 1.0, 30.0, 180.0, 1e4, 1e200] {
        values.extend((0..700).map(|_| f64::from(numbers.float()) * scale * (1.0 + f64::from(numbers.float()) * 1e-8)));
    }
    let engine = engine();
    let x = engine.tensor(&values).unwrap().expr();
    let sigmoid = |x: f64| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) };
    let cases: [(&str, Expr, Function<'_>, u64); 8] = [
        ("exp", x.exp(), &f64::exp, 2),
        ("expm1", x.expm1(), &f64::exp_m1, 3),
        ("log", x.log(), &f64::ln, 2),
        ("log1p", x.log1p(), &f64::ln_1p, 2),
        ("sin", x.sin(), &f64::sin, 2),
        ("cos", x.cos(), &f64::cos, 2),
        ("tanh", x.tanh(), &f64::tanh, 4),
        ("sigmoid", x.sigmoid(), &sigmoid, 4),
    ];
    for (what, got, want, most) in cases {
        let got = got.eval().unwrap().to_vec::<f64>().unwrap();
        for (&x, got) in values.iter().zip(got) {
            let want = want(x);
            assert!(units(got, want) <= most, "{what} of {x:e}: {got:e}, not {want:e}");
            assert!(got != 0.0 || got.is_sign_negative() == want.is_sign_negative(), "{what} of {x:e}: {got}");
        }
    }
    assert!(ran(&engine, "elementwise (native)") && !ran(&engine, "function (native)"), "{:?}", engine.metrics());
}

/// Rows in order by a stable sort of the standard library, as bytes.
fn ordered<T: Copy>(values: &[T], length: usize, descending: bool, order: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let mut rows = values.to_vec();
    for row in rows.chunks_exact_mut(length) {
        row.sort_by(|x, y| if descending { order(y, x) } else { order(x, y) });
    }
    rows
}

macro_rules! orders {
    ($($name:ident: $ty:ty, |$bits:ident| $of:expr, $order:expr;)*) => {$(
        #[test]
        fn $name() {
            let mut numbers = Numbers::new(8);
            for [rows, length] in
                [[1, 1], [1, 2], [5, 3], [2, 50], [70, 16], [33, 65], [4, 255], [9, 256], [3, 257], [5, 1000], [2, 4099], [1, 300_001]]
            {
                for few in [false, true] {
                    let values: Vec<$ty> = (0..rows * length)
                        .map(|_| {
                            let $bits = (numbers.below(1 << 31) as u64) << 33 ^ numbers.below(1 << 31) as u64;
                            let $bits = if few { $bits >> 33 & 3 | $bits << 62 } else { $bits };
                            $of
                        })
                        .collect();
                    for descending in [false, true] {
                        let engine = engine();
                        let x = engine.tensor_from(&values, &[rows, length]).unwrap();
                        let got = x.sort(1, descending).eval().unwrap().to_vec::<$ty>().unwrap();
                        let want = ordered(&values, length, descending, $order);
                        let bits = |all: &[$ty]| all.iter().map(|x| format!("{:?}", x.to_ne_bytes())).collect::<Vec<_>>();
                        assert!(bits(&got) == bits(&want), "[{rows}, {length}], {few}, {descending}");
                        assert!(length == 1 || ran(&engine, "sort (native)"), "{:?}", engine.metrics());
                        let begun = x.sort(1, descending).slice(&[0..rows, 0..length.min(3)]).eval().unwrap();
                        let want: Vec<$ty> = want.chunks_exact(length).flat_map(|row| row[..length.min(3)].to_vec()).collect();
                        assert!(bits(&begun.to_vec::<$ty>().unwrap()) == bits(&want), "the first of [{rows}, {length}]");
                    }
                }
            }
        }
    )*};
}

fn of_floats<T: PartialOrd + Copy>(x: &T, y: &T) -> Ordering {
    let is_nan = |x: &T| x.partial_cmp(x).is_none();
    x.partial_cmp(y).unwrap_or_else(|| is_nan(x).cmp(&is_nan(y)))
}

orders! {
    bytes_are_ordered: u8, |bits| (bits >> 40) as u8, Ord::cmp;
    signed_bytes_are_ordered: i8, |bits| (bits >> 56) as i8, Ord::cmp;
    halves_of_words_are_ordered: i16, |bits| (bits >> 48) as i16, Ord::cmp;
    words_are_ordered: u32, |bits| bits as u32, Ord::cmp;
    signed_words_are_ordered: i32, |bits| (bits >> 32) as i32, Ord::cmp;
    wide_words_are_ordered: u64, |bits| bits, Ord::cmp;
    signed_wide_words_are_ordered: i64, |bits| bits.cast_signed(), Ord::cmp;
    floats_are_ordered: f32, |bits| f32::from_bits((bits >> 32) as u32), of_floats;
    doubles_are_ordered: f64, |bits| f64::from_bits(bits), of_floats;
    zeros_of_both_signs_keep_their_order: f64, |bits| f64::from_bits(bits & 1 << 63 | (bits & 1) << 62), of_floats;
    ordinary_doubles_are_ordered: f64, |bits| (bits.cast_signed() >> 40) as f64 + 0.5, of_floats;
    ordinary_floats_are_ordered: f32, |bits| (bits.cast_signed() >> 50) as f32 + 0.5, of_floats;
}

#[test]
fn places_of_64_bits_are_gathered_natively() {
    let engine = engine();
    let x = engine.tensor_from(&(0..600).map(f64::from).collect::<Vec<_>>(), &[200, 3]).unwrap();
    let places: Vec<i64> = (0..500).map(|at| at * 37 % 200 - if at % 3 == 0 { 200 } else { 0 }).collect();
    let index = engine.tensor(&places).unwrap().expr().cast(DType::I32);
    for dtype in [DType::F64, DType::F32, DType::U8, DType::Complex64, DType::Complex128] {
        let got =
            x.cast(dtype).eval().unwrap().take(&index, 0).cast(DType::F64).eval().unwrap().to_vec::<f64>().unwrap();
        let row = |place: i64| place.rem_euclid(200) * 3;
        let want: Vec<f64> = places.iter().flat_map(|&place| (0..3).map(move |at| (row(place) + at) as f64)).collect();
        let narrow = |x: f64| if dtype == DType::U8 { x.min(255.0) } else { x };
        assert_eq!(got, want.into_iter().map(narrow).collect::<Vec<_>>(), "{dtype}");
    }
    assert!(ran(&engine, "gather (native)") && !ran(&engine, "elementwise"), "{:?}", engine.metrics());
}

/// Of elements one by one, of rows, and at places that lie in another order.
#[test]
fn places_of_64_bits_are_read_where_they_lie() {
    let mut numbers = Numbers::new(66);
    for count in [1, 63, 65, 5000, 40_001] {
        let engine = Engine::builder().backend("cpu").fallback(Fallback::Never).trust_places().build().unwrap();
        let elements: Vec<f32> = (0..3 * count).map(|_| numbers.float()).collect();
        let places: Vec<i64> = (0..2 * count + 1).map(|_| numbers.below(2 * count) as i64 - count as i64).collect();
        let flat = engine.tensor(&elements[..count]).unwrap();
        let rows = engine.tensor_from(&elements, &[count, 3]).unwrap();
        let index = engine.tensor(&places).unwrap().expr();
        let of = |place: i64| usize::try_from(place.rem_euclid(count as i64)).unwrap();
        let turned = index.slice(&[1..2 * count + 1]).reshape(&[2, count]).transpose();
        let later = index.slice(&[1..count + 1]);
        let got = flat.take(later.cast(DType::I32), 0).eval().unwrap().to_vec::<f32>().unwrap();
        assert_eq!(got, places[1..=count].iter().map(|&place| elements[of(place)]).collect::<Vec<_>>());
        let got = flat.take(turned.cast(DType::I32), 0).eval().unwrap().to_vec::<f32>().unwrap();
        let want = (0..2 * count).map(|at| elements[of(places[1 + at % 2 * count + at / 2])]);
        assert_eq!(got, want.collect::<Vec<_>>());
        let got = rows.take(later.cast(DType::I32), 0).eval().unwrap().to_vec::<f32>().unwrap();
        let row = |&place: &i64| (0..3).map(move |column| (of(place), column));
        assert_eq!(
            got,
            places[1..=count].iter().flat_map(row).map(|(at, column)| elements[3 * at + column]).collect::<Vec<_>>()
        );
        assert!(engine.metrics().iter().all(|row| row.operation == "gather (native)"), "{:?}", engine.metrics());
    }
}

#[test]
fn copies_of_16_bytes_are_native() {
    let mut numbers = Numbers::new(16);
    let engine = engine();
    for [rows, columns] in [[1, 5], [17, 33], [64, 64], [3, 500]] {
        let values = complexes(&mut numbers, rows * columns);
        let x = engine.tensor_from(&values, &[rows, columns]).unwrap();
        let got = x.expr().transpose().eval().unwrap().to_vec::<C>().unwrap();
        let want: Vec<C> = (0..rows * columns).map(|at| values[at % rows * columns + at / rows]).collect();
        assert_eq!(got, want);
    }
    assert!(ran(&engine, "copy (native)"));
}

#[test]
fn chains_along_rows_of_hundreds_are_reduced() {
    let mut numbers = Numbers::new(70);
    for [rows, length] in [[9, 65], [40, 70], [31, 100], [5, 128], [17, 255], [300, 256], [4, 300]] {
        let values: Vec<i32> = (0..rows * length).map(|_| numbers.below(40) as i32 - 20).collect();
        for dtype in [DType::F32, DType::I32, DType::Bool] {
            let engine = engine();
            let x = engine.tensor_from(&values, &[rows, length]).unwrap().cast(dtype).eval().unwrap().expr();
            let number = |at: usize| if dtype == DType::Bool { i32::from(values[at] != 0) } else { values[at] };
            let by_rows = |of: &dyn Fn(i32) -> i32, fold: &dyn Fn(i32, i32) -> i32| -> Vec<i32> {
                let row = |row: usize| (0..length).map(|at| of(number(row * length + at))).reduce(fold);
                (0..rows).map(|at| row(at).unwrap()).collect()
            };
            let sought = if dtype == DType::Bool { 1 } else { 19 };
            let count = |what: &dyn Fn(i32) -> bool| by_rows(&|x| i32::from(what(x)), &|a, b| a + b);
            let cases = [
                (
                    "any is that",
                    x.equal(f64::from(sought)).any(&[1], false),
                    count(&|x| x == sought).into_iter().map(|n| n.min(1)).collect(),
                ),
                ("all are others", x.not_equal(f64::from(sought)).all(&[1], false), {
                    count(&|x| x == sought).into_iter().map(|n| 1 - n.min(1)).collect()
                }),
                ("number of 1", x.equal(1.0).count_nonzero(&[1], false), count(&|x| x == 1)),
            ];
            for (what, got, want) in cases {
                let got = got.cast(DType::I32).eval().unwrap().to_vec::<i32>().unwrap();
                assert_eq!(got, want, "{what}, {dtype} [{rows}, {length}]");
            }
            if dtype == DType::Bool {
                continue;
            }
            let squares = x.cast(DType::F32).square() - 1.0;
            let got = squares.max(&[1], false).eval().unwrap().to_vec::<f32>().unwrap();
            let want = by_rows(&|x| x * x - 1, &i32::max);
            assert_eq!(
                got,
                want.iter().map(|&x| x as f32).collect::<Vec<_>>(),
                "greatest square, {dtype} [{rows}, {length}]"
            );
            let got = squares.sum(&[0], false).eval().unwrap().to_vec::<f32>().unwrap();
            let column = |at: usize| (0..rows).map(|row| number(row * length + at).pow(2) - 1).sum::<i32>() as f32;
            assert_eq!(got, (0..length).map(column).collect::<Vec<_>>(), "sum of squares, {dtype} [{rows}, {length}]");
        }
    }
}

//! Chains of the CPU that write their results without a block of lanes in between, bit by bit against plain Rust: comparisons and casts to fewer bytes,
//! views of fewer bytes, and complex numbers as they lie in memory.

use cantus::num_complex::Complex;
use cantus::ops::Expr;
use cantus::{DType, Engine, Fallback};

use crate::Numbers;

/// Within a vector, a block, a task, and beyond all of them.
const LENGTHS: [usize; 9] = [1, 7, 63, 65, 1023, 1025, 4097, 16_385, 70_001];

fn engine() -> Engine {
    Engine::builder().backend("cpu").fallback(Fallback::Never).build().unwrap()
}

/// Everything ran natively.
fn check(engine: &Engine) {
    let native = engine.metrics().iter().all(|row| row.operation.ends_with("(native)"));
    assert!(native, "{:?}", engine.metrics());
}

macro_rules! comparisons {
    ($($name:ident: $ty:ty, |$bits:ident| $of:expr;)*) => {$(
        #[test]
        fn $name() {
            let mut numbers = Numbers::new(57);
            let mut drawn = || {
                let $bits = (numbers.below(1 << 31) as u64) << 33 ^ numbers.below(1 << 31) as u64;
                $of
            };
            for length in LENGTHS {
                let (a, mut b): (Vec<$ty>, Vec<$ty>) = ((0..=length).map(|_| drawn()).collect(), (0..=length).map(|_| drawn()).collect());
                (0..=length).step_by(3).for_each(|at| b[at] = a[at]);
                let engine = engine();
                let [x, y] = [&a, &b].map(|all| engine.tensor(all).unwrap().expr());
                // The first as it lies, the second one element later.
                let x = x.slice(&[0..length]);
                for (y, at) in [(y.slice(&[0..length]), 0), (y.slice(&[1..length + 1]), 1)] {
                    let cases: [(&str, Expr, fn($ty, $ty) -> bool); 6] = [
                        ("equal", x.equal(&y), |x, y| x == y),
                        ("not equal", x.not_equal(&y), |x, y| x != y),
                        ("less", x.less(&y), |x, y| x < y),
                        ("less or equal", x.less_equal(&y), |x, y| x <= y),
                        ("greater", x.greater(&y), |x, y| x > y),
                        ("greater or equal", x.greater_equal(&y), |x, y| x >= y),
                    ];
                    for (what, got, want) in cases {
                        let got = got.eval().unwrap().to_vec::<bool>().unwrap();
                        let want: Vec<bool> = a.iter().zip(&b[at..]).take(length).map(|(&x, &y)| want(x, y)).collect();
                        assert!(got == want, "{what}, {length}");
                    }
                }
                check(&engine);
            }
        }
    )*};
}

comparisons! {
    floats_are_compared: f32, |bits| [f32::NAN, 0.0, -0.0, f32::INFINITY, f32::from_bits(bits as u32), 1.0][bits as usize % 6];
    doubles_are_compared: f64, |bits| [f64::NAN, 0.0, -0.0, f64::INFINITY, f64::from_bits(bits), 1.0][bits as usize % 6];
    words_are_compared: u32, |bits| [bits as u32, 3, u32::MAX][bits as usize % 3];
    signed_words_are_compared: i32, |bits| [(bits >> 32) as i32, -3, i32::MIN][bits as usize % 3];
    wide_words_are_compared: u64, |bits| [bits, 3, u64::MAX][bits as usize % 3];
    signed_wide_words_are_compared: i64, |bits| [bits.cast_signed(), -3, i64::MIN][bits as usize % 3];
    bytes_are_compared: u8, |bits| (bits >> 40) as u8;
}

macro_rules! casts {
    ($($name:ident: $from:ty, $dtype:ident, $to:ty, |$bits:ident| $of:expr;)*) => {$(
        #[test]
        fn $name() {
            let mut numbers = Numbers::new(58);
            let mut drawn = || {
                let $bits = (numbers.below(1 << 31) as u64) << 33 ^ numbers.below(1 << 31) as u64;
                $of
            };
            for length in LENGTHS {
                let all: Vec<$from> = (0..2 * length + 1).map(|_| drawn()).collect();
                let engine = engine();
                let x = engine.tensor(&all).unwrap().expr();
                let rows = x.slice(&[0..2 * length]).reshape(&[2, length]);
                let cases: [(Expr, &dyn Fn(usize) -> usize); 3] = [
                    (x.slice(&[1..length + 1]), &|at| at + 1),
                    (rows.transpose(), &|at| at % 2 * length + at / 2),
                    (rows.slice(&[1..2, 0..length]).broadcast_to(&[3, length]), &|at| length + at % length),
                ];
                for (view, place) in cases {
                    let got = view.cast(DType::$dtype).eval().unwrap().to_vec::<$to>().unwrap();
                    for (at, got) in got.into_iter().enumerate() {
                        let want = all[place(at)] as $to;
                        let is_nan = |x: &$to| x.partial_cmp(x).is_none();
                        let same = got.to_ne_bytes() == want.to_ne_bytes() || is_nan(&got) && is_nan(&want);
                        assert!(same, "{:?} as {}: {got:?}, not {want:?}; {at} of {length}", all[place(at)], stringify!($to));
                    }
                }
                check(&engine);
            }
        }
    )*};
}

casts! {
    doubles_are_rounded: f64, F32, f32, |bits| [f64::from_bits(bits), -0.0, 1e-320, f64::NAN, 1e300, (bits >> 20) as f64 / 3e7][bits as usize % 6];
    doubles_become_bytes: f64, U8, u8, |bits| [f64::NAN, -0.9, 1e300, -1e300, (bits % 4000) as f64 / 11.0 - 20.0][bits as usize % 5];
    floats_become_bytes: f32, U8, u8, |bits| [f32::NAN, -0.9, 1e30, -1e30, (bits % 4000) as f32 / 11.0 - 20.0][bits as usize % 5];
    floats_widen: f32, F64, f64, |bits| [f32::from_bits(bits as u32), -0.0, f32::INFINITY, f32::MIN_POSITIVE / 8.0][bits as usize % 4];
    wide_words_become_words: i64, I32, i32, |bits| bits.cast_signed();
    wide_words_become_bytes: i64, U8, u8, |bits| bits.cast_signed();
    words_become_bytes: i32, U8, u8, |bits| (bits >> 32) as i32;
    words_widen: i32, I64, i64, |bits| (bits >> 32) as i32;
    words_without_signs_widen: u32, I64, i64, |bits| (bits >> 32) as u32;
    words_become_doubles: i32, F64, f64, |bits| (bits >> 32) as i32;
    bytes_become_doubles: u8, F64, f64, |bits| (bits >> 32) as u8;
    bytes_become_floats: u8, F32, f32, |bits| (bits >> 32) as u8;
}

macro_rules! complexes {
    ($($name:ident: $ty:ty, $dtype:ident;)*) => {$(
        #[test]
        fn $name() {
            let mut numbers = Numbers::new(59);
            let special = [<$ty>::NAN, <$ty>::INFINITY, -0.0, 0.0];
            let mut part = move || match numbers.below(40) {
                at @ 0..4 => special[at],
                _ => <$ty>::from(numbers.float()),
            };
            for [rows, columns] in [[1, 1], [1, 7], [3, 5], [50, 3], [5, 16], [41, 100], [2, 1500], [300, 31], [1, 70_001], [9, 5000]] {
                let mut all = || -> Vec<Complex<$ty>> { (0..rows * columns).map(|_| Complex::new(part(), part())).collect() };
                let (a, b) = (all(), all());
                let engine = engine();
                let [x, y] = [&a, &b].map(|all| engine.tensor_from(all, &[rows, columns]).unwrap().expr());
                let row = y.slice(&[rows - 1..rows, 0..columns]);
                let last = |at: usize| b[(rows - 1) * columns + at % columns];
                let product = |x: Complex<$ty>, y: Complex<$ty>| Complex::new(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
                let cases: [(&str, Expr, &dyn Fn(usize) -> Complex<$ty>); 7] = [
                    ("sum", &x + &y, &|at| a[at] + b[at]),
                    ("difference with a row", &x - &row, &|at| a[at] - last(at)),
                    ("product", &x * &y, &|at| product(a[at], b[at])),
                    ("product with a row", &x * &row, &|at| product(a[at], last(at))),
                    ("square", &x * &x, &|at| product(a[at], a[at])),
                    ("negative sum", -(&x + &y), &|at| -(a[at] + b[at])),
                    ("turned", x.imag().complex(x.real()), &|at| Complex::new(a[at].im, a[at].re)),
                ];
                for (what, got, want) in cases {
                    let got = got.eval().unwrap();
                    assert_eq!(got.dtype(), DType::$dtype);
                    for (at, got) in got.to_vec::<Complex<$ty>>().unwrap().into_iter().enumerate() {
                        let want = want(at);
                        let same = |x: $ty, y: $ty| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
                        assert!(same(got.re, want.re) && same(got.im, want.im), "{what} [{rows}, {columns}] at {at}: {got}, not {want}");
                    }
                }
                check(&engine);
            }
        }
    )*};
}

complexes! {
    complex_numbers_of_floats_stay_in_memory: f32, Complex64;
    complex_numbers_of_doubles_stay_in_memory: f64, Complex128;
}

/// A comparison and other results of one chain.
#[test]
fn several_results_of_which_one_is_narrow() {
    let mut numbers = Numbers::new(60);
    for length in LENGTHS {
        let values: Vec<f32> = (0..length).map(|_| numbers.float()).collect();
        let engine = engine();
        let x = engine.tensor(&values).unwrap().expr();
        let (twice, positive) = (&x * 2.0, (&x + 1.0).greater(0.5));
        let [twice, positive] = [twice.eval().unwrap(), positive.eval().unwrap()];
        assert_eq!(twice.to_vec::<f32>().unwrap(), values.iter().map(|x| x * 2.0).collect::<Vec<_>>());
        assert_eq!(positive.to_vec::<bool>().unwrap(), values.iter().map(|x| x + 1.0 > 0.5).collect::<Vec<_>>());
        check(&engine);
    }
}

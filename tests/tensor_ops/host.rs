//! Operations that the host computes for dtypes without kernels, against their definitions.

use cantus::num_complex::Complex;
use cantus::ops::{self, Expr};
use cantus::{DType, Engine, Tensor};

use crate::{Numbers, engines};

type C = Complex<f64>;

/// The CPU, which has every dtype.
fn engine() -> Engine {
    engines().iter().find(|engine| engine.selected().device.backend == "cpu").expect("the CPU is always there").clone()
}

fn complexes(engine: &Engine, shape: &[usize], seed: u64) -> (Vec<C>, Tensor) {
    let mut numbers = Numbers::new(seed);
    let mut next = || f64::from(numbers.float());
    let values: Vec<C> = (0..shape.iter().product()).map(|_| C::new(next(), next())).collect();
    let tensor = engine.tensor_from(&values, shape).unwrap();
    (values, tensor)
}

/// A matrix product by its definition.
fn product(a: &[C], b: &[C], [m, k, n]: [usize; 3]) -> Vec<C> {
    (0..m * n).map(|at| (0..k).map(|j| a[at / n * k + j] * b[j * n + at % n]).sum()).collect()
}

fn adjoint(a: &[C], [m, n]: [usize; 2]) -> Vec<C> {
    (0..m * n).map(|at| a[at % m * n + at / m].conj()).collect()
}

fn read(expr: &Expr) -> Vec<C> {
    let tensor = expr.cast(DType::Complex128).eval().unwrap();
    tensor.to_vec::<C>().unwrap()
}

fn assert_near(got: &[C], expected: &[C], tolerance: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (place, (x, y)) in got.iter().zip(expected).enumerate() {
        assert!((x - y).norm() <= tolerance, "{what}[{place}]: {x}, expected {y}");
    }
}

fn identity(n: usize) -> Vec<C> {
    (0..n * n).map(|at| C::from(if at / n == at % n { 1.0 } else { 0.0 })).collect()
}

#[test]
fn orders_of_64_bits_are_those_of_the_numbers() {
    let engine = engine();
    let floats = [3.5, f64::NAN, -0.0, 0.0, f64::NEG_INFINITY, 1e-300, -1e300, 3.5];
    let x = engine.tensor(&floats).unwrap();
    assert_eq!(x.argsort(0, false).eval().unwrap().to_vec::<u32>().unwrap(), [4, 6, 2, 3, 5, 0, 7, 1]);
    assert_eq!(x.argsort(0, true).eval().unwrap().to_vec::<u32>().unwrap(), [1, 0, 7, 5, 2, 3, 6, 4]);
    let whole = engine.tensor_from(&[i64::MAX, i64::MIN, -1, 1 << 40, (1 << 40) + 1, 0], &[2, 3]).unwrap();
    let sorted = whole.sort(-1, false).eval().unwrap().to_vec::<i64>().unwrap();
    assert_eq!(sorted, [i64::MIN, -1, i64::MAX, 0, 1 << 40, (1 << 40) + 1]);
    let (best, places) = whole.topk(1, 1, true);
    assert_eq!(best.eval().unwrap().to_vec::<i64>().unwrap(), [i64::MAX, (1 << 40) + 1]);
    assert_eq!(places.eval().unwrap().to_vec::<u32>().unwrap(), [0, 1]);
    let row = engine.tensor(&[1_u64, 1 << 63, 1 << 63, u64::MAX]).unwrap();
    let values = engine.tensor(&[0_u64, 1 << 63, u64::MAX]).unwrap();
    assert_eq!(row.searchsorted(&values, false).eval().unwrap().to_vec::<u32>().unwrap(), [0, 1, 3]);
    assert_eq!(row.searchsorted(&values, true).eval().unwrap().to_vec::<u32>().unwrap(), [0, 3, 4]);
}

#[test]
fn products_of_other_numbers_than_float32() {
    let engine = engine();
    let (a, x) = complexes(&engine, &[5, 130], 1);
    let (b, y) = complexes(&engine, &[130, 3], 2);
    assert_near(&read(&x.matmul(&y)), &product(&a, &b, [5, 130, 3]), 1e-11, "complex128");
    let (left, right) = (engine.tensor_from(&[i64::MAX, 2], &[1, 2]).unwrap(), engine.tensor(&[2_i64, 3]).unwrap());
    assert_eq!(left.matmul(&right).eval().unwrap().to_vec::<i64>().unwrap(), [4], "integers wrap");
    let bytes = engine.tensor_from(&[200_u8, 100, 1, 2], &[2, 2]).unwrap();
    assert_eq!(bytes.matmul(&bytes).eval().unwrap().to_vec::<u8>().unwrap(), [164, 232, 202, 104]);
}

#[test]
fn factorisations_multiply_to_what_they_are_of() {
    let engine = engine();
    for [m, n] in [[1, 1], [4, 4], [7, 3], [3, 7], [12, 12]] {
        for is_real in [false, true] {
            let (_, tensor) = complexes(&engine, &[m, n], (m * n) as u64);
            let x = if is_real { tensor.real() } else { tensor.expr() };
            let (a, what) = (read(&x), format!("{m} x {n}, real: {is_real}"));
            for full in [false, true] {
                let (q, r) = if full { x.qr_complete() } else { x.qr() };
                let inner = q.shape().unwrap()[1];
                assert_eq!(inner, if full { m } else { m.min(n) });
                let (q, r) = (read(&q), read(&r));
                assert_near(&product(&q, &r, [m, inner, n]), &a, 1e-12, &format!("Q R of {what}"));
                assert_near(&product(&adjoint(&q, [m, inner]), &q, [inner, m, inner]), &identity(inner), 1e-12, &what);
                assert!(
                    (0..inner).all(|row| (0..row.min(n)).all(|column| r[row * n + column] == C::from(0.0))),
                    "{what}"
                );
                let (u, values, vh) = if full { x.svd_full() } else { x.svd() };
                let ([left, right], k) = ([u.shape().unwrap()[1], vh.shape().unwrap()[0]], m.min(n));
                let (u, values, vh) = (read(&u), read(&values), read(&vh));
                assert!(
                    values.windows(2).all(|pair| pair[0].re >= pair[1].re)
                        && values.iter().all(|value| value.re >= 0.0)
                );
                let scaled: Vec<C> = (0..m * k).map(|at| u[at / k * left + at % k] * values[at % k]).collect();
                assert_near(&product(&scaled, &vh[..k * n], [m, k, n]), &a, 1e-12, &format!("U S V of {what}"));
                assert_near(&product(&adjoint(&u, [m, left]), &u, [left, m, left]), &identity(left), 1e-12, &what);
                assert_near(
                    &product(&vh, &adjoint(&vh, [right, n]), [right, n, right]),
                    &identity(right),
                    1e-12,
                    &what,
                );
            }
            if m != n {
                continue;
            }
            let inverse = read(&x.inverse());
            assert_near(&product(&a, &inverse, [n, n, n]), &identity(n), 1e-10, &format!("the inverse of {what}"));
            let determinant = read(&x.det())[0];
            let (sign, logarithm) = x.slogdet();
            let again = read(&sign)[0] * read(&logarithm)[0].re.exp();
            assert!((determinant - again).norm() <= 1e-12 * determinant.norm(), "{what}");
            let (_, right) = complexes(&engine, &[n, 2], 99);
            let solution = read(&x.cast(DType::Complex128).solve(&right));
            assert_near(&product(&a, &solution, [n, n, 2]), &read(&right.expr()), 1e-10, &format!("solve of {what}"));
            // A Aᴴ + 1 is Hermitian and positive definite.
            let definite: Vec<C> =
                product(&a, &adjoint(&a, [n, n]), [n, n, n]).iter().zip(identity(n)).map(|(x, y)| x + y).collect();
            let tensor = engine.tensor_from(&definite, &[n, n]).unwrap();
            let hermitian = if is_real { tensor.real() } else { tensor.expr() };
            let factor = read(&hermitian.cholesky());
            assert_near(&product(&factor, &adjoint(&factor, [n, n]), [n, n, n]), &definite, 1e-10, &what);
            let (values, vectors) = hermitian.eigh();
            let (values, vectors) = (read(&values), read(&vectors));
            let scaled: Vec<C> = vectors.iter().enumerate().map(|(at, x)| x * values[at % n]).collect();
            assert_near(&product(&scaled, &adjoint(&vectors, [n, n]), [n, n, n]), &definite, 1e-10, &what);
            assert!(values.windows(2).all(|pair| pair[0].re <= pair[1].re), "{what}");
        }
    }
    let singular = engine.tensor_from(&[1.0_f64, 2.0, 2.0, 4.0], &[2, 2]).unwrap();
    assert!(singular.inverse().eval().unwrap().to_vec::<f64>().unwrap().iter().all(|value| value.is_nan()));
    assert_eq!(singular.det().eval().unwrap().item::<f64>().unwrap(), 0.0);
}

#[test]
fn complex_transforms_are_their_sums() {
    let engine = engine();
    // 37 and 74 take the chirp.
    for n in [1, 2, 3, 8, 12, 30, 37, 74] {
        let (x, tensor) = complexes(&engine, &[2, n], n as u64);
        let angle = |k: usize| -std::f64::consts::TAU * (k % n) as f64 / n as f64;
        let expected: Vec<C> = (0..2 * n)
            .map(|at| (0..n).map(|j| x[at / n * n + j] * C::from_polar(1.0, angle(at % n * j))).sum())
            .collect();
        assert_near(&read(&tensor.fft(1)), &expected, 1e-11 * n as f64, &format!("fft of {n}"));
        assert_near(&read(&tensor.fft(1).ifft(-1)), &x, 1e-12 * n as f64, &format!("ifft of {n}"));
        let single = tensor.cast(DType::Complex64);
        assert_near(&read(&single.fft(1)), &expected, 1e-5 * n as f64, &format!("fft of {n} complex64"));
        assert_near(&read(&single.transpose().fft(0).transpose().ifft(1)), &x, 1e-4, &format!("ifft of {n} complex64"));
    }
}

#[test]
fn functions_of_complex_numbers_invert_each_other() {
    let engine = engine();
    let (x, tensor) = complexes(&engine, &[500], 5);
    // Within the strips where the inverses are the functions' own.
    let small = tensor.expr() * 0.3;
    let expected: Vec<C> = x.iter().map(|x| x * 0.3).collect();
    for (what, there, back) in [
        ("sin", small.sin(), small.sin().asin()),
        ("tan", small.tan(), small.tan().atan()),
        ("sinh", small.sinh(), small.sinh().asinh()),
        ("tanh", small.tanh(), small.tanh().atanh()),
        ("exp", small.exp(), small.exp().log()),
        ("expm1", small.expm1(), small.expm1().log1p()),
        ("pow", small.pow(&(small.clone() * 0.0 + 2.0)), small.square()),
    ] {
        if what == "pow" {
            assert_near(&read(&there), &read(&back), 1e-13, what);
            continue;
        }
        assert_near(&read(&back), &expected, 1e-12, what);
    }
    // cos and cosh are even: one of two signs comes back.
    for (what, back) in [("cos", small.cos().acos()), ("cosh", small.cosh().acosh())] {
        for (got, expected) in read(&back).iter().zip(&expected) {
            assert!((got - expected).norm().min((got + expected).norm()) < 1e-10, "{what}: {got}, {expected}");
        }
    }
    let whole = engine.tensor(&[3_i64, -2, 1, -1]).unwrap().pow(engine.tensor(&[39_i64, 3, -5, -3]).unwrap());
    assert_eq!(whole.eval().unwrap().to_vec::<i64>().unwrap(), [3_i64.pow(39), -8, 1, -1]);
}

/// Host operations are parts of chains like any other operation, and of evaluations that come again over other numbers.
#[test]
fn functions_of_the_host_in_chains_that_come_again() {
    let engine = engine();
    for seed in 0..5 {
        let mut numbers = Numbers::new(900 + seed);
        let values: Vec<f64> = (0..9).map(|_| f64::from(numbers.float())).collect();
        let x = engine.tensor_from(&values, &[3, 3]).unwrap();
        // Of a matrix that is far from singular.
        let matrix = (&x * 0.2 + ops::eye(&engine, 3, 3, 0, DType::F64)).exp() - 1.0;
        let matrix = matrix + ops::eye(&engine, 3, 3, 0, DType::F64) * 4.0;
        let one = matrix.inverse().matmul(&matrix).eval().unwrap().to_vec::<f64>().unwrap();
        let is_one = one.iter().enumerate().all(|(at, x)| (x - f64::from(u8::from(at % 4 == 0))).abs() < 1e-12);
        assert!(is_one, "seed {seed}: {one:?}");
        let got = (x.exp().log() * 2.0).cbrt().eval().unwrap().to_vec::<f64>().unwrap();
        for (got, x) in got.iter().zip(&values) {
            assert!((got - (2.0 * x).cbrt()).abs() < 1e-12, "seed {seed}: {got} of {x}");
        }
        // Solutions with and without a right side, and two functions of the same shapes, are told apart.
        let right = engine.tensor_from(&values[..3], &[3, 1]).unwrap();
        let solved = matrix.matmul(matrix.solve(&right)).eval().unwrap().to_vec::<f64>().unwrap();
        assert!(solved.iter().zip(&values).all(|(got, x)| (got - x).abs() < 1e-12), "seed {seed}: {solved:?}");
        let sine = x.sin().eval().unwrap().to_vec::<f64>().unwrap();
        assert!(sine.iter().zip(&values).all(|(got, x)| (got - x.sin()).abs() < 1e-15), "seed {seed}: {sine:?}");
    }
}

/// Elements of 1, 2 and 8 bytes are gathered and scattered as they are.
#[test]
fn places_of_narrow_and_wide_elements() {
    let engine = engine();
    let mut numbers = Numbers::new(950);
    let index: Vec<i32> = (0..700).map(|_| numbers.below(60) as i32 - 30).collect();
    let values: Vec<i64> = (0..700).map(|_| numbers.below(200) as i64 - 100).collect();
    let at = |place: i32| if place < 0 { place + 30 } else { place } as usize;
    let places = engine.tensor(&index).unwrap();
    let (all, into) = (engine.tensor(&values).unwrap(), engine.tensor(&values[..30]).unwrap());
    for dtype in [DType::F64, DType::I64, DType::I32, DType::F32, DType::I16, DType::I8] {
        let taken = into.cast(dtype).take(&places, 0).cast(DType::I64).eval().unwrap().to_vec::<i64>().unwrap();
        assert!(taken.iter().zip(&index).all(|(got, &place)| *got == values[at(place)]), "{dtype}");
        if dtype.bytes() < 4 {
            continue;
        }
        let expected = |of: fn(i64, i64) -> i64| {
            let mut sums = values[..30].to_vec();
            index.iter().zip(&values).for_each(|(&place, &value)| sums[at(place)] = of(sums[at(place)], value));
            sums
        };
        let (x, v) = (into.cast(dtype), all.cast(dtype));
        let read = |expr: Expr| expr.cast(DType::I64).eval().unwrap().to_vec::<i64>().unwrap();
        assert_eq!(read(x.scatter_add(&places, &v, 0)), expected(|a, b| a + b), "{dtype}");
        assert_eq!(read(x.scatter_max(&places, &v, 0)), expected(i64::max), "{dtype}");
        assert_eq!(read(x.scatter_min(&places, &v, 0)), expected(i64::min), "{dtype}");
        assert_eq!(read(x.scatter(&places, &v, 0)), expected(|_, b| b), "{dtype}");
    }
    // Beyond both ends there is nothing to write to, which is an error where the result is read.
    let beyond = engine.tensor(&[-31_i32, 30, i32::MIN, i32::MAX, -1]).unwrap();
    let sums = into.scatter_add(&beyond, engine.tensor(&[7_i64; 5]).unwrap(), 0).eval();
    let error = sums.and_then(|sums| sums.to_vec::<i64>()).unwrap_err().to_string();
    assert!(error.contains("axis 0, whose indices are -30 to 29"), "{error}");
}

#[test]
fn host_memory_is_shared_both_ways() {
    let engine = engine();
    let values: Vec<f32> = (0..1000).map(|value| value as f32).collect();
    let start = std::ptr::NonNull::from(values.as_slice()).cast::<u8>();
    let address = start.as_ptr().cast_const();
    let aligned = address.align_offset(16) == 0;
    // SAFETY: the vector is kept with the tensor, and nothing writes to it.
    let memory = unsafe { cantus::backend::HostMemory::new(start, 4000, values) };
    let x = engine.tensor_from_host_memory(DType::F32, &[10, 100], memory).unwrap();
    let view = x.host_view().unwrap().unwrap();
    assert_eq!(view.as_ptr() == address, aligned, "nothing is copied where the memory is aligned");
    assert_eq!(x.sum(&[], false).eval().unwrap().item::<f32>().unwrap(), 499_500.0);
    let doubled = (x.expr() * 2.0).eval().unwrap();
    let view = doubled.host_view().unwrap().unwrap();
    drop(doubled);
    // SAFETY: the view keeps the memory of a tensor that nobody writes.
    let seen = unsafe { std::slice::from_raw_parts(view.as_ptr().cast::<f32>(), view.bytes() / 4) };
    assert!(seen.iter().enumerate().all(|(place, value)| *value == 2.0 * place as f32));
}

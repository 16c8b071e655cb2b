//! Factorisations and what follows from them: what is left of the equations that define them, in float64.

use cantus::Engine;
use cantus::ops::Expr;
use kit::turn::everything;
use ndarray::{Array2, ArrayD, Axis, Ix2, Ix3, IxDyn};

use crate::{Numbers, by_turns, close, few, name, tensor, wide};

/// Float32's rounding.
const UNIT: f64 = 6e-8;

fn read(expr: &Expr, what: &str) -> ArrayD<f64> {
    let tensor = expr.eval().unwrap_or_else(|error| panic!("{what}: {error}"));
    let values = tensor.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect();
    ArrayD::from_shape_vec(IxDyn(tensor.shape()), values).unwrap()
}

/// Each matrix of a batch of one axis.
fn each(array: &ArrayD<f64>) -> Vec<Array2<f64>> {
    let array = array.clone().into_dimensionality::<Ix3>().unwrap();
    array.axis_iter(Axis(0)).map(|matrix| matrix.to_owned()).collect()
}

fn norm(matrix: &Array2<f64>) -> f64 {
    matrix.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn small(left: &Array2<f64>, beside: f64, what: &str) {
    let off = norm(left);
    assert!(off <= beside, "{what}: {off:e}, at most {beside:e}");
}

fn identity_but(q: &Array2<f64>, what: &str) {
    let n = q.ncols();
    small(&(q.t().dot(q) - Array2::<f64>::eye(n)), 20.0 * UNIT * (1.0 + n as f64), what);
}

/// Sides that meet one block, its edge, and several.
fn side(numbers: &mut Numbers) -> usize {
    let most = if everything() { 150 } else { 80 };
    match numbers.below(6) {
        0 => 1,
        1 => 2,
        2 => 31 + numbers.below(4),
        3 => 1 + numbers.below(most),
        _ => 1 + numbers.below(20),
    }
}

fn cases(engine: &Engine, from: u64, count: u64) -> impl Iterator<Item = (u64, Numbers)> {
    few(engine, 0..count).map(move |seed| (seed, Numbers::new(from + seed)))
}

#[test]
fn elimination() {
    for engine in by_turns() {
        for (seed, mut numbers) in cases(engine, 3000, 16) {
            let (batch, m, n) = (1 + numbers.below(3), side(&mut numbers), side(&mut numbers));
            let a = numbers.array(&[batch, m, n]);
            let what = format!("lu of {batch} {m} x {n}, seed {seed}, on {}", name(engine));
            let (packed, order) = tensor(engine, &a).lu();
            let packed = each(&read(&packed, &what));
            let order = order.eval().unwrap().to_vec::<u32>().unwrap();
            for (at, (packed, a)) in packed.iter().zip(each(&wide(&a))).enumerate() {
                let k = m.min(n);
                let l = Array2::from_shape_fn((m, k), |(i, j)| if i > j { packed[[i, j]] } else { f64::from(i == j) });
                let u = Array2::from_shape_fn((k, n), |(i, j)| if i <= j { packed[[i, j]] } else { 0.0 });
                assert!(l.iter().all(|x| x.abs() <= 1.0), "{what}: a multiplier above 1");
                let order: Vec<usize> = order[at * m..(at + 1) * m].iter().map(|&row| row as usize).collect();
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..m).collect::<Vec<_>>(), "{what}");
                small(&(l.dot(&u) - a.select(Axis(0), &order)), 8.0 * UNIT * k as f64 * norm(&l) * norm(&u), &what);
            }
        }
    }
}

#[test]
fn systems_of_equations() {
    for engine in by_turns() {
        for (seed, mut numbers) in cases(engine, 3050, 16) {
            let (batch, n, columns) = (1 + numbers.below(3), side(&mut numbers), 1 + numbers.below(5));
            let (a, b) = (numbers.array(&[batch, n, n]), numbers.array(&[n, columns]));
            let what = format!("{batch} {n} with {columns}, seed {seed}, on {}", name(engine));
            let t = tensor(engine, &a);
            // One right side for all of the batch.
            let x = each(&read(&t.solve(tensor(engine, &b)), &what));
            let right = wide(&b).into_dimensionality::<Ix2>().unwrap();
            for (x, a) in x.iter().zip(each(&wide(&a))) {
                small(&(a.dot(x) - &right), 40.0 * UNIT * n as f64 * norm(&a) * norm(x), &what);
            }
            let vector = b.index_axis(Axis(1), 0).to_owned();
            let x = read(&t.solve(tensor(engine, &vector)), &what);
            assert_eq!(x.shape(), [batch, n], "{what}");
            let inverse = each(&read(&t.inverse(), &what));
            for (inverse, a) in inverse.iter().zip(each(&wide(&a))) {
                let limit = 40.0 * UNIT * n as f64 * norm(&a) * norm(inverse);
                small(&(a.dot(inverse) - Array2::<f64>::eye(n)), limit, &format!("inverse, {what}"));
            }
        }
    }
}

#[test]
fn triangles() {
    for engine in by_turns() {
        for (seed, mut numbers) in cases(engine, 3100, 12) {
            let (batch, n, columns) = (1 + numbers.below(3), side(&mut numbers), 1 + numbers.below(40));
            let upper = seed % 2 == 0;
            // Tame ones: what lies off the diagonal is small. The other triangle must not be read.
            let a = numbers.array(&[batch, n, n]);
            let a = ArrayD::from_shape_fn(a.raw_dim(), |at| match (at[1] == at[2], (at[1] < at[2]) == upper) {
                (true, _) => 3.0 + a[&at] / 4.0,
                (_, true) => a[&at] / n as f32,
                _ => f32::NAN,
            });
            let b = numbers.array(&[batch, n, columns]);
            let what = format!("{batch} {n} with {columns}, upper {upper}, seed {seed}, on {}", name(engine));
            let x = each(&read(&tensor(engine, &a).solve_triangular(tensor(engine, &b), upper), &what));
            for ((x, a), b) in x.iter().zip(each(&wide(&a))).zip(each(&wide(&b))) {
                let t = a.mapv(|x| if x.is_nan() { 0.0 } else { x });
                small(&(t.dot(x) - &b), 4.0 * UNIT * n as f64 * norm(&t) * norm(x), &what);
            }
        }
    }
}

/// Elimination in float64.
fn determinant(a: &Array2<f64>) -> (f64, f64) {
    let (mut a, n) = (a.clone(), a.nrows());
    let (mut sign, mut logarithm) = (1.0, 0.0);
    for j in 0..n {
        let pivot = (j..n).max_by(|&p, &q| a[[p, j]].abs().total_cmp(&a[[q, j]].abs())).unwrap();
        if pivot != j {
            sign = -sign;
            for c in 0..n {
                a.swap([pivot, c], [j, c]);
            }
        }
        let head = a[[j, j]];
        sign *= head.signum();
        logarithm += head.abs().ln();
        for i in j + 1..n {
            let factor = a[[i, j]] / head;
            for c in j..n {
                let above = a[[j, c]];
                a[[i, c]] -= factor * above;
            }
        }
    }
    (sign, logarithm)
}

#[test]
fn determinants() {
    for engine in by_turns() {
        for (seed, mut numbers) in cases(engine, 3150, 12) {
            let (batch, n) = (1 + numbers.below(3), side(&mut numbers));
            let a = numbers.array(&[batch, n, n]);
            let what = format!("{batch} {n}, seed {seed}, on {}", name(engine));
            let t = tensor(engine, &a);
            let expected: Vec<(f64, f64)> = each(&wide(&a)).iter().map(determinant).collect();
            let signs = ArrayD::from_shape_vec(IxDyn(&[batch]), expected.iter().map(|pair| pair.0).collect()).unwrap();
            let logarithms =
                ArrayD::from_shape_vec(IxDyn(&[batch]), expected.iter().map(|pair| pair.1).collect()).unwrap();
            let (sign, logarithm) = t.slogdet();
            close(&sign, &signs, 0.0, &what);
            close(&logarithm, &logarithms, 2e-4, &what);
            if logarithms.iter().all(|x| x.abs() < 80.0) {
                let det = read(&t.det(), &what);
                for (det, (sign, logarithm)) in det.iter().zip(expected) {
                    let expected = sign * logarithm.exp();
                    assert!((det - expected).abs() <= 2e-3 * expected.abs(), "{what}: {det}, expected {expected}");
                }
            }
        }
    }
}

#[test]
fn choleskys_factors() {
    for engine in by_turns() {
        for (seed, mut numbers) in cases(engine, 3200, 12) {
            let (batch, n) = (1 + numbers.below(3), side(&mut numbers));
            let b = wide(&numbers.array(&[batch, n, n]));
            let a: Vec<Array2<f32>> =
                each(&b).iter().map(|b| (b.dot(&b.t()) + Array2::<f64>::eye(n)).mapv(|x| x as f32)).collect();
            // Above the diagonal is what nobody reads.
            let given = ArrayD::from_shape_fn(IxDyn(&[batch, n, n]), |at| {
                if at[2] > at[1] { 1e9 } else { a[at[0]][[at[1], at[2]]] }
            });
            let what = format!("{batch} {n}, seed {seed}, on {}", name(engine));
            let factors = each(&read(&tensor(engine, &given).cholesky(), &what));
            for (l, a) in factors.iter().zip(&a) {
                assert!(
                    l.indexed_iter().all(|((i, j), &x)| j <= i || x == 0.0),
                    "{what}: something above the diagonal"
                );
                let a = a.mapv(f64::from);
                small(&(l.dot(&l.t()) - &a), 8.0 * UNIT * n as f64 * norm(&a), &what);
            }
        }
    }
}

#[test]
fn householders_factors() {
    for engine in by_turns() {
        for (seed, mut numbers) in cases(engine, 3250, 16) {
            let (batch, m, n) = (1 + numbers.below(3), side(&mut numbers), side(&mut numbers));
            // Some with nothing below the diagonal, of less rank, or far from 1.
            let scale = [1.0, 1e-30, 1e30][numbers.below(3)];
            let a = numbers.array(&[batch, m, n]).mapv(|x| x * scale);
            let a = match seed % 4 {
                0 => ArrayD::from_shape_fn(a.raw_dim(), |at| if at[1] <= at[2] { a[&at] } else { 0.0 }),
                1 => ArrayD::from_shape_fn(a.raw_dim(), |at| a[[at[0], at[1], at[2] / 2]]),
                _ => a,
            };
            let what = format!("qr of {batch} {m} x {n} by {scale:e}, seed {seed}, on {}", name(engine));
            let (q, r) = tensor(engine, &a).qr();
            let (q, r) = (each(&read(&q, &what)), each(&read(&r, &what)));
            for ((q, r), a) in q.iter().zip(&r).zip(each(&wide(&a))) {
                assert_eq!((q.dim(), r.dim()), ((m, m.min(n)), (m.min(n), n)), "{what}");
                assert!(
                    r.indexed_iter().all(|((i, j), &x)| i <= j || x == 0.0),
                    "{what}: something below the diagonal"
                );
                small(&(q.dot(r) - &a), 10.0 * UNIT * (1.0 + n as f64).sqrt() * norm(&a) * 4.0, &what);
                identity_but(q, &what);
            }
        }
    }
}

#[test]
fn eigenvalues_of_symmetric_matrices() {
    for engine in by_turns() {
        for (seed, mut numbers) in cases(engine, 3300, 16) {
            let (batch, n) = (1 + numbers.below(3), side(&mut numbers).min(if everything() { 150 } else { 48 }));
            let scale = [1.0, 1e-20, 1e20][numbers.below(3)];
            let half = numbers.array(&[batch, n, n]).mapv(|x| x * scale);
            let a = ArrayD::from_shape_fn(half.raw_dim(), |at| match seed % 4 {
                // Values that are alike: of a matrix of ones, and of a diagonal one.
                0 => scale,
                1 if at[1] != at[2] => 0.0,
                1 => scale * (at[1] / 2) as f32,
                _ => half[[at[0], at[1].max(at[2]), at[1].min(at[2])]],
            });
            let given = ArrayD::from_shape_fn(a.raw_dim(), |at| if at[2] > at[1] { 7.0 * scale } else { a[&at] });
            let what = format!("eigh of {batch} {n} by {scale:e}, seed {seed}, on {}", name(engine));
            let (values, vectors) = tensor(engine, &given).eigh();
            let (values, vectors) = (read(&values, &what), each(&read(&vectors, &what)));
            assert_eq!(values.shape(), [batch, n], "{what}");
            for (at, (v, a)) in vectors.iter().zip(each(&wide(&a))).enumerate() {
                let values = values.index_axis(Axis(0), at);
                let ascending = values.iter().zip(values.iter().skip(1)).all(|(a, b)| a <= b);
                assert!(ascending, "{what}: {values}");
                let scaled = Array2::from_shape_fn((n, n), |(i, j)| v[[i, j]] * values[j]);
                small(&(a.dot(v) - scaled), 20.0 * UNIT * (1.0 + n as f64) * norm(&a), &what);
                identity_but(v, &what);
            }
        }
    }
}

#[test]
fn singular_values() {
    for engine in by_turns() {
        for (seed, mut numbers) in cases(engine, 3350, 16) {
            let most = if everything() { 120 } else { 40 };
            let (batch, m, n) = (1 + numbers.below(2), side(&mut numbers).min(most), side(&mut numbers).min(most));
            let scale = [1.0, 1e-25, 1e25][numbers.below(3)];
            let a = numbers.array(&[batch, m, n]).mapv(|x| x * scale);
            let a = match seed % 4 {
                // Of rank 1, and of all sizes of values.
                0 => ArrayD::from_shape_fn(a.raw_dim(), |at| scale * (1 + at[1]) as f32 * (1 + at[2]) as f32),
                1 => ArrayD::from_shape_fn(a.raw_dim(), |at| a[&at] * 10.0_f32.powi(-((at[2] % 9) as i32))),
                2 if seed > 8 => a.mapv(|_| 0.0),
                _ => a,
            };
            let what = format!("svd of {batch} {m} x {n} by {scale:e}, seed {seed}, on {}", name(engine));
            let k = m.min(n);
            let (u, values, vt) = tensor(engine, &a).svd();
            let (u, values, vt) = (each(&read(&u, &what)), read(&values, &what), each(&read(&vt, &what)));
            assert_eq!(values.shape(), [batch, k], "{what}");
            for (at, ((u, vt), a)) in u.iter().zip(&vt).zip(each(&wide(&a))).enumerate() {
                let values = values.index_axis(Axis(0), at);
                let descending = values.iter().zip(values.iter().skip(1)).all(|(a, b)| a >= b);
                assert!(descending && values.iter().all(|&x| x >= 0.0), "{what}: {values}");
                assert_eq!((u.dim(), vt.dim()), ((m, k), (k, n)), "{what}");
                let scaled = Array2::from_shape_fn((m, k), |(i, j)| u[[i, j]] * values[j]);
                small(&(scaled.dot(vt) - &a), 20.0 * UNIT * (1.0 + k as f64) * norm(&a), &what);
                identity_but(u, &format!("U, {what}"));
                identity_but(&vt.t().to_owned(), &format!("V, {what}"));
            }
        }
    }
}

/// e^A by its series in float64, scaled and squared.
fn exponential(a: &Array2<f64>) -> Array2<f64> {
    let n = a.nrows();
    let a = a / 1024.0;
    let (mut term, mut sum) = (Array2::<f64>::eye(n), Array2::<f64>::eye(n));
    for k in 1..30 {
        term = term.dot(&a) / f64::from(k);
        sum += &term;
    }
    (0..10).fold(sum, |power, _| power.dot(&power))
}

#[test]
fn exponentials_of_matrices() {
    for engine in by_turns() {
        for (seed, mut numbers) in cases(engine, 3400, 10) {
            let (batch, n) = (1 + numbers.below(3), 1 + numbers.below(40));
            let scale = [0.01, 0.2, 1.5][numbers.below(3)] / (n as f32).sqrt();
            let a = numbers.array(&[batch, n, n]).mapv(|x| x * scale);
            let what = format!("expm of {batch} {n}, seed {seed}, on {}", name(engine));
            let got = each(&read(&tensor(engine, &a).expm(), &what));
            for (got, a) in got.iter().zip(each(&wide(&a))) {
                let expected = exponential(&a);
                small(&(got - &expected), 2e-6 * (1.0 + n as f64) * norm(&exponential(&a.mapv(f64::abs))), &what);
            }
        }
    }
}

#[test]
fn what_is_singular_is_nan() {
    for engine in by_turns() {
        // The second of three, so that its neighbours stay.
        let mut values = vec![2.0_f32, 0.0, 0.0, 2.0];
        values.extend([1.0, 2.0, 2.0, 4.0]);
        values.extend([4.0, 0.0, 0.0, 4.0]);
        let a = engine.tensor_from(&values, &[3, 2, 2]).unwrap();
        let what = &*name(engine);
        let nan = |expr: &Expr, what: &str| {
            let rows = read(expr, what);
            let flat = rows.to_shape((3, rows.len() / 3)).unwrap();
            flat.axis_iter(Axis(0)).map(|row| row.iter().map(|x| x.is_nan()).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        for (expr, op) in [(a.solve(engine.tensor(&[1.0_f32, 1.0]).unwrap()), "solve"), (a.inverse(), "inverse")] {
            let rows = nan(&expr, op);
            assert!(rows[1].iter().all(|&nan| nan), "{op} on {what}");
            assert!(rows[0].iter().chain(&rows[2]).all(|&nan| !nan), "{op} on {what}");
        }
        assert_eq!(read(&a.det(), what).into_raw_vec_and_offset().0, [4.0, 0.0, 16.0], "{what}");
        let (sign, logarithm) = a.slogdet();
        assert_eq!(read(&sign, what).into_raw_vec_and_offset().0, [1.0, 0.0, 1.0], "{what}");
        assert_eq!(read(&logarithm, what)[[1]], f64::NEG_INFINITY, "{what}");
        let indefinite =
            engine.tensor_from(&[4.0_f32, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 1.0, 9.0, 0.0, 0.0, 1.0], &[3, 2, 2]).unwrap();
        let rows = nan(&indefinite.cholesky(), "cholesky");
        assert!(rows[1].iter().all(|&nan| nan) && !rows[0][0] && !rows[2][0], "{what}");
        let zero = engine.tensor_from(&[1.0_f32, 0.0, 3.0, 0.0], &[2, 2]).unwrap();
        let x = read(&zero.solve_triangular(engine.tensor(&[1.0_f32, 1.0]).unwrap(), false), what);
        assert!(x.iter().all(|x| x.is_nan()), "{what}");
    }
}

#[test]
fn matrices_near_singular_have_small_residuals() {
    for engine in by_turns() {
        // Hilbert's, whose condition is beyond float32 at 8 rows.
        let n = 8;
        let a = ArrayD::from_shape_fn(IxDyn(&[1, n, n]), |at| 1.0 / (at[1] + at[2] + 1) as f32);
        let b = ArrayD::from_shape_fn(IxDyn(&[1, n, 1]), |at| 1.0 / (1 + at[1]) as f32);
        let what = format!("Hilbert's matrix on {}", name(engine));
        let x = each(&read(&tensor(engine, &a).solve(tensor(engine, &b)), &what));
        let (a, b) = (each(&wide(&a)), each(&wide(&b)));
        small(&(a[0].dot(&x[0]) - &b[0]), 40.0 * UNIT * n as f64 * norm(&a[0]) * norm(&x[0]), &what);
    }
}

#[test]
fn what_is_empty_stays_so() {
    for engine in by_turns() {
        for shape in [[0, 3, 3], [2, 0, 0]] {
            let a = engine.zeros::<f32>(&shape).unwrap();
            let what = format!("{shape:?} on {}", name(engine));
            let shapes = |expr: Expr| expr.eval().unwrap_or_else(|error| panic!("{what}: {error}")).shape().to_vec();
            for expr in
                [a.inverse(), a.cholesky(), a.qr().0, a.qr().1, a.eigh().1, a.svd().0, a.svd().2, a.expm(), a.lu().0]
            {
                assert_eq!(shapes(expr), shape, "{what}");
            }
            for expr in [a.eigh().0, a.svd().1, a.lu().1, a.solve(engine.zeros::<f32>(&[shape[1]]).unwrap())] {
                assert_eq!(shapes(expr), shape[..2], "{what}");
            }
            assert_eq!(shapes(a.det()), shape[..1], "{what}");
        }
        let empty = engine.zeros::<f32>(&[2, 0, 0]).unwrap();
        assert_eq!(empty.det().eval().unwrap().to_vec::<f32>().unwrap(), [1.0, 1.0], "{}", name(engine));
        let flat = engine.zeros::<f32>(&[3, 0]).unwrap();
        assert_eq!(flat.qr().0.eval().unwrap().shape(), [3, 0]);
        assert_eq!(flat.svd().2.eval().unwrap().shape(), [0, 0]);
    }
}

#[test]
fn other_numbers_are_told_of() {
    for engine in by_turns().iter().filter(|engine| engine.selected().device.backend == "cpu") {
        let a = engine.tensor_from(&[1.0_f32, f32::NAN, f32::NAN, 1.0], &[2, 2]).unwrap();
        for expr in [a.eigh().0, a.svd().1, a.expm(), a.inverse(), a.qr().1] {
            assert!(read(&expr, "of NaN").iter().any(|x| x.is_nan()));
        }
    }
}

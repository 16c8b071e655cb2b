//! Fourier transforms against the definition in float64.

use std::f64::consts::TAU;

use cantus::Engine;
use cantus::ops::{Expr, Overlap};
use kit::turn::everything;
use ndarray::{ArrayD, Axis, IxDyn};

use crate::{Numbers, by_turns, few, name, tensor, wide};

/// Complex numbers (…, 2) transformed along an axis, from the definition: the angle's whole turns are left out exactly.
fn defined(x: &ArrayD<f64>, axis: usize, inverse: bool) -> ArrayD<f64> {
    let n = x.shape()[axis];
    let roots: Vec<(f64, f64)> = (0..n).map(|k| (TAU * k as f64 / n as f64).sin_cos()).collect();
    let sign = if inverse { 1.0 } else { -1.0 };
    let mut result = x.clone();
    let (real, imaginary) = (x.index_axis(Axis(x.ndim() - 1), 0), x.index_axis(Axis(x.ndim() - 1), 1));
    let rows = real.lanes(Axis(axis)).into_iter().zip(imaginary.lanes(Axis(axis)));
    let spectra: Vec<Vec<(f64, f64)>> = rows
        .map(|(re, im)| {
            (0..n)
                .map(|k| {
                    let (mut a, mut b) = (0.0, 0.0);
                    for i in 0..n {
                        let (sine, cosine) = roots[k * i % n];
                        a += re[i] * cosine - sign * im[i] * sine;
                        b += im[i] * cosine + sign * re[i] * sine;
                    }
                    let scale = if inverse { 1.0 / n as f64 } else { 1.0 };
                    (a * scale, b * scale)
                })
                .collect()
        })
        .collect();
    for part in 0..2 {
        let mut to = result.index_axis_mut(Axis(x.ndim() - 1), part);
        for (mut lane, spectrum) in to.lanes_mut(Axis(axis)).into_iter().zip(&spectra) {
            for (to, from) in lane.iter_mut().zip(spectrum) {
                *to = if part == 0 { from.0 } else { from.1 };
            }
        }
    }
    result
}

/// Each element within `tolerance` of the root of the mean square of what is expected.
fn near(got: &Expr, expected: &ArrayD<f64>, tolerance: f64, what: &str) {
    let got = got.eval().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(got.shape(), expected.shape(), "{what}");
    let squares: f64 = expected.iter().map(|x| x * x).sum();
    let scale = (squares / expected.len().max(1) as f64).sqrt().max(1e-30);
    for (place, (got, want)) in got.to_vec::<f32>().unwrap().iter().zip(expected).enumerate() {
        let error = (f64::from(*got) - want).abs() / scale;
        assert!(error <= tolerance, "{what}[{place}]: {got}, expected {want}, {error:e} of {scale:e}");
    }
}

/// Returns the largest error of an element, relative to the root mean square.
fn tolerance(length: usize) -> f64 {
    6e-7 * (2.0 + (length as f64).log2())
}

/// Small ones, powers, products of radices, primes with and without a pass of their own.
const LENGTHS: [usize; 34] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 19, 22, 25, 26, 31, 32, 49, 60, 64, 77, 97, 100, 121, 128, 143, 210,
    256, 257, 360, 1001,
];

#[test]
fn every_kind_of_length_forwards_and_back() {
    for engine in by_turns() {
        for seed in few(engine, 0..LENGTHS.len() as u64) {
            let mut numbers = Numbers::new(2300 + seed);
            let length = LENGTHS[seed as usize];
            let rows = 1 + numbers.below(3);
            let x = numbers.array(&[rows, length, 2]);
            let t = tensor(engine, &x);
            let f = wide(&x);
            let what = format!("{rows} rows of {length} on {}", name(engine));
            near(&t.fft(1), &defined(&f, 1, false), tolerance(length), &what);
            near(&t.ifft(-1), &defined(&f, 1, true), tolerance(length), &format!("inverse, {what}"));
            near(&t.fft(1).ifft(1), &f, 2.0 * tolerance(length), &format!("there and back, {what}"));
        }
    }
}

/// Lengths that the processor cuts into rows and columns, at some places.
#[test]
fn long_rows_by_rows_and_columns() {
    for engine in by_turns() {
        for seed in few(engine, 0..4) {
            let mut numbers = Numbers::new(2340 + seed);
            let length = [1 << 15, 3 << 14, 225 * 225, 250 * 200][seed as usize];
            let x = numbers.array(&[2, length, 2]);
            let t = tensor(engine, &x);
            let what = format!("rows of {length} on {}", name(engine));
            let of = |expr: &Expr| expr.eval().unwrap().to_vec::<f32>().unwrap();
            let (forwards, inverse) = (of(&t.fft(1)), of(&t.ifft(1)));
            for place in (0..12).map(|_| numbers.below(length)) {
                for row in 0..2 {
                    let mut sums = [[0.0_f64; 2]; 2];
                    for n in 0..length {
                        let angle = TAU * (n * place % length) as f64 / length as f64;
                        let [re, im] = [0, 1].map(|part| f64::from(x[[row, n, part]]));
                        for (sum, angle) in sums.iter_mut().zip([-angle, angle]) {
                            sum[0] += re * angle.cos() - im * angle.sin();
                            sum[1] += re * angle.sin() + im * angle.cos();
                        }
                    }
                    // The norm of a row of numbers below 4.
                    let near = 1e-7 * (length as f64).log2() * 4.0 * (2.0 * length as f64).sqrt();
                    for (results, (sums, scale)) in [(&forwards, (sums[0], 1.0)), (&inverse, (sums[1], length as f64))]
                    {
                        let at = (row * length + place) * 2;
                        for (got, sum) in results[at..at + 2].iter().zip(sums) {
                            let got = f64::from(*got) * scale;
                            assert!((got - sum).abs() < near, "{what}, place {place} by {scale}: {got}, not {sum}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn along_any_axis_and_several() {
    for engine in by_turns() {
        for seed in few(engine, 0..16) {
            let mut numbers = Numbers::new(2350 + seed);
            let rank = 1 + numbers.below(3);
            let mut shape: Vec<usize> = (0..rank).map(|_| 1 + numbers.below(12)).collect();
            let count: usize = shape.iter().product();
            shape.push(2);
            let x = numbers.array(&shape);
            let (t, f) = (tensor(engine, &x), wide(&x));
            let axis = numbers.below(rank);
            let what = format!("{shape:?} along {axis}, seed {seed}, on {}", name(engine));
            near(&t.fft(axis as isize), &defined(&f, axis, false), tolerance(count), &what);
            // Of an expression, strided.
            let turned = wide(&x).permuted_axes(IxDyn(&(0..rank).rev().chain([rank]).collect::<Vec<_>>()));
            let order: Vec<isize> = (0..rank).rev().chain([rank]).map(|axis| axis as isize).collect();
            let doubled = (&t * 2.0).permute(&order);
            near(&doubled.ifft(axis as isize), &(defined(&turned, axis, true) * 2.0), tolerance(count), &what);
            let all = (0..rank).fold(f.clone(), |f, axis| defined(&f, axis, false));
            near(&t.fftn(&[]), &all, tolerance(count), &what);
            near(&t.fftn(&[]).ifftn(&[]), &f, 2.0 * tolerance(count), &what);
            let some = defined(&defined(&f, 0, true), rank - 1, true);
            if rank > 1 {
                near(&t.ifftn(&[-1, 0]), &some, tolerance(count), &what);
            }
        }
    }
}

#[test]
fn real_numbers_have_half_a_spectrum() {
    for engine in by_turns() {
        for seed in few(engine, 0..20) {
            let mut numbers = Numbers::new(2400 + seed);
            let length = LENGTHS[numbers.below(LENGTHS.len())];
            let shape = if seed % 2 == 0 { vec![3, length] } else { vec![length, 2] };
            let axis = 1 - seed as usize % 2;
            let x = numbers.array(&shape);
            let (t, f) = (tensor(engine, &x), wide(&x));
            let zeros = ArrayD::zeros(f.raw_dim());
            let complex = ndarray::stack(Axis(2), &[f.view(), zeros.view()]).unwrap();
            let whole = defined(&complex, axis, false);
            let half = whole.slice_axis(Axis(axis), ndarray::Slice::from(..length / 2 + 1)).to_owned();
            let what = format!("{shape:?} along {axis} on {}", name(engine));
            near(&t.rfft(axis as isize), &half, tolerance(length), &what);
            near(&t.rfft(axis as isize).irfft(length, axis as isize), &f, 2.0 * tolerance(length), &what);
            // Of any numbers: as of the whole spectrum, whose first and middle numbers are real.
            let mut any = half.mapv(|x| x * 0.5);
            any[[0, 0, 1]] += 3.0;
            let got = tensor(engine, &any.mapv(|x| x as f32)).irfft(length, axis as isize);
            near(&got, &(&f * 0.5), 2.0 * tolerance(length), &format!("an imaginary part that does not count, {what}"));
            let both = defined(&whole, axis ^ 1, false);
            let last = defined(&complex, 1, false);
            let last = last.slice_axis(Axis(1), ndarray::Slice::from(..shape[1] / 2 + 1)).to_owned();
            let all = defined(&last, 0, false);
            near(&t.rfftn(&[]), &all, tolerance(length * 3), &what);
            near(&t.rfftn(&[]).irfftn(shape[1], &[]), &f, 2.0 * tolerance(length * 3), &what);
            assert_eq!(both.shape(), complex.shape());
        }
    }
}

/// Long ones by what is known of them: a wave is one number, and energy stays.
fn long(engine: &Engine, length: usize) {
    let (wave, shift) = (length / 3 + 1, 0.7);
    let x: Vec<f32> = (0..length)
        .flat_map(|n| {
            let angle = TAU * (wave as u64 * n as u64 % length as u64) as f64 / length as f64 + shift;
            [angle.cos() as f32, angle.sin() as f32]
        })
        .collect();
    let t = engine.tensor_from(&x, &[length, 2]).unwrap();
    let spectrum = t.fft(0).eval().unwrap().to_vec::<f32>().unwrap();
    // The wave itself is rounded, and so are the roots of unity: what is lost may be a wave too.
    let limit = tolerance(length) * (length as f64).sqrt() + 1.2e-7 * length as f64;
    for (k, pair) in spectrum.chunks(2).enumerate() {
        let expected = if k == wave { (length as f64 * shift.cos(), length as f64 * shift.sin()) } else { (0.0, 0.0) };
        let off = (f64::from(pair[0]) - expected.0).hypot(f64::from(pair[1]) - expected.1);
        let own = if k == wave { 2e-6 * length as f64 } else { limit };
        assert!(off <= own, "{length}[{k}]: {pair:?}, expected {expected:?} on {}", name(engine));
    }
}

#[test]
fn long_transforms_find_a_wave() {
    for engine in by_turns() {
        let all = [3 * 5 * 7 * 11 * 13, 10_007, 1 << 15, 1 << 20, 1_000_003, 1 << 22];
        let most = if everything() { all.len() } else { 2 };
        for &length in &all[..most] {
            long(engine, length);
        }
    }
}

#[test]
fn transforms_are_linear_and_shifts_turn_them() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(2450);
        let (x, n) = (numbers.array(&[90, 2]), 90);
        let t = tensor(engine, &x);
        // A shift by one multiplies number k by e^(-2 pi i k / N).
        let turned = ArrayD::from_shape_fn(IxDyn(&[n, 2]), |at| {
            let (sine, cosine) = (TAU * at[0] as f64 / n as f64).sin_cos();
            let whole = defined(&wide(&x), 0, false);
            let (a, b) = (whole[[at[0], 0]], whole[[at[0], 1]]);
            if at[1] == 0 { a * cosine + b * sine } else { b * cosine - a * sine }
        });
        near(&t.roll(&[1], &[0]).fft(0), &turned, tolerance(n), &name(engine));
    }
}

#[test]
fn convolutions_short_and_long() {
    for engine in by_turns() {
        for seed in few(engine, 0..16) {
            let mut numbers = Numbers::new(2500 + seed);
            let (n, m) = match seed % 4 {
                0 => (1 + numbers.below(9), 1 + numbers.below(9)),
                1 => (200 + numbers.below(400), 1 + numbers.below(30)),
                2 => (150 + numbers.below(900), 130 + numbers.below(900)),
                _ => (1 + numbers.below(40), 150),
            };
            let rows = 1 + numbers.below(3);
            let (x, w) = (numbers.array(&[rows, n]), numbers.array(&[m]));
            let full = ArrayD::from_shape_fn(IxDyn(&[rows, n + m - 1]), |at| {
                (0..m)
                    .filter(|&j| j <= at[1] && at[1] - j < n)
                    .map(|j| f64::from(x[[at[0], at[1] - j]]) * f64::from(w[[j]]))
                    .sum()
            });
            let (t, s) = (tensor(engine, &x), tensor(engine, &w));
            let what = format!("{rows} times {n} and {m} on {}", name(engine));
            let part = |from: usize, count: usize| {
                full.slice_axis(Axis(1), ndarray::Slice::from(from..from + count)).to_owned()
            };
            near(&t.convolve(&s, Overlap::Full), &full, 1e-5, &what);
            near(&t.convolve(&s, Overlap::Same), &part((m - 1) / 2, n), 1e-5, &what);
            near(&t.convolve(&s, Overlap::Valid), &part(n.min(m) - 1, n.max(m) - n.min(m) + 1), 1e-5, &what);
        }
    }
}

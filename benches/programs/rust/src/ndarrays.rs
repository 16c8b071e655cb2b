//! The programs on ndarray: products by matrixmultiply, elements by `Zip`, in parallel where an array is large. In float64 they are what the others are held to.

#![allow(clippy::reversed_empty_ranges, reason = "ndarray counts negative ends from the end")]

use std::error::Error;

use ndarray::{Array, Array1, Array2, Array3, Axis, Dimension, Ix2, NdFloat, Zip, azip, s};

use crate::{Inputs, Run};

/// float32 or float64.
pub trait Real: NdFloat {
    fn of(x: f64) -> Self;
    fn wide(self) -> f64;
    fn erf(self) -> Self;
}

impl Real for f32 {
    fn of(x: f64) -> Self {
        x as Self
    }
    fn wide(self) -> f64 {
        f64::from(self)
    }
    fn erf(self) -> Self {
        libm::erff(self)
    }
}

impl Real for f64 {
    fn of(x: f64) -> Self {
        x
    }
    fn wide(self) -> f64 {
        self
    }
    fn erf(self) -> Self {
        libm::erf(self)
    }
}

type Prepared = Result<Run, Box<dyn Error>>;

fn run<T: Copy + 'static, D: Dimension + 'static>(
    program: impl Fn() -> Array<T, D> + 'static,
    wide: fn(T) -> f64,
) -> Prepared {
    Ok(Box::new(move || {
        let result = program();
        Ok(Box::new(move || Ok(result.iter().map(|&x| wide(x)).collect())))
    }))
}

fn sigmoid<F: Real>(x: F) -> F {
    F::one() / (F::one() + (-x).exp())
}

fn rolled<T: Copy>(x: &Array2<T>, by: isize, axis: usize) -> Array2<T> {
    let by = by.rem_euclid(x.len_of(Axis(axis)) as isize);
    let (last, rest) = (x.slice_axis(Axis(axis), (-by..).into()), x.slice_axis(Axis(axis), (..-by).into()));
    let mut all = x.clone();
    all.slice_axis_mut(Axis(axis), (..by).into()).assign(&last);
    all.slice_axis_mut(Axis(axis), (by..).into()).assign(&rest);
    all
}

pub fn life<F: Real>(inputs: &Inputs) -> Prepared {
    let start = inputs.array::<f32, 2>(0)?.mapv(|x| x as u8);
    let generations = move || {
        let mut world = start.clone();
        for _ in 0..50 {
            let rows = &world + &rolled(&world, 1, 0) + &rolled(&world, -1, 0);
            let around = &rows + &rolled(&rows, 1, 1) + &rolled(&rows, -1, 1) - &world;
            azip!((cell in &mut world, &n in &around) *cell = u8::from((n == 3) | ((*cell == 1) & (n == 2))));
        }
        world
    };
    run(generations, f64::from)
}

pub fn logistic_regression<F: Real>(inputs: &Inputs) -> Prepared {
    let (x, y) = (inputs.array::<F, 2>(0)?, inputs.array::<F, 1>(1)?);
    let descent = move || {
        let mut w = Array1::zeros(64);
        for _ in 0..100 {
            let p = x.dot(&w).mapv_into(sigmoid);
            w.scaled_add(F::of(-0.1 / 2000.0), &x.t().dot(&(p - &y)));
        }
        w
    };
    run(descent, F::wide)
}

pub fn lstm<F: Real>(inputs: &Inputs) -> Prepared {
    let (x, w, u) = (inputs.array::<F, 3>(0)?, inputs.array::<F, 2>(1)?, inputs.array::<F, 2>(2)?);
    let cells = move || {
        let (mut h, mut c) = (Array2::<F>::zeros((32, 128)), Array2::<F>::zeros((32, 128)));
        for x in x.outer_iter() {
            let gates = x.dot(&w) + h.dot(&u);
            let (i, f) = (gates.slice(s![.., 0..128]), gates.slice(s![.., 128..256]));
            let (g, o) = (gates.slice(s![.., 256..384]), gates.slice(s![.., 384..]));
            azip!((c in &mut c, h in &mut h, &i in i, &f in f, &g in g, &o in o) {
                *c = *c * sigmoid(f) + g.tanh() * sigmoid(i);
                *h = c.tanh() * sigmoid(o);
            });
        }
        h
    };
    run(cells, F::wide)
}

pub fn gru<F: Real>(inputs: &Inputs) -> Prepared {
    let (x, w, u) = (inputs.array::<F, 3>(0)?, inputs.array::<F, 2>(1)?, inputs.array::<F, 2>(2)?);
    let cells = move || {
        let mut h = Array2::<F>::zeros((32, 128));
        for x in x.outer_iter() {
            let (a, b) = (x.dot(&w), h.dot(&u));
            let gates = (&a.slice(s![.., ..256]) + &b.slice(s![.., ..256])).mapv_into(sigmoid);
            let (z, r) = (gates.slice(s![.., ..128]), gates.slice(s![.., 128..]));
            azip!((h in &mut h, &z in z, &r in r, &a in a.slice(s![.., 256..]), &b in b.slice(s![.., 256..])) {
                let n = (a + r * b).tanh();
                *h = n + z * (*h - n);
            });
        }
        h
    };
    run(cells, F::wide)
}

pub fn mandelbrot<F: Real>(inputs: &Inputs) -> Prepared {
    let (x, y) = (inputs.array::<F, 2>(0)?, inputs.array::<F, 2>(1)?);
    let rounds = move || {
        let shape = (480, 600);
        let (mut a, mut b) = (Array2::<F>::zeros(shape), Array2::<F>::zeros(shape));
        let mut count = Array2::<i32>::zeros(shape);
        for _ in 0..50 {
            let zip = Zip::from(&mut a).and(&mut b).and(&mut count).and_broadcast(&x).and_broadcast(&y);
            zip.par_for_each(|a, b, count, &x, &y| {
                if *a * *a + *b * *b <= F::of(4.0) {
                    (*a, *b) = (*a * *a - *b * *b + x, F::of(2.0) * *a * *b + y);
                    *count += 1;
                }
            });
        }
        count
    };
    run(rounds, f64::from)
}

pub fn n_body<F: Real>(inputs: &Inputs) -> Prepared {
    let (start, m) = (inputs.array::<F, 2>(0)?, inputs.array::<F, 1>(1)?);
    let steps = move || {
        let (mut p, mut v) = (start.clone(), Array2::<F>::zeros((1000, 3)));
        for _ in 0..5 {
            let mut d: Array3<F> = &p.view().insert_axis(Axis(0)) - &p.view().insert_axis(Axis(1));
            Zip::from(d.outer_iter_mut()).par_for_each(|mut d| {
                azip!((mut d in d.rows_mut(), &m in &m) {
                    let r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + F::of(0.01);
                    d *= m / (r2 * r2.sqrt());
                });
            });
            v.scaled_add(F::of(0.001), &d.sum_axis(Axis(1)));
            p.scaled_add(F::of(0.001), &v);
        }
        p
    };
    run(steps, F::wide)
}

/// Rows less their greatest, as powers, over their sums.
fn softmax<F: Real>(scores: &mut Array2<F>) {
    for mut row in scores.rows_mut() {
        let most = row.fold(F::neg_infinity(), |most, &x| most.max(x));
        row.mapv_inplace(|x| (x - most).exp());
        let sum = row.sum();
        row /= sum;
    }
}

pub fn attention<F: Real>(inputs: &Inputs) -> Prepared {
    let (q, k, v) = (inputs.array::<F, 3>(0)?, inputs.array::<F, 3>(1)?, inputs.array::<F, 3>(2)?);
    let heads = move || {
        let mut mixed = Array3::<F>::zeros((8, 256, 64));
        let zip = Zip::from(mixed.outer_iter_mut()).and(q.outer_iter()).and(k.outer_iter()).and(v.outer_iter());
        zip.par_for_each(|mut mixed, q, k, v| {
            let mut scores = q.dot(&k.t()) / F::of(8.0);
            softmax(&mut scores);
            mixed.assign(&scores.dot(&v));
        });
        mixed
    };
    run(heads, F::wide)
}

pub fn k_means_one_hot<F: Real>(inputs: &Inputs) -> Prepared {
    let (x, start) = (inputs.array::<F, 2>(0)?, inputs.array::<F, 2>(1)?);
    let rounds = move || {
        let mut c = start.clone();
        for _ in 0..10 {
            let mut hot = Array2::<F>::zeros((40_000, 4));
            Zip::from(hot.rows_mut()).and(x.rows()).par_for_each(|mut hot, x| {
                let mut best = (F::infinity(), 0);
                for (at, c) in c.rows().into_iter().enumerate() {
                    let far = Zip::from(x).and(c).fold(F::zero(), |far, &x, &c| far + (x - c) * (x - c));
                    if far < best.0 {
                        best = (far, at);
                    }
                }
                hot[best.1] = F::one();
            });
            c = hot.t().dot(&x) / hot.sum_axis(Axis(0)).insert_axis(Axis(1));
        }
        c
    };
    run(rounds, F::wide)
}

pub fn sobel_slices<F: Real>(inputs: &Inputs) -> Prepared {
    let i = inputs.array::<F, 2>(0)?;
    let two = F::of(2.0);
    let edges = move || {
        let a = Zip::from(i.slice(s![..-2, ..])).and(i.slice(s![1..-1, ..])).and(i.slice(s![2.., ..]));
        let a = a.par_map_collect(|&up, &here, &down| up + two * here + down);
        let b = Zip::from(i.slice(s![.., ..-2])).and(i.slice(s![.., 1..-1])).and(i.slice(s![.., 2..]));
        let b = b.par_map_collect(|&left, &here, &right| left + two * here + right);
        let both = Zip::from(a.slice(s![.., 2..])).and(a.slice(s![.., ..-2])).and(b.slice(s![2.., ..]));
        both.and(b.slice(s![..-2, ..])).par_map_collect(|&right, &left, &down, &up| {
            let (gx, gy) = (right - left, down - up);
            (gx * gx + gy * gy).sqrt()
        })
    };
    run(edges, F::wide)
}

pub fn black_scholes<F: Real>(inputs: &Inputs) -> Prepared {
    let (s, k, t) = (inputs.array::<F, 1>(0)?, inputs.array::<F, 1>(1)?, inputs.array::<F, 1>(2)?);
    let of = F::of;
    let calls = move || {
        Zip::from(&s).and(&k).and(&t).par_map_collect(|&s, &k, &t| {
            let root = of(0.3) * t.sqrt();
            let d = ((s / k).ln() + of(0.065) * t) / root;
            let below = |x: F| of(0.5) * (F::one() + (x / of(std::f64::consts::SQRT_2)).erf());
            s * below(d) - k * (of(-0.02) * t).exp() * below(d - root)
        })
    };
    run(calls, F::wide)
}

pub fn kalman<F: Real>(inputs: &Inputs) -> Prepared {
    let z = inputs.array::<F, 3>(0)?;
    let f = ndarray::arr2(&[[1.0, 0.1, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.1], [0.0, 0.0, 0.0, 1.0]]);
    let (f, h) = (f.mapv(F::of), ndarray::arr2(&[[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]).mapv(F::of));
    let filter = move || {
        let (four, two) = (Array2::<F>::eye(4), Array2::<F>::eye(2));
        let (mut x, mut p) = (Array2::<F>::zeros((4, 1)), four.clone());
        for z in z.outer_iter() {
            (x, p) = (f.dot(&x), f.dot(&p).dot(&f.t()) + &four * F::of(0.01));
            let m = h.dot(&p).dot(&h.t()) + &two * F::of(0.5);
            // ndarray has no inverse; of 2 x 2 everybody knows it.
            let inverse = ndarray::arr2(&[[m[(1, 1)], -m[(0, 1)]], [-m[(1, 0)], m[(0, 0)]]])
                / (m[(0, 0)] * m[(1, 1)] - m[(0, 1)] * m[(1, 0)]);
            let gain = p.dot(&h.t()).dot(&inverse);
            x = &x + &gain.dot(&(&z - &h.dot(&x)));
            p = &p - &gain.dot(&h).dot(&p);
        }
        x
    };
    run(filter, F::wide)
}

pub fn heat<F: Real>(inputs: &Inputs) -> Prepared {
    let start = inputs.array::<F, 2>(0)?;
    let steps = move || {
        let mut u = start.clone();
        for _ in 0..200 {
            let zip = Zip::from(u.slice(s![1..-1, 1..-1])).and(u.slice(s![..-2, 1..-1])).and(u.slice(s![2.., 1..-1]));
            let zip = zip.and(u.slice(s![1..-1, ..-2])).and(u.slice(s![1..-1, 2..]));
            let inner = zip.map_collect(|&here, &up, &down, &left, &right| {
                here + F::of(0.2) * (up + down + left + right - F::of(4.0) * here)
            });
            u.slice_mut(s![1..-1, 1..-1]).assign(&inner);
        }
        u
    };
    run(steps, F::wide)
}

pub fn floyd_warshall<F: Real>(inputs: &Inputs) -> Prepared {
    let start = inputs.array::<F, 2>(0)?;
    let ways = move || {
        let mut d = start.clone();
        for k in 0..200 {
            let (to, onward) = (d.column(k).to_owned(), d.row(k).to_owned());
            Zip::from(d.rows_mut()).and(&to).for_each(|mut d, &to| {
                azip!((d in &mut d, &onward in &onward) *d = d.min(to + onward));
            });
        }
        d
    };
    run(ways, F::wide)
}

pub fn monte_carlo<F: Real>(inputs: &Inputs) -> Prepared {
    let u = inputs.array::<F, 2>(0)?;
    let of = F::of;
    let means = move || {
        let sums = Zip::from(u.row(0)).and(u.row(1)).par_fold(
            || (F::zero(), F::zero()),
            |(inside, gain), &a, &b| {
                let normal = (of(-2.0) * (a + of(1e-7)).ln()).sqrt() * (of(std::f64::consts::TAU) * b).cos();
                let price = (of(0.3) * normal).exp();
                let hit = if a * a + b * b < F::one() { F::one() } else { F::zero() };
                (inside + hit, gain + (price - of(1.1)).max(F::zero()))
            },
            |a, b| (a.0 + b.0, a.1 + b.1),
        );
        ndarray::arr1(&[of(4e-6) * sums.0, of(1e-6) * sums.1])
    };
    run(means, F::wide)
}

pub fn transformer_cache<F: Real>(inputs: &Inputs) -> Prepared {
    let (x, qkv, out) = (inputs.array::<F, 3>(0)?, inputs.array::<F, 2>(1)?, inputs.array::<F, 2>(2)?);
    let (up, down) = (inputs.array::<F, 2>(3)?, inputs.array::<F, 2>(4)?);
    let tokens = move || {
        let normed = |x: &Array2<F>| {
            let mean = x.fold(F::zero(), |sum, &x| sum + x * x) / of_count::<F>(x.len());
            x / (mean + F::of(1e-5)).sqrt()
        };
        let (mut keys, mut values) = (Array3::<F>::zeros((4, 32, 64)), Array3::<F>::zeros((4, 32, 64)));
        let mut token = Array2::<F>::zeros((1, 256));
        for (t, x) in x.outer_iter().enumerate() {
            let parts = normed(&x.to_owned()).dot(&qkv);
            let mut mixed = Array2::<F>::zeros((1, 256));
            for head in 0..4 {
                let part = |n: usize| parts.slice(s![.., 256 * n + 64 * head..256 * n + 64 * (head + 1)]);
                keys.slice_mut(s![head, t..=t, ..]).assign(&part(1));
                values.slice_mut(s![head, t..=t, ..]).assign(&part(2));
                let mut scores = part(0).dot(&keys.slice(s![head, ..=t, ..]).t()) / F::of(8.0);
                softmax(&mut scores);
                mixed.slice_mut(s![.., 64 * head..64 * (head + 1)]).assign(&scores.dot(&values.slice(s![
                    head,
                    ..=t,
                    ..
                ])));
            }
            token = &x + &mixed.dot(&out);
            let wide = normed(&token).dot(&up).mapv_into(|x| x * sigmoid(x));
            token = token + wide.dot(&down);
        }
        token
    };
    run(tokens, F::wide)
}

fn of_count<F: Real>(count: usize) -> F {
    F::of(count as f64)
}

pub fn nearest<F: Real>(inputs: &Inputs) -> Prepared {
    let (x, y) = (inputs.array::<F, 2>(0)?, inputs.array::<F, 2>(1)?);
    let distances = move || {
        let squares = |x: &Array2<F>| x.map_axis(Axis(1), |row| row.dot(&row));
        let mut all = y.dot(&x.t()) * F::of(-2.0) + &squares(&x) + &squares(&y).insert_axis(Axis(1));
        let mut five = Array2::<F>::zeros((500, 5));
        Zip::from(five.rows_mut()).and(all.rows_mut()).par_for_each(|mut five, mut row| {
            if let Some(row) = row.as_slice_mut() {
                row.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            }
            five.assign(&row.slice(s![..5]));
        });
        five
    };
    run(distances, F::wide)
}

pub fn symmetric_loop<F: Real>(inputs: &Inputs) -> Prepared {
    let start: Array<F, Ix2> = inputs.array::<F, 2>(0)?;
    let steps = move || {
        let mut x = start.clone();
        for _ in 0..200 {
            x = (&x + &x.t()) / F::of(2.0) - rolled(&x, 1, 0) * F::of(0.1) * &x;
            let most = x.fold(F::zero(), |most, x| most.max(x.abs()));
            x /= F::one() + most;
        }
        x
    };
    run(steps, F::wide)
}

//! The programs on Cantus, as recorded expressions. None says when to evaluate.

#![allow(clippy::single_range_in_vec_init, reason = "a slice of the first axis")]

use std::error::Error;
use std::f64::consts::{SQRT_2, TAU};

use cantus::ops::{Expr, arange, eye, full};
use cantus::{DType, Tensor};

use crate::{Inputs, Run};

type Prepared = Result<Run, Box<dyn Error>>;

/// The run of a program: until its result is computed.
fn run(inputs: &Inputs, program: impl Fn() -> Expr + 'static) -> Prepared {
    let engine = inputs.engine.clone();
    Ok(Box::new(move || {
        let result = program().eval()?;
        engine.finish()?;
        Ok(Box::new(move || Ok(read(&result)?)))
    }))
}

fn read(result: &Tensor) -> cantus::Result<Vec<f64>> {
    Ok(result.cast(DType::F32).eval()?.to_vec::<f32>()?.into_iter().map(f64::from).collect())
}

fn zeros(inputs: &Inputs, shape: &[usize]) -> Expr {
    full(&inputs.engine, shape, 0.0, DType::F32)
}

/// The t-th of the first axis, without that axis.
fn at(x: &Tensor, t: usize) -> Expr {
    x.slice(&[t..t + 1]).squeeze(0)
}

pub fn life(inputs: &Inputs) -> Prepared {
    let world = inputs.tensor(0)?.cast(DType::U8).eval()?;
    run(inputs, move || {
        let mut world = world.expr();
        for _ in 0..50 {
            let rows = &world + world.roll(&[1], &[0]) + world.roll(&[-1], &[0]);
            let around = &rows + rows.roll(&[1], &[1]) + rows.roll(&[-1], &[1]) - &world;
            world = around.equal(3).logical_or(world.equal(1).logical_and(around.equal(2))).cast(DType::U8);
        }
        world
    })
}

pub fn logistic_regression(inputs: &Inputs) -> Prepared {
    let (x, y, start) = (inputs.tensor(0)?, inputs.tensor(1)?, zeros(inputs, &[64]));
    run(inputs, move || {
        let mut w = start.clone();
        for _ in 0..100 {
            let p = 1.0 / (1.0 + (-x.matmul(&w)).exp());
            w = &w - 0.1 * x.transpose().matmul(p - &y) / 2000.0;
        }
        w
    })
}

pub fn lstm(inputs: &Inputs) -> Prepared {
    let (x, w, u, start) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?, zeros(inputs, &[32, 128]));
    run(inputs, move || {
        let (mut h, mut c) = (start.clone(), start.clone());
        for t in 0..60 {
            let gates = at(&x, t).matmul(&w) + h.matmul(&u);
            let [i, f, g, o] = [0, 1, 2, 3].map(|k| gates.slice(&[0..32, 128 * k..128 * (k + 1)]));
            c = c / (1.0 + (-f).exp()) + g.tanh() / (1.0 + (-i).exp());
            h = c.tanh() / (1.0 + (-o).exp());
        }
        h
    })
}

pub fn gru(inputs: &Inputs) -> Prepared {
    let (x, w, u, start) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?, zeros(inputs, &[32, 128]));
    run(inputs, move || {
        let mut h = start.clone();
        for t in 0..60 {
            let (a, b) = (at(&x, t).matmul(&w), h.matmul(&u));
            let part = |x: &Expr, k: usize| x.slice(&[0..32, 128 * k..128 * (k + 1)]);
            let z = 1.0 / (1.0 + (-(part(&a, 0) + part(&b, 0))).exp());
            let r = 1.0 / (1.0 + (-(part(&a, 1) + part(&b, 1))).exp());
            let n = (part(&a, 2) + r * part(&b, 2)).tanh();
            h = &n + z * (h - &n);
        }
        h
    })
}

pub fn mandelbrot(inputs: &Inputs) -> Prepared {
    let (x, y, zero) = (inputs.tensor(0)?, inputs.tensor(1)?, zeros(inputs, &[480, 600]));
    run(inputs, move || {
        let (mut a, mut b, mut count) = (zero.clone(), zero.clone(), zero.cast(DType::I32));
        for _ in 0..50 {
            let inside = (&a * &a + &b * &b).less_equal(4.0);
            let next = inside.select(&a * &a - &b * &b + &x, &a);
            b = inside.select(2.0 * &a * &b + &y, &b);
            a = next;
            count = count + inside.cast(DType::I32);
        }
        count
    })
}

pub fn n_body(inputs: &Inputs) -> Prepared {
    let (start, m, still) = (inputs.tensor(0)?, inputs.tensor(1)?, zeros(inputs, &[1000, 3]));
    run(inputs, move || {
        let (mut p, mut v) = (start.expr(), still.clone());
        for _ in 0..5 {
            let d = p.expand(0) - p.expand(1);
            let r2 = (&d * &d).sum(&[2], false) + 0.01;
            let pull = (&m / (&r2 * r2.sqrt())).expand(2);
            v = v + 0.001 * (d * pull).sum(&[1], false);
            p = p + 0.001 * &v;
        }
        p
    })
}

pub fn attention(inputs: &Inputs) -> Prepared {
    let (q, k, v) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    run(inputs, move || {
        let scores = q.matmul(k.transpose()) / 8.0;
        let weights = (&scores - scores.max(&[-1], true)).exp();
        weights.matmul(&v) / weights.sum(&[-1], true)
    })
}

pub fn k_means_one_hot(inputs: &Inputs) -> Prepared {
    let (x, start) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let classes = arange(&inputs.engine, 0.0, 4.0, 1.0, DType::I32);
    run(inputs, move || {
        let mut c = start.expr();
        for _ in 0..10 {
            let label = (x.expand(1) - c.expand(0)).square().sum(&[2], false).argmin(Some(1), false);
            let hot = label.cast(DType::I32).expand(1).equal(classes.expand(0)).cast(DType::F32);
            c = hot.transpose().matmul(&x) / hot.sum(&[0], false).expand(1);
        }
        c
    })
}

pub fn sobel_slices(inputs: &Inputs) -> Prepared {
    let i = inputs.tensor(0)?;
    run(inputs, move || {
        let a = i.slice(&[0..1022]) + 2.0 * i.slice(&[1..1023]) + i.slice(&[2..1024]);
        let b = i.slice(&[0..1024, 0..1022]) + 2.0 * i.slice(&[0..1024, 1..1023]) + i.slice(&[0..1024, 2..1024]);
        let gx = a.slice(&[0..1022, 2..1024]) - a.slice(&[0..1022, 0..1022]);
        let gy = b.slice(&[2..1024]) - b.slice(&[0..1022]);
        (&gx * &gx + &gy * &gy).sqrt()
    })
}

pub fn black_scholes(inputs: &Inputs) -> Prepared {
    let (s, k, t) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    run(inputs, move || {
        let root = 0.3 * t.sqrt();
        let d = ((&s / &k).log() + 0.065 * &t) / &root;
        let below = |x: &Expr| 0.5 * (1.0 + (x / SQRT_2).erf());
        &s * below(&d) - &k * (-0.02 * &t).exp() * below(&(&d - root))
    })
}

pub fn kalman(inputs: &Inputs) -> Prepared {
    let z = inputs.tensor(0)?;
    let engine = &inputs.engine;
    let f = [1.0, 0.1, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.1, 0.0, 0.0, 0.0, 1.0_f32];
    let f = engine.tensor_from(&f, &[4, 4])?;
    let h = engine.tensor_from(&[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0_f32], &[2, 4])?;
    let [four, two] = [4, 2].map(|n| eye(engine, n, n, 0, DType::F32));
    let start = zeros(inputs, &[4, 1]);
    run(inputs, move || {
        let (mut x, mut p) = (start.clone(), four.clone());
        for t in 0..200 {
            (x, p) = (f.matmul(&x), f.matmul(&p).matmul(f.transpose()) + 0.01 * &four);
            let gain = p.matmul(h.transpose()).matmul((h.matmul(&p).matmul(h.transpose()) + 0.5 * &two).inverse());
            x = &x + gain.matmul(at(&z, t) - h.matmul(&x));
            p = &p - gain.matmul(&h).matmul(&p);
        }
        x
    })
}

pub fn heat(inputs: &Inputs) -> Prepared {
    let start = inputs.tensor(0)?;
    run(inputs, move || {
        let mut u = start.expr();
        for _ in 0..200 {
            let (inside, before, after) = (1..255, 0..254, 2..256);
            let part = |y: &std::ops::Range<usize>, x: &std::ops::Range<usize>| u.slice(&[y.clone(), x.clone()]);
            let middle = part(&inside, &inside);
            let sides = part(&before, &inside) + part(&after, &inside) + part(&inside, &before) + part(&inside, &after);
            let inner = &middle + 0.2 * (sides - 4.0 * &middle);
            let rows = part(&inside, &(0..1)).concat(&[inner, part(&inside, &(255..256))], 1);
            u = u.slice(&[0..1]).concat(&[rows, u.slice(&[255..256])], 0);
        }
        u
    })
}

pub fn floyd_warshall(inputs: &Inputs) -> Prepared {
    let start = inputs.tensor(0)?;
    run(inputs, move || {
        let mut d = start.expr();
        for k in 0..200 {
            d = d.minimum(d.slice(&[0..200, k..k + 1]) + d.slice(&[k..k + 1]));
        }
        d
    })
}

pub fn monte_carlo(inputs: &Inputs) -> Prepared {
    let u = inputs.tensor(0)?;
    run(inputs, move || {
        let (first, second) = (at(&u, 0), at(&u, 1));
        let inside = (first.square() + second.square()).less(1.0).cast(DType::F32);
        let normal = (-2.0 * (&first + 1e-7).log()).sqrt() * (TAU * &second).cos();
        let price = (0.3 * normal).exp();
        let gain = price.greater(1.1).select(&price - 1.1, price.constant(0.0));
        (4.0 * inside.mean(&[], false)).stack(&[gain.mean(&[], false)], 0)
    })
}

pub fn transformer_cache(inputs: &Inputs) -> Prepared {
    let (x, qkv, out) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let (up, down) = (inputs.tensor(3)?, inputs.tensor(4)?);
    run(inputs, move || {
        let normed = |x: &Expr| x / ((x * x).mean(&[-1], true) + 1e-5).sqrt();
        let mut cache: Option<(Expr, Expr)> = None;
        let mut token = at(&x, 0);
        for t in 0..32 {
            token = at(&x, t);
            let parts = normed(&token).matmul(&qkv).reshape(&[3, 4, 1, 64]);
            let [q, k, v] = [0, 1, 2].map(|n| parts.slice(&[n..n + 1]).squeeze(0));
            let (keys, values) = match &cache {
                Some((keys, values)) => (keys.concat(&[k], 1), values.concat(&[v], 1)),
                None => (k, v),
            };
            let scores = q.matmul(keys.transpose()) / 8.0;
            let weights = (&scores - scores.max(&[-1], true)).exp();
            let mixed = weights.matmul(&values) / weights.sum(&[-1], true);
            token = token + mixed.reshape(&[1, 256]).matmul(&out);
            let wide = normed(&token).matmul(&up);
            token = token + (&wide / (1.0 + (-&wide).exp())).matmul(&down);
            cache = Some((keys, values));
        }
        token
    })
}

pub fn nearest(inputs: &Inputs) -> Prepared {
    let (x, y) = (inputs.tensor(0)?, inputs.tensor(1)?);
    run(inputs, move || {
        let (rows, columns) = (y.square().sum(&[1], false).expand(1), x.square().sum(&[1], false).expand(0));
        let squares = rows + columns - 2.0 * y.matmul(x.transpose());
        squares.sort(1, false).slice(&[0..500, 0..5])
    })
}

pub fn symmetric_loop(inputs: &Inputs) -> Prepared {
    let start = inputs.tensor(0)?;
    run(inputs, move || {
        let mut x = start.expr();
        for _ in 0..200 {
            x = (&x + x.transpose()) / 2.0 - 0.1 * x.roll(&[1], &[0]) * &x;
            x = &x / (1.0 + x.abs().max(&[], false));
        }
        x
    })
}

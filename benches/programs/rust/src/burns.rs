//! The programs on Burn's tensors: each operation runs at once.

use std::error::Error;
use std::f64::consts::{SQRT_2, TAU};

use burn_tensor::{Int, Tensor, s};

use crate::{Inputs, Run};

type Prepared = Result<Run, Box<dyn Error>>;

fn run<const D: usize>(program: impl Fn() -> Tensor<D> + 'static) -> Prepared {
    Ok(Box::new(move || {
        let result = program();
        Ok(Box::new(move || Ok(result.try_into_vec_as::<f32>()?.into_iter().map(f64::from).collect())))
    }))
}

fn run_whole<const D: usize>(program: impl Fn() -> Tensor<D, Int> + 'static) -> Prepared {
    Ok(Box::new(move || {
        let result = program();
        Ok(Box::new(move || Ok(result.try_into_vec_as::<i32>()?.into_iter().map(f64::from).collect())))
    }))
}

fn at(x: &Tensor<3>, t: usize) -> Tensor<2> {
    x.clone().slice(s![t..t + 1]).squeeze_dim(0)
}

fn columns(x: &Tensor<2>, k: usize) -> Tensor<2> {
    x.clone().slice(s![.., 128 * k..128 * (k + 1)])
}

fn sigmoid<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    ((-x).exp() + 1.0).recip()
}

pub fn life(inputs: &Inputs) -> Prepared {
    let start = inputs.burn_bytes::<2>(0);
    run_whole(move || {
        let mut world = start.clone();
        for _ in 0..50 {
            let rows = world.clone() + world.clone().roll_dim(1, 0) + world.clone().roll_dim(-1, 0);
            let around = rows.clone() + rows.clone().roll_dim(1, 1) + rows.roll_dim(-1, 1) - world.clone();
            let stays = world.equal_scalar(1).bool_and(around.clone().equal_scalar(2));
            world = around.equal_scalar(3).bool_or(stays).cast(burn_tensor::IntDType::U8);
        }
        world
    })
}

pub fn logistic_regression(inputs: &Inputs) -> Prepared {
    let (x, y) = (inputs.burn::<2>(0), inputs.burn::<1>(1).unsqueeze_dim::<2>(1));
    run(move || {
        let mut w = Tensor::<2>::zeros([64, 1], &x.device());
        for _ in 0..100 {
            let p = sigmoid(x.clone().matmul(w.clone()));
            w = w - x.clone().transpose().matmul(p - y.clone()) * 0.1 / 2000.0;
        }
        w
    })
}

pub fn lstm(inputs: &Inputs) -> Prepared {
    let (x, w, u) = (inputs.burn::<3>(0), inputs.burn::<2>(1), inputs.burn::<2>(2));
    run(move || {
        let (mut h, mut c) = (Tensor::<2>::zeros([32, 128], &x.device()), Tensor::<2>::zeros([32, 128], &x.device()));
        for t in 0..60 {
            let gates = at(&x, t).matmul(w.clone()) + h.matmul(u.clone());
            let [i, f, g, o] = [0, 1, 2, 3].map(|k| columns(&gates, k));
            c = c / ((-f).exp() + 1.0) + g.tanh() / ((-i).exp() + 1.0);
            h = c.clone().tanh() / ((-o).exp() + 1.0);
        }
        h
    })
}

pub fn gru(inputs: &Inputs) -> Prepared {
    let (x, w, u) = (inputs.burn::<3>(0), inputs.burn::<2>(1), inputs.burn::<2>(2));
    run(move || {
        let mut h = Tensor::<2>::zeros([32, 128], &x.device());
        for t in 0..60 {
            let (a, b) = (at(&x, t).matmul(w.clone()), h.clone().matmul(u.clone()));
            let z = sigmoid(columns(&a, 0) + columns(&b, 0));
            let r = sigmoid(columns(&a, 1) + columns(&b, 1));
            let n = (columns(&a, 2) + r * columns(&b, 2)).tanh();
            h = n.clone() + z * (h - n);
        }
        h
    })
}

pub fn mandelbrot(inputs: &Inputs) -> Prepared {
    let (x, y) = (inputs.burn::<2>(0), inputs.burn::<2>(1));
    run_whole(move || {
        let zero = Tensor::<2>::zeros([480, 600], &x.device());
        let (mut a, mut b, mut count) = (zero.clone(), zero.clone(), Tensor::<2, Int>::zeros([480, 600], &x.device()));
        for _ in 0..50 {
            let (aa, bb) = (a.clone() * a.clone(), b.clone() * b.clone());
            let inside = (aa.clone() + bb.clone()).lower_equal_scalar(4.0);
            let next = a.clone().mask_where(inside.clone(), aa - bb + x.clone());
            b = b.clone().mask_where(inside.clone(), a * b * 2.0 + y.clone());
            a = next;
            count = count + inside.int();
        }
        count
    })
}

pub fn n_body(inputs: &Inputs) -> Prepared {
    let (start, m) = (inputs.burn::<2>(0), inputs.burn::<1>(1).unsqueeze_dim::<2>(0));
    run(move || {
        let (mut p, mut v) = (start.clone(), Tensor::<2>::zeros([1000, 3], &start.device()));
        for _ in 0..5 {
            let d = p.clone().unsqueeze_dim::<3>(0) - p.clone().unsqueeze_dim::<3>(1);
            let r2 = (d.clone() * d.clone()).sum_dim(2).squeeze_dim::<2>(2) + 0.01;
            let pull = (m.clone() / (r2.clone() * r2.sqrt())).unsqueeze_dim::<3>(2);
            v = v + (d * pull).sum_dim(1).squeeze_dim::<2>(1) * 0.001;
            p = p + v.clone() * 0.001;
        }
        p
    })
}

pub fn attention(inputs: &Inputs) -> Prepared {
    let (q, k, v) = (inputs.burn::<3>(0), inputs.burn::<3>(1), inputs.burn::<3>(2));
    run(move || {
        let scores = q.clone().matmul(k.clone().transpose()) / 8.0;
        let weights = (scores.clone() - scores.max_dim(2)).exp();
        weights.clone().matmul(v.clone()) / weights.sum_dim(2)
    })
}

pub fn k_means_one_hot(inputs: &Inputs) -> Prepared {
    let (x, start) = (inputs.burn::<2>(0), inputs.burn::<2>(1));
    run(move || {
        let classes = Tensor::<1, Int>::arange(0..4, &x.device()).unsqueeze_dim::<2>(0);
        let mut c = start.clone();
        for _ in 0..10 {
            let d = x.clone().unsqueeze_dim::<3>(1) - c.unsqueeze_dim::<3>(0);
            let label = (d.clone() * d).sum_dim(2).squeeze_dim::<2>(2).argmin(1);
            let hot = label.expand([40_000, 4]).equal(classes.clone().expand([40_000, 4])).float();
            c = hot.clone().transpose().matmul(x.clone()) / hot.sum_dim(0).transpose();
        }
        c
    })
}

pub fn sobel_slices(inputs: &Inputs) -> Prepared {
    let i = inputs.burn::<2>(0);
    run(move || {
        let rows = |r: std::ops::Range<usize>| i.clone().slice_dim(0, r);
        let columns = |r: std::ops::Range<usize>| i.clone().slice_dim(1, r);
        let a = rows(0..1022) + rows(1..1023) * 2.0 + rows(2..1024);
        let b = columns(0..1022) + columns(1..1023) * 2.0 + columns(2..1024);
        let gx = a.clone().slice(s![.., 2..1024]) - a.slice(s![.., 0..1022]);
        let gy = b.clone().slice(s![2..1024]) - b.slice(s![0..1022]);
        (gx.clone() * gx + gy.clone() * gy).sqrt()
    })
}

pub fn black_scholes(inputs: &Inputs) -> Prepared {
    let (s, k, t) = (inputs.burn::<1>(0), inputs.burn::<1>(1), inputs.burn::<1>(2));
    run(move || {
        let root = t.clone().sqrt() * 0.3;
        let d = ((s.clone() / k.clone()).log() + t.clone() * 0.065) / root.clone();
        let below = |x: Tensor<1>| ((x / SQRT_2).erf() + 1.0) * 0.5;
        s.clone() * below(d.clone()) - k.clone() * (t.clone() * -0.02).exp() * below(d - root)
    })
}

pub fn kalman(inputs: &Inputs) -> Prepared {
    let z = inputs.burn::<3>(0);
    let device = &inputs.device;
    let f = [[1.0, 0.1, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.1], [0.0, 0.0, 0.0, 1.0_f32]];
    let f = Tensor::<2>::from_data(f, device);
    let h = Tensor::<2>::from_data([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0_f32]], device);
    let signs = Tensor::<2>::from_data([[1.0, -1.0], [-1.0, 1.0_f32]], device);
    let (four, two) = (Tensor::<2>::eye(4, device), Tensor::<2>::eye(2, device));
    run(move || {
        let (mut x, mut p) = (Tensor::<2>::zeros([4, 1], &z.device()), four.clone());
        for t in 0..200 {
            x = f.clone().matmul(x);
            p = f.clone().matmul(p).matmul(f.clone().transpose()) + four.clone() * 0.01;
            let m = h.clone().matmul(p.clone()).matmul(h.clone().transpose()) + two.clone() * 0.5;
            // Burn's tensors have no inverse; of 2 x 2 everybody knows it.
            let cofactors = m.clone().flip([0, 1]) * signs.clone();
            let determinant = (m.slice(s![0..1]) * cofactors.clone().slice(s![0..1])).sum_dim(1);
            let gain = p.clone().matmul(h.clone().transpose()).matmul(cofactors.transpose() / determinant);
            x = x.clone() + gain.clone().matmul(at(&z, t) - h.clone().matmul(x));
            p = p.clone() - gain.matmul(h.clone()).matmul(p);
        }
        x
    })
}

pub fn heat(inputs: &Inputs) -> Prepared {
    let start = inputs.burn::<2>(0);
    run(move || {
        let mut u = start.clone();
        for _ in 0..200 {
            let middle = u.clone().slice(s![1..255, 1..255]);
            let upright = u.clone().slice(s![0..254, 1..255]) + u.clone().slice(s![2..256, 1..255]);
            let across = u.clone().slice(s![1..255, 0..254]) + u.clone().slice(s![1..255, 2..256]);
            let inner = middle.clone() + (upright + across - middle * 4.0) * 0.2;
            u = u.slice_assign(s![1..255, 1..255], inner);
        }
        u
    })
}

pub fn floyd_warshall(inputs: &Inputs) -> Prepared {
    let start = inputs.burn::<2>(0);
    run(move || {
        let mut d = start.clone();
        for k in 0..200 {
            let onward = d.clone().slice(s![.., k..k + 1]) + d.clone().slice(s![k..k + 1]);
            d = d.min_pair(onward);
        }
        d
    })
}

pub fn monte_carlo(inputs: &Inputs) -> Prepared {
    let u = inputs.burn::<2>(0);
    run(move || {
        let part = |k: usize| u.clone().slice(s![k..k + 1]).squeeze_dim::<1>(0);
        let (first, second) = (part(0), part(1));
        let inside = (first.clone().square() + second.clone().square()).lower_scalar(1.0).float();
        let normal = ((first + 1e-7).log() * -2.0).sqrt() * (second * TAU).cos();
        let price = (normal * 0.3).exp();
        let below = price.clone().lower_equal_scalar(1.1);
        let gain = (price - 1.1).mask_fill(below, 0.0);
        Tensor::cat(vec![inside.mean() * 4.0, gain.mean()], 0)
    })
}

pub fn transformer_cache(inputs: &Inputs) -> Prepared {
    let (x, qkv, out) = (inputs.burn::<3>(0), inputs.burn::<2>(1), inputs.burn::<2>(2));
    let (up, down) = (inputs.burn::<2>(3), inputs.burn::<2>(4));
    run(move || {
        let normed = |x: &Tensor<2>| x.clone() / (x.clone().square().mean_dim(1) + 1e-5).sqrt();
        let mut cache: Option<(Tensor<3>, Tensor<3>)> = None;
        let mut token = at(&x, 0);
        for t in 0..32 {
            token = at(&x, t);
            let parts = normed(&token).matmul(qkv.clone()).reshape([3, 4, 1, 64]);
            let [q, k, v] = [0, 1, 2].map(|n| parts.clone().slice(s![n..n + 1]).squeeze_dim::<3>(0));
            let (keys, values) = match cache {
                Some((keys, values)) => (Tensor::cat(vec![keys, k], 1), Tensor::cat(vec![values, v], 1)),
                None => (k, v),
            };
            let scores = q.matmul(keys.clone().transpose()) / 8.0;
            let weights = (scores.clone() - scores.max_dim(2)).exp();
            let mixed = weights.clone().matmul(values.clone()) / weights.sum_dim(2);
            token = token + mixed.reshape([1, 256]).matmul(out.clone());
            let wide = normed(&token).matmul(up.clone());
            token = token + (wide.clone() * sigmoid(wide)).matmul(down.clone());
            cache = Some((keys, values));
        }
        token
    })
}

pub fn nearest(inputs: &Inputs) -> Prepared {
    let (x, y) = (inputs.burn::<2>(0), inputs.burn::<2>(1));
    run(move || {
        let (rows, columns) = (y.clone().square().sum_dim(1), x.clone().square().sum_dim(1).transpose());
        let squares = rows + columns - y.clone().matmul(x.clone().transpose()) * 2.0;
        squares.sort(1).slice(s![.., 0..5])
    })
}

pub fn symmetric_loop(inputs: &Inputs) -> Prepared {
    let start = inputs.burn::<2>(0);
    run(move || {
        let mut x = start.clone();
        for _ in 0..200 {
            x = (x.clone() + x.clone().transpose()) / 2.0 - x.clone().roll_dim(1, 0) * 0.1 * x;
            x = x.clone() / (x.abs().max() + 1.0).unsqueeze::<2>();
        }
        x
    })
}

//! Operations by name, one row each.

use std::collections::HashMap;
use std::sync::LazyLock;

use cantus::ops::{Attention, Binary, Expr, Padding, RopePairs, Unary, Window};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::Lazy;
use crate::wait::wait;

pub(crate) fn names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    names.collect()
}

pub(crate) fn unary(name: &str) -> PyResult<Unary> {
    static NAMES: LazyLock<HashMap<&str, Unary>> =
        LazyLock::new(|| Unary::ALL.iter().map(|&op| (op.name(), op)).collect());
    NAMES.get(name).copied().ok_or_else(|| PyValueError::new_err(format!("there is no function {name}")))
}

pub(crate) fn binary(name: &str) -> PyResult<Binary> {
    static NAMES: LazyLock<HashMap<&str, Binary>> =
        LazyLock::new(|| Binary::ALL.iter().map(|&op| (op.name(), op)).collect());
    NAMES.get(name).copied().ok_or_else(|| PyValueError::new_err(format!("there is no function {name} of two")))
}

/// A length, a place or a count.
pub(crate) fn index(number: i64) -> PyResult<usize> {
    usize::try_from(number).map_err(|_| PyValueError::new_err(format!("{number} is negative")))
}

/// The operation `name` of `array` and others.
pub(crate) fn call(
    py: Python<'_>,
    array: &Lazy,
    name: &str,
    others: &[Expr],
    ints: &[i64],
    floats: &[f64],
) -> PyResult<Vec<Expr>> {
    let x = array.expr()?;
    let engine = array.engine();
    let missing = |what: &str| PyValueError::new_err(format!("{name} takes more {what}"));
    let n = |place: usize| ints.get(place).copied().ok_or_else(|| missing("whole numbers"));
    let f = |place: usize| floats.get(place).copied().ok_or_else(|| missing("numbers"));
    let y = |place: usize| others.get(place).ok_or_else(|| missing("arrays"));
    let u = |place: usize| n(place).and_then(index);
    let axis = |place: usize| n(place).map(|axis| axis as isize);
    let yes = |place: usize| n(place).map(|flag| flag != 0);
    // Reductions: whether axes stay, and the axes.
    let kept =
        || -> PyResult<(bool, Vec<isize>)> { Ok((yes(0)?, ints.iter().skip(1).map(|&axis| axis as isize).collect())) };
    let sizes = || ints.iter().map(|&side| index(side)).collect::<PyResult<Vec<usize>>>();
    let axes = || ints.iter().map(|&axis| axis as isize).collect::<Vec<isize>>();
    let widths =
        || ints.chunks_exact(2).map(|pair| Ok((index(pair[0])?, index(pair[1])?))).collect::<PyResult<Vec<_>>>();
    let pair = |from: usize| -> PyResult<[usize; 2]> { Ok([u(from)?, u(from + 1)?]) };
    let window = |from: usize| -> PyResult<Window> { Ok(Window::new(pair(from)?, pair(from + 2)?, pair(from + 4)?)) };
    let one = |expr: Expr| Ok(vec![expr]);
    let two = |(a, b): (Expr, Expr)| Ok(vec![a, b]);
    match name {
        "sum" => kept().map(|(keep, axes)| vec![x.sum(&axes, keep)]),
        "prod" => kept().map(|(keep, axes)| vec![x.prod(&axes, keep)]),
        "max" => kept().map(|(keep, axes)| vec![x.max(&axes, keep)]),
        "min" => kept().map(|(keep, axes)| vec![x.min(&axes, keep)]),
        "mean" => kept().map(|(keep, axes)| vec![x.mean(&axes, keep)]),
        "any" => kept().map(|(keep, axes)| vec![x.any(&axes, keep)]),
        "all" => kept().map(|(keep, axes)| vec![x.all(&axes, keep)]),
        "count_nonzero" => kept().map(|(keep, axes)| vec![x.count_nonzero(&axes, keep)]),
        "logsumexp" => kept().map(|(keep, axes)| vec![x.logsumexp(&axes, keep)]),
        "argmax" => kept().map(|(keep, axes)| vec![x.argmax(axes.first().copied(), keep)]),
        "argmin" => kept().map(|(keep, axes)| vec![x.argmin(axes.first().copied(), keep)]),
        "median" => kept().map(|(keep, axes)| vec![x.median(axes.first().copied(), keep)]),
        "variance" => {
            let (keep, axes) = kept()?;
            one(x.variance(&axes, f(0)?, keep))
        }
        "std" => {
            let (keep, axes) = kept()?;
            one(x.std(&axes, f(0)?, keep))
        }
        "norm" => {
            let (keep, axes) = kept()?;
            one(x.norm(f(0)?, &axes, keep))
        }
        "quantile" => {
            let (keep, axes) = kept()?;
            one(x.quantile(f(0)?, axes.first().copied(), keep))
        }
        "cumsum" => one(x.cumsum(axis(0)?)),
        "cumprod" => one(x.cumprod(axis(0)?)),
        "cummax" => one(x.cummax(axis(0)?)),
        "cummin" => one(x.cummin(axis(0)?)),
        "logcumsumexp" => one(x.logcumsumexp(axis(0)?)),
        "diff" => one(x.diff(u(0)?, axis(1)?)),
        "sort" => one(x.sort(axis(0)?, yes(1)?)),
        "argsort" => one(x.argsort(axis(0)?, yes(1)?)),
        "topk" => two(x.topk(u(0)?, axis(1)?, yes(2)?)),
        "searchsorted" => one(x.searchsorted(y(0)?, yes(0)?)),
        "bincount" => one(x.bincount(u(0)?)),
        "histogram" => one(x.histogram(u(0)?, f(0)?, f(1)?)),
        "nonzero" => {
            let found = wait(py, engine, x.nonzero_async())?;
            one(Expr::from(&found))
        }
        "masked_select" => {
            let found = wait(py, engine, x.masked_select_async(y(0)?))?;
            one(Expr::from(&found))
        }
        "unique" => {
            let found = wait(py, engine, x.unique_async())?;
            Ok(vec![Expr::from(&found.values), Expr::from(&found.inverse), Expr::from(&found.counts)])
        }
        "reshape" => one(x.reshape(&sizes()?)),
        "broadcast_to" => one(x.broadcast_to(&sizes()?)),
        "permute" => one(x.permute(&axes())),
        "slice" => {
            let triples = ints.chunks_exact(3);
            let ranges = triples.clone().map(|t| Ok(index(t[0])?..index(t[1])?)).collect::<PyResult<Vec<_>>>()?;
            let steps = triples.map(|t| index(t[2])).collect::<PyResult<Vec<_>>>()?;
            one(x.slice_steps(&ranges, &steps))
        }
        "slice_scatter" => {
            let ranges = ints.chunks_exact(2).map(|t| Ok(index(t[0])?..index(t[1])?)).collect::<PyResult<Vec<_>>>()?;
            one(x.slice_scatter(&ranges, y(0)?))
        }
        "flip" => one(x.flip(&axes())),
        "roll" => {
            let (shifts, axes): (Vec<isize>, Vec<isize>) =
                ints.chunks_exact(2).map(|pair| (pair[0] as isize, pair[1] as isize)).unzip();
            one(x.roll(&shifts, &axes))
        }
        "concat" => one(x.concat(others, axis(0)?)),
        "stack" => one(x.stack(others, axis(0)?)),
        "tile" => one(x.tile(&sizes()?)),
        "repeat" => one(x.repeat(u(0)?, axis(1)?)),
        "take" => one(x.take(y(0)?, axis(0)?)),
        "gather" => one(x.gather(y(0)?, axis(0)?)),
        "scatter" => one(x.scatter(y(0)?, y(1)?, axis(0)?)),
        "scatter_add" => one(x.scatter_add(y(0)?, y(1)?, axis(0)?)),
        "select" => one(x.select(y(0)?, y(1)?)),
        "clamp" => one(x.clamp(f(0)?, f(1)?)),
        "tril" => one(x.tril(axis(0)?)),
        "triu" => one(x.triu(axis(0)?)),
        "diagonal" => one(x.diagonal(axis(0)?)),
        "one_hot" => one(x.one_hot(u(0)?, cantus::DType::F32)),
        "pad" => one(x.pad(&widths()?, Padding::from(f(0)?))),
        "pad_edge" => one(x.pad(&widths()?, Padding::Edge)),
        "pad_reflect" => one(x.pad(&widths()?, Padding::Reflect)),
        "pad_wrap" => one(x.pad(&widths()?, Padding::Wrap)),
        "matmul" => one(x.matmul(y(0)?)),
        "inverse" => one(x.inverse()),
        "det" => one(x.det()),
        "slogdet" => two(x.slogdet()),
        "solve" => one(x.solve(y(0)?)),
        "cholesky" => one(x.cholesky()),
        "qr" => two(if yes(0)? { x.qr_complete() } else { x.qr() }),
        "eigh" => two(x.eigh()),
        "svd" => {
            let (u, values, v) = if yes(0)? { x.svd_full() } else { x.svd() };
            Ok(vec![u, values, v])
        }
        "expm" => one(x.expm()),
        "fft" => one(x.fft(axis(0)?)),
        "ifft" => one(x.ifft(axis(0)?)),
        "rfft" => one(x.rfft(axis(0)?)),
        "irfft" => one(x.irfft(u(0)?, axis(1)?)),
        "softmax" => one(x.softmax(axis(0)?)),
        "log_softmax" => one(x.log_softmax(axis(0)?)),
        "rms_norm" => one(x.rms_norm(y(0)?, f(0)? as f32)),
        "layer_norm" => one(x.layer_norm(y(0)?, y(1)?, f(0)? as f32)),
        "group_norm" => one(x.group_norm(u(0)?, y(0)?, y(1)?, f(0)? as f32)),
        "linear" => one(x.fused_linear(y(0)?, others.get(1), None)),
        "conv1d" => one(x.conv1d(y(0)?, u(0)?, u(1)?, u(2)?, u(3)?)),
        "conv2d" => one(x.conv2d(y(0)?, window(0)?, u(6)?)),
        "max_pool2d" => one(x.max_pool2d(pair(0)?, window(2)?)),
        "avg_pool2d" => one(x.avg_pool2d(pair(0)?, window(2)?, yes(8)?)),
        "embedding" => one(x.embedding(y(0)?)),
        "rope" => {
            let pairs = if yes(0)? { RopePairs::Interleaved } else { RopePairs::Halves };
            one(x.rope(y(0)?, f(0)?, pairs))
        }
        "attention" => {
            let mut attention = Attention::new();
            if yes(0)? {
                attention = attention.causal();
            }
            if let Some(&scale) = floats.first() {
                attention = attention.scaled(scale);
            }
            if let Some(mask) = others.get(2) {
                attention = attention.masked(mask);
            }
            one(x.scaled_dot_product_attention(y(0)?, y(1)?, &attention))
        }
        "dropout" => one(x.dropout(f(0)?, n(0)?.cast_unsigned())),
        "cross_entropy" => one(x.cross_entropy(y(0)?)),
        _ => Err(PyValueError::new_err(format!("there is no operation {name}"))),
    }
}

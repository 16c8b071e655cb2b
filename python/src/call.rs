//! Operations by name, one row each.

use std::collections::HashMap;
use std::sync::LazyLock;

use cantus::Engine;
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
    let given = Given { name, others, ints, floats };
    for family in [reduced, along_axis, moved, at_places, multiplied, layer] {
        if let Some(results) = family(&x, &given)? {
            return Ok(results);
        }
    }
    let found = found(py, array.engine(), &x, &given)?;
    found.ok_or_else(|| PyValueError::new_err(format!("there is no operation {name}")))
}

/// The arguments of an operation besides its first array.
struct Given<'a> {
    name: &'a str,
    others: &'a [Expr],
    ints: &'a [i64],
    floats: &'a [f64],
}

impl Given<'_> {
    fn missing(&self, what: &str) -> PyErr {
        PyValueError::new_err(format!("{} takes more {what}", self.name))
    }

    fn y(&self, place: usize) -> PyResult<&Expr> {
        self.others.get(place).ok_or_else(|| self.missing("arrays"))
    }

    fn f(&self, place: usize) -> PyResult<f64> {
        self.floats.get(place).copied().ok_or_else(|| self.missing("numbers"))
    }

    fn n(&self, place: usize) -> PyResult<i64> {
        self.ints.get(place).copied().ok_or_else(|| self.missing("whole numbers"))
    }

    fn u(&self, place: usize) -> PyResult<usize> {
        self.n(place).and_then(index)
    }

    fn axis(&self, place: usize) -> PyResult<isize> {
        self.n(place).map(|axis| axis as isize)
    }

    fn yes(&self, place: usize) -> PyResult<bool> {
        self.n(place).map(|flag| flag != 0)
    }

    /// Of a reduction: whether axes stay, and the axes.
    fn kept(&self) -> PyResult<(bool, Vec<isize>)> {
        Ok((self.yes(0)?, self.ints.iter().skip(1).map(|&axis| axis as isize).collect()))
    }

    fn sizes(&self) -> PyResult<Vec<usize>> {
        self.ints.iter().map(|&side| index(side)).collect()
    }

    fn axes(&self) -> Vec<isize> {
        self.ints.iter().map(|&axis| axis as isize).collect()
    }

    /// Two numbers for each axis.
    fn widths(&self) -> PyResult<Vec<(usize, usize)>> {
        self.ints.chunks_exact(2).map(|pair| Ok((index(pair[0])?, index(pair[1])?))).collect()
    }

    fn pair(&self, from: usize) -> PyResult<[usize; 2]> {
        Ok([self.u(from)?, self.u(from + 1)?])
    }

    fn window(&self, from: usize) -> PyResult<Window> {
        Ok(Window::new(self.pair(from)?, self.pair(from + 2)?, self.pair(from + 4)?))
    }
}

/// The results of an operation, if the family has one of that name.
type Results = PyResult<Option<Vec<Expr>>>;

fn one(expr: Expr) -> Results {
    Ok(Some(vec![expr]))
}

fn two((a, b): (Expr, Expr)) -> Results {
    Ok(Some(vec![a, b]))
}

fn three((a, b, c): (Expr, Expr, Expr)) -> Results {
    Ok(Some(vec![a, b, c]))
}

/// Reductions.
fn reduced(x: &Expr, given: &Given<'_>) -> Results {
    let by = |of: fn(&Expr, &[isize], bool) -> Expr| {
        let (keep, axes) = given.kept()?;
        one(of(x, &axes, keep))
    };
    let along = |of: fn(&Expr, Option<isize>, bool) -> Expr| {
        let (keep, axes) = given.kept()?;
        one(of(x, axes.first().copied(), keep))
    };
    match given.name {
        "sum" => by(Expr::sum),
        "prod" => by(Expr::prod),
        "max" => by(Expr::max),
        "min" => by(Expr::min),
        "mean" => by(Expr::mean),
        "any" => by(Expr::any),
        "all" => by(Expr::all),
        "count_nonzero" => by(Expr::count_nonzero),
        "logsumexp" => by(Expr::logsumexp),
        "argmax" => along(Expr::argmax),
        "argmin" => along(Expr::argmin),
        "median" => along(Expr::median),
        "variance" | "std" | "norm" | "quantile" => {
            let ((keep, axes), number) = (given.kept()?, given.f(0)?);
            one(match given.name {
                "variance" => x.variance(&axes, number, keep),
                "std" => x.std(&axes, number, keep),
                "norm" => x.norm(number, &axes, keep),
                _ => x.quantile(number, axes.first().copied(), keep),
            })
        }
        _ => Ok(None),
    }
}

/// Scans, orders and counts.
fn along_axis(x: &Expr, given: &Given<'_>) -> Results {
    match given.name {
        "cumsum" => one(x.cumsum(given.axis(0)?)),
        "cumprod" => one(x.cumprod(given.axis(0)?)),
        "cummax" => one(x.cummax(given.axis(0)?)),
        "cummin" => one(x.cummin(given.axis(0)?)),
        "logcumsumexp" => one(x.logcumsumexp(given.axis(0)?)),
        "diff" => one(x.diff(given.u(0)?, given.axis(1)?)),
        "sort" => one(x.sort(given.axis(0)?, given.yes(1)?)),
        "argsort" => one(x.argsort(given.axis(0)?, given.yes(1)?)),
        "topk" => two(x.topk(given.u(0)?, given.axis(1)?, given.yes(2)?)),
        "searchsorted" => one(x.searchsorted(given.y(0)?, given.yes(0)?)),
        "bincount" => one(x.bincount(given.u(0)?)),
        "histogram" => one(x.histogram(given.u(0)?, given.f(0)?, given.f(1)?)),
        "histogram_by" => one(x.histogram_by(given.y(0)?, given.f(0)?)),
        _ => Ok(None),
    }
}

/// The elements in another shape or order, and with others around them.
fn moved(x: &Expr, given: &Given<'_>) -> Results {
    match given.name {
        "reshape" => one(x.reshape(&given.sizes()?)),
        "broadcast_to" => one(x.broadcast_to(&given.sizes()?)),
        "permute" => one(x.permute(&given.axes())),
        "slice" => {
            let triples = given.ints.chunks_exact(3);
            let ranges = triples.clone().map(|t| Ok(index(t[0])?..index(t[1])?)).collect::<PyResult<Vec<_>>>()?;
            let steps = triples.map(|t| index(t[2])).collect::<PyResult<Vec<_>>>()?;
            one(x.slice_steps(&ranges, &steps))
        }
        "slice_scatter" => {
            let ranges: Vec<_> = given.widths()?.into_iter().map(|(start, end)| start..end).collect();
            one(x.slice_scatter(&ranges, given.y(0)?))
        }
        "flip" => one(x.flip(&given.axes())),
        "roll" => {
            let (shifts, axes): (Vec<isize>, Vec<isize>) =
                given.ints.chunks_exact(2).map(|pair| (pair[0] as isize, pair[1] as isize)).unzip();
            one(x.roll(&shifts, &axes))
        }
        "concat" => one(x.concat(given.others, given.axis(0)?)),
        "stack" => one(x.stack(given.others, given.axis(0)?)),
        "tile" => one(x.tile(&given.sizes()?)),
        "repeat" => one(x.repeat(given.u(0)?, given.axis(1)?)),
        "pad" => one(x.pad(&given.widths()?, Padding::from(given.f(0)?))),
        "pad_edge" => one(x.pad(&given.widths()?, Padding::Edge)),
        "pad_reflect" => one(x.pad(&given.widths()?, Padding::Reflect)),
        "pad_wrap" => one(x.pad(&given.widths()?, Padding::Wrap)),
        _ => Ok(None),
    }
}

/// Elements that are taken, put or chosen.
fn at_places(x: &Expr, given: &Given<'_>) -> Results {
    match given.name {
        "take" => one(x.take(given.y(0)?, given.axis(0)?)),
        "gather" => one(x.gather(given.y(0)?, given.axis(0)?)),
        "scatter" => one(x.scatter(given.y(0)?, given.y(1)?, given.axis(0)?)),
        "scatter_add" => one(x.scatter_add(given.y(0)?, given.y(1)?, given.axis(0)?)),
        "select" => one(x.select(given.y(0)?, given.y(1)?)),
        "clamp" => one(x.clamp(given.f(0)?, given.f(1)?)),
        "tril" => one(x.tril(given.axis(0)?)),
        "triu" => one(x.triu(given.axis(0)?)),
        "diagonal" => one(x.diagonal(given.axis(0)?)),
        "one_hot" => one(x.one_hot(given.u(0)?, cantus::DType::F32)),
        _ => Ok(None),
    }
}

/// Matrices and Fourier transforms.
fn multiplied(x: &Expr, given: &Given<'_>) -> Results {
    match given.name {
        "matmul" => one(x.matmul(given.y(0)?)),
        "inverse" => one(x.inverse()),
        "det" => one(x.det()),
        "slogdet" => two(x.slogdet()),
        "solve" => one(x.solve(given.y(0)?)),
        "cholesky" => one(x.cholesky()),
        "qr" => two(if given.yes(0)? { x.qr_complete() } else { x.qr() }),
        "eigh" => two(x.eigh()),
        "svd" => three(if given.yes(0)? { x.svd_full() } else { x.svd() }),
        "expm" => one(x.expm()),
        "fft" => one(x.fft(given.axis(0)?)),
        "ifft" => one(x.ifft(given.axis(0)?)),
        "rfft" => one(x.rfft(given.axis(0)?)),
        "irfft" => one(x.irfft(given.u(0)?, given.axis(1)?)),
        _ => Ok(None),
    }
}

/// Layers of networks.
fn layer(x: &Expr, given: &Given<'_>) -> Results {
    match given.name {
        "softmax" => one(x.softmax(given.axis(0)?)),
        "log_softmax" => one(x.log_softmax(given.axis(0)?)),
        "rms_norm" => one(x.rms_norm(given.y(0)?, given.f(0)? as f32)),
        "layer_norm" => one(x.layer_norm(given.y(0)?, given.y(1)?, given.f(0)? as f32)),
        "group_norm" => one(x.group_norm(given.u(0)?, given.y(0)?, given.y(1)?, given.f(0)? as f32)),
        "linear" => one(x.fused_linear(given.y(0)?, given.others.get(1), None)),
        "conv1d" => one(x.conv1d(given.y(0)?, given.u(0)?, given.u(1)?, given.u(2)?, given.u(3)?)),
        "conv2d" => one(x.conv2d(given.y(0)?, given.window(0)?, given.u(6)?)),
        "max_pool2d" => one(x.max_pool2d(given.pair(0)?, given.window(2)?)),
        "avg_pool2d" => one(x.avg_pool2d(given.pair(0)?, given.window(2)?, given.yes(8)?)),
        "embedding" => one(x.embedding(given.y(0)?)),
        "rope" => {
            let pairs = if given.yes(0)? { RopePairs::Interleaved } else { RopePairs::Halves };
            one(x.rope(given.y(0)?, given.f(0)?, pairs))
        }
        "attention" => {
            let mut attention = Attention::new();
            if given.yes(0)? {
                attention = attention.causal();
            }
            if let Some(&scale) = given.floats.first() {
                attention = attention.scaled(scale);
            }
            if let Some(mask) = given.others.get(2) {
                attention = attention.masked(mask);
            }
            one(x.scaled_dot_product_attention(given.y(0)?, given.y(1)?, &attention))
        }
        "dropout" => one(x.dropout(given.f(0)?, given.n(0)?.cast_unsigned())),
        "cross_entropy" => one(x.cross_entropy(given.y(0)?)),
        _ => Ok(None),
    }
}

/// Elements that are found: how many is known once they are computed.
fn found(py: Python<'_>, engine: &Engine, x: &Expr, given: &Given<'_>) -> Results {
    match given.name {
        "nonzero" => one(Expr::from(&wait(py, engine, x.nonzero_async())?)),
        "masked_select" => one(Expr::from(&wait(py, engine, x.masked_select_async(given.y(0)?))?)),
        "unique" => {
            let found = wait(py, engine, x.unique_async())?;
            three((Expr::from(&found.values), Expr::from(&found.inverse), Expr::from(&found.counts)))
        }
        _ => Ok(None),
    }
}

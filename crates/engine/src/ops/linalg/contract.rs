//! Products of expressions whose axes have names, summed over the names that nothing needs any more: a matrix product where it can be.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::node::{Expr, is_float};
use crate::ops::expr::shape::product;
use crate::ops::expr::view::view;
use cantus_base::listed::Listed;

/// The name of an axis: a letter, or for those of an ellipsis a character that nobody types.
pub(super) type Label = char;

/// An expression with a name for each of its axes, all different.
#[derive(Clone)]
pub(super) struct Term {
    pub(super) expr: Expr,
    pub(super) labels: Vec<Label>,
}

impl Term {
    /// An expression whose axes may share names: of these the diagonal is taken.
    pub(super) fn new(expr: &Expr, labels: &[Label]) -> Self {
        let (mut expr, mut labels) = (expr.clone(), labels.to_vec());
        while let Some((first, second)) = twice(&labels) {
            labels.remove(second);
            expr = expr.derived(|typed| {
                let mut to = typed.shape.clone();
                to.remove(second);
                Ok(view(typed, &to, &|strides, offset| {
                    let mut strides = strides.to_vec();
                    let along = strides.remove(second);
                    strides[first] += along;
                    Some((strides, offset))
                }))
            });
        }
        Self { expr, labels }
    }

    fn place(&self, label: Label) -> Option<usize> {
        self.labels.iter().position(|&own| own == label)
    }

    /// Sums over the axes that `keep` refuses.
    fn reduced(self, keep: impl Fn(Label) -> bool) -> Self {
        let gone: Vec<isize> =
            (0..self.labels.len()).filter(|&axis| !keep(self.labels[axis])).map(usize::cast_signed).listed();
        if gone.is_empty() {
            return self;
        }
        let labels = self.labels.into_iter().filter(|&label| keep(label)).listed();
        Self { expr: self.expr.sum(&gone, false), labels }
    }

    /// Drops axes of one element whose label is a longer axis elsewhere: they broadcast.
    pub(super) fn narrowed(self, sizes: &HashMap<Label, usize>) -> Result<Self> {
        let shape = self.expr.shape()?.to_vec();
        let stays = |axis: usize| shape[axis] != 1 || sizes.get(&self.labels[axis]).is_none_or(|&size| size == 1);
        let kept: Vec<usize> = (0..shape.len()).filter(|&axis| stays(axis)).listed();
        if kept.len() == shape.len() {
            return Ok(self);
        }
        let sides: Vec<usize> = kept.iter().map(|&axis| shape[axis]).listed();
        Ok(Self { expr: self.expr.reshape(&sides), labels: kept.iter().map(|&axis| self.labels[axis]).listed() })
    }

    /// Its axes in this order; those that it lacks have one element.
    fn arranged(&self, order: &[Label]) -> Result<Expr> {
        let places: Vec<usize> = order.iter().filter_map(|&label| self.place(label)).listed();
        let axes: Vec<isize> = places.iter().map(|&place| place.cast_signed()).listed();
        let shape = self.expr.shape()?;
        let sides: Vec<usize> = order.iter().map(|&label| self.place(label).map_or(1, |place| shape[place])).listed();
        Ok(self.expr.permute(&axes).reshape(&sides))
    }

    /// Sums over the axes that the result does not name, and orders the others as the result does.
    pub(super) fn finished(self, output: &[Label], sizes: &HashMap<Label, usize>) -> Result<Expr> {
        let term = self.reduced(|label| output.contains(&label));
        let full: Vec<usize> = output.iter().map(|label| sizes.get(label).copied().unwrap_or(1)).listed();
        Ok(term.arranged(output)?.broadcast_to(&full))
    }
}

/// The first name that occurs twice.
fn twice(labels: &[Label]) -> Option<(usize, usize)> {
    (0..labels.len()).find_map(|second| {
        let first = labels[..second].iter().position(|&label| label == labels[second])?;
        Some((first, second))
    })
}

/// The product of two terms, summed over what is not kept.
pub(super) fn contract(a: Term, b: Term, keep: impl Fn(Label) -> bool) -> Result<Term> {
    let (of_a, of_b) = (a.labels.clone(), b.labels.clone());
    let a = a.reduced(|label| keep(label) || of_b.contains(&label));
    let b = b.reduced(|label| keep(label) || of_a.contains(&label));
    let (dtype, other) = (a.expr.dtype()?, b.expr.dtype()?);
    if dtype != other {
        return Err(Error::dtype(
            format!("a product of {dtype} and {other}"),
            "both must have the same dtype (cast first)",
        ));
    }
    let (mut batch, mut summed, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for &label in &a.labels {
        match (b.labels.contains(&label), keep(label)) {
            (true, true) => batch.push(label),
            (true, false) => summed.push(label),
            _ => left.push(label),
        }
    }
    let right: Vec<Label> = b.labels.iter().copied().filter(|label| !a.labels.contains(label)).listed();
    let labels = [&batch[..], &left, &right].concat();
    let sides = |term: &Term, labels: &[Label]| -> Result<Vec<usize>> {
        let shape = term.expr.shape()?;
        Ok(labels.iter().filter_map(|&label| term.place(label)).map(|place| shape[place]).listed())
    };
    let shape = [sides(&a, &batch)?, sides(&a, &left)?, sides(&b, &right)?].concat();
    if !summed.is_empty() && is_float(dtype) {
        let all = |term: &Term, labels: &[Label]| Ok::<_, Error>(product(&sides(term, labels)?));
        let (m, k, n) = (all(&a, &left)?, all(&a, &summed)?, all(&b, &right)?);
        let over = sides(&a, &batch)?;
        let lhs = a.arranged(&[&batch[..], &left, &summed].concat())?.reshape(&[&over[..], &[m, k]].concat());
        let rhs = b.arranged(&[&batch[..], &summed, &right].concat())?.reshape(&[&over[..], &[k, n]].concat());
        return Ok(Term { expr: lhs.matmul(rhs).reshape(&shape), labels });
    }
    let space = [&labels[..], &summed].concat();
    let (lhs, rhs) = (a.arranged(&space)?, b.arranged(&space)?);
    let term = Term { expr: lhs.binary(Binary::Mul, rhs), labels: space };
    Ok(term.reduced(|label| !summed.contains(&label)))
}

//! Strided views as operations: slices, reshapes, transposes and repetitions where they can say it, a gather where they cannot.

use crate::simulate::contiguous;
use crate::tensor::DType;
use crate::{Binary, Graph, Value};
use cantus_base::listed::{Listed, Ordered};

/// An axis of a view that moves in what is read.
#[derive(Debug, Clone, Copy)]
struct Step {
    axis: usize,
    stride: usize,
    length: usize,
}

/// The elements of `source`, contiguous in its shape, that begin at `offset` and run by `strides` in a view of `shape`.
pub(super) fn viewed(graph: &mut Graph, source: Value, offset: usize, strides: &[usize], shape: &[usize]) -> Value {
    if offset == 0 && product(graph.shape(source)) == product(shape) && strides == contiguous(shape) {
        return graph.reshape(source, shape);
    }
    let mut steps: Vec<Step> = (0..shape.len())
        .map(|axis| Step { axis, stride: strides[axis], length: shape[axis] })
        .filter(|step| step.length > 1 && step.stride > 0)
        .listed();
    steps.order_by_key(|step| std::cmp::Reverse(step.stride));
    let part = sliced(graph, source, offset, &steps).or_else(|| split(graph, source, offset, &steps));
    let Some(part) = part else {
        let places = places(graph, offset, strides, shape);
        let flat = flat(graph, source);
        return graph.take(flat, places);
    };
    // In the order of the view, then repeated.
    let mut order: Vec<usize> = (0..steps.len()).listed();
    order.order_by_key(|&place| steps[place].axis);
    let turned = graph.transpose(part, &order);
    let axes: Vec<usize> = order.iter().map(|&place| steps[place].axis).listed();
    let moving = |axis: usize| strides[axis] > 0 || shape[axis] == 1;
    if (0..shape.len()).all(moving) {
        return graph.reshape(turned, shape);
    }
    graph.broadcast(turned, &axes, shape)
}

/// The number of elements of a shape.
fn product(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// A value with one axis.
pub(super) fn flat(graph: &mut Graph, value: Value) -> Value {
    let count = product(graph.shape(value));
    graph.reshape(value, &[count])
}

/// The places that a view reads, as u32.
pub(super) fn places(graph: &mut Graph, offset: usize, strides: &[usize], shape: &[usize]) -> Value {
    let number = |graph: &mut Graph, number: usize| graph.integer(number as i64, DType::U32);
    let mut sum = number(graph, offset);
    for (axis, &stride) in strides.iter().enumerate().filter(|(axis, stride)| **stride > 0 && shape[*axis] > 1) {
        let place = graph.iota(axis, DType::U32, shape);
        let factor = number(graph, stride);
        let step = if stride == 1 { place } else { graph.binary(Binary::Multiply, place, factor) };
        sum = if graph.number(sum) == Some(0) { step } else { graph.binary(Binary::Add, sum, step) };
    }
    if graph.shape(sum) == shape { sum } else { graph.broadcast(sum, &[], shape) }
}

/// Each step runs along an axis of the source of its own. The result has an axis for each step.
fn sliced(graph: &mut Graph, source: Value, offset: usize, steps: &[Step]) -> Option<Value> {
    let from = graph.shape(source).to_vec();
    let own = contiguous(&from);
    let (mut start, mut rest) = (vec![0; from.len()], offset);
    for axis in 0..from.len() {
        start[axis] = if from[axis] > 1 { rest / own[axis] } else { 0 };
        rest -= start[axis] * own[axis];
    }
    let (mut limit, mut step) = (start.iter().map(|start| start + 1).listed(), vec![1; from.len()]);
    let mut taken = Vec::new();
    for of in steps {
        let axis = (0..from.len()).find(|&axis| from[axis] > 1 && own[axis] <= of.stride)?;
        if of.stride % own[axis] != 0 || taken.contains(&axis) {
            return None;
        }
        step[axis] = of.stride / own[axis];
        limit[axis] = start[axis] + (of.length - 1) * step[axis] + 1;
        taken.push(axis);
    }
    if rest != 0 || limit.iter().zip(&from).any(|(limit, side)| limit > side) {
        return None;
    }
    let part = graph.slice(source, &start, &limit, &step);
    // Axes of one element go; the others come in the order of the steps, since both are by descending strides.
    Some(graph.reshape(part, &steps.iter().map(|step| step.length).listed()))
}

/// Each step runs along a digit of the place, once the source is cut into such digits.
fn split(graph: &mut Graph, source: Value, offset: usize, steps: &[Step]) -> Option<Value> {
    let first = steps.first()?.stride;
    let nested = steps.windows(2).all(|pair| pair[0].stride > pair[1].stride && pair[0].stride % pair[1].stride == 0);
    if !nested {
        return None;
    }
    let count = product(graph.shape(source));
    // From the source's beginning, or from the view's.
    for base in [0, offset] {
        let reach = count - base;
        let outer = reach.div_ceil(first);
        let mut digits = vec![outer];
        digits.extend(steps.windows(2).map(|pair| pair[0].stride / pair[1].stride));
        digits.push(steps.last()?.stride);
        let mut rest = offset - base;
        let mut start = Vec::new();
        for step in steps {
            start.push(rest / step.stride);
            rest %= step.stride;
        }
        let fits = steps.iter().zip(&start).zip(&digits).all(|((step, start), digit)| start + step.length <= *digit);
        if !fits {
            continue;
        }
        start.push(rest);
        let mut limit: Vec<usize> = start.iter().zip(steps).map(|(start, step)| start + step.length).listed();
        limit.push(rest + 1);
        let flat = flat(graph, source);
        let behind = graph.slice(flat, &[base], &[count], &[1]);
        let whole = graph.pad(behind, &[0], &[outer * first - reach]);
        let cut = graph.reshape(whole, &digits);
        let part = graph.slice(cut, &start, &limit, &vec![1; start.len()]);
        return Some(graph.reshape(part, &steps.iter().map(|step| step.length).listed()));
    }
    None
}

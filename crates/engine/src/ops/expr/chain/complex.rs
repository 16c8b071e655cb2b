//! Complex numbers in a chain of elementwise steps. Each number is two lanes, its real and its imaginary part, and an operation becomes the real steps
//! of both. A node that has no such steps ends the chain.

use std::sync::Arc;

use super::{Chain, Lowering, Steps, as_narrow, is_taken, limits};
use crate::backend::native::{One, Step, Two};
use crate::ops::elementwise::{Binary, Unary};
use crate::ops::expr::node::{Node, Typed};
use crate::ops::expr::shape::broadcast_strides;
use crate::tensor::{DType, Kind};

/// The steps of a number's real and imaginary part.
type Parts = [u16; 2];

/// Returns whether a node computes with complex numbers.
pub(super) fn concerns(node: &Typed) -> bool {
    is_complex(node.dtype) || node.children().into_iter().any(|child| is_complex(child.dtype))
}

pub(super) fn is_complex(dtype: DType) -> bool {
    dtype.kind() == Kind::Complex
}

/// The dtype of a dtype's parts.
pub(super) fn part_of(dtype: DType) -> DType {
    match dtype {
        DType::Complex64 => DType::F32,
        DType::Complex128 => DType::F64,
        real => real,
    }
}

impl Steps {
    fn of_one(&mut self, op: One, x: u16) -> u16 {
        self.add(Step::One(op, x), (0, 0))
    }

    fn of_two(&mut self, op: Two, x: u16, y: u16) -> u16 {
        self.add(Step::Two(op, x, y), (0, 0))
    }

    fn number(&mut self, value: f64, wide: bool) -> u16 {
        let bits = if wide { Step::WideConstant(value.to_bits()) } else { Step::Constant((value as f32).to_bits()) };
        self.add(bits, (0, 0))
    }

    fn convert(&mut self, x: u16, [from, to]: [DType; 2], wide: bool) -> Option<u16> {
        match from == to {
            true => Some(x),
            false if wide => self.wide_cast(x, from, to),
            false => self.cast(x, from, to),
        }
    }

    fn multiply(&mut self, [a, b]: Parts, [c, d]: Parts) -> Parts {
        let [ac, bd] = [self.of_two(Two::Mul, a, c), self.of_two(Two::Mul, b, d)];
        let real = self.of_two(Two::Sub, ac, bd);
        let [ad, bc] = [self.of_two(Two::Mul, a, d), self.of_two(Two::Mul, b, c)];
        [real, self.of_two(Two::Add, ad, bc)]
    }

    /// By the larger part of the divisor (Smith, 1962), as the kernels do.
    fn divide(&mut self, [a, b]: Parts, [c, d]: Parts) -> Parts {
        let [size_c, size_d] = [self.of_one(One::Abs, c), self.of_one(One::Abs, d)];
        let turned = self.of_two(Two::Lt, size_c, size_d);
        let mut choose = |x: u16, y: u16| self.add(Step::Choose(turned, x, y), (0, 0));
        let (larger, smaller, first, second) = (choose(d, c), choose(c, d), choose(b, a), choose(a, b));
        let ratio = self.of_two(Two::Div, smaller, larger);
        let more = self.of_two(Two::Mul, smaller, ratio);
        let scale = self.of_two(Two::Add, larger, more);
        // (a + b r, b - a r), or (a r + b, b r - a).
        let scaled = self.of_two(Two::Mul, second, ratio);
        let real = self.of_two(Two::Add, first, scaled);
        let [of_a, of_b] = [self.of_two(Two::Mul, a, ratio), self.of_two(Two::Mul, b, ratio)];
        let [plain, other] = [self.of_two(Two::Sub, b, of_a), self.of_two(Two::Sub, of_b, a)];
        let imaginary = self.add(Step::Choose(turned, other, plain), (0, 0));
        [self.of_two(Two::Div, real, scale), self.of_two(Two::Div, imaginary, scale)]
    }

    /// A step that is the last one, with the value of another.
    pub(super) fn last(&mut self, step: u16, wide: bool) -> u16 {
        let one = self.number(1.0, wide);
        self.add(Step::Choose(one, step, step), (0, 0))
    }
}

impl Lowering {
    /// Adds the steps of a node that is complex or reads complex numbers. Returns its own step, or its parts'.
    pub(super) fn complex(&mut self, chain: &mut Chain, node: &Typed, shape: &[usize]) -> Option<(u16, Option<u16>)> {
        let wide = self.wide;
        let real = |chain: &Chain, child: &Arc<Typed>| chain.known.get(&Arc::as_ptr(child)).copied();
        let parts = |chain: &Chain, child: &Arc<Typed>| {
            let key = Arc::as_ptr(child);
            Some([*chain.known.get(&key)?, *chain.imaginary.get(&key)?])
        };
        if !is_taken(part_of(node.dtype), wide) {
            return None;
        }
        let computes = |dtype: DType| as_narrow(part_of(dtype), wide) == Some(DType::F32);
        let found: Parts = match &node.node {
            Node::Read(view) => {
                let tensor = view.source.tensor().filter(|tensor| tensor.dtype() == node.dtype)?;
                let strides: Vec<usize> =
                    broadcast_strides(&node.shape, &view.strides, shape).iter().map(|stride| 2 * stride).collect();
                let [re, im] =
                    [0, 1].map(|part| self.known_input(&tensor, (strides.clone(), 2 * view.offset + part), None));
                let mut add = |input: u16| chain.steps.add(Step::Input(input), (0, 0));
                [add(re?), add(im?)]
            }
            Node::Constant(value) => [chain.steps.number(*value, wide), chain.steps.number(0.0, wide)],
            Node::Unary(op, a) if computes(a.dtype) => {
                let of = parts(chain, a)?;
                let ([x, y], steps) = (of, &mut chain.steps);
                match op {
                    Unary::Neg => [steps.of_one(One::Neg, x), steps.of_one(One::Neg, y)],
                    Unary::Conj => [x, steps.of_one(One::Neg, y)],
                    Unary::Square => steps.multiply(of, of),
                    Unary::Reciprocal => {
                        let one = [steps.number(1.0, wide), steps.number(0.0, wide)];
                        steps.divide(one, of)
                    }
                    Unary::Abs => return Some((steps.of_two(Two::Hypot, x, y), None)),
                    Unary::Real => return Some((x, None)),
                    Unary::Imag => return Some((y, None)),
                    _ => return None,
                }
            }
            Node::Binary(Binary::Complex, a, b) => [real(chain, a)?, real(chain, b)?],
            Node::Binary(op, a, b) if computes(a.dtype) => {
                let (x, y, steps) = (parts(chain, a)?, parts(chain, b)?, &mut chain.steps);
                let mut each = |op: Two| {
                    [0, 1].map(|part| {
                        steps.add(Step::Two(op, x[part], y[part]), limits(DType::Bool, wide).unwrap_or((0, 1)))
                    })
                };
                match op {
                    Binary::Add => each(Two::Add),
                    Binary::Sub => each(Two::Sub),
                    Binary::Mul => steps.multiply(x, y),
                    Binary::Div => steps.divide(x, y),
                    Binary::Eq | Binary::Ne => {
                        let (same, both) = if *op == Binary::Eq { (Two::Eq, Two::And) } else { (Two::Ne, Two::Or) };
                        let [re, im] = each(same);
                        return Some((steps.add(Step::Two(both, re, im), (0, 1)), None));
                    }
                    _ => return None,
                }
            }
            Node::Select(condition, a, b) => {
                let (given, x, y) = (real(chain, condition)?, parts(chain, a)?, parts(chain, b)?);
                let given = chain.steps.within(given, condition.dtype);
                [0, 1].map(|part| chain.steps.add(Step::Choose(given, x[part], y[part]), (0, 0)))
            }
            Node::Cast(a) if is_complex(node.dtype) => {
                let dtypes = [a.dtype, node.dtype].map(part_of);
                let re = chain.steps.convert(real(chain, a)?, dtypes, wide)?;
                let im = match is_complex(a.dtype) {
                    true => chain.steps.convert(parts(chain, a)?[1], dtypes, wide)?,
                    false => chain.steps.number(0.0, wide),
                };
                [re, im]
            }
            Node::Cast(a) if node.dtype != DType::Bool => {
                return Some((chain.steps.convert(real(chain, a)?, [part_of(a.dtype), node.dtype], wide)?, None));
            }
            _ => return None,
        };
        Some((found[0], Some(found[1])))
    }
}

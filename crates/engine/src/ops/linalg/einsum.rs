//! Sums of products by Einstein's convention: the equation is read, the cheapest order of products is found, and each is a matrix product
//! where it can be.

use std::collections::HashMap;

use super::contract::{Label, Term, contract};
use crate::error::{Error, Result};
use crate::ops::expr::node::Expr;
use cantus_base::listed::Listed;

/// The number of operands up to which all orders are compared; with more, the cheapest product is taken each time.
const COMPARED: usize = 10;
/// Operands at most.
const MOST: usize = 32;
/// Names of an ellipsis's axes, counted from its end: characters for private use.
const ELLIPSIS: u32 = 0xe000;

/// An equation that fits its operands.
struct Equation {
    inputs: Vec<Vec<Label>>,
    output: Vec<Label>,
    sizes: HashMap<Label, usize>,
}

fn fault(equation: &str, reason: String) -> Error {
    Error::invalid(format!("the equation {equation:?}"), reason)
}

/// The names in one part of an equation; those of an ellipsis stand for `more` axes.
fn names(part: &str, more: usize) -> std::result::Result<Vec<Label>, String> {
    let mut labels = Vec::new();
    let mut rest = part.trim();
    let mut seen = false;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if std::mem::replace(&mut seen, true) {
                return Err(format!("{part:?} has two ellipses"));
            }
            labels.extend((0..more).rev().filter_map(|place| char::from_u32(ELLIPSIS + place as u32)));
            rest = after;
        } else if first.is_ascii_alphabetic() {
            labels.push(first);
            rest = &rest[1..];
        } else if first == ' ' {
            rest = &rest[1..];
        } else {
            return Err(format!("{first:?} is no letter"));
        }
    }
    Ok(labels)
}

impl Equation {
    fn new(text: &str, shapes: &[&[usize]]) -> Result<Self> {
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (text, None),
        };
        let parts: Vec<&str> = left.split(',').listed();
        if parts.len() != shapes.len() {
            return Err(fault(text, format!("it names {} operands, and is given {}", parts.len(), shapes.len())));
        }
        let mut inputs = Vec::new();
        let mut sizes: HashMap<Label, usize> = HashMap::new();
        let mut most = 0;
        for (part, shape) in parts.iter().zip(shapes) {
            let letters = names(part, 0).map_err(|reason| fault(text, reason))?.len();
            let more = if part.contains("...") { shape.len().checked_sub(letters) } else { Some(0) };
            let Some(more) = more.filter(|more| letters + more == shape.len() && *more < 64) else {
                return Err(fault(text, format!("{part:?} names {letters} axes, but the shape is {shape:?}")));
            };
            most = most.max(more);
            let labels = names(part, more).map_err(|reason| fault(text, reason))?;
            for (&label, &side) in labels.iter().zip(*shape) {
                let known = sizes.entry(label).or_insert(side);
                if *known != side && *known != 1 && side != 1 {
                    return Err(fault(
                        text,
                        format!("an axis has {known} elements in one place and {side} in another"),
                    ));
                }
                if *known == 1 {
                    *known = side;
                }
            }
            // A diagonal has one length.
            for (axis, label) in labels.iter().enumerate() {
                let other = labels[..axis].iter().position(|known| known == label);
                if let Some(other) = other.filter(|&other| shape[other] != shape[axis]) {
                    let (one, two) = (shape[other], shape[axis]);
                    return Err(fault(text, format!("{part:?} is a diagonal of {one} by {two} elements")));
                }
            }
            inputs.push(labels);
        }
        let output = match right {
            Some(right) => names(right, most).map_err(|reason| fault(text, reason))?,
            // The names that occur once, in alphabetical order, after the ellipsis.
            None => {
                let mut labels = names("...", most).map_err(|reason| fault(text, reason))?;
                let all = inputs.concat();
                let mut single: Vec<Label> = ('A'..='Z').chain('a'..='z').listed();
                single.retain(|label| all.iter().filter(|other| *other == label).count() == 1);
                labels.extend(single);
                labels
            }
        };
        for (place, label) in output.iter().enumerate() {
            if !sizes.contains_key(label) {
                return Err(fault(text, format!("{label:?} is in the result, but in no operand")));
            }
            if output[..place].contains(label) {
                return Err(fault(text, format!("{label:?} occurs twice in the result")));
            }
        }
        Ok(Self { inputs, output, sizes })
    }
}

/// The state of the search for the cheapest order: operands as bits of a set, the names of each, sizes, and what the result
/// names.
struct Search<'a> {
    labels: &'a [Vec<Label>],
    sizes: &'a HashMap<Label, usize>,
    output: &'a [Label],
}

impl Search<'_> {
    /// The names that the product of a set of operands keeps.
    fn kept(&self, set: u32) -> Vec<Label> {
        let (mut inside, mut outside) = (Vec::new(), self.output.to_vec());
        for (operand, labels) in self.labels.iter().enumerate() {
            if set >> operand & 1 == 1 { inside.extend(labels) } else { outside.extend(labels) }
        }
        inside.retain(|label| outside.contains(label));
        inside.sort_unstable();
        inside.dedup();
        inside
    }

    /// Multiplications of the product of two sets' results.
    fn cost(&self, a: &[Label], b: &[Label]) -> f64 {
        let both = a.iter().chain(b.iter().filter(|label| !a.contains(label)));
        both.map(|label| self.sizes.get(label).map_or(1.0, |&size| size as f64)).product()
    }

    /// The pairs to multiply, as sets: each result is the union.
    fn order(&self) -> Vec<(u32, u32)> {
        let count = self.labels.len();
        if count > COMPARED {
            return self.cheapest_first();
        }
        // For each set its cost, how it is split, and what it keeps.
        let sets = 1_u32 << count;
        let kept: Vec<Vec<Label>> = (0..sets).map(|set| self.kept(set)).listed();
        let mut best = vec![(0.0_f64, 0_u32); sets as usize];
        for set in (1..sets).filter(|set| set.count_ones() > 1) {
            let mut found = (f64::INFINITY, 0);
            let mut part = (set - 1) & set;
            while part > 0 {
                let other = set & !part;
                if part > other {
                    let own = self.cost(&kept[part as usize], &kept[other as usize]);
                    let cost = own + best[part as usize].0 + best[other as usize].0;
                    if cost < found.0 || found.1 == 0 {
                        found = (cost, part);
                    }
                }
                part = (part - 1) & set;
            }
            best[set as usize] = found;
        }
        let (mut order, mut open) = (Vec::new(), vec![sets - 1]);
        while let Some(set) = open.pop() {
            let part = best[set as usize].1;
            if part != 0 {
                order.push((part, set & !part));
                open.extend([part, set & !part]);
            }
        }
        order.reverse();
        order
    }

    fn cheapest_first(&self) -> Vec<(u32, u32)> {
        let mut sets: Vec<u32> = (0..self.labels.len()).map(|operand| 1 << operand).listed();
        let mut order = Vec::new();
        while sets.len() > 1 {
            let pairs = (0..sets.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
            let cost = |&(a, b): &(usize, usize)| self.cost(&self.kept(sets[a]), &self.kept(sets[b]));
            let best = pairs.min_by(|one, other| cost(one).total_cmp(&cost(other)));
            let Some((a, b)) = best else { break };
            order.push((sets[a], sets[b]));
            sets[a] |= sets[b];
            sets.swap_remove(b);
        }
        order
    }
}

impl Expr {
    /// Returns the sum of products of this and other expressions by an equation. Each axis has a letter, axes with the same letter run together, and
    /// letters that the result does not name are summed. An ellipsis denotes axes that broadcast. Without `->` the result has the letters that occur
    /// once, in alphabetical order.
    ///
    /// The operands are multiplied in pairs, in the order with the fewest multiplications; floats by [`Expr::matmul`], with its accuracy.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let a = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?.expr();
    /// let v = engine.tensor(&[10.0_f32, 1.0])?.expr();
    /// assert_eq!(a.einsum("ij,j->i", &[v.clone()]).eval()?.to_vec::<f32>()?, [12.0, 34.0]);
    /// assert_eq!(a.einsum("ii", &[]).eval()?.item::<f32>()?, 5.0); // the trace
    /// assert_eq!(v.einsum("i,ij,j->", &[a, v.clone()]).eval()?.item::<f32>()?, 154.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn einsum(&self, equation: &str, others: &[Self]) -> Self {
        let result = self.contracted(equation, others);
        self.of(result)
    }

    fn contracted(&self, text: &str, others: &[Self]) -> Result<Self> {
        let operands: Vec<&Self> = std::iter::once(self).chain(others).listed();
        if operands.len() > MOST {
            return Err(fault(text, format!("there are {} operands; the limit is {MOST}", operands.len())));
        }
        let shapes: Vec<&[usize]> = operands.iter().map(|operand| operand.shape()).try_listed()?;
        let Equation { inputs, output, sizes } = Equation::new(text, &shapes)?;
        let mut terms: HashMap<u32, Term> = HashMap::new();
        let mut labels = Vec::new();
        for (place, (operand, names)) in operands.iter().zip(&inputs).enumerate() {
            let term = Term::new(operand, names).narrowed(&sizes)?;
            labels.push(term.labels.clone());
            terms.insert(1 << place, term);
        }
        let search = Search { labels: &labels, sizes: &sizes, output: &output };
        for (a, b) in search.order() {
            let (Some(left), Some(right)) = (terms.remove(&a), terms.remove(&b)) else { continue };
            let kept = search.kept(a | b);
            terms.insert(a | b, contract(left, right, |label| kept.contains(&label))?);
        }
        let term = terms.into_values().next();
        term.map_or_else(|| Err(fault(text, "it has no operand".to_owned())), |term| term.finished(&output, &sizes))
    }
}

impl crate::engine::Tensor {
    /// See [`Expr::einsum`].
    #[must_use]
    pub fn einsum(&self, equation: &str, others: &[Expr]) -> Expr {
        self.expr().einsum(equation, others)
    }
}

//! Products by Einstein's convention, over chosen axes, of Kronecker, and powers, against loops over all indices in float64.

use std::collections::BTreeMap;

use cantus::DType;
use cantus::ops::Expr;
use ndarray::{ArrayD, IxDyn};

use crate::{Numbers, by_turns, close, few, name, tensor, wide};

/// The sum over all letters' values, straight from the definition. Letters of axes of one element may have more elsewhere.
fn defined(inputs: &[Vec<char>], output: &[char], arrays: &[ArrayD<f64>]) -> ArrayD<f64> {
    let mut sizes: BTreeMap<char, usize> = BTreeMap::new();
    for (labels, array) in inputs.iter().zip(arrays) {
        for (&label, &side) in labels.iter().zip(array.shape()) {
            let known = sizes.entry(label).or_insert(side);
            if *known == 1 {
                *known = side;
            }
        }
    }
    let shape: Vec<usize> = output.iter().map(|label| sizes[label]).collect();
    let mut result = ArrayD::zeros(IxDyn(&shape));
    let labels: Vec<char> = sizes.keys().copied().collect();
    let sides: Vec<usize> = sizes.values().copied().collect();
    for at in ndarray::indices(IxDyn(&sides)) {
        let value = |label: char| at[labels.iter().position(|&other| other == label).unwrap()];
        let term: f64 = inputs
            .iter()
            .zip(arrays)
            .map(|(labels, array)| {
                let place: Vec<usize> = labels
                    .iter()
                    .zip(array.shape())
                    .map(|(&label, &side)| if side == 1 { 0 } else { value(label) })
                    .collect();
                array[IxDyn(&place)]
            })
            .product();
        let to: Vec<usize> = output.iter().map(|&label| value(label)).collect();
        result[IxDyn(&to)] += term;
    }
    result
}

#[test]
fn random_equations() {
    for engine in by_turns() {
        for seed in few(engine, 0..60) {
            let mut numbers = Numbers::new(2000 + seed);
            let count = 1 + numbers.below(4);
            let letters = ['a', 'b', 'c', 'd', 'E', 'f'];
            let sides: Vec<usize> = letters.iter().map(|_| numbers.side(5)).collect();
            let mut inputs = Vec::new();
            let mut arrays = Vec::new();
            for _ in 0..count {
                // Letters may repeat: a diagonal.
                let axes = numbers.below(4);
                let labels: Vec<usize> = (0..axes).map(|_| numbers.below(letters.len())).collect();
                let shape: Vec<usize> = labels.iter().map(|&label| sides[label]).collect();
                arrays.push(numbers.array(&shape).mapv(|x| (x * 2.0).round() / 2.0));
                inputs.push(labels.into_iter().map(|label| letters[label]).collect::<Vec<char>>());
            }
            let mut used: Vec<char> = inputs.concat();
            used.sort_unstable();
            used.dedup();
            let mut output: Vec<char> = Vec::new();
            for &label in &used {
                if numbers.below(2) == 0 {
                    output.insert(numbers.below(output.len() + 1), label);
                }
            }
            let text = |labels: &[char]| labels.iter().collect::<String>();
            let left: Vec<String> = inputs.iter().map(|labels| text(labels)).collect();
            let equation = format!("{} -> {}", left.join(","), text(&output));
            let shapes: Vec<&[usize]> = arrays.iter().map(|array| array.shape()).collect();
            let what = format!("{equation} of {shapes:?}, seed {seed}, on {}", name(engine));
            let expected = defined(&inputs, &output, &arrays.iter().map(wide).collect::<Vec<_>>());
            let operands: Vec<Expr> = arrays.iter().map(|array| tensor(engine, array).expr()).collect();
            close(&operands[0].einsum(&equation, &operands[1..]), &expected, 1e-5, &what);
            // Whole numbers, exactly.
            let whole: Vec<ArrayD<f32>> = arrays.iter().map(|array| array.mapv(f32::round)).collect();
            let expected = defined(&inputs, &output, &whole.iter().map(wide).collect::<Vec<_>>());
            let operands: Vec<Expr> = whole.iter().map(|array| tensor(engine, array).cast(DType::I32)).collect();
            close(&operands[0].einsum(&equation, &operands[1..]), &expected, 0.0, &what);
        }
    }
}

#[test]
fn ellipses_broadcast_and_results_are_named_by_the_alphabet() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(2100);
        let (a, b) = (numbers.array(&[2, 1, 3, 4]), numbers.array(&[5, 4, 6]));
        let (x, y) = (tensor(engine, &a).expr(), tensor(engine, &b).expr());
        let inputs = [vec!['p', 'q', 'i', 'j'], vec!['q', 'j', 'k']];
        let expected = defined(&inputs, &['p', 'q', 'i', 'k'], &[wide(&a), wide(&b)]);
        for equation in ["...ij,...jk->...ik", "...ij,...jk", "... i j, ... j k"] {
            close(
                &x.einsum(equation, std::slice::from_ref(&y)),
                &expected,
                1e-5,
                &format!("{equation} on {}", name(engine)),
            );
        }
        let expected = defined(&inputs, &['k', 'i', 'p', 'q'], &[wide(&a), wide(&b)]);
        close(&x.einsum("...ij,...jk->ki...", &[y]), &expected, 1e-5, &name(engine));
        // Upper case before lower case; what stands twice is summed.
        let expected = defined(&[vec!['b', 'A', 'c', 'c']], &['A', 'b'], &[wide(&numbers.array(&[2, 3, 4, 4]))]);
        let mut numbers = Numbers::new(2100);
        let _ = (numbers.array(&[2, 1, 3, 4]), numbers.array(&[5, 4, 6]));
        let c = tensor(engine, &numbers.array(&[2, 3, 4, 4])).expr();
        close(&c.einsum("bAcc", &[]), &expected, 1e-5, &name(engine));
    }
}

#[test]
fn a_chain_goes_by_the_cheap_end() {
    // From the left there would be 10^10 elements between.
    let engine = cantus::Engine::builder().backend("cpu").build().unwrap();
    let ones = |shape: &[usize]| engine.zeros::<f32>(shape).unwrap().expr() + 1.0;
    let (a, b, v) = (ones(&[100_000, 2]), ones(&[2, 100_000]), ones(&[100_000]));
    let product = a.einsum("ij,jk,k->i", &[b, v]).eval().unwrap().to_vec::<f32>().unwrap();
    assert_eq!(product, vec![2e5; 100_000]);
}

#[test]
fn many_operands() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(2150);
        // More than all orders are compared for.
        let arrays: Vec<ArrayD<f32>> = (0..12).map(|_| numbers.array(&[2, 2])).collect();
        let letters: Vec<char> = ('a'..='m').collect();
        let inputs: Vec<Vec<char>> = (0..12).map(|place| vec![letters[place], letters[place + 1]]).collect();
        let parts: Vec<String> = inputs.iter().map(|labels| labels.iter().collect()).collect();
        let expected = defined(&inputs, &['a', 'm'], &arrays.iter().map(wide).collect::<Vec<_>>());
        let scale = expected.iter().fold(1.0_f64, |top, x| top.max(x.abs()));
        let operands: Vec<Expr> = arrays.iter().map(|array| tensor(engine, array).expr()).collect();
        let got = operands[0].einsum(&format!("{}->am", parts.join(",")), &operands[1..]);
        close(&(got / scale), &(expected / scale), 1e-5, &name(engine));
    }
}

#[test]
fn products_over_axes_and_of_kronecker() {
    for engine in by_turns() {
        for seed in few(engine, 0..12) {
            let mut numbers = Numbers::new(2200 + seed);
            let (i, j, k, l) = (numbers.side(4), numbers.side(4), numbers.side(4), numbers.side(4));
            let (a, b) = (numbers.array(&[i, j, k]), numbers.array(&[k, l, i]));
            let (x, y) = (tensor(engine, &a), tensor(engine, &b));
            let (f, g) = (wide(&a), wide(&b));
            let what = format!("{:?} {:?}, seed {seed}, on {}", a.shape(), b.shape(), name(engine));
            let labels = [vec!['i', 'j', 'k'], vec!['k', 'l', 'i']];
            let both = defined(&labels, &['j', 'l'], &[f.clone(), g.clone()]);
            close(&x.tensordot(&y, &[(0, 2), (-1, 0)]), &both, 1e-5, &what);
            let apart = [vec!['i', 'j', 'k'], vec!['p', 'q', 'r']];
            let none = defined(&apart, &['i', 'j', 'k', 'p', 'q', 'r'], &[f, g]);
            close(&x.tensordot(&y, &[]), &none, 1e-6, &what);
            let (a, b) = (numbers.array(&[i, j]), numbers.array(&[k, l, i]));
            let expected = ArrayD::from_shape_fn(IxDyn(&[k, i * l, j * i]), |at| {
                let (rows, columns) = (l.max(1), i.max(1));
                f64::from(a[[at[1] / rows, at[2] / columns]]) * f64::from(b[[at[0], at[1] % rows, at[2] % columns]])
            });
            close(&tensor(engine, &a).kron(tensor(engine, &b)), &expected, 1e-6, &what);
        }
    }
}

#[test]
fn powers_of_matrices() {
    for engine in by_turns() {
        for seed in few(engine, 0..10) {
            let mut numbers = Numbers::new(2250 + seed);
            let (batch, n) = (1 + numbers.below(3), 1 + numbers.below(6));
            let exponent = numbers.below(9) as i32;
            let a = numbers.array(&[batch, n, n]) / 4.0;
            let mut expected = ArrayD::from_shape_fn(IxDyn(&[batch, n, n]), |at| f64::from(at[1] == at[2]));
            for _ in 0..exponent {
                expected = crate::oracle::matmul(&expected, &wide(&a));
            }
            let what = format!("{batch} {n} to {exponent} on {}", name(engine));
            close(&tensor(engine, &a).matrix_power(exponent), &expected, 1e-5, &what);
            // Diagonally dominant, so that the inverse is tame.
            let b = ArrayD::from_shape_fn(IxDyn(&[batch, n, n]), |at| {
                a[&at] + if at[1] == at[2] { n as f32 + 1.0 } else { 0.0 }
            });
            let t = tensor(engine, &b);
            let one = ArrayD::from_shape_fn(IxDyn(&[batch, n, n]), |at| f64::from(at[1] == at[2]));
            close(&t.matrix_power(-2).matmul(t.matrix_power(2)), &one, 1e-5, &what);
        }
    }
}

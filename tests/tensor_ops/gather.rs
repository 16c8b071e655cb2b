//! Elements by index.

use cantus::engine::GraphInputs;
use cantus::ops::Expr;
use cantus::{DType, Tensor};
use ndarray::{ArrayD, Axis, IxDyn};

use crate::{Numbers, by_turns, close, halves, name, of_halves, seeds, tensor, wide};

#[test]
fn gathers_along_any_axis() {
    for engine in by_turns() {
        for seed in seeds(engine, 0..20) {
            let mut numbers = Numbers::new(1150 + seed);
            let shape = numbers.shape(3, 11);
            let axis = numbers.below(3);
            let array = numbers.array(&shape);
            let half = seed % 4 == 3;
            let what = format!("axis {axis} of {shape:?}, seed {seed}, on {}", name(engine));
            let (part, values) = if half {
                (halves(engine, &array).expr(), of_halves(&array))
            } else {
                (tensor(engine, &array).expr(), wide(&array))
            };
            if array.is_empty() {
                continue;
            }
            let length = array.shape()[axis];
            let index: Vec<i32> = (0..7).map(|_| numbers.below(2 * length) as i32 - length as i32).collect();
            let taken = index.iter().map(|&i| (i + length as i32) as usize % length).collect::<Vec<_>>();
            let t = engine.tensor(&index).unwrap();
            close(&part.take(&t, axis as isize), &values.select(Axis(axis), &taken), 0.0, &what);
            let mut wide_shape = array.shape().to_vec();
            wide_shape[axis] = 5;
            let count: usize = wide_shape.iter().product();
            let index: Vec<u32> = (0..count).map(|_| numbers.below(length) as u32).collect();
            let places = ArrayD::from_shape_vec(IxDyn(&wide_shape), index.clone()).unwrap();
            let expected = ArrayD::from_shape_fn(IxDyn(&wide_shape), |at| {
                let mut from: Vec<usize> = (0..3).map(|axis| at[axis]).collect();
                from[axis] = places[&at] as usize;
                values[IxDyn(&from)]
            });
            let t = engine.tensor_from(&index, &wide_shape).unwrap();
            // Of an expression as well, which is computed first.
            close(&part.negate().gather(&t, axis as isize), &-expected, 0.0, &what);
        }
    }
}

fn told<T>(result: cantus::Result<T>, parts: &[&str], what: &str) {
    let text = result.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(parts.iter().all(|part| text.contains(part)), "{what}: {text:?}");
}

/// Places that were found to be within an axis are not looked at again, until something writes to them or the axis is another one.
#[test]
fn known_places_are_looked_at_again_once_they_change() {
    for engine in by_turns() {
        let what = name(engine);
        let x = engine.tensor(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
        let shorter = engine.tensor(&[1.0_f32, 2.0]).unwrap();
        let places = engine.tensor(&[3_i32, 0, -1]).unwrap();
        let taken = |from: &Tensor| from.take(&places, 0).eval().unwrap().to_vec::<f32>();
        for _ in 0..3 {
            assert_eq!(taken(&x).unwrap(), [4.0, 1.0, 4.0], "{what}");
        }
        told(taken(&shorter), &["index 3 is out of range"], &what);
        assert_eq!(taken(&x).unwrap(), [4.0, 1.0, 4.0], "{what}");
        // As they were when it was recorded.
        let before = x.take(&places, 0);
        places.write(&[9_i32, 0, 1]).unwrap();
        assert_eq!(before.eval().unwrap().to_vec::<f32>().unwrap(), [4.0, 1.0, 4.0], "{what}");
        told(taken(&x), &["index 9 is out of range"], &what);
        places.write(&[2_i32, 2, 2]).unwrap();
        for _ in 0..2 {
            assert_eq!(taken(&x).unwrap(), [3.0, 3.0, 3.0], "{what}");
        }
        // Whoever holds the memory may write to it without a word.
        if let Some(view) = places.host_view().unwrap() {
            // SAFETY: three elements of the tensor that `view` keeps, and no work on them is under way.
            unsafe { view.as_ptr().cast_mut().cast::<i32>().write(9) };
            told(taken(&x), &["index 9 is out of range"], &what);
            places.write(&[2_i32, 2, 2]).unwrap();
        }
        // A replay reads what is there then, also of what was recorded before the capture.
        let recorded = x.take(&places, 0);
        let graph = engine.capture(|| Ok([x.take(&places, 0).eval()?, recorded.eval()?])).unwrap();
        graph.replay(&GraphInputs::new()).unwrap();
        assert_eq!(graph.outputs()[0].to_vec::<f32>().unwrap(), [3.0, 3.0, 3.0], "{what}");
        places.write(&[0_i32, -9, 0]).unwrap();
        graph.replay(&GraphInputs::new()).unwrap();
        told(graph.outputs()[0].to_vec::<f32>(), &["index -9 is out of range"], &what);
        match graph.outputs()[1].to_vec::<f32>() {
            Ok(values) => assert_eq!(values, [3.0, 3.0, 3.0], "{what}"),
            Err(error) => told(Err::<(), _>(error), &["index -9 is out of range"], &what),
        }
    }
}

/// Every operation that looks places up, at both ends of an axis and beyond them.
#[test]
fn places_out_of_range_are_told() {
    for engine in by_turns() {
        let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]).unwrap().expr();
        let rows = engine.tensor_from(&[7.0_f32, 8.0], &[1, 2]).unwrap();
        type Operation<'a> = &'a dyn Fn(&Expr) -> Expr;
        let operations: [(&str, Operation<'_>); 10] = [
            ("take", &|i| x.take(i, 0)),
            ("gather", &|i| x.gather(i.reshape(&[1, 1]), 0)),
            ("embedding", &|i| i.embedding(&x)),
            ("scatter", &|i| x.scatter(i.reshape(&[1, 1]), &rows, 0)),
            ("scatter_add", &|i| x.scatter_add(i.reshape(&[1, 1]), &rows, 0)),
            ("scatter_max", &|i| x.scatter_max(i.reshape(&[1, 1]), &rows, 0)),
            ("scatter_min", &|i| x.scatter_min(i.reshape(&[1, 1]), &rows, 0)),
            ("index_copy", &|i| x.index_copy(i, &rows, 0)),
            ("index_add", &|i| x.index_add(i, &rows, 0)),
            ("index_fill", &|i| x.index_fill(i, 9.0, 0)),
        ];
        for (name_of, operation) in operations {
            for (place, is_there) in [(2, true), (-3, true), (3, false), (-4, false), (i32::MIN, false)] {
                let what = format!("{name_of} at {place} on {}", name(engine));
                let given = engine.tensor(&[place]).unwrap();
                let result = operation(&given.expr()).eval().unwrap();
                let after = (result.expr() + 1.0).sum(&[], false).eval().unwrap();
                if is_there {
                    assert!(result.to_vec::<f32>().is_ok() && after.item::<f32>().is_ok(), "{what}");
                } else {
                    let parts = [format!("an index of {name_of}"), format!("index {place} is out of range on axis 0")];
                    let parts = parts.each_ref().map(String::as_str);
                    told(after.item::<f32>(), &parts, &what);
                    told(result.to_vec::<f32>(), &parts, &what);
                }
                // What does not depend on it is as it was.
                assert_eq!(given.to_vec::<i32>().unwrap(), [place]);
            }
            let words = engine.tensor(&[u32::MAX]).unwrap().expr();
            told(operation(&words).eval().unwrap().to_vec::<f32>(), &["4294967295"], name_of);
            let narrow = engine.tensor(&[-5_i8]).unwrap().expr();
            told(operation(&narrow).eval().unwrap().to_vec::<f32>(), &["index -5"], name_of);
            // Of places that the device computes, in the middle of many.
            let many = cantus::ops::arange(engine, 0.0, 1000.0, 1.0, DType::I32);
            let many = many.equal(500.0).select(many.constant(7.0), many.constant(1.0));
            if matches!(name_of, "take" | "embedding" | "index_fill") {
                told(operation(&many).eval().unwrap().to_vec::<f32>(), &[name_of, "index 7"], name_of);
            }
        }
        let scores = engine.tensor_from(&[0.0_f32; 4], &[2, 2]).unwrap().expr();
        let loss = scores.cross_entropy(engine.tensor(&[1_u32, 2]).unwrap()).eval().unwrap();
        told(loss.item::<f32>(), &["nll_loss", "index 2 is out of range on axis 1"], "classes");
        assert_eq!(x.eval().unwrap().to_vec::<f32>().unwrap().len(), 6);
    }
}

/// Plans that are kept, captures, and long loops without a read.
#[test]
fn places_out_of_range_are_told_again_and_again() {
    for engine in by_turns() {
        let x = engine.tensor(&[1.0_f32, 2.0, 3.0]).unwrap();
        let places: Vec<Tensor> = [[0_i32, 2], [1, 3], [2, -3], [-4, 0]].map(|p| engine.tensor(&p).unwrap()).into();
        let wanted = [Some([2.0, 4.0]), None, Some([4.0, 2.0]), None];
        let step = |places: &Tensor| (x.expr().take(places, 0) + 1.0).eval();
        for round in 0..4 {
            for (number, (places, wanted)) in places.iter().zip(wanted).enumerate() {
                let what = format!("places {number}, round {round}, on {}", name(engine));
                match (step(places).unwrap().to_vec::<f32>(), wanted) {
                    (Ok(got), Some(wanted)) => assert_eq!(got, wanted, "{what}"),
                    (got, None) => told(got, &["take", "axis 0"], &what),
                    (got, _) => panic!("{what}: {got:?}"),
                }
            }
        }
        let index = engine.tensor(&[0_i32, 0]).unwrap();
        let graph = engine.capture(|| step(&index)).unwrap();
        for (given, wanted) in [([0_i32, 2], Some([2.0_f32, 4.0])), ([3, 0], None), ([-1, -3], Some([4.0, 2.0]))] {
            graph.replay(&GraphInputs::new().set(&index, &given)).unwrap();
            let copy = (graph.outputs().expr() * 2.0).eval().unwrap();
            match wanted {
                Some(wanted) => {
                    assert_eq!(graph.outputs().to_vec::<f32>().unwrap(), wanted, "{}", name(engine));
                    assert_eq!(copy.to_vec::<f32>().unwrap(), wanted.map(|x| 2.0 * x));
                }
                None => {
                    told(graph.outputs().to_vec::<f32>(), &["take", "index 3"], &name(engine));
                    told(copy.to_vec::<f32>(), &["take", "index 3"], &name(engine));
                }
            }
        }
        // More than are looked at together; the first of them is told after all.
        let mut sum = x.expr().take(&places[1], 0).sum(&[], false).eval().unwrap();
        for _ in 0..300 {
            sum = (sum.expr() + x.expr().take(&places[0], 0).sum(&[], false)).eval().unwrap();
        }
        told(sum.item::<f32>(), &["take", "index 3"], &name(engine));
        let moved = step(&places[3]).unwrap().to_device("cpu");
        if let Ok(moved) = moved {
            told(moved.to_vec::<f32>(), &["take", "index -4"], &name(engine));
        }
    }
}

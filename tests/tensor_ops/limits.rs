//! Expressions at the ends of what can be counted, and chains of very many steps: errors and results, no panic and no overflow.

use cantus::ops::{self, Expr};
use cantus::{DType, Engine, Error};

fn cpu() -> Engine {
    Engine::builder().backend("cpu").build().unwrap()
}

#[test]
fn shapes_whose_elements_cannot_be_counted_are_refused() {
    let engine = cpu();
    let one = engine.tensor(&[1.0_f32]).unwrap();
    for shape in [[1 << 32, 1 << 32, 1], [0, 1 << 40, 1 << 40], [1 << 40, 0, 1 << 40], [1 << 40, 1 << 40, 0]] {
        let wide = one.broadcast_to(&shape);
        let made: [(&str, Expr); 9] = [
            ("broadcast_to", wide.clone()),
            ("sum", wide.sum(&[], false)),
            ("cumsum", wide.cumsum(0)),
            ("softmax", wide.softmax(-1)),
            ("concat", wide.concat(std::slice::from_ref(&wide), 0)),
            ("reshape", one.reshape(&shape)),
            ("full", ops::full(&engine, &shape, 1.0, DType::F32)),
            ("rand", ops::rand(&engine, &shape, 1)),
            ("add", &wide + &wide),
        ];
        for (what, expr) in made {
            let error = expr.eval().expect_err(what);
            assert!(matches!(error, Error::Limit(_)), "{what} of {shape:?}: {error}");
            assert!(error.to_string().contains("use smaller parts"), "{what} of {shape:?}: {error}");
        }
    }
    // What can be counted, and no kernel takes.
    let error = one.broadcast_to(&[1 << 20, 1 << 20]).sum(&[], false).eval().expect_err("is too large");
    assert!(error.to_string().contains("32 bits"), "{error}");
    let empty = one.slice(&[0..0]);
    let error = empty.pad(&[(usize::MAX, 1)], 0.0).eval().expect_err("is too large");
    assert!(matches!(error, Error::Limit(_)), "{error}");
}

#[test]
fn a_step_beyond_the_end_finds_the_first_element() {
    let engine = cpu();
    let x = engine.tensor_from(&(0..20).map(|x| x as f32).collect::<Vec<_>>(), &[2, 10]).unwrap();
    for step in [7, 8, 1 << 40, usize::MAX] {
        let part = x.slice_steps(&[0..2, 2..9], &[1, step]).eval().unwrap();
        assert_eq!((part.shape(), part.to_vec::<f32>().unwrap()), (&[2, 1][..], vec![2.0, 12.0]), "{step}");
    }
    let none = x.slice_steps(&[1..1], &[usize::MAX]).eval().unwrap();
    assert_eq!(none.shape(), [0, 10]);
}

#[test]
fn chains_of_very_many_steps_are_computed_and_dropped() {
    const STEPS: usize = 100_000;
    let engine = cpu();
    let x = engine.tensor(&[0.0_f32, 1.0]).unwrap();
    let long = (0..STEPS).fold(x.expr(), |chain, _| chain + 1.0);
    assert_eq!(long.eval().unwrap().to_vec::<f32>().unwrap(), [1e5, 1e5 + 1.0]);
    // Dropped without having been computed, and when the handle to the end is one of several.
    let other = (0..STEPS).fold(x.expr(), |chain, _| chain + 1.0);
    drop((other.clone() * 2.0, other));
    // Operations with a kernel of their own, one after another.
    let sums = (0..1000).fold(x.expr(), |chain, _| chain.sum(&[0], true) + 1.0);
    assert_eq!(sums.eval().unwrap().to_vec::<f32>().unwrap(), [1000.0 + 1.0]);
    let dropped = (0..STEPS).fold(x.expr(), |chain, _| chain.cumsum(0));
    drop(dropped);
    // Views of a constant do not pile up.
    let views = (0..STEPS).fold(ops::full(&engine, &[6], 2.0, DType::F32), |chain, step| {
        chain.reshape(if step % 2 == 0 { &[2, 3] } else { &[6] })
    });
    assert_eq!(views.eval().unwrap().to_vec::<f32>().unwrap(), [2.0; 6]);
}

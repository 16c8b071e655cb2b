//! Mistakes: each a clear error.

use cantus::backend::Registry;
use cantus::engine::EventKind;
use cantus::ops::{Expr, Window, arange};
use cantus::{DType, Engine, Error};

fn engine() -> Engine {
    Engine::builder().backend("cpu").build().unwrap()
}

fn text(expr: Expr) -> String {
    expr.eval().expect_err("is a mistake").to_string()
}

#[test]
fn shapes_axes_and_dtypes_that_do_not_fit() {
    let engine = engine();
    let x = engine.zeros::<f32>(&[2, 3]).unwrap();
    let whole = engine.zeros::<i32>(&[2, 3]).unwrap();
    let image = engine.zeros::<f32>(&[1, 4, 5, 5]).unwrap();
    let weights = engine.zeros::<f32>(&[6, 4, 3, 3]).unwrap();
    let cases = [
        (x.sum(&[2], false), "axis 2: there are 2 axes"),
        (x.sum(&[0, -2], false), "one stands twice"),
        (x.softmax(-3), "axis -3"),
        (whole.softmax(0), "cast first"),
        (x.reshape(&[5]), "6 elements"),
        (x.permute(&[0, 0]), "must stand there once"),
        (x.slice(&[0..3]), "axis 0 has 2 elements"),
        (x.slice_steps(&[0..2], &[0]), "at least 1"),
        (x.broadcast_to(&[3, 3]), "do not broadcast"),
        (x.squeeze(0), "not 1"),
        (x.matmul(&x), "the left has 3 columns, the right 2 rows"),
        (x.matmul(&whole), "both must be f32"),
        (x.concat(&[image.expr()], 0), "must be equal"),
        (x.concat(&[engine.zeros::<f32>(&[2, 4]).unwrap().expr()], 0), "must be equal"),
        (x.pad(&[(1, 1)], 0.0), "a pair for each"),
        (x.take(&x, 0), "i32 or u32"),
        (x.gather(engine.zeros::<i32>(&[2]).unwrap(), 0), "as many axes"),
        (image.conv2d(&weights, Window::default(), 0), "0 groups do not divide"),
        (image.conv2d(&weights, Window::default(), 3), "3 groups do not divide"),
        (image.conv2d(&weights, Window::default(), 2), "for 4 channels of each group, there are 2"),
        (image.conv2d(&weights, Window::strided(0), 1), "must be 1 at least"),
        (image.conv2d(&weights, Window::default().dilated(4), 1), "it reaches over 9"),
        (image.conv2d(engine.zeros::<f32>(&[6, 4, 0, 3]).unwrap(), Window::default(), 1), "must be 1 at least"),
        (x.conv2d(&weights, Window::default(), 1), "four axes"),
        (image.max_pool2d([2, 2], Window::default().padded(2)), "half of the window"),
        (image.max_pool2d([7, 7], Window::default()), "it reaches over 7"),
        (image.conv2d(&weights, Window::default().padded(usize::MAX), 1), "too large to count"),
        (x.layer_norm(&x, &x, -1.0), "eps -1"),
        (engine.zeros::<f32>(&[0, 3]).unwrap().max(&[0], false), "nothing is greatest"),
        (arange(&engine, 0.0, 1.0, 0.0, DType::F32), "arange"),
        (arange(&engine, 0.0, f64::INFINITY, 1.0, DType::F32), "arange"),
    ];
    for (expr, expected) in cases {
        let message = text(expr);
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    }
}

#[test]
fn tensors_of_two_engines_do_not_mix() {
    let (one, other) = (engine(), engine());
    let (x, y) = (one.zeros::<f32>(&[2, 2]).unwrap(), other.zeros::<f32>(&[2, 2]).unwrap());
    for expr in [x.matmul(&y), &x + &y, x.concat(&[y.expr()], 0), x.rms_norm(&y, 1e-6)] {
        assert!(matches!(expr.eval(), Err(Error::AnotherEngine { .. })));
    }
}

#[test]
fn tensors_of_two_devices_are_brought_together() {
    let devices = cantus::engine::survey(&Registry::with_defaults(), &cantus::Config::default());
    let other = devices.backends.iter().flat_map(|backend| &backend.devices).find(|device| device.backend != "cpu");
    let Some(other) = other else {
        assert!(std::env::var("CANTUS_REQUIRE_ADAPTER").is_err(), "there is no second device");
        println!("not run: there is no device but the processor");
        return;
    };
    // What a graphics device made, and a host tensor that was placed on the processor.
    let engine = Engine::builder().backend(&other.backend).device(other.index).build().unwrap();
    let x = engine.tensor_from(&[1.0_f32; 6], &[2, 3]).unwrap();
    let moved = engine.tensor_from(&[2.0_f32; 6], &[3, 2]).unwrap();
    let product = x.matmul(&moved).eval().unwrap();
    assert_eq!(product.to_vec::<f32>().unwrap(), [6.0; 4]);
    let _ = engine.events().iter().filter(|event| event.kind == EventKind::Moved).count();
}

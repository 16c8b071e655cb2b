//! Mistakes: each a clear error.

use cantus::backend::Registry;
use cantus::engine::EventKind;
use cantus::ops::{Expr, Interpolation, Window, arange};
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
    let (square, pairs) = (engine.zeros::<f32>(&[3, 3]).unwrap(), engine.zeros::<f32>(&[3, 2]).unwrap());
    let cases = [
        (x.sum(&[2], false), "axis 2: there are 2 axes"),
        (x.sum(&[0, -2], false), "one occurs twice"),
        (x.softmax(-3), "axis -3"),
        (whole.softmax(0), "cast first"),
        (x.reshape(&[5]), "6 elements"),
        (x.permute(&[0, 0]), "must occur exactly once"),
        (x.slice(&[0..3]), "axis 0 has 2 elements"),
        (x.slice_steps(&[0..2], &[0]), "at least 1"),
        (x.broadcast_to(&[3, 3]), "do not broadcast"),
        (x.squeeze(0), "not 1"),
        (x.matmul(&x), "the left has 3 columns, the right 2 rows"),
        (x.matmul(&whole), "both must be numbers of the same dtype"),
        (x.concat(&[image.expr()], 0), "must be equal"),
        (x.concat(&[engine.zeros::<f32>(&[2, 4]).unwrap().expr()], 0), "must be equal"),
        (x.pad(&[(1, 1)], 0.0), "a pair for each"),
        (x.take(&x, 0), "i32, u32 or a narrower"),
        (x.gather(engine.zeros::<i32>(&[2]).unwrap(), 0), "the same number of axes"),
        (image.conv2d(&weights, Window::default(), 0), "0 groups do not divide"),
        (image.conv2d(&weights, Window::default(), 3), "3 groups do not divide"),
        (image.conv2d(&weights, Window::default(), 2), "for 4 channels per group, but there are 2"),
        (image.conv2d(&weights, Window::strided(0), 1), "must be at least 1"),
        (image.conv2d(&weights, Window::default().dilated(4), 1), "it covers 9"),
        (image.conv2d(engine.zeros::<f32>(&[6, 4, 0, 3]).unwrap(), Window::default(), 1), "must be at least 1"),
        (x.conv2d(&weights, Window::default(), 1), "four axes"),
        (image.max_pool2d([2, 2], Window::default().padded(2)), "half of the window"),
        (image.max_pool2d([7, 7], Window::default()), "it covers 7"),
        (image.conv2d(&weights, Window::default().padded(usize::MAX), 1), "too large to count"),
        (x.layer_norm(&x, &x, -1.0), "eps -1"),
        (engine.zeros::<f32>(&[0, 3]).unwrap().max(&[0], false), "no greatest or least"),
        (x.norm(f64::NAN, &[], false), "order NaN"),
        (x.std(&[3], 0.0, false), "axis 3"),
        (x.any(&[0, 0], false), "one occurs twice"),
        (whole.logcumsumexp(0), "cast first"),
        (x.cummax(2), "axis 2"),
        (x.diff(1, -3), "axis -3"),
        (x.sort(5, false), "axis 5"),
        (x.topk(4, 1, true).0, "there are 3 elements"),
        (x.topk(4, 1, true).1, "there are 3 elements"),
        (x.searchsorted(&whole, false), "the same dtype"),
        (x.searchsorted(engine.zeros::<f32>(&[3, 1]).unwrap(), false), "do not broadcast"),
        (x.bincount(3), "i32, u32 or narrower"),
        (x.histogram(0, 0.0, 1.0), "at least one bin"),
        (x.histogram(3, 1.0, 1.0), "not empty"),
        (x.histogram_by(&x, 1.0), "two or more"),
        (x.quantile(1.5, None, false), "from 0 to 1"),
        (x.median(Some(2), false), "axis 2"),
        (engine.zeros::<f32>(&[0]).unwrap().median(None, false), "no element"),
        (x.stack(&[image.expr()], 0), "the shapes must be equal"),
        (x.split(&[1, 1], 1).remove(0), "they add up to 2"),
        (x.repeat(2, 2), "axis 2"),
        (x.tile(&[usize::MAX, usize::MAX]), "use smaller parts"),
        (x.roll(&[1], &[0, 1]), "one shift per axis"),
        (x.flip(&[2]), "axis 2"),
        (x.one_hot(3, DType::F32), "i32, u32 or narrower"),
        (engine.zeros::<f32>(&[3]).unwrap().tril(0), "at least two axes"),
        (engine.zeros::<f32>(&[3]).unwrap().diagonal(0), "at least two axes"),
        (x.outer(&x), "one axis"),
        (x.unfold(1, 4, 1), "a window must fit"),
        (x.unfold(1, 2, 0), "at least 1"),
        (cantus::ops::meshgrid(&[x.expr()]).remove(0), "must have one axis"),
        (x.pad(&[(1, 1)], cantus::ops::Padding::Wrap), "a pair for each"),
        (engine.zeros::<f32>(&[0, 3]).unwrap().pad(&[(1, 1), (0, 0)], cantus::ops::Padding::Edge), "axis 0 is empty"),
        (x.scatter(&x, &x, 0), "i32, u32 or narrower"),
        (x.scatter(&whole, &whole, 0), "the same dtype"),
        (x.scatter(engine.zeros::<i32>(&[3]).unwrap(), &x, 0), "the same number of axes"),
        (x.index_add(&whole, &x, 0), "must have one axis"),
        (x.index_copy(engine.zeros::<i32>(&[1]).unwrap(), engine.zeros::<f32>(&[2, 2]).unwrap(), 0), "broadcast"),
        (x.masked_fill(&x, 0.0), "must be bool or u32"),
        (x.slice_scatter(&[0..1], &x), "do not broadcast to the part"),
        (x.slice_scatter(&[0..1], &whole), "the same dtype"),
        (x.interpolate([2, 2], Interpolation::Bilinear), "four axes"),
        (image.interpolate([0, 2], Interpolation::Bilinear), "at least one row"),
        (image.grid_sample(&x, Interpolation::Nearest, 0.0, false), "(images, height, width, 2)"),
        (image.im2col([6, 1], Window::default()), "it covers 6"),
        (x.einsum("ij,jk", &[]), "it names 2 operands, and is given 1"),
        (x.einsum("ijk", &[]), "names 3 axes, but the shape is [2, 3]"),
        (x.slice(&[0..1]).einsum("ii", &[]), "a diagonal of 1 by 3"),
        (x.einsum("ij,jk->ik", &[x.expr()]), "an axis has 3 elements in one place and 2 in another"),
        (x.einsum("ij->ik", &[]), "in no operand"),
        (x.einsum("ij->jj", &[]), "occurs twice in the result"),
        (x.einsum("i1", &[]), "is no letter"),
        (x.einsum("......ij", &[]), "two ellipses"),
        (x.einsum("é...", &[]), "is no letter"),
        (x.einsum("ij,ij", &[whole.expr()]), "the same dtype"),
        (x.tensordot(&x, &[(0, 1)]), "equal lengths"),
        (x.tensordot(&x, &[(0, 0), (0, 0)]), "may occur once"),
        (x.tensordot(&x, &[(2, 0)]), "axis 2"),
        (x.matrix_power(2), "square matrices"),
        (x.inverse(), "square matrices"),
        (whole.inverse(), "cast first"),
        (x.det(), "square matrices"),
        (x.slogdet().1, "square matrices"),
        (x.cholesky(), "square matrices"),
        (x.eigh().0, "square matrices"),
        (x.expm(), "square matrices"),
        (x.solve(&x), "square matrices"),
        (whole.svd().1, "cast first"),
        (whole.qr().1, "cast first"),
        (whole.lu().1, "cast first"),
        (engine.zeros::<f32>(&[3]).unwrap().qr().0, "at least two axes"),
        (engine.zeros::<f32>(&[3]).unwrap().svd().2, "at least two axes"),
        (engine.zeros::<f32>(&[]).unwrap().inverse(), "at least two axes"),
        (square.solve(&x), "the right side must have 3 rows"),
        (square.solve(engine.zeros::<f32>(&[2]).unwrap()), "the right side must have 3 rows"),
        (square.solve(engine.zeros::<f32>(&[]).unwrap()), "at least two axes"),
        (square.solve_triangular(engine.zeros::<i32>(&[3]).unwrap(), true), "cast first"),
        (x.fft(0), "the real and the imaginary part"),
        (whole.rfft(0), "cast first"),
        (pairs.fft(1), "axis 1: there are 1 axes"),
        (pairs.ifftn(&[0, -1]), "one occurs twice"),
        (pairs.irfft(6, 0), "must have 4 complex numbers"),
        (pairs.irfft(0, 0), "1 to"),
        (engine.zeros::<f32>(&[0, 2]).unwrap().fft(0), "1 to"),
        (engine.zeros::<f32>(&[0]).unwrap().rfft(0), "1 to"),
        (engine.zeros::<f32>(&[]).unwrap().rfftn(&[]), "no axis"),
        (x.convolve(engine.zeros::<f32>(&[0]).unwrap(), cantus::ops::Overlap::Full), "at least one element"),
        (x.convolve(engine.zeros::<f32>(&[5, 1]).unwrap(), cantus::ops::Overlap::Full), "do not broadcast"),
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
    for expr in [x.matmul(&y), &x + &y, x.concat(&[y.expr()], 0), x.rms_norm(&y, 1e-6), x.solve(&y)] {
        assert!(matches!(expr.eval(), Err(Error::AnotherEngine { .. })));
    }
}

#[test]
fn tensors_of_two_devices_are_brought_together() {
    let devices = cantus::engine::survey(&Registry::with_defaults(), &cantus::Config::default());
    let other = devices.backends.iter().flat_map(|backend| &backend.devices).find(|device| device.backend != "cpu");
    let Some(other) = other else {
        assert!(std::env::var("CANTUS_REQUIRE_ADAPTER").is_err(), "there is no second device");
        kit::not_run("tensors of two devices", "there is no device but the processor");
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

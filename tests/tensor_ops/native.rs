//! Operations by a device's own means, and by the portable kernels alone.

use cantus::{Engine, Fallback};

use crate::{Random, engines, name};

#[test]
fn the_portable_kernels_alone_give_the_same() {
    for engine in engines() {
        let device = &engine.selected().device;
        let portable = Engine::builder().backend(&device.backend).device(device.index).fallback(Fallback::Never);
        let portable = portable.native(false).build().unwrap();
        let mut random = Random::new(11);
        let values: Vec<f32> = (0..96 * 96).map(|_| random.unit() as f32 - 0.5).collect();
        let computed = |engine: &Engine| {
            let x = engine.tensor_from(&values, &[96, 96]).unwrap().expr();
            let image = x.reshape(&[1, 1, 96, 96]);
            let kernel = x.slice(&[0..3, 0..3]).reshape(&[1, 1, 3, 3]);
            let all =
                [x.matmul(&x), image.conv2d(kernel, cantus::ops::Window::default(), 1), x.sort(1, false), x.cumsum(1)];
            all.map(|expr| expr.eval().unwrap().to_vec::<f32>().unwrap())
        };
        for (native, portable) in computed(engine).iter().zip(computed(&portable)) {
            assert_eq!(native.len(), portable.len());
            for (a, b) in native.iter().zip(portable) {
                assert!((a - b).abs() <= 1e-4, "{}: {a} and {b}", name(engine));
            }
        }
        let label = |engine: &Engine| engine.metrics().iter().any(|row| row.operation.ends_with("(native)"));
        assert!(!label(&portable), "{}", name(engine));
        assert!(label(engine) || device.backend != "cpu");
    }
}

//! The kernels that operations on tensors put together most often: they are compiled ahead like those that are shipped as text.

use cantus::ops;
use cantus::{Engine, Fallback, Kernel, testing};

use crate::prepare::Outcome;

/// The kernels, with a name for each: those of common operations that the CPU has no native form of.
pub fn kernels() -> Outcome<Vec<(String, Kernel)>> {
    let engine = Engine::builder().backend("cpu").fallback(Fallback::Never).build()?;
    let images = engine.zeros::<f32>(&[1, 2, 8, 8])?;
    let operations = [
        ("max_pool2d", images.max_pool2d([2, 2], ops::Window::strided(2))),
        ("avg_pool2d", images.avg_pool2d([2, 2], ops::Window::strided(2), false)),
    ];
    let mut kernels = Vec::new();
    for (name, expr) in operations {
        testing::forget_composed();
        expr.eval()?;
        let made = testing::composed();
        let [kernel] = &made[..] else {
            return Err(format!("{name} composes {} kernels in place of one", made.len()).into());
        };
        kernels.push((format!("tensor_{name}"), kernel.clone()));
    }
    Ok(kernels)
}

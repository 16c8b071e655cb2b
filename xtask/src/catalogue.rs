//! The kernels that operations on tensors put together most often: they are compiled ahead like those that are shipped as text.

use cantus::ops::{self, Expr, Unary};
use cantus::{Engine, Fallback, Kernel, testing};

use crate::prepare::Outcome;

/// The kernels, with a name for each: those of operations that the CPU has no native form of, and those of products and running sums, which run where it
/// may not use its own: for an engine without native kernels, and for one led by a GPU that fails.
pub fn kernels() -> Outcome<Vec<(String, Kernel)>> {
    let builder = || Engine::builder().backend("cpu").fallback(Fallback::Never);
    let (engine, portable) = (builder().build()?, builder().native(false).build()?);
    let plain = |shape: &[usize]| portable.zeros::<f32>(shape);
    let images = engine.zeros::<f32>(&[1, 2, 8, 8])?;
    let (tall, vector) = (plain(&[512, 300])?, plain(&[300])?);
    let mut kernels: Vec<(String, Kernel)> = Vec::new();
    let mut add = |name: &str, expr: Expr| -> Outcome<()> {
        testing::forget_composed();
        expr.eval()?;
        let made: Vec<Kernel> = testing::composed()
            .into_iter()
            .filter(|kernel| !kernels.iter().any(|(_, known)| known == kernel))
            .collect();
        if made.is_empty() {
            return Err(format!("{name} makes no kernel of its own: it does not belong in the catalogue").into());
        }
        for (place, kernel) in made.iter().enumerate() {
            let number = if made.len() > 1 { format!("_{}", place + 1) } else { String::new() };
            kernels.push((format!("tensor_{name}{number}"), kernel.clone()));
        }
        Ok(())
    };
    add("matvec", tall.matmul(&vector))?;
    add("vecmat", plain(&[512])?.matmul(&tall))?;
    add("linear_relu", plain(&[1, 512])?.fused_linear(&tall, Some(&vector.expr()), Some(Unary::Relu)))?;
    add("linear", plain(&[1, 512])?.fused_linear(&tall, Some(&vector.expr()), None))?;
    // Short enough for one step, so that what follows the product is in its kernel.
    let (square, across) = (plain(&[256, 256])?, plain(&[256])?);
    let layers = [("", None), ("_relu", Some(Unary::Relu)), ("_gelu", Some(Unary::Gelu)), ("_silu", Some(Unary::Silu))];
    for (name, activation) in layers {
        let layer = plain(&[1, 256])?.fused_linear(&square, Some(&across.expr()), activation);
        add(&format!("linear_short{name}"), layer)?;
    }
    add("cumsum", plain(&[1000])?.cumsum(0))?;
    add("max_pool2d", images.max_pool2d([2, 2], ops::Window::strided(2)))?;
    add("avg_pool2d", images.avg_pool2d([2, 2], ops::Window::strided(2), false))?;
    Ok(kernels)
}

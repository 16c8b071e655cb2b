//! The kernels that operations on tensors put together most often: they are compiled ahead like those that are shipped as text.

use cantus::ops::{self, Expr, Unary};
use cantus::{DType, Engine, Fallback, Kernel, Tensor, testing};

use crate::prepare::Outcome;

/// The kernels, with a name for each.
pub fn kernels() -> Outcome<Vec<(String, Kernel)>> {
    let engine = Engine::builder().backend("cpu").fallback(Fallback::Never).build()?;
    let tensor = |shape: &[usize]| engine.zeros::<f32>(shape);
    // What the processor has means of its own for elsewhere, but not on the web.
    let portable = Engine::builder().backend("cpu").native(false).fallback(Fallback::Never).build()?;
    let plain = |shape: &[usize]| portable.zeros::<f32>(shape);
    // Long enough that each step of a reduction in two steps is among them.
    let (x, y, row, column) = (tensor(&[3, 512])?, tensor(&[3, 512])?, tensor(&[512])?, tensor(&[3, 1])?);
    let (flat, long) = (tensor(&[1000])?, tensor(&[1 << 20])?);
    let (tall, vector) = (plain(&[512, 300])?, plain(&[300])?);
    let mut kernels: Vec<(String, Kernel)> = Vec::new();
    let mut add = |name: &str, expr: Expr| -> Outcome<()> {
        testing::forget_composed();
        expr.eval()?;
        let made: Vec<Kernel> = testing::composed()
            .into_iter()
            .filter(|kernel| !kernels.iter().any(|(_, known)| known == kernel))
            .collect();
        for (place, kernel) in made.iter().enumerate() {
            let number = if made.len() > 1 { format!("_{}", place + 1) } else { String::new() };
            kernels.push((format!("tensor_{name}{number}"), kernel.clone()));
        }
        Ok(())
    };
    let unary = [
        ("exp", Unary::Exp),
        ("log", Unary::Log),
        ("sqrt", Unary::Sqrt),
        ("tanh", Unary::Tanh),
        ("relu", Unary::Relu),
        ("sigmoid", Unary::Sigmoid),
        ("silu", Unary::Silu),
        ("gelu", Unary::Gelu),
        ("gelu_tanh", Unary::GeluTanh),
    ];
    for (name, op) in unary {
        add(name, flat.unary(op))?;
    }
    add("add", &flat + &Tensor::clone(&tensor(&[1000])?))?;
    add("mul", &flat * &tensor(&[1000])?)?;
    add("sub", &flat - &tensor(&[1000])?)?;
    add("div", &flat / &tensor(&[1000])?)?;
    add("add_constant", &flat + 1.0)?;
    add("mul_constant", &flat * 2.0)?;
    add("add_row", &x + &row)?;
    add("mul_row", &x * &row)?;
    add("mul_column", &x * &column)?;
    add("add_row_relu", (&x + &row).relu())?;
    add("add_row_gelu", (&x + &row).gelu())?;
    add("silu_mul", x.silu() * &y)?;
    add("affine_gelu", (&x * &y + &row).gelu())?;
    add("affine", &x * &row + &tensor(&[512])?)?;
    let standardised = (&x - &column) / (&tensor(&[3, 1])? + 1e-5).sqrt() * &row + &tensor(&[512])?;
    add("standardise", standardised)?;
    add("softmax", x.softmax(-1))?;
    add("log_softmax", x.log_softmax(-1))?;
    add("rms_norm", x.rms_norm(&row, 1e-6))?;
    add("layer_norm", x.layer_norm(&row, &tensor(&[512])?, 1e-5))?;
    add("sum", long.sum(&[], false))?;
    let short = tensor(&[8192])?;
    add("sum_short", short.sum(&[], false))?;
    add("max_short", short.max(&[], false))?;
    add("max", long.max(&[], false))?;
    add("mean", long.mean(&[], false))?;
    add("sum_rows", tensor(&[100, 512])?.sum(&[-1], false))?;
    add("max_rows", tensor(&[100, 512])?.max(&[-1], false))?;
    add("mean_rows", tensor(&[100, 512])?.mean(&[-1], true))?;
    add("variance_rows", tensor(&[100, 512])?.variance(&[-1], 0.0, true))?;
    add("sum_columns", tensor(&[3, 2048])?.sum(&[0], false))?;
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
    add("vecmat_short", across.matmul(&square))?;
    add("cumsum", plain(&[1000])?.cumsum(0))?;
    add("to_half", flat.cast(DType::F16))?;
    add("max_pool2d", tensor(&[1, 2, 8, 8])?.max_pool2d([2, 2], ops::Window::strided(2)))?;
    add("avg_pool2d", tensor(&[1, 2, 8, 8])?.avg_pool2d([2, 2], ops::Window::strided(2), false))?;
    Ok(kernels)
}

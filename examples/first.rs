//! Ten lines on the best device of this machine: the site's front page has them.

use cantus::{Engine, Result, ops};

/// Multiplies, and prints a softmax.
pub fn main() -> Result<()> {
    let engine = Engine::new()?; // the best device here
    let x = ops::randn(&engine, &[32, 784], 1).eval()?;
    let w = ops::randn(&engine, &[784, 10], 2).eval()?;
    let scores = x.matmul(&w).softmax(-1).eval()?; // fused
    let values = scores.to_vec::<f32>()?;
    println!("on {}: {:?}", scores.device_name(), &values[..10]);
    Ok(())
}

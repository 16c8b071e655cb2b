//! Cantus under tokio: every call that may wait is a plain future, so it needs no runtime of its own and mixes with any.
//! Here one task computes while another keeps time, on one thread.
//!
//! cargo run --example tokio

use std::future::Future;
use std::rc::Rc;

use cantus::ops::{
    coherence_async,
    field::{FieldParams, Frequency, field_async},
};
use cantus::{Engine, Error, Kernel, Result};
use tokio::runtime;
use tokio::task::{JoinError, LocalSet, spawn_local, yield_now};

/// One task for each.
pub const NAMED: [Frequency; 5] =
    [Frequency::Love, Frequency::Unity, Frequency::Cascade, Frequency::Truth, Frequency::Vision];

const SCALE: &str = "
    @group(0) @binding(0) var<uniform> factor: f32;
    @group(0) @binding(1) var<storage, read_write> values: array<f32>;
    @compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&values) { values[id.x] *= factor; }
    }";

/// A field's values, scaled by a kernel, and the coherence of the result.
///
/// # Errors
/// What the engine answers.
pub async fn scaled(engine: Engine, frequency: Frequency) -> Result<(Vec<f32>, f32)> {
    let field = field_async(&engine, &FieldParams::new(96, 64).frequency(frequency)).await?;
    let kernel = Kernel::from_wgsl(SCALE)?;
    engine.dispatch(&kernel).bind("values", &field).set("factor", 2.0_f32).invocations(96 * 64_u32).run_async().await?;
    Ok((field.to_vec_async().await?, coherence_async(&engine, &field).await?))
}

/// Runs `work` to its end on a runtime of this thread.
///
/// # Errors
/// [`Error::InvalidInput`] when the system gives no runtime; what `work` answers.
pub fn on_tokio<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = runtime::Builder::new_current_thread().build().map_err(|error| fault(&error.to_string()))?;
    LocalSet::new().block_on(&runtime, work)
}

fn fault(reason: &str) -> Error {
    Error::invalid("tokio", reason)
}

/// Five tasks on one engine, and how often another task had its turn meanwhile.
///
/// # Errors
/// What the engine answers.
pub async fn all(engine: Engine) -> Result<(Vec<(Vec<f32>, f32)>, usize)> {
    let done = Rc::new(std::cell::Cell::new(false));
    let turns = spawn_local({
        let done = done.clone();
        async move {
            let mut turns = 0;
            while !done.get() {
                turns += 1;
                yield_now().await;
            }
            turns
        }
    });
    let tasks: Vec<_> = NAMED.map(|frequency| spawn_local(scaled(engine.clone(), frequency))).into();
    let mut found = Vec::new();
    let lost = |error: JoinError| fault(&error.to_string());
    for task in tasks {
        found.push(task.await.map_err(lost)??);
    }
    done.set(true);
    Ok((found, turns.await.map_err(lost)?))
}

/// Prints what [`all`] found.
pub fn main() -> Result<()> {
    let (found, turns) = on_tokio(async { all(Engine::new_async().await?).await })?;
    for (values, coherence) in found {
        println!("{} values from {}, coherence {coherence}", values.len(), values[0]);
    }
    println!("the other task had {turns} turns");
    Ok(())
}

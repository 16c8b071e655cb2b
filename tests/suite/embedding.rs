//! The examples of embedding, run as they stand and held against what they promise.

#[path = "../../examples/custom_kernel.rs"]
mod custom_kernel;
#[path = "../../examples/shared_wgpu.rs"]
mod shared_wgpu;
#[path = "../../examples/tokio.rs"]
mod under_tokio;

use cantus::Engine;
use cantus::ops::{self, FieldParams};

#[test]
fn a_kernel_of_ones_own() {
    custom_kernel::main().unwrap();
    let engine = Engine::builder().backend("cpu").build().unwrap();
    let values: Vec<f32> = (0..200).map(|i| ((i * 37) % 101) as f32).collect();
    // Weights with few bits: every sum is exact in f32, in any order.
    let taps = [0.5, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125];
    let expected: Vec<f32> = (0..200_i32)
        .map(|centre| {
            let tap = |offset: i32| f64::from(taps[offset.unsigned_abs() as usize]);
            let value = |offset: i32| f64::from(values[(centre + offset).clamp(0, 199) as usize]);
            (-5..=5).map(|offset| tap(offset) * value(offset)).sum::<f64>() as f32
        })
        .collect();
    assert_eq!(custom_kernel::blur(&engine, &values, &taps).unwrap(), expected);
}

#[test]
fn five_tasks_under_tokio() {
    under_tokio::main().unwrap();
    let engine = Engine::builder().backend("cpu").build().unwrap();
    let (found, turns) = under_tokio::on_tokio(under_tokio::all(engine.clone())).unwrap();
    assert_eq!(found.len(), 5);
    assert!(turns > 1, "the other task had no turn while the five computed");
    for ((values, coherence), frequency) in found.iter().zip(under_tokio::NAMED) {
        let field = ops::field(&engine, &FieldParams::new(96, 64).frequency(frequency)).unwrap();
        let doubled: Vec<f32> = field.to_vec::<f32>().unwrap().iter().map(|value| 2.0 * value).collect();
        assert_eq!(*values, doubled, "{frequency}");
        // A correlation knows no unit.
        assert!((coherence - ops::coherence(&engine, &field).unwrap()).abs() <= 1e-5, "{frequency}");
    }
}

#[test]
fn a_shared_wgpu_device() {
    shared_wgpu::main().unwrap();
    let Some((device, queue)) = shared_wgpu::device() else {
        assert!(std::env::var_os("CANTUS_REQUIRE_ADAPTER").is_none(), "an adapter is required");
        println!("NOT RUN: there is no adapter");
        return;
    };
    let engine = Engine::from_wgpu(device.clone(), queue.clone());
    let values: Vec<f32> = (0..256).map(|i| (i as f32 - 128.0) / 100.0).collect();
    let tensor = engine.tensor(&values).unwrap();
    let pixels = shared_wgpu::pixels(&device, &queue, &tensor).unwrap();
    for (pixel, value) in pixels.iter().zip(&values) {
        let exact = (f64::from(*value) * 0.5 + 0.5).clamp(0.0, 1.0) * 255.0;
        assert!((f64::from(*pixel) - exact).abs() <= 0.502, "{value} gave {pixel}");
    }
    assert_eq!(pixels.len(), 256);

    let elsewhere = Engine::builder().backend("cpu").build().unwrap();
    let tensor = elsewhere.tensor(&values).unwrap();
    let refused = shared_wgpu::pixels(&device, &queue, &tensor).unwrap_err();
    assert!(refused.to_string().contains("the tensor is elsewhere"), "{refused}");
}

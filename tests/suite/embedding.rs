//! The examples of embedding, run as they are and checked against what they promise.

#[path = "../../examples/custom_kernel.rs"]
mod custom_kernel;
#[path = "../../examples/first.rs"]
mod first;
#[allow(dead_code, reason = "its main reads the arguments of a program")]
#[path = "../../examples/several_devices.rs"]
mod several_devices;
#[path = "../../examples/shared_wgpu.rs"]
mod shared_wgpu;
#[path = "../../examples/tokio.rs"]
mod under_tokio;

use cantus::Engine;
use cantus::ops::{self, field::FieldParams};

#[test]
fn the_ten_lines_of_the_site() {
    first::main().unwrap();
}

#[test]
fn several_devices_give_what_one_gives() {
    let devices = several_devices::found();
    assert_eq!(devices.last().map(String::as_str), Some("cpu"), "{devices:?}");
    let params = FieldParams::new(90, 70);
    let done = several_devices::together(&["cpu".to_owned(), "cpu".to_owned()], &params).unwrap();
    let engine = Engine::builder().backend("cpu").build().unwrap();
    let alone = ops::field::field(&engine, &params).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(done.values, alone);
    assert_eq!(done.parts.iter().map(|part| part.rows).sum::<usize>(), 70);
}

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
    // More than one unless every result is there at its first poll, which a device may manage.
    assert!(turns > 0, "the other task had no turn");
    for ((values, coherence), frequency) in found.iter().zip(under_tokio::NAMED) {
        let field = ops::field::field(&engine, &FieldParams::new(96, 64).frequency(frequency)).unwrap();
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
        kit::not_run("examples with a device of the app's", "there is no adapter");
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

#[test]
fn what_crosses_threads() {
    fn both<T: Send + Sync>() {}
    fn send<T: Send>(value: T) -> T {
        value
    }
    both::<Engine>();
    both::<cantus::Tensor>();
    both::<cantus::Kernel>();
    both::<cantus::Error>();
    both::<cantus::engine::Graph<cantus::Tensor>>();
    both::<cantus::engine::Builder>();
    both::<cantus::engine::Profile>();
    both::<ops::Expr>();
    // Futures that wait may be moved between threads by an executor.
    let engine = Engine::builder().backend("cpu").build().unwrap();
    let kernel = cantus::Kernel::from_wgsl("@compute @workgroup_size(1) fn nothing() {}").unwrap();
    let x = engine.tensor(&[1.0_f32]).unwrap();
    let graph = engine.capture(|| (&x + &x).eval()).unwrap();
    let mut room = [0.0_f32];
    drop(send(Engine::new_async()));
    drop(send(Engine::from_env_async()));
    drop(send(Engine::builder().build_async()));
    drop(send(engine.tensor_async(&[1.0_f32])));
    drop(send(engine.tensor_from_async(&[1.0_f32], &[1])));
    drop(send(engine.tensor_from_iter_async([1.0_f32])));
    drop(send(engine.zeros_async::<f32>(&[1])));
    drop(send(engine.finish_async()));
    drop(send(engine.to_vecs_async::<f32>(&[&x])));
    drop(send(engine.dispatch(&kernel).workgroups(1).run_async()));
    drop(send(engine.capture_async(async { (&x + &x).eval_async().await })));
    drop(send(engine.memory_scope_async(async { (&x + &x).eval_async().await })));
    drop(send(engine.tune_async(&cantus::engine::TuneOptions::default(), |_| ())));
    drop(send(graph.replay_async(&cantus::engine::GraphInputs::new())));
    drop(send(x.to_vec_async::<f32>()));
    drop(send(x.to_bytes_async()));
    drop(send(x.read_into_async(&mut room)));
    drop(send(x.read_at_async(0, &mut room)));
    drop(send(x.item_async::<f32>()));
    drop(send(x.write_async(&[1.0_f32])));
    drop(send(x.write_at_async(0, &[1.0_f32])));
    drop(send(x.to_device_async("cpu")));
    drop(send((&x + &x).eval_async()));
    drop(send(ops::field::field_async(&engine, &FieldParams::new(1, 1))));
    drop(send(ops::coherence_async(&engine, &x)));
    let source = std::error::Error::source(&cantus::Error::TensorLost {
        tensor: "x".to_owned(),
        cause: std::sync::Arc::new(cantus::Error::Cancelled { what: "it".to_owned() }),
    })
    .map(ToString::to_string);
    assert_eq!(source.as_deref(), Some("it was cancelled"));
}

//! A backend from outside, as the example shows: registered without a change to the library, preferred by priority, left when it
//! refuses.

#[path = "../../examples/custom_backend.rs"]
mod custom_backend;

use std::sync::Arc;

use cantus::engine::EventKind;
use cantus::{Config, Engine, Error, Fallback, Kernel};
use custom_backend::AcceleratorBackend;

/// A kernel that does `statement` for each element of `v`.
fn kernel(name: &str, statement: &str) -> cantus::Result<Kernel> {
    Kernel::from_wgsl(&format!(
        "@group(0) @binding(0) var<storage, read_write> v: array<f32>;
         @compute @workgroup_size(64) fn {name}(@builtin(global_invocation_id) id: vec3u) {{
             if id.x < arrayLength(&v) {{ {statement} }}
         }}"
    ))
}

#[test]
fn the_example_runs() {
    custom_backend::main().unwrap();
}

#[test]
fn it_is_preferred_and_left_when_it_refuses() {
    let builder = || Engine::builder().config(Config::default()).with_backend(Arc::new(AcceleratorBackend));
    let engine = builder().build().unwrap();
    assert_eq!(engine.selected().device.name, "accelerator");
    let values = engine.tensor(&[1.0_f32, 2.0, 3.0]).unwrap();
    engine.dispatch(&kernel("double", "v[id.x] *= 2.0;").unwrap()).bind("v", &values).invocations(3).run().unwrap();
    assert_eq!(
        (values.to_vec::<f32>().unwrap(), values.device_name()),
        (vec![2.0, 4.0, 6.0], "accelerator".to_owned())
    );
    let add_one = kernel("add_one", "v[id.x] += 1.0;").unwrap();
    engine.dispatch(&add_one).bind("v", &values).invocations(3).run().unwrap();
    assert_eq!(values.to_vec::<f32>().unwrap(), [3.0, 5.0, 7.0]);
    assert_ne!(values.device_name(), "accelerator");
    assert!(engine.events().iter().any(|event| event.kind == EventKind::FellBack && event.message.contains("add_one")));

    let strict = builder().fallback(Fallback::Never).build().unwrap();
    let values = strict.tensor(&[1.0_f32]).unwrap();
    let refused = strict.dispatch(&add_one).bind("v", &values).invocations(1).run().unwrap_err();
    assert!(matches!(&refused, Error::Unsupported { .. }), "{refused}");
}

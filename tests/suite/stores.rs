//! The mode that finds stores out of range (`Builder::check_stores`), beside the count that a loop on the host gives.

use cantus::{Engine, Error, Kernel};

fn checking() -> Engine {
    Engine::builder().check_stores(true).build().expect("the CPU")
}

/// Runs a kernel over `groups` workgroups on a tensor of `length` numbers, and returns what its error says: the stores, the place and the length.
fn found(body: &str, length: usize, groups: u32) -> Option<(u64, u64, u64, String)> {
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n{}",
        if body.contains("fn main") {
            body.to_owned()
        } else {
            format!(
                "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) at: u32) {{ let i = id.x; {body} }}"
            )
        }
    );
    let engine = checking();
    let kernel = Kernel::from_wgsl(&text).expect("a kernel");
    let y = engine.zeros::<u32>(&[length]).expect("a tensor");
    let run = engine.dispatch(&kernel).bind("y", &y).workgroups([groups, 1, 1]).run();
    match run.and_then(|()| y.to_vec::<u32>()) {
        Ok(_) => None,
        Err(Error::TensorLost { cause, .. }) => Some(told(&cause)),
        Err(error) => Some(told(&error)),
    }
}

fn told(error: &Error) -> (u64, u64, u64, String) {
    let Error::StoreOutOfRange { kernel, of, place, length, stores } = error else { panic!("{error}") };
    assert_eq!(kernel, "main");
    assert!(error.is_input() && !error.is_device_fault(), "no other device is tried");
    (*stores, *place, *length, of.clone())
}

#[test]
fn stores_out_of_range_are_counted_and_named() {
    let beyond = |count: u64, length: u64| (0..count).filter(|&i| i >= length).count() as u64;
    // A run of lanes, whole and in part; no store out of range is no error.
    assert_eq!(found("y[i] = 7;", 192, 3), None);
    for length in [1, 63, 64, 100, 191] {
        let (stores, place, known, of) = found("y[i] = 7;", length, 3).expect("an error");
        assert_eq!((stores, known, &*of), (beyond(192, length as u64), length as u64, "y"));
        assert!(place >= length as u64 && place < 192, "{place}");
    }
    // Apart, under a condition, one place for all, and by one invocation.
    assert_eq!(found("y[i * 3u] = 1;", 100, 1), Some((30, 102, 100, "y".to_owned())));
    assert_eq!(found("if (i % 2u == 0u && i < arrayLength(&y)) { y[i] = 1; }", 50, 1), None);
    assert_eq!(found("if (i % 2u == 0u) { y[i + 40u] = 1; }", 50, 1), Some((27, 50, 50, "y".to_owned())));
    assert_eq!(found("if (i == 3u) { y[1000] = 1; }", 50, 1), Some((1, 1000, 50, "y".to_owned())));
    // Below zero, as an index has no sign.
    assert_eq!(found("if (i == 0u) { y[i32(i) - 1] = 1; }", 50, 1), Some((1, u64::from(u32::MAX), 50, "y".to_owned())));
}

#[test]
fn loads_are_not_looked_at_and_other_arrays_are() {
    assert_eq!(found("if (i < 4u) { y[i] = y[i + 100u]; }", 50, 1), None);
    let own = "var<workgroup> w: array<u32, 64>;\n\
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) at: u32) { w[at + y[0] + 8u] = 1; workgroupBarrier(); y[0] = w[0]; }";
    let (stores, place, length, of) = found(own, 50, 1).expect("an error");
    assert_eq!((stores, place, length), (8, 64, 64));
    assert_eq!(of, "an array of the kernel's own");
    let private = "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) at: u32) {\n\
        var a: array<u32, 8>; for (var k = 0u; k < 8u; k++) { a[k + at] = k; } y[at] = a[at % 8u]; }";
    let (stores, _, length, _) = found(private, 64, 1).expect("an error");
    let expected = (0..64_u64).map(|at| (0..8).filter(|k| k + at >= 8).count() as u64).sum::<u64>();
    assert_eq!((stores, length), (expected, 8));
    let atomic = "@group(0) @binding(1) var<storage, read_write> z: array<atomic<u32>>;\n\
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) at: u32) { y[at] = 1; atomicAdd(&z[at + 10u], 1u); }";
    let engine = checking();
    let kernel = Kernel::from_wgsl(&format!("@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n{atomic}"));
    let kernel = kernel.expect("a kernel");
    let (y, z) = (engine.zeros::<u32>(&[64]).expect("y"), engine.zeros::<u32>(&[64]).expect("z"));
    let run = engine.dispatch(&kernel).bind("y", &y).bind("z", &z).workgroups([1, 1, 1]).run();
    let error = run.and_then(|()| z.to_vec::<u32>()).expect_err("an error");
    let cause = if let Error::TensorLost { cause, .. } = &error { cause } else { &error };
    assert_eq!(told(cause), (10, 64, 64, "z".to_owned()));
    // The engine goes on.
    assert_eq!(
        engine.tensor(&[1_u32, 2]).and_then(|x| (&x + &x).eval()).and_then(|x| x.to_vec::<u32>()).expect("sums"),
        [2, 4]
    );
}

#[test]
fn only_the_cpu_looks() {
    let error = Engine::builder().backend("vulkan").check_stores(true).build().expect_err("an error");
    assert!(error.to_string().contains("only the backend cpu"), "{error}");
    assert_eq!(checking().selected().device.backend, "cpu");
}

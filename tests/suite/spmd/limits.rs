//! Deadlines, cancelling, wrong bindings, what is not supported, and programs that were tampered with.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use cantus::spmd::{Launch, Memory, Stopped, execute};

use super::harness::{compile, try_compile};

const ENDLESS: &str = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { loop { a[id.x] += 1u; if a[0] == 4294967295u { break; } } }";

#[test]
fn deadline() {
    let program = compile(ENDLESS);
    for parallel in [false, true] {
        let mut bytes = vec![0_u32; 6400];
        let begin = Instant::now();
        let bindings = [Memory::new(bytemuck::cast_slice_mut(&mut bytes))];
        let launch =
            Launch::new([100, 1, 1], &bindings).deadline(begin + Duration::from_millis(100)).parallel(parallel);
        assert_eq!(execute(&program, &launch), Err(Stopped::Deadline));
        assert!(begin.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn cancel() {
    let program = compile(ENDLESS);
    let mut bytes = vec![0_u32; 6400];
    let cancel = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let bindings = [Memory::new(bytemuck::cast_slice_mut(&mut bytes))];
        let flags = [&cancel];
        let launch = Launch::new([100, 1, 1], &bindings).cancel(&flags);
        assert_eq!(execute(&program, &launch), Err(Stopped::Cancelled));
    });
}

#[test]
fn wrong_bindings() {
    let program = compile(
        "@group(0) @binding(3) var<storage, read_write> a: array<vec4f>;
        @compute @workgroup_size(1) fn main() { a[0] = vec4f(1.0); }",
    );
    assert_eq!((program.bindings()[0].binding, program.bindings()[0].writable), (3, true));
    let launch = |bindings: &[Memory<'_>]| execute(&program, &Launch::new([1; 3], bindings).parallel(false));
    assert!(matches!(launch(&[]), Err(Stopped::WrongBindingCount { expected: 1, given: 0 })));
    let mut words = [0_u32; 4];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    assert!(matches!(
        launch(&[Memory::new(&mut bytes[..12])]),
        Err(Stopped::BindingTooSmall { needed: 16, given: 12, .. })
    ));
    assert!(matches!(launch(&[Memory::read_only(bytes)]), Err(Stopped::ReadOnly { .. })));
    assert_eq!(launch(&[Memory::new(bytes)]), Ok(()));
}

#[test]
fn unsupported() {
    let text = "@group(0) @binding(0) var t: texture_2d<f32>;
        @group(0) @binding(1) var<storage, read_write> a: array<vec4f>;
        @compute @workgroup_size(1) fn main() { a[0] = textureLoad(t, vec2u(0u), 0); }";
    let error = try_compile(text).expect_err("textures");
    assert!(error.to_string().contains("texture"), "{error}");
    assert_eq!(error.span.map(|span| text[span].contains("var t")), Some(true));
}

#[test]
fn tampered_programs_do_not_run() {
    let program = compile(
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            var t: array<u32, 5>;
            t[id.x % 5u] = id.x;
            if id.x % 2u == 0u { a[id.x * 3u % 64u] = t[id.y] + 1u; }
        }",
    );
    let mut bytes = vec![0_u32; 64];
    let good = postcard::to_allocvec(&program).unwrap();
    let mut outcomes = [0; 3];
    let mut seed = 1_u64;
    for _ in 0..20_000 {
        let mut bad = good.clone();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let place = (seed >> 33) as usize % bad.len();
        bad[place] ^= 1 << (seed >> 60 & 7);
        let Ok(program) = postcard::from_bytes::<cantus::spmd::Bytecode>(&bad) else {
            outcomes[0] += 1;
            continue;
        };
        let bindings = [Memory::new(bytemuck::cast_slice_mut(&mut bytes))];
        let deadline = Instant::now() + Duration::from_millis(20);
        let launch = Launch::new([1; 3], &bindings).deadline(deadline).parallel(false);
        match execute(&program, &launch) {
            Ok(()) => outcomes[1] += 1,
            Err(_) => outcomes[2] += 1,
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

//! `cantus compile`: the right language comes out, and what cannot be made is said.

use crate::Place;

const KERNEL: &str = "
override N: u32 = 4;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) { y[id.x] *= N; }
}
";

#[test]
fn every_language_comes_out() {
    let place = Place::new();
    std::fs::write(place.path("k.wgsl"), KERNEL).unwrap();
    let marks = [
        ("msl", "metal_stdlib"),
        ("hlsl", "[numthreads(64, 1, 1)]"),
        ("glsl", "local_size_x = 64"),
        ("wgsl", "@workgroup_size(64"),
        ("cuda", "__global__ void"),
        ("hip", "__global__ void"),
        ("opencl", "__kernel"),
        ("c", "#include <stdbool.h>"),
        ("rust", "@generated"),
    ];
    for (target, mark) in marks {
        let text = place.succeed(&format!("compile k.wgsl --target {target}"));
        assert!(text.contains(mark), "{target}: {text}");
    }
    place.succeed("compile k.wgsl --target spirv -o k.spv");
    let words = std::fs::read(place.path("k.spv")).unwrap();
    assert_eq!(words.get(..4), Some(&0x0723_0203_u32.to_le_bytes()[..]), "SPIR-V begins with its magic number");
}

#[test]
fn overrides_and_shipped_kernels_are_taken() {
    let place = Place::new();
    std::fs::write(place.path("k.wgsl"), KERNEL).unwrap();
    assert!(place.succeed("compile k.wgsl --target cuda --set N=12345").contains("12345"));
    assert!(place.succeed("compile field --target opencl").contains("field"));
}

#[test]
fn all_goes_into_a_folder_and_says_what_is_missing() {
    let place = Place::new();
    std::fs::write(place.path("k.wgsl"), KERNEL).unwrap();
    let text = place.succeed("compile k.wgsl --target all -o out");
    for extension in ["spv", "metal", "hlsl", "comp", "wgsl", "cu", "hip", "cl", "c", "rs"] {
        assert!(
            place.path(&format!("out/main.{extension}")).metadata().is_ok_and(|file| file.len() > 0),
            "{extension}"
        );
    }
    // NVRTC is there or not; either way there is a line that says so.
    assert!(text.contains("ptx") && text.contains("cubin"), "{text}");
    let without = place.run("compile k.wgsl --target all");
    assert!(without.code == Some(2) && without.stderr.contains("-o"), "{}", without.stderr);
}

#[test]
fn mistakes_are_named() {
    let place = Place::new();
    std::fs::write(place.path("k.wgsl"), KERNEL).unwrap();
    let unknown = place.run("compile k.wgsl --target cuda --set M=1");
    assert!(unknown.code == Some(2) && unknown.stderr.contains("no such override (it has: N)"), "{}", unknown.stderr);
    std::fs::write(place.path("bad.wgsl"), "fn main() { let x = ; }").unwrap();
    let bad = place.run("compile bad.wgsl --target c");
    assert!(bad.code == Some(2) && bad.stderr.contains("bad.wgsl:1"), "{}", bad.stderr);
    let architecture = place.run("compile k.wgsl --target ptx --arch sm_90");
    assert!(architecture.code != Some(0) && architecture.stderr.contains("compute_75"), "{}", architecture.stderr);
}

#[test]
fn a_type_that_a_language_lacks_is_named() {
    let place = Place::new();
    let half = "enable f16;\n@group(0) @binding(0) var<storage, read_write> y: array<f16>;\n\
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = y[id.x] * 2.0h; }\n";
    std::fs::write(place.path("half.wgsl"), half).unwrap();
    let refused = place.run("compile half.wgsl --target glsl");
    assert!(refused.code != Some(0) && refused.stderr.contains("GLSL has no f16"), "{}", refused.stderr);
}

const SAXPY: &str = "
struct Params { a: f32, shift: vec2f }
override SCALE: f32 = 2.0;
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn saxpy(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) { y[id.x] += SCALE * params.a * x[id.x] + params.shift.x; }
}
";

#[test]
fn types_of_arguments_come_out() {
    let place = Place::new();
    std::fs::write(place.path("k.wgsl"), SAXPY).unwrap();
    let script = place.succeed("compile k.wgsl --types ts");
    for line in [
        "export interface Saxpy<T> extends DispatchOptions<T> {",
        "    x: T;",
        "    \"params.a\": number;",
        "    \"params.shift\": readonly number[];",
        "    SCALE?: number;",
    ] {
        assert!(script.contains(line), "{line}: {script}");
    }
    let stub = place.succeed("compile k.wgsl --types py");
    for line in
        ["class Saxpy(Protocol):", "        a: float,  # f32", "        x: ArrayLike,", "        y: cantus.Array,"]
    {
        assert!(stub.contains(line), "{line}: {stub}");
    }
    let both = place.run("compile k.wgsl --types py --target cuda");
    assert_eq!(both.code, Some(2), "{}", both.stderr);
}

#[test]
fn an_input_without_memory_is_an_error() {
    let place = Place::new();
    std::fs::write(place.path("k.wgsl"), KERNEL).unwrap();
    for made in ["zeros", "iota", "random:7"] {
        let outcome = place.run(&format!("run k.wgsl --in y={made}[99999999999999] --invocations 4"));
        assert!(outcome.code == Some(1) || outcome.code == Some(2), "{:?}", outcome.stderr);
        assert!(outcome.stderr.contains("it takes "), "{}", outcome.stderr);
    }
}

#[test]
fn imports_are_linked() {
    let place = Place::new();
    std::fs::write(place.path("scale.wgsl"), "@if(big) const BY = 3u; @else const BY = 2u;\nfn scaled(x: u32) -> u32 {\n    return x * BY;\n}\nfn wrong() -> u32 { return 1.0; }").unwrap();
    let kernel = KERNEL.replace("*= N", "= scaled(N)");
    std::fs::write(place.path("k.wgsl"), format!("import package::scale::scaled;\n{kernel}")).unwrap();
    let run = "run k.wgsl --in y=zeros[4] --invocations @y";
    for (options, numbers) in [("", "8, 8, 8, 8"), (" --feature big", "12, 12, 12, 12")] {
        let outcome = place.run(&format!("{run}{options}"));
        assert!(outcome.code == Some(0) && outcome.stderr.contains(numbers), "{}", outcome.stderr);
    }
    assert!(place.succeed("compile k.wgsl --target cuda --feature big").contains("scaled"));
    let unknown = place.run(&format!("{run} --feature bog"));
    assert!(unknown.code == Some(2) && unknown.stderr.contains("did you mean \"big\"?"), "{}", unknown.stderr);
    std::fs::write(
        place.path("k.wgsl"),
        format!("import package::scale::wrong;\n{}", KERNEL.replace("*= N", "= wrong()")),
    )
    .unwrap();
    let wrong = place.run(run);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("scale.wgsl:5:"), "{}", wrong.stderr);
}

#[test]
fn the_library_is_listed() {
    let place = Place::new();
    let list = place.succeed("kernels --library");
    assert!(list.contains("cantus::random::uniform") && list.contains("uniform(n: u32, seed: vec2u) -> f32"), "{list}");
    assert!(place.succeed("kernels --library random").contains("fn uniform("));
    assert!(place.succeed("kernels --library --json").contains("\"signature\""));
    let unknown = place.run("kernels --library randem");
    assert!(unknown.code == Some(2) && unknown.stderr.contains("random"), "{}", unknown.stderr);
}

//! Pipeline-overridable constants: defaults, values, identifiers, derived expressions, and the workgroup's size.

use crate::case::Case;

pub fn cases() -> Vec<Case> {
    let one = |name: &str, declarations: &str, expression: &str, expected: u32| {
        Case::new(
            format!("overrides.{name}"),
            format!("{declarations}\n@compute @workgroup_size(1) fn main() {{ out[0] = {expression}; }}"),
        )
        .write("out", vec![expected])
    };
    let sized = "override WIDTH: u32 = 8;\noverride HEIGHT = 2u;\n\
                 @compute @workgroup_size(WIDTH, HEIGHT) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u, @builtin(local_invocation_id) l: vec3u) {\n \
                 out[w.x * WIDTH * HEIGHT + i] = l.x + 100u * l.y + 10000u * WIDTH; }";
    let shape = |width: u32, height: u32| {
        let n = width * height;
        (0..2 * n).map(|k| k % n % width + 100 * (k % n / width) + 10000 * width).collect::<Vec<u32>>()
    };
    let memory = "override N: u32 = 16;\nvar<workgroup> t: array<u32, N>;\n\
                  @compute @workgroup_size(N) fn main(@builtin(local_invocation_index) i: u32) { t[i] = i * 3u; workgroupBarrier(); out[i] = t[N - 1u - i]; }";
    let reversed = |n: u32| (0..n).map(|i| (n - 1 - i) * 3).collect::<Vec<u32>>();
    let all = "override A: u32;\noverride B: i32 = -5;\noverride C: f32 = 0.25;\noverride D: bool = false;\n@id(7) override E = 2.5;";
    let sum = "A + u32(B + 10) * 10u + u32(C * 400.0) * 100u + u32(D) * 1000000u + u32(E * 2.0) * 10000000u";
    vec![
        one("all_types_given", all, sum, 3 + 120 + 30_000 + 1_000_000 + 90_000_000)
            .set("A", 3.0)
            .set("B", 2.0)
            .set("C", 0.75)
            .set("D", 1.0)
            .set("7", 4.5),
        one("defaults", all, sum, 9 + 50 + 10_000 + 50_000_000).set("A", 9.0),
        one("derived", "override A = 4u;\noverride B = A * 3u + 1u;\noverride C = B << 2u;", "A + B * 100u + C * 10000u", 5 + 1_600 + 640_000).set("A", 5.0),
        one("derived_from_default", "override A = 4u;\noverride B = A * 3u + 1u;", "A + B * 100u", 1_304),
        one("negative_and_large", "override A: i32 = 1;\noverride B: u32 = 1;", "bitcast<u32>(A) ^ B", 0x7FFF_FFFE).set("A", -2_147_483_648.0).set("B", 4_294_967_294.0),
        one("in_constant_position", "override A = 3u;\noverride LAST = A - 1u;\nfn f() -> u32 { var s = 0u; for (var k = 0u; k < A; k++) { s += k * 10u; if k == LAST { s += 1u; } } return s; }", "f()", 211).set("A", 7.0),
        one("switches_code", "override FAST = false;\nfn f() -> u32 { if FAST { return 1u; } return 2u; }", "f() + 10u * select(5u, 6u, FAST)", 61).set("FAST", 1.0),
        one("private_array_initialiser", "override A = 3u;\nvar<private> t = vec3u(A, A + 1u, 7u);", "t.x + t.y * 10u + t.z * 100u", 798).set("A", 8.0),
        Case::new("overrides.workgroup_size_default", sized).write("out", shape(8, 2)).workgroups(2, 1, 1),
        Case::new("overrides.workgroup_size_given", sized).write("out", shape(5, 3)).set("WIDTH", 5.0).set("HEIGHT", 3.0).workgroups(2, 1, 1),
        Case::new("overrides.workgroup_memory_default", memory).write("out", reversed(16)),
        Case::new("overrides.workgroup_memory_given", memory).write("out", reversed(100)).set("N", 100.0),
    ]
}

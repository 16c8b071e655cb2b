//! The arguments that a caller passes.

use cantus::translate::{Argument, Dialect};

use super::{DIALECTS, OPTIONS, translate};

const SAXPY: &str = include_str!("kernels/saxpy.wgsl");

#[test]
fn arguments_in_order() {
    for (dialect, _) in DIALECTS {
        let translation = translate(SAXPY, dialect, &OPTIONS).unwrap();
        assert_eq!(translation.entry, "saxpy");
        assert_eq!(
            translation.arguments,
            [
                Argument::Value { index: 0, bytes: 4 },
                Argument::Pointer { index: 1 },
                Argument::Pointer { index: 2 },
                Argument::Sizes { indices: vec![1, 2] },
            ]
        );
        let pointers = OPTIONS.uniforms_by_value(false);
        assert_eq!(translate(SAXPY, dialect, &pointers).unwrap().arguments[0], Argument::Pointer { index: 0 });
    }
}

#[test]
fn large_uniforms_go_by_pointer() {
    let wgsl = "@group(0) @binding(0) var<uniform> table: array<vec4f, 200>;\n\
                @group(0) @binding(1) var<storage, read_write> out: array<vec4f>;\n\
                @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { out[id.x] = table[id.x]; }";
    for (dialect, _) in DIALECTS {
        let translation = translate(wgsl, dialect, &OPTIONS).unwrap();
        assert_eq!(translation.arguments[0], Argument::Pointer { index: 0 }, "{}", dialect.name());
    }
}

#[test]
fn a_name_of_c_is_changed_and_a_plain_one_is_kept() {
    let wgsl = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n\
                @compute @workgroup_size(1) fn main() { var register_count = 1u; var double = 2u; \
                out[0] = register_count + double; double += 1u; register_count += out[0]; out[1] = register_count + double; }";
    let translation = translate(wgsl, Dialect::Host, &OPTIONS).unwrap();
    assert_eq!(translation.entry, "main_");
    assert!(translation.source.contains("u32 register_count = "), "{}", translation.source);
    assert!(translation.source.contains("u32 double_ = "), "{}", translation.source);
}

#[test]
fn loops_are_bounded_when_asked() {
    let wgsl = include_str!("kernels/control.wgsl");
    for (dialect, _) in DIALECTS {
        let bounded = translate(wgsl, dialect, &OPTIONS.bound_loops(true)).unwrap().source;
        assert_eq!(bounded.matches("== 4294967296").count(), 2, "{bounded}");
        assert!(!translate(wgsl, dialect, &OPTIONS).unwrap().source.contains("4294967296"));
    }
}

/// `&&`, `||` and `?` pass over an operand in the lanes that need none, and a shuffle takes every lane: `subgroupAny` was false on an H100.
#[test]
fn no_lane_passes_over_a_shuffle() {
    let wgsl = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            let x = data[id.x];
            data[id.x] = u32(subgroupAll(x > 1u)) + u32(subgroupAny(x > 2u)) + subgroupMin(x) + subgroupInclusiveMul(x)
                + subgroupXor(x) + subgroupExclusiveAdd(x);
        }";
    for (dialect, name) in DIALECTS {
        let source = translate(wgsl, dialect, &OPTIONS).unwrap().source;
        for operator in ["&& ", "|| ", "? ", ": "] {
            assert!(!source.contains(&format!("{operator}cantus_lane_value")), "{name}: {operator}\n{source}");
        }
    }
}

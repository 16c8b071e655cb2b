//! The shipped kernels of the field family and `shaders/lib`, linked by WESL and run on every adapter through bare
//! wgpu, against f64.

#[path = "../../../xtask/src/link.rs"]
#[allow(dead_code, reason = "shared with xtask, which uses all of it")]
mod link;

mod coherence;
mod gpu;
mod grids;
mod library;

use std::path::Path;

fn shaders() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shaders"))
}

/// The linked text of a shipped kernel.
fn linked(kernel: &str, features: &[&str]) -> String {
    link::link(shaders(), kernel, features).unwrap()
}

#[test]
fn linking_is_plain_and_repeatable() {
    let text = linked("field/field", &[]);
    assert_eq!(text, linked("field/field", &[]));
    assert!(text.starts_with("// Damped spiral wave"), "{text}");
    assert!(text.contains("fn accurate_atan2") && text.contains("fn field("), "{text}");
    assert!(!text.contains("import") && !text.contains("@if") && !text.contains("accurate_log"), "{text}");
    let native = linked("field/field", &["native_math"]);
    assert!(native.contains("atan2(y, x)") && !native.contains("PI_3"), "{native}");
}

const KERNELS: [&str; 4] =
    ["field/field", "field/phi_pattern", "field/coherence_moments", "field/coherence_neighbour_sum"];

#[test]
fn every_kernel_validates_with_every_feature() {
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    for kernel in KERNELS {
        for features in [&[][..], &["native_math"]] {
            let text = linked(kernel, features);
            let module = naga::front::wgsl::parse_str(&text).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
            let names: Vec<&str> = module.entry_points.iter().map(|entry| entry.name.as_str()).collect();
            assert_eq!(names, [kernel.rsplit('/').next().unwrap()], "an entry point is named as its file");
            let mut validator = Validator::new(ValidationFlags::all(), Capabilities::empty());
            validator.validate(&module).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
        }
    }
}

#[test]
fn linking_names_what_is_wrong() {
    let error = |kernel, features: &[&str]| link::link(shaders(), kernel, features).unwrap_err().to_string();
    assert!(error("field/field", &["native_maths"]).contains("`native_maths`"));
    assert!(error("field/nothing", &[]).contains("nothing"));
}

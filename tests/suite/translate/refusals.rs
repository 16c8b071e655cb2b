//! What a language cannot express is an error that names it, with its place in the text.

use cantus::Error;
use cantus::translate::{Dialect, Options};

use super::{OPTIONS, translate};

const CORE: Options = Options::new().uniforms_by_value(true);

/// The construct and the report of a refusal.
fn refusal(wgsl: &str, dialect: Dialect, options: &Options) -> (String, String) {
    match translate(wgsl, dialect, options) {
        Err(Error::Unsupported { construct, report, device, .. }) => {
            assert_eq!(device, dialect.name());
            (construct, report)
        }
        Err(other) => panic!("another error: {other}"),
        Ok(translation) => panic!("was translated:\n{}", translation.source),
    }
}

#[test]
fn opencl_without_doubles() {
    let wgsl = "@group(0) @binding(0) var<storage, read_write> out: array<f32>;\n\
                @compute @workgroup_size(1) fn main() {\n    let wide = f64(out[0]);\n    out[0] = f32(wide * wide);\n}";
    let (construct, report) = refusal(wgsl, Dialect::OpenCl, &CORE);
    assert!(construct.contains("f64") && construct.contains("cl_khr_fp64"), "{construct}");
    assert!(report.contains("wgsl:3:"), "{report}");
    assert!(translate(wgsl, Dialect::OpenCl, &OPTIONS).is_ok());
    assert!(translate(wgsl, Dialect::Cuda, &CORE).is_ok());
}

#[test]
fn opencl_without_subgroups() {
    let wgsl = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n\
                @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {\n    \
                let x = out[i];\n    out[i] = subgroupAdd(x);\n}";
    let (construct, report) = refusal(wgsl, Dialect::OpenCl, &CORE);
    assert!(construct.contains("cl_khr_subgroup"), "{construct}");
    assert!(report.contains("wgsl:4:"), "{report}");
}

#[test]
fn opencl_without_wide_atomics() {
    let wgsl = "@group(0) @binding(0) var<storage, read_write> n: atomic<u64>;\n\
                @compute @workgroup_size(32) fn main() {\n    atomicAdd(&n, 1lu);\n}";
    let (construct, report) = refusal(wgsl, Dialect::OpenCl, &CORE);
    assert!(construct.contains("cl_khr_int64"), "{construct}");
    assert!(report.contains("wgsl:3:"), "{report}");
    let translation = translate(wgsl, Dialect::OpenCl, &OPTIONS).unwrap();
    assert!(translation.requires.iter().any(|name| name.contains("int64")), "{:?}", translation.requires);
}

#[test]
fn functions_that_no_language_has() {
    for dialect in [Dialect::Cuda, Dialect::Hip, Dialect::OpenCl, Dialect::Host] {
        let wgsl = "@group(0) @binding(0) var<storage, read_write> out: array<u64>;\n\
                    @compute @workgroup_size(1) fn main() {\n    out[0] = extractBits(out[0], 3u, 4u);\n}";
        // naga itself may refuse it one day; until then it is ours to name.
        match translate(wgsl, dialect, &OPTIONS) {
            Err(Error::Unsupported { construct, report, .. }) => {
                assert!(construct.contains("bit fields") && report.contains("wgsl:3:"), "{construct}\n{report}");
            }
            Err(Error::InvalidWgsl { .. }) => {}
            other => panic!("{}: {other:?}", dialect.name()),
        }
    }
}

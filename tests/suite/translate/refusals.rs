//! A construct that a language cannot express is an error that names it, with its place in the text.

use cantus::Error;
use cantus::kernel::Language;
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

/// Places are the author's, though what is in front of them is rewritten for naga.
#[test]
fn places_behind_what_is_rewritten() {
    let wgsl = "enable subgroups; @group(0) @binding(0) var<storage, read_write> out: array<u32>; \
                @compute @workgroup_size(32) fn main() { let z = 0u; out[4 / z] = subgroupAdd(1u); }";
    let (_, report) = refusal(wgsl, Dialect::OpenCl, &CORE);
    let column = wgsl.find("subgroupAdd").unwrap() + 1;
    assert!(report.contains(&format!("wgsl:1:{column}\n")), "{report}");
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

/// A kernel that multiplies two matrices of f16 in storage, with a line of declarations, in a workgroup of that size.
fn of_matrices(declarations: &str, invocations: u32, left: &str) -> String {
    format!(
        "enable f16;\nenable wgpu_cooperative_matrix;\n{declarations}\n\
         @group(0) @binding(0) var<storage, read> a: array<f16>;\n@group(0) @binding(1) var<storage, read_write> out: array<f32>;\n\
         @compute @workgroup_size({invocations}) fn main() {{\n    let x = {left};\n    \
         let y = coopLoadT<coop_mat16x16<f16, B>>(&a[0], 16u);\n    \
         coopStoreT(coopMultiplyAdd(x, y, coop_mat16x16<f32, C>()), &out[0], 16u);\n}}"
    )
}

#[test]
fn cooperative_matrices() {
    let of_a = "coopLoadT<coop_mat16x16<f16, A>>(&a[0], 16u)";
    let right = of_matrices("", 64, of_a);
    for dialect in [Dialect::Cuda, Dialect::Hip, Dialect::Host] {
        assert!(translate(&right, dialect, &OPTIONS).is_ok(), "{}", dialect.name());
    }
    let (construct, report) = refusal(&right, Dialect::OpenCl, &OPTIONS);
    assert!(construct.contains("cooperative matrices") && report.contains("wgsl:7:"), "{construct}\n{report}");
    let kernel = cantus::Kernel::from_wgsl(&right).unwrap();
    assert!(kernel.program().is_ok());
    for language in [Language::Msl, Language::Hlsl, Language::Glsl] {
        let error = kernel.write(language).expect_err("has no cooperative matrices");
        assert!(matches!(&error, Error::Unsupported { construct, .. } if construct.contains("cooperative")), "{error}");
    }
    assert!(kernel.write(Language::Wgsl).is_ok());
    // The feature is known where no variable has such a type, too.
    let loaded = right.replace("coop_mat16x16<f32, C>()", "coopLoadT<coop_mat16x16<f32, C>>(&out[0], 16u)");
    assert!(cantus::Kernel::from_wgsl(&loaded).unwrap().reflection().unwrap().features.cooperative_matrix);
    // OpCooperativeMatrixLoadKHR, twice, with one word more than naga writes: what it loads is shared with other invocations.
    let words: Vec<u32> = bytemuck::pod_collect_to_vec(&kernel.write(Language::Spirv).unwrap());
    assert_eq!(words.iter().filter(|&&word| word == 4457 | 7 << 16).count(), 2);
    // A subgroup that is not full, sizes and types that do not fit, and memory that is no array.
    let eight = "coopLoadT<coop_mat8x8<f16, A>>(&a[0], 16u)";
    let single = "coopLoadT<coop_mat16x16<f32, A>>(&b[0], 16u)";
    let private = "coopLoadT<coop_mat16x16<f16, A>>(&c[0], 16u)";
    let wrong = [
        (of_matrices("", 48, of_a), "48 invocations"),
        (of_matrices("", 32, eight), "different sizes"),
        (
            of_matrices("@group(0) @binding(2) var<storage, read> b: array<f32>;", 32, single),
            "different sizes or types",
        ),
        (of_matrices("var<private> c: array<f16, 512>;", 32, private), "arrays of storage"),
    ];
    for (text, reason) in wrong {
        for dialect in [Dialect::Cuda, Dialect::Host] {
            let (construct, _) = refusal(&text, dialect, &OPTIONS);
            assert!(construct.contains(reason), "{construct}");
        }
        let error = cantus::Kernel::from_wgsl(&text).unwrap().program().expect_err("is refused").to_string();
        assert!(error.contains(reason), "{error}");
    }
    // What a subgroup has together is not to be shared with others.
    let shared =
        of_matrices("struct Pair { n: u32, m: coop_mat16x16<f16, A> }\nvar<workgroup> kept: array<Pair, 2>;", 32, of_a);
    let error = cantus::Kernel::from_wgsl(&shared).expect_err("is refused").to_string();
    assert!(error.contains("kept") && error.contains("coopStore"), "{error}");
}

//! The features of every kernel of the tests and of the library, found by one walk over naga's module, beside naga's validator: the walk's set of capabilities
//! is the least with which the validator takes the module.

use cantus::Kernel;
use cantus::kernel::capabilities::{needed, validator};
use naga::valid::Capabilities;

/// Capabilities that every kernel may use, and that are no feature.
fn always() -> Capabilities {
    Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::CUBE_ARRAY_TEXTURES
        | Capabilities::STORAGE_TEXTURE_16BIT_NORM_FORMATS
        | Capabilities::TEXTURE_EXTERNAL
}

/// Compares one module, and returns what it needs.
fn compare(name: &str, kernel: &Kernel) -> Capabilities {
    let module = &kernel.parsed().unwrap().module;
    let info = validator(Capabilities::all()).validate(module).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let found = needed(module, &info);
    let accepts = |set: Capabilities| validator(set | always()).validate(module).is_ok();
    assert!(accepts(found), "{name}: the validator wants more than {found:?}");
    for one in found.iter() {
        // The validator sees matrices where they are kept alone.
        let is_seen = one != Capabilities::COOPERATIVE_MATRIX || module.types.iter().any(|(_, ty)| is_matrix(ty));
        assert!(!is_seen || !accepts(found - one), "{name}: the validator does without {one:?}");
    }
    let features = kernel.reflection().map(|reflection| reflection.features);
    if let Ok(features) = features {
        let has = |capability| found.intersects(capability);
        assert_eq!(features.f16, has(Capabilities::SHADER_FLOAT16), "{name}");
        assert_eq!(features.int16, has(Capabilities::SHADER_INT16), "{name}");
        assert_eq!(features.int64, has(Capabilities::SHADER_INT64), "{name}");
        assert_eq!(features.float64, has(Capabilities::FLOAT64), "{name}");
        assert_eq!(features.float32_atomics, has(Capabilities::SHADER_FLOAT32_ATOMIC), "{name}");
        assert_eq!(features.cooperative_matrix, has(Capabilities::COOPERATIVE_MATRIX), "{name}");
        let wide = Capabilities::SHADER_INT64_ATOMIC_MIN_MAX | Capabilities::SHADER_INT64_ATOMIC_ALL_OPS;
        assert_eq!(features.int64_atomics, has(wide), "{name}");
        assert_eq!(features.subgroups, has(Capabilities::SUBGROUP | Capabilities::SUBGROUP_BARRIER), "{name}");
    }
    found
}

fn is_matrix(ty: &naga::Type) -> bool {
    matches!(ty.inner, naga::TypeInner::CooperativeMatrix { .. })
}

#[test]
fn the_walk_agrees_with_the_validator() {
    let cases = cantus_verify::cases::all().into_iter().map(|case| (case.name, case.wgsl));
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shaders/answers"));
    let answers = std::fs::read_dir(folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (path.display().to_string(), std::fs::read_to_string(path).unwrap())
    });
    let shipped = cantus::ops::kernels().iter().map(|shipped| {
        let kernel = shipped.kernel().unwrap();
        (shipped.name().to_owned(), kernel.wgsl().to_owned())
    });
    let (mut all, mut forms) = (Capabilities::empty(), 0);
    for (name, text) in cases.chain(answers).chain(shipped) {
        let kernel = Kernel::from_named_wgsl(&name, &text).unwrap();
        all |= compare(&name, &kernel);
        for form in [kernel.reproducible(), kernel.without_textures()] {
            if let Ok(form) = form.as_ref()
                && *form != kernel
            {
                all |= compare(&name, form);
                forms += 1;
            }
        }
    }
    assert_eq!(all.iter().count(), 10, "each capability is met: {all:?}");
    assert!(forms > 100, "{forms} forms");
}

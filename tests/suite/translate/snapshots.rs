//! The emitted sources as they are, and the host's through a C compiler.

use super::{DIALECTS, OPTIONS, translate};
use cantus::translate::Dialect;

const KERNELS: [(&str, &str); 12] = [
    ("saxpy", include_str!("kernels/saxpy.wgsl")),
    ("tiles", include_str!("kernels/tiles.wgsl")),
    ("layout", include_str!("kernels/layout.wgsl")),
    ("control", include_str!("kernels/control.wgsl")),
    ("handed_down", include_str!("kernels/handed_down.wgsl")),
    ("atomics", include_str!("kernels/atomics.wgsl")),
    ("subgroups", include_str!("kernels/subgroups.wgsl")),
    ("half", include_str!("kernels/half.wgsl")),
    ("integers", include_str!("kernels/integers.wgsl")),
    ("matrices", include_str!("kernels/matrices.wgsl")),
    ("wide", include_str!("kernels/wide.wgsl")),
    ("names", include_str!("kernels/names.wgsl")),
];

#[test]
fn sources() {
    for (name, wgsl) in KERNELS {
        for (dialect, suffix) in DIALECTS {
            let source = translate(wgsl, dialect, &OPTIONS).unwrap().source;
            insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
                insta::assert_snapshot!(format!("{name}.{suffix}"), source);
            });
        }
    }
}

#[test]
fn the_same_kernel_gives_the_same_source() {
    for (name, wgsl) in KERNELS {
        for (dialect, _) in DIALECTS {
            let sources: Vec<String> = (0..3).map(|_| translate(wgsl, dialect, &OPTIONS).unwrap().source).collect();
            assert!(sources.iter().all(|source| *source == sources[0]), "{name} in {}", dialect.name());
        }
    }
}

/// In both ways to hand over uniforms, with and without bounded loops.
#[test]
fn a_c_compiler_takes_the_hosts_without_a_warning() {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "gcc".to_owned());
    if std::process::Command::new(&compiler).arg("--version").output().is_err() {
        assert!(std::env::var_os("CANTUS_REQUIRE_CC").is_none(), "there is no compiler `{compiler}`");
        kit::not_run("host C without a warning", &format!("there is no compiler `{compiler}`"));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, wgsl) in KERNELS {
        for (uniforms_by_value, bound_loops) in [(false, false), (true, true)] {
            let options = OPTIONS.uniforms_by_value(uniforms_by_value).bound_loops(bound_loops);
            let source = translate(wgsl, Dialect::Host, &options).unwrap().source;
            let file = folder.path().join(format!("{name}.c"));
            std::fs::write(&file, &source).unwrap();
            let output = std::process::Command::new(&compiler)
                .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-c", "-o", "/dev/null"])
                .arg(&file)
                .output()
                .unwrap();
            assert!(output.status.success(), "{name}: {}\n{source}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

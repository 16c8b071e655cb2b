//! ROCm 5, 6 and 7 as a system has them: the runtime and the compiler by their sonames, each with what its version exports.

use std::path::{Path, PathBuf};

use kit::harness::{self, Trial};

use super::double::Vendor;
use super::{HERE, LIBRARIES};

/// The major version whose libraries a process of these tests finds.
pub const SELECTED: &str = "CANTUS_STREAM_ROCM";

/// A version, the double's other settings for it, and the compilers that lie beside the runtime.
const VERSIONS: [(&str, &[&str], &[&str]); 3] = [
    // The compiler is in the runtime; that of a newer version is another's.
    ("5", &[], &["6"]),
    ("6", &[], &["6", "7"]),
    ("7", &["-DWITHOUT_COMPILER"], &["5", "7"]),
];

pub fn trials(headers: &Path) -> Vec<Trial> {
    let trial = |(major, options, compilers): (&'static str, &[&str], &[&str])| -> Trial {
        let title = format!("libraries of ROCm {major} by their sonames");
        let headers = headers.to_owned();
        match build(major, options, compilers) {
            Err(reason) => harness::absent(title, reason, "CANTUS_REQUIRE_CC"),
            Ok(folder) => harness::child(title, move |child| {
                for variable in LIBRARIES {
                    child.env_remove(variable);
                }
                child.env(SELECTED, major).env("CANTUS_DOUBLE_HEADERS", headers).env("LD_LIBRARY_PATH", &folder);
                // What kernels ask for their place is the runtime.
                child.env("CANTUS_DOUBLE_LIBRARY", runtime(&folder, major));
            }),
        }
    };
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    // The compiler takes seconds for each.
    std::thread::scope(|scope| {
        let building = VERSIONS.map(|version| scope.spawn(move || trial(version)));
        building.map(|version| version.join().expect("makes a trial")).into()
    })
}

fn runtime(folder: &Path, major: &str) -> PathBuf {
    folder.join(format!("libamdhip64.so.{major}"))
}

fn compiler(folder: &Path, major: &str) -> PathBuf {
    folder.join(format!("libhiprtc.so.{major}"))
}

/// A folder with the libraries of a version.
fn build(major: &str, options: &[&str], compilers: &[&str]) -> Result<PathBuf, String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("rocm-{major}"));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let source = format!("{HERE}/double.cpp");
    let library = |major: &str, options: &[&str], library: &Path| {
        let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (version, soname) = (format!("-DROCM={major}"), format!("-Wl,-soname,{name}"));
        let usual = ["-std=c++17", "-O1", "-pthread", "-DHIP", &version, &soname];
        harness::build("g++", &[&usual, options].concat(), source.as_ref(), library)
    };
    library(major, options, &runtime(&folder, major))?;
    for other in compilers {
        library(other, &[], &compiler(&folder, other))?;
    }
    Ok(folder)
}

pub fn run(major: &str) {
    let folder = PathBuf::from(std::env::var_os("LD_LIBRARY_PATH").expect("is set"));
    let vendor = Vendor::of("hip", &runtime(&folder, major));
    let probe = pollster::block_on(vendor.backend().probe());
    assert_eq!(probe.reason, None);
    let device = probe.devices.first().expect("is found");
    assert_eq!((device.priority, device.driver.as_str()), (80, &*format!("HIP runtime {major}.2.21153")));
    let engine = vendor.engine();
    let x = engine.tensor(&[1.0_f32, 2.0, 3.0]).expect("is made");
    let y = (&x * 2.0 + 1.0).eval().expect("is computed");
    assert_eq!(y.to_vec::<f32>().expect("is read"), [3.0, 5.0, 7.0]);
    drop((x, y, engine));
    // The properties in the version's own form, and the compiler of that version alone.
    assert!(vendor.calls("properties") > 0);
    assert_eq!(vendor.calls("properties_r0600") > 0, major != "5");
    let (_, _, beside) = VERSIONS.iter().find(|(known, ..)| *known == major).expect("is a version");
    for other in *beside {
        let compiled = Vendor::of("hip", &compiler(&folder, other)).calls("compiler_compile");
        assert_eq!(compiled > 0, *other == major, "{compiled} by the compiler of ROCm {other}");
    }
    assert_eq!(vendor.calls("compiler_compile") > 0, !beside.contains(&major));
    vendor.assert_clean();
}

//! Failures, and their messages.

use std::sync::Arc;
use std::time::Duration;

use cantus::backend::{Buffer, Command, Contents, OpenOptions};
use cantus::engine::EventKind;
use cantus::{Error, Fallback, Kernel};
use pollster::block_on;

use crate::Scenario;
use crate::double::Vendor;
use crate::scenarios::{SAXPY, saxpy};

pub const ALL: &[Scenario] = &[
    ("a driver that is too old", &[("CANTUS_DOUBLE_VERSION", "11000")], too_old),
    ("no device", &[("CANTUS_DOUBLE_DEVICES", "0")], no_device),
    ("every call fails once", &[], every_call),
    ("memory runs out", &[("CANTUS_DOUBLE_MEMORY", "33554432")], out_of_memory),
    ("a kernel's fault loses the device", &[], sticky),
    ("the time limit passes", &[("CANTUS_DOUBLE_DELAY_US", "400000")], late),
    ("registers leave room for few threads", &[("CANTUS_DOUBLE_THREADS", "32")], few_threads),
    ("the compiler refuses", &[], refused),
    ("another compiler is tried, and then text for the driver", &[], other_ways),
    ("transfers out of range", &[], ranges),
    (
        "the library is not there",
        &[("CANTUS_CUDA_LIBRARY", "/nonexistent.so"), ("CANTUS_HIP_LIBRARY", "/nonexistent.so")],
        absent,
    ),
    (
        "the library is another one",
        &[("CANTUS_CUDA_LIBRARY", "libm.so.6"), ("CANTUS_HIP_LIBRARY", "libm.so.6")],
        another,
    ),
    (
        "the compiler is not there",
        &[("CANTUS_NVRTC_LIBRARY", "/nonexistent.so"), ("CANTUS_HIPRTC_LIBRARY", "/nonexistent.so")],
        no_compiler,
    ),
    ("an unwritable cache folder", &[], unwritable),
];

fn reason(vendor: &Vendor) -> String {
    let probe = block_on(vendor.backend().probe());
    assert!(probe.devices.is_empty());
    probe.reason.expect("says why")
}

fn too_old(vendor: &Vendor) {
    let reason = reason(vendor);
    assert!(reason.contains("too old"), "{reason}");
    // The engine goes on without.
    let engine = vendor.builder().build().unwrap();
    assert_eq!(engine.selected().device.backend, "cpu");
    vendor.assert_clean();
}

fn no_device(vendor: &Vendor) {
    let reason = reason(vendor);
    assert!(reason.contains("no device"), "{reason}");
    vendor.assert_clean();
}

fn absent(vendor: &Vendor) {
    let reason = reason(vendor);
    assert!(reason.contains("/nonexistent.so cannot be loaded"), "{reason}");
}

fn another(vendor: &Vendor) {
    let reason = reason(vendor);
    assert!(reason.contains("too old: it has no"), "{reason}");
}

/// Each of the driver's functions fails, at each of its first calls: the work is done elsewhere, or there is an error that names the
/// device. Nothing leaks, nothing is misused.
fn every_call(vendor: &Vendor) {
    let roles = [
        "context_retain",
        "stream_create",
        "event_create",
        "event_record",
        "event_query",
        "event_wait",
        "memory_allocate_in_stream",
        "host_allocate",
        "copy_in",
        "copy_out",
        "fill",
        "module_load",
        "module_function",
        "launch",
        "compiler_create",
        "compiler_compile",
    ];
    for role in roles {
        for nth in 1..=3 {
            for code in [1, 719] {
                vendor.fail(role, nth, code);
                let outcome = vendor.builder().timeout(Duration::from_secs(20)).build().and_then(|engine| {
                    let (expected, y) = saxpy(&engine, 300)?;
                    Ok((y.to_vec::<f32>()?, expected))
                });
                vendor.fail(role, 0, 0);
                match outcome {
                    Ok((values, expected)) => assert_eq!(values, expected, "{role} {nth}"),
                    Err(error) => {
                        let known = matches!(
                            error,
                            Error::Device { .. }
                                | Error::DeviceLost { .. }
                                | Error::TensorLost { .. }
                                | Error::NoDevice { .. }
                        );
                        assert!(known, "{role} {nth}: {error:?}");
                    }
                }
                assert_eq!(vendor.misuses(), Vec::<String>::new(), "{role} {nth} {code}");
            }
        }
    }
}

fn out_of_memory(vendor: &Vendor) {
    let engine = vendor.engine();
    let held: Vec<_> = (0..7).map(|_| engine.zeros::<u32>(&[1 << 20]).unwrap()).collect();
    let error = engine.zeros::<u32>(&[2 << 20]).expect_err("does not fit");
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error:?}");
    // What is pooled is given up first.
    drop(held);
    let large = engine.zeros::<u32>(&[6 << 20]).unwrap();
    assert!(large.to_vec::<u32>().unwrap().iter().all(|&word| word == 0));
    drop((engine, large));
    vendor.assert_clean();
}

fn sticky(vendor: &Vendor) {
    let engine = vendor.builder().build().unwrap();
    let (_, y) = saxpy(&engine, 200).unwrap();
    engine.flush();
    vendor.stick(700);
    let error = y.to_vec::<f32>().expect_err("the device is lost");
    assert!(error.to_string().contains("illegal address"), "{error}");
    vendor.stick(0);
    // New work goes elsewhere.
    let lost = y.device_name();
    let (expected, z) = saxpy(&engine, 200).unwrap();
    assert_eq!(z.to_vec::<f32>().unwrap(), expected);
    assert_ne!(z.device_name(), lost);
    assert!(engine.events().iter().any(|event| matches!(event.kind, EventKind::Failed)));
    assert_eq!(vendor.misuses(), Vec::<String>::new());
}

fn late(vendor: &Vendor) {
    let engine = vendor.builder().fallback(Fallback::Never).timeout(Duration::from_millis(150)).build().unwrap();
    let outcome = saxpy(&engine, 64).and_then(|(_, y)| y.to_vec::<f32>());
    let error = outcome.expect_err("takes longer");
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
}

fn few_threads(vendor: &Vendor) {
    let error = saxpy(&vendor.engine(), 64).map(|_| ()).expect_err("does not fit");
    assert!(error.to_string().contains("registers"), "{error}");
    let engine = vendor.builder().build().unwrap();
    let (expected, y) = saxpy(&engine, 64).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), expected, "the CPU does it");
}

fn refused(vendor: &Vendor) {
    vendor.fail("compiler_compile", 1, 6);
    let error = saxpy(&vendor.engine(), 64).map(|_| ()).expect_err("is refused");
    assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
    // What was refused once is not translated and compiled again for each call.
    let engine = vendor.builder().build().unwrap();
    let run = || {
        let (expected, y) = saxpy(&engine, 64).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), expected, "the CPU does it");
        vendor.calls("compiler_compile")
    };
    let first = run();
    assert_eq!((run(), run()), (first, first));
    drop(engine);
    vendor.assert_clean();
}

/// A compiler that is too old for the device, or too new for the driver: each way is tried, and the one that works is the first for the next
/// kernel.
fn other_ways(vendor: &Vendor) {
    let variable = if vendor.name == "hip" { "CANTUS_HIPRTC_LIBRARY" } else { "CANTUS_NVRTC_LIBRARY" };
    let own = std::path::PathBuf::from(std::env::var_os(variable).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let newer = folder.path().join("libcantus-double-13.so");
    std::fs::copy(&own, &newer).unwrap();
    // SAFETY: no other thread of this process is there yet.
    unsafe { std::env::set_var(variable, std::env::join_paths([&newer, &own]).unwrap()) };
    let first = Vendor::of(vendor.name, &newer);
    let open = || vendor.builder().without_cache().fallback(Fallback::Never).build().unwrap();
    let work = |engine: &cantus::Engine| {
        let (expected, y) = saxpy(engine, 64)?;
        assert_eq!(y.to_vec::<f32>()?, expected);
        Ok::<_, Error>(y.device_name())
    };
    let calls = || {
        let of = |compiler: &Vendor, what| compiler.calls(&format!("compiler_compile_{what}"));
        [of(&first, "machine_code"), of(vendor, "machine_code"), of(&first, "text"), of(vendor, "text")]
    };
    first.fail("compiler_compile", 1, 5);
    if vendor.name == "hip" {
        // There is no text that its driver would compile, and its compilers do not bear each other.
        assert!(matches!(work(&open()), Err(Error::Unsupported { .. })));
        assert_eq!(calls(), [0; 4]);
        first.fail("compiler_compile", 0, 0);
        first.assert_clean();
        return;
    }
    // The newer compiler does not know the device: the older one does.
    let engine = open();
    assert!(work(&engine).unwrap().contains("CUDA double"));
    assert_eq!(calls(), [0, 1, 0, 0]);
    // It comes first from now on.
    let kernel = Kernel::from_wgsl(&SAXPY.replace("params.a * ", "2.0 * params.a * ")).unwrap();
    let asked = first.calls("compiler_compile");
    let (x, y) = (engine.tensor(&[1.0_f32]).unwrap(), engine.tensor(&[1.0_f32]).unwrap());
    engine.dispatch(&kernel).bind("x", &x).bind("y", &y).set("params.a", 4.0_f32).invocations(1).run().unwrap();
    assert_eq!((y.to_vec::<f32>().unwrap(), first.calls("compiler_compile")), (vec![9.0], asked));
    drop((engine, x, y));
    first.fail("compiler_compile", 0, 0);
    // Neither knows the device: the driver compiles text.
    let before = calls();
    for compiler in [&first, vendor] {
        compiler.fail("compiler_compile_machine_code", 1, 5);
    }
    assert!(work(&open()).unwrap().contains("CUDA double"));
    let after = calls();
    assert_eq!([2, 3].map(|place| after[place] - before[place]), [1, 0]);
    assert_eq!(vendor.calls("module_compile"), 1);
    for compiler in [&first, vendor] {
        compiler.fail("compiler_compile_machine_code", 0, 0);
    }
    // The driver takes neither's machine code.
    vendor.fail("module_load_machine_code", 1, 209);
    assert!(work(&open()).unwrap().contains("CUDA double"));
    assert_eq!(vendor.calls("module_compile"), 2);
    // Nor text: then it is said what the first choice was refused for.
    vendor.fail("module_compile", 1, 222);
    let error = work(&open()).expect_err("no way is left").to_string();
    assert!(error.contains("209"), "{error}");
    vendor.fail("module_compile", 0, 0);
    vendor.fail("module_load_machine_code", 0, 0);
    vendor.assert_clean();
}

fn ranges(vendor: &Vendor) {
    let device = block_on(vendor.backend().open(0, &OpenOptions::default())).unwrap();
    let make = |label| block_on(device.allocate(64, Contents::Zeroed, label)).unwrap();
    let (one, other) = (make("one"), make("other"));
    let error = block_on(device.write(&one, 62, &[0; 4])).expect_err("is refused").to_string();
    assert!(error.contains("writing one") && error.contains("do not lie within"), "{error}");
    let copy = |source: &Arc<dyn Buffer>, source_offset, target: &Arc<dyn Buffer>, bytes| {
        let (source, target) = (source.clone(), target.clone());
        let batch = vec![Command::Copy { source, source_offset, target, target_offset: 0, bytes }];
        block_on(device.submit(batch)).err().map_or_else(String::new, |error| error.to_string())
    };
    assert_eq!(copy(&one, 32, &other, 32), "");
    // Drivers take overlapping ranges as they come.
    assert!(copy(&one, 8, &one, 16).contains("the same buffer"));
    assert!(copy(&one, 32, &other, 36).contains("exceed a buffer"));
    assert!(copy(&one, 2, &other, 4).contains("multiples of 4"));
    drop((device, one, other));
    vendor.assert_clean();
}

fn no_compiler(vendor: &Vendor) {
    let error = saxpy(&vendor.engine(), 64).map(|_| ()).expect_err("there is no code");
    let text = error.to_string();
    assert!(text.contains("cannot be loaded") && text.contains("install"), "{text}");
    // Below every GPU whose API compiles, and it is said why.
    let probe = block_on(vendor.backend().probe());
    assert!(probe.devices.iter().all(|device| device.priority < 50 && device.priority > 40), "{probe:?}");
    assert!(probe.reason.is_some_and(|reason| reason.contains("ranks lower") && reason.contains("cannot be loaded")));
    let engine = vendor.builder().build().unwrap();
    let (expected, y) = saxpy(&engine, 64).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), expected, "the CPU does it");
    drop((engine, y));
    vendor.assert_clean();
}

fn unwritable(vendor: &Vendor) {
    let file = tempfile::NamedTempFile::new().unwrap();
    // A file where the folder should be: even root cannot write there.
    let engine = vendor.builder().fallback(Fallback::Never).cache_folder(file.path()).build().unwrap();
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32]).unwrap(), engine.tensor(&[1.0_f32]).unwrap());
    engine.dispatch(&kernel).bind("x", &x).bind("y", &y).set("params.a", 4.0_f32).invocations(1).run().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [5.0]);
    drop((engine, x, y));
    vendor.assert_clean();
}

//! Profiles: the trace is what viewers take, its figures are those of the work, and a program's own trace is written at its end.

use cantus::{Config, Engine, Fallback};
use serde_json::Value;

use crate::{by_turns, name};

fn work(engine: &Engine) {
    let a = engine.tensor_from(&[1.0_f32; 128 * 128], &[128, 128]).unwrap();
    let b = engine.tensor_from(&[0.5_f32; 128 * 128], &[128, 128]).unwrap();
    let product = a.matmul(&b).eval().unwrap();
    let sum = (&product * 0.01).exp().sum(&[-1], false).eval().unwrap();
    assert_eq!(sum.to_vec::<f32>().unwrap().len(), 128);
}

/// Complete events of a category.
fn spans<'a>(trace: &'a Value, category: &str) -> Vec<&'a Value> {
    let events = trace["traceEvents"].as_array().unwrap();
    events.iter().filter(|event| event["ph"] == "X" && event["cat"] == category).collect()
}

#[test]
fn a_trace_of_every_device() {
    for engine in by_turns() {
        let device = &engine.selected().device;
        let what = name(engine);
        let builder = Engine::builder().backend(&device.backend).device(device.index).fallback(Fallback::Never);
        let engine = builder.profile(true).build().unwrap();
        work(&engine);
        let ((), profile) = engine.profile(|| work(&engine));
        let trace: Value = serde_json::from_str(&profile.to_json()).unwrap();
        let kernels = spans(&trace, "kernel");
        if !device.capabilities.timestamps && device.backend != "cpu" {
            kit::not_run(&format!("times of kernels on {what}"), "it has no timestamps");
            assert!(kernels.is_empty(), "{what}");
            continue;
        }
        assert!(kernels.len() >= 2, "{what}: {trace:#}");
        let product = kernels.iter().find(|kernel| kernel["name"].as_str().unwrap().starts_with("matmul"));
        let product = product.unwrap_or_else(|| panic!("{what}: {trace:#}"));
        let seconds = product["dur"].as_f64().unwrap() / 1e6;
        assert!(seconds > 0.0, "{what}: {product}");
        let close = |rate: &Value, amount: f64| {
            let expected = amount / seconds / 1e9;
            // A span's length is written to the nanosecond.
            (rate.as_f64().unwrap() - expected).abs() <= expected * 1e-2 + 1e-9
        };
        assert!(close(&product["args"]["gflop_per_s"], 2.0 * 128.0_f64.powi(3)), "{what}: {product}");
        // Two operands and the result.
        assert_eq!(product["args"]["bytes"].as_u64().unwrap(), 3 * 4 * 128 * 128, "{what}: {product}");
        assert!(close(&product["args"]["gb_per_s"], 3.0 * 4.0 * 128.0 * 128.0), "{what}: {product}");
        // On one device nothing runs at the same time, and nothing before it was asked for.
        let mut end = 0.0;
        for kernel in &kernels {
            let start = kernel["ts"].as_f64().unwrap();
            assert!(start >= end - 0.01, "{what}: {kernel} begins before {end}");
            end = start + kernel["dur"].as_f64().unwrap();
        }
        let host = spans(&trace, "host");
        for wanted in ["record matmul", "write tensor", "read reduce"] {
            let found = host.iter().any(|span| span["name"].as_str().unwrap().starts_with(wanted));
            assert!(found, "{what}: no {wanted} in {host:#?}");
        }
        let compiled = host.iter().any(|span| span["name"].as_str().unwrap().starts_with("compile"));
        assert!(!compiled, "{what}: all was compiled before");
        let rows = profile.rows();
        assert!(rows.iter().all(|row| row.count >= 1 && row.device == device.name), "{what}: {rows:?}");
        assert!(rows.windows(2).all(|pair| pair[0].total >= pair[1].total));
        assert!(profile.to_string().contains("matmul"), "{profile}");
        // Afterwards nothing is collected.
        let ((), empty) = engine.profile(|| ());
        assert!(empty.rows().is_empty());
    }
}

#[test]
fn a_program_writes_its_own_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let mut config = Config::default();
    config.set("profile", path.to_str().unwrap()).unwrap();
    assert_eq!(config.get("trace").as_deref(), path.to_str());
    assert_eq!(config.get("profile").as_deref(), Some("true"));
    let engine = Engine::builder().config(config).backend("cpu").build().unwrap();
    work(&engine);
    // Of an app's own work too.
    engine.span().end("read a block", 5);
    drop(engine);
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert!(!spans(&trace, "kernel").is_empty(), "{trace:#}");
    assert!(spans(&trace, "host").iter().any(|span| span["name"] == "read a block"), "{trace:#}");
    // A folder that is not there is told before any work.
    let mut config = Config::default();
    config.set("trace", folder.path().join("no/such/trace.json").to_str().unwrap()).unwrap();
    let error = Engine::builder().config(config).backend("cpu").build().unwrap_err();
    assert!(error.to_string().contains("trace"), "{error}");
    assert!(Config::default().set("trace", "trace.txt").is_err());
    assert!(Config::default().set("profile", "trace.txt").is_err());
}

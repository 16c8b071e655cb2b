//! A device that must give known answers first, and one whose compiler does not come back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cantus::backend::Registry;
use cantus::engine::{Builder, EventKind};
use cantus::{Config, Engine, Error, Fallback, Kernel};

use super::faulty::{Fault, FaultyBackend};
use super::{SAXPY, happened, saxpy, within};

fn builder(fault: Fault) -> Builder {
    let mut registry = Registry::empty();
    registry.register(Arc::new(FaultyBackend { fault, counts: Arc::default() }));
    registry.register(Arc::new(cantus::backend::cpu::CpuBackend::new()));
    Engine::builder().registry(registry).config(Config::default()).without_cache()
}

/// Returns the device where saxpy ran; its numbers are right.
fn home(engine: &Engine, kernel: &Kernel) -> String {
    let (x, y) = (engine.tensor(&[1.0_f32, 2.0]).unwrap(), engine.tensor(&[10.0_f32, 20.0]).unwrap());
    saxpy(engine, kernel, &x, &y).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [12.0, 24.0]);
    y.device_name()
}

#[test]
fn what_is_not_answered_yet_counts_as_wrong_and_is_asked_beside() {
    within(Duration::from_secs(100), || {
        // Some thirty kernels: to ask them all takes longer than opening waits.
        let fault = Fault::Unproven(Duration::from_millis(40));
        let kernel = Kernel::from_wgsl(SAXPY).unwrap();
        let started = Instant::now();
        let first = builder(fault).build().unwrap();
        let opened = started.elapsed();
        assert_eq!(first.selected().device.name, "unproven");
        assert!(opened < Duration::from_millis(800), "opening took {opened:?}");
        assert_ne!(home(&first, &kernel), "unproven");
        let fell_back = happened(&first, EventKind::FellBack);
        assert!(fell_back.iter().any(|text| text.contains("has not shown yet")), "{fell_back:?}");
        while home(&first, &kernel) != "unproven" {
            std::thread::sleep(Duration::from_millis(20));
        }
        // An engine that is dropped meanwhile does not wait for the rest, and the next one goes on.
        drop(first);
        let next = builder(fault).build().unwrap();
        assert_eq!(home(&next, &kernel), "unproven");
    });
}

#[test]
fn requested_by_name_the_kernel_waits_for_the_answers() {
    let engine = builder(Fault::Stuck(Duration::ZERO)).backend("faulty").build().unwrap();
    assert_eq!(home(&engine, &Kernel::from_wgsl(SAXPY).unwrap()), "faulty");
}

#[test]
fn a_compiler_that_takes_too_long_is_left_behind() {
    within(Duration::from_secs(100), || {
        let fault = Fault::Stuck(Duration::from_secs(6));
        let kernel = Kernel::from_wgsl(SAXPY).unwrap();
        let limited = || builder(fault).backend("faulty").timeout(Duration::from_millis(500));
        let engine = limited().build().unwrap();
        let started = Instant::now();
        assert_ne!(home(&engine, &kernel), "faulty");
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        let fell_back = happened(&engine, EventKind::FellBack);
        assert!(
            fell_back.iter().any(|text| text.contains("compiling saxpy did not finish within 500 ms")),
            "{fell_back:?}"
        );
        let alone = limited().fallback(Fallback::Never).build().unwrap();
        let (x, y) = (alone.tensor(&[1.0_f32]).unwrap(), alone.tensor(&[1.0_f32]).unwrap());
        let error = saxpy(&alone, &kernel, &x, &y).unwrap_err();
        assert!(matches!(error, Error::Timeout { milliseconds: 500, .. }), "{error}");
        assert_eq!(y.to_vec::<f32>().unwrap(), [1.0], "the input is unharmed");
    });
}

#[test]
fn a_compiler_that_takes_the_processor_is_left_behind() {
    within(Duration::from_secs(100), || {
        let kernel = Kernel::from_wgsl(SAXPY).unwrap();
        let limited = |fault| builder(fault).backend("faulty").stall_limit(Duration::from_millis(200)).build().unwrap();
        let engine = limited(Fault::Busy(Duration::from_secs(3)));
        assert_ne!(home(&engine, &kernel), "faulty");
        let fell_back = happened(&engine, EventKind::FellBack);
        let text = "took more than 200 ms of the processor's time";
        assert!(fell_back.iter().any(|event| event.contains(text)), "{fell_back:?}");
        // The device goes on with other kernels, and waiting takes nothing of the processor.
        let patient = limited(Fault::Stuck(Duration::from_millis(600)));
        assert_eq!(home(&patient, &kernel), "faulty");
    });
}

//! The poll thread against a device of this machine.

use std::sync::Arc;
use std::time::Duration;

use web_time::Instant;

use super::poll::Poller;
use super::{WgpuBackend, raw_device};
use crate::backend::health::Health;
use crate::backend::signal::{Failure, Signal};
use crate::backend::{Backend, OpenOptions};

/// The first adapter's device, or nothing on a machine without one (the backend's own tests list that).
fn device() -> Option<(wgpu::Device, wgpu::Queue)> {
    let backend = WgpuBackend::new();
    let device = pollster::block_on(backend.open(0, &OpenOptions::default())).ok()?;
    let (device, queue) = raw_device(&*device)?;
    Some((device.clone(), queue.clone()))
}

/// Waits for an answer, but not for ever.
fn answer_within(signal: &Signal, limit: Duration) -> Option<Result<(), Failure>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let signal = signal.clone();
    std::thread::spawn(move || sender.send(pollster::block_on(signal)));
    receiver.recv_timeout(limit).ok()
}

#[test]
fn a_wait_that_is_never_answered_ends_at_its_deadline() {
    let Some((device, queue)) = device() else {
        eprintln!("not run: this machine has no adapter");
        return;
    };
    let health = Arc::new(Health::new("a device".to_owned(), None));
    let poller = Poller::new(device, health.clone(), None);
    let (silent, patient) = (Signal::new(), Signal::new());
    let now = Instant::now();
    poller.watch(&patient, queue.submit([]), None);
    poller.watch(&silent, queue.submit([]), Some(now + Duration::from_millis(150)));
    assert_eq!(answer_within(&silent, Duration::from_secs(5)), Some(Err(Failure::Timeout)));
    assert!(now.elapsed() >= Duration::from_millis(150));
    // The device counts as lost, and whoever else waits for it hears of that.
    assert!(health.is_lost());
    assert!(matches!(answer_within(&patient, Duration::from_secs(5)), Some(Err(Failure::Lost | Failure::Timeout))));
}

#[test]
fn a_wait_that_is_never_answered_ends_without_a_deadline_too() {
    let Some((device, queue)) = device() else {
        eprintln!("not run: this machine has no adapter");
        return;
    };
    let health = Arc::new(Health::new("a device".to_owned(), None));
    let poller = Poller::new(device, health.clone(), None);
    let silent = Signal::new();
    poller.watch(&silent, queue.submit([]), None);
    assert_eq!(answer_within(&silent, Duration::from_secs(30)), Some(Err(Failure::Silent)));
    assert!(!health.is_lost());
}

#[test]
fn waits_end_with_the_device() {
    let Some((device, queue)) = device() else {
        eprintln!("not run: this machine has no adapter");
        return;
    };
    let poller = Poller::new(device, Arc::new(Health::new("a device".to_owned(), None)), None);
    let silent = Signal::new();
    poller.watch(&silent, queue.submit([]), None);
    drop(poller);
    assert_eq!(answer_within(&silent, Duration::from_secs(5)), Some(Err(Failure::Lost)));
}

#[test]
fn the_first_answer_stands() {
    let signal = Signal::new();
    signal.answer(Ok(()));
    signal.answer(Err(Failure::Lost));
    assert_eq!(answer_within(&signal, Duration::from_secs(1)), Some(Ok(())));
}

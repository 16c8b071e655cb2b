//! Waiting for wgpu, against a device of this machine.

use std::future::Future as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_channel::oneshot;

use super::work::{Fault, TIMES_OVERTAKEN, Work};
use super::{WgpuBackend, raw_device};
use crate::backend::{Backend, OpenOptions};
use crate::health::Health;
use crate::wait::{Awaited as _, Ended, Waiter};

/// A waiter of the first adapter's device, with work that nobody answers; or nothing on a machine without one (the backend's own tests list
/// that).
struct Silence {
    waiter: Arc<Waiter<Work>>,
    health: Arc<Health>,
    device: wgpu::Device,
    queue: wgpu::Queue,
    senders: Vec<oneshot::Sender<bool>>,
}

impl Silence {
    fn new() -> Option<Self> {
        let backend = WgpuBackend::new();
        let opened = pollster::block_on(backend.open(0, &OpenOptions::default())).ok();
        let Some((device, queue)) = opened.as_deref().and_then(raw_device) else {
            cantus_skips::not_run("what wgpu says of a device", "this machine has no adapter");
            return None;
        };
        let health = Arc::new(Health::new("a device".to_owned(), None));
        let waiter = Arc::new(Waiter::new("test", health.clone(), Duration::ZERO));
        Some(Self { waiter, health, device: device.clone(), queue: queue.clone(), senders: Vec::new() })
    }

    /// Waits for work that ended but is never answered.
    fn wait(&mut self, deadline: Option<Instant>) -> Receiver<Ended<Fault>> {
        let (work, sender) = Work::new(&self.device, None, self.queue.submit([]));
        self.senders.push(sender);
        let waiter = self.waiter.clone();
        let (ended, end) = channel();
        std::thread::spawn(move || ended.send(pollster::block_on(waiter.wait(0, Arc::new(work), deadline))));
        end
    }
}

#[test]
fn a_wait_that_is_never_answered_ends_at_its_deadline() {
    let Some(mut silence) = Silence::new() else { return };
    let now = Instant::now();
    let patient = silence.wait(None);
    let late = silence.wait(Some(now + Duration::from_millis(150)));
    assert!(matches!(late.recv_timeout(Duration::from_secs(5)), Ok(Ended::Late)));
    assert!(now.elapsed() >= Duration::from_millis(150));
    // The device counts as lost, and whoever else waits for it hears of that.
    assert!(silence.health.is_lost());
    assert!(matches!(patient.recv_timeout(Duration::from_secs(5)), Ok(Ended::Lost)));
}

#[test]
fn a_wait_that_is_never_answered_ends_without_a_deadline_too() {
    let Some(mut silence) = Silence::new() else { return };
    let wait = silence.wait(None);
    assert!(matches!(wait.recv_timeout(Duration::from_secs(30)), Ok(Ended::Failed(Fault::Silent))));
    assert!(!silence.health.is_lost());
}

#[test]
fn where_an_answer_is_dropped_the_end_of_the_work_counts() {
    let Some(mut silence) = Silence::new() else { return };
    let wait = silence.wait(None);
    silence.senders.clear();
    assert!(matches!(wait.recv_timeout(Duration::from_secs(5)), Ok(Ended::Passed)));
}

/// wgpu panics in a poll whose wait ran out of time when another thread's poll finds the end of that work in between (`work.rs`). Waits that
/// last no time, beside threads that poll all the time, meet that often.
#[test]
fn a_poll_that_another_overtakes_loses_nothing() {
    let Some(silence) = Silence::new() else { return };
    let (device, queue) = (&silence.device, &silence.queue);
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 1 << 16,
        usage: wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let ended = AtomicBool::new(false);
    let before = TIMES_OVERTAKEN.load(Ordering::Relaxed);
    let overtaken = || TIMES_OVERTAKEN.load(Ordering::Relaxed) - before;
    let start = Instant::now();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let _ = device.poll(wgpu::PollType::Poll);
                }
            });
        }
        while overtaken() < 2 && start.elapsed() < Duration::from_secs(5) {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.clear_buffer(&buffer, 0, None);
            let (mut work, answer) = Work::new(device, None, queue.submit([encoder.finish()]));
            work.slice = Duration::ZERO;
            queue.on_submitted_work_done(move || answer.send(true).unwrap());
            loop {
                match work.passed() {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(fault) => panic!("{fault:?}"),
                }
                assert!(work.block().is_ok());
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
    if overtaken() == 0 {
        cantus_skips::not_run("a poll that is overtaken", "no poll of this driver was");
    }
}

#[test]
fn a_waiter_ends_while_its_work_is_not_answered() {
    let Some(silence) = Silence::new() else { return };
    let (work, _sender) = Work::new(&silence.device, None, silence.queue.submit([]));
    let waiter = silence.waiter;
    let mut wait = Box::pin(waiter.wait(0, Arc::new(work), None));
    let pending =
        pollster::block_on(std::future::poll_fn(|context| Poll::Ready(wait.as_mut().poll(context).is_pending())));
    assert!(pending);
    drop(wait);
    let (ended, end) = channel();
    std::thread::spawn(move || {
        drop(waiter);
        ended.send(())
    });
    assert!(end.recv_timeout(Duration::from_secs(5)).is_ok());
}

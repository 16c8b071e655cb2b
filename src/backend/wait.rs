//! Waiting for a device's queue without holding up the caller's thread. Knows no API: what is waited for is an [`Awaited`].

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_channel::oneshot;

/// So long the caller itself looks: most kernels and small transfers are done by then, and a change of threads costs as much.
const LOOK: Duration = Duration::from_micros(30);
/// Between looks when there is a time limit.
const SHORTEST_SLEEP: Duration = Duration::from_micros(20);
const LONGEST_SLEEP: Duration = Duration::from_millis(2);

/// A point in a queue.
pub(super) trait Awaited: Send + 'static {
    /// What the driver may report instead.
    type Fault: Send;

    /// Has the queue passed it?
    fn passed(&self) -> Result<bool, Self::Fault>;

    /// Sleeps until it has.
    fn block(&self) -> Result<(), Self::Fault>;
}

impl<E: Awaited + Sync> Awaited for Arc<E> {
    type Fault = E::Fault;

    fn passed(&self) -> Result<bool, E::Fault> {
        (**self).passed()
    }

    fn block(&self) -> Result<(), E::Fault> {
        (**self).block()
    }
}

/// How a wait ended.
#[derive(Debug)]
pub(super) enum Ended<F> {
    /// The queue has passed the point.
    Passed,
    /// The time limit passed first.
    Late,
    /// The driver reports a failure of what came before.
    Failed(F),
}

struct Wait<E: Awaited> {
    event: E,
    deadline: Option<Instant>,
    done: oneshot::Sender<Ended<E::Fault>>,
}

/// A thread that waits for events in the order of the queue. It starts with the first wait.
pub(super) struct Waiter<E: Awaited> {
    name: &'static str,
    waits: Mutex<Option<Sender<Wait<E>>>>,
}

impl<E: Awaited> Waiter<E> {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, waits: Mutex::new(None) }
    }

    /// Waits for an event.
    pub(super) async fn wait(&self, event: E, deadline: Option<Instant>) -> Ended<E::Fault> {
        let start = Instant::now();
        loop {
            if let Some(ended) = look(&event) {
                return ended;
            }
            if start.elapsed() >= LOOK {
                break;
            }
            std::hint::spin_loop();
        }
        let (done, outcome) = oneshot::channel();
        match self.send(Wait { event, deadline, done }) {
            Ok(()) => outcome.await.unwrap_or(Ended::Late),
            // No thread is available: the caller waits itself.
            Err(wait) => sit_out(&wait.event, wait.deadline),
        }
    }

    fn send(&self, wait: Wait<E>) -> Result<(), Wait<E>> {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if waits.is_none() {
            let (sender, receiver) = channel();
            let name = format!("cantus-{}", self.name);
            if std::thread::Builder::new().name(name).spawn(move || serve(&receiver)).is_err() {
                return Err(wait);
            }
            *waits = Some(sender);
        }
        match waits.as_ref() {
            Some(sender) => sender.send(wait).map_err(|error| error.0),
            None => Err(wait),
        }
    }
}

fn serve<E: Awaited>(waits: &Receiver<Wait<E>>) {
    for Wait { event, deadline, done } in waits {
        let ended = sit_out(&event, deadline);
        // The event may hold the device: it goes before the asker goes on.
        drop(event);
        // The asker may be gone.
        let _ = done.send(ended);
    }
}

fn look<E: Awaited>(event: &E) -> Option<Ended<E::Fault>> {
    match event.passed() {
        Ok(true) => Some(Ended::Passed),
        Ok(false) => None,
        Err(fault) => Some(Ended::Failed(fault)),
    }
}

/// Waits on this thread.
fn sit_out<E: Awaited>(event: &E, deadline: Option<Instant>) -> Ended<E::Fault> {
    let Some(deadline) = deadline else {
        return match event.block() {
            Ok(()) => Ended::Passed,
            Err(fault) => Ended::Failed(fault),
        };
    };
    let mut sleep = SHORTEST_SLEEP;
    loop {
        if let Some(ended) = look(event) {
            return ended;
        }
        let now = Instant::now();
        if now >= deadline {
            return Ended::Late;
        }
        std::thread::sleep(sleep.min(deadline - now));
        sleep = (sleep * 2).min(LONGEST_SLEEP);
    }
}

//! Devices that missed a time limit: whoever used them goes on, and nothing is taken from under the driver. They are held here, with their
//! memory and threads, until their work has ended, which may be never.

/// The memory and devices that this process holds because they missed a time limit and are still at work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detached {
    /// The number of devices.
    pub devices: usize,
    /// Their memory in bytes.
    pub bytes: u64,
}

/// Returns the devices of this process that missed a time limit and are still at work. An engine that used one ends at once; the device, its memory
/// and its threads stay until the work has ended, and are given back then.
///
/// ```
/// let held = cantus::backend::detached();
/// println!("{} devices hang, with {} bytes", held.devices, held.bytes);
/// ```
#[must_use]
pub fn detached() -> Detached {
    #[cfg(not(target_arch = "wasm32"))]
    return owner::figures();
    // The browser gives up devices that hang.
    #[cfg(target_arch = "wasm32")]
    Detached::default()
}

#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub use owner::{AtWork, adopt};

#[cfg(not(target_arch = "wasm32"))]
mod owner {
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    use super::Detached;

    /// Between looks.
    const SHORTEST_SLEEP: Duration = Duration::from_millis(10);
    const LONGEST_SLEEP: Duration = Duration::from_secs(1);

    /// The shared parts of a device whose work may go on for ever.
    pub trait AtWork: Send + Sync {
        /// Has everything ended that was put in? Never blocks. A device that is gone is at work no more.
        fn has_ended(&self) -> bool;
        /// Its memory in bytes.
        fn held_bytes(&self) -> u64;
    }

    struct Owned {
        devices: Vec<Arc<dyn AtWork>>,
        watched: bool,
    }

    static OWNED: Mutex<Owned> = Mutex::new(Owned { devices: Vec::new(), watched: false });

    fn lock() -> MutexGuard<'static, Owned> {
        OWNED.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn figures() -> Detached {
        let owned = lock();
        Detached { devices: owned.devices.len(), bytes: owned.devices.iter().map(|device| device.held_bytes()).sum() }
    }

    /// Holds a device until its work has ended.
    pub fn adopt(device: Arc<dyn AtWork>) {
        let mut owned = lock();
        owned.devices.push(device);
        if !owned.watched {
            // Without a thread it is held for ever, which is sound too.
            owned.watched = cantus_base::threads::spawn("cantus-detached".to_owned(), Box::new(watch)).is_ok();
        }
    }

    /// Releases finished devices, until none is left.
    fn watch() {
        let mut sleep = SHORTEST_SLEEP;
        loop {
            std::thread::sleep(sleep);
            let (ended, done) = {
                let mut owned = lock();
                let (ended, left): (Vec<_>, _) = owned.devices.drain(..).partition(|device| device.has_ended());
                owned.devices = left;
                owned.watched = !owned.devices.is_empty();
                (ended, !owned.watched)
            };
            sleep = if ended.is_empty() { (sleep * 2).min(LONGEST_SLEEP) } else { SHORTEST_SLEEP };
            // Here the last reference may go, and with it the device.
            drop(ended);
            if done {
                return;
            }
        }
    }
}

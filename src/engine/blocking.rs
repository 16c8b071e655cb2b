//! The blocking forms: a future run to its end on this thread, which devices can see.

use std::cell::Cell;

thread_local! {
    static BLOCKED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a future to its end. What it waits for may run on this thread.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            BLOCKED.set(self.0);
        }
    }
    let _back = Back(BLOCKED.replace(true));
    pollster::block_on(future)
}

/// Whether this thread waits for a future of [`block_on`].
pub(crate) fn is_blocked() -> bool {
    BLOCKED.get()
}

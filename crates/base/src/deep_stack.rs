//! Work that recurses over a kernel: naga, and the drivers' compilers.

use crate::listed::Listed;

/// The reason why there is no result.
pub enum Failure {
    /// No thread could be started.
    NoThread(std::io::Error),
    /// The work panicked (a defect of the compiler), with this text on one line.
    Panic(String),
}

/// Runs work on a thread whose stack is deep, so that hostile text does not overflow the caller's, and turns a panic into an error. What is
/// called by such work stays on its thread. On the web there are no threads: the work runs here.
#[cfg(not(target_arch = "wasm32"))]
pub fn run<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    let (mut work, mut result) = (Some(work), None);
    call(name, &mut || result = work.take().map(|work| work()))?;
    result.ok_or_else(|| Failure::Panic("the work was not begun".to_owned()))
}

/// [`run`] for work of any kind.
#[cfg(not(target_arch = "wasm32"))]
fn call(name: &str, work: &mut (dyn FnMut() + Send)) -> Result<(), Failure> {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const STACK_BYTES: usize = 64 << 20;
    silence();
    let failed = |panic: Box<dyn std::any::Any + Send>| Failure::Panic(panic_text(&*panic));
    if IS_DEEP.get() {
        // As with a thread, what the work held is dropped, and the caller sees only an error.
        return catch_unwind(AssertUnwindSafe(work)).map_err(failed);
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
        let deep = || {
            IS_DEEP.set(true);
            work()
        };
        thread.spawn_scoped(scope, deep).map_err(Failure::NoThread)?.join().map_err(failed)
    })
}

#[cfg(not(target_arch = "wasm32"))]
thread_local! {
    /// This is a thread with a deep stack.
    static IS_DEEP: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Panics on deep stacks are errors: nothing is printed for them. All others go to the hook that was there before.
#[cfg(not(target_arch = "wasm32"))]
fn silence() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    if std::thread::panicking() {
        // The hook cannot be changed now.
        return;
    }
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if IS_DEEP.try_with(std::cell::Cell::get).unwrap_or(false) {
                tracing::debug!("{panic}");
            } else {
                before(panic);
            }
        }));
    });
}

#[cfg(target_arch = "wasm32")]
pub fn run<T>(_name: &str, work: impl FnOnce() -> T) -> Result<T, Failure> {
    Ok(work())
}

/// Returns the text of a caught panic, on one line.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a text").lines().map(str::trim).listed().join(" ")
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{Failure, run};

    /// The hook that was set before is called for all other panics. It counts only those of this test: others run beside it.
    /// No other test of this crate may call `run`: the first call sets the hook over that of this test.
    #[test]
    fn nothing_is_printed_of_panics_here() {
        struct Ours(&'static str);
        static PRINTED: AtomicU32 = AtomicU32::new(0);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let text = panic.payload().downcast_ref::<String>().map(String::as_str);
            if panic.payload().is::<Ours>() || text == Some("ours: 1") {
                PRINTED.fetch_add(1, Ordering::Relaxed);
            }
            before(panic);
        }));
        let failed = run("deep", || run::<u32>("deeper", || std::panic::panic_any(Ours("inner"))));
        assert!(matches!(failed, Ok(Err(Failure::Panic(_)))));
        let failed = run::<u32>("deep", || panic!("ours: {}", 1));
        assert!(matches!(failed, Err(Failure::Panic(text)) if text == "ours: 1"));
        let failed = run::<u32>("deep", || std::panic::panic_any("on\n  two lines"));
        assert!(matches!(failed, Err(Failure::Panic(text)) if text == "on two lines"));
        assert_eq!(PRINTED.load(Ordering::Relaxed), 0);
        let told = std::thread::spawn(|| std::panic::panic_any(Ours("outer"))).join();
        assert!(told.is_err_and(|panic| panic.downcast_ref::<Ours>().is_some_and(|ours| ours.0 == "outer")));
        assert_eq!(PRINTED.load(Ordering::Relaxed), 1);
    }
}

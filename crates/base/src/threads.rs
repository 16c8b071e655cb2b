//! Work spread over the processor's threads. The caller begins at once, and the others take part as they wake: what is over before they do costs
//! nobody a wait. Which threads those are is said by [`within`]; without it, they are rayon's of wherever the caller is. On the web they are the
//! workers that came to help.

use std::sync::{Mutex, PoisonError};

#[cfg(all(feature = "cpu", not(target_arch = "wasm32")))]
pub use shared::{Pool, alone, within};

#[cfg(all(feature = "cpu", target_arch = "wasm32", target_feature = "atomics"))]
pub use shared::workers::help;

#[cfg(all(feature = "cpu", target_arch = "wasm32", target_feature = "atomics"))]
pub use shared::workers::alone;

#[cfg(all(feature = "cpu", any(not(target_arch = "wasm32"), target_feature = "atomics")))]
pub use shared::count;
#[cfg(all(feature = "cpu", any(not(target_arch = "wasm32"), target_feature = "atomics")))]
use shared::spread;

#[cfg(not(all(feature = "cpu", any(not(target_arch = "wasm32"), target_feature = "atomics"))))]
pub use one::count;
#[cfg(not(all(feature = "cpu", any(not(target_arch = "wasm32"), target_feature = "atomics"))))]
use one::spread;

#[cfg(all(feature = "cpu", target_arch = "wasm32", not(target_feature = "atomics")))]
pub use one::alone;

/// Starts a thread for long work. It is not generic, so the code exists once for all kinds of work.
///
/// # Errors
/// Those of the system.
#[cfg(not(target_arch = "wasm32"))]
pub fn spawn(name: String, work: Box<dyn FnOnce() + Send>) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name(name).spawn(work)
}

/// The processor's time that a thread has taken, seen from others. Where the system doesn't tell it, the time that has passed.
#[cfg(not(target_arch = "wasm32"))]
pub struct ThreadTime {
    #[cfg(target_os = "linux")]
    clock: Option<libc::clockid_t>,
    since: std::time::Instant,
}

#[cfg(not(target_arch = "wasm32"))]
impl ThreadTime {
    /// Returns the calling thread's.
    #[must_use]
    pub fn here() -> Self {
        #[cfg(target_os = "linux")]
        let clock = {
            let mut clock = 0;
            // SAFETY: the thread is the one that runs, and the call writes a number that lives until it returns.
            let outcome = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
            (outcome == 0).then_some(clock)
        };
        Self {
            #[cfg(target_os = "linux")]
            clock,
            since: std::time::Instant::now(),
        }
    }

    /// Returns the time so far; nothing is known of a thread that has ended.
    #[must_use]
    pub fn elapsed(&self) -> Option<std::time::Duration> {
        #[cfg(target_os = "linux")]
        if let Some(clock) = self.clock {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the call takes a number, and writes a structure that lives until it returns.
            if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
                return None;
            }
            let seconds = u64::try_from(time.tv_sec).ok()?;
            return Some(std::time::Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?));
        }
        Some(self.since.elapsed())
    }
}

/// Returns how many of `total` units a task takes, some `least` of them: no thread waits for the only one that has a last task.
#[must_use]
pub fn share(total: usize, least: usize) -> usize {
    let (tasks, threads) = (total.div_ceil(least.max(1)), count().max(1));
    let even = if tasks > threads { tasks.next_multiple_of(threads) } else { tasks };
    total.div_ceil(even.max(1)).max(1)
}

/// Calls `work` for each number below `tasks`, in any order, on any of the threads.
pub fn each(tasks: usize, work: impl Fn(usize) + Sync) {
    spread(tasks, &|task| {
        work(task);
        true
    });
}

/// As [`each`], for work that may fail: then no further task begins.
///
/// # Errors
/// One of the failures.
pub fn try_each<E: Send>(tasks: usize, work: impl Fn(usize) -> Result<(), E> + Sync) -> Result<(), E> {
    let failure = Mutex::new(None);
    spread(tasks, &|task| match work(task) {
        Ok(()) => true,
        Err(error) => note(&failure, error),
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Keeps the first failure, and ends the work. Out of line: every kind of work shares it.
#[cold]
#[inline(never)]
fn note<E>(failure: &Mutex<Option<E>>, error: E) -> bool {
    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    false
}

/// Calls `work` with the number of each stretch of `length` values, and the stretch.
pub fn each_chunk<T: Send>(values: &mut [T], length: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    struct Start<T>(*mut T);
    // SAFETY: each task makes one stretch of its own of it, and values may go to other threads.
    unsafe impl<T: Send> Sync for Start<T> {}
    impl<T> Start<T> {
        fn get(&self) -> *mut T {
            self.0
        }
    }
    let (count, length) = (values.len(), length.max(1));
    let start = Start(values.as_mut_ptr());
    each(count.div_ceil(length), |place| {
        let from = place * length;
        // SAFETY: stretches lie within the values, and no two have an element in common.
        work(place, unsafe { std::slice::from_raw_parts_mut(start.get().add(from), length.min(count - from)) });
    });
}

/// Returns the results of `count` tasks, in their order.
pub fn map<T: Send>(count: usize, task: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut results = Vec::new();
    results.resize_with(count, || None);
    each_chunk(&mut results, 1, |place, result| {
        if let [result] = result {
            *result = Some(task(place));
        }
    });
    results.into_iter().flatten().collect()
}

/// The implementation with one thread.
#[cfg(not(all(feature = "cpu", any(not(target_arch = "wasm32"), target_feature = "atomics"))))]
mod one {
    pub fn count() -> usize {
        1
    }

    #[cfg(feature = "cpu")]
    pub fn alone<R>(work: impl FnOnce() -> R) -> R {
        work()
    }

    pub(super) fn spread(tasks: usize, work: &(dyn Fn(usize) -> bool + Sync)) {
        let _ = (0..tasks).all(work);
    }
}

#[cfg(all(feature = "cpu", any(not(target_arch = "wasm32"), target_feature = "atomics")))]
mod shared {
    use std::any::Any;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::thread::Thread;

    #[cfg(not(target_arch = "wasm32"))]
    pub use pools::{Pool, alone, count, within};
    #[cfg(target_arch = "wasm32")]
    pub use workers::count;

    #[cfg(not(target_arch = "wasm32"))]
    use pools as others;
    #[cfg(target_arch = "wasm32")]
    use workers as others;

    /// Looks at whether the others are done before the caller sleeps.
    const SPINS: u32 = 4096;
    /// Threads of the system: pools of the devices, and rayon's.
    #[cfg(not(target_arch = "wasm32"))]
    mod pools {
        use std::cell::RefCell;
        use std::sync::atomic::{AtomicUsize, Ordering};
        use std::sync::{Arc, Mutex, PoisonError};
        use std::time::{Duration, Instant};

        use rayon::ThreadPool;

        use super::Shared;

        /// The time for which a thread that has helped looks for more work before it sleeps: waking one takes as long.
        const AWAKE: Duration = Duration::from_micros(50);

        /// Threads that share a caller's work.
        pub struct Pool {
            threads: ThreadPool,
            awake: Awake,
        }

        /// The threads that look for work, and what there is.
        #[derive(Default)]
        struct Awake {
            count: AtomicUsize,
            /// Changes with each piece of work.
            turn: AtomicUsize,
            work: Mutex<Option<Arc<Shared>>>,
        }

        impl Pool {
            pub fn new(threads: ThreadPool) -> Arc<Self> {
                Arc::new(Self { threads, awake: Awake::default() })
            }

            /// Runs something on one of the threads.
            pub fn spawn(&self, work: impl FnOnce() + Send + 'static) {
                self.threads.spawn(work);
            }

            /// Asks for helpers: those that are awake, and sleeping ones.
            fn ask(self: &Arc<Self>, helpers: usize, shared: &Arc<Shared>) {
                let awake = self.awake.count.load(Ordering::Acquire).min(helpers);
                if awake > 0 {
                    *self.awake.lock() = Some(shared.clone());
                    self.awake.turn.fetch_add(1, Ordering::Release);
                }
                for _ in awake..helpers {
                    let (pool, shared) = (self.clone(), shared.clone());
                    self.threads.spawn(move || {
                        shared.help();
                        drop(shared);
                        pool.awake.linger();
                    });
                }
            }
        }

        impl Awake {
            fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<Shared>>> {
                self.work.lock().unwrap_or_else(PoisonError::into_inner)
            }

            /// Helps with what comes until nothing has come for a while. Who asked for this thread and finds it gone does the work alone.
            fn linger(&self) {
                let mut turn = self.turn.load(Ordering::Acquire);
                self.count.fetch_add(1, Ordering::AcqRel);
                let mut since = Instant::now();
                while since.elapsed() < AWAKE {
                    for _ in 0..32 {
                        std::hint::spin_loop();
                    }
                    // Whoever waits for this processor, such as the thread that records what comes next, has it first.
                    std::thread::yield_now();
                    let now = self.turn.load(Ordering::Acquire);
                    if now != turn {
                        turn = now;
                        self.count.fetch_sub(1, Ordering::AcqRel);
                        let work = self.lock().clone();
                        if let Some(work) = work {
                            work.help();
                        }
                        self.count.fetch_add(1, Ordering::AcqRel);
                        since = Instant::now();
                    }
                }
                self.count.fetch_sub(1, Ordering::AcqRel);
            }
        }

        /// The other threads that share a thread's work.
        #[derive(Clone)]
        enum Others {
            /// Rayon's threads of where it is.
            Around,
            Pool(Arc<Pool>),
            None,
        }

        thread_local! {
            static OTHERS: RefCell<Others> = const { RefCell::new(Others::Around) };
        }

        fn with<R>(others: Others, work: impl FnOnce() -> R) -> R {
            struct Back(Others);
            impl Drop for Back {
                fn drop(&mut self) {
                    OTHERS.replace(self.0.clone());
                }
            }
            let _back = Back(OTHERS.replace(others));
            work()
        }

        /// Runs `work` on this thread, with the threads of a pool at its side.
        pub fn within<R>(pool: &Arc<Pool>, work: impl FnOnce() -> R) -> R {
            with(Others::Pool(pool.clone()), work)
        }

        /// Runs `work` on this thread alone.
        pub fn alone<R>(work: impl FnOnce() -> R) -> R {
            with(Others::None, work)
        }

        /// Threads that work is spread over.
        pub fn count() -> usize {
            OTHERS.with_borrow(|others| match others {
                Others::Around => rayon::current_num_threads(),
                Others::Pool(pool) => pool.threads.current_num_threads(),
                Others::None => 1,
            })
        }

        /// A number of this thread among those that help.
        pub(super) fn place() -> usize {
            rayon::current_thread_index().unwrap_or(0)
        }

        /// Asks others to help.
        pub(super) fn ask(helpers: usize, shared: &Arc<Shared>) {
            match OTHERS.with_borrow(Clone::clone) {
                Others::Pool(pool) => pool.ask(helpers, shared),
                _ => (0..helpers).for_each(|_| {
                    let shared = shared.clone();
                    rayon::spawn(move || shared.help());
                }),
            }
        }

        /// Nobody is asked any more.
        pub(super) fn over(shared: &Arc<Shared>) {
            if let Others::Pool(pool) = OTHERS.with_borrow(Clone::clone) {
                pool.awake.lock().take_if(|work| Arc::ptr_eq(work, shared));
            }
        }
    }

    /// A page's web workers. They share the module's memory, and came by [`help`].
    #[cfg(target_arch = "wasm32")]
    pub mod workers {
        use std::cell::Cell;
        use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
        use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

        use super::Shared;

        thread_local! {
            static ALONE: Cell<bool> = const { Cell::new(false) };
            static PLACE: Cell<usize> = const { Cell::new(0) };
        }

        static HERE: AtomicUsize = AtomicUsize::new(0);
        /// The turn of the work, to look at without its lock.
        static TURN: AtomicU64 = AtomicU64::new(0);
        static WORK: Mutex<Work> = Mutex::new(Work { turn: 0, shared: None });
        static MORE: Condvar = Condvar::new();

        struct Work {
            /// Changes with each piece of work.
            turn: u64,
            shared: Option<Arc<Shared>>,
        }

        fn work() -> MutexGuard<'static, Work> {
            WORK.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// The number of looks for more work before a thread that has helped sleeps: some 50 µs, and waking it takes longer.
        const AWAKE: u32 = 1 << 16;

        /// Lends this thread to what is spread over threads, for good.
        pub fn help() -> ! {
            PLACE.set(HERE.fetch_add(1, Ordering::Relaxed));
            let mut seen = 0;
            loop {
                let mut looks = 0;
                while looks < AWAKE && TURN.load(Ordering::Acquire) == seen {
                    std::hint::spin_loop();
                    looks += 1;
                }
                let mut now = work();
                while now.turn == seen {
                    now = MORE.wait(now).unwrap_or_else(PoisonError::into_inner);
                }
                seen = now.turn;
                let shared = now.shared.clone();
                drop(now);
                if let Some(shared) = shared {
                    shared.help();
                }
            }
        }

        /// A number of this thread among those that help.
        pub(super) fn place() -> usize {
            PLACE.get()
        }

        /// Threads that work is spread over.
        pub fn count() -> usize {
            if ALONE.get() { 1 } else { HERE.load(Ordering::Relaxed) + 1 }
        }

        /// Runs `work` on this thread alone.
        pub fn alone<R>(work: impl FnOnce() -> R) -> R {
            let before = ALONE.replace(true);
            let result = work();
            ALONE.set(before);
            result
        }

        /// Asks others to help.
        pub(super) fn ask(_: usize, shared: &Arc<Shared>) {
            let mut work = work();
            work.turn += 1;
            work.shared = Some(shared.clone());
            TURN.store(work.turn, Ordering::Release);
            MORE.notify_all();
        }

        /// Nobody is asked any more.
        pub(super) fn over(shared: &Arc<Shared>) {
            work().shared.take_if(|known| Arc::ptr_eq(known, shared));
        }
    }

    /// The state that the participating threads share. Those that come late find no task left and touch nothing else.
    ///
    /// Each begins with a part of the tasks that is its own from call to call, so that what it wrote the last time is in its caches; then it takes
    /// what the others have left.
    pub struct Shared {
        /// The next task of each part.
        next: Vec<AtomicUsize>,
        tasks: usize,
        /// Helpers that may be at a task.
        inside: AtomicUsize,
        panic: Mutex<Option<Box<dyn Any + Send>>>,
        caller: Thread,
        work: Work,
    }

    /// A closure of the caller's stack.
    struct Work(*const (dyn Fn(usize) -> bool + Sync));

    // SAFETY: the closure is `Sync`; `spread` says when it is called.
    unsafe impl Send for Work {}
    // SAFETY: the closure is `Sync`, so threads may call it at the same time.
    unsafe impl Sync for Work {}

    impl Shared {
        /// The first task of a part; of the one behind the last, the number of tasks.
        fn first(&self, part: usize) -> usize {
            let parts = self.next.len();
            self.tasks / parts * part + part.min(self.tasks % parts)
        }

        /// Takes tasks until none is left, those of a part first.
        ///
        /// # Safety
        /// The closure lives while a task is left or one is being done.
        unsafe fn run(&self, own: usize) {
            let parts = self.next.len();
            let tasks = || {
                for part in (0..parts).map(|step| (own + step) % parts) {
                    let end = self.first(part + 1);
                    loop {
                        let task = self.next[part].fetch_add(1, Ordering::AcqRel);
                        if task >= end {
                            break;
                        }
                        // SAFETY: a task was left, and is being done now.
                        if !unsafe { (*self.work.0)(task) } {
                            self.stop();
                        }
                    }
                }
            };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(tasks)) {
                self.stop();
                self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
            }
        }

        /// Stops tasks from starting. Changes the numbers themselves: a thread that comes late must find no task left, whatever else it sees.
        fn stop(&self) {
            for (part, next) in self.next.iter().enumerate() {
                next.fetch_max(self.first(part + 1), Ordering::AcqRel);
            }
        }

        fn help(&self) {
            self.inside.fetch_add(1, Ordering::SeqCst);
            // The caller has the first part.
            let own = 1 + others::place() % (self.next.len() - 1).max(1);
            // SAFETY: the caller ends the closure's life once all numbers are behind their parts and nobody is inside. Who took a task before that was
            // inside by then.
            unsafe { self.run(own) };
            if self.inside.fetch_sub(1, Ordering::SeqCst) == 1 {
                self.caller.unpark();
            }
        }
    }

    /// Calls `work` for each number below `tasks` until one says no. Nothing of it is generic: all kinds of work share one copy, for the price of an
    /// indirect call per task.
    pub(super) fn spread(tasks: usize, work: &(dyn Fn(usize) -> bool + Sync)) {
        let helpers = count().min(tasks).saturating_sub(1);
        if helpers == 0 {
            let _ = (0..tasks).all(work);
            return;
        }
        let work: *const (dyn Fn(usize) -> bool + Sync + '_) = work;
        // SAFETY: only the lifetime changes; the closure is called as `help` says, while this function has not returned.
        let work: *const (dyn Fn(usize) -> bool + Sync + 'static) = unsafe { std::mem::transmute(work) };
        let mut shared = Shared {
            next: Vec::new(),
            tasks,
            inside: AtomicUsize::new(0),
            panic: Mutex::new(None),
            caller: std::thread::current(),
            work: Work(work),
        };
        shared.next = (0..=helpers).map(|_| AtomicUsize::new(0)).collect();
        shared.next.iter().enumerate().for_each(|(part, next)| next.store(shared.first(part), Ordering::Relaxed));
        let shared = Arc::new(shared);
        others::ask(helpers, &shared);
        // SAFETY: the closure outlives this call.
        unsafe { shared.run(0) };
        let mut spins = 0;
        while shared.inside.load(Ordering::SeqCst) > 0 {
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                // Somebody else's call may end it early: the loop looks again.
                std::thread::park();
            }
        }
        others::over(&shared);
        if let Some(panic) = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
            resume_unwind(panic);
        }
    }

    #[cfg(all(test, not(target_arch = "wasm32")))]
    mod tests {
        use super::super::try_each;
        use super::*;

        fn pools() -> Vec<Option<Arc<Pool>>> {
            let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().map(Pool::new).ok();
            vec![None, pool(1), pool(2), pool(7)]
        }

        fn by<R>(pool: Option<&Arc<Pool>>, work: impl FnOnce() -> R) -> R {
            match pool {
                Some(pool) => within(pool, work),
                None => work(),
            }
        }

        #[test]
        fn each_task_is_done_once() {
            for pool in pools() {
                for tasks in [0, 1, 2, 3, 100, 10_000] {
                    let done: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                    by(pool.as_ref(), || {
                        super::super::each(tasks, |task| {
                            done[task].fetch_add(1, Ordering::Relaxed);
                        });
                    });
                    assert!(done.iter().all(|times| times.load(Ordering::Relaxed) == 1), "{tasks} tasks");
                }
            }
        }

        #[test]
        fn threads_have_as_many_tasks() {
            for pool in pools() {
                by(pool.as_ref(), || {
                    for (total, least) in [(0, 4), (1, 4), (9, 4), (40_000, 16_384), (1_000_000, 16_384), (5, 0)] {
                        let (share, threads) = (super::super::share(total, least), count());
                        let tasks = total.div_ceil(share);
                        assert!(2 * share >= least.min(total) && share <= total.max(1), "{total} {least}: {share}");
                        assert!(
                            tasks <= threads || tasks.next_multiple_of(threads) - tasks < threads.min(3),
                            "{total} {least}"
                        );
                    }
                });
            }
        }

        #[test]
        fn tasks_within_tasks_and_from_many_threads() {
            for pool in pools() {
                let sum = AtomicUsize::new(0);
                std::thread::scope(|scope| {
                    for _ in 0..4 {
                        scope.spawn(|| {
                            by(pool.as_ref(), || {
                                for _ in 0..50 {
                                    super::super::each(8, |a| {
                                        super::super::each(8, |b| {
                                            sum.fetch_add(a * b, Ordering::Relaxed);
                                        });
                                    });
                                }
                            });
                        });
                    }
                });
                assert_eq!(sum.into_inner(), 4 * 50 * 28 * 28);
            }
        }

        #[test]
        fn the_first_failure_ends_it() {
            for pool in pools() {
                let done = AtomicUsize::new(0);
                let result = by(pool.as_ref(), || {
                    try_each(1_000_000, |task| {
                        done.fetch_add(1, Ordering::Relaxed);
                        if task == 10 { Err(task) } else { Ok(()) }
                    })
                });
                assert_eq!(result, Err(10));
                assert!(done.into_inner() < 1_000_000);
            }
        }

        #[test]
        fn a_panic_reaches_the_caller() {
            for pool in pools() {
                let result = catch_unwind(AssertUnwindSafe(|| {
                    by(pool.as_ref(), || super::super::each(64, |task| assert!(task != 40, "as expected")));
                }));
                assert!(result.is_err());
                // And the threads are there as before.
                let count = AtomicUsize::new(0);
                by(pool.as_ref(), || {
                    super::super::each(64, |_| {
                        count.fetch_add(1, Ordering::Relaxed);
                    });
                });
                assert_eq!(count.into_inner(), 64);
            }
        }
    }
}

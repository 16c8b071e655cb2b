//! A context with its one stream; memory, and events. All work is in the stream's order, so memory that nothing holds any more serves the
//! next work at once; it goes back to the device when the stream is idle.

use std::collections::{HashMap, VecDeque};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::abi::{self, Fault};
use super::library::{Library, Pointer};
use crate::wait::Awaited;

/// Bytes that are kept for the next work.
const KEPT: usize = 1 << 30;
/// Between looks at a stream.
const SHORTEST_SLEEP: Duration = Duration::from_micros(20);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// A context, which a thread enters before it calls.
pub(super) struct Context {
    pub(super) library: Arc<Library>,
    context: Pointer,
}

// SAFETY: AscendCL's objects may be used from any thread that has entered the context.
unsafe impl Send for Context {}
// SAFETY: `&Context` calls only what AscendCL allows from several threads at once.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn new(library: Arc<Library>, device: i32) -> Result<Arc<Self>, Fault> {
        let mut context = null_mut();
        // SAFETY: a place for the context.
        library.check("aclrtCreateContext", unsafe { (library.create_context)(&raw mut context, device) })?;
        Ok(Arc::new(Self { library, context }))
    }

    pub(super) fn enter(&self) -> Result<(), Fault> {
        // SAFETY: the context lives as long as this.
        self.library.check("aclrtSetCurrentContext", unsafe { (self.library.set_context)(self.context) })
    }

    /// Bytes of the device's memory.
    pub(super) fn memory(&self) -> Option<u64> {
        self.enter().ok()?;
        abi::MEMORIES.iter().find_map(|kind| {
            let (mut free, mut total) = (0, 0);
            // SAFETY: two places for numbers.
            let code = unsafe { (self.library.memory_info)(*kind, &raw mut free, &raw mut total) };
            (code == 0 && total > 0).then_some(total as u64)
        })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: what was made in it holds it, and is gone.
        unsafe { (self.library.destroy_context)(self.context) };
    }
}

/// A point of the stream.
pub(super) struct Event {
    context: Arc<Context>,
    event: Pointer,
}

// SAFETY: as `Context`.
unsafe impl Send for Event {}
// SAFETY: `&Event` only asks and waits, which AscendCL allows from several threads at once.
unsafe impl Sync for Event {}

impl Awaited for Event {
    type Fault = Fault;

    const ENDS: bool = false;

    fn passed(&self) -> Result<bool, Fault> {
        self.context.enter()?;
        let (library, mut status) = (&self.context.library, 0);
        // SAFETY: a place for a number.
        library.check("aclrtQueryEventStatus", unsafe { (library.query_event)(self.event, &raw mut status) })?;
        Ok(status == abi::EVENT_COMPLETE)
    }

    fn block(&self) -> Result<(), Fault> {
        self.context.enter()?;
        let library = &self.context.library;
        // SAFETY: the event lives as long as this.
        library.check("aclrtSynchronizeEvent", unsafe { (library.synchronize_event)(self.event) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: nobody else has it.
        unsafe { (self.context.library.destroy_event)(self.event) };
    }
}

#[derive(Default)]
struct State {
    /// Device memory by its size.
    kept: HashMap<usize, Vec<Pointer>>,
    kept_bytes: usize,
    recorded: u64,
    events: VecDeque<(u64, Arc<Event>)>,
    /// The memory to free when the event behind its last use has passed.
    retired: Vec<(u64, Retired)>,
}

/// Memory that nothing holds any more, except the device.
pub(super) enum Retired {
    Host(Pointer),
    /// A recording's.
    Model(Pointer),
}

impl Retired {
    /// Gives it back; the device is behind its last use, and its context is entered.
    fn free(&self, library: &Library) {
        // SAFETY: nobody else has it.
        unsafe {
            match (self, &library.captures) {
                (Self::Host(address), _) => _ = (library.free_host)(*address),
                (Self::Model(model), Some(captures)) => _ = (captures.destroy)(*model),
                (Self::Model(_), None) => {}
            }
        }
    }
}

pub(super) struct Stream {
    pub(super) stream: Pointer,
    state: Mutex<State>,
    /// The longest time that a wait here takes.
    limit: Option<Duration>,
    pub(super) context: Arc<Context>,
}

// SAFETY: as `Context`; memory's addresses are behind a lock.
unsafe impl Send for Stream {}
// SAFETY: `&Stream` reaches the addresses under the lock alone; AscendCL orders what several threads put into one stream.
unsafe impl Sync for Stream {}

impl Stream {
    pub(super) fn new(context: Arc<Context>, limit: Option<Duration>) -> Result<Arc<Self>, Fault> {
        context.enter()?;
        let (library, mut stream) = (&context.library, null_mut());
        // SAFETY: a place for the stream.
        library.check("aclrtCreateStream", unsafe { (library.create_stream)(&raw mut stream) })?;
        Ok(Arc::new(Self { stream, state: Mutex::default(), limit, context }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of device memory that nothing holds.
    pub(super) fn kept(&self) -> u64 {
        self.state().kept_bytes as u64
    }

    /// Waits for all that was started, as long as the time limit.
    pub(super) fn synchronise(&self) -> Result<(), Fault> {
        self.context.enter()?;
        let library = &self.context.library;
        let Some(limit) = self.limit else {
            // SAFETY: the stream lives as long as this.
            return library.check("aclrtSynchronizeStream", unsafe { (library.synchronize_stream)(self.stream) });
        };
        // The library's own wait ends with the work alone.
        let event = self.mark()?;
        let (start, mut sleep) = (Instant::now(), SHORTEST_SLEEP);
        while !event.passed()? {
            if start.elapsed() >= limit {
                let message = "the stream did not end within the time limit".to_owned();
                return Err(Fault { code: abi::LATE, message });
            }
            std::thread::sleep(sleep);
            sleep = (sleep * 2).min(LONGEST_SLEEP);
        }
        Ok(())
    }

    /// An event behind all that was started; the context is entered.
    fn mark(&self) -> Result<Event, Fault> {
        let (library, mut event) = (&self.context.library, null_mut());
        // SAFETY: a place for the event.
        library.check("aclrtCreateEvent", unsafe { (library.create_event)(&raw mut event) })?;
        let event = Event { context: self.context.clone(), event };
        // SAFETY: event and stream live.
        library.check("aclrtRecordEvent", unsafe { (library.record_event)(event.event, self.stream) })?;
        Ok(event)
    }

    /// Device memory of at least that many bytes; its context is entered.
    pub(super) fn memory(self: &Arc<Self>, bytes: usize) -> Result<Memory, Fault> {
        let bytes = Memory::rounded(bytes);
        {
            let mut state = self.state();
            if let Some(address) = state.kept.get_mut(&bytes).and_then(Vec::pop) {
                state.kept_bytes -= bytes;
                return Ok(Memory { stream: self.clone(), address, bytes });
            }
        }
        let address = self.fresh(bytes).or_else(|_| {
            self.trim()?;
            self.fresh(bytes)
        })?;
        Ok(Memory { stream: self.clone(), address, bytes })
    }

    /// On huge pages if there are some.
    fn fresh(&self, bytes: usize) -> Result<Pointer, Fault> {
        let (library, mut address) = (&self.context.library, null_mut());
        // SAFETY: a place for the address.
        let mut code = unsafe { (library.malloc)(&raw mut address, bytes, abi::HUGE_PAGES_FIRST) };
        if code != 0 {
            // SAFETY: a place for the address.
            code = unsafe { (library.malloc)(&raw mut address, bytes, abi::NORMAL_PAGES) };
        }
        library.check("aclrtMalloc", code)?;
        Ok(address)
    }

    /// Host memory that the device reads and writes by itself.
    pub(super) fn pinned(self: &Arc<Self>, bytes: usize) -> Result<Pinned, Fault> {
        let (library, mut address) = (&self.context.library, null_mut());
        // SAFETY: a place for the address.
        library.check("aclrtMallocHost", unsafe { (library.malloc_host)(&raw mut address, bytes.max(1)) })?;
        // SAFETY: as many bytes are there; values that were never written may be read.
        unsafe { std::ptr::write_bytes(address.cast::<u8>(), 0, bytes) };
        Ok(Pinned { stream: self.clone(), address, bytes })
    }

    /// The point behind all that was started. Where no event is to be had, the next one counts for it: what was started touches host
    /// memory until that has passed.
    pub(super) fn record(&self) -> Result<Arc<Event>, Fault> {
        let mut state = self.state();
        state.recorded += 1;
        let number = state.recorded;
        let event = Arc::new(self.mark()?);
        state.events.push_back((number, event.clone()));
        let mut passed = 0;
        while let Some((number, front)) = state.events.front() {
            if !matches!(front.passed(), Ok(true)) {
                break;
            }
            passed = *number;
            state.events.pop_front();
        }
        state.retired.retain(|(number, retired)| {
            if *number <= passed {
                retired.free(&self.context.library);
            }
            *number > passed
        });
        let excess = state.kept_bytes > KEPT;
        drop(state);
        if excess {
            self.trim()?;
        }
        Ok(event)
    }

    /// Gives something back when the device is behind all that was started.
    pub(super) fn retire(&self, retired: Retired) {
        let mut state = self.state();
        let recorded = state.recorded;
        state.retired.push((recorded, retired));
    }

    /// Waits, and frees the memory that nothing held before.
    pub(super) fn trim(&self) -> Result<(), Fault> {
        let kept = {
            let mut state = self.state();
            state.kept_bytes = 0;
            std::mem::take(&mut state.kept)
        };
        let waited = self.synchronise();
        if waited.is_err() {
            let mut state = self.state();
            for (bytes, addresses) in kept {
                state.kept_bytes += bytes * addresses.len();
                state.kept.entry(bytes).or_default().extend(addresses);
            }
            return waited;
        }
        self.free(kept);
        Ok(())
    }

    fn free(&self, kept: HashMap<usize, Vec<Pointer>>) {
        for address in kept.into_values().flatten() {
            // SAFETY: nothing holds it, and the stream has passed its last use.
            unsafe { (self.context.library.free)(address) };
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A lost device may refuse: what is left goes with its context. Where work goes on, it may touch all of this: it is left behind.
        match self.synchronise() {
            Err(fault) if fault.code == abi::LATE => {
                std::mem::forget(self.context.clone());
                return;
            }
            // Without an event to look at; a lost one refuses at once.
            // SAFETY: the stream lives.
            Err(_) => _ = unsafe { (self.context.library.synchronize_stream)(self.stream) },
            Ok(()) => {}
        }
        let mut state = self.state();
        self.free(std::mem::take(&mut state.kept));
        state.events.clear();
        for (_, retired) in std::mem::take(&mut state.retired) {
            retired.free(&self.context.library);
        }
        drop(state);
        // SAFETY: nobody else has it.
        unsafe { (self.context.library.destroy_stream)(self.stream) };
    }
}

/// Device memory.
pub(super) struct Memory {
    stream: Arc<Stream>,
    pub(super) address: Pointer,
    pub(super) bytes: usize,
}

// SAFETY: the address is the device's.
unsafe impl Send for Memory {}
// SAFETY: `&Memory` gives out only the address, which the host does not follow.
unsafe impl Sync for Memory {}

impl Memory {
    /// The size of memory that holds as many bytes. What is read by vectors may go 32 bytes beyond its end.
    pub(super) fn rounded(bytes: usize) -> usize {
        bytes.saturating_add(32).next_multiple_of(512)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mut state = self.stream.state();
        state.kept_bytes += self.bytes;
        state.kept.entry(self.bytes).or_default().push(self.address);
    }
}

/// Host memory that the device reads or writes until the stream has passed.
pub(super) struct Pinned {
    stream: Arc<Stream>,
    pub(super) address: Pointer,
    bytes: usize,
}

// SAFETY: one thread at a time has it; the device writes it before it is read.
unsafe impl Send for Pinned {}

impl std::ops::Deref for Pinned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: as many bytes were allocated and zeroed.
        unsafe { std::slice::from_raw_parts(self.address.cast(), self.bytes) }
    }
}

impl Pinned {
    pub(super) fn fill(&mut self, bytes: &[u8]) {
        // SAFETY: as many bytes were allocated and zeroed, `self` has them alone, and the device does not know of them yet.
        let all: &mut [u8] = unsafe { std::slice::from_raw_parts_mut(self.address.cast(), self.bytes) };
        all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.stream.retire(Retired::Host(self.address));
    }
}

//! Cuts a grid of workgroups into batches and runs them, over threads where there are any. `execute` is the crate's entry for running. Here sizes and
//! alignments of bindings are checked, addresses resolved once for a batch, and memory for registers taken; what happens within a batch is `machine`'s.
//! Small launches stay on the calling thread.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;

use web_time::Instant;

use super::isa;
use super::machine::{Batch, Limits, Machine, Resolved, ResolvedRows, padded, run};
use super::order::Order;
use super::shared::Shared;
use crate::bytecode::{Batching, BindingInfo, Bytecode, Code, Count, FULL, Ids, Rows, Space, Strided};
use crate::check::Corrupt;

/// The bytes of one binding.
///
/// Several workgroups, on several threads, may touch them at once, as they may on a GPU. Each access to an element is a relaxed atomic one
/// (see `shared`), never a reference: a race in the kernel gives some value that was stored there, or the one before; which one is open.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    pointer: *mut u8,
    bytes: usize,
    writable: bool,
    lifetime: PhantomData<&'a mut [u8]>,
}

// SAFETY: the memory is lent for `'a`, whichever thread uses it.
unsafe impl Send for Memory<'_> {}
// SAFETY: threads access it by relaxed atomics (see the type's description), never by references; compiled kernels, by contract, have no race.
unsafe impl Sync for Memory<'_> {}

impl<'a> Memory<'a> {
    /// Memory that the kernel may read and write.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Memory { pointer: bytes.as_mut_ptr(), bytes: bytes.len(), writable: true, lifetime: PhantomData }
    }

    /// Memory for a binding that the kernel only reads.
    #[must_use]
    pub fn read_only(bytes: &'a [u8]) -> Self {
        Memory { pointer: bytes.as_ptr().cast_mut(), bytes: bytes.len(), writable: false, lifetime: PhantomData }
    }

    /// Memory by address; one buffer may serve several bindings.
    ///
    /// # Safety
    /// `pointer` is valid for reads and writes of `bytes` initialised bytes during `'a`, and no reference to them
    /// lives while a launch uses them.
    #[must_use]
    pub unsafe fn from_raw(pointer: *mut u8, bytes: usize) -> Self {
        Memory { pointer, bytes, writable: true, lifetime: PhantomData }
    }

    /// Start and size.
    pub(crate) fn raw(&self) -> (*mut u8, usize) {
        (self.pointer, self.bytes)
    }
}

/// One dispatch.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Launch<'a> {
    /// Workgroups in x, y and z: any number.
    pub workgroups: [u32; 3],
    /// The bindings' memory, in the order of [`Bytecode::bindings`].
    pub bindings: &'a [Memory<'a>],
    /// The limits that stop it early.
    pub limits: Limits<'a>,
    /// Spread over threads: rayon's of where the caller is. Small launches stay on the calling thread anyway.
    pub parallel: bool,
    /// The order of the workgroups; without one it is open, and many run at once.
    pub order: Option<Order>,
}

impl<'a> Launch<'a> {
    /// Creates a launch without a deadline, over rayon's threads.
    #[must_use]
    pub fn new(workgroups: [u32; 3], bindings: &'a [Memory<'a>]) -> Self {
        Self { workgroups, bindings, limits: Limits::default(), parallel: true, order: None }
    }

    /// Stopped at the first check after this time.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.limits.deadline = Some(deadline);
        self
    }

    /// Stopped at the first check after one of these is set.
    #[must_use]
    pub fn cancel(mut self, cancel: &'a [&'a AtomicBool]) -> Self {
        self.limits.cancel = cancel;
        self
    }

    /// Stopped by these.
    #[must_use]
    pub fn limits(mut self, limits: Limits<'a>) -> Self {
        self.limits = limits;
        self
    }

    /// Over rayon's threads, or on the calling thread alone.
    #[must_use]
    pub fn parallel(mut self, parallel: bool) -> Self {
        self.parallel = parallel;
        self
    }

    /// One workgroup after the other in this order, on the calling thread alone.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = Some(order);
        self
    }
}

/// The reason why a launch stopped early. Its writes until then remain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stopped {
    /// The deadline passed.
    #[error("the kernel ran past its deadline")]
    Deadline,
    /// The cancel flag was set.
    #[error("the kernel was cancelled")]
    Cancelled,
    /// Workgroups that ran together made no progress.
    #[error("the kernel made no progress")]
    Stalled,
    /// Another number of bindings than the program has.
    #[error("the kernel has {expected} bindings, and {given} were given")]
    WrongBindingCount {
        /// Bindings of the program.
        expected: usize,
        /// Bindings of the launch.
        given: usize,
    },
    /// Another number of overrides than a kernel that was compiled ahead takes.
    #[error("the compiled kernel takes {expected} overrides, and {given} were given")]
    WrongArgumentCount {
        /// Arguments of the compiled kernel.
        expected: usize,
        /// Arguments of the launch.
        given: usize,
    },
    /// A binding is smaller than its type.
    #[error("binding `{name}` needs at least {needed} bytes, and {given} were given")]
    BindingTooSmall {
        /// Name of the binding's variable.
        name: String,
        /// Least size in bytes.
        needed: u64,
        /// Size given.
        given: u64,
    },
    /// The address of a binding is no multiple of its alignment.
    #[error("binding `{name}` must start at a multiple of {align} bytes")]
    Misaligned {
        /// Name of the binding's variable.
        name: String,
        /// Alignment in bytes.
        align: u32,
    },
    /// Read-only memory was given for a binding that the kernel may write.
    #[error("binding `{name}` is written, but its memory is read-only")]
    ReadOnly {
        /// Name of the binding's variable.
        name: String,
    },
    /// The registers of one batch do not fit into memory.
    #[error("the kernel needs {bytes} bytes of registers per thread, which is more than there is")]
    TooMuchMemory {
        /// Bytes per thread.
        bytes: u64,
    },
    /// The program's data make no sense.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
}

/// Instructions times lanes below which a second thread costs more than it saves; loops make it an underestimate.
const WORTHWHILE: u64 = 100_000;

/// Runs a program over a grid of workgroups.
///
/// # Errors
/// [`Stopped`] says why it ended early.
pub fn execute(program: &Bytecode, launch: &Launch<'_>) -> Result<(), Stopped> {
    program.check()?;
    check_bindings(&program.bindings, launch)?;
    if launch.workgroups.contains(&0) {
        return Ok(());
    }
    let group_size = program.workgroup_size.iter().product::<u32>().max(1);
    let Some(code) = choose(program, launch, group_size) else { return Ok(()) };
    let plan = Plan::new(program, code, launch, group_size);
    launch.limits.begin().check()?;
    let threads = crate::threads::count() as u64;
    let work = plan.batches.saturating_mul(code.instructions.len() as u64 * u64::from(code.lanes));
    let worthwhile = work > WORTHWHILE && plan.batches > 1;
    if launch.parallel && launch.order.is_none() && threads > 1 && worthwhile {
        // Each task that runs has registers of its own.
        let each = u64::from(code.words) * 4 + plan.workgroup_bytes() as u64;
        let room = (ALL_THREADS_BYTES / each.max(1)).max(1);
        let tasks = plan.batches.min(threads * 16).min(if room < threads { room } else { u64::MAX }) as usize;
        return crate::threads::try_each(tasks, |task| {
            let bound = |t: usize| (u128::from(plan.batches) * t as u128 / tasks as u128) as u64;
            plan.run(bound(task)..bound(task + 1))
        });
    }
    plan.run(0..plan.batches)
}

pub(crate) fn check_bindings(bindings: &[BindingInfo], launch: &Launch<'_>) -> Result<(), Stopped> {
    if bindings.len() != launch.bindings.len() {
        return Err(Stopped::WrongBindingCount { expected: bindings.len(), given: launch.bindings.len() });
    }
    for (info, memory) in bindings.iter().zip(launch.bindings) {
        let name = || info.name.clone();
        let given = memory.bytes as u64;
        if given < info.min_bytes {
            return Err(Stopped::BindingTooSmall { name: name(), needed: info.min_bytes, given });
        }
        if !(memory.pointer as usize).is_multiple_of(info.align as usize) {
            return Err(Stopped::Misaligned { name: name(), align: info.align });
        }
        if info.writable && !memory.writable {
            return Err(Stopped::ReadOnly { name: name() });
        }
    }
    Ok(())
}

/// Rows where they fill the lanes well enough, linear order where the grid is narrow; several workgroups with memory of their own where there are enough.
fn choose<'p>(program: &'p Bytecode, launch: &Launch<'_>, group_size: u32) -> Option<&'p Code> {
    let find = |batching| program.codes.iter().find(|code| code.batching == batching);
    let row = find(Batching::Row);
    let linear = find(Batching::Linear);
    let workgroups = launch.workgroups;
    if let Some(groups) = find(Batching::Groups)
        && groups_at_once(groups, launch, group_size) > 1
    {
        return Some(groups);
    }
    if let (Some(row), Some(linear)) = (row, linear) {
        let [x, y, z] = workgroups.map(u64::from);
        let per_batch = u64::from(row.lanes / group_size).max(1);
        let room = x.div_ceil(per_batch).saturating_mul(per_batch);
        let narrow = x.saturating_mul(2) <= room && (y > 1 || z > 1);
        return Some(if narrow { linear } else { row });
    }
    row.or(linear).or(program.codes.first())
}

/// Workgroups of a batch: where threads share the launch, no more than leaves a batch for each.
fn groups_at_once(code: &Code, launch: &Launch<'_>, group_size: u32) -> u64 {
    if code.batching == Batching::Single || launch.order.is_some() {
        return 1;
    }
    let most = u64::from(code.lanes / group_size).max(1);
    let threads = if launch.parallel { crate::threads::count() as u64 } else { 1 };
    let all = launch.workgroups.iter().fold(1_u64, |all, side| all.saturating_mul(u64::from(*side)));
    let work = all.saturating_mul(u64::from(group_size)).saturating_mul(code.instructions.len() as u64);
    if code.batching != Batching::Groups && (work <= WORTHWHILE || all >= most.saturating_mul(threads)) {
        return most;
    }
    let shared = if code.batching == Batching::Row { u64::from(launch.workgroups[0]) } else { all };
    most.min((shared / threads.max(1)).max(1))
}

/// The state that all batches of a launch share.
struct Plan<'a> {
    program: &'a Bytecode,
    code: &'a Code,
    launch: &'a Launch<'a>,
    group_size: u32,
    groups_per_batch: u64,
    batches: u64,
    /// The ids of a whole batch, and of the last one of a row.
    ids: [&'a Ids; 2],
    constants: &'a [u64],
    table: &'static isa::Table,
}

impl<'a> Plan<'a> {
    fn new(program: &'a Bytecode, code: &'a Code, launch: &'a Launch<'a>, group_size: u32) -> Self {
        let [x, y, z] = launch.workgroups.map(u64::from);
        let groups_per_batch = groups_at_once(code, launch, group_size);
        let batches = match code.batching {
            Batching::Linear | Batching::Groups => x.saturating_mul(y).saturating_mul(z).div_ceil(groups_per_batch),
            Batching::Row | Batching::Single => x.div_ceil(groups_per_batch).saturating_mul(y).saturating_mul(z),
        };
        let last = if x.is_multiple_of(groups_per_batch) { groups_per_batch } else { x % groups_per_batch };
        let ids = [groups_per_batch, last].map(|groups| code.tables.ids(code, program.workgroup_size, groups));
        let constants = code.tables.constants(code);
        Plan { program, code, launch, group_size, groups_per_batch, batches, ids, constants, table: isa::best() }
    }

    /// Bytes from one workgroup's memory to the next one's in a batch: by a cache line more than a power of 2, so that not all begin in the same lines.
    fn apart(&self) -> usize {
        if self.code.batching == Batching::Groups {
            (self.program.workgroup_bytes as usize).next_multiple_of(64) + 64
        } else {
            0
        }
    }

    /// Bytes of workgroup memory of a batch.
    fn workgroup_bytes(&self) -> usize {
        (self.apart() * self.groups_per_batch as usize).max(self.program.workgroup_bytes as usize)
    }

    /// Runs consecutive batches on this thread.
    fn run(&self, batches: std::ops::Range<u64>) -> Result<(), Stopped> {
        let mut scratch = Scratch::take(self.code.words as usize, self.workgroup_bytes())?;
        for (word, value) in &self.code.constants {
            scratch.file_words()[*word as usize] = *value;
        }
        let accesses: Vec<Resolved> =
            self.code.accesses.iter().map(|access| self.resolve(access, &mut scratch)).collect();
        let rows: Vec<ResolvedRows> =
            self.code.rows.iter().filter_map(|rows| self.resolve_rows(rows, &accesses)).collect();
        let file = scratch.file_words().as_mut_ptr();
        let limits = &self.launch.limits;
        let limited = limits.are_set();
        for batch in batches {
            let watch = limits.begin();
            if limited {
                watch.check()?;
            }
            let batch = self.launch.order.map_or(batch, |order| order.at(batch, self.batches));
            let (first_workgroup, groups) = self.place(batch);
            if self.program.workgroup_bytes > 0 {
                scratch.workgroup_bytes().fill(0);
            }
            let n = groups as usize * self.group_size as usize;
            let ids = self.ids[usize::from(groups < self.groups_per_batch)];
            let machine = Machine {
                file,
                beyond: limits.beyond,
                n,
                padded: padded(n),
                span: Cell::new([0, padded(n)]),
                narrowed: Cell::new((FULL, 0)),
                lanes: self.code.lanes as usize,
                group: self.group_size as usize,
                accesses: &accesses,
                rows: &rows,
                batch: Batch { first_workgroup, num_workgroups: self.launch.workgroups, tables: ids },
            };
            // SAFETY: the program was checked; the file has its size; accesses lie within the bindings and scratch.
            unsafe { run(&machine, self.code, self.table, &watch)? };
        }
        scratch.give_back();
        Ok(())
    }

    /// First workgroup of a batch, and how many there are in it.
    fn place(&self, batch: u64) -> ([u32; 3], u64) {
        let [x, y, z] = self.launch.workgroups.map(u64::from);
        let per_batch = self.groups_per_batch;
        if matches!(self.code.batching, Batching::Linear | Batching::Groups) {
            let first = batch * per_batch;
            let total = x.saturating_mul(y).saturating_mul(z);
            let id = [first % x, first / x % y, first / x / y].map(|id| id as u32);
            return (id, per_batch.min(total - first));
        }
        let per_row = x.div_ceil(per_batch);
        let column = batch % per_row * per_batch;
        let row = batch / per_row;
        ([column, row % y, row / y].map(|id| id as u32), per_batch.min(x - column))
    }

    /// Resolves rows, whose sizes no kernel changes while it runs.
    fn resolve_rows(&self, rows: &Rows, accesses: &[Resolved]) -> Option<ResolvedRows> {
        // The check saw that both exist: every row is resolved.
        let access = accesses.get(rows.access as usize)?;
        let sizes = self.launch.bindings.get(rows.sizes as usize)?;
        let word = |offset: u32| {
            let is_there = (offset as usize).checked_add(4).is_some_and(|end| end <= sizes.bytes);
            // SAFETY: within the binding, which is aligned for words as the offset is.
            if is_there { unsafe { u32::get(sizes.pointer.add(offset as usize).cast::<u32>()) } } else { 0 }
        };
        Some(ResolvedRows {
            pointer: access.pointer.cast_const().cast(),
            count: u32::try_from(access.count).unwrap_or(u32::MAX),
            width: word(rows.width),
            height: word(rows.height),
            base: word(rows.base).wrapping_add(rows.word),
            words: rows.words,
        })
    }

    /// Resolves an access to memory, and reduces its count to the elements that really lie within the memory.
    fn resolve(&self, access: &Strided, scratch: &mut Scratch) -> Resolved {
        let (pointer, bytes, private) = match access.space {
            Space::Binding(binding) => {
                let memory = &self.launch.bindings[binding as usize];
                (memory.pointer, memory.bytes as u64, false)
            }
            Space::Workgroup => {
                let bytes = scratch.workgroup_bytes();
                (bytes.as_mut_ptr(), bytes.len() as u64, false)
            }
            // Each lane counts in the memory of its own workgroup.
            Space::Groups => (scratch.workgroup_bytes().as_mut_ptr(), u64::from(self.program.workgroup_bytes), false),
            // Never written: `check` sees to it.
            Space::Table => (self.constants.as_ptr().cast_mut().cast(), self.code.table.len() as u64, false),
            Space::Private { base, slots } => {
                // SAFETY: the check saw that base and slots lie within the file.
                let pointer = unsafe { scratch.file_words().as_mut_ptr().add(base as usize).cast::<u8>() };
                (pointer, u64::from(slots), true)
            }
        };
        let count = match access.count {
            Count::Fixed(count) => u64::from(count),
            Count::Runtime { start, stride, scale } => {
                (bytes.saturating_sub(u64::from(start)) / u64::from(stride)).saturating_mul(u64::from(scale))
            }
        };
        let size = u64::from(access.element.bytes());
        let size = if private { size.div_ceil(4) } else { size };
        let (offset, stride) = (u64::from(access.offset), u64::from(access.stride));
        let room = match (bytes.checked_sub(offset + size), stride) {
            (None, _) => 0,
            (Some(_), 0) => u64::MAX,
            (Some(rest), stride) => rest / stride + 1,
        };
        let count = count.min(room).min(u64::from(u32::MAX));
        let unit = if private { u64::from(self.code.lanes) * 4 } else { 1 };
        let skip = if count == 0 { 0 } else { offset * unit };
        Resolved {
            // SAFETY: with at least one element in range, the offset lies within the memory.
            pointer: unsafe { pointer.add(skip as usize) },
            stride: access.stride as usize,
            count,
            private,
            apart: if access.space == Space::Groups { self.apart() } else { 0 },
            shared: matches!(access.space, Space::Binding(_)),
            space: access.space,
            element: access.element,
        }
    }
}

/// 128 bytes: two cache lines, and more than any vector needs.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct Line([u32; 32]);

/// Registers and workgroup memory of one thread.
struct Scratch {
    file: Vec<Line>,
    workgroup: Vec<Line>,
    workgroup_bytes: usize,
}

thread_local! {
    static SPARE: Cell<Option<(Vec<Line>, Vec<Line>)>> = const { Cell::new(None) };
}

/// Registers and workgroup memory of all threads of one launch together: fewer threads run where that is not enough for all.
const ALL_THREADS_BYTES: u64 = 1 << 30;
/// Register files beyond this are not kept.
const KEEP_BYTES: usize = 16 << 20;

impl Scratch {
    fn take(words: usize, workgroup_bytes: usize) -> Result<Self, Stopped> {
        let (mut file, mut workgroup) = SPARE.with(Cell::take).unwrap_or_default();
        // Nothing of one kernel shows in another.
        let used = file.len().min(words.div_ceil(32));
        file[..used].fill(Line([0; 32]));
        grow(&mut file, words.div_ceil(32))?;
        grow(&mut workgroup, workgroup_bytes.div_ceil(128))?;
        Ok(Scratch { file, workgroup, workgroup_bytes })
    }

    fn file_words(&mut self) -> &mut [u32] {
        let words = self.file.len() * 32;
        // SAFETY: a line is 32 words.
        unsafe { std::slice::from_raw_parts_mut(self.file.as_mut_ptr().cast::<u32>(), words) }
    }

    fn workgroup_bytes(&mut self) -> &mut [u8] {
        // SAFETY: a line is 128 bytes, and there are enough of them.
        unsafe { std::slice::from_raw_parts_mut(self.workgroup.as_mut_ptr().cast::<u8>(), self.workgroup_bytes) }
    }

    fn give_back(self) {
        // Under a sanitizer registers are as long as each kernel says, so that it sees what lies beyond.
        if !cfg!(sanitized) && (self.file.len() + self.workgroup.len()) * 128 <= KEEP_BYTES {
            SPARE.with(|spare| spare.set(Some((self.file, self.workgroup))));
        }
    }
}

fn grow(lines: &mut Vec<Line>, count: usize) -> Result<(), Stopped> {
    if lines.len() < count {
        let missing = count - lines.len();
        lines.try_reserve_exact(missing).map_err(|_| Stopped::TooMuchMemory { bytes: count as u64 * 128 })?;
        lines.resize(count, Line([0; 32]));
    }
    Ok(())
}

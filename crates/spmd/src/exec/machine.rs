//! The register file of one thread, and the interpreter loop.
//!
//! # The invariant that the unsafe code here and in the lane loops rests on
//!
//! Programs are checked before they run (`spmd::check`): every register operand lies within `words` words of `file`
//! for the width and lanes it is used with, and the target of an instruction overlaps none of its sources. `file` is
//! owned by this thread alone. So a target may be borrowed `&mut` and the sources `&` at the same time, as
//! [`Machine::target`] and [`Machine::source`] do, and all words are initialised (the file starts as zeros).
//!
//! Memory of bindings is shared between threads, and with whoever lent it: it is only ever touched as `shared` says, within the bounds in
//! [`Resolved`] and aligned for its elements, so that a race in the kernel gives some integer and nothing worse.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use web_time::Instant;

use super::isa::Table;
use super::launch::Stopped;
use crate::bytecode::{A_UNIFORM, B_UNIFORM, C_UNIFORM, Code, D_UNIFORM, Element, FULL, Instr, LANE_STEP, Op, Space};

/// The address of an access in this launch: `pointer + index * stride` for `index < count`, all within the memory.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Resolved {
    pub pointer: *mut u8,
    pub stride: usize,
    pub count: u64,
    /// Per-lane memory: the stride counts slots of `lanes` words.
    pub private: bool,
    /// Bytes from one workgroup's memory to that of the next in the batch; 0 where all lanes share one.
    pub apart: usize,
    /// Other threads may touch it at the same time.
    pub shared: bool,
    pub space: Space,
    pub element: Element,
}

/// The lanes that take part.
#[derive(Clone, Copy)]
pub(crate) enum Active<'a> {
    All,
    Some(&'a [u32]),
    None,
}

impl Active<'_> {
    #[inline(always)]
    pub fn has(self, lane: usize) -> bool {
        match self {
            Active::All => true,
            Active::Some(mask) => mask[lane] != 0,
            Active::None => false,
        }
    }
}

/// The limits that stop a launch early; nothing by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits<'a> {
    /// The launch stops at the first check after this time.
    pub deadline: Option<Instant>,
    /// The launch stops at the first check after one of these is set.
    pub cancel: &'a [&'a AtomicBool],
    /// The time after which workgroups that run together are stopped at their next check.
    pub stall: Option<Duration>,
    /// Stores out of range are noted here; without it they are dropped alone.
    pub beyond: Option<&'a Beyond>,
}

/// The stores out of range of a launch.
#[derive(Debug, Default)]
pub struct Beyond {
    stores: AtomicU64,
    first: OnceLock<OutOfRange>,
}

/// A store out of range.
#[derive(Debug, Clone, Copy)]
pub struct OutOfRange {
    /// The place of the binding in [`crate::Bytecode::bindings`]; `None` for memory of a workgroup or an invocation.
    pub binding: Option<usize>,
    /// The place in the array, counted in what the store writes.
    pub place: u64,
    /// The number of places.
    pub length: u64,
}

impl Beyond {
    pub(crate) fn note(&self, access: &Resolved, index: u32) {
        self.stores.fetch_add(1, Ordering::Relaxed);
        let binding = match access.space {
            Space::Binding(binding) => Some(binding as usize),
            Space::Workgroup | Space::Groups | Space::Table | Space::Private { .. } => None,
        };
        let _ = self.first.set(OutOfRange { binding, place: index.into(), length: access.count });
    }

    /// Returns the number of stores by invocations, and one of the first; `None` if there were none.
    #[must_use]
    pub fn found(&self) -> Option<(u64, OutOfRange)> {
        self.first.get().map(|first| (self.stores.load(Ordering::Relaxed), *first))
    }
}

impl<'a> Limits<'a> {
    /// Returns whether there is anything to check.
    #[doc(hidden)]
    pub fn are_set(&self) -> bool {
        self.deadline.is_some() || self.stall.is_some() || !self.cancel.is_empty()
    }

    /// Starts a watch for work that counts as one step of progress.
    #[doc(hidden)]
    pub fn begin(&'a self) -> Watch<'a> {
        Watch { limits: self, stalled: self.stall.and_then(|stall| Instant::now().checked_add(stall)) }
    }
}

/// Limits, and when the step under way has taken too long.
#[doc(hidden)]
pub struct Watch<'a> {
    limits: &'a Limits<'a>,
    stalled: Option<Instant>,
}

impl Watch<'_> {
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Stopped> {
        if self.limits.cancel.iter().any(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(Stopped::Cancelled);
        }
        if self.limits.deadline.is_none() && self.stalled.is_none() {
            return Ok(());
        }
        let now = Instant::now();
        if self.limits.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(Stopped::Deadline);
        }
        if self.stalled.is_some_and(|stalled| now >= stalled) {
            return Err(Stopped::Stalled);
        }
        Ok(())
    }
}

/// The place of [`Rows`](crate::bytecode::Rows) in this launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResolvedRows {
    pub pointer: *const u32,
    /// Words that there are behind the pointer.
    pub count: u32,
    pub width: u32,
    pub height: u32,
    /// Index of the first element's word.
    pub base: u32,
    pub words: u32,
}

pub(crate) struct Machine<'a> {
    pub file: *mut u32,
    /// Where stores out of range are noted.
    pub beyond: Option<&'a Beyond>,
    /// Lanes in use.
    pub n: usize,
    /// `n`, rounded up to the lane step.
    pub padded: usize,
    /// Lanes from the first to behind the last that take part ([`Op::Narrow`]), multiples of the lane step: the others may keep what they have.
    pub span: Cell<[usize; 2]>,
    /// The mask of that, and its number of active lanes.
    pub narrowed: Cell<(u32, u32)>,
    /// Lanes of a register.
    pub lanes: usize,
    /// Lanes of a workgroup.
    pub group: usize,
    pub accesses: &'a [Resolved],
    pub rows: &'a [ResolvedRows],
    pub batch: Batch<'a>,
}

/// The shape of the batch: see `Input`.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub first_workgroup: [u32; 3],
    pub num_workgroups: [u32; 3],
    /// Local ids in x, y, z, local index and place of the workgroup in the batch, for each lane.
    pub tables: &'a [Vec<u32>; 5],
}

impl Machine<'_> {
    /// Lanes that an instruction runs over: the first, and the one behind the last.
    #[inline(always)]
    pub fn span(&self, i: &Instr) -> [usize; 2] {
        if i.form & D_UNIFORM != 0 { [0, 1] } else { self.span.get() }
    }

    /// Lets what follows leave out lanes around those of `mask`.
    ///
    /// # Safety
    /// `mask` is a mask operand of the checked program.
    unsafe fn narrow(&self, mask: u32) {
        const STEP: usize = LANE_STEP as usize;
        // SAFETY: a mask operand (this function's contract).
        let active = if mask == FULL { 0 } else { unsafe { self.active_count(mask) } };
        // From round to round of a loop lanes only leave it.
        if self.narrowed.replace((mask, active)) == (mask, active) {
            return;
        }
        let mut span = [0, self.padded];
        // SAFETY: a mask operand (this function's contract), which holds a word for each lane, zeros beyond those in use.
        let steps = unsafe {
            match self.active(mask) {
                Active::Some(_) => self.source::<u32>(mask, self.padded).as_chunks::<STEP>().0,
                Active::All | Active::None => &[],
            }
        };
        let is_live = |words: &[u32; STEP]| words.iter().fold(0, |any, word| any | word) != 0;
        if let (Some(first), Some(last)) = (steps.iter().position(is_live), steps.iter().rposition(is_live)) {
            span = [first * STEP, (last + 1) * STEP];
        }
        self.span.set(span);
    }

    /// # Safety
    /// `register` is the target of an instruction of the checked program, of width `T`, with at least `n` lanes.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "disjoint registers of one file, see the module's invariant")]
    pub unsafe fn target<T: Copy>(&self, register: u32, n: usize) -> &mut [T] {
        // SAFETY: `n` elements from the register on lie within the file, and no other borrow has them (the module's invariant).
        unsafe { std::slice::from_raw_parts_mut(self.file.add(register as usize).cast::<T>(), n) }
    }

    /// # Safety
    /// `register` is a source of an instruction of the checked program, of width `T`, with at least `n` lanes.
    #[inline(always)]
    pub unsafe fn source<T: Copy>(&self, register: u32, n: usize) -> &[T] {
        // SAFETY: `n` elements from the register on lie within the file, and no `&mut` has them (the module's invariant).
        unsafe { std::slice::from_raw_parts(self.file.add(register as usize).cast::<T>(), n) }
    }

    /// # Safety
    /// `register` is a uniform source of width `T`.
    #[inline(always)]
    pub unsafe fn scalar<T: Copy>(&self, register: u32) -> T {
        // SAFETY: the register lies within the file, whose words are all initialised (the module's invariant).
        unsafe { self.file.add(register as usize).cast::<T>().read() }
    }

    /// # Safety
    /// `mask` is a mask operand of the checked program.
    #[inline(always)]
    pub unsafe fn active(&self, mask: u32) -> Active<'_> {
        if mask == FULL {
            return Active::All;
        }
        // SAFETY: a mask holds `lanes` words and its count.
        let words = unsafe { self.source::<u32>(mask, self.lanes + 1) };
        match words[self.lanes] as usize {
            0 => Active::None,
            count if count >= self.n => Active::All,
            _ => Active::Some(&words[..self.n]),
        }
    }

    /// # Safety
    /// As [`Machine::active`].
    #[inline(always)]
    pub unsafe fn active_count(&self, mask: u32) -> u32 {
        // SAFETY: a mask holds `lanes` words and its count.
        unsafe { self.scalar(mask + self.lanes as u32) }
    }

    /// `d = f(a)` in each lane, or once where both are uniform.
    ///
    /// # Safety
    /// `i` is of the checked program that the machine runs, and its operands have the widths of `A` and `D`.
    #[inline(always)]
    pub unsafe fn map<A: Copy, D: Copy>(&self, i: &Instr, f: impl Fn(A) -> D) {
        let [mut lane, n] = self.span(i);
        // SAFETY: `i` is checked: both registers hold `n` elements of these widths (this function's contract).
        unsafe {
            let (d, a) = (self.target::<D>(i.d, n).as_mut_ptr(), self.source::<A>(i.a, n).as_ptr());
            while lane < n {
                *d.add(lane) = f(*a.add(lane));
                lane += 1;
            }
        }
    }

    /// `d = f(a, b)` in each lane; a uniform operand is spread.
    ///
    /// # Safety
    /// `i` is of the checked program that the machine runs, and its operands have the widths of `A`, `B` and `D`.
    #[inline(always)]
    pub unsafe fn zip<A: Copy, B: Copy, D: Copy>(&self, i: &Instr, f: impl Fn(A, B) -> D) {
        let [mut lane, n] = self.span(i);
        // SAFETY: `i` is checked: registers hold `n` elements of these widths, uniform ones 1 (this function's contract).
        unsafe {
            let d = self.target::<D>(i.d, n).as_mut_ptr();
            let (a, b) = (self.source::<A>(i.a, 1).as_ptr(), self.source::<B>(i.b, 1).as_ptr());
            // Plain loops: a third of what iterators are before the optimiser, in 200 copies.
            match i.form & (A_UNIFORM | B_UNIFORM | D_UNIFORM) {
                A_UNIFORM => {
                    let a = *a;
                    while lane < n {
                        *d.add(lane) = f(a, *b.add(lane));
                        lane += 1;
                    }
                }
                B_UNIFORM => {
                    let b = *b;
                    while lane < n {
                        *d.add(lane) = f(*a.add(lane), b);
                        lane += 1;
                    }
                }
                _ => {
                    while lane < n {
                        *d.add(lane) = f(*a.add(lane), *b.add(lane));
                        lane += 1;
                    }
                }
            }
        }
    }

    /// `d = f(a, b, c)` in each lane; a uniform `b` or `c` is spread.
    ///
    /// # Safety
    /// `i` is of the checked program that the machine runs, and its operands have one word.
    #[inline(always)]
    pub unsafe fn zip_spread(&self, i: &Instr, f: impl Fn(f32, f32, f32) -> f32) {
        let [mut lane, n] = self.span(i);
        // SAFETY: `i` is checked: registers hold `n` words, uniform ones 1 (this function's contract).
        unsafe {
            let (d, a) = (self.target::<f32>(i.d, n).as_mut_ptr(), self.source::<f32>(i.a, n).as_ptr());
            let (b, c) = (self.source::<f32>(i.b, 1).as_ptr(), self.source::<f32>(i.c, 1).as_ptr());
            match i.form & (B_UNIFORM | C_UNIFORM) {
                B_UNIFORM => {
                    let b = *b;
                    while lane < n {
                        *d.add(lane) = f(*a.add(lane), b, *c.add(lane));
                        lane += 1;
                    }
                }
                C_UNIFORM => {
                    let c = *c;
                    while lane < n {
                        *d.add(lane) = f(*a.add(lane), *b.add(lane), c);
                        lane += 1;
                    }
                }
                0 => {
                    while lane < n {
                        *d.add(lane) = f(*a.add(lane), *b.add(lane), *c.add(lane));
                        lane += 1;
                    }
                }
                _ => {
                    let (b, c) = (*b, *c);
                    while lane < n {
                        *d.add(lane) = f(*a.add(lane), b, c);
                        lane += 1;
                    }
                }
            }
        }
    }

    /// `d = f(a, b, c)` in each lane, all operands alike.
    ///
    /// # Safety
    /// `i` is of the checked program that the machine runs, and its operands have the widths of `A`, `B`, `C` and `D`.
    #[inline(always)]
    pub unsafe fn zip3<A: Copy, B: Copy, C: Copy, D: Copy>(&self, i: &Instr, f: impl Fn(A, B, C) -> D) {
        let [mut lane, n] = self.span(i);
        // SAFETY: `i` is checked: all registers hold `n` elements of these widths (this function's contract).
        unsafe {
            let d = self.target::<D>(i.d, n).as_mut_ptr();
            let (a, b) = (self.source::<A>(i.a, n).as_ptr(), self.source::<B>(i.b, n).as_ptr());
            let c = self.source::<C>(i.c, n).as_ptr();
            while lane < n {
                *d.add(lane) = f(*a.add(lane), *b.add(lane), *c.add(lane));
                lane += 1;
            }
        }
    }
}

/// Runs the code over one batch.
///
/// # Safety
/// `code` is of a checked program, and `machine` was set up for it: a zeroed file of its size, and its accesses
/// resolved within live memory.
pub(crate) unsafe fn run(machine: &Machine<'_>, code: &Code, table: &Table, watch: &Watch<'_>) -> Result<(), Stopped> {
    let mut position = 0_usize;
    let mut jumps_back = 0_u32;
    loop {
        let i = &code.instructions[position];
        position += 1;
        let group = match i.op {
            Op::End => return Ok(()),
            Op::Jump | Op::JumpUnless | Op::JumpIf | Op::JumpNone | Op::JumpAny => {
                // SAFETY: operands of a checked program.
                let jumps = unsafe {
                    match i.op {
                        Op::Jump => true,
                        Op::JumpUnless => machine.scalar::<u32>(i.a) == 0,
                        Op::JumpIf => machine.scalar::<u32>(i.a) != 0,
                        Op::JumpNone => machine.active_count(i.m) == 0,
                        _ => machine.active_count(i.m) != 0,
                    }
                };
                if jumps {
                    let target = i.x as usize;
                    if target < position {
                        jumps_back = jumps_back.wrapping_add(1);
                        if jumps_back.is_multiple_of(64) {
                            watch.check()?;
                        }
                    }
                    position = target;
                }
                continue;
            }
            Op::Narrow => {
                // SAFETY: a mask of a checked program.
                unsafe { machine.narrow(i.m) };
                continue;
            }
            Op::Copy
            | Op::Copy64
            | Op::Blend
            | Op::Blend64
            | Op::MaskAll
            | Op::MaskNone
            | Op::MaskCopy
            | Op::MaskAnd
            | Op::MaskAndNot
            | Op::MaskRemove
            | Op::MaskDrop
            | Op::MaskKeep
            | Op::Select
            | Op::Select64
            | Op::Iota => table.moves,
            Op::Float(_) => table.float,
            Op::Float2(_) | Op::FloatCompare(_) | Op::Fma | Op::MulAdd | Op::MulSub => table.float2,
            Op::Int(_) | Op::ExtractSigned | Op::ExtractUnsigned => table.int,
            Op::Int2(_) | Op::IntCompare(_) => table.int2,
            Op::Wide(_) => table.wide,
            Op::Wide2(_) | Op::WideCompare(_) => table.wide2,
            Op::Double(_) => table.double,
            Op::Double2(_) | Op::DoubleCompare(_) | Op::Fma64 => table.double2,
            Op::Convert(_) => table.convert,
            Op::Load => table.load,
            Op::Store => table.store,
            Op::Texel => table.texel,
            Op::Input(_) => super::input::input,
            Op::Length => super::atomic::length,
            Op::Atomic(..) | Op::CompareExchange(_) => super::atomic::atomic,
            Op::Subgroup(..) | Op::Gather(_) | Op::Ballot => super::subgroup::subgroup,
        };
        // SAFETY: `i` is of the code, which the machine was set up for (this function's contract); the table was chosen for this processor.
        unsafe { group(machine, i) };
    }
}

/// `n`, rounded up to the lane step.
pub(crate) fn padded(n: usize) -> usize {
    n.next_multiple_of(LANE_STEP as usize)
}

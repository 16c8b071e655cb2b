//! Loads and stores. Every access is checked: out of range, a load gives zero and a store does nothing. How memory is touched that other
//! threads may touch at the same time is in `shared`.
//!
//! Runs of consecutive elements are checked once. They are known when the program is made (`LINEAR`) or found by
//! looking at the indices: of all lanes, then of 16 at a time, which are often a run, or one element, where a workgroup has several rows.
//! The rest goes lane by lane.
//!
//! Where the workgroups of a batch have memory of their own, the lanes of each are a part of their own ([`Parts`]).

use super::isa::Lanes;
use super::machine::{Active, Beyond, Machine, Resolved};
use super::shared::{BLOCK_BYTES, Shared, copy, copy_block, fill_run, read_run, write_run};
use crate::bytecode::{A_UNIFORM, B_UNIFORM, Element, Instr, LINEAR};
use crate::math;

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
pub(crate) unsafe fn load<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    let access = &machine.accesses[i.x as usize];
    // SAFETY: `i` is checked (this function's contract): the register has the width that the element asks for.
    unsafe {
        match access.element {
            Element::Word => load_as::<I, true, u32, u32>(machine, i, access, |x| x),
            Element::Wide => load_as::<I, true, u64, u64>(machine, i, access, |x| x),
            Element::Half => load_as::<I, false, u16, f32>(machine, i, access, math::f16_to_f32),
            Element::Short => load_as::<I, false, i16, i32>(machine, i, access, i32::from),
            Element::UnsignedShort => load_as::<I, false, u16, u32>(machine, i, access, u32::from),
        }
    }
}

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
pub(crate) unsafe fn store<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    let access = &machine.accesses[i.x as usize];
    // SAFETY: `i` is checked (this function's contract): the register has the width that the element asks for.
    unsafe {
        if let Some(beyond) = machine.beyond {
            note_beyond(machine, i, access, beyond);
        }
        match access.element {
            Element::Word => store_as::<I, true, u32, u32>(machine, i, access, |x| x),
            Element::Wide => store_as::<I, true, u64, u64>(machine, i, access, |x| x),
            Element::Half => store_as::<I, false, u16, f32>(machine, i, access, math::f32_to_f16),
            Element::Short | Element::UnsignedShort => store_as::<I, false, u16, u32>(machine, i, access, |x| x as u16),
        }
    }
}

/// Notes the active lanes whose index of a store or an atomic operation is beyond the count.
///
/// # Safety
/// As [`store`].
#[cold]
#[inline(never)]
pub(crate) unsafe fn note_beyond(machine: &Machine<'_>, i: &Instr, access: &Resolved, beyond: &Beyond) {
    // SAFETY: `i` is checked (this function's contract): the operand has a word for each lane, or one for all.
    unsafe {
        let active = machine.active(i.m);
        for lane in (0..machine.n).filter(|lane| active.has(*lane)) {
            let index = match i.form {
                form if form & LINEAR != 0 => machine.scalar::<u32>(i.a).wrapping_add(lane as u32),
                form if form & A_UNIFORM != 0 => machine.scalar::<u32>(i.a),
                _ => machine.scalar::<u32>(i.a + lane as u32),
            };
            if u64::from(index) >= access.count {
                beyond.note(access, index);
            }
        }
    }
}

/// The index of the first lane, if the others follow it one by one.
#[inline(always)]
fn run_of(indices: &[u32]) -> Option<u32> {
    let first = *indices.first()?;
    // The last lane decides most cases; a full look is worth it only when it fits.
    if *indices.last()? != first.wrapping_add(indices.len() as u32 - 1) {
        return None;
    }
    let mut lane = first;
    let mut different = 0;
    for index in indices {
        different |= index ^ lane;
        lane = lane.wrapping_add(1);
    }
    (different == 0).then_some(first)
}

/// Lanes that are looked at together: a block of words.
const BLOCK: usize = BLOCK_BYTES / 4;

/// The positions of the elements of a block of lanes.
enum Block {
    /// One after the other, all below the count: the first one's index.
    Run(u32),
    /// One for all lanes, below the count.
    One(u32),
    /// All below the count.
    Apart,
    /// Not all below the count.
    Beyond,
}

#[inline(always)]
fn block(indices: &[u32; BLOCK], count: u64) -> Block {
    let first = indices[0];
    let (mut from_run, mut from_one, mut highest) = (0, 0, 0);
    for (lane, index) in (0_u32..).zip(indices) {
        from_run |= index ^ first.wrapping_add(lane);
        from_one |= index ^ first;
        highest = highest.max(*index);
    }
    match () {
        () if u64::from(highest) >= count => Block::Beyond,
        // One that begins at 0 again behind the largest number has an index beyond any count.
        () if from_run == 0 => Block::Run(first),
        () if from_one == 0 => Block::One(first),
        () => Block::Apart,
    }
}

/// Returns how many of `n` indices from `first` on lie below `count`; `None` if they pass the largest number and begin at 0 again.
#[inline(always)]
fn within(first: u32, n: usize, count: u64) -> Option<usize> {
    let first = u64::from(first);
    let within = count.saturating_sub(first).min(n as u64) as usize;
    (first + n as u64 <= 1 << 32).then_some(within)
}

/// The first active lane and the number of all, where they follow each other.
#[inline(always)]
fn active_run(mask: &[u32]) -> Option<(usize, usize)> {
    let first = mask.iter().position(|active| *active != 0)?;
    let count = mask.iter().filter(|active| **active != 0).count();
    let last = mask.get(first + count - 1)?;
    (*last != 0 && mask[first..first + count].iter().all(|active| *active != 0)).then_some((first, count))
}

/// # Safety
/// `i` is of the checked program that the machine runs; `R` is the register's width and `M` the element's. `SAME`: they are one, and nothing is converted.
#[inline(always)]
unsafe fn load_as<I: Lanes, const SAME: bool, M: Shared, R: Copy + Default>(
    machine: &Machine<'_>,
    i: &Instr,
    access: &Resolved,
    convert: impl Fn(M) -> R,
) {
    let linear = i.form & LINEAR != 0;
    let [from, to] = machine.span(i);
    let to = to.min(machine.n);
    // SAFETY: `Resolved` holds for indices below `count`; register operands as checked.
    unsafe {
        let one = !linear && i.form & A_UNIFORM != 0;
        if one && access.apart == 0 {
            return load_one(machine, i, access, convert);
        }
        if access.private {
            let d = &mut machine.target::<R>(i.d, to)[from..];
            return load_private(machine, i, access, from, d);
        }
        for (from, to, elements) in Parts::new(machine, access, from, to) {
            let d = &mut machine.target::<R>(i.d, to)[from..];
            if one {
                d.fill(elements.value(machine.scalar::<u32>(i.a), &convert));
                continue;
            }
            let places = if linear {
                Places::From(machine.scalar::<u32>(i.a).wrapping_add(from as u32))
            } else {
                Places::Each(&machine.source::<u32>(i.a, to)[from..])
            };
            let run = match places {
                Places::From(first) => Some(first),
                Places::Each(indices) => run_of(indices),
            };
            match run.and_then(|first| Some((first, within(first, d.len(), elements.count)?))) {
                Some((first, within)) => {
                    let (d, beyond) = d.split_at_mut(within);
                    load_run::<I, SAME, M, R>(&elements, first, d, &convert);
                    beyond.fill(R::default());
                }
                None => load_apart::<I, SAME, M, R>(places, &elements, d, &convert),
            }
        }
    }
}

/// The elements of an access that some lanes touch: of all, or of those of one workgroup.
#[derive(Clone, Copy)]
struct Elements {
    pointer: *mut u8,
    stride: usize,
    count: u64,
}

impl Elements {
    /// # Safety
    /// As [`load_as`].
    #[inline(always)]
    unsafe fn value<M: Shared, R: Default>(&self, index: u32, convert: impl Fn(M) -> R) -> R {
        if u64::from(index) >= self.count {
            return R::default();
        }
        // SAFETY: below the count (`Resolved`).
        convert(unsafe { M::get(self.pointer.add(index as usize * self.stride).cast::<M>()) })
    }
}

/// Consecutive lanes that share memory, the first and the one behind the last, with its elements: all lanes, or those of one workgroup after the other.
struct Parts {
    next: usize,
    to: usize,
    /// Lanes of a part, the end of the next one, and the bytes from its memory to that of the one behind.
    size: usize,
    end: usize,
    apart: usize,
    elements: Elements,
}

impl Parts {
    /// The lanes from `from` to before `to`; at least one.
    #[inline(always)]
    fn new(machine: &Machine<'_>, access: &Resolved, from: usize, to: usize) -> Self {
        let mut elements = Elements { pointer: access.pointer, stride: access.stride, count: access.count };
        let (mut size, mut end) = (to, to);
        if access.apart != 0 {
            let first = from / machine.group;
            size = machine.group;
            end = (first + 1) * size;
            elements.pointer = elements.pointer.wrapping_add(first * access.apart);
        }
        Parts { next: from, to, size, end, apart: access.apart, elements }
    }
}

impl Iterator for Parts {
    type Item = (usize, usize, Elements);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let from = self.next;
        if from >= self.to {
            return None;
        }
        let to = self.end.min(self.to);
        let elements = self.elements;
        self.next = to;
        self.end += self.size;
        self.elements.pointer = self.elements.pointer.wrapping_add(self.apart);
        Some((from, to, elements))
    }
}

/// The elements that lanes load.
#[derive(Clone, Copy)]
enum Places<'a> {
    /// Neighbours, from this one on.
    From(u32),
    Each(&'a [u32]),
}

/// Loads the element of one index for all lanes.
///
/// # Safety
/// As [`load_as`].
#[inline(always)]
unsafe fn load_one<M: Shared, R: Copy + Default>(
    machine: &Machine<'_>,
    i: &Instr,
    access: &Resolved,
    convert: impl Fn(M) -> R,
) {
    let (pointer, stride) = (access.pointer, access.stride);
    // SAFETY: as in `load_as`.
    unsafe {
        let index = machine.scalar::<u32>(i.a);
        let within = u64::from(index) < access.count;
        if access.private {
            let d = machine.target::<R>(i.d, machine.padded);
            if within {
                let slot = pointer.add(index as usize * stride * machine.lanes * 4).cast::<R>();
                std::ptr::copy_nonoverlapping(slot, d.as_mut_ptr(), machine.padded);
            } else {
                d.fill(R::default());
            }
            return;
        }
        let value =
            if within { convert(M::get(pointer.add(index as usize * stride).cast::<M>())) } else { R::default() };
        machine.target::<R>(i.d, 1).fill(value);
    }
}

/// Loads from the lanes' own memory.
///
/// # Safety
/// As [`load_as`].
#[inline(always)]
unsafe fn load_private<R: Copy + Default>(
    machine: &Machine<'_>,
    i: &Instr,
    access: &Resolved,
    from: usize,
    d: &mut [R],
) {
    let (pointer, stride) = (access.pointer, access.stride);
    // SAFETY: as in `load_as`; `d` begins with the lane `from`.
    unsafe {
        let indices = &machine.source::<u32>(i.a, from + d.len())[from..];
        for (lane, (d, index)) in (from..).zip(d.iter_mut().zip(indices)) {
            *d = if u64::from(*index) < access.count {
                pointer.add(*index as usize * stride * machine.lanes * 4).cast::<R>().add(lane).read()
            } else {
                R::default()
            };
        }
    }
}

/// Loads consecutive elements.
///
/// # Safety
/// As [`load_as`]; all are below the count.
#[inline(always)]
unsafe fn load_run<I: Lanes, const SAME: bool, M: Shared, R: Copy>(
    elements: &Elements,
    first: u32,
    d: &mut [R],
    convert: impl Fn(M) -> R,
) {
    let (pointer, stride) = (elements.pointer, elements.stride);
    // SAFETY: as in `load_as`.
    unsafe {
        let start = pointer.add(if d.is_empty() { 0 } else { first as usize * stride });
        if SAME && stride == size_of::<M>() {
            copy::<I, M>(start.cast::<M>(), d.as_mut_ptr().cast::<M>(), d.len());
        } else if stride == size_of::<M>() {
            read_run::<I, M, R>(start.cast::<M>(), d, convert);
        } else {
            for (lane, d) in d.iter_mut().enumerate() {
                *d = convert(M::get(start.add(lane * stride).cast::<M>()));
            }
        }
    }
}

/// Loads elements that are no run, or of which some are beyond the count.
///
/// # Safety
/// As [`load_as`].
#[inline(always)]
unsafe fn load_apart<I: Lanes, const SAME: bool, M: Shared, R: Copy + Default>(
    places: Places<'_>,
    elements: &Elements,
    d: &mut [R],
    convert: impl Fn(M) -> R,
) {
    let (pointer, stride) = (elements.pointer, elements.stride);
    // SAFETY: as in `load_as`.
    unsafe {
        let element = |index: u32| elements.value(index, &convert);
        let indices = match places {
            Places::From(first) => {
                for (lane, d) in d.iter_mut().enumerate() {
                    *d = element(first.wrapping_add(lane as u32));
                }
                return;
            }
            Places::Each(indices) => indices,
        };
        let (blocks, rest) = indices.as_chunks::<BLOCK>();
        let (into, rest_into) = d.as_chunks_mut::<BLOCK>();
        for (d, indices) in into.iter_mut().zip(blocks) {
            let at = |index: u32| pointer.add(index as usize * stride).cast::<M>();
            match block(indices, elements.count) {
                Block::Run(first) if SAME && size_of::<M>() == 4 && stride == 4 => {
                    copy_block::<I, M>(at(first), d.as_mut_ptr().cast::<M>());
                }
                Block::One(index) => d.fill(convert(M::get(at(index)))),
                Block::Run(_) | Block::Apart => {
                    for (d, index) in d.iter_mut().zip(indices) {
                        *d = convert(M::get(at(*index)));
                    }
                }
                Block::Beyond => {
                    for (d, index) in d.iter_mut().zip(indices) {
                        *d = element(*index);
                    }
                }
            }
        }
        for (d, index) in rest_into.iter_mut().zip(rest) {
            *d = element(*index);
        }
    }
}

/// The values that a store writes, by lane.
///
/// # Safety
/// As [`load_as`].
#[inline(always)]
unsafe fn values<R: Copy>(machine: &Machine<'_>, i: &Instr) -> impl Fn(usize) -> R {
    let uniform = i.form & B_UNIFORM != 0;
    // SAFETY: as in `load_as`.
    let start = unsafe { machine.file.add(i.b as usize).cast::<R>() };
    // SAFETY: as in `load_as`; lanes are those of the operand.
    move |lane| unsafe { start.add(if uniform { 0 } else { lane }).read() }
}

/// # Safety
/// As [`load_as`].
#[inline(always)]
unsafe fn store_as<I: Lanes, const SAME: bool, M: Shared, R: Copy>(
    machine: &Machine<'_>,
    i: &Instr,
    access: &Resolved,
    convert: impl Fn(R) -> M,
) {
    let n = machine.n;
    let linear = i.form & LINEAR != 0;
    // SAFETY: `Resolved` holds for indices below `count`; register operands as checked.
    unsafe {
        let active = machine.active(i.m);
        if matches!(active, Active::None) {
            return;
        }
        if access.private {
            return store_private::<R>(machine, i, access, active);
        }
        for (from, to, elements) in Parts::new(machine, access, 0, n) {
            if !linear && i.form & A_UNIFORM != 0 {
                let index = machine.scalar::<u32>(i.a);
                // All lanes write the same place: the last active one is kept.
                let last = (from..to).rev().find(|lane| active.has(*lane));
                if let (true, Some(lane)) = (u64::from(index) < elements.count, last) {
                    let place = elements.pointer.add(index as usize * elements.stride);
                    M::set(place.cast::<M>(), convert(values::<R>(machine, i)(lane)));
                }
                continue;
            }
            let lanes = match active {
                Active::All => Some((from, to - from)),
                Active::Some(mask) => active_run(&mask[from..to]).map(|(first, lanes)| (from + first, lanes)),
                Active::None => None,
            };
            if let Some((lane, lanes)) = lanes {
                let run = if linear {
                    Some(machine.scalar::<u32>(i.a).wrapping_add(lane as u32))
                } else {
                    run_of(&machine.source::<u32>(i.a, n)[lane..lane + lanes])
                };
                let run = run.and_then(|first| Some((first, within(first, lanes, elements.count)?)));
                if let Some((first, within)) = run {
                    if within > 0 {
                        store_run::<I, SAME, M, R>(machine, i, &elements, (lane, first, within), &convert);
                    }
                    continue;
                }
            }
            store_apart::<I, SAME, M, R>(machine, i, &elements, (from, to), active, &convert);
        }
    }
}

/// Stores to the lanes' own memory.
///
/// # Safety
/// As [`load_as`].
#[inline(always)]
unsafe fn store_private<R: Copy>(machine: &Machine<'_>, i: &Instr, access: &Resolved, active: Active<'_>) {
    let (n, pointer, stride) = (machine.n, access.pointer, access.stride);
    // SAFETY: as in `load_as`.
    unsafe {
        let value = values::<R>(machine, i);
        let slot = |index: u32| pointer.add(index as usize * stride * machine.lanes * 4).cast::<R>();
        if i.form & A_UNIFORM == 0 {
            for (lane, index) in machine.source::<u32>(i.a, n).iter().enumerate() {
                if u64::from(*index) < access.count && active.has(lane) {
                    slot(*index).add(lane).write(value(lane));
                }
            }
            return;
        }
        let index = machine.scalar::<u32>(i.a);
        if u64::from(index) >= access.count {
            return;
        }
        // No register: memory of the lanes lies apart from them.
        let slot = std::slice::from_raw_parts_mut(slot(index), n);
        match (active, i.form & B_UNIFORM != 0) {
            (Active::Some(mask), false) => {
                for ((slot, value), active) in slot.iter_mut().zip(machine.source::<R>(i.b, n)).zip(mask) {
                    *slot = if *active != 0 { *value } else { *slot };
                }
            }
            (Active::Some(mask), true) => {
                let value = value(0);
                for (slot, active) in slot.iter_mut().zip(mask) {
                    *slot = if *active != 0 { value } else { *slot };
                }
            }
            (_, false) => slot.copy_from_slice(machine.source::<R>(i.b, n)),
            (_, true) => slot.fill(value(0)),
        }
    }
}

/// Stores the values of consecutive lanes, from one on, to consecutive elements.
///
/// # Safety
/// As [`load_as`]; all are below the count.
#[inline(always)]
unsafe fn store_run<I: Lanes, const SAME: bool, M: Shared, R: Copy>(
    machine: &Machine<'_>,
    i: &Instr,
    elements: &Elements,
    (lane, first, count): (usize, u32, usize),
    convert: impl Fn(R) -> M,
) {
    let stride = elements.stride;
    // SAFETY: as in `load_as`.
    unsafe {
        let value = values::<R>(machine, i);
        let start = elements.pointer.add(first as usize * stride);
        match (i.form & B_UNIFORM != 0, stride == size_of::<M>()) {
            (true, true) => fill_run::<I, M>(convert(value(0)), start.cast::<M>(), count),
            (false, true) => {
                let values = &machine.source::<R>(i.b, machine.n)[lane..lane + count];
                if SAME {
                    copy::<I, M>(values.as_ptr().cast::<M>(), start.cast::<M>(), count);
                } else {
                    write_run::<I, M, R>(values, start.cast::<M>(), convert);
                }
            }
            (_, false) => {
                for place in 0..count {
                    M::set(start.add(place * stride).cast::<M>(), convert(value(lane + place)));
                }
            }
        }
    }
}

/// Stores to elements that are no run, or of which some are beyond the count. The order of lanes stays, where two store to one place.
///
/// # Safety
/// As [`load_as`].
#[inline(always)]
unsafe fn store_apart<I: Lanes, const SAME: bool, M: Shared, R: Copy>(
    machine: &Machine<'_>,
    i: &Instr,
    elements: &Elements,
    (from, to): (usize, usize),
    active: Active<'_>,
    convert: impl Fn(R) -> M,
) {
    let (n, pointer, stride) = (machine.n, elements.pointer, elements.stride);
    let (linear, uniform_value) = (i.form & LINEAR != 0, i.form & B_UNIFORM != 0);
    // SAFETY: as in `load_as`.
    unsafe {
        let value = values::<R>(machine, i);
        let mut lane = from;
        while lane < to {
            // Rows of a workgroup, each a run.
            if SAME && size_of::<M>() == 4 && stride == 4 && !linear && !uniform_value && lane + BLOCK <= to {
                let whole = match active {
                    Active::Some(mask) => mask[lane..lane + BLOCK].iter().all(|active| *active != 0),
                    _ => true,
                };
                let indices = &*machine.source::<u32>(i.a, n)[lane..].as_ptr().cast::<[u32; BLOCK]>();
                if whole && let Block::Run(first) = block(indices, elements.count) {
                    let values = machine.source::<R>(i.b, n)[lane..].as_ptr().cast::<M>();
                    copy_block::<I, M>(values, pointer.add(first as usize * 4).cast::<M>());
                    lane += BLOCK;
                    continue;
                }
            }
            for lane in lane..(lane + BLOCK).min(to) {
                let index = if linear {
                    machine.scalar::<u32>(i.a).wrapping_add(lane as u32)
                } else {
                    machine.scalar::<u32>(i.a + lane as u32)
                };
                if u64::from(index) < elements.count && active.has(lane) {
                    M::set(pointer.add(index as usize * stride).cast::<M>(), convert(value(lane)));
                }
            }
            lane += BLOCK;
        }
    }
}

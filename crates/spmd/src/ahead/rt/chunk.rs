//! One launch as generated code sees it, and the part of the grid that a chunk is. The CPU backend makes a `Job` for a launch and calls the entry over
//! ranges of chunks. Its layout is plain C, since the code may have been built by another compiler version. Every access goes through `Memory` with the
//! size of the binding: generated code trusts nothing else.

/// The bytes of one binding.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Start, aligned as the kernel's binding asks.
    pub pointer: *mut u8,
    /// Size.
    pub bytes: usize,
}

/// One launch. Plain C layout, so that a kernel compiled elsewhere can be called.
#[repr(C)]
#[derive(Debug)]
pub struct Job {
    /// Workgroups in x, y and z.
    pub workgroups: [u32; 3],
    /// Memory in the order of the kernel's bindings.
    pub bindings: *const Memory,
    /// The number of bindings.
    pub binding_count: usize,
    /// The overrides' values, in the order of the kernel's arguments: bits of a number, all bits or none of a bool.
    pub arguments: *const u32,
    /// The number of arguments.
    pub argument_count: usize,
    /// Asked now and then whether to stop; `None` if nothing can stop the launch.
    pub stop: Option<unsafe extern "C" fn(*const ()) -> bool>,
    /// The argument for `stop`.
    pub context: *const (),
    /// Whole rows stored into bindings of at least this size go past the caches.
    pub stream_from: usize,
}

// SAFETY: whoever made the job lends its memory to all threads that run it; `stop` may be called from any.
unsafe impl Sync for Job {}

/// The launch ran to its end.
pub const DONE: u32 = 0;
/// `stop` said so.
pub const STOPPED: u32 = 1;
/// There was no memory for the kernel's own variables.
pub const NO_MEMORY: u32 = 2;

/// A kernel, compiled: runs chunks `from ..to`, and gives [`DONE`], [`STOPPED`] or [`NO_MEMORY`].
///
/// # Safety
/// The job's bindings are those that the kernel was generated for: as many, each at least as large and as aligned as it
/// says; so are its arguments. The processor has the instruction set that the entry was compiled for. `stop` takes the job's `context`.
/// The kernel has no data race.
pub type Entry = unsafe extern "C" fn(job: &Job, from: u64, to: u64) -> u32;

/// The least and the largest of values that are base + steps.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The least.
    pub low: u32,
    /// The largest.
    pub high: u32,
    /// True if none of them wraps, nor is 2^31 or more: as i32 they are the same numbers. Else the other two say nothing.
    pub is_plain: bool,
}

/// The span of `base + x * steps[0] + y * steps[1] + z * steps[2]` for all x, y and z below the sizes. Steps from 2^31 on are negative.
#[inline(always)]
#[must_use]
pub fn span(base: u32, steps: [u32; 3], sizes: [u32; 3]) -> Span {
    let (mut low, mut high) = (i64::from(base), i64::from(base));
    for axis in 0..3 {
        let reach = i64::from(steps[axis] as i32) * i64::from(sizes[axis].saturating_sub(1));
        low += reach.min(0);
        high += reach.max(0);
    }
    Span { low: low as u32, high: high as u32, is_plain: low >= 0 && high <= i64::from(i32::MAX) }
}

/// Returns how many of the first lanes have `base + lane` below `bound`, and whether no lane's number starts over at zero: only then is that all of
/// them.
#[inline(always)]
#[must_use]
pub fn first_lanes<const N: usize>(base: u32, bound: u32) -> (usize, bool) {
    let last = base.checked_add((N as u32).saturating_sub(1));
    (super::at_most::<N>(bound.saturating_sub(base) as usize), last.is_some())
}

/// A run of lanes along x.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// `workgroup_id` of the first lane.
    pub group: [u32; 3],
    /// `global_invocation_id.x` of the first lane.
    pub start: u32,
    /// `local_invocation_id` of the first lane.
    pub local: [u32; 3],
    /// Lanes.
    pub lanes: usize,
}

impl Job {
    /// Chunk `chunk` where one chunk is up to `lanes` invocations along x.
    #[inline(always)]
    #[must_use]
    pub fn row(&self, chunk: u64, size: [u32; 3], lanes: u32) -> Row {
        let width = u64::from(self.workgroups[0]) * u64::from(size[0]);
        let height = (u64::from(self.workgroups[1]) * u64::from(size[1])).max(1);
        let per_row = width.div_ceil(u64::from(lanes)).max(1);
        let (start, line) = (chunk % per_row * u64::from(lanes), chunk / per_row);
        let (y, z) = (line % height, line / height);
        let split = |id: u64, size: u32| ((id / u64::from(size)) as u32, (id % u64::from(size)) as u32);
        let ((gx, lx), (gy, ly), (gz, lz)) = (split(start, size[0]), split(y, size[1]), split(z, size[2]));
        let count = width.saturating_sub(start).min(u64::from(lanes)) as usize;
        Row { group: [gx, gy, gz], start: start as u32, local: [lx, ly, lz], lanes: count }
    }

    /// `workgroup_id` of chunk `chunk` where one chunk is a workgroup.
    #[inline(always)]
    #[must_use]
    pub fn group(&self, chunk: u64) -> [u32; 3] {
        let [x, y, _] = self.workgroups.map(|side| u64::from(side).max(1));
        [(chunk % x) as u32, (chunk / x % y) as u32, (chunk / x / y) as u32]
    }

    /// Returns whether to stop; asks every 64th time.
    ///
    /// # Safety
    /// `stop` takes this `context`.
    #[inline(always)]
    pub unsafe fn stops(&self, ticks: &mut u32) -> bool {
        *ticks = ticks.wrapping_add(1);
        // SAFETY: `stop` takes this `context` (this function's contract).
        self.stop.is_some() && ticks.is_multiple_of(64) && unsafe { self.asks() }
    }

    /// Returns whether to stop.
    ///
    /// # Safety
    /// `stop` takes this `context`.
    #[inline(never)]
    #[must_use]
    pub unsafe fn asks(&self) -> bool {
        // SAFETY: `stop` takes this `context` (this function's contract).
        self.stop.is_some_and(|stop| unsafe { stop(self.context) })
    }

    /// The memory of a binding.
    ///
    /// # Safety
    /// There is such a binding.
    #[inline(always)]
    #[must_use]
    pub unsafe fn memory(&self, binding: usize) -> Memory {
        debug_assert!(binding < self.binding_count);
        // SAFETY: `binding < binding_count` (this function's contract).
        unsafe { *self.bindings.add(binding) }
    }

    /// The value of an override.
    ///
    /// # Safety
    /// There is such an argument.
    #[inline(always)]
    #[must_use]
    pub unsafe fn argument(&self, place: usize) -> u32 {
        debug_assert!(place < self.argument_count);
        // SAFETY: `place < argument_count` (this function's contract).
        unsafe { *self.arguments.add(place) }
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    /// Every value, by the arithmetic that kernels use.
    fn values(base: u32, steps: [u32; 3], sizes: [u32; 3]) -> Vec<u32> {
        let mut all = Vec::new();
        for z in 0..sizes[2] {
            for y in 0..sizes[1] {
                for x in 0..sizes[0] {
                    let steps = [x, y, z].into_iter().zip(steps);
                    all.push(steps.map(|(place, step)| place.wrapping_mul(step)).fold(base, u32::wrapping_add));
                }
            }
        }
        all
    }

    #[test]
    fn a_plain_span_holds_all_values_and_its_ends_are_among_them() {
        let bases = [0, 1, 5, 100, (1 << 31) - 4, (1 << 31) - 1, 1 << 31, u32::MAX - 2, u32::MAX];
        let steps = [0, 1, 3, u32::MAX, u32::MAX - 6, 1 << 30, 1 << 31];
        let mut plain = 0;
        for base in bases {
            for x in steps {
                for y in steps {
                    for sizes in [[1, 1, 1], [4, 1, 1], [3, 2, 1], [2, 3, 2]] {
                        let steps = [x, y, 7];
                        let span = span(base, steps, sizes);
                        let values = values(base, steps, sizes);
                        let (low, high) = (values.iter().min(), values.iter().max());
                        if span.is_plain {
                            plain += 1;
                            assert_eq!((Some(&span.low), Some(&span.high)), (low, high), "{base} {steps:?} {sizes:?}");
                            assert!(span.high < 1 << 31, "{base} {steps:?} {sizes:?}");
                        } else if sizes == [1, 1, 1] {
                            assert!(base >= 1 << 31, "{base}");
                        }
                    }
                }
            }
        }
        assert!(plain > 500, "{plain}");
    }
}

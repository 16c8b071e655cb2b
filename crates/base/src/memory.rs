//! Memory for input. Sizes in a file's header are compared with the available memory before anything is read, and buffers are allocated fallibly:
//! a file that is too large is an error, and never ends the process. It does not know the memory limit of an engine or of the program. Memory for buffers
//! ([`Zeroed`]). And copies, which take their time wherever both sides lie.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use crate::error::{Error, LimitError, Result};

/// Requests below this are not compared with the machine's memory: the question would cost more than the reading.
const SMALL: u64 = 32 << 20;

/// Bytes that are copied at a time where memory lies badly, and bytes of a page.
const PIECE: usize = 2048;
const PAGE: usize = 4096;
/// Bytes by which a target lies behind its source, apart from whole pages, where memory lies badly.
const BADLY: std::ops::Range<usize> = 1..64;

/// Copies elements as [`std::ptr::copy_nonoverlapping`] does. From 2 KiB on C libraries copy by `rep movsb`, which takes twelve times as long on Zen 4
/// where the target lies a few bytes behind the source, apart from whole pages (glibc's bug 30994). Such memory is copied in pieces.
///
/// # Safety
/// As that function's.
#[inline]
pub unsafe fn copy<T: Copy>(from: *const T, to: *mut T, count: usize) {
    let behind = to.addr().wrapping_sub(from.addr()) % PAGE;
    let piece = (PIECE / size_of::<T>().max(1)).max(1);
    // SAFETY: the elements lie on both sides, which do not overlap (this function's contract).
    unsafe {
        if count <= piece || !BADLY.contains(&behind) {
            return std::ptr::copy_nonoverlapping(from, to, count);
        }
        for at in (0..count).step_by(piece) {
            std::ptr::copy_nonoverlapping(from.add(at), to.add(at), piece.min(count - at));
        }
    }
}

/// A huge page of x86-64, and of Arm with pages of 4 KiB.
#[cfg(target_os = "linux")]
const HUGE_PAGE: usize = 2 << 20;

/// Memory of a fixed size that is zero at first. Large memory is mapped, not touched: who first writes a page brings it in, on its own thread.
#[derive(Debug)]
pub struct Zeroed {
    start: NonNull<u8>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Heap(Layout),
    /// A mapping, whose start and length this is.
    #[cfg(target_os = "linux")]
    Mapped(NonNull<u8>, usize),
}

// SAFETY: plain memory, touched through raw addresses alone: its owner says by whom.
unsafe impl Send for Zeroed {}
// SAFETY: `&Zeroed` gives out only an address.
unsafe impl Sync for Zeroed {}

/// The pages of large memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Huge ones, where the system gives them to those who ask: a pass over 64 MiB then needs 32 of the processor's address translations instead of
    /// 16,384 (a sum takes half of the time on a virtual machine). Where memory is in pieces, the system moves others' pages to make them.
    Huge,
    /// Huge ones if enough are free: for memory that may be used once, for which moving others' pages takes longer than it saves.
    HugeIfFree,
}

impl Pages {
    #[cfg(target_os = "linux")]
    fn are_huge(self, bytes: usize) -> bool {
        let free = || std::fs::read_to_string("/proc/buddyinfo").map_or(0, |text| huge_pages_free(&text));
        self == Self::Huge || free() > 2 * (bytes / HUGE_PAGE)
    }
}

/// The number of huge pages of 2 MiB in Linux's list of free blocks: in each zone the number of blocks of 4 KiB, 8 KiB and so on.
#[cfg(target_os = "linux")]
fn huge_pages_free(text: &str) -> usize {
    const ORDER: usize = 9;
    let zones = text.lines().filter_map(|line| line.split_once("zone"));
    let blocks = zones.flat_map(|(_, zone)| zone.split_whitespace().skip(1).enumerate().skip(ORDER));
    blocks.filter_map(|(order, count)| count.parse::<usize>().ok().map(|count| count << (order - ORDER).min(8))).sum()
}

impl Zeroed {
    /// Takes memory from the system; `None` when it has none. `alignment` is a power of 2, at most 2 MiB; no bytes are one.
    #[must_use]
    pub fn new(bytes: usize, alignment: usize, pages: Pages) -> Option<Self> {
        #[cfg(target_os = "linux")]
        if bytes >= 2 * HUGE_PAGE {
            return Self::mapped(bytes, pages.are_huge(bytes));
        }
        let _ = pages;
        let layout = Layout::from_size_align(bytes.max(1), alignment).ok()?;
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, source: Source::Heap(layout) })
    }

    #[cfg(target_os = "linux")]
    fn mapped(bytes: usize, huge: bool) -> Option<Self> {
        let length = bytes.checked_next_multiple_of(HUGE_PAGE)?.checked_add(HUGE_PAGE)?;
        // SAFETY: a new private mapping at an address of the system's choice.
        let mapping = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0)
        };
        if mapping == libc::MAP_FAILED {
            return None;
        }
        let mapping = NonNull::new(mapping.cast::<u8>())?;
        let shift = mapping.as_ptr().align_offset(HUGE_PAGE);
        // SAFETY: the shift is less than a huge page, by which the mapping is longer than the memory.
        let start = unsafe { mapping.add(shift) };
        if huge {
            // SAFETY: the range lies within the mapping. A system that refuses gives small pages, which do as well.
            let _ = unsafe { libc::madvise(start.as_ptr().cast(), length - HUGE_PAGE, libc::MADV_HUGEPAGE) };
        }
        Some(Self { start, source: Source::Mapped(mapping, length) })
    }

    /// Returns the address of the first byte, which does not change.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Zeroed {
    fn drop(&mut self) {
        match self.source {
            // SAFETY: allocated in `new` with this layout, freed once.
            Source::Heap(layout) => unsafe { dealloc(self.start.as_ptr(), layout) },
            #[cfg(target_os = "linux")]
            // SAFETY: mapped in `mapped` with this length, unmapped once.
            Source::Mapped(mapping, length) => unsafe {
                libc::munmap(mapping.as_ptr().cast(), length);
            },
        }
    }
}

/// Returns the machine's memory in bytes, where the system tells without a library.
#[must_use]
pub fn total() -> Option<u64> {
    stated("MemTotal:")
}

/// Returns the bytes that this process may still take, where the system says: those that are free or can be freed, within its control group.
#[must_use]
pub fn available() -> Option<u64> {
    let free = stated("MemAvailable:")?;
    #[cfg(target_os = "linux")]
    let free = group().map_or(free, |group| free.min(group));
    Some(free)
}

/// Returns one of the system's own figures in bytes.
fn stated(name: &str) -> Option<u64> {
    let text = cfg!(target_os = "linux").then(|| std::fs::read_to_string("/proc/meminfo").ok())??;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The bytes that the process's own control group leaves it, if that has a limit.
#[cfg(target_os = "linux")]
fn group() -> Option<u64> {
    let number =
        |file: &str| std::fs::read_to_string(format!("/sys/fs/cgroup/{file}")).ok()?.trim().parse::<u64>().ok();
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

/// Returns an error if this many bytes of `what` exceed the memory that is available.
///
/// # Errors
/// [`LimitError::Memory`] with both sizes.
pub fn fits(what: &str, bytes: u64) -> Result<()> {
    if bytes < SMALL {
        return Ok(());
    }
    let free = available().filter(|free| *free < bytes);
    let free = free.or_else(|| usize::try_from(bytes).map_or(Some(usize::MAX as u64), |_| None));
    free.map_or(Ok(()), |free| Err(too_large(what, bytes, Some(free))))
}

/// Returns this many zeros of `what`, which the system need not write before they are used.
///
/// # Errors
/// As [`vec`].
pub fn zeros(what: &str, count: usize) -> Result<Vec<u8>> {
    fits(what, count as u64)?;
    let zeros = isize::try_from(count).ok().and_then(|_| bytemuck::allocation::try_zeroed_vec(count).ok());
    zeros.ok_or_else(|| too_large(what, count as u64, None))
}

/// Returns an empty vector with room for this many elements of `what`.
///
/// # Errors
/// [`LimitError::Memory`] if there is no memory for them.
pub fn vec<T>(what: &str, count: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    reserve(what, &mut room, count)?;
    Ok(room)
}

/// Makes room for `more` elements of `what` in a vector.
///
/// # Errors
/// As [`vec`].
pub fn reserve<T>(what: &str, vector: &mut Vec<T>, more: usize) -> Result<()> {
    let bytes = (more as u64).saturating_mul(size_of::<T>() as u64);
    fits(what, bytes)?;
    vector.try_reserve_exact(more).map_err(|_| too_large(what, bytes, None))
}

/// Collects `count` elements of `what`, and no more.
///
/// # Errors
/// As [`vec`].
pub fn collect<T>(what: &str, count: usize, elements: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let mut room = vec(what, count)?;
    room.extend(elements.into_iter().take(count));
    Ok(room)
}

fn too_large(what: &str, bytes: u64, free: Option<u64>) -> Error {
    LimitError::Memory { what: what.to_owned(), bytes, free, remedy: String::new() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn free_huge_pages_are_counted() {
        let text = "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n\
            Node 0, zone   Normal   2433      2   1086    907   1255   5625   3421   1151    467    221    804 \n";
        assert_eq!(huge_pages_free(text), 1 + 2 * 3 + 221 + 2 * 804);
        assert_eq!(huge_pages_free("no list\nNode 0, zone Normal"), 0);
        for (bytes, pages) in
            [(0, Pages::Huge), (100, Pages::HugeIfFree), (5 << 20, Pages::HugeIfFree), (9 << 20, Pages::Huge)]
        {
            let memory = Zeroed::new(bytes, 64, pages).unwrap();
            assert!(memory.start().as_ptr().addr().is_multiple_of(64));
        }
    }

    #[test]
    fn elements_are_copied_wherever_they_lie() {
        let numbers: Vec<u32> = (0..6000).collect();
        let room = numbers.as_ptr().addr() % PAGE / 4;
        for (shift, count) in (0..40).flat_map(|shift| [0, 1, 511, 512, 513, 1500, 4000].map(|count| (shift, count))) {
            let mut to = vec![u32::MAX; 6000];
            // From where the source lies within a page, some elements later.
            let at = (room + PAGE / 4 - to.as_ptr().addr() % PAGE / 4) % (PAGE / 4) + shift;
            // SAFETY: both have as many elements there.
            unsafe { copy(numbers.as_ptr(), to.as_mut_ptr().add(at), count) };
            let wrong = (0..to.len()).find(|&place| {
                let want = place.checked_sub(at).filter(|&from| from < count).map_or(u32::MAX, |from| numbers[from]);
                to[place] != want
            });
            assert_eq!(wrong, None, "{count} elements, {shift} later");
        }
    }

    #[test]
    fn what_exceeds_any_machine_is_an_error() {
        for count in [usize::MAX, isize::MAX as usize, 1 << 50] {
            let error = vec::<u64>("huge.npy", count).expect_err("does not fit");
            assert!(error.is_input() && error.to_string().starts_with("huge.npy: it takes "), "{error}");
        }
        assert!(vec::<u64>("small", 100).expect("fits").capacity() >= 100);
        assert_eq!((zeros("small", 3).expect("fits"), zeros("huge", usize::MAX).is_err()), (vec![0; 3], true));
        assert_eq!(collect("ones", 3, std::iter::repeat(1)).expect("fits"), [1; 3]);
        assert!(collect("huge", usize::MAX, [1_u64]).is_err());
        // Below the size that is compared with the machine's memory, only the allocator refuses.
        assert_eq!(too_large("it", 1, None).to_string(), "it: it takes 1 bytes, and the system has no memory for that");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn no_more_is_available_than_the_machine_has() {
        let (free, total) = (available().expect("Linux says"), total().expect("Linux says"));
        assert!(free > 0 && free <= total, "{free} of {total} bytes");
    }
}

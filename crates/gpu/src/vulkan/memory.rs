//! Device memory in blocks, one set for each memory type, and raw buffers within them. Host-visible blocks stay mapped. `buffer`, `ring` and `transfer`
//! allocate through it. Blocks double in size for each memory type and stay mapped where the host reaches them. Memory that is not coherent is flushed in
//! whole atoms, so neighbouring buffers are kept apart by them. When a type is exhausted, the next suitable one is used (`Choice::Any`).

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ash::prelude::VkResult;
use ash::vk;
use vk::MemoryPropertyFlags as Flags;

use super::arena::Ranges;
use super::emulation::{self, Emulation};
use super::objects::{Owned, Raw};

/// The first block of a type; each further one is as large as all before it, up to the largest.
const FIRST_BLOCK: u64 = 4 << 20;
const LARGEST_BLOCK: u64 = 64 << 20;

/// The purpose of a buffer, which decides on its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A tensor: the device's own memory; where host and device share memory, such as the host reaches too.
    Tensor,
    /// Written by the host, read by the device.
    ToDevice,
    /// Written by the device, read by the host.
    ToHost,
}

impl Place {
    /// Flags to have and flags to avoid, best first.
    fn wishes(self, unified: bool) -> &'static [(Flags, Flags)] {
        const NONE: Flags = Flags::empty();
        const LOCAL: Flags = Flags::DEVICE_LOCAL;
        const VISIBLE: Flags = Flags::HOST_VISIBLE;
        const SHARED: Flags = Flags::from_raw(LOCAL.as_raw() | VISIBLE.as_raw());
        const SHARED_CACHED: Flags = Flags::from_raw(SHARED.as_raw() | Flags::HOST_CACHED.as_raw());
        const COHERENT: Flags = Flags::from_raw(VISIBLE.as_raw() | Flags::HOST_COHERENT.as_raw());
        const CACHED: Flags = Flags::from_raw(VISIBLE.as_raw() | Flags::HOST_CACHED.as_raw());
        match self {
            Self::Tensor if unified => &[(SHARED_CACHED, NONE), (SHARED, NONE), (LOCAL, NONE), (NONE, NONE)],
            Self::Tensor => &[(LOCAL, VISIBLE), (LOCAL, NONE), (NONE, NONE)],
            Self::ToDevice => &[(COHERENT, Flags::HOST_CACHED), (COHERENT, NONE), (VISIBLE, NONE)],
            Self::ToHost => &[(CACHED, NONE), (COHERENT, NONE), (VISIBLE, NONE)],
        }
    }
}

/// Flags of memory that is not for us.
const SPECIAL: Flags =
    Flags::from_raw(Flags::PROTECTED.as_raw() | Flags::LAZILY_ALLOCATED.as_raw() | Flags::DEVICE_COHERENT_AMD.as_raw());

/// The memory types to try for a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The one that suits its place best.
    Best,
    /// Any other type that will do, once that one is exhausted.
    Any,
}

/// The way in which host and device share memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// The device has memory of its own.
    Apart,
    /// They have the same memory.
    Unified,
    /// Whatever is there counts as `Apart`. What is mapped is not coherent: the host sees a copy, which flushing and invalidating update.
    Emulated,
}

/// The device's memory.
pub(super) struct Memory {
    raw: Arc<Raw>,
    properties: vk::PhysicalDeviceMemoryProperties,
    sharing: Sharing,
    /// Set while an emulated device's own memory is exhausted.
    full: Arc<AtomicBool>,
    /// Ranges of memory that is not coherent are flushed in multiples of this.
    atom: u64,
    blocks: Mutex<Blocks>,
    ids: AtomicU64,
}

#[derive(Default)]
struct Blocks {
    /// Blocks by kind and number.
    all: BTreeMap<(Kind, u64), Block>,
    next: u64,
}

/// A memory type, and whether the host reaches it.
type Kind = (u32, bool);

struct Block {
    memory: Owned<vk::DeviceMemory>,
    bytes: u64,
    /// The address for the host's reads and writes.
    mapped: Option<Mapped>,
    /// The memory itself, where the host sees a copy.
    behind: Option<Mapped>,
    _copy: Vec<u8>,
    ranges: Ranges,
}

/// A pointer into mapped memory.
#[derive(Clone, Copy)]
struct Mapped(NonNull<u8>);

// SAFETY: the memory belongs to the process, not to a thread; who touches it when is settled by the device's lock.
unsafe impl Send for Mapped {}
// SAFETY: a shared pointer is only copied; who touches the memory when is settled by the device's lock.
unsafe impl Sync for Mapped {}

/// A range of a block.
#[derive(Clone, Copy)]
struct Allocation {
    kind: Kind,
    block: u64,
    memory: vk::DeviceMemory,
    offset: u64,
    bytes: u64,
    mapped: Option<Mapped>,
    behind: Option<Mapped>,
    coherent: bool,
    cached: bool,
}

/// A Vulkan buffer with its memory and its identity for caches. What a submission uses it keeps, so the last reference goes when the device
/// has finished with it.
pub(super) struct RawBuffer {
    handle: Option<Owned<vk::Buffer>>,
    pub(super) id: u64,
    pub(super) bytes: u64,
    allocation: Allocation,
    memory: Arc<Memory>,
    /// The last submission that uses it: one that was made, or the next one when a pending transfer uses it.
    last_use: AtomicU64,
}

/// The call failed for lack of memory.
pub(super) fn lacks_memory(error: vk::Result) -> bool {
    matches!(error, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY)
}

impl Memory {
    pub(super) fn new(
        raw: Arc<Raw>,
        properties: &vk::PhysicalDeviceMemoryProperties,
        sharing: Sharing,
        limits: &vk::PhysicalDeviceLimits,
        emulation: &Emulation,
    ) -> Self {
        let atom = limits.non_coherent_atom_size.max(1);
        let properties = if sharing == Sharing::Emulated { emulation::apart(properties) } else { *properties };
        let full = emulation.full.clone();
        Self { raw, properties, sharing, full, atom, blocks: Mutex::default(), ids: AtomicU64::new(1) }
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a buffer. Its contents are anything.
    pub(super) fn buffer(
        self: &Arc<Self>,
        bytes: u64,
        usage: vk::BufferUsageFlags,
        place: Place,
        choice: Choice,
    ) -> VkResult<Arc<RawBuffer>> {
        let device = &self.raw.device;
        let info = vk::BufferCreateInfo::default().size(bytes).usage(usage);
        // SAFETY: the size is not zero; only one queue family is used.
        let handle = Owned::new(&self.raw, unsafe { device.create_buffer(&info, None) }?);
        // SAFETY: the buffer was just made.
        let needs = unsafe { device.get_buffer_memory_requirements(handle.handle) };
        let allowed = match self.sharing {
            // As the types are numbered there.
            Sharing::Emulated => needs.memory_type_bits << 1 | needs.memory_type_bits & 1,
            _ => needs.memory_type_bits,
        };
        let kinds = self.kinds(allowed, place);
        let mut allocation = Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        for kind in kinds.into_iter().take(if choice == Choice::Best { 1 } else { usize::MAX }) {
            allocation = self.allocate(kind, &needs, place);
            if !matches!(&allocation, Err(error) if lacks_memory(*error)) {
                break;
            }
        }
        let allocation = allocation?;
        // SAFETY: the range is as large and as aligned as the buffer needs, of a type that it takes, and nobody else's.
        let bound = unsafe { device.bind_buffer_memory(handle.handle, allocation.memory, allocation.offset) };
        let buffer = RawBuffer {
            handle: Some(handle),
            id: self.ids.fetch_add(1, Ordering::Relaxed),
            bytes,
            allocation,
            memory: self.clone(),
            last_use: AtomicU64::new(0),
        };
        bound.map(|()| Arc::new(buffer))
    }

    /// The memory types for a buffer, best first.
    fn kinds(&self, allowed: u32, place: Place) -> Vec<u32> {
        let kinds = self.properties.memory_types_as_slice();
        let fit = |(have, avoid): &(Flags, Flags)| {
            let (have, avoid) = (*have, *avoid | SPECIAL);
            let each = kinds.iter().zip(0_u32..);
            each.filter(move |(kind, index)| {
                let flags = kind.property_flags;
                allowed & (1 << index) != 0 && flags.contains(have) && !flags.intersects(avoid)
            })
        };
        let mut found = Vec::new();
        for (_, index) in place.wishes(self.sharing == Sharing::Unified).iter().flat_map(fit) {
            if !found.contains(&index) {
                found.push(index);
            }
        }
        found
    }

    fn allocate(&self, kind: u32, needs: &vk::MemoryRequirements, place: Place) -> VkResult<Allocation> {
        let flags = self.properties.memory_types_as_slice().get(kind as usize).map(|kind| kind.property_flags);
        let flags = flags.unwrap_or_default();
        let emulated = self.sharing == Sharing::Emulated;
        let visible = flags.contains(Flags::HOST_VISIBLE) && !(emulated && place == Place::Tensor);
        let coherent = flags.contains(Flags::HOST_COHERENT) && !emulated;
        let kind = (kind, visible);
        // What is flushed of one buffer must not touch the next.
        let (alignment, bytes) = if visible && !coherent {
            (needs.alignment.max(self.atom), needs.size.next_multiple_of(self.atom))
        } else {
            (needs.alignment, needs.size)
        };
        let mut blocks = self.lock();
        let of_kind = (kind, 0)..=(kind, u64::MAX);
        let room = blocks
            .all
            .range_mut(of_kind.clone())
            .find_map(|(&(_, number), block)| block.ranges.take(bytes, alignment).map(|offset| (number, offset)));
        let (number, offset) = match room {
            Some(found) => found,
            None => {
                let held: u64 = blocks.all.range(of_kind).map(|(_, block)| block.bytes).sum();
                let mut block = self.block(kind, bytes, held)?;
                let offset = block.ranges.take(bytes, alignment).ok_or(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)?;
                let number = blocks.next;
                blocks.next += 1;
                blocks.all.insert((kind, number), block);
                (number, offset)
            }
        };
        let block = blocks.all.get(&(kind, number)).ok_or(vk::Result::ERROR_UNKNOWN)?;
        let within = |Mapped(start): Mapped| {
            // SAFETY: the offset lies within the block, whose size fits the address space since it is mapped.
            Mapped(unsafe { start.add(usize::try_from(offset).unwrap_or(0)) })
        };
        Ok(Allocation {
            kind,
            block: number,
            memory: block.memory.handle,
            offset,
            bytes,
            mapped: block.mapped.map(within),
            behind: block.behind.map(within),
            coherent,
            cached: flags.contains(Flags::HOST_CACHED),
        })
    }

    /// A new block with room for this many bytes: of the usual size if that fits and is available, else of just that size.
    fn block(&self, kind: Kind, bytes: u64, held: u64) -> VkResult<Block> {
        let heap = self.properties.memory_types_as_slice().get(kind.0 as usize).map(|kind| kind.heap_index);
        let heap = heap.and_then(|heap| self.properties.memory_heaps_as_slice().get(heap as usize));
        let usual = held.clamp(FIRST_BLOCK, LARGEST_BLOCK).min(heap.map_or(0, |heap| heap.size / 16)) & !0xffff;
        if bytes <= usual / 2
            && let Ok(block) = self.new_block(kind, usual)
        {
            return Ok(block);
        }
        self.new_block(kind, bytes)
    }

    fn new_block(&self, (kind, visible): Kind, bytes: u64) -> VkResult<Block> {
        let device = &self.raw.device;
        let kind = if self.sharing == Sharing::Emulated {
            if kind == 0 && self.full.load(Ordering::Acquire) {
                return Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
            }
            emulation::really(kind)
        } else {
            kind
        };
        let info = vk::MemoryAllocateInfo::default().allocation_size(bytes).memory_type_index(kind);
        // SAFETY: the type exists; a size that is too large is refused.
        let memory = Owned::new(&self.raw, unsafe { device.allocate_memory(&info, None) }?);
        let mapped = if visible {
            // SAFETY: the memory is host-visible and not mapped yet; it is unmapped when it is freed.
            let start = unsafe { device.map_memory(memory.handle, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) }?;
            Some(Mapped(NonNull::new(start.cast()).ok_or(vk::Result::ERROR_MEMORY_MAP_FAILED)?))
        } else {
            None
        };
        let ranges = Ranges::new(bytes);
        if self.sharing != Sharing::Emulated || mapped.is_none() {
            return Ok(Block { memory, bytes, mapped, behind: None, _copy: Vec::new(), ranges });
        }
        // Noise, as what was never invalidated may be.
        let mut copy = vec![0xcd_u8; usize::try_from(bytes).map_err(|_| vk::Result::ERROR_OUT_OF_HOST_MEMORY)?];
        let seen = NonNull::new(copy.as_mut_ptr()).map(Mapped);
        Ok(Block { memory, bytes, mapped: seen, behind: mapped, _copy: copy, ranges })
    }

    fn free(&self, allocation: &Allocation) {
        let Allocation { kind, block: number, offset, bytes, .. } = *allocation;
        let mut blocks = self.lock();
        let Some(block) = blocks.all.get_mut(&(kind, number)) else { return };
        block.ranges.give(offset, bytes);
        if !block.ranges.is_empty() {
            return;
        }
        // One empty block of a type is kept, unless it is larger than usual.
        let another = blocks.all.range((kind, 0)..=(kind, u64::MAX));
        let another = another.filter(|((_, other), _)| *other != number).any(|(_, block)| block.ranges.is_empty());
        let large = blocks.all.get(&(kind, number)).is_some_and(|block| block.bytes > LARGEST_BLOCK);
        if another || large {
            blocks.all.remove(&(kind, number));
        }
    }

    /// Gives empty blocks back to the system.
    pub(super) fn trim(&self) {
        self.lock().all.retain(|_, block| !block.ranges.is_empty());
    }
}

impl RawBuffer {
    pub(super) fn handle(&self) -> vk::Buffer {
        self.handle.as_ref().map_or(vk::Buffer::null(), |owned| owned.handle)
    }

    /// Notes that a submission uses it.
    pub(super) fn used_by(&self, serial: u64) {
        self.last_use.fetch_max(serial, Ordering::AcqRel);
    }

    pub(super) fn last_use(&self) -> u64 {
        self.last_use.load(Ordering::Acquire)
    }

    /// True when the host can write it directly.
    pub(super) fn is_mapped(&self) -> bool {
        self.allocation.mapped.is_some()
    }

    /// True when the host can read it directly, and fast.
    pub(super) fn is_readable(&self) -> bool {
        self.is_mapped() && self.allocation.cached
    }

    /// Copies bytes in; false when the buffer is not mapped or the range lies outside. Nobody else uses that range meanwhile: the caller
    /// holds the device's lock and knows that the device is done with it, or is the only one who knows the buffer.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> bool {
        self.touch(offset, data.len() as u64, |start| {
            // SAFETY: `touch` checked the range; the caller excludes others on host and device.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), start.as_ptr(), data.len()) };
        })
    }

    /// Fills with zeros; otherwise as [`RawBuffer::write`].
    pub(super) fn clear(&self, offset: u64, bytes: u64) -> bool {
        self.touch(offset, bytes, |start| {
            // SAFETY: as in `write`.
            unsafe { start.as_ptr().write_bytes(0, usize::try_from(bytes).unwrap_or(0)) };
        })
    }

    fn touch(&self, offset: u64, bytes: u64, work: impl FnOnce(NonNull<u8>)) -> bool {
        let Some(start) = self.range(offset, bytes) else { return false };
        work(start);
        self.allocation.coherent || self.sync(offset, bytes, true).is_ok()
    }

    /// Copies bytes out; otherwise as [`RawBuffer::write`].
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        let bytes = into.len() as u64;
        let Some(start) = self.range(offset, bytes) else { return false };
        if !self.allocation.coherent && self.sync(offset, bytes, false).is_err() {
            return false;
        }
        // SAFETY: the range was checked; the caller excludes writers on host and device.
        unsafe { std::ptr::copy_nonoverlapping(start.as_ptr(), into.as_mut_ptr(), into.len()) };
        true
    }

    fn range(&self, offset: u64, bytes: u64) -> Option<NonNull<u8>> {
        let end = offset.checked_add(bytes).filter(|&end| end <= self.bytes)?;
        let (offset, _) = (usize::try_from(offset).ok()?, usize::try_from(end).ok()?);
        // SAFETY: the offset lies within the buffer's range of the mapped block.
        self.allocation.mapped.map(|Mapped(start)| unsafe { start.add(offset) })
    }

    /// Flushes what the host wrote, or fetches what the device wrote, in memory that is not coherent.
    fn sync(&self, offset: u64, bytes: u64, flush: bool) -> VkResult<()> {
        let atom = self.memory.atom;
        let start = (self.allocation.offset + offset) / atom * atom;
        let end = (self.allocation.offset + offset + bytes).next_multiple_of(atom);
        // A block that is no multiple of an atom ends early.
        let end = end.min(self.allocation.offset + self.allocation.bytes);
        let range = vk::MappedMemoryRange::default().memory(self.allocation.memory).offset(start).size(end - start);
        let device = &self.memory.raw.device;
        let (place, size) = (start - self.allocation.offset, end - start);
        if flush {
            self.carry(place, size, flush);
        }
        // SAFETY: the range is mapped, and a multiple of atoms: allocations of such memory are.
        let synced = unsafe {
            if flush {
                device.flush_mapped_memory_ranges(&[range])
            } else {
                device.invalidate_mapped_memory_ranges(&[range])
            }
        };
        if !flush {
            self.carry(place, size, flush);
        }
        synced
    }

    /// Between the memory and the copy that the host sees, where it sees one.
    fn carry(&self, place: u64, size: u64, flush: bool) {
        let (Some(Mapped(seen)), Some(Mapped(behind))) = (self.allocation.mapped, self.allocation.behind) else {
            return;
        };
        let (Ok(place), Ok(size)) = (usize::try_from(place), usize::try_from(size)) else { return };
        // SAFETY: both are mapped blocks with the buffer's range at this place, and never overlap; the caller excludes others.
        unsafe {
            let (seen, behind) = (seen.add(place).as_ptr(), behind.add(place).as_ptr());
            let (from, to) = if flush { (seen, behind) } else { (behind, seen) };
            std::ptr::copy_nonoverlapping(from, to, size);
        }
    }
}

impl Drop for RawBuffer {
    fn drop(&mut self) {
        // The buffer goes before its memory.
        self.handle = None;
        self.memory.free(&self.allocation);
    }
}

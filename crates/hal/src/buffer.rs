//! Buffers, and the one place that finds the buffer of a binding.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::sync::Arc;

use wgpu_hal::BufferBinding;

use crate::memory::Memory;

/// A buffer: memory that the host maps as it is.
pub struct Buffer {
    pub(crate) memory: Arc<Memory>,
}

thread_local! {
    /// The memory of the buffer that was printed last, while somebody asks.
    static PRINTED: RefCell<Option<Option<Arc<Memory>>>> = const { RefCell::new(None) };
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        PRINTED.with_borrow_mut(|asked| {
            if let Some(answer) = asked {
                *answer = Some(self.memory.clone());
            }
        });
        f.debug_struct("Buffer").field("bytes", &self.memory.bytes()).finish()
    }
}

/// A range of a buffer, as it is bound.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) memory: Arc<Memory>,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Bound {
    /// Returns what a binding is bound to. `BufferBinding::buffer` is private in wgpu-hal 30, and its `Debug` calls that of the buffer, which leaves its memory
    /// in `PRINTED`. wgpu-hal 31 makes the field public: then this and `PRINTED` go.
    pub(crate) fn of(binding: &BufferBinding<'_, Buffer>) -> Option<Self> {
        struct Nowhere;
        impl Write for Nowhere {
            fn write_str(&mut self, _: &str) -> fmt::Result {
                Ok(())
            }
        }
        PRINTED.set(Some(None));
        // Nowhere fails nowhere.
        let _ = write!(Nowhere, "{binding:?}");
        let memory = PRINTED.take().flatten()?;
        let rest = memory.bytes().checked_sub(binding.offset)?;
        let bytes = binding.size.map_or(rest, std::num::NonZeroU64::get).min(rest);
        Some(Self { memory, offset: binding.offset, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, Buffer};
    use crate::memory::Memory;
    use std::sync::Arc;
    use wgpu_hal::BufferBinding;

    /// Fails when wgpu-hal's `Debug` no longer prints the buffer.
    #[test]
    fn the_buffer_of_a_binding_is_found() {
        let buffers: Vec<Buffer> =
            (1..4).map(|size| Buffer { memory: Arc::new(Memory::new(size * 64).unwrap()) }).collect();
        for buffer in &buffers {
            let bound = Bound::of(&BufferBinding::new_unchecked(buffer, 32, None)).unwrap();
            assert!(Arc::ptr_eq(&bound.memory, &buffer.memory));
            assert_eq!((bound.offset, bound.bytes), (32, buffer.memory.bytes() - 32));
            let size = std::num::NonZeroU64::new(16);
            assert_eq!(Bound::of(&BufferBinding::new_unchecked(buffer, 0, size)).unwrap().bytes, 16);
        }
        assert_eq!(format!("{:?}", buffers[0]), "Buffer { bytes: 64 }");
    }
}

//! Atomic operations on one element. In workgroup memory, which one thread alone touches, they are plain.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// An atomic operation. Floats are given by their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "WGSL's own names")]
pub enum AtomicOperation {
    Load,
    Store,
    Add,
    Sub,
    And,
    Or,
    Xor,
    Min,
    Max,
    MinSigned,
    MaxSigned,
    Exchange,
    FloatAdd,
    FloatSub,
    FloatMin,
    FloatMax,
    /// An exchange, if the memory holds the expected value.
    CompareExchange,
}

macro_rules! operations {
    ($apply:ident, $atomic:ident, $plain:ident, $cell:ty, $word:ty, $signed:ty, $float:ty) => {
        #[inline(always)]
        fn $apply(op: AtomicOperation, old: $word, value: $word, expected: $word) -> $word {
            let real = <$float>::from_bits;
            match op {
                AtomicOperation::Load => old,
                AtomicOperation::Store | AtomicOperation::Exchange => value,
                AtomicOperation::Add => old.wrapping_add(value),
                AtomicOperation::Sub => old.wrapping_sub(value),
                AtomicOperation::And => old & value,
                AtomicOperation::Or => old | value,
                AtomicOperation::Xor => old ^ value,
                AtomicOperation::Min => old.min(value),
                AtomicOperation::Max => old.max(value),
                AtomicOperation::MinSigned => (old as $signed).min(value as $signed) as $word,
                AtomicOperation::MaxSigned => (old as $signed).max(value as $signed) as $word,
                AtomicOperation::FloatAdd => (real(old) + real(value)).to_bits(),
                AtomicOperation::FloatSub => (real(old) - real(value)).to_bits(),
                AtomicOperation::FloatMin => real(old).min(real(value)).to_bits(),
                AtomicOperation::FloatMax => real(old).max(real(value)).to_bits(),
                AtomicOperation::CompareExchange => {
                    if old == expected {
                        value
                    } else {
                        old
                    }
                }
            }
        }

        /// Runs the operation on shared memory, and gives the old value; zero where there is no element.
        ///
        /// # Safety
        /// The address is that of an element of a storage binding, aligned to its size. Other threads access it atomically, or not at the same time.
        #[inline(always)]
        pub unsafe fn $atomic(op: AtomicOperation, address: Option<*mut u8>, value: $word, expected: $word) -> $word {
            let Some(address) = address else { return 0 };
            // SAFETY: the address is that of an element, aligned to its size, and no plain access runs meanwhile (this function's contract).
            let cell = unsafe { <$cell>::from_ptr(address.cast()) };
            match op {
                AtomicOperation::Load => cell.load(Relaxed),
                AtomicOperation::Store => {
                    cell.store(value, Relaxed);
                    0
                }
                AtomicOperation::Exchange => cell.swap(value, Relaxed),
                AtomicOperation::Add => cell.fetch_add(value, Relaxed),
                AtomicOperation::Sub => cell.fetch_sub(value, Relaxed),
                AtomicOperation::And => cell.fetch_and(value, Relaxed),
                AtomicOperation::Or => cell.fetch_or(value, Relaxed),
                AtomicOperation::Xor => cell.fetch_xor(value, Relaxed),
                AtomicOperation::Min => cell.fetch_min(value, Relaxed),
                AtomicOperation::Max => cell.fetch_max(value, Relaxed),
                AtomicOperation::CompareExchange => match cell.compare_exchange(expected, value, Relaxed, Relaxed) {
                    Ok(old) | Err(old) => old,
                },
                op => {
                    let next = |old| Some($apply(op, old, value, expected));
                    match cell.fetch_update(Relaxed, Relaxed, next) {
                        Ok(old) | Err(old) => old,
                    }
                }
            }
        }

        /// Runs the operation on memory that no other thread touches, and gives the old value; zero where there is no
        /// element.
        ///
        /// # Safety
        /// The address is that of an element of workgroup memory.
        #[inline(always)]
        pub unsafe fn $plain(op: AtomicOperation, address: Option<*mut u8>, value: $word, expected: $word) -> $word {
            let Some(address) = address else { return 0 };
            // SAFETY: the address is that of an element which no other thread touches (this function's contract).
            unsafe {
                let cell = address.cast::<$word>();
                let old = cell.read_unaligned();
                cell.write_unaligned($apply(op, old, value, expected));
                old
            }
        }
    };
}
operations!(apply32, atomic_u32, plain_u32, AtomicU32, u32, i32, f32);
operations!(apply64, atomic_u64, plain_u64, AtomicU64, u64, i64, f64);

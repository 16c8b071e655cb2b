//! Atomic operations on one element. In workgroup memory, which one thread alone touches, they are plain.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

macro_rules! operations {
    ($name:ident, $apply:ident, $atomic:ident, $plain:ident, $cell:ty, $word:ty, $signed:ty, $float:ty) => {
        /// What an atomic operation does. Floats are given by their bits.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "WGSL's own names")]
        pub enum $name {
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
            /// With the value that is expected.
            CompareExchange,
        }

        #[inline(always)]
        fn $apply(op: $name, old: $word, value: $word, expected: $word) -> $word {
            let real = <$float>::from_bits;
            match op {
                $name::Load => old,
                $name::Store | $name::Exchange => value,
                $name::Add => old.wrapping_add(value),
                $name::Sub => old.wrapping_sub(value),
                $name::And => old & value,
                $name::Or => old | value,
                $name::Xor => old ^ value,
                $name::Min => old.min(value),
                $name::Max => old.max(value),
                $name::MinSigned => (old as $signed).min(value as $signed) as $word,
                $name::MaxSigned => (old as $signed).max(value as $signed) as $word,
                $name::FloatAdd => (real(old) + real(value)).to_bits(),
                $name::FloatSub => (real(old) - real(value)).to_bits(),
                $name::FloatMin => real(old).min(real(value)).to_bits(),
                $name::FloatMax => real(old).max(real(value)).to_bits(),
                $name::CompareExchange => {
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
        /// The address is that of an element of a storage binding, aligned to its size.
        #[inline(always)]
        pub unsafe fn $atomic(op: $name, address: Option<*mut u8>, value: $word, expected: $word) -> $word {
            let Some(address) = address else { return 0 };
            // SAFETY: the caller's promise.
            let cell = unsafe { <$cell>::from_ptr(address.cast()) };
            match op {
                $name::Load => cell.load(Relaxed),
                $name::Store => {
                    cell.store(value, Relaxed);
                    0
                }
                $name::Exchange => cell.swap(value, Relaxed),
                $name::Add => cell.fetch_add(value, Relaxed),
                $name::Sub => cell.fetch_sub(value, Relaxed),
                $name::And => cell.fetch_and(value, Relaxed),
                $name::Or => cell.fetch_or(value, Relaxed),
                $name::Xor => cell.fetch_xor(value, Relaxed),
                $name::Min => cell.fetch_min(value, Relaxed),
                $name::Max => cell.fetch_max(value, Relaxed),
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
        pub unsafe fn $plain(op: $name, address: Option<*mut u8>, value: $word, expected: $word) -> $word {
            let Some(address) = address else { return 0 };
            // SAFETY: the caller's promise.
            unsafe {
                let cell = address.cast::<$word>();
                let old = cell.read_unaligned();
                cell.write_unaligned($apply(op, old, value, expected));
                old
            }
        }
    };
}
operations!(Atomic32, apply32, atomic_u32, plain_u32, AtomicU32, u32, i32, f32);
operations!(Atomic64, apply64, atomic_u64, plain_u64, AtomicU64, u64, i64, f64);

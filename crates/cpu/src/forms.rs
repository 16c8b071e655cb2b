//! A function in a form for each instruction set.

/// Defines a function that calls the best form of another one, which is generic over [`crate::spmd::math::Isa`] and always inlined. As with the
/// executor, `CANTUS_INSTRUCTION_SET` asks for a lesser form.
macro_rules! forms {
    ($(#[$about:meta])* $access:vis fn $($function:tt)*) => {
        $crate::forms::forms!(@of [] $(#[$about])* $access fn $($function)*);
    };
    ($(#[$about:meta])* $access:vis unsafe fn $($function:tt)*) => {
        $crate::forms::forms!(@of [unsafe] $(#[$about])* $access fn $($function)*);
    };
    (
        @of [$($danger:tt)?]
        $(#[$about:meta])* $access:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $body:ident
    ) => {
        $(#[$about])*
        #[allow(unused_unsafe, reason = "some of the functions are unsafe themselves")]
        $access $($danger)? fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                $($danger)? fn avx512($($argument: $type),*) $(-> $result)? {
                    // SAFETY: what the function asks of its caller, if anything, holds here too.
                    unsafe { $body::<$crate::spmd::math::Fma512>($($argument),*) }
                }
                #[target_feature(enable = "avx2,fma")]
                $($danger)? fn avx2($($argument: $type),*) $(-> $result)? {
                    // SAFETY: what the function asks of its caller, if anything, holds here too.
                    unsafe { $body::<$crate::spmd::math::Fma>($($argument),*) }
                }
                match cantus_base::instructions::InstructionSet::best() {
                    // SAFETY: the processor has the set in use; what the function asks of its caller, if anything, holds here too.
                    cantus_base::instructions::InstructionSet::Avx512 => return unsafe { avx512($($argument),*) },
                    // SAFETY: the processor has the set in use; what the function asks of its caller, if anything, holds here too.
                    cantus_base::instructions::InstructionSet::Avx2 => return unsafe { avx2($($argument),*) },
                    cantus_base::instructions::InstructionSet::Baseline => {}
                }
            }
            // SAFETY: what the function asks of its caller, if anything, holds here too.
            unsafe { $body::<$crate::spmd::math::Baseline>($($argument),*) }
        }
    };
}
pub(crate) use forms;

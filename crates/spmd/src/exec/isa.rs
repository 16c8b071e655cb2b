//! The lane loops, compiled for each instruction set, and the choice between them.

use super::machine::Machine;
use crate::bytecode::Instr;
use crate::math::Isa;
#[cfg(target_arch = "x86_64")]
use cantus_base::instructions::InstructionSet;

/// The lane loops of a group of operations.
///
/// # Safety
/// The instruction is of the checked program that the machine runs, and the processor has the instruction set of the loops' table.
pub(crate) type Group = unsafe fn(&Machine<'_>, &Instr);

/// One function for each group of operations.
pub(crate) struct Table {
    pub moves: Group,
    pub float: Group,
    pub float2: Group,
    pub int: Group,
    pub int2: Group,
    pub wide: Group,
    pub wide2: Group,
    pub double: Group,
    pub double2: Group,
    pub convert: Group,
    pub load: Group,
    pub store: Group,
    pub texel: Group,
}

/// The wrappers of one table.
macro_rules! group {
    ($(#[$attribute:meta])* $isa:ty, $($module:ident $function:ident $name:ident,)*) => {
        $crate::exec::isa::group!(@each [$(#[$attribute])*] $isa, $($module $function $name,)*);
    };
    (@each $attributes:tt $isa:ty, $($module:ident $function:ident $name:ident,)*) => {
        $($crate::exec::isa::group!(@one $attributes $isa, $module, $function, $name);)*
    };
    (@one [$(#[$attribute:meta])*] $isa:ty, $module:ident, $function:ident, $name:ident) => {
        $(#[$attribute])*
        unsafe fn $name(machine: &Machine<'_>, i: &Instr) {
            // SAFETY: `i` is checked, and the processor has these features (the contract of `Group`).
            unsafe { $module::$function::<$isa>(machine, i) }
        }
    };
}
pub(crate) use group;

/// Instantiates every group for one marker, each in a function with the given attribute.
macro_rules! table {
    ($(#[$attribute:meta])* $name:ident, $isa:ty) => {
        mod $name {
            use super::{Instr, Machine, Table};
            use crate::exec::{convert, double, float, int, memory, moves, texel, wide};
            $crate::exec::isa::group!($(#[$attribute])* $isa,
                moves moves run_moves,
                float float run_float,
                float float2 run_float2,
                int int run_int,
                int int2 run_int2,
                wide wide run_wide,
                wide wide2 run_wide2,
                double double run_double,
                double double2 run_double2,
                convert convert run_convert,
                memory load run_load,
                memory store run_store,
                texel texel run_texel,
            );
            pub(super) static TABLE: Table = Table {
                moves: run_moves,
                float: run_float,
                float2: run_float2,
                int: run_int,
                int2: run_int2,
                wide: run_wide,
                wide2: run_wide2,
                double: run_double,
                double2: run_double2,
                convert: run_convert,
                load: run_load,
                store: run_store,
                texel: run_texel,
            };
        }
    };
}

table!(baseline, crate::math::Baseline);
#[cfg(target_arch = "x86_64")]
table!(
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,popcnt,lzcnt")]
    avx2,
    crate::math::Fma
);
#[cfg(target_arch = "x86_64")]
table!(
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,popcnt,lzcnt")]
    avx512,
    crate::math::Fma512
);

/// Returns the table of the instruction set in use.
pub(crate) fn best() -> &'static Table {
    #[cfg(target_arch = "x86_64")]
    match InstructionSet::best() {
        InstructionSet::Avx512 => return &avx512::TABLE,
        InstructionSet::Avx2 => return &avx2::TABLE,
        InstructionSet::Baseline => {}
    }
    &baseline::TABLE
}

/// Names the instruction sets that the groups are generic over.
pub(crate) trait Lanes: Isa {}
impl<T: Isa> Lanes for T {}

//! The lane loops, compiled for each instruction set, and the choice between them.

use std::sync::OnceLock;

use super::machine::Machine;
use crate::bytecode::Instr;
use crate::math::Isa;

/// The lane loops of a group of operations.
///
/// # Safety
/// The instruction is of the checked program that the machine runs, and the processor has the instruction set of the loops' table.
pub(crate) type Group = unsafe fn(&Machine<'_>, &Instr);

/// One function for each group of operations.
pub(crate) struct Table {
    /// The name of the instruction set.
    pub name: &'static str,
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
                name: stringify!($name),
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

/// The best table for this processor, chosen once; `CANTUS_INSTRUCTION_SET` (baseline, avx2) asks for a lesser one, to test it.
pub(crate) fn best() -> &'static Table {
    static BEST: OnceLock<&'static Table> = OnceLock::new();
    BEST.get_or_init(|| choose(std::env::var("CANTUS_INSTRUCTION_SET").ok().as_deref()))
}

fn choose(wanted: Option<&str>) -> &'static Table {
    if wanted == Some(baseline::TABLE.name) {
        return &baseline::TABLE;
    }
    #[cfg(target_arch = "x86_64")]
    {
        let v3 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("lzcnt");
        let v4 = v3
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        if v4 && wanted != Some(avx2::TABLE.name) {
            return &avx512::TABLE;
        }
        if v3 {
            return &avx2::TABLE;
        }
    }
    &baseline::TABLE
}

/// Names the instruction sets that the groups are generic over.
pub(crate) trait Lanes: Isa {}
impl<T: Isa> Lanes for T {}

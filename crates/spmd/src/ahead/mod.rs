//! Kernels compiled ahead: the same WGSL, lowered as for the executor, written as Rust that rustc vectorises.
//!
//! The generator (`cantus-build`) writes a module with a [`Compiled`], which the CPU backend takes by priority over the executor:
//! `cargo xtask ahead` does so for every shipped kernel, and an app for its own, with
//! [`Kernel::with_ahead`](crate::Kernel::with_ahead). Lane maths are the executor's, so both give the same bits (a NaN stays a NaN,
//! with any payload).
//!
//! What generated code does:
//!
//! - A chunk of the grid is a workgroup, for kernels with barriers, workgroup memory or subgroup operations; else a run of
//!   lanes along x, over workgroups, so that y and z and all that depends on them are scalars.
//! - What is uniform is computed once for the chunk. What is base + step * lane is kept as base and step; whether all
//!   those elements lie within their memory is asked once for the chunk, and a second form of the loop runs where it does not.
//! - The rest is cut into regions at barriers, loops, and where a divergent branch is worth skipping. Each region is one
//!   loop over the lanes; values that live across regions are kept per lane. Divergent loops run in lock-step, under masks,
//!   while any lane is active.
//! - Overrides are arguments of the launch, so that one form serves all their values; those that size a workgroup or an array, begin
//!   a variable of the module, or go through a function that naga computes otherwise, are those it was generated with.
//! - Stores follow the computations of their region in loops of their own, so that nothing needs to know whether memory
//!   overlaps; rows of large outputs go past the caches.

#[doc(hidden)]
pub mod launch;
#[doc(hidden)]
pub mod rt;

#[doc(hidden)]
pub use crate::math;

pub use rt::Entry;

use crate::BindingInfo;
use crate::fnv::Fnv;
#[cfg(target_arch = "x86_64")]
use cantus_base::instructions::InstructionSet;

/// A kernel that was compiled ahead: made by generated code only. [`Kernel::with_ahead`](crate::Kernel::with_ahead) is unsafe because
/// nothing tells whether it was.
#[derive(Debug)]
pub struct Compiled {
    /// The entry point.
    pub name: &'static str,
    /// Fingerprint of the WGSL, the entry point and the overrides that it was generated from, except overrides that are arguments.
    pub fingerprint: u64,
    /// Invocations per workgroup.
    pub workgroup_size: [u32; 3],
    /// Lanes of a chunk along x; 0 where a chunk is a workgroup.
    pub row: u32,
    /// Group, binding, whether it is written, and least size in bytes, in order.
    pub bindings: &'static [(u32, u32, bool, u64)],
    /// Overrides whose values come with the launch, in order.
    pub arguments: &'static [&'static str],
    /// Operations of one lane, loops counted once.
    pub work: u32,
    /// The form for the target's own instruction set.
    pub baseline: Entry,
    /// The entry for AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    pub avx2: Entry,
    /// The entry for AVX-512.
    #[cfg(target_arch = "x86_64")]
    pub avx512: Entry,
}

/// Runs a compiled kernel over memory, as [`crate::execute`] runs bytecode.
///
/// # Errors
/// As [`crate::execute`].
///
/// # Safety
/// As [`Kernel::with_ahead`](crate::Kernel::with_ahead), `program` being the kernel's bytecode.
#[cfg(feature = "_test")]
#[doc(hidden)]
pub unsafe fn execute(
    compiled: &Compiled,
    program: &crate::Bytecode,
    arguments: &[u32],
    launch: &crate::Launch<'_>,
) -> Result<(), crate::Stopped> {
    // SAFETY: the kernel was generated, for the bindings of this program (this function's contract).
    unsafe { launch::execute(compiled, program.bindings(), arguments, launch) }
}

impl Compiled {
    /// The version for this processor.
    pub(crate) fn entry(&self) -> Entry {
        #[cfg(target_arch = "x86_64")]
        match InstructionSet::best() {
            InstructionSet::Avx512 => return self.avx512,
            InstructionSet::Avx2 => return self.avx2,
            InstructionSet::Baseline => {}
        }
        self.baseline
    }

    /// Returns whether it was generated for a kernel with these bindings.
    #[doc(hidden)]
    pub fn fits(&self, workgroup_size: [u32; 3], bindings: &[BindingInfo]) -> bool {
        let same = |(own, info): (&(u32, u32, bool, u64), &BindingInfo)| {
            *own == (info.group, info.binding, info.writable, info.min_bytes)
        };
        self.workgroup_size == workgroup_size
            && self.bindings.len() == bindings.len()
            && self.bindings.iter().zip(bindings).all(same)
    }
}

/// The bits of an override's value in a launch's arguments.
#[doc(hidden)]
pub fn word(scalar: crate::reflection::Scalar, value: f64) -> u32 {
    use crate::reflection::Scalar;
    match scalar {
        Scalar::Bool if value == 0.0 => 0,
        Scalar::Bool => u32::MAX,
        Scalar::I32 => value as i32 as u32,
        Scalar::U32 => value as u32,
        Scalar::F16 => half::f16::from_f64(value).to_f32().to_bits(),
        _ => (value as f32).to_bits(),
    }
}

/// Tells texts, entry points and overrides apart (FNV-1a, 64 bits): stable between versions and machines.
#[doc(hidden)]
pub fn fingerprint<'a>(wgsl: &str, entry: &str, overrides: impl Iterator<Item = (&'a str, f64)>) -> u64 {
    // A zero ends each part.
    let hash = Fnv::new().with(wgsl.as_bytes()).with(&[0]).with(entry.as_bytes()).with(&[0]);
    let add = |hash: Fnv, (name, value): (&str, f64)| {
        hash.with(name.as_bytes()).with(&[0]).with(&value.to_bits().to_le_bytes()).with(&[0])
    };
    overrides.fold(hash, add).value()
}

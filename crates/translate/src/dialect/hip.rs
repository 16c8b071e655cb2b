//! HIP C++, as hiprtc compiles it. Subgroups have 32 or 64 lanes. Close to CUDA, whose functions it shares where they are the same. The width of a subgroup
//! is known only when the device runs (32 or 64), so masks have 64 bits. Matrices go by shuffles.

use std::collections::BTreeSet;

use naga::{AddressSpace, Barrier};

use super::cuda::{AXES, bit_cast, kernel, read_only};
use super::{Entry, Language, typedefs};
use crate::Dialect;
use crate::polyfill::Atomic;
use crate::reflection::Scalar;

pub(super) struct Hip;

impl Language for Hip {
    fn dialect(&self) -> Dialect {
        Dialect::Hip
    }

    fn prelude(&self, kinds: &BTreeSet<Scalar>, _: &BTreeSet<&'static str>) -> String {
        typedefs(kinds, "long long")
    }

    fn helper(&self) -> &'static str {
        "static __device__ inline "
    }

    fn function(&self) -> &'static str {
        "static __device__ "
    }

    fn constant(&self) -> &'static str {
        "static __device__ const "
    }

    fn align(&self, bytes: u32) -> String {
        format!("alignas({bytes}) ")
    }

    fn zero(&self) -> &'static str {
        "{}"
    }

    fn space(&self, space: AddressSpace, _: bool) -> &'static str {
        read_only(space)
    }

    fn barrier(&self, flags: Barrier, _: u32) -> String {
        if flags == Barrier::SUB_GROUP {
            "__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, \"wavefront\"); __builtin_amdgcn_wave_barrier();"
        } else {
            "__syncthreads();"
        }
        .to_owned()
    }

    fn fence(&self, _: Barrier) -> String {
        "__threadfence_block();".to_owned()
    }

    fn inverse_sqrt(&self, kind: Scalar) -> Option<&'static str> {
        Some(if kind == Scalar::F64 { "rsqrt" } else { "rsqrtf" })
    }

    fn count_ones(&self, kind: Scalar) -> &'static str {
        if kind.bytes() == 8 { "__popcll" } else { "__popc" }
    }

    fn leading_zeros(&self, kind: Scalar) -> String {
        if kind.bytes() == 8 { "return (u32)__clzll((long long)a);" } else { "return (u32)__clz((int)a);" }.to_owned()
    }

    fn bit_cast(&self, from: Scalar, to: Scalar) -> String {
        bit_cast(from, to)
    }

    fn half_to_float(&self) -> Option<&'static str> {
        Some("return (f32)__builtin_bit_cast(_Float16, a);")
    }

    fn float_to_half(&self) -> Option<&'static str> {
        Some("return __builtin_bit_cast(f16, (_Float16)a);")
    }

    fn atomic(&self, atomic: Atomic, kind: Scalar, _: &str) -> String {
        const SCOPE: &str = "__ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT";
        let ty = kind.name();
        match atomic {
            Atomic::Load => format!("return __hip_atomic_load(p, {SCOPE});"),
            Atomic::Store => format!("__hip_atomic_store(p, v, {SCOPE});"),
            Atomic::Add => format!("return __hip_atomic_fetch_add(p, v, {SCOPE});"),
            Atomic::Sub => format!("return __hip_atomic_fetch_add(p, ({ty})-v, {SCOPE});"),
            Atomic::And => format!("return __hip_atomic_fetch_and(p, v, {SCOPE});"),
            Atomic::Or => format!("return __hip_atomic_fetch_or(p, v, {SCOPE});"),
            Atomic::Xor => format!("return __hip_atomic_fetch_xor(p, v, {SCOPE});"),
            Atomic::Min => format!("return __hip_atomic_fetch_min(p, v, {SCOPE});"),
            Atomic::Max => format!("return __hip_atomic_fetch_max(p, v, {SCOPE});"),
            Atomic::Exchange => format!("return __hip_atomic_exchange(p, v, {SCOPE});"),
            Atomic::CompareExchange => format!(
                "(void)__hip_atomic_compare_exchange_strong(p, &compare, v, __ATOMIC_RELAXED, {SCOPE}); return compare;"
            ),
        }
    }

    fn participants(&self, _: bool, _: u32, _: u32) -> String {
        "__ballot(1)".to_owned()
    }

    fn subgroup_primitives(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("cantus_lane", "u32 cantus_lane(void) { return (u32)__lane_id(); }"),
            ("cantus_lowest", "u32 cantus_lowest(cantus_lanes lanes) { return (u32)__builtin_ctzll(lanes); }"),
            (
                "cantus_is_full",
                "bool cantus_is_full(cantus_lanes lanes) { return lanes == (warpSize == 64 ? ~0ull : 0xffffffffull); }",
            ),
            ("cantus_subgroup_size", "u32 cantus_subgroup_size(void) { return (u32)warpSize; }"),
        ]
    }

    fn lanes_type(&self) -> &'static str {
        "typedef u64 cantus_lanes;\n"
    }

    fn shuffle(&self, kind: Scalar) -> Option<String> {
        let ty = kind.name();
        Some(match kind {
            Scalar::Bool => "(void)lanes; return __shfl((int)x, (int)i) != 0;".to_owned(),
            Scalar::I16 | Scalar::U16 | Scalar::F16 => format!("(void)lanes; return ({ty})__shfl((int)x, (int)i);"),
            _ => "(void)lanes; return __shfl(x, (int)i);".to_owned(),
        })
    }

    fn ballot(&self) -> &'static str {
        "(void)lanes; const u64 votes = __ballot(x ? 1 : 0); const VEC4 r = { (u32)votes, (u32)(votes >> 32), 0u, 0u }; return r;"
    }

    fn workgroup_id(&self, axis: usize) -> String {
        format!("blockIdx.{}", AXES[axis])
    }

    fn local_id(&self, axis: usize) -> String {
        format!("threadIdx.{}", AXES[axis])
    }

    fn workgroups(&self, axis: usize) -> String {
        format!("gridDim.{}", AXES[axis])
    }

    fn subgroup_size(&self) -> &'static str {
        "((u32)warpSize)"
    }

    fn subgroup_id(&self, index: &str) -> String {
        format!("({index} / (u32)warpSize)")
    }

    fn subgroups(&self, invocations: u32) -> String {
        format!("(({}u + (u32)warpSize) / (u32)warpSize)", invocations.saturating_sub(1))
    }

    fn restrict(&self) -> &'static str {
        "__restrict__ "
    }

    fn entry(&self, entry: &Entry) -> String {
        kernel(entry)
    }
}

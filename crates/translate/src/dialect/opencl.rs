//! OpenCL C 1.2, and what a device has beyond its core. Products and sums are not fused. Pointers have address spaces, so helpers on pointers exist once
//! for each. 64-bit atomics and subgroups are extensions, which `prelude` enables and `requires` reports. Halves are words of bits computed in float, so no
//! device needs them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use naga::{AddressSpace, Barrier};

use super::{Entry, Language, typedefs};
use crate::polyfill::{Atomic, exchange_loop};
use crate::reflection::Scalar;
use crate::{Dialect, Options};
use cantus_base::listed::Listed;

pub(super) struct OpenCl;

impl Language for OpenCl {
    fn dialect(&self) -> Dialect {
        Dialect::OpenCl
    }

    fn prelude(&self, kinds: &BTreeSet<Scalar>, requires: &BTreeSet<&'static str>) -> String {
        let mut text = String::from("#pragma OPENCL FP_CONTRACT OFF\n");
        for extension in requires {
            let _ = writeln!(text, "#pragma OPENCL EXTENSION {extension} : enable");
        }
        text + &typedefs(kinds, "long")
    }

    fn helper(&self) -> &'static str {
        "static inline "
    }

    fn function(&self) -> &'static str {
        "static "
    }

    fn constant(&self) -> &'static str {
        "__constant "
    }

    fn align(&self, bytes: u32) -> String {
        format!("__attribute__((aligned({bytes}))) ")
    }

    fn zero(&self) -> &'static str {
        "{0}"
    }

    fn long_suffixes(&self) -> (&'static str, &'static str) {
        ("l", "ul")
    }

    fn long_zeros(&self) -> (&'static str, &'static str) {
        ("0l", "0ul")
    }

    fn least_long(&self) -> &'static str {
        "(-9223372036854775807l - 1)"
    }

    fn space(&self, space: AddressSpace, uniforms_by_value: bool) -> &'static str {
        match space {
            AddressSpace::WorkGroup => "__local ",
            AddressSpace::Uniform if uniforms_by_value => "const __private ",
            AddressSpace::Uniform => "__global const ",
            AddressSpace::Storage { access }
                if !access.intersects(naga::StorageAccess::STORE | naga::StorageAccess::ATOMIC) =>
            {
                "__global const "
            }
            AddressSpace::Storage { .. } => "__global ",
            _ => "__private ",
        }
    }

    fn space_suffix(&self, space: AddressSpace) -> &'static str {
        if space == AddressSpace::WorkGroup { "_local" } else { "_global" }
    }

    fn lacks(&self, kind: Scalar, options: &Options) -> Option<&'static str> {
        (kind == Scalar::F64 && !options.opencl.fp64).then_some("f64: the device has no cl_khr_fp64")
    }

    fn lacks_subgroups(&self, options: &Options) -> Option<&'static str> {
        (!options.opencl.subgroups).then_some(
            "subgroup operations: the device lacks cl_khr_subgroups, cl_khr_subgroup_ballot or cl_khr_subgroup_shuffle",
        )
    }

    fn lacks_atomic(&self, _: Atomic, kind: Scalar, options: &Options) -> Option<&'static str> {
        (kind.bytes() == 8 && !options.opencl.int64_atomics).then_some(
            "atomics of 64 bits: the device lacks cl_khr_int64_base_atomics or cl_khr_int64_extended_atomics",
        )
    }

    fn kind_extension(&self, kind: Scalar) -> Option<&'static str> {
        (kind == Scalar::F64).then_some("cl_khr_fp64")
    }

    fn atomic_extensions(&self, kind: Scalar) -> &'static [&'static str] {
        if kind.bytes() == 8 { &["cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"] } else { &[] }
    }

    fn subgroup_extensions(&self) -> &'static [&'static str] {
        &["cl_khr_subgroups", "cl_khr_subgroup_ballot", "cl_khr_subgroup_shuffle"]
    }

    fn barrier(&self, flags: Barrier, _: u32) -> String {
        let name = if flags == Barrier::SUB_GROUP { "sub_group_barrier" } else { "barrier" };
        format!("{name}({});", fences(flags))
    }

    fn fence(&self, flags: Barrier) -> String {
        format!("mem_fence({});", fences(flags))
    }

    fn float_function(&self, name: &str, _: Scalar) -> String {
        name.to_owned()
    }

    fn inverse_sqrt(&self, _: Scalar) -> Option<&'static str> {
        Some("rsqrt")
    }

    fn count_ones(&self, _: Scalar) -> &'static str {
        "popcount"
    }

    fn leading_zeros(&self, _: Scalar) -> String {
        "return (u32)clz(a);".to_owned()
    }

    fn bit_cast(&self, from: Scalar, to: Scalar) -> String {
        let name = match (from, to) {
            (_, Scalar::F32) => "as_float",
            (_, Scalar::U32) => "as_uint",
            (_, Scalar::F64) => "as_double",
            _ => "as_ulong",
        };
        format!("return {name}(a);")
    }

    fn half_to_float(&self) -> Option<&'static str> {
        Some("return vload_half(0, (const __private half *)&a);")
    }

    fn float_to_half(&self) -> Option<&'static str> {
        Some("f16 r = 0; vstore_half_rte(a, 0, (__private half *)&r); return r;")
    }

    fn atomic(&self, atomic: Atomic, kind: Scalar, qualifier: &str) -> String {
        let ty = kind.name();
        let prefix = if kind.bytes() == 8 { "atom" } else { "atomic" };
        let volatile = format!("(volatile {qualifier}{ty} *)p");
        let by_bits = |compute: &str| {
            let exchange = format!("atomic_cmpxchg((volatile {qualifier}u32 *)p, old, next)");
            exchange_loop(Scalar::U32, compute, &exchange)
                .replace("u32 old = *p", &format!("u32 old = *(volatile {qualifier}u32 *)p"))
                .replace("return old", "return as_float(old)")
        };
        let name = match (atomic, kind) {
            (Atomic::Load, _) => return format!("return *{volatile};"),
            (Atomic::Store, _) => return format!("*{volatile} = v;"),
            (Atomic::Add, Scalar::F32) => return by_bits("as_uint(as_float(old) + v)"),
            (Atomic::Sub, Scalar::F32) => return by_bits("as_uint(as_float(old) - v)"),
            (Atomic::Min, Scalar::F32) => return by_bits("as_uint(fmin(as_float(old), v))"),
            (Atomic::Max, Scalar::F32) => return by_bits("as_uint(fmax(as_float(old), v))"),
            (Atomic::CompareExchange, Scalar::F32) => {
                return format!(
                    "return as_float(atomic_cmpxchg((volatile {qualifier}u32 *)p, as_uint(compare), as_uint(v)));"
                );
            }
            (Atomic::CompareExchange, _) => return format!("return {prefix}_cmpxchg({volatile}, compare, v);"),
            (Atomic::Add, _) => "add",
            (Atomic::Sub, _) => "sub",
            (Atomic::And, _) => "and",
            (Atomic::Or, _) => "or",
            (Atomic::Xor, _) => "xor",
            (Atomic::Min, _) => "min",
            (Atomic::Max, _) => "max",
            (Atomic::Exchange, _) => "xchg",
        };
        format!("return {prefix}_{name}({volatile}, v);")
    }

    fn participants(&self, _: bool, _: u32, _: u32) -> String {
        "cantus_active_lanes()".to_owned()
    }

    fn subgroup_primitives(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("cantus_lane", "u32 cantus_lane(void) { return get_sub_group_local_id(); }"),
            (
                "cantus_active_lanes",
                "cantus_lanes cantus_active_lanes(void) { const uint4 votes = sub_group_ballot(1); return votes.x | ((u64)votes.y << 32); }",
            ),
            (
                "cantus_lowest",
                "u32 cantus_lowest(cantus_lanes lanes) { return (u32)popcount(~lanes & (lanes - 1ul)); }",
            ),
            (
                "cantus_is_full",
                "bool cantus_is_full(cantus_lanes lanes) { const u32 size = get_max_sub_group_size(); \
                 return (size & (size - 1u)) == 0u && popcount(lanes) == size; }",
            ),
            ("cantus_subgroup_size", "u32 cantus_subgroup_size(void) { return get_max_sub_group_size(); }"),
        ]
    }

    fn lanes_type(&self) -> &'static str {
        "typedef u64 cantus_lanes;\n"
    }

    fn lacks_matrices(&self) -> Option<&'static str> {
        Some("cooperative matrices: OpenCL C has no type for them, and its subgroups have no known size")
    }

    fn shuffle(&self, kind: Scalar) -> Option<String> {
        let ty = kind.name();
        Some(match kind {
            Scalar::Bool => "return sub_group_shuffle((u32)x, i) != 0u;".to_owned(),
            Scalar::I16 | Scalar::U16 | Scalar::F16 => format!("return ({ty})sub_group_shuffle((u32)x, i);"),
            _ => "return sub_group_shuffle(x, i);".to_owned(),
        })
    }

    fn ballot(&self) -> &'static str {
        "const uint4 votes = sub_group_ballot(x ? 1 : 0); const VEC4 r = { votes.x, votes.y, votes.z, votes.w }; return r;"
    }

    fn workgroup_id(&self, axis: usize) -> String {
        format!("(u32)get_group_id({axis})")
    }

    fn local_id(&self, axis: usize) -> String {
        format!("(u32)get_local_id({axis})")
    }

    fn workgroups(&self, axis: usize) -> String {
        format!("(u32)get_num_groups({axis})")
    }

    fn subgroup_size(&self) -> &'static str {
        "get_max_sub_group_size()"
    }

    fn subgroup_id(&self, _: &str) -> String {
        "get_sub_group_id()".to_owned()
    }

    fn subgroups(&self, _: u32) -> String {
        "get_num_sub_groups()".to_owned()
    }

    fn restrict(&self) -> &'static str {
        "restrict "
    }

    fn by_value(&self) -> &'static str {
        "const "
    }

    fn entry(&self, entry: &Entry) -> String {
        let [x, y, z] = entry.workgroup_size;
        let parameters: Vec<&str> = entry.parameters.iter().map(|(declaration, _)| declaration.as_str()).listed();
        let mut text = format!(
            "__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))\nvoid {}(\n    {}) {{\n",
            entry.name,
            parameters.join(",\n    ")
        );
        for (ty, name) in &entry.workgroup {
            let _ = writeln!(text, "    __local {ty} {name};");
        }
        text + &entry.before + &entry.clear + &entry.body + "}\n"
    }
}

fn fences(flags: Barrier) -> &'static str {
    match (flags.contains(Barrier::STORAGE), flags.contains(Barrier::WORK_GROUP)) {
        (true, false) => "CLK_GLOBAL_MEM_FENCE",
        (false, true) => "CLK_LOCAL_MEM_FENCE",
        _ => "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE",
    }
}

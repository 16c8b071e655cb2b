//! CUDA C++ without a header. Fused multiply-add stays on, as WGSL allows; nothing else about floats is relaxed. NVRTC compiles the text without any
//! header, so types and intrinsics are declared here. Subgroups have 32 lanes; which take part is a mask. Cooperative matrices are PTX inside `asm`, with a
//! form by shuffles where the compute capability lacks them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use naga::{AddressSpace, Barrier};

use super::{Entry, Language, typedefs};
use crate::Dialect;
use crate::polyfill::{Atomic, exchange_loop};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

pub(super) struct Cuda;

impl Language for Cuda {
    fn dialect(&self) -> Dialect {
        Dialect::Cuda
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
        if flags == Barrier::SUB_GROUP { "__syncwarp(__activemask());" } else { "__syncthreads();" }.to_owned()
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
        Some("f32 r; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(a)); return r;")
    }

    fn float_to_half(&self) -> Option<&'static str> {
        Some("f16 r; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(a)); return r;")
    }

    fn half_arithmetic(&self, op: &str) -> Option<String> {
        let name = match op {
            "+" => "add",
            "-" => "sub",
            "*" => "mul",
            _ => return None,
        };
        Some(format!("f16 r; asm(\"{name}.rn.f16 %0, %1, %2;\" : \"=h\"(r) : \"h\"(a), \"h\"(b)); return r;"))
    }

    fn atomic(&self, atomic: Atomic, kind: Scalar, _: &str) -> String {
        let wide = kind.bytes() == 8;
        match (atomic, kind) {
            (Atomic::Load, _) => format!("return *(const volatile {} *)p;", kind.name()),
            (Atomic::Store, _) => format!("*(volatile {} *)p = v;", kind.name()),
            (Atomic::Add, Scalar::I64) => "return (i64)atomicAdd((u64 *)p, (u64)v);".to_owned(),
            (Atomic::Sub, Scalar::I64) => "return (i64)atomicAdd((u64 *)p, 0ull - (u64)v);".to_owned(),
            (Atomic::Sub, Scalar::U64) => "return atomicAdd(p, 0ull - v);".to_owned(),
            (Atomic::Sub, Scalar::F32) => "return atomicAdd(p, -v);".to_owned(),
            (Atomic::And | Atomic::Or | Atomic::Xor | Atomic::Exchange, Scalar::I64) => {
                format!("return (i64){}((u64 *)p, (u64)v);", function(atomic))
            }
            (Atomic::CompareExchange, Scalar::I64) => {
                "return (i64)atomicCAS((u64 *)p, (u64)compare, (u64)v);".to_owned()
            }
            (Atomic::CompareExchange, Scalar::F32) => {
                "return __uint_as_float(atomicCAS((u32 *)p, __float_as_uint(compare), __float_as_uint(v)));".to_owned()
            }
            (Atomic::CompareExchange, _) => "return atomicCAS(p, compare, v);".to_owned(),
            (Atomic::Min | Atomic::Max, Scalar::F32) => {
                let op = if atomic == Atomic::Min { "fminf" } else { "fmaxf" };
                exchange_loop(
                    Scalar::U32,
                    &format!("__float_as_uint({op}(__uint_as_float(old), v))"),
                    "atomicCAS((u32 *)p, old, next)",
                )
                .replace("u32 old = *p", "u32 old = *(const volatile u32 *)p")
                .replace("return old", "return __uint_as_float(old)")
            }
            _ => {
                let _ = wide;
                format!("return {}(p, v);", function(atomic))
            }
        }
    }

    fn participants(&self, straight: bool, invocations: u32, _: u32) -> String {
        match (straight, invocations % 32) {
            (true, 0) => "0xffffffffu".to_owned(),
            (true, rest) => format!("cantus_filled_lanes({}u, {rest}u)", invocations / 32),
            (false, _) => "__activemask()".to_owned(),
        }
    }

    fn subgroup_primitives(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("cantus_lane", "u32 cantus_lane(void) { u32 r; asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(r)); return r; }"),
            ("cantus_lowest", "u32 cantus_lowest(cantus_lanes lanes) { return (u32)__ffs((int)lanes) - 1u; }"),
            ("cantus_is_full", "bool cantus_is_full(cantus_lanes lanes) { return lanes == 0xffffffffu; }"),
            ("cantus_subgroup_size", "u32 cantus_subgroup_size(void) { return 32u; }"),
            (
                "cantus_filled_lanes",
                "cantus_lanes cantus_filled_lanes(u32 full, u32 rest) { const u32 i = threadIdx.x + blockDim.x * (threadIdx.y + \
                 blockDim.y * threadIdx.z); return i / 32u < full ? 0xffffffffu : (1u << rest) - 1u; }",
            ),
        ]
    }

    fn lanes_type(&self) -> &'static str {
        "typedef u32 cantus_lanes;\n"
    }

    fn shuffle(&self, kind: Scalar) -> Option<String> {
        Some(match kind {
            Scalar::Bool => "return __shfl_sync(lanes, (u32)x, (int)(i & 31u)) != 0u;".to_owned(),
            Scalar::I16 | Scalar::U16 | Scalar::F16 => {
                format!("return ({})__shfl_sync(lanes, (u32)x, (int)(i & 31u));", kind.name())
            }
            _ => "return __shfl_sync(lanes, x, (int)(i & 31u));".to_owned(),
        })
    }

    fn ballot(&self) -> &'static str {
        "const VEC4 r = { __ballot_sync(lanes, x), 0u, 0u, 0u }; return r;"
    }

    fn matrix_multiply_add(&self, size: u32, sums: Scalar) -> Option<(&'static str, String)> {
        Some(("__CUDA_ARCH__ >= 800", tensor_product(size, sums)))
    }

    fn matrix_load(&self, size: u32, row_major: bool, turned: bool) -> Option<(&'static str, String)> {
        Some(("__CUDA_ARCH__ >= 750", tensor_load(size, row_major, turned)))
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
        "32u"
    }

    fn subgroup_id(&self, index: &str) -> String {
        format!("({index} / 32u)")
    }

    fn subgroups(&self, invocations: u32) -> String {
        format!("{}u", invocations.div_ceil(32))
    }

    fn restrict(&self) -> &'static str {
        "__restrict__ "
    }

    fn by_value(&self) -> &'static str {
        "const __grid_constant__ "
    }

    fn entry(&self, entry: &Entry) -> String {
        kernel(entry)
    }
}

/// `mma` of PTX: eight columns at a time, of a left factor that has sixteen rows, the lower half zero where the matrix has eight.
fn tensor_product(size: u32, sums: Scalar) -> String {
    let (pairs, halves) = (size / 4, size / 8);
    let pair = |name: &str, low: &str, high: &str| format!("(u32){name}.{low} | (u32){name}.{high} << 16");
    let column = |name: &str, half: u32| if size == 8 { name.to_owned() } else { format!("{name}.c[{half}]") };
    let mut text = String::new();
    let mut registers = |letter: &str, count: u32| {
        let names: Vec<String> = (0..count).map(|at| format!("{letter}{at}")).listed();
        for (at, name) in (0..).zip(&names) {
            let (half, ends) = (at / 2, if at % 2 == 0 { ("x", "y") } else { ("z", "w") });
            // A matrix of eight rows has one pair.
            let value = if size == 8 && at > 0 { "0u".to_owned() } else { pair(&column(letter, half), ends.0, ends.1) };
            let _ = write!(text, "const u32 {name} = {value}; ");
        }
        names
    };
    let left = registers("a", pairs);
    let right = registers("b", if size == 8 { 1 } else { 4 });
    for half in 0..halves {
        let (c, mut sums_of, kind) = (column("c", half), Vec::new(), if sums == Scalar::F16 { "f16" } else { "f32" });
        let results = if sums == Scalar::F16 { 2 } else { 4 };
        for at in 0..results {
            let name = format!("z{half}{at}");
            let absent = size == 8 && at >= results / 2;
            let value = match sums {
                _ if absent => "0".to_owned(),
                Scalar::F16 => pair(&c, ["x", "z"][at], ["y", "w"][at]),
                _ => format!("{c}.{}", ["x", "y", "z", "w"][at]),
            };
            let ty = if sums == Scalar::F16 { "u32" } else { "f32" };
            let _ = write!(text, "\n    {ty} {name} = {value};");
            sums_of.push(name);
        }
        let count = sums_of.len() + left.len();
        let slots = |from: usize, to: usize| (from..to).map(|at| format!("%{at}")).listed().join(",");
        let given = &right[(half * pairs / 2) as usize..((half + 1) * pairs / 2) as usize];
        let outputs: Vec<String> =
            sums_of.iter().map(|name| format!("\"+{}\"({name})", if sums == Scalar::F16 { "r" } else { "f" })).listed();
        let inputs: Vec<String> = left.iter().chain(given).map(|name| format!("\"r\"({name})")).listed();
        let _ = write!(
            text,
            "\n    asm volatile(\"mma.sync.aligned.m16n8k{size}.row.col.{kind}.f16.f16.{kind} {{{}}}, {{{}}}, {{{}}}, {{{}}};\" : {} : {});",
            slots(0, sums_of.len()),
            slots(sums_of.len(), count),
            slots(count, count + given.len()),
            slots(0, sums_of.len()),
            outputs.join(", "),
            inputs.join(", ")
        );
        let components = if size == 8 { 2 } else { 4 };
        for (at, component) in ["x", "y", "z", "w"].into_iter().enumerate().take(components) {
            let value = match (sums, at % 2) {
                (Scalar::F16, 0) => format!("(f16){}", sums_of[at / 2]),
                (Scalar::F16, _) => format!("(f16)({} >> 16)", sums_of[at / 2]),
                _ => sums_of[at].clone(),
            };
            let _ = write!(text, " {c}.{component} = {value};");
        }
    }
    text + "\n    return c;"
}

/// `ldmatrix` of PTX, where all of the matrix lies in the array, its rows on 16 bytes.
fn tensor_load(size: u32, row_major: bool, turned: bool) -> String {
    let last = size - 1;
    // Each group of eight lanes says where the rows of one block of 8 x 8 begin; lanes hold the blocks in the order of their elements.
    let (outer, inner) = match (size, row_major) {
        (8, _) => ("cantus_lane() % 8u", "0u"),
        (_, true) => ("cantus_lane() % 16u", "cantus_lane() % 32u / 16u * 8u"),
        (_, false) => ("(cantus_lane() % 8u + cantus_lane() % 32u / 16u * 8u)", "cantus_lane() % 16u / 8u * 8u"),
    };
    let turn = if turned { ".trans" } else { "" };
    let registers: Vec<String> = (0..size * size / 64).map(|at| format!("r{at}")).listed();
    let outputs: Vec<String> = registers.iter().map(|name| format!("\"=r\"({name})")).listed();
    let slots: Vec<String> = (0..registers.len()).map(|at| format!("%{at}")).listed();
    format!(
        "if (first < count && stride < 0x8000000u && {last}u * stride + {last}u < count - first && stride % 8u == 0u && ((u64)(p + first) & 15u) == 0u) {{\n        \
         const f16 *at = p + first + {outer} * stride + {inner};\n        u32 {};\n        \
         asm volatile(\"ldmatrix.sync.aligned.m8n8.x{}{turn}.b16 {{{}}}, [%{}];\" : {} : \"l\"(at) : \"memory\");",
        registers.join(", "),
        registers.len(),
        slots.join(","),
        registers.len(),
        outputs.join(", ")
    )
}

pub(super) const AXES: [&str; 3] = ["x", "y", "z"];

pub(super) fn read_only(space: AddressSpace) -> &'static str {
    match space {
        AddressSpace::Uniform => "const ",
        AddressSpace::Storage { access }
            if !access.intersects(naga::StorageAccess::STORE | naga::StorageAccess::ATOMIC) =>
        {
            "const "
        }
        _ => "",
    }
}

pub(super) fn bit_cast(from: Scalar, to: Scalar) -> String {
    match (from, to) {
        (Scalar::F32, _) => "return __float_as_uint(a);".to_owned(),
        (_, Scalar::F32) => "return __uint_as_float(a);".to_owned(),
        (Scalar::F64, _) => "return (u64)__double_as_longlong(a);".to_owned(),
        _ => "return __longlong_as_double((long long)a);".to_owned(),
    }
}

fn function(atomic: Atomic) -> &'static str {
    match atomic {
        Atomic::Add => "atomicAdd",
        Atomic::Sub => "atomicSub",
        Atomic::And => "atomicAnd",
        Atomic::Or => "atomicOr",
        Atomic::Xor => "atomicXor",
        Atomic::Min => "atomicMin",
        Atomic::Max => "atomicMax",
        Atomic::Exchange => "atomicExch",
        Atomic::CompareExchange => "atomicCAS",
        Atomic::Load | Atomic::Store => "",
    }
}

/// A kernel of CUDA or HIP.
pub(super) fn kernel(entry: &Entry) -> String {
    let invocations: u32 = entry.workgroup_size.iter().product();
    let parameters: Vec<&str> = entry.parameters.iter().map(|(declaration, _)| declaration.as_str()).listed();
    let mut text = format!(
        "extern \"C\" __global__ void __launch_bounds__({invocations}) {}(\n    {}) {{\n",
        entry.name,
        parameters.join(",\n    ")
    );
    for (ty, name) in &entry.workgroup {
        // Rows of halves are loaded by 16 bytes.
        let align = if ty.starts_with("f16_array") { "__align__(16) " } else { "" };
        let _ = writeln!(text, "    __shared__ {align}{ty} {name};");
    }
    text + &entry.before + &entry.clear + &entry.body + "}\n"
}

//! C11 for the host: one function runs a workgroup, invocation after invocation. Those that wait for each other are fibers of
//! `ucontext`; a subgroup is 32 consecutive invocations. For tests and for reading: nothing here is quick.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use naga::{AddressSpace, Barrier};

use super::cuda::read_only;
use super::{Entry, Language, typedefs};
use crate::polyfill::{Atomic, exchange_loop};
use crate::reflection::Scalar;
use crate::{Dialect, mentions};

pub(super) struct Host;

/// Fibers, for kernels whose invocations wait for each other.
pub(crate) const FIBERS: &str = include_str!("fibers.c");

/// A kernel may compare what is known; that is no matter of its translation.
const WARNINGS: &str = "\
#pragma GCC diagnostic ignored \"-Wtautological-compare\"
#pragma GCC diagnostic ignored \"-Wtype-limits\"
#pragma GCC diagnostic ignored \"-Wbool-compare\"
#pragma GCC diagnostic ignored \"-Wbool-operation\"
";

impl Language for Host {
    fn dialect(&self) -> Dialect {
        Dialect::Host
    }

    fn prelude(&self, kinds: &BTreeSet<Scalar>, _: &BTreeSet<&'static str>) -> String {
        format!("{WARNINGS}#include <stdbool.h>\n{}", typedefs(kinds, "long long"))
    }

    fn helper(&self) -> &'static str {
        "static inline "
    }

    fn function(&self) -> &'static str {
        "static "
    }

    fn constant(&self) -> &'static str {
        "static const "
    }

    fn align(&self, bytes: u32) -> String {
        format!("__attribute__((aligned({bytes}))) ")
    }

    fn zero(&self) -> &'static str {
        "{0}"
    }

    fn space(&self, space: AddressSpace, _: bool) -> &'static str {
        read_only(space)
    }

    fn workgroup_by_pointer(&self) -> bool {
        true
    }

    fn marks_unused(&self) -> bool {
        true
    }

    fn barrier(&self, flags: Barrier, site: u32) -> String {
        if flags == Barrier::SUB_GROUP {
            format!("(void)cantus_meet({site}u, 0, 0, 0u);")
        } else {
            "cantus_wait();".to_owned()
        }
    }

    fn fence(&self, _: Barrier) -> String {
        "__atomic_thread_fence(__ATOMIC_SEQ_CST);".to_owned()
    }

    fn float_function(&self, name: &str, kind: Scalar) -> String {
        format!("__builtin_{name}{}", if kind == Scalar::F64 { "" } else { "f" })
    }

    fn inverse_sqrt(&self, _: Scalar) -> Option<&'static str> {
        None
    }

    fn count_ones(&self, kind: Scalar) -> &'static str {
        if kind.bytes() == 8 { "__builtin_popcountll" } else { "__builtin_popcount" }
    }

    fn leading_zeros(&self, kind: Scalar) -> String {
        let (name, size) = if kind.bytes() == 8 { ("__builtin_clzll", 64) } else { ("__builtin_clz", 32) };
        format!("return a == 0u ? {size}u : (u32){name}(a);")
    }

    fn atomic(&self, atomic: Atomic, kind: Scalar, _: &str) -> String {
        let ty = kind.name();
        let unsigned = kind.unsigned().name();
        let by_bits = |compute: &str| {
            let exchange = "cantus_exchange_u32((u32 *)(void *)p, old, next)";
            let _ = exchange;
            format!(
                "u32 old; __atomic_load((u32 *)(void *)p, &old, __ATOMIC_RELAXED); u32 next; do {{ next = {compute}; }} while \
                 (!__atomic_compare_exchange((u32 *)(void *)p, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
                 return cantus_f32_bits_of_u32(old);"
            )
        };
        let name = match (atomic, kind) {
            (Atomic::Load, _) => {
                return format!("{ty} r; __atomic_load(p, &r, __ATOMIC_RELAXED); return r;");
            }
            (Atomic::Store, _) => return "__atomic_store(p, &v, __ATOMIC_RELAXED);".to_owned(),
            (Atomic::Exchange, _) => {
                return format!("{ty} r; __atomic_exchange(p, &v, &r, __ATOMIC_RELAXED); return r;");
            }
            (Atomic::CompareExchange, _) => {
                return "(void)__atomic_compare_exchange(p, &compare, &v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); return compare;"
                    .to_owned();
            }
            (Atomic::Add, Scalar::F32) => return by_bits("cantus_u32_bits_of_f32(cantus_f32_bits_of_u32(old) + v)"),
            (Atomic::Sub, Scalar::F32) => return by_bits("cantus_u32_bits_of_f32(cantus_f32_bits_of_u32(old) - v)"),
            (Atomic::Min, Scalar::F32) => {
                return by_bits("cantus_u32_bits_of_f32(__builtin_fminf(cantus_f32_bits_of_u32(old), v))");
            }
            (Atomic::Max, Scalar::F32) => {
                return by_bits("cantus_u32_bits_of_f32(__builtin_fmaxf(cantus_f32_bits_of_u32(old), v))");
            }
            (Atomic::Min | Atomic::Max, _) => {
                let op = if atomic == Atomic::Min { "<" } else { ">" };
                return exchange_loop(
                    kind,
                    &format!("(v {op} old ? v : old)"),
                    &format!("({ty})__sync_val_compare_and_swap(p, old, next)"),
                );
            }
            (Atomic::Add, _) => "add",
            (Atomic::Sub, _) => "sub",
            (Atomic::And, _) => "and",
            (Atomic::Or, _) => "or",
            (Atomic::Xor, _) => "xor",
        };
        let _ = unsigned;
        format!("return __atomic_fetch_{name}(p, v, __ATOMIC_RELAXED);")
    }

    fn participants(&self, _: bool, _: u32, site: u32) -> String {
        format!("{site}u")
    }

    fn lanes_parameter(&self) -> &'static str {
        "u32 site"
    }

    fn lanes_argument(&self) -> &'static str {
        "site"
    }

    fn meet(&self) -> &'static str {
        "T values[32]; const cantus_lanes lanes = cantus_meet(site, &x, values, sizeof(x)); (void)lanes; "
    }

    fn subgroup_primitives(&self) -> &'static [(&'static str, &'static str)] {
        &[("cantus_lowest", "u32 cantus_lowest(cantus_lanes lanes) { return (u32)__builtin_ctz(lanes); }")]
    }

    fn lanes_type(&self) -> &'static str {
        ""
    }

    fn shuffle(&self, _: Scalar) -> Option<String> {
        None
    }

    fn ballot(&self) -> &'static str {
        "bool values[32]; const u32 lanes = cantus_meet(site, &x, values, sizeof(x)); VEC4 r = {0}; \
         for (u32 i = 0u; i < 32u; i++) { r.x |= (lanes >> i & 1u) != 0u && values[i] ? 1u << i : 0u; } return r;"
    }

    fn workgroup_id(&self, axis: usize) -> String {
        format!("cantus_call->cantus_workgroup[{axis}]")
    }

    fn local_id(&self, axis: usize) -> String {
        format!("cantus_local[{axis}]")
    }

    fn workgroups(&self, axis: usize) -> String {
        format!("cantus_call->cantus_workgroups[{axis}]")
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
        ""
    }

    fn entry(&self, entry: &Entry) -> String {
        let mut text = String::from("// What the invocations of a workgroup share.\ntypedef struct {\n");
        let mut aliases = String::new();
        let mut values = String::new();
        let inner = format!("{}{}", entry.before, entry.body);
        for (declaration, name) in &entry.parameters {
            let _ = writeln!(
                text,
                "    {};",
                declaration
                    .strip_prefix("const cantus_sizes")
                    .map_or_else(|| declaration.clone(), |rest| format!("cantus_sizes{rest}"))
            );
            let _ = write!(values, "{name}, ");
            if mentions(&inner, name) {
                let _ = writeln!(aliases, "    {declaration} = cantus_call->{name};");
            }
        }
        for (ty, name) in &entry.workgroup {
            let _ = writeln!(text, "    {ty} *{name};");
            let _ = write!(values, "&{name}, ");
            if mentions(&inner, name) {
                let _ = writeln!(aliases, "    {ty} *{name} = cantus_call->{name};");
            }
        }
        text += "    const u32 *cantus_workgroup;\n    const u32 *cantus_workgroups;\n} cantus_shared;\n\n";
        text += "static void cantus_invocation(const void *cantus_data, const u32 cantus_local[3]) {\n    const cantus_shared *cantus_call = cantus_data;\n";
        for name in ["cantus_call", "cantus_local"] {
            if !mentions(&format!("{aliases}{inner}"), name) {
                let _ = writeln!(text, "    (void){name};");
            }
        }
        text += &aliases;
        text += &inner;
        text += "}\n\n// Runs one workgroup.\n";
        let mut parameters =
            vec!["const u32 cantus_workgroup[3]".to_owned(), "const u32 cantus_workgroups[3]".to_owned()];
        parameters.extend(entry.parameters.iter().map(|(declaration, _)| declaration.clone()));
        let list = parameters.join(",\n    ");
        let name = &entry.name;
        let _ = writeln!(text, "void {name}(\n    {list});\nvoid {name}(\n    {list}) {{");
        for (ty, name) in &entry.workgroup {
            let zero = if ty.contains('_') || !is_scalar(ty) { "{0}" } else { "0" };
            let _ = writeln!(text, "    {ty} {name} = {zero};");
        }
        let _ =
            writeln!(text, "    const cantus_shared cantus_call = {{ {values}cantus_workgroup, cantus_workgroups }};");
        let [x, y, z] = entry.workgroup_size;
        if entry.meets {
            let _ = writeln!(text, "    cantus_run(cantus_invocation, &cantus_call, {x}u, {y}u, {z}u);");
        } else {
            let _ = writeln!(
                text,
                "    for (u32 cantus_i = 0u; cantus_i < {}u; cantus_i++) {{\n        \
                 const u32 cantus_local[3] = {{ cantus_i % {x}u, cantus_i / {x}u % {y}u, cantus_i / {}u }};\n        \
                 cantus_invocation(&cantus_call, cantus_local);\n    }}",
                x * y * z,
                x * y
            );
        }
        text + "}\n"
    }
}

fn is_scalar(ty: &str) -> bool {
    matches!(ty, "bool" | "i16" | "u16" | "i32" | "u32" | "i64" | "u64" | "f16" | "f32" | "f64")
}

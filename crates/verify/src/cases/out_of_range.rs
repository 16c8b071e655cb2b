//! Accesses out of range. A load gives zero or some element of the same binding or variable; a store changes nothing
//! but, at most, elements of the same binding. Guards lie behind, and a second binding must stay as it was.

use crate::case::{Case, Values};
use crate::inputs::words;

pub fn cases() -> Vec<Case> {
    let mut cases = loads();
    cases.extend(stores());
    cases.extend(variables());
    cases
}

/// Numbers that say where they come from: no element of one binding equals one of another.
fn marked(mark: u32, n: u32) -> Vec<u32> {
    (0..n).map(|k| mark << 16 | (k + 1)).collect()
}

/// Indices in range, just out of it, far out, and those that wrap when multiplied by an element's size.
fn indices() -> Vec<u32> {
    let mut v: Vec<u32> = (0..24).collect();
    v.extend([
        31,
        32,
        33,
        100,
        1000,
        65_536,
        0x0FFF_FFFF,
        0x1000_0000,
        0x3FFF_FFFF,
        0x4000_0000,
        0x4000_0001,
        0x7FFF_FFFF,
    ]);
    v.extend([0x8000_0000, 0x8000_0001, 0xC000_0000, 0xFFFF_FFF0, 0xFFFF_FFFE, 0xFFFF_FFFF]);
    v.extend(words(210, 22));
    v
}

fn zero_or_one_of(got: u32, allowed: &[u32]) -> bool {
    got == 0 || allowed.contains(&got)
}

/// `out[i] = expression`, where `expression` loads from `a` by `at[i]`. Indices below `in_range` must give `exact`.
fn load(
    name: &str,
    declarations: &str,
    ty: &str,
    expression: &str,
    a: Vec<u32>,
    exact: impl Fn(u32) -> Option<u32> + Send + Sync + 'static,
) -> Case {
    let at = indices();
    let n = at.len();
    let allowed = a.clone();
    Case::each_with(format!("out_of_range.{name}"), declarations, expression)
        .read(&format!("a: {ty}"), a)
        .read("other", marked(9, 40))
        .read("at", &at)
        .check("out", vec![0_u32; n], move |finals| {
            for (i, &got) in finals[3].u32s().iter().enumerate() {
                let right = exact(at[i]).map_or_else(|| zero_or_one_of(got, &allowed), |e| got == e);
                if !right {
                    return Err(format!("index {}: got {got:#x}, which is not of that binding", at[i]));
                }
            }
            Ok(())
        })
        .invocations(n)
}

/// `x` out of a vector in a buffer, by an index that a driver may know and that is no component.
fn known(name: &str, ty: &str, statements: &str) -> Case {
    let main = format!(
        "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{ {statements} out[i] = x + 7u; }}"
    );
    Case::new(format!("out_of_range.{name}"), main).read(&format!("a: {ty}"), marked(1, 4)).check(
        "out",
        vec![0_u32; 64],
        |finals| {
            let allowed = marked(1, 4);
            let strange = finals[1].u32s().iter().find(|&&x| !zero_or_one_of(x.wrapping_sub(7), &allowed));
            strange.map_or(Ok(()), |x| Err(format!("got {x:#x} less 7, which is no component")))
        },
    )
}

fn loads() -> Vec<Case> {
    let a = marked(1, 20);
    let flat = {
        let a = a.clone();
        move |i: u32| a.get(i as usize).copied()
    };
    let pairs = {
        let a = a.clone();
        move |i: u32| a.get((i as usize).checked_mul(4)? + 1).copied()
    };
    let tail = {
        let a = a.clone();
        move |i: u32| a.get((i as usize).checked_add(2)?).copied()
    };
    let fixed = {
        let a = a.clone();
        move |i: u32| if i < 16 { Some(a[i as usize]) } else { None }
    };
    let inner = {
        let a = a.clone();
        move |i: u32| if i < 5 { Some(a[4 + i as usize]) } else { None }
    };
    vec![
        load("load_runtime_array", "", "array<u32>", "a[at[i]] + 0u * other[i % 40u]", a.clone(), flat.clone()),
        load("load_signed_index", "", "array<u32>", "a[bitcast<i32>(at[i])]", a.clone(), flat),
        load("load_vec4", "", "array<vec4u>", "a[at[i]].y", a.clone(), pairs),
        load("load_tail", "struct T { x: vec2u, tail: array<u32> }", "T", "a.tail[at[i]]", a.clone(), tail),
        load("load_fixed_array", "", "array<u32, 16>", "a[at[i]]", a.clone(), fixed),
        // Five of a row of five, four rows: an index past the row must stay in the binding.
        load(
            "load_inner_array",
            "struct R { x: array<u32, 4>, y: array<u32, 5> }",
            "R",
            "a.y[at[i]]",
            a.clone(),
            inner,
        ),
        load("load_vector_component", "", "vec4u", "a[at[i] & 0x8000000Fu]", marked(1, 4), |i| {
            let i = i & 0x8000_000F;
            (i < 4).then(|| 1 << 16 | (i + 1))
        }),
        known("load_known_component", "vec4u", "var k = 4u; let x = a[k];"),
        known("load_known_signed_component", "vec4u", "var k = -1; let x = a[k];"),
        known("load_known_component_in_array", "array<vec4u, 1>", "var k = 9u; let p = &a[0]; let x = (*p)[k];"),
        load(
            "load_matrix_column",
            "",
            "mat4x4f",
            "bitcast<u32>(a[at[i]].z)",
            (0..16).map(|k| (k as f32 + 1.0).to_bits()).collect(),
            |i| (i < 4).then(|| ((i * 4 + 2) as f32 + 1.0).to_bits()),
        ),
        Case::new(
            "out_of_range.load_uniform",
            "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { out[i] = u[at[i]].x; }",
        )
        .uniform("u: array<vec4u, 5>", marked(1, 20))
        .read("at", indices())
        .check("out", vec![0_u32; 64], |finals| {
            let (u, at) = (marked(1, 20), indices());
            let wrong = finals[2]
                .u32s()
                .iter()
                .zip(&at)
                .find(|&(&got, &i)| if i < 5 { got != u[i as usize * 4] } else { !zero_or_one_of(got, &u) });
            wrong.map_or(Ok(()), |(got, i)| Err(format!("index {i}: got {got:#x}")))
        }),
    ]
}

/// `statement` stores into `a` by `at[i]`. WGSL lets a store out of range land anywhere in its binding; our executor
/// drops it, so that there the words `must_stay`, which lie in no element that was aimed at, keep their values.
fn store(name: &str, declarations: &str, ty: &str, statement: &str, must_stay: &'static [usize]) -> Case {
    let at = indices();
    let (a, other) = (marked(1, 24), marked(9, 40));
    let first = a.clone();
    let rest = other.clone();
    Case::new(
        format!("out_of_range.{name}"),
        format!("{declarations}\n@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{ {statement} other[39] = 5u; }}"),
    )
    .read("at", &at)
    .scratch(&format!("a: {ty}"), a)
    .check("other", other, move |finals| {
        let (a, other) = (finals[1].u32s(), finals[2].u32s());
        if other[39] != 5 {
            return Err("the kernel did not run to its end".to_owned());
        }
        if let Some(k) = (0..39).find(|&k| other[k] != rest[k]) {
            return Err(format!("[{k}] of the other binding became {:#x}", other[k]));
        }
        // Stored values are 7 << 16 | i.
        let strange = a.iter().enumerate().find(|&(k, &x)| x != first[k] && x >> 16 != 7);
        strange.map_or(Ok(()), |(k, x)| Err(format!("word {k} of the binding became {x:#x}, which nobody stored")))
    })
    .strictly(move |finals| {
        let (a, first) = (finals[1].u32s(), marked(1, 24));
        let changed = must_stay.iter().find(|&&k| a[k] != first[k]);
        changed.map_or(Ok(()), |&k| Err(format!("word {k} of the binding became {:#x}: no element that was aimed at", a[k])))
    })
}

fn stores() -> Vec<Case> {
    let in_range = {
        let at = indices();
        Case::new(
            "out_of_range.store_keeps_range",
            "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { if at[i] < 20u || at[i] > 90u { a[at[i]] = 0x70000u | i; } }",
        )
        .read("at", &at)
        .check("a", marked(1, 21), |finals| {
            let strange = finals[1].u32s().iter().find(|&&x| x >> 16 != 7 && x != (1 << 16 | 21));
            strange.map_or(Ok(()), |x| Err(format!("an element became {x:#x}, which nobody stored")))
        })
        .strictly(|finals| {
            let a = finals[1].u32s();
            // Element 20, the last one, may be where a clamped index ends.
            let wrong = (0..20).find(|&k| a[k] != 7 << 16 | k as u32);
            wrong.map_or(Ok(()), |k| Err(format!("[{k}]: expected {:#x}, got {:#x}", 7 << 16 | k, a[k])))
        })
    };
    vec![
        in_range,
        store("store_runtime_array", "", "array<u32>", "a[at[i]] = 0x70000u | i;", &[]),
        store(
            "store_vec4_component",
            "",
            "array<vec4u>",
            "a[at[i]].z = 0x70000u | i;",
            &[0, 1, 3, 4, 5, 7, 20, 21, 23],
        ),
        store(
            "store_tail",
            "struct T { x: vec4u, tail: array<vec2u> }",
            "T",
            "a.tail[at[i]].y = 0x70000u | i;",
            &[0, 1, 2, 3, 4, 6, 22],
        ),
        // The structure ends at word 16; words past it belong to the binding but to no element of the array.
        store(
            "store_inner_array",
            "struct T { x: vec4u, y: array<u32, 8>, z: vec4u }",
            "T",
            "a.y[at[i]] = 0x70000u | i;",
            &[0, 1, 2, 3, 12, 13, 14, 15, 16, 20, 23],
        ),
        store(
            "store_vector_component",
            "",
            "array<vec4u, 6>",
            "a[2][at[i] & 0x8000000Fu] = 0x70000u | i;",
            &[0, 3, 4, 7, 12, 13, 16, 23],
        ),
        store(
            "atomic_store",
            "",
            "array<atomic<u32>>",
            "if at[i] >= 24u { atomicStore(&a[at[i]], 0x70000u | i); }",
            &[],
        ),
    ]
}

fn variables() -> Vec<Case> {
    let judge = |allowed: Vec<u32>, exact: fn(u32) -> Option<u32>| {
        move |finals: &[Values]| {
            let at = indices();
            let wrong = finals[1]
                .u32s()
                .iter()
                .zip(&at)
                .find(|&(&got, &i)| exact(i).map_or_else(|| !zero_or_one_of(got, &allowed), |e| got != e));
            wrong.map_or(Ok(()), |(got, i)| Err(format!("index {i}: got {got:#x}")))
        }
    };
    let case = |name: &str, prelude: &str, expression: &str| {
        Case::each_with(format!("out_of_range.{name}"), prelude, expression).read("at", indices())
    };
    // Sixteen in each variable, marked; the guard lies beside and must not be seen or touched.
    let declare = |space: &str| {
        format!(
            "var<{space}> before: array<u32, 8>;\nvar<{space}> t: array<u32, 16>;\nvar<{space}> behind: array<u32, 8>;\n"
        )
    };
    let fill = "fn fill() { for (var k = 0u; k < 16u; k++) { t[k] = 0x10000u | (k + 1u); } for (var k = 0u; k < 8u; k++) { before[k] = 0x90000u | k; behind[k] = 0xA0000u | k; } }\n";
    let exact: fn(u32) -> Option<u32> = |i| (i < 16).then(|| 1 << 16 | (i + 1));
    let private_load = declare("private") + fill + "fn f(i: u32) -> u32 { fill(); return t[i]; }";
    // The sum of the guards after the store, or the guard that was hit.
    let guards = "fn guards() -> u32 { for (var k = 0u; k < 8u; k++) { if before[k] != (0x90000u | k) { return 1u; } if behind[k] != (0xA0000u | k) { return 2u; } } return 7u; }\n";
    let private_store = declare("private")
        + fill
        + guards
        + "fn f(i: u32) -> u32 { fill(); t[i] = 0x70000u; t[bitcast<i32>(i)] = 0x70000u; return guards(); }";
    let function = "fn f(i: u32) -> u32 { var before = vec4u(9u); var t: array<u32, 16>; var behind = vec4u(9u); for (var k = 0u; k < 16u; k++) { t[k] = 0x10000u | (k + 1u); } \
                    let x = t[i]; if i >= 16u { t[i] = 77u; } if any(before != vec4u(9u)) || any(behind != vec4u(9u)) { return 1u; } return x; }";
    let vector = "fn f(i: u32) -> u32 { var v = vec3u(0x10001u, 0x10002u, 0x10003u); let x = v[i]; let guard = 5u; v[i + 0u] = 0x10002u; return select(1u, x, guard == 5u); }";
    let value = "fn f(i: u32) -> u32 { let t = array<u32, 4>(0x10001u, 0x10002u, 0x10003u, 0x10004u); return t[i]; }";
    let constant =
        "const T = array<u32, 4>(0x10001u, 0x10002u, 0x10003u, 0x10004u);\nfn f(i: u32) -> u32 { return T[i]; }";
    let four: fn(u32) -> Option<u32> = |i| (i < 4).then(|| 1 << 16 | (i + 1));
    let three: fn(u32) -> Option<u32> = |i| (i < 3).then(|| 1 << 16 | (i + 1));
    let workgroup = format!(
        "{}{fill}@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{ if i == 0u {{ fill(); }} workgroupBarrier(); out[i] = t[at[i]]; }}",
        declare("workgroup")
    );
    let workgroup_store = format!(
        "{}{fill}{guards}@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{ if i == 0u {{ fill(); }} workgroupBarrier(); t[at[i]] = 0x70000u; workgroupBarrier(); out[i] = guards(); }}",
        declare("workgroup")
    );
    // What `guards` says when all of them are there.
    let unharmed: fn(u32) -> Option<u32> = |_| Some(7);
    let sixteen = marked(1, 16);
    let out = vec![0_u32; 64];
    vec![
        case("private_load", &private_load, "f(at[i])").check("out", out.clone(), judge(sixteen.clone(), exact)),
        case("private_store", &private_store, "f(at[i])").check("out", out.clone(), judge(vec![], unharmed)),
        case("function_array", function, "f(at[i])").check("out", out.clone(), judge(sixteen.clone(), exact)),
        case("vector_component", vector, "f(at[i])").check("out", out.clone(), judge(marked(1, 3), three)),
        case("array_value", value, "f(at[i])").check("out", out.clone(), judge(marked(1, 4), four)),
        case("constant_array", constant, "f(at[i])").check("out", out.clone(), judge(marked(1, 4), four)),
        Case::new("out_of_range.workgroup_load", workgroup).read("at", indices()).check(
            "out",
            out.clone(),
            judge(sixteen, exact),
        ),
        Case::new("out_of_range.workgroup_store", workgroup_store).read("at", indices()).check(
            "out",
            out,
            judge(vec![], unharmed),
        ),
    ]
}

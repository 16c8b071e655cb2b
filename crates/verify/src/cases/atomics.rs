//! Atomics on i32 and u32, in storage and in workgroup memory. The order of operations is open, so totals are judged
//! where they do not depend on it, and returned values by what must hold for any order.

use crate::case::{Case, Values};
use crate::inputs::words;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for is_signed in [false, true] {
        for in_workgroup in [false, true] {
            cases.extend(totals(is_signed, in_workgroup));
        }
    }
    cases.extend(returned());
    cases.extend(compare_exchange());
    cases.extend(patterns());
    cases
}

/// Every operation whose total does not depend on the order, by 256 invocations on few places.
fn totals(is_signed: bool, in_workgroup: bool) -> Vec<Case> {
    let a = words(150, 256);
    let (ty, space) = (if is_signed { "i32" } else { "u32" }, if in_workgroup { "workgroup" } else { "storage" });
    type Fold = fn(u32, u32) -> u32;
    let signed_min: Fold = |x, y| (x as i32).min(y as i32) as u32;
    let signed_max: Fold = |x, y| (x as i32).max(y as i32) as u32;
    let table: [(&str, Fold); 7] = [
        ("Add", u32::wrapping_add),
        ("Sub", u32::wrapping_sub),
        ("Min", if is_signed { signed_min } else { u32::min }),
        ("Max", if is_signed { signed_max } else { u32::max }),
        ("And", |x, y| x & y),
        ("Or", |x, y| x | y),
        ("Xor", |x, y| x ^ y),
    ];
    let typed = |v: Vec<u32>| -> Values { if is_signed { crate::inputs::signed(&v).into() } else { v.into() } };
    // Values for `And` and `Or` would end as all zeros and all ones: leave some bits alone.
    let bits = |op: &str, x: u32| match op {
        "And" => x | 0x1111_1111,
        "Or" => x & 0x8421_1248,
        _ => x,
    };
    table
        .map(|(op, fold)| {
            let input: Vec<u32> = a.iter().map(|&x| bits(op, x)).collect();
            let start = 0x1357_9BDF_u32;
            let mut expected = vec![start; 5];
            input.iter().enumerate().for_each(|(i, &x)| expected[i % 5] = fold(expected[i % 5], x));
            let name = format!("atomics.{}_{ty}_{space}", op.to_lowercase());
            let body = if in_workgroup {
                format!(
                    "var<workgroup> cells: array<atomic<{ty}>, 5>;\n\
                     @compute @workgroup_size(256) fn main(@builtin(local_invocation_index) i: u32) {{\n \
                     if i < 5u {{ atomicStore(&cells[i], out[i]); }} workgroupBarrier();\n atomic{op}(&cells[i % 5u], a[i]);\n \
                     workgroupBarrier();\n if i < 5u {{ out[i] = atomicLoad(&cells[i]); }}\n}}"
                )
            } else {
                format!("@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{ atomic{op}(&out[id.x % 5u], a[id.x]); }}")
            };
            let case = Case::new(name, body).read("a", typed(input));
            let out = if in_workgroup { format!("out: array<{ty}>") } else { format!("out: array<atomic<{ty}>>") };
            let case = case.update(&out, typed(vec![start; 5]), typed(expected));
            if in_workgroup { case } else { case.workgroups(4, 1, 1) }
        })
        .into()
}

fn sorted(values: &[u32]) -> Vec<u32> {
    let mut v = values.to_vec();
    v.sort_unstable();
    v
}

fn returned() -> Vec<Case> {
    let tickets = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { out[id.x] = atomicAdd(&n, 3u); }";
    let chain = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { out[id.x] = atomicExchange(&n, id.x + 1u); }";
    let subtract = "var<workgroup> n: atomic<i32>;\n@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { \
                    out[i] = bitcast<u32>(atomicSub(&n, 1)); }";
    let divergent = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { \
                     if id.x % 3u == 0u { out[atomicAdd(&n, 1u)] = id.x; } }";
    let store_load = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { \
                      atomicStore(&cells[id.x], id.x * 5u); out[id.x] = atomicLoad(&cells[id.x]) + atomicMax(&cells[id.x], 100u); }";
    let extremes = "@compute @workgroup_size(1) fn main() { out[0] = atomicMin(&c[0], -5); out[1] = atomicMax(&c[0], 3); out[2] = atomicAnd(&c[1], 6); \
                    out[3] = atomicOr(&c[1], 8); out[4] = atomicXor(&c[1], -1); out[5] = atomicExchange(&c[2], 9); out[6] = atomicAdd(&c[2], 2147483647); out[7] = atomicSub(&c[2], 1); }";
    vec![
        // Every ticket exactly once.
        Case::new("atomics.add_returns_tickets", tickets)
            .scratch("n: atomic<u32>", vec![10_u32])
            .check("out", vec![0_u32; 256], |finals| {
                let expected: Vec<u32> = (0..256).map(|i| 10 + 3 * i).collect();
                if sorted(finals[1].u32s()) != expected || finals[0].u32s() != [10 + 3 * 256] {
                    return Err(format!("the tickets {:?} are not 10, 13, …", sorted(finals[1].u32s())));
                }
                Ok(())
            })
            .workgroups(4, 1, 1),
        // Every value that went in comes out once, or stays.
        Case::new("atomics.exchange_is_a_chain", chain)
            .scratch("n: atomic<u32>", vec![0_u32])
            .check("out", vec![0_u32; 256], |finals| {
                let all = [finals[1].u32s(), finals[0].u32s()].concat();
                if sorted(&all) != (0..=256).collect::<Vec<u32>>() {
                    Err(format!("lost or doubled values: {:?}", sorted(&all)))
                } else {
                    Ok(())
                }
            })
            .workgroups(4, 1, 1),
        Case::new("atomics.sub_returns_in_workgroup", subtract).check("out", vec![0_u32; 64], |finals| {
            let got = sorted(&finals[0].u32s().iter().map(|x| x.wrapping_neg()).collect::<Vec<u32>>());
            if got != (0..64).collect::<Vec<u32>>() {
                Err(format!("expected 0, -1, … -63, got {got:?} (negated)"))
            } else {
                Ok(())
            }
        }),
        Case::new("atomics.append_under_divergence", divergent)
            .scratch("n: atomic<u32>", vec![0_u32])
            .check("out", vec![9999_u32; 100], |finals| {
                let mut expected: Vec<u32> = (0..256).filter(|i| i % 3 == 0).collect();
                expected.resize(100, 9999);
                if sorted(finals[1].u32s()) != expected || finals[0].u32s() != [86] {
                    Err(format!("got {:?}", finals[1].u32s()))
                } else {
                    Ok(())
                }
            })
            .workgroups(4, 1, 1),
        Case::new("atomics.store_load_own_cell", store_load)
            .update(
                "cells: array<atomic<u32>>",
                vec![7_u32; 128],
                (0..128).map(|i| 100.max(i * 5)).collect::<Vec<u32>>(),
            )
            .write("out", (0..128).map(|i| i * 10).collect::<Vec<u32>>())
            .workgroups(2, 1, 1),
        Case::new("atomics.returns_old_value_i32", extremes)
            .update("c: array<atomic<i32>>", [0_i32, 7, 5], [3_i32, !14, i32::MIN + 7])
            .write("out", [0_i32, -5, 7, 6, 14, 5, 9, i32::MIN + 8]),
    ]
}

fn compare_exchange() -> Vec<Case> {
    let increment = |declare: &str, get: &str| {
        format!(
            "{declare}@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) {{\n \
         var old = atomicLoad(&n); for (var k = 0u; k < 100000u; k++) {{ let r = atomicCompareExchangeWeak(&n, old, old + 2u); \
         if r.exchanged {{ break; }} old = r.old_value; }}\n {get}\n}}"
        )
    };
    let once = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {\n \
                let r = atomicCompareExchangeWeak(&slots[id.x], -7, i32(id.x)); \
                out[id.x] = select(0u, 1u, r.exchanged) + select(0u, 2u, r.old_value == -7);\n}";
    let never: Vec<i32> = (0..64).map(|i| if i % 2 == 0 { -7 } else { i * 100 }).collect();
    let after = never.clone();
    vec![
        Case::new("atomics.compare_exchange_loop_storage", increment("", ""))
            .update("n: atomic<u32>", vec![5_u32], vec![5 + 2 * 256_u32])
            .workgroups(4, 1, 1),
        Case::new(
            "atomics.compare_exchange_loop_workgroup",
            increment("var<workgroup> n: atomic<u32>;\n", "workgroupBarrier(); out[id.x] = atomicLoad(&n);"),
        )
        .write("out", vec![128_u32; 256])
        .workgroups(4, 1, 1),
        // Weak: an exchange may fail though the value is equal, but it never happens when it is not.
        Case::new("atomics.compare_exchange_result", once).scratch("slots: array<atomic<i32>>", never).check(
            "out",
            vec![0_u32; 64],
            move |finals| {
                for (i, (&slot, &out)) in finals[0].i32s().iter().zip(finals[1].u32s()).enumerate() {
                    let right = match (after[i] == -7, out) {
                        (true, 3) => slot == i as i32,
                        (true, 2) => slot == -7,
                        (false, 0) => slot == after[i],
                        _ => false,
                    };
                    if !right {
                        return Err(format!("[{i}]: was {}, became {slot}, reported {out}", after[i]));
                    }
                }
                Ok(())
            },
        ),
    ]
}

fn patterns() -> Vec<Case> {
    let a: Vec<u32> = words(151, 1000);
    let mut histogram = vec![0_u32; 16];
    a.iter().for_each(|x| histogram[(x >> 28) as usize] += 1);
    let local = "var<workgroup> bins: array<atomic<u32>, 16>;\n\
                 @compute @workgroup_size(128) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) {\n \
                 if id.x < arrayLength(&a) { atomicAdd(&bins[a[id.x] >> 28u], 1u); }\n workgroupBarrier();\n \
                 if i < 16u { atomicAdd(&out[i], atomicLoad(&bins[i])); }\n}";
    let mixed = "struct Stats { count: atomic<u32>, pad: vec2u, low: atomic<i32>, high: atomic<i32> }\n\
                 @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {\n if id.x >= arrayLength(&a) { return; }\n \
                 let v = bitcast<i32>(a[id.x]); if v > 0 { atomicAdd(&s.count, 1u); } atomicMin(&s.low, v); atomicMax(&s.high, v);\n}";
    let ints: Vec<i32> = a.iter().map(|&x| x as i32).collect();
    let stats = vec![
        ints.iter().filter(|&&v| v > 0).count() as u32,
        11,
        12,
        13,
        *ints.iter().min().unwrap() as u32,
        *ints.iter().max().unwrap() as u32,
    ];
    vec![
        Case::new("atomics.histogram", local).read("a", &a).write("out: array<atomic<u32>>", histogram).workgroups(8, 1, 1),
        // count, two guards in `pad` (which starts at a multiple of 8), then low and high.
        Case::new("atomics.in_structure", mixed)
            .read("a", &a)
            .update("s: Stats", [0_u32, 11, 12, 13, 0, 0], stats)
            .workgroups(16, 1, 1),
        Case::new(
            "atomics.by_pointer",
            "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { let p = &out; atomicAdd(p, id.x); }",
        )
        .write("out: atomic<u32>", vec![(0..128).sum::<u32>()])
        .workgroups(2, 1, 1),
        Case::new(
            "atomics.last_workgroup_finishes",
            "var<workgroup> last: bool;\n\
             @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u, @builtin(num_workgroups) n: vec3u) {\n \
             atomicAdd(&total, i + w.x); storageBarrier(); workgroupBarrier();\n if i == 0u { last = atomicAdd(&done, 1u) == n.x - 1u; }\n \
             let finish = workgroupUniformLoad(&last);\n if finish && i == 0u { out[0] = atomicLoad(&done) * 10u; out[1] = 1u; }\n}",
        )
        .update("total: atomic<u32>", vec![0_u32], vec![20 * (0..64).sum::<u32>() + 64 * (0..20).sum::<u32>()])
        .update("done: atomic<u32>", vec![0_u32], vec![20_u32])
        .write("out", [200_u32, 1])
        .workgroups(20, 1, 1),
    ]
}

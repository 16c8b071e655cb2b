//! Workgroup memory and barriers: reductions, scans, tiles, values handed from one invocation to another. The conformance suite and `cantus verify` run
//! them on every device. Sums are of whole numbers that float32 holds exactly, so a wrong result is a missing barrier and not rounding. Workgroups have odd
//! sizes too.

use crate::case::Case;
use crate::inputs::{ints, words};

pub fn cases() -> Vec<Case> {
    let mut cases = reductions();
    cases.extend(exchanges());
    cases.extend(uniform_loads());
    cases.extend(shapes());
    cases
}

fn reductions() -> Vec<Case> {
    let a = words(160, 1024);
    let sums: Vec<u32> = a.chunks(256).map(|c| c.iter().fold(0_u32, |s, &x| s.wrapping_add(x))).collect();
    let tree = "var<workgroup> t: array<u32, 256>;\n\
                @compute @workgroup_size(256) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {\n \
                t[i] = a[w.x * 256u + i]; workgroupBarrier();\n \
                for (var s = 128u; s > 0u; s >>= 1u) { if i < s { t[i] += t[i + s]; } workgroupBarrier(); }\n \
                if i == 0u { out[w.x] = t[0]; }\n}";
    let scan = "var<workgroup> t: array<u32, 64>;\n\
                @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3u) {\n \
                t[i] = a[id.x]; workgroupBarrier();\n \
                for (var s = 1u; s < 64u; s *= 2u) { var add = 0u; if i >= s { add = t[i - s]; } workgroupBarrier(); t[i] += add; workgroupBarrier(); }\n \
                out[id.x] = t[i];\n}";
    let scanned: Vec<u32> = a
        .chunks(64)
        .flat_map(|c| {
            c.iter().scan(0_u32, |s, &x| {
                *s = s.wrapping_add(x);
                Some(*s)
            })
        })
        .collect();
    let strided = "var<workgroup> t: array<vec2i, 32>;\n\
                   @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {\n \
                   var low = 2147483647; var high = -2147483647; for (var k = i; k < arrayLength(&a); k += 32u) { low = min(low, a[k]); high = max(high, a[k]); }\n \
                   t[i] = vec2i(low, high); workgroupBarrier();\n \
                   if i == 0u { for (var k = 1u; k < 32u; k++) { low = min(low, t[k].x); high = max(high, t[k].y); } out[0] = low; out[1] = high; }\n}";
    let signed = ints(161, 777, -1_000_000, 1_000_000);
    let floats: Vec<f32> = ints(162, 512, -1000, 1000).iter().map(|&x| x as f32).collect();
    let dot: f32 = floats[..256].iter().zip(&floats[256..]).map(|(a, b)| a * b).sum();
    let pairwise = "var<workgroup> t: array<f32, 256>;\nfn fold(i: u32, s: u32) { if i < s { t[i] += t[i + s]; } workgroupBarrier(); }\n\
                    @compute @workgroup_size(256) fn main(@builtin(local_invocation_index) i: u32) {\n t[i] = a[i] * a[i + 256u]; workgroupBarrier();\n \
                    fold(i, 128u); fold(i, 64u); fold(i, 32u); fold(i, 16u); fold(i, 8u); fold(i, 4u); fold(i, 2u); fold(i, 1u);\n \
                    if i == 0u { out[0] = t[0]; }\n}";
    vec![
        Case::new("workgroup.sum_tree", tree).read("a", &a).write("out", sums).workgroups(4, 1, 1),
        Case::new("workgroup.inclusive_scan", scan).read("a", &a).write("out", scanned).workgroups(16, 1, 1),
        Case::new("workgroup.strided_min_max", strided)
            .read("a", &signed)
            .write("out", vec![*signed.iter().min().unwrap(), *signed.iter().max().unwrap()]),
        // Products of whole numbers below 1000, 256 of them: exact in float32.
        Case::new("workgroup.barrier_in_function", pairwise).read("a", &floats).write("out", vec![dot]),
    ]
}

fn exchanges() -> Vec<Case> {
    let a = words(163, 256);
    let tile = "var<workgroup> t: array<array<u32, 17>, 16>;\n\
                @compute @workgroup_size(16, 16) fn main(@builtin(local_invocation_id) l: vec3u, @builtin(workgroup_id) w: vec3u) {\n \
                t[l.y][l.x] = a[(w.y * 16u + l.y) * 32u + w.x * 16u + l.x]; workgroupBarrier();\n \
                out[(w.x * 16u + l.y) * 32u + w.y * 16u + l.x] = t[l.x][l.y];\n}";
    let square = words(164, 32 * 32);
    let transposed: Vec<u32> = (0..32 * 32).map(|k| square[k % 32 * 32 + k / 32]).collect();
    let product = "const T = 8u;\nvar<workgroup> p: array<array<i32, 8>, 8>;\nvar<workgroup> q: array<array<i32, 8>, 8>;\n\
                   @compute @workgroup_size(8, 8) fn main(@builtin(local_invocation_id) l: vec3u, @builtin(global_invocation_id) id: vec3u) {\n \
                   var s = 0; for (var k = 0u; k < 24u; k += T) { p[l.y][l.x] = a[id.y * 24u + k + l.x]; q[l.y][l.x] = b[(k + l.y) * 16u + id.x]; workgroupBarrier();\n \
                   for (var j = 0u; j < T; j++) { s += p[l.y][j] * q[j][l.x]; } workgroupBarrier(); }\n out[id.y * 16u + id.x] = s;\n}";
    let (m, n) = (ints(165, 16 * 24, -99, 99), ints(166, 24 * 16, -99, 99));
    let mut mn = vec![0; 256];
    for (k, out) in mn.iter_mut().enumerate() {
        *out = (0..24).map(|j| m[k / 16 * 24 + j] * n[j * 16 + k % 16]).sum();
    }
    let sort = "var<workgroup> t: array<u32, 64>;\n\
                @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {\n \
                t[i] = a[w.x * 64u + i]; workgroupBarrier();\n \
                for (var k = 2u; k <= 64u; k *= 2u) { for (var j = k / 2u; j > 0u; j /= 2u) {\n let o = i ^ j; let x = t[i]; let y = t[o]; workgroupBarrier();\n \
                if o > i { if ((i & k) == 0u) == (x > y) { t[i] = y; t[o] = x; } } workgroupBarrier(); } }\n out[w.x * 64u + i] = t[i];\n}";
    let sorted: Vec<u32> = a
        .chunks(64)
        .flat_map(|c| {
            let mut c = c.to_vec();
            c.sort_unstable();
            c
        })
        .collect();
    let rounds = "var<workgroup> t: array<u32, 33>;\n\
                  @compute @workgroup_size(33) fn main(@builtin(local_invocation_index) i: u32) {\n t[i] = i; var r = 0u;\n \
                  loop { workgroupBarrier(); let next = t[(i + 5u) % 33u] + 1u; workgroupBarrier(); t[i] = next; r++; if r == 20u { break; } }\n out[i] = t[i];\n}";
    let stored = "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {\n \
                  let base = w.x * 64u; out[base + i] = i * i; storageBarrier(); let x = out[base + 63u - i]; storageBarrier(); out[base + i] = x;\n}";
    let both = "var<workgroup> n: atomic<u32>;\nvar<workgroup> list: array<u32, 64>;\n\
                @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3u) {\n \
                if (a[id.x] & 3u) == 0u { list[atomicAdd(&n, 1u)] = a[id.x]; } workgroupBarrier();\n \
                var s = 0u; let count = atomicLoad(&n); for (var k = 0u; k < count; k++) { s += list[k]; } out[id.x] = s * 100u + count;\n}";
    let compacted: Vec<u32> = a
        .chunks(64)
        .flat_map(|c| {
            let kept: Vec<u32> = c.iter().copied().filter(|x| x & 3 == 0).collect();
            let sum = kept.iter().fold(0_u32, |s, &x| s.wrapping_add(x));
            vec![sum.wrapping_mul(100).wrapping_add(kept.len() as u32); 64]
        })
        .collect();
    vec![
        Case::new("workgroup.tile_transpose", tile).read("a", &square).write("out", transposed).workgroups(2, 2, 1),
        Case::new("workgroup.tiled_product", product).read("a", m).read("b", n).write("out", mn).workgroups(2, 2, 1),
        Case::new("workgroup.bitonic_sort", sort).read("a", &a).write("out", sorted).workgroups(4, 1, 1),
        Case::new("workgroup.rotation_rounds", rounds)
            .write("out", (0..33).map(|i| (i + 100) % 33 + 20).collect::<Vec<u32>>()),
        Case::new("workgroup.storage_barrier", stored)
            .write("out", (0..192).map(|k| (63 - k % 64) * (63 - k % 64)).collect::<Vec<u32>>())
            .workgroups(3, 1, 1),
        Case::new("workgroup.compaction", both).read("a", &a).write("out", compacted).workgroups(4, 1, 1),
    ]
}

fn uniform_loads() -> Vec<Case> {
    let scalar = "var<workgroup> chosen: u32;\n\
                  @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {\n \
                  if i == w.x * 7u { chosen = a[w.x * 64u + i]; }\n let c = workgroupUniformLoad(&chosen);\n out[w.x * 64u + i] = c ^ i;\n}";
    let structure = "struct S { n: u32, v: vec3u, m: array<u32, 2> }\nvar<workgroup> s: S;\n\
                     @compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32) {\n \
                     if i == 3u { s.n = 5u; s.v.z = 6u; } if i == 9u { s.m[1] = 7u; }\n let t = workgroupUniformLoad(&s);\n \
                     let e = workgroupUniformLoad(&s.m[1]);\n out[i] = t.n + t.v.z * 10u + t.m[1] * 100u + e * 1000u + t.v.x + i;\n}";
    let controls = "var<workgroup> limit: u32;\nvar<workgroup> sum: atomic<u32>;\n\
                    @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {\n \
                    if i == 0u { limit = w.x + 2u; } let n = workgroupUniformLoad(&limit);\n \
                    for (var k = 0u; k < n; k++) { atomicAdd(&sum, k); workgroupBarrier(); }\n out[w.x * 32u + i] = atomicLoad(&sum);\n}";
    let atomic = "var<workgroup> n: atomic<u32>;\n\
                  @compute @workgroup_size(48) fn main(@builtin(local_invocation_index) i: u32) {\n atomicAdd(&n, i); let s = workgroupUniformLoad(&n); out[i] = s; }";
    let a = words(167, 256);
    vec![
        Case::new("workgroup.uniform_load", scalar)
            .read("a", &a)
            .write("out", (0..256).map(|k| a[k / 64 * 64 + k / 64 * 7] ^ (k as u32 % 64)).collect::<Vec<u32>>())
            .workgroups(4, 1, 1),
        Case::new("workgroup.uniform_load_structure", structure)
            .write("out", (0..16).map(|i| 7765 + i).collect::<Vec<u32>>()),
        Case::new("workgroup.uniform_load_controls_loop", controls)
            .write("out", (0..160).map(|k| 32 * (0..k / 32 + 2).sum::<u32>()).collect::<Vec<u32>>())
            .workgroups(5, 1, 1),
        Case::new("workgroup.uniform_load_atomic", atomic).write("out", vec![(0..48).sum::<u32>(); 48]),
    ]
}

/// Workgroups of one, of odd sizes, in three dimensions, and as large as every device has them.
fn shapes() -> Vec<Case> {
    let shape = |name: &str, [x, y, z]: [u32; 3]| {
        let n = x * y * z;
        let body = format!(
            "var<workgroup> t: array<u32, {n}>;\n\
             @compute @workgroup_size({x}, {y}, {z}) fn main(@builtin(local_invocation_id) l: vec3u, @builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {{\n \
             t[i] = l.x + l.y * 100u + l.z * 10000u; workgroupBarrier();\n out[w.x * {n}u + i] = t[{n}u - 1u - i] + w.x * 1000000u;\n}}"
        );
        let expected = (0..3 * n).map(|k| {
            let i = n - 1 - k % n;
            i % x + i / x % y * 100 + i / (x * y) * 10000 + k / n * 1_000_000
        });
        Case::new(format!("workgroup.shape_{name}"), body)
            .write("out", expected.collect::<Vec<u32>>())
            .workgroups(3, 1, 1)
    };
    vec![
        shape("1", [1, 1, 1]),
        shape("7x5x3", [7, 5, 3]),
        shape("1x1x64", [1, 1, 64]),
        shape("256", [256, 1, 1]),
        shape("4x64", [4, 64, 1]),
        shape("1024", [1024, 1, 1]).needs(|n| n.invocations = 1024),
    ]
}

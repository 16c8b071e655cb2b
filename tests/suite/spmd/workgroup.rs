//! Workgroup memory, barriers, atomics and subgroups.

use super::harness::Run;

#[test]
fn tree_sum() {
    let text = "var<workgroup> part: array<f32, 256>;
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> sums: array<f32>;
        @compute @workgroup_size(256)
        fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) n: vec3u) {
            var sum = 0.0;
            for (var k = group.x * 256u + i; k < arrayLength(&x); k += 256u * n.x) { sum += x[k]; }
            part[i] = sum;
            workgroupBarrier();
            for (var half = 128u; half > 0u; half /= 2u) {
                if i < half { part[i] += part[i + half]; }
                workgroupBarrier();
            }
            if i == 0u { sums[group.x] = part[0]; }
        }";
    let x: Vec<f32> = (0..100_003).map(|i| (i % 100) as f32).collect();
    let sums = Run::new(text).buffer(&x).zeros(28).dispatch([7, 1, 1]).read::<f32>(1);
    assert_eq!(sums.iter().sum::<f32>(), x.iter().sum::<f32>());
    for (group, sum) in sums.iter().enumerate() {
        let expected: f32 = (0..x.len()).filter(|k| k / 256 % 7 == group).map(|k| x[k]).sum();
        assert_eq!(*sum, expected, "{group}");
    }
}

#[test]
fn workgroup_memory_starts_as_zero_and_loads_uniformly() {
    let text = "struct S { a: u32, v: vec3f, m: array<atomic<u32>, 4> }
        var<workgroup> s: S;
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(40)
        fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {
            if i == 3u { out[group.x * 4u] = s.a + u32(s.v.y) + atomicLoad(&s.m[2]); s.a = 5u + group.x; s.v = vec3f(1.0, 2.0, 3.0); }
            atomicAdd(&s.m[i % 4u], i);
            let all = workgroupUniformLoad(&s.a);
            var count = 0u;
            for (var k = 0u; k < all; k++) { count += 1u; }
            if i == 7u {
                out[group.x * 4u + 1u] = count;
                out[group.x * 4u + 2u] = atomicExchange(&s.m[1], 9u);
                out[group.x * 4u + 3u] = u32(s.v.x + s.v.z) + atomicLoad(&s.m[1]);
            }
        }";
    let out = Run::new(text).zeros(160).dispatch([10, 1, 1]).read::<[u32; 4]>(0);
    let first: u32 = (0..40).filter(|i| i % 4 == 1).sum();
    for (group, out) in out.into_iter().enumerate() {
        assert_eq!(out, [0, 5 + group as u32, first, 13]);
    }
}

#[test]
fn atomics() {
    let text = "struct A { sum: atomic<u32>, low: atomic<i32>, high: atomic<i32>, bits: atomic<u32>, won: atomic<u32>, times: atomic<u32> }
        @group(0) @binding(0) var<storage, read_write> a: A;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            if id.x % 3u == 1u { return; }
            let x = i32(id.x) - 5000;
            atomicAdd(&a.sum, id.x);
            atomicMin(&a.low, x);
            atomicMax(&a.high, x);
            atomicXor(&a.bits, id.x * 77u);
            let result = atomicCompareExchangeWeak(&a.won, 0u, id.x + 1u);
            if result.exchanged { atomicAdd(&a.times, 1u + result.old_value); }
        }";
    let n = 64 * 300_u32;
    let a = Run::new(text).zeros(24).dispatch([300, 1, 1]).read::<u32>(0);
    let ids = || (0..n).filter(|i| i % 3 != 1);
    assert_eq!(a[0], ids().fold(0, u32::wrapping_add));
    assert_eq!(a[1] as i32, -5000);
    assert_eq!(a[2] as i32, ids().max().unwrap() as i32 - 5000);
    assert_eq!(a[3], ids().fold(0, |x, i| x ^ i.wrapping_mul(77)));
    assert!(a[4] > 0 && a[4] <= n && a[4] % 3 != 2);
    assert_eq!(a[5], 1);
}

#[test]
fn wide_and_float_atomics() {
    let text = "@group(0) @binding(0) var<storage, read_write> a: atomic<u64>;
        @group(0) @binding(1) var<storage, read_write> b: atomic<f32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3u) { atomicAdd(&a, u64(id.x) << 20u); atomicAdd(&b, 0.5); }";
    let run = Run::new(text).zeros(8).zeros(4).dispatch([50, 1, 1]);
    assert_eq!(run.read::<u64>(0)[0], (0..3200_u64).map(|i| i << 20).sum::<u64>());
    assert_eq!(run.read::<f32>(1)[0], 1600.0);
}

#[test]
fn subgroups() {
    let text = "diagnostic(off, subgroup_uniformity);
        @group(0) @binding(0) var<storage, read_write> out: array<array<u32, 12>>;
        @compute @workgroup_size(80)
        fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_invocation_id) lane: u32,
                @builtin(subgroup_id) group: u32, @builtin(subgroup_size) size: u32) {
            let x = i * i + 1u;
            out[i][0] = subgroupAdd(x);
            out[i][1] = subgroupExclusiveAdd(x);
            out[i][2] = subgroupInclusiveAdd(x);
            out[i][3] = subgroupMax(x);
            out[i][4] = subgroupBallot(i % 3u == 0u).x;
            out[i][5] = subgroupShuffleXor(x, 1u);
            out[i][6] = subgroupBroadcast(x, 4u);
            out[i][7] = select(0u, 1u, subgroupAny(i == 40u)) + select(0u, 2u, subgroupAll(i < 64u));
            out[i][8] = quadSwapX(x);
            if i % 2u == 1u { out[i][9] = subgroupBroadcastFirst(x) + subgroupAdd(1u); }
            out[i][10] = group * 1000u + lane + size * 100000u;
            out[i][11] = subgroupShuffleUp(x, 2u);
        }";
    let out = Run::new(text).zeros(80 * 48).dispatch([1, 1, 1]).read::<[u32; 12]>(0);
    let x = |i: u32| i * i + 1;
    for i in 0..80_u32 {
        let (start, lane) = (i / 32 * 32, i % 32);
        let end = (start + 32).min(80);
        let row = out[i as usize];
        assert_eq!(row[0], (start..end).map(x).sum::<u32>());
        assert_eq!(row[1], (start..i).map(x).sum::<u32>());
        assert_eq!(row[2], (start..=i).map(x).sum::<u32>());
        assert_eq!(row[3], x(end - 1));
        assert_eq!(row[4], (start..end).filter(|k| k % 3 == 0).fold(0, |bits, k| bits | 1 << (k - start)));
        assert_eq!(row[5], x(i ^ 1));
        assert_eq!(row[6], x(start + 4));
        assert_eq!(row[7], u32::from(start == 32) + 2 * u32::from(end <= 64));
        assert_eq!(row[8], x(i ^ 1));
        if i % 2 == 1 {
            assert_eq!(row[9], x(start + 1) + (end - start) / 2);
        }
        assert_eq!(row[10], start / 32 * 1000 + lane + 3_200_000);
        if lane >= 2 {
            assert_eq!(row[11], x(i - 2));
        }
    }
}

#[test]
fn atomic_loads_and_stores_of_buffers_are_atomic() {
    let text = "@group(0) @binding(0) var<storage, read_write> a: array<atomic<u32>>;
        @group(0) @binding(1) var<storage, read_write> b: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
            let first = atomicLoad(&a[0]);
            let own = atomicLoad(&a[i]);
            if i % 2u == 1u { atomicStore(&a[i], own * 2u); }
            b[i] = first + own;
        }";
    let listing = super::harness::compile(text).listing();
    assert!(listing.contains("Atomic(Load") && listing.contains("Atomic(Store"), "{listing}");
    let values: Vec<u32> = (5..69).collect();
    let run = Run::new(text).buffer(&values).zeros(64 * 4).dispatch([1; 3]);
    let doubled: Vec<u32> = (5..69).map(|value| if value % 2 == 0 { value * 2 } else { value }).collect();
    assert_eq!(run.read::<u32>(0), doubled);
    assert_eq!(run.read::<u32>(1), (10..74).collect::<Vec<u32>>());
}

/// A lane that takes no part has no value: zero, and never what its register held before.
#[test]
fn shuffles_from_inactive_lanes_give_zero() {
    let run = Run::new(
        "diagnostic(off, subgroup_uniformity);
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_invocation_id) lane: u32) {
            var x = a[i];
            for (var round = 0u; round < 3u; round++) {
                if (i + round) % 2u == 0u {
                    let own = x * 5u + i;
                    x = subgroupShuffle(own, lane ^ 1u) + 1u;
                }
            }
            a[i] = x;
        }",
    );
    let got = run.buffer(&(0..64).map(|i| i + 1000).collect::<Vec<u32>>()).dispatch([1; 3]).read::<u32>(0);
    assert_eq!(got, vec![1; 64]);
}

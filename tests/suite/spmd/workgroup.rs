//! Workgroup memory, barriers, atomics and subgroups.

use cantus::spmd::Order;

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

/// Workgroup memory by all kinds of indices, barriers in loops that end by workgroup, and workgroups that return at once. `SIZE` and `TOTAL` are the invocations of a
/// workgroup.
const TOGETHER: &str = "diagnostic(off, derivative_uniformity);
    struct Mixed { head: u32, wide: array<u64, 5>, cells: array<vec3f, TOTAL>, counts: array<atomic<i32>, 7> }
    var<workgroup> line: array<u32, TOTAL>;
    var<workgroup> mixed: Mixed;
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> out: array<array<u32, 8>>;
    @compute @workgroup_size(SIZE)
    fn main(@builtin(local_invocation_index) i: u32, @builtin(local_invocation_id) local: vec3u,
            @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) n: vec3u, @builtin(global_invocation_id) id: vec3u) {
        let number = group.x + n.x * (group.y + n.y * group.z);
        let place = number * TOTAL + i;
        // Nothing of another workgroup is there.
        let before = line[i] + mixed.head + u32(mixed.wide[i % 5u]) + u32(atomicLoad(&mixed.counts[i % 7u]));
        if x[number] % 5u == 0u { out[place] = array(before, 1u, 2u, 3u, 4u, 5u, 6u, 7u); return; }
        line[i] = x[place % 97u];
        mixed.cells[TOTAL - 1u - i] = vec3f(f32(i), f32(number), 0.5);
        if i == TOTAL / 2u { mixed.head = number * 3u; mixed.wide[2] = u64(number) << 33u; }
        workgroupBarrier();
        var sum = 0u;
        for (var round = 0u; round < number % 4u + 1u; round++) {
            let next = line[(i + round + 1u) % TOTAL];
            workgroupBarrier();
            line[i] = next * 3u + round;
            workgroupBarrier();
            sum += line[(i * 7u + x[i % 97u]) % TOTAL] + line[round];
            atomicAdd(&mixed.counts[(sum + i) % 7u], i32(i + round));
            if sum % 3u == 1u { mixed.wide[0] = u64(7); continue; }
            sum ^= line[min(i, TOTAL - 1u)];
        }
        // Beyond the end: nothing is stored, and zero is loaded.
        line[i + x[number % 97u] * 1000u + TOTAL] = 99u;
        sum += line[TOTAL + i * 2u];
        let head = workgroupUniformLoad(&mixed.head);
        let cell = mixed.cells[(i + head) % TOTAL];
        let all = atomicMax(&mixed.counts[6], -1);
        out[place] = array(before, sum, head, u32(cell.x) + u32(cell.y) * 1000u, u32(mixed.wide[2] >> 33u) + u32(mixed.wide[0]),
            u32(atomicLoad(&mixed.counts[i % 6u])), line[i], id.x + id.y * 3u + local.x + local.y + u32(min(all, 0)));
    }";

#[test]
fn small_workgroups_compute_together_what_they_compute_alone() {
    let x: Vec<u32> = (0..97_u32).map(|i| i.wrapping_mul(2_654_435_761) >> 7).collect();
    for (size, total) in [
        ("1", 1),
        ("3", 3),
        ("8, 2", 16),
        ("5, 5", 25),
        ("32", 32),
        ("4, 4, 3", 48),
        ("64", 64),
        ("100", 100),
        ("16, 8", 128),
    ] {
        let text = TOGETHER.replace("SIZE", size).replace("TOTAL", &format!("{total}u"));
        for grid in [[1, 1, 1], [2, 1, 1], [61, 1, 1], [7, 5, 3], [1, 1, 29]] {
            let places = (grid.iter().product::<u32>() * total) as usize;
            let run = || Run::new(&text).buffer(&x).zeros(places * 32);
            assert!(run().listing().contains("Groups: "), "{size}");
            let expected = run().in_order(grid, Order::Forward).read::<[u32; 8]>(1);
            let places = expected.iter().filter(|out| out[..] != [0; 8]).count();
            assert!(places * 2 > expected.len(), "{size}: {places} of {}", expected.len());
            for (way, run) in [
                ("reversed", run().in_order(grid, Order::Reversed)),
                ("threads", run().dispatch(grid)),
                ("one thread", run().dispatch_with(grid, false)),
            ] {
                let got = run.read::<[u32; 8]>(1);
                let wrong = got.iter().zip(&expected).position(|(got, expected)| got != expected);
                assert_eq!(wrong, None, "{size} on {grid:?}, {way}: {:?}", wrong.map(|at| (got[at], expected[at])));
            }
        }
    }
}

/// One workgroup may wait there for what an earlier one does: they run one after the other.
#[test]
fn workgroups_with_atomics_in_buffers_run_alone() {
    let text = "var<workgroup> base: u32;
        @group(0) @binding(0) var<storage, read_write> sums: array<atomic<u32>>;
        @compute @workgroup_size(32)
        fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {
            if i == 0u {
                var before = 1u;
                if group.x > 0u {
                    loop { before = atomicLoad(&sums[group.x - 1u]); if before != 0u { break; } }
                }
                base = before;
            }
            workgroupBarrier();
            if i == 31u { atomicStore(&sums[group.x], base + 1u); }
        }";
    let run = Run::new(text);
    assert!(!run.listing().contains("Groups: "), "they would wait for each other");
    let sums = run.zeros(200 * 4).dispatch_with([200, 1, 1], false).read::<u32>(0);
    assert_eq!(sums, (2..202).collect::<Vec<u32>>());
}

//! Layouts, access paths, accesses out of range, and ids.

use super::harness::Run;

#[test]
fn layouts() {
    let run = Run::new(
        "struct Inner { v: vec3f, s: f32, m: mat3x2f }
        struct Outer { head: u32, list: array<Inner, 2>, tail: array<vec3f> }
        @group(0) @binding(0) var<storage, read> source: Outer;
        @group(0) @binding(1) var<storage, read_write> target_: array<f32>;
        @compute @workgroup_size(1)
        fn main(@builtin(workgroup_id) id: vec3u) {
            let inner = source.list[id.x];
            target_[id.x * 8u] = inner.v.z;
            target_[id.x * 8u + 1u] = inner.s;
            target_[id.x * 8u + 2u] = inner.m[2][1];
            target_[id.x * 8u + 3u] = source.tail[id.x].y;
            target_[id.x * 8u + 4u] = f32(arrayLength(&source.tail));
            target_[id.x * 8u + 5u] = source.list[id.x].m[id.x + 1u][id.x];
            target_[id.x * 8u + 6u] = f32(source.head);
        }",
    );
    // head at 0; list at 16, 48 bytes each: v 0, s 12, m 16 (three columns of 8); tail at 112, 16 bytes each.
    let mut words = vec![0.0_f32; 28 + 12];
    for (place, word) in words.iter_mut().enumerate() {
        *word = place as f32;
    }
    words[0] = f32::from_bits(42);
    let run = run.buffer(&words).zeros(64).dispatch([2, 1, 1]);
    let got = run.read::<f32>(1);
    for id in 0..2_usize {
        let inner = 4 + id * 12;
        let expected = [inner + 2, inner + 3, inner + 4 + 5, 28 + id * 4 + 1, 3, inner + 4 + 2 * (id + 1) + id, 42]
            .map(|v| v as f32);
        assert_eq!(got[id * 8..id * 8 + 7], expected);
    }
}

#[test]
fn out_of_range() {
    let run = Run::new(
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @group(0) @binding(1) var<storage, read_write> b: array<array<u32, 4>, 3>;
        @group(0) @binding(2) var<storage, read_write> seen: array<u32>;
        @group(0) @binding(3) var<uniform> offset: vec4u;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {
            seen[i] = a[i + offset.x] + a[i * 1000u + 4000000000u] + a[i - 100u];
            a[i + offset.x] = 7u;
            a[4294967295u - i] = 8u;
            let k = i32(i) - 20;
            b[k][i % 5u] = 9u;
            b[i % 4u][k] = 9u;
            var local = array<u32, 3>(1u, 2u, 3u);
            local[i] = 5u;
            seen[i] += local[k] * 0u + local[0] + local[2];
        }",
    );
    let run = run.buffer(&[1_u32; 70]).buffer(&[0_u32; 12]).zeros(256).buffer(&[40_u32, 0, 0, 0]).dispatch([1, 1, 1]);
    let a = run.read::<u32>(0);
    for (place, value) in a.iter().enumerate() {
        assert_eq!(*value, if place >= 40 { 7 } else { 1 }, "a[{place}]");
    }
    for (i, seen) in run.read::<u32>(2).into_iter().enumerate() {
        let loaded = u32::from(i + 40 < 70);
        let local = match i {
            0 => 5 + 3,
            2 => 1 + 5,
            _ => 1 + 3,
        };
        assert_eq!(seen, loaded + local, "seen[{i}]");
    }
    for i in 0..64_i64 {
        let _ = i;
    }
    let b = run.read::<u32>(1);
    let mut expected = [[0_u32; 4]; 3];
    for i in 0..64_i32 {
        let k = i - 20;
        for (row, column) in [(k, i % 5), (i % 4, k)] {
            if (0..3).contains(&row) && (0..4).contains(&column) {
                expected[row as usize][column as usize] = 9;
            }
        }
    }
    assert_eq!(b, expected.concat());
}

#[test]
fn ids() {
    // Each shape of grid and workgroup, narrow grids too.
    for (size, grid) in [
        ([1, 1, 1], [700, 3, 2]),
        ([64, 1, 1], [1, 300, 2]),
        ([8, 8, 1], [5, 4, 3]),
        ([3, 5, 2], [7, 1, 9]),
        // Whole batches of a row, and a part of one.
        ([8, 8, 1], [21, 3, 1]),
        ([16, 16, 1], [9, 5, 2]),
        ([5, 3, 2], [130, 2, 1]),
        ([4, 1, 6], [37, 2, 1]),
        ([31, 4, 1], [11, 3, 1]),
        ([1, 64, 1], [3, 3, 3]),
        ([600, 1, 1], [3, 2, 1]),
        ([1, 1, 1], [1, 1, 1]),
    ] {
        let [sx, sy, sz] = size;
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<vec4u>;
            @compute @workgroup_size({sx}, {sy}, {sz})
            fn main(@builtin(global_invocation_id) g: vec3u, @builtin(local_invocation_id) l: vec3u,
                    @builtin(workgroup_id) w: vec3u, @builtin(num_workgroups) n: vec3u,
                    @builtin(local_invocation_index) index: u32) {{
                let side = n * vec3u({sx}u, {sy}u, {sz}u);
                let place = (g.z * side.y + g.y) * side.x + g.x;
                out[place] = vec4u(l.x + 1000u * l.y + 1000000u * l.z, w.x + 1000u * w.y + 1000000u * w.z, index, place);
            }}"
        );
        let side: [u32; 3] = std::array::from_fn(|axis| size[axis] * grid[axis]);
        let total = side.iter().product::<u32>() as usize;
        let got = Run::new(&text).zeros(total * 16).dispatch(grid).read::<[u32; 4]>(0);
        let pack = |v: [u32; 3]| v[0] + 1000 * v[1] + 1_000_000 * v[2];
        for (place, got) in got.into_iter().enumerate() {
            let place = place as u32;
            let g = [place % side[0], place / side[0] % side[1], place / side[0] / side[1]];
            let l: [u32; 3] = std::array::from_fn(|axis| g[axis] % size[axis]);
            let w: [u32; 3] = std::array::from_fn(|axis| g[axis] / size[axis]);
            let index = (l[2] * size[1] + l[1]) * size[0] + l[0];
            assert_eq!(got, [pack(l), pack(w), index, place], "{size:?} {grid:?}");
        }
    }
}

#[test]
fn strided_and_scattered() {
    let run = Run::new(
        "@group(0) @binding(0) var<storage, read> a: array<vec4f>;
        @group(0) @binding(1) var<storage, read_write> b: array<vec2f>;
        @group(0) @binding(2) var<storage, read> order: array<u32>;
        @compute @workgroup_size(32)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            b[order[id.x]] = a[id.x].yw + vec2f(f32(id.x), 0.0);
        }",
    );
    let n = 640_u32;
    let a: Vec<f32> = (0..4 * n).map(|i| i as f32).collect();
    let order: Vec<u32> = (0..n).map(|i| i * 7 % n).collect();
    let run = run.buffer(&a).zeros(n as usize * 8).buffer(&order).dispatch([n / 32, 1, 1]);
    let b = run.read::<[f32; 2]>(1);
    for i in 0..n as usize {
        assert_eq!(b[order[i] as usize], [a[4 * i + 1] + i as f32, a[4 * i + 3]]);
    }
}

/// Blocks of lanes whose indices are a run, one element, the reverse, anything, or partly out of range; some lanes inactive, batches that
/// do not end with a block.
#[test]
fn blocks_of_indices() {
    let seed = std::env::var("CANTUS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7_u32);
    println!("seed {seed} (CANTUS_SEED repeats it)");
    let mut state = seed;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((u64::from(state) * u64::from(below)) >> 32) as u32
    };
    let (lanes, elements) = (50 * 40_usize, 3000_u32);
    let mut pattern = |distinct: bool| -> Vec<u32> {
        let mut indices = Vec::new();
        while indices.len() < lanes {
            let first = random(elements);
            let of = |k: u32, kind: u32| match kind {
                0 => first.wrapping_add(k),
                1 => first,
                2 => first.wrapping_sub(k),
                3 => first.wrapping_mul(k + 1) % elements,
                4 => elements - 8 + k,
                _ => (u32::MAX - 8).wrapping_add(k),
            };
            let (kind, length) = (random(6), 1 + random(40));
            indices.extend((0..length).map(|k| of(k, kind)));
        }
        indices.truncate(lanes);
        if distinct {
            // Each place once: what comes second goes nowhere.
            let mut seen = std::collections::HashSet::new();
            indices.iter_mut().filter(|index| !seen.insert(**index)).for_each(|index| *index = u32::MAX);
        }
        indices
    };
    let (from, to) = (pattern(false), pattern(true));
    let flags: Vec<u32> = (0..lanes as u32).map(|lane| u32::from(lane / 64 % 3 != 1 || lane % 5 != 0)).collect();
    for (kind, size) in [("u32", 4), ("vec2u", 8)] {
        let run = Run::new(&format!(
            "@group(0) @binding(0) var<storage, read> a: array<{kind}>;
            @group(0) @binding(1) var<storage, read_write> b: array<{kind}>;
            @group(0) @binding(2) var<storage, read> load: array<u32>;
            @group(0) @binding(3) var<storage, read> store: array<u32>;
            @group(0) @binding(4) var<storage, read> flags: array<u32>;
            @compute @workgroup_size(50)
            fn main(@builtin(global_invocation_id) id: vec3u) {{
                var kept: array<{kind}, 3>;
                for (var k = 0; k < 3; k++) {{
                    if (flags[id.x] + u32(k)) != 1u {{ kept[k] = a[load[id.x]] + u32(k); }}
                }}
                if flags[id.x] != 0u {{ b[store[id.x]] = kept[0] + kept[1] * 16u + kept[2] * 256u; }}
            }}"
        ));
        let words = size / 4;
        let a: Vec<u32> = (0..elements * words).map(|word| word * 3 + 1).collect();
        let run = run.buffer(&a).zeros((elements * size) as usize).buffer(&from).buffer(&to).buffer(&flags);
        let b = run.dispatch([40, 1, 1]).read::<u32>(1);
        let mut expected = vec![0_u32; (elements * words) as usize];
        for lane in 0..lanes {
            for word in 0..words {
                // naga's bounds policy is the executor's own: zero out of range, and no store.
                let loaded = if from[lane] < elements { a[(from[lane] * words + word) as usize] } else { 0 };
                if flags[lane] != 0 && to[lane] < elements {
                    // With the flag set only k = 0 is left out.
                    let value = (loaded + 1) * 16 + (loaded + 2) * 256;
                    expected[(to[lane] * words + word) as usize] = value;
                }
            }
        }
        assert_eq!(b, expected, "{kind}");
    }
}

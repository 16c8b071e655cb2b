//! Dispatches beyond the device's workgroups per dimension: exact ids, barriers, counts.

use cantus::backend::Bound;

use crate::Case;
use crate::support::Found;
use kit::backend::{Open, assert_says, dispatch, uniform, whole};
use kit::harness::not_run;

pub const CASES: &[Case] = &[
    ("ids_of_folded_grids", ids_of_folded_grids),
    ("ids_in_a_structure", ids_in_a_structure),
    ("folded_barriers", folded_barriers),
    ("folded_subgroups", folded_subgroups),
    ("folded_overrides", folded_overrides),
    ("folded_amendments", folded_amendments),
    ("folded_and_plain_in_one_batch", folded_and_plain),
    ("folded_group_uniform_barrier", folded_uniform_barrier),
    ("limits_of_folding", limits_of_folding),
];

/// Grids beyond 65,535 in each dimension.
const GRIDS: [[u32; 3]; 5] = [[100_000, 1, 1], [70_000, 3, 2], [1, 1, 65_536], [65_536, 2, 1], [3, 65_537, 1]];

/// Each workgroup writes at its own number; a workgroup that runs twice, or with a wrong id, shows in the count or the number.
fn check_ids(device: &Open, text: &str, grid: [u32; 3], size: [u32; 3]) {
    let program = device.compile(text);
    device.0.check_workgroups(&*program, "ids", grid).expect("it folds");
    let total: u64 = grid.iter().map(|&count| u64::from(count)).product();
    let (seen, faults) = (device.zeros(total * 4), device.zeros(8 * 4));
    device.run(&program, vec![whole(&seen), whole(&faults)], grid).unwrap();
    let counts: Vec<u32> = device.read(&seen);
    let invocations: u32 = size.iter().product();
    let wrong = counts.iter().position(|count| *count != invocations);
    assert_eq!(wrong.map(|at| (at, counts[at])), None, "visits of a workgroup of {grid:?} (expected {invocations})");
    let found: Vec<u32> = device.read(&faults);
    assert_eq!(found[0], 0, "invocations of {grid:?} with ids that contradict each other: {found:?}");
    assert_eq!(found[1..4], grid, "num_workgroups");
}

const IDS: &str = "
    @group(0) @binding(0) var<storage, read_write> seen: array<atomic<u32>>;
    @group(0) @binding(1) var<storage, read_write> faults: array<atomic<u32>>;
    @compute @workgroup_size(3, 2, 1)
    fn ids(
        @builtin(global_invocation_id) global: vec3u,
        @builtin(num_workgroups) counts: vec3u,
        @builtin(workgroup_id) group: vec3u,
        @builtin(local_invocation_id) local: vec3u,
        @builtin(local_invocation_index) index: u32,
    ) {
        let size = vec3u(3u, 2u, 1u);
        atomicAdd(&seen[group.x + counts.x * (group.y + counts.y * group.z)], 1u);
        let right = all(global == group * size + local) && all(group < counts) && index == local.x + 3u * local.y;
        if !right { atomicAdd(&faults[0], 1u); }
        atomicMax(&faults[1], counts.x);
        atomicMax(&faults[2], counts.y);
        atomicMax(&faults[3], counts.z);
    }";

fn ids_of_folded_grids(found: &Found) {
    let device = found.open();
    for grid in GRIDS.into_iter().chain([[5, 4, 3]]) {
        check_ids(&device, IDS, grid, [3, 2, 1]);
    }
}

fn ids_in_a_structure(found: &Found) {
    let device = found.open();
    let text = "
        struct Place { @builtin(workgroup_id) group: vec3u, @builtin(global_invocation_id) global: vec3u }
        struct Rest { @builtin(local_invocation_index) index: u32, @builtin(num_workgroups) counts: vec3u }
        @group(2) @binding(0) var<storage, read_write> seen: array<atomic<u32>>;
        @group(2) @binding(5) var<storage, read_write> faults: array<atomic<u32>>;
        fn count(place: Place, rest: Rest) {
            let group = place.group;
            atomicAdd(&seen[group.x + rest.counts.x * (group.y + rest.counts.y * group.z)], 1u);
            if any(place.global != group * vec3u(2u, 1u, 1u) + vec3u(rest.index, 0u, 0u)) { atomicAdd(&faults[0], 1u); }
        }
        @compute @workgroup_size(2)
        fn ids(place: Place, rest: Rest) {
            count(place, rest);
            atomicMax(&faults[1], rest.counts.x);
            atomicMax(&faults[2], rest.counts.y);
            atomicMax(&faults[3], rest.counts.z);
        }";
    for grid in GRIDS {
        check_ids(&device, text, grid, [2, 1, 1]);
    }
}

fn folded_barriers(found: &Found) {
    let device = found.open();
    // A sum over the workgroup through its memory; early returns and loops around the barriers.
    let program = device.compile(
        "@group(0) @binding(0) var<storage, read_write> sums: array<u32>;
         var<workgroup> tile: array<u32, 32>;
         @compute @workgroup_size(32)
         fn sums_of_groups(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) i: u32,
                           @builtin(global_invocation_id) id: vec3u) {
             tile[i] += id.x;
             workgroupBarrier();
             for (var step = 16u; step > 0u; step /= 2u) {
                 if i < step { tile[i] += tile[i + step]; }
                 workgroupBarrier();
             }
             if i > 0u { return; }
             sums[group.x] = tile[0];
         }",
    );
    let count = 70_001_u32;
    let sums = device.zeros(u64::from(count) * 4);
    device.run(&program, vec![whole(&sums)], [count, 1, 1]).unwrap();
    // Sum of 32 g + i over i = 0 .. 31.
    let expected = (0..count).map(|group| 32 * 32 * group + 31 * 16);
    assert!(device.read::<u32>(&sums).into_iter().eq(expected));
}

fn folded_subgroups(found: &Found) {
    if !found.info.capabilities.features.subgroups {
        not_run("it has no subgroups");
    }
    let device = found.open();
    let program = device.compile(
        "@group(0) @binding(0) var<storage, read_write> sums: array<atomic<u32>>;
         @compute @workgroup_size(16)
         fn sums_of_groups(@builtin(workgroup_id) group: vec3u, @builtin(subgroup_invocation_id) lane: u32,
                           @builtin(local_invocation_index) i: u32) {
             let sum = subgroupAdd(i + group.x);
             if lane == 0u { atomicAdd(&sums[group.x], sum); }
         }",
    );
    let count = 65_600_u32;
    let sums = device.zeros(u64::from(count) * 4);
    device.run(&program, vec![whole(&sums)], [count, 1, 1]).unwrap();
    assert!(device.read::<u32>(&sums).into_iter().eq((0..count).map(|group| 16 * group + 120)));
}

fn folded_overrides(found: &Found) {
    let device = found.open();
    let kernel = cantus::Kernel::from_wgsl(
        "override width: u32;
         struct Params { factor: u32, offset: u32 }
         @group(0) @binding(0) var<uniform> params: Params;
         @group(0) @binding(1) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(width) fn fill(@builtin(global_invocation_id) id: vec3u) {
             y[id.x] = id.x * params.factor + params.offset;
         }
         @compute @workgroup_size(1) fn another() { y[0] = 1u; }",
    );
    let kernel = kernel.unwrap().with_entry_point("fill").unwrap().with_override("width", 2).unwrap();
    let program = pollster::block_on(device.0.compile(&kernel)).unwrap();
    let count = 90_000_u32;
    let y = device.zeros(u64::from(count) * 8);
    device.run(&program, vec![uniform(&[3_u32, 5]), whole(&y)], [count, 1, 1]).unwrap();
    assert!(device.read::<u32>(&y).into_iter().eq((0..2 * count).map(|id| 3 * id + 5)));
}

fn folded_and_plain(found: &Found) {
    let device = found.open();
    let program = device.compile(
        "@group(0) @binding(0) var<uniform> add: u32;
         @group(0) @binding(1) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(1) fn add_to(@builtin(workgroup_id) group: vec3u) { y[group.x] += add; }",
    );
    let y = device.zeros(80_000 * 4);
    let bindings = |add: u32| -> Vec<Bound> { vec![uniform(&[add]), whole(&y)] };
    let batch = vec![
        dispatch("add_to", &program, bindings(1), [10, 1, 1]),
        dispatch("add_to", &program, bindings(20), [80_000, 1, 1]),
        dispatch("add_to", &program, bindings(20), [70_000, 1, 1]),
        dispatch("add_to", &program, bindings(1), [10, 1, 1]),
    ];
    device.submit(batch).unwrap();
    let expected = (0..80_000_u32).map(|i| 2 * u32::from(i < 10) + 20 + 20 * u32::from(i < 70_000));
    assert!(device.read::<u32>(&y).into_iter().eq(expected));
}

/// The form that is folded is amended as the plain one is: an index beyond a vector takes its last component, a shift its number's remainder.
fn folded_amendments(found: &Found) {
    let device = found.open();
    let program = device.compile(
        "@group(0) @binding(0) var<storage> x: array<vec4u>;
         @group(0) @binding(1) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(1) fn picked(@builtin(workgroup_id) group: vec3u) {
             var i = 4u;
             y[group.x] = x[0][i] + x[0][group.x % 9u] + (3u << (group.x % 100u));
         }",
    );
    let numbers = [1_u32, 20, 300, 4000];
    let x = device.buffer("x", &numbers);
    for count in [100_u32, 70_000] {
        let y = device.zeros(u64::from(count) * 4);
        device.run(&program, vec![whole(&x), whole(&y)], [count, 1, 1]).unwrap();
        let expected = |group: u32| (4000 + numbers[(group % 9).min(3) as usize]).wrapping_add(3 << (group % 100 % 32));
        assert!(device.read::<u32>(&y).into_iter().eq((0..count).map(expected)), "{count} workgroups");
    }
}

/// A barrier under a condition on the workgroup's id is uniform, and stays so.
fn folded_uniform_barrier(found: &Found) {
    let device = found.open();
    let program = device.compile(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
         var<workgroup> tile: array<u32, 4>;
         @compute @workgroup_size(4)
         fn turned(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) counts: vec3u,
                   @builtin(local_invocation_index) i: u32) {
             if group.x % 2u == 1u && counts.x > 1u {
                 tile[i] = i;
                 workgroupBarrier();
                 y[group.x * 4u + i] = tile[3u - i];
             } else {
                 y[group.x * 4u + i] = 9u;
             }
         }",
    );
    let count = 65_540_u32;
    let y = device.zeros(u64::from(count) * 16);
    device.run(&program, vec![whole(&y)], [count, 1, 1]).unwrap();
    let expected = (0..count).flat_map(|group| (0..4).map(move |i| if group % 2 == 1 { 3 - i } else { 9 }));
    assert!(device.read::<u32>(&y).into_iter().eq(expected));
}

fn limits_of_folding(found: &Found) {
    let device = found.open();
    let program = device.compile(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(64) fn wide(@builtin(workgroup_id) group: vec3u) { y[0] = group.x; }",
    );
    let check = |workgroups| device.0.check_workgroups(&*program, "wide", workgroups);
    check([0, 70_000, 1]).unwrap();
    check([1 << 26, 1, 1]).unwrap();
    assert_says(check([(1 << 26) + 1, 1, 1]), &["wide", "4294967360 invocations", "in x"]);
    assert_says(check([65_536, 65_536, 2]), &["wide", "8589934592 workgroups"]);
    assert_says(check([1, u32::MAX, u32::MAX]), &["wide", "workgroups in all"]);
    check([1, u32::MAX, 1]).unwrap();
    // Nothing to run is nothing.
    let y = device.zeros(4);
    device.run(&program, vec![whole(&y)], [0, 70_000, 1]).unwrap();
    assert_eq!(device.read::<u32>(&y), [0]);
}

//! Ids of one-, two- and three-dimensional dispatches, and what an invocation may know about its place.

use crate::case::Case;

pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        ids("1d", [64, 1, 1], [5, 1, 1]),
        ids("1d_odd_size", [33, 1, 1], [7, 1, 1]),
        ids("2d", [8, 8, 1], [3, 5, 1]),
        ids("2d_row_workgroup", [32, 1, 1], [2, 9, 1]),
        ids("2d_column_workgroup", [1, 32, 1], [9, 2, 1]),
        ids("3d", [4, 2, 3], [3, 2, 4]),
        ids("3d_single_invocations", [1, 1, 1], [5, 4, 3]),
        ids("only_z", [1, 1, 16], [1, 1, 10]),
        ids("narrow_x", [1, 64, 1], [1, 30, 1]),
        ids("many_rows", [16, 1, 1], [1, 500, 1]),
    ];
    cases.extend(grids());
    cases
}

/// Every invocation writes down all of its ids, at the place that its global id names.
fn ids(name: &str, size: [u32; 3], groups: [u32; 3]) -> Case {
    let [x, y, z] = size;
    let body = format!(
        "struct Place {{ global: vec3u, index: u32, local: vec3u, mark: u32, workgroup: vec3u, size: u32, count: vec3u }}\n\
         @compute @workgroup_size({x}, {y}, {z}) fn main(@builtin(global_invocation_id) g: vec3u, @builtin(local_invocation_id) l: vec3u, \
         @builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u, @builtin(num_workgroups) n: vec3u) {{\n \
         let width = n.x * {x}u; let height = n.y * {y}u; let at = (g.z * height + g.y) * width + g.x;\n \
         out[at].global = g; out[at].index = i; out[at].local = l; out[at].mark += 1u; out[at].workgroup = w; out[at].size = {x}u * {y}u * {z}u; out[at].count = n;\n}}"
    );
    let extent = [0, 1, 2].map(|k| size[k] * groups[k]);
    let mut expected = Vec::new();
    for gz in 0..extent[2] {
        for gy in 0..extent[1] {
            for gx in 0..extent[0] {
                let g = [gx, gy, gz];
                let l = [0, 1, 2].map(|k| g[k] % size[k]);
                let w = [0, 1, 2].map(|k| g[k] / size[k]);
                expected.extend(g);
                expected.push((l[2] * y + l[1]) * x + l[0]);
                expected.extend(l);
                expected.push(1);
                expected.extend(w);
                expected.push(x * y * z);
                expected.extend(groups);
                expected.push(0);
            }
        }
    }
    Case::new(format!("dispatch.ids_{name}"), body)
        .write("out: array<Place>", expected)
        .workgroups(groups[0], groups[1], groups[2])
}

fn grids() -> Vec<Case> {
    let guarded = "@compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {\n \
                   if id.x >= p.x || id.y >= p.y { return; }\n out[id.y * p.x + id.x] += id.y * 1000u + id.x;\n}";
    let grouped = "struct In { @builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32 }\n\
                   struct More { @builtin(num_workgroups) n: vec3u, @builtin(global_invocation_id) g: vec3u }\n\
                   @compute @workgroup_size(16) fn main(in: In, more: More) { out[more.g.x] = in.w.x * 100u + in.i + more.n.x * 10000u; }";
    let stepped = "@compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {\n \
                   for (var k = id.x; k < arrayLength(&out); k += n.x * 32u) { out[k] += k * 3u; }\n}";
    let swirl = "@compute @workgroup_size(4, 4, 4) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {\n \
                 let s = n * 4u; let v = (id * vec3u(3u, 5u, 7u)) % s; out[(id.z * s.y + id.y) * s.x + id.x] = dot(v, vec3u(1u, 100u, 10000u)) + dot(id.zxy, s);\n}";
    let mut swirled: Vec<u32> = Vec::new();
    for z in 0..8 {
        for y in 0..4 {
            for x in 0..12 {
                swirled.push(x * 3 % 12 + y * 5 % 4 * 100 + z * 7 % 8 * 10000 + z * 12 + x * 4 + y * 8);
            }
        }
    }
    vec![
        Case::new("dispatch.guarded_2d_edge", guarded)
            .uniform("p: vec2u", [13_u32, 21])
            .write("out", (0..13 * 21).map(|k| k / 13 * 1000 + k % 13).collect::<Vec<u32>>())
            .workgroups(2, 3, 1),
        Case::new("dispatch.builtins_in_structures", grouped)
            .write("out", (0..64).map(|k| k / 16 * 100 + k % 16 + 40000).collect::<Vec<u32>>())
            .workgroups(4, 1, 1),
        Case::new("dispatch.grid_stride", stepped).write("out", (0..1000).map(|k| k * 3).collect::<Vec<u32>>()).workgroups(4, 1, 1),
        Case::new("dispatch.mixed_3d", swirl).write("out", swirled).workgroups(3, 1, 2),
        Case::new("dispatch.more_invocations_than_elements", "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { if id.x < arrayLength(&out) { out[id.x] = id.x + 1u; } }")
            .write("out", (1..=70).collect::<Vec<u32>>())
            .workgroups(40, 1, 1),
        Case::new("dispatch.no_workgroups", "@compute @workgroup_size(64) fn main() { out[0] = 1u; }").write("out", vec![0_u32]).workgroups(0, 1, 1)
            .needs(|n| n.refused_by_engines = true),
        Case::new("dispatch.no_bindings_read", "@compute @workgroup_size(2, 2) fn main(@builtin(local_invocation_id) l: vec3u) { out[l.y * 2u + l.x] = 5u; }")
            .update("out", vec![1_u32; 6], [5_u32, 5, 5, 5, 1, 1]),
    ]
}

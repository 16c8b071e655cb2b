// The sum of each task's terms: `term` adds one to a sum.
struct Task { start: u32, length: u32, to: u32 }
@group(0) @binding(0) var<uniform> count: u32;
@group(0) @binding(1) var<storage> tasks: array<Task>;
@group(0) @binding(4) var<storage, read_write> y: array<Point>;

@compute @workgroup_size(64)
fn msm_sums(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= count { return; }
    let task = tasks[id.x];
    var sum = infinity();
    for (var at = task.start; at < task.start + task.length; at++) { sum = with_term(sum, at); }
    y[task.to] = sum;
}

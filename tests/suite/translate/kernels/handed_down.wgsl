// Variables of the module and pointers, handed down to functions.
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@group(0) @binding(1) var<uniform> scale: vec4u;
var<private> calls: u32 = 1u;
var<workgroup> shared_sum: atomic<u32>;

fn bump(target_: ptr<function, u32>, by: u32) { *target_ += by * scale.x; calls++; }
fn store_last(value: u32) { out[arrayLength(&out) - 1u] = value; }
fn add_up(value: u32) { atomicAdd(&shared_sum, value); }

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    var local = i;
    bump(&local, 3u);
    add_up(local);
    workgroupBarrier();
    if i == 0u { store_last(atomicLoad(&shared_sum) + calls); }
}

// Names that mean something to one language or another.
struct float4 { register_: f32, kernel: f32, x1: f32 }
@group(0) @binding(0) var<storage, read_write> double: array<f32>;
@group(0) @binding(1) var<uniform> uint: float4;
var<workgroup> barrier: f32;

fn sinf(signed: f32) -> f32 { return signed + 1.0; }
fn cantus_add(cantus_x: f32) -> f32 { return cantus_x * 2.0; }
fn atomicAdd_(threadIdx: f32) -> f32 { var char = threadIdx; char += 1.0; return char; }
fn get_local_id(vec3_f32: f32, e1: f32) -> f32 { let e2 = vec3_f32 + e1; return e2 * e2 + e2; }

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) int: vec3u, @builtin(local_invocation_index) blockIdx: u32) {
    var long = sinf(uint.register_) + cantus_add(uint.kernel) + atomicAdd_(uint.x1);
    if blockIdx == 0u { barrier = long; }
    workgroupBarrier();
    let int2 = get_local_id(long, barrier);
    double[int.x] = int2 + barrier;
}

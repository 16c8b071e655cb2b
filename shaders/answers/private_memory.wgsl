// A private variable begins as declared in every invocation, and is nobody else's.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;

var<private> counts: array<u32, 4>;
var<private> seed: u32 = 17u;

fn bump(by: u32) { counts[by % 4u] += by; seed += by; }

@compute @workgroup_size(64)
fn private_memory(@builtin(global_invocation_id) id: vec3u) {
    bump(id.x);
    bump(id.x + 1u);
    answer[id.x] = counts[0] + counts[1] + counts[2] + counts[3] + 1000u * seed;
}

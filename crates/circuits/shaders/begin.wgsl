// States whose qubits are all 0.

struct Start {
    // 2^qubits amplitudes each; the amplitudes of all.
    qubits: u32,
    total: u32,
}

@group(0) @binding(0) var<uniform> start: Start;
@group(0) @binding(1) var<storage, read_write> amplitudes: array<vec2f>;

@compute @workgroup_size(64)
fn begin(@builtin(global_invocation_id) id: vec3u) {
    if id.x < start.total {
        let is_first = (id.x & ((1u << start.qubits) - 1u)) == 0u;
        amplitudes[id.x] = vec2f(select(0.0, 1.0, is_first), 0.0);
    }
}

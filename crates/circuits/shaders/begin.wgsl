// States whose qubits are all 0.

// `f64` in their place where amplitudes are complex128.
alias Real = f32;
alias Number = vec2<Real>;

struct Start {
    // 2^qubits amplitudes each; the amplitudes of all.
    qubits: u32,
    total: u32,
}

@group(0) @binding(0) var<uniform> start: Start;
@group(0) @binding(1) var<storage, read_write> amplitudes: array<Number>;

@compute @workgroup_size(64)
fn begin(@builtin(global_invocation_id) id: vec3u) {
    if id.x < start.total {
        let is_first = (id.x & ((1u << start.qubits) - 1u)) == 0u;
        amplitudes[id.x] = Number(select(Real(), Real(1.0), is_first), Real());
    }
}

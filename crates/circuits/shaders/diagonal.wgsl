// Multiplies a state vector by a diagonal over some qubits, where its controls are set.

// `f64` in their place where amplitudes are complex128.
alias Real = f32;
alias Number = vec2<Real>;

struct Pass {
    // The places of the state vector's bits that a group does not count: its targets and controls, ascending.
    fixed: u32,
    // The controls that are 1.
    ones: u32,
    // A state has 2^groups groups, and 2^qubits amplitudes.
    groups: u32,
    qubits: u32,
    // The first entry of the table, and the entries from one state's tables to the next one's.
    table: u32,
    stride: u32,
    // The groups of all states.
    total: u32,
    targets: u32,
    places: array<vec4u, 8>,
    selected: array<vec4u, 4>,
}

@group(0) @binding(0) var<uniform> job: Pass;
@group(0) @binding(1) var<storage> tables: array<Number>;
@group(0) @binding(2) var<storage, read_write> amplitudes: array<Number>;

// The first amplitude of a group: its number with a zero at each target and the controls at theirs.
fn first_of(group: u32) -> u32 {
    var at = group & ((1u << job.groups) - 1u);
    for (var k = 0u; k < job.fixed; k++) {
        let low = at & ((1u << job.places[k / 4u][k % 4u]) - 1u);
        at = ((at - low) << 1u) | low;
    }
    return ((group >> job.groups) << job.qubits) | at | job.ones;
}

fn table_of(group: u32) -> u32 {
    return job.table + (group >> job.groups) * job.stride;
}

fn multiply(a: Number, b: Number) -> Number {
    return Number(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

@compute @workgroup_size(64)
fn diagonal(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= job.total {
        return;
    }
    let at = first_of(id.x);
    var index = 0u;
    for (var k = 0u; k < job.targets; k++) {
        index |= ((at >> job.selected[k / 4u][k % 4u]) & 1u) << k;
    }
    amplitudes[at] = multiply(tables[table_of(id.x) + index], amplitudes[at]);
}

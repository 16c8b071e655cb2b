// Multiplies a state vector by a matrix over one to five qubits.

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

// How far the targets that an index sets lie behind the first amplitude.
fn offset(index: u32) -> u32 {
    var at = 0u;
    for (var k = 0u; k < job.targets; k++) {
        at |= ((index >> k) & 1u) << job.selected[k / 4u][k % 4u];
    }
    return at;
}

@compute @workgroup_size(64)
fn dense1(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= job.total {
        return;
    }
    let first = first_of(id.x);
    let table = table_of(id.x);
    var before: array<Number, 2>;
    for (var column = 0u; column < 2u; column++) {
        before[column] = amplitudes[first + offset(column)];
    }
    for (var row = 0u; row < 2u; row++) {
        var sum = Number();
        for (var column = 0u; column < 2u; column++) {
            sum += multiply(tables[table + 2u * row + column], before[column]);
        }
        amplitudes[first + offset(row)] = sum;
    }
}

@compute @workgroup_size(64)
fn dense2(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= job.total {
        return;
    }
    let first = first_of(id.x);
    let table = table_of(id.x);
    var before: array<Number, 4>;
    for (var column = 0u; column < 4u; column++) {
        before[column] = amplitudes[first + offset(column)];
    }
    for (var row = 0u; row < 4u; row++) {
        var sum = Number();
        for (var column = 0u; column < 4u; column++) {
            sum += multiply(tables[table + 4u * row + column], before[column]);
        }
        amplitudes[first + offset(row)] = sum;
    }
}

@compute @workgroup_size(64)
fn dense3(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= job.total {
        return;
    }
    let first = first_of(id.x);
    let table = table_of(id.x);
    var before: array<Number, 8>;
    for (var column = 0u; column < 8u; column++) {
        before[column] = amplitudes[first + offset(column)];
    }
    for (var row = 0u; row < 8u; row++) {
        var sum = Number();
        for (var column = 0u; column < 8u; column++) {
            sum += multiply(tables[table + 8u * row + column], before[column]);
        }
        amplitudes[first + offset(row)] = sum;
    }
}

@compute @workgroup_size(64)
fn dense4(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= job.total {
        return;
    }
    let first = first_of(id.x);
    let table = table_of(id.x);
    var before: array<Number, 16>;
    for (var column = 0u; column < 16u; column++) {
        before[column] = amplitudes[first + offset(column)];
    }
    for (var row = 0u; row < 16u; row++) {
        var sum = Number();
        for (var column = 0u; column < 16u; column++) {
            sum += multiply(tables[table + 16u * row + column], before[column]);
        }
        amplitudes[first + offset(row)] = sum;
    }
}

@compute @workgroup_size(64)
fn dense5(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= job.total {
        return;
    }
    let first = first_of(id.x);
    let table = table_of(id.x);
    var before: array<Number, 32>;
    for (var column = 0u; column < 32u; column++) {
        before[column] = amplitudes[first + offset(column)];
    }
    for (var row = 0u; row < 32u; row++) {
        var sum = Number();
        for (var column = 0u; column < 32u; column++) {
            sum += multiply(tables[table + 32u * row + column], before[column]);
        }
        amplitudes[first + offset(row)] = sum;
    }
}

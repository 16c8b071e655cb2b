// A barrier that all invocations reach, or none.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<u32>;

var<workgroup> values: array<u32, 64>;

@compute @workgroup_size(64)
fn barriers_under_conditions(@builtin(local_invocation_index) place: u32) {
    values[place] = place + 100u;
    if given[0] > 0u {
        workgroupBarrier();
        answer[place] = values[63u - place];
    } else {
        answer[place] = 0u;
    }
}

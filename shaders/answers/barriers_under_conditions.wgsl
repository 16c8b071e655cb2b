// Barriers that all invocations reach, or none, under two conditions in a row: what a part of the invocations stores between them is read behind both.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<u32>;

var<workgroup> values: array<u32, 64>;

@compute @workgroup_size(64)
fn barriers_under_conditions(@builtin(local_invocation_index) place: u32) {
    if given[0] > 0u {
        values[place] = place + 100u;
        workgroupBarrier();
        if place < 32u {
            values[place] = 200u + place;
            values[place + 32u] += 300u;
        }
    }
    if given[0] < 2u {
        workgroupBarrier();
        answer[place] = values[63u - place];
    } else {
        answer[place] = 0u;
    }
}

// Every workgroup finds its memory zeroed, whatever the one before left in it.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;

var<workgroup> memory: array<u32, 64>;

@compute @workgroup_size(64)
fn workgroup_zeroed(@builtin(local_invocation_index) place: u32, @builtin(workgroup_id) group: vec3u) {
    let found = memory[place];
    workgroupBarrier();
    memory[place] = 0xdead0000u + group.x;
    workgroupBarrier();
    answer[128u * group.x + place] = found;
    answer[128u * group.x + 64u + place] = memory[63u - place];
}

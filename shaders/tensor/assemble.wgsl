// An invocation writes an element of a part to its place in the whole. words[0] and on: elements of each part. Given: for part 0, 1, … element0(i),
// place0(i); in place of PARTS the statements for each.

@compute @workgroup_size(256)
fn assemble(@builtin(global_invocation_id) id: vec3u) {
    var i = id.x;
    // PARTS
}

// An invocation reduces a row, or a part of one: for short rows, and where neighbouring rows are neighbours in memory.
// words[0] = (rows, length of a row, length of a part, number of parts).
// Given: the type Total, load(row, place) -> Total, combine(a, b) -> Total, store(at, row, total).

@compute @workgroup_size(64)
fn reduce_columns(@builtin(global_invocation_id) id: vec3u) {
    let row = id.x;
    if row >= words[0].x { return; }
    let start = id.y * words[0].z;
    let end = min(start + words[0].z, words[0].y);
    var total = initial(row, start);
    for (var begin = start; begin < end; begin += 16u) {
        var sum = initial(row, start);
        for (var place = begin; place < min(begin + 16u, end); place++) {
            sum = combine(sum, load(row, place));
        }
        total = combine(total, sum);
    }
    store(id.y * words[0].x + row, row, total);
}

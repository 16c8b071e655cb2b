// A round of Jacobi's method from one side: a workgroup rotates two rows of a matrix so that they are at right angles. words[0] = (rows, an even
// number, columns, elements of a row with all that follows, round), words[1] = (1 in the last sweep). Given: pair; y, whose
// rows have a row of the matrix, the same row of what the matrix was multiplied with, and last the greatest cosine that the row met in the
// last sweep.

const LANES = 64u;
// Rows are at right angles when the cosine between them is as small.
const ENOUGH = 1.0e-7;
// A row whose square is less is nothing beside the others, which are about 1: its cosines would be those of rounded denormals.
const NOTHING = 1.0e-31;

var<workgroup> lanes: array<vec3f, LANES>;

@compute @workgroup_size(LANES)
fn svd_jacobi(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let rows = words[0].x;
    let length = words[0].z;
    let found = pair(words[0].w, group.x, rows);
    let one = (group.y * rows + found.x) * length;
    let two = (group.y * rows + found.y) * length;
    var sum = vec3f();
    for (var i = lane; i < words[0].y; i += LANES) {
        let a = y[one + i];
        let b = y[two + i];
        sum += vec3f(a * a, b * b, a * b);
    }
    lanes[lane] = sum;
    workgroupBarrier();
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        if lane < stride { lanes[lane] += lanes[lane + stride]; }
        workgroupBarrier();
    }
    let total = workgroupUniformLoad(&lanes[0]);
    let size = select(sqrt(total.x) * sqrt(total.y), 0.0, min(total.x, total.y) <= NOTHING);
    if words[1].x != 0u && lane == 0u {
        var cosine = 0.0;
        if size > 0.0 { cosine = abs(total.z) / size; }
        let is_first = words[0].w == 0u;
        y[one + length - 1u] = max(cosine, select(y[one + length - 1u], 0.0, is_first));
        y[two + length - 1u] = max(cosine, select(y[two + length - 1u], 0.0, is_first));
    }
    if size == 0.0 || abs(total.z) <= ENOUGH * size { return; }
    let difference = total.y - total.x;
    let root = sqrt(difference * difference + 4.0 * total.z * total.z);
    let divisor = difference + select(-root, root, difference >= 0.0);
    let tangent = 2.0 * total.z / divisor;
    let cosine = 1.0 / sqrt(1.0 + tangent * tangent);
    let sine = tangent * cosine;
    for (var i = lane; i < length - 1u; i += LANES) {
        let a = y[one + i];
        let b = y[two + i];
        y[one + i] = cosine * a - sine * b;
        y[two + i] = sine * a + cosine * b;
    }
}

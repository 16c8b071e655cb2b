// A workgroup factors a matrix of at most 32 columns by elimination, with the greatest element of a column as its pivot: words[0] = (rows,
// columns). Given: element(batch, row, column) -> f32; y, which has for each matrix L below the diagonal and U on and above it, then for each
// row the place that it had, as a number, then the sign of that order.

const LANES = 256u;

var<workgroup> greatest: array<f32, LANES>;
var<workgroup> places: array<u32, LANES>;

@compute @workgroup_size(LANES)
fn lu_panel(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let rows = words[0].x;
    let width = words[0].y;
    let base = group.x * (rows * width + rows + 1u);
    let order = base + rows * width;
    for (var i = lane; i < rows * width; i += LANES) { y[base + i] = element(group.x, i / width, i % width); }
    for (var i = lane; i < rows; i += LANES) { y[order + i] = f32(i); }
    var sign = 1.0;
    storageBarrier();
    for (var j = 0u; j < min(rows, width); j++) {
        var top = -1.0;
        var found = j;
        for (var i = j + lane; i < rows; i += LANES) {
            let size = abs(y[base + i * width + j]);
            if size > top {
                top = size;
                found = i;
            }
        }
        greatest[lane] = top;
        places[lane] = found;
        workgroupBarrier();
        for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
            if lane < stride {
                let other = greatest[lane + stride];
                // Of equal ones the first.
                if other > greatest[lane] || (other == greatest[lane] && places[lane + stride] < places[lane]) {
                    greatest[lane] = other;
                    places[lane] = places[lane + stride];
                }
            }
            workgroupBarrier();
        }
        let pivot = workgroupUniformLoad(&places[0]);
        if pivot != j {
            sign = -sign;
            for (var c = lane; c <= width; c += LANES) {
                // Behind the columns, the places.
                let one = select(base + j * width + c, order + j, c == width);
                let two = select(base + pivot * width + c, order + pivot, c == width);
                let kept = y[one];
                y[one] = y[two];
                y[two] = kept;
            }
        }
        storageBarrier();
        let divisor = y[base + j * width + j];
        if divisor != 0.0 {
            for (var i = j + 1u + lane; i < rows; i += LANES) { y[base + i * width + j] /= divisor; }
        }
        storageBarrier();
        let c = lane % 32u;
        if c > j && c < width {
            let above = y[base + j * width + c];
            for (var i = j + 1u + lane / 32u; i < rows; i += LANES / 32u) {
                y[base + i * width + c] -= y[base + i * width + j] * above;
            }
        }
        storageBarrier();
    }
    if lane == 0u { y[order + rows] = sign; }
}

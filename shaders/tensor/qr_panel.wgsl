// A workgroup makes Householder's reflections of a matrix of at most 32 columns and as many rows at least: words[0] = (rows, columns). Given:
// element(batch, row, column) -> f32; y, which has for each matrix R on and above the diagonal and below it the reflections' vectors, whose first
// element is 1, then the columns x columns of T, upper triangular: the product of all reflections is 1 - V T V^T.

const LANES = 256u;
const WIDE = 32u;

var<workgroup> parts: array<f32, LANES>;
var<workgroup> sums: array<f32, WIDE>;
var<workgroup> before: array<f32, WIDE>;
var<workgroup> t: array<f32, 1024>;

@compute @workgroup_size(LANES)
fn qr_panel(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let rows = words[0].x;
    let width = words[0].y;
    let base = group.x * (rows * width + width * width);
    for (var i = lane; i < rows * width; i += LANES) { y[base + i] = element(group.x, i / width, i % width); }
    storageBarrier();
    let c = lane % WIDE;
    let first = lane / WIDE;
    for (var j = 0u; j < width; j++) {
        // The products of what is below the diagonal in column j with every column: its norm is among them.
        var sum = 0.0;
        if c < width {
            for (var i = j + 1u + first; i < rows; i += LANES / WIDE) {
                sum += y[base + i * width + j] * y[base + i * width + c];
            }
        }
        parts[lane] = sum;
        workgroupBarrier();
        if lane < WIDE {
            var total = 0.0;
            for (var part = lane; part < LANES; part += WIDE) { total += parts[part]; }
            sums[lane] = total;
        }
        workgroupBarrier();
        let below = sums[j];
        let head = y[base + j * width + j];
        let norm = sqrt(head * head + below);
        let result = select(norm, -norm, head >= 0.0);
        // Nothing to reflect where all below is 0.
        let is_flat = below == 0.0;
        var scale = 0.0;
        var tau = 0.0;
        if !is_flat {
            scale = 1.0 / (head - result);
            tau = (result - head) / result;
        }
        var product = 0.0;
        if c < width { product = tau * (y[base + j * width + c] + scale * sums[c]); }
        storageBarrier();
        if c > j && c < width {
            for (var i = j + 1u + first; i < rows; i += LANES / WIDE) {
                y[base + i * width + c] -= product * scale * y[base + i * width + j];
            }
            if first == 0u { y[base + j * width + c] -= product; }
        }
        if c < j && first == 0u { before[c] = -product; }
        workgroupBarrier();
        storageBarrier();
        if c == j {
            for (var i = j + 1u + first; i < rows; i += LANES / WIDE) { y[base + i * width + j] *= scale; }
            if first == 0u {
                t[j * WIDE + j] = tau;
                if !is_flat { y[base + j * width + j] = result; }
            }
        }
        if lane < j {
            var total = 0.0;
            for (var p = lane; p < j; p++) { total += t[lane * WIDE + p] * before[p]; }
            t[lane * WIDE + j] = total;
        }
        workgroupBarrier();
        storageBarrier();
    }
    for (var i = lane; i < width * width; i += LANES) { y[base + rows * width + i] = t[i / width * WIDE + i % width]; }
}

// An invocation computes an element of a row that is scaled along itself: words[0] = (length of a row, length of a row of the result, bits of
// the step from one element of the result to the next, bits of the place of the first one in elements of the row).
// Given: KERNEL, 0 for the nearest element, 1 for straight lines, 2 for cubic curves; WIDE, whether kernels are as wide as the step; weight(distance) -> f32,
// element(row, place) -> f32, store(row, place, value).

@compute @workgroup_size(64)
fn interpolate(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= words[0].y { return; }
    let length = i32(words[0].x);
    let step = bitcast<f32>(words[0].z);
    let place = f32(id.x) * step + bitcast<f32>(words[0].w);
    if KERNEL == 0u {
        store(id.y, id.x, element(id.y, u32(clamp(i32(floor(place)), 0, length - 1))));
        return;
    }
    var sum = 0.0;
    var weights = 0.0;
    if WIDE {
        // What lies beyond the ends does not count.
        let scale = max(step, 1.0);
        let reach = f32(KERNEL) * scale;
        let first = max(i32(floor(place - reach + 1.0)), 0);
        let last = min(i32(floor(place + reach)), length - 1);
        for (var at = first; at <= last; at++) {
            let w = weight((f32(at) - place) / scale);
            sum += w * element(id.y, u32(at));
            weights += w;
        }
        store(id.y, id.x, sum / weights);
        return;
    }
    // The ends go on as they are; lines begin there.
    let inner = select(place, clamp(place, 0.0, f32(length - 1)), KERNEL == 1u);
    let base = floor(inner);
    for (var tap = 1 - i32(KERNEL); tap <= i32(KERNEL); tap++) {
        let at = u32(clamp(i32(base) + tap, 0, length - 1));
        sum += weight(base + f32(tap) - inner) * element(id.y, at);
    }
    store(id.y, id.x, sum);
}

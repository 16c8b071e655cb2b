// The greatest or the mean value of each window of images (NCHW), a pixel by each invocation.
// words[0] = (height and width of the output, channels, images), words[1] = (height and width of the input and of the window),
// words[2] = (strides, paddings), words[3] = (dilations, 1 where padding counts towards the mean).
// Given: load_x(image, channel, y, x) -> f32, float_max, store(image, channel, y, x, value).

const MEAN = false;

@compute @workgroup_size(64)
fn pool2d(@builtin(global_invocation_id) id: vec3u) {
    let width = words[0].y;
    if id.x >= words[0].x * width { return; }
    let y = id.x / width;
    let x = id.x % width;
    var greatest = 0.0;
    var sum = 0.0;
    var count = 0u;
    for (var i = 0u; i < words[1].z; i++) {
        let from_y = y * words[2].x + i * words[3].x;
        if from_y < words[2].z || from_y - words[2].z >= words[1].x { continue; }
        for (var j = 0u; j < words[1].w; j++) {
            let from_x = x * words[2].y + j * words[3].y;
            if from_x < words[2].w || from_x - words[2].w >= words[1].y { continue; }
            let value = load_x(id.z, id.y, from_y - words[2].z, from_x - words[2].w);
            greatest = select(float_max(greatest, value), value, count == 0u);
            sum += value;
            count++;
        }
    }
    if MEAN {
        let all = select(count, words[1].z * words[1].w, words[3].z != 0u);
        store(id.z, id.y, y, x, sum / f32(all));
    } else {
        store(id.z, id.y, y, x, greatest);
    }
}

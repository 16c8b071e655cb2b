// A convolution of images (NCHW): four channels of a pixel by each invocation.
// words[0] = (height and width of the output, channels of the output, channels of the input), words[1] = (height and width of the input,
// height and width of the weights), words[2] = (strides, paddings), words[3] = (dilations, groups, images).
// Given: load_x(image, channel, y, x) -> f32, load_w(channel, input channel of the group, y, x) -> f32, store(image, channel, y, x, value).

fn channel_weights(first: u32, last: u32, c: u32, i: u32, j: u32) -> vec4f {
    // The last channel stands in for those that a group does not have; what comes of them is not stored.
    return vec4f(
        load_w(first, c, i, j),
        load_w(min(first + 1u, last), c, i, j),
        load_w(min(first + 2u, last), c, i, j),
        load_w(min(first + 3u, last), c, i, j),
    );
}

@compute @workgroup_size(64)
fn conv2d(@builtin(global_invocation_id) id: vec3u) {
    let height = words[0].x;
    let width = words[0].y;
    let groups = words[3].z;
    let inputs = words[0].w / groups;
    let outputs = words[0].z / groups;
    let blocks = (outputs + 3u) / 4u;
    if id.x >= height * width { return; }
    let y = id.x / width;
    let x = id.x % width;
    let group = id.y / blocks;
    let image = id.z;
    let first = group * outputs + id.y % blocks * 4u;
    let last = group * outputs + outputs - 1u;
    var sum = vec4f();
    for (var i = 0u; i < words[1].z; i++) {
        let from_y = y * words[2].x + i * words[3].x;
        if from_y < words[2].z || from_y - words[2].z >= words[1].x { continue; }
        for (var j = 0u; j < words[1].w; j++) {
            let from_x = x * words[2].y + j * words[3].y;
            if from_x < words[2].w || from_x - words[2].w >= words[1].y { continue; }
            for (var c = 0u; c < inputs; c++) {
                let value = load_x(image, group * inputs + c, from_y - words[2].z, from_x - words[2].w);
                sum += value * channel_weights(first, last, c, i, j);
            }
        }
    }
    store(image, first, y, x, sum.x);
    if first + 1u <= last { store(image, first + 1u, y, x, sum.y); }
    if first + 2u <= last { store(image, first + 2u, y, x, sum.z); }
    if first + 3u <= last { store(image, first + 3u, y, x, sum.w); }
}

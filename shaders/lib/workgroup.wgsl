// Reductions and scans over a workgroup of up to 1,024 invocations. Every invocation calls them, in uniform control flow: `lane` is its
// local_invocation_index, `size` the number of invocations, the same in all. Sums are trees: the error grows with the logarithm of their terms, and the
// bits are the same on every device.

var<workgroup> floats: array<f32, 1024>;

// The tree over `floats`: the lower half of what is left takes the upper.

fn fold_f32(lane: u32, size: u32, kind: u32) -> f32 {
    var left = size;
    while left > 1u {
        let half = (left + 1u) / 2u;
        workgroupBarrier();
        if lane + half < left {
            let a = floats[lane];
            let b = floats[lane + half];
            if kind == 0u {
                floats[lane] = a + b;
            } else if kind == 1u {
                floats[lane] = min(a, b);
            } else {
                floats[lane] = max(a, b);
            }
        }
        left = half;
    }
    let result = workgroupUniformLoad(&floats[0]);
    workgroupBarrier();
    return result;
}

// The sum of `value` over the workgroup, in every invocation.
fn sum(lane: u32, size: u32, value: f32) -> f32 {
    floats[lane] = value;
    return fold_f32(lane, size, 0u);
}

// The least `value` of the workgroup, in every invocation.
fn least(lane: u32, size: u32, value: f32) -> f32 {
    floats[lane] = value;
    return fold_f32(lane, size, 1u);
}

// The greatest `value` of the workgroup, in every invocation.
fn greatest(lane: u32, size: u32, value: f32) -> f32 {
    floats[lane] = value;
    return fold_f32(lane, size, 2u);
}

// The sum of `value` over this invocation and those before it.
fn inclusive_sum(lane: u32, size: u32, value: f32) -> f32 {
    var running = value;
    floats[lane] = running;
    for (var distance = 1u; distance < size; distance *= 2u) {
        workgroupBarrier();
        var earlier = f32();
        if lane >= distance {
            earlier = floats[lane - distance];
        }
        workgroupBarrier();
        running = earlier + running;
        floats[lane] = running;
    }
    workgroupBarrier();
    return running;
}

// The sum of `value` over the invocations before this one; 0 in the first.
fn exclusive_sum(lane: u32, size: u32, value: f32) -> f32 {
    inclusive_sum(lane, size, value);
    var before = f32();
    if lane > 0u {
        before = floats[lane - 1u];
    }
    workgroupBarrier();
    return before;
}

var<workgroup> words: array<u32, 1024>;

// The tree over `words`: the lower half of what is left takes the upper.

fn fold_u32(lane: u32, size: u32, kind: u32) -> u32 {
    var left = size;
    while left > 1u {
        let half = (left + 1u) / 2u;
        workgroupBarrier();
        if lane + half < left {
            let a = words[lane];
            let b = words[lane + half];
            if kind == 0u {
                words[lane] = a + b;
            } else if kind == 1u {
                words[lane] = min(a, b);
            } else {
                words[lane] = max(a, b);
            }
        }
        left = half;
    }
    let result = workgroupUniformLoad(&words[0]);
    workgroupBarrier();
    return result;
}

// The sum of `value` over the workgroup, in every invocation.
fn sum_u32(lane: u32, size: u32, value: u32) -> u32 {
    words[lane] = value;
    return fold_u32(lane, size, 0u);
}

// The least `value` of the workgroup, in every invocation.
fn least_u32(lane: u32, size: u32, value: u32) -> u32 {
    words[lane] = value;
    return fold_u32(lane, size, 1u);
}

// The greatest `value` of the workgroup, in every invocation.
fn greatest_u32(lane: u32, size: u32, value: u32) -> u32 {
    words[lane] = value;
    return fold_u32(lane, size, 2u);
}

// The sum of `value` over this invocation and those before it.
fn inclusive_sum_u32(lane: u32, size: u32, value: u32) -> u32 {
    var running = value;
    words[lane] = running;
    for (var distance = 1u; distance < size; distance *= 2u) {
        workgroupBarrier();
        var earlier = u32();
        if lane >= distance {
            earlier = words[lane - distance];
        }
        workgroupBarrier();
        running = earlier + running;
        words[lane] = running;
    }
    workgroupBarrier();
    return running;
}

// The sum of `value` over the invocations before this one; 0 in the first.
fn exclusive_sum_u32(lane: u32, size: u32, value: u32) -> u32 {
    inclusive_sum_u32(lane, size, value);
    var before = u32();
    if lane > 0u {
        before = words[lane - 1u];
    }
    workgroupBarrier();
    return before;
}

var<workgroup> integers: array<i32, 1024>;

// The tree over `integers`: the lower half of what is left takes the upper.

fn fold_i32(lane: u32, size: u32, kind: u32) -> i32 {
    var left = size;
    while left > 1u {
        let half = (left + 1u) / 2u;
        workgroupBarrier();
        if lane + half < left {
            let a = integers[lane];
            let b = integers[lane + half];
            if kind == 0u {
                integers[lane] = a + b;
            } else if kind == 1u {
                integers[lane] = min(a, b);
            } else {
                integers[lane] = max(a, b);
            }
        }
        left = half;
    }
    let result = workgroupUniformLoad(&integers[0]);
    workgroupBarrier();
    return result;
}

// The sum of `value` over the workgroup, in every invocation.
fn sum_i32(lane: u32, size: u32, value: i32) -> i32 {
    integers[lane] = value;
    return fold_i32(lane, size, 0u);
}

// The least `value` of the workgroup, in every invocation.
fn least_i32(lane: u32, size: u32, value: i32) -> i32 {
    integers[lane] = value;
    return fold_i32(lane, size, 1u);
}

// The greatest `value` of the workgroup, in every invocation.
fn greatest_i32(lane: u32, size: u32, value: i32) -> i32 {
    integers[lane] = value;
    return fold_i32(lane, size, 2u);
}

// The sum of `value` over this invocation and those before it.
fn inclusive_sum_i32(lane: u32, size: u32, value: i32) -> i32 {
    var running = value;
    integers[lane] = running;
    for (var distance = 1u; distance < size; distance *= 2u) {
        workgroupBarrier();
        var earlier = i32();
        if lane >= distance {
            earlier = integers[lane - distance];
        }
        workgroupBarrier();
        running = earlier + running;
        integers[lane] = running;
    }
    workgroupBarrier();
    return running;
}

// The sum of `value` over the invocations before this one; 0 in the first.
fn exclusive_sum_i32(lane: u32, size: u32, value: i32) -> i32 {
    inclusive_sum_i32(lane, size, value);
    var before = i32();
    if lane > 0u {
        before = integers[lane - 1u];
    }
    workgroupBarrier();
    return before;
}

//! Kernels as tensor libraries have them: rows of vec4, several inputs, a struct of parameters, f16 packed into words, reductions by a
//! tree over workgroup memory, loops along a row, overrides. Oracles in float64.

use half::f16;

use crate::case::Case;
use crate::check::Near;
use crate::inputs::{floats, words};

pub fn cases() -> Vec<Case> {
    vec![
        rms_norm("rms_norm", &[]),
        rms_norm("rms_norm_override_set", &[("EPSILON", 0.5), ("PLUS_ONE", 1.0)]),
        softmax_rows(),
        packed_matrix_times_vector(),
        layer("layer_plain", 0),
        layer("layer_relu", 1),
        layer("layer_squared", 2),
        gathered_rows(),
        rotated_pairs(),
        attention(),
    ]
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|x| f64::from(*x)).collect()
}

/// Within a share of the largest magnitude: sums cancel.
fn near(expected: Vec<f64>, share: f64) -> Near {
    let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    Near::absolute(expected, share * largest)
}

/// y = x / sqrt(mean(x²) + EPSILON) · weight, a workgroup for each row.
fn rms_norm(name: &str, set: &[(&'static str, f64)]) -> Case {
    const BODY: &str = "
struct Params { rows: u32, quads: u32, scale: f32 }
override EPSILON: f32 = 1e-5;
override PLUS_ONE: bool = false;
var<workgroup> partial: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
    let row = group.x;
    if row >= params.rows { return; }
    var sum = 0.0;
    for (var k = t; k < params.quads; k += 64u) {
        let v = x[row * params.quads + k];
        sum += dot(v, v);
    }
    partial[t] = sum;
    workgroupBarrier();
    for (var half = 32u; half > 0u; half >>= 1u) {
        if t < half { partial[t] += partial[t + half]; }
        workgroupBarrier();
    }
    let factor = params.scale * inverseSqrt(partial[0] / f32(params.quads * 4u) + EPSILON);
    for (var k = t; k < params.quads; k += 64u) {
        var w = weight[k];
        if PLUS_ONE { w += vec4f(1.0); }
        y[row * params.quads + k] = x[row * params.quads + k] * factor * w;
    }
}";
    let (rows, quads, scale) = (5_usize, 75_usize, 0.75_f32);
    let columns = quads * 4;
    let (x, weight) = (floats(1, rows * columns, -2.0, 2.0), floats(2, columns, -1.0, 1.0));
    let value = |name: &str, default: f64| set.iter().find(|(known, _)| *known == name).map_or(default, |(_, v)| *v);
    let (epsilon, plus) = (value("EPSILON", 1e-5), value("PLUS_ONE", 0.0));
    let mut expected = Vec::new();
    for row in wide(&x).chunks(columns) {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / columns as f64;
        let factor = f64::from(scale) / (mean + epsilon).sqrt();
        expected.extend(row.iter().zip(&weight).map(|(x, w)| x * factor * (f64::from(*w) + plus)));
    }
    let case = Case::new(format!("tensor.{name}"), BODY)
        .read("x: array<vec4<f32>>", x)
        .read("weight: array<vec4<f32>>", weight)
        .write_near("y: array<vec4<f32>>", near(expected, 1e-5))
        .uniform("params: Params", vec![rows as u32, quads as u32, scale.to_bits()])
        .workgroups(rows as u32 + 1, 1, 1);
    set.iter().fold(case, |case, (name, value)| case.set(name, *value))
}

/// Two trees per row: the largest, then the sum of exponentials. Rows that are no multiple of the workgroup.
fn softmax_rows() -> Case {
    const BODY: &str = "
var<workgroup> tree: array<f32, 128>;
fn largest(t: u32) -> f32 {
    workgroupBarrier();
    for (var half = 64u; half > 0u; half >>= 1u) {
        if t < half { tree[t] = max(tree[t], tree[t + half]); }
        workgroupBarrier();
    }
    let all = tree[0];
    workgroupBarrier();
    return all;
}
fn total(t: u32) -> f32 {
    workgroupBarrier();
    for (var half = 64u; half > 0u; half >>= 1u) {
        if t < half { tree[t] += tree[t + half]; }
        workgroupBarrier();
    }
    return tree[0];
}
@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) local: vec3u) {
    let t = local.x;
    let start = group.x * columns;
    var most = -3.0e38;
    for (var k = t; k < columns; k += 128u) { most = max(most, x[start + k]); }
    tree[t] = most;
    most = largest(t);
    var sum = 0.0;
    for (var k = t; k < columns; k += 128u) { sum += exp(x[start + k] - most); }
    tree[t] = sum;
    sum = total(t);
    for (var k = t; k < columns; k += 128u) { y[start + k] = exp(x[start + k] - most) / sum; }
}";
    let (rows, columns) = (4_usize, 333_usize);
    let x = floats(3, rows * columns, -6.0, 6.0);
    let mut expected = Vec::new();
    for row in wide(&x).chunks(columns) {
        let most = row.iter().copied().fold(f64::MIN, f64::max);
        let sum: f64 = row.iter().map(|x| (x - most).exp()).sum();
        expected.extend(row.iter().map(|x| (x - most).exp() / sum));
    }
    Case::new("tensor.softmax_rows", BODY)
        .read("x", x)
        .write_near("y", near(expected, 2e-5))
        .uniform("columns: u32", vec![columns as u32])
        .workgroups(rows as u32, 1, 1)
}

/// A matrix of f16, two to a word, times a vector: one invocation for each row.
fn packed_matrix_times_vector() -> Case {
    const BODY: &str = "
struct Size { rows: u32, pairs: u32 }
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= size.rows { return; }
    var sum = bias[id.x];
    for (var k = 0u; k < size.pairs; k++) {
        sum += dot(unpack2x16float(matrix[id.x * size.pairs + k]), x[k]);
    }
    out[id.x] = pack2x16float(vec2f(sum, -sum));
    exact[id.x] = sum;
}";
    let (rows, pairs) = (70_usize, 37_usize);
    let half = |x: &f32| f16::from_f32(*x);
    let matrix: Vec<f16> = floats(4, rows * pairs * 2, -1.0, 1.0).iter().map(half).collect();
    let packed: Vec<u32> =
        matrix.chunks(2).map(|pair| u32::from(pair[0].to_bits()) | u32::from(pair[1].to_bits()) << 16).collect();
    let (x, bias) = (floats(5, pairs * 2, -1.0, 1.0), floats(6, rows, -1.0, 1.0));
    let expected: Vec<f64> = (0..rows)
        .map(|row| {
            let dot = (0..2 * pairs).map(|k| matrix[row * 2 * pairs + k].to_f64() * f64::from(x[k]));
            f64::from(bias[row]) + dot.sum::<f64>()
        })
        .collect();
    let sums = expected.clone();
    Case::new("tensor.packed_matrix_times_vector", BODY)
        .read("matrix: array<u32>", packed)
        .read("x: array<vec2f>", x)
        .read("bias", bias)
        .check("out", vec![0_u32; rows], move |all| {
            for (word, sum) in all[3].u32s().iter().zip(&sums) {
                for (bits, sum) in [(*word as u16, *sum), ((word >> 16) as u16, -sum)] {
                    let found = f16::from_bits(bits).to_f64();
                    if (found - sum).abs() > 1e-3 * sum.abs() + 1e-4 {
                        return Err(format!("{found} for {sum}"));
                    }
                }
            }
            Ok(())
        })
        .write_near("exact", near(expected, 1e-5))
        .uniform("size: Size", vec![rows as u32, pairs as u32])
        .workgroups(rows.div_ceil(32) as u32, 1, 1)
}

/// act(A · B + bias) in tiles of 8 x 8; the activation is an override. Whole numbers: exact.
fn layer(name: &str, activation: u32) -> Case {
    const BODY: &str = "
struct Shape { m: u32, n: u32, k: u32 }
override ACTIVATION: u32 = 0u;
override GAIN: f32 = 1.0;
var<workgroup> left: array<array<f32, 8>, 8>;
var<workgroup> right: array<array<f32, 8>, 8>;
fn activate(v: f32) -> f32 {
    switch ACTIVATION {
        case 1u: { return max(v, 0.0); }
        case 2u: { return v * v; }
        default: { return v; }
    }
}
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) l: vec3u) {
    var sum = 0.0;
    for (var tile = 0u; tile < shape.k; tile += 8u) {
        let inner = id.y < shape.m && tile + l.x < shape.k;
        left[l.y][l.x] = select(0.0, a[min(id.y * shape.k + tile + l.x, arrayLength(&a) - 1u)], inner);
        let below = id.x < shape.n && tile + l.y < shape.k;
        right[l.y][l.x] = select(0.0, b[min((tile + l.y) * shape.n + id.x, arrayLength(&b) - 1u)], below);
        workgroupBarrier();
        for (var k = 0u; k < 8u; k++) { sum += left[l.y][k] * right[k][l.x]; }
        workgroupBarrier();
    }
    if id.y < shape.m && id.x < shape.n {
        c[id.y * shape.n + id.x] = activate(sum * GAIN + bias[id.x]);
    }
}";
    let (m, n, k) = (13_usize, 21_usize, 30_usize);
    let whole = |seed: u64, count: usize| words(seed, count).iter().map(|w| (w % 7) as f32 - 3.0).collect::<Vec<f32>>();
    let (a, b, bias) = (whole(7, m * k), whole(8, k * n), whole(9, n));
    let gain = if activation == 2 { -2.0_f32 } else { 1.0 };
    let expected: Vec<f32> = (0..m * n)
        .map(|place| {
            let (row, column) = (place / n, place % n);
            let sum: f32 = (0..k).map(|i| a[row * k + i] * b[i * n + column]).sum();
            let v = sum * gain + bias[column];
            match activation {
                1 => v.max(0.0),
                2 => v * v,
                _ => v,
            }
        })
        .collect();
    let case = Case::new(format!("tensor.{name}"), BODY)
        .read("a", a)
        .read("b", b)
        .read("bias", bias)
        .write("c", expected)
        .uniform("shape: Shape", vec![m as u32, n as u32, k as u32])
        .workgroups(n.div_ceil(8) as u32, m.div_ceil(8) as u32, 1);
    let case = if activation == 0 { case } else { case.set("ACTIVATION", f64::from(activation)) };
    if activation == 2 { case.set("GAIN", f64::from(gain)) } else { case }
}

/// Rows of a table by number; numbers out of range give zeros.
fn gathered_rows() -> Case {
    const BODY: &str = "
override QUADS: u32 = 6u;
@compute @workgroup_size(4, 16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= QUADS || id.y >= arrayLength(&numbers) { return; }
    let row = numbers[id.y];
    var v = vec4f();
    if row < arrayLength(&table) / QUADS { v = table[row * QUADS + id.x]; }
    out[id.y * QUADS + id.x] = v + position[id.y % 3u * QUADS + id.x];
}";
    let (rows, quads, picks) = (11_usize, 10_usize, 37_usize);
    let table: Vec<f32> = (0..rows * quads * 4).map(|i| i as f32).collect();
    let position: Vec<f32> = (0..3 * quads * 4).map(|i| (i as f32) * 0.25).collect();
    let numbers: Vec<u32> = words(10, picks).iter().map(|w| w % 13).collect();
    let mut expected = Vec::new();
    for (place, number) in numbers.iter().enumerate() {
        for k in 0..quads * 4 {
            let found = table.get(*number as usize * quads * 4 + k).filter(|_| (*number as usize) < rows);
            expected.push(found.copied().unwrap_or(0.0) + position[place % 3 * quads * 4 + k]);
        }
    }
    Case::new("tensor.gathered_rows", BODY)
        .read("table: array<vec4f>", table)
        .read("numbers", numbers)
        .read("position: array<vec4f>", position)
        .write("out: array<vec4f>", expected)
        .set("QUADS", quads as f64)
        .workgroups(quads.div_ceil(4) as u32, picks.div_ceil(16) as u32, 1)
}

/// Pairs turned by an angle that depends on row and column, in place.
fn rotated_pairs() -> Case {
    const BODY: &str = "
struct Turn { rows: u32, pairs: u32, offset: u32, base: f32 }
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let row = id.x / turn.pairs;
    let pair = id.x % turn.pairs;
    if row >= turn.rows { return; }
    let angle = f32(row + turn.offset) * pow(turn.base, -f32(pair) / f32(turn.pairs));
    let v = x[id.x];
    x[id.x] = vec2f(v.x * cos(angle) - v.y * sin(angle), v.x * sin(angle) + v.y * cos(angle));
}";
    let (rows, pairs, offset, base) = (9_usize, 16_usize, 3_usize, 100.0_f32);
    let x = floats(11, rows * pairs * 2, -1.0, 1.0);
    let expected: Vec<f64> = wide(&x)
        .chunks(2)
        .enumerate()
        .flat_map(|(place, pair)| {
            let angle =
                (place / pairs + offset) as f64 * f64::from(base).powf(-((place % pairs) as f64) / pairs as f64);
            let (sin, cos) = angle.sin_cos();
            [pair[0] * cos - pair[1] * sin, pair[0] * sin + pair[1] * cos]
        })
        .collect();
    let count = expected.len();
    Case::new("tensor.rotated_pairs", BODY)
        .check("x: array<vec2f>", x, move |all| {
            let found = all[0].f32s();
            let worst = found.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
            // WGSL: sine and cosine within 2^-11.
            if found.len() == count && worst < 2e-3 { Ok(()) } else { Err(format!("off by {worst}")) }
        })
        .uniform("turn: Turn", vec![rows as u32, pairs as u32, offset as u32, base.to_bits()])
        .invocations(rows * pairs)
}

/// One query against all keys, softmax on the way, values summed: a workgroup for each query.
fn attention() -> Case {
    const BODY: &str = "
struct Sizes { keys: u32, quads: u32, scale: f32 }
var<workgroup> score: array<f32, 96>;
var<workgroup> tree: array<f32, 32>;
@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
    let q = group.x * sizes.quads;
    var most = -3.0e38;
    for (var k = t; k < sizes.keys; k += 32u) {
        var sum = 0.0;
        for (var j = 0u; j < sizes.quads; j++) { sum += dot(query[q + j], key[k * sizes.quads + j]); }
        score[k] = sum * sizes.scale;
        most = max(most, score[k]);
    }
    tree[t] = most;
    workgroupBarrier();
    for (var half = 16u; half > 0u; half >>= 1u) {
        if t < half { tree[t] = max(tree[t], tree[t + half]); }
        workgroupBarrier();
    }
    most = workgroupUniformLoad(&tree[0]);
    var sum = 0.0;
    for (var k = t; k < sizes.keys; k += 32u) {
        score[k] = exp(score[k] - most);
        sum += score[k];
    }
    tree[t] = sum;
    workgroupBarrier();
    for (var half = 16u; half > 0u; half >>= 1u) {
        if t < half { tree[t] += tree[t + half]; }
        workgroupBarrier();
    }
    let total = workgroupUniformLoad(&tree[0]);
    for (var j = t; j < sizes.quads; j += 32u) {
        var v = vec4f();
        for (var k = 0u; k < sizes.keys; k++) { v += score[k] * value[k * sizes.quads + j]; }
        out[q + j] = v / total;
    }
}";
    let (queries, keys, quads, scale) = (3_usize, 77_usize, 8_usize, 0.25_f32);
    let width = quads * 4;
    let (query, key) = (floats(12, queries * width, -1.0, 1.0), floats(13, keys * width, -1.0, 1.0));
    let value = floats(14, keys * width, -1.0, 1.0);
    let (q, k, v) = (wide(&query), wide(&key), wide(&value));
    let mut expected = Vec::new();
    for q in q.chunks(width) {
        let dot = |k: &[f64]| q.iter().zip(k).map(|(a, b)| a * b).sum::<f64>() * f64::from(scale);
        let weights: Vec<f64> = k.chunks(width).map(|k| dot(k).exp()).collect();
        let total: f64 = weights.iter().sum();
        expected.extend(
            (0..width).map(|j| weights.iter().zip(v.chunks(width)).map(|(w, v)| w * v[j]).sum::<f64>() / total),
        );
    }
    Case::new("tensor.attention", BODY)
        .read("query: array<vec4f>", query)
        .read("key: array<vec4f>", key)
        .read("value: array<vec4f>", value)
        .write_near("out: array<vec4f>", near(expected, 2e-5))
        .uniform("sizes: Sizes", vec![keys as u32, quads as u32, scale.to_bits()])
        .workgroups(queries as u32, 1, 1)
}

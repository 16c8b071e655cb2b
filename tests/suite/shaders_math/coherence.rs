//! The two reductions of `coherence`, finished on the host in f64.

use super::gpu::{self, Binding, Gpu};
use super::linked;

const BLOCK: usize = 256 * 32;

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Span {
    count: u32,
    blocks: u32,
    high: f32,
    factor: f32,
    shift: f32,
}

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Sheet {
    width: u32,
    height: u32,
    blocks: u32,
    high: f32,
    factor: f32,
    shift: f32,
}

/// As the kernels' comments tell the host to do. `None` if a value is NaN or infinite.
fn coherence(gpu: &Gpu, values: &[f32], width: usize, height: usize) -> Option<f64> {
    let count = width * height;
    assert_eq!(values.len(), count);
    let blocks = count.div_ceil(BLOCK).div_ceil(1024);
    let groups = count.div_ceil(BLOCK * blocks);
    let n = count as f64;
    let input = Binding::Input(bytemuck::cast_slice(values));
    let linear = |kernel: &str, span: Span, stride: u64| {
        let bindings = [
            Binding::Uniform(bytemuck::bytes_of(&span)),
            Binding::Input(bytemuck::cast_slice(values)),
            Binding::Output(stride * groups as u64),
        ];
        let out = gpu.run(&linked(&format!("field/{kernel}"), &[]), kernel, &bindings, [groups as u32, 1, 1]);
        bytemuck::pod_collect_to_vec::<u8, f32>(&out[0])
    };
    let span = Span { count: count as u32, blocks: blocks as u32, high: 0.0, factor: 1.0, shift: 0.0 };

    let mut partials = linear("coherence_moments", span, 16);
    if partials.chunks(4).any(|p| p[2] < 0.0) {
        return None;
    }
    let largest = partials.chunks(4).map(|p| p[2]).fold(0.0, f32::max);
    let mut factor = 1.0_f32;
    if largest > 0.0 && !(1e-9..=1e12).contains(&largest) {
        factor = (-largest.log2().ceil()).exp2();
        partials = linear("coherence_moments", Span { factor, ..span }, 16);
    }
    let first = f64::from(partials[3]);
    let of = |group: usize| (BLOCK * blocks).min(count - group * BLOCK * blocks) as f64;
    let groups = || partials.chunks(4).enumerate().map(|(g, p)| (of(g), f64::from(p[0]), f64::from(p[1])));
    let middle = groups().map(|(count, mean, _)| count * mean).sum::<f64>() / n;
    let squares: f64 = groups().map(|(count, mean, squares)| squares + count * (mean - middle).powi(2)).sum();
    let deviation = (squares / n).sqrt() / f64::from(factor);
    let mean = first + middle / f64::from(factor);
    if deviation == 0.0 {
        return Some(1.0);
    }
    if width < 2 || height < 2 {
        return Some(0.0);
    }

    let factor = (1.0 / deviation) as f32;
    let high = mean as f32;
    let shift = ((mean - f64::from(high)) * f64::from(factor)) as f32;
    let blocks = (height - 1).div_ceil(32 * 64);
    let sheet = Sheet { width: width as u32, height: height as u32, blocks: blocks as u32, high, factor, shift };
    let groups = [(width - 1).div_ceil(256) as u32, (height - 1).div_ceil(32 * blocks) as u32, 1];
    let output = Binding::Output(4 * u64::from(groups[0]) * u64::from(groups[1]));
    let kernel = "coherence_neighbour_sum";
    let bindings = [Binding::Uniform(bytemuck::bytes_of(&sheet)), input, output];
    let out = gpu.run(&linked(&format!("field/{kernel}"), &[]), kernel, &bindings, groups);
    let sum: f64 = bytemuck::pod_collect_to_vec::<u8, f32>(&out[0]).iter().map(|&p| f64::from(p)).sum();
    Some((sum / n / (f64::from(factor) * deviation).powi(2)).min(1.0))
}

/// The definition, in f64.
fn oracle(values: &[f32], width: usize, height: usize) -> f64 {
    const PHI: f64 = 1.618_033_988_749_895;
    let n = values.len() as f64;
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    let deviation = (values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n).sqrt();
    if values.iter().all(|&v| v == values[0]) {
        return 1.0;
    }
    let z = |row: usize, column: usize| (f64::from(values[row * width + column]) - mean) / deviation;
    let mut sum = 0.0;
    for row in 1..height {
        for column in 1..width {
            let here = z(row, column);
            sum += (PHI * here * z(row - 1, column) + PHI * here * z(row, column - 1)).abs() / PHI;
        }
    }
    (sum / n).min(1.0)
}

struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / 8_388_608.0 - 1.0
    }
}

fn check(name: &str, values: &[f32], width: usize, height: usize) {
    let want = oracle(values, width, height);
    for gpu in gpu::all() {
        let got = coherence(gpu, values, width, height).expect("all values are finite");
        println!("coherence of {name}, {width} x {height}, on {}: {got:.7}, {:.1e} off", gpu.name, (got - want).abs());
        assert!((got - want).abs() < 2e-5, "coherence of {name} {width} x {height} on {}: {got} {want}", gpu.name);
    }
}

#[test]
fn of_noise() {
    let mut noise = Noise(1);
    for (width, height) in [(2, 2), (3, 1000), (1000, 3), (257, 33), (256, 32), (1023, 777), (1, 9), (9, 1)] {
        let values: Vec<f32> = (0..width * height).map(|_| noise.next()).collect();
        check("noise", &values, width, height);
        let cubes: Vec<f32> = values.iter().map(|v| v * v * v).collect();
        check("cubed noise", &cubes, width, height);
    }
}

#[test]
fn far_from_zero_and_of_all_sizes() {
    let mut noise = Noise(2);
    let (width, height) = (640, 480);
    let values: Vec<f32> = (0..width * height).map(|_| noise.next() * noise.next()).collect();
    for offset in [10.0, 1e4, -3e5] {
        let far: Vec<f32> = values.iter().map(|v| v + offset).collect();
        check("offset noise", &far, width, height);
    }
    for scale in [1e-25, 1e-12, 1e12, 1e37] {
        let scaled: Vec<f32> = values.iter().map(|v| v * scale).collect();
        check("scaled noise", &scaled, width, height);
    }
    let mut outlier = values;
    outlier[0] = 1e6;
    check("an outlier", &outlier, width, height);
}

#[test]
fn of_a_constant_is_one() {
    for value in [0.0, 0.1, -7.3e8] {
        check("a constant", &vec![value; 300 * 200], 300, 200);
    }
}

#[test]
fn of_a_large_field() {
    let side = 4096;
    let at = |i: usize| -1.0 + 2.0 * i as f64 / (side - 1) as f64;
    let values: Vec<f32> = (0..side * side)
        .map(|k| {
            let (x, y) = (at(k % side), at(k / side));
            let r = x.hypot(y) * 1.618;
            ((5.28 * r + 1.618 * y.atan2(x)).sin() * (-0.618 * r).exp()) as f32
        })
        .collect();
    check("a field", &values, side, side);
    let mut noise = Noise(3);
    let values: Vec<f32> = (0..side * side).map(|_| noise.next().powi(5)).collect();
    check("noise", &values, side, side);
}

#[test]
fn finds_what_is_not_finite() {
    for gpu in gpu::all() {
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for place in [0, 4_321, 299 * 200 - 1] {
                let mut values = vec![0.5; 299 * 200];
                values[place] = bad;
                assert_eq!(coherence(gpu, &values, 299, 200), None, "{bad} at {place} on {}", gpu.name);
            }
        }
    }
}

//! The kernels that matter most, end to end.

use super::harness::Run;

#[test]
fn saxpy() {
    let wgsl = "
        struct Params { a: f32 }
        @group(0) @binding(0) var<uniform> params: Params;
        @group(0) @binding(1) var<storage, read> x: array<f32>;
        @group(0) @binding(2) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64)
        fn saxpy(@builtin(global_invocation_id) id: vec3u) {
            if id.x >= arrayLength(&y) { return; }
            y[id.x] = params.a * x[id.x] + y[id.x];
        }";
    for n in [1_usize, 63, 64, 1000, 5000] {
        let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let y: Vec<f32> = (0..n).map(|i| 0.5 * i as f32 + 1.0).collect();
        let run = Run::new(wgsl).buffer(&[2.0_f32]).buffer(&x).buffer(&y).dispatch([n.div_ceil(64) as u32, 1, 1]);
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.0 * x + y).collect();
        assert_eq!(run.read::<f32>(2), expected, "{n}");
    }
}

const FIELD: &str = "
    struct Grid { width: u32, height: u32, frequency: f32, phase: f32 }
    @group(0) @binding(0) var<uniform> grid: Grid;
    @group(0) @binding(1) var<storage, read_write> field: array<f32>;
    const PHI = 1.618033988749895;
    const LAMBDA = 0.618033988749895;
    @compute @workgroup_size(256)
    fn main(@builtin(global_invocation_id) id: vec3u) {
        if id.x >= grid.width || id.y >= grid.height { return; }
        let x = -1.0 + 2.0 * f32(id.x) / f32(grid.width - 1u);
        let y = -1.0 + 2.0 * f32(id.y) / f32(grid.height - 1u);
        let r = PHI * sqrt(x * x + y * y);
        let a = atan2(y, x);
        field[id.y * grid.width + id.x] = sin(0.01 * grid.frequency * r + PHI * a + grid.phase) * exp(-LAMBDA * r);
    }";

#[test]
fn field() {
    let (width, height) = (1000_u32, 37_u32);
    let mut grid = vec![width, height];
    grid.extend([528.0_f32.to_bits(), 0.3_f32.to_bits()]);
    let run =
        Run::new(FIELD).buffer(&grid).zeros((width * height) as usize * 4).dispatch([width.div_ceil(256), height, 1]);
    let got = run.read::<f32>(1);
    for j in 0..height {
        for i in 0..width {
            let x = -1.0 + 2.0 * f64::from(i) / f64::from(width - 1);
            let y = -1.0 + 2.0 * f64::from(j) / f64::from(height - 1);
            let phi = 1.618033988749895;
            let r = phi * x.hypot(y);
            let value = (5.28 * r + phi * y.atan2(x) + 0.3).sin() * (-0.618033988749895 * r).exp();
            let got = f64::from(got[(j * width + i) as usize]);
            // One rounding off the seam is the other side of it.
            if y.abs() > 1e-4 || x > 0.0 {
                assert!((got - value).abs() < 1e-5, "({i}, {j}): {got} instead of {value}");
            }
        }
    }
}

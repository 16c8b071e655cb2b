//! `field` and `phi_pattern` over whole grids and tiles.

use super::gpu::{self, Binding, Gpu};
use super::linked;
use std::f64::consts::PI;

const PHI: f64 = 1.618_033_988_749_895;
const LAMBDA: f64 = 0.618_033_988_749_895;
const PHI_PHI: f64 = 2.178_457_567_937_599_5;

/// `[width, height, first column, first row, tile width, tile height]`.
type Grid = [u32; 6];

fn coordinate(i: u32, n: u32) -> f64 {
    if n == 1 { -1.0 } else { -1.0 + 2.0 * f64::from(i) / f64::from(n - 1) }
}

struct Case {
    argument: Box<dyn Fn(f64, f64) -> f64>,
    damping: Box<dyn Fn(f64) -> f64>,
}

/// Largest error over the tile, where the argument is below 64. On the seam too: the kernels' y is 0 or has the right
/// sign, because it comes from whole numbers.
fn error(values: &[f32], grid: Grid, case: &Case) -> f64 {
    let [width, height, first_column, first_row, tile_width, tile_height] = grid;
    let mut worst = 0.0_f64;
    for row in 0..tile_height {
        let y = coordinate(first_row + row, height);
        for column in 0..tile_width {
            let x = coordinate(first_column + column, width);
            let (r, a) = (x.hypot(y), y.atan2(x));
            let argument = (case.argument)(r, a);
            if argument.abs() >= 64.0 {
                continue;
            }
            let want = argument.sin() * (case.damping)(r);
            let got = f64::from(values[row as usize * tile_width as usize + column as usize]);
            let error = (got - want).abs();
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
        }
    }
    worst
}

/// The 12 leading bits of `number`, and the rest.
fn in_two_parts(number: f64) -> [f32; 2] {
    let high = f32::from_bits((number as f32).to_bits() & 0xffff_f000);
    [high, (number - f64::from(high)) as f32]
}

fn whole(width: u32, height: u32) -> Grid {
    [width, height, 0, 0, width, height]
}

const GRIDS: [Grid; 10] = [
    [1, 1, 0, 0, 1, 1],
    [1, 7, 0, 0, 1, 7],
    [7, 1, 0, 0, 7, 1],
    [64, 64, 0, 0, 64, 64],
    [333, 500, 0, 0, 333, 500],
    [4096, 3, 0, 0, 4096, 3],
    [1025, 1025, 0, 0, 1025, 1025],
    [1025, 1025, 1000, 300, 25, 400],
    [65_536, 65_536, 65_000, 40_000, 536, 64],
    [65_536, 65_536, 12_345, 2, 700, 33],
];

fn run(gpu: &Gpu, wgsl: &str, entry_point: &str, grid: Grid, wave: Option<[f32; 4]>) -> Vec<f32> {
    let size = 4 * u64::from(grid[4]) * u64::from(grid[5]);
    let mut bindings = vec![Binding::Uniform(bytemuck::bytes_of(&grid))];
    bindings.extend(wave.as_ref().map(|wave| Binding::Uniform(bytemuck::bytes_of(wave))));
    bindings.push(Binding::Output(size));
    let out = gpu.run(wgsl, entry_point, &bindings, [grid[4].div_ceil(256), grid[5], 1]);
    bytemuck::pod_collect_to_vec(&out[0])
}

#[test]
fn phi_pattern() {
    let case = Case { argument: Box::new(|r, a| 10.0 * PHI_PHI * r + PHI * a), damping: Box::new(|_| 1.0) };
    let wgsl = linked("field/phi_pattern", &[]);
    for gpu in gpu::all() {
        for grid in GRIDS {
            let values = run(gpu, &wgsl, "phi_pattern", grid, None);
            let error = error(&values, grid, &case);
            println!("phi_pattern {grid:?} on {}: {error:.2e}", gpu.name);
            assert!(error < 1e-5, "phi_pattern {grid:?} on {}: {error:e}", gpu.name);
        }
    }
}

#[test]
fn field() {
    let wgsl = linked("field/field", &[]);
    // Love at rest, unity far on, and one whose argument passes 64 well inside the grid.
    for (frequency, time) in [(528.0, 0.0), (432.0, 1234.5), (3955.0, 0.7), (39_000.0, 1.0)] {
        let phase = PHI_PHI * time;
        let phase = phase - (phase / (2.0 * PI)).round() * 2.0 * PI;
        let case = Case {
            argument: Box::new(move |r, a| 0.01 * frequency * PHI * r + PHI * a + phase),
            damping: Box::new(|r| (-LAMBDA * PHI * r).exp()),
        };
        let [high, low] = in_two_parts(0.01 * frequency * PHI);
        for gpu in gpu::all() {
            for grid in GRIDS {
                let values = run(gpu, &wgsl, "field", grid, Some([high, low, phase as f32, 0.0]));
                let error = error(&values, grid, &case);
                println!("field {frequency} Hz {grid:?} on {}: {error:.2e}", gpu.name);
                assert!(error < 1e-5, "field {frequency} Hz {grid:?} on {}: {error:e}", gpu.name);
            }
        }
    }
}

#[test]
fn tiles_are_parts_of_the_whole() {
    let wgsl = linked("field/phi_pattern", &[]);
    for gpu in gpu::all() {
        let all = run(gpu, &wgsl, "phi_pattern", whole(600, 400), None);
        let tile = run(gpu, &wgsl, "phi_pattern", [600, 400, 128, 99, 301, 77], None);
        for row in 0..77 {
            let from = (99 + row) * 600 + 128;
            assert_eq!(all[from..from + 301], tile[row * 301..(row + 1) * 301], "row {row} on {}", gpu.name);
        }
    }
}

//! Random programs of floats: structures, matrices, vectors, pointers to parts of variables, and f16. What they compute is known as intervals,
//! by WGSL's accuracy of each operation, so that a device may fuse, round and flush as it likes and no further.
//!
//! Conditions depend on the invocation's number alone. Where a comparison of floats is open, both outcomes count.

mod evaluate;
mod generate;
mod interval;
mod program;
mod text;

use crate::case::Case;
use crate::check::Near;
use crate::inputs::Random;

use evaluate::Machine;
use generate::Generator;
use interval::Interval;
use program::Program;

/// Invocations of the one workgroup, and elements of the input.
const LANES: u32 = 32;
const INPUTS: u32 = 64;
/// The bound of stored values.
const BOUND: f64 = 64.0;

/// The program of a seed as a case; every fourth uses f16.
pub fn case(seed: u64) -> Case {
    let (program, input, expected) = run(seed);
    let near = Near::each("interval", expected.iter().map(|found| (found.middle(), found.radius())));
    let case = Case::new(format!("floats {seed}"), program.wgsl()).read("input", input).write_near("out", near);
    if program.halves { case.needs(|needs| needs.f16 = true) } else { case }
}

/// The share of the results of a seed's program that is known to three digits: a case of wide intervals would show little.
pub fn share_known(seed: u64) -> f64 {
    let (_, _, expected) = run(seed);
    let known = expected.iter().filter(|found| found.radius() <= 1e-3 * found.middle().abs().max(1.0)).count();
    known as f64 / expected.len().max(1) as f64
}

/// The program, its input, and what it may put out.
fn run(seed: u64) -> (Program, Vec<f32>, Vec<Interval>) {
    let mut random = Random::new(seed ^ 0xF10A7);
    let input: Vec<f32> = (0..INPUTS).map(|_| ((random.unit() * 16.0 - 8.0) * 64.0).round() as f32 / 64.0).collect();
    let program = Generator::new(&mut random, seed.is_multiple_of(4)).program();
    let mut expected = Vec::new();
    for lane in 0..LANES {
        let mut machine = Machine { memory: vec![Interval::exact(0.0); program.slots], lane, input: &input };
        machine.block(&program.main, &[], &program);
        expected.extend(program.outputs.iter().flat_map(|output| machine.value(output, &[])));
    }
    (program, input, expected)
}

//! Random programs, each with what a plain interpreter says must come out: of integers, and of floats.

pub mod constants;
pub mod floats;
pub mod generate;
pub mod interpret;
pub mod program;

use crate::case::Case;
use program::Program;

/// The program as a case.
pub fn case(program: &Program) -> Case {
    let (input, parameters) = generate::inputs(program.seed);
    let finals = interpret::run(program, &input, &parameters);
    Case::new(format!("seed {}", program.seed), program.wgsl())
        .read("input", input)
        .uniform("parameters: vec4u", parameters)
        .write("counters: array<atomic<u32>>", finals.counters)
        .write("out", finals.out)
        .write("signed_out", finals.signed_out)
        .workgroups(program.workgroups, 1, 1)
}

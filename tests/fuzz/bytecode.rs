//! Prepared kernels, byte by byte, and bytecode, field by field.

use cantus::Kernel;
use cantus::spmd::Bytecode;
use serde_json::{Value, json};

use crate::mutate::{self, Rng};
use crate::wgsl::{corpus, run};
use crate::{Input, Outcome, tiny};

/// A kernel that the executor runs.
fn kernel(text: &str) -> Option<Kernel> {
    let kernel = Kernel::from_wgsl(text).ok()?;
    let first = kernel.entry_points().ok()?.into_iter().next()?;
    let kernel = kernel.with_entry_point(&first).ok()?;
    kernel.program().ok()?;
    Some(kernel)
}

/// What the inputs of a class begin with: whole kernels, and tiny ones.
struct Corpus<T> {
    whole: Vec<T>,
    tiny: Vec<T>,
}

impl<T: Clone> Corpus<T> {
    fn new(of: impl Fn(&Kernel) -> Option<T>) -> Self {
        // A few of the smaller whole ones: making them takes longer than running them.
        let all = corpus();
        let whole = all[..all.len() / 2].iter().step_by(6).filter_map(|text| of(&kernel(text)?)).collect();
        let tiny = (0..512).filter_map(|seed| of(&kernel(&tiny::text(&mut Rng::new(seed)))?)).collect();
        Self { whole, tiny }
    }

    /// Fifteen of sixteen are tiny: they take a tenth of the time.
    fn pick<'a>(&'a self, rng: &mut Rng) -> &'a T {
        let from = if rng.one_in(16) { &self.whole } else { &self.tiny };
        rng.pick(from)
    }
}

pub fn prepared() -> Input {
    let corpus = Corpus::new(|kernel| kernel.prepare().ok());
    Box::new(move |rng| {
        let mut bytes = corpus.pick(rng).clone();
        let other = corpus.pick(rng);
        if !rng.one_in(8) {
            let most = if rng.one_in(2) { 1 } else { 8 };
            mutate::bytes(rng, &mut bytes, other, most);
        }
        let Ok(kernel) = Kernel::from_prepared(&bytes) else { return Outcome::Refused };
        let Ok(reflection) = kernel.reflection() else { return Outcome::Passed };
        let _ = (
            reflection.invocations(),
            reflection.bindings.iter().map(|binding| binding.layout.to_string().len()).sum::<usize>(),
        );
        match kernel.program() {
            Ok(program) => run(program, rng),
            Err(_) => Outcome::Passed,
        }
    })
}

/// Changes of single fields, which the format of the bytes would mostly hide behind damage.
pub fn programs() -> Input {
    let corpus = Corpus::new(|kernel| {
        let program = serde_json::to_value(&**kernel.program().ok()?).ok()?;
        (program["codes"][0]["instructions"].as_array()?.len() < 400).then_some(program)
    });
    let instructions = |program: &Value| program["codes"][0]["instructions"].as_array().unwrap().clone();
    let all: Vec<Value> = corpus.whole.iter().chain(&corpus.tiny).flat_map(instructions).collect();
    Box::new(move |rng| {
        let mut program = corpus.pick(rng).clone();
        for _ in 0..=rng.below(3) {
            change(&mut program, &all, rng);
        }
        let Ok(program) = serde_json::from_value::<Bytecode>(program) else { return Outcome::Refused };
        if program.check().is_err() {
            return Outcome::Refused;
        }
        run(&program, rng)
    })
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn change(program: &mut Value, all: &[Value], rng: &mut Rng) {
    let code = rng.below(program["codes"].as_array().map_or(1, Vec::len));
    match rng.below(24) {
        0 => program["workgroup_bytes"] = json!(rng.number() as u32),
        1 => program["workgroup_size"][rng.below(3)] = json!(rng.number() as u32),
        2 => {
            let name = *rng.pick(&["lanes", "words"]);
            let old = number(&program["codes"][code][name]);
            let new = if rng.one_in(2) { old / 2 } else { rng.number() };
            program["codes"][code][name] = json!(new as u32);
        }
        3 => {
            let count = program["bindings"].as_array().map_or(0, Vec::len);
            if count > 0 {
                let binding = &mut program["bindings"][rng.below(count)];
                match rng.below(3) {
                    0 => binding["min_bytes"] = json!(rng.number()),
                    1 => binding["align"] = json!(rng.number() as u32),
                    _ => binding["writable"] = json!(rng.one_in(2)),
                }
            }
        }
        4..=8 => {
            let accesses = program["codes"][code]["accesses"].as_array_mut().unwrap();
            if accesses.is_empty() {
                return;
            }
            let other = rng.pick(accesses).clone();
            let access = {
                let place = rng.below(accesses.len());
                &mut accesses[place]
            };
            match rng.below(6) {
                0 => access["offset"] = json!(rng.number() as u32),
                1 => access["stride"] = json!(rng.number() as u32),
                2 => access["count"] = other["count"].clone(),
                3 => access["space"] = other["space"].clone(),
                4 => access["element"] = json!(*rng.pick(&["Word", "Wide", "Half", "Short", "UnsignedShort"])),
                _ => access["count"] = json!({ "Fixed": rng.number() as u32 }),
            }
        }
        9..=11 => {
            let instructions = program["codes"][code]["instructions"].as_array_mut().unwrap();
            let (from, to) = (rng.below(instructions.len()), rng.below(instructions.len()));
            let copy = instructions[from].clone();
            if rng.one_in(2) {
                instructions[to] = copy;
            } else {
                instructions.insert(to, copy);
            }
        }
        _ => {
            let lanes = number(&program["codes"][code]["lanes"]);
            let instructions = program["codes"][code]["instructions"].as_array_mut().unwrap();
            let other = rng.pick(instructions).clone();
            let place = rng.below(instructions.len());
            let instruction = &mut instructions[place];
            match rng.below(12) {
                0..=2 => instruction["form"] = json!(rng.next() as u8 & 31),
                3..=4 => instruction["op"] = rng.pick(all)["op"].clone(),
                5 => instruction["x"] = json!(if rng.one_in(2) { number(&other["x"]) } else { rng.number() } as u32),
                _ => {
                    let field = *rng.pick(&["d", "a", "b", "c", "m"]);
                    let old = number(&instruction[field]);
                    let new = match rng.below(5) {
                        0 => number(&other[*rng.pick(&["d", "a", "b", "c"])]),
                        1 => old.wrapping_add(32),
                        2 => old.wrapping_sub(lanes),
                        3 => old.wrapping_add(lanes),
                        _ => rng.number(),
                    };
                    instruction[field] = json!(new as u32);
                }
            }
        }
    }
}

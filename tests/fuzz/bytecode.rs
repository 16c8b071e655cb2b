//! Prepared kernels, byte by byte, and bytecode, field by field.

use cantus::Kernel;
use cantus::spmd::Bytecode;
use serde_json::{Value, json};

use crate::mutate::{self, Rng};
use crate::wgsl::{corpus, run};
use crate::{Input, Outcome};

/// Kernels of the corpus that the executor runs, each in its prepared form.
fn kernels() -> Vec<Kernel> {
    let all = corpus();
    let kernels = all.iter().filter_map(|text| {
        let kernel = Kernel::from_wgsl(text).ok()?;
        let first = kernel.entry_points().ok()?.into_iter().next()?;
        let kernel = kernel.with_entry_point(&first).ok()?;
        kernel.program().ok()?;
        Some(kernel)
    });
    // A third of them takes a third of the time to begin.
    kernels.step_by(3).collect()
}

pub fn prepared() -> Input {
    let corpus: Vec<Vec<u8>> = kernels().iter().filter_map(|kernel| kernel.prepare().ok()).collect();
    Box::new(move |rng| {
        let mut bytes = rng.pick(&corpus).clone();
        let other = rng.pick(&corpus).clone();
        if !rng.one_in(8) {
            let most = if rng.one_in(2) { 1 } else { 8 };
            mutate::bytes(rng, &mut bytes, &other, most);
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
    let corpus: Vec<Value> = kernels()
        .iter()
        .filter_map(|kernel| serde_json::to_value(&**kernel.program().ok()?).ok())
        .filter(|program| program["codes"][0]["instructions"].as_array().is_some_and(|all| all.len() < 400))
        .collect();
    let all: Vec<Value> =
        corpus.iter().flat_map(|program| program["codes"][0]["instructions"].as_array().unwrap().clone()).collect();
    Box::new(move |rng| {
        let mut program = rng.pick(&corpus).clone();
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

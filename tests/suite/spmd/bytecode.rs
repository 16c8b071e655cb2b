//! Bytecode that was changed by hand: what the check refuses, and in what time and memory.

use std::time::{Duration, Instant};

use cantus::spmd::{Bytecode, Launch, Memory, Stopped, execute};
use serde_json::Value;

use super::harness::compile;

/// Private memory under uniform and varying indices, buffers under linear, uniform and other indices, atomics, choices and loops.
const MANY_FORMS: &str = "
    @group(0) @binding(0) var<storage, read_write> a: array<u32>;
    @group(0) @binding(1) var<storage, read_write> b: array<atomic<u32>>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
        var t: array<u32, 5>;
        t[id.x % 5u] = id.x;
        t[a[1] % 5u] = a[0];
        let x = a[id.x] + t[a[0] % 5u] + t[id.x % 3u];
        atomicAdd(&b[id.x % 3u], x);
        let y = select(x, a[2], x > atomicLoad(&b[0]));
        if y % 2u == 0u { a[id.x] = y; } else { a[id.x * 2u] = x; }
    }";

fn instructions(program: &mut Value) -> &mut Vec<Value> {
    program["codes"][0]["instructions"].as_array_mut().expect("instructions")
}

fn check(value: &Value) -> Result<(), String> {
    let program: Bytecode = serde_json::from_value(value.clone()).expect("a program");
    program.check().map_err(|corrupt| corrupt.to_string())
}

/// The legal forms of each instruction of the kernel, found by asking the check about all 256.
fn forms(of: impl Fn(&Value, &Value) -> bool) -> Vec<Vec<u64>> {
    let whole = serde_json::to_value(compile(MANY_FORMS)).expect("a program");
    let mut found = Vec::new();
    for place in 0..whole["codes"][0]["instructions"].as_array().expect("instructions").len() {
        let mut changed = whole.clone();
        let accesses = changed["codes"][0]["accesses"].clone();
        let instruction = instructions(&mut changed)[place].clone();
        let access = &accesses[instruction["x"].as_u64().unwrap_or(0) as usize];
        if !of(&instruction["op"], access) {
            continue;
        }
        let legal = (0..256_u64).filter(|form| {
            instructions(&mut changed)[place]["form"] = (*form).into();
            check(&changed).is_ok()
        });
        found.push(legal.collect());
    }
    found
}

const A: u64 = 1;
const D: u64 = 8;
const LINEAR: u64 = 16;

#[test]
fn a_load_from_private_memory_fills_a_vector() {
    let private = forms(|op, access| op == "Load" && access["space"].get("Private").is_some());
    assert!(!private.is_empty());
    for legal in private {
        // One word for the result of all lanes, or lanes of an index that has one word, would reach past their registers.
        assert!(legal.iter().all(|form| form & (D | LINEAR) == 0), "{legal:?}");
    }
}

#[test]
fn every_instruction_has_few_forms() {
    let all = forms(|_, _| true);
    assert!(all.len() > 20);
    for legal in &all {
        // What was compiled is legal; the bits above the five are never.
        assert!((1..=12).contains(&legal.len()) && legal.iter().all(|form| *form < 32), "{legal:?}");
    }
    let linear = forms(|op, access| op == "Load" && access["space"].get("Binding").is_some());
    assert!(linear.iter().flatten().all(|form| form & LINEAR == 0 || form & (A | D | LINEAR) == A | LINEAR));
}

#[test]
fn sizes_in_bytecode_are_bounded() {
    let whole = serde_json::to_value(compile(MANY_FORMS)).expect("a program");
    let mut workgroup = whole.clone();
    workgroup["workgroup_bytes"] = u32::MAX.into();
    let mut lanes = whole.clone();
    lanes["codes"][0]["lanes"] = (u32::MAX - 31).into();
    let mut words = whole.clone();
    words["codes"][0]["words"] = (1_u32 << 28).into();
    let mut size = whole.clone();
    size["workgroup_size"] = serde_json::json!([1 << 10, 1 << 10, 1]);
    for (name, value) in [("workgroup_bytes", workgroup), ("lanes", lanes), ("words", words), ("size", size)] {
        let program: Bytecode = serde_json::from_value(value).expect("a program");
        let begin = Instant::now();
        let (mut a, mut b) = ([0_u32; 64], [0_u32; 64]);
        let bindings = [Memory::new(bytemuck::cast_slice_mut(&mut a)), Memory::new(bytemuck::cast_slice_mut(&mut b))];
        let launch = Launch::new([1; 3], &bindings);
        assert!(matches!(execute(&program, &launch), Err(Stopped::Corrupt(_))), "{name}");
        assert!(begin.elapsed() < Duration::from_secs(1), "{name}");
    }
}

/// Registers of a kernel do not show in the next one, even if its bytecode reads what it never wrote.
#[test]
fn registers_start_as_zeros() {
    let secret = compile(
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            let x = a[id.x] ^ 0x12345678u; let y = x * 3u; a[id.x] = y - x;
        }",
    );
    let reader = compile(
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            a[id.x] = a[id.x + 64u] + 1u;
        }",
    );
    let mut value = serde_json::to_value(reader).expect("a program");
    for instruction in instructions(&mut value) {
        // The loads and sums become jumps to what follows, so that the store writes what was in its register before.
        if instruction["op"] == "Load" || instruction["op"].get("Int2").is_some() {
            *instruction =
                serde_json::json!({ "op": "Jump", "form": 0, "d": 0, "a": 0, "b": 0, "c": 0, "m": u32::MAX, "x": 0 });
        }
    }
    for (place, instruction) in instructions(&mut value).iter_mut().enumerate() {
        if instruction["op"] == "Jump" {
            instruction["x"] = (place + 1).into();
        }
    }
    let reader: Bytecode = serde_json::from_value(value).expect("a program");
    let mut words = vec![7_u32; 128];
    for program in [&secret, &reader] {
        let bindings = [Memory::new(bytemuck::cast_slice_mut(&mut words))];
        let launch = Launch::new([1; 3], &bindings).parallel(false);
        execute(program, &launch).expect("it runs");
    }
    assert!(words[..64].iter().all(|word| *word == 0), "{words:?}");
}

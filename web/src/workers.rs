//! The CPU's threads: web workers that have this module too, on the same memory.

use wasm_bindgen::prelude::*;

/// Lends the worker that calls it to the CPU backend, for good.
#[wasm_bindgen]
pub fn help() {
    cantus::backend::cpu::help()
}

//! Cantus in the browser: what JavaScript sees of the engine. Thin: names, numbers and errors are translated, nothing is computed.
//!
//! These are the raw classes; `lib/` wraps them into the npm package's own (`Engine`, `Tensor`, `Kernel`). Everything that may wait
//! returns a promise, and no promise borrows from the object that made it: any of them may be freed while one is pending.

#![cfg(target_arch = "wasm32")]

#[cfg(feature = "webgpu")]
mod device;
#[cfg(feature = "playground")]
mod dispatch;
mod engine;
mod error;
#[cfg(feature = "playground")]
mod kernel;
#[cfg(feature = "playground")]
mod ops;
mod promise;
#[cfg(feature = "zk")]
mod proofs;
mod tensor;
#[cfg(feature = "playground")]
mod texture;
#[cfg(target_feature = "atomics")]
mod workers;

pub use engine::RawEngine;
pub use tensor::RawTensor;
#[cfg(feature = "playground")]
pub use {dispatch::RawDispatch, kernel::RawKernel, texture::RawTexture};

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

/// Runs once, when the module is loaded: a panic is thrown as an error of Cantus's, in place of a trap that says nothing, and no promise stays
/// pending after it.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        console_error(&text);
        let fault = error::fault(&text);
        promise::fail(&fault);
        wasm_bindgen::throw_val(fault);
    }));
}

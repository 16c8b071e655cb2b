//! Translated source to PTX or machine code, without a device: for the program and for what is built ahead.

use std::sync::OnceLock;

use super::vendor::{PTX, VENDOR};
use crate::cuda_hip::{Compiled, Compiler};
use crate::error::{Error, Result};

/// Compiles CUDA C++ by NVRTC: to PTX for an architecture such as `compute_75`, to machine code (a cubin) for one such as `sm_90`. `name`
/// is for the compiler's messages.
///
/// # Errors
/// [`Error::InvalidInput`] when the architecture is neither, [`Error::Io`] when NVRTC cannot be loaded, and [`Error::Device`] with the
/// compiler's log when it refuses.
pub fn compile(source: &str, name: &str, architecture: &str) -> Result<Compiled> {
    static TO_PTX: OnceLock<std::result::Result<Compiler, String>> = OnceLock::new();
    static TO_CUBIN: OnceLock<std::result::Result<Compiler, String>> = OnceLock::new();
    let compiler = if architecture.starts_with("compute_") {
        TO_PTX.get_or_init(|| Compiler::new(&VENDOR, &PTX, i32::MAX))
    } else if architecture.starts_with("sm_") {
        TO_CUBIN.get_or_init(|| Compiler::new(&VENDOR, &VENDOR.compiler_functions, i32::MAX))
    } else {
        return Err(Error::invalid(
            format!("the architecture \"{architecture}\""),
            "PTX wants one such as compute_75, machine code one such as sm_90",
        ));
    };
    let compiler = compiler.as_ref().map_err(|reason| Error::Io {
        action: "cannot load".to_owned(),
        path: "NVRTC".to_owned(),
        reason: reason.clone(),
    })?;
    compiler.compile_for(source, name, format!("--gpu-architecture={architecture}"), "NVRTC")
}

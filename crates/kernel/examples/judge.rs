//! Says which WGSL texts are valid, for the public WebGPU conformance suite: requests come on standard input, and answers go to standard output. The other
//! side is `tests/cts/validate.cjs`. One process for all texts judges some twenty times as many a second as the program does by `cantus compile`.
//!
//! A request is a line of JSON: the text, the entry point and the overrides' values. An answer has the `error`, which is null where all of it is valid.

use std::io::{BufRead as _, Write as _};

use cantus_kernel::Kernel;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in input.lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let error = judged(&request).err().map(|error| error.to_string());
        writeln!(output, "{}", json!({ "error": error }))?;
        output.flush()?;
    }
    Ok(())
}

/// Compiles what a request has, as far as its reflection goes.
fn judged(request: &Value) -> Result<(), Box<dyn std::error::Error>> {
    let text = |name: &str| request[name].as_str().unwrap_or_default();
    let mut kernel = Kernel::from_wgsl(text("code"))?.with_entry_point(text("entry"))?;
    for (name, value) in request["constants"].as_object().into_iter().flatten() {
        // What is no number is refused as a value.
        kernel = kernel.with_override(name, value.as_f64().unwrap_or(f64::NAN))?;
    }
    kernel.reflection()?;
    Ok(())
}

//! Writes `include/cantus.h` from the C surface's source; with `--check`, says whether the committed one is what would be written.

use std::path::Path;
use std::process::ExitCode;

const HEAD: &str = "/* Cantus for C. Generated from src/c.rs by `cargo run -p bindgen --bin header`. */";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            #[allow(clippy::print_stderr, reason = "a program's own error")]
            {
                eprintln!("{text}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the crate has no parent folder")?;
    let config = cbindgen::Config {
        language: cbindgen::Language::C,
        header: Some(HEAD.to_owned()),
        include_guard: Some("CANTUS_H".to_owned()),
        cpp_compat: true,
        usize_is_size_t: true,
        documentation_style: cbindgen::DocumentationStyle::C99,
        line_length: 120,
        enumeration: cbindgen::EnumConfig {
            rename_variants: cbindgen::RenameRule::QualifiedScreamingSnakeCase,
            ..Default::default()
        },
        export: cbindgen::ExportConfig {
            include: ["CantusAddress", "CantusDtype", "CantusFilter", "CantusNumber", "CantusUnit"]
                .map(str::to_owned)
                .to_vec(),
            ..Default::default()
        },
        ..Default::default()
    };
    let bindings = cbindgen::Builder::new().with_config(config).with_src(root.join("src/c.rs")).generate();
    let mut text = Vec::new();
    bindings.map_err(|error| format!("src/c.rs: {error}"))?.write(&mut text);
    let path = root.join("include/cantus.h");
    if std::env::args().any(|argument| argument == "--check") {
        let known = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        return if known == text {
            Ok(())
        } else {
            Err(format!("{} is not what src/c.rs gives: cargo run -p bindgen --bin header", path.display()))
        };
    }
    std::fs::create_dir_all(root.join("include"))
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}

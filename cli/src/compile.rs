//! `cantus compile`: a kernel in another language, to read or to use in another program.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cantus::kernel::Language;
use cantus::translate::{Dialect, OpenClFeatures, Options};
use cantus::{Engine, Error, Kernel, Result};
use clap::{Args, ValueEnum};

use super::global::Global;
use super::output::OutputFile;
use super::parse::{Assignment, Size};

/// Translate a kernel to another language, or compile it to GPU code
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The kernel, or the name of a shipped one (cantus kernels); for stablehlo an operation (cantus bench)
    #[arg(value_name = "KERNEL.wgsl")]
    kernel: String,
    /// The language; `all` writes every language available here into the folder of -o
    #[arg(short, long, value_enum, required_unless_present = "types", conflicts_with = "types")]
    target: Option<Target>,
    /// Write the types of the kernel's arguments instead, for TypeScript or Python (for Rust use the crate cantus-build)
    #[arg(long, value_enum)]
    types: Option<Types>,
    /// Turn on a feature of the kernel's conditions: @if(NAME)
    #[arg(long = "feature", value_name = "NAME")]
    features: Vec<String>,
    /// The entry point; needed when there are several
    #[arg(long, value_name = "NAME")]
    entry: Option<String>,
    /// Set an override constant; true and false are 1 and 0
    #[arg(long, value_name = "OVERRIDE=VALUE", allow_hyphen_values = true)]
    set: Vec<Assignment>,
    /// The architecture: compute_75 and the like for ptx, sm_90 and the like for cubin
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,
    /// The sides of an operation's matrices, rows x columns (stablehlo)
    #[arg(long, value_name = "ROWSxCOLUMNS", default_value = "1024x1024", allow_hyphen_values = true)]
    shape: Size,
    /// Pass uniform bindings by value (cuda, hip, opencl, c)
    #[arg(long)]
    uniforms_by_value: bool,
    /// Write to this file (for `all`: folder) instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  cantus compile saxpy.wgsl --target cuda
  cantus compile life.wgsl --target spirv --set WIDTH=64 -o life.spv
  cantus compile field --target ptx --arch compute_75 -o field.ptx
  cantus compile softmax --target stablehlo --shape 37x53 -o softmax.mlir
  cantus compile saxpy.wgsl --types ts -o saxpy.d.ts
  cantus compile saxpy.wgsl --target all -o saxpy/
      a file per language, and the reasons why others are missing

Cantus itself writes cuda, hip, opencl, c and rust, which an app compiles ahead
(see the crate cantus-build); naga writes spirv, msl, hlsl, glsl and wgsl. ptx
and cubin need no GPU, but NVRTC, a library of CUDA 12 or 13
(CANTUS_NVRTC_LIBRARY gives its path if it is not found). stablehlo takes an
operation, by its name in cantus bench: the graph that PJRT plugins compile.";

/// A language to compile to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    Spirv,
    Msl,
    Hlsl,
    Glsl,
    Wgsl,
    Cuda,
    Hip,
    Opencl,
    C,
    Ptx,
    Cubin,
    Rust,
    Stablehlo,
    All,
}

/// A language to declare arguments in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Types {
    Ts,
    Py,
}

const EVERY: [Target; 12] = [
    Target::Spirv,
    Target::Msl,
    Target::Hlsl,
    Target::Glsl,
    Target::Wgsl,
    Target::Cuda,
    Target::Hip,
    Target::Opencl,
    Target::C,
    Target::Ptx,
    Target::Cubin,
    Target::Rust,
];

/// The architectures that are compiled for when none is named: what every card since 2018 runs, and a recent one.
#[cfg(feature = "cuda")]
const PTX_ARCHITECTURE: &str = "compute_75";
#[cfg(feature = "cuda")]
const CUBIN_ARCHITECTURE: &str = "sm_90";

impl Target {
    fn extension(self) -> &'static str {
        match self {
            Self::Spirv => "spv",
            Self::Msl => "metal",
            Self::Hlsl => "hlsl",
            Self::Glsl => "comp",
            Self::Wgsl => "wgsl",
            Self::Cuda => "cu",
            Self::Hip => "hip",
            Self::Opencl => "cl",
            Self::C => "c",
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
            Self::Rust => "rs",
            Self::Stablehlo => "mlir",
            Self::All => "",
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Runs the subcommand.
///
/// # Errors
/// As the library; [`Error::Unsupported`] when the language cannot express the kernel.
pub fn run(_: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let code = match (arguments.target, arguments.types) {
        (Some(Target::Stablehlo), _) => of_operation(arguments)?,
        (Some(Target::All), _) => return every(&read_kernel(arguments)?, arguments),
        (Some(target), _) => make(&read_kernel(arguments)?, target, arguments)?,
        (None, Some(Types::Py)) => cantus_build::python(read_kernel(arguments)?.reflection()?).into_bytes(),
        // clap asks for one of both.
        (None, _) => cantus_build::typescript(read_kernel(arguments)?.reflection()?).into_bytes(),
    };
    match &arguments.output {
        Some(path) => write(path, &code)?,
        None => {
            let mut out = std::io::stdout().lock();
            let done = out.write_all(&code).and_then(|()| out.flush());
            done.map_err(|error| super::output::fault(Path::new("stdout"), &error))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// An operation's graph.
fn of_operation(arguments: &Arguments) -> Result<Vec<u8>> {
    let all = super::bench_ops::ops();
    let Some(op) = all.iter().find(|op| op.name == arguments.kernel) else {
        let names: Vec<&str> = all.iter().map(|op| op.name).collect();
        return Err(Error::invalid(
            format!("the operation {}", arguments.kernel),
            format!("--target stablehlo takes one of {}", names.join(", ")),
        ));
    };
    let engine = Engine::builder().backend("cpu").build()?;
    // Rows come first in a shape, and last in the size of a picture.
    let size = Size { width: arguments.shape.height, height: arguments.shape.width };
    Ok(op.graph(&engine, size)?.stablehlo().into_bytes())
}

fn read_kernel(arguments: &Arguments) -> Result<Kernel> {
    let mut kernel = super::run::from_file(Path::new(&arguments.kernel), &arguments.features)?;
    if let Some(entry) = &arguments.entry {
        kernel = kernel.with_entry_point(entry)?;
    }
    for setting in &arguments.set {
        let value = match setting.value.as_str() {
            "true" => 1.0,
            "false" => 0.0,
            // What is no number is refused as a value, and an unknown name as a name.
            text => text.parse().unwrap_or(f64::NAN),
        };
        kernel = kernel.with_override(&setting.name, value)?;
    }
    kernel.reflection()?;
    Ok(kernel)
}

/// Every language that can be made here, into a folder.
fn every(kernel: &Kernel, arguments: &Arguments) -> Result<ExitCode> {
    let Some(folder) = &arguments.output else {
        return Err(Error::invalid("--target all", "it writes several files: name a folder with -o"));
    };
    std::fs::create_dir_all(folder).map_err(|error| super::output::fault(folder, &error))?;
    let name = kernel.reflection()?.entry_point.clone();
    let mut lines = Vec::new();
    for target in EVERY {
        let file = folder.join(format!("{name}.{}", target.extension()));
        match make(kernel, target, arguments) {
            Ok(code) => {
                write(&file, &code)?;
                lines.push(vec![target.name(), file.display().to_string()]);
            }
            Err(error) => lines.push(vec![target.name(), format!("not made: {}", first_line(&error.to_string()))]),
        }
    }
    super::report::print(&super::report::table(&["TARGET", "FILE"], &lines))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn write(path: &Path, code: &[u8]) -> Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(code).map_err(|error| super::output::fault(path, &error))?;
    file.commit()
}

fn make(kernel: &Kernel, target: Target, arguments: &Arguments) -> Result<Vec<u8>> {
    let kernel = &match target {
        Target::Spirv | Target::Wgsl => kernel.clone(),
        _ => kernel.without_textures()?,
    };
    let translate = |dialect| {
        // What a device of the dialect may have; a device's own backend asks for what it has.
        let options = Options::new().bound_loops(true).uniforms_by_value(arguments.uniforms_by_value);
        let options = options.opencl(OpenClFeatures::ALL);
        kernel.translate(dialect, &options)
    };
    let source = |dialect| translate(dialect).map(|translation| translation.source.into_bytes());
    match target {
        Target::Spirv => kernel.write(Language::Spirv),
        Target::Msl => kernel.write(Language::Msl),
        Target::Hlsl => kernel.write(Language::Hlsl),
        Target::Glsl => kernel.write(Language::Glsl),
        Target::Wgsl => kernel.write(Language::Wgsl),
        Target::Cuda => source(Dialect::Cuda),
        Target::Hip => source(Dialect::Hip),
        Target::Opencl => source(Dialect::OpenCl),
        Target::C => source(Dialect::Host),
        Target::Ptx => nvrtc(&translate(Dialect::Cuda)?, target, arguments),
        Target::Cubin => nvrtc(&translate(Dialect::Cuda)?, target, arguments),
        Target::Rust => cantus_build::rust(kernel, &arguments.kernel).map(String::into_bytes),
        // Resolved by the caller.
        Target::All | Target::Stablehlo => Ok(Vec::new()),
    }
}

#[cfg(feature = "cuda")]
fn nvrtc(translation: &cantus::translate::Translation, target: Target, arguments: &Arguments) -> Result<Vec<u8>> {
    let (kind, default) = match target {
        Target::Ptx => ("compute_", PTX_ARCHITECTURE),
        _ => ("sm_", CUBIN_ARCHITECTURE),
    };
    // `all` with one --arch serves the target that it fits.
    let given =
        arguments.arch.as_deref().filter(|arch| arguments.target != Some(Target::All) || arch.starts_with(kind));
    let architecture = given.unwrap_or(default);
    if !architecture.starts_with(kind) {
        return Err(Error::invalid(
            format!("--arch {architecture}"),
            format!("{} wants one such as {default}", target.name()),
        ));
    }
    let compiled = cantus::backend::cuda::compile(&translation.source, &translation.entry, architecture)?;
    if !compiled.log.is_empty() {
        tracing::warn!("NVRTC: {}", compiled.log);
    }
    let mut code = compiled.code;
    if target == Target::Ptx {
        // PTX is text, given with the zero byte that ends it in C.
        while code.last() == Some(&0) {
            code.pop();
        }
    }
    Ok(code)
}

#[cfg(not(feature = "cuda"))]
fn nvrtc(_: &cantus::translate::Translation, target: Target, _: &Arguments) -> Result<Vec<u8>> {
    Err(not_built(&target.name(), "cuda"))
}

#[cfg(not(feature = "cuda"))]
fn not_built(target: &str, feature: &str) -> Error {
    Error::invalid(format!("--target {target}"), format!("this build has no feature `{feature}`"))
}

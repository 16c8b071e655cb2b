//! Texts, and naga's modules.

use std::time::{Duration, Instant};

use cantus::kernel::Language;
use cantus::spmd::{Bytecode, Launch, Memory, Stopped, execute};
use cantus::translate::{Dialect, OpenClFeatures, Options, OutOfRange};
use cantus::{Kernel, testing};
use naga::valid::{Capabilities, SubgroupOperationSet, ValidationFlags, Validator};

use crate::mutate::{self, Rng, gently, roughly, tokens};
use crate::{Input, Outcome, tiny};

/// Kernels to begin with: the cases of the conformance tests, and what ships.
pub fn corpus() -> Vec<String> {
    let mut all: Vec<String> = kit::cases::all().into_iter().map(|case| case.wgsl).collect();
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../shaders/src/prepared");
    let mut files: Vec<_> = std::fs::read_dir(shipped).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    all.extend(
        files
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "wgsl"))
            .map(|path| std::fs::read_to_string(path).unwrap()),
    );
    all.retain(|text| text.len() < 20_000);
    all.sort_by_key(String::len);
    all
}

/// Random programs: made now and then, since that takes longer than to run them.
struct Made(Vec<String>);

impl Made {
    fn new() -> Self {
        Self((0..64).map(Self::make).collect())
    }

    fn make(seed: u64) -> String {
        let case = match seed % 4 {
            0 => kit::random::floats::case(seed),
            _ => kit::random::case(&kit::random::generate::program(seed)),
        };
        case.wgsl
    }

    fn pick(&self, rng: &mut Rng) -> String {
        if rng.one_in(32) { Self::make(rng.next()) } else { rng.pick(&self.0).clone() }
    }
}

/// Runs a program over memory of its own. Under a sanitizer its registers are no larger than it says.
pub fn run(program: &Bytecode, rng: &mut Rng) -> Outcome {
    const MOST: u64 = 1 << 20;
    let sizes: Vec<u64> = program.bindings().iter().map(|binding| binding.min_bytes.max(4)).collect();
    if sizes.iter().sum::<u64>() > MOST || program.bindings().iter().any(|binding| binding.align > 64) {
        return Outcome::Passed;
    }
    let extra = rng.below(300) * 4;
    let mut memory: Vec<Vec<u64>> =
        sizes.iter().map(|bytes| (0..(*bytes as usize + extra).div_ceil(8)).map(|_| rng.number()).collect()).collect();
    let bindings: Vec<Memory<'_>> =
        memory.iter_mut().map(|words| Memory::new(bytemuck::cast_slice_mut(words))).collect();
    let workgroups = [1 + rng.below(3) as u32, 1 + rng.below(2) as u32, 1];
    let deadline = Instant::now() + Duration::from_millis(1);
    let launch = Launch::new(workgroups, &bindings).deadline(deadline).parallel(false);
    match execute(program, &launch) {
        Ok(()) | Err(Stopped::Deadline) => Outcome::Ran,
        Err(Stopped::Corrupt(_)) => Outcome::Refused,
        Err(_) => Outcome::Passed,
    }
}

/// The number of further forms of a kernel: each takes as long as all the rest.
const LOOKS: usize = 18;

fn look(which: usize, kernel: &Kernel, rng: &mut Rng) -> Option<Outcome> {
    match which {
        0..8 => {
            let dialect = [Dialect::Cuda, Dialect::Hip, Dialect::OpenCl, Dialect::Host][which % 4];
            let mut device = OpenClFeatures::default();
            let features = [&mut device.fp16, &mut device.fp64, &mut device.int64_atomics, &mut device.subgroups];
            features.into_iter().for_each(|feature| *feature = !rng.one_in(4));
            let outside = if which < 4 { OutOfRange::LastElement } else { OutOfRange::Zero };
            let options = Options::new().bound_loops(rng.one_in(2)).uniforms_by_value(rng.one_in(2));
            let _ = kernel.translate(dialect, &options.opencl(device).out_of_range(outside));
            if which == 0 {
                let _ = testing::folded(kernel, dialect);
            }
        }
        8..13 => {
            let languages = [Language::Spirv, Language::Glsl, Language::Hlsl, Language::Msl, Language::Wgsl];
            let _ = kernel.write(languages[which - 8]);
        }
        13 => return Some(run(kernel.reproducible().ok()?.program().ok()?, rng)),
        14 => return Some(run(kernel.with_loop_limit(1 + rng.below(6) as u32).ok()?.kernel.program().ok()?, rng)),
        15 => {
            let _ = cantus_build::rust(kernel, "fuzz.wgsl");
        }
        16 => {
            let _ = kernel.operations();
        }
        _ => {
            let bytes = kernel.prepare().ok()?;
            assert!(Kernel::from_prepared(&bytes).is_ok(), "what is written is read");
        }
    }
    None
}

/// Returns the kernel of a text, before anything is made of it.
fn parsed(text: &str, rng: &mut Rng) -> Result<Kernel, Outcome> {
    let kernel = Kernel::from_named_wgsl("fuzz.wgsl", text).map_err(|_| Outcome::Refused)?;
    let names = kernel.entry_points().unwrap_or_default();
    if names.is_empty() {
        return Err(Outcome::Passed);
    }
    let mut kernel = kernel.with_entry_point(rng.pick::<String>(&names)).map_err(|_| Outcome::Passed)?;
    let overrides = kernel.reflection().map_err(|_| Outcome::Passed)?.overrides.clone();
    if !overrides.is_empty() && rng.one_in(2) {
        let number = if rng.one_in(4) { rng.number() as f64 / 3.0 } else { rng.number() as f64 };
        kernel = kernel.with_override(&rng.pick(&overrides).name, number).map_err(|_| Outcome::Passed)?;
    }
    Ok(kernel)
}

/// Everything that a text goes through: the front end, reflection, bytecode, the executor, and now and then its other forms.
fn through(text: &str, rng: &mut Rng) -> Outcome {
    let kernel = match parsed(text, rng) {
        Ok(kernel) => kernel,
        Err(outcome) => return outcome,
    };
    let seen = if rng.one_in(5) { look(rng.below(LOOKS), &kernel, rng) } else { None };
    match (seen, kernel.program()) {
        (Some(outcome), _) => outcome,
        (None, Ok(program)) => run(program, rng),
        (None, Err(_)) => Outcome::Passed,
    }
}

/// A kernel as it is, and all that is made of it.
fn whole(text: &str, rng: &mut Rng) -> Outcome {
    match parsed(text, rng) {
        Ok(kernel) => {
            for which in 0..LOOKS {
                look(which, &kernel, rng);
            }
            kernel.program().map_or(Outcome::Passed, |program| run(program, rng))
        }
        Err(outcome) => outcome,
    }
}

/// Whole kernels: small ones more often than large ones, whose time goes into what the small ones show as well.
fn pick(rng: &mut Rng, sorted: usize) -> usize {
    let part = *rng.pick(&[4, 4, 4, 2, 2, 1]);
    rng.below(sorted / part)
}

pub fn texts() -> Input {
    let corpus = corpus();
    let split: Vec<Vec<String>> = corpus.iter().map(|text| tokens(text)).collect();
    let made = Made::new();
    Box::new(move |rng| {
        if let Some(text) = usize::try_from(rng.input).ok().and_then(|input| corpus.get(input)) {
            return whole(text, rng);
        }
        let mut text = match rng.below(256) {
            0..=1 => tokens(&made.pick(rng)),
            2..=7 => split[pick(rng, split.len())].clone(),
            _ => tokens(&tiny::text(rng)),
        };
        match rng.below(8) {
            0..=1 => {}
            2..=4 => gently(rng, &mut text),
            5..=6 => {
                let other = rng.pick(&split).clone();
                roughly(rng, &mut text, &other);
            }
            _ => {
                let mut bytes = text.concat().into_bytes();
                mutate::bytes(rng, &mut bytes, b"", 6);
                return through(&String::from_utf8_lossy(&bytes), rng);
            }
        }
        through(&text.concat(), rng)
    })
}

/// Returns naga's answer: nothing where it panics, which Cantus makes an error.
fn contained<T>(work: impl FnOnce() -> Option<T>) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok()?
}

/// naga's modules, changed and validated again: what no text leads to may come out.
pub fn modules() -> Input {
    let parse = |text: &String| contained(|| naga::front::wgsl::parse_str(text).ok());
    let corpus: Vec<naga::Module> = corpus().iter().filter_map(parse).collect();
    let made: Vec<naga::Module> = (0..64).filter_map(|seed| parse(&Made::make(seed))).collect();
    let small: Vec<naga::Module> = (0..1024).filter_map(|seed| parse(&tiny::text(&mut Rng::new(seed)))).collect();
    Box::new(move |rng| {
        let chosen = |from: &[naga::Module], rng: &mut Rng| rng.pick(from).clone();
        let mut module = match rng.below(256) {
            0..=1 => chosen(&made, rng),
            2..=7 => corpus[pick(rng, corpus.len())].clone(),
            // Parsing takes longer than the rest.
            8..=23 => parse(&tiny::text(rng)).unwrap_or_else(|| chosen(&small, rng)),
            _ => chosen(&small, rng),
        };
        if !rng.one_in(4) {
            change(&mut module, rng);
        }
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
        validator.subgroup_stages(naga::valid::ShaderStages::all()).subgroup_operations(SubgroupOperationSet::all());
        let Some(info) = contained(|| validator.validate(&module).ok()) else { return Outcome::Refused };
        let constants = Default::default();
        let name = module.entry_points.first().map(|entry| entry.name.clone()).unwrap_or_default();
        let stage = Some((naga::ShaderStage::Compute, name.as_str()));
        let resolved = contained(|| {
            naga::back::pipeline_constants::process_overrides(&module, &info, stage, &constants)
                .map(|(module, info)| (module.into_owned(), info.into_owned()))
                .ok()
        });
        let Some((module, info)) = resolved else { return Outcome::Passed };
        // Of the processor: whoever stops this process for a while is no hang.
        let begin = crate::own_processor_time();
        let compiled = cantus::spmd::compile(&module, &info, 0);
        let took = crate::own_processor_time().saturating_sub(begin);
        assert!(took < Duration::from_secs(50), "it takes too long to compile");
        match compiled {
            Ok(program) => run(&program, rng),
            Err(_) => Outcome::Passed,
        }
    })
}

/// Changes a few expressions: operators, operands, literals.
fn change(module: &mut naga::Module, rng: &mut Rng) {
    use naga::{BinaryOperator as B, Expression, Literal};
    let functions = module.functions.iter_mut().map(|(_, function)| function);
    let mut functions: Vec<&mut naga::Function> =
        functions.chain(module.entry_points.iter_mut().map(|entry| &mut entry.function)).collect();
    if functions.is_empty() {
        return;
    }
    let place = rng.below(functions.len());
    let function = &mut *functions[place];
    let handles: Vec<naga::Handle<Expression>> = function.expressions.iter().map(|(handle, _)| handle).collect();
    if handles.is_empty() {
        return;
    }
    for _ in 0..=rng.below(2) {
        let at = *rng.pick(&handles);
        let earlier: Vec<_> = handles.iter().copied().filter(|handle| *handle < at).collect();
        let other = if earlier.is_empty() { at } else { *rng.pick(&earlier) };
        let swap = rng.one_in(3);
        match &mut function.expressions[at] {
            Expression::Literal(literal) => match literal {
                Literal::U32(value) => *value = rng.number() as u32,
                Literal::I32(value) => *value = rng.number() as i32,
                Literal::F32(value) => *value = f32::from_bits(rng.number() as u32),
                Literal::Bool(value) => *value = !*value,
                _ => {}
            },
            Expression::Binary { left, .. } if swap => *left = other,
            Expression::Binary { op, .. } => {
                *op = *rng.pick(&[
                    B::Add,
                    B::Subtract,
                    B::Multiply,
                    B::Divide,
                    B::Modulo,
                    B::And,
                    B::ExclusiveOr,
                    B::InclusiveOr,
                    B::ShiftLeft,
                    B::ShiftRight,
                    B::Less,
                ]);
            }
            Expression::Select { accept, .. } => *accept = other,
            Expression::Access { index, .. } => *index = other,
            Expression::AccessIndex { index, .. } => *index = (rng.number() % 9) as u32,
            Expression::Unary { expr, .. } | Expression::As { expr, .. } => *expr = other,
            Expression::Math { arg, .. } => *arg = other,
            Expression::Splat { value, .. } => *value = other,
            _ => {}
        }
    }
}

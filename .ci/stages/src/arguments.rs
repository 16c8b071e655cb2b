//! The command line.

/// `--help`.
pub const USAGE: &str = "Usage: ./test [--full | --all | --turn | --part NAME | --style | --python | --sanitize | --threads | --soak MINUTES | --fuzz MINUTES | --coverage MINUTES | --faults [ROUND] | --list] [--window]

Builds and runs the tests. At the end it lists the time of each stage, what failed and what did not run. Random inputs and devices
take turns: each run prints its turn, and CANTUS_TURN=N repeats one.

  --style            only what needs no build, in seconds: formatting of every workspace, spelling, words, workflows
  --full             every case also on one device beside the processor, and what the default lists as not run: proofs beside other
                     libraries, kernels compiled ahead, CUDA's and HIP's compilers, each backend alone, Python's types
  --turn             the stages of --full with the default's share of devices, and the parts of --all: both where the change touches
                     them (CI runs this): everything since CANTUS_BASE, or of the last four hours. Parts beyond CANTUS_PARTS minutes
                     together (10) are listed as not run
  --all              everything: all random programs and shapes on every device, OpenCL in full, the baseline instruction set, NEON
                     under QEMU, SwiftShader, Vulkan as on a GPU with its own memory, CUDA and HIP for every architecture, the
                     sanitizers, the audits
  --part NAME        one part of --all
  --list             the stages and parts, their minutes on two cores, and the paths whose change calls for them
  --python           only the Python package: a wheel in a fresh environment (the default checks its types alone, without a build)
  --sanitize         only what handles memory itself, under AddressSanitizer
  --threads          only what several threads do at once, under ThreadSanitizer (Debian: rustc-web, rust-web-src, cargo-web)
  --soak MINUTES     only mixed work of eight threads on each device: right numbers, flat memory
  --fuzz MINUTES     only hostile input, this workspace under AddressSanitizer, with figures for each class
                     (CANTUS_FUZZ_KEEP=FILE adds up those of several runs, up to a million inputs of each class)
  --coverage MINUTES the same without the sanitizer, and which lines it reaches (with llvm-cov of rustc's LLVM)
  --faults [ROUND]   only what shows that the default finds faults: plants those of .ci/faults in a copy of the tree, many at once, and fails
                     unless each one's own test fails. Two rounds; the first builds everything once more, below target/faults
  --window           also the window of `cantus view`, on a screen without a GPU
  --help             this text

Examples:
  ./test                                    before a pull request: ten minutes on two cores, the program built
  ./test --full                             what a clone should pass
  ./test --style                            before a commit
  ./test --part all_opencl                  one part
  CANTUS_TURN=512 ./test                    another run's turn
  cargo test -p cantus-tests --test tensor_ops softmax    one operation

On Debian as root it first installs software Vulkan, GL and OpenCL if they are missing; elsewhere the tests run without them.
CI=true also installs the compilers of CUDA and HIP, and fails if something cannot run.";

/// The stages to run.
#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    Default,
    Full,
    Turn,
    All,
    Part(String),
    List,
    Style,
    Python,
    Sanitize,
    Threads,
    Fuzz,
    Coverage,
    Soak,
    /// One round, or all of them.
    Faults(Option<usize>),
    Ci,
}

/// The arguments of the command line.
#[derive(Debug, PartialEq)]
pub struct Arguments {
    pub mode: Mode,
    /// True if the window is tested too.
    pub window: bool,
    /// How long hostile input or mixed work goes on.
    pub minutes: f64,
}

/// The arguments; `None` for `--help`, `Err` says what is wrong.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut found = Arguments { mode: Mode::Default, window: false, minutes: 10.0 };
    let mut arguments = arguments.peekable();
    while let Some(argument) = arguments.next() {
        let mode = match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            "--window" => {
                found.window = true;
                continue;
            }
            "--full" => Mode::Full,
            "--turn" => Mode::Turn,
            "--all" => Mode::All,
            "--part" => Mode::Part(arguments.next().ok_or("--part wants a name; --list has them")?),
            "--list" => Mode::List,
            "--style" => Mode::Style,
            "--python" => Mode::Python,
            "--sanitize" => Mode::Sanitize,
            "--threads" => Mode::Threads,
            "--fuzz" => Mode::Fuzz,
            "--coverage" => Mode::Coverage,
            "--soak" => Mode::Soak,
            "--faults" => {
                let round = arguments.peek().and_then(|round| round.parse().ok());
                Mode::Faults(round.inspect(|_| drop(arguments.next())))
            }
            "--ci" => Mode::Ci,
            other => return Err(format!("unknown option {other}")),
        };
        if found.mode != Mode::Default {
            return Err(format!("{argument} and another mode: one at a time"));
        }
        if let (Mode::Fuzz | Mode::Coverage | Mode::Soak, Some(minutes)) = (&mode, arguments.peek()) {
            match minutes.parse::<f64>() {
                Ok(minutes) if minutes > 0.0 && minutes.is_finite() => found.minutes = minutes,
                _ if minutes.starts_with("--") => {
                    found.mode = mode;
                    continue;
                }
                _ => return Err(format!("{argument} takes minutes, not {minutes}")),
            }
            arguments.next();
        }
        found.mode = mode;
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Arguments>, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read() {
        let of = |mode, window, minutes| Ok(Some(Arguments { mode, window, minutes }));
        assert_eq!(parsed(""), of(Mode::Default, false, 10.0));
        assert_eq!(parsed("--turn --window"), of(Mode::Turn, true, 10.0));
        assert_eq!(parsed("--fuzz 0.5"), of(Mode::Fuzz, false, 0.5));
        assert_eq!(parsed("--soak --window"), of(Mode::Soak, true, 10.0));
        assert_eq!(parsed("--part neon"), of(Mode::Part("neon".to_owned()), false, 10.0));
        assert_eq!(parsed("--faults"), of(Mode::Faults(None), false, 10.0));
        assert_eq!(parsed("--faults 2"), of(Mode::Faults(Some(2)), false, 10.0));
        assert_eq!(parsed("--all --help"), Ok(None));
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for wrong in ["--al", "--part", "--all --turn", "--fuzz ten", "--fuzz -1", "--faults all", "3"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}

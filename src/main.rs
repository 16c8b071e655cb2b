//! The `cantus` program. All of it is in `cli`, one file per subcommand.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}

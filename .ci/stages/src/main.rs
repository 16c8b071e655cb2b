//! The tests of Cantus, stage by stage: `./test` and `.ci/run` call it. It depends on nothing, so that it is there in seconds.

mod arguments;
mod reasons;
mod run;
mod table;
mod turn;

use std::process::ExitCode;

use arguments::{Arguments, Mode};
use run::Run;

fn main() -> ExitCode {
    let arguments = match arguments::parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{}", arguments::USAGE);
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("{wrong}\n\n{}", arguments::USAGE);
            return ExitCode::from(2);
        }
    };
    let turn = turn::turn();
    let mut run = match Run::begin(turn, arguments.window) {
        Ok(run) => run,
        Err(error) => {
            eprintln!("the list of what does not run cannot be kept: {error}");
            return ExitCode::FAILURE;
        }
    };
    stages(&arguments, turn, &mut run);
    run.end()
}

/// Runs what the arguments ask for.
fn stages(arguments: &Arguments, turn: u64, run: &mut Run) {
    let Arguments { mode, window, minutes } = arguments;
    match mode {
        Mode::List => table::list(),
        Mode::Ci => {
            for stage in table::ci() {
                match stage.unless_after.filter(|minutes| run.minutes() >= *minutes) {
                    Some(minutes) => {
                        run.left_out(&stage.name, &format!("{minutes} min have passed already: {}", stage.command))
                    }
                    None => drop(run.stage(&stage)),
                }
            }
        }
        Mode::Style | Mode::Python | Mode::Sanitize | Mode::Threads | Mode::Fuzz | Mode::Coverage | Mode::Soak => {
            for stage in table::alone(mode, *minutes) {
                run.stage(&stage);
            }
        }
        Mode::Part(name) => match table::parts().into_iter().find(|part| part.name == name.as_str()) {
            Some(part) => {
                run.prepare();
                run.part(&part);
            }
            None => run.wrong(&format!("there is no part {name}; ./test --list names them")),
        },
        Mode::Default | Mode::Turn | Mode::All => {
            run.prepare();
            println!("turn {turn} (CANTUS_TURN={turn} repeats it)");
            for stage in table::default(*window, turn) {
                if !run.stage(&stage) && stage.needed {
                    return;
                }
            }
            match mode {
                Mode::All => table::parts().iter().for_each(|part| run.part(part)),
                Mode::Turn => turn::touched_parts(turn, run),
                _ => run.left_out(
                    "the parts of --all",
                    "./test --all runs them, --turn those that the last change touches",
                ),
            }
        }
    }
}

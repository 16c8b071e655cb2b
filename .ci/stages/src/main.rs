//! The tests of Cantus, stage by stage: `./test` and `.ci/run` call it. It depends on nothing, so that it is there in seconds.

mod arguments;
mod faults;
mod plant;
mod reach;
mod reasons;
mod run;
mod table;
mod turn;

use std::process::ExitCode;

use arguments::{Arguments, Mode};
use reach::Change;
use run::Run;
use table::{Circle, Stage, Turn};

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
            let change = Change::read();
            for stage in table::ci() {
                if let Some(why) = why_not(&stage, &change, turn, run.minutes()) {
                    run.left_out(&stage.name, &why);
                } else {
                    run.stage(&stage);
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
        Mode::Faults(round) => {
            run.prepare();
            plant::faults(*round, turn, run);
        }
        Mode::Default | Mode::Full | Mode::Turn | Mode::All => {
            run.prepare();
            println!("turn {turn} (CANTUS_TURN={turn} repeats it)");
            let (circle, change) = match mode {
                Mode::Default => (Circle::Quick, Change::everything()),
                Mode::Turn => (Circle::Ci, Change::read()),
                _ => (Circle::Full, Change::everything()),
            };
            for stage in table::circle(circle, *window, turn) {
                if let Some(why) = why_not(&stage, &change, turn, 0) {
                    run.left_out(&stage.name, &why);
                } else if !run.stage(&stage) && stage.needed {
                    return;
                }
            }
            if circle == Circle::Quick {
                let why = "./test --full runs it, before what drivers or proofs stand on is shown to others";
                table::beyond_the_circle(turn, Circle::Full).iter().for_each(|stage| run.left_out(&stage.name, why));
                run.left_out("two thirds of the cases on devices beside the processor", why);
            }
            match mode {
                Mode::All => table::parts().iter().for_each(|part| run.part(part)),
                Mode::Turn => turn::touched_parts(&change, turn, run),
                _ => run.left_out(
                    "the parts of --all",
                    "./test --all runs them, --turn those that the last change touches",
                ),
            }
        }
    }
}

/// Returns why a stage of CI does not run now; `None` if it does.
fn why_not(stage: &Stage, change: &Change, turn: u64, minutes: u64) -> Option<String> {
    if !change.touches(stage.on) {
        return Some("the change touches nothing that it stands on".to_owned());
    }
    if let Some(Turn { number, of, folder }) = stage.turn
        && turn % of != number
        && !change.touches(&[folder])
    {
        return Some(format!("another turn's (CANTUS_TURN={number}), and the change touches nothing in {folder}"));
    }
    let limit = stage.unless_after.filter(|limit| minutes >= *limit)?;
    Some(format!("{limit} min have passed already: {}", stage.command))
}

//! `OutOfRange::Zero` does what the CPU executor does in memory: loads give zero, stores do nothing.

use cantus::translate::OutOfRange;
use kit::case::Case;
use kit::device::Target;
use kit::executor::Executor;
use kit::host_c::{self, HostC};
use kit::turn::has_turn;

#[test]
fn zero_is_what_the_executor_does() {
    // Of values the executor takes an element.
    let of_values = ["out_of_range.array_value", "out_of_range.constant_array"];
    let cases = kit::cases::all().into_iter().filter(|case| case.name.starts_with("out_of_range."));
    let cases = cases.filter(|case| !of_values.contains(&case.name.as_str()));
    let cases: Vec<Case> = (0..).zip(cases).filter(|(number, _)| has_turn(*number)).map(|(_, case)| case).collect();
    assert!(cases.len() > 4);
    let host = match HostC::with_options(&cases, host_c::OPTIONS.out_of_range(OutOfRange::Zero)) {
        Ok(host) => host,
        Err(reason) => {
            assert!(std::env::var_os("CANTUS_REQUIRE_CC").is_none(), "{reason}");
            kit::not_run("host C with zeros for what is out of range", &reason);
            return;
        }
    };
    for case in &cases {
        let run =
            |target: &dyn Target| target.run(case).unwrap_or_else(|failure| panic!("{}: {}", case.name, failure.0));
        assert_eq!(run(&host), run(&Executor), "{}", case.name);
    }
}

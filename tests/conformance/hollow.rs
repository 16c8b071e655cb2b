//! Devices that compute nothing. Every case must fail on both of them: one that does not is no test.

use std::sync::Arc;

use kit::case::{Case, Needs, Space, Values};
use kit::check::judge;
use kit::device::{Failure, Target};
use kit::inputs::Random;

enum Hollow {
    /// Leaves every binding as it was.
    Idle,
    /// Fills every writable binding with noise.
    Noisy,
}

impl Target for Hollow {
    fn name(&self) -> String {
        match self {
            Self::Idle => "a device that does nothing",
            Self::Noisy => "a device that writes noise",
        }
        .to_owned()
    }

    fn missing(&self, _: &Needs) -> Option<String> {
        None
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, Failure> {
        let mut random = Random::new(0xBAD);
        let finals = case.bindings.iter().map(|binding| {
            let mut bytes = binding.initial.bytes();
            if matches!(self, Self::Noisy) && binding.space == Space::ReadWrite {
                bytes.iter_mut().for_each(|b| *b = random.u32() as u8);
            }
            bytes
        });
        Ok(finals.collect())
    }
}

/// Cases whose right result is that nothing happens.
const STILL: &[&str] = &["dispatch.no_workgroups"];

/// The cases that pass although nothing was computed, each with the device that shows it.
pub fn cannot_fail(cases: &[Arc<Case>]) -> Vec<String> {
    let mut found = Vec::new();
    for target in [Hollow::Idle, Hollow::Noisy] {
        for case in cases.iter().filter(|c| !STILL.contains(&c.name.as_str())) {
            let bytes = target.run(case).unwrap_or_default();
            let finals: Vec<Values> =
                case.bindings.iter().zip(&bytes).map(|(b, bytes)| b.initial.decode(bytes)).collect();
            let judged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                (0..finals.len()).try_for_each(|i| judge(&case.bindings[i], i, &finals, false))
            }));
            if matches!(judged, Ok(Ok(()))) {
                found.push(format!("{} passes on {}", case.name, target.name()));
            }
        }
    }
    found
}

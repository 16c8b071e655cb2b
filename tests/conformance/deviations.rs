//! What is known to go wrong on a device that is not ours to mend. Each entry says why. An entry whose case passes is
//! a failure of this table.

/// What a listed case does on a listed device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It runs and its result is wrong, or the device refuses it.
    Fails,
    /// It must not be tried: it would take the process down.
    Crashes,
}

pub struct Deviation {
    /// Parts of the device's name, all of which must occur in it.
    device: &'static [&'static str],
    /// The case's name; a `*` at its end stands for anything.
    case: &'static str,
    pub known: Known,
    pub reason: &'static str,
}

const TABLE: &[Deviation] = &[];

/// The entry for a case on a device, if there is one.
pub fn find(device: &str, case: &str) -> Option<&'static Deviation> {
    TABLE.iter().find(|d| {
        let named = match d.case.strip_suffix('*') {
            Some(start) => case.starts_with(start),
            None => case == d.case,
        };
        named && d.device.iter().all(|part| device.contains(part))
    })
}

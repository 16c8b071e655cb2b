//! Small files in the cache folder: what was measured in an earlier run. They can all be made again, so none of them can fail anything.

use std::collections::BTreeMap;
use std::path::Path;

#[cfg(not(target_arch = "wasm32"))]
use crate::fnv::fnv;

/// Values by device, then by name.
pub(crate) type Kept = BTreeMap<String, BTreeMap<String, String>>;

/// Returns the contents written under that name. A file that is missing, damaged or foreign counts as empty.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub fn recall(folder: &Path, name: &str) -> Kept {
    let text = std::fs::read_to_string(folder.join(name)).ok();
    text.and_then(|text| parse(&text)).unwrap_or_default()
}

/// Writes it, whole or not at all. A folder that cannot be written costs a measurement next time.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub fn remember(folder: &Path, name: &str, kept: &Kept) {
    use std::io::Write as _;
    let _ = crate::files::write_cached(&folder.join(name), |file| file.write_all(text(kept).as_bytes()));
}

/// The key of a device in such a file: what was measured on another driver or by another version is measured again.
pub(crate) fn key(info: &crate::backend::DeviceInfo) -> String {
    format!("{} | {} | {} | {}", info.backend, info.name, info.driver, env!("CARGO_PKG_VERSION"))
}

/// The first line of such a file, before the checksum of the others.
#[cfg(not(target_arch = "wasm32"))]
const SUM: &str = "# checksum ";

/// TOML: a table for each device, whose values are strings. What would need escapes is left out, and measured again.
#[cfg(not(target_arch = "wasm32"))]
fn text(kept: &Kept) -> String {
    let plain = |text: &str| !text.contains(|c: char| c == '"' || c == '\\' || c.is_control());
    let mut lines = String::new();
    for (device, entries) in kept.iter().filter(|(device, _)| plain(device)) {
        lines.push_str(&format!("[\"{device}\"]\n"));
        for (name, value) in entries.iter().filter(|(name, value)| plain(name) && plain(value)) {
            lines.push_str(&format!("\"{name}\" = \"{value}\"\n"));
        }
    }
    sealed(&lines)
}

/// Returns the lines of such a file below their checksum.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
#[must_use]
pub fn sealed(lines: &str) -> String {
    format!("{SUM}{:016x}\n{lines}", fnv(lines.as_bytes()))
}

/// The text that [`text`] writes, and no more of TOML. One that was changed since is no measurement.
#[cfg(not(target_arch = "wasm32"))]
fn parse(text: &str) -> Option<Kept> {
    let (sum, text) = text.strip_prefix(SUM)?.split_once('\n')?;
    if u64::from_str_radix(sum, 16).ok()? != fnv(text.as_bytes()) {
        return None;
    }
    let mut kept = Kept::new();
    let mut entries = None;
    for line in text.lines() {
        if let Some(device) = line.strip_prefix("[\"").and_then(|line| line.strip_suffix("\"]")) {
            entries = Some(kept.entry(device.to_owned()).or_default());
        } else {
            let (name, value) = line.strip_prefix('"')?.strip_suffix('"')?.split_once("\" = \"")?;
            entries.as_mut()?.insert(name.to_owned(), value.to_owned());
        }
    }
    Some(kept)
}

#[cfg(target_arch = "wasm32")]
pub(crate) fn recall(_folder: &Path, _name: &str) -> Kept {
    Kept::new()
}

#[cfg(target_arch = "wasm32")]
pub(crate) fn remember(_folder: &Path, _name: &str, _kept: &Kept) {}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut kept = Kept::new();
        kept.entry("cpu | a [b] = c | 1.0 | é".to_owned()).or_default().insert("x = y".to_owned(), "z".to_owned());
        kept.entry("another".to_owned()).or_default().insert("sum".to_owned(), String::new());
        assert_eq!(parse(&text(&kept)), Some(kept.clone()));
        // What cannot be written as it is spoils nothing else.
        let mut more = kept.clone();
        more.entry("two\nlines".to_owned()).or_default().insert("a".to_owned(), "b".to_owned());
        more.entry("another".to_owned()).or_default().insert("quo\"te".to_owned(), "b".to_owned());
        assert_eq!(parse(&text(&more)), Some(kept));
    }

    #[test]
    fn one_bit_makes_it_another_file() {
        let mut kept = Kept::new();
        kept.entry("cpu".to_owned()).or_default().insert("sum".to_owned(), "64".to_owned());
        let whole = text(&kept).into_bytes();
        for place in 0..8 * whole.len() {
            let mut damaged = whole.clone();
            damaged[place / 8] ^= 1 << (place % 8);
            // A letter of the checksum in the other case is the same number.
            let read = std::str::from_utf8(&damaged).ok().and_then(parse);
            assert!(read.is_none() || read.as_ref() == Some(&kept), "bit {place}: {read:?}");
        }
    }
}

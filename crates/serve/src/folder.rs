//! The data folder. It is the operator's: its mode is never changed, and nothing in it is removed that does not carry the service's mark.
#![expect(clippy::disallowed_methods, reason = "at the start, before anybody is served")]

use std::path::{Path, PathBuf};

use crate::keys::random_hex;

/// The beginning of the names of folders that drivers write into; 32 hexadecimal digits follow.
const MARK: &str = ".cantus-drivers-";

/// Makes the folder, readable by its owner alone, or checks that it is.
///
/// # Errors
/// In words: it cannot be made, or others may read it, with the command that mends it.
pub fn own(folder: &Path) -> Result<(), String> {
    let shown = folder.display();
    match std::fs::metadata(folder) {
        Ok(found) if !found.is_dir() => Err(format!("{shown} is not a folder: give another one (--data)")),
        Ok(found) => closed(folder, &found),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(folder).map_err(|error| format!("cannot make {shown}: {error}"))
        }
        Err(error) => Err(format!("cannot read {shown}: {error}")),
    }
}

#[cfg(unix)]
fn closed(folder: &Path, found: &std::fs::Metadata) -> Result<(), String> {
    let mode = std::os::unix::fs::MetadataExt::mode(found) & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let shown = folder.display();
    Err(format!(
        "others may use {shown} (mode {mode:o}), and jobs and keys are their owners': chmod 700 {shown}, or give another folder (--data)"
    ))
}

#[cfg(not(unix))]
fn closed(_folder: &Path, _found: &std::fs::Metadata) -> Result<(), String> {
    Ok(())
}

/// A name in the data folder for what drivers write; nothing lies there yet.
///
/// # Errors
/// When the system gives no random numbers.
pub fn drivers(folder: &Path) -> Result<PathBuf, String> {
    Ok(folder.join(format!("{MARK}{}", random_hex::<16>()?)))
}

/// Removes what an earlier process left for its drivers. The caller alone has the folder.
pub fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix(MARK));
        let marked =
            digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        // A link is nothing that the service made.
        if marked && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_folder_of_others_is_refused_and_stays_as_it_is() {
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("deep/data");
        own(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        for open in [0o755, 0o750, 0o701, 0o1777] {
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(open)).unwrap();
            let reason = own(&folder).unwrap_err();
            assert!(reason.contains(&format!("chmod 700 {}", folder.display())), "{reason}");
            assert_eq!(mode(&folder), open);
        }
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o500)).unwrap();
        own(&folder).unwrap();
        std::fs::write(place.path().join("text"), "").unwrap();
        assert!(own(&place.path().join("text")).unwrap_err().contains("not a folder"));
    }

    #[test]
    fn only_what_is_marked_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let left = drivers(folder).unwrap();
        std::fs::create_dir_all(left.join("1/deep")).unwrap();
        let kept = ["drivers/deep", ".cantus-drivers-mine", ".cantus-drivers-0123"];
        for kept in kept {
            std::fs::create_dir_all(folder.join(kept)).unwrap();
        }
        std::os::unix::fs::symlink(folder.join("drivers"), drivers(folder).unwrap()).unwrap();
        std::fs::write(drivers(folder).unwrap(), "a file").unwrap();
        sweep(folder);
        assert!(!left.exists() && kept.iter().all(|kept| folder.join(kept).exists()));
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 5);
    }
}

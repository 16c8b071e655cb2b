//! A folder that belongs to this user alone. What drivers compiled is loaded from such a folder only: whoever may write there may run code
//! in this process. Figures of engines are published in such a folder only.

use std::io;
use std::path::{Path, PathBuf};

/// Returns the folder, made if it is missing, if nobody else may change what is in it; else a warning that begins with `consequence`.
pub fn open(folder: Option<PathBuf>, consequence: &str) -> Option<PathBuf> {
    let folder = folder?;
    match make(&folder) {
        Ok(()) => Some(folder),
        Err(error) => {
            tracing::warn!("{consequence} in {}: {error}", folder.display());
            None
        }
    }
}

/// Makes the folder for this user alone (mode 0700), or makes sure that it is.
#[cfg(unix)]
fn make(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};

    let refused = |folder: &Path, reason: &str| {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {reason}", folder.display())))
    };
    // SAFETY: the call takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let facts = std::fs::symlink_metadata(folder)?;
    if !facts.is_dir() || facts.uid() != user {
        return refused(folder, "is not a folder of this user (remove it, or set another folder)");
    }
    if facts.mode() & 0o022 != 0 {
        return refused(folder, "may be written by others (remove it)");
    }
    if facts.mode() & 0o077 != 0 {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    // Whoever may rename a folder above may put another one in its place, unless only owners may rename there (the sticky bit).
    let whole = folder.canonicalize()?;
    for above in whole.ancestors().skip(1) {
        let facts = std::fs::metadata(above)?;
        let foreign = facts.uid() != user && facts.uid() != 0;
        let open = facts.mode() & 0o022 != 0 && facts.mode() & 0o1000 == 0;
        if foreign || open {
            return refused(above, "belongs to another user or may be written by others (set another folder)");
        }
    }
    Ok(())
}

/// Elsewhere the folder has the rights of the user's cache folder around it.
#[cfg(not(unix))]
fn make(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::open;

    fn mode(folder: &std::path::Path) -> u32 {
        std::fs::metadata(folder).expect("is there").permissions().mode() & 0o7777
    }

    fn set(folder: &std::path::Path, mode: u32) {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).expect("is ours");
    }

    #[test]
    fn only_a_folder_of_this_user_alone_is_used() {
        let around = tempfile::tempdir().expect("is made");
        let folder = around.path().join("a").join("b");
        assert_eq!(open(Some(folder.clone()), "kept"), Some(folder.clone()));
        assert_eq!(mode(&folder), 0o700);
        // Others' permission to read is removed. A folder that others may write to is not trusted.
        set(&folder, 0o755);
        assert_eq!(open(Some(folder.clone()), "kept"), Some(folder.clone()));
        assert_eq!(mode(&folder), 0o700);
        set(&folder, 0o770);
        assert_eq!(open(Some(folder.clone()), "kept"), None);
        set(&folder, 0o700);
        set(&around.path().join("a"), 0o777);
        assert_eq!(open(Some(folder.clone()), "kept"), None);
        set(&around.path().join("a"), 0o1777);
        assert_eq!(open(Some(folder.clone()), "kept"), Some(folder.clone()));
        let link = around.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).expect("is made");
        assert_eq!(open(Some(link), "kept"), None);
        let file = around.path().join("file");
        std::fs::write(&file, "").expect("is written");
        assert_eq!(open(Some(file), "kept"), None);
        assert_eq!(open(None, "kept"), None);
        // One of another user: only root may give a folder away.
        if std::os::unix::fs::chown(&folder, Some(65_534), None).is_ok() {
            assert_eq!(open(Some(folder), "kept"), None);
        }
    }
}

//! Folders for a user's files, by the XDG base directories and by Apple's and Windows' rules.

use std::path::PathBuf;

/// Returns the folder for files that can be made again.
pub fn cache() -> Option<PathBuf> {
    if cfg!(windows) {
        named("LOCALAPPDATA")
    } else if cfg!(target_vendor = "apple") {
        in_home("Library/Caches")
    } else {
        named("XDG_CACHE_HOME").or_else(|| in_home(".cache"))
    }
}

/// Returns the folder for settings.
pub fn config() -> Option<PathBuf> {
    if cfg!(windows) {
        named("APPDATA")
    } else if cfg!(target_vendor = "apple") {
        in_home("Library/Application Support")
    } else {
        named("XDG_CONFIG_HOME").or_else(|| in_home(".config"))
    }
}

/// Returns the folder for files that live as long as processes do. The systems' folders for temporary files may be shared, so the user is part of the name.
pub fn runtime() -> PathBuf {
    #[cfg(unix)]
    if let Some(folder) = named("XDG_RUNTIME_DIR") {
        return folder.join("cantus");
    }
    #[cfg(unix)]
    // SAFETY: the call takes nothing and cannot fail.
    let name = format!("cantus-{}", unsafe { libc::geteuid() });
    #[cfg(not(unix))]
    let name = "cantus";
    std::env::temp_dir().join(name)
}

/// The folder in that variable; a relative one counts as not set, as the XDG specification has it.
fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|folder| folder.is_absolute())
}

fn in_home(folder: &str) -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(folder))
}

//! Vendors' libraries, loaded at run time.

use std::error::Error as _;
use std::ffi::c_void;
use std::path::Path;

use libloading::{Error, Library};

/// Loads a library, or says why it cannot be; the caller names it, and what to do.
///
/// # Safety
/// Its initialisers are run: it is a vendor's under its own name, or one that the user names.
pub unsafe fn load(path: &Path) -> Result<Library, String> {
    // SAFETY: the library's initialisers may run: it is a vendor's, or the user's choice (this function's contract).
    unsafe { Library::new(path) }.map_err(|error| reason(path, &error))
}

/// Returns a library's symbol under a name, if it has one, as a pointer of that type.
///
/// # Safety
/// `F` is the type of that function.
pub unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the address is the function's, which has type `F` (this function's contract); sizes agree.
    address(library, name).map(|address| unsafe { std::mem::transmute_copy(&address) })
}

/// An address in a library. The search is the same for all types of functions, of which there are dozens.
pub fn address(library: &Library, name: &str) -> Option<*mut c_void> {
    // SAFETY: only the address is taken.
    let found = unsafe { library.get::<*mut c_void>(name.as_bytes()) }.ok()?;
    Some(*found).filter(|address| !address.is_null())
}

/// The system's words without the name. On Windows they are the error's cause: the error itself says which function failed.
fn reason(path: &Path, error: &Error) -> String {
    if path.components().count() > 1 && !path.exists() {
        return "there is no such file".to_owned();
    }
    let words = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    words.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&words).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path) -> String {
        // SAFETY: neither is a library.
        unsafe { load(path) }.expect_err("it is not a library")
    }

    #[test]
    fn reasons_are_the_systems() {
        assert_eq!(refusal(Path::new("/nowhere/libnone.so")), "there is no such file");
        let missing = refusal(Path::new("libcantus-has-none.so"));
        assert!(!missing.is_empty() && !missing.starts_with("libcantus-has-none"), "{missing}");
        assert!(!missing.contains("LoadLibraryExW"), "{missing}");
        let file = tempfile::NamedTempFile::new().expect("is made");
        let damaged = refusal(file.path());
        assert!(!damaged.is_empty() && !damaged.contains(&file.path().display().to_string()), "{damaged}");
    }
}

//! The structures of Arrow's C data and C stream interfaces, which do not change. Arrow's own crate has a new major version every few months; these
//! structures have the same layout as those of all versions.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

/// `struct ArrowSchema`: the type of an array. Dropping it calls its release callback.
#[derive(Debug)]
#[repr(C)]
pub struct ArrowSchema {
    pub(super) format: *const c_char,
    pub(super) name: *const c_char,
    pub(super) metadata: *const c_char,
    pub(super) flags: i64,
    pub(super) n_children: i64,
    pub(super) children: *mut *mut ArrowSchema,
    pub(super) dictionary: *mut ArrowSchema,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub(super) private_data: *mut c_void,
}

/// `struct ArrowArray`: the memory of an array. Dropping it calls its release callback.
#[derive(Debug)]
#[repr(C)]
pub struct ArrowArray {
    pub(super) length: i64,
    pub(super) null_count: i64,
    pub(super) offset: i64,
    pub(super) n_buffers: i64,
    pub(super) n_children: i64,
    pub(super) buffers: *mut *const c_void,
    pub(super) children: *mut *mut ArrowArray,
    pub(super) dictionary: *mut ArrowArray,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub(super) private_data: *mut c_void,
}

/// `struct ArrowArrayStream`: arrays of one type, one after the other. Dropping it calls its release callback.
#[derive(Debug)]
#[repr(C)]
pub struct ArrowArrayStream {
    pub(super) get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    pub(super) get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    pub(super) get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    pub(super) private_data: *mut c_void,
}

macro_rules! structures {
    ($($name:ident { $($field:ident: $value:expr),* })*) => {$(
        // SAFETY: the interface lets any thread use and release a structure, one at a time.
        unsafe impl Send for $name {}

        impl $name {
            /// Returns a structure without contents, as if it were released.
            #[must_use]
            pub fn empty() -> Self {
                Self { $($field: $value,)* release: None, private_data: ptr::null_mut() }
            }

            /// Moves the contents out of a structure of another library's, which is left released.
            ///
            /// # Safety
            /// `from` points to a structure that is valid or released, and that nobody else uses meanwhile.
            pub unsafe fn take(from: *mut Self) -> Self {
                // SAFETY: `from` points to a structure that nobody else uses (this function's contract). The old place counts as
                // released, so that only the new one releases.
                unsafe { ptr::replace(from, Self::empty()) }
            }

            /// Returns whether it has no contents, or gave them away.
            #[must_use]
            pub fn is_released(&self) -> bool {
                self.release.is_none()
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: valid until it is released, which happens here, once: the callback clears itself.
                    unsafe { release(self) };
                }
            }
        }
    )*};
}

structures! {
    ArrowSchema {
        format: ptr::null(), name: ptr::null(), metadata: ptr::null(), flags: 0, n_children: 0, children: ptr::null_mut(),
        dictionary: ptr::null_mut()
    }
    ArrowArray {
        length: 0, null_count: 0, offset: 0, n_buffers: 0, n_children: 0, buffers: ptr::null_mut(), children: ptr::null_mut(),
        dictionary: ptr::null_mut()
    }
    ArrowArrayStream { get_schema: None, get_next: None, get_last_error: None }
}

// SAFETY: read only, and released from one thread: by the last owner.
unsafe impl Sync for ArrowArray {}
// SAFETY: a shared structure is only read.
unsafe impl Sync for ArrowSchema {}

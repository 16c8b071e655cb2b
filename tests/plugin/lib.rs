//! The simulator as a PJRT plugin in a library of its own: a program that is tested from outside has no other way to one that computes.

use std::ffi::c_void;

/// The table of the plugin's functions.
#[allow(non_snake_case, reason = "the header's name")]
#[unsafe(no_mangle)]
pub extern "C" fn GetPjrtApi() -> *const c_void {
    cantus::backend::pjrt::simulator_table()
}

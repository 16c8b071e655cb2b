//! WGSL in; everything known about it out.

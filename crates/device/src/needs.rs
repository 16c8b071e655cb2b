//! The features that a kernel needs from a device, checked before it is compiled there.

use super::{Capabilities, DeviceInfo};
use crate::error::{Bytes, Error, Result};
use crate::kernel::{AddressSpace, Reflection};

/// Returns the features that a kernel needs and the device lacks, each in words. `further`: counts that only some devices limit, as what is
/// counted, how many the kernel has and how many the device allows.
fn missing(reflection: &Reflection, capabilities: &Capabilities, further: &[(&str, u64, u32)]) -> Vec<String> {
    let limits = &capabilities.limits;
    let mut missing = Vec::new();
    let features = reflection.features.missing_from(capabilities.features);
    if !features.is_empty() {
        missing.push(format!("it needs {}, which the device lacks", features.join(", ")));
    }
    let count = |space| reflection.bindings.iter().filter(|binding| binding.space == space).count() as u64;
    let counts = [
        ("storage bindings", count(AddressSpace::Storage), limits.storage_bindings),
        ("uniform bindings", count(AddressSpace::Uniform), limits.uniform_bindings),
        ("invocations in a workgroup", reflection.invocations(), limits.workgroup_invocations),
    ];
    for (what, needed, limit) in counts.iter().chain(further) {
        if *needed > u64::from(*limit) {
            missing.push(format!("it has {needed} {what}, and the device allows {limit}"));
        }
    }
    for binding in reflection.bindings.iter().filter(|binding| binding.space == AddressSpace::Uniform) {
        let (bytes, limit) = (binding.layout.min_bytes(), limits.uniform_binding_bytes);
        if bytes > limit {
            let (bytes, limit) = (Bytes(bytes), Bytes(limit));
            missing.push(format!("its uniform \"{}\" takes {bytes}, and the device allows {limit}", binding.name));
        }
    }
    for (axis, (size, limit)) in ["x", "y", "z"].iter().zip(reflection.workgroup_size.iter().zip(limits.workgroup_size))
    {
        if *size > limit || *size == 0 {
            missing.push(format!("its workgroup size is {size} in {axis}, and the device allows 1 to {limit}"));
        }
    }
    if reflection.workgroup_bytes > limits.workgroup_bytes {
        let (has, limit) = (Bytes(reflection.workgroup_bytes.into()), Bytes(limits.workgroup_bytes.into()));
        missing.push(format!("it uses {has} of workgroup memory, and the device has {limit}"));
    }
    missing
}

/// As [`missing`], as the error of a kernel that cannot be compiled.
#[doc(hidden)]
pub fn check(reflection: &Reflection, device: &DeviceInfo, further: &[(&str, u64, u32)]) -> Result<()> {
    let missing = missing(reflection, &device.capabilities, further);
    if missing.is_empty() { Ok(()) } else { Err(unsupported(reflection, device, missing.join("; "), String::new())) }
}

/// Returns the error for a kernel that a device does not run; `report` is a compiler's or the place in the source.
#[doc(hidden)]
pub fn unsupported(reflection: &Reflection, device: &DeviceInfo, construct: String, report: String) -> Error {
    Error::Unsupported { kernel: reflection.entry_point.clone(), device: device.name.clone(), construct, report }
}

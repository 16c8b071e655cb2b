//! The limits that a device tells, held against what a kernel needs.

use super::Capabilities;
use crate::kernel::Reflection;

/// What a kernel needs beyond the device's features and limits, if it does.
pub(super) fn beyond(reflection: &Reflection, capabilities: &Capabilities) -> Option<String> {
    let limits = &capabilities.limits;
    let missing = reflection.features.missing_from(capabilities.features);
    let invocations = reflection.invocations();
    let size = reflection.workgroup_size;
    let bytes = reflection.workgroup_bytes;
    if !missing.is_empty() {
        Some(format!("it needs {}", missing.join(", ")))
    } else if invocations > u64::from(limits.workgroup_invocations) {
        Some(format!("its workgroup has {invocations} invocations, the limit is {}", limits.workgroup_invocations))
    } else if size.iter().zip(limits.workgroup_size).any(|(&side, limit)| side > limit) {
        Some(format!("its workgroup is {size:?}, the limit is {:?}", limits.workgroup_size))
    } else if bytes > limits.workgroup_bytes {
        Some(format!("it takes {bytes} bytes of workgroup memory, the limit is {}", limits.workgroup_bytes))
    } else {
        None
    }
}

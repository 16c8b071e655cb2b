//! Signs of a GPU on this machine, read without loading a driver.

/// False when this machine has no device node of any GPU driver, so that Vulkan could find software adapters only.
#[cfg(target_os = "linux")]
pub(crate) fn may_have_gpu() -> bool {
    const NODES: [&str; 10] =
        ["dri", "nvidiactl", "nvidia0", "dxg", "kfd", "mali0", "kgsl-3d0", "nvmap", "nvhost-gpu", "pvr_sync"];
    let named = ["VK_ICD_FILENAMES", "VK_DRIVER_FILES", "VK_ADD_DRIVER_FILES"];
    named.iter().any(|name| std::env::var_os(name).is_some())
        || NODES.iter().any(|node| std::path::Path::new("/dev").join(node).exists())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn may_have_gpu() -> bool {
    true
}

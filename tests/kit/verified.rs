//! The last verification of each target: the source of the README's table. The suite fails when a device named here does not run, and
//! `tests/suite/readme.rs` when the README disagrees.

/// The strongest way in which a target's kernels were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// On the device itself.
    Hardware,
    /// On a software device.
    Software,
    /// Compiled by the vendor's compiler, and run on a double of the vendor's library.
    Double,
}

/// A target of the README's table.
pub struct Verified {
    /// The target's name in the table's first column.
    pub target: &'static str,
    /// The table's last column.
    pub words: &'static str,
    pub how: How,
    /// Parts of the names of the suite's devices that it covers, one device each.
    pub devices: &'static [&'static [&'static str]],
    /// Parts of the names of devices that only reports in docs/hardware cover.
    pub reported: &'static [&'static [&'static str]],
}

pub const TABLE: &[Verified] = &[
    Verified {
        target: "`cuda`",
        words: "run on hardware: NVIDIA H100",
        how: How::Hardware,
        devices: &[],
        reported: &[&["cuda: ", "h100"]],
    },
    Verified {
        target: "`vulkan`",
        words: "run on hardware: NVIDIA H100; in CI on llvmpipe",
        how: How::Hardware,
        devices: &[&["vulkan: ", "llvmpipe"]],
        reported: &[&["vulkan: ", "h100"]],
    },
    Verified {
        target: "`wgpu`",
        words: "run on hardware: NVIDIA H100 (Vulkan); in CI on llvmpipe (Vulkan) and SwiftShader (WebGPU, experimental); Metal and DX12 experimental, not run",
        how: How::Hardware,
        devices: &[&["wgpu: ", "llvmpipe", "(vulkan)"]],
        reported: &[&["wgpu: ", "h100", "(vulkan)"]],
    },
    Verified {
        target: "`cpu`",
        words: "run on hardware: x86-64 (AVX-512, AVX2, baseline); NEON in CI under QEMU",
        how: How::Hardware,
        devices: &[&["cpu: "]],
        reported: &[],
    },
    Verified {
        target: "`opencl`",
        words: "run on a software device: PoCL; Intel's runtime for CPUs; on GPUs experimental",
        how: How::Software,
        devices: &[&["opencl: "]],
        reported: &[],
    },
    Verified {
        target: "`wgpu`, GL",
        words: "experimental, run on a software device: llvmpipe (GL)",
        how: How::Software,
        devices: &[&["wgpu: ", "(gl)"]],
        reported: &[],
    },
    Verified {
        target: "`hip`",
        words: "experimental, not run on hardware: kernels compile, host code runs on a stand-in for the driver",
        how: How::Double,
        devices: &[],
        reported: &[],
    },
    Verified {
        target: "`pjrt`",
        words: "experimental, not run on hardware: host code runs on a stand-in for the plugin and a simulator",
        how: How::Double,
        devices: &[],
        reported: &[],
    },
    Verified {
        target: "`ascend`",
        words: "experimental, not run on hardware: host code runs on a stand-in for the driver",
        how: How::Double,
        devices: &[],
        reported: &[],
    },
];

/// The devices of the table that are not among these.
pub fn missing(devices: &[String]) -> Vec<String> {
    let has = |parts: &[&str]| devices.iter().any(|name| parts.iter().all(|part| name.to_lowercase().contains(part)));
    let wanted = TABLE.iter().flat_map(|row| row.devices.iter().map(move |parts| (row, parts)));
    wanted
        .filter(|(_, parts)| !has(parts))
        .map(|(row, parts)| format!("{} ({})", row.target, parts.join(" ")))
        .collect()
}

//! How each target was last verified: the truth behind the README's table. The suite fails when a device named here does not run, and
//! `tests/suite/readme.rs` when the README says anything else.

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
    /// As the table's first column has it.
    pub target: &'static str,
    /// The table's last column.
    pub words: &'static str,
    pub how: How,
    /// Parts of the names of the suite's devices that it covers, one device each.
    pub devices: &'static [&'static [&'static str]],
    /// The same of devices that the suite does not meet: docs/hardware has their reports.
    pub reported: &'static [&'static [&'static str]],
}

pub const TABLE: &[Verified] = &[
    Verified {
        target: "`pjrt`",
        words: "loads XLA's plugin for CUDA, which names its reason; not run on hardware; its host code runs on a double and a simulator",
        how: How::Double,
        devices: &[],
        reported: &[],
    },
    Verified {
        target: "`hip`",
        words: "compiles (hiprtc: gfx90a, gfx1030; clang: gfx1100, gfx1201), not run on hardware; its host code runs on a double",
        how: How::Double,
        devices: &[],
        reported: &[],
    },
    Verified {
        target: "`ascend`",
        words: "not run on hardware; its host code runs on a double of its libraries",
        how: How::Double,
        devices: &[],
        reported: &[],
    },
    Verified {
        target: "`cuda`",
        words: "run on hardware: NVIDIA H100; in the tests compiled (NVRTC: sm_75, sm_90), kernels and host code run on a double",
        how: How::Hardware,
        devices: &[],
        reported: &[&["cuda: ", "h100"]],
    },
    Verified {
        target: "`vulkan`",
        words: "run on hardware: NVIDIA H100; in the tests llvmpipe under the validation layers, SwiftShader where it is installed",
        how: How::Hardware,
        devices: &[&["vulkan: ", "llvmpipe"]],
        reported: &[&["vulkan: ", "h100"]],
    },
    Verified {
        target: "`wgpu`",
        words: "run on hardware: NVIDIA H100 (Vulkan); in the tests llvmpipe (Vulkan)",
        how: How::Hardware,
        devices: &[&["wgpu: ", "llvmpipe", "(vulkan)"]],
        reported: &[&["wgpu: ", "h100", "(vulkan)"]],
    },
    Verified {
        target: "`opencl`",
        words: "run on a software device: PoCL; Intel's runtime for processors by turns",
        how: How::Software,
        devices: &[&["opencl: "]],
        reported: &[],
    },
    Verified {
        target: "`cpu`",
        words: "run on hardware: x86-64 (AVX-512, AVX2, baseline)",
        how: How::Hardware,
        devices: &[&["cpu: "]],
        reported: &[],
    },
    Verified {
        target: "`wgpu`, GL",
        words: "run on a software device: llvmpipe (GL)",
        how: How::Software,
        devices: &[&["wgpu: ", "(gl)"]],
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

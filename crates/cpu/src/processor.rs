//! The description of this machine's processor as a device.

use crate::backend::{Capabilities, DeviceInfo, DeviceKind, Execution, Limits};
use crate::kernel::Features;
use crate::spmd;
#[cfg(target_arch = "x86_64")]
use cantus_base::listed::Listed;

/// The backend's name.
pub(super) const NAME: &str = "cpu";
pub(super) const PRIORITY: i32 = 20;

pub(super) fn device_info() -> DeviceInfo {
    let threads = threads();
    let plural = if threads == 1 { "" } else { "s" };
    DeviceInfo {
        backend: NAME.to_owned(),
        index: 0,
        name: format!("{} ({threads} thread{plural})", processor_name()),
        kind: DeviceKind::Cpu,
        driver: format!("cantus {} ({})", env!("CARGO_PKG_VERSION"), spmd::instruction_set()),
        identity: crate::backend::Identity::default(),
        memory_bytes: cantus_base::memory::total(),
        priority: PRIORITY,
        capabilities: Capabilities {
            features: Features {
                f16: true,
                int64: true,
                float64: true,
                int16: true,
                subgroups: true,
                int64_atomics: true,
                float32_atomics: true,
                cooperative_matrix: true,
            },
            subgroup_sizes: Some((spmd::SUBGROUP_SIZE, spmd::SUBGROUP_SIZE)),
            subgroup_size_control: false,
            cooperative_matrix: false,
            timestamps: true,
            operation_graphs: false,
            execution: Execution::Executor,
            unified_memory: true,
            limits: Limits {
                buffer_bytes: isize::MAX as u64,
                storage_binding_bytes: spmd::MAX_BINDING_BYTES,
                uniform_binding_bytes: spmd::MAX_BINDING_BYTES,
                storage_bindings: 1024,
                uniform_bindings: 1024,
                workgroup_bytes: 1 << 20,
                workgroup_invocations: 4096,
                workgroup_size: [4096; 3],
                workgroups_per_dimension: u32::MAX,
                storage_alignment: 4,
            },
        },
    }
}

/// Threads that a device computes on: what `RAYON_NUM_THREADS` says, else as many as the system gives this process.
pub(super) fn threads() -> usize {
    #[cfg(not(target_arch = "wasm32"))]
    {
        let wanted = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
        let given = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        wanted.filter(|&threads| threads > 0).unwrap_or_else(given)
    }
    #[cfg(target_arch = "wasm32")]
    crate::threads::count()
}

/// The processor's own name for itself.
fn processor_name() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;
        if __cpuid(0x8000_0000).eax >= 0x8000_0004 {
            let leaves = [0x8000_0002, 0x8000_0003, 0x8000_0004].map(__cpuid);
            let words = leaves.iter().flat_map(|leaf| [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]);
            let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).take_while(|&byte| byte != 0).listed();
            let name = String::from_utf8_lossy(&bytes).trim().to_owned();
            if !name.is_empty() {
                return name;
            }
        }
    }
    format!("{} processor", std::env::consts::ARCH)
}

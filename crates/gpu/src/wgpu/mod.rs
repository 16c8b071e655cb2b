//! The wgpu backend: Vulkan, Metal, DX12, GL and browser WebGPU by one code path, async inside.
//!
//! Each adapter of each API is a device, named with its API. Real GPUs rank at 50, software adapters at 10; GL ranks below the CPU
//! (15 and 5), because wgpu and naga run it with known deviations from WGSL:
//! - indices out of range are not guarded beyond what the driver does: such a kernel may read or write anything it has bound;
//! - integer division by zero and `MIN / -1`, and float-to-integer conversions out of range, are left to the driver;
//! - there is one context for all threads, so that calls from several threads take turns, and a long kernel blocks them all;
//! - no subgroups, no 16- or 64-bit types.
//!
//! llvmpipe (Mesa's software driver, on Vulkan and GL) silently ends the loops of an invocation after 65,535 rounds in all: results of
//! kernels that loop longer are wrong there. It ranks below the CPU for this reason too.
//!
//! A device's parts: `memory` and `transfer` (buffers, writes, reads), `image`, `import` and `texture` (an app's textures), `program` (pipelines),
//! `queue` (batches), `checks` (what wgpu
//! would refuse, said first), `poll` (the thread without which no answer comes), `errors` (scopes). All of them
//! are made of what `shared` holds; `device` puts the trait over them.

mod adapter;
mod app;
mod checks;
mod device;
mod errors;
#[cfg(all(feature = "vulkan", target_os = "linux"))]
mod exported;
mod groups;
mod image;
#[cfg(feature = "wgsl")]
mod import;
mod matrices;
mod memory;
mod program;
mod queue;
mod shared;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
mod texture;
mod timestamps;
mod transfer;
mod uniforms;
mod work;

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use self::adapter::NAME;
pub use self::app::import_buffer;
use self::device::WgpuDevice;
#[cfg(all(feature = "vulkan", target_os = "linux"))]
pub use self::exported::{Exported, export};
#[cfg(feature = "wgsl")]
pub use self::import::import_texture;
#[cfg(feature = "wgsl")]
pub use self::texture::texture_format;
use super::matrices::Matrices;
use crate::backend::{Backend, BoxFuture, Buffer, Device, DeviceInfo, OpenOptions, Probe, devices_text};
use crate::error::{Error, Result};
#[cfg(not(target_arch = "wasm32"))]
use cantus_base::listed::Listed;

/// Finds and opens wgpu's adapters.
///
/// The first probe loads the drivers; what it finds is kept until the backend is dropped.
#[derive(Default)]
pub struct WgpuBackend {
    found: Mutex<Option<Arc<Found>>>,
}

/// The result of a probe, and the instance it belongs to.
struct Found {
    #[cfg_attr(
        not(target_arch = "wasm32"),
        expect(dead_code, reason = "keeps the drivers loaded between probe and open")
    )]
    instances: Vec<wgpu::Instance>,
    adapters: Vec<wgpu::Adapter>,
    probe: Probe,
}

cantus_base::opaque_debug!(WgpuBackend);

impl WgpuBackend {
    /// The backend. Nothing is loaded before the first probe.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    async fn found(&self) -> Arc<Found> {
        let known = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known {
            return known;
        }
        let found = Arc::new(find().await);
        // An empty result is not kept: a driver may be installed meanwhile.
        if !found.adapters.is_empty() {
            *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.clone());
        }
        found
    }

    async fn open_adapter(&self, index: usize, options: &OpenOptions) -> Result<Arc<dyn Device>> {
        let found = self.found().await;
        let Some(info) = found.probe.devices.get(index) else {
            let reason = found.probe.reason.clone();
            let count = found.probe.devices.len();
            let reason = reason.unwrap_or_else(|| devices_text(count));
            return Err(Error::NoDevice {
                wanted: format!("{NAME} device {index}"),
                reasons: vec![(NAME.to_owned(), reason)],
            });
        };
        let refused = |message: String| Error::Device {
            device: info.name.clone(),
            action: "opening the device".to_owned(),
            message,
        };
        #[cfg(not(target_arch = "wasm32"))]
        let adapter = found.adapters.get(index).ok_or_else(|| refused("the adapter is gone".to_owned()))?;
        // On the web an adapter makes one device only: a fresh one is asked for.
        #[cfg(target_arch = "wasm32")]
        let adapter = match found.instances.first() {
            Some(instance) => &request(instance, options).await.map_err(refused)?,
            None => return Err(refused("it is gone".to_owned())),
        };
        let matrices = adapter::matrices(adapter);
        let experimental_features = if matrices.are_used() {
            // SAFETY: the one experimental feature is that of cooperative matrices, whose kernels must give known answers first.
            unsafe { wgpu::ExperimentalFeatures::enabled() }
        } else {
            wgpu::ExperimentalFeatures::disabled()
        };
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("cantus"),
            required_features: adapter::wanted_features(adapter, &matrices),
            experimental_features,
            required_limits: adapter.limits(),
            memory_hints: if info.capabilities.unified_memory {
                wgpu::MemoryHints::MemoryUsage
            } else {
                wgpu::MemoryHints::Performance
            },
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = adapter.request_device(&descriptor).await.map_err(|error| refused(error.to_string()))?;
        let features = (device.features(), &matrices);
        let info = adapter::describe(index, &device.adapter_info(), features, &device.limits());
        tracing::debug!(device = %info.name, "opened");
        Ok(Arc::new(WgpuDevice::new(device, queue, info, matrices, options, true)))
    }
}

impl Backend for WgpuBackend {
    fn name(&self) -> &str {
        NAME
    }

    fn priority(&self) -> i32 {
        adapter::GPU
    }

    fn may_exceed(&self, priority: i32) -> bool {
        priority < adapter::SOFTWARE || (priority < adapter::GPU && super::nodes::may_have_gpu())
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        Box::pin(async { self.found().await.probe.clone() })
    }

    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        Box::pin(self.open_adapter(index, options))
    }
}

/// A device over an app's own wgpu device and queue, with the features and limits it was opened with.
///
/// The app's error callbacks stay as they are; errors of Cantus's own calls are caught in error scopes. Callbacks that the app
/// waits for may run on Cantus's poll thread.
#[must_use]
pub fn from_device(device: wgpu::Device, queue: wgpu::Queue, options: &OpenOptions) -> Arc<dyn Device> {
    // wgpu tells an adapter's products, and not a device's.
    let matrices = Matrices::lacking("a list of its products, which an app's own wgpu device does not tell");
    let features = device.features() - wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX;
    let info = adapter::describe(0, &device.adapter_info(), (features, &matrices), &device.limits());
    Arc::new(WgpuDevice::new(device, queue, info, matrices, options, false))
}

/// The wgpu buffer behind a buffer of this backend, to draw from without a copy. `None` for another backend's.
///
/// It is at least as large as the tensor, and the tensor starts at its first byte. Its usages are storage, uniform, vertex, index, indirect, copy
/// source and copy target, and of a buffer of the app's ([`import_buffer`]) those that the app chose. Submit what writes the tensor before what reads the
/// buffer.
#[must_use]
pub fn raw_buffer(buffer: &dyn Buffer) -> Option<&wgpu::Buffer> {
    let buffer: &dyn Any = buffer;
    buffer.downcast_ref::<memory::WgpuBuffer>()?.raw().map(|raw| &raw.buffer)
}

/// The wgpu device and queue behind a device of this backend. `None` for another backend's.
#[must_use]
pub fn raw_device(device: &dyn Device) -> Option<(&wgpu::Device, &wgpu::Queue)> {
    let device: &dyn Any = device;
    device.downcast_ref::<WgpuDevice>().map(|device| (&device.shared.device, &device.shared.queue))
}

fn instance(backends: wgpu::Backends) -> wgpu::Instance {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = backends;
    // No validation layers and no indirect validation unless the environment asks (WGPU_VALIDATION, WGPU_DEBUG): wgpu's own
    // validation stays on regardless.
    descriptor.flags = wgpu::InstanceFlags::empty().with_env();
    wgpu::Instance::new(descriptor)
}

/// Describes the adapters that can compute; the others' reasons are returned.
fn describe(adapters: Vec<wgpu::Adapter>) -> (Vec<wgpu::Adapter>, Vec<DeviceInfo>, Vec<String>) {
    let (mut usable, mut infos, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    for adapter in adapters {
        let (info, limits) = (adapter.get_info(), adapter.limits());
        let compute = adapter.get_downlevel_capabilities().flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS);
        match adapter::unusable(&info, &limits, compute) {
            Some(reason) => reasons.push(reason),
            None => {
                let matrices = adapter::matrices(&adapter);
                let features = adapter::wanted_features(&adapter, &matrices);
                infos.push(adapter::describe(infos.len(), &info, (features, &matrices), &limits));
                usable.push(adapter);
            }
        }
    }
    (usable, infos, reasons)
}

fn found(instances: Vec<wgpu::Instance>, adapters: Vec<wgpu::Adapter>, mut reasons: Vec<String>) -> Found {
    let (adapters, devices, unusable) = describe(adapters);
    reasons.extend(unusable);
    if devices.is_empty() {
        reasons.push(REMEDY.to_owned());
    }
    let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
    Found { instances, adapters, probe: Probe { devices, reason } }
}

#[cfg(target_arch = "wasm32")]
const REMEDY: &str =
    "this browser offers no WebGPU adapter (use a browser with WebGPU, and a secure context: https or localhost)";
#[cfg(target_os = "linux")]
const REMEDY: &str = "no Vulkan or GL driver was found (install the GPU's driver; a software one on Debian: apt-get install libvulkan1 mesa-vulkan-drivers)";
#[cfg(not(any(target_arch = "wasm32", target_os = "linux")))]
const REMEDY: &str = "no graphics driver that can compute was found (install or update the GPU's driver)";

/// Loads the drivers and lists their adapters, Vulkan's first and GL's last. A driver that fails in doing so is left out, with the
/// reason.
#[cfg(not(target_arch = "wasm32"))]
async fn find() -> Found {
    use wgpu::Backends;
    // The two take about as long as each other, so they load side by side.
    let (first, last) = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("cantus-gl-probe".to_owned());
        let gl = thread.spawn_scoped(scope, || list(&[Backends::GL]));
        let first = list(&[Backends::VULKAN, Backends::METAL, Backends::DX12]);
        let gl = gl.map_err(|error| error.to_string());
        let gl =
            gl.and_then(|thread| thread.join().unwrap_or_else(|panic| Err(crate::deep_stack::panic_text(&*panic))));
        (first, gl)
    });
    let (mut instances, mut adapters, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    for (listed, names) in [(first, "Vulkan, Metal or DX12"), (last, "GL")] {
        match listed {
            Ok((instance, listed)) => {
                instances.push(instance);
                adapters.extend(listed);
            }
            Err(reason) => reasons.push(format!("the {names} driver failed: {reason}")),
        }
    }
    found(instances, adapters, reasons)
}

/// The adapters of some APIs, in their order.
#[cfg(not(target_arch = "wasm32"))]
fn list(apis: &[wgpu::Backends]) -> std::result::Result<(wgpu::Instance, Vec<wgpu::Adapter>), String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let instance = instance(apis.iter().copied().collect());
        let adapters = apis.iter().flat_map(|api| pollster::block_on(instance.enumerate_adapters(*api))).listed();
        (instance, adapters)
    }))
    .map_err(|panic| crate::deep_stack::panic_text(&*panic))
}

#[cfg(target_arch = "wasm32")]
async fn find() -> Found {
    let instance = instance(wgpu::Backends::BROWSER_WEBGPU);
    match request(&instance, &OpenOptions::default()).await {
        Ok(adapter) => found(vec![instance], vec![adapter], Vec::new()),
        Err(reason) => found(vec![instance], Vec::new(), vec![reason]),
    }
}

#[cfg(target_arch = "wasm32")]
async fn request(instance: &wgpu::Instance, options: &OpenOptions) -> std::result::Result<wgpu::Adapter, String> {
    let power_preference =
        if options.low_power { wgpu::PowerPreference::LowPower } else { wgpu::PowerPreference::HighPerformance };
    let options = wgpu::RequestAdapterOptions { power_preference, ..wgpu::RequestAdapterOptions::default() };
    instance.request_adapter(&options).await.map_err(|error| error.to_string())
}

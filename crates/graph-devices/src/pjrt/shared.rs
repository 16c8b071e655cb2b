//! A client and its device: bytes to it and from it, and waiting. The parts of a PJRT device use it for transfers and events. Host memory that a plugin
//! still fills is leaked if its reader goes away early, since nothing can stop the plugin. Several devices share one client.

use std::ffi::c_void;
use std::sync::Arc;

use super::abi::{self, Args, BufferFromHost, Call, CopyToDevice, Fault, Layout, Number, Pair, ToHost};
use super::attempts::Attempts;
use super::event::Event;
use super::plugin::{Owned, Plugin};
use crate::tensor::DType;
use crate::wait::Awaited;
use cantus_base::listed::Listed;

/// Host memory that a plugin fills.
pub(super) struct Landing {
    bytes: Vec<u8>,
    event: Arc<Event>,
    attempts: Arc<Attempts>,
}

impl std::ops::Deref for Landing {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Landing {
    /// Leaks the memory if the reader is dropped early: the plugin may still write to it.
    fn drop(&mut self) {
        if !matches!(self.event.passed(), Ok(true)) {
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
        self.attempts.sweep();
    }
}

/// A client and its device.
pub(super) struct Pjrt {
    pub(super) plugin: Plugin,
    pub(super) client: Arc<Owned>,
    device: *mut c_void,
    /// The plugin's number for it.
    pub(super) id: i64,
    pub(super) attempts: Arc<Attempts>,
}

// SAFETY: the device's pointer is the client's, and PJRT's objects may be used from any thread.
unsafe impl Send for Pjrt {}
// SAFETY: PJRT allows calls for one client and one device from several threads at once.
unsafe impl Sync for Pjrt {}

impl Pjrt {
    pub(super) fn new(client: Arc<Owned>, (device, id): (*mut c_void, i64), attempts: Attempts) -> Self {
        Self { plugin: client.plugin, client, device, id, attempts: Arc::new(attempts) }
    }

    pub(super) fn to_device(&self, bytes: &[u8], dtype: DType, shape: &[usize]) -> Result<Arc<Owned>, Fault> {
        let sides: Vec<i64> = shape.iter().map(|&side| side as i64).listed();
        let null = std::ptr::null_mut;
        let made = self.plugin.call(
            Call::BufferFromHost,
            BufferFromHost {
                client: self.client.object,
                data: bytes.as_ptr().cast(),
                kind: abi::kind(dtype),
                sides: sides.as_ptr(),
                side_count: sides.len(),
                strides: std::ptr::null(),
                stride_count: 0,
                semantics: 0,
                device: self.device,
                memory: null(),
                layout: null(),
                done: null(),
                buffer: null(),
            },
        )?;
        self.plugin.destroy(Call::EventDestroy, made.done);
        Ok(self.buffer(made.buffer))
    }

    /// A buffer of another device of the client's, copied here.
    pub(super) fn copy_here(&self, buffer: &Owned) -> Result<Arc<Owned>, Fault> {
        let copy = CopyToDevice { buffer: buffer.object, device: self.device, copy: std::ptr::null_mut() };
        let copy = self.plugin.call(Call::BufferCopyToDevice, copy)?.copy;
        if copy.is_null() {
            return Err(Fault { code: abi::INTERNAL, message: "the plugin gave no copy".to_owned() });
        }
        Ok(self.buffer(copy))
    }

    pub(super) fn buffer(&self, buffer: *mut c_void) -> Arc<Owned> {
        Owned::new(self.plugin, buffer, Call::BufferDestroy, Some(self.client.clone()))
    }

    pub(super) fn to_host(&self, buffer: &Owned, rank: usize, bytes: usize) -> Result<(Landing, Arc<Event>), Fault> {
        let mut landing = vec![0; bytes];
        let order: Vec<i64> = (0..rank as i64).rev().listed();
        let layout = Layout {
            struct_size: size_of::<Layout>(),
            extension: std::ptr::null_mut(),
            tiled_size: 56,
            tiled_extension: std::ptr::null_mut(),
            minor_to_major: order.as_ptr(),
            minor_to_major_count: order.len(),
            tiles: [0; 3],
            kind: 0,
        };
        let started = self.plugin.call(
            Call::BufferToHost,
            ToHost {
                buffer: buffer.object,
                layout: &raw const layout,
                target: landing.as_mut_ptr().cast(),
                bytes: landing.len(),
                event: std::ptr::null_mut(),
            },
        )?;
        let event = self.event(started.event);
        Ok((Landing { bytes: landing, event: event.clone(), attempts: self.attempts.clone() }, event))
    }

    pub(super) fn event(&self, object: *mut c_void) -> Arc<Event> {
        Arc::new(Event(Owned::new(self.plugin, object, Call::EventDestroy, Some(self.client.clone()))))
    }
}

/// The devices of a client that this process may use, each with its number.
pub(super) fn devices(client: &Owned) -> Result<Vec<(*mut c_void, i64)>, Fault> {
    let plugin = client.plugin;
    let list = abi::List { object: client.object, list: std::ptr::null(), count: 0 };
    let list = plugin.call(Call::ClientAddressableDevices, list)?;
    if list.list.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the plugin gave the list, which lives as long as the client.
    let devices = unsafe { std::slice::from_raw_parts(list.list, list.count.min(abi::MOST_DEVICES)) };
    let id = |device: *mut c_void| {
        let description = plugin.call(Call::DeviceDescription, Pair { object: device, other: std::ptr::null_mut() })?;
        let id = plugin.call(Call::DescriptionId, Number { object: description.other, number: 0 })?;
        Ok((device, i64::from(id.number)))
    };
    devices.iter().map(|device| id(*device)).try_listed()
}

/// The name of a client's platform, and its version.
pub(super) fn platform(client: &Owned) -> (String, String) {
    let text = |call| client.plugin.text_of(call, client.object).unwrap_or_default();
    let version = text(Call::ClientPlatformVersion);
    (text(Call::ClientPlatformName), version.lines().next().unwrap_or_default().to_owned())
}

/// The kind of a device, as the plugin names it.
pub(super) fn title(plugin: Plugin, device: *mut c_void) -> Option<String> {
    let description =
        plugin.call(Call::DeviceDescription, Pair { object: device, other: std::ptr::null_mut() }).ok()?;
    plugin.text_of(Call::DescriptionKind, description.other).ok()
}

/// Its memory, where the plugin tells.
pub(super) fn memory(plugin: Plugin, device: *mut c_void) -> Option<u64> {
    if !plugin.has(Call::DeviceMemoryStats) {
        return None;
    }
    let asked = abi::MemoryStats { device: device as usize, ..abi::MemoryStats::default() };
    let stats = plugin.call(Call::DeviceMemoryStats, asked).ok()?;
    (stats.limit_is_set != 0).then(|| u64::try_from(stats.limit).ok()).flatten()
}

/// Keeps the size of an argument's structure with its type.
pub(super) fn nested<T>(body: T) -> Args<T> {
    Args::new(body)
}

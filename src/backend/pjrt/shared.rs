//! What the parts of an open device share: the client, values on the device, and waiting for them.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::abi::{self, Args, BufferFromHost, Call, Fault, Layout, Number, One, Pair, ToHost};
use super::plugin::{Owned, Plugin};
use crate::backend::health::Health;
use crate::backend::wait::{Awaited, Waiter};
use crate::backend::{DeviceInfo, MemoryFigures};
use crate::error::{Error, Result};
use crate::tensor::DType;

/// A point that the device reaches.
pub(super) struct Event(pub(super) Arc<Owned>);

impl Awaited for Event {
    type Fault = Fault;

    const ENDS: bool = false;

    fn passed(&self) -> std::result::Result<bool, Fault> {
        let plugin = self.0.plugin;
        let ready = plugin.call(Call::EventIsReady, Number { object: self.0.object, number: 0 })?;
        // A bool: its first byte.
        if ready.number & 0xff == 0 {
            return Ok(false);
        }
        plugin.call(Call::EventError, One { object: self.0.object }).map(|_| true)
    }

    fn block(&self) -> std::result::Result<(), Fault> {
        self.0.plugin.call(Call::EventAwait, One { object: self.0.object }).map(|_| ())
    }
}

/// A value on the device: a dtype, a shape, and the plugin's buffer.
#[derive(Clone)]
pub(super) struct OnDevice {
    pub(super) buffer: Arc<Owned>,
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
}

pub(super) struct Shared {
    pub(super) info: DeviceInfo,
    pub(super) plugin: Plugin,
    pub(super) client: Arc<Owned>,
    device: *mut c_void,
    /// The plugin's number for it.
    pub(super) id: i64,
    pub(super) health: Arc<Health>,
    pub(super) waiter: Waiter<Event>,
    figures: Mutex<MemoryFigures>,
    next: AtomicU64,
    /// The last execution.
    pub(super) last: Mutex<Option<Arc<Event>>>,
}

// SAFETY: the device's pointer is the client's, and PJRT's objects may be used from any thread.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    pub(super) fn new(
        info: DeviceInfo,
        client: Arc<Owned>,
        (device, id): (*mut c_void, i64),
        health: Arc<Health>,
        limit: Option<u64>,
    ) -> Self {
        Self {
            info,
            plugin: client.plugin,
            client,
            device,
            id,
            waiter: Waiter::new("cantus pjrt", health.clone()),
            health,
            figures: Mutex::new(MemoryFigures { limit, ..MemoryFigures::default() }),
            next: AtomicU64::new(1),
            last: Mutex::new(None),
        }
    }

    pub(super) fn figures(&self) -> MutexGuard<'_, MemoryFigures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn error(&self, fault: &Fault, action: &str, bytes: u64) -> Error {
        let device = self.info.name.clone();
        match fault.code {
            abi::RESOURCE_EXHAUSTED => Error::OutOfMemory { device, what: action.to_owned(), bytes },
            _ => Error::Device { device, action: action.to_owned(), message: fault.to_string() },
        }
    }

    /// Takes bytes to the device.
    pub(super) fn upload(&self, bytes: &[u8], dtype: DType, shape: &[usize]) -> std::result::Result<OnDevice, Fault> {
        let wanted = shape.iter().product::<usize>() * dtype.bytes();
        let Some(bytes) = bytes.get(..wanted) else {
            let message = format!("{} of {wanted} bytes", bytes.len());
            return Err(Fault { code: abi::INVALID_ARGUMENT, message });
        };
        let sides: Vec<i64> = shape.iter().map(|&side| side as i64).collect();
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
        Ok(self.value(made.buffer, dtype, shape.to_vec()))
    }

    pub(super) fn value(&self, buffer: *mut c_void, dtype: DType, shape: Vec<usize>) -> OnDevice {
        let buffer = Owned::new(self.plugin, buffer, Call::BufferDestroy, Some(self.client.clone()));
        OnDevice { buffer, dtype, shape }
    }

    /// Starts to fetch a value. The memory must live until the event has passed.
    pub(super) fn fetch(&self, value: &OnDevice, landing: &mut [u8]) -> std::result::Result<Arc<Event>, Fault> {
        let order: Vec<i64> = (0..value.shape.len() as i64).rev().collect();
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
                buffer: value.buffer.object,
                layout: &raw const layout,
                target: landing.as_mut_ptr().cast(),
                bytes: landing.len(),
                event: std::ptr::null_mut(),
            },
        )?;
        Ok(self.event(started.event))
    }

    pub(super) fn event(&self, object: *mut c_void) -> Arc<Event> {
        Arc::new(Event(Owned::new(self.plugin, object, Call::EventDestroy, Some(self.client.clone()))))
    }

    /// Waits, not longer than the time limit.
    pub(super) async fn wait(&self, event: Arc<Event>, what: &str) -> Result<()> {
        let ended = self.waiter.wait(self.number(), event, self.health.deadline()).await;
        ended.result(&self.health, what, |fault| self.error(&fault, what, 0))
    }
}

/// The devices of a client that this process may use, each with its number.
pub(super) fn devices(client: &Owned) -> std::result::Result<Vec<(*mut c_void, i64)>, Fault> {
    let plugin = client.plugin;
    let list = abi::List { object: client.object, list: std::ptr::null(), count: 0 };
    let list = plugin.call(Call::ClientAddressableDevices, list)?;
    const MOST: usize = 1024;
    if list.list.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the plugin gave the list, which lives as long as the client.
    let devices = unsafe { std::slice::from_raw_parts(list.list, list.count.min(MOST)) };
    let id = |device: *mut c_void| {
        let description = plugin.call(Call::DeviceDescription, Pair { object: device, other: std::ptr::null_mut() })?;
        let id = plugin.call(Call::DescriptionId, Number { object: description.other, number: 0 })?;
        Ok((device, i64::from(id.number)))
    };
    devices.iter().map(|device| id(*device)).collect()
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

//! Tensors' memory. A plugin's values are typed and never change: bytes wait on the host until a program says what they are, and what a program
//! gives takes the place of what was there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::abi::Fault;
use super::shared::{OnDevice, Shared};
use crate::backend::{Buffer, padded};
use crate::error::{Error, Result};
use crate::tensor::DType;

/// Where the contents are.
#[derive(Clone)]
pub(super) enum Held {
    Zeros,
    Host(Arc<Vec<u8>>),
    Device(OnDevice),
}

pub(super) struct PjrtBuffer {
    pub(super) shared: Arc<Shared>,
    pub(super) label: Arc<str>,
    bytes: u64,
    held: Mutex<Held>,
}

impl Buffer for PjrtBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for PjrtBuffer {
    fn drop(&mut self) {
        let mut figures = self.shared.figures();
        figures.in_use = figures.in_use.saturating_sub(self.bytes);
    }
}

impl PjrtBuffer {
    /// Counts it; the plugin takes memory when there is something to hold.
    pub(super) fn new(shared: &Arc<Shared>, bytes: u64, label: &str) -> Result<Self> {
        let largest = shared.info.capabilities.limits.buffer_bytes;
        let mut figures = shared.figures();
        if let Some(limit) = figures.limit.filter(|limit| figures.in_use.saturating_add(bytes) > *limit) {
            let in_use = figures.in_use;
            return Err(Error::MemoryLimit { what: label.to_owned(), requested: bytes, in_use, limit });
        }
        if bytes > largest {
            return Err(Error::OutOfMemory { device: shared.info.name.clone(), what: label.to_owned(), bytes });
        }
        figures.in_use += bytes;
        figures.allocations += 1;
        figures.peak = figures.peak.max(figures.in_use);
        drop(figures);
        Ok(Self { shared: shared.clone(), label: label.into(), bytes, held: Mutex::new(Held::Zeros) })
    }

    pub(super) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes on the host, zeros behind what a value has.
    pub(super) async fn contents(&self) -> Result<Vec<u8>> {
        let size = usize::try_from(padded(self.bytes)).unwrap_or(usize::MAX);
        let held = self.held().clone();
        let mut bytes = match held {
            Held::Zeros => Vec::new(),
            Held::Host(bytes) => bytes.to_vec(),
            Held::Device(value) => {
                let what = format!("reading {}", self.label);
                let mut landing = Landing(vec![0; value.shape.iter().product::<usize>() * value.dtype.bytes()]);
                let event = self
                    .shared
                    .fetch(&value, &mut landing.0)
                    .map_err(|fault| self.shared.error(&fault, &what, self.bytes))?;
                let waited = landing.until(&self.shared, event, &what).await;
                waited?
            }
        };
        bytes.resize(size, 0);
        Ok(bytes)
    }

    /// The contents as a value of that dtype and shape, on the device.
    pub(super) fn value(&self, dtype: DType, shape: &[usize]) -> std::result::Result<OnDevice, Fault> {
        let mut held = self.held();
        let value = match &*held {
            Held::Device(value) if value.dtype == dtype && value.shape == shape => return Ok(value.clone()),
            Held::Zeros => {
                let bytes = vec![0; shape.iter().product::<usize>() * dtype.bytes()];
                self.shared.upload(&bytes, dtype, shape)?
            }
            Held::Host(bytes) => self.shared.upload(bytes, dtype, shape)?,
            // The same bytes in another shape: by way of the host.
            Held::Device(value) => {
                let mut bytes = vec![0; value.shape.iter().product::<usize>() * value.dtype.bytes()];
                let event = self.shared.fetch(value, &mut bytes)?;
                crate::backend::wait::Awaited::block(&*event)?;
                self.shared.upload(&bytes, dtype, shape)?
            }
        };
        *held = Held::Device(value.clone());
        Ok(value)
    }
}

/// Host memory that a plugin fills. Where the reader goes away before, it is left behind: the plugin may still write to it.
struct Landing(Vec<u8>);

impl Landing {
    async fn until(mut self, shared: &Shared, event: Arc<super::shared::Event>, what: &str) -> Result<Vec<u8>> {
        let mut guard = Guard(Some(std::mem::take(&mut self.0)));
        shared.wait(event, what).await?;
        Ok(guard.0.take().unwrap_or_default())
    }
}

struct Guard(Option<Vec<u8>>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(bytes) = self.0.take() {
            std::mem::forget(bytes);
        }
    }
}

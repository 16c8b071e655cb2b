//! Tensors' memory. A device's values are typed and never change: bytes wait on the host until a program says what they are, and what a program
//! gives takes the place of what was there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::shared::{OnDevice, Shared};
use super::target::Target;
use crate::backend::{Buffer, padded};
use crate::error::{Error, Result};
use crate::tensor::DType;

/// The place of the contents.
pub(super) enum Held<T: Target> {
    Zeros,
    Host(Arc<Vec<u8>>),
    Device(OnDevice<T>),
}

impl<T: Target> Clone for Held<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Zeros => Self::Zeros,
            Self::Host(bytes) => Self::Host(bytes.clone()),
            Self::Device(value) => Self::Device(value.clone()),
        }
    }
}

pub(super) struct ValueBuffer<T: Target> {
    pub(super) shared: Arc<Shared<T>>,
    pub(super) label: Arc<str>,
    bytes: u64,
    held: Mutex<Held<T>>,
}

impl<T: Target> Buffer for ValueBuffer<T> {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<T: Target> Drop for ValueBuffer<T> {
    fn drop(&mut self) {
        let mut figures = self.shared.figures();
        figures.in_use = figures.in_use.saturating_sub(self.bytes);
    }
}

impl<T: Target> ValueBuffer<T> {
    /// Counts it; the device takes memory when there is something to hold.
    pub(super) fn new(shared: &Arc<Shared<T>>, bytes: u64, label: &str) -> Result<Self> {
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

    pub(super) fn held(&self) -> MutexGuard<'_, Held<T>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes on the host, zeros behind what a value has.
    pub(super) async fn contents(&self) -> Result<Vec<u8>> {
        let held = self.held().clone();
        match held {
            Held::Device(value) => Ok(self.whole(&self.fetched(&value).await?)),
            held => Ok(self.whole(&Self::here(&held))),
        }
    }

    /// The same, waited for on this thread.
    pub(super) fn now(&self) -> Result<Vec<u8>> {
        pollster::block_on(self.contents())
    }

    fn here(held: &Held<T>) -> Arc<Vec<u8>> {
        match held {
            Held::Host(bytes) => bytes.clone(),
            Held::Zeros | Held::Device(_) => Arc::default(),
        }
    }

    fn whole(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        bytes.resize(usize::try_from(padded(self.bytes)).unwrap_or(usize::MAX), 0);
        bytes
    }

    async fn fetched(&self, value: &OnDevice<T>) -> Result<T::Landing> {
        let what = format!("reading {}", self.label);
        let started = self.shared.target.fetch(&value.value, value.dtype, &value.shape);
        let (landing, event) = started.map_err(|fault| self.shared.error(&fault, &what, self.bytes))?;
        self.shared.wait(event, &what).await?;
        Ok(landing)
    }

    /// The contents as a value of that dtype and shape, on the device.
    pub(super) fn value(&self, dtype: DType, shape: &[usize]) -> Result<T::Value> {
        let mut held = self.held();
        let fault = |fault: T::Fault| self.shared.error(&fault, &format!("moving {}", self.label), self.bytes);
        let value = match &*held {
            Held::Device(value) if value.dtype == dtype && value.shape == shape => return Ok(value.value.clone()),
            Held::Zeros => self.shared.upload(&[], dtype, shape).map_err(fault)?,
            Held::Host(bytes) => self.shared.upload(bytes, dtype, shape).map_err(fault)?,
            // The same bytes in another shape: by way of the host.
            Held::Device(value) => {
                let bytes = pollster::block_on(self.fetched(value))?;
                self.shared.upload(&bytes, dtype, shape).map_err(fault)?
            }
        };
        *held = Held::Device(value.clone());
        Ok(value.value)
    }
}

//! Opening a device: its context and stream.

use std::sync::Arc;

use super::library::Library;
use super::memory::{Context, Stream};
use super::program::Ascend;
use crate::backend::{DeviceInfo, OpenOptions};
use crate::error::{Error, Result};
use crate::values::ValueDevice;

pub(super) fn open(library: &Arc<Library>, info: &DeviceInfo, options: &OpenOptions) -> Result<ValueDevice<Ascend>> {
    let context = Context::new(library.clone(), i32::try_from(info.index).unwrap_or(i32::MAX));
    let opened = context.and_then(|context| Ok((context.memory(), Stream::new(context, options.timeout)?)));
    let (memory, stream) = opened.map_err(|fault| Error::NoDevice {
        wanted: format!("the device {}", info.name),
        reasons: vec![(info.driver.clone(), fault.to_string())],
    })?;
    let mut info = info.clone();
    info.memory_bytes = memory;
    Ok(ValueDevice::new("cantus ascend", info, Ascend::new(stream), options))
}

//! One field by several devices: rows go to whichever is free, and the values are those of one device.
//!
//! cargo run --release --example several_devices -- cuda:0 cpu

use cantus::backend::{DeviceInfo, DeviceKind, Registry};
use cantus::group::{Done, Group};
use cantus::ops::field::{FieldParams, GroupField};
use cantus::{Config, Result};

/// Every GPU of this machine once, however many ways lead to it, and the processor.
pub fn found() -> Vec<String> {
    let survey = cantus::engine::survey(&Registry::with_defaults(), &Config::default());
    let mut gpus: Vec<DeviceInfo> = Vec::new();
    for device in survey.backends.into_iter().flat_map(|backend| backend.devices) {
        let is_gpu = matches!(device.kind, DeviceKind::DiscreteGpu | DeviceKind::IntegratedGpu);
        if is_gpu && !gpus.iter().any(|other| other.identity.is_same(&device.identity)) {
            gpus.push(device);
        }
    }
    let gpus = gpus.iter().map(|device| format!("{}:{}", device.backend, device.index));
    gpus.chain(["cpu".to_owned()]).collect()
}

/// A field by these devices together.
///
/// # Errors
/// A device that is not there; what all of them answer, when none is left.
pub fn together(devices: &[String], params: &FieldParams) -> Result<Done<Vec<f32>>> {
    Group::open(devices)?.field(params)
}

/// The devices of the command line, or all that there are.
pub fn main() -> Result<()> {
    let named: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let devices = if named.is_empty() { found() } else { named };
    let field = together(&devices, &FieldParams::new(600, 400))?;
    println!("{field}");
    Ok(())
}

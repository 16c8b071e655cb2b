//! NVIDIA's GPUs, by the driver's library NVML.

use std::path::Path;

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;

use crate::{Device, Process, Reading};

#[derive(Debug)]
pub struct Library(Nvml);

fn reading<T>(result: Result<T, NvmlError>) -> Reading<T> {
    Reading(result.map_err(|error| match error {
        NvmlError::NotSupported => "this GPU does not report it".to_owned(),
        NvmlError::NoPermission => "this user may not read it".to_owned(),
        NvmlError::GpuLost => "the GPU is lost".to_owned(),
        other => format!("NVML: {other}"),
    }))
}

impl Library {
    pub fn open(path: Option<&Path>) -> Result<Self, String> {
        let opened = match path {
            Some(path) => Nvml::builder().lib_path(path.as_os_str()).init(),
            None => Nvml::init(),
        };
        opened.map(Self).map_err(|error| match error {
            NvmlError::LibloadingError(_) => "its driver's library NVML is not there".to_owned(),
            other => format!("NVML: {other}"),
        })
    }

    pub fn devices(&self) -> Result<Vec<Device>, String> {
        let count = reading(self.0.device_count()).0?;
        Ok((0..count).map(|index| self.device(index)).collect())
    }

    fn device(&self, index: u32) -> Device {
        let gpu = match reading(self.0.device_by_index(index)).0 {
            Ok(gpu) => gpu,
            Err(reason) => return Device::unknown(&format!("NVIDIA GPU {index}"), "nvml", None, &reason),
        };
        let name = gpu.name().unwrap_or_else(|_| format!("NVIDIA GPU {index}"));
        let pci = gpu.pci_info().ok();
        let pci = pci.map(|pci| format!("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device));
        let mut device = Device::unknown(&name, "nvml", pci, "NVML does not report it");
        match reading(gpu.memory_info()).0 {
            Ok(memory) => {
                device.memory_total_bytes = Reading(Ok(memory.total));
                device.memory_used_bytes = Reading(Ok(memory.used));
                device.memory_free_bytes = Reading(Ok(memory.free));
            }
            Err(reason) => {
                for figure in
                    [&mut device.memory_total_bytes, &mut device.memory_used_bytes, &mut device.memory_free_bytes]
                {
                    *figure = Reading::none(&reason);
                }
            }
        }
        device.utilisation_percent = reading(gpu.utilization_rates().map(|rates| f64::from(rates.gpu)));
        device.temperature_celsius = reading(gpu.temperature(TemperatureSensor::Gpu).map(f64::from));
        device.power_watts = reading(gpu.power_usage().map(|milliwatts| f64::from(milliwatts) / 1000.0));
        device.clock_mhz = reading(gpu.clock_info(Clock::SM).map(f64::from));
        device.memory_clock_mhz = reading(gpu.clock_info(Clock::Memory).map(f64::from));
        device.processes = reading(gpu.running_compute_processes().map(|processes| {
            let process = |process: nvml_wrapper::struct_wrappers::device::ProcessInfo| Process {
                pid: process.pid,
                memory_bytes: match process.used_gpu_memory {
                    UsedGpuMemory::Used(bytes) => Some(bytes),
                    UsedGpuMemory::Unavailable => None,
                },
            };
            processes.into_iter().map(process).collect()
        }));
        device
    }
}

//! A program that knows nothing of Cantus, and asks wgpu for what lies below it: with `CANTUS_WGPU=1` there is nothing of a driver's, and no call panics.
//! Without, all is as before.
//!
//! Ours answers for whichever backend is asked for. `as_hal` says `None` for the instance and the objects, where a driver's says `Some`.

use wgpu::hal::api;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Returns whether objects that are made for this backend are of it, each by itself.
fn found<A: wgpu::hal::Api>(backend: wgpu::Backends) -> Outcome<Option<(String, [bool; 5])>> {
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor { backends: backend, ..descriptor });
    let Ok(adapter) = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())) else {
        return Ok(None);
    };
    let info = adapter.get_info();
    if wgpu::Backends::from(info.backend) != backend {
        return Err(format!("{backend:?} was asked for, and {:?} answered", info.backend).into());
    }
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        required_limits: wgpu::Limits::downlevel_defaults(),
        ..wgpu::DeviceDescriptor::default()
    }))?;
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 64,
        usage: wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    // SAFETY: nothing is done with what is found.
    let found = unsafe {
        [
            instance.as_hal::<A>().is_some(),
            adapter.as_hal::<A>().is_some(),
            device.as_hal::<A>().is_some(),
            queue.as_hal::<A>().is_some(),
            buffer.as_hal::<A>().is_some(),
        ]
    };
    Ok(Some((info.name, found)))
}

fn main() -> Outcome<()> {
    let is_ours = std::env::var("CANTUS_WGPU").is_ok_and(|value| value == "1");
    let all =
        [("Vulkan", found::<api::Vulkan>(wgpu::Backends::VULKAN)?), ("GL", found::<api::Gles>(wgpu::Backends::GL)?)];
    for (backend, found) in all {
        match found {
            Some((name, found)) => {
                println!("  {backend}: {name}, objects of its own: {found:?}");
                if found != [!is_ours; 5] {
                    return Err(format!("{backend}: as_hal is wrong").into());
                }
            }
            None if is_ours => return Err(format!("{backend} has no adapter").into()),
            None => println!("  {backend}: no adapter"),
        }
    }
    Ok(())
}

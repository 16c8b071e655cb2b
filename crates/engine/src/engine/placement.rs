//! Placement: the device for an operation that creates data is the one with the least estimated time.
//!
//! - **Who asks.** Tensors from host values (`tensor_from_bytes_async`), and results of operations that read no tensor (`output_async` without `near`).
//!   All other results stay beside what they are computed from, and zeros go to the selected device. Tensors move later only if a dispatch needs them
//!   elsewhere.
//! - **The estimate** is a launch, plus the bytes from the host and the elements times what each costs on the device (`Cost::estimate`). The field kernel
//!   represents all kernels. `measure` runs it small and large, and times an upload, on an engine of its own over the same device; the least of four
//!   rounds counts. Costs are kept by device and driver in the cache folder (`placement.toml`).
//! - **Who competes.** Only the selected device and the CPU, and only if the selected device is a GPU that nobody requested by name and that runs
//!   kernels. With `Builder::placement(false)` nothing is measured.
//! - **Failures** never surface. A device that cannot be measured has infinite costs for this engine, which are not stored. Without an estimate the
//!   selected device is taken.
//!
//! An example: with a launch of 40 µs on a GPU and 2 µs on the CPU, and 0.01 ns and 1 ns for an element, 10,000 elements take 40.1 µs there and 12 µs
//! here, so they are made on the CPU. A million elements take 50 µs there and 1,002 µs here. `Engine::events` says where and why (`EventKind::Placed`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use web_time::Instant;

use super::event::EventKind;
use super::rank::Candidate;
use super::remembered::{Kept, key, recall, remember};
use super::{Engine, Shared, Slot, Tensor};
use crate::backend::{BoxFuture, DeviceKind};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// The costs of a device, in seconds.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Time of a launch and of reading its result.
    launch: f64,
    /// Time per byte from the host.
    byte: f64,
    /// Time per element of the field kernel, which represents all kernels.
    element: f64,
}

impl Cost {
    fn estimate(self, work: Work) -> f64 {
        self.launch + work.bytes as f64 * self.byte + work.elements as f64 * self.element
    }

    fn entries(self) -> BTreeMap<String, String> {
        let entries = [("launch", self.launch), ("byte", self.byte), ("element", self.element)];
        entries.into_iter().map(|(name, seconds)| (name.to_owned(), format!("{seconds:e}"))).mapped()
    }

    /// Restores the costs from [`Cost::entries`], if they are plausible.
    fn recalled(entries: &BTreeMap<String, String>) -> Option<Self> {
        let seconds = |name: &str| entries.get(name)?.parse().ok().filter(|&seconds: &f64| seconds >= 0.0);
        Some(Self { launch: seconds("launch")?, byte: seconds("byte")?, element: seconds("element")? })
    }
}

/// The size of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    /// Elements created.
    pub(crate) elements: u64,
    /// Bytes that come from the host.
    pub(crate) bytes: u64,
}

/// The costs known so far, by device.
pub(crate) struct Placement {
    enabled: bool,
    folder: Option<PathBuf>,
    costs: Mutex<BTreeMap<String, Cost>>,
}

impl Placement {
    /// Remembers costs in `folder`; with `None`, until the end of the process.
    pub(crate) fn new(enabled: bool, folder: Option<PathBuf>) -> Self {
        let costs = folder.as_deref().filter(|_| enabled).map(recalled).unwrap_or_default();
        Self { enabled, folder, costs: Mutex::new(costs) }
    }
}

impl Shared {
    /// The device for new data. Never fails: without an estimate it is the selected device.
    pub(crate) async fn place(self: &Arc<Self>, work: Work) -> Arc<Slot> {
        let primary = self.primary();
        let info = primary.device().info();
        // Who takes no kernels cannot be measured, and keeps what it is given.
        let is_gpu =
            !matches!(info.kind, DeviceKind::Cpu | DeviceKind::Software) && !info.capabilities.operation_graphs;
        if !self.placement.enabled || !is_gpu || primary.failure().is_some() {
            return primary;
        }
        let Some(cpu) = self.cpu().await else { return primary };
        let (Some(on_primary), Some(on_cpu)) = (self.cost(&primary).await, self.cost(&cpu).await) else {
            return primary;
        };
        let (there, here) = (on_primary.estimate(work), on_cpu.estimate(work));
        if there <= here {
            return primary;
        }
        let message = format!(
            "{} elements are placed here: estimated {:.1} µs, {:.1} µs on {}",
            work.elements,
            here * 1e6,
            there * 1e6,
            primary.name()
        );
        self.events.push(EventKind::Placed, cpu.name(), &message);
        cpu
    }

    /// The CPU's slot, opened if it is among the candidates.
    async fn cpu(&self) -> Option<Arc<Slot>> {
        let is_cpu = |slot: &&Arc<Slot>| slot.device().info().kind == DeviceKind::Cpu && slot.failure().is_none();
        if let Some(slot) = self.open_slots().iter().find(is_cpu) {
            return Some(slot.clone());
        }
        let found = {
            let candidates = self.candidates.lock().unwrap_or_else(PoisonError::into_inner);
            candidates.iter().find_map(|candidate| match candidate {
                Candidate::Device(backend, info) if info.kind == DeviceKind::Cpu => {
                    Some((backend.clone(), info.clone()))
                }
                _ => None,
            })
        };
        let (backend, info) = found?;
        self.open_candidate(&backend, &info).await
    }

    async fn cost(&self, slot: &Arc<Slot>) -> Option<Cost> {
        let info = slot.device().info();
        let key = key(info);
        if let Some(cost) = self.placement.costs.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Some(*cost);
        }
        // A device that cannot be measured is not considered again in this engine.
        let cost = measure(self, slot).await.unwrap_or(Cost { launch: f64::INFINITY, byte: 0.0, element: 0.0 });
        let mut costs = self.placement.costs.lock().unwrap_or_else(PoisonError::into_inner);
        costs.insert(key, cost);
        if let Some(folder) = &self.placement.folder {
            let finite = costs.iter().filter(|(_, cost)| cost.launch.is_finite());
            let kept: Kept = finite.map(|(device, cost)| (device.clone(), cost.entries())).collect();
            remember(folder, FILE, &kept);
        }
        Some(cost)
    }
}

/// Measures a device on an engine of its own, whose slot is the device alone. Boxed, because measuring runs the field, which asks for
/// a place in its turn (with one device, at no cost).
fn measure(shared: &Shared, slot: &Arc<Slot>) -> BoxFuture<'static, Result<Cost>> {
    let engine = Engine::on_device(slot.device().clone(), shared.options.clone());
    Box::pin(async move { measure_on(&engine).await })
}

/// The field kernel over a square, whatever its parameters are.
async fn small_field(engine: &Engine, kernel: &Kernel, side: usize) -> Result<Tensor> {
    let values = engine.output_async(None, DType::F32, &[side, side], "field").await?;
    let side = side as u32;
    let mut dispatch = engine.dispatch(kernel).bind("values", &values);
    for member in ["grid.width", "grid.height", "grid.tile_width", "grid.tile_height"] {
        dispatch = dispatch.set(member, side);
    }
    for member in ["grid.first_row", "grid.first_column"] {
        dispatch = dispatch.set(member, 0_u32);
    }
    let dispatch = dispatch.set("wave.number", [8.5_f32, 0.0]).set("wave.phase", 0.0_f32);
    dispatch.invocations([side, side]).run_async().await?;
    Ok(values)
}

async fn measure_on(engine: &Engine) -> Result<Cost> {
    const REPEATS: usize = 4;
    const SIDE: usize = 512;
    let kernel = Kernel::from_prepared(cantus_shaders::prepared::FIELD_KERNEL)?;
    let mut least = [f64::INFINITY; 3];
    let host = vec![0.0_f32; SIDE * SIDE];
    // The first round warms up: it compiles and fills the pool.
    for round in 0..=REPEATS {
        let mut times = [0.0; 3];
        for (time, side) in times.iter_mut().zip([8, SIDE]) {
            let start = Instant::now();
            let field = small_field(engine, &kernel, side).await?;
            if side == SIDE {
                engine.finish_async().await?
            } else {
                drop(field.to_bytes_async().await?)
            }
            *time = start.elapsed().as_secs_f64();
        }
        let start = Instant::now();
        drop(engine.tensor_async(&host).await?);
        engine.finish_async().await?;
        times[2] = start.elapsed().as_secs_f64();
        if round > 0 {
            for (least, time) in least.iter_mut().zip(times) {
                *least = least.min(time);
            }
        }
    }
    let elements = (SIDE * SIDE) as f64;
    let [launch, large, upload] = least;
    Ok(Cost { launch, byte: upload / (4.0 * elements), element: (large - launch).max(0.0) / elements })
}

const FILE: &str = "placement.toml";

/// Returns the costs measured in earlier runs, as far as they make sense.
fn recalled(folder: &Path) -> BTreeMap<String, Cost> {
    recall(folder, FILE).into_iter().filter_map(|(device, entries)| Some((device, Cost::recalled(&entries)?))).mapped()
}

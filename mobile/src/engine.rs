//! The engine: opening, tensors, dispatches, and what it did.

use std::collections::HashMap;
use std::sync::Arc;

use cantus::engine::{Extent, Value};

use crate::device::Selection;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::off_thread;
use crate::options::EngineOptions;
use crate::tensor::{DType, Tensor, sides};
use crate::texture::{Sampler, Texture};

/// Runs kernels on the best device, and on the next one when it fails.
#[derive(uniffi::Object)]
pub struct Engine {
    pub(crate) inner: cantus::Engine,
}

/// The value of a uniform, or of one member of it. Integers fit any number type that can hold them, floats fit float types; vectors,
/// matrices (by columns) and arrays take lists.
#[derive(Debug, Clone, PartialEq, uniffi::Enum)]
pub enum Uniform {
    /// A whole number.
    Int {
        /// The number.
        value: i64,
    },
    /// A number.
    Float {
        /// The number.
        value: f64,
    },
    /// Whole numbers.
    Ints {
        /// The numbers.
        values: Vec<i64>,
    },
    /// Numbers.
    Floats {
        /// The numbers.
        values: Vec<f64>,
    },
    /// A whole uniform in WGSL's own layout.
    Bytes {
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// The amount of work of a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum Amount {
    /// At least this number of invocations, rounded up to whole workgroups: the kernel must check its bounds.
    Invocations {
        /// Along x.
        x: u64,
        /// Along y.
        #[uniffi(default = 1)]
        y: u64,
        /// Along z.
        #[uniffi(default = 1)]
        z: u64,
    },
    /// The number of workgroups.
    Workgroups {
        /// Along x.
        x: u64,
        /// Along y.
        #[uniffi(default = 1)]
        y: u64,
        /// Along z.
        #[uniffi(default = 1)]
        z: u64,
    },
}

/// A flag that stops work: between dispatches everywhere, inside a kernel's loops on the CPU.
#[derive(Default, uniffi::Object)]
pub struct Cancel {
    inner: cantus::backend::CancelFlag,
}

#[uniffi::export]
impl Cancel {
    /// A flag that is not raised.
    #[uniffi::constructor]
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Raises it.
    pub fn cancel(&self) {
        self.inner.cancel();
    }

    /// Is it raised?
    pub fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }
}

/// One dispatch.
#[derive(uniffi::Record)]
pub struct Dispatch {
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// Tensors by the names of the bindings.
    pub tensors: HashMap<String, Arc<Tensor>>,
    /// Uniforms by name (`n`) or member (`params.a`).
    #[uniffi(default)]
    pub uniforms: HashMap<String, Uniform>,
    /// The amount of work.
    pub amount: Amount,
    /// A name for errors and metrics instead of the kernel's.
    #[uniffi(default = None)]
    pub label: Option<String>,
    /// Stops it.
    #[uniffi(default = None)]
    pub cancel: Option<Arc<Cancel>>,
    /// Textures by the names of the bindings.
    #[uniffi(default)]
    pub textures: HashMap<String, Arc<Texture>>,
    /// Samplers by the names of the bindings; those left out are linear and clamp to the edge.
    #[uniffi(default)]
    pub samplers: HashMap<String, Sampler>,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum EventKind {
    /// A device was opened.
    Opened,
    /// A backend or device was passed over.
    Skipped,
    /// A tensor was placed on another device than the selected one.
    Placed,
    /// A tensor was moved to another device.
    Moved,
    /// Work went to another device because one failed.
    FellBack,
    /// A device reported a failure.
    Failed,
    /// A tensor's contents were lost.
    Lost,
    /// Something else; the text says what.
    Other,
}

/// One thing that the engine did.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct Event {
    /// Microseconds since the engine was made.
    pub at_us: u64,
    /// The kind.
    pub kind: EventKind,
    /// The device or backend concerned.
    pub device: String,
    /// The event in words, with names.
    pub text: String,
}

/// One operation on one device.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct Metric {
    /// The kernel's name or the dispatch's label.
    pub operation: String,
    /// The device.
    pub device: String,
    /// Dispatches recorded.
    pub count: u64,
    /// Dispatches timed by the device's own clock.
    pub timed: u64,
    /// Sum of those times in microseconds.
    pub total_us: u64,
    /// Bytes bound, over all dispatches.
    pub bytes: u64,
    /// Dispatches that came here because another device failed.
    pub fallbacks: u64,
}

/// Memory of the selected device, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Record)]
pub struct Memory {
    /// Held by live tensors.
    pub in_use: u64,
    /// Kept for reuse.
    pub pooled: u64,
}

#[uniffi::export]
impl Engine {
    /// Opens the best device, or the one that was asked for.
    ///
    /// # Errors
    /// `NoDevice` with every candidate's reason; `InvalidInput` when the configuration cannot be understood.
    #[uniffi::constructor]
    pub async fn open(options: EngineOptions) -> Result<Arc<Self>> {
        let builder = options.builder()?;
        Ok(Arc::new(Self { inner: off_thread(|| builder.build()).await? }))
    }

    /// The device that new tensors are made on, and why it was chosen.
    pub fn selected(&self) -> Selection {
        self.inner.selected().into()
    }

    /// Everything that was opened, skipped, placed, moved, lost or failed so far, oldest first (the last 4,096).
    pub fn events(&self) -> Vec<Event> {
        self.inner.events().into_iter().map(Into::into).collect()
    }

    /// Per operation and device: how often, how long, how many bytes, how many fallbacks.
    pub fn metrics(&self) -> Vec<Metric> {
        self.inner.metrics().into_iter().map(Into::into).collect()
    }

    /// Memory figures of the selected device.
    pub fn memory(&self) -> Memory {
        let figures = self.inner.memory();
        Memory { in_use: figures.in_use, pooled: figures.pooled }
    }

    /// Gives memory kept for reuse back to the system, and writes compiled pipelines to the cache folder: for an app that goes to the
    /// background.
    pub fn trim(&self) {
        self.inner.trim();
    }

    /// An f32 tensor of values in row-major order.
    ///
    /// # Errors
    /// `Shape` when the shape's product is not the number of values.
    pub async fn tensor(&self, values: Vec<f32>, shape: Vec<u64>) -> Result<Arc<Tensor>> {
        let (engine, shape) = (self.inner.clone(), sides(&shape)?);
        Ok(Tensor::shared(off_thread(move || engine.tensor_from(&values, &shape)).await?))
    }

    /// An i32 tensor of values in row-major order.
    ///
    /// # Errors
    /// As `tensor`.
    pub async fn tensor_i32(&self, values: Vec<i32>, shape: Vec<u64>) -> Result<Arc<Tensor>> {
        let (engine, shape) = (self.inner.clone(), sides(&shape)?);
        Ok(Tensor::shared(off_thread(move || engine.tensor_from(&values, &shape)).await?))
    }

    /// A u32 tensor of values in row-major order.
    ///
    /// # Errors
    /// As `tensor`.
    pub async fn tensor_u32(&self, values: Vec<u32>, shape: Vec<u64>) -> Result<Arc<Tensor>> {
        let (engine, shape) = (self.inner.clone(), sides(&shape)?);
        Ok(Tensor::shared(off_thread(move || engine.tensor_from(&values, &shape)).await?))
    }

    /// A tensor of any dtype from bytes, little-endian, row-major.
    ///
    /// # Errors
    /// As `tensor`.
    pub async fn tensor_from_bytes(&self, dtype: DType, shape: Vec<u64>, bytes: Vec<u8>) -> Result<Arc<Tensor>> {
        let (engine, shape) = (self.inner.clone(), sides(&shape)?);
        Ok(Tensor::shared(off_thread(move || engine.tensor_from_bytes(dtype.into(), &shape, &bytes)).await?))
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// `OutOfMemory`, or the device's failure when no other device takes it.
    pub async fn zeros(&self, dtype: DType, shape: Vec<u64>) -> Result<Arc<Tensor>> {
        let (engine, shape) = (self.inner.clone(), sides(&shape)?);
        Ok(Tensor::shared(off_thread(move || engine.zeros_of(dtype.into(), &shape)).await?))
    }

    /// Checks a dispatch, compiles where needed, and records it. It is submitted when its results are read, when the batch is full, or
    /// by `finish`.
    ///
    /// # Errors
    /// `Binding` for bindings that are missing, unknown or do not fit; `InvalidInput` for empty, `Limit` for too large
    /// dispatches; `Unsupported`, `OutOfMemory` or `Device` when no device takes it.
    pub async fn dispatch(&self, dispatch: Dispatch) -> Result<()> {
        let engine = self.inner.clone();
        off_thread(move || run(&engine, &dispatch)).await
    }

    /// Waits until all work recorded so far has finished.
    ///
    /// # Errors
    /// The first failure of that work.
    pub async fn finish(&self) -> Result<()> {
        let engine = self.inner.clone();
        off_thread(move || engine.finish()).await
    }
}

fn run(engine: &cantus::Engine, dispatch: &Dispatch) -> cantus::Result<()> {
    let mut builder = engine.dispatch(&dispatch.kernel.inner);
    for (name, tensor) in &dispatch.tensors {
        builder = builder.bind(name, &tensor.inner);
    }
    for (name, texture) in &dispatch.textures {
        builder = builder.bind(name, &texture.inner);
    }
    for (name, sampler) in &dispatch.samplers {
        builder = builder.bind(name, cantus::Sampler::from(*sampler));
    }
    for sampler in &dispatch.kernel.inner.reflection()?.samplers {
        if !dispatch.samplers.contains_key(&sampler.name) {
            builder = builder.bind(&sampler.name, sampler.usual());
        }
    }
    for (path, uniform) in &dispatch.uniforms {
        builder = match uniform {
            Uniform::Int { value } => builder.set(path, *value),
            Uniform::Float { value } => builder.set(path, *value),
            Uniform::Ints { values } => builder.set(path, Value::from(values.as_slice())),
            Uniform::Floats { values } => builder.set(path, Value::from(values.as_slice())),
            Uniform::Bytes { bytes } => builder.set_bytes(path, bytes),
        };
    }
    builder = match dispatch.amount {
        Amount::Invocations { x, y, z } => builder.invocations(Extent::from([x, y, z])),
        Amount::Workgroups { x, y, z } => builder.workgroups(Extent::from([x, y, z])),
    };
    if let Some(label) = &dispatch.label {
        builder = builder.label(label);
    }
    if let Some(cancel) = &dispatch.cancel {
        builder = builder.cancel(&cancel.inner);
    }
    builder.run()
}

fn microseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl From<cantus::engine::Event> for Event {
    fn from(event: cantus::engine::Event) -> Self {
        use cantus::engine::EventKind as K;
        Self {
            at_us: microseconds(event.at),
            kind: match event.kind {
                K::Opened => EventKind::Opened,
                K::Skipped => EventKind::Skipped,
                K::Placed => EventKind::Placed,
                K::Moved => EventKind::Moved,
                K::FellBack => EventKind::FellBack,
                K::Failed => EventKind::Failed,
                K::Lost => EventKind::Lost,
                // A kind that this version does not name: the text says what happened.
                _ => EventKind::Other,
            },
            device: event.device,
            text: event.message,
        }
    }
}

impl From<cantus::engine::MetricRow> for Metric {
    fn from(row: cantus::engine::MetricRow) -> Self {
        Self {
            operation: row.operation,
            device: row.device,
            count: row.count,
            timed: row.timed,
            total_us: microseconds(row.total),
            bytes: row.bytes,
            fallbacks: row.fallbacks,
        }
    }
}

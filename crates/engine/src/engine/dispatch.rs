//! One dispatch, built by name and checked before anything is recorded.
//!
//! # What comes in
//! A `DispatchBuilder`: a kernel, settings by name (tensors, members of uniforms, textures, samplers), and the number of workgroups or invocations.
//!
//! # Stages
//! 1. **Textures.** A kernel with textures or samplers is replaced by its form for what is bound (`run_textured`; see `texture`). Where the device's
//!    compiler takes no large tables of constants, the form with tables in buffers is taken (`with_tables`).
//! 2. **Check** (`DispatchBuilder::check`). Each name is a binding, each binding has one argument, dtypes and sizes fit the layout (`check_fit`), no
//!    tensor is both written and bound twice (`aliased`), and the workgroups are neither none nor more than a u32 counts. The result is a `Plan`. In
//!    reproducible mode the kernel's reproducible form takes its place.
//! 3. **Preserve.** Tensors that the kernel writes are copied for the expressions that recorded them (`Tensor::preserve`), unless they are `fresh`.
//! 4. **Prepare** (`Plan::prepare`), on the device where most of the bytes are (`home`). Checks its limits and known answers, compiles, and moves the
//!    tensors there. If that fails, the next device is tried.
//! 5. **Record** (`Plan::record`), with `Moves` held. Looks up each tensor's buffer, counts versions up, and adds the command with its `Effect`: the
//!    states of the memory that it reads and writes. If another thread moved a tensor since, preparing starts again, at most `ATTEMPTS` times.
//!
//! # What holds
//! - Until `prepare` has succeeded nothing is recorded, so falling back never runs a dispatch twice. After `record` it is recorded once.
//! - A uniform's bytes are copied into the command. Setting a value later does not change a recorded dispatch.
//! - The device gets sizes that were checked against the kernel's layouts. It checks only its own limits (`check_workgroups`, `check_bindings`).
//! - The app's own textures stay where they are: such a dispatch has no other device to go to.
//!
//! # What is surprising
//! - An error of the device (`Error::is_device_fault`) leads to the next device. An error of the caller is returned at once, and the kernel is not tried
//!   elsewhere.
//! - What a device cannot compile is remembered in its slot and not asked again. Other failures are, because memory may come free.
//!
//! # An example
//! A kernel with `x: array<f32>` (read), `y: array<f32>` (written) and a uniform. `x` of 4 MB is on a GPU and `y` of 4 kB on the CPU. `home` is the GPU.
//! `prepare` compiles there and moves `y`. If the driver refuses the kernel, `next_after` gives the CPU, and `prepare` compiles there and moves `x`. The
//! caller sees neither, except as an event (`EventKind::FellBack`).

use crate::backend::BoxFuture;
use std::sync::Arc;

use super::profile::Begun;
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
use super::rehearsal::Launch;
use super::relocate::{ATTEMPTS, contended, relocate};
use super::slot::{Effect, Size};
use super::tensor::Tensor;
use super::tracker::Place;
use super::uniform::{UniformBlock, Value};
use super::{Engine, Shared, Slot};
use crate::backend::native::{ProductShape, Stated};
use crate::backend::{Bound, CancelFlag, Command, Dispatch, Program};
use crate::error::{BindingError, Error, Result};
#[cfg(feature = "wgsl")]
use crate::kernel::SamplerBinding;
use crate::kernel::{Access, AddressSpace, Binding, Kernel, Reflection, Scalar};
use cantus_base::listed::Listed;

/// The extent of a dispatch along x, y and z. Made with `into()` from one number, or from an array or a tuple of two or three, of `u32`, `u64`,
/// `usize` or `i32`. Axes left out are 1; a negative number counts as 0, which the dispatch refuses.
///
/// ```
/// use cantus::engine::Extent;
/// assert_eq!(Extent::from(64).sides(), [64, 1, 1]);
/// assert_eq!(Extent::from([64, 48]), Extent::from((64, 48)));
/// let (width, height) = (640_usize, 480_usize);
/// assert_eq!(Extent::from((width, height, 3)).sides(), [640, 480, 3]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent([u64; 3]);

impl Extent {
    /// Returns the lengths along x, y and z.
    ///
    /// ```
    /// use cantus::engine::Extent;
    ///
    /// assert_eq!(Extent::from(100_u32).sides(), [100, 1, 1]);
    /// assert_eq!(Extent::from((64, 32)).sides(), [64, 32, 1]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn sides(self) -> [u64; 3] {
        self.0
    }
}

macro_rules! extent_from {
    ($($number:ty),*) => {$(
        impl From<$number> for Extent {
            fn from(x: $number) -> Self {
                Self([u64::try_from(x).unwrap_or(0), 1, 1])
            }
        }
        impl From<[$number; 2]> for Extent {
            fn from([x, y]: [$number; 2]) -> Self {
                Self([x, y, 1].map(|side| u64::try_from(side).unwrap_or(0)))
            }
        }
        impl From<[$number; 3]> for Extent {
            fn from(sides: [$number; 3]) -> Self {
                Self(sides.map(|side| u64::try_from(side).unwrap_or(0)))
            }
        }
        impl From<($number, $number)> for Extent {
            fn from((x, y): ($number, $number)) -> Self {
                Self::from([x, y])
            }
        }
        impl From<($number, $number, $number)> for Extent {
            fn from((x, y, z): ($number, $number, $number)) -> Self {
                Self::from([x, y, z])
            }
        }
    )*};
}
extent_from!(u32, u64, usize, i32);

#[derive(Clone, Copy)]
enum Amount {
    Unset,
    Workgroups(Extent),
    Invocations(Extent),
}

#[derive(Clone)]
pub(super) enum Setting<'a> {
    Tensor(&'a Tensor),
    #[cfg(feature = "wgsl")]
    Texture(super::texture::Texture),
    #[cfg(feature = "wgsl")]
    Sampler(cantus_base::texture::Sampler),
    Raw(&'a Tensor),
    Member(&'a str, Value),
    Bytes(Vec<u8>),
}

/// A dispatch being built; see [`Engine::dispatch`].
#[must_use = "nothing runs before .run()"]
pub struct DispatchBuilder<'a> {
    engine: &'a Engine,
    kernel: &'a Kernel,
    settings: Vec<(&'a str, Setting<'a>)>,
    amount: Amount,
    label: Option<Arc<str>>,
    cancel: Vec<CancelFlag>,
    flops: u64,
    rounds: u64,
    stated: Option<(ProductShape, Vec<&'a str>)>,
    /// True if no expression can have recorded the tensors that it writes.
    #[cfg(feature = "wgsl")]
    fresh: bool,
}

impl std::fmt::Debug for DispatchBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.settings.iter().map(|(name, _)| *name).collect();
        f.debug_struct("DispatchBuilder").field("kernel", self.kernel).field("set", &names).finish_non_exhaustive()
    }
}

/// A checked dispatch: everything but the device is decided.
struct Plan<'a> {
    kernel: &'a Kernel,
    label: Arc<str>,
    arguments: Vec<Argument<'a>>,
    workgroups: [u32; 3],
    invocations: u64,
    cancel: Vec<CancelFlag>,
    flops: u64,
    #[cfg_attr(not(feature = "wgsl"), expect(dead_code, reason = "operations alone know theirs"))]
    rounds: u64,
    stated: Option<Arc<Stated>>,
}

enum Argument<'a> {
    Tensor(&'a Tensor, &'a Binding),
    Uniform(Vec<u8>),
    /// The tensor of an app's texture, the view that is bound, and whether it is written.
    #[cfg(feature = "wgsl")]
    Own(Tensor, Arc<dyn crate::backend::Buffer>, bool),
}

impl<'a> DispatchBuilder<'a> {
    pub(super) fn new(engine: &'a Engine, kernel: &'a Kernel) -> Self {
        let (settings, amount, label, cancel) = (Vec::new(), Amount::Unset, None, Vec::new());
        Self {
            engine,
            kernel,
            settings,
            amount,
            label,
            cancel,
            flops: 0,
            rounds: 0,
            stated: None,
            #[cfg(feature = "wgsl")]
            fresh: false,
        }
    }

    /// Binds a tensor to the storage or uniform binding of that name, a [`Texture`](super::Texture) to the texture, or a
    /// [`Sampler`](cantus_base::texture::Sampler) to the sampler. A tensor's dtype must be the shader's; an f16 tensor may be bound to u32 as
    /// well, two halves in a word as `unpack2x16float` takes them.
    #[cfg(feature = "wgsl")]
    pub fn bind(mut self, name: &'a str, resource: impl Into<super::texture::Resource<'a>>) -> Self {
        use super::texture::Resource;
        let setting = match resource.into() {
            Resource::Tensor(tensor) => Setting::Tensor(tensor),
            Resource::Texture(texture) => Setting::Texture(texture),
            Resource::Sampler(sampler) => Setting::Sampler(sampler),
        };
        self.settings.push((name, setting));
        self
    }

    /// Binds a tensor to the storage or uniform binding of that name. Its dtype must be the shader's.
    #[cfg(not(feature = "wgsl"))]
    pub fn bind(mut self, name: &'a str, tensor: &'a Tensor) -> Self {
        self.settings.push((name, Setting::Tensor(tensor)));
        self
    }

    /// Binds a tensor's memory as it is, whatever the tensor's dtype: bytes in WGSL's own layout, such as those of structures. As WGSL has it, an
    /// array ends with its last whole element, where [`DispatchBuilder::bind`] refuses a rest.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let kernel = cantus::Kernel::from_wgsl("
    ///     struct Particle { position: vec3f, charge: i32 }
    ///     @group(0) @binding(0) var<storage, read_write> particles: array<Particle>;
    ///     @compute @workgroup_size(1)
    ///     fn count(@builtin(global_invocation_id) id: vec3u) { particles[id.x].charge = i32(arrayLength(&particles)); }
    /// ")?;
    /// // Two particles of 16 bytes, and half of one.
    /// let words = engine.zeros::<u32>(&[10])?;
    /// engine.dispatch(&kernel).bind_raw("particles", &words).workgroups(3).run()?;
    /// assert_eq!(words.to_vec::<u32>()?, [0, 0, 0, 2, 0, 0, 0, 2, 0, 0]);
    /// # Ok::<(), cantus::Error>(())
    /// ```
    pub fn bind_raw(mut self, name: &'a str, tensor: &'a Tensor) -> Self {
        self.settings.push((name, Setting::Raw(tensor)));
        self
    }

    /// Sets a uniform binding (`"n"`) or a member of one (`"params.a"`) for this dispatch. Integers, `usize` among them, fit any integer type
    /// that can hold them and any float type; floats fit float types. Vectors, matrices and arrays take arrays, slices and `Vec`s; a whole
    /// structure takes a reference to one of Rust that is [`bytemuck::Pod`]. See [`Value`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let kernel = cantus::Kernel::from_wgsl("
    ///     struct Light { direction: vec3f, strength: f32 }
    ///     struct Params { turn: mat2x2f, size: vec2u, n: u32, shift: i32 }
    ///     @group(0) @binding(0) var<uniform> light: Light;
    ///     @group(0) @binding(1) var<uniform> params: Params;
    ///     @group(0) @binding(2) var<storage, read_write> y: array<f32>;
    ///     @compute @workgroup_size(8, 8)
    ///     fn shade(@builtin(global_invocation_id) id: vec3u) {
    ///         let place = id.y * params.size.x + id.x;
    ///         if id.x < params.size.x && place < params.n {
    ///             let turned = params.turn * vec2f(f32(id.x), f32(id.y));
    ///             y[place] = light.strength * dot(light.direction.xy, turned) + f32(params.shift);
    ///         }
    ///     }
    /// ")?;
    /// // The same members in the same order, with WGSL's padding.
    /// #[repr(C)]
    /// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// struct Light { direction: [f32; 3], strength: f32 }
    /// let (width, height) = (3_usize, 2_usize);
    /// let y = engine.zeros::<f32>(&[height, width])?;
    /// engine.dispatch(&kernel).bind("y", &y)
    ///     .set("light", &Light { direction: [1.0, 10.0, 0.0], strength: 2.0 })
    ///     .set("params.turn", [[0.0, 1.0], [1.0, 0.0]]) // by columns
    ///     .set("params.size", vec![width, height])
    ///     .set("params.n", y.len())
    ///     .set("params.shift", -1_i8)
    ///     .invocations((width, height))
    ///     .run()?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 19.0, 39.0, 1.0, 21.0, 41.0]);
    /// # Ok::<(), cantus::Error>(())
    /// ```
    pub fn set(mut self, path: &'a str, value: impl Into<Value>) -> Self {
        let (name, member) = path.split_once('.').unwrap_or((path, ""));
        self.settings.push((name, Setting::Member(member, value.into())));
        self
    }

    /// Sets a whole uniform binding from bytes in WGSL's own layout (`bytemuck::bytes_of(&params)`).
    pub fn set_bytes(mut self, name: &'a str, bytes: &[u8]) -> Self {
        self.settings.push((name, Setting::Bytes(bytes.to_vec())));
        self
    }

    /// Sets the number of workgroups along x, y and z.
    pub fn workgroups(mut self, count: impl Into<Extent>) -> Self {
        self.amount = Amount::Workgroups(count.into());
        self
    }

    /// Sets the number of invocations along x, y and z, rounded up to whole workgroups: the kernel must check its bounds.
    /// Takes one number, or an array or a tuple of two or three ([`Extent`]).
    pub fn invocations(mut self, count: impl Into<Extent>) -> Self {
        self.amount = Amount::Invocations(count.into());
        self
    }

    /// Sets a name for errors and metrics, in place of the kernel's.
    pub fn label(mut self, label: &str) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets a flag that stops the work: between dispatches on every device, and inside a kernel's loops on the CPU. [`Engine::cancel_scope`] cancels
    /// more than one dispatch.
    pub fn cancel(mut self, flag: &CancelFlag) -> Self {
        self.cancel.push(flag.clone());
        self
    }

    /// Sets the number of floating-point operations, for profiles ([`Engine::profile`]).
    pub fn flops(mut self, count: u64) -> Self {
        self.flops = count;
        self
    }

    /// Sets the most rounds that the loops of an invocation make together, if the kernel's text doesn't show them; 0 if unknown.
    #[cfg(feature = "wgsl")]
    pub(crate) fn rounds(mut self, most: u64) -> Self {
        self.rounds = most;
        self
    }

    /// Says that nothing needs what it overwrites, so it is not preserved.
    #[cfg(feature = "wgsl")]
    pub(crate) fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    /// States that the kernel computes a product of these bindings: a, b, the result, and the bias if there is one.
    #[cfg(feature = "wgsl")]
    pub(crate) fn stating(mut self, stated: Option<(ProductShape, Vec<&'a str>)>) -> Self {
        self.stated = stated;
        self
    }

    /// Checks, compiles where needed, and records the dispatch. It is submitted when its results are read, when the batch is full, or
    /// by [`Engine::flush`].
    ///
    /// # Errors
    /// [`Error::Binding`] for bindings that are missing, unknown or do not fit; [`Error::InvalidInput`] for empty, [`Error::Limit`] for too large
    /// dispatches; [`Error::Unsupported`], [`Error::OutOfMemory`] or [`Error::Device`] when no device takes it.
    pub fn run_async(self) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.recorded())
    }

    async fn recorded(self) -> Result<()> {
        #[cfg(feature = "wgsl")]
        {
            let reflection = self.kernel.reflection()?;
            if !reflection.textures.is_empty() || !reflection.samplers.is_empty() {
                self.check_names(reflection)?;
                return Box::pin(self.run_textured(reflection)).await;
            }
        }
        self.run_plain().await
    }

    /// Runs the form for its textures; on copies where the device refuses an app's textures.
    #[cfg(feature = "wgsl")]
    async fn run_textured(self, reflection: &Reflection) -> Result<()> {
        use super::texture::textured;
        let copies = self.engine.shared().reproducible.then_some("the reproducible mode takes no filter of hardware");
        let textured_so = |copies: Option<&str>| textured(self.kernel, reflection, &self.settings, copies);
        let first = textured_so(copies)?;
        let has_own = first.has_own;
        match self.run_form(first).await {
            Err(error @ Error::Unsupported { .. }) if has_own => {
                let reason = error.to_string();
                self.run_form(textured_so(Some(reason.lines().next().unwrap_or_default()))?).await
            }
            outcome => outcome,
        }
    }

    #[cfg(feature = "wgsl")]
    async fn run_form(&self, mut textured: super::texture::Textured) -> Result<()> {
        let written = textured.copy().await?;
        self.with_texels(&textured).run_plain().await?;
        super::texture::copy_back(written).await
    }

    /// The dispatch of the form for its textures.
    #[cfg(feature = "wgsl")]
    fn with_texels<'b>(&self, textured: &'b super::texture::Textured) -> DispatchBuilder<'b>
    where
        'a: 'b,
    {
        let texels = |place: usize| textured.texels.iter().find(|(at, _)| *at == place).map(|(_, tensor)| tensor);
        // A texture of which a kernel asks the size alone has no buffer.
        let known = textured.kernel.reflection();
        let is_used = |name: &str| known.as_ref().is_ok_and(|known| known.binding(name).is_some());
        let is_own = |name: &str| {
            known.as_ref().is_ok_and(|known| {
                let textures = known.textures.iter().map(|texture| &texture.name);
                textures.chain(known.samplers.iter().map(|sampler| &sampler.name)).any(|own| own == name)
            })
        };
        let mut settings: Vec<(&'b str, Setting<'b>)> = Vec::with_capacity(self.settings.len() + 1);
        for (place, &(name, ref setting)) in self.settings.iter().enumerate() {
            match (setting, texels(place)) {
                (Setting::Texture(_), Some(tensor)) if is_used(name) => settings.push((name, Setting::Tensor(tensor))),
                (Setting::Texture(_) | Setting::Sampler(_), None) if is_own(name) => {
                    settings.push((name, setting.clone()));
                }
                // A view that shares another one's texels, or a sampler. Both are described in the uniform.
                (Setting::Texture(_) | Setting::Sampler(_), _) => {}
                (other, _) => settings.push((name, other.clone())),
            }
        }
        if is_used(Kernel::TEXTURES) {
            settings.push((Kernel::TEXTURES, Setting::Bytes(textured.sizes.clone())));
        }
        DispatchBuilder {
            engine: self.engine,
            kernel: &textured.kernel,
            settings,
            amount: self.amount,
            label: self.label.clone(),
            cancel: self.cancel.clone(),
            flops: self.flops,
            rounds: self.rounds,
            stated: self.stated.clone(),
            fresh: self.fresh,
        }
    }

    async fn run_plain(self) -> Result<()> {
        #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
        if let Some((kernel, tables)) = self.with_tables().await? {
            let mut form: DispatchBuilder<'_> = self;
            form.kernel = kernel;
            form.settings.extend(tables.iter().map(|(name, table)| (*name, Setting::Raw(table))));
            return Box::pin(form.record_async()).await;
        }
        self.record_async().await
    }

    /// Returns the form of the kernel with large tables of constants in buffers, and the buffers, if the device's compiler takes no such tables.
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    async fn with_tables(&self) -> Result<Option<Tabled<'a>>> {
        let tensors = self.settings.iter().filter_map(|(_, setting)| match setting {
            Setting::Tensor(tensor) | Setting::Raw(tensor) => Some(*tensor),
            _ => None,
        });
        let slot = home(self.engine.shared(), tensors);
        let Some(most) = slot.device().longest() else { return Ok(None) };
        if self.kernel.extent()?.1 <= most {
            return Ok(None);
        }
        let Some(form) = self.kernel.with_tables(most)? else { return Ok(None) };
        let mut tables = Vec::with_capacity(form.tables.len());
        for (name, bytes) in &form.tables {
            // Another entry point may be the one that reads it.
            if form.kernel.reflection()?.binding(name).is_some() {
                let words = [bytes.len() / 4];
                let table = self.engine.tensor_from_bytes_async(crate::tensor::DType::U32, &words, bytes).await?;
                tables.push((name.as_str(), table));
            }
        }
        Ok(Some((&form.kernel, tables)))
    }

    async fn record_async(self) -> Result<()> {
        let shared = self.engine.shared().clone();
        let span = shared.profiler.begin();
        #[cfg(feature = "wgsl")]
        let fresh = self.fresh;
        let mut plan = self.check()?;
        #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
        if let Some(capture) = shared.current_capture()
            && let Some(rehearsal) = capture.rehearsal()
        {
            rehearsal.note(Launch {
                slot: plan.home(&shared),
                kernel: plan.kernel.clone(),
                label: plan.label,
                workgroups: plan.workgroups,
                rounds: plan.rounds,
            });
            return Ok(());
        }
        #[cfg(feature = "wgsl")]
        for (tensor, binding) in plan.tensors() {
            if binding.access == Access::ReadWrite && !fresh {
                tensor.preserve().await?;
            }
        }
        let mut tried = vec![plan.home(&shared)];
        let mut attempts = 0;
        loop {
            let slot = tried[tried.len() - 1].clone();
            match plan.prepare(&shared, &slot).await {
                Ok(program) => match plan.record(&shared, &slot, &program, tried.len() > 1, span)? {
                    Recorded::Done => {
                        // The dispatch is recorded: dropping the call here loses nothing.
                        shared.make_room(&slot).await;
                        return Ok(());
                    }
                    Recorded::Moved(tensor) if attempts == ATTEMPTS => return Err(contended(&tensor)),
                    Recorded::Moved(_) => attempts += 1,
                },
                Err(error) => {
                    // No other device has the app's textures.
                    let has_own = plan.own().next().is_some();
                    if error.is_device_fault() && !(has_own && matches!(error, Error::Unsupported { .. })) {
                        shared.note_outcome::<()>(&slot, &Err(error.clone()));
                    }
                    if has_own {
                        return Err(error);
                    }
                    tried.push(shared.next_after(&tried, &error, &plan.label).await?);
                }
            }
        }
    }

    /// [`DispatchBuilder::run_async`], blocking until the dispatch is recorded.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn run(self) -> Result<()> {
        crate::engine::blocking::block_on(self.recorded())
    }

    /// Refuses names that the entry point doesn't use.
    fn check_names(&self, reflection: &Reflection) -> Result<()> {
        let known = reflection.bindings.iter().map(|binding| binding.name.as_str());
        let known = known.chain(reflection.textures.iter().map(|texture| texture.name.as_str()));
        let known: Vec<&str> = known.chain(reflection.samplers.iter().map(|sampler| sampler.name.as_str())).listed();
        let Some((name, _)) = self.settings.iter().find(|(name, _)| !known.contains(name)) else { return Ok(()) };
        let list = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(Error::Binding {
            kernel: reflection.entry_point.clone(),
            binding: (*name).to_owned(),
            fault: BindingError::Unknown(format!("the entry point uses no such binding (it uses: {list})")),
        })
    }

    fn check(mut self) -> Result<Plan<'a>> {
        let kernel = self.engine.shared().form_of(self.kernel)?;
        let reflection = kernel.reflection()?;
        if self.engine.shared().reproducible && reflection.binding(Kernel::ZERO).is_some() {
            self.settings.push((Kernel::ZERO, Setting::Member("", Value::from(0_u32))));
        }
        let fault = |binding: &str, fault: BindingError| Error::Binding {
            kernel: reflection.entry_point.clone(),
            binding: binding.to_owned(),
            fault,
        };
        self.check_names(reflection)?;
        let mut arguments = Vec::with_capacity(reflection.bindings.len());
        for binding in &reflection.bindings {
            let argument = argument(binding, &self.settings).map_err(|wrong| fault(&binding.name, wrong))?;
            if let Argument::Tensor(tensor, _) = &argument {
                if !Arc::ptr_eq(&tensor.inner.engine, self.engine.shared()) {
                    return Err(Error::AnotherEngine { tensor: tensor.label().to_owned() });
                }
                let raw =
                    self.settings.iter().any(|(name, set)| *name == binding.name && matches!(set, Setting::Raw(_)));
                check_fit(binding, tensor, raw).map_err(|reason| fault(&binding.name, reason.into()))?;
                if let Some(other) = aliased(&arguments, tensor, binding) {
                    return Err(fault(
                        &binding.name,
                        format!(
                            "the same tensor is bound to \"{other}\", and one of the two is written (copy it first)"
                        )
                        .into(),
                    ));
                }
            }
            arguments.push(argument);
        }
        #[cfg(feature = "wgsl")]
        own(self.engine.shared(), reflection, &self.settings, &mut arguments)?;
        let workgroups = workgroups(&self.amount, reflection)?;
        let groups = workgroups.iter().fold(1_u64, |product, &count| product.saturating_mul(u64::from(count)));
        let invocations = groups.saturating_mul(reflection.invocations());
        let label = self.label.unwrap_or_else(|| kernel.label());
        let stated = self.stated.and_then(|(product, names)| {
            let places: Option<Vec<usize>> =
                names.into_iter().map(|name| reflection.binding(name).map(|(place, _)| place)).collect();
            Some(Arc::new(Stated { product, places: places? }))
        });
        let (cancel, flops, rounds) = (self.cancel, self.flops, self.rounds);
        Ok(Plan { kernel, label, arguments, workgroups, invocations, cancel, flops, rounds, stated })
    }
}

/// Adds the app's textures and the samplers that a form has kept.
#[cfg(feature = "wgsl")]
fn own(
    shared: &Arc<Shared>,
    reflection: &Reflection,
    settings: &[(&str, Setting<'_>)],
    arguments: &mut Vec<Argument<'_>>,
) -> Result<()> {
    use crate::kernel::StorageTextureAccess as Access;
    let find = |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, setting)| setting);
    let missing = |name: &str| Error::Binding {
        kernel: reflection.entry_point.clone(),
        binding: name.to_owned(),
        fault: BindingError::Unbound("nothing was bound".to_owned()),
    };
    for binding in &reflection.textures {
        let Some(Setting::Texture(texture)) = find(&binding.name) else { return Err(missing(&binding.name)) };
        let tensor = texture.own_tensor();
        if !Arc::ptr_eq(&tensor.inner.engine, shared) {
            return Err(Error::AnotherEngine { tensor: tensor.label().to_owned() });
        }
        let writes = !matches!(binding.storage, None | Some((_, Access::Read)));
        arguments.push(Argument::Own(tensor.clone(), texture.bound_view(binding)?, writes));
    }
    for SamplerBinding { name, .. } in &reflection.samplers {
        let Some(Setting::Sampler(sampler)) = find(name) else { return Err(missing(name)) };
        arguments.push(Argument::Uniform(bytemuck::cast_slice(&sampler.to_words()).to_vec()));
    }
    Ok(())
}

/// The binding's block, made when its first member is set.
fn open<'a>(block: &'a mut Option<UniformBlock>, binding: &Binding) -> Result<&'a mut UniformBlock, String> {
    Ok(match block {
        Some(block) => block,
        None => block.insert(UniformBlock::new(&binding.layout)?),
    })
}

fn argument<'a>(binding: &'a Binding, settings: &[(&'a str, Setting<'a>)]) -> Result<Argument<'a>, BindingError> {
    let mut block: Option<UniformBlock> = None;
    let mut bound: Option<&'a Tensor> = None;
    for (_, setting) in settings.iter().filter(|(name, _)| *name == binding.name) {
        if bound.is_some() {
            return Err("a tensor is bound to it, and it is set or bound again".to_owned().into());
        }
        match setting {
            Setting::Tensor(tensor) | Setting::Raw(tensor) => bound = Some(tensor),
            #[cfg(feature = "wgsl")]
            Setting::Texture(_) | Setting::Sampler(_) => {
                return Err(format!("its type is {}: bind a tensor to it", binding.layout).into());
            }
            _ if binding.space == AddressSpace::Storage => {
                return Err("it is a storage binding: bind a tensor to it".to_owned().into());
            }
            Setting::Member(path, value) => {
                open(&mut block, binding)?.set(&binding.layout, path, value)?;
            }
            Setting::Bytes(bytes) => {
                open(&mut block, binding)?.set_bytes(&binding.layout, bytes)?;
            }
        }
    }
    match (bound, block) {
        (Some(tensor), None) => Ok(Argument::Tensor(tensor, binding)),
        (Some(_), Some(_)) => {
            Err("a tensor is bound to it, and it is set by value as well (remove one)".to_owned().into())
        }
        (None, Some(block)) => block
            .into_bytes(&binding.name, &binding.layout)
            .map(Argument::Uniform)
            .map_err(|path| BindingError::Unset(format!("\"{path}\" was not set"))),
        (None, None) if binding.space == AddressSpace::Uniform => {
            Err(BindingError::Unset(format!("nothing was set; it is a uniform {}", binding.layout)))
        }
        (None, None) => Err(BindingError::Unbound(format!("nothing was bound; its type is {}", binding.layout))),
    }
}

/// The tensor's dtype and size against the binding's layout; where it is bound raw, its size alone.
fn check_fit(binding: &Binding, tensor: &Tensor, raw: bool) -> Result<(), String> {
    // Several elements in a word, as unpack2x16float takes halves: what a kernel does where the device has no such type.
    let packed = raw || (tensor.dtype().is_packed() && binding.layout.scalar() == Some(Scalar::U32));
    if let Some(scalar) = binding.layout.scalar()
        && !tensor.dtype().binds(scalar)
        && !packed
    {
        return Err(format!("the shader has {}, the tensor's elements are {}", binding.layout, tensor.dtype()));
    }
    if !raw && let Some(reason) = binding.layout.misread(tensor.shape()) {
        return Err(format!("{reason} (bind_raw takes bytes as they are)"));
    }
    // Memory of a tensor is whole words.
    let bytes = if packed { tensor.byte_len().next_multiple_of(4) } else { tensor.byte_len() };
    let least = binding.layout.min_bytes();
    if bytes < least {
        return Err(format!(
            "{} takes at least {least} bytes, the tensor {} has {bytes}",
            binding.layout,
            tensor.label()
        ));
    }
    if let crate::kernel::Layout::Array { count: None, stride, element } = &binding.layout
        && bytes % u64::from(*stride) != 0
        && !raw
    {
        return Err(format!(
            "the tensor has {bytes} bytes, not a multiple of the {stride} that {element} takes in an array (bind_raw ignores the rest)"
        ));
    }
    Ok(())
}

/// The name of an earlier binding with the same tensor, if either is written: WGSL forbids it, and devices differ in what they do.
fn aliased<'a>(earlier: &[Argument<'a>], tensor: &Tensor, binding: &Binding) -> Option<&'a str> {
    earlier.iter().find_map(|argument| match argument {
        Argument::Tensor(other, other_binding)
            if Arc::ptr_eq(&other.inner, &tensor.inner)
                && (binding.access == Access::ReadWrite || other_binding.access == Access::ReadWrite) =>
        {
            Some(other_binding.name.as_str())
        }
        _ => None,
    })
}

fn workgroups(amount: &Amount, reflection: &Reflection) -> Result<[u32; 3]> {
    let what = || format!("the dispatch of {}", reflection.entry_point);
    let counts = match amount {
        Amount::Unset => {
            return Err(Error::invalid(what(), "say how much to run: .workgroups(..) or .invocations(..)"));
        }
        Amount::Workgroups(extent) => extent.0,
        Amount::Invocations(extent) => {
            let mut counts = [0; 3];
            for (count, (invocations, side)) in
                counts.iter_mut().zip(extent.0.into_iter().zip(reflection.workgroup_size))
            {
                *count = invocations.div_ceil(u64::from(side.max(1)));
            }
            counts
        }
    };
    let mut workgroups = [0; 3];
    for axis in 0..3 {
        if counts[axis] == 0 {
            let reason = format!("it is empty: {counts:?} workgroups (every axis must be at least 1)");
            return Err(Error::invalid(what(), reason));
        }
        // An invocation's id is a u32.
        let largest = (1_u64 << 32) / u64::from(reflection.workgroup_size[axis].max(1));
        workgroups[axis] =
            u32::try_from(counts[axis]).ok().filter(|&count| u64::from(count) <= largest).ok_or_else(|| {
                let reason = format!(
                    "{} workgroups of {} on one axis exceed 2^32 invocations (use several axes, or several dispatches)",
                    counts[axis], reflection.workgroup_size[axis]
                );
                Error::limit(what(), reason)
            })?;
    }
    Ok(workgroups)
}

impl Shared {
    /// The kernel as the engine runs it.
    #[cfg(feature = "wgsl")]
    fn form_of<'a>(&self, kernel: &'a Kernel) -> Result<&'a Kernel> {
        if self.reproducible { kernel.reproducible_form() } else { Ok(kernel) }
    }

    /// The kernel as it is: an engine of this build is never in reproducible mode.
    #[cfg(not(feature = "wgsl"))]
    #[expect(clippy::unnecessary_wraps, reason = "as with the feature `wgsl`")]
    fn form_of<'a>(&self, kernel: &'a Kernel) -> Result<&'a Kernel> {
        Ok(kernel)
    }
}

/// The memory of a plan's arguments.
#[derive(Default)]
struct Located {
    bindings: Vec<Bound>,
    bytes: u64,
    effect: Effect,
}

impl Plan<'_> {
    fn tensors(&self) -> impl Iterator<Item = (&Tensor, &Binding)> {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Tensor(tensor, binding) => Some((*tensor, *binding)),
            _ => None,
        })
    }

    /// The app's textures, and whether they are written.
    fn own(&self) -> impl Iterator<Item = (&Tensor, bool)> {
        self.arguments.iter().filter_map(|argument| match argument {
            #[cfg(feature = "wgsl")]
            Argument::Own(texture, _, writes) => Some((texture, *writes)),
            _ => None,
        })
    }

    /// The device to run on: where an app's textures are, else where most of the bound bytes are.
    fn home(&self, shared: &Shared) -> Arc<Slot> {
        match self.own().next() {
            Some((texture, _)) => texture.place().slot,
            None => home(shared, self.tensors().map(|(tensor, _)| tensor)),
        }
    }

    /// Compiles for the device and brings the tensors there. Until this has succeeded nothing was recorded.
    async fn prepare(&self, shared: &Arc<Shared>, slot: &Arc<Slot>) -> Result<Arc<dyn Program>> {
        let limits = &slot.device().info().capabilities.limits;
        for (tensor, binding) in self.tensors() {
            let limit = match binding.space {
                AddressSpace::Storage => limits.storage_binding_bytes,
                AddressSpace::Uniform => limits.uniform_binding_bytes,
            };
            if tensor.byte_len() > limit {
                return Err(Error::Unsupported {
                    kernel: self.label.to_string(),
                    device: slot.name().to_string(),
                    construct: format!(
                        "the tensor bound to \"{}\" has {} bytes, but one binding holds at most {limit} there (use tiles)",
                        binding.name,
                        tensor.byte_len()
                    ),
                    report: String::new(),
                });
            }
        }
        #[cfg(feature = "wgsl")]
        {
            // One kernel serves all sizes, and its demands on the driver grow with them.
            let is_long = self.rounds > super::trust::FEW_ROUNDS;
            let is_large = self.workgroups.iter().any(|&count| count > 65_535);
            if is_long || is_large || !slot.has_program(self.kernel) {
                shared.check_answers(slot, self.kernel, &self.label, self.workgroups, self.rounds).await?;
            }
        }
        let span = shared.profiler.begin();
        let (program, fresh) = slot.program(self.kernel).await?;
        if fresh {
            shared.profiler.end(span, || format!("compile {}", self.label), 0);
        }
        slot.device().check_workgroups(&*program, &self.label, self.workgroups)?;
        for (tensor, _) in self.tensors() {
            relocate(shared, tensor, slot).await?;
        }
        Ok(program)
    }

    #[cfg_attr(not(feature = "wgsl"), expect(unused_variables, reason = "kernels without text tell no number"))]
    fn size(&self, slot: &Slot) -> Size {
        #[cfg(feature = "wgsl")]
        let each = if slot.device().must_prove() { self.kernel.operations().unwrap_or(0) } else { 0 };
        #[cfg(not(feature = "wgsl"))]
        let each = 0;
        let written = self.tensors().filter(|(_, binding)| binding.access == Access::ReadWrite);
        let bytes = written.map(|(tensor, _)| tensor.byte_len()).sum();
        Size { invocations: self.invocations, operations: self.invocations.saturating_mul(each), bytes }
    }

    /// Returns the memory of its arguments on the device. The inner error is the label of a tensor that is elsewhere.
    fn located(&self, slot: &Arc<Slot>) -> Result<std::result::Result<Located, String>> {
        let mut located = Located { bindings: Vec::with_capacity(self.arguments.len()), ..Located::default() };
        let Located { bindings, bytes, effect } = &mut located;
        for argument in &self.arguments {
            bindings.push(match argument {
                Argument::Uniform(bytes) => Bound::Uniform(bytes.clone()),
                #[cfg(feature = "wgsl")]
                Argument::Own(texture, view, writes) => {
                    let Place { slot: own, state, .. } = texture.live_place()?;
                    if !Arc::ptr_eq(&own, slot) {
                        let reason =
                            format!("it is on {}, and another of the app's textures on {}", own.name(), slot.name());
                        return Err(Error::invalid(texture.label().to_owned(), reason));
                    }
                    effect.add(state, *writes);
                    *bytes += texture.byte_len();
                    Bound::Buffer { buffer: view.clone(), offset: 0, bytes: 0 }
                }
                Argument::Tensor(tensor, binding) => {
                    let Place { slot: own, buffer, state, .. } = tensor.live_place()?;
                    if !Arc::ptr_eq(&own, slot) {
                        return Ok(Err(tensor.label().to_owned()));
                    }
                    let Some(buffer) = buffer else {
                        return Err(Error::shape(format!("the tensor {}", tensor.label()), "it is empty"));
                    };
                    effect.add(state, binding.access == Access::ReadWrite);
                    let whole = binding.layout.whole_bytes(tensor.byte_len().next_multiple_of(4));
                    *bytes += whole;
                    Bound::Buffer { buffer, offset: 0, bytes: whole }
                }
            });
        }
        Ok(Ok(located))
    }

    /// Records the dispatch, unless another thread moved one of its tensors since it was prepared.
    fn record(
        &mut self,
        shared: &Shared,
        slot: &Arc<Slot>,
        program: &Arc<dyn Program>,
        fell_back: bool,
        span: Begun,
    ) -> Result<Recorded> {
        let _still = shared.moves.hold();
        let Located { bindings, bytes, effect } = match self.located(slot)? {
            Ok(located) => located,
            Err(moved) => return Ok(Recorded::Moved(moved)),
        };
        slot.device().check_bindings(&**program, &self.label, &bindings)?;
        shared.metrics.dispatch(&self.label, slot.name(), bytes, fell_back);
        shared.profiler.dispatch(span, &self.label, slot, bytes, self.flops);
        for (tensor, binding) in self.tensors() {
            shared.note_used(tensor);
            if binding.access == Access::ReadWrite {
                tensor.inner.tracker.note_written();
            }
        }
        for (texture, writes) in self.own() {
            // A trace binds tensors, not views.
            shared.spoil_trace();
            shared.note_used(texture);
            if writes {
                texture.inner.tracker.note_written();
            }
        }
        let dispatch = Dispatch {
            program: program.clone(),
            label: self.label.clone(),
            bindings,
            workgroups: self.workgroups,
            cancel: self.cancel.clone(),
            stated: self.stated.clone(),
        };
        let size = self.size(slot);
        let tensors: Vec<(&Tensor, bool)> =
            self.tensors().map(|(tensor, binding)| (tensor, binding.access == Access::ReadWrite)).collect();
        shared.trace_dispatch(slot, &dispatch, &tensors, size, self.flops);
        if fell_back {
            shared.spoil_trace();
        }
        shared.record(slot, Command::Dispatch(dispatch), effect, size);
        Ok(Recorded::Done)
    }
}

/// A kernel whose tables lie in buffers, and these by their bindings' names.
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
type Tabled<'a> = (&'a Kernel, Vec<(&'a str, Tensor)>);

/// The device where most bytes of tensors are.
fn home<'t>(shared: &Shared, tensors: impl Iterator<Item = &'t Tensor>) -> Arc<Slot> {
    let mut totals: Vec<(Arc<Slot>, u64)> = Vec::new();
    for tensor in tensors {
        let slot = tensor.place().slot;
        match totals.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &slot)) {
            Some((_, total)) => *total += tensor.byte_len(),
            None => totals.push((slot, tensor.byte_len())),
        }
    }
    totals.into_iter().max_by_key(|(_, total)| *total).map_or_else(|| shared.primary(), |(slot, _)| slot)
}

/// The outcome of recording a dispatch.
enum Recorded {
    Done,
    /// This tensor is no longer where it was brought.
    Moved(String),
}

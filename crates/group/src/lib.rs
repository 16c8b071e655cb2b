//! Several devices that share one piece of work, by strips of rows.
//!
//! ```
//! use cantus::{Engine, group::Group, ops::field::{FieldParams, GroupField}};
//!
//! let cpu = || Engine::builder().backend("cpu").build();
//! let group = Group::new([cpu()?, cpu()?])?; // or Group::open(&["cuda:0", "cuda:1", "cpu"])
//! let field = group.field(&FieldParams::new(300, 200))?;
//! println!("{field}"); // the plan, and who did what
//! assert_eq!(field.values.len(), 300 * 200);
//! # Ok::<_, cantus::Error>(())
//! ```
//!
//! # How it runs
//! 1. **Plan** (`plan`). Each member gets a run of rows, by the speed that it had at work of that name before; at first all get the same. No measurement
//!    comes first: the strips are the measurement, and the next plan uses it.
//! 2. **Strips** (`queue`). A thread for each member takes strips from the member's own queue. When that is empty, it takes the last strip of another's, if
//!    it would finish it before the owner does. A wrong plan therefore costs little.
//! 3. **Results.** A member computes one strip while the one before is read straight into its place in the result.
//!
//! A member that fails is left out for the rest of the run. Its strips go to the others, each noted as [`EventKind::FellBack`] in the events of the engine
//! that does it. A strip is never computed twice at once, so a device that hangs costs the time limit of its engine ([`engine::Builder::timeout`]).
//!
//! `Group::all_sum` uses NCCL or RCCL. Each device enqueues its part into its own stream, under the locks of all devices, taken in one order. If the
//! library is missing, refuses or fails, or the members are of two kinds, the parts are added in host memory. `Group::sum` is a float64 tree on the host.
//!
//! # Limits
//! Inputs and results are in the host's memory, and each member has a thread that waits for it, so there are no groups on the web. Cards do not copy to
//! each other, calls block, and coherence is not split.
//!
//! # An example
//! 1,000 rows in strips of 100, on a GPU and the CPU, for the first time: each gets five strips. The GPU has done its five while the CPU is at its second.
//! It takes the fifth strip of the CPU, then the fourth, then the third, unless the CPU would be sooner. The next plan of that name gives the GPU eight.

mod plan;
mod queue;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use self::plan::{Done, Part, Plan, Share};

use self::engine::{Engine, EventKind, Tensor};
use self::error::{Error, Result};
use self::queue::{Queue, Strip};
use cantus_base::config::Fallback;
use cantus_base::error;
use cantus_base::listed::Listed;
use cantus_base::tensor::{DType, Element};
use cantus_engine::engine;
use cantus_engine::ops::Expr;

/// Devices that work together.
#[derive(Debug)]
pub struct Group {
    members: Vec<Engine>,
    strip_rows: Option<usize>,
    /// Elements a second of each member, by work.
    speeds: Mutex<HashMap<&'static str, Vec<Option<f64>>>>,
}

/// Ends the run when its thread panics: the others would wait for its strips.
struct Leaving<'q, 'a, T>(&'q Queue<'a, T>);

impl<T> Drop for Leaving<'_, '_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

impl Group {
    /// Creates a group of engines. An engine that falls back does so before the group hears of the failure. Create the engines with
    /// [`Fallback::Never`], so that the strips of a lost device go to the other members.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] without an engine.
    pub fn new(members: impl IntoIterator<Item = Engine>) -> Result<Self> {
        let members: Vec<Engine> = members.into_iter().listed();
        if members.is_empty() {
            return Err(Error::invalid("a group of devices", "it has no device; name at least one"));
        }
        Ok(Self { members, strip_rows: None, speeds: Mutex::default() })
    }

    /// Creates a group of the devices named: a backend, or a backend and the index of a device as in `cuda:1`.
    ///
    /// ```
    /// let group = cantus::group::Group::open(&["cpu", "cpu:0"])?;
    /// assert_eq!(group.members().len(), 2);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Group::new`] and [`engine::Builder::build`]; [`Error::InvalidInput`] for an index that is not a number.
    pub fn open(devices: &[impl AsRef<str>]) -> Result<Self> {
        let open = |name: &str| {
            let (backend, index) = device_name(name)?;
            let builder = Engine::builder().backend(backend).fallback(Fallback::Never);
            index.into_iter().fold(builder, |builder, index| builder.device(index)).build()
        };
        let members: Result<Vec<Engine>> = devices.iter().map(|name| open(name.as_ref())).try_listed();
        Self::new(members?)
    }

    /// Sets the rows of a strip, at least 1. By default a strip has 1 Mi elements, or fewer so that each member gets eight.
    #[must_use]
    pub fn strip_rows(mut self, rows: usize) -> Self {
        self.strip_rows = Some(rows.max(1));
        self
    }

    /// Returns the members, in the order of plans.
    #[must_use]
    pub fn members(&self) -> &[Engine] {
        &self.members
    }

    /// Computes `rows` rows of `row` elements. `work` computes the rows that it is given on the engine that it is given. `name` says what work it
    /// is: members have a speed for each name, which the next plan uses.
    ///
    /// ```
    /// let group = cantus::group::Group::open(&["cpu", "cpu"])?;
    /// let squares = group.generate::<f32>("squares", (1000, 1), |engine, rows| {
    ///     let row = cantus::ops::arange(engine, rows.start as f64, rows.end as f64, 1.0, cantus::DType::F32);
    ///     (&row * &row).eval()
    /// })?;
    /// assert_eq!(squares.values[30], 900.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Limit`] for more elements than can be counted, [`Error::OutOfMemory`] without memory for them; the first failure if every
    /// member failed. A strip of another dtype or length than its rows have is such a failure.
    pub fn generate<T: Element + Send>(
        &self,
        name: &'static str,
        (rows, row): (usize, usize),
        work: impl Fn(&Engine, Range<usize>) -> Result<Tensor> + Sync,
    ) -> Result<Done<Vec<T>>> {
        let mut values = zeros(elements(name, &[rows, row])?)?;
        Ok(self.generate_into(name, (rows, row), &mut values, work)?.map(|()| values))
    }

    /// Computes [`Group::generate`] into existing memory. For one result after another, this avoids allocating new pages.
    ///
    /// # Errors
    /// As [`Group::generate`], and [`Error::Shape`] if `values` has another length. After an error some rows may be written.
    pub fn generate_into<T: Element + Send>(
        &self,
        name: &'static str,
        (rows, row): (usize, usize),
        values: &mut [T],
        work: impl Fn(&Engine, Range<usize>) -> Result<Tensor> + Sync,
    ) -> Result<Done<()>> {
        let elements = elements(name, &[rows, row])?;
        if values.len() != elements {
            return Err(Error::shape(name, format!("it has {elements} values, and room for {}", values.len())));
        }
        self.run(name, (rows, row), values, |_, rows| rows.len() * row, |_, engine, rows| work(engine, rows))
    }

    /// Applies `work` to each strip of `values`, which have `shape`. `work` is a chain of operations in which each row depends only on itself and
    /// the shape stays. It is called with tensors of `[rows, shape[1], …]`.
    ///
    /// ```
    /// let group = cantus::group::Group::open(&["cpu", "cpu"])?;
    /// let values: Vec<f32> = (0..6000).map(|value| value as f32).collect();
    /// let roots = group.map(&values, &[2000, 3], |strip| Ok((strip * 4.0).sqrt()))?;
    /// assert_eq!(roots.values[100], 20.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the shape is not that of the values or of the results; the first failure if every member failed.
    pub fn map<T: Element + Send + Sync>(
        &self,
        values: &[T],
        shape: &[usize],
        work: impl Fn(&Tensor) -> Result<Expr> + Sync,
    ) -> Result<Done<Vec<T>>> {
        let (&rows, row_shape) =
            shape.split_first().ok_or_else(|| Error::shape("a map over rows", "the shape has no axis"))?;
        if elements("the values", shape)? != values.len() {
            return Err(Error::shape("the values", format!("there are {}, and the shape is {shape:?}", values.len())));
        }
        let row: usize = row_shape.iter().product();
        let work = |engine: &Engine, rows: Range<usize>| {
            let strip = strip_of(engine, values, &rows, row_shape)?;
            let result = work(&strip)?.eval()?;
            if result.shape() == strip.shape() {
                Ok(result)
            } else {
                Err(Error::shape(
                    "a strip's result",
                    format!("its shape is {:?}, that of the strip {:?}", result.shape(), strip.shape()),
                ))
            }
        };
        let mut into = room(values.len())?;
        into.extend_from_slice(values);
        Ok(self.generate_into("map", (rows, row), &mut into, work)?.map(|()| into))
    }

    /// Returns the product of `a`, `[rows, inner]`, and `b`, `[inner, columns]`. Each member multiplies blocks of rows of `a` by `b`, which it gets once.
    ///
    /// ```
    /// let group = cantus::group::Group::open(&["cpu", "cpu"])?;
    /// let product = group.matmul((&[1.0, 2.0, 3.0, 4.0], [2, 2]), (&[1.0, 1.0], [2, 1]))?;
    /// assert_eq!(product.values, [3.0, 7.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not fit each other or the values; the first failure if every member failed.
    pub fn matmul(
        &self,
        (a, [rows, inner]): (&[f32], [usize; 2]),
        (b, [b_rows, columns]): (&[f32], [usize; 2]),
    ) -> Result<Done<Vec<f32>>> {
        let fits = elements("a", &[rows, inner])? == a.len() && elements("b", &[b_rows, columns])? == b.len();
        if !fits || inner != b_rows {
            let shapes = format!("[{rows}, {inner}] of {} values, [{b_rows}, {columns}] of {}", a.len(), b.len());
            return Err(Error::shape("a product", format!("the shapes do not fit: {shapes}")));
        }
        let whole: Vec<Mutex<Option<Tensor>>> = self.members.iter().map(|_| Mutex::default()).listed();
        let work = |member: usize, engine: &Engine, rows: Range<usize>| {
            let upload = || engine.tensor_from(b, &[inner, columns]);
            let b = match whole.get(member) {
                Some(kept) => {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    if kept.is_none() {
                        *kept = Some(upload()?);
                    }
                    kept.clone()
                }
                None => None,
            };
            let b = b.map_or_else(upload, Ok)?;
            strip_of(engine, a, &rows, &[inner])?.matmul(&b).eval()
        };
        let mut into = zeros(elements("the product", &[rows, columns])?)?;
        // A strip's work is that of its product and of its rows of `a`.
        let done = self.run("matmul", (rows, columns.max(inner)), &mut into, |_, rows| rows.len() * columns, work)?;
        Ok(done.map(|()| into))
    }

    /// Returns the sum. Each strip is summed on its member in float32; these sums are added in float64 as a tree, in the order of the rows.
    ///
    /// ```
    /// let group = cantus::group::Group::open(&["cpu", "cpu"])?;
    /// assert_eq!(group.sum(&[0.5; 3000])?.values, 1500.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first failure if every member failed.
    pub fn sum(&self, values: &[f32]) -> Result<Done<f64>> {
        let plan = self.plan("sum", (values.len(), 1));
        let mut sums = zeros(plan.strips().count())?;
        let work = |_: usize, engine: &Engine, rows: Range<usize>| {
            strip_of(engine, values, &rows, &[])?.sum(&[], false).eval()
        };
        Ok(self.run("sum", (values.len(), 1), &mut sums, |_, _| 1, work)?.map(|()| tree(&sums)))
    }

    /// Returns on every member the element-wise sum of one float32 tensor per member, added in the members' order. If all members are devices of one
    /// vendor, NCCL or RCCL adds in its own order. Otherwise the parts go through the host's memory.
    ///
    /// ```
    /// let group = cantus::group::Group::open(&["cpu", "cpu"])?;
    /// let parts: Vec<_> = group.members().iter().map(|engine| engine.tensor(&[1.0_f32, 2.0])).collect::<Result<_, _>>()?;
    /// for sum in group.all_sum(&parts)? {
    ///     assert_eq!(sum.to_vec::<f32>()?, [2.0, 4.0]);
    /// }
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`] unless there is one tensor per member, in the members' order, all float32 and of one shape; errors of the devices.
    pub fn all_sum(&self, parts: &[Tensor]) -> Result<Vec<Tensor>> {
        let fault = |reason: &str| Error::invalid("a sum over devices", reason);
        if parts.len() != self.members.len() {
            return Err(fault("it takes one tensor of each member"));
        }
        for (part, engine) in parts.iter().zip(&self.members) {
            if !part.engine().is(engine) {
                return Err(fault("a tensor belongs to another member than its position says"));
            }
            if part.dtype() != DType::F32 || part.shape() != parts[0].shape() {
                return Err(fault("all tensors must be float32 and of one shape"));
            }
        }
        if !parts[0].is_empty()
            && let Some(sums) = engine::blocking::block_on(engine::sum_over_devices(parts))?
        {
            return Ok(sums);
        }
        let mut sum = parts[0].to_vec::<f32>()?;
        for part in &parts[1..] {
            sum.iter_mut().zip(part.to_vec::<f32>()?).for_each(|(sum, value)| *sum += value);
        }
        self.members.iter().map(|engine| engine.tensor_from(&sum, parts[0].shape())).try_listed()
    }

    /// Returns the plan that work of that name ([`Group::generate`]) on `rows` rows of `row` elements would follow now.
    #[must_use]
    pub fn plan(&self, name: &str, (rows, row): (usize, usize)) -> Plan {
        let speeds = self.speeds.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let unknown = || vec![None; self.members.len()];
        Plan::new(self.names(), &speeds.unwrap_or_else(unknown), (rows, row), self.strip_rows)
    }

    fn names(&self) -> Vec<String> {
        let devices = self.members.iter().map(|engine| &engine.selected().device);
        devices.map(|device| format!("{} {} ({})", device.backend, device.index, device.name)).listed()
    }

    /// Plans, runs a thread for each member, and remembers their speeds.
    fn run<T: Element + Send>(
        &self,
        name: &'static str,
        (rows, row): (usize, usize),
        into: &mut [T],
        length: impl Fn(usize, &Range<usize>) -> usize,
        work: impl Fn(usize, &Engine, Range<usize>) -> Result<Tensor> + Sync,
    ) -> Result<Done<()>> {
        let plan = self.plan(name, (rows, row));
        let mut rest = into;
        let mut strips = Vec::new();
        for (owner, rows) in plan.strips() {
            let wanted = length(owner, &rows);
            let (into, after) = std::mem::take(&mut rest)
                .split_at_mut_checked(wanted)
                .ok_or_else(|| Error::fault("a strip", "the result is too small for it"))?;
            rest = after;
            strips.push(Strip { rows, into, owner, failed: None });
        }
        let queue = Queue::new(strips, self.members.len());
        let (queue_of, work_of) = (&queue, &work);
        let parts: Vec<Part> = std::thread::scope(|scope| {
            let members = self.members.iter().zip(self.names()).enumerate();
            let threads: Vec<_> = members
                .map(|(member, (engine, device))| {
                    scope.spawn(move || self.serve(queue_of, name, (member, engine, device), work_of))
                })
                .listed();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).listed()
        });
        if queue.left() > 0 {
            let failure = parts.into_iter().find_map(|part| part.failure);
            return Err(failure.unwrap_or_else(|| Error::fault(name, "strips were left over")));
        }
        let speeds = queue.speeds().into_iter().map(|rows| rows.map(|rows| rows * row as f64));
        let mut known = self.speeds.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(name).or_insert_with(|| vec![None; self.members.len()]);
        known.iter_mut().zip(speeds).for_each(|(known, speed)| *known = speed.or(*known));
        drop(queue);
        Ok(Done { values: (), plan, parts })
    }

    /// Does strips on one member: it computes one while the one before is read.
    fn serve<'a, T: Element>(
        &self,
        queue: &Queue<'a, T>,
        name: &str,
        (member, engine, device): (usize, &Engine, String),
        work: &impl Fn(usize, &Engine, Range<usize>) -> Result<Tensor>,
    ) -> Part {
        let _leaving = Leaving(queue);
        let start = Instant::now();
        let mut part = Part { device, rows: 0, strips: 0, taken_over: 0, time: Duration::ZERO, failure: None };
        let mut before: Option<(Strip<'a, T>, Tensor)> = None;
        loop {
            let mut next = None;
            if let Some(strip) = queue.take(member, before.is_none()) {
                self.note(name, engine, &strip);
                match work(member, engine, strip.rows.clone()) {
                    Ok(tensor) => next = Some((strip, tensor)),
                    Err(error) => {
                        part.failure = Some(error);
                        queue.lose(member, before.into_iter().map(|(strip, _)| strip).chain([strip]));
                        return part;
                    }
                }
                engine.flush();
            }
            match before.take() {
                Some((strip, tensor)) => {
                    if let Err(error) = tensor.read_into(&mut *strip.into) {
                        part.failure = Some(error);
                        queue.lose(member, [strip].into_iter().chain(next.map(|(strip, _)| strip)));
                        return part;
                    }
                    part.rows += strip.rows.len();
                    part.strips += 1;
                    part.taken_over += usize::from(strip.owner != member);
                    part.time = start.elapsed();
                    queue.done(member, strip.rows.len());
                }
                None if next.is_none() => return part,
                None => {}
            }
            before = next;
        }
    }

    /// Records that a strip comes from a member that failed.
    fn note<T>(&self, name: &str, engine: &Engine, strip: &Strip<'_, T>) {
        if let Some(failed) = strip.failed.and_then(|member| self.members.get(member)) {
            let (from, rows) = (&failed.selected().device.name, &strip.rows);
            let message = format!("{name}: rows {} to {} of {from}, which failed", rows.start, rows.end);
            engine.record_event(EventKind::FellBack, &message);
        }
    }
}

/// Returns a backend and the index of a device from `backend` or `backend:index`.
///
/// # Errors
/// [`Error::InvalidInput`] for an index that is not a number.
pub fn device_name(text: &str) -> Result<(&str, Option<usize>)> {
    let Some((backend, index)) = text.split_once(':') else { return Ok((text, None)) };
    let wrong =
        |_| Error::invalid(format!("the device \"{text}\""), "the index after the colon is a number, as in cuda:1");
    Ok((backend, Some(index.parse().map_err(wrong)?)))
}

fn elements(what: &str, shape: &[usize]) -> Result<usize> {
    let all = shape.iter().try_fold(1_usize, |all, &side| all.checked_mul(side));
    all.ok_or_else(|| Error::limit(what, format!("{shape:?} has more elements than can be counted")))
}

/// The result's memory.
fn zeros<T: Element>(elements: usize) -> Result<Vec<T>> {
    let mut values = room(elements)?;
    values.resize(elements, T::zeroed());
    Ok(values)
}

fn room<T>(elements: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    let refused = |_| Error::OutOfMemory {
        device: "the host".to_owned(),
        what: "a group's result".to_owned(),
        bytes: (elements as u64).saturating_mul(size_of::<T>() as u64),
    };
    values.try_reserve_exact(elements).map_err(refused)?;
    Ok(values)
}

/// Some rows of host data, on a member.
fn strip_of<T: Element>(engine: &Engine, values: &[T], rows: &Range<usize>, row: &[usize]) -> Result<Tensor> {
    let length: usize = row.iter().product();
    let strip = values.get(rows.start * length..rows.end * length);
    let strip = strip.ok_or_else(|| Error::fault("a strip", format!("rows {rows:?} are not in the values")))?;
    let shape: Vec<usize> = [rows.len()].iter().chain(row).copied().listed();
    engine.tensor_from(strip, &shape)
}

/// The sum of halves, and so on.
fn tree(values: &[f32]) -> f64 {
    match values {
        [] => 0.0,
        [one] => f64::from(*one),
        _ => {
            let (left, right) = values.split_at(values.len() / 2);
            tree(left) + tree(right)
        }
    }
}

//! The thread that computes: it opens an engine, makes pictures as they are ordered, and brings their values to the window's device.
//! Each choice of a device has a thread of its own, so that leaving a device never waits for it. Draws nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use cantus::backend::{CancelFlag, DeviceInfo, wgpu::raw_buffer};
use cantus::engine::Event;
use cantus::{Engine, Error, Result, Tensor, ops};
use eframe::{egui, wgpu};

use super::devices::{Choice, Devices, Opened};
use super::picture::{Drawable, Held};
use super::source::{Made, Moment, Pixels, Running, Source};
use crate::parse::Size;

/// Threads that have not ended yet.
static ALIVE: AtomicUsize = AtomicUsize::new(0);
/// The interval between two looks at the engine's events.
const EVENTS_EVERY: Duration = Duration::from_millis(500);

/// A picture to make.
pub struct Order {
    pub source: Source,
    pub moment: Moment,
    /// Compute its coherence too.
    pub coherence: bool,
    /// Ends a kernel that is under way on the CPU.
    pub cancel: CancelFlag,
}

/// A report of the thread.
pub enum Report {
    /// The engine is open.
    Opened { opened: Opened, device: DeviceInfo, why: String },
    /// It did not open.
    NotOpened(Error),
    /// A picture is ready to be drawn.
    Picture(Box<Picture>),
    /// An ordered picture could not be made.
    Failed(Error),
    /// The coherence of the picture of a moment.
    Coherence { time: f64, value: f32 },
    /// The engine's events since the last report.
    Events(Vec<Event>),
}

/// A picture, ready to be drawn.
#[derive(Clone)]
pub struct Picture {
    pub drawable: Drawable,
    pub values: Values,
    pub moment: Moment,
    pub cost: Cost,
}

/// The source of the values when they are saved.
#[derive(Clone)]
pub enum Values {
    /// On the window's device.
    Tensor(Tensor),
    /// Here.
    Host(Arc<Vec<u8>>),
}

impl Values {
    /// Reads the bytes of the values, from where they are.
    ///
    /// # Errors
    /// As the library's transfers.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        match self {
            Self::Tensor(tensor) => tensor.to_bytes(),
            Self::Host(bytes) => Ok(bytes.to_vec()),
        }
    }
}

/// The thread's time for one picture.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    /// Checking and recording the dispatch.
    pub record: Duration,
    /// Time from submission until the device is done.
    pub kernel: Duration,
    /// Reading the values and writing them to the window's device; zero where they are drawn from their tensor.
    pub copy: Duration,
}

impl Picture {
    /// Columns and rows.
    pub fn size(&self) -> Size {
        self.drawable.size
    }

    /// Drawn without a copy?
    pub fn is_shared(&self) -> bool {
        matches!(self.values, Values::Tensor(_))
    }
}

/// The window's end of a thread. Dropping it lets go: what is under way is cancelled, and its result is never seen.
pub struct Session {
    pub reports: Receiver<Report>,
    orders: Sender<Order>,
    /// The flag that cancels the last request.
    cancel: CancelFlag,
}

impl Session {
    /// Starts a thread for a device; `wake` is told of every report.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(devices: &Devices, choice: &Choice, wake: &egui::Context) -> std::io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let (outbox, reports) = mpsc::channel();
        let (devices, wanted, wake) = (devices.clone(), choice.clone(), wake.clone());
        let alive = Alive::new();
        std::thread::Builder::new().name("cantus-view".to_owned()).spawn(move || {
            let _alive = alive;
            let tell = |report| {
                let told = outbox.send(report).is_ok();
                wake.request_repaint();
                told
            };
            match devices.open(&wanted) {
                Ok(opened) => Worker::new(opened, &devices).run(&inbox, tell),
                Err(error) => {
                    tell(Report::NotOpened(error));
                }
            }
        })?;
        Ok(Self { reports, orders, cancel: CancelFlag::new() })
    }

    /// Orders a picture. False when the thread is gone.
    pub fn order(&mut self, order: Order) -> bool {
        self.cancel = order.cancel.clone();
        self.orders.send(order).is_ok()
    }

    /// Ends what was ordered last, if the device can be stopped. It is reported as cancelled, or as done.
    pub fn interrupt(&self) {
        self.cancel.cancel();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Counts a thread while it lives.
struct Alive;

impl Alive {
    fn new() -> Self {
        ALIVE.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Releases all engines on a thread of its own, which [`settle`] waits for.
pub fn close(devices: &Devices) {
    let (devices, alive) = (devices.clone(), Alive::new());
    // Without a thread they are let go of here, when this returns.
    let _ = std::thread::Builder::new().name("cantus-close".to_owned()).spawn(move || {
        let _alive = alive;
        devices.close();
    });
}

/// Waits until the threads have ended, but no longer than that. True when they have.
pub fn settle(longest: Duration) -> bool {
    let end = Instant::now() + longest;
    while ALIVE.load(Ordering::Acquire) > 0 {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

struct Worker {
    opened: Opened,
    engine: Engine,
    running: Running,
    copies: Copies,
    /// The last event that was told of.
    told: Option<Duration>,
    looked: Option<Instant>,
}

impl Worker {
    fn new(opened: Opened, devices: &Devices) -> Self {
        let engine = opened.engine.clone();
        let window = devices.window();
        let copies = Copies { device: window.device.clone(), queue: window.queue.clone(), buffers: Vec::new() };
        let running = Running::new(engine.clone());
        // What an engine did before it was left has been told.
        let told = if opened.again { engine.events().last().map(|event| event.at) } else { None };
        Self { opened, engine, running, copies, told, looked: None }
    }

    fn run(mut self, inbox: &Receiver<Order>, tell: impl Fn(Report) -> bool) {
        let selection = self.engine.selected();
        let (device, why) = (selection.device.clone(), selection.why.clone());
        let mut open = tell(Report::Opened { opened: self.opened.clone(), device, why });
        while open && let Ok(order) = inbox.recv() {
            let made = self.make(&order);
            let failed = made.is_err();
            open = match made {
                Ok((picture, tensor)) => {
                    let time = picture.moment.time;
                    tell(Report::Picture(Box::new(picture)))
                        && (!order.coherence
                            // A picture without one, of infinities say, is no failure.
                            || ops::coherence(&self.engine, &tensor)
                                .map_or(true, |value| tell(Report::Coherence { time, value })))
                }
                Err(error) => tell(Report::Failed(error)),
            };
            if failed || self.looked.is_none_or(|looked| looked.elapsed() > EVENTS_EVERY) {
                self.looked = Some(Instant::now());
                let mut events = self.engine.events();
                events.retain(|event| Some(event.at) > self.told);
                if let Some(last) = events.last() {
                    self.told = Some(last.at);
                    open &= tell(Report::Events(events));
                }
            }
        }
        self.engine.trim();
    }

    fn make(&mut self, order: &Order) -> Result<(Picture, Tensor)> {
        let start = Instant::now();
        let Made { tensor, size, pixels } = self.running.compute(&order.source, &order.moment, &order.cancel)?;
        let recorded = Instant::now();
        self.engine.finish()?;
        let computed = Instant::now();
        let (drawable, values) = self.bring(&tensor, size, pixels)?;
        let copied = if matches!(values, Values::Host(_)) { computed.elapsed() } else { Duration::ZERO };
        let cost = Cost { record: recorded - start, kernel: computed - recorded, copy: copied };
        Ok((Picture { drawable, values, moment: order.moment, cost }, tensor))
    }

    /// The values on the window's device: where they are, or as a copy.
    fn bring(&mut self, tensor: &Tensor, size: Size, pixels: Pixels) -> Result<(Drawable, Values)> {
        if self.opened.shares
            && let Some(shared) = tensor.buffer()
            && let Some(buffer) = raw_buffer(&*shared)
        {
            let held = Held::Tensor(tensor.clone());
            return Ok((
                Drawable { buffer: buffer.clone(), size, pixels, _held: held },
                Values::Tensor(tensor.clone()),
            ));
        }
        let values = tensor.to_bytes()?;
        let drawable = self.copies.copy(&values, size, pixels)?;
        Ok((drawable, Values::Host(Arc::new(values))))
    }
}

/// Buffers on the window's device for values from outside, used in turn.
struct Copies {
    device: wgpu::Device,
    queue: wgpu::Queue,
    buffers: Vec<(wgpu::Buffer, Arc<()>)>,
}

impl Copies {
    fn copy(&mut self, values: &[u8], size: Size, pixels: Pixels) -> Result<Drawable> {
        let bytes = values.len() as u64;
        let limit = self.device.limits().max_storage_buffer_binding_size.min(self.device.limits().max_buffer_size);
        if bytes > limit {
            return Err(Error::limit(
                format!("a picture of {} x {}", size.width, size.height),
                format!("the window’s device draws at most {} (choose a smaller size)", cantus::error::Bytes(limit)),
            ));
        }
        self.buffers.retain(|(buffer, _)| buffer.size() == bytes);
        let free = self.buffers.iter().position(|(_, token)| Arc::strong_count(token) == 1);
        let (buffer, token) = match free.and_then(|free| self.buffers.get(free)) {
            Some(free) => free.clone(),
            None => {
                let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
                    label: Some("copied values"),
                    size: bytes,
                    usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                });
                self.buffers.push((buffer.clone(), Arc::new(())));
                (buffer, self.buffers.last().map(|(_, token)| token.clone()).unwrap_or_default())
            }
        };
        self.queue.write_buffer(&buffer, 0, values);
        Ok(Drawable { buffer, size, pixels, _held: Held::Copy(token) })
    }
}

//! The window's state and what moves it: pictures ordered and received, devices switched, files read and saved. Lays nothing out.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cantus::backend::{CancelFlag, DeviceInfo, DeviceKind};
use cantus::engine::{Event, EventKind};
use cantus::{Engine, Error};
use eframe::egui;

use super::devices::{Choice, Devices};
use super::ending::{Ending, Summary};
use super::graphs::{Measurements, Sample};
use super::problem::Problem;
use super::saving::{self, Saving};
use super::settings::Settings;
use super::source::{KernelFile, Moment, Source};
use super::watch::Watch;
use super::worker::{Order, Picture, Report, Session};
use crate::picture::Coloring;

/// Frames are ordered no more often: faster than any screen shows them, slower than a spinning loop.
const LEAST_INTERVAL: Duration = Duration::from_micros(6_900);
/// The interval at which the coherence is computed.
const COHERENCE_EVERY: Duration = Duration::from_millis(250);
/// The time without an order after which frames stop following each other.
const STANDSTILL: Duration = Duration::from_millis(100);
/// The time after which a running kernel is reported.
const RUNS_ON: Duration = Duration::from_secs(2);
/// The time for which a note stays.
const NOTE_FOR: Duration = Duration::from_secs(6);
/// Events that are kept.
const EVENTS: usize = 200;

/// The state that outlives a window, so that another can replace it.
#[derive(Debug, Default)]
pub struct Legacy {
    /// The choices of the window that was lost, and why it was.
    pub lost: Option<(Settings, String)>,
    /// The summary of what was drawn.
    pub summary: Option<Summary>,
    /// Why the program must end.
    pub failure: Option<Error>,
}

/// A line of the list of events.
#[derive(Debug, Clone)]
pub struct Line {
    /// Since the window opened.
    pub at: Duration,
    pub kind: Option<EventKind>,
    pub text: String,
}

/// The window.
pub struct View {
    pub(super) settings: Settings,
    pub(super) devices: Devices,
    pub(super) kernel: Option<KernelFile>,
    pub(super) source: Option<Source>,
    watch: Option<Watch>,
    session: Option<Session>,
    /// An order is under way.
    waiting: bool,
    dirty: bool,
    ordered: Instant,
    computed_coherence: Instant,
    /// Failures in a row that are the device's.
    failures: u32,
    engine: Option<Engine>,
    pub(super) device: Option<(DeviceInfo, String)>,
    pub(super) picture: Option<Picture>,
    fresh: bool,
    pub(super) problem: Option<Problem>,
    pub(super) measurements: Measurements,
    shown: Instant,
    /// The time at which the picture on the screen was requested.
    delivered: Instant,
    pub(super) drawn: u32,
    pub(super) events: VecDeque<Line>,
    opened: Instant,
    pub(super) saving: Option<Saving>,
    pub(super) note: Option<(String, bool, Instant)>,
    pub(super) help: bool,
    /// The place where the picture was last drawn, in points.
    pub(super) place: egui::Rect,
    pub(super) folder: PathBuf,
    pub(super) ending: Ending,
    pub(super) ended: bool,
    title: String,
    lost: Arc<Mutex<Option<String>>>,
    pub(super) legacy: Arc<Mutex<Legacy>>,
}

/// The parts of a window.
pub struct Parts {
    pub settings: Settings,
    pub devices: Devices,
    pub kernel: Option<KernelFile>,
    pub folder: PathBuf,
    pub ending: Ending,
    /// Filled by the driver when the window's device is lost.
    pub lost: Arc<Mutex<Option<String>>>,
    pub legacy: Arc<Mutex<Legacy>>,
    /// The note at the start.
    pub note: Option<String>,
}

impl View {
    /// A window's state; devices open and files are read from here on.
    pub fn new(parts: Parts, context: &egui::Context) -> Self {
        let now = Instant::now();
        let Parts { settings, devices, kernel, folder, ending, lost, legacy, note } = parts;
        let mut view = Self {
            source: kernel.is_none().then_some(Source::Field),
            watch: None,
            session: None,
            waiting: false,
            dirty: true,
            ordered: now - LEAST_INTERVAL,
            computed_coherence: now - COHERENCE_EVERY,
            failures: 0,
            engine: None,
            device: None,
            picture: None,
            fresh: false,
            problem: None,
            measurements: Measurements::default(),
            shown: now,
            delivered: now,
            drawn: 0,
            events: VecDeque::new(),
            opened: now,
            saving: None,
            note: None,
            help: false,
            place: egui::Rect::ZERO,
            ended: false,
            title: String::new(),
            settings,
            devices,
            kernel,
            folder,
            ending,
            lost,
            legacy,
        };
        if let Some(note) = note {
            view.record(Some(EventKind::Lost), note.clone());
            view.say(note, true);
        }
        if let Some(file) = view.kernel.clone() {
            match Watch::start(file, view.settings.size, context.clone()) {
                Ok(watch) => view.watch = Some(watch),
                Err(error) => view.say(format!("the file is not watched: {error}"), true),
            }
        }
        let wake = context.clone();
        view.devices.look(move || wake.request_repaint());
        view.open(view.settings.choice.clone(), context);
        view
    }

    /// Computes on that device from now on. The last picture stays until the next is there.
    pub(super) fn open(&mut self, choice: Choice, context: &egui::Context) {
        // Lets go of the thread before: what it still makes is not seen.
        self.session = None;
        self.engine = None;
        self.device = None;
        self.waiting = false;
        self.failures = 0;
        self.dirty = true;
        self.measurements.forget_frames();
        self.settings.choice = choice.clone();
        match Session::start(&self.devices, &choice, context) {
            Ok(session) => self.session = Some(session),
            Err(error) => self.say(format!("no thread to compute on: {error}"), true),
        }
    }

    /// The picture must be made again.
    pub(super) fn change(&mut self) {
        self.dirty = true;
    }

    /// Another size: kernels are checked again for it.
    pub(super) fn resize(&mut self) {
        self.dirty = true;
        self.measurements.forget_frames();
        self.measurements.forget_coherence();
        self.start_over();
    }

    /// Reads the kernel again, whose tensors begin with what they were given.
    pub(super) fn start_over(&mut self) {
        if let Some(watch) = &self.watch {
            watch.resize(self.settings.size);
        }
    }

    /// Shows a line for a while.
    pub(super) fn say(&mut self, text: String, bad: bool) {
        self.note = Some((text, bad, Instant::now()));
    }

    /// Adds to the list of events.
    fn record(&mut self, kind: Option<EventKind>, text: String) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(Line { at: self.opened.elapsed(), kind, text });
    }

    /// The window's device is gone?
    pub(super) fn is_lost(&self) -> bool {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Time changes the picture?
    pub(super) fn moves(&self) -> bool {
        self.source.as_ref().is_some_and(Source::moves)
    }

    /// The device's name for people.
    pub(super) fn device_name(&self) -> Option<String> {
        self.device.as_ref().map(|(device, _)| match device.kind {
            DeviceKind::Cpu => device.name.clone(),
            _ => format!("{}: {}", device.backend, device.name),
        })
    }

    fn name(&self) -> &str {
        let file = self.kernel.as_ref().and_then(|kernel| kernel.path.file_stem()).and_then(|stem| stem.to_str());
        file.unwrap_or("field")
    }

    /// Returns the rule that turns values into colours in files.
    fn coloring(&self) -> Coloring {
        Coloring { map: self.settings.map, range: self.settings.range }
    }

    /// Saves the picture that is shown.
    pub(super) fn save(&mut self, extension: &str, context: &egui::Context) {
        let Some(picture) = &self.picture else { return self.say("there is no picture yet".to_owned(), true) };
        let path = saving::free_name(&self.folder, self.name(), extension);
        let saving = Saving::values(path, picture, self.coloring(), context.clone());
        self.begin(saving);
    }

    /// Saves the movement from here on.
    pub(super) fn save_movement(&mut self, context: &egui::Context) {
        if !self.moves() {
            return self.say(
                "the picture does not move (a kernel moves by a uniform f32 \"time\", or with --keep)".to_owned(),
                true,
            );
        }
        if self.saving.is_some() {
            return;
        }
        if let (Some(engine), Some(source)) = (&self.engine, &self.source) {
            let path = saving::free_name(&self.folder, self.name(), "gif");
            let (engine, source) = (engine.clone(), source.clone());
            let saving =
                Saving::movement(path, engine, source, self.settings.moment(), self.coloring(), context.clone());
            self.begin(saving);
        }
    }

    fn begin(&mut self, saving: cantus::Result<Saving>) {
        match saving {
            Ok(saving) => self.saving = Some(saving),
            Err(error) => self.say(error.to_string(), true),
        }
    }

    fn hear_files(&mut self, context: &egui::Context) {
        while let Some(reading) = self.watch.as_ref().and_then(|watch| watch.readings.try_recv().ok()) {
            match reading {
                Ok(kernel) => {
                    // What runs is of the past, and may take for ever.
                    if let Some(session) = &self.session {
                        session.interrupt();
                    }
                    self.source = Some(Source::Kernel(kernel));
                    self.problem = None;
                    self.dirty = true;
                    self.measurements.forget_frames();
                    self.measurements.forget_coherence();
                }
                Err((error, text)) => self.fail(&error, &text, context),
            }
        }
        if let Some(outcome) = self.saving.as_ref().and_then(Saving::outcome)
            && let Some(saving) = self.saving.take()
        {
            match outcome {
                Ok(()) => self.say(format!("saved {}", saving.path.display()), false),
                Err(Error::Cancelled { .. }) => self.say("not saved".to_owned(), false),
                Err(error) => self.say(error.to_string(), true),
            }
        }
    }

    fn hear_device(&mut self, context: &egui::Context) {
        while let Some(report) = self.session.as_ref().and_then(|session| session.reports.try_recv().ok()) {
            match report {
                Report::Opened { opened, device, why } => {
                    if opened.again {
                        self.record(Some(EventKind::Opened), format!("{}, again", device.name));
                    }
                    self.engine = Some(opened.engine);
                    self.device = Some((device, why));
                }
                Report::NotOpened(error) => self.leave(&error, context),
                Report::Picture(picture) => {
                    self.waiting = false;
                    self.failures = 0;
                    if self.problem.as_ref().is_some_and(|problem| problem.excerpt.is_none()) {
                        self.problem = None;
                    }
                    self.picture = Some(*picture);
                    self.fresh = true;
                    self.delivered = self.ordered;
                }
                Report::Failed(error) => self.failed(&error, context),
                Report::Coherence { time, value } => self.measurements.coherence(time, value),
                Report::Events(events) => self.hear_events(events),
            }
        }
    }

    fn hear_events(&mut self, events: Vec<Event>) {
        for event in events.into_iter().filter(|event| event.kind != EventKind::Skipped) {
            let text = if event.message.contains(&event.device) {
                event.message
            } else {
                format!("{}: {}", event.device, event.message)
            };
            self.record(Some(event.kind), text);
        }
    }

    fn failed(&mut self, error: &Error, context: &egui::Context) {
        self.waiting = false;
        if matches!(error, Error::Cancelled { .. }) {
            return;
        }
        if error.is_input() || matches!(error, Error::Unsupported { .. }) {
            // The same again would fail again: it waits for a change.
            return self.fail(error, "", context);
        }
        // An engine goes on with the next device after a failure: once more.
        self.failures += 1;
        self.record(Some(EventKind::Failed), error.to_string());
        if self.failures < 3 {
            self.dirty = true;
        } else {
            self.leave(error, context);
        }
    }

    /// Shows an error, `text` being the kernel's where it concerns one. Nobody is there to mend it while frames are counted: it ends the window.
    fn fail(&mut self, error: &Error, text: &str, context: &egui::Context) {
        self.problem = Some(Problem::new(error, text));
        if self.ending.frames.is_some() && !self.ended {
            self.ended = true;
            self.legacy().failure = Some(error.clone());
            context.send_viewport_cmd(egui::ViewportCommand::Close);
        }
    }

    /// The device is of no use: on with the processor, unless that was it.
    fn leave(&mut self, error: &Error, context: &egui::Context) {
        self.waiting = false;
        self.devices.forget(&self.settings.choice);
        let cpu = Choice::cpu();
        if self.settings.choice.is(&cpu) {
            return self.fail(error, "", context);
        }
        let label = self.settings.choice.label();
        self.record(Some(EventKind::FellBack), format!("{label} is left for the processor: {error}"));
        self.say(format!("{label} is left for the processor"), true);
        self.open(cpu, context);
    }

    /// Orders the next picture if it is time.
    fn order(&mut self, context: &egui::Context) {
        let hidden = context.input(|input| input.viewport().minimized.unwrap_or(false));
        let playing = self.settings.playing && self.moves() && !hidden;
        // What is still or paused is computed again as long as frames are counted: the window would never end.
        let counted = self.ending.frames.is_some_and(|frames| self.drawn < frames);
        let now = Instant::now();
        if self.waiting || self.engine.is_none() || !(playing || self.dirty || counted) {
            return;
        }
        let Some(source) = self.source.clone() else { return };
        let passed = now - self.ordered;
        if passed < LEAST_INTERVAL {
            return context.request_repaint_after(LEAST_INTERVAL - passed);
        }
        if playing {
            // A pause of the whole program is not made up for.
            self.settings.time += passed.as_secs_f64().min(0.25) * self.settings.speed;
        }
        let coherence = now - self.computed_coherence >= COHERENCE_EVERY;
        if coherence {
            self.computed_coherence = now;
        }
        let moment = self.settings.moment();
        let Some(session) = &mut self.session else { return };
        let sent = session.order(Order { source, moment, coherence, cancel: CancelFlag::new() });
        self.ordered = now;
        if sent {
            (self.waiting, self.dirty) = (true, false);
        } else {
            let error =
                Error::DeviceLost { device: self.settings.choice.label(), reason: "its thread ended".to_owned() };
            self.leave(&error, context);
        }
    }

    /// Notes what the frame on the screen cost. `ui` is the time that egui took for the frame before.
    fn measure(&mut self, ui: Option<f32>) {
        let now = Instant::now();
        let shown = std::mem::replace(&mut self.shown, now);
        // After a standstill a frame begins with its order.
        let total = now - if self.delivered > shown + STANDSTILL { self.delivered } else { shown };
        if let Some(picture) = self.picture.as_ref().filter(|_| std::mem::take(&mut self.fresh)) {
            self.drawn += 1;
            let cost = picture.cost;
            let milliseconds = |time: Duration| time.as_secs_f32() * 1e3;
            self.measurements.frame(Sample {
                total: milliseconds(total),
                kernel: milliseconds(cost.kernel),
                own: milliseconds(cost.record + cost.copy) + ui.unwrap_or(0.0) * 1e3,
                copy: milliseconds(cost.copy),
            });
        }
    }

    /// Returns the time for which the kernel has been computing, if that is long.
    pub(super) fn runs_on(&self) -> Option<Duration> {
        Some(self.ordered.elapsed()).filter(|time| self.waiting && *time >= RUNS_ON)
    }

    /// The part of a frame that draws nothing.
    pub(super) fn advance(&mut self, context: &egui::Context, ui_time: Option<f32>) {
        // First, so that what was counted last has been laid out.
        self.end(context);
        self.hear_files(context);
        self.hear_device(context);
        self.order(context);
        if self.fresh {
            self.measure(ui_time);
        }
        if self.note.as_ref().is_some_and(|(_, _, since)| since.elapsed() > NOTE_FOR) {
            self.note = None;
        }
        if self.note.is_some() || self.saving.is_some() {
            context.request_repaint_after(Duration::from_millis(150));
        }
        if self.waiting {
            context.request_repaint_after(RUNS_ON / 4);
        }
        self.retitle(context);
        if self.ending.frames.is_some_and(|frames| self.drawn >= frames) {
            context.request_repaint();
        }
    }

    fn retitle(&mut self, context: &egui::Context) {
        let shown = self.kernel.as_ref().and_then(|kernel| kernel.path.file_name()).map(Path::new);
        let shown = shown.map_or_else(|| "field".to_owned(), |name| name.display().to_string());
        let state = match (&self.problem, self.device_name()) {
            (Some(problem), _) => problem.place().unwrap_or_else(|| "error".to_owned()),
            (None, Some(_)) if self.runs_on().is_some() => "still computing".to_owned(),
            (None, Some(device)) => device,
            (None, None) => "opening a device".to_owned(),
        };
        let title = format!("{shown}, {state} – Cantus");
        if title != self.title {
            context.send_viewport_cmd(egui::ViewportCommand::Title(title.clone()));
            self.title = title;
        }
    }

    pub(super) fn legacy(&self) -> std::sync::MutexGuard<'_, Legacy> {
        self.legacy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // Here, because egui may give up in the middle of a frame when its device is gone.
        if let Some(reason) = self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            self.legacy().lost = Some((self.settings.clone(), reason));
        }
        self.session = None;
        self.engine = None;
        self.picture = None;
        super::worker::close(&self.devices);
    }
}

impl Settings {
    /// The moment to show.
    pub fn moment(&self) -> Moment {
        Moment { size: self.size, frequency: self.frequency, time: self.time, mouse: self.mouse }
    }
}

//! The interface's state and its loop: samples and keys in, a picture out. Samples are taken on a thread, so keys answer at once.

use std::collections::{HashMap, VecDeque};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use cantus::{Error, Result};
use cantus_monitor::{Engine, Monitor, Sample};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::draw;

/// Looks that the graphs remember.
pub const HISTORY: usize = 600;

/// The order of the engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    #[default]
    Process,
    Rate,
    Memory,
    Failures,
}

impl Order {
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Rate => "kernels per second",
            Self::Memory => "memory",
            Self::Failures => "failures",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Process => Self::Rate,
            Self::Rate => Self::Memory,
            Self::Memory => Self::Failures,
            Self::Failures => Self::Process,
        }
    }
}

/// The last figures of a device or engine, oldest first.
pub type Series = VecDeque<f64>;

#[derive(Debug, Default)]
pub struct State {
    pub sample: Option<Sample>,
    pub selected: usize,
    pub order: Order,
    pub paused: bool,
    pub help: bool,
    /// Load and memory in percent, by a device's place and name.
    pub devices: HashMap<(usize, String), [Series; 2]>,
    /// Dispatches per second of all engines.
    pub rate: Series,
    pub colour: bool,
    pub interval: Duration,
}

fn push(series: &mut Series, value: f64) {
    if series.len() >= HISTORY {
        series.pop_front();
    }
    series.push_back(value);
}

impl State {
    pub fn new(interval: Duration, colour: bool) -> Self {
        Self { interval, colour, ..Self::default() }
    }

    pub fn add(&mut self, mut sample: Sample) {
        if self.paused {
            return;
        }
        let devices: Vec<_> =
            sample.devices.iter().enumerate().map(|(place, device)| ((place, device.name.clone()), device)).collect();
        // What is unplugged is forgotten.
        self.devices.retain(|key, _| devices.iter().any(|(known, _)| known == key));
        for (key, device) in devices {
            let [load, memory] = self.devices.entry(key).or_default();
            push(load, device.utilisation_percent.value().copied().unwrap_or_default());
            let share = device.memory_used_bytes.value().zip(device.memory_total_bytes.value());
            push(memory, share.map_or(0.0, |(&used, &total)| used as f64 / total.max(1) as f64 * 100.0));
        }
        push(&mut self.rate, sample.engines.iter().map(|engine| engine.dispatches_per_second).sum());
        if self.sample.is_none() {
            // The one that tells most: somebody who looks wants to see something.
            let most = sample.devices.iter().enumerate().rev().max_by_key(|(_, device)| told(device));
            self.selected = most.map_or(0, |(place, _)| place);
        }
        self.selected = self.selected.min(sample.devices.len().saturating_sub(1));
        sort(&mut sample.engines, self.order);
        self.sample = Some(sample);
    }

    /// Obeys a key; false when it ends the program.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let last = self.sample.as_ref().map_or(0, |sample| sample.devices.len().saturating_sub(1));
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
            KeyCode::Char('q') => return false,
            KeyCode::Esc if !self.help => return false,
            KeyCode::Esc => self.help = false,
            KeyCode::Char('?' | 'h') => self.help = !self.help,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Down | KeyCode::Char('j') => self.selected = self.selected.saturating_add(1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Char('s') => {
                self.order = self.order.next();
                if let Some(sample) = &mut self.sample {
                    sort(&mut sample.engines, self.order);
                }
            }
            _ => {}
        }
        true
    }
}

/// Returns the number of figures that a device reports.
fn told(device: &cantus_monitor::Device) -> usize {
    let numbers = [&device.utilisation_percent, &device.temperature_celsius, &device.power_watts, &device.clock_mhz];
    let bytes = [&device.memory_used_bytes, &device.memory_total_bytes];
    numbers.iter().filter(|reading| reading.value().is_some()).count()
        + bytes.iter().filter(|reading| reading.value().is_some()).count()
}

fn sort(engines: &mut [Engine], order: Order) {
    let memory = |engine: &Engine| -> u64 {
        engine.figures.devices.iter().map(|device| device.in_use).fold(0, u64::saturating_add)
    };
    engines.sort_by(|a, b| {
        let by = match order {
            Order::Process => std::cmp::Ordering::Equal,
            Order::Rate => b.dispatches_per_second.total_cmp(&a.dispatches_per_second),
            Order::Memory => memory(b).cmp(&memory(a)),
            Order::Failures => b.figures.failures.cmp(&a.figures.failures),
        };
        by.then((a.figures.process, a.figures.engine).cmp(&(b.figures.process, b.figures.engine)))
    });
}

/// Draws until a key ends it. The terminal is given back as it was, after a panic too.
pub fn run(mut monitor: Monitor, interval: Duration) -> Result<ExitCode> {
    // One sample waits at most: a terminal that is stopped piles up none.
    let (sender, samples) = sync_channel(1);
    std::thread::spawn(move || {
        while sender.send(monitor.sample()).is_ok() {
            std::thread::sleep(interval);
        }
    });
    let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut terminal = ratatui::try_init().map_err(|error| terminal_failed(&error))?;
    let outcome = watch(&mut terminal, State::new(interval, colour), &samples);
    ratatui::restore();
    outcome.map(|()| ExitCode::SUCCESS).map_err(|error| terminal_failed(&error))
}

fn watch(terminal: &mut ratatui::DefaultTerminal, mut state: State, samples: &Receiver<Sample>) -> std::io::Result<()> {
    loop {
        while let Ok(sample) = samples.try_recv() {
            state.add(sample);
        }
        terminal.draw(|frame| draw::all(frame, &state))?;
        if event::poll(Duration::from_millis(100))?
            && let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
            && !state.key(key)
        {
            return Ok(());
        }
    }
}

fn terminal_failed(error: &std::io::Error) -> Error {
    Error::invalid("cantus top", format!("the terminal cannot be used: {error} (--once prints a table)"))
}

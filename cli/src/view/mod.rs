//! `cantus view`: a window with the field, or with what a kernel file makes, while it is written.
//!
//! The UI thread draws and waits for nothing else: engines, files and everything that takes time have threads of their own. One device
//! draws (`adapter`), any device computes (`devices`, `worker`); where the two are one, the picture is drawn from the tensor's buffer
//! (`picture`). A window whose device is lost is closed, and another one takes its place with the same settings.

mod adapter;
mod app;
mod devices;
mod ending;
mod graphs;
mod keys;
mod look;
mod panel;
mod picture;
mod problem;
mod saving;
mod settings;
mod source;
mod stage;
mod watch;
mod worker;

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cantus::backend::Registry;
use cantus::{Config, Error, Result};
use clap::{Args, ValueEnum};
use eframe::egui::{self, ThemePreference, ViewportBuilder};
use eframe::wgpu;

use self::app::{Legacy, Parts, View};
use self::devices::{Devices, WindowDevice};
use self::ending::Ending;
use self::settings::Settings;
use self::source::{KernelFile, Mouse};
use super::colormap::Colormap;
use super::field::WaveArguments;
use super::global::Global;
use super::output::OutputFile;
use super::parse::{self, Size};
use super::report;
use super::run::Given;

/// Open a window with the field, or with a kernel's picture, which is redrawn whenever the file is saved
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A kernel to watch instead of the field
    #[arg(value_name = "KERNEL.wgsl")]
    kernel: Option<PathBuf>,
    #[command(flatten)]
    given: Given,
    /// The binding to show: a storage texture, or a read_write buffer of f32, u32 or i32 (numbers, shown as colours) or vec4f (red, green,
    /// blue, opacity) [default: the first such binding, textures first]
    #[arg(long, value_name = "NAME", requires = "kernel")]
    show: Option<String>,
    /// Begin each frame with the buffers of the last one, as simulations need; Home starts over
    #[arg(long, requires = "kernel")]
    keep: bool,
    /// Exchange two bindings after each frame, and keep the buffers
    #[arg(long, value_name = "A,B", requires = "kernel", value_parser = parse::pair)]
    swap: Option<[String; 2]>,
    /// Columns and rows of the picture
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "512x512")]
    size: Size,
    #[command(flatten)]
    wave: WaveArguments,
    /// Time at the start, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = parse::finite, allow_negative_numbers = true)]
    time: f64,
    /// Seconds of the picture per second
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = parse::finite, allow_negative_numbers = true)]
    speed: f64,
    /// Start paused
    #[arg(long)]
    paused: bool,
    /// The colours: as for cantus field
    #[arg(long, value_name = "NAME", default_value_t = Colormap::Viridis, ignore_case = true, hide_possible_values = true)]
    colormap: Colormap,
    /// The values of the first and the last colour
    #[arg(long, value_name = "MIN,MAX", default_value = "-1,1", value_parser = parse::range, allow_hyphen_values = true)]
    range: (f32, f32),
    /// Show one value per pixel, instead of filling the window
    #[arg(long)]
    actual_size: bool,
    /// The window's colours
    #[arg(long, value_name = "THEME", value_enum, default_value_t = Theme::System)]
    theme: Theme,
    /// Inner size of the window in points
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1120x760")]
    window: Size,
    /// Folder for saved pictures [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    save_to: Option<PathBuf>,
    /// Close after this many frames and print their times; an error also closes the window
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    frames: Option<u32>,
    /// With --frames: save a picture of the window before it closes
    #[arg(long, value_name = "FILE.png", requires = "frames")]
    screenshot: Option<PathBuf>,
    /// With --frames: print the times as JSON
    #[arg(long, requires = "frames")]
    json: bool,
    /// For tests: give the window's device up after this many frames
    #[arg(long, value_name = "N", hide = true)]
    lose_device: Option<u32>,
    /// For tests: lose the devices of later windows too
    #[arg(long, hide = true, requires = "lose_device")]
    lose_again: bool,
}

/// Light or dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Theme {
    System,
    Light,
    Dark,
}

const EXAMPLES: &str = "\
Examples:
  cantus view                              the field; F1 lists the keys
  cantus view waves.wgsl --size 800x600    a kernel, run again when it is saved
  cantus view life.wgsl --in cells=random:7:2[256,256] --size 256x256 \\
      --swap cells,after --range 0,1       a simulation
  cantus view blur.wgsl --in image=photo.png --out blurred=rgba8unorm[@image]
  cantus --backend cpu view --frames 120 --screenshot window.png

A kernel's picture is a texture_storage_2d that it writes (rgba8unorm,
bgra8unorm, rgba16float, rgba32float, r32float, r32uint, r32sint), or a
read_write binding of f32, u32, i32 or vec4f, row by row: a tensor of rows and
columns (and four parts), or as many values as --size or a square has. Without
--in or --out it is filled with --size zeros. Without --workgroups or
--invocations, one invocation runs for each value, along x and y if the
workgroup has both, else along x.

Uniforms with these names, or members of uniforms, follow the window unless
--set sets them: time and frequency (f32), width and height (u32), mouse (vec2f:
column and row on the picture), pressed (u32: 1 while a button is).";

/// Windows that may be lost within `LOST_WITHIN`, before the program gives up.
const LOST_AT_MOST: usize = 3;
const LOST_WITHIN: Duration = Duration::from_secs(60);
/// The longest time that the program waits for a device at its end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs the subcommand.
///
/// # Errors
/// When no window can be opened, or its device is lost again and again.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let config = global.usable_config()?;
    if let Some(folder) = arguments.save_to.as_deref().filter(|folder| !folder.is_dir()) {
        return Err(Error::invalid(
            format!("--save-to {}", folder.display()),
            "there is no such folder (create it first)",
        ));
    }
    let kernel = arguments.kernel.clone().map(|path| KernelFile {
        path,
        given: arguments.given.clone(),
        show: arguments.show.clone(),
        keep: arguments.keep,
        swap: arguments.swap.clone(),
    });
    if let Some(kernel) = &kernel {
        check(kernel, arguments)?;
    }
    if let Some(path) = &arguments.screenshot {
        OutputFile::create(path)?;
    }
    display()?;
    keep_quiet_when_lost();
    let registry = Registry::with_defaults();
    let legacy = Arc::new(Mutex::new(Legacy::default()));
    let mut lost: Vec<Instant> = Vec::new();
    let mut inherited: Option<(Settings, String)> = None;
    let summary = loop {
        let again = inherited.is_some();
        LOST.store(false, Ordering::Release);
        window(arguments, kernel.as_ref(), &config, &registry, inherited.take(), &legacy)?;
        let mut left = legacy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = left.failure.take() {
            return Err(error);
        }
        let Some((settings, reason)) = left.lost.take() else { break left.summary.take() };
        drop(left);
        tracing::debug!(again, "the window's device was lost: {reason}");
        lost.retain(|when| when.elapsed() < LOST_WITHIN);
        lost.push(Instant::now());
        if lost.len() > LOST_AT_MOST {
            let device = "the window's device".to_owned();
            return Err(Error::DeviceLost { device, reason: format!("{reason}, {LOST_AT_MOST} times in a minute") });
        }
        inherited = Some((settings, reason));
    };
    if !worker::settle(PATIENCE) {
        // A kernel that does not end must not keep the program: the system takes everything back.
        tracing::info!("a device is still at work");
    }
    match summary {
        Some(summary) if arguments.json => report::print_json(&summary.json()),
        Some(summary) => Ok(report::done(&summary.text())),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Refuses what no window can mend: a file that isn't there, and with a number of frames, after which nobody is waited for, any error.
fn check(kernel: &KernelFile, arguments: &Arguments) -> Result<()> {
    if kernel.path == Path::new("-") {
        return Err(Error::invalid("cantus view -", "a window reads a file again whenever it is saved: name one"));
    }
    match kernel.load(arguments.size) {
        Err(error) if arguments.frames.is_some() || matches!(error, Error::Unreadable { .. }) => Err(error),
        _ => Ok(()),
    }
}

impl Arguments {
    /// The settings of a first window.
    fn settings(&self, devices: &Devices) -> Settings {
        Settings {
            frequency: self.wave.frequency.hertz(),
            speed: self.speed,
            time: self.time,
            mouse: Mouse::default(),
            size: self.size,
            map: self.colormap,
            range: self.range,
            playing: !self.paused,
            smooth: false,
            actual: self.actual_size,
            panel: true,
            theme: match self.theme {
                Theme::System => ThemePreference::System,
                Theme::Light => ThemePreference::Light,
                Theme::Dark => ThemePreference::Dark,
            },
            choice: devices.asked(),
        }
    }
}

/// Opens a window and stays until it is closed.
fn window(
    arguments: &Arguments,
    kernel: Option<&KernelFile>,
    config: &Config,
    registry: &Registry,
    inherited: Option<(Settings, String)>,
    legacy: &Arc<Mutex<Legacy>>,
) -> Result<()> {
    let size = [arguments.window.width as f32, arguments.window.height as f32];
    let viewport = ViewportBuilder::default()
        .with_title("Cantus")
        .with_app_id("cantus")
        .with_inner_size(size)
        .with_min_inner_size([360.0, 240.0])
        .with_icon(look::icon());
    let options = eframe::NativeOptions {
        viewport,
        renderer: eframe::Renderer::Wgpu,
        wgpu_options: adapter::configuration(config.low_power.unwrap_or(false)),
        dithering: false,
        ..eframe::NativeOptions::default()
    };
    let again = inherited.is_some();
    let (config, registry, legacy) = (config.clone(), registry.clone(), legacy.clone());
    let kernel = kernel.cloned();
    let ending = Ending {
        frames: arguments.frames,
        screenshot: arguments.screenshot.clone(),
        lose_device: arguments.lose_device.filter(|_| !again || arguments.lose_again),
    };
    let folder = arguments.save_to.clone().unwrap_or_else(|| PathBuf::from("."));
    let lost = Arc::new(Mutex::new(None));
    let seen = lost.clone();
    let app: eframe::AppCreator<'_> = Box::new(move |creation| {
        let state = creation.wgpu_render_state.as_ref().ok_or("the window has no wgpu device")?;
        heed(&state.device, &creation.egui_ctx, lost.clone());
        picture::install(state);
        look::dress(&creation.egui_ctx);
        let devices = Devices::new(config, registry, WindowDevice::new(&state.device, &state.queue));
        let (settings, note) = match inherited {
            Some((settings, reason)) => {
                (settings, Some(format!("the window’s device was lost and opened again: {reason}")))
            }
            None => (arguments.settings(&devices), None),
        };
        creation.egui_ctx.set_theme(settings.theme);
        let parts = Parts { settings, devices, kernel, folder, ending, lost, legacy, note };
        Ok(Box::new(View::new(parts, &creation.egui_ctx)))
    });
    // egui ends in a panic when its device is lost between laying a frame out and drawing it; no second window opens after that.
    let opened = std::panic::catch_unwind(AssertUnwindSafe(|| eframe::run_native("Cantus", options, app)));
    let lost = seen.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    match opened {
        Err(_) if lost => {
            let reason = "in the middle of a frame; open the window again".to_owned();
            Err(Error::DeviceLost { device: "the window's device".to_owned(), reason })
        }
        Err(panic) => std::panic::resume_unwind(panic),
        Ok(opened) => opened.map_err(|error| unopened(&error)),
    }
}

/// The error of a window that cannot be opened.
fn unopened(error: &eframe::Error) -> Error {
    let said = error.to_string();
    let message = match error {
        // With the place in the library's source, which helps nobody.
        eframe::Error::WinitEventLoop(_) => {
            let said = said.rsplit(": ").next().unwrap_or_default();
            format!("{said} (is there a desktop session, and does DISPLAY or WAYLAND_DISPLAY name it?)")
        }
        _ => said,
    };
    Error::Device { device: "the display".to_owned(), action: "opening a window".to_owned(), message }
}

/// Listens to the window's device: what it refuses is logged, its loss is kept and wakes the window.
fn heed(device: &wgpu::Device, context: &egui::Context, lost: Arc<Mutex<Option<String>>>) {
    let wake = context.clone();
    device.set_device_lost_callback(move |reason, message| {
        let text = if message.is_empty() { format!("{reason:?}") } else { message };
        LOST.store(true, Ordering::Release);
        *lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        wake.request_repaint();
    });
    device.on_uncaptured_error(Arc::new(|error| tracing::warn!("the window's device: {error}")));
}

/// The window's device is lost: a panic now is egui's, and expected.
static LOST: AtomicBool = AtomicBool::new(false);

/// Suppresses the panics of a lost device; all others are reported as before.
fn keep_quiet_when_lost() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if LOST.load(Ordering::Acquire) {
            tracing::debug!("the window ended with its device: {panic}");
        } else {
            before(panic);
        }
    }));
}

/// Says early that there is no display: the windowing library's own words help nobody.
fn display() -> Result<()> {
    let unix = cfg!(all(unix, not(any(target_os = "macos", target_os = "ios", target_os = "android"))));
    let has = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if !unix || ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].into_iter().any(has) {
        return Ok(());
    }
    Err(Error::Device {
        device: "the display".to_owned(),
        action: "opening a window".to_owned(),
        message: "neither DISPLAY nor WAYLAND_DISPLAY is set (run it in a desktop session, set DISPLAY=:0 for the one of this machine, or use: xvfb-run cantus view; without a window: cantus field)".to_owned(),
    })
}

impl eframe::App for View {
    fn logic(&mut self, context: &egui::Context, frame: &mut eframe::Frame) {
        self.advance(context, frame.info().cpu_usage);
    }

    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        // Nothing is drawn with a lost device: egui could not, and the window is about to close.
        if self.is_lost() {
            return;
        }
        self.keys(&ui.ctx().clone());
        if self.settings.panel {
            self.panel(ui);
        }
        self.stage(ui);
    }

    fn clear_color(&self, visuals: &egui::Visuals) -> [f32; 4] {
        visuals.panel_fill.to_normalized_gamma_f32()
    }
}

//! A screen of its own (Xvfb), and windows of the program on it, used as a person does: keys, mouse, the window's frame.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use image::RgbImage;

use super::close;

/// The longest wait for anything; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A screen without a window manager.
pub struct Screen {
    server: Child,
    display: String,
}

impl Screen {
    /// Starts a server. The error says what is missing.
    pub fn start() -> Result<Self, String> {
        for program in ["xdotool", "import"] {
            let found = Command::new(program).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            found.map_err(|error| format!("{program}: {error} (Debian: apt-get install xvfb xdotool imagemagick)"))?;
        }
        // The server chooses a free number and writes it to the pipe. It would begin anew when its last window closes, and refuse the next one.
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1700x1300x24", "-nolisten", "tcp", "-noreset"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("Xvfb: {error} (Debian: apt-get install xvfb)"))?;
        let mut number = Vec::new();
        if let Some(pipe) = &mut server.stdout {
            let mut byte = [0];
            while pipe.read_exact(&mut byte).is_ok() && byte != *b"\n" {
                number.push(byte[0]);
            }
        }
        let number = String::from_utf8_lossy(&number).trim().to_owned();
        if number.is_empty() {
            let _ = server.kill();
            return Err("Xvfb did not start".to_owned());
        }
        Ok(Self { server, display: format!(":{number}") })
    }

    /// The program with these arguments on this screen.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cantus"));
        command.args(arguments).env("DISPLAY", &self.display).env_remove("WAYLAND_DISPLAY");
        command.stdin(Stdio::null());
        command
    }

    /// Opens a window and waits until it shows.
    pub fn open(&self, arguments: &[&str]) -> Window<'_> {
        self.open_with(arguments, &[])
    }

    /// [`Screen::open`] with variables set.
    pub fn open_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Window<'_> {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut window = Window { screen: self, child, id: String::new() };
        window.find();
        window
    }

    pub fn tool(&self, arguments: &[&str]) -> String {
        let output = Command::new("xdotool").args(arguments).env("DISPLAY", &self.display).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Returns a picture of the screen.
    pub fn picture(&self, folder: &Path) -> RgbImage {
        let path = folder.join("screen.png");
        let mut import = Command::new("import");
        let done = import.args(["-window", "root"]).arg(&path).env("DISPLAY", &self.display).status().unwrap();
        assert!(done.success(), "import failed");
        image::open(path).unwrap().to_rgb8()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A window of the program.
pub struct Window<'a> {
    screen: &'a Screen,
    child: Child,
    id: String,
}

impl Window<'_> {
    /// Finds the window on the screen: the first, or the one that took its place.
    pub fn find(&mut self) {
        let process = self.child.id().to_string();
        self.id = wait("the window", || {
            assert!(self.child.try_wait().unwrap().is_none(), "the program ended: {}", self.said());
            let found = self.screen.tool(&["search", "--onlyvisible", "--pid", &process]);
            found.lines().next().filter(|id| **id != self.id).map(str::to_owned)
        });
        self.screen.tool(&["windowmove", &self.id, "0", "0"]);
        self.screen.tool(&["windowfocus", "--sync", &self.id]);
    }

    fn said(&mut self) -> String {
        let mut said = String::new();
        if let Some(pipe) = &mut self.child.stderr {
            let _ = pipe.read_to_string(&mut said);
        }
        said
    }

    /// The title now.
    pub fn title(&self) -> String {
        self.screen.tool(&["getwindowname", &self.id])
    }

    /// Waits for a title with this in it, and returns the whole.
    pub fn wait_title(&mut self, part: &str) -> String {
        let mut last = String::new();
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            last = self.title();
            if last.contains(part) {
                return last;
            }
            assert!(self.child.try_wait().unwrap().is_none(), "the program ended: {}", self.said());
            std::thread::sleep(Duration::from_millis(30));
        }
        panic!("no title with \"{part}\" came: \"{last}\"");
    }

    /// Presses keys, one after the other.
    pub fn keys(&self, keys: &[&str]) {
        self.screen.tool(&["windowfocus", &self.id]);
        for key in keys {
            self.screen.tool(&["key", "--clearmodifiers", key]);
        }
    }

    /// Clicks a place of the window.
    pub fn click(&self, x: u32, y: u32) {
        self.screen.tool(&["mousemove", "--window", &self.id, &x.to_string(), &y.to_string()]);
        std::thread::sleep(Duration::from_millis(100));
        self.screen.tool(&["click", "1"]);
    }

    /// Presses at one place of the window and lets go at another.
    pub fn drag(&self, from: (u32, u32), to: (u32, u32)) {
        let place = |(x, y): (u32, u32)| [x.to_string(), y.to_string()];
        let [x, y] = place(from);
        self.screen.tool(&["mousemove", "--window", &self.id, &x, &y]);
        self.screen.tool(&["mousedown", "1"]);
        std::thread::sleep(Duration::from_millis(150));
        let [x, y] = place(to);
        self.screen.tool(&["mousemove", "--window", &self.id, &x, &y]);
        std::thread::sleep(Duration::from_millis(150));
        self.screen.tool(&["mouseup", "1"]);
    }

    pub fn resize(&self, width: u32, height: u32) {
        self.screen.tool(&["windowsize", &self.id, &width.to_string(), &height.to_string()]);
    }

    /// Returns a picture of the window, which is in the screen's corner.
    pub fn picture(&self, folder: &Path) -> RgbImage {
        let geometry = self.screen.tool(&["getwindowgeometry", "--shell", &self.id]);
        let number = |name: &str| -> u32 {
            let line = geometry.lines().find_map(|line| line.strip_prefix(name)).expect("a geometry");
            line.trim_start_matches('=').parse().unwrap()
        };
        let screen = self.screen.picture(folder);
        let (width, height) = (number("WIDTH").min(screen.width()), number("HEIGHT").min(screen.height()));
        image::imageops::crop_imm(&screen, 0, 0, width, height).to_image()
    }

    /// Resident memory in KiB.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a resident size");
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Threads of the process.
    pub fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().count()
    }

    /// Closes the window as a window manager does, and waits for the program's end. Returns how long that took, and what it said.
    pub fn close(mut self) -> (Duration, String) {
        let start = Instant::now();
        close::ask(&self.screen.display, self.id.parse().unwrap());
        self.ended(start)
    }

    /// Waits for the end after something else closed it.
    pub fn ended(&mut self, start: Instant) -> (Duration, String) {
        let status = wait("the program's end", || self.child.try_wait().unwrap());
        let took = start.elapsed();
        let said = self.said();
        assert!(status.success(), "it ended with {status}: {said}");
        assert!(!said.contains("panicked"), "{said}");
        (took, said)
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something is there.
pub fn wait<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = there() {
            return found;
        }
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// Waits for a file that is written whole.
pub fn wait_file(path: PathBuf) -> PathBuf {
    wait(&path.display().to_string(), || path.exists().then(|| path.clone()))
}

/// The mean difference of two pictures of one size, of 255.
pub fn mean_difference(ours: &RgbImage, theirs: &RgbImage) -> f64 {
    assert_eq!(ours.dimensions(), theirs.dimensions());
    let sum: u64 = ours.iter().zip(theirs.iter()).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    sum as f64 / ours.len() as f64
}

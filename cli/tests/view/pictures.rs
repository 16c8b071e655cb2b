//! Pictures on the screen and in saved files, against the field that `cantus field` computes on the CPU.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use image::RgbImage;

use super::Case;
use super::desktop::{Screen, mean_difference, wait, wait_file};

pub const CASES: &[Case] = &[
    ("the picture is the CPU's, drawn from the buffer and as a copy", drawn),
    ("keys and files", keys_and_files),
    ("the mouse", mouse),
    ("without a display", without_display),
];

/// The field of a moment as a picture, by the subcommand that makes pictures.
pub fn reference(folder: &Path, size: &str, time: &str, more: &[&str]) -> RgbImage {
    let path = folder.join("reference.png");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cantus"));
    command.args(["--backend", "cpu", "field", size, "--time", time, "-o"]).arg(&path).args(more);
    assert!(command.status().unwrap().success());
    image::open(path).unwrap().to_rgb8()
}

fn drawn(screen: &Screen) {
    let folder = tempfile::tempdir().unwrap();
    let expected = reference(folder.path(), "384x320", "1.25", &["--colormap", "magma"]);
    for (backend, shared) in [("wgpu", true), ("cpu", false)] {
        let shot = folder.path().join("window.png");
        let arguments = [
            "--backend",
            backend,
            "view",
            "--size",
            "384x320",
            "--time",
            "1.25",
            "--paused",
            "--actual-size",
            "--colormap",
            "magma",
            "--frames",
            "1",
            "--json",
            "--screenshot",
        ];
        let output = screen.command(&arguments).arg(&shot).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["shared"], shared, "{report}");
        let side = |name: &str| report["picture"][name].as_f64().unwrap() as u32;
        let window = image::open(&shot).unwrap().to_rgb8();
        let picture = image::imageops::crop_imm(&window, side("left"), side("top"), side("width"), side("height"));
        let difference = mean_difference(&picture.to_image(), &expected);
        println!("        {backend}: mean difference {difference:.4} of 255");
        assert!(difference < 1.0, "{backend}: {difference}");
    }
}

fn keys_and_files(screen: &Screen) {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().display().to_string();
    let arguments = [
        "--backend",
        "cpu",
        "view",
        "--paused",
        "--time",
        "0.5",
        "--size",
        "256x256",
        "--save-to",
        &target,
        "--actual-size",
    ];
    let mut window = screen.open(&arguments);
    window.wait_title("field, ");
    // Ten Hz up, and the map after viridis.
    window.keys(&["shift+Up", "c"]);
    let more = ["--colormap", "magma", "--frequency", "538"];
    let expected = reference(folder.path(), "256x256", "0.5", &more);
    // What the screen itself shows, somewhere in the stage.
    wait("the picture of 538 Hz", || {
        let shown = window.picture(folder.path());
        let corner = (shown.width() - 284 - 256) / 2 + 284;
        let top = (shown.height() - 256) / 2;
        let picture = image::imageops::crop_imm(&shown, corner, top, 256, 256).to_image();
        (mean_difference(&picture, &expected) < 1.0).then_some(())
    });
    window.keys(&["s"]);
    let saved = image::open(wait_file(folder.path().join("field.png"))).unwrap().to_rgb8();
    assert_eq!(saved, expected, "the saved picture is another one");
    window.keys(&["n"]);
    let values = std::fs::read(wait_file(folder.path().join("field.npy"))).unwrap();
    let numbers = folder.path().join("reference.npy");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cantus"));
    command.args(["--backend", "cpu", "field", "256x256", "--time", "0.5", "--frequency", "538", "-o"]).arg(&numbers);
    assert!(command.status().unwrap().success());
    assert_eq!(values, std::fs::read(numbers).unwrap(), "the saved values are others");
    // A second PNG takes another name; then the movement.
    window.keys(&["s"]);
    wait_file(folder.path().join("field-2.png"));
    window.keys(&["g"]);
    let path = wait_file(folder.path().join("field.gif"));
    let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    let decoder = image::codecs::gif::GifDecoder::new(file).unwrap();
    let frames = image::AnimationDecoder::into_frames(decoder).collect_frames().unwrap();
    assert_eq!(frames.len(), 72);
    let first = image::DynamicImage::ImageRgba8(frames[0].buffer().clone()).to_rgb8();
    assert_eq!(mean_difference(&first, &expected), 0.0);
    // Help opens, and goes.
    let before = window.picture(folder.path());
    window.keys(&["F1"]);
    wait("the page of help", || (mean_difference(&window.picture(folder.path()), &before) > 1.0).then_some(()));
    window.keys(&["Escape"]);
    wait("the picture again", || (mean_difference(&window.picture(folder.path()), &before) < 1.0).then_some(()));
    let start = Instant::now();
    window.keys(&["ctrl+q"]);
    let (took, _) = window.ended(start);
    assert!(took < Duration::from_secs(5), "closing took {took:?}");
}

/// The largest area of the accent's colour: the button that plays and pauses.
fn button(picture: &RgbImage) -> Option<(u32, u32)> {
    let accent = |x: u32, y: u32| picture.get_pixel(x, y).0 == [0xe0, 0xa3, 0x68];
    let full_row = |y: &u32| (20..284).filter(|x| accent(*x, *y)).count() > 30;
    // Rails of sliders are lower than this.
    let y = (0..picture.height().saturating_sub(12)).find(|y| (*y..*y + 12).all(|y| full_row(&y)))? + 6;
    let x = (20..284).filter(|x| accent(*x, y)).sum::<u32>() / (20..284).filter(|x| accent(*x, y)).count() as u32;
    Some((x, y))
}

fn mouse(screen: &Screen) {
    let folder = tempfile::tempdir().unwrap();
    let mut window =
        screen.open(&["--backend", "cpu", "view", "--theme", "dark", "--size", "256x256", "--window", "1000x1000"]);
    window.wait_title("field, ");
    let stage = |picture: &RgbImage| image::imageops::crop_imm(picture, 300, 100, 600, 800).to_image();
    let look = || window.picture(folder.path());
    let moving = || mean_difference(&stage(&look()), &stage(&look())) > 0.02;
    wait("movement", || moving().then_some(()));
    let (x, y) = wait("the button", || button(&look()));
    window.click(x, y);
    wait("a standstill", || (!moving()).then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!moving(), "it moves while it is paused");
    // Dragging the slider of the frequency, the first rail with its part in the accent's colour, changes the picture.
    let before = stage(&look());
    let picture = look();
    let accent = |x: u32, y: u32| picture.get_pixel(x, y).0 == [0xe0, 0xa3, 0x68];
    let rail = (0..y).find(|y| (24..100).all(|x| accent(x, *y))).expect("a rail") + 2;
    let end = (24..270).take_while(|x| accent(*x, rail)).last().expect("its end");
    window.drag((end + 4, rail), (end + 60, rail));
    wait("another picture", || (mean_difference(&stage(&look()), &before) > 1.0).then_some(()));
    assert!(!moving(), "it moves while it is paused");
    window.click(x, y);
    wait("movement", || moving().then_some(()));
    let (took, _) = window.close();
    assert!(took < Duration::from_secs(5), "closing took {took:?}");
}

fn without_display(screen: &Screen) {
    let mut command = screen.command(&["view"]);
    let output = command.env_remove("DISPLAY").env_remove("WAYLAND_SOCKET").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("neither DISPLAY nor WAYLAND_DISPLAY is set") && said.contains("DISPLAY=:0"), "{said}");
    let output = screen.command(&["view"]).env("DISPLAY", ":4444").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("opening a window") && !said.contains("panicked"), "{said}");
}

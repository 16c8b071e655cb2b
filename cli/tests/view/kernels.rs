//! A kernel file that is written while the window is open: its picture, its errors at their place, and the recovery.

use std::path::Path;
use std::time::Duration;

use image::RgbImage;

use super::Case;
use super::desktop::{Screen, mean_difference, wait};

pub const CASES: &[Case] = &[
    ("a kernel is watched: error, place, recovery", watched),
    ("a kernel with inputs and settings", with_inputs),
    ("a kernel that cannot be shown says why", not_shown),
];

const SIDE: u32 = 256;

/// A ramp to the right, and what stands on line 8 in place of it.
fn ramp(value: &str) -> String {
    format!(
        "struct Picture {{ width: u32, height: u32 }}\n\
         @group(0) @binding(0) var<uniform> picture: Picture;\n\
         @group(0) @binding(1) var<storage, read_write> values: array<f32>;\n\
         @compute @workgroup_size(8, 8)\n\
         fn ramp(@builtin(global_invocation_id) id: vec3u) {{\n\
         \x20   if id.x >= picture.width || id.y >= picture.height {{ return; }}\n\
         \x20   let at = id.y * picture.width + id.x;\n\
         \x20   values[at] = {value};\n\
         }}\n"
    )
}

/// Grey from 0 to 255: the colour of column `x` is `x`.
const RIGHT: &str = "f32(id.x) / 128.0 - 0.99609375";
const LEFT: &str = "0.99609375 - f32(id.x) / 128.0";

fn expected(rightwards: bool) -> RgbImage {
    RgbImage::from_fn(SIDE, SIDE, |x, _| image::Rgb([if rightwards { x } else { SIDE - 1 - x } as u8; 3]))
}

/// The picture in the middle of the stage of a window of 1120 x 760.
fn middle(window: &RgbImage) -> RgbImage {
    let left = (window.width() - 284 - SIDE) / 2 + 284;
    image::imageops::crop_imm(window, left, (window.height() - SIDE) / 2, SIDE, SIDE).to_image()
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

fn watched(screen: &Screen) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ramp.wgsl");
    write(&path, &ramp(RIGHT));
    let name = path.display().to_string();
    for backend in ["cpu", "wgpu"] {
        write(&path, &ramp(RIGHT));
        let arguments = [
            "--backend",
            backend,
            "view",
            &name,
            "--size",
            "256x256",
            "--colormap",
            "gray",
            "--actual-size",
            "--theme",
            "light",
        ];
        let mut window = screen.open(&arguments);
        window.wait_title("ramp.wgsl, ");
        let shows = |rightwards| {
            let expected = expected(rightwards);
            wait("the kernel's picture", || {
                (mean_difference(&middle(&window.picture(folder.path())), &expected) < 1.0).then_some(())
            });
        };
        shows(true);
        // A name that is not there: line 8, column 18, the name underlined in the colour of errors.
        write(&path, &ramp("nowhere"));
        let mut window = window;
        window.wait_title("line 8, column 18");
        std::thread::sleep(Duration::from_millis(300));
        let picture = window.picture(folder.path());
        let bad = picture.enumerate_pixels().filter(|(_, _, pixel)| pixel.0 == [0xa3, 0x26, 0x1b]);
        assert!(underlined(&picture) >= 7 * 7, "{backend}: no underline among {} pixels", bad.count());
        // The last good picture is still there, paler: its upper half, free of the error, still rises to the right.
        let stage = middle(&picture);
        let gray = |x: u32| i32::from(stage.get_pixel(x, 20).0[0]);
        assert!(gray(250) - gray(5) > 80, "{backend}: the last picture is gone: {} {}", gray(5), gray(250));
        // Put right in the way of editors: a new file takes the old one's place.
        let other = folder.path().join("other");
        write(&other, &ramp(LEFT));
        std::fs::rename(&other, &path).unwrap();
        wait("the end of the error", || (!window.title().contains("line 8")).then_some(()));
        wait("the mended kernel's picture", || {
            (mean_difference(&middle(&window.picture(folder.path())), &expected(false)) < 1.0).then_some(())
        });
        // A file that is gone for a while is no error; back again, it is read.
        std::fs::remove_file(&path).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        assert!(!window.title().contains("error"), "{}", window.title());
        write(&path, &ramp(RIGHT));
        wait("the picture of the file that came back", || {
            (mean_difference(&middle(&window.picture(folder.path())), &expected(true)) < 1.0).then_some(())
        });
        // One that stays away is said to have gone; back as it was, it is read all the same.
        std::fs::remove_file(&path).unwrap();
        window.wait_title("ramp.wgsl, error");
        write(&path, &ramp(RIGHT));
        wait("the end of the error", || (!window.title().contains("error")).then_some(()));
        let (took, _) = window.close();
        assert!(took < Duration::from_secs(5), "closing took {took:?}");
    }
}

/// The longest row of the colour of errors in the lower half of the stage that is not a card's edge, times its thickness.
fn underlined(picture: &RgbImage) -> u32 {
    let bad = |x: u32, y: u32| picture.get_pixel(x, y).0 == [0xa3, 0x26, 0x1b];
    let mut longest = 0;
    for y in picture.height() / 2..picture.height() {
        let mut run = 0;
        for x in 300..picture.width() {
            if bad(x, y) {
                run += 1;
            } else {
                // An edge of the card is hundreds of pixels long.
                if run < 200 {
                    longest = longest.max(run);
                }
                run = 0;
            }
        }
    }
    longest
}

fn with_inputs(screen: &Screen) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mirror.wgsl");
    write(
        &path,
        "override FACTOR: f32 = 0.0;\n\
         @group(0) @binding(0) var<storage, read> image: array<f32>;\n\
         @group(0) @binding(1) var<storage, read_write> mirrored: array<f32>;\n\
         @group(0) @binding(2) var<uniform> columns: u32;\n\
         @compute @workgroup_size(64)\n\
         fn mirror(@builtin(global_invocation_id) id: vec3u) {\n\
             if id.x >= arrayLength(&mirrored) { return; }\n\
             let row = id.x / columns;\n\
             mirrored[id.x] = FACTOR * image[row * columns + columns - 1u - id.x % columns];\n\
         }\n",
    );
    // The field with time standing still as the input; mirrored and doubled, with a range twice as wide, it is the field's mirror picture.
    let input = folder.path().join("in.npy");
    let mut field = screen.command(&["--backend", "cpu", "field", "256x256", "-o"]);
    assert!(field.arg(&input).status().unwrap().success());
    let expected = image::imageops::flip_horizontal(&super::pictures::reference(folder.path(), "256x256", "0", &[]));
    let image = format!("image={}", input.display());
    let shot = folder.path().join("window.png");
    let name = path.display().to_string();
    let arguments = [
        "--backend",
        "wgpu",
        "view",
        &name,
        "--in",
        &image,
        "--out",
        "mirrored=f32[@image]",
        "--set",
        "FACTOR=2",
        "--set",
        "columns=256",
        "--range",
        "-2,2",
        "--actual-size",
        "--invocations",
        "65536",
        "--frames",
        "1",
        "--json",
        "--screenshot",
    ];
    let output = screen.command(&arguments).arg(&shot).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let difference = mean_difference(&middle(&image::open(shot).unwrap().to_rgb8()), &expected);
    assert!(difference < 1.0, "{difference}");
}

fn not_shown(screen: &Screen) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.wgsl");
    write(
        &path,
        "@group(0) @binding(0) var<storage, read_write> counts: array<u32>;\n\
         @compute @workgroup_size(64) fn whole(@builtin(global_invocation_id) id: vec3u) { counts[id.x] = id.x; }\n",
    );
    let name = path.display().to_string();
    let mut window = screen.open(&["view", &name]);
    window.wait_title("whole.wgsl, error");
    let (took, _) = window.close();
    assert!(took < Duration::from_secs(5), "closing took {took:?}");
}

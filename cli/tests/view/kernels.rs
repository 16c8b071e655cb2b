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
    ("with a number of frames an error ends the window", ended_by_errors),
    ("whole numbers and colours", kinds),
    ("textures that a kernel writes", textures),
    ("the mouse on the picture", mouse),
    ("what is kept from frame to frame", kept),
    ("the example of a path tracer", traced),
];

const SIDE: u32 = 256;

/// A ramp to the right, and the text for line 8 in place of it.
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
        let picture = wait("the underline", || {
            Some(window.picture(folder.path())).filter(|picture| underlined(picture) >= 7 * 7)
        });
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
        "@group(0) @binding(0) var<storage, read_write> pairs: array<vec2u>;\n\
         @compute @workgroup_size(64) fn whole(@builtin(global_invocation_id) id: vec3u) { pairs[id.x] = id.xx; }\n",
    );
    let name = path.display().to_string();
    let mut window = screen.open(&["view", &name]);
    window.wait_title("whole.wgsl, error");
    let (took, _) = window.close();
    assert!(took < Duration::from_secs(5), "closing took {took:?}");
}

/// Nobody is there who would mend it.
fn ended_by_errors(screen: &Screen) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        write(&path, text);
        path.display().to_string()
    };
    let shot = folder.path().join("window.png").display().to_string();
    let bound = "@group(0) @binding(0) var<storage, read_write> values: array<f32>;\n";
    let broken =
        file("broken.wgsl", &format!("{bound}@compute @workgroup_size(64) fn f() {{ values[0] = nowhere; }}\n"));
    let pairs = file(
        "pairs.wgsl",
        "@group(0) @binding(0) var<storage, read_write> p: array<vec2u>;\n@compute @workgroup_size(64) fn f() { p[0].x = 1u; }\n",
    );
    let odd = file("odd.wgsl", &format!("{bound}@compute @workgroup_size(64) fn f() {{ values[0] = 1.0; }}\n"));
    let missing = folder.path().join("missing.wgsl").display().to_string();
    for (arguments, says) in [
        (vec![broken.as_str()], "broken.wgsl:2:"),
        (vec![pairs.as_str()], "nothing of"),
        // Known when the first picture is there.
        (vec![odd.as_str(), "--out", "values=f32[7]"], "is not a picture"),
        (vec![missing.as_str()], "there is no such file"),
    ] {
        let mut command = screen.command(&["--backend", "cpu", "view"]);
        let output = command.args(arguments).args(["--frames", "3", "--screenshot", &shot]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("error: ") && said.contains(says), "{says}: {said}");
        assert!(!Path::new(&shot).exists(), "{says}");
    }
    // Without a number of frames a file that is not there opens no window either.
    let output = screen.command(&["view", &missing]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The middle of a window after some frames.
fn shown(screen: &Screen, folder: &Path, text: &str, more: &[&str]) -> RgbImage {
    let (path, shot) = (folder.join("kernel.wgsl"), folder.join("window.png"));
    write(&path, text);
    let mut command = screen.command(&["view"]);
    command.arg(&path).args(["--size", "256x256", "--actual-size", "--theme", "light"]).args(more);
    let output = command.arg("--screenshot").arg(&shot).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    middle(&image::open(shot).unwrap().to_rgb8())
}

fn kinds(screen: &Screen) {
    let folder = tempfile::tempdir().unwrap();
    for backend in ["cpu", "wgpu"] {
        for (kind, value, range) in [("u32", "id.x", "0,256"), ("i32", "i32(id.x) - 128", "-128,128")] {
            let text = ramp(value).replace("array<f32>", &format!("array<{kind}>"));
            let more = ["--colormap", "gray", "--range", range, "--frames", "1", "--backend", backend];
            let difference = mean_difference(&shown(screen, folder.path(), &text, &more), &expected(true));
            assert!(difference < 1.0, "{kind} on {backend}: {difference}");
        }
        let text = ramp("vec4f(f32(id.x) / 255.0, f32(id.y) / 255.0, 0.25, 1.0)").replace("array<f32>", "array<vec4f>");
        let found = shown(screen, folder.path(), &text, &["--frames", "1", "--backend", backend]);
        let colours = RgbImage::from_fn(SIDE, SIDE, |x, y| image::Rgb([x as u8, y as u8, 64]));
        let difference = mean_difference(&found, &colours);
        assert!(difference < 1.0, "colours on {backend}: {difference}");
    }
}

fn textures(screen: &Screen) {
    let folder = tempfile::tempdir().unwrap();
    let text = |format: &str, value: &str| {
        format!(
            "@group(0) @binding(0) var made: texture_storage_2d<{format}, write>;\n\
             @compute @workgroup_size(8, 8)\n\
             fn draw(@builtin(global_invocation_id) id: vec3u) {{\n\
             \x20   if all(id.xy < textureDimensions(made)) {{ textureStore(made, id.xy, {value}); }}\n\
             }}\n"
        )
    };
    let colours = RgbImage::from_fn(SIDE, SIDE, |x, y| image::Rgb([x as u8, y as u8, 64]));
    for backend in ["cpu", "wgpu"] {
        for format in ["rgba8unorm", "bgra8unorm", "rgba16float", "rgba32float"] {
            let value = "vec4f(f32(id.x) / 255.0, f32(id.y) / 255.0, 64.0 / 255.0, 1.0)";
            let found = shown(screen, folder.path(), &text(format, value), &["--frames", "1", "--backend", backend]);
            let difference = mean_difference(&found, &colours);
            assert!(difference < 1.0, "{format} on {backend}: {difference}");
        }
        let numbers =
            [("r32float", "vec4f(f32(id.x))"), ("r32uint", "vec4u(id.x)"), ("r32sint", "vec4i(vec2i(id.xy), 0, 0)")];
        for (format, value) in numbers {
            let more = ["--colormap", "gray", "--range", "0,256", "--frames", "1", "--backend", backend];
            let found = shown(screen, folder.path(), &text(format, value), &more);
            let difference = mean_difference(&found, &expected(true));
            assert!(difference < 1.0, "{format} on {backend}: {difference}");
        }
        // A picture of a file, turned negative.
        colours.save(folder.path().join("photo.png")).unwrap();
        let photo = format!("image={}", folder.path().join("photo.png").display());
        let negative = text("rgba8unorm", "vec4f(1.0 - textureLoad(image, id.xy, 0).rgb, 1.0)")
            .replace("@compute", "@group(0) @binding(1) var image: texture_2d<f32>;\n@compute");
        let more = ["--in", &photo, "--out", "made=rgba8unorm[@image]", "--frames", "3", "--keep"];
        let found = shown(screen, folder.path(), &negative, &[&more[..], &["--backend", backend]].concat());
        let negative = RgbImage::from_fn(SIDE, SIDE, |x, y| image::Rgb([255 - x as u8, 255 - y as u8, 191]));
        let difference = mean_difference(&found, &negative);
        assert!(difference < 1.0, "a file's picture on {backend}: {difference}");
    }
}

fn mouse(screen: &Screen) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mouse.wgsl");
    // White to the left of the mouse, black to its right.
    let text = ramp("select(-1.0, 1.0, f32(id.x) < picture.mouse.x)");
    write(&path, &text.replace("height: u32 }", "height: u32, pressed: u32, mouse: vec2f }"));
    let name = path.display().to_string();
    let arguments = ["view", &name, "--size", "256x256", "--colormap", "gray", "--actual-size", "--theme", "light"];
    let mut window = screen.open(&arguments);
    window.wait_title("mouse.wgsl, ");
    for column in [64, 200] {
        let left = (1120 - 284 - SIDE) / 2 + 284;
        window.click(left + column, 760 / 2);
        wait("the picture that follows the mouse", || {
            let picture = middle(&window.picture(folder.path()));
            let white = (0..SIDE).filter(|&x| picture.get_pixel(x, 10).0[0] > 127).count() as i64;
            ((white - i64::from(column)).abs() <= 2).then_some(())
        });
    }
    window.close();
}

fn kept(screen: &Screen) {
    let folder = tempfile::tempdir().unwrap();
    let grow = ramp("values[at] + 1.0");
    let brightness = |more: &[&str]| {
        let more = [&["--colormap", "gray", "--range", "0,256", "--frames", "20", "--backend", "cpu"], more].concat();
        shown(screen, folder.path(), &grow, &more).get_pixel(9, 9).0[0]
    };
    assert_eq!(brightness(&[]), 1, "each frame begins anew");
    assert!(brightness(&["--keep"]) >= 20, "each frame goes on");
    // By turns: what was written is read in the next frame.
    let turns = ramp("before[at] + 1.0")
        .replace("@compute", "@group(0) @binding(2) var<storage, read_write> before: array<f32>;\n@compute");
    let more = ["--colormap", "gray", "--range", "0,256", "--frames", "20", "--show", "values"];
    let more = [&more[..], &["--in", "before=zeros[256,256]", "--swap", "before,values"]].concat();
    let found = shown(screen, folder.path(), &turns, &more).get_pixel(9, 9).0[0];
    assert!(found >= 20, "{found}");
}

fn traced(screen: &Screen) {
    let folder = tempfile::tempdir().unwrap();
    let text = include_str!("../../../examples/path_tracer.wgsl");
    for backend in ["cpu", "wgpu"] {
        let more =
            ["--in", "sum=zeros[256,256,4]", "--keep", "--show", "picture", "--frames", "4", "--backend", backend];
        let room = shown(screen, folder.path(), text, &more);
        // A wall of each colour, and the lamp, which is white.
        let mean = |from: u32| {
            let wall = image::imageops::crop_imm(&room, from, 64, 24, 128).to_image();
            [0, 2].map(|channel| wall.pixels().map(|pixel| u32::from(pixel.0[channel])).sum::<u32>() / (24 * 128))
        };
        let (red, blue) = (mean(4), mean(SIDE - 28));
        assert!(red[0] > 2 * red[1] && blue[1] > blue[0] + 12, "{red:?} and {blue:?} on {backend}");
        assert_eq!(room.get_pixel(SIDE / 2, 32).0, [255; 3], "{backend}");
    }
}

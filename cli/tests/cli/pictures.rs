//! Pictures and arrays of the field family against a float64 oracle.

use std::io::Cursor;

use colorgrad::Gradient;
use image::AnimationDecoder;

use crate::Place;

const PHI: f64 = 1.618_033_988_749_895;
const PHI_PHI: f64 = 2.178_457_567_937_599_5;

/// spec: value = sin(0.01 f r + PHI a + PHI_PHI t) exp(-r / PHI), r = PHI sqrt(x² + y²). Even heights keep clear of the seam.
fn field(width: usize, height: usize, frequency: f64, time: f64) -> Vec<f64> {
    grid(width, height, |x, y| {
        let r = PHI * x.hypot(y);
        (0.01 * frequency * r + PHI * y.atan2(x) + PHI_PHI * time).sin() * (-r / PHI).exp()
    })
}

fn pattern(width: usize, height: usize) -> Vec<f64> {
    grid(width, height, |x, y| (10.0 * PHI_PHI * x.hypot(y) + PHI * y.atan2(x)).sin())
}

fn grid(width: usize, height: usize, value: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let place = |index: usize, side: usize| -1.0 + 2.0 * index as f64 / (side.max(2) - 1) as f64;
    (0..width * height).map(|at| value(place(at % width, width), place(at / width, height))).collect()
}

fn assert_close(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((f64::from(*found) - expected).abs() < 1e-5, "at {at}: {found}, not {expected}");
    }
}

/// The place of a value among 256 even parts of `low` to `high`, and whether a rounding away from it may fall into the next.
fn bins(value: f64, low: f64, high: f64) -> [u8; 2] {
    let bin = |value: f64| ((value - low) / (high - low) * 256.0).floor().clamp(0.0, 255.0) as u8;
    [bin(value - 1e-5), bin(value + 1e-5)]
}

fn rgb(place: &Place, name: &str) -> image::RgbImage {
    image::open(place.path(name)).unwrap().into_rgb8()
}

#[test]
fn field_as_numbers() {
    let place = Place::new();
    place.succeed("field --width 65 --height 48 --frequency unity --time 2.5 -o f.npy");
    let (shape, values) = place.read_f32("f.npy");
    assert_eq!(shape, [48, 65]);
    assert_close(&values, &field(65, 48, 432.0, 2.5));
}

/// By two devices, which say who did what.
#[test]
fn field_by_several_devices() {
    let place = Place::new();
    let report =
        place.json("field --width 65 --height 48 --frequency unity --time 2.5 --devices cpu,cpu:0 -o f.npy --json");
    let (shape, values) = place.read_f32("f.npy");
    assert_eq!(shape, [48, 65]);
    assert_close(&values, &field(65, 48, 432.0, 2.5));
    let rows: u64 = report["devices"].as_array().unwrap().iter().map(|part| part["rows"].as_u64().unwrap()).sum();
    assert_eq!(rows, 48, "{report}");
    let wrong = place.run("field 32x32 --devices cpu,nothing -o g.npy");
    assert!(wrong.code != Some(0) && wrong.stderr.contains("\"nothing\" is no backend"), "{}", wrong.stderr);
    assert!(!place.path("g.npy").exists());
}

#[test]
fn field_by_frequency_in_hertz_and_negative_time() {
    let place = Place::new();
    place.succeed("field 32x32 --frequency 123.5 --time -7.25 -o f.npy");
    assert_close(&place.read_f32("f.npy").1, &field(32, 32, 123.5, -7.25));
}

#[test]
fn pattern_as_numbers() {
    let place = Place::new();
    place.succeed("pattern 50x34 -o p.npy");
    let (shape, values) = place.read_f32("p.npy");
    assert_eq!(shape, [34, 50]);
    assert_close(&values, &pattern(50, 34));
}

#[test]
fn one_pixel_and_thin_grids() {
    let place = Place::new();
    for (width, height) in [(1, 1), (1, 6), (7, 1)] {
        place.succeed(&format!("field {width}x{height} -o f.npy"));
        let (shape, values) = place.read_f32("f.npy");
        assert_eq!(shape, [height, width]);
        assert_close(&values, &field(width, height, 528.0, 0.0));
        place.succeed(&format!("field {width}x{height} -o f.png"));
        assert_eq!(rgb(&place, "f.png").dimensions(), (width as u32, height as u32));
    }
}

#[test]
fn picture_in_gray_shows_the_values() {
    let place = Place::new();
    for (range, low, high) in [("-1,1", -1.0, 1.0), ("-0.25,0.5", -0.25, 0.5)] {
        place.succeed(&format!("field 96x64 --colormap gray --range {range} -o f.png"));
        let picture = rgb(&place, "f.png");
        assert_eq!(picture.dimensions(), (96, 64));
        for (pixel, value) in picture.pixels().zip(field(96, 64, 528.0, 0.0)) {
            assert!(pixel.0.iter().all(|&channel| bins(value, low, high).contains(&channel)), "{pixel:?} for {value}");
        }
    }
}

#[test]
fn picture_has_the_colours_of_its_map() {
    let place = Place::new();
    place.succeed("pattern 64x64 --colormap viridis -o p.png");
    let map = colorgrad::preset::viridis();
    for (pixel, value) in rgb(&place, "p.png").pixels().zip(pattern(64, 64)) {
        let colors = bins(value, -1.0, 1.0).map(|bin| map.at(f32::from(bin) / 255.0).to_rgba8());
        assert!(colors.iter().any(|color| color[..3] == pixel.0), "{pixel:?}, not {colors:?}");
    }
}

#[test]
fn every_colour_map_makes_a_picture() {
    let place = Place::new();
    let maps =
        "viridis magma inferno plasma cividis twilight turbo rd-bu spectral rainbow sinebow cubehelix gray Viridis";
    for map in maps.split(' ') {
        place.succeed(&format!("field 64x64 --colormap {map} -o {map}.png"));
        let picture = rgb(&place, &format!("{map}.png"));
        let colors: std::collections::BTreeSet<[u8; 3]> = picture.pixels().map(|pixel| pixel.0).collect();
        assert!(colors.len() > 100, "{map}: {} colours", colors.len());
    }
}

#[test]
fn what_was_done_is_one_line_on_stderr() {
    let place = Place::new();
    let done = place.run("field 16x16 -o f.png");
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.lines().count()), (Some(0), "", 1), "{}", done.stderr);
    for part in ["field 16 x 16 on cpu: ", ", in ", "s -> f.png"] {
        assert!(done.stderr.contains(part), "{}", done.stderr);
    }
}

#[test]
fn done_as_json() {
    let place = Place::new();
    let json = place.json("field 16x8 --json --time 1 -o f.npy");
    assert_eq!((&json["op"], &json["width"], &json["height"]), (&"field".into(), &16.into(), &8.into()));
    assert_eq!((&json["output"], &json["device"]["backend"]), (&"f.npy".into(), &"cpu".into()));
    assert!(json["ms"].as_f64().unwrap() > 0.0);
    assert_eq!(place.json("pattern 16x8 --json -o p.npy")["op"], "phi_pattern");
}

#[test]
fn defaults_make_a_picture_here() {
    let place = Place::new();
    place.succeed("field");
    place.succeed("pattern");
    assert_eq!(rgb(&place, "field.png").dimensions(), (512, 512));
    assert_eq!(rgb(&place, "pattern.png").dimensions(), (512, 512));
}

#[test]
fn an_existing_file_is_replaced() {
    let place = Place::new();
    place.write("f.npy", "old");
    place.succeed("field 4x4 -o f.npy");
    assert_eq!(place.read_f32("f.npy").0, [4, 4]);
    assert_eq!(place.files().len(), 1);
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_a_device_a_device() {
    let place = Place::new();
    place.write("target.npy", "old");
    std::os::unix::fs::symlink(place.path("target.npy"), place.path("link.npy")).unwrap();
    place.succeed("field 4x4 -o link.npy");
    assert!(std::fs::symlink_metadata(place.path("link.npy")).unwrap().is_symlink());
    assert_eq!(place.read_f32("target.npy").0, [4, 4]);
    std::os::unix::fs::symlink("/dev/null", place.path("null.npy")).unwrap();
    place.succeed("field 4x4 -o null.npy");
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

#[cfg(unix)]
#[test]
fn a_file_has_the_permissions_of_any_other() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("plain", "");
    place.succeed("field 4x4 -o f.npy");
    let mode = |name: &str| std::fs::metadata(place.path(name)).unwrap().permissions().mode();
    assert_eq!(mode("f.npy"), mode("plain"));
}

#[test]
fn gif_has_its_frames_colours_and_delays() {
    let place = Place::new();
    place.succeed("animate 48x32 --frames 7 --fps 30 --time 0.5 --colormap gray -o a.gif");
    let bytes = std::fs::read(place.path("a.gif")).unwrap();
    let frames =
        image::codecs::gif::GifDecoder::new(Cursor::new(bytes)).unwrap().into_frames().collect_frames().unwrap();
    assert_eq!(frames.len(), 7);
    let mut total = 0;
    for (index, frame) in frames.iter().enumerate() {
        let (numerator, denominator) = frame.delay().numer_denom_ms();
        assert_eq!(denominator, 1);
        assert!([30, 40].contains(&numerator), "{numerator}");
        total += numerator;
        let expected = field(48, 32, 528.0, 0.5 + index as f64 / 30.0);
        for (pixel, value) in frame.buffer().pixels().zip(expected) {
            assert!(bins(value, -1.0, 1.0).contains(&pixel.0[0]), "frame {index}: {pixel:?} for {value}");
        }
    }
    assert_eq!(total, 230, "7/30 s in whole hundredths");
}

#[test]
fn apng_has_its_frames_colours_and_delays() {
    let place = Place::new();
    place.succeed("animate 48x32 --frames 5 --fps 12.5 --speed 2 --frequency truth --colormap gray -o a.png");
    let bytes = std::fs::read(place.path("a.png")).unwrap();
    let decoder = image::codecs::png::PngDecoder::new(Cursor::new(bytes)).unwrap();
    assert!(decoder.is_apng().unwrap());
    let frames = decoder.apng().unwrap().into_frames().collect_frames().unwrap();
    assert_eq!(frames.len(), 5);
    for (index, frame) in frames.iter().enumerate() {
        let (numerator, denominator) = frame.delay().numer_denom_ms();
        assert_eq!(f64::from(numerator) / f64::from(denominator), 80.0);
        let expected = field(48, 32, 672.0, index as f64 * 2.0 / 12.5);
        for (pixel, value) in frame.buffer().pixels().zip(expected) {
            assert!(bins(value, -1.0, 1.0).contains(&pixel.0[0]), "frame {index}: {pixel:?} for {value}");
        }
    }
}

#[test]
fn a_seamless_animation_covers_one_period() {
    let place = Place::new();
    let json = place.json("animate 8x8 --frames 10 --seamless --json -o a.png");
    let period = json["time_step"].as_f64().unwrap() * 10.0;
    assert!((period * PHI_PHI - std::f64::consts::TAU).abs() < 1e-12, "{period}");
    assert_eq!((&json["frames"], &json["op"]), (&10.into(), &"animate".into()));
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_no_file() {
    use std::time::{Duration, Instant};
    let place = Place::new();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("cantus"))
        .args(["--backend", "cpu", "field", "60000x60000", "-o", "large.png"])
        .current_dir(place.folder.path())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while place.files().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "no file was begun");
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(place.files(), Vec::<String>::new());
}

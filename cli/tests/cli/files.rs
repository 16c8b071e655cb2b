//! Inputs from files of every format, from standard input and from nothing, and outputs.

use cantus::DType;
use cantus::tensor::npy;
use serde_json::json;

use crate::run::read;
use crate::{Place, run, words};

const DOUBLE: &str = "
@group(0) @binding(0) var<storage> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn double(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) { y[id.x] = 2.0 * x[id.x]; }
}
";

/// Doubles `x` from `from`; the shape and values that come out.
fn doubled(place: &Place, from: &str) -> (Vec<usize>, Vec<f32>) {
    place.succeed(&format!("run double.wgsl --in x={from} --out y=f32[@x] --invocations 6 -o y=y.npy"));
    read(place, "y.npy")
}

fn place() -> Place {
    let place = Place::new();
    place.write("double.wgsl", DOUBLE);
    place
}

#[test]
fn numbers_from_csv() {
    let place = place();
    place.write("x.csv", "a, b\n1, 2.5\n-3, 4e2\n");
    assert_eq!(doubled(&place, "x.csv"), (vec![2, 2], vec![2.0, 5.0, -6.0, 800.0]));
    place.write("x.csv", "1\n2\n3\n");
    assert_eq!(doubled(&place, "x.csv"), (vec![3], vec![2.0, 4.0, 6.0]));
    place.write("x.csv", "1,2\n3,four\n");
    let arguments = "run double.wgsl --in x=x.csv --out y=f32[@x] --invocations 6 -o y=z.npy";
    place.refuse(arguments, 2, &["x.csv", "line 2, column 2", "\"four\" is not a number"]);
    place.write("x.csv", "1,2\n3\n");
    place.refuse(arguments, 2, &["x.csv"]);
    place.succeed("run double.wgsl --in x=iota[2,3] --out y=f32[@x] --invocations 6 -o y=y.csv");
    assert_eq!(std::fs::read_to_string(place.path("y.csv")).unwrap(), "0,2,4\n6,8,10\n");
}

#[test]
fn pictures_in_and_out() {
    let place = place();
    let pixels = image::RgbaImage::from_fn(3, 2, |x, y| image::Rgba([60 * x as u8, 100 * y as u8, 7, 255]));
    pixels.save(place.path("in.png")).unwrap();
    // Brightness, by ITU-R BT.709.
    let (shape, values) = doubled(&place, "in.png");
    assert_eq!(shape, [2, 3]);
    for (value, pixel) in values.iter().zip(pixels.pixels()) {
        let [r, g, b, _] = pixel.0.map(f32::from);
        let expected = 2.0 * (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255.0;
        assert!((value - expected).abs() < 1e-6, "{value} {expected}");
    }
    // Colours as they are, as vectors and as bytes of words.
    place.write(
        "mirror.wgsl",
        "@group(0) @binding(0) var<storage> a: array<vec4f>;
        @group(0) @binding(1) var<storage, read_write> b: array<vec4f>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) { b[id.x + 3 * id.y] = a[2 - id.x + 3 * id.y]; }",
    );
    place.succeed("run mirror.wgsl --in a=in.png --out b=f32[@a] --invocations 3,2 -o b=out.png");
    let out = image::open(place.path("out.png")).unwrap().to_rgba8();
    assert_eq!(out, image::imageops::flip_horizontal(&pixels));
    place.write(
        "words.wgsl",
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) { a[id.x] = a[id.x] ^ 0xffu; }",
    );
    place.succeed("run words.wgsl --in a=in.png --invocations 6 -o a=out.png");
    let out = image::open(place.path("out.png")).unwrap().to_rgba8();
    assert!(out.pixels().zip(pixels.pixels()).all(|(out, was)| out.0[0] == !was.0[0] && out.0[1..] == was.0[1..]));
    // One value for each pixel takes the colours of a map: from the least to the greatest, or of a range.
    let shade = "run double.wgsl --in x=iota[2,3] --out y=f32[@x] --invocations 6 -o y=map.png --colormap gray";
    place.succeed(shade);
    let out = image::open(place.path("map.png")).unwrap().to_rgb8();
    assert_eq!((out.get_pixel(0, 0).0, out.get_pixel(2, 1).0), ([0; 3], [255; 3]));
    place.succeed(&format!("{shade} --range 0,1000"));
    assert!(image::open(place.path("map.png")).unwrap().to_rgb8().pixels().all(|pixel| pixel.0[0] < 4));
    place.refuse(
        "run double.wgsl --in x=iota[6] --out y=f32[@x] --invocations 6 -o y=z.png",
        2,
        &["z.png", "rows and columns"],
    );
    place.refuse(
        "run double.wgsl --in x=iota[6] --out y=f32[@x] --invocations 6 -o y=z.jpg",
        2,
        &["z.jpg", ".npy, .safetensors, .csv, .png"],
    );
    place.write("no.png", "not a picture");
    place.refuse("run double.wgsl --in x=no.png --out y=f32[@x] --invocations 6", 2, &["no.png", "not a PNG"]);
}

#[test]
fn textures_in_and_out() {
    let place = place();
    let pixels = image::RgbaImage::from_fn(7, 5, |x, y| image::Rgba([30 * x as u8, 50 * y as u8, (x * y) as u8, 255]));
    pixels.save(place.path("in.png")).unwrap();
    place.write(
        "half.wgsl",
        "@group(0) @binding(0) var photo: texture_2d<f32>;
        @group(0) @binding(1) var smp: sampler;
        @group(0) @binding(2) var made: texture_storage_2d<rgba8unorm, write>;
        @compute @workgroup_size(4, 4) fn main(@builtin(global_invocation_id) id: vec3u) {
            let uv = (vec2f(id.xy) + 0.5) / vec2f(textureDimensions(made));
            textureStore(made, id.xy, textureSampleLevel(photo, smp, uv, 0.0));
        }",
    );
    let half = |more: &str| format!("run half.wgsl --in photo=in.png {more} --invocations @photo -o made=out.png");
    // As large as it was, each sample is in the middle of a texel.
    place.succeed(&half("--out made=rgba8unorm[@photo]"));
    assert_eq!(image::open(place.path("out.png")).unwrap().to_rgba8(), pixels);
    // A JPEG, decoded by another library as well; halves of its sides.
    let photo = image::DynamicImage::ImageRgb8(image::RgbImage::from_fn(16, 16, |x, y| {
        image::Rgb([8 * x as u8, 90, 8 * y as u8])
    }));
    let file = std::fs::File::create(place.path("in.jpg")).unwrap();
    image::codecs::jpeg::JpegEncoder::new_with_quality(file, 95).encode_image(&photo).unwrap();
    place.succeed("run half.wgsl --in photo=in.jpg --out made=rgba8unorm[8,8] --invocations 8,8 -o made=out.npy");
    let found = npy::read(place.path("out.npy")).unwrap();
    assert_eq!((found.shape.as_slice(), found.dtype), (&[8, 8, 4][..], DType::U8));
    let decoded = image::open(place.path("in.jpg")).unwrap().to_rgb8();
    for (i, texel) in found.bytes.chunks_exact(4).enumerate() {
        let (x, y) = (2 * (i as u32 % 8), 2 * (i as u32 / 8));
        for channel in 0..3 {
            let at = |dx, dy| f64::from(decoded.get_pixel(x + dx, y + dy).0[channel]);
            let mean = (at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1)) / 4.0;
            // Two decoders may differ by one.
            assert!((f64::from(texel[channel]) - mean).abs() <= 1.6, "{i}, {channel}: {texel:?}, not {mean}");
        }
    }
    place.refuse(&half("--out made=f32[@photo]"), 2, &["made", "texture_storage_2d<rgba8unorm, write>", "format"]);
    place.refuse(&half("--out made=r32float[@photo]"), 2, &["the shader declares rgba8unorm"]);
    place.refuse(&half("--out made=rgba8unorm[4]"), 2, &["give height x width"]);
    place.refuse(&half("--out made=rgba8unorm[0,5]"), 2, &["0"]);
    place.refuse(&half("--out made=rgba8unorm[100000,100000]"), 2, &["at most 32768 texels"]);
    place.refuse(&half(""), 2, &["made", "--out made=FORMAT[SHAPE]"]);
    let png = std::fs::read(place.path("in.png")).unwrap();
    std::fs::write(place.path("cut.png"), &png[..png.len() / 2]).unwrap();
    let cut = half("--out made=rgba8unorm[@photo]").replace("in.png", "cut.png");
    place.refuse(&cut, 2, &["cut.png"]);
}

#[test]
fn tensors_of_safetensors() {
    let place = place();
    let (a, b) = ([1.0_f32, 2.0], [3.0_f32, 4.0, 5.0]);
    let header = json!({
        "a": { "dtype": "F32", "shape": [2], "data_offsets": [0, 8] },
        "layer.b": { "dtype": "F32", "shape": [3, 1], "data_offsets": [8, 20] },
    })
    .to_string();
    let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &bytes(&a), &bytes(&b)].concat();
    place.write("w.safetensors", &file);
    assert_eq!(doubled(&place, "w.safetensors#layer.b"), (vec![3, 1], vec![6.0, 8.0, 10.0]));
    let arguments = "run double.wgsl --in x=w.safetensors#layer --out y=f32[@x] --invocations 6";
    place.refuse(arguments, 2, &["no tensor \"layer\"", "did you mean \"layer.b\"?", "#TENSOR"]);
    // And out: a tensor of the binding's name, byte by byte.
    place.succeed("run double.wgsl --in x=w.safetensors#a --out y=f32[@x] --invocations 6 -o y=y.safetensors");
    let written = std::fs::read(place.path("y.safetensors")).unwrap();
    let length = u64::from_le_bytes(written[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&written[8..8 + length]).unwrap();
    assert_eq!(header, json!({ "y": { "dtype": "F32", "shape": [2], "data_offsets": [0, 8] } }));
    assert_eq!(written[8 + length..], bytes(&[2.0, 4.0]));
    assert_eq!(doubled(&place, "y.safetensors"), (vec![2], vec![4.0, 8.0]));
    place.write("w.safetensors", &file[..file.len() - 4]);
    place.refuse("run double.wgsl --in x=w.safetensors#a --out y=f32[@x] --invocations 6", 2, &["w.safetensors"]);
}

#[test]
fn numbers_that_need_no_file() {
    let place = place();
    assert_eq!(doubled(&place, "iota[4]").1, [0.0, 2.0, 4.0, 6.0]);
    assert_eq!(doubled(&place, "zeros"), (vec![6], vec![0.0; 6]));
    let (shape, one) = doubled(&place, "random:7[2,3]");
    assert_eq!(shape, [2, 3]);
    assert!(one.iter().all(|value| (0.0..2.0).contains(value)) && one[0] != one[1]);
    assert_eq!(doubled(&place, "random:7[2,3]").1, one);
    assert_eq!(doubled(&place, "random:7[4]").1, one[..4]);
    assert_ne!(doubled(&place, "random:8[2,3]").1, one);
    let arguments = "run double.wgsl --out y=f32[6] --invocations 6";
    place.refuse(&format!("{arguments} --in x=random"), 2, &["a seed"]);
    place.refuse(&format!("{arguments} --in x=random:x"), 2, &["\"x\" is not a whole number"]);
    place.refuse(&format!("{arguments} --in x=iota[0]"), 2, &["whole number of at least 1"]);
    place.refuse(&format!("{arguments} --in x=x.jpg"), 2, &["x.jpg"]);
}

#[test]
fn standard_input_and_output() {
    let place = place();
    place.npy("x.npy", &[3], &[1.0_f32, 2.0, 3.0]);
    let npy = std::fs::read(place.path("x.npy")).unwrap();
    let mut command = place.command();
    command.args(words("--backend cpu run double.wgsl --in x=- --out y=f32[@x] --invocations 3 -o y=-"));
    let output = command.write_stdin(npy).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let array = npy::read_from(output.stdout.as_slice(), "stdout").unwrap();
    assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(&array.bytes), [2.0, 4.0, 6.0]);
    // The kernel too may come that way.
    let mut command = place.command();
    command.args(words("--backend cpu run - --in x=x.npy --out y=f32[@x] --invocations 3 -o y=y.npy"));
    assert_eq!(run(command.write_stdin(DOUBLE)).code, Some(0));
    assert_eq!(read::<f32>(&place, "y.npy").1, [2.0, 4.0, 6.0]);
    place.refuse("run double.wgsl --in x=x.npy --out y=f32[@x] --invocations 3 -o y=- --json", 2, &["standard output"]);
}

#[test]
fn runs_in_a_row_go_on_where_the_one_before_ended() {
    let place = place();
    place.write(
        "grow.wgsl",
        "@group(0) @binding(0) var<storage, read_write> v: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) { v[id.x] = v[id.x] * 3 + 1; }",
    );
    let json = place.json("run grow.wgsl --in v=iota[2] --workgroups 2 --repeat 4 --time --json -o v=v.npy");
    assert_eq!(read::<u32>(&place, "v.npy").1, [40, 121]);
    let times: Vec<f64> = json["run_ms"].as_array().unwrap().iter().map(|ms| ms.as_f64().unwrap()).collect();
    assert!(json["runs"] == 4 && times[0] > 0.0 && times.is_sorted(), "{json}");
    place.refuse("run grow.wgsl --in v=iota[2] --workgroups 2 --repeat 0", 2, &["--repeat"]);
}

#[test]
fn a_watched_kernel_runs_again_when_it_changes() {
    let place = place();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("cantus"));
    command.current_dir(place.path(".")).env("HOME", place.path(".")).env_remove("CANTUS_BACKEND");
    let arguments = "--backend cpu run double.wgsl --in x=iota[3] --out y=f32[@x] --invocations 3 -o y=y.npy --watch";
    let mut child = command.args(words(arguments)).stderr(std::process::Stdio::null()).spawn().unwrap();
    let comes = |wanted: &[f32]| {
        let mut tries = 0..600;
        tries.any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let there = npy::read(place.path("y.npy"));
            there.is_ok_and(|array| bytemuck::pod_collect_to_vec::<u8, f32>(&array.bytes) == wanted)
        })
    };
    let first = comes(&[0.0, 2.0, 4.0]);
    // A mistake is told, and the change after it runs.
    place.write("double.wgsl", "broken");
    std::thread::sleep(std::time::Duration::from_millis(400));
    place.write("double.wgsl", DOUBLE.replace("2.0 * ", "3.0 * "));
    let second = comes(&[0.0, 3.0, 6.0]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(first && second, "{first} {second}");
}

#[test]
fn shipped_kernels_by_name_and_names_that_are_nearly_right() {
    let place = place();
    let set = "--set grid.width=4 --set grid.height=4 --set grid.tile_width=4 --set grid.tile_height=4 \
               --set grid.first_column=0 --set grid.first_row=0";
    place.refuse("run fiel --workgroups 1", 2, &["fiel", "did you mean \"field\"?"]);
    place.refuse("compile fiel --target c", 2, &["did you mean \"field\"?"]);
    place.refuse("run double.wgsl --in xx=iota[6] --workgroups 1", 2, &["\"xx\"", "the kernel has x: array<f32>"]);
    let done = place.run(&format!("run phi_pattern --out values=f32[4,4] {set} --workgroups 1,4 -o values=p.npy"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    place.succeed("pattern 4x4 -o q.npy");
    assert_eq!(read::<f32>(&place, "p.npy"), read::<f32>(&place, "q.npy"));
}

#[test]
fn completions_and_manual_pages() {
    let place = place();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let text = place.succeed(&format!("completions {shell}"));
        assert!(text.contains("cantus") && text.contains("coherence"), "{shell}: {text}");
    }
    place.succeed("man pages");
    let page = std::fs::read_to_string(place.path("pages/cantus-run.1")).unwrap();
    assert!(page.contains(".TH cantus-run 1") && page.contains("invocations"), "{page}");
    assert!(place.path("pages/cantus.1").exists() && place.path("pages/cantus-field.1").exists());
}

/// Elements narrower than a word reach the shader as the words that hold them, and come back byte by byte.
#[test]
fn narrow_and_complex_elements() {
    let place = place();
    place.write(
        "turn.wgsl",
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) { a[id.x] = ~a[id.x]; }",
    );
    for (dtype, elements) in [(DType::U8, 7), (DType::I8, 4), (DType::Bool, 5), (DType::U16, 3), (DType::BF16, 2)] {
        let bytes: Vec<u8> = (0..elements * dtype.bytes()).map(|byte| byte as u8 * 29 + 3).collect();
        npy::write(place.path("a.npy"), dtype, &[elements], &bytes).unwrap();
        let words = bytes.len().div_ceil(4);
        place.succeed(&format!("run turn.wgsl --in a=a.npy --invocations {words} -o a=b.npy"));
        let turned = npy::read(place.path("b.npy")).unwrap();
        let expected: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        assert_eq!((turned.dtype, turned.shape, turned.bytes), (dtype, vec![elements], expected));
    }
    place.write(
        "conjugate.wgsl",
        "@group(0) @binding(0) var<storage, read_write> z: array<vec2f>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) { z[id.x].y = -z[id.x].y; }",
    );
    let parts = |values: [f32; 4]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
    npy::write(place.path("z.npy"), DType::Complex64, &[2], &parts([1.0, 2.0, 3.0, -4.0])).unwrap();
    place.succeed("run conjugate.wgsl --in z=z.npy --invocations 2 -o z=w.npy");
    let conjugate = npy::read(place.path("w.npy")).unwrap();
    assert_eq!((conjugate.dtype, conjugate.bytes), (DType::Complex64, parts([1.0, -2.0, 3.0, 4.0])));
    place.refuse("run conjugate.wgsl --in z=z.npy --invocations 2 -o z=w.csv", 2, &["w.csv", "complex64"]);
    // The same bytes from safetensors.
    let header = json!({ "a": { "dtype": "U8", "shape": [5], "data_offsets": [0, 5] } }).to_string();
    let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[1, 2, 3, 4, 5]].concat();
    place.write("w.safetensors", &file);
    place.succeed("run turn.wgsl --in a=w.safetensors --invocations 2 -o a=b.npy");
    assert_eq!(npy::read(place.path("b.npy")).unwrap().bytes, [!1, !2, !3, !4, !5]);
}

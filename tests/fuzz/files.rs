//! `.npy` files, and files in the cache folder.

use std::path::Path;
use std::time::Duration;

use cantus::engine::TuneOptions;
use cantus::tensor::npy;
use cantus::{Config, Engine, Fallback, testing};

use crate::mutate::{self, Rng};
use crate::{Input, Outcome};

/// A folder in memory where there is one: a disk would be what is measured.
pub fn folder() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { tempfile::tempdir_in(shared).unwrap() } else { tempfile::tempdir().unwrap() }
}

fn npy_file(rng: &mut Rng) -> Vec<u8> {
    let descriptor = *rng.pick(&["<f4", "<f8", "<f2", ">i4", "<u4", "=i8", "|u8", "f4", "<c8", "[('a', '<f4')]"]);
    let shape: Vec<String> = (0..rng.below(5))
        .map(|_| if rng.one_in(12) { rng.number().to_string() } else { rng.below(5).to_string() })
        .collect();
    let shape = if shape.len() == 1 { format!("({},)", shape[0]) } else { format!("({})", shape.join(", ")) };
    let order = *rng.pick(&["True", "False"]);
    let mut text = format!("{{'descr': '{descriptor}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let version = 1 + rng.below(3) as u8;
    let mut whole = b"\x93NUMPY".to_vec();
    whole.extend([version, 0]);
    if version == 1 {
        whole.extend((text.len() as u16).to_le_bytes());
    } else {
        whole.extend((text.len() as u32).to_le_bytes());
    }
    whole.extend(text.as_bytes());
    // As many elements as it says, mostly.
    let sides = shape.trim_matches(['(', ')']).split(',').filter_map(|side| side.trim().parse::<usize>().ok());
    let count = sides.fold(1_usize, usize::saturating_mul).min(10_000);
    let size = descriptor.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(4);
    whole.extend((0..count * size).map(|_| rng.next() as u8));
    whole
}

pub fn npy() -> Input {
    let folder = folder();
    Box::new(move |rng| {
        let mut whole = npy_file(rng);
        if rng.one_in(2) {
            mutate::bytes(rng, &mut whole, b"'descr': '<f4', (((((((", 4);
        }
        let path = folder.path().join("a.npy");
        std::fs::write(&path, &whole).unwrap();
        match npy::read(&path) {
            Ok(array) => {
                let count: usize = array.shape.iter().product();
                assert_eq!(array.bytes.len(), count * array.dtype.bytes());
                // What was read is written and read again.
                npy::write(&path, array.dtype, &array.shape, &array.bytes).unwrap();
                assert_eq!(npy::read(&path).unwrap(), array);
                Outcome::Ran
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                Outcome::Refused
            }
        }
    })
}

/// Damages what is kept between runs: what was measured, compiled code, pipelines. Now and then an engine opens over it and works.
pub fn cache() -> Input {
    let folder = folder();
    let open = |path: &Path| {
        let builder = Engine::builder().config(Config::default()).backend("cpu").fallback(Fallback::Never);
        builder.cache_folder(path).build().unwrap()
    };
    let kernel = cantus::Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main() { a[0] = a[0] + 1u; }",
    )
    .unwrap();
    let work = move |engine: &Engine| {
        let a = engine.tensor(&[1_u32]).unwrap();
        engine.dispatch(&kernel).bind("a", &a).workgroups([1, 1, 1]).run().unwrap();
        let ones = engine.zeros::<f32>(&[8, 8]).unwrap();
        let product = ones.matmul(&ones).eval().unwrap();
        assert_eq!(product.to_vec::<f32>().unwrap(), [0.0; 64]);
        assert_eq!(a.to_vec::<u32>().unwrap(), [2]);
    };
    // What an engine writes that has measured itself.
    let engine = open(folder.path());
    work(&engine);
    let _ = engine.check_device();
    let _ = engine.tune(&TuneOptions::new().limit(Duration::from_millis(50)));
    drop(engine);
    let names = ["tuning.toml", "placement.toml", "answers.toml"];
    let known = "[\"cpu | a | b | 0.1.0\"]\n\"launch\" = \"1e-6\"\n\"byte\" = \"1e-10\"\n\"element\" = \"3\"\n";
    let sound = names.map(|name| {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        text.split_once('\n').map_or(known, |(_, lines)| lines).as_bytes().to_vec()
    });
    Box::new(move |rng| match rng.below(64) {
        0 => {
            for (name, sound) in names.iter().zip(&sound) {
                let mut bytes = sound.clone();
                mutate::bytes(rng, &mut bytes, known.as_bytes(), 3);
                std::fs::write(folder.path().join(name), sealed(rng, bytes)).unwrap();
            }
            let engine = open(folder.path());
            work(&engine);
            Outcome::Ran
        }
        1..24 => remembered(rng, folder.path(), &sound),
        24..28 => code(rng, folder.path()),
        _ => pipelines(rng),
    })
}

/// Mostly with a checksum that fits, so that what lies behind it is read.
fn sealed(rng: &mut Rng, lines: Vec<u8>) -> Vec<u8> {
    if rng.one_in(8) { lines } else { testing::sealed(&String::from_utf8_lossy(&lines)).into_bytes() }
}

/// Read, written, and read again: what is written is read as what was meant.
fn remembered(rng: &mut Rng, folder: &Path, sound: &[Vec<u8>]) -> Outcome {
    let mut bytes = rng.pick(sound).clone();
    mutate::bytes(rng, &mut bytes, b"[\"cpu | a\"]\n\"x\" = \"1\"\n", 3);
    std::fs::write(folder.join("fuzzed.toml"), sealed(rng, bytes)).unwrap();
    let first = testing::recall(folder, "fuzzed.toml");
    assert_eq!(testing::recall(folder, "fuzzed.toml"), first);
    if first.is_empty() { Outcome::Refused } else { Outcome::Ran }
}

/// Code for one source; a damaged file gives nothing, and another source's is never given.
fn code(rng: &mut Rng, folder: &Path) -> Outcome {
    let source = rng.below(8).to_string();
    // A source has one code: files change places below, also from turn to turn.
    let mut own = Rng::new(source.as_bytes()[0].into());
    let whole: Vec<u8> = (0..1 + own.below(200)).map(|_| own.next() as u8).collect();
    assert_eq!(testing::kept_code(folder, &source, Some(&whole)), Some(whole.clone()), "what was put there");
    let files = std::fs::read_dir(folder.join("kernels/test")).unwrap();
    let paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    if rng.one_in(2) {
        let path = rng.pick(&paths);
        let mut bytes = std::fs::read(path).unwrap();
        mutate::bytes(rng, &mut bytes, &whole, 3);
        std::fs::write(path, bytes).unwrap();
    }
    // A file under another's name.
    std::fs::rename(rng.pick(&paths), rng.pick(&paths)).unwrap();
    let found = testing::kept_code(folder, &source, None);
    assert!(found.as_ref().is_none_or(|found| *found == whole), "code that nobody put there");
    if found.is_some() { Outcome::Ran } else { Outcome::Refused }
}

/// A driver's data come back as they were, or not at all.
fn pipelines(rng: &mut Rng) -> Outcome {
    let mut data = vec![0_u8; 32 + rng.below(200)];
    let header = [32_u32, 1, 0x10005, 7];
    data[..16].copy_from_slice(bytemuck::cast_slice(&header));
    data[16..32].fill(9);
    data[32..].iter_mut().for_each(|byte| *byte = rng.next() as u8);
    if rng.one_in(4) {
        mutate::bytes(rng, &mut data, &[0, 1, 32], 2);
    }
    let mut file = testing::pipelines(&data);
    if rng.one_in(2) {
        mutate::bytes(rng, &mut file, &[0, 1, 32], 3);
    }
    match testing::pipelines_of(&file) {
        Some(found) => {
            assert_eq!(found, data);
            Outcome::Ran
        }
        None => Outcome::Refused,
    }
}

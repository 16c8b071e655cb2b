//! `.npy` files, and files in the cache folder.

use std::path::PathBuf;

use cantus::tensor::npy;
use cantus::{Config, Engine, Fallback};

use crate::mutate::{self, Rng};
use crate::{Input, Outcome};

/// A folder in memory where there is one: a disk would be what is measured.
fn folder() -> tempfile::TempDir {
    let shared = std::path::Path::new("/dev/shm");
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

/// What an engine on the processor remembers, damaged, before another one opens and works with it.
pub fn cache() -> Input {
    let folder = folder();
    let open = |path: &std::path::Path| {
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
    let known = "[[\"x\"]]\nvariant = 1\nseconds = 0.1\n[\"cpu | a | b | 0.1.0\"]\nbandwidth = 1e9\nlatency = 1e-6\n";
    let names = ["tuning.toml", "placement.toml", "answers.toml"];
    Box::new(move |rng| {
        // The others stay as the engine before this one left them.
        for name in [*rng.pick(&names), *rng.pick(&names)] {
            let path: PathBuf = folder.path().join(name);
            let mut bytes = std::fs::read(&path).unwrap_or_else(|_| known.as_bytes().to_vec());
            if bytes.is_empty() || bytes.len() > 1 << 16 {
                bytes = known.as_bytes().to_vec();
            }
            mutate::bytes(rng, &mut bytes, known.as_bytes(), 6);
            std::fs::write(&path, bytes).unwrap();
        }
        let engine = open(folder.path());
        work(&engine);
        Outcome::Ran
    })
}

//! Variants of kernels: each gives the right numbers, and a file of choices from anywhere harms nothing.

use std::path::Path;
use std::time::Duration;

use cantus::engine::{TuneOptions, Tuned};
use cantus::ops::Expr;
use cantus::{DType, Engine, Fallback, Tensor};
use ndarray::ArrayD;

use crate::{Numbers, by_turns, close, engines, name, oracle, seeds, tensor, wide};

/// The same device, with choices remembered in a folder.
fn beside(engine: &Engine, folder: &Path) -> Engine {
    let device = &engine.selected().device;
    let builder = Engine::builder().backend(&device.backend).device(device.index).fallback(Fallback::Never);
    builder.cache_folder(folder).build().unwrap()
}

/// The device's key in the file.
fn key(engine: &Engine) -> String {
    let device = &engine.selected().device;
    format!("{} | {} | {} | {}", device.backend, device.name, device.driver, env!("CARGO_PKG_VERSION"))
}

fn file(key: &str, choices: &[(&str, &str)]) -> String {
    let lines: String = choices.iter().map(|(job, variant)| format!("{job:?} = {variant:?}\n")).collect();
    cantus::testing::sealed(&format!("[{key:?}]\n{lines}"))
}

const PRODUCT: &str = "matmul f32 1 x (64 x 1024) (1024 x 64)";
const SUM: &str = "reduce 4 rows of 65536";

struct Case {
    a: ArrayD<f32>,
    b: ArrayD<f32>,
    rows: ArrayD<f32>,
}

impl Case {
    /// Of the classes above; 960 is a multiple of every split, 1000 not of 16.
    fn new(k: usize) -> Self {
        let mut numbers = Numbers::new(900);
        Self { a: numbers.array(&[50, k]), b: numbers.array(&[k, 40]), rows: numbers.array(&[3, 50_001]) }
    }

    fn check(&self, engine: &Engine, what: &str) {
        let what = format!("{what} on {}", name(engine));
        let (a, b): (Tensor, Tensor) = (tensor(engine, &self.a), tensor(engine, &self.b));
        let product = oracle::matmul(&wide(&self.a), &wide(&self.b));
        close(&a.matmul(&b), &product, 3e-3, &what);
        // With what follows in the same kernel.
        close(&(a.matmul(&b) * 2.0).relu(), &product.mapv(|x| (2.0 * x).max(0.0)), 6e-3, &what);
        let sums = wide(&self.rows).sum_axis(ndarray::Axis(1));
        close(&tensor(engine, &self.rows).sum(&[1], false), &sums, 0.2, &what);
    }
}

/// Returns how often an operation's kernel ran.
fn count(engine: &Engine, operation: &str) -> u64 {
    engine.metrics().iter().filter(|row| row.operation == operation).map(|row| row.count).sum()
}

#[test]
fn every_variant_gives_the_right_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let tiles = ["tile 16 x 4 depth 8", "tile 8 x 4 depth 32", "tile 8 x 8 depth 16", "tile 16 x 8 depth 8"];
    let splits = ["split 2", "split 4", "split 8", "split 16", "native"];
    let parts = ["parts 1", "parts 4", "parts 16", "parts 64", "parts 256"];
    let variants: Vec<(&str, &str)> = tiles.into_iter().chain(splits).zip(parts.into_iter().cycle()).collect();
    let cases = [960, 1000].map(|k| (k, Case::new(k)));
    for engine in by_turns() {
        for seed in seeds(engine, 0..2 * variants.len() as u64) {
            let (k, case) = &cases[seed as usize % 2];
            let (variant, parts) = variants[seed as usize / 2];
            let text = file(&key(engine), &[(PRODUCT, variant), (SUM, parts)]);
            std::fs::write(folder.path().join("tuning.toml"), text).unwrap();
            let engine = beside(engine, folder.path());
            case.check(&engine, &format!("{variant}, {parts}, {k}"));
            // It was these variants that ran: the sum takes one kernel or two, and each of two split products one more. The processor has its own
            // means for sums, which know no parts.
            let is_processor = engine.selected().device.backend == "cpu";
            let split = variant.starts_with("split") && !(variant == "split 16" && *k == 1000);
            let reductions = ["reduce_columns", "reduce_rows", "reduce (native)"]
                .map(|name| count(&engine, name))
                .iter()
                .sum::<u64>();
            let expected = if is_processor || parts == "parts 1" { 1 } else { 2 } + if split { 2 } else { 0 };
            assert_eq!(reductions, expected, "{variant}, {parts}, {k}: {:?}", engine.metrics());
            if is_processor && !split {
                let products = count(&engine, if variant == "native" { "matmul (native)" } else { "matmul" });
                assert_eq!(products, 2, "{variant}, {k}: {:?}", engine.metrics());
            }
        }
    }
}

#[test]
fn choices_from_elsewhere_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tuning.toml");
    let engine = &engines()[0];
    let case = Case::new(960);
    let right = file(&key(engine), &[(PRODUCT, "tile 8 x 4 depth 16"), (SUM, "parts 4")]);
    let texts = [
        String::new(),
        right[..right.len() / 2].to_owned(),
        right[..right.len() - 3].to_owned(),
        "\u{0}\u{1}\u{2}".to_owned(),
        file("cuda | another device | 1.0 | 0.0.1", &[(PRODUCT, "split 4")]),
        file(&key(engine), &[(PRODUCT, "tile 0 x 0 depth 0"), (SUM, "parts 0")]),
        file(&key(engine), &[(PRODUCT, "parts 4"), (SUM, "native")]),
        file(&key(engine), &[(PRODUCT, "split 4294967295"), (SUM, "")]),
        cantus::testing::sealed(&format!("[{:?}]\n{PRODUCT:?} = 3\n", key(engine))),
    ];
    for text in texts {
        std::fs::write(&path, &text).unwrap();
        case.check(&beside(engine, folder.path()), &format!("the file {text:?}"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "reading changes nothing");
    }
    // A folder instead of the file, and a folder that cannot be made: what is measured is kept for the engine alone.
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    std::fs::write(folder.path().join("plain"), "").unwrap();
    for place in [folder.path().to_owned(), folder.path().join("plain/folder")] {
        let engine = beside(engine, &place);
        case.check(&engine, "no file");
        let tuned = engine.tune(&TuneOptions::new().limit(Duration::from_secs(20)));
        assert!(!tuned.is_empty());
        case.check(&engine, "no file, tuned");
        let again = engine.tune(&TuneOptions::default());
        assert!(!again.iter().any(|again| again.operation == PRODUCT), "it was measured: {again:?}");
    }
}

#[test]
fn what_was_measured_is_remembered() {
    for engine in by_turns().iter().filter(|engine| seeds(engine, 0..1).next().is_some()) {
        let folder = tempfile::tempdir().unwrap();
        let first = beside(engine, folder.path());
        let case = Case::new(960);
        case.check(&first, "before");
        assert!(first.tune(&TuneOptions::new().limit(Duration::ZERO)).is_empty());
        let tuned = first.tune(&TuneOptions::new().limit(Duration::from_secs(60)));
        let names: Vec<&str> = tuned.iter().map(|tuned| tuned.operation.as_str()).collect();
        assert!(names.contains(&PRODUCT) && names.contains(&SUM), "{names:?}");
        for tuned in &tuned {
            let (measured, of) = tuned.measured;
            assert!(measured > 1 && measured <= of, "{tuned:?}");
            assert!(tuned.time <= tuned.shipped_time && !tuned.time.is_zero(), "{tuned:?}");
        }
        case.check(&first, "tuned");
        let text = std::fs::read_to_string(folder.path().join("tuning.toml")).unwrap();
        for tuned in &tuned {
            assert!(text.contains(&format!("{:?} = {:?}", tuned.operation, tuned.variant)), "{tuned:?} in\n{text}");
        }
        // A later engine knows it, and measures at most what a variant is made of.
        let second = beside(engine, folder.path());
        case.check(&second, "remembered");
        let known = |tuned: &Tuned| names.contains(&tuned.operation.as_str());
        let rest = second.tune(&TuneOptions::new().limit(Duration::from_secs(60)));
        assert!(!rest.iter().any(known), "{rest:?}");
        let again = second.tune(&TuneOptions::new().again(true).limit(Duration::MAX));
        assert_eq!(again.iter().filter(|tuned| known(tuned)).count(), tuned.len());
    }
}

#[test]
fn products_of_f16_by_cooperative_matrices() {
    let folder = tempfile::tempdir().unwrap();
    // Tiles with edges on each side, batches, operands that lie transposed, and a depth of one.
    let shapes = [([1, 70, 50, 90], [false; 2]), ([3, 64, 96, 64], [true, false]), ([2, 33, 100, 20], [false, true])];
    let shapes = shapes.into_iter().chain([([1, 130, 2, 65], [true; 2])]);
    for engine in by_turns().iter().filter(|engine| engine.selected().device.backend == "cpu") {
        for (seed, ([batches, m, k, n], transposed)) in (0..).zip(shapes.clone()) {
            let power = |size: usize| size.next_power_of_two();
            let [left, right] = transposed.map(|turned| if turned { "^T" } else { "" });
            let [b, rows, depth, columns] = [batches, m, k, n].map(power);
            let job = format!("matmul f16 {b} x ({rows} x {depth}){left} ({depth} x {columns}){right}");
            let text = file(&key(engine), &[(&job, "cooperative")]);
            std::fs::write(folder.path().join("tuning.toml"), text).unwrap();
            let engine = beside(engine, folder.path());
            let mut numbers = Numbers::new(910 + seed);
            let mut half = |rows: usize, columns: usize, turned: bool| {
                let shape = if turned { [batches, columns, rows] } else { [batches, rows, columns] };
                let halves = tensor(&engine, &numbers.array(&shape)).cast(DType::F16).eval().unwrap();
                if turned { halves.permute(&[0, 2, 1]) } else { halves.expr() }
            };
            let (a, b) = (half(m, k, transposed[0]), half(k, n, transposed[1]));
            let read = |x: &Expr| {
                let shape = x.shape().unwrap();
                let values = x.cast(DType::F32).eval().unwrap().to_vec::<f32>().unwrap();
                wide(&ArrayD::from_shape_vec(shape, values).unwrap())
            };
            let product = oracle::matmul(&read(&a), &read(&b));
            // Rounded to f16 at the end, with what follows in the same kernel.
            let greatest = product.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
            let what = format!("{job} on {}", name(&engine));
            let result = a.matmul(b).cast(DType::F32) * 2.0;
            close(&result, &product.mapv(|x| 2.0 * x), 2.0 * greatest / 1024.0, &what);
            assert_eq!(count(&engine, "matmul_cooperative"), 1, "{what}: {:?}", engine.metrics());
        }
    }
}

//! Products by the vendor's library in place of translated kernels: the same numbers, and the kernels wherever it fails.

use cantus::engine::GraphInputs;
use cantus::ops::{Expr, Unary};
use cantus::{DType, Engine, Fallback};
use half::{bf16, f16};

use kit::inputs::{Random, floats};

use crate::Scenario;
use crate::double::Vendor;

pub const ALL: &[Scenario] = &[
    ("products by the library agree with the kernels", &[], agree),
    ("products of bytes by the library are whole", &[], bytes),
    ("products that the library does not take", &[], left_alone),
    ("a convolution by the library", &[], convolution),
    ("attention by the library", &[], attention),
    ("a profile of the library's product", &[], profiled),
    ("a product whose first start fails", &[], start_fails),
    ("a library that cannot be opened", &[], open_fails),
    ("a library without an algorithm", &[("CANTUS_DOUBLE_ALGORITHMS", "0")], nothing_found),
    (
        "no library of products",
        &[("CANTUS_CUBLASLT_LIBRARY", "/nowhere/a"), ("CANTUS_HIPBLASLT_LIBRARY", "/nowhere/b")],
        missing,
    ),
    ("a library newer than the driver", &[("CANTUS_DOUBLE_CUBLASLT", "14000")], newer),
    ("products in a graph", &[], graph),
    ("a graph whose product is refused", &[], refused_graph),
];

/// The right operand's, and the bias's, if there is one.
struct Case {
    batches: usize,
    sides: [usize; 3],
    transposed: [bool; 2],
    dtype: DType,
    /// The right operand is one for all batches.
    shared: bool,
    epilogue: u32,
}

/// The number of epilogues: the library computes all but the last.
const EPILOGUES: u32 = 5;

fn portable(vendor: &Vendor) -> Engine {
    vendor.builder().fallback(Fallback::Never).native(false).build().unwrap()
}

fn launches(engine: &Engine) -> u64 {
    engine.takeovers().iter().map(|(_, figures)| figures.launches).sum()
}

fn refusal(engine: &Engine) -> Option<String> {
    engine.takeovers().into_iter().find_map(|(_, figures)| figures.refusal)
}

/// Numbers of [batches, rows, columns], stored transposed or not.
fn operand(
    engine: &Engine,
    values: &[f32],
    [batches, rows, columns]: [usize; 3],
    transposed: bool,
    dtype: DType,
) -> Expr {
    let stored: Vec<f32> = match transposed {
        false => values.to_vec(),
        true => (0..values.len())
            .map(|place| {
                let (batch, rest) = (place / (rows * columns), place % (rows * columns));
                values[batch * rows * columns + (rest % rows) * columns + rest / rows]
            })
            .collect(),
    };
    let shape = if transposed { [batches, columns, rows] } else { [batches, rows, columns] };
    let expr = engine.tensor_from(&stored, &shape).unwrap().expr().cast(dtype).eval().unwrap().expr();
    if transposed { expr.permute(&[0, 2, 1]) } else { expr }
}

/// The result on an engine, as float32, and in double precision.
fn of(engine: &Engine, case: &Case, seed: u64) -> (Vec<f32>, Vec<f64>) {
    let Case { batches, sides: [m, n, k], transposed, dtype, shared, epilogue } = *case;
    let round = |values: Vec<f32>| -> Vec<f32> {
        let rounded = |value| match dtype {
            DType::F16 => f16::from_f32(value).to_f32(),
            DType::BF16 => bf16::from_f32(value).to_f32(),
            _ => value,
        };
        values.into_iter().map(rounded).collect()
    };
    let right = if shared { 1 } else { batches };
    let (a, b) = (round(floats(seed, batches * m * k, -1.0, 1.0)), round(floats(seed + 1, right * k * n, -1.0, 1.0)));
    let bias = floats(seed + 2, n, -1.0, 1.0);
    let x = operand(engine, &a, [batches, m, k], transposed[0], dtype);
    let y = operand(engine, &b, [right, k, n], transposed[1], dtype);
    let row = engine.tensor(&bias).unwrap().expr();
    let result = match epilogue {
        0 => x.matmul(&y),
        1 => x.fused_linear(&y, Some(&row), None),
        2 => x.fused_linear(&y, Some(&row), Some(Unary::Relu)),
        3 => x.matmul(&y).relu(),
        _ => x.matmul(&y) * 0.5 + 1.0,
    };
    let result = result.eval().unwrap();
    let got = match result.dtype() {
        DType::F16 => result.to_vec::<f16>().unwrap().into_iter().map(f16::to_f32).collect(),
        DType::BF16 => result.to_vec::<bf16>().unwrap().into_iter().map(bf16::to_f32).collect(),
        _ => result.to_vec::<f32>().unwrap(),
    };
    let exact = (0..batches * m * n).map(|place| {
        let (batch, row, column) = (place / (m * n), place / n % m, place % n);
        let from = if shared { 0 } else { batch * k * n };
        let term = |at: usize| f64::from(a[(batch * m + row) * k + at]) * f64::from(b[from + at * n + column]);
        let sum: f64 = (0..k).map(term).sum();
        match epilogue {
            0 => sum,
            1 => sum + f64::from(bias[column]),
            2 => (sum + f64::from(bias[column])).max(0.0),
            3 => sum.max(0.0),
            _ => sum * 0.5 + 1.0,
        }
    });
    (got, exact.collect())
}

/// Within `each` of the exact number, and of 1.
fn close(got: &[f32], exact: &[f64], each: f64, what: &str) {
    assert_eq!(got.len(), exact.len(), "{what}");
    for (place, (got, exact)) in got.iter().zip(exact).enumerate() {
        let near = (f64::from(*got) - exact).abs() <= each * exact.abs().max(1.0);
        assert!(near, "{what}: element {place} is {got}, exactly {exact}");
    }
}

fn agree(vendor: &Vendor) {
    let (native, plain) = (vendor.engine(), portable(vendor));
    let seed = 20_261_124;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for number in 0..16 {
        let mut side = |most: u32| 48 + random.below(most) as usize;
        let mut case = Case {
            batches: 1 + number % 3,
            sides: [side(40), side(40), 120 + side(20)],
            transposed: [number & 1 != 0, number & 2 != 0],
            dtype: [DType::F32, DType::BF16, DType::F32, DType::F16][number % 4],
            shared: number % 5 == 4,
            epilogue: number as u32 % EPILOGUES,
        };
        // Of halves the library's result is halves, and a bias would be too.
        if case.dtype != DType::F32 && matches!(case.epilogue, 1 | 2) {
            case.epilogue = 0;
        }
        let what = format!(
            "{} {:?} {:?} x {}, epilogue {}",
            case.dtype, case.sides, case.transposed, case.batches, case.epilogue
        );
        let before = launches(&native);
        let each = match case.dtype {
            DType::F16 => 2e-3,
            DType::BF16 => 2e-2,
            _ => 2e-5,
        };
        let (got, exact) = of(&native, &case, seed + number as u64);
        close(&got, &exact, each, &format!("by the library, {what}"));
        assert_eq!(launches(&native) - before, 1, "{what}: {:?}", native.takeovers());
        close(&of(&plain, &case, seed + number as u64).0, &exact, each, &format!("by the kernel, {what}"));
    }
    assert_eq!((launches(&plain), refusal(&native)), (0, None));
    // An algorithm is asked for once for each shape.
    let (asked, case) = (vendor.calls("product_algorithm"), one());
    let _ = (of(&native, &case, 1), of(&native, &case, 2), of(&native, &case, 3));
    assert_eq!(vendor.calls("product_algorithm"), asked + 1);
    drop((native, plain));
    vendor.assert_clean();
}

fn bytes(vendor: &Vendor) {
    let (native, plain) = (vendor.engine(), portable(vendor));
    let seed = 20_261_125;
    println!("seed {seed}");
    let values = |count: usize, seed| -> Vec<i8> {
        floats(seed, count, -128.0, 128.0).into_iter().map(|value| value.floor() as i8).collect()
    };
    for (number, [m, n, k]) in [[64, 64, 64], [72, 100, 60], [65, 64, 64], [64, 63, 72]].into_iter().enumerate() {
        for (batches, turned, more) in [(1, true, false), (2, true, true), (1, false, false)] {
            let (a, b) = (values(batches * m * k, seed + number as u64), values(batches * n * k, seed + 9));
            let exact: Vec<i32> = (0..batches * m * n)
                .map(|place| {
                    let (batch, row, column) = (place / (m * n), place / n % m, place % n);
                    let term = |at: usize| {
                        let right = if turned { column * k + at } else { at * n + column };
                        i32::from(a[(batch * m + row) * k + at]) * i32::from(b[batch * n * k + right])
                    };
                    (0..k).map(term).sum::<i32>() + i32::from(more)
                })
                .collect();
            let before = launches(&native);
            for engine in [&native, &plain] {
                let x = engine.tensor_from(&a, &[batches, m, k]).unwrap().cast(DType::I32);
                let sides = if turned { [batches, n, k] } else { [batches, k, n] };
                let y = engine.tensor_from(&b, &sides).unwrap().expr();
                let y = if turned { y.permute(&[0, 2, 1]) } else { y }.cast(DType::I32);
                let product = x.matmul(y);
                let product = if more { product + 1_i32 } else { product };
                assert_eq!(
                    product.eval().unwrap().to_vec::<i32>().unwrap(),
                    exact,
                    "{m} x {n} x {k}, {turned}, {more}"
                );
            }
            // One layout, and sides by fours.
            let taken = turned && n % 4 == 0 && k % 4 == 0 && m * n * k >= 1 << 18;
            assert_eq!(launches(&native) - before, u64::from(taken), "{m} x {n} x {k}: {:?}", native.takeovers());
        }
    }
    assert_eq!((launches(&plain), refusal(&native)), (0, None));
    drop((native, plain));
    vendor.assert_clean();
}

/// Just large enough.
fn one() -> Case {
    Case { batches: 1, sides: [64; 3], transposed: [false; 2], dtype: DType::F32, shared: false, epilogue: 0 }
}

fn left_alone(vendor: &Vendor) {
    let native = vendor.engine();
    // Small ones, vectors, and rows that lie across.
    let (got, exact) = of(&native, &Case { sides: [63, 64, 64], ..one() }, 5);
    close(&got, &exact, 2e-5, "a small product");
    let (got, exact) = of(&native, &Case { sides: [1, 1024, 512], ..one() }, 5);
    close(&got, &exact, 2e-5, "a vector");
    let x = native.tensor_from(&floats(7, 128 * 256, -1.0, 1.0), &[128, 256]).unwrap();
    let every = x.expr().slice_steps(&[0..128, 0..256], &[1, 2]);
    let got = every.matmul(every.permute(&[1, 0])).eval().unwrap().to_vec::<f32>().unwrap();
    let values = x.to_vec::<f32>().unwrap();
    let exact: Vec<f64> = (0..128 * 128)
        .map(|place| {
            let (row, column) = (place / 128, place % 128);
            let term = |at: usize| f64::from(values[row * 256 + 2 * at]) * f64::from(values[column * 256 + 2 * at]);
            (0..128).map(term).sum()
        })
        .collect();
    close(&got, &exact, 2e-5, "every other column");
    assert_eq!((vendor.calls("product"), launches(&native)), (0, 0));
    drop((native, x, every));
    vendor.assert_clean();
}

/// Runs twice on the kernel; the refusal stays, and is not tried again.
fn fails(vendor: &Vendor, role: &str, calls: i64) {
    let native = vendor.engine();
    vendor.fail(role, 1, 13);
    for seed in [3, 4] {
        let (got, exact) = of(&native, &one(), seed);
        close(&got, &exact, 2e-5, role);
    }
    vendor.fail(role, 0, 0);
    let (got, exact) = of(&native, &one(), 5);
    close(&got, &exact, 2e-5, role);
    let takeovers = native.takeovers();
    assert!(matches!(takeovers.as_slice(), [(_, one)] if one.refusal.is_some() && one.launches == 0), "{takeovers:?}");
    assert_eq!(vendor.calls(role), calls);
    drop(native);
    vendor.assert_clean();
}

fn start_fails(vendor: &Vendor) {
    fails(vendor, "product", 1);
}

fn open_fails(vendor: &Vendor) {
    fails(vendor, "product_library", 1);
}

/// Nothing is started, and the reason is reported if it holds for all products.
fn by_kernel(vendor: &Vendor, reason: Option<&str>) {
    let native = vendor.engine();
    let (got, exact) = of(&native, &one(), 3);
    close(&got, &exact, 2e-5, "a product by its kernel");
    let told = refusal(&native);
    match reason {
        Some(reason) => assert!(told.as_deref().is_some_and(|told| told.contains(reason)), "{told:?}"),
        None => assert_eq!(told, None),
    }
    assert_eq!((vendor.calls("product"), launches(&native)), (0, 0));
    drop(native);
    vendor.assert_clean();
}

fn nothing_found(vendor: &Vendor) {
    by_kernel(vendor, None);
}

fn missing(vendor: &Vendor) {
    by_kernel(vendor, Some("/nowhere/"));
}

fn newer(vendor: &Vendor) {
    if vendor.name == "cuda" {
        by_kernel(vendor, Some("CUDA 14"));
    }
}

fn convolution(vendor: &Vendor) {
    let (native, plain) = (vendor.engine(), portable(vendor));
    let case = |engine: &Engine, window: cantus::ops::Window, kernel: [usize; 2]| {
        let x = engine.tensor_from(&floats(1, 2 * 8 * 13 * 17, -1.0, 1.0), &[2, 8, 13, 17]).unwrap();
        let w = floats(2, 64 * 8 * kernel[0] * kernel[1], -1.0, 1.0);
        let w = engine.tensor_from(&w, &[64, 8, kernel[0], kernel[1]]).unwrap();
        let y = x.expr().conv2d(&w, window, 1).relu().eval().unwrap();
        (y.shape().to_vec(), y.to_vec::<f32>().unwrap())
    };
    let wide = cantus::ops::Window::new([1, 2], [2, 1], [2, 1]);
    for (window, kernel) in
        [(cantus::ops::Window::default(), [3, 3]), (wide, [3, 5]), (cantus::ops::Window::default(), [1, 3])]
    {
        let ((shape, got), (expected_shape, expected)) = (case(&native, window, kernel), case(&plain, window, kernel));
        assert_eq!(shape, expected_shape);
        close(&got, &expected.iter().map(|&value| f64::from(value)).collect::<Vec<_>>(), 2e-5, "a convolution");
    }
    assert!(launches(&native) >= 2, "{:?}", native.takeovers());
    drop((native, plain));
    vendor.assert_clean();
}

/// By two products and a softmax between them, beside the kernel that keeps no score.
fn attention(vendor: &Vendor) {
    let (native, plain) = (vendor.engine(), portable(vendor));
    let case = |engine: &Engine, [queries, keys]: [usize; 2], causal: bool| {
        let one = |seed: u64, rows: usize, width: usize| {
            engine.tensor_from(&floats(seed, 3 * rows * width, -1.0, 1.0), &[3, rows, width]).unwrap()
        };
        let (q, k, v) = (one(1, queries, 24), one(2, keys, 24), one(3, keys, 40));
        let how = cantus::ops::Attention::new();
        let how = if causal { how.causal() } else { how };
        let y = (q.expr().scaled_dot_product_attention(&k, &v, &how) + 1.0).eval().unwrap();
        (y.shape().to_vec(), y.to_vec::<f32>().unwrap())
    };
    for (sides, causal) in [([128, 150], false), ([130, 130], true), ([128, 200], true)] {
        let before = vendor.calls("product");
        let ((shape, got), (expected_shape, expected)) = (case(&native, sides, causal), case(&plain, sides, causal));
        assert_eq!(shape, expected_shape);
        close(&got, &expected.iter().map(|&value| f64::from(value)).collect::<Vec<_>>(), 2e-5, "attention");
        assert_eq!(vendor.calls("product") - before, 2, "{sides:?}");
    }
    drop((native, plain));
    vendor.assert_clean();
}

/// The figures of a native kernel are those of the kernel it replaces.
fn profiled(vendor: &Vendor) {
    let native = vendor.builder().fallback(Fallback::Never).profile(true).build().unwrap();
    let x = native.tensor_from(&floats(1, 128 * 128, -1.0, 1.0), &[128, 128]).unwrap();
    let ((), profile) = native.profile(|| drop(x.matmul(&x).eval().unwrap()));
    let rows = profile.rows();
    let row = rows.iter().find(|row| row.operation.starts_with("matmul (")).unwrap_or_else(|| panic!("{rows:?}"));
    assert!(row.count == 1 && row.gflop_per_s.is_some() && row.gb_per_s.is_some(), "{row:?}");
    drop((native, x));
    vendor.assert_clean();
}

fn replayed(engine: &Engine) -> (Vec<f32>, Vec<f64>) {
    let (a, b) = (floats(5, 64 * 96, -1.0, 1.0), floats(6, 96 * 80, -1.0, 1.0));
    let (x, y) = (engine.tensor_from(&a, &[64, 96]).unwrap(), engine.tensor_from(&b, &[96, 80]).unwrap());
    let graph = engine.capture(|| (x.expr() * 2.0).eval()?.matmul(&y).eval()).unwrap();
    graph.replay(&GraphInputs::new()).unwrap();
    let doubled: Vec<f32> = a.iter().map(|value| value * 2.0).collect();
    graph.replay(&GraphInputs::new().set(&x, &doubled)).unwrap();
    let exact = (0..64 * 80).map(|place| {
        (0..96).map(|at| 4.0 * f64::from(a[place / 80 * 96 + at]) * f64::from(b[at * 80 + place % 80])).sum()
    });
    (graph.outputs().to_vec::<f32>().unwrap(), exact.collect())
}

fn graph(vendor: &Vendor) {
    let native = vendor.engine();
    let (got, exact) = replayed(&native);
    close(&got, &exact, 2e-5, "a graph of a product");
    // Captured once, and replayed by the driver.
    assert_eq!((launches(&native), vendor.calls("product"), vendor.calls("graph_launch")), (1, 1, 2));
    drop(native);
    vendor.assert_clean();
}

fn refused_graph(vendor: &Vendor) {
    let native = vendor.engine();
    vendor.fail("product", 1, 15);
    let (got, exact) = replayed(&native);
    vendor.fail("product", 0, 0);
    close(&got, &exact, 2e-5, "a graph of a product");
    assert!(refusal(&native).is_some_and(|reason| reason.contains("not supported")), "{:?}", native.takeovers());
    drop(native);
    vendor.assert_clean();
}

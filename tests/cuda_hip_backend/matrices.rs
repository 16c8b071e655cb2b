//! Cooperative matrices: `mma` and `ldmatrix` of PTX with tensor cores that the double computes element by element, as the ISA says; by shuffles on HIP.

use cantus::{DType, Tensor};
use kit::case::Case;
use kit::cases;
use kit::engine::EngineDevice;
use kit::inputs::floats;
use kit::outcome::Outcome;
use kit::turn;

use crate::Scenario;
use crate::double::Vendor;

pub const ALL: &[Scenario] = &[
    ("cooperative matrices and subgroups", &[], conformance),
    ("products of f16 by cooperative matrices", &[], products),
];

fn conformance(vendor: &Vendor) {
    let device = EngineDevice::of(vendor.engine());
    let of = |case: &Case| ["cooperative.", "subgroup."].iter().any(|start| case.name.starts_with(start));
    let cases = cases::all().into_iter().filter(of);
    let mut ran = 0;
    for (_, case) in (0..).zip(cases).filter(|(number, _)| turn::has_turn(*number)) {
        assert_eq!(Outcome::of(&device, &case), Outcome::Passed, "{}", case.name);
        ran += 1;
    }
    assert!(ran > 3, "{ran}");
    drop(device);
    vendor.assert_clean();
}

fn products(vendor: &Vendor) {
    let engine = vendor.engine();
    let [m, k, n] = [70, 50, 90];
    let (a, b) = (floats(1, m * k, -2.0, 2.0), floats(2, k * n, -2.0, 2.0));
    let half = |values: &[f32], shape: &[usize]| -> Tensor {
        engine.tensor_from(values, shape).unwrap().cast(DType::F16).eval().unwrap()
    };
    let (x, y) = (half(&a, &[m, k]), half(&b, &[k, n]));
    // What the products are made of, as they were rounded.
    let [a, b] = [&x, &y].map(|tensor| tensor.cast(DType::F32).eval().unwrap().to_vec::<f32>().unwrap());
    let product = (x.matmul(&y).cast(DType::F32) + 1.0).eval().unwrap().to_vec::<f32>().unwrap();
    for (place, value) in product.iter().enumerate() {
        let (row, column) = (place / n, place % n);
        let exact: f64 = (0..k).map(|at| f64::from(a[row * k + at]) * f64::from(b[at * n + column])).sum();
        // The product is f16.
        let allowed = exact.abs() / 1024.0 + 1e-3;
        assert!((f64::from(*value) - 1.0 - exact).abs() <= allowed, "{row}, {column}: {value}, {exact}");
    }
    let ran = engine.metrics().iter().any(|row| row.operation == "matmul_cooperative");
    assert_eq!(ran, vendor.name == "cuda", "{:?}", engine.metrics());
    drop((engine, x, y));
    vendor.assert_clean();
}

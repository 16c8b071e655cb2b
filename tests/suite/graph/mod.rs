//! Expressions as operation graphs: the StableHLO text is read back and simulated, and compared with the kernels of the processor. With
//! `CANTUS_GRAPH_PROGRAMS=FOLDER` the programs, their arguments and results are written there, for `.ci/stablehlo.py`.

#![allow(clippy::single_range_in_vec_init, reason = "a slice of one axis is a list of one range")]

mod programs;

use std::path::Path;

use cantus::graph::{Graph, Precision, ToGraph as _};
use cantus::{DType, Tensor};
use programs::{Program, cpu};

/// The numbers of a tensor of any real dtype.
fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    fn each<const N: usize>(bytes: &[u8], f: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks::<N>().0.iter().map(|chunk| f(*chunk)).collect()
    }
    match dtype {
        DType::Bool | DType::U8 => each(bytes, |b| u8::from_le_bytes(b).into()),
        DType::I8 => each(bytes, |b| i8::from_le_bytes(b).into()),
        DType::I16 => each(bytes, |b| i16::from_le_bytes(b).into()),
        DType::U16 => each(bytes, |b| u16::from_le_bytes(b).into()),
        DType::I32 => each(bytes, |b| i32::from_le_bytes(b).into()),
        DType::U32 => each(bytes, |b| u32::from_le_bytes(b).into()),
        DType::I64 => each(bytes, |b| i64::from_le_bytes(b) as f64),
        DType::U64 => each(bytes, |b| u64::from_le_bytes(b) as f64),
        DType::F16 => each(bytes, |b| half::f16::from_le_bytes(b).into()),
        DType::BF16 => each(bytes, |b| half::bf16::from_le_bytes(b).into()),
        DType::F64 | DType::Complex128 => each(bytes, f64::from_le_bytes),
        _ => each(bytes, |b| f32::from_le_bytes(b).into()),
    }
}

/// The bytes of a tensor's elements.
fn bytes(tensor: &Tensor) -> Vec<u8> {
    tensor.to_bytes().unwrap()
}

/// The largest difference in relation to what the dtype can tell.
fn difference(dtype: DType, got: &[u8], wanted: &[u8]) -> f64 {
    let exact =
        !matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64 | DType::Complex64 | DType::Complex128);
    if exact {
        return if got == wanted { 0.0 } else { f64::INFINITY };
    }
    let unit = match dtype {
        DType::BF16 => 1.0 / 128.0,
        DType::F16 => 1.0 / 1024.0,
        DType::F64 | DType::Complex128 => 1e-14,
        _ => 1e-6,
    };
    let pairs = numbers(dtype, got).into_iter().zip(numbers(dtype, wanted));
    let apart = pairs.map(|(a, b)| match (a.is_nan(), b.is_nan()) {
        (true, true) => 0.0,
        _ if a == b => 0.0,
        _ => (a - b).abs() / unit / b.abs().max(1.0),
    });
    apart.fold(0.0, |worst: f64, apart| if apart.is_nan() { f64::INFINITY } else { worst.max(apart) })
}

/// The forms of a program whose result takes an input's memory, each with the input.
fn reusing(graph: &Graph) -> impl Iterator<Item = (usize, String)> {
    (0..graph.inputs().len()).filter_map(|place| Some((place, graph.stablehlo_reusing(place)?)))
}

fn write(folder: &Path, program: &Program, graph: &Graph, inputs: &[Vec<u8>], results: [&[u8]; 2]) {
    let name = &program.name;
    std::fs::write(folder.join(format!("{name}.mlir")), graph.stablehlo()).unwrap();
    for (place, text) in reusing(graph) {
        std::fs::write(folder.join(format!("{name}.reusing{place}")), text).unwrap();
    }
    let ty = |dtype: DType, shape: &[usize]| serde_json::json!({ "dtype": dtype.name(), "shape": shape });
    let types: Vec<_> = graph.inputs().iter().map(|&input| ty(graph.dtype(input), graph.shape(input))).collect();
    let output = graph.outputs()[0];
    let about = serde_json::json!({
        "op": program.op, "inputs": types, "output": ty(graph.dtype(output), graph.shape(output)),
        "tolerance": program.tolerance,
    });
    std::fs::write(folder.join(format!("{name}.json")), about.to_string()).unwrap();
    for (place, input) in inputs.iter().enumerate() {
        std::fs::write(folder.join(format!("{name}.in{place}")), input).unwrap();
    }
    std::fs::write(folder.join(format!("{name}.kernel")), results[0]).unwrap();
    std::fs::write(folder.join(format!("{name}.simulated")), results[1]).unwrap();
}

/// Functions of float64 and complex numbers and powers of integers are computed by the host (`ops/host`), and have no graph form.
fn is_of_the_host(program: &Program) -> bool {
    let dtype = program.name.rsplit('_').next().unwrap_or_default();
    matches!(dtype, "f64" | "complex64" | "complex128") || program.op == "pow"
}

/// Every program lowered, written, read back, simulated, and compared with the processor's kernels.
#[test]
fn programs_are_what_kernels_compute() {
    let folder = std::env::var_os("CANTUS_GRAPH_PROGRAMS");
    let (mut failures, mut count, mut of_the_host) = (Vec::new(), 0, 0);
    for program in programs::all() {
        let made = program.expr.graph();
        let (graph, tensors) = match made {
            Ok(made) => made,
            Err(_) if is_of_the_host(&program) => {
                of_the_host += 1;
                continue;
            }
            Err(error) => {
                failures.push(format!("{}: {error}", program.name));
                continue;
            }
        };
        let text = graph.stablehlo();
        let read = Graph::from_stablehlo(&text).unwrap_or_else(|error| panic!("{}: {error}\n{text}", program.name));
        let read = read.pruned();
        assert_eq!(Graph::from_stablehlo(&read.stablehlo()).unwrap().pruned(), read, "{}", program.name);
        for (_, text) in reusing(&graph) {
            assert_eq!(Graph::from_stablehlo(&text).unwrap().pruned(), read, "{}", program.name);
        }
        let inputs: Vec<Vec<u8>> = tensors.iter().map(bytes).collect();
        let simulated = read.simulate(&inputs, Precision::Full).unwrap();
        let computed = program.expr.eval().unwrap();
        let (dtype, wanted) = (computed.dtype(), bytes(&computed));
        let apart = difference(dtype, &simulated[0], &wanted);
        if apart > program.tolerance {
            failures.push(format!("{}: {apart} units apart", program.name));
        }
        if let Some(folder) = &folder {
            write(Path::new(folder), &program, &graph, &inputs, [&wanted, &simulated[0]]);
        }
        count += 1;
    }
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
    assert!(count >= 300, "{count} programs");
    // Each of them is a function that a device of graphs hands on to the next device.
    assert!(of_the_host <= 40, "{of_the_host} programs are computed by the host");
}

/// Views of named operations are slices, transposes and reshapes, and no gathers.
#[test]
fn views_need_no_gather() {
    let x = cantus::ops::rand(cpu(), &[6, 10, 4], 1).eval().unwrap();
    let views = [
        x.transpose(),
        x.permute(&[2, 0, 1]),
        x.slice(&[1..4, 2..9]),
        x.slice_steps(&[0..6, 1..10, 0..4], &[2, 3, 1]),
        x.reshape(&[60, 4]).transpose(),
        x.reshape(&[3, 2, 10, 4]).permute(&[1, 3, 0, 2]),
        x.slice(&[0..6, 0..10, 1..2]).reshape(&[6, 10]),
        x.slice(&[2..3]).broadcast_to(&[5, 10, 4]),
        x.reshape(&[240]).slice_steps(&[3..240], &[7]),
        x.reshape(&[6, 40]).slice_steps(&[0..6, 5..38], &[1, 8]).transpose(),
    ];
    for (place, view) in views.iter().enumerate() {
        let (graph, _) = (view * 1.0).graph().unwrap();
        let text = graph.stablehlo();
        assert!(!text.contains("stablehlo.gather"), "view {place}:\n{text}");
        let simulated = graph.simulate(&[bytes(&x)], Precision::Full).unwrap();
        assert_eq!(simulated[0], bytes(&view.eval().unwrap()), "view {place}:\n{text}");
    }
}

#[test]
fn products_carry_their_precision() {
    let x = cantus::ops::rand(cpu(), &[8, 8], 1).eval().unwrap();
    let (graph, _) = x.matmul(&x).graph().unwrap();
    assert_eq!(graph.stablehlo().matches("precision HIGHEST").count(), 2);
}

#[test]
fn text_that_is_none_of_ours_is_refused() {
    for text in ["module @x {\n  %0 = \"stablehlo.fft\"(%1) : (tensor<4xf32>) -> tensor<4xf32>\n}", "\u{0}", "%0 = "] {
        assert!(Graph::from_stablehlo(text).is_err(), "{text}");
    }
}

/// Expressions are plain data: those that no engine makes are refused.
#[test]
fn malformed_expressions_are_refused() {
    use cantus::backend::expression::{Expression, Node, Part};
    use cantus::backend::native::{Combination, RowFunction};
    let node = |part: Part, operands: &[usize], shape: &[usize]| Node {
        part,
        operands: operands.to_vec(),
        shape: shape.to_vec(),
        dtype: DType::F32,
    };
    let view = |offset, strides: &[usize]| Part::View { offset, strides: strides.to_vec() };
    let gather = |step, length| Part::Gather { offset: 0, strides: vec![1], step, length };
    let x = node(Part::Argument(0), &[], &[4, 3]);
    let whole = Expression { nodes: vec![x.clone(), node(view(0, &[3, 1]), &[0], &[4, 3])] };
    assert_eq!(Graph::of("whole", &whole).unwrap().inputs().len(), 1);
    let function = |text: &str| Part::Function(text.into());
    let kernel = |text: &str| Part::Kernel { text: text.into(), uniforms: Vec::new() };
    let sum = |from| Part::Reduce { by: Combination::Sum, from };
    let refused = [
        node(Part::Argument(2), &[], &[4, 3]),
        node(Part::Select, &[0, 0], &[4, 3]),
        node(Part::Select, &[0, 0, 0], &[4, 2]),
        node(Part::Select, &[0, 1, 0], &[4, 3]),
        node(Part::Select, &[0, 7, 0], &[4, 3]),
        node(function("fn element(x: f32) -> f32 { return x; }"), &[0], &[3]),
        node(function("fn element(x: f32) -> f32 { return x; }"), &[], &[4, 3]),
        node(function("fn other(x: f32) -> f32 { return x; }"), &[0], &[4, 3]),
        node(function("fn element(x: f32) -> f32 { return"), &[0], &[4, 3]),
        node(kernel("fn element() {}"), &[], &[4, 3]),
        node(kernel("@compute @workgroup_size(1) fn main() {}"), &[], &[4]),
        node(view(1, &[3, 1]), &[0], &[4, 3]),
        node(view(usize::MAX, &[3, 1]), &[0], &[4, 3]),
        node(view(0, &[usize::MAX, 1]), &[0], &[4, 3]),
        node(view(0, &[1]), &[0], &[4, 3]),
        node(view(0, &[1, 1]), &[0], &[0, 3]),
        node(gather(1, 0), &[0, 0], &[3]),
        node(gather(5, 4), &[0, 0], &[3]),
        node(sum(3), &[0], &[4]),
        node(sum(1), &[0], &[3]),
        node(sum(1), &[], &[4]),
        node(Part::Find { least: true, from: 9 }, &[0], &[4]),
        node(Part::Rows(RowFunction::Softmax), &[0], &[4, 4]),
        node(Part::Product, &[0, 0], &[4, 3]),
        node(Part::Product, &[0], &[4, 3]),
    ];
    assert!(Graph::of("nothing", &Expression::default()).is_err());
    for last in refused {
        let expression = Expression { nodes: vec![x.clone(), last] };
        let made = Graph::of("malformed", &expression);
        assert!(matches!(made, Err(cantus::Error::Unsupported { .. })), "{:?}", expression.nodes);
    }
}

/// In bf16 a product is near, and not the same.
#[test]
fn bf16_is_simulated() {
    let x = cantus::ops::rand(cpu(), &[64, 64], 1).eval().unwrap();
    let (graph, _) = x.matmul(&x).graph().unwrap();
    let inputs = [bytes(&x)];
    let [full, half] =
        [Precision::Full, Precision::Bf16].map(|precision| graph.simulate(&inputs, precision).unwrap()[0].clone());
    let pairs = numbers(DType::F32, &full).into_iter().zip(numbers(DType::F32, &half));
    let worst = pairs.map(|(a, b)| (a - b).abs() / a.abs()).fold(0.0, f64::max);
    assert!(worst > 1e-4 && worst < 0.02, "{worst}");
}

#[test]
fn the_field_family_is_a_graph() {
    use cantus::ops::field::{FieldParams, field, field_graph, phi_pattern, phi_pattern_graph};
    let params = FieldParams::new(53, 37).time(1.5);
    let graphs = [field_graph(&params).unwrap(), phi_pattern_graph(53, 37).unwrap()];
    let tensors = [field(cpu(), &params).unwrap(), phi_pattern(cpu(), 53, 37).unwrap()];
    for (graph, tensor) in graphs.iter().zip(&tensors) {
        let simulated = &graph.simulate(&[], Precision::Full).unwrap()[0];
        let pairs = numbers(DType::F32, simulated).into_iter().zip(numbers(DType::F32, &bytes(tensor)));
        let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 2e-5, "{}: {worst}", graph.name());
        if let Some(folder) = std::env::var_os("CANTUS_GRAPH_PROGRAMS") {
            let program = Program {
                name: graph.name().to_owned(),
                op: graph.name().to_owned(),
                expr: tensor.expr(),
                tolerance: 20.0,
            };
            write(Path::new(&folder), &program, graph, &[], [&bytes(tensor), simulated]);
        }
    }
}

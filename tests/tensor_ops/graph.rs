//! Captured work, replayed with new inputs.

use cantus::engine::GraphInputs;
use cantus::ops::Unary;
use cantus::{Error, Kernel, Result, Tensor};

use crate::{Numbers, by_turns, close, engines, name, oracle, tensor, wide};

#[test]
fn a_perceptron_is_replayed_with_new_inputs() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(2000);
        let weights: Vec<_> = (0..3).map(|_| numbers.array(&[64, 64]).mapv(|x| x / 16.0)).collect();
        let layers: Vec<Tensor> = weights.iter().map(|weights| tensor(engine, weights)).collect();
        let x = engine.zeros::<f32>(&[1, 64]).unwrap();
        let step = |x: &Tensor| -> Result<Tensor> {
            let mut x = x.clone();
            for layer in &layers {
                x = x.matmul(layer).unary(Unary::Tanh).eval()?;
            }
            Ok(x)
        };
        let graph = engine.capture(|| step(&x)).unwrap();
        // The processor has products of its own, which nothing joins.
        let each = if engine.selected().device.backend == "cpu" { 2 } else { 1 };
        assert_eq!(graph.len(), 3 * each, "{}", name(engine));
        for _ in 0..4 {
            let input = numbers.array(&[1, 64]);
            graph.replay(&GraphInputs::new().set(&x, input.as_slice().unwrap())).unwrap();
            let expected =
                weights.iter().fold(wide(&input), |x, weights| oracle::matmul(&x, &wide(weights)).mapv(f64::tanh));
            close(&graph.outputs().expr(), &expected, 2e-5, &name(engine));
            // The same numbers as without a graph.
            let eager = step(&x).unwrap().to_vec::<f32>().unwrap();
            assert_eq!(graph.outputs().to_vec::<f32>().unwrap(), eager, "{}", name(engine));
        }
    }
}

#[test]
fn intermediate_results_share_memory() {
    for engine in by_turns() {
        let x = engine.tensor(&vec![1.0_f32; 4096]).unwrap();
        let graph = engine
            .capture(|| {
                let mut y = x.clone();
                for _ in 0..10 {
                    y = (&y + 1.0).eval()?;
                }
                Ok(y)
            })
            .unwrap();
        assert_eq!(graph.len(), 10);
        // Two take turns; the last is the output.
        assert!(graph.scratch_bytes() <= 2 * 4096 * 4 + 4096, "{} bytes on {}", graph.scratch_bytes(), name(engine));
        for from in [1.0_f32, 5.0] {
            graph.replay(&GraphInputs::new().set(&x, &vec![from; 4096])).unwrap();
            assert_eq!(graph.outputs().to_vec::<f32>().unwrap(), vec![from + 10.0; 4096], "{}", name(engine));
        }
    }
}

#[test]
fn zeros_are_zeros_at_each_replay() {
    let kernel = Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage> x: array<f32>;
         @group(0) @binding(1) var<storage, read_write> sums: array<f32>;
         @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&x) { sums[id.x] += x[id.x]; }
         }",
    )
    .unwrap();
    for engine in by_turns() {
        let x = engine.tensor(&[1.0_f32, 2.0, 3.0]).unwrap();
        let graph = engine
            .capture(|| {
                let sums = engine.zeros::<f32>(&[3])?;
                engine.dispatch(&kernel).bind("x", &x).bind("sums", &sums).invocations(3).run()?;
                engine.dispatch(&kernel).bind("x", &x).bind("sums", &sums).invocations(3).run()?;
                (&sums * 1.0).eval()
            })
            .unwrap();
        for _ in 0..3 {
            graph.replay(&GraphInputs::new()).unwrap();
            assert_eq!(graph.outputs().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0], "{}", name(engine));
        }
    }
}

#[test]
fn what_a_capture_cannot_do_is_said() {
    let engine = &engines()[0];
    let x = engine.tensor(&[1.0_f32; 4]).unwrap();
    let early = engine.capture(|| (&x + 1.0).eval()?.to_vec::<f32>());
    assert!(early.err().unwrap().to_string().contains("read it after a replay"));
    let nested = engine.capture(|| engine.capture(|| Ok(())).map(|_| ()));
    assert!(nested.err().unwrap().to_string().contains("another capture"));
    // The engine is as it was.
    assert_eq!((&x + 1.0).eval().unwrap().to_vec::<f32>().unwrap(), [2.0; 4]);
    let graph = engine.capture(|| (&x + 1.0).eval()).unwrap();
    assert!(matches!(graph.replay(&GraphInputs::new().set(&x, &[1.0_f32; 3])), Err(Error::Shape(_))));
    assert!(matches!(graph.replay(&GraphInputs::new().set(&x, &[1_i32; 4])), Err(Error::Dtype(_))));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        engine.capture(|| -> Result<()> { panic!("in the body") })
    }));
    assert!(panicked.is_err() && engine.capture(|| Ok(())).unwrap().is_empty());
}

#[test]
fn uniforms_are_set_at_a_replay() {
    let kernel = Kernel::from_wgsl(
        "struct Params { a: f32, b: vec3f }
         @group(0) @binding(0) var<uniform> params: Params;
         @group(0) @binding(1) var<storage> x: array<f32>;
         @group(0) @binding(2) var<storage, read_write> y: array<f32>;
         @compute @workgroup_size(64) fn step(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&x) { y[id.x] = params.a * x[id.x] + params.b.z; }
         }",
    )
    .unwrap();
    let other = Kernel::from_wgsl(
        "@group(0) @binding(0) var<uniform> n: u32; @group(0) @binding(1) var<storage, read_write> y: array<u32>; \
                                   @compute @workgroup_size(1) fn other() { y[0] = n; }",
    )
    .unwrap();
    for engine in by_turns() {
        let what = name(engine);
        let x = engine.tensor(&[1.0_f32, 2.0, 3.0]).unwrap();
        let y = engine.zeros::<f32>(&[3]).unwrap();
        let run = |a: f32, b: f32| {
            let dispatch = engine.dispatch(&kernel).set("params.a", a).set("params.b", [0.0, 0.0, b]);
            dispatch.bind("x", &x).bind("y", &y).invocations(3).run()
        };
        let graph = engine.capture(|| run(1.0, 10.0)).unwrap();
        let read = |inputs: &GraphInputs<'_>| {
            graph.replay(inputs).unwrap();
            y.to_vec::<f32>().unwrap()
        };
        assert_eq!(read(&GraphInputs::new()), [11.0, 12.0, 13.0], "{what}");
        // One member; the others, and later replays, keep what they had.
        assert_eq!(read(&GraphInputs::new().set_uniform(&kernel, "params.a", 2.0)), [12.0, 14.0, 16.0], "{what}");
        assert_eq!(read(&GraphInputs::new().set(&x, &[0.0_f32, 1.0, 2.0])), [10.0, 12.0, 14.0], "{what}");
        let both =
            GraphInputs::new().set_uniform(&kernel, "params.b", [5.0, 6.0, 7.0]).set_uniform(&kernel, "params.a", 0);
        assert_eq!(read(&both), [7.0; 3], "{what}");
        // What the graph does not have is refused, before anything is written.
        let wrong = GraphInputs::new().set(&x, &[9.0_f32; 3]).set_uniform(&other, "n", 1);
        assert!(matches!(graph.replay(&wrong), Err(Error::Binding { .. })), "{what}");
        let wrong = GraphInputs::new().set_uniform(&kernel, "params.a", f64::MAX);
        assert!(matches!(graph.replay(&wrong), Err(Error::Binding { .. })), "{what}");
        assert_eq!(x.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0], "{what}");
        assert_eq!(read(&GraphInputs::new()), [7.0; 3], "{what}");
    }
}

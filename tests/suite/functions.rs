//! Native operations that an app defines: their results, how they fail and stop, and the inputs that the engine refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cantus::backend::CancelFlag;
use cantus::backend::native::{CopyShape, ElementsShape, Function, NativeOperation, Threads};
use cantus::engine::GraphInputs;
use cantus::{DType, Engine, Error, Result, Tensor};

fn cpu() -> Engine {
    Engine::builder().backend("cpu").build().unwrap()
}

/// The sum of pairs of `count` numbers, as an operation.
fn sum(count: usize) -> NativeOperation {
    let function = Function::new((), vec![4 * count; 3], |(), inputs, result, _| {
        let [a, b] = inputs else { return Err(format!("two inputs, not {}", inputs.len())) };
        let (a, b): (&[f32], &[f32]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
        let sums = a.iter().zip(b).map(|(a, b)| a + b);
        bytemuck::cast_slice_mut(result).iter_mut().zip(sums).for_each(|(to, sum): (&mut f32, f32)| *to = sum);
        Ok(())
    });
    NativeOperation::Function(function)
}

fn summed(engine: &Engine, count: usize, inputs: &[&Tensor]) -> Result<Option<Tensor>> {
    engine.native(sum(count), inputs, (DType::F32, &[count]), "sum of two")
}

#[test]
fn a_function_takes_the_bytes_it_states_of_larger_tensors() {
    for count in [3, 5000] {
        let engine = cpu();
        let numbers: Vec<f32> = (0..count + 7).map(|i| i as f32).collect();
        let a = engine.tensor(&numbers).unwrap();
        let b = engine.tensor(&numbers[..count]).unwrap();
        let y = summed(&engine, count, &[&a, &b]).unwrap().expect("the processor has it");
        let expected: Vec<f32> = numbers[..count].iter().map(|number| 2.0 * number).collect();
        assert_eq!(y.to_vec::<f32>().unwrap(), expected);
        let row = engine.metrics().into_iter().find(|row| &*row.operation == "sum of two (native)");
        assert!(row.is_some(), "{:?}", engine.metrics());
    }
}

#[test]
fn a_captured_function_reads_the_inputs_of_each_replay() {
    let engine = cpu();
    let (a, b) = (engine.tensor(&[1.0_f32, 2.0]).unwrap(), engine.tensor(&[10.0_f32, 20.0]).unwrap());
    let step = engine.capture(|| summed(&engine, 2, &[&a, &b])).unwrap();
    let y = step.outputs().as_ref().expect("the processor has it");
    for first in [[1.0_f32, 2.0], [3.0, 5.0]] {
        step.replay(&GraphInputs::new().set(&a, &first)).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [first[0] + 10.0, first[1] + 20.0]);
    }
}

/// The cause of a tensor's loss.
fn cause(y: &Tensor) -> String {
    match y.to_vec::<f32>().unwrap_err() {
        Error::TensorLost { cause, .. } => cause.to_string(),
        other => panic!("no loss: {other}"),
    }
}

#[test]
fn a_functions_error_is_told_when_its_result_is_read() {
    let engine = cpu();
    let (a, short) = (engine.tensor(&[1.0_f32; 8]).unwrap(), engine.tensor(&[1.0_f32; 7]).unwrap());
    let lost = |inputs: &[&Tensor]| cause(&summed(&engine, 8, inputs).unwrap().expect("the processor has it"));
    assert!(lost(&[&a, &short]).contains("binding 2 has 7 elements, 8 are read"), "{}", lost(&[&a, &short]));
    assert!(lost(&[&a]).contains("it takes 3 bindings, there are 2"), "{}", lost(&[&a]));
    let fails = Function::new((), vec![32, 32], |(), _, _, _| Err("the numbers are odd".to_owned()));
    let y = engine.native(NativeOperation::Function(fails), &[&a], (DType::F32, &[8]), "fails").unwrap().unwrap();
    let error = cause(&y);
    assert!(error.contains("fails (native)") && error.contains("the numbers are odd"), "{error}");
    assert!(engine.finish().is_err(), "the failure is told once");
    // What came before and after it is right.
    assert_eq!(summed(&engine, 8, &[&a, &a]).unwrap().unwrap().to_vec::<f32>().unwrap(), [2.0; 8]);
}

/// A function that ends when it is stopped, or after ten seconds, and how often it has begun and was stopped.
fn endless() -> (NativeOperation, Arc<[AtomicUsize; 2]>) {
    let counts = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let told = counts.clone();
    let function = Function::new((), vec![4], move |(), _, _, stop| {
        told[0].fetch_add(1, Ordering::SeqCst);
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            if stop() {
                told[1].fetch_add(1, Ordering::SeqCst);
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    (NativeOperation::Function(function.on(Threads::Any)), counts)
}

#[test]
fn a_function_is_told_of_a_flag_and_of_the_time_limit() {
    let limited = Engine::builder().backend("cpu").timeout(Duration::from_millis(100)).build().unwrap();
    let cases = [(cpu(), true, "was cancelled"), (limited, false, "did not finish within 100 ms")];
    for (engine, cancelled, words) in cases {
        let (flag, (operation, counts)) = (CancelFlag::new(), endless());
        let run = || engine.native(operation, &[], (DType::F32, &[1]), "endless");
        let y = engine.cancel_scope(&flag, run).unwrap().expect("the processor has it");
        let error = std::thread::scope(|threads| {
            if cancelled {
                threads.spawn(|| {
                    // A flag that is raised before it begins leaves it out.
                    let start = Instant::now();
                    while counts[0].load(Ordering::SeqCst) == 0 && start.elapsed() < Duration::from_secs(10) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    flag.cancel();
                });
            }
            cause(&y)
        });
        assert!(error.contains(words), "{error}");
        assert_eq!(counts.each_ref().map(|count| count.load(Ordering::SeqCst)), [1, 1], "{words}");
    }
}

#[test]
fn without_native_operations_the_caller_runs_a_kernel() {
    let engines = [Engine::builder().backend("cpu").native(false), Engine::builder().backend("cpu").reproducible(true)];
    for engine in engines.map(|builder| builder.build().unwrap()) {
        let a = engine.tensor(&[1.0_f32; 4]).unwrap();
        assert!(summed(&engine, 4, &[&a, &a]).unwrap().is_none());
    }
}

#[test]
fn what_does_not_fit_is_refused_before_it_runs() {
    let (engine, other) = (cpu(), cpu());
    let (words, foreign) = (engine.tensor(&[1_u32, 2, 3]).unwrap(), other.tensor(&[1_u32, 2, 3]).unwrap());
    let numbers = engine.tensor(&[1.0_f32; 4]).unwrap();
    let of_another = |error: Error| matches!(error, Error::AnotherEngine { .. });
    assert!(of_another(engine.native(sum(3), &[&words, &foreign], (DType::F32, &[3]), "sum").unwrap_err()));
    assert!(of_another(engine.output(Some(&foreign), DType::F32, &[3], "sum").unwrap_err()));
    assert!(of_another(engine.words(&foreign, 0, &[1], "part").unwrap_err()));
    let mut two = ElementsShape::new(&[3], vec![CopyShape::new(&[3], &[1], 0)], Vec::new());
    two.more.push((0, 4));
    let error = engine.native(NativeOperation::Elements(two), &[&words], (DType::U32, &[3]), "two").unwrap_err();
    assert!(error.to_string().contains("2 results"), "{error}");
    for shape in [&[usize::MAX, 2][..], &[usize::MAX]] {
        assert!(matches!(engine.output(None, DType::F32, shape, "y"), Err(Error::Limit(_))));
        assert!(matches!(engine.words(&words, 0, shape, "part"), Err(Error::Limit(_))));
    }
    assert!(matches!(engine.words(&numbers, 0, &[1], "part"), Err(Error::Dtype(_))));
    for (first, count) in [(0, 4), (1, 3), (3, 1), (4, 0), (usize::MAX, 1)] {
        let error = engine.words(&words, first, &[count], "part").unwrap_err();
        assert!(error.to_string().contains("has 3"), "{error}");
    }
    assert!(engine.words(&words, 3, &[0], "part").unwrap().to_vec::<u32>().unwrap().is_empty());
    assert_eq!(engine.words(&words, 1, &[2], "part").unwrap().to_vec::<u32>().unwrap(), [2, 3]);
}

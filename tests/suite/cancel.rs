//! Work that is stopped: by a flag, by a limit on progress, by its refusal. Whoever else works on the engine does not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cantus::backend::{CancelFlag, Registry, cpu::CpuBackend};
use cantus::engine::{EventKind, GraphInputs};
use cantus::{Engine, Error, Kernel, Result, Tensor};
use kit::engine::{by_turns, name};
use kit::hesitant::Hesitant;

const ADD: &str = "
    @group(0) @binding(0) var<storage> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] += x[id.x]; }
    }";

const ENDLESS: &str = "
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64)
    fn endless(@builtin(global_invocation_id) id: vec3u) {
        loop { y[id.x] += 1u; if y[id.x] == 0xffffffffu { break; } y[id.x] &= 0xffu; }
    }";

/// Each workgroup takes some milliseconds.
const LONG: &str = "
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64)
    fn long(@builtin(global_invocation_id) id: vec3u, @builtin(workgroup_id) group: vec3u) {
        var sum = 0u;
        for (var i = 0u; i < 2000u; i++) { sum = sum * 3u + y[(id.x + i) % 64u]; workgroupBarrier(); }
        if id.x < arrayLength(&y) { y[id.x] = sum | 1u; }
    }";

/// Longer than a busy machine keeps a thread waiting.
const LIMIT: Duration = Duration::from_secs(2);

fn cpu() -> cantus::engine::Builder {
    Engine::builder().backend("cpu")
}

fn add(engine: &Engine, kernel: &Kernel, x: &Tensor, y: &Tensor) -> Result<()> {
    engine.dispatch(kernel).bind("x", x).bind("y", y).invocations(x.len()).run()
}

fn cause(error: Error) -> Error {
    match error {
        Error::TensorLost { cause, .. } => (*cause).clone(),
        other => panic!("no loss: {other}"),
    }
}

/// Raises a flag from another thread, later.
fn later(flag: &CancelFlag, delay: Duration) -> std::thread::JoinHandle<()> {
    let flag = flag.clone();
    std::thread::spawn(move || {
        std::thread::sleep(delay);
        flag.cancel();
    })
}

/// An endless kernel in the middle of other threads' work on an engine. The error that ended it.
fn among_others(engine: &Engine, flag: Option<&CancelFlag>) -> Error {
    let (kernel, endless) = (Kernel::from_wgsl(ADD).unwrap(), Kernel::from_wgsl(ENDLESS).unwrap());
    let stuck = engine.zeros::<u32>(&[4096]).unwrap();
    let x = engine.tensor(&[1.0_f32; 8]).unwrap();
    let sums: Vec<Tensor> = (0..400).map(|i| engine.tensor(&[i as f32; 8]).unwrap()).collect();
    let record = |sums: &[Tensor]| sums.iter().for_each(|sum| add(engine, &kernel, &x, sum).unwrap());
    std::thread::scope(|threads| {
        for part in sums[..200].chunks(50) {
            threads.spawn(|| record(part));
        }
    });
    let mut dispatch = engine.dispatch(&endless).bind("y", &stuck).invocations(4096);
    if let Some(flag) = flag {
        dispatch = dispatch.cancel(flag);
    }
    dispatch.run().unwrap();
    std::thread::scope(|threads| {
        for part in sums[200..].chunks(50) {
            threads.spawn(|| record(part));
        }
    });
    let canceller = flag.map(|flag| later(flag, Duration::from_millis(50)));
    for (i, sum) in sums.iter().enumerate() {
        assert_eq!(sum.to_vec::<f32>().unwrap(), [i as f32 + 1.0; 8], "the {i}th");
    }
    canceller.into_iter().for_each(|thread| thread.join().unwrap());
    let error = cause(stuck.to_vec::<u32>().unwrap_err());
    assert!(engine.finish().is_err(), "the failure is told once");
    engine.finish().unwrap();
    error
}

#[test]
fn a_cancelled_kernel_loses_nothing_of_others() {
    let error = among_others(&cpu().build().unwrap(), Some(&CancelFlag::new()));
    assert!(matches!(&error, Error::Cancelled { what } if what == "endless"), "{error}");
}

#[test]
fn a_kernel_past_its_time_loses_nothing_of_others() {
    let error = among_others(&cpu().timeout(Duration::from_millis(300)).build().unwrap(), None);
    assert!(matches!(&error, Error::Timeout { milliseconds: 300, .. }), "{error}");
}

#[test]
fn a_kernel_without_progress_is_stopped_and_a_long_one_is_not() {
    let engine = cpu().stall_limit(LIMIT).build().unwrap();
    let error = among_others(&engine, None);
    assert!(matches!(&error, Error::Stalled { what, milliseconds: 2000, .. } if what == "endless"), "{error}");
    // Longer than the limit as a whole, but each workgroup is quick.
    let kernel = Kernel::from_wgsl(LONG).unwrap();
    let run = |engine: &Engine, groups: u32| {
        let y = engine.zeros::<u32>(&[64]).unwrap();
        let started = Instant::now();
        engine.dispatch(&kernel).bind("y", &y).workgroups(groups).run().unwrap();
        assert!(y.to_vec::<u32>().unwrap().iter().all(|value| value % 2 == 1));
        started.elapsed()
    };
    let unlimited = cpu().build().unwrap();
    run(&unlimited, 1);
    let limit = LIMIT.max(100 * run(&unlimited, 1));
    let engine = cpu().stall_limit(limit).build().unwrap();
    let mut groups = 64;
    while run(&engine, groups) < 2 * limit {
        groups *= 2;
    }
}

#[test]
fn a_scope_cancels_expressions_and_products() {
    let engine = cpu().build().unwrap();
    let x = engine.tensor_from(&vec![0.5_f32; 3000 * 3000], &[3000, 3000]).unwrap();
    let y = (&x * 2.0_f32).eval().unwrap();
    let whole = || -> Result<Tensor> {
        let mut product = x.matmul(&y).eval()?;
        for _ in 0..50 {
            product = product.matmul(&y).eval()?;
        }
        product.exp().sum(&[], false).eval()
    };
    let flag = CancelFlag::new();
    let canceller = later(&flag, Duration::from_millis(200));
    let started = Instant::now();
    // By whatever way it ends: a step that is recorded when its input is lost already is refused.
    let outcome = engine.cancel_scope(&flag, whole).and_then(|sum| sum.to_vec::<f32>());
    let taken = started.elapsed();
    canceller.join().unwrap();
    let error = outcome.unwrap_err();
    assert!(error.to_string().contains("cancelled") || error.to_string().contains("was lost"), "{error}");
    assert!(taken < Duration::from_secs(8), "51 products of 54 GFLOP each were cancelled after {taken:?}");
    assert!(engine.finish().is_err());
    // The scope has ended: nothing is cancelled any more.
    assert_eq!(x.sum(&[], false).eval().unwrap().item::<f32>().unwrap(), 4_500_000.0);
    engine.finish().unwrap();
}

#[test]
fn an_expression_can_be_evaluated_again_after_it_was_cancelled() {
    let engine = cpu().build().unwrap();
    let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
    let sums = x.sum(&[1], true);
    let twice = &sums * &sums.reshape(&[1, 2]);
    let flag = CancelFlag::new();
    flag.cancel();
    let lost = engine.cancel_scope(&flag, || twice.eval()).and_then(|tensor| tensor.to_vec::<f32>());
    assert!(lost.is_err());
    assert_eq!(twice.eval().unwrap().to_vec::<f32>().unwrap(), [9.0, 21.0, 21.0, 49.0]);
}

#[test]
fn what_is_cancelled_before_it_is_submitted_is_left_out_on_each_device() {
    for engine in by_turns() {
        let kernel = Kernel::from_wgsl(ADD).unwrap();
        let x = engine.tensor(&[1.0_f32; 4]).unwrap();
        let [kept, stopped, scoped] = [0; 3].map(|_| engine.tensor(&[2.0_f32; 4]).unwrap());
        let (own, scope) = (CancelFlag::new(), CancelFlag::new());
        add(engine, &kernel, &x, &kept).unwrap();
        engine.dispatch(&kernel).bind("x", &x).bind("y", &stopped).invocations(4).cancel(&own).run().unwrap();
        engine.cancel_scope(&scope, || add(engine, &kernel, &x, &scoped)).unwrap();
        add(engine, &kernel, &x, &kept).unwrap();
        own.cancel();
        scope.cancel();
        assert_eq!(kept.to_vec::<f32>().unwrap(), [4.0; 4], "{}", name(engine));
        for tensor in [&stopped, &scoped] {
            let error = cause(tensor.to_vec::<f32>().unwrap_err());
            assert!(matches!(error, Error::Cancelled { .. }), "{}: {error}", name(engine));
        }
        assert!(matches!(engine.finish(), Err(Error::Cancelled { .. })), "{}", name(engine));
        engine.finish().unwrap();
    }
}

/// An engine on the processor behind calls that all wait.
fn hesitant() -> Engine {
    let mut registry = Registry::empty();
    registry.register(Arc::new(Hesitant(Arc::new(CpuBackend::new()))));
    Engine::builder().registry(registry).build().unwrap()
}

#[test]
fn a_wait_that_is_dropped_swallows_no_failure() {
    for polls in 0..6 {
        let engine = hesitant();
        let kernel = Kernel::from_wgsl(ADD).unwrap();
        let (x, y) = (engine.tensor(&[1.0_f32]).unwrap(), engine.tensor(&[2.0_f32]).unwrap());
        let flag = CancelFlag::new();
        flag.cancel();
        engine.cancel_scope(&flag, || add(&engine, &kernel, &x, &y)).unwrap();
        let told = {
            let mut finish = std::pin::pin!(engine.finish_async());
            (0..polls).find_map(|_| poll(finish.as_mut()))
        };
        assert!(told.unwrap_or_else(|| engine.finish()).is_err(), "after {polls} polls");
    }
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    use std::task::{Context, Poll, Waker};
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

#[test]
fn replays_of_two_graphs_do_not_mix_their_inputs() {
    let engine = hesitant();
    let kernel = Kernel::from_wgsl(ADD).unwrap();
    let x = engine.zeros::<f32>(&[2]).unwrap();
    let (y, z) = (engine.zeros::<f32>(&[2]).unwrap(), engine.zeros::<f32>(&[2]).unwrap());
    let first = engine.capture(|| add(&engine, &kernel, &x, &y)).unwrap();
    let second = engine.capture(|| add(&engine, &kernel, &x, &z)).unwrap();
    let inputs = [[1.0_f32, 2.0], [30.0, 40.0]].map(|values| values.to_vec());
    let sets = [0, 1].map(|i| GraphInputs::new().set(&x, &inputs[i]));
    let mut one = std::pin::pin!(first.replay_async(&sets[0]));
    let mut two = std::pin::pin!(second.replay_async(&sets[1]));
    let mut ended = [false; 2];
    while ended != [true; 2] {
        for (at, ended) in ended.iter_mut().enumerate().filter(|(_, ended)| !**ended) {
            let answer = if at == 0 { poll(one.as_mut()) } else { poll(two.as_mut()) };
            *ended = answer.map(|outcome| outcome.unwrap()).is_some();
        }
    }
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(z.to_vec::<f32>().unwrap(), [30.0, 40.0]);
}

#[test]
fn memory_that_queued_work_will_give_back_is_waited_for() {
    let engine = cpu().memory_limit(48 << 20).build().unwrap();
    let side = 1 << 21;
    // Each round takes 8 MiB twice, of which the work that is queued holds all until it is done.
    let mut last = None;
    for round in 0..64 {
        let x = engine.zeros::<f32>(&[side]).unwrap();
        let value = x.expr() + round as f32;
        last = Some(value.exp().sum(&[], false).eval().unwrap());
        engine.flush();
    }
    let sum = last.unwrap().item::<f32>().unwrap();
    let expected = side as f32 * 63.0_f32.exp();
    assert!((sum / expected - 1.0).abs() < 1e-4, "{sum} {expected}");
}

#[test]
fn work_on_its_way_is_bounded() {
    let engine = cpu().build().unwrap();
    let kernel = Kernel::from_wgsl(LONG).unwrap();
    let running = Arc::new(AtomicBool::new(true));
    let watcher = {
        let (engine, running) = (engine.clone(), running.clone());
        std::thread::spawn(move || {
            let mut most = 0;
            while running.load(Ordering::Relaxed) {
                most = most.max(engine.memory().in_use);
                std::thread::sleep(Duration::from_micros(200));
            }
            most
        })
    };
    for _ in 0..300 {
        let y = engine.zeros::<u32>(&[1 << 18]).unwrap();
        engine.dispatch(&kernel).bind("y", &y).workgroups(1).run().unwrap();
        engine.flush();
    }
    engine.finish().unwrap();
    running.store(false, Ordering::Relaxed);
    let most = watcher.join().unwrap();
    assert!(most <= 80 << 20, "{} MiB were held at a time", most >> 20);
}

#[test]
fn a_refused_batch_is_told_by_event() {
    let engine = cpu().build().unwrap();
    let kernel = Kernel::from_wgsl(ADD).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32]).unwrap(), engine.tensor(&[2.0_f32]).unwrap());
    let flag = CancelFlag::new();
    engine.cancel_scope(&flag, || add(&engine, &kernel, &x, &y)).unwrap();
    flag.cancel();
    engine.flush();
    let lost: Vec<_> = engine.events().into_iter().filter(|event| event.kind == EventKind::Lost).collect();
    assert_eq!(lost.len(), 1);
    assert!(lost[0].message.contains("was cancelled"), "{}", lost[0].message);
}

/// Two loops without an end, one after the other, one of them in a function; and one that ends soon.
const SPINS: &str = "
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    fn spin(start: u32) -> u32 {
        var x = start;
        while x != 0u { x = x * 5u + 2u; x |= 1u; }
        return x;
    }
    @compute @workgroup_size(64)
    fn spins(@builtin(global_invocation_id) id: vec3u) {
        var sum = 0u;
        for (var i = 0u; i < 8u; i++) { sum += i; }
        y[id.x] = sum;
        if id.x == 70u { y[id.x] = spin(id.x); loop { y[id.x] |= 1u; if y[id.x] == 0u { break; } } }
    }";

#[test]
fn loops_end_at_their_limit_and_say_where() {
    for engine in by_turns() {
        let limited = Kernel::from_wgsl(SPINS).unwrap().with_loop_limit(1000).unwrap();
        assert_eq!(limited.loops.iter().map(|place| place.line).collect::<Vec<_>>(), [5, 11, 13], "{}", name(engine));
        let stopped_at = |kernel: &Kernel, invocations: usize| {
            let y = engine.zeros_of(cantus::DType::U32, &[128]).unwrap();
            let stopped = engine.zeros_of(cantus::DType::U32, &[1]).unwrap();
            let run = engine.dispatch(kernel).bind("y", &y).bind("cantus_stopped", &stopped);
            run.invocations(invocations).run().unwrap();
            assert_eq!(y.to_vec::<u32>().unwrap()[..70], [28; 70], "{}", name(engine));
            stopped.to_vec::<u32>().unwrap()[0]
        };
        assert_eq!(stopped_at(&limited.kernel, 128), 1, "{}", name(engine));
        // The eight rounds, and the look that ends them, are nine.
        for (rounds, expected) in [(9, 0), (8, 2)] {
            let limit = Kernel::from_wgsl(SPINS).unwrap().with_loop_limit(rounds).unwrap();
            let y = engine.zeros_of(cantus::DType::U32, &[64]).unwrap();
            let stopped = engine.zeros_of(cantus::DType::U32, &[1]).unwrap();
            let run = engine.dispatch(&limit.kernel).bind("y", &y).bind("cantus_stopped", &stopped);
            run.invocations(64).run().unwrap();
            assert_eq!(stopped.to_vec::<u32>().unwrap(), [expected], "{} at {rounds}", name(engine));
        }
    }
    let plain = Kernel::from_wgsl(LONG).unwrap().with_loop_limit(100).unwrap();
    assert!(plain.loops.is_empty(), "a loop with a barrier is not counted");
}

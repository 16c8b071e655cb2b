//! The table of failures in docs/internals/engine.md, row by row: what each failure does, and whom it affects. Each row is tried at once, late and twice, while
//! another thread works on the same engine: it computes right numbers, or gets an error about a lost device.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cantus::engine::{EventKind, GraphInputs};
use cantus::{Engine, Error, Fallback, Kernel, Result, Tensor};

use super::faulty::{Counts, Fault, Kind, Place, Strike};
use super::{SAXPY, happened, saxpy, within};

/// The row's scenario, on an engine whose device fails next.
struct Row<'a> {
    engine: &'a Engine,
    counts: &'a Counts,
    kernel: &'a Kernel,
    strike: Strike,
}

impl Row<'_> {
    fn tensors(&self) -> (Tensor, Tensor) {
        (self.engine.tensor(&[1.0_f32, 2.0]).unwrap(), self.engine.tensor(&[10.0_f32, 20.0]).unwrap())
    }

    fn add(&self, x: &Tensor, y: &Tensor) -> Result<()> {
        saxpy(self.engine, self.kernel, x, y)
    }

    /// From here on calls fail.
    fn begin(&self) {
        self.counts.armed.store(true, Ordering::SeqCst);
    }
}

/// Works beside the scenario on tensors of its own. Its numbers are right, or the error says that something of its own was lost or refused.
fn neighbour(engine: &Engine, kernel: &Kernel, running: &AtomicBool, rounds: &AtomicUsize) {
    while running.load(Ordering::SeqCst) {
        let number = rounds.fetch_add(1, Ordering::SeqCst) as f32;
        let round = || -> Result<Vec<f32>> {
            let (x, y) = (engine.tensor(&[3.0_f32])?, engine.tensor(&[number])?);
            saxpy(engine, kernel, &x, &y)?;
            saxpy(engine, kernel, &x, &y)?;
            y.to_vec::<f32>()
        };
        match round() {
            Ok(values) => assert_eq!(values, [number + 12.0], "beside"),
            Err(
                Error::TensorLost { .. } | Error::DeviceLost { .. } | Error::Device { .. } | Error::OutOfMemory { .. },
            ) => {}
            Err(other) => panic!("beside: {other}"),
        }
    }
}

fn each(place: Place, kind: Kind, scenario: fn(&Row<'_>)) {
    for (late, times) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
        for company in [false, true] {
            within(Duration::from_secs(60), move || {
                let strike = Strike { place, kind, after: 0, times, late };
                let (engine, counts) = super::engine(Fault::At(strike), Fallback::Always);
                let kernel = Kernel::from_wgsl(SAXPY).unwrap();
                let row = Row { engine: &engine, counts: &counts, kernel: &kernel, strike };
                if !company {
                    return scenario(&row);
                }
                let (running, rounds) = (AtomicBool::new(true), AtomicUsize::new(0));
                std::thread::scope(|threads| {
                    let beside = threads.spawn(|| neighbour(&engine, &kernel, &running, &rounds));
                    // Whoever meets the failure is told; the numbers of both are right.
                    for _ in 0..20 {
                        let (x, y) = (engine.tensor(&[1.0_f32, 2.0]), engine.tensor(&[10.0_f32, 20.0]));
                        counts.armed.store(true, Ordering::SeqCst);
                        if let (Ok(x), Ok(y)) = (x, y)
                            && row.add(&x, &y).is_ok()
                            && let Ok(values) = y.to_vec::<f32>()
                        {
                            assert_eq!(values, [12.0, 24.0]);
                        }
                    }
                    while rounds.load(Ordering::SeqCst) < 5 && !beside.is_finished() {
                        std::thread::yield_now();
                    }
                    running.store(false, Ordering::SeqCst);
                    beside.join().unwrap();
                });
                // Afterwards the engine works, on this device or on the next.
                let _ = engine.finish();
                let (x, y) = row.tensors();
                row.add(&x, &y).unwrap();
                assert_eq!(y.to_vec::<f32>().unwrap(), [12.0, 24.0]);
            });
        }
    }
}

fn lost(tensor: &Tensor) -> Error {
    match tensor.to_vec::<f32>() {
        Err(Error::TensorLost { cause, .. }) => (*cause).clone(),
        other => panic!("no loss: {other:?}"),
    }
}

#[test]
fn compile() {
    each(Place::Compile, Kind::Refused, |row| {
        let (x, y) = row.tensors();
        row.begin();
        row.add(&x, &y).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [12.0, 24.0]);
        assert_ne!(y.device_name(), "faulty");
        row.engine.finish().unwrap();
    });
}

#[test]
fn allocate() {
    each(Place::Allocate, Kind::NoMemory, |row| {
        row.begin();
        let (x, y) = row.tensors();
        row.add(&x, &y).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [12.0, 24.0]);
        assert!(!happened(row.engine, EventKind::FellBack).is_empty());
    });
}

#[test]
fn write() {
    each(Place::Write, Kind::Refused, |row| {
        let (x, y) = row.tensors();
        row.begin();
        let error = x.write(&[5.0_f32, 6.0]).unwrap_err();
        assert!(error.to_string().contains("made to fail"), "{error}");
        assert!(matches!(lost(&x), Error::Device { .. }), "half of it may be written");
        if row.strike.times == 2 {
            assert!(row.engine.tensor(&[1.0_f32]).is_err());
        }
        assert_eq!(y.to_vec::<f32>().unwrap(), [10.0, 20.0]);
    });
}

#[test]
fn read() {
    each(Place::Read, Kind::Refused, |row| {
        let (x, y) = row.tensors();
        row.add(&x, &y).unwrap();
        row.begin();
        for _ in 0..row.strike.times {
            assert!(y.to_vec::<f32>().unwrap_err().to_string().contains("made to fail"));
        }
        assert_eq!(y.to_vec::<f32>().unwrap(), [12.0, 24.0], "the contents are as they were");
    });
}

#[test]
fn submit_and_nobody_knows_what_ran() {
    each(Place::Submit, Kind::Refused, |row| {
        for time in 0..row.strike.times {
            let (x, y) = row.tensors();
            let z = row.engine.tensor(&[0.0_f32, 0.0]).unwrap();
            row.add(&x, &y).unwrap();
            row.add(&x, &z).unwrap();
            row.begin();
            row.engine.flush();
            assert!(matches!(lost(&y), Error::Device { .. }), "the {time}th");
            assert!(matches!(lost(&z), Error::Device { .. }), "of the same batch");
            assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0], "only read");
            assert!(row.engine.finish().is_err());
            row.engine.finish().unwrap();
        }
    });
}

#[test]
fn submit_and_nothing_ran() {
    each(Place::Submit, Kind::Returned, |row| {
        let (x, y) = row.tensors();
        let z = row.engine.tensor(&[0.0_f32, 0.0]).unwrap();
        row.add(&x, &y).unwrap();
        row.add(&x, &z).unwrap();
        row.add(&x, &z).unwrap();
        row.begin();
        row.engine.flush();
        // Another batch behind it, of other memory.
        let (u, v) = row.tensors();
        row.add(&u, &v).unwrap();
        let behind = v.to_vec::<f32>();
        if row.strike.times == 1 {
            assert_eq!(behind.unwrap(), [12.0, 24.0]);
            // Submitted again, one by one.
            assert_eq!(y.to_vec::<f32>().unwrap(), [12.0, 24.0]);
            assert_eq!(z.to_vec::<f32>().unwrap(), [4.0, 8.0]);
            return row.engine.finish().unwrap();
        }
        // The second refusal hits one command.
        let outcomes = [y.to_vec::<f32>(), z.to_vec::<f32>(), behind];
        let told =
            outcomes.iter().filter(|outcome| outcome.is_err()).count() + usize::from(row.engine.finish().is_err());
        assert!(told > 0);
        for (outcome, right) in outcomes.into_iter().zip([[12.0, 24.0], [4.0, 8.0], [12.0, 24.0]]) {
            assert!(outcome.map_or(true, |values| values == right));
        }
    });
}

#[test]
fn one_bad_command_loses_its_own_results_only() {
    for late in [false, true] {
        let strike = Strike { place: Place::Submit, kind: Kind::Bad, after: 0, times: usize::MAX / 2, late };
        let (engine, counts) = super::engine(Fault::At(strike), Fallback::Never);
        counts.armed.store(true, Ordering::SeqCst);
        let kernel = Kernel::from_wgsl(SAXPY).unwrap();
        let x = engine.tensor(&[1.0_f32, 2.0]).unwrap();
        let sums: Vec<Tensor> = (0..200).map(|_| engine.zeros::<f32>(&[2]).unwrap()).collect();
        let bad = engine.zeros::<f32>(&[2]).unwrap();
        for (i, sum) in sums.iter().enumerate() {
            if i == 100 {
                let dispatch = engine.dispatch(&kernel).set("params.a", 2.0_f32).bind("x", &x).bind("y", &bad);
                dispatch.invocations(2).label("bad").run().unwrap();
                // Computed from it, so lost with it.
                saxpy(&engine, &kernel, &bad, &sums[0]).unwrap();
            }
            saxpy(&engine, &kernel, &x, sum).unwrap();
        }
        engine.flush();
        for sum in &sums[1..] {
            assert_eq!(sum.to_vec::<f32>().unwrap(), [2.0, 4.0]);
        }
        lost(&bad);
        lost(&sums[0]);
        let told = happened(&engine, EventKind::Failed);
        assert!(told.iter().any(|text| text.contains("commands are submitted one by one")), "{told:?}");
    }
}

#[test]
fn a_command_is_not_repeated_on_memory_that_was_written_since() {
    // The refusal comes when the host has written the input already: what the command would compute now is something else.
    let strike = Strike { place: Place::Submit, kind: Kind::Returned, after: 0, times: 1, late: true };
    let (engine, counts) = super::engine(Fault::At(strike), Fallback::Never);
    counts.armed.store(true, Ordering::SeqCst);
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let x = engine.tensor(&[1.0_f32, 2.0]).unwrap();
    let (y, z) = (engine.zeros::<f32>(&[2]).unwrap(), engine.zeros::<f32>(&[2]).unwrap());
    let other = engine.tensor(&[5.0_f32, 6.0]).unwrap();
    saxpy(&engine, &kernel, &x, &y).unwrap();
    saxpy(&engine, &kernel, &other, &z).unwrap();
    engine.flush();
    x.write(&[100.0_f32, 200.0]).unwrap();
    lost(&y);
    assert_eq!(z.to_vec::<f32>().unwrap(), [10.0, 12.0], "its memory is as it was");
    assert_eq!(x.to_vec::<f32>().unwrap(), [100.0, 200.0]);
}

#[test]
fn record() {
    each(Place::Record, Kind::Refused, |row| {
        let (x, y) = row.tensors();
        row.begin();
        for _ in 0..row.strike.times {
            let error = row.engine.capture(|| row.add(&x, &y)).unwrap_err();
            assert!(error.to_string().contains("made to fail"), "{error}");
        }
        assert_eq!(y.to_vec::<f32>().unwrap(), [10.0, 20.0], "nothing ran");
        let graph = row.engine.capture(|| row.add(&x, &y)).unwrap();
        graph.replay(&GraphInputs::new()).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [12.0, 24.0]);
    });
}

#[test]
fn replay() {
    each(Place::Replay, Kind::Refused, |row| {
        for _ in 0..row.strike.times {
            let (x, y) = row.tensors();
            let graph = row.engine.capture(|| row.add(&x, &y)).unwrap();
            row.begin();
            graph.replay(&GraphInputs::new()).unwrap();
            assert!(matches!(lost(&y), Error::Device { .. }));
            assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0]);
        }
    });
}

#[test]
fn finish() {
    each(Place::Finish, Kind::Refused, |row| {
        let (x, y) = row.tensors();
        row.add(&x, &y).unwrap();
        row.begin();
        for _ in 0..row.strike.times {
            assert!(row.engine.finish().unwrap_err().to_string().contains("made to fail"));
        }
        row.engine.finish().unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [12.0, 24.0], "the results are there");
    });
}

#[test]
fn a_lost_device() {
    for place in
        [Place::Compile, Place::Allocate, Place::Write, Place::Read, Place::Submit, Place::Replay, Place::Finish]
    {
        each(place, Kind::Lost, |row| {
            let (x, y) = row.tensors();
            row.begin();
            // Whatever meets it, everything on the device is lost: no number comes from there any more.
            let _ = row.add(&x, &y);
            let _ = row.engine.tensor(&[1.0_f32]);
            let _ = row.engine.finish();
            let _ = x.to_vec::<f32>();
            let graph = row.engine.capture(|| row.add(&x, &y));
            let _ = graph.map(|graph| graph.replay(&GraphInputs::new()));
            let _ = x.write(&[0.0_f32, 0.0]);
            if row.counts.lost.load(Ordering::SeqCst) {
                for tensor in [&x, &y].iter().filter(|tensor| tensor.device_name() == "faulty") {
                    assert!(tensor.to_vec::<f32>().is_err());
                }
                let (x, y) = row.tensors();
                row.add(&x, &y).unwrap();
                assert_eq!(y.to_vec::<f32>().unwrap(), [12.0, 24.0]);
                assert_ne!(y.device_name(), "faulty");
            }
        });
    }
}

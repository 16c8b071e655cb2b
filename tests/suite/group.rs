//! Groups over every pair of devices: the numbers are those of an oracle in float64, whoever did which strip, and whoever fails.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cantus::backend::Registry;
use cantus::backend::vulkan::{Emulation, VulkanBackend};
use cantus::engine::EventKind;
use cantus::group::{Done, Group, Plan};
use cantus::ops::field::{FieldParams, Frequency, GroupField};
use cantus::{Config, Engine, Error, Fallback};
use cantus_verify::inputs::Random;
use kit::engine::{engines, name};

use super::fallback::faulty::{Counts, Fault, FaultyBackend, Kind, Place, Strike};

/// The formula of the field, by the definition.
fn field_oracle(width: usize, height: usize) -> Vec<f64> {
    let phi = (1.0 + 5.0_f64.sqrt()) / 2.0;
    let side = |at: usize, of: usize| if of == 1 { -1.0 } else { 2.0 * at as f64 / (of - 1) as f64 - 1.0 };
    let value = |j: usize, i: usize| {
        let (x, y) = (side(i, width), side(j, height));
        let r = phi * x.hypot(y);
        (4.32 * r + phi * y.atan2(x) + phi.powf(phi) * 0.5).sin() * (-r / phi).exp()
    };
    (0..height).flat_map(|j| (0..width).map(move |i| (j, i))).map(|(j, i)| value(j, i)).collect()
}

fn params(width: usize, height: usize) -> FieldParams {
    FieldParams::new(width, height).frequency(Frequency::Unity).time(0.5)
}

fn assert_near(found: &[f32], oracle: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), oracle.len(), "{what}");
    for (at, (found, wanted)) in found.iter().zip(oracle).enumerate() {
        assert!((f64::from(*found) - wanted).abs() <= tolerance, "{what}: [{at}] is {found}, not {wanted}");
    }
}

/// Each row was planned for one member, and done by one.
fn assert_whole<T>(done: &Done<T>, rows: usize) {
    assert_planned(&done.plan, rows);
    assert_eq!(done.parts.iter().map(|part| part.rows).sum::<usize>(), rows, "{:?}", done.parts);
}

fn assert_planned(plan: &Plan, rows: usize) {
    let mut next = 0;
    for share in &plan.shares {
        assert_eq!(share.rows.start, next, "{plan}");
        next = share.rows.end;
    }
    assert_eq!(next, rows, "{plan}");
}

fn pairs() -> impl Iterator<Item = [Engine; 2]> {
    let all = engines();
    (0..all.len()).flat_map(move |a| (a..all.len()).map(move |b| [all[a].clone(), all[b].clone()]))
}

#[test]
fn every_pair_of_devices_computes_what_the_oracle_does() {
    let mut random = Random::new(16);
    let mut values = |count: usize| -> Vec<f32> { (0..count).map(|_| (random.unit() * 2.0 - 1.0) as f32).collect() };
    let (a, b) = (values(53 * 31), values(31 * 17));
    let product: Vec<f64> = (0..53 * 17)
        .map(|at| (0..31).map(|k| f64::from(a[at / 17 * 31 + k]) * f64::from(b[k * 17 + at % 17])).sum())
        .collect();
    let mapped: Vec<f64> = a.iter().map(|value| (f64::from(*value) * 3.0).exp()).collect();
    let sum: f64 = a.iter().map(|value| f64::from(*value)).sum();
    let oracle = field_oracle(67, 129);
    for pair in pairs() {
        let what = pair.each_ref().map(name).join(" with ");
        for strip in [1, 7, 1000] {
            let group = Group::new(pair.clone()).unwrap().strip_rows(strip);
            // Twice: the second plan knows speeds.
            for _ in 0..2 {
                let field = group.field(&params(67, 129)).unwrap();
                assert_whole(&field, 129);
                assert_near(&field.values, &oracle, 1e-5, &what);
            }
            let found = group.map(&a, &[53, 31], |strip| Ok((strip * 3.0).exp())).unwrap();
            assert_whole(&found, 53);
            assert_near(&found.values, &mapped, 2e-5, &what);
            let found = group.matmul((&a, [53, 31]), (&b, [31, 17])).unwrap();
            assert_whole(&found, 53);
            assert_near(&found.values, &product, 1e-5, &what);
        }
        let group = Group::new(pair.clone()).unwrap().strip_rows(100);
        let found = group.sum(&a).unwrap();
        assert_whole(&found, a.len());
        assert!((found.values - sum).abs() < 1e-4, "{what}: {} is not {sum}", found.values);
    }
}

#[test]
fn plans_cover_every_row_once_and_show_themselves() {
    let group = Group::open(&["cpu", "cpu:0", "cpu"]).unwrap();
    for rows in [1, 2, 3, 5, 64, 1000, 8192] {
        let plan = group.field_plan(&params(8192, rows));
        assert_planned(&plan, rows);
        assert!(plan.strip_rows * 8192 <= 1 << 20, "{plan}");
    }
    let text = group.field(&params(300, 500)).unwrap().to_string();
    assert!(text.contains("500 rows in strips of") && text.contains("done by") && text.contains("cpu 0"), "{text}");
    let again = group.field_plan(&params(300, 500));
    assert_planned(&again, 500);
}

/// The processor under another name, which fails on demand.
fn faulty(fault: Fault) -> (Engine, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let mut registry = Registry::empty();
    registry.register(Arc::new(FaultyBackend { fault, counts: counts.clone() }));
    let builder = Engine::builder().registry(registry).config(Config::default()).fallback(Fallback::Never);
    let engine = builder.placement(false).timeout(Duration::from_millis(500)).build().unwrap();
    (engine, counts)
}

fn cpu() -> Engine {
    Engine::builder().backend("cpu").fallback(Fallback::Never).build().unwrap()
}

#[test]
fn strips_of_a_member_that_fails_go_to_the_others() {
    let oracle = field_oracle(67, 129);
    for place in [Place::Compile, Place::Allocate, Place::Submit, Place::Read] {
        for (kind, late) in [(Kind::Lost, false), (Kind::Lost, true), (Kind::Refused, false), (Kind::NoMemory, true)] {
            for after in [0, 3] {
                // A kernel is compiled once.
                if place == Place::Compile && after > 0 {
                    continue;
                }
                let what = format!("{place:?} {kind:?} after {after}");
                let (engine, counts) = faulty(Fault::At(Strike { place, kind, after, times: usize::MAX / 2, late }));
                counts.armed.store(true, Ordering::SeqCst);
                let other = cpu();
                let group = Group::new([engine, other.clone()]).unwrap().strip_rows(2);
                let field = group.field(&params(67, 129)).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_whole(&field, 129);
                assert_near(&field.values, &oracle, 1e-5, &what);
                // The processor may have done all before the other one came to its fault.
                if counts.calls.load(Ordering::SeqCst) > after {
                    assert!(field.parts[0].failure.is_some(), "{what}: {field}");
                    let noted = |event: &cantus::engine::Event| {
                        event.kind == EventKind::FellBack && event.message.contains("of faulty")
                    };
                    assert!(other.events().iter().any(noted), "{what}: {:?}", other.events());
                    assert!(field.to_string().contains("until it failed"), "{field}");
                }
            }
        }
    }
}

/// Vulkan, whose work begins seconds later than its time limit allows.
#[test]
fn a_member_that_hangs_is_left_out_when_its_time_is_over() {
    let emulation = Emulation { delay: Some(Duration::from_secs(3)), ..Default::default() };
    let mut registry = Registry::empty();
    registry.register(Arc::new(VulkanBackend::new().emulate(emulation)));
    let builder = Engine::builder().registry(registry).config(Config::default()).fallback(Fallback::Never);
    let hanging = match builder.timeout(Duration::from_millis(300)).build() {
        Ok(hanging) => hanging,
        Err(error) => return kit::not_run("a device of a group that hangs", &error.to_string()),
    };
    // Slow, so that it leaves a strip to the other.
    let (slow, _) = faulty(Fault::Slow(Duration::from_millis(10)));
    let group = Group::new([hanging, slow]).unwrap().strip_rows(4);
    let field = group.field(&params(67, 129)).unwrap();
    assert_whole(&field, 129);
    assert_near(&field.values, &field_oracle(67, 129), 1e-5, "hanging");
    assert!(field.parts[0].failure.is_some() && field.parts[0].rows == 0, "{field}");
}

#[test]
fn a_group_of_which_all_fail_says_so() {
    let strike = Strike { place: Place::Submit, kind: Kind::Lost, after: 2, times: 1, late: false };
    let members = [faulty(Fault::At(strike)), faulty(Fault::At(strike))];
    members.iter().for_each(|(_, counts)| counts.armed.store(true, Ordering::SeqCst));
    let group = Group::new(members.map(|(engine, _)| engine)).unwrap().strip_rows(2);
    let error = group.field(&params(67, 129)).unwrap_err();
    assert!(error.to_string().contains("made to be lost"), "{error}");
}

#[test]
fn a_slow_member_gives_strips_away() {
    let (slow, _) = faulty(Fault::Slow(Duration::from_millis(30)));
    let group = Group::new([slow, cpu()]).unwrap().strip_rows(1);
    // On a busy machine the other one may have done all of it before the slow one's thread begins: then nothing is known of that yet.
    for _ in 0..100 {
        let field = group.field(&params(67, 129)).unwrap();
        assert_near(&field.values, &field_oracle(67, 129), 1e-5, "slow");
        assert!(field.parts[1].taken_over > 30, "{field}");
        if field.parts[0].strips > 0 {
            break;
        }
    }
    let plan = group.field_plan(&params(67, 129));
    assert!(plan.shares[0].rows.len() < 30, "the second plan knows who is slow: {plan}");
}

/// Work that a group knows nothing of: its rows come in order from several members, and its speed is known by its name alone.
#[test]
fn an_app_s_own_work_is_divided() {
    let group = Group::new([cpu(), cpu(), cpu()]).unwrap().strip_rows(3);
    let rows = |engine: &Engine, rows: std::ops::Range<usize>| {
        let numbers: Vec<u32> = rows.flat_map(|row| [row as u32, 7 * row as u32]).collect();
        engine.tensor_from(&numbers, &[numbers.len() / 2, 2])
    };
    assert!(group.plan("pairs", (100, 2)).shares.iter().all(|share| share.speed.is_none()));
    let done = group.generate::<u32>("pairs", (100, 2), rows).unwrap();
    assert_eq!(done.values, (0..100).flat_map(|row| [row, 7 * row]).collect::<Vec<u32>>());
    assert_eq!(done.parts.iter().map(|part| part.rows).sum::<usize>(), 100);
    assert!(group.plan("pairs", (100, 2)).shares.iter().any(|share| share.speed.is_some()));
    assert!(group.plan("others", (100, 2)).shares.iter().all(|share| share.speed.is_none()));

    let mut short = [0_u32; 199];
    assert!(matches!(group.generate_into("pairs", (100, 2), &mut short, rows), Err(Error::Shape(_))));
    assert!(matches!(group.generate::<u32>("pairs", (usize::MAX, 2), rows), Err(Error::Limit(_))));
    assert!(group.generate::<f32>("pairs", (100, 2), rows).is_err(), "the rows are of another dtype");
    assert!(group.generate::<u32>("pairs", (100, 3), rows).is_err(), "the rows are too short");
}

#[test]
fn misuse_is_refused() {
    assert!(matches!(Group::new([]), Err(Error::InvalidInput { .. })));
    assert!(matches!(Group::open(&["cpu:one"]), Err(Error::InvalidInput { .. })));
    assert!(Group::open(&["nothing"]).is_err());
    let group = Group::new([cpu(), cpu()]).unwrap();
    for (width, height) in [(0, 3), (3, 0), (usize::MAX, 2)] {
        assert!(
            matches!(group.field(&params(width, height)), Err(Error::Shape(_) | Error::Limit(_))),
            "{width} x {height}"
        );
    }
    assert!(matches!(group.field_into(&params(3, 3), &mut [0.0; 8]), Err(Error::Shape(_))));
    assert!(matches!(group.map(&[1.0_f32; 5], &[2, 3], |x| Ok(x.expr())), Err(Error::Shape(_))));
    assert!(matches!(group.map(&[1.0_f32; 6], &[2, 3], |x| Ok(x.sum(&[1], true))), Err(Error::Shape(_))));
    assert!(matches!(group.matmul((&[1.0; 6], [2, 3]), (&[1.0; 6], [2, 3])), Err(Error::Shape(_))));
    assert_eq!(group.sum(&[]).unwrap().values, 0.0);
    assert!(group.map::<f32>(&[], &[0, 3], |x| Ok(x.expr())).unwrap().values.is_empty());
}

#[test]
fn a_panic_in_the_work_comes_out_and_leaves_nobody_waiting() {
    let group = Group::new([cpu(), cpu()]).unwrap().strip_rows(1);
    let work = || group.map(&[1.0_f32; 100], &[100], |_| panic!("in the work"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
}

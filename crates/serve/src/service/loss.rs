//! A device that is lost in the middle of a job.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cantus::backend::Registry;
use cantus::backend::cpu::CpuBackend;
use cantus::{Config, Engine};
use clap::Parser;
use faulty::{Counts, Fault, FaultyBackend};

use super::{Request, Service};
use crate::job::{Job, State};
use crate::settings::Settings;
use crate::store::Store;
use crate::work::output::Output;

#[path = "../../../../tests/suite/fallback/faulty.rs"]
#[allow(dead_code, reason = "the library's tests use more of it")]
mod faulty;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    settings: Settings,
}

/// A service on the processor, and before that on what fails.
fn open(folder: &std::path::Path, fault: Option<(Fault, Arc<Counts>)>) -> Arc<Service> {
    let data = folder.display().to_string();
    let settings = Command::parse_from(["serve", "--open", "--data", &data]).settings;
    let engine = move |_: &str| {
        let mut registry = Registry::empty();
        registry.register(Arc::new(CpuBackend::new()));
        if let Some((fault, counts)) = &fault {
            registry.register(Arc::new(FaultyBackend { fault: *fault, counts: counts.clone() }));
        }
        Engine::builder().registry(registry).config(Config::default()).placement(false).build()
    };
    Service::with_engines(settings, Vec::new(), &(Arc::new(engine) as _)).unwrap()
}

/// Runs a job to its end; how far it was each time that it changed.
async fn run(service: &Arc<Service>, text: &str) -> (Job, Vec<Option<u8>>, Output) {
    let mut work = crate::body::read("application/json", "", text.as_bytes()).unwrap();
    work.check(&service.limits).unwrap();
    let request = Request {
        content_type: "application/json".to_owned(),
        query: String::new(),
        body: text.as_bytes().to_vec().into(),
        idempotency: None,
        spent: 0.0,
    };
    let caller = service.anybody.clone();
    let id = service.accept(&caller, work, request).await.unwrap().id;
    let mut changes = service.changes(&caller, &id).unwrap();
    let mut seen = Vec::new();
    let job = loop {
        let job = changes.borrow_and_update().clone();
        seen.push(job.progress);
        if job.state.ended() {
            break job;
        }
        changes.changed().await.unwrap();
    };
    let (_, shape, held) = service.result(&caller, &id).await.unwrap();
    let mut bytes = held.first.to_vec();
    let mut rest = held.rest;
    while let Some(pieces) = &mut rest
        && let Some(piece) = std::future::poll_fn(|context| pieces.poll(context)).await
    {
        bytes.extend(piece.unwrap());
    }
    (job, seen, Output { shape, bytes })
}

const ANIMATION: &str =
    r#"{"kind": "picture", "picture": "field", "width": 200, "height": 100, "frames": 40, "frequency": 432}"#;
const PICTURE: &str = r#"{"kind": "picture", "picture": "phi_pattern", "width": 20, "height": 10}"#;

#[test]
fn a_job_ends_on_the_next_device_and_its_record_says_so() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let place = tempfile::tempdir().unwrap();
    // The service makes them, for its user alone.
    let folders = ["faulty", "right"].map(|name| place.path().join(name));
    let counts = Arc::new(Counts::default());
    let (job, next, output) = runtime.block_on(async {
        let service = open(&folders[0], Some((Fault::Lose(20), counts.clone())));
        let (job, seen, output) = run(&service, ANIMATION).await;
        let numbers: Vec<u8> = seen.into_iter().flatten().collect();
        assert!(numbers.is_sorted() && numbers.last() == Some(&100), "{numbers:?}");
        let (next, ..) = run(&service, PICTURE).await;
        service.stop(std::time::Duration::from_secs(1)).await;
        (job, next, output)
    });
    drop(runtime);
    assert!(counts.lost.load(Ordering::SeqCst), "nothing was lost");
    let processor = &CpuBackend::new();
    let processor = pollster::block_on(cantus::backend::Backend::probe(processor)).devices.remove(0).name;
    assert_eq!(job.state, State::Done);
    assert_eq!(job.devices, ["faulty", &processor]);
    let told = ["faulty failed", "what was on faulty was lost", "faulty was lost; the work was begun again"];
    assert_eq!(job.events, told);
    // The next one is where that ended, and nothing happened to it.
    assert_eq!((next.devices, next.events), (vec![processor], Vec::new()));

    // What is on the disk says the same.
    let store = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        Store::open(&folders[0]).ok()
    });
    let record = store.unwrap().records.into_iter().find(|record| record.id == job.id).unwrap();
    assert_eq!((record.job.devices, record.job.events), (job.devices, job.events));

    // The numbers are those of a device that nothing happens to.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let expected = runtime.block_on(async { run(&open(&folders[1], None), ANIMATION).await.2 });
    assert_eq!(output.shape.shape, [40, 100, 200]);
    assert!(output == expected);
}

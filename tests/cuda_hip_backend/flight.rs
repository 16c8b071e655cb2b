//! Memory that the stream may still touch, and devices that do not end. The double notes what is freed too early.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use cantus::backend::{Buffer, Contents, Device, OpenOptions, detached};
use cantus::engine::GraphInputs;
use cantus::{Error, Fallback, Kernel};
use pollster::block_on;

use crate::Scenario;
use crate::double::Vendor;
use crate::scenarios::{SAXPY, saxpy};

pub const ALL: &[Scenario] = &[
    ("reads that are dropped at their first wait", &[], dropped_reads),
    ("a read that cannot be marked", &[], unmarked_read),
    ("code and graphs dropped while they run", &[], dropped_code),
    ("memory freed at once is not freed in use", &[("CANTUS_DOUBLE_POOLS", "0")], trimmed),
    ("a copy between devices that is dropped", &[], dropped_peer),
    ("the time limit covers writes", &[], late_write),
    ("an engine ends before its kernel does", &[], late_kernel),
    (
        "an engine ends before its kernel does, without stream-ordered memory",
        &[("CANTUS_DOUBLE_POOLS", "0")],
        late_kernel,
    ),
    ("the app's own device stays current", &[], own_current),
    ("the library stays loaded", &[], stays_loaded),
];

fn poll_once<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send + '_>>) -> bool {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn device(vendor: &Vendor) -> Arc<dyn Device> {
    block_on(vendor.backend().open(0, &OpenOptions::default())).unwrap()
}

fn buffer(device: &Arc<dyn Device>, bytes: &[u8]) -> Arc<dyn Buffer> {
    let buffer = block_on(device.allocate(bytes.len() as u64, Contents::Overwritten, "bytes")).unwrap();
    block_on(device.write(&buffer, 0, bytes)).unwrap();
    buffer
}

fn read(device: &Arc<dyn Device>, buffer: &Arc<dyn Buffer>) -> Vec<u8> {
    let mut into = vec![0; usize::try_from(buffer.bytes()).unwrap()];
    block_on(device.read(buffer, 0, &mut into)).unwrap();
    into
}

fn dropped_reads(vendor: &Vendor) {
    let device = device(vendor);
    let x = buffer(&device, &vec![7; 9 << 20]);
    for round in 0..3 {
        vendor.hold(true);
        let mut into = vec![vec![0_u8; 9 << 20]; 2];
        let mut reads: Vec<_> = into.iter_mut().map(|into| device.read(&x, 0, into)).collect();
        assert!(reads.iter_mut().all(|read| !poll_once(read)), "round {round}");
        drop(reads);
        drop(into);
        device.trim();
        vendor.hold(false);
    }
    assert!(read(&device, &x).iter().all(|&byte| byte == 7));
    drop((device, x));
    vendor.assert_clean();
}

fn unmarked_read(vendor: &Vendor) {
    let device = device(vendor);
    let x = buffer(&device, &vec![7; 1 << 20]);
    for role in ["event_create", "event_record", "copy_out"] {
        vendor.hold(true);
        vendor.fail(role, 1, 1);
        let mut into = vec![0; 1 << 20];
        block_on(device.read(&x, 0, &mut into)).expect_err("is refused");
        vendor.fail(role, 0, 0);
        drop(into);
        vendor.hold(false);
        assert!(read(&device, &x).iter().all(|&byte| byte == 7), "{role}");
    }
    drop((device, x));
    vendor.assert_clean();
}

fn dropped_code(vendor: &Vendor) {
    let engine = vendor.engine();
    let (x, y) = (engine.tensor(&[1.0_f32; 64]).unwrap(), engine.zeros::<f32>(&[64]).unwrap());
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let graph = engine
        .capture(|| {
            engine.dispatch(&kernel).bind("x", &x).bind("y", &y).set("params.a", 2.0_f32).invocations(64).run()?;
            Ok(y.clone())
        })
        .unwrap();
    let device = device(vendor);
    let own = block_on(device.allocate(256, Contents::Zeroed, "own")).unwrap();
    let program = block_on(
        device.compile(
            &Kernel::from_wgsl(
                "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] += 3u; }",
            )
            .unwrap(),
        ),
    )
    .unwrap();
    vendor.hold(true);
    graph.replay(&GraphInputs::new()).unwrap();
    let start = Instant::now();
    drop(graph);
    assert!(start.elapsed() < Duration::from_secs(1), "letting go waited for the stream");
    vendor.hold(false);
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0; 64]);
    // What one stream does is no other's: the double counts launches of all.
    vendor.hold(true);
    let start = Instant::now();
    let command = kit::backend::dispatch("own", &program, vec![kit::backend::whole(&own)], [1; 3]);
    block_on(device.submit(vec![command])).unwrap();
    drop(program);
    assert!(start.elapsed() < Duration::from_secs(1), "letting go waited for the stream");
    vendor.hold(false);
    assert_eq!(read(&device, &own), 3_u32.to_ne_bytes().repeat(64));
    drop((engine, device, own, x, y));
    vendor.assert_clean();
}

fn trimmed(vendor: &Vendor) {
    let engine = vendor.engine();
    for _ in 0..3 {
        let (expected, y) = saxpy(&engine, 5000).unwrap();
        engine.flush();
        let other = engine.tensor(&[1_u32; 4096]).unwrap();
        drop(other);
        vendor.hold(true);
        engine.trim();
        vendor.hold(false);
        engine.trim();
        assert_eq!(y.to_vec::<f32>().unwrap(), expected);
    }
    assert_eq!(vendor.misuses(), Vec::<String>::new());
    drop(engine);
    vendor.assert_clean();
}

fn dropped_peer(vendor: &Vendor) {
    let backend = vendor.backend();
    let open = |index| block_on(backend.open(index, &OpenOptions::default())).unwrap();
    let (one, two) = (open(0), open(1));
    let (x, y) = (buffer(&one, &vec![7; 1 << 20]), buffer(&two, &vec![1; 1 << 20]));
    block_on(one.finish()).unwrap();
    // The copy is put in at the second poll at the latest, behind what the other device does.
    vendor.hold(true);
    let mut copy = two.copy_from(&y, &*one, &x, 1 << 20).unwrap();
    let mut ready = false;
    for _ in 0..50 {
        ready = ready || poll_once(&mut copy);
    }
    assert!(!ready);
    drop(copy);
    vendor.hold(false);
    // Let go and written again: the copy, if it was put in, has what was there.
    drop(x);
    let again = buffer(&one, &vec![9; 1 << 20]);
    let copied = read(&two, &y);
    assert!(copied.iter().all(|&byte| byte == copied[0]) && [1, 7].contains(&copied[0]), "{}", copied[0]);
    drop((one, two, y, again, backend));
    vendor.assert_clean();
}

/// Nothing is held any more once the stream goes on.
fn assert_given_back(vendor: &Vendor) {
    vendor.hold(false);
    let start = Instant::now();
    while detached().devices > 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "it is still held");
        std::thread::sleep(Duration::from_millis(10));
    }
    // The thread that held it is at its last drop.
    std::thread::sleep(Duration::from_millis(200));
    vendor.assert_clean();
}

fn late_write(vendor: &Vendor) {
    let options = OpenOptions::new().timeout(Duration::from_millis(150));
    let device = block_on(vendor.backend().open(0, &options)).unwrap();
    let x = block_on(device.allocate(64 << 20, Contents::Overwritten, "x")).unwrap();
    vendor.hold(true);
    let start = Instant::now();
    let error = block_on(device.write(&x, 0, &vec![7; 64 << 20])).expect_err("takes too long");
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    device.trim();
    drop((device, x));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(detached().devices, 1);
    assert!(detached().bytes >= 64 << 20);
    assert_given_back(vendor);
}

fn late_kernel(vendor: &Vendor) {
    // The compiler takes longer than the limit on a busy machine: its code is kept on disk.
    drop(saxpy(&vendor.engine(), 64).unwrap());
    let engine = vendor.builder().fallback(Fallback::Never).timeout(Duration::from_millis(500)).build().unwrap();
    let (expected, y) = saxpy(&engine, 64).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), expected);
    drop(y);
    vendor.hold(true);
    let (_, y) = saxpy(&engine, 64).unwrap();
    let error = y.to_vec::<f32>().expect_err("never ends");
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    let start = Instant::now();
    engine.trim();
    drop((engine, y));
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(detached().devices, 1);
    assert_given_back(vendor);
}

fn own_current(vendor: &Vendor) {
    let own = vendor.enter_second();
    let engine = vendor.engine();
    assert_eq!(vendor.current(), own, "opening");
    let (expected, y) = saxpy(&engine, 300).unwrap();
    assert_eq!(vendor.current(), own, "computing");
    assert_eq!(y.to_vec::<f32>().unwrap(), expected);
    engine.finish().unwrap();
    assert_eq!(vendor.current(), own, "reading");
    engine.trim();
    drop((engine, y));
    assert_eq!(vendor.current(), own, "closing");
    vendor.assert_clean();
}

fn stays_loaded(vendor: &Vendor) {
    // Under a name of its own, so that nobody else holds it.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("libcantus-double-copy.so");
    std::fs::copy(std::env::var_os("CANTUS_DOUBLE_LIBRARY").unwrap(), &copy).unwrap();
    let variable = if vendor.name == "hip" { "CANTUS_HIP_LIBRARY" } else { "CANTUS_CUDA_LIBRARY" };
    // SAFETY: no other thread of this process is there yet.
    unsafe { std::env::set_var(variable, &copy) };
    drop(block_on(vendor.backend().open(0, &OpenOptions::default())).unwrap());
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.contains("libcantus-double-copy.so"), "the driver was unloaded under its threads");
}

//! A service whose memory is refused: the n-th allocation of at least a MiB fails, for each n, on the whole way of a request of each form, of a job and of
//! its result. The process goes on, and each answer is right or says what there is not.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test stops where it fails, and says how far it came"
)]
#![expect(clippy::disallowed_methods, reason = "a test waits, and takes what it wants to be refused")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;

/// The least size that counts as large.
const LARGE: usize = 1 << 20;

/// The large allocation that fails, from the one after [`arm`] on; none at 0.
static FAILS: AtomicUsize = AtomicUsize::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);

struct Failing;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Returns whether an allocation of this size is refused.
fn refused(size: usize) -> bool {
    let fails = FAILS.load(Ordering::Relaxed);
    if fails == 0 || size < LARGE || COUNT.fetch_add(1, Ordering::Relaxed) + 1 != fails {
        return false;
    }
    if std::env::var_os("CANTUS_ALLOCATION_TRACE").is_some() {
        eprintln!("refused {size}: {}", std::backtrace::Backtrace::force_capture());
    }
    true
}

// SAFETY: every call goes to the system's allocator as it came, or fails as any allocation may.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refused(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refused(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() && refused(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

fn arm(fails: usize) {
    COUNT.store(0, Ordering::SeqCst);
    FAILS.store(fails, Ordering::SeqCst);
}

/// Returns whether the allocation that was to fail came.
fn disarm() -> bool {
    COUNT.load(Ordering::SeqCst) >= FAILS.swap(0, Ordering::SeqCst)
}

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    arguments: cantus_serve::Arguments,
}

/// Sends a request, and reads the answer without holding it: the status, the first bytes of the body, and whether it came whole.
fn ask(port: u16, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}");
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes()).expect("sends");
    // The service may answer, and close, before it has read all.
    let sent = stream.write_all(body);
    let (mut kept, mut last, mut block, mut length) = (Vec::new(), Vec::new(), [0; 1 << 14], 0);
    while let Ok(read @ 1..) = stream.read(&mut block) {
        length += read;
        let room = 65_536_usize.saturating_sub(kept.len());
        kept.extend_from_slice(&block[..read.min(room)]);
        last.extend_from_slice(&block[..read]);
        last.drain(..last.len().saturating_sub(5));
    }
    let text = String::from_utf8_lossy(&kept).into_owned();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        assert!(sent.is_err(), "{path}: the connection ended without an answer");
        return (503, "closed while the body was sent, for want of memory".to_owned());
    };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("has a status");
    match head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
        Some(said) => assert_eq!(said.parse(), Ok(length - head.len() - 4), "{path}: the answer was cut off"),
        None => assert!(status == 204 || last == b"0\r\n\r\n", "{path}: the answer was cut off"),
    }
    (status, body.to_owned())
}

/// A request: its form, and its bytes.
struct Case {
    name: &'static str,
    path: String,
    headers: &'static str,
    body: Vec<u8>,
}

const JSON: &str = "Content-Type: application/json\r\n";

/// Returns a request of each form, so large that reading, checking, computing and answering it take large allocations.
fn cases() -> Vec<Case> {
    let case = |name, query: &str, headers, body: Vec<u8>| Case { name, path: query.to_owned(), headers, body };
    let list = |number: &str, count: usize| vec![number; count].join(",");
    let expression = r#""kind": "expression", "expression": ["add", "x", ["mul", "x", 2]]"#;
    let numbers =
        format!(r#"{{{expression}, "inputs": {{"x": {{"dtype": "f64", "data": [{}]}}}}}}"#, list("1.5", 700_000));
    let elements = format!(
        r#"{{"kind": "field", "field": "bn254-fr", "function": "add", "a": [{0}], "b": [{0}]}}"#,
        list("1", 100_000)
    );
    let messages =
        format!(r#"{{"kind": "hash", "function": "sha-256", "messages": ["{}", "00"]}}"#, "ab".repeat(2 << 20));
    let header = r#"{"descr": "<f4", "fortran_order": False, "shape": (1500000,), }"#.replace('"', "'") + "\n";
    let npy =
        [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), &vec![0; 6_000_000]]
            .concat();
    let query = "?request=%7B%22kind%22%3A%22expression%22%2C%22expression%22%3A%5B%22exp%22%2C%22x%22%5D%7D";
    let metadata = r#"{"__metadata__": {"request": "{\"kind\": \"expression\", \"expression\": [\"exp\", \"x\"]}"}, "x": {"dtype": "F32", "shape": [1500000], "data_offsets": [0, 6000000]}}"#;
    let safetensors = [&(metadata.len() as u64).to_le_bytes()[..], metadata.as_bytes(), &vec![0; 6_000_000]].concat();
    let line = "{\"request\": {\"kind\": \"expression\", \"expression\": [\"exp\", \"x\"]}, \"arrays\": [{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [1500000]}]}\n";
    let raw = [line.as_bytes(), &vec![0; 6_000_000]].concat();
    let picture = br#"{"kind": "picture", "picture": "phi_pattern", "width": 1200, "height": 1000}"#.to_vec();
    let mut cases = vec![
        case("numbers", "", JSON, numbers.into_bytes()),
        case("npy", query, "Content-Type: application/x-npy\r\nAccept: application/x-npy\r\n", npy),
        case("safetensors", "", "Content-Type: application/vnd.safetensors\r\n", safetensors),
        case("raw", "", "Content-Type: application/octet-stream\r\n", raw),
        case("picture", "", JSON, picture),
    ];
    if cfg!(feature = "zk") {
        cases.push(case("elements", "", JSON, elements.into_bytes()));
        cases.push(case("messages", "", JSON, messages.into_bytes()));
    }
    cases
}

/// Refusals that say that there is no memory, and nothing else.
fn refusal(name: &str, status: u16, body: &str) {
    assert!(status == 503 && body.contains("memory"), "{name}: {status} {body}");
}

/// One way of a request through the service, as the work at once and as a job.
fn way(port: u16, case: &Case) {
    let Case { name, path, headers, body } = case;
    let (status, answer) = ask(port, "POST", &format!("/v1/compute{path}"), headers, body);
    if status != 200 {
        refusal(name, status, &answer);
    }
}

fn way_of_job(port: u16, case: &Case) {
    let Case { name, path, headers, body } = case;
    let (status, answer) = ask(port, "POST", &format!("/v1/jobs{path}"), headers, body);
    if status != 202 {
        return refusal(name, status, &answer);
    }
    let id = answer.split('"').nth(3).expect("has an id").to_owned();
    let until = Instant::now() + Duration::from_secs(120);
    let job = loop {
        let (status, job) = ask(port, "GET", &format!("/v1/jobs/{id}"), "", b"");
        assert_eq!(status, 200, "{name}: {job}");
        if job.contains("\"done\"") || job.contains("\"failed\"") {
            break job;
        }
        assert!(Instant::now() < until, "{name}: the job never ended: {job}");
        std::thread::sleep(Duration::from_millis(5));
    };
    let (status, answer) = ask(port, "GET", &format!("/v1/jobs/{id}/result"), "", b"");
    if status != 200 || job.contains("\"failed\"") {
        refusal(name, status, &answer);
    }
    assert_eq!(ask(port, "DELETE", &format!("/v1/jobs/{id}"), "", b"").0, 204, "{name}");
}

/// The service in this process, and each n in turn. Its last line says how far it came.
fn walk(folder: &Path) {
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|probe| probe.local_addr()).expect("has a port").port();
    let (listen, data) = (format!("127.0.0.1:{port}"), folder.join("data").display().to_string());
    let command = Command::parse_from(["serve", "--open", "--listen", &listen, "--data", &data, "--on", "cpu"]);
    std::thread::spawn(move || cantus_serve::run(&command.arguments, &[]).expect("serves"));
    let until = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < until, "it does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    let small =
        br#"{"kind": "expression", "inputs": {"x": {"dtype": "f32", "data": [1, 2]}}, "expression": ["sum", "x"]}"#;
    for case in cases() {
        for (what, way) in [("", way as fn(u16, &Case)), ("job: ", way_of_job as fn(u16, &Case))] {
            // What is made once is there.
            way(port, &case);
            for fails in 1.. {
                println!("{what}{}: allocation {fails}", case.name);
                arm(fails);
                way(port, &case);
                let came = disarm();
                let (status, answer) = ask(port, "POST", "/v1/compute", JSON, small);
                assert!(status == 200 && answer.contains("[3.0]"), "{}, allocation {fails}: {answer}", case.name);
                if !came {
                    assert!(fails > 1, "{}: no large allocation is on its way", case.name);
                    break;
                }
                assert!(fails < 200, "{}: there is no end", case.name);
            }
        }
    }
}

/// In a process of its own: an allocation that may not fail would end this one.
#[test]
fn refused_memory_is_an_answer() {
    if let Some(folder) = std::env::var_os("CANTUS_ALLOCATIONS") {
        return walk(Path::new(&folder));
    }
    let folder = tempfile::tempdir().expect("makes a folder");
    let mut child = std::process::Command::new(std::env::current_exe().expect("is a program"));
    child.args(["refused_memory_is_an_answer", "--exact", "--nocapture"]).env("CANTUS_ALLOCATIONS", folder.path());
    let done = child.output().expect("runs");
    let tail = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    };
    assert!(done.status.success(), "{}\n{}\n{}", done.status, tail(&done.stdout), tail(&done.stderr));
}

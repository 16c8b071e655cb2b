//! A load client for the service: many connections, each asking for a small addition as soon as it has its answer, or for an expression; or
//! connections that only stay open. Prints requests per second and the times of answers as JSON.
//!
//! `load ADDRESS [--clients N] [--seconds S] [--idle N] [--elements N] [--work field|expression] [--key KEY]`
#![expect(clippy::unwrap_used, clippy::panic, reason = "a measurement stops where it fails")]
#![expect(clippy::disallowed_methods, reason = "a client waits")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

fn option(name: &str, default: &str) -> String {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1).unwrap_or_else(|| default.to_owned())
}

fn number(name: &str, default: usize) -> usize {
    option(name, &default.to_string()).parse().unwrap_or_else(|_| panic!("{name} takes a number"))
}

/// One request; its status.
fn ask(stream: &mut BufReader<TcpStream>, request: &[u8], line: &mut String, body: &mut Vec<u8>) -> u16 {
    stream.get_mut().write_all(request).unwrap();
    let (mut status, mut length) = (0, 0);
    loop {
        line.clear();
        if stream.read_line(line).unwrap() == 0 {
            panic!("the connection ended");
        }
        let text = line.trim_end();
        if text.is_empty() {
            break;
        }
        if let Some(rest) = text.strip_prefix("HTTP/1.1 ") {
            status = rest.split(' ').next().unwrap().parse().unwrap();
        } else if let Some(rest) = text.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = rest.parse().unwrap();
        }
    }
    body.resize(length, 0);
    stream.read_exact(body).unwrap();
    status
}

fn main() {
    let address = std::env::args().nth(1).unwrap();
    let (clients, seconds, elements) = (number("--clients", 16), number("--seconds", 5), number("--elements", 4));
    let idle: Vec<TcpStream> = (0..number("--idle", 0)).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let list = |from: usize| (from..from + elements).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
    let body = match option("--work", "field").as_str() {
        "expression" => format!(
            r#"{{"kind":"expression","inputs":{{"x":{{"dtype":"f32","data":[{}]}}}},"expression":["add",["mul","x",2],1]}}"#,
            list(1)
        ),
        _ => format!(r#"{{"kind":"field","field":"bn254-fr","function":"add","a":[{}],"b":[{}]}}"#, list(1), list(7)),
    };
    let key = option("--key", "");
    let authorization = if key.is_empty() { String::new() } else { format!("Authorization: Bearer {key}\r\n") };
    let request = format!(
        "POST /v1/compute HTTP/1.1\r\nHost: {address}\r\n{authorization}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (over, failed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let start = Arc::new(Barrier::new(clients + 1));
    let threads: Vec<_> = (0..clients)
        .map(|_| {
            let (address, request) = (address.clone(), request.clone());
            let (over, failed, start) = (over.clone(), failed.clone(), start.clone());
            let work = move || {
                let stream = TcpStream::connect(&address).unwrap();
                stream.set_nodelay(true).unwrap();
                let mut stream = BufReader::new(stream);
                let (mut line, mut answer, mut times) = (String::new(), Vec::new(), Vec::new());
                ask(&mut stream, request.as_bytes(), &mut line, &mut answer);
                start.wait();
                while !over.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    if ask(&mut stream, request.as_bytes(), &mut line, &mut answer) != 200 {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                    times.push(begun.elapsed());
                }
                times
            };
            std::thread::Builder::new().stack_size(128 << 10).spawn(work).unwrap()
        })
        .collect();
    start.wait();
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs(seconds as u64));
    over.store(true, Ordering::Relaxed);
    let mut times: Vec<Duration> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    let passed = begun.elapsed().as_secs_f64();
    times.sort();
    let place =
        |part: f64| times.get(((times.len() - 1) as f64 * part) as usize).map_or(0.0, |time| time.as_secs_f64() * 1e3);
    let report = serde_json::json!({
        "clients": clients, "idle": idle.len(), "elements": elements, "failed": failed.load(Ordering::Relaxed),
        "requests_per_second": (times.len() as f64 / passed).round(), "p50_ms": place(0.5), "p90_ms": place(0.9), "p99_ms": place(0.99), "max_ms": place(1.0),
    });
    let _ = writeln!(std::io::stdout(), "{report}");
}

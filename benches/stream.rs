//! Streams beside what they read: a sum and a transform of more than memory holds, and the generator's, the file's and the writer's speed alone.
//! `cargo bench -p cantus-benches --bench stream -- [GIGABYTES] [TURNS] [BACKEND]`: 4, 5 and cpu unless told. `-- overlap [BACKEND]` tells how much of
//! the transfers a stream hides: with `CANTUS_VULKAN_DISCRETE=1` on `vulkan`, as on a device with memory of its own, and with
//! `CANTUS_VULKAN_DELAY=MICROSECONDS` on one that takes that long for each submission.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a bench stops where it fails, and tells how far it is"
)]

use std::hint::black_box;
use std::io::{Read as _, Seek as _};
use std::time::Instant;

use cantus::stream::{Generated, Npy, Rows, Source, Stream};
use cantus::{DType, Engine};

/// Numbers that cost about what reading them from memory does: a multiplication and an exclusive or each.
fn fill(first: u64, values: &mut [f32]) {
    let start = first as u32;
    for (place, value) in values.iter_mut().enumerate() {
        let word = start.wrapping_add(place as u32).wrapping_mul(0x9E37_79B9);
        *value = (word >> 8) as f32 * (1.0 / 16_777_216.0);
    }
}

fn generated(rows: u64) -> impl Source + 'static {
    Generated::new(rows, &[], fill).expect("rows of single elements")
}

/// The generator alone, as the stream calls it: into memory that is used again and again.
fn generator_alone(rows: u64) {
    let mut room = vec![0.0_f32; 1 << 20];
    let mut first = 0;
    while first < rows {
        let count = (rows - first).min(room.len() as u64) as usize;
        fill(first, &mut room[..count]);
        black_box(&room);
        first += count as u64;
    }
}

fn file_alone(path: &std::path::Path) {
    let mut file = std::fs::File::open(path).expect("is there");
    file.rewind().expect("begins");
    let mut room = vec![0_u8; 4 << 20];
    while file.read(&mut room).expect("reads") > 0 {
        black_box(&room);
    }
}

/// A `.npy` file of zeros that takes no room on the disk.
fn sparse(folder: &std::path::Path, rows: u64) -> std::path::PathBuf {
    let path = folder.join("sparse.npy");
    let mut file = std::fs::File::create(&path).expect("makes a file");
    cantus::tensor::npy::write_header(&mut file, DType::F32, &[rows as usize]).expect("writes");
    let length = file.stream_position().expect("is known") + rows * 4;
    file.set_len(length).expect("grows");
    path
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The most memory that the process ever had, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// A sum of sines of each element.
fn work(x: cantus::ops::Expr) -> cantus::ops::Expr {
    (0..8).fold(x, |x, _| (&x * 1.5).sin() + x)
}

/// The same work on what is there, the transfers without work, and both by a stream.
fn overlap(backend: &str) {
    const ROWS: usize = 8 << 20;
    const CHUNKS: usize = 24;
    let engine = Engine::builder().backend(backend).build().expect("opens");
    let mut times = [const { Vec::new() }; 3];
    let resident = engine.zeros::<f32>(&[ROWS]).expect("is made");
    let values = vec![0.5_f32; ROWS];
    let mut back = vec![0.0_f32; ROWS];
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..CHUNKS {
            let result = work(resident.expr()).eval().expect("computes");
            engine.finish().expect("ends");
            drop(result);
        }
        times[0].push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        for _ in 0..CHUNKS {
            let x = engine.tensor(&values).expect("is uploaded");
            x.read_into(&mut back).expect("is read");
        }
        times[1].push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let source = Generated::new((CHUNKS * ROWS) as u64, &[], |_, values: &mut [f32]| values.fill(0.5));
        let stream = Stream::new(&engine, source.expect("is made")).chunk_rows(ROWS).memory(1 << 31);
        stream.map(|chunk| Ok(work(chunk.tensor().expr())), |_: Rows<'_>| Ok(())).expect("streams");
        times[2].push(start.elapsed().as_secs_f64());
    }
    let [work, transfers, stream] = times.map(|times| 1e3 * median(times) / CHUNKS as f64);
    println!("a chunk of 32 MiB on {}", engine.selected().device.name);
    println!("work {work:.2} ms, transfers {transfers:.2} ms, by a stream {stream:.2} ms");
    println!("hidden: {:.2} of the transfers", (work + transfers - stream) / transfers.min(work));
}

fn main() {
    if let Some(place) = std::env::args().position(|argument| argument == "overlap") {
        return overlap(
            std::env::args().nth(place + 1).filter(|name| !name.starts_with("--")).as_deref().unwrap_or("vulkan"),
        );
    }
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let number = |place: usize, other: u64| arguments.get(place).and_then(|text| text.parse().ok()).unwrap_or(other);
    let (gigabytes, turns) = (number(0, 4), number(1, 5));
    let backend = arguments.get(2).map_or("cpu", String::as_str);
    let engine = Engine::builder().backend(backend).memory_limit(1 << 30).build().expect("opens");
    let rows = gigabytes * 1_000_000_000 / 4;
    let path = sparse(&std::env::temp_dir(), rows);
    let sink = |rows: Rows<'_>| {
        black_box(rows.bytes);
        Ok(())
    };
    let transform = |chunk: &cantus::stream::Chunk| Ok((chunk.tensor() * 2.0 + 1.0).sqrt());
    let sides: [(&str, &dyn Fn()); 6] = [
        ("the generator alone", &|| generator_alone(rows)),
        ("sum of what it makes", &|| {
            black_box(Stream::new(&engine, generated(rows)).sum().expect("sums"));
        }),
        ("sqrt(2 x + 1) of it", &|| Stream::new(&engine, generated(rows)).map(transform, sink).expect("transforms")),
        ("the file alone", &|| file_alone(&path)),
        ("sum of the file", &|| {
            black_box(Stream::new(&engine, Npy::open(&path).expect("opens")).sum().expect("sums"));
        }),
        ("sqrt(2 x + 1) of it", &|| {
            Stream::new(&engine, Npy::open(&path).expect("opens")).map(transform, sink).expect("transforms");
        }),
    ];
    let mut times = vec![Vec::new(); sides.len()];
    for turn in 0..turns {
        for ((name, work), times) in sides.iter().zip(&mut times) {
            let start = Instant::now();
            work();
            times.push(start.elapsed().as_secs_f64());
            eprintln!("{turn}: {name}: {:.2} s", times[times.len() - 1]);
        }
    }
    let _ = std::fs::remove_file(&path);
    println!("{gigabytes} GB on {}, peak of the process {} MiB", engine.selected().device.name, peak());
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    for (place, ((name, _), time)) in sides.iter().zip(&medians).enumerate() {
        let alone = medians[place / 3 * 3];
        println!("{name:24} {:6.2} GB/s  {:.2} of it alone", gigabytes as f64 / time, alone / time);
    }
}

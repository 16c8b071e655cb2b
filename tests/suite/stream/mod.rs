//! Streams on every device: whatever the chunks, the numbers are those of the whole array, and of an oracle in float64.

mod faults;
mod measures;

use std::sync::{Arc, Mutex};

use cantus::stream::{Bytes, Generated, Items, Npy, NpyFile, Reader, Rows, Source, Stream};
use cantus::{DType, Element, Engine, Result};
use cantus_verify::inputs::Random;
use kit::engine::{by_turns, engines, name};

/// The rows that a sink received.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn sink(&self) -> impl FnMut(Rows<'_>) -> Result<()> + Send + 'static {
        let (kept, mut next) = (self.0.clone(), 0);
        move |rows| {
            assert_eq!(rows.first, next, "rows come in order");
            assert_eq!(rows.bytes.len(), rows.count * rows.row.iter().product::<usize>() * rows.dtype.bytes());
            next += rows.count as u64;
            kept.lock().unwrap().extend_from_slice(rows.bytes);
            Ok(())
        }
    }

    fn values<T: Element + bytemuck::Pod>(&self) -> Vec<T> {
        bytemuck::pod_collect_to_vec(&self.0.lock().unwrap())
    }
}

/// The same rows by each kind of source.
fn sources(values: &[f32], row: &[usize], folder: &std::path::Path) -> Vec<(&'static str, Box<dyn Source>)> {
    let columns: usize = row.iter().product();
    let rows = values.len() / columns;
    let bytes: Vec<u8> = bytemuck::cast_slice(values).to_vec();
    let shape: Vec<usize> = std::iter::once(rows).chain(row.iter().copied()).collect();
    let path = folder.join("rows.npy");
    cantus::tensor::npy::write(&path, DType::F32, &shape, &bytes).unwrap();
    // Items of one, two, three rows and so on.
    let mut rest = values.to_vec();
    let mut length = 0;
    let items = std::iter::from_fn(move || {
        length += 1;
        let taken = rest.drain(..(length * columns).min(rest.len())).collect::<Vec<f32>>();
        (!taken.is_empty()).then_some(taken)
    });
    let copied = values.to_vec();
    let fill = move |first: u64, into: &mut [f32]| {
        let start = first as usize * columns;
        into.copy_from_slice(&copied[start..start + into.len()]);
    };
    /// Gives a few bytes at a time.
    struct Dribble(std::io::Cursor<Vec<u8>>);
    impl std::io::Read for Dribble {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let most = into.len().min(1 + self.0.position() as usize % 977);
            self.0.read(&mut into[..most])
        }
    }
    let dribble = Dribble(std::io::Cursor::new(bytes.clone()));
    vec![
        ("npy", Box::new(Npy::open(&path).unwrap())),
        ("bytes", Box::new(Bytes::new(bytes, DType::F32, row).unwrap())),
        ("reader", Box::new(Reader::new(dribble, DType::F32, row).unwrap())),
        ("items", Box::new(Items::new(items, row).unwrap())),
        ("generated", Box::new(Generated::new(rows as u64, row, fill).unwrap())),
    ]
}

fn between(random: &mut Random, low: f32, high: f32) -> f32 {
    low + (high - low) * random.unit() as f32
}

fn floats(random: &mut Random, count: usize) -> Vec<f32> {
    (0..count).map(|_| between(random, -100.0, 100.0)).collect()
}

#[test]
fn a_map_is_that_of_the_whole_whatever_the_source_and_the_chunks() {
    for (number, engine) in engines().iter().enumerate() {
        let mut random = Random::new(70 + number as u64);
        let folder = tempfile::tempdir().unwrap();
        for row in [&[][..], &[1], &[7], &[5, 3]] {
            let columns: usize = row.iter().product();
            for rows in [1, 2, 63, 500] {
                let values = floats(&mut random, rows * columns);
                let shape: Vec<usize> = std::iter::once(rows).chain(row.iter().copied()).collect();
                let whole = (engine.tensor_from(&values, &shape).unwrap() * 3.0 + 1.0).eval().unwrap();
                let expected = whole.to_vec::<f32>().unwrap();
                for (kind, source) in sources(&values, row, folder.path()) {
                    let chunk_rows = 1 + random.below(80) as usize;
                    let kept = Kept::default();
                    let stream = Stream::new(engine, source).chunk_rows(chunk_rows);
                    stream.map(|chunk| Ok(chunk.tensor() * 3.0 + 1.0), kept.sink()).unwrap();
                    assert_eq!(kept.values::<f32>(), expected, "{}: {kind} {shape:?} by {chunk_rows}", name(engine));
                }
            }
        }
    }
}

/// Weights of the five rows around; rows that are missing count as 0.
const WEIGHTS: [f64; 5] = [0.5, -1.0, 2.0, 0.25, -0.75];

#[test]
fn a_stencil_sees_the_rows_beside_its_chunk() {
    for engine in by_turns() {
        let mut random = Random::new(5);
        for (before, after) in [(2, 2), (2, 0), (0, 2), (1, 2), (0, 0)] {
            for rows in [1, 2, 3, 17, 100] {
                for chunk_rows in [1, 2, 3, 16, 1000] {
                    let values = floats(&mut random, rows * 3);
                    let bytes = Bytes::new(bytemuck::cast_slice(&values).to_vec(), DType::F32, &[3]).unwrap();
                    let kept = Kept::default();
                    let stream = Stream::new(engine, bytes).overlap(before, after).chunk_rows(chunk_rows);
                    let work = |chunk: &cantus::stream::Chunk| {
                        // Zeros where the stream has no rows.
                        let x = chunk.tensor();
                        let (above, below) = (before - chunk.before(), after - chunk.after());
                        let zeros = |rows: usize| cantus::ops::full(engine, &[rows, 3], 0.0, DType::F32);
                        let wide = zeros(above).concat(&[x.expr(), zeros(below)], 0);
                        let shifted = |place: usize| wide.slice(&[place..place + chunk.rows(), 0..3]);
                        let weighted = (0..=before + after).map(|place| shifted(place) * WEIGHTS[place + 2 - before]);
                        Ok(weighted.reduce(|sum, part| sum + part).unwrap())
                    };
                    stream.map(work, kept.sink()).unwrap();
                    let at = |row: isize, column: usize| {
                        let inside = usize::try_from(row).ok().filter(|&row| row < rows);
                        inside.map_or(0.0, |row| f64::from(values[row * 3 + column]))
                    };
                    let expected = (0..rows).flat_map(|row| {
                        (0..3).map(move |column| {
                            (0..=before + after)
                                .map(|place| {
                                    WEIGHTS[place + 2 - before] * at((row + place) as isize - before as isize, column)
                                })
                                .sum::<f64>()
                        })
                    });
                    let found = kept.values::<f32>();
                    assert_eq!(found.len(), rows * 3);
                    for (found, expected) in found.into_iter().zip(expected) {
                        let close = (f64::from(found) - expected).abs() < 1e-4;
                        assert!(close, "{}: {found} for {expected}, {rows} rows by {chunk_rows}", name(engine));
                    }
                }
            }
        }
    }
}

#[test]
fn rows_that_overlap_are_cut_off_what_has_them() {
    let engine = &engines()[0];
    let ramp = Generated::new(100, &[], |first, values: &mut [u32]| {
        values.iter_mut().zip(first..).for_each(|(value, row)| *value = row as u32);
    });
    let kept = Kept::default();
    let stream = Stream::new(engine, ramp.unwrap()).overlap(3, 5).chunk_rows(7);
    stream.map(|chunk| Ok(chunk.tensor().expr()), kept.sink()).unwrap();
    assert!(kept.values::<u32>().into_iter().eq(0..100));
}

#[test]
fn a_scan_carries_from_chunk_to_chunk() {
    for engine in by_turns() {
        let mut random = Random::new(11);
        let values: Vec<i32> = (0..1000 * 4).map(|_| random.below(1000) as i32 - 500).collect();
        let bytes = Bytes::new(bytemuck::cast_slice(&values).to_vec(), DType::I32, &[4]).unwrap();
        let kept = Kept::default();
        let scan = |chunk: &cantus::stream::Chunk, carry: &cantus::Tensor| {
            let sums = (chunk.tensor().cumsum(0) + carry).eval()?;
            let last = sums.slice(&[chunk.rows() - 1..chunk.rows(), 0..4]).eval()?;
            Ok((sums.expr(), last))
        };
        let zero = engine.zeros::<i32>(&[1, 4]).unwrap();
        Stream::new(engine, bytes).chunk_rows(37).scan(zero, scan, kept.sink()).unwrap();
        let mut sums = [0; 4];
        let expected = values.chunks(4).flat_map(|row| {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            sums
        });
        assert!(kept.values::<i32>().into_iter().eq(expected), "{}", name(engine));
    }
}

#[test]
fn sources_beside_each_other_keep_their_rows_together() {
    for engine in by_turns() {
        let mut random = Random::new(12);
        let (x, y) = (floats(&mut random, 300), floats(&mut random, 900));
        let source =
            |values: &[f32], row: &[usize]| Bytes::new(bytemuck::cast_slice(values).to_vec(), DType::F32, row).unwrap();
        let kept = Kept::default();
        let stream = Stream::new(engine, source(&x, &[1])).with(source(&y, &[3])).chunk_rows(29);
        stream.map(|chunk| Ok(&chunk.tensors()[0] * &chunk.tensors()[1]), kept.sink()).unwrap();
        let expected = y.iter().enumerate().map(|(place, y)| x[place / 3] * y);
        assert!(kept.values::<f32>().into_iter().eq(expected), "{}", name(engine));
    }
}

#[test]
fn a_kernel_writes_into_its_chunk() {
    let kernel = cantus::Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         @compute @workgroup_size(64) fn square(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&x) { x[id.x] *= x[id.x]; }
         }",
    )
    .unwrap();
    for engine in by_turns() {
        let rows = Generated::new(10_000, &[], |first, values: &mut [u32]| {
            values.iter_mut().zip(first..).for_each(|(value, row)| *value = row as u32);
        });
        let kept = Kept::default();
        let work = |chunk: &cantus::stream::Chunk| {
            let x = chunk.tensor();
            engine.dispatch(&kernel).bind("x", x).invocations(x.len()).run()?;
            Ok(x.expr())
        };
        Stream::new(engine, rows.unwrap()).chunk_rows(777).map(work, kept.sink()).unwrap();
        assert!(kept.values::<u32>().into_iter().eq((0..10_000).map(|row: u32| row * row)), "{}", name(engine));
    }
}

/// The chunk that a kernel of the chunk before still reads is not overwritten by what is read ahead.
#[test]
fn what_is_read_ahead_waits_for_the_device() {
    for engine in by_turns() {
        let rows = Generated::new(2_000_000, &[], |first, values: &mut [u32]| {
            values.iter_mut().zip(first..).for_each(|(value, row)| *value = row as u32);
        });
        let kept = Kept::default();
        // Long enough that reading is ahead of it.
        let work = |chunk: &cantus::stream::Chunk| Ok(chunk.tensor().sort(0, false));
        Stream::new(engine, rows.unwrap()).chunk_rows(50_000).map(work, kept.sink()).unwrap();
        assert!(kept.values::<u32>().into_iter().eq(0..2_000_000), "{}", name(engine));
    }
}

#[test]
fn chunks_come_in_order_and_may_be_left() {
    for engine in by_turns() {
        let rows = || {
            Generated::new(1000, &[2], |first, values: &mut [u32]| {
                values.iter_mut().zip(2 * first..).for_each(|(value, row)| *value = row as u32);
            })
            .unwrap()
        };
        let mut next = 0;
        let chunks = Stream::new(engine, rows()).chunk_rows(64).chunks().unwrap();
        assert_eq!(chunks.rows(), Some(1000));
        for chunk in chunks {
            let chunk = chunk.unwrap();
            assert_eq!(chunk.first_row(), next);
            let values = chunk.tensor().to_vec::<u32>().unwrap();
            assert!(values.into_iter().eq(2 * next as u32..2 * (next as u32 + chunk.rows() as u32)));
            next += chunk.rows() as u64;
        }
        assert_eq!(next, 1000);
        // Whoever keeps them gets them all the same.
        let kept: Vec<_> = Stream::new(engine, rows()).chunk_rows(64).chunks().unwrap().map(Result::unwrap).collect();
        assert_eq!((kept.len(), kept[7].tensor().to_vec::<u32>().unwrap()[0]), (16, 7 * 128));
        let first = Stream::new(engine, rows()).chunk_rows(64).chunks().unwrap().next();
        assert_eq!(first.unwrap().unwrap().rows(), 64);
    }
}

#[test]
fn a_stream_is_larger_than_the_memory_that_it_may_use() {
    let engine = Engine::builder().backend("cpu").memory_limit(24 << 20).build().unwrap();
    let rows = Generated::new(64 << 20, &[], |first, values: &mut [f32]| {
        values.iter_mut().zip(first..).for_each(|(value, row)| *value = (row % 1000) as f32);
    });
    let folder = tempfile::tempdir().unwrap();
    let (path, stream) = (folder.path().join("roots.npy"), Stream::new(&engine, rows.unwrap()));
    stream.map(|chunk| Ok(chunk.tensor().sqrt()), NpyFile::new(&path)).unwrap();
    assert!(engine.memory().peak <= 24 << 20);
    let sum = Stream::new(&engine, Npy::open(&path).unwrap()).sum().unwrap();
    let expected = (0..64_u64 << 20).map(|row| f64::from(((row % 1000) as f32).sqrt())).sum::<f64>();
    assert!((sum / expected - 1.0).abs() < 1e-7, "{sum} for {expected}");
}

#[test]
fn a_stream_without_rows_has_results_without_rows() {
    let folder = tempfile::tempdir().unwrap();
    for engine in by_turns() {
        let none = || Bytes::new(Vec::new(), DType::F32, &[4]).unwrap();
        let path = folder.path().join("none.npy");
        Stream::new(engine, none()).map(|chunk| Ok(chunk.tensor().cast(DType::U32)), NpyFile::new(&path)).unwrap();
        let array = cantus::tensor::npy::read(&path).unwrap();
        assert_eq!((array.dtype, array.shape), (DType::U32, vec![0, 4]), "{}", name(engine));
        let summary = Stream::new(engine, none()).summary().unwrap();
        assert_eq!((summary.count, summary.sum, summary.min, summary.max), (0, 0.0, f64::INFINITY, f64::NEG_INFINITY));
        assert!(summary.mean.is_nan() && summary.variance.is_nan());
    }
}

#[test]
fn a_profile_shows_each_thread_in_a_row_of_its_own() {
    let engine = Engine::builder().backend("cpu").build().unwrap();
    let rows = Generated::new(100_000, &[], |_, values: &mut [f32]| values.fill(1.0)).unwrap();
    let work = |chunk: &cantus::stream::Chunk| Ok(chunk.tensor().sin());
    let stream = Stream::new(&engine, rows).chunk_rows(10_000);
    let (done, profile) = engine.profile(|| stream.map(work, |_: Rows<'_>| Ok(())));
    done.unwrap();
    let trace: serde_json::Value = serde_json::from_str(&profile.to_json()).unwrap();
    let rows_of = |name: &str| {
        let spans = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["name"] == name);
        spans.map(|span| span["tid"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let (read, written) = (rows_of("stream: read ahead"), rows_of("stream: write"));
    assert!(read.len() >= 10 && written.len() == 10, "{read:?} {written:?}");
    assert!(read.iter().all(|row| *row == read[0]) && written.iter().all(|row| *row == written[0]));
    assert_ne!(read[0], written[0]);
    let names: Vec<_> = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "M").collect();
    assert!(
        names.iter().any(|name| name["tid"] == read[0] && name["args"]["name"] == "host: cantus stream"),
        "{names:?}"
    );
}

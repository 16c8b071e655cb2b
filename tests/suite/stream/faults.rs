//! Streams that are interrupted, and misused: an error that says what, no file half written, and a checkpoint from which the next run goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use cantus::stream::{Bytes, Generated, Items, Npy, NpyFile, Reader, Rows, Sink, Source, Stream};
use cantus::{DType, Engine, Error, Result};

fn engine() -> Engine {
    Engine::builder().backend("cpu").build().unwrap()
}

fn says<T>(result: Result<T>, parts: &[&str]) {
    let Err(error) = result else { panic!("there is no error that says {parts:?}") };
    for part in parts {
        assert!(error.to_string().contains(part), "{error}\n  does not say: {part}");
    }
}

/// Rows 0, 1, 2 and so on, of which those that were read are counted.
fn counted(rows: u64, read: &Arc<AtomicU64>) -> impl Source + 'static {
    let read = read.clone();
    let fill = move |first: u64, values: &mut [u32]| {
        read.fetch_add(values.len() as u64, Ordering::Relaxed);
        values.iter_mut().zip(first..).for_each(|(value, row)| *value = row as u32);
    };
    Generated::new(rows, &[], fill).unwrap()
}

/// A sink that fails once, before it takes a row.
struct Failing<S> {
    sink: S,
    at: u64,
}

impl<S: Sink> Sink for Failing<S> {
    fn write(&mut self, rows: Rows<'_>) -> Result<()> {
        if rows.first <= self.at && self.at < rows.first + rows.count as u64 {
            return Err(Error::invalid("the sink", "it was told to fail"));
        }
        self.sink.write(rows)
    }

    fn settle(&mut self) -> Result<()> {
        self.sink.settle()
    }

    fn mark(&mut self) -> Result<u64> {
        self.sink.mark()
    }

    fn resume(&mut self, rows: u64) -> Result<()> {
        self.sink.resume(rows)
    }

    fn end(&mut self) -> Result<()> {
        self.sink.end()
    }
}

#[test]
fn a_map_goes_on_from_its_checkpoint() {
    let engine = engine();
    let folder = tempfile::tempdir().unwrap();
    let (path, checkpoint) = (folder.path().join("out.npy"), folder.path().join("checkpoint"));
    let read = Arc::new(AtomicU64::new(0));
    let run = |at: u64, source: Box<dyn Source>| {
        let stream =
            Stream::new(&engine, source).chunk_rows(100).checkpoint(&checkpoint).checkpoint_every(Duration::ZERO);
        stream.named("twice").map(|chunk| Ok(chunk.tensor() * 2), Failing { sink: NpyFile::new(&path), at })
    };
    says(run(5000, Box::new(counted(10_000, &read))), &["told to fail"]);
    assert!(checkpoint.exists() && !path.exists());
    // Other rows are refused, and the file of the rows stays as it is.
    says(run(u64::MAX, Box::new(counted(9_999, &read))), &["other sources", "remove it to start again"]);
    read.store(0, Ordering::Relaxed);
    says(run(8250, Box::new(counted(10_000, &read))), &["told to fail"]);
    run(u64::MAX, Box::new(counted(10_000, &read))).unwrap();
    // What was done was not read again, but for what was on its way.
    let again = read.load(Ordering::Relaxed);
    assert!((5000..6500).contains(&again), "{again} rows were read again");
    let array = cantus::tensor::npy::read(&path).unwrap();
    assert_eq!(array.shape, [10_000]);
    assert!(bytemuck::pod_collect_to_vec::<u8, u32>(&array.bytes).into_iter().eq((0..10_000).map(|row| 2 * row)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the checkpoint, or the part, was left");
}

#[test]
fn measures_scans_and_sorts_go_on_from_their_checkpoints() {
    let engine = engine();
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("checkpoint");
    let read = Arc::new(AtomicU64::new(0));
    let failures = Arc::new(AtomicUsize::new(0));
    /// Fails when it is read the n-th time, once.
    struct Breaking<S> {
        source: S,
        reads: usize,
        at: usize,
        failures: Arc<AtomicUsize>,
    }
    impl<S: Source> Source for Breaking<S> {
        fn dtype(&self) -> DType {
            self.source.dtype()
        }
        fn row(&self) -> &[usize] {
            self.source.row()
        }
        fn rows(&self) -> Option<u64> {
            self.source.rows()
        }
        fn read(&mut self, into: &mut [u8]) -> Result<u64> {
            self.reads += 1;
            if self.reads == self.at {
                self.failures.fetch_add(1, Ordering::Relaxed);
                return Err(Error::Unreadable { path: "the disk".to_owned(), reason: "it is gone".to_owned() });
            }
            self.source.read(into)
        }
        fn skip(&mut self, rows: u64) -> Result<bool> {
            self.source.skip(rows)
        }
        fn identity(&self) -> Result<String> {
            Ok("the same".to_owned())
        }
    }
    let stream = |at: usize| {
        let source = Breaking { source: counted(10_000, &read), reads: 0, at, failures: failures.clone() };
        let stream = Stream::new(&engine, source).chunk_rows(100).named("the same");
        stream.checkpoint(&checkpoint).checkpoint_every(Duration::ZERO)
    };
    let all = 10_000 * 9_999 / 2;
    says(stream(70).summary(), &["the disk"]);
    assert!(checkpoint.exists());
    // Other work has another checkpoint.
    says(stream(0).sum(), &["other work"]);
    read.store(0, Ordering::Relaxed);
    let summary = stream(0).summary().unwrap();
    assert!(read.load(Ordering::Relaxed) < 4500);
    assert_eq!((summary.count, summary.sum, summary.min, summary.max), (10_000, f64::from(all), 0.0, 9_999.0));
    assert!((summary.variance / (1e8 - 1.0) * 12.0 - 1.0).abs() < 1e-5, "{summary:?}");

    says(stream(60).histogram(10, 0.0, 10_000.0), &["the disk"]);
    assert_eq!(stream(0).histogram(10, 0.0, 10_000.0).unwrap(), [1000; 10]);

    let fold = |at| {
        let zero = engine.zeros::<u32>(&[1]).unwrap();
        stream(at).fold(zero, |chunk, sum| (chunk.tensor().sum(&[0], true) + sum).eval())
    };
    says(fold(60), &["the disk"]);
    assert_eq!(fold(0).unwrap().item::<u32>().unwrap(), all);

    let path = folder.path().join("sums.npy");
    let scan = |at| {
        let work = |chunk: &cantus::stream::Chunk, carry: &cantus::Tensor| {
            let sums = (chunk.tensor().cumsum(0) + carry).eval()?;
            let last = sums.slice(std::slice::from_ref(&(chunk.rows() - 1..chunk.rows()))).eval()?;
            Ok((sums.expr(), last))
        };
        stream(at).scan(engine.zeros::<u32>(&[1]).unwrap(), work, NpyFile::new(&path))
    };
    says(scan(60), &["the disk"]);
    scan(0).unwrap();
    let sums = bytemuck::pod_collect_to_vec::<u8, u32>(&cantus::tensor::npy::read(&path).unwrap().bytes);
    assert!(sums.into_iter().eq((0..10_000_u32).scan(0, |sum, row| {
        *sum += row;
        Some(*sum)
    })));

    let sort = |at| stream(at).sort(folder.path(), NpyFile::new(&path));
    says(sort(60), &["the disk"]);
    read.store(0, Ordering::Relaxed);
    sort(0).unwrap();
    assert!(read.load(Ordering::Relaxed) < 5500);
    let sorted = bytemuck::pod_collect_to_vec::<u8, u32>(&cantus::tensor::npy::read(&path).unwrap().bytes);
    assert!(sorted.into_iter().eq(0..10_000));
    assert_eq!(failures.load(Ordering::Relaxed), 5);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "something was left beside the result");
}

/// Half of one work's rows and half of another's would be a file that nobody asked for.
#[test]
fn a_checkpoint_belongs_to_its_work() {
    let engine = engine();
    let folder = tempfile::tempdir().unwrap();
    let (path, checkpoint) = (folder.path().join("out.npy"), folder.path().join("checkpoint"));
    let read = Arc::new(AtomicU64::new(0));
    let stream = || {
        let stream = Stream::new(&engine, counted(10_000, &read)).checkpoint(&checkpoint);
        stream.checkpoint_every(Duration::ZERO).named("twice")
    };
    let map =
        |stream: Stream, at| stream.map(|chunk| Ok(chunk.tensor() * 2), Failing { sink: NpyFile::new(&path), at });
    says(map(stream().chunk_rows(100), 5000), &["told to fail"]);
    let rows = std::fs::read(folder.path().join(".out.npy.part")).unwrap();
    says(map(stream().chunk_rows(100).named("thrice"), u64::MAX), &["other work", "remove it to start again"]);
    says(map(stream().chunk_rows(50), u64::MAX), &["chunks of 100 rows with 0 before and 0 after"]);
    says(map(stream().chunk_rows(100).overlap(1, 0), u64::MAX), &["chunks of 100 rows"]);
    assert_eq!(std::fs::read(folder.path().join(".out.npy.part")).unwrap(), rows, "what is refused changes nothing");
    // Who names no chunks gets those of the checkpoint.
    let mut chunks = Vec::new();
    let work = |chunk: &cantus::stream::Chunk| {
        chunks.push(chunk.rows());
        Ok(chunk.tensor() * 2)
    };
    stream().map(work, NpyFile::new(&path)).unwrap();
    assert!(!chunks.is_empty() && chunks.iter().all(|&rows| rows == 100), "{chunks:?}");
    let array = cantus::tensor::npy::read(&path).unwrap();
    assert!(bytemuck::pod_collect_to_vec::<u8, u32>(&array.bytes).into_iter().eq((0..10_000).map(|row| 2 * row)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "something was left");
}

/// Ended between the renaming of the file and the removal of the checkpoint; and a second run of the same work.
#[test]
fn a_checkpoint_of_what_is_done_is_no_error() {
    let engine = engine();
    let folder = tempfile::tempdir().unwrap();
    let (path, checkpoint) = (folder.path().join("out.npy"), folder.path().join("checkpoint"));
    let read = Arc::new(AtomicU64::new(0));
    /// Keeps the checkpoint of the end, as if the process had ended there.
    struct Keeping<'a>(NpyFile, &'a std::path::Path);
    impl Sink for Keeping<'_> {
        fn write(&mut self, rows: Rows<'_>) -> Result<()> {
            self.0.write(rows)
        }
        fn settle(&mut self) -> Result<()> {
            self.0.settle()
        }
        fn mark(&mut self) -> Result<u64> {
            self.0.mark()
        }
        fn resume(&mut self, rows: u64) -> Result<()> {
            self.0.resume(rows)
        }
        fn end(&mut self) -> Result<()> {
            std::fs::copy(self.1, self.1.with_extension("kept")).unwrap();
            self.0.end()
        }
    }
    let run = |sink: &mut dyn FnMut(Stream) -> Result<()>| {
        sink(Stream::new(&engine, counted(1000, &read)).chunk_rows(100).checkpoint(&checkpoint).named("twice"))
    };
    let mut keeping =
        |stream: Stream| stream.map(|chunk| Ok(chunk.tensor() * 2), Keeping(NpyFile::new(&path), &checkpoint));
    run(&mut keeping).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let kept = std::fs::read(checkpoint.with_extension("kept")).unwrap();
    std::fs::write(&checkpoint, &kept).unwrap();
    let mut again = |stream: Stream| stream.map(|chunk| Ok(chunk.tensor() * 3), NpyFile::new(&path));
    run(&mut again).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), whole, "nothing was left to compute");
    assert!(!checkpoint.exists());
    // Another file of that name is not the result.
    std::fs::write(&checkpoint, &kept).unwrap();
    let mut other = whole.clone();
    *other.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &other).unwrap();
    says(run(&mut again), &["not those of that run"]);
    // While one process works on it, another is told so.
    let mut nested = None;
    std::fs::remove_file(&checkpoint).unwrap();
    run(&mut |stream: Stream| {
        let work = |chunk: &cantus::stream::Chunk| {
            nested.get_or_insert_with(|| run(&mut again));
            Ok(chunk.tensor() * 2)
        };
        stream.map(work, NpyFile::new(folder.path().join("second.npy")))
    })
    .unwrap();
    says(nested.unwrap(), &["another process works on it"]);
}

#[test]
fn a_damaged_checkpoint_is_an_error() {
    let engine = engine();
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("checkpoint");
    let read = Arc::new(AtomicU64::new(0));
    let stream = || {
        Stream::new(&engine, counted(1000, &read))
            .chunk_rows(10)
            .checkpoint(&checkpoint)
            .checkpoint_every(Duration::ZERO)
            .named("the same")
    };
    let path = folder.path().join("out.npy");
    let map = |at| stream().map(|chunk| Ok(chunk.tensor().expr()), Failing { sink: NpyFile::new(&path), at });
    says(map(500), &["told to fail"]);
    let good = std::fs::read(&checkpoint).unwrap();
    for damaged in
        [b"".to_vec(), b"nonsense".to_vec(), good[..good.len() / 2].to_vec(), [&good[..16], &[0xff; 64]].concat()]
    {
        std::fs::write(&checkpoint, &damaged).unwrap();
        says(map(u64::MAX), &["checkpoint", "remove it to start again"]);
    }
    // One bit, anywhere.
    for bit in 0..8 * good.len() {
        let mut damaged = good.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&checkpoint, &damaged).unwrap();
        says(map(u64::MAX), &["damaged", "remove it to start again"]);
    }
    // The file of the rows is gone, or shorter than the checkpoint says, or has other rows.
    std::fs::write(&checkpoint, &good).unwrap();
    let part = folder.path().join(".out.npy.part");
    let rows = std::fs::read(&part).unwrap();
    std::fs::write(&part, &rows[..200]).unwrap();
    says(map(u64::MAX), &["remove the checkpoint"]);
    std::fs::remove_file(&part).unwrap();
    says(map(u64::MAX), &["remove the checkpoint"]);
    let mut changed = rows.clone();
    changed[300] ^= 1;
    std::fs::write(&part, &changed).unwrap();
    says(map(u64::MAX), &["not those of that run", "remove it to start again"]);
    std::fs::write(&part, &rows).unwrap();
    map(u64::MAX).unwrap();
    // A sink that keeps nothing cannot go on, and says so at once.
    says(stream().map(|chunk| Ok(chunk.tensor().expr()), |_: Rows<'_>| Ok(())), &["sink", "NpyFile"]);
}

/// Rust cannot compare closures: what has no name would go on as other work.
#[test]
fn own_work_with_a_checkpoint_has_a_name() {
    let engine = engine();
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("checkpoint");
    let read = Arc::new(AtomicU64::new(0));
    let stream = || Stream::new(&engine, counted(1000, &read)).checkpoint(&checkpoint);
    let refused = ["the checkpoint", "no name", "Stream::named", "name="];
    let out = || NpyFile::new(folder.path().join("out.npy"));
    let zero = engine.zeros::<u32>(&[1]).unwrap();
    says(stream().map(|chunk| Ok(chunk.tensor().expr()), out()), &refused);
    says(stream().map_each(|chunk| Ok(vec![chunk.tensor().expr()]), vec![Box::new(out())]), &refused);
    says(stream().scan(zero.clone(), |chunk, carry| Ok((chunk.tensor().expr(), carry.clone())), out()), &refused);
    says(stream().fold(zero, |_, carry| Ok(carry.clone())), &refused);
    assert_eq!(read.load(Ordering::Relaxed), 0, "it was refused too late");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    // What is not the app's own has the name of the operation.
    assert_eq!(stream().sum().unwrap(), 499_500.0);
    assert_eq!(stream().histogram(2, 0.0, 1000.0).unwrap(), [500; 2]);
}

/// Half of the result from one source and half from another: each source finds one bit that changed, whatever its times say.
#[test]
fn a_checkpoint_belongs_to_the_bytes_of_its_sources() {
    let engine = engine();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let values: Vec<u32> = (0..10_000).collect();
    engine.tensor(&values).unwrap().to_npy(at("in.npy")).unwrap();
    let bytes: Vec<u8> = bytemuck::cast_slice(&values).to_vec();
    let since = std::fs::metadata(at("in.npy")).unwrap().modified().unwrap();
    let run = |source: Box<dyn Source>, before: usize, fails: u64| {
        let stream = Stream::new(&engine, source).chunk_rows(90).overlap(before, 0).checkpoint(at("checkpoint"));
        let stream = stream.checkpoint_every(Duration::ZERO).named("twice");
        stream.map(|chunk| Ok(chunk.tensor() * 2), Failing { sink: NpyFile::new(at("out.npy")), at: fails })
    };
    // Kinds of sources of these bytes, and the words of the refusal.
    let file = |bytes: &[u8]| -> Box<dyn Source> {
        let mut whole = std::fs::read(at("in.npy")).unwrap();
        let start = whole.len() - bytes.len();
        whole[start..].copy_from_slice(bytes);
        // In its place, and with its old time, as cp -p and rsync -t leave it.
        let mut own = std::fs::File::options().write(true).open(at("in.npy")).unwrap();
        std::io::Write::write_all(&mut own, &whole).unwrap();
        own.set_modified(since).unwrap();
        Box::new(Npy::open(at("in.npy")).unwrap())
    };
    let memory = |bytes: &[u8]| -> Box<dyn Source> { Box::new(Bytes::new(bytes.to_vec(), DType::U32, &[]).unwrap()) };
    let pipe = |bytes: &[u8]| -> Box<dyn Source> {
        Box::new(Reader::new(std::io::Cursor::new(bytes.to_vec()), DType::U32, &[]).unwrap())
    };
    let items = |bytes: &[u8]| -> Box<dyn Source> {
        let values = bytemuck::pod_collect_to_vec::<u8, u32>(bytes);
        Box::new(Items::new(values.chunks(77).map(<[u32]>::to_vec).collect::<Vec<_>>().into_iter(), &[]).unwrap())
    };
    type Kind<'a> = (&'a dyn Fn(&[u8]) -> Box<dyn Source>, &'a str);
    let kinds: [Kind<'_>; 4] =
        [(&file, "other sources"), (&memory, "other sources"), (&pipe, "first"), (&items, "first")];
    for (kind, (source, words)) in kinds.into_iter().enumerate() {
        for before in [0, 1, 200] {
            says(run(source(&bytes), before, 5000), &["told to fail"]);
            for bit in [0, 8 * 4 * 1000 + 31, 8 * 4 * 4000 + 7] {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                says(run(source(&changed), before, u64::MAX), &[words, "to start again"]);
            }
            run(source(&bytes), before, u64::MAX).unwrap();
            let array = cantus::tensor::npy::read(at("out.npy")).unwrap();
            let right =
                bytemuck::pod_collect_to_vec::<u8, u32>(&array.bytes).into_iter().eq((0..10_000).map(|row| 2 * row));
            assert!(right, "kind {kind}, {before} before");
        }
    }
    // Another file of the same bytes and the same time is not the one that was read.
    says(run(file(&bytes), 0, 5000), &["told to fail"]);
    std::fs::copy(at("in.npy"), at("copy.npy")).unwrap();
    std::fs::File::options().write(true).open(at("copy.npy")).unwrap().set_modified(since).unwrap();
    std::fs::rename(at("copy.npy"), at("in.npy")).unwrap();
    if cfg!(unix) {
        says(run(Box::new(Npy::open(at("in.npy")).unwrap()), 0, u64::MAX), &["other sources"]);
    }
}

#[test]
fn sources_that_lie_or_end_early_are_errors() {
    let engine = engine();
    let sum = |source: Box<dyn Source>| Stream::new(&engine, source).chunk_rows(10).sum();
    let ends = Reader::new(std::io::Cursor::new(vec![0_u8; 4 * 30 + 2]), DType::F32, &[3]).unwrap();
    says(sum(Box::new(ends)), &["the reader", "ends within a row"]);
    let items = Items::new(vec![vec![1.0_f32; 3], vec![1.0; 4]].into_iter(), &[3]).unwrap();
    says(sum(Box::new(items)), &["an item has 4 elements"]);
    struct Liar;
    impl Source for Liar {
        fn dtype(&self) -> DType {
            DType::U8
        }
        fn row(&self) -> &[usize] {
            &[]
        }
        fn rows(&self) -> Option<u64> {
            None
        }
        fn read(&mut self, into: &mut [u8]) -> Result<u64> {
            Ok(into.len() as u64 + 1)
        }
    }
    says(sum(Box::new(Liar)), &["it reports 11 rows, but there is room for 10"]);
    let panics = Generated::new(100, &[], |first, _: &mut [f32]| assert!(first < 50, "on purpose")).unwrap();
    says(sum(Box::new(panics)), &["it panicked"]);

    let two = |first: Box<dyn Source>, second: Box<dyn Source>| {
        let sum = |chunk: &cantus::stream::Chunk| Ok(&chunk.tensors()[0] + &chunk.tensors()[1]);
        Stream::new(&engine, first).with(second).chunk_rows(10).map(sum, |_: Rows<'_>| Ok(()))
    };
    let of = |rows: usize| Bytes::new(vec![0_u8; 4 * rows], DType::F32, &[]).unwrap();
    let read = |rows: usize| Reader::new(std::io::Cursor::new(vec![0_u8; 4 * rows]), DType::F32, &[]).unwrap();
    says(two(Box::new(of(30)), Box::new(of(31))), &["31 rows", "has 30"]);
    says(two(Box::new(of(30)), Box::new(read(25))), &["ends after 25 rows, 30"]);
    says(two(Box::new(read(25)), Box::new(read(29))), &["ends after 25 rows, 29"]);
    says(Stream::new(&engine, of(3)).with(of(3)).sum(), &["several sources"]);
    says(Stream::new(&engine, of(3)).overlap(1, 0).sum(), &["overlap"]);
    let complex = Bytes::new(vec![0; 64], DType::Complex64, &[]).unwrap();
    says(Stream::new(&engine, complex).summary(), &["complex64"]);
}

#[test]
fn work_and_shapes_that_do_not_fit_are_errors() {
    let engine = engine();
    let of = || Bytes::new(vec![0_u8; 4 * 30], DType::F32, &[3]).unwrap();
    let map = |work: fn(&cantus::stream::Chunk) -> Result<cantus::ops::Expr>| {
        Stream::new(&engine, of()).chunk_rows(4).map(work, |_: Rows<'_>| Ok(()))
    };
    says(map(|chunk| Ok(chunk.tensor().sum(&[0], true))), &["1 rows of a chunk of 4 rows"]);
    says(map(|chunk| Ok(chunk.tensor().sum(&[], false))), &["a single value"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.npy");
    let changing = |chunk: &cantus::stream::Chunk| {
        let x = chunk.tensor().expr();
        Ok(if chunk.first_row() == 4 { x.cast(DType::U32) } else { x })
    };
    says(
        Stream::new(&engine, of()).chunk_rows(4).map(changing, NpyFile::new(&path)),
        &["u32", "those before were f32"],
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a file was left");
    says(Stream::new(&engine, of()).memory(100).sum(), &["a row takes 12", "Stream::memory"]);
    says(
        Stream::new(&engine, of()).sort(folder.path(), |_: Rows<'_>| Ok(())),
        &["rows f32[3]", "only single, ordered elements"],
    );
    says(Bytes::new(vec![0_u8; 5], DType::F32, &[]), &["not a multiple"]);
    says(Bytes::new(vec![0_u8; 4], DType::F32, &[0]), &["no elements"]);
    let zero = engine.zeros::<f32>(&[1]).unwrap();
    let fold = Stream::new(&engine, of()).fold(zero, |chunk, _| chunk.tensor().sum(&[0], false).eval());
    says(fold, &["it made f32[3] of f32[1]"]);
    says(Stream::new(&engine, of()).checkpoint(&path).chunks(), &["checkpoint"]);
    let again = |b: Box<dyn Source>| cantus::stream::matmul(&engine, of(), b, None, |_: Rows<'_>| Ok(()), |_| ());
    says(again(Box::new(Bytes::new(vec![0; 80], DType::F32, &[4]).unwrap())), &["3 columns", "5 rows"]);
    says(again(Box::new(Bytes::new(vec![0; 24], DType::F16, &[4]).unwrap())), &["f32", "f16"]);
}

#[test]
fn files_that_are_no_arrays_of_rows_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    says(Npy::open(&path), &["x.npy", "no such file"]);
    std::fs::write(&path, b"something else").unwrap();
    says(Npy::open(&path), &["x.npy", "not a .npy file"]);
    let header = |order: &str, shape: &str| {
        let mut text = format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': {shape}, }}");
        text.push_str(&" ".repeat(64 - (10 + text.len() + 1) % 64));
        text.push('\n');
        [&b"\x93NUMPY\x01\x00"[..], &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat()
    };
    let write =
        |order, shape, bytes: usize| std::fs::write(&path, [header(order, shape), vec![0; bytes]].concat()).unwrap();
    write("True", "(2, 3)", 24);
    says(Npy::open(&path), &["Fortran", "ascontiguousarray"]);
    write("False", "(2, 3)", 20);
    says(Npy::open(&path), &["truncated"]);
    write("False", "(2, 3)", 28);
    says(Npy::open(&path), &["longer"]);
    write("False", "(99999999999999, 99999999999999)", 28);
    says(Npy::open(&path), &["exceeds what this system can address"]);
    write("False", "(5, 0)", 0);
    says(Npy::open(&path), &["no elements"]);
    write("True", "(6,)", 24);
    assert_eq!(Npy::open(&path).unwrap().rows(), Some(6));
    // Truncated while it is read.
    write("False", "(100000,)", 400_000);
    let source = Npy::open(&path).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1000).unwrap();
    says(Stream::new(&engine(), source).chunk_rows(100).sum(), &["x.npy"]);
}

/// The other byte order is read as it is meant.
#[test]
fn files_of_the_other_byte_order_are_turned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let order = if cfg!(target_endian = "little") { '>' } else { '<' };
    let mut text = format!("{{'descr': '{order}i4', 'fortran_order': False, 'shape': (1000,), }}");
    text.push_str(&" ".repeat(64 - (10 + text.len() + 1) % 64));
    text.push('\n');
    let values = (0..1000_i32).flat_map(|value| value.swap_bytes().to_ne_bytes());
    let file: Vec<u8> = [&b"\x93NUMPY\x01\x00"[..], &(text.len() as u16).to_le_bytes(), text.as_bytes()]
        .concat()
        .into_iter()
        .chain(values)
        .collect();
    std::fs::write(&path, file).unwrap();
    let sum = Stream::new(&engine(), Npy::open(&path).unwrap()).chunk_rows(33).sum().unwrap();
    assert_eq!(sum, 499_500.0);
}

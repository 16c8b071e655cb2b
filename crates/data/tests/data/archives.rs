//! Files of arrays: against NumPy's files, the crate `safetensors`, and damage.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::path::Path;

use cantus::{DType, Engine, Error, Kernel, Tensor};
use cantus_data::{Archive, Format, HostArray, Writer, save};

const SHAPES: [&[usize]; 7] = [&[], &[0], &[1], &[5], &[3, 4], &[2, 0, 3], &[2, 2, 8]];

fn engine() -> Engine {
    Engine::builder().backend("cpu").build().unwrap()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A file that NumPy wrote.
fn numpys(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

/// Different bytes for each element, 0 and 1 for booleans.
fn contents(dtype: DType, shape: &[usize]) -> Vec<u8> {
    let count = shape.iter().product::<usize>() * dtype.bytes();
    (0..count).map(|at| if dtype == DType::Bool { at as u8 % 2 } else { (at * 37 + 11) as u8 }).collect()
}

/// An array of each dtype and shape that the format holds.
fn everything(engine: &Engine, format: Format) -> BTreeMap<String, Tensor> {
    let dtypes = DType::ALL
        .iter()
        .filter(|dtype| format == Format::Npz || !matches!(dtype, DType::Complex64 | DType::Complex128));
    let mut all = BTreeMap::new();
    for &dtype in dtypes {
        for shape in SHAPES {
            let tensor = engine.tensor_from_bytes(dtype, shape, &contents(dtype, shape)).unwrap();
            all.insert(format!("{dtype}/{shape:?}"), tensor);
        }
    }
    all
}

fn assert_same(found: &BTreeMap<String, Tensor>, expected: &BTreeMap<String, Tensor>) {
    assert!(found.keys().eq(expected.keys()));
    for (name, tensor) in expected {
        let own = &found[name];
        assert_eq!((own.dtype(), own.shape()), (tensor.dtype(), tensor.shape()), "{name}");
        assert_eq!(own.to_bytes().unwrap(), tensor.to_bytes().unwrap(), "{name}");
    }
}

/// The address of a tensor's memory.
fn address(tensor: &Tensor) -> *const u8 {
    tensor.host_view().unwrap().unwrap().as_ptr()
}

#[test]
fn every_dtype_and_shape_comes_back() {
    let (engine, folder) = (engine(), folder());
    for (name, format) in [("a.safetensors", Format::Safetensors), ("a.npz", Format::Npz)] {
        let (path, tensors) = (folder.path().join(name), everything(&engine, format));
        save(&path, &tensors).unwrap();
        assert_same(&Archive::open(&path).unwrap().load(&engine).unwrap(), &tensors);
        // SAFETY: nobody writes to the file.
        assert_same(&unsafe { Archive::map(&path) }.unwrap().load(&engine).unwrap(), &tensors);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "a temporary file is left");
}

#[test]
fn the_crate_safetensors_reads_and_writes_the_same() {
    let (engine, folder) = (engine(), folder());
    let path = folder.path().join("a.safetensors");
    let tensors = everything(&engine, Format::Safetensors);
    save(&path, &tensors).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let theirs = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(theirs.len(), tensors.len());
    for (name, tensor) in &tensors {
        let view = theirs.tensor(name).unwrap();
        assert_eq!((view.shape(), view.data()), (tensor.shape(), &*tensor.to_bytes().unwrap()), "{name}");
    }
    let metadata = std::collections::HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let written = safetensors::serialize(theirs.tensors(), Some(metadata)).unwrap();
    let back = Archive::read(Cursor::new(written), Format::Safetensors, "theirs").unwrap();
    assert_eq!(back.metadata()["format"], "pt");
    assert_same(&back.load(&engine).unwrap(), &tensors);
}

#[test]
fn numpys_archives_are_read() {
    let engine = engine();
    for name in ["stored.npz", "deflated.npz"] {
        let opened = Archive::open(numpys(name)).unwrap();
        // SAFETY: nobody writes to the file.
        let mapped = unsafe { Archive::map(numpys(name)) }.unwrap();
        for file in [&opened, &mapped] {
            let tensor = |array: &str| file.tensor(&engine, array).unwrap();
            assert_eq!(tensor("a").to_vec::<f32>().unwrap(), [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]);
            assert_eq!(tensor("a").shape(), [2, 3]);
            assert_eq!(tensor("b").to_vec::<i16>().unwrap(), [1, -2, 3]);
            assert_eq!(tensor("c").item::<u64>().unwrap(), 7);
            assert_eq!(file.describe("d"), Some((DType::F64, &[0, 3][..])));
            assert_eq!(tensor("e").to_vec::<bool>().unwrap(), [true, false, true]);
            assert_eq!(
                tensor("h").to_vec::<half::f16>().unwrap(),
                [half::f16::from_f32(0.5), half::f16::from_f32(-1.5)]
            );
            let z = tensor("z").to_vec::<cantus::num_complex::Complex<f32>>().unwrap();
            assert_eq!(z, [cantus::num_complex::Complex::new(1.0, 2.0)]);
            if name == "deflated.npz" {
                assert_eq!(tensor("f").to_vec::<i32>().unwrap(), [0, 1, 2, 3, 4, 5], "column-major");
                assert_eq!(tensor("big").to_vec::<i32>().unwrap(), [0, 1, 2], "the other byte order");
            }
        }
    }
}

/// The files inside an archive, by name.
fn members(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    let read = |index| {
        let mut file = archive.by_index(index).unwrap();
        let (name, mut bytes) = (file.name().unwrap().into_owned(), Vec::new());
        file.read_to_end(&mut bytes).unwrap();
        (name, bytes)
    };
    (0..7).map(read).collect()
}

#[test]
fn npz_files_hold_what_numpy_writes() {
    let (engine, folder) = (engine(), folder());
    let path = folder.path().join("a.npz");
    save(&path, &Archive::open(numpys("stored.npz")).unwrap().load(&engine).unwrap()).unwrap();
    assert_eq!(members(&path), members(&numpys("stored.npz")), "byte for byte");
}

#[test]
fn maps_are_used_in_place_and_never_written_back() {
    let (engine, folder) = (engine(), folder());
    let values: Vec<f32> = (0..1024).map(|value| value as f32).collect();
    let double = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] *= 2.0; }";
    let double = Kernel::from_wgsl(double).unwrap();
    for name in ["a.safetensors", "a.npz", "a.npy"] {
        let path = folder.path().join(name);
        save(&path, [("a", &engine.tensor_from(&values, &[32, 32]).unwrap())]).unwrap();
        let before = std::fs::read(&path).unwrap();
        // SAFETY: nobody writes to the file.
        let file = unsafe { Archive::map(&path) }.unwrap();
        let (one, other) = (file.array("a").unwrap(), file.array("a").unwrap());
        let (at, other_at) = (one.bytes().as_ptr(), other.bytes().as_ptr());
        let (one, other) = (one.into_tensor(&engine).unwrap(), other.into_tensor(&engine).unwrap());
        assert_eq!((address(&one), address(&other)), (at, other_at), "{name}: no copy");
        assert_ne!(at, other_at, "each its own");
        drop(file);
        engine.dispatch(&double).bind("x", &one).invocations(values.len()).run().unwrap();
        assert_eq!(one.to_vec::<f32>().unwrap()[3], 6.0);
        assert_eq!(other.to_vec::<f32>().unwrap(), values);
        assert_eq!(std::fs::read(&path).unwrap(), before, "{name}: the file is as it was");
        // Of an archive that is read, arrays have memory of their own, which the tensor takes over.
        let read = Archive::open(&path).unwrap().array("a").unwrap();
        let at = read.bytes().as_ptr();
        if at.align_offset(16) == 0 {
            assert_eq!(address(&read.into_tensor(&engine).unwrap()), at, "{name}: read once, and not copied");
        }
        if cfg!(unix) {
            std::fs::remove_file(&path).unwrap();
        }
        assert_eq!(other.to_vec::<f32>().unwrap(), values, "the map outlives the file's name");
    }
}

#[test]
fn arrays_begin_at_multiples_of_16_where_they_can() {
    let (engine, folder) = (engine(), folder());
    for (name, format) in [("a.safetensors", Format::Safetensors), ("a.npz", Format::Npz)] {
        let path = folder.path().join(name);
        save(&path, &everything(&engine, format)).unwrap();
        // SAFETY: nobody writes to the file.
        let file = unsafe { Archive::map(&path) }.unwrap();
        for array in file.names() {
            let array = file.array(array).unwrap();
            let whole = array.bytes().len() % 16 == 0 || format == Format::Npz;
            let alignment = if whole { 16 } else { array.dtype().bytes().min(8) };
            assert!(
                array.bytes().is_empty() || array.bytes().as_ptr().align_offset(alignment) == 0,
                "{name} {array:?}"
            );
        }
    }
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let (engine, folder) = (engine(), folder());
    let x = engine.tensor(&[1.0_f32, 2.0]).unwrap();
    let text = BTreeMap::from([("by".to_owned(), "a test".to_owned())]);
    for name in ["a.safetensors", "a.npz"] {
        let path = folder.path().join(name);
        save(&path, [("x", &x)]).unwrap();
        let before = std::fs::read(&path).unwrap();
        let arrays = || [("x", (DType::F32, vec![2])), ("y", (DType::U8, vec![3]))];
        // Dropped half-way, or completed without an array.
        let mut file = Writer::create(&path, arrays(), &BTreeMap::new()).unwrap();
        file.write("x", &[0; 8]).unwrap();
        drop(file);
        let mut file = Writer::create(&path, arrays(), &BTreeMap::new()).unwrap();
        assert_error(file.write("x", &[0; 9]).unwrap_err(), "takes 8 bytes, 9 were given");
        assert_error(file.write("z", &[0; 9]).unwrap_err(), "\"z\" is not missing");
        assert_error(file.commit().unwrap_err(), "its array \"x\" was not written");
        assert_eq!(std::fs::read(&path).unwrap(), before, "{name}");
        // In any order.
        let mut file = Writer::create(&path, arrays(), &BTreeMap::new()).unwrap();
        file.write("y", &[7, 8, 9]).unwrap();
        file.write("x", &[0; 8]).unwrap();
        file.commit().unwrap();
        assert_eq!(Archive::open(&path).unwrap().tensor(&engine, "y").unwrap().to_vec::<u8>().unwrap(), [7, 8, 9]);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "a temporary file is left");
    let create = |name: &str, text| Writer::create(folder.path().join(name), [("x", (DType::F32, vec![0]))], text);
    let mut file = create("b.safetensors", &text).unwrap();
    file.write("x", &[]).unwrap();
    file.commit().unwrap();
    assert_eq!(Archive::open(folder.path().join("b.safetensors")).unwrap().metadata(), &text);
    assert_error(create("b.npz", &text).unwrap_err(), "only .safetensors holds text");
    assert_error(create("b.pt", &text).unwrap_err(), "\"pt\" is not a known suffix");
    assert_error(create("none/b.npz", &BTreeMap::new()).unwrap_err(), "does not exist: create it first");
    assert_error(save(folder.path().join("b.npy"), [("x", &x), ("y", &x)]).unwrap_err(), "a .npy holds one array");
    assert_error(save(folder.path().join("b.npz"), [("x", &x), ("x", &x)]).unwrap_err(), "two arrays are named \"x\"");
    let complex = engine.tensor(&[cantus::num_complex::Complex::new(1.0_f32, 0.0)]).unwrap();
    let refused = save(folder.path().join("c.safetensors"), [("z", &complex)]).unwrap_err();
    assert_error(refused, "has no complex64 for \"z\" (write a .npz)");
}

/// The mode, the place behind links; and a read-only file, which a rename would replace as well.
#[test]
#[cfg(unix)]
fn a_file_keeps_what_the_one_before_it_had() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let (engine, folder) = (engine(), folder());
    let tensor = engine.tensor(&[1.0_f32]).unwrap();
    let at = |name: &str| folder.path().join(name);
    let set = |name: &str, mode| {
        std::fs::write(at(name), "old").unwrap();
        std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set("a.safetensors", 0o600);
    save(at("a.safetensors"), [("x", &tensor)]).unwrap();
    assert_eq!(std::fs::metadata(at("a.safetensors")).unwrap().permissions().mode() & 0o7777, 0o600);
    set("b.npz", 0o444);
    assert_error(save(at("b.npz"), [("x", &tensor)]).unwrap_err(), "read-only");
    assert_eq!(std::fs::read(at("b.npz")).unwrap(), b"old");
    symlink("new.npy", at("c.npy")).unwrap();
    save(at("c.npy"), [("c", &tensor)]).unwrap();
    assert!(at("c.npy").is_symlink() && Archive::open(at("new.npy")).is_ok());
}

/// An error of one line that says so.
#[track_caller]
fn assert_error(error: Error, part: &str) {
    let text = error.to_string();
    assert!(text.contains(part) && !text.contains('\n'), "{text}");
}

fn with_header(header: &str, data: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + data, 0);
    file
}

#[test]
fn hostile_safetensors_end_in_a_sentence() {
    let read = |bytes: Vec<u8>| Archive::read(Cursor::new(bytes), Format::Safetensors, "evil.safetensors").unwrap_err();
    let array =
        |shape: &str, from: u64, to: u64| format!(r#"{{"dtype":"F32","shape":{shape},"data_offsets":[{from},{to}]}}"#);
    assert_error(read(vec![1, 2, 3]), "it has 3 bytes");
    assert_error(read(u64::MAX.to_le_bytes().to_vec()), "claims 18446744073709551615 bytes, and 0 follow");
    assert_error(read([&99_u64.to_le_bytes()[..], b"{}"].concat()), "claims 99 bytes, and 2 follow");
    assert_error(read(with_header("[1, 2", 0)), "it is not a whole .safetensors file");
    assert_error(read(with_header(&"[".repeat(100_000), 0)), "it is not a whole .safetensors file");
    assert_error(read(with_header("\u{0}", 0)), "it is not a whole .safetensors file");
    for (header, held) in [
        (format!(r#"{{"a":{}}}"#, array("[2]", 0, 8)), 4),
        (format!(r#"{{"a":{}}}"#, array("[2]", 0, 8)), 12),
        // Overlaps, gaps, and an end before the start.
        (format!(r#"{{"a":{},"b":{}}}"#, array("[2]", 0, 8), array("[2]", 4, 12)), 12),
        (format!(r#"{{"a":{},"b":{}}}"#, array("[2]", 0, 8), array("[2]", 12, 20)), 20),
        (format!(r#"{{"a":{}}}"#, array("[2]", 8, 0)), 8),
        // Two of one name.
        (format!(r#"{{"a":{},"a":{}}}"#, array("[2]", 0, 8), array("[2]", 8, 16)), 16),
        // Shapes that are no sizes, or none that fit.
        (format!(r#"{{"a":{}}}"#, array("[4294967296, 4294967296, 4294967296]", 0, 8)), 8),
        (format!(r#"{{"a":{}}}"#, array("[4611686018427387905]", 0, 4)), 4),
        (format!(r#"{{"a":{}}}"#, array("[-1]", 0, 4)), 4),
        (format!(r#"{{"a":{}}}"#, array("[1e3]", 0, 4000)), 4000),
        (r#"{"a":{"dtype":"F31","shape":[],"data_offsets":[0,4]}}"#.to_owned(), 4),
    ] {
        assert_error(read(with_header(&header, held)), "evil.safetensors");
    }
    // What the format knows and this does not.
    let header = r#"{"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}}"#;
    let file = Archive::read(Cursor::new(with_header(header, 4)), Format::Safetensors, "f8.safetensors").unwrap();
    assert_eq!((file.names().collect::<Vec<_>>(), file.describe("a")), (vec!["a"], None));
    assert_error(file.array("a").unwrap_err(), "its array \"a\" is F8_E4M3, which is not a dtype");
    assert_error(file.array("b").unwrap_err(), "it has no array \"b\" (it has: a)");
    // Shapes without elements, however large their other sides.
    let header = format!(r#"{{"a":{}}}"#, array("[0, 4611686018427387904]", 0, 0));
    let file = Archive::read(Cursor::new(with_header(&header, 0)), Format::Safetensors, "none").unwrap();
    assert!(file.array("a").unwrap().bytes().is_empty());
}

#[test]
fn truncated_files_end_in_a_sentence() {
    let (engine, folder) = (engine(), folder());
    let x = engine.tensor_from(&[1.0_f32; 12], &[3, 4]).unwrap();
    for (name, format) in [("a.safetensors", Format::Safetensors), ("a.npz", Format::Npz), ("a.npy", Format::Npy)] {
        let path = folder.path().join(name);
        save(&path, [("a", &x)]).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            let short = Archive::read(Cursor::new(&whole[..length]), format, name).and_then(|file| file.array("a"));
            assert_error(short.expect_err(&format!("{name} of {length} bytes")), name);
        }
        // Shortened after it was opened.
        let opened = Archive::open(&path).unwrap();
        // SAFETY: it is shortened before an array is mapped, which is then refused.
        let mapped = unsafe { Archive::map(&path) }.unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(whole.len() as u64 / 2).unwrap();
        assert_error(opened.array("a").unwrap_err(), name);
        if format != Format::Npz {
            assert_error(mapped.array("a").unwrap_err(), "it has become shorter");
        }
    }
    assert_error(Archive::open(folder.path()).unwrap_err(), "is not a known suffix");
    assert_error(Archive::open(folder.path().join("none.npz")).unwrap_err(), "there is no such file");
    std::fs::create_dir(folder.path().join("folder.npz")).unwrap();
    assert_error(Archive::open(folder.path().join("folder.npz")).unwrap_err(), "folder.npz");
}

/// A ZIP archive of that file.
fn zipped(name: &str, contents: &[u8], method: zip::CompressionMethod) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    archive.start_file(name, options).unwrap();
    archive.write_all(contents).unwrap();
    archive.finish().unwrap().into_inner()
}

/// The header of a .npy file of that shape.
fn npy(shape: &str) -> Vec<u8> {
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\0", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
}

#[test]
fn hostile_npz_end_in_a_sentence() {
    let read = |bytes: &[u8]| {
        let file = Archive::read(Cursor::new(bytes), Format::Npz, "evil.npz")?;
        file.names().map(|name| file.array(name).map(drop)).collect::<Result<Vec<_>, _>>().map(|arrays| arrays.len())
    };
    for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
        for shape in ["(1000000000000,)", "(18446744073709551615, 2)", "(4294967296, 4294967296)", "(3,)"] {
            let file = zipped("a.npy", &[npy(shape), vec![0; 8]].concat(), method);
            assert_error(read(&file).unwrap_err(), "evil.npz, array \"a\"");
        }
        assert_error(read(&zipped("a.npy", b"no array", method)).unwrap_err(), "evil.npz, array \"a\"");
        let good = zipped("a.npy", &[npy("(2,)"), vec![0; 8]].concat(), method);
        assert_eq!(read(&good).unwrap(), 1);
        // A ZIP of something else has no arrays.
        assert_eq!(read(&zipped("a.txt", b"text", method)).unwrap(), 0);
        // Each byte changed: no panic, and what is still read is what was written, but for its name or its header.
        for at in 0..good.len() {
            for change in [0x01, 0x80, 0xFF] {
                let mut bad = good.clone();
                bad[at] ^= change;
                if let Err(error) = read(&bad) {
                    assert_error(error, "evil.npz");
                }
            }
        }
    }
    // A changed element is seen by the checksum.
    let mut bad = zipped("a.npy", &[npy("(2,)"), b"ABCDEFGH".to_vec()].concat(), zip::CompressionMethod::Stored);
    let at = bad.windows(8).position(|part| part == b"ABCDEFGH").unwrap();
    bad[at] ^= 1;
    assert_error(read(&bad).unwrap_err(), "its data is damaged");
}

#[test]
fn any_thread_reads() {
    let (engine, folder) = (engine(), folder());
    let path = folder.path().join("a.npz");
    let tensors = everything(&engine, Format::Npz);
    save(&path, &tensors).unwrap();
    let file = Archive::open(&path).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_same(&file.load(&engine).unwrap(), &tensors));
        }
    });
}

#[test]
fn vectors_and_arrays_keep_their_memory() {
    use cantus::ndarray::{Array2, Axis, s};
    let engine = engine();
    let array = Array2::from_shape_fn((32, 32), |(row, column)| (row * 32 + column) as f32);
    let at = array.as_ptr().cast();
    let x = HostArray::from_array(array.clone()).unwrap();
    drop(x);
    let x = HostArray::from_array(array).unwrap().into_tensor(&engine).unwrap();
    assert_eq!(address(&x), at);
    // SAFETY: nothing writes to x.
    let view = unsafe { cantus_data::View::<f32>::of(&x) }.unwrap();
    assert!(view.is_in_place());
    assert_eq!((view.as_ptr().cast(), view.array()[[3, 4]]), (at, 100.0));
    drop(x);
    assert_eq!(view.array().sum(), (0..1024).sum::<i32>() as f32, "the view keeps the memory");
    // A part of an array: its rows where they are, its columns by copying.
    let array = Array2::from_shape_fn((32, 32), |(row, column)| (row * 32 + column) as f32);
    let rows = array.clone().slice_move(s![4..8, ..]);
    let at = rows.as_ptr().cast();
    let x = HostArray::from_array(rows).unwrap().into_tensor(&engine).unwrap();
    assert_eq!((address(&x), x.shape()), (at, &[4, 32][..]));
    assert_eq!(x.to_vec::<f32>().unwrap()[0], 128.0);
    let columns = array.clone().slice_move(s![.., 1..3]);
    let x = HostArray::from_array(columns.clone()).unwrap().into_tensor(&engine).unwrap();
    assert_eq!(x.to_array::<f32>().unwrap(), columns.into_dyn());
    let mut turned = array.clone().reversed_axes();
    turned.invert_axis(Axis(0));
    let x = HostArray::from_array(turned.clone()).unwrap().into_tensor(&engine).unwrap();
    assert_eq!(x.to_array::<f32>().unwrap(), turned.into_dyn());
    assert_error(HostArray::from_vec(vec![1_u8; 3], &[2]).unwrap_err(), "it takes 2 bytes of u8, 3 were given");
    // SAFETY: nothing writes to x.
    assert_error(unsafe { cantus_data::View::<u32>::of(&x) }.unwrap_err(), "u32");
}

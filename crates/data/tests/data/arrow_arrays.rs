//! Arrow's C data interface, against the crate `arrow-array`.

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::*;
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use cantus::{Engine, Result, Tensor};
use cantus_data::HostArray;
use cantus_data::arrow::{self, ArrowArray as OurArray, ArrowArrayStream as OurStream, ArrowSchema as OurSchema};

fn engine() -> Engine {
    Engine::builder().backend("cpu").build().unwrap()
}

fn address(tensor: &Tensor) -> *const u8 {
    tensor.host_view().unwrap().unwrap().as_ptr()
}

/// The structures of another library's array.
fn given(array: &dyn Array) -> (OurArray, OurSchema) {
    let (mut array, mut schema) = to_ffi(&array.to_data()).unwrap();
    // SAFETY: both crates have the interface's structures.
    unsafe { (OurArray::take((&raw mut array).cast()), OurSchema::take((&raw mut schema).cast())) }
}

fn taken(array: &dyn Array) -> Result<HostArray> {
    let (array, schema) = given(array);
    // SAFETY: they are what the crate made, and nobody writes to its memory.
    unsafe { arrow::array(array, &schema) }
}

/// A tensor as an array of the crate's.
fn theirs(tensor: &Tensor) -> ArrayRef {
    let (mut array, mut schema) = arrow::export(tensor).unwrap();
    // SAFETY: both crates have the interface's structures.
    let (array, schema) = unsafe {
        (FFI_ArrowArray::from_raw((&raw mut array).cast()), FFI_ArrowSchema::from_raw((&raw mut schema).cast()))
    };
    // SAFETY: they are what `export` made.
    make_array(unsafe { from_ffi(array, &schema) }.unwrap())
}

fn round_trip<P: ArrowPrimitiveType>(engine: &Engine, values: Vec<P::Native>)
where
    P::Native: cantus::Element + PartialEq + std::fmt::Debug,
{
    let array = PrimitiveArray::<P>::from_iter_values(values.iter().copied());
    let at: *const P::Native = array.values().as_ptr();
    let tensor = taken(&array).unwrap().into_tensor(engine).unwrap();
    drop(array);
    assert_eq!(address(&tensor), at.cast(), "no copy of {}", tensor.dtype());
    assert_eq!(tensor.to_vec::<P::Native>().unwrap(), values);
    let back = theirs(&tensor);
    drop(tensor);
    let back = back.as_any().downcast_ref::<PrimitiveArray<P>>().unwrap();
    assert_eq!(back.values().as_ptr(), at, "no copy either");
    assert_eq!(&back.values()[..], values);
}

#[test]
fn numbers_keep_their_memory_both_ways() {
    let engine = engine();
    round_trip::<Int8Type>(&engine, vec![-1, 2, 3, 4]);
    round_trip::<Int16Type>(&engine, vec![-1, 2]);
    round_trip::<Int32Type>(&engine, vec![-1, 2, 3]);
    round_trip::<Int64Type>(&engine, vec![i64::MIN, 2, 3]);
    round_trip::<UInt8Type>(&engine, vec![1, 2, 3, 255]);
    round_trip::<UInt16Type>(&engine, vec![1, 2, 3, 65535]);
    round_trip::<UInt32Type>(&engine, vec![1, 2, 3]);
    round_trip::<UInt64Type>(&engine, vec![u64::MAX, 2, 3]);
    round_trip::<Float16Type>(&engine, vec![half::f16::ONE, half::f16::NEG_ONE]);
    round_trip::<Float32Type>(&engine, vec![1.5, -2.5, 3.5]);
    round_trip::<Float64Type>(&engine, vec![1.5, -2.5, f64::INFINITY]);
}

#[test]
fn other_types_and_shapes_come_and_go() {
    let engine = engine();
    // Booleans are bits: from the middle of a byte, too.
    let bits: Vec<bool> = (0..21).map(|at| at % 3 == 0).collect();
    let array = BooleanArray::from(bits.clone()).slice(5, 13);
    let tensor = taken(&array).unwrap().into_tensor(&engine).unwrap();
    assert_eq!(tensor.to_vec::<bool>().unwrap(), bits[5..18]);
    assert_eq!(theirs(&tensor).as_any().downcast_ref::<BooleanArray>().unwrap(), &array);
    // A slice begins within its memory, and an odd number of bytes is copied.
    let numbers = Int32Array::from_iter_values(0..100);
    let tensor = taken(&numbers.slice(4, 9)).unwrap().into_tensor(&engine).unwrap();
    assert_eq!(address(&tensor), numbers.values()[4..].as_ptr().cast());
    assert_eq!(tensor.to_vec::<i32>().unwrap(), (4..13).collect::<Vec<_>>());
    let tensor = taken(&numbers.slice(3, 9)).unwrap().into_tensor(&engine).unwrap();
    assert_eq!(tensor.to_vec::<i32>().unwrap(), (3..12).collect::<Vec<_>>());
    let bytes = UInt8Array::from_iter_values(0..7);
    assert_eq!(taken(&bytes).unwrap().into_tensor(&engine).unwrap().to_vec::<u8>().unwrap(), [0, 1, 2, 3, 4, 5, 6]);
    // Lists of lists, sliced.
    let inner = FixedSizeListArray::new(
        Arc::new(Field::new_list_field(DataType::Int32, false)),
        5,
        Arc::new(Int32Array::from_iter_values(0..60)),
        None,
    );
    let outer = FixedSizeListArray::new(
        Arc::new(Field::new_list_field(inner.data_type().clone(), false)),
        3,
        Arc::new(inner),
        None,
    );
    let array = outer.slice(1, 2);
    let tensor = taken(&array).unwrap().into_tensor(&engine).unwrap();
    assert_eq!(tensor.shape(), [2, 3, 5]);
    assert_eq!(tensor.to_vec::<i32>().unwrap(), (15..45).collect::<Vec<_>>());
    let back = theirs(&tensor);
    assert_eq!(back.len(), 2);
    let lists = back.as_any().downcast_ref::<FixedSizeListArray>().unwrap();
    let row = lists.value(1);
    let row = row.as_any().downcast_ref::<FixedSizeListArray>().unwrap().value(2);
    assert_eq!(row.as_any().downcast_ref::<Int32Array>().unwrap().values()[..], [40, 41, 42, 43, 44]);
    // No axis, and no element.
    assert_eq!(theirs(&engine.tensor_from(&[5_u32], &[]).unwrap()).len(), 1);
    assert_eq!(theirs(&engine.zeros::<f32>(&[0, 4]).unwrap()).len(), 0);
    assert_eq!(taken(&Float32Array::from(Vec::<f32>::new())).unwrap().into_tensor(&engine).unwrap().shape(), [0]);
}

/// An array whose memory says when it is given back: once two are left, the array has been released.
fn watched(values: Vec<f32>) -> (Float32Array, Arc<Vec<f32>>) {
    let owner = Arc::new(values);
    let start = NonNull::new(owner.as_ptr().cast_mut().cast::<u8>()).unwrap();
    // SAFETY: the vector lives as long as its last owner.
    let buffer = unsafe { Buffer::from_custom_allocation(start, 4 * owner.len(), owner.clone()) };
    (Float32Array::new(ScalarBuffer::from(buffer), None), owner)
}

#[test]
fn memory_is_released_once_and_by_the_last_user() {
    let engine = engine();
    let values = || (0..64).map(|value| value as f32).collect::<Vec<f32>>();
    let (array, owner) = watched(values());
    let (ours, schema) = given(&array);
    drop(array);
    assert_eq!(Arc::strong_count(&owner), 2, "the structure keeps it");
    // SAFETY: nobody writes to the memory.
    let tensor = unsafe { arrow::array(ours, &schema) }.unwrap().into_tensor(&engine).unwrap();
    drop(schema);
    let again = theirs(&tensor);
    drop(tensor);
    assert_eq!(Arc::strong_count(&owner), 2, "so does what was handed on");
    assert_eq!(again.as_any().downcast_ref::<Float32Array>().unwrap().values()[..], values()[..]);
    // On another thread, and after the engine.
    drop(engine);
    std::thread::spawn(move || drop(again)).join().unwrap();
    assert_eq!(Arc::strong_count(&owner), 1, "and the last one gives it back");
    // Refused ones are given back, too.
    let (array, owner) = watched(values());
    let (ours, _) = given(&array);
    let (_, schema) = given(&StringArray::from(vec!["text"]));
    drop(array);
    // SAFETY: they contradict each other, in a way that is seen.
    assert!(unsafe { arrow::array(ours, &schema) }.is_err());
    assert_eq!(Arc::strong_count(&owner), 1);
    // Exported and never taken; taken and never used.
    let engine = self::engine();
    let tensor = engine.tensor(&[1.0_f32]).unwrap();
    let (mut array, schema) = arrow::export(&tensor).unwrap();
    // SAFETY: it is a valid structure.
    let moved = unsafe { OurArray::take(&mut array) };
    assert!(array.is_released() && !moved.is_released());
    drop((array, schema, moved, tensor));
}

fn batch() -> RecordBatch {
    let (x, _) = watched(vec![1.0, 2.0, 3.0, 4.0]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("x", Arc::new(x)),
        ("y", Arc::new(Int64Array::from(vec![5, 6, 7, 8]))),
        ("flag", Arc::new(BooleanArray::from(vec![true, false, true, true]))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn batches_and_streams_give_columns() {
    let engine = engine();
    let batch = batch();
    let (array, schema) = given(&StructArray::from(batch.clone()).slice(1, 3));
    // SAFETY: nobody writes to the memory.
    let columns = unsafe { arrow::columns(array, &schema) }.unwrap();
    assert_eq!(columns.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["x", "y", "flag"]);
    let mut tensors = columns.into_iter().map(|(_, array)| array.into_tensor(&engine).unwrap());
    assert_eq!(tensors.next().unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0, 4.0]);
    assert_eq!(tensors.next().unwrap().to_vec::<i64>().unwrap(), [6, 7, 8]);
    assert_eq!(tensors.next().unwrap().to_vec::<bool>().unwrap(), [false, true, true]);

    let streamed = |batches: Vec<RecordBatch>| {
        let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), batch.schema());
        let mut stream = FFI_ArrowArrayStream::new(Box::new(reader));
        // SAFETY: both crates have the interface's structures; nobody writes to the memory.
        unsafe { arrow::stream(OurStream::take((&raw mut stream).cast())) }
    };
    let one = streamed(vec![batch.clone()]).unwrap();
    let there = batch.column(0).as_any().downcast_ref::<Float32Array>().unwrap().values().as_ptr();
    assert_eq!(one[0].1.bytes().as_ptr(), there.cast(), "one array: no copy");
    let two = streamed(vec![batch.clone(), batch.slice(0, 1)]).unwrap();
    assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(two[0].1.bytes()), [1.0, 2.0, 3.0, 4.0, 1.0]);
    assert_eq!((two[1].1.shape(), two[2].1.bytes()), (&[5][..], &[1, 0, 1, 1, 1][..]));
    let none = streamed(Vec::new()).unwrap();
    assert_eq!((none.len(), none[1].1.shape()), (3, &[0][..]));
    // A stream that fails says why.
    let failing = RecordBatchIterator::new(
        [Err(arrow_schema::ArrowError::ComputeError("the disk is on fire".into()))],
        batch.schema(),
    );
    let mut stream = FFI_ArrowArrayStream::new(Box::new(failing));
    // SAFETY: both crates have the interface's structures; the stream fails before it gives an array.
    let error = unsafe { arrow::stream(OurStream::take((&raw mut stream).cast())) }.unwrap_err();
    assert!(error.to_string().contains("the disk is on fire"), "{error}");
    // SAFETY: an empty structure is a released one.
    assert!(unsafe { arrow::stream(OurStream::empty()) }.is_err());
}

/// A batch of one column named `c`.
fn columns_of(array: ArrayRef) -> Result<Vec<(String, HostArray)>> {
    let nullable = Field::new("c", array.data_type().clone(), true);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![nullable])), vec![array]).unwrap();
    let (array, schema) = given(&StructArray::from(batch));
    // SAFETY: nobody writes to the memory.
    unsafe { arrow::columns(array, &schema) }
}

#[test]
fn what_is_no_array_of_numbers_is_refused_in_a_sentence() {
    let engine = engine();
    let dictionary: DictionaryArray<Int32Type> = vec!["a", "b"].into_iter().collect();
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1)])]);
    let cases: [(ArrayRef, &str); 8] = [
        (Arc::new(Int32Array::from(vec![Some(1), None, None])), "2 of its 3 rows are null"),
        (Arc::new(BooleanArray::from(vec![Some(true), None])), "1 of its 2 rows are null"),
        (Arc::new(StringArray::from(vec!["text"])), "\"u\" (text) has no dtype here"),
        (Arc::new(BinaryArray::from(vec![&b"x"[..]])), "(bytes)"),
        (Arc::new(Date32Array::from(vec![1])), "(dates or times) has no dtype here (cast them to int32"),
        (Arc::new(Decimal128Array::from(vec![1])), "(decimals)"),
        (Arc::new(dictionary), "encoded by a dictionary"),
        (Arc::new(lists), "(lists of any length)"),
    ];
    for (array, part) in cases {
        let text = columns_of(array).unwrap_err().to_string();
        assert!(text.contains("the Arrow column \"c\"") && text.contains(part) && !text.contains('\n'), "{text}");
    }
    // Nulls outside a slice do not count.
    let array = Int32Array::from(vec![None, Some(1), Some(2), None]).slice(1, 2);
    assert_eq!(taken(&array).unwrap().into_tensor(&engine).unwrap().to_vec::<i32>().unwrap(), [1, 2]);
    // Used before.
    // SAFETY: empty structures are released ones.
    let text = unsafe { arrow::array(OurArray::empty(), &OurSchema::empty()) }.unwrap_err().to_string();
    assert!(text.contains("it was released"), "{text}");
    let bf16 = engine.tensor(&[half::bf16::ONE]).unwrap();
    assert!(arrow::export(&bf16).unwrap_err().to_string().contains("Arrow has no bf16 (cast it to f32)"));
    let deep = engine.tensor_from(&[1.0_f32], &[1; 20]).unwrap();
    assert!(arrow::export(&deep).unwrap_err().to_string().contains("more than 16 axes"));
}

//! Arrow's arrays in. Structures come from other libraries and are believed as far as the interface's rules go; lengths, types and nulls are checked.
//! Memory stays the producer's and is released with the last holder, be it a tensor. Nulls are refused rather than read as numbers.

use std::ffi::{CStr, c_char};
use std::ptr::NonNull;
use std::sync::Arc;

use cantus::backend::HostMemory;
use cantus::tensor::byte_count;
use cantus::{DType, Error, Result};

use super::{ArrowArray, ArrowArrayStream, ArrowSchema, FORMATS, MOST_NESTED};
use crate::HostArray;

/// The reason why a structure without contents is refused.
const RELEASED: &str = "it was released, or used before";

/// Takes an array of numbers, in its memory; of booleans by copying. It is released when the result, and a tensor in its memory, is dropped; at once where
/// nothing keeps it, and where this fails.
///
/// # Safety
/// Both structures are valid by the interface's rules, or released, and `schema` describes `array`. The memory is not written to while the result or a
/// tensor in it lives; so no kernel may bind that tensor for writing unless nobody else reads the memory.
///
/// # Errors
/// [`Error::Dtype`], naming the column, for a type that is not of numbers or booleans; [`Error::InvalidInput`] for nulls and for structures that contradict
/// themselves; [`Error::InvalidState`] if it was released.
pub unsafe fn array(array: ArrowArray, schema: &ArrowSchema) -> Result<HostArray> {
    let owner = Arc::new(array);
    // SAFETY: both structures are valid, `schema` describes the array, and its memory is not written to (this function's contract).
    unsafe { column(&owner, &owner, schema, (0, None)) }
}

/// Takes the columns of a structure (a record batch, a data frame), in order, each as [`array`] does; of an array that is no structure the one column. The
/// memory is released when the last of them is dropped.
///
/// # Safety
/// As [`array`].
///
/// # Errors
/// As [`array`].
pub unsafe fn columns(array: ArrowArray, schema: &ArrowSchema) -> Result<Vec<(String, HostArray)>> {
    let owner = Arc::new(array);
    // SAFETY: both structures are valid, `schema` describes the array, and its memory is not written to (this function's contract).
    unsafe { columns_of(&owner, schema) }
}

/// Takes the columns of all arrays of a stream: of one array in its memory, of several joined by copying. A stream without an array has columns without
/// elements, if they have no lists.
///
/// # Safety
/// As [`array`], of the stream and of every array that it gives.
///
/// # Errors
/// As [`array`], and [`Error::InvalidInput`] with the stream's own message when it fails.
pub unsafe fn stream(mut stream: ArrowArrayStream) -> Result<Vec<(String, HostArray)>> {
    // SAFETY: the stream is valid (this function's contract).
    let schema = unsafe { stream.schema() }?;
    let get_next = stream.get_next.ok_or_else(|| fault("the stream", "it gives no arrays"))?;
    let mut joined: Vec<(String, HostArray, Option<Vec<u8>>)> = Vec::new();
    let mut any = false;
    loop {
        let mut array = ArrowArray::empty();
        // SAFETY: the stream is valid (this function's contract), and fills what it is given.
        let code = unsafe { get_next(&mut stream, &mut array) };
        if code != 0 {
            return Err(failed(&mut stream, code));
        }
        if array.is_released() {
            break;
        }
        // SAFETY: the array is valid, not written to (this function's contract), and of the stream's type.
        let more = unsafe { columns(array, &schema) }?;
        if !any {
            joined = more.into_iter().map(|(name, array)| (name, array, None)).collect();
        } else {
            for ((_, first, bytes), (_, next)) in joined.iter_mut().zip(&more) {
                let bytes = bytes.get_or_insert_with(|| first.bytes().to_vec());
                bytes.extend_from_slice(next.bytes());
            }
        }
        any = true;
    }
    if !any {
        // SAFETY: nothing is read of arrays without elements.
        return unsafe { columns(nothing(&schema), &schema) };
    }
    let whole = joined.into_iter().map(|(name, first, bytes)| {
        let Some(bytes) = bytes else { return Ok((name, first)) };
        let mut shape = first.shape().to_vec();
        let row: usize = shape.iter().skip(1).product::<usize>() * first.dtype().bytes();
        if let (Some(rows), Some(count)) = (shape.first_mut(), bytes.len().checked_div(row)) {
            *rows = count;
        }
        Ok((name, HostArray::from_bytes(first.dtype(), &shape, bytes)?))
    });
    whole.collect()
}

impl ArrowArrayStream {
    /// Asks for the type of its arrays.
    ///
    /// # Safety
    /// The stream is valid, or released.
    ///
    /// # Errors
    /// [`Error::InvalidState`] if it was released, [`Error::InvalidInput`] if it fails.
    pub unsafe fn schema(&mut self) -> Result<ArrowSchema> {
        let Some(get_schema) = self.get_schema.filter(|_| !self.is_released()) else {
            return Err(Error::state("the stream", RELEASED));
        };
        let mut schema = ArrowSchema::empty();
        // SAFETY: the stream is valid, and fills what it is given.
        let code = unsafe { get_schema(self, &mut schema) };
        if code != 0 {
            return Err(failed(self, code));
        }
        Ok(schema)
    }
}

impl ArrowSchema {
    /// Returns whether it is the type of a structure (a table, a record batch), whose columns have names, and not of one column.
    ///
    /// # Safety
    /// The structure is valid, or released.
    #[must_use]
    pub unsafe fn is_structure(&self) -> bool {
        // SAFETY: the structure is valid (this function's contract), so its format is a string of C's.
        !self.is_released() && unsafe { text(self.format) }.is_some_and(|format| format == "+s")
    }
}

/// An array without elements, of that type where it is a structure of plain columns.
fn nothing(schema: &ArrowSchema) -> ArrowArray {
    super::export::nothing(usize::try_from(schema.n_children).unwrap_or(0))
}

fn failed(stream: &mut ArrowArrayStream, code: i32) -> Error {
    let ask = stream.get_last_error;
    // SAFETY: the stream is valid; its message lives until the next call.
    let said = ask.and_then(|ask| unsafe { text(ask(stream)) });
    fault("the stream", &said.unwrap_or_else(|| format!("it failed with code {code}")))
}

/// The columns of a structure, or the one column.
///
/// # Safety
/// As [`array`], of the owner.
unsafe fn columns_of(owner: &Arc<ArrowArray>, schema: &ArrowSchema) -> Result<Vec<(String, HostArray)>> {
    // Who moves a structure out leaves pointers behind.
    if owner.is_released() || schema.is_released() {
        return Err(Error::state("the Arrow array", RELEASED));
    }
    // SAFETY: the schema is valid (this function's contract).
    if !unsafe { schema.is_structure() } {
        // SAFETY: the schema is valid (this function's contract).
        let name = unsafe { name(schema) };
        // SAFETY: the owner is described by the schema, and not written to (this function's contract).
        return Ok(vec![(name, unsafe { column(owner, owner, schema, (0, None)) }?)]);
    }
    // SAFETY: the schema is valid (this function's contract).
    let what = unsafe { label(schema) };
    let range = range(owner, &what)?;
    // SAFETY: the array is valid (this function's contract), and has these rows.
    unsafe { no_nulls(owner, range, &what) }?;
    let count = owner.n_children;
    if count != schema.n_children {
        return Err(fault(&what, &format!("it has {count} columns, and its type {}", schema.n_children)));
    }
    let mut found = Vec::new();
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: both have as many children.
        let (array, schema) = unsafe { (child(owner.children, index, &what)?, child(schema.children, index, &what)?) };
        // SAFETY: child and type of one index belong to each other, and are valid as their parents are (this function's contract).
        found.push(unsafe { (name(schema), column(owner, array, schema, (range.0, Some(range.1)))?) });
    }
    Ok(found)
}

/// The elements of a column in memory that `owner` keeps: `rows` rows from row `first` on, all rows without a number.
///
/// # Safety
/// As [`array`]; `array` is `owner` or a child of it, at any depth.
unsafe fn column(
    owner: &Arc<ArrowArray>,
    mut array: &ArrowArray,
    mut schema: &ArrowSchema,
    (mut first, rows): (usize, Option<usize>),
) -> Result<HostArray> {
    // SAFETY: the schema is valid (this function's contract).
    let what = unsafe { label(schema) };
    let invalid = |reason: &str| fault(&what, reason);
    let beyond = || invalid("its lengths contradict each other");
    let mut count = rows.map_or_else(|| range(array, &what).map(|(_, held)| held), Ok)?;
    let mut shape = vec![count];
    // Through the lists to their elements.
    let dtype = loop {
        if array.is_released() || schema.is_released() {
            return Err(Error::state(what, RELEASED));
        }
        if !array.dictionary.is_null() || !schema.dictionary.is_null() {
            return Err(invalid("it is encoded by a dictionary (decode it first)"));
        }
        let (offset, held) = range(array, &what)?;
        if first.checked_add(count).is_none_or(|end| end > held) {
            return Err(beyond());
        }
        first = first.checked_add(offset).ok_or_else(beyond)?;
        // SAFETY: the validity has a bit for each row.
        unsafe { no_nulls(array, (first, count), &what) }?;
        // SAFETY: a string of C's.
        let format = unsafe { text(schema.format) }.ok_or_else(|| invalid("it has no type"))?;
        let Some(side) = format.strip_prefix("+w:") else {
            let dtype = FORMATS.iter().find(|(known, _)| *known == format).map(|(_, dtype)| *dtype);
            break dtype.ok_or_else(|| Error::dtype(what.as_str(), refusal(&format)))?;
        };
        let side: usize = side.parse().map_err(|_| invalid("the size of its lists is not a number"))?;
        if array.n_children != 1 || schema.n_children != 1 || shape.len() > MOST_NESTED {
            return Err(invalid("its lists have no elements, or are nested too deep"));
        }
        // SAFETY: both have one child.
        (array, schema) = unsafe { (child(array.children, 0, &what)?, child(schema.children, 0, &what)?) };
        first = first.checked_mul(side).ok_or_else(beyond)?;
        count = count.checked_mul(side).ok_or_else(beyond)?;
        shape.push(side);
    };
    if array.n_buffers != 2 || array.buffers.is_null() {
        return Err(invalid("it does not have the two buffers of numbers"));
    }
    let bytes = byte_count(&shape, dtype)?;
    if bytes == 0 {
        return HostArray::from_bytes(dtype, &shape, Vec::new());
    }
    // SAFETY: there are two buffers.
    let data = NonNull::new(unsafe { *array.buffers.add(1) }.cast_mut().cast::<u8>());
    let data = data.ok_or_else(|| invalid("it has no memory"))?;
    if dtype == DType::Bool {
        // SAFETY: a bit for each element.
        let bit = |at: usize| (unsafe { *data.as_ptr().add(at / 8) } >> (at % 8)) & 1;
        return HostArray::from_bytes(dtype, &shape, (first..first + count).map(bit).collect());
    }
    let start = first.checked_mul(dtype.bytes()).ok_or_else(beyond)?;
    // SAFETY: within the buffer, which the owner keeps, and which nobody writes to (this function's contract).
    let memory = unsafe { HostMemory::new(data.add(start), bytes, owner.clone()) };
    HostArray::new(dtype, &shape, memory)
}

/// Offset and length.
fn range(array: &ArrowArray, what: &str) -> Result<(usize, usize)> {
    let both = usize::try_from(array.offset).ok().zip(usize::try_from(array.length).ok());
    both.ok_or_else(|| fault(what, "its offset or its length is negative"))
}

/// Refuses nulls among `count` rows from row `first` on, counted from the start of the buffers.
///
/// # Safety
/// The array is valid; its validity, where there is one, has a bit for each of these rows.
unsafe fn no_nulls(array: &ArrowArray, (first, count): (usize, usize), what: &str) -> Result<()> {
    if array.null_count == 0 || array.n_buffers < 1 || array.buffers.is_null() {
        return Ok(());
    }
    // SAFETY: there is a first buffer, the validity.
    let validity = unsafe { *array.buffers }.cast::<u8>();
    if validity.is_null() {
        return Ok(());
    }
    // SAFETY: a bit for each row.
    let valid = |at: usize| (unsafe { *validity.add(at / 8) } >> (at % 8)) & 1 == 1;
    let nulls = (first..first.saturating_add(count)).filter(|&at| !valid(at)).count();
    match nulls {
        0 => Ok(()),
        _ => Err(fault(
            what,
            &format!("{nulls} of its {count} rows are null, and a tensor has no nulls (fill or drop them first)"),
        )),
    }
}

/// A child of a structure.
///
/// # Safety
/// `children` is null or has more than `index` pointers, each null or valid as long as the result.
unsafe fn child<'a, T>(children: *mut *mut T, index: usize, what: &str) -> Result<&'a T> {
    let missing = || fault(what, "one of its children is missing");
    if children.is_null() {
        return Err(missing());
    }
    // SAFETY: there are more children than `index`, which live as long as their parent.
    unsafe { (*children.add(index)).as_ref() }.ok_or_else(missing)
}

/// A text; `None` for null.
///
/// # Safety
/// `text` is null or ends in a zero byte.
unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: not null, so it ends in a zero byte (this function's contract).
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// # Safety
/// The schema is valid, or released.
unsafe fn name(schema: &ArrowSchema) -> String {
    if schema.is_released() {
        return String::new();
    }
    // SAFETY: the schema is valid (this function's contract): its name is null or a string of C's.
    unsafe { text(schema.name) }.unwrap_or_default()
}

/// The column's name in messages.
///
/// # Safety
/// As [`name`].
unsafe fn label(schema: &ArrowSchema) -> String {
    // SAFETY: the schema is valid (this function's contract).
    match unsafe { name(schema) }.as_str() {
        "" => "the Arrow array".to_owned(),
        name => format!("the Arrow column \"{}\"", name.escape_default()),
    }
}

fn fault(what: &str, reason: &str) -> Error {
    Error::invalid(what, reason)
}

/// Why a type is refused, and the way out.
fn refusal(format: &str) -> String {
    let (kind, remedy) = match format.as_bytes() {
        [b'u' | b'U', ..] | [b'v', b'u', ..] => ("text", "encode it as numbers first"),
        [b'z' | b'Z' | b'w', ..] | [b'v', b'z', ..] => ("bytes", "decode them as numbers first"),
        [b't', ..] => ("dates or times", "cast them to int32 or int64 first"),
        [b'd', ..] => ("decimals", "cast them to float64 first"),
        [b'n'] => ("nulls", "fill them first"),
        [b'+', b'l' | b'L' | b'v', ..] => ("lists of any length", "cast them to lists of a fixed size first"),
        [b'+', b's'] => ("a structure", "take its columns by `columns`"),
        [b'+', ..] => ("nested", "take its parts first"),
        _ => ("unknown", "cast it to numbers first"),
    };
    format!("its type \"{}\" ({kind}) has no dtype here ({remedy})", format.escape_default())
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    unsafe extern "C" fn released(schema: *mut ArrowSchema) {
        // SAFETY: called once, with the structure.
        unsafe { (*schema).release = None };
    }

    /// Other libraries leave everything but `release` as it was when they move a structure out.
    #[test]
    fn pointers_of_released_structures_are_not_followed() {
        let moved = || {
            let mut array = ArrowArray::empty();
            (array.null_count, array.n_buffers, array.n_children) = (-1, 1, 1);
            (array.buffers, array.children) = (ptr::dangling_mut(), ptr::dangling_mut());
            array
        };
        let mut schema = ArrowSchema::empty();
        (schema.format, schema.name, schema.n_children) = (c"+s".as_ptr(), c"".as_ptr(), 1);
        schema.release = Some(released);
        let mut given_away = ArrowSchema::empty();
        (given_away.format, given_away.name) = (ptr::dangling(), ptr::dangling());
        for schema in [&schema, &given_away] {
            // SAFETY: the arrays are released, and nothing writes to what is shared.
            let found = unsafe { [columns(moved(), schema).map(|_| ()), array(moved(), schema).map(|_| ())] };
            for error in found.map(Result::unwrap_err) {
                assert!(error.to_string().contains(RELEASED), "{error}");
            }
        }
    }
}

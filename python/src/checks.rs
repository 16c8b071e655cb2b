//! Places that arrays name: whether they lie within an axis. They are looked at when they are recorded, where they lie in the host's memory; else
//! when something that depends on them is read. Every array knows the checks that it depends on.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cantus::{DType, Tensor};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::array::State;
use crate::wait::wait;

/// Places, and the least and the greatest that there may be.
struct Check {
    places: Arc<Mutex<State>>,
    allowed: (i128, i128),
    what: String,
    found: Arc<Extent>,
}

/// The least and the greatest of an array's whole numbers, once they were looked for; none of nothing.
pub(crate) type Extent = OnceLock<Option<(i128, i128)>>;

/// [`Extent`] of an array.
pub(crate) fn extent(
    py: Python<'_>,
    engine: &cantus::Engine,
    places: &Mutex<State>,
    known: &Extent,
) -> PyResult<Option<(i128, i128)>> {
    if let Some(found) = known.get() {
        return Ok(*found);
    }
    let found = match State::few(places) {
        Some(few) => range_of(few.dtype(), few.bytes()),
        None => range(py, engine, &State::tensor(places, py, engine)?)?,
    };
    Ok(*known.get_or_init(|| found))
}

/// A check, and those that it follows or that are joined here.
pub(crate) struct Checks {
    own: Option<Check>,
    before: Mutex<Vec<Arc<Self>>>,
    is_sound: AtomicBool,
}

impl Checks {
    fn new(own: Option<Check>, before: Vec<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { own, before: Mutex::new(before), is_sound: AtomicBool::new(false) })
    }

    /// One more: `places` must lie within `allowed` in what `what` names.
    pub(crate) fn with(
        before: Option<&Arc<Self>>,
        places: Arc<Mutex<State>>,
        allowed: (i128, i128),
        what: String,
        found: Arc<Extent>,
    ) -> Arc<Self> {
        let own = Check { places, allowed, what, found };
        Self::new(Some(own), before.into_iter().cloned().collect())
    }

    /// Returns the checks that a result of all of these depends on.
    pub(crate) fn joined<'a>(of: impl Iterator<Item = Option<&'a Arc<Self>>>) -> Option<Arc<Self>> {
        let mut known: Vec<Arc<Self>> = Vec::new();
        for checks in of.flatten().filter(|checks| !checks.is_sound.load(Ordering::Acquire)) {
            if !known.iter().any(|other| Arc::ptr_eq(other, checks)) {
                known.push(checks.clone());
            }
        }
        if known.len() < 2 { known.pop() } else { Some(Self::new(None, known)) }
    }

    fn before(&self) -> Vec<Arc<Self>> {
        std::mem::take(&mut *self.before.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Raises `IndexError` where a place is out of range.
    pub(crate) fn verify(self: &Arc<Self>, py: Python<'_>, engine: &cantus::Engine) -> PyResult<()> {
        let (mut left, mut seen, mut done) = (vec![self.clone()], HashSet::new(), Vec::new());
        while let Some(checks) = left.pop() {
            if checks.is_sound.load(Ordering::Acquire) || !seen.insert(Arc::as_ptr(&checks)) {
                continue;
            }
            if let Some(check) = &checks.own {
                check.verify(py, engine)?;
            }
            left.extend(checks.before.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
            done.push(checks);
        }
        for checks in done {
            checks.is_sound.store(true, Ordering::Release);
            drop(checks.before());
        }
        Ok(())
    }
}

/// Long chains are dropped link by link.
impl Drop for Checks {
    fn drop(&mut self) {
        let mut left = self.before();
        while let Some(checks) = left.pop() {
            if let Some(checks) = Arc::into_inner(checks) {
                left.extend(checks.before());
            }
        }
    }
}

impl Check {
    fn verify(&self, py: Python<'_>, engine: &cantus::Engine) -> PyResult<()> {
        let found = extent(py, engine, &self.places, &self.found)?;
        let (low, high) = self.allowed;
        let Some((least, greatest)) = found else { return Ok(()) };
        let wrong = if least < low { least } else { greatest };
        if least >= low && greatest <= high {
            return Ok(());
        }
        Err(PyIndexError::new_err(match high {
            -1 => format!("index {wrong} is out of range: {} has no elements", self.what),
            _ => format!("index {wrong} is out of range: {} has indices {low} to {high}", self.what),
        }))
    }
}

/// The least and the greatest of a tensor's whole numbers; none of nothing.
fn range(py: Python<'_>, engine: &cantus::Engine, tensor: &Tensor) -> PyResult<Option<(i128, i128)>> {
    let (dtype, expr) = (tensor.dtype(), tensor.expr());
    if tensor.is_empty() {
        return Ok(None);
    }
    if let Some(view) = wait(py, engine, tensor.host_view_async())? {
        // SAFETY: the view keeps as many bytes, which nothing writes: arrays do not change.
        let bytes = unsafe { std::slice::from_raw_parts(view.as_ptr(), tensor.byte_len() as usize) };
        return Ok(py.detach(|| range_of(dtype, bytes)));
    }
    let ends = [expr.min(&[], false), expr.max(&[], false)];
    let mut found = Vec::new();
    for end in ends {
        let end = wait(py, engine, end.eval_async())?;
        found.extend(range_of(dtype, &wait(py, engine, end.to_bytes_async())?));
    }
    Ok(found.iter().map(|end| end.0).min().zip(found.iter().map(|end| end.1).max()))
}

fn range_of(dtype: DType, bytes: &[u8]) -> Option<(i128, i128)> {
    macro_rules! of {
        ($type:ty) => {{
            let (numbers, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
            let mut numbers = numbers.iter().map(|&bytes| <$type>::from_ne_bytes(bytes));
            let first = numbers.next()?;
            let (least, greatest) = numbers.fold((first, first), |(low, high), x| (low.min(x), high.max(x)));
            Some((i128::from(least), i128::from(greatest)))
        }};
    }
    match dtype {
        DType::I8 => of!(i8),
        DType::U8 => of!(u8),
        DType::I16 => of!(i16),
        DType::U16 => of!(u16),
        DType::I32 => of!(i32),
        DType::U32 => of!(u32),
        DType::I64 => of!(i64),
        DType::U64 => of!(u64),
        _ => None,
    }
}

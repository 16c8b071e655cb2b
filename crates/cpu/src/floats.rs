//! Bindings of a native operation as numbers in memory.

/// A float32 binding: its start, and how many elements it has.
#[derive(Clone, Copy)]
pub(super) struct Floats(pub(super) *mut f32, pub(super) usize);

// SAFETY: the tasks of one operation read the inputs and write distinct parts of the output.
unsafe impl Send for Floats {}
// SAFETY: no two tasks share what one of them writes.
unsafe impl Sync for Floats {}

impl Floats {
    /// The start. A method, so that closures capture the whole, which may go to other threads.
    pub(super) fn start(&self) -> *mut f32 {
        self.0
    }

    /// The address of an element.
    ///
    /// # Safety
    /// There is such an element.
    pub(super) unsafe fn at(&self, index: usize) -> *mut f32 {
        // SAFETY: there is such an element (this function's contract).
        unsafe { self.0.add(index) }
    }

    /// Returns the `index`th run of `length` elements; empty if there is no such run.
    ///
    /// # Safety
    /// Nothing writes to it while the slice lives.
    pub(super) unsafe fn stretch<'a>(&self, index: usize, length: usize) -> &'a [f32] {
        // SAFETY: nothing writes to it (this function's contract).
        unsafe { self.stretch_of(index, length) }
    }

    /// [`Self::stretch`] as another type of numbers, which takes any bits; empty if the binding is not aligned for it.
    ///
    /// # Safety
    /// As [`Self::stretch`]; the type is of numbers.
    pub(super) unsafe fn stretch_of<'a, T: Copy>(&self, index: usize, length: usize) -> &'a [T] {
        let end = index.checked_mul(length).and_then(|start| start.checked_add(length));
        let within = end.and_then(|end| end.checked_mul(size_of::<T>())).is_some_and(|end| end <= 4 * self.1);
        let start = self.0.cast::<T>();
        if !within || !start.is_aligned() {
            return &[];
        }
        // SAFETY: within the binding, and nothing writes to it (this function's contract).
        unsafe { std::slice::from_raw_parts(start.add(index * length), length) }
    }
}

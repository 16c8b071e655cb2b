//! Memory of temporaries, given back at the end of a scope; downloads of many tensors at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::tensor::{Inner, Tensor};
use super::{Engine, Shared};
use crate::error::{Error, Result};
use crate::tensor::Element;

/// The scopes that are open, on all threads.
#[derive(Default)]
pub(super) struct Scopes {
    /// How many there are: a tensor made where there is none costs one load.
    count: AtomicUsize,
    open: Mutex<Vec<Scope>>,
}

struct Scope {
    /// Tensors of other threads are not the scope's.
    #[cfg(not(target_arch = "wasm32"))]
    thread: std::thread::ThreadId,
    made: Vec<Weak<Inner>>,
}

impl Scope {
    fn is_here(&self) -> bool {
        #[cfg(not(target_arch = "wasm32"))]
        return self.thread == std::thread::current().id();
        #[cfg(target_arch = "wasm32")]
        true
    }
}

/// What a memory scope may give back: the tensors in it outlive the scope.
pub trait Kept {
    /// Calls `each` with every tensor in it.
    fn tensors(&self, each: &mut dyn FnMut(&Tensor));
}

impl Kept for Tensor {
    fn tensors(&self, each: &mut dyn FnMut(&Tensor)) {
        each(self);
    }
}

impl<T: Kept> Kept for Vec<T> {
    fn tensors(&self, each: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|kept| kept.tensors(each));
    }
}

impl<T: Kept, const N: usize> Kept for [T; N] {
    fn tensors(&self, each: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|kept| kept.tensors(each));
    }
}

impl<T: Kept> Kept for Option<T> {
    fn tensors(&self, each: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|kept| kept.tensors(each));
    }
}

impl<T: Kept, E> Kept for std::result::Result<T, E> {
    fn tensors(&self, each: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|kept| kept.tensors(each));
    }
}

impl<A: Kept, B: Kept> Kept for (A, B) {
    fn tensors(&self, each: &mut dyn FnMut(&Tensor)) {
        self.0.tensors(each);
        self.1.tensors(each);
    }
}

impl<A: Kept, B: Kept, C: Kept> Kept for (A, B, C) {
    fn tensors(&self, each: &mut dyn FnMut(&Tensor)) {
        self.0.tensors(each);
        self.1.tensors(each);
        self.2.tensors(each);
    }
}

macro_rules! without_tensors {
    ($($plain:ty),*) => {$(
        impl Kept for $plain {
            fn tensors(&self, _each: &mut dyn FnMut(&Tensor)) {}
        }
    )*};
}
without_tensors!((), bool, f32, f64, i32, u32, i64, u64, usize, String);

/// Ends the scope, whatever ends the work in it.
struct Guard<'a>(&'a Shared);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.end_scope(&[]);
    }
}

impl Shared {
    /// Notes a new tensor in the innermost scope of this thread.
    pub(super) fn note_made(&self, tensor: &Tensor) {
        if self.scopes.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut open = self.scopes.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scope) = open.iter_mut().rev().find(|scope| scope.is_here()) {
            scope.made.push(tensor.downgrade());
        }
    }

    fn begin_scope(&self) {
        self.scopes.count.fetch_add(1, Ordering::Relaxed);
        self.scopes.open.lock().unwrap_or_else(PoisonError::into_inner).push(Scope {
            #[cfg(not(target_arch = "wasm32"))]
            thread: std::thread::current().id(),
            made: Vec::new(),
        });
    }

    /// Ends the innermost scope of this thread. What is kept belongs to the scope around it, if there is one.
    fn end_scope(&self, kept: &[Arc<Inner>]) {
        let made = {
            let mut open = self.scopes.open.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(place) = open.iter().rposition(Scope::is_here) else { return };
            self.scopes.count.fetch_sub(1, Ordering::Relaxed);
            let made = open.remove(place).made;
            if let Some(outer) = open.iter_mut().rev().find(|scope| scope.is_here()) {
                outer.made.extend(kept.iter().map(Arc::downgrade));
            }
            made
        };
        let cause = Arc::new(Error::InvalidInput {
            what: "a tensor".to_owned(),
            reason: "it was a temporary of a memory scope that has ended (return it from the scope to keep it)"
                .to_owned(),
        });
        for tensor in made.iter().filter_map(Weak::upgrade) {
            if !kept.iter().any(|kept| Arc::ptr_eq(kept, &tensor)) {
                tensor.release(&cause);
            }
        }
    }
}

impl Engine {
    /// Runs work, and returns the memory of all tensors made in it to the pool at its end, but for those in its result: also of tensors
    /// that something still holds, which are an error to read from then on. What was recorded is submitted, and the memory is free for
    /// reuse as soon as it is done. Scopes may be nested. Tensors made on other threads are not part of it.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, 2.0, 3.0])?;
    /// let sum = engine.memory_scope(|| {
    ///     let squares = (&x * &x).eval()?;
    ///     squares.sum(&[], false).eval()
    /// })?;
    /// assert_eq!(sum.to_vec::<f32>()?, [14.0]);
    /// # Ok::<(), cantus::Error>(())
    /// ```
    pub fn memory_scope<T: Kept>(&self, work: impl FnOnce() -> T) -> T {
        let shared = self.shared();
        shared.begin_scope();
        let guard = Guard(shared);
        let result = work();
        std::mem::forget(guard);
        let mut kept = Vec::new();
        result.tensors(&mut |tensor| kept.push(tensor.inner.clone()));
        self.flush();
        shared.end_scope(&kept);
        result
    }

    /// The contents of many tensors, all transfers under way at once.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`], the first one.
    pub async fn to_vecs_async<T: Element>(&self, tensors: &[&Tensor]) -> Result<Vec<Vec<T>>> {
        // One submission for all that they wait for.
        self.flush();
        futures_util::future::try_join_all(tensors.iter().map(|tensor| tensor.to_vec_async::<T>())).await
    }

    /// [`Engine::to_vecs_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn to_vecs<T: Element>(&self, tensors: &[&Tensor]) -> Result<Vec<Vec<T>>> {
        pollster::block_on(self.to_vecs_async(tensors))
    }
}

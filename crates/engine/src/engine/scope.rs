//! Memory of temporaries, given back at the end of a scope; downloads of many tensors at once. A scope is part of `context` and follows a future over its
//! polls. It frees memory, not handles: a handle that outlives it returns an error when read (`Place::released`). Work that was recorded keeps the memory
//! until it is done.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::context::{self, Inside};
use super::tensor::{Inner, Tensor};
use super::{Engine, Shared};
use crate::error::{Error, Result};
use crate::tensor::Element;

/// The tensors made in a memory scope that has not ended.
#[derive(Default)]
pub(super) struct Scope {
    made: Mutex<Vec<Weak<Inner>>>,
}

impl Scope {
    fn made(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Inner>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases what was made in it and is not kept.
    fn end(&self, kept: &[Arc<Inner>]) {
        let made = std::mem::take(&mut *self.made());
        let cause = Arc::new(Error::state(
            "a tensor",
            "it was a temporary of a memory scope that has ended (return it from the scope to keep it)",
        ));
        for tensor in made.iter().filter_map(Weak::upgrade) {
            if !kept.iter().any(|kept| Arc::ptr_eq(kept, &tensor)) {
                tensor.tracker.release(&cause);
            }
        }
    }
}

/// Memory that a scope may free: the tensors in it outlive the scope.
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

/// Ends the scope, whatever ends the work in it: a panic, or the drop of its future.
struct Ending<'a> {
    engine: &'a Engine,
    scope: Arc<Scope>,
}

impl Ending<'_> {
    /// Ends it with a result. The tensors in the result then belong to the enclosing scope, if there is one.
    fn keep<T: Kept>(self, result: T) -> T {
        let mut kept = Vec::new();
        result.tensors(&mut |tensor| kept.push(tensor.inner.clone()));
        self.engine.flush();
        self.scope.end(&kept);
        if let Some(outer) = self.engine.shared().current_scope() {
            outer.made().extend(kept.iter().map(Arc::downgrade));
        }
        result
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.scope.end(&[]);
    }
}

impl Shared {
    /// Notes a new tensor in the innermost scope that the work belongs to.
    pub(super) fn note_made(&self, tensor: &Tensor) {
        if let Some(scope) = self.current_scope() {
            scope.made().push(tensor.downgrade());
        }
    }
}

impl Engine {
    /// Runs work, then frees every tensor that it created except those it returns. Handles that outlive the scope return an error when
    /// read. Work recorded so far is submitted, and the memory is reused as soon as it is done. Scopes may be nested. Tensors made on other
    /// threads are not part of it.
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
        let ending = Ending { engine: self, scope: Arc::default() };
        let result = {
            let _entered = context::enter(self.shared(), &Inside::Scope(ending.scope.clone()));
            work()
        };
        ending.keep(result)
    }

    /// [`Engine::memory_scope`] of a future. The scope belongs to the future, on whichever threads it is polled: what runs between two polls
    /// is not part of it, and neither are tasks that it spawns. Dropping the future ends the scope and frees what was created in it.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// # pollster::block_on(async {
    /// let x = engine.tensor_async(&[1.0_f32, 2.0, 3.0]).await?;
    /// let sum = engine.memory_scope_async(async {
    ///     let squares = (&x * &x).eval_async().await?;
    ///     squares.sum(&[], false).eval_async().await
    /// }).await?;
    /// assert_eq!(sum.to_vec_async::<f32>().await?, [14.0]);
    /// # Ok::<(), cantus::Error>(()) })?;
    /// # Ok::<(), cantus::Error>(())
    /// ```
    pub async fn memory_scope_async<T: Kept>(&self, work: impl Future<Output = T>) -> T {
        let ending = Ending { engine: self, scope: Arc::default() };
        let result = context::within(self.shared(), Inside::Scope(ending.scope.clone()), work).await;
        ending.keep(result)
    }

    /// Returns the contents of many tensors, all transfers under way at once.
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
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let (a, b) = (engine.tensor(&[1_u32])?, engine.tensor(&[2_u32, 3])?);
    /// assert_eq!(engine.to_vecs::<u32>(&[&a, &b])?, [vec![1], vec![2, 3]]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn to_vecs<T: Element>(&self, tensors: &[&Tensor]) -> Result<Vec<Vec<T>>> {
        crate::engine::blocking::block_on(self.to_vecs_async(tensors))
    }
}

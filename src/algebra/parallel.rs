//! Tasks side by side where there are threads.

#[cfg(all(feature = "cpu", not(target_arch = "wasm32")))]
use rayon::prelude::*;

/// The results of `count` tasks, in their order.
#[cfg(all(feature = "cpu", not(target_arch = "wasm32")))]
pub(super) fn map<T: Send>(count: usize, task: impl Fn(usize) -> T + Send + Sync) -> Vec<T> {
    if count < 2 {
        return (0..count).map(task).collect();
    }
    (0..count).into_par_iter().with_max_len(1).map(task).collect()
}

/// The results of `count` tasks, in their order.
#[cfg(not(all(feature = "cpu", not(target_arch = "wasm32"))))]
pub(super) fn map<T: Send>(count: usize, task: impl Fn(usize) -> T + Send + Sync) -> Vec<T> {
    (0..count).map(task).collect()
}

/// Calls `task` with each stretch of `length` and its number.
#[cfg(all(feature = "cpu", not(target_arch = "wasm32")))]
pub(super) fn for_chunks<T: Send>(values: &mut [T], length: usize, task: impl Fn(usize, &mut [T]) + Send + Sync) {
    if values.len() <= length {
        if !values.is_empty() {
            task(0, values);
        }
        return;
    }
    values.par_chunks_mut(length).enumerate().for_each(|(place, chunk)| task(place, chunk));
}

/// Calls `task` with each stretch of `length` and its number.
#[cfg(not(all(feature = "cpu", not(target_arch = "wasm32"))))]
pub(super) fn for_chunks<T: Send>(values: &mut [T], length: usize, task: impl Fn(usize, &mut [T]) + Send + Sync) {
    for (place, chunk) in values.chunks_mut(length).enumerate() {
        task(place, chunk);
    }
}

/// Threads that work side by side.
pub(super) fn threads() -> usize {
    #[cfg(all(feature = "cpu", not(target_arch = "wasm32")))]
    {
        rayon::current_num_threads()
    }
    #[cfg(not(all(feature = "cpu", not(target_arch = "wasm32"))))]
    {
        1
    }
}

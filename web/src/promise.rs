//! Promises that end. A panic leaves its future where it is, and what waits for that one waits for ever: everything that is pending is rejected then,
//! and so is what is asked for later.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::task::Poll;

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

thread_local! {
    /// The functions that reject pending promises, by number.
    static PENDING: RefCell<BTreeMap<u64, Function>> = const { RefCell::new(BTreeMap::new()) };
    static NEXT: Cell<u64> = const { Cell::new(0) };
    /// True if a future is being polled.
    static IS_POLLING: Cell<bool> = const { Cell::new(false) };
    static FAULT: RefCell<Option<JsValue>> = const { RefCell::new(None) };
}

/// A promise of what a future gives.
pub(crate) fn promise(future: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Promise {
    if let Some(fault) = FAULT.with_borrow(Clone::clone) {
        return Promise::reject(&fault);
    }
    let mut future = Some(future);
    Promise::new(&mut |resolve, reject| {
        let Some(future) = future.take() else { return };
        let number = NEXT.replace(NEXT.get() + 1);
        PENDING.with_borrow_mut(|pending| pending.insert(number, reject.clone()));
        spawn_local(async move {
            let mut future = pin!(future);
            let outcome = std::future::poll_fn(|context| {
                if FAULT.with_borrow(Option::is_some) {
                    return Poll::Pending;
                }
                IS_POLLING.set(true);
                let outcome = future.as_mut().poll(context);
                IS_POLLING.set(false);
                outcome
            });
            let outcome = outcome.await;
            PENDING.with_borrow_mut(|pending| pending.remove(&number));
            // What settles a promise throws nothing.
            let _ = match outcome {
                Ok(value) => resolve.call1(&JsValue::UNDEFINED, &value),
                Err(error) => reject.call1(&JsValue::UNDEFINED, &error),
            };
        });
    })
}

/// After a panic: where a future was at it, nothing that is pending can be relied on.
pub(crate) fn fail(fault: &JsValue) {
    if !IS_POLLING.get() {
        return;
    }
    FAULT.set(Some(fault.clone()));
    let pending = PENDING.with(|pending| pending.try_borrow_mut().map(|mut all| std::mem::take(&mut *all)));
    for reject in pending.unwrap_or_default().into_values() {
        let _ = reject.call1(&JsValue::UNDEFINED, fault);
    }
}

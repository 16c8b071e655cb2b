//! wgpu's errors: error scopes, what reaches a device's health by callback, and their translation into [`Error`].
//!
//! Scopes belong to a thread and are popped in order, before anything is awaited; what is awaited is the popped future.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::error::Error;
use crate::health::Health;
use cantus_base::listed::Listed;

#[cfg(not(target_arch = "wasm32"))]
type ErrorFuture = Pin<Box<dyn Future<Output = Option<wgpu::Error>> + Send>>;
#[cfg(target_arch = "wasm32")]
type ErrorFuture = Pin<Box<dyn Future<Output = Option<wgpu::Error>>>>;

/// The three error scopes, open on this thread.
#[must_use = "errors within are lost unless the scopes are closed"]
pub(super) struct Scopes {
    internal: wgpu::ErrorScopeGuard,
    validation: wgpu::ErrorScopeGuard,
    memory: wgpu::ErrorScopeGuard,
}

impl Scopes {
    pub(super) fn open(device: &wgpu::Device) -> Self {
        let internal = device.push_error_scope(wgpu::ErrorFilter::Internal);
        let validation = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let memory = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        Self { internal, validation, memory }
    }

    /// Closes them in order. What they caught comes out of [`Caught::first`].
    pub(super) fn close(self) -> Caught {
        let Self { internal, validation, memory } = self;
        Caught([Box::pin(memory.pop()), Box::pin(validation.pop()), Box::pin(internal.pop())])
    }
}

/// The errors of closed scopes, once the device tells: at once off the web, by promise on it.
#[must_use = "errors are lost unless awaited"]
pub(super) struct Caught([ErrorFuture; 3]);

impl Caught {
    /// The most telling error: out of memory, validation, internal.
    pub(super) async fn first(self) -> Option<wgpu::Error> {
        let mut first = None;
        for error in self.0 {
            let error = error.await;
            first = first.or(error);
        }
        first
    }

    /// As [`Caught::first`] for a caller that cannot wait: gives itself back while the device has not told.
    #[cfg(feature = "wgsl")]
    pub(super) fn now(mut self) -> Result<Option<wgpu::Error>, Self> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut first = None;
        for index in 0..self.0.len() {
            match self.0[index].as_mut().poll(&mut context) {
                std::task::Poll::Ready(error) => {
                    first = first.or(error);
                    self.0[index] = Box::pin(std::future::ready(None));
                }
                std::task::Poll::Pending => {
                    if let Some(error) = first {
                        return Ok(Some(error));
                    }
                    return Err(self);
                }
            }
        }
        Ok(first)
    }
}

/// Takes over the error callbacks of a device that is our own, so that nothing panics.
pub(super) fn attach(health: &Arc<Health>, device: &wgpu::Device) {
    let own = health.clone();
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        let message = one_line(&error);
        tracing::error!(device = %own.device, %message, "wgpu reported an error outside of any call");
        own.complain(message);
    }));
    let own = health.clone();
    device.set_device_lost_callback(move |reason, message| {
        let what = match reason {
            wgpu::DeviceLostReason::Destroyed => "it was destroyed",
            _ => "the driver reported it lost",
        };
        let message = message.trim();
        own.lose(&if message.is_empty() { what.to_owned() } else { format!("{what}: {message}") });
    });
}

/// The errors of a device's calls.
pub(super) trait Errors {
    /// The error for something that wgpu refused. `bytes` is what was asked for when memory was the matter.
    fn wgpu_error(&self, error: &wgpu::Error, action: &str, what: &str, bytes: u64) -> Error;
}

impl Errors for Health {
    fn wgpu_error(&self, error: &wgpu::Error, action: &str, what: &str, bytes: u64) -> Error {
        if self.is_lost() {
            return self.lost_error();
        }
        match error {
            wgpu::Error::OutOfMemory { .. } => {
                Error::OutOfMemory { device: self.device.clone(), what: what.to_owned(), bytes }
            }
            _ => Error::Device { device: self.device.clone(), action: action.to_owned(), message: one_line(error) },
        }
    }
}

/// wgpu's report on one line: its causes, outermost first.
pub(super) fn one_line(error: &wgpu::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).filter(|line| !matches!(*line, "" | "Validation Error" | "Caused by:"));
    lines.listed().join(": ")
}

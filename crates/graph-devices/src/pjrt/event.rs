//! Points that a device reaches, and waiting for them.

use std::sync::Arc;

use super::abi::{Call, Fault, Number, One};
use super::plugin::Owned;
use crate::wait::Awaited;

/// A point that the device reaches.
pub(super) struct Event(pub(super) Arc<Owned>);

impl Awaited for Event {
    type Fault = Fault;

    const ENDS: bool = false;

    fn passed(&self) -> Result<bool, Fault> {
        let plugin = self.0.plugin;
        let ready = plugin.call(Call::EventIsReady, Number { object: self.0.object, number: 0 })?;
        // A bool: its first byte.
        if ready.number & 0xff == 0 {
            return Ok(false);
        }
        plugin.call(Call::EventError, One { object: self.0.object }).map(|_| true)
    }

    fn block(&self) -> Result<(), Fault> {
        self.0.plugin.call(Call::EventAwait, One { object: self.0.object }).map(|_| ())
    }
}

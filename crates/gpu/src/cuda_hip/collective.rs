//! Sums over devices by the vendor's library (NCCL, RCCL, which has NCCL's names): each device puts its part into its own stream.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use super::driver::Driver;
use super::library::{self, Address, CollectiveNames, CollectiveTable, Handle};
use super::platform::{Fault, FaultKind};
use super::vendor::CollectiveLibrary;
use cantus_base::listed::Listed;

pub(crate) const FUNCTIONS: CollectiveNames = CollectiveNames {
    init_all: "ncclCommInitAll",
    destroy: "ncclCommDestroy",
    begin: "ncclGroupStart",
    end: "ncclGroupEnd",
    all_reduce: "ncclAllReduce",
};
const FLOAT32: c_int = 7;
const SUM: c_int = 0;

/// Devices that add up together.
pub(super) struct Ring {
    table: CollectiveTable,
    members: Vec<(Handle, Arc<Driver>)>,
}

// SAFETY: handles are names; calls for them are ordered by the devices' locks.
unsafe impl Send for Ring {}
// SAFETY: `&Ring` starts a sum only under the locks of all its devices.
unsafe impl Sync for Ring {}

impl Drop for Ring {
    fn drop(&mut self) {
        for (handle, driver) in &self.members {
            if let Ok(_current) = driver.enter() {
                // SAFETY: made by `open`, destroyed once. The library waits for what it has under way.
                unsafe { (self.table.destroy)(*handle) };
            }
        }
    }
}

/// The last devices that added up with this one before all others, or why the library is not there.
#[derive(Default)]
pub(super) struct Rings(Mutex<Option<Arc<Ring>>>);

impl Rings {
    /// Returns the communicator of these devices: the last one, or a new one.
    pub(super) fn of(&self, library: &CollectiveLibrary, drivers: &[&Arc<Driver>]) -> Result<Arc<Ring>, String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match known.as_ref().filter(|ring| ring.is_of(drivers)) {
            Some(ring) => ring.clone(),
            None => known.insert(Arc::new(Ring::open(library, drivers)?)).clone(),
        })
    }
}

impl Ring {
    fn open(library: &CollectiveLibrary, drivers: &[&Arc<Driver>]) -> Result<Self, String> {
        let loaded = library::open(library.variable, library.libraries, library.remedy)?;
        let table = CollectiveTable::of(loaded, &FUNCTIONS)
            .map_err(|name| format!("the library has no {name}: another version is needed"))?;
        let numbers: Vec<c_int> = drivers.iter().map(|driver| driver.ordinal()).listed();
        let count = c_int::try_from(numbers.len()).map_err(|_| "there are too many devices".to_owned())?;
        let mut handles: Vec<Handle> = vec![std::ptr::null_mut(); numbers.len()];
        let Some(first) = drivers.first() else { return Err("there is no device".to_owned()) };
        // The call makes one device after the other current, and may leave one so.
        let before = first.platform.current().map_err(|fault| fault.message)?;
        // SAFETY: both arrays have a place for each device.
        let code = unsafe { (table.init_all)(handles.as_mut_ptr(), count, numbers.as_ptr()) };
        first.platform.make_current(before).map_err(|fault| fault.message)?;
        check(code, FUNCTIONS.init_all).map_err(|fault| fault.message)?;
        let drivers = drivers.iter().map(|&driver| driver.clone());
        Ok(Self { table, members: handles.into_iter().zip(drivers).listed() })
    }

    fn is_of(&self, drivers: &[&Arc<Driver>]) -> bool {
        let members = self.members.iter().map(|(_, driver)| driver);
        self.members.len() == drivers.len() && members.zip(drivers).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// Puts the sum into the streams of all devices.
    ///
    /// # Safety
    /// The addresses are of `count` float32 each, of the device of that place; they live until the streams have passed, and the devices' locks are held.
    pub(super) unsafe fn start(&self, addresses: &[(Address, Address)], count: usize) -> Result<(), Fault> {
        // SAFETY: it takes no arguments.
        check(unsafe { (self.table.begin)() }, FUNCTIONS.begin)?;
        let mut outcome = Ok(());
        for ((handle, driver), (from, into)) in self.members.iter().zip(addresses) {
            let (from, into, stream) = (*from as *const _, *into as *mut _, driver.stream().0);
            let put = driver.enter().and_then(|_current| {
                // SAFETY: both addresses have `count` float32 on the device of that place (this function's contract), whose handle and
                // stream these are.
                let code = unsafe { (self.table.all_reduce)(from, into, count, FLOAT32, SUM, *handle, stream) };
                check(code, FUNCTIONS.all_reduce)
            });
            outcome = outcome.and(put);
        }
        // SAFETY: what was begun is ended, whatever became of it.
        outcome.and(check(unsafe { (self.table.end)() }, FUNCTIONS.end))
    }
}

fn check(code: c_int, call: &str) -> Result<(), Fault> {
    let meaning = match code {
        0 => return Ok(()),
        1 => "a call to the driver failed",
        2 => "a call to the system failed",
        3 => "an internal error",
        4 => "an invalid argument",
        5 => "an invalid use: two of the devices may be one",
        6 => "another process is gone",
        _ => "see the library's list",
    };
    Err(Fault { kind: FaultKind::Call, message: format!("{call}: {meaning} (result {code})") })
}

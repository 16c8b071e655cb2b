//! Sums over devices by the vendor's library (NCCL, RCCL, which has NCCL's names): each device puts its part into its own stream.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use super::driver::Driver;
use super::library::{self, Address, CollectiveNames, CollectiveTable, Handle};
use super::platform::{Fault, FaultKind};
use super::shared::{Locked, Shared};
use crate::backend::checks::Owner as _;
use crate::backend::{Buffer, SumPart};
use crate::error::Result;

/// The library, as a vendor has it.
#[derive(Debug)]
pub(in crate::backend) struct CollectiveLibrary {
    /// Its name for people.
    pub(in crate::backend) name: &'static str,
    /// Files, first choice first.
    pub(in crate::backend) libraries: &'static [&'static str],
    /// The variable that names the file.
    pub(in crate::backend) variable: &'static str,
    /// What to do where it is missing.
    pub(in crate::backend) remedy: &'static str,
}

pub(in crate::backend) const FUNCTIONS: CollectiveNames = CollectiveNames {
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
// SAFETY: as above.
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

impl Ring {
    fn open(library: &CollectiveLibrary, drivers: &[&Arc<Driver>]) -> std::result::Result<Self, String> {
        let loaded = library::open(library.variable, library.libraries, library.remedy)?;
        let table = CollectiveTable::of(loaded, &FUNCTIONS)
            .map_err(|name| format!("the library has no {name}: another version is needed"))?;
        let numbers: Vec<c_int> = drivers.iter().map(|driver| driver.ordinal()).collect();
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
        Ok(Self { table, members: handles.into_iter().zip(drivers).collect() })
    }

    fn is_of(&self, drivers: &[&Arc<Driver>]) -> bool {
        let members = self.members.iter().map(|(_, driver)| driver);
        self.members.len() == drivers.len() && members.zip(drivers).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// Puts the sum into the streams of all devices.
    ///
    /// # Safety
    /// The addresses are of `count` float32 each, of the device of that place; they live until the streams have passed, and the devices' locks are held.
    unsafe fn start(&self, addresses: &[(Address, Address)], count: usize) -> std::result::Result<(), Fault> {
        // SAFETY: it takes no arguments.
        check(unsafe { (self.table.begin)() }, FUNCTIONS.begin)?;
        let mut outcome = Ok(());
        for ((handle, driver), (from, into)) in self.members.iter().zip(addresses) {
            let _current = driver.enter()?;
            let (from, into, stream) = (*from as *const _, *into as *mut _, driver.stream().0);
            // SAFETY: the caller's promise; the handle is the device's.
            let code = unsafe { (self.table.all_reduce)(from, into, count, FLOAT32, SUM, *handle, stream) };
            outcome = outcome.and(check(code, FUNCTIONS.all_reduce));
        }
        // SAFETY: what was begun is ended, whatever became of it.
        outcome.and(check(unsafe { (self.table.end)() }, FUNCTIONS.end))
    }
}

impl Shared {
    /// Sums over these devices, of which this is the first: what each adds, and where its sum goes. `None` where the library is not there or
    /// fails.
    pub(super) async fn sum_over(
        self: &Arc<Self>,
        members: Vec<(Arc<Self>, SumPart)>,
        count: usize,
    ) -> Option<Result<()>> {
        let library = self.driver.platform.vendor.collectives.filter(|_| !self.without_native)?;
        if self.takeovers.is_refused(library.name) {
            return None;
        }
        let started = {
            // Whoever adds up takes the locks in one order.
            let mut order: Vec<&Arc<Self>> = members.iter().map(|(shared, _)| shared).collect();
            order.sort_by_key(|shared| Arc::as_ptr(shared));
            if order.windows(2).any(|pair| Arc::ptr_eq(pair[0], pair[1])) {
                return None;
            }
            let mut locks: Vec<(&Arc<Self>, Locked<'_>)> =
                order.into_iter().map(|shared| (shared, shared.lock())).collect();
            self.start_sum(library, &members, &mut locks, count)
        };
        if let Err(reason) = started {
            self.takeovers.refuse(library.name, &reason);
            return None;
        }
        self.takeovers.ran(library.name);
        for (shared, _) in &members {
            if let Err(error) = shared.finish().await {
                return Some(Err(error));
            }
        }
        Some(Ok(()))
    }

    fn start_sum(
        &self,
        library: &CollectiveLibrary,
        members: &[(Arc<Self>, SumPart)],
        locks: &mut [(&Arc<Self>, Locked<'_>)],
        count: usize,
    ) -> std::result::Result<(), String> {
        let drivers: Vec<&Arc<Driver>> = members.iter().map(|(shared, _)| &shared.driver).collect();
        let mut known = self.rings.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ring = match known.as_ref().filter(|ring| ring.is_of(&drivers)) {
            Some(ring) => ring.clone(),
            None => known.insert(Arc::new(Ring::open(library, &drivers)?)).clone(),
        };
        let bytes = (count as u64).saturating_mul(4);
        let address = |shared: &Self, buffer: &dyn Buffer| {
            let buffer = shared.own_buffer(buffer, "a sum over devices").map_err(|error| error.to_string())?;
            if buffer.padded() < bytes { Err("a part is too small".to_owned()) } else { Ok(buffer.address()) }
        };
        let addresses =
            members.iter().map(|(shared, part)| Ok((address(shared, &*part.from)?, address(shared, &*part.into)?)));
        let addresses = addresses.collect::<std::result::Result<Vec<_>, String>>()?;
        locks.iter_mut().for_each(|(_, state)| {
            state.enqueue();
        });
        // SAFETY: every buffer was checked; the caller keeps them until all devices have finished, and has their locks.
        let started = unsafe { ring.start(&addresses, count) };
        for (shared, state) in locks.iter_mut() {
            let _current = shared.driver.enter().map_err(|fault| fault.message)?;
            state.mark(&shared.driver).map_err(|fault| fault.message)?;
        }
        started.map_err(|fault| fault.message)
    }
}

fn check(code: c_int, call: &str) -> std::result::Result<(), Fault> {
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

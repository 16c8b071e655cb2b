//! The driver, initialised: which devices it has, what is current on a thread, and what its codes mean. Loaded once for a process and vendor. `Entered`
//! restores what was current before, since an app may use the driver on the same thread. A process that was forked after initialising gets a reason and no
//! devices: drivers do not survive a fork.

use std::ffi::c_int;

use super::library::{Code, CurrentTable, Functions, Handle, meaning};
use super::vendor::Vendor;
use crate::backend::{Identity, PciAddress};
use cantus_base::listed::Listed;

/// The driver said no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(super) kind: FaultKind,
    pub(super) message: String,
}

/// The consequence of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// The device's memory is used up.
    OutOfMemory,
    /// The context is unusable from now on.
    Lost,
    /// This call alone failed.
    Call,
}

/// The code of initialising in a process that was forked after it, "not initialised".
const FORKED: Code = 3;
pub(super) const SUCCESS: Code = 0;
const OUT_OF_MEMORY: Code = 2;

impl Fault {
    fn of(code: Code, call: &str) -> Self {
        let kind = match code {
            OUT_OF_MEMORY => FaultKind::OutOfMemory,
            // What the vendors' documents call sticky: every later call in the context fails.
            4 | 46 | 214 | 700 | 702 | 709 | 710 | 714..=719 => FaultKind::Lost,
            _ => FaultKind::Call,
        };
        Self { kind, message: format!("{call}: {} (error {code})", meaning(code)) }
    }
}

/// Turns a code into a result.
pub(super) fn check(code: Code, call: &str) -> Result<(), Fault> {
    if code == SUCCESS { Ok(()) } else { Err(Fault::of(code, call)) }
}

/// The device or context that is current on a thread: CUDA has contexts there, HIP a device's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Current {
    Context(Handle),
    Number(c_int),
}

/// A device is current on this thread. What was current before, an app's own perhaps, is so again when this goes.
#[must_use]
pub(super) struct Entered<'a> {
    pub(super) platform: &'a Platform,
    /// The one to restore.
    pub(super) before: Option<Current>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // It was current before; if it is gone by now, none is.
            let _ = self.platform.make_current(before);
        }
    }
}

/// The driver, initialised.
pub(crate) struct Platform {
    pub(super) vendor: &'static Vendor,
    pub(super) functions: Functions,
    pub(super) version: i32,
}

impl Platform {
    /// Loads and initialises the driver, or says why not.
    pub(super) fn new(vendor: &'static Vendor) -> Result<Self, String> {
        let functions = Functions::load(
            &vendor.functions,
            super::library::open(vendor.library_variable, vendor.libraries, vendor.library_remedy)?,
        )?;
        let mut version = 0;
        // SAFETY: the pointer is valid; the driver allows this call before initialisation.
        check(unsafe { (functions.version)(&raw mut version) }, vendor.functions.plain.version)
            .map_err(|fault| fault.message)?;
        let (oldest, words) = vendor.oldest_driver;
        if version < oldest {
            return Err(format!("the driver is too old: it is of version {version}, and {words} is needed"));
        }
        // SAFETY: no argument but the flags, which must be 0.
        let code = unsafe { (functions.init)(0) };
        if matches!(code, 100 | 101) {
            return Err("the driver is installed, but has no device".to_owned());
        }
        check(code, vendor.functions.plain.init).map_err(|fault| match code {
            // Only there: the driver's own threads are not in the new process.
            FORKED => format!(
                "{}: a process forked from one that used the driver cannot use it (start it anew; in Python, multiprocessing by \"spawn\")",
                fault.message
            ),
            _ => fault.message,
        })?;
        Ok(Self { vendor, functions, version })
    }

    /// The number of devices.
    pub(super) fn count(&self) -> Result<i32, Fault> {
        let mut count = 0;
        // SAFETY: the pointer is valid.
        let code = unsafe { (self.functions.device_count)(&raw mut count) };
        check(code, self.vendor.functions.plain.device_count)?;
        Ok(count)
    }

    /// The driver's handle of a device.
    pub(super) fn device(&self, index: i32) -> Result<i32, Fault> {
        let mut device = 0;
        // SAFETY: the pointer is valid.
        let code = unsafe { (self.functions.device_get)(&raw mut device, index) };
        check(code, self.vendor.functions.plain.device_get)?;
        Ok(device)
    }

    /// A device's name.
    pub(super) fn name(&self, device: i32) -> Result<String, Fault> {
        let mut name = [0_u8; 256];
        // SAFETY: the driver writes at most this many bytes, the last of them 0.
        let code = unsafe { (self.functions.device_name)(name.as_mut_ptr().cast(), 255, device) };
        check(code, self.vendor.functions.plain.device_name)?;
        let bytes: Vec<u8> = name.into_iter().take_while(|&byte| byte != 0).listed();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A device's memory in bytes.
    pub(super) fn memory(&self, device: i32) -> Result<u64, Fault> {
        let mut bytes = 0_usize;
        // SAFETY: the pointer is valid.
        let code = unsafe { (self.functions.device_memory)(&raw mut bytes, device) };
        check(code, self.vendor.functions.plain.device_memory)?;
        Ok(bytes as u64)
    }

    /// An attribute of a device; `None` when the driver does not know it.
    pub(super) fn attribute(&self, attribute: i32, device: i32) -> Option<i32> {
        let mut value = 0;
        // SAFETY: the pointer is valid; an unknown attribute is refused.
        let code = unsafe { (self.functions.device_attribute)(&raw mut value, attribute, device) };
        (code == SUCCESS).then_some(value)
    }
}

impl Platform {
    /// Returns the one that is current on this thread.
    pub(super) fn current(&self) -> Result<Current, Fault> {
        match &self.functions.current {
            CurrentTable::Context(table) => {
                let mut context: Handle = std::ptr::null_mut();
                // SAFETY: the pointer is valid.
                check(unsafe { (table.get)(&raw mut context) }, "asking for the current context")?;
                Ok(Current::Context(context))
            }
            CurrentTable::Number(table) => {
                let mut number = 0;
                // SAFETY: the pointer is valid.
                check(unsafe { (table.get)(&raw mut number) }, "asking for the current device")?;
                Ok(Current::Number(number))
            }
        }
    }

    pub(super) fn make_current(&self, wanted: Current) -> Result<(), Fault> {
        let code = match (&self.functions.current, wanted) {
            // SAFETY: the context lives, or is null, or the driver refuses it.
            (CurrentTable::Context(table), Current::Context(context)) => unsafe { (table.set)(context) },
            // SAFETY: the driver refuses a number without a device.
            (CurrentTable::Number(table), Current::Number(number)) => unsafe { (table.set)(number) },
            // A platform has one of the two ways.
            _ => SUCCESS,
        };
        check(code, "making the device current")
    }

    /// Returns the identity of a device's hardware, as far as the driver reports it.
    pub(super) fn identity(&self, device: i32) -> Identity {
        let mut identity = Identity::default();
        let Some(table) = &self.functions.identity else { return identity };
        let (mut uuid, mut place) = ([0_u8; 16], [0_u8; 64]);
        // SAFETY: the pointers are valid; the driver writes 16 bytes, and at most as many as it is told.
        let (known, placed) =
            unsafe { ((table.uuid)(&raw mut uuid, device), (table.pci)(place.as_mut_ptr().cast(), 63, device)) };
        let text: Vec<u8> = place.into_iter().take_while(|&byte| byte != 0).listed();
        let text = String::from_utf8_lossy(&text).into_owned();
        identity.uuid = (known == SUCCESS).then_some(uuid);
        identity.pci = (placed == SUCCESS).then(|| PciAddress::parse(&text)).flatten();
        identity
    }

    /// The vendor's name for the device's architecture (`gfx90a:sramecc+`), where a function tells. It is part of a structure whose form
    /// differs between versions; the name itself has one form.
    pub(super) fn architecture(&self, device: i32) -> Option<String> {
        const BYTES: usize = 16 << 10;
        let table = self.functions.properties.as_ref()?;
        // Several times as large as the structure of any version, and aligned as it is.
        let mut properties = vec![0_u64; BYTES / 8];
        // SAFETY: the pointer is valid for more bytes than the driver writes.
        let code = unsafe { (table.get)(properties.as_mut_ptr().cast(), device) };
        if code != SUCCESS {
            return None;
        }
        let bytes: Vec<u8> = properties.iter().flat_map(|word| word.to_ne_bytes()).listed();
        let start = bytes.windows(4).position(|part| part.starts_with(b"gfx") && part[3].is_ascii_hexdigit())?;
        let name =
            bytes.get(start..)?.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || b":+-".contains(&byte));
        String::from_utf8(name.copied().listed()).ok()
    }
}

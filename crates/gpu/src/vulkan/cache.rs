//! The driver's pipeline cache, and its file between runs.
//!
//! A file counts only when all of it is right: our header with its checksum, and Vulkan's header naming this driver and device.
//! Anything else is as if there were none, and is rewritten. Writing goes by a file of its own that is renamed, and takes in what
//! another process wrote meanwhile. A folder that cannot be written costs a warning, no more.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::prelude::VkResult;
use ash::vk;

use super::adapter::Identity;
use super::objects::{Owned, Raw};
use crate::files;
use crate::fnv::fnv;
use crate::private_folder;

const MAGIC: [u8; 8] = *b"CANTUSVK";
const VERSION: u32 = 1;
/// Magic, version, driver's version, length, checksum.
const HEADER: usize = 8 + 4 + 4 + 8 + 8;
/// A larger file is not ours.
const LARGEST: u64 = 256 << 20;

/// The cache that pipelines are made with.
pub(super) struct PipelineCache {
    raw: Arc<Raw>,
    cache: Owned<vk::PipelineCache>,
    identity: Identity,
    file: Option<PathBuf>,
    /// Pipelines were made since it was last written.
    changed: AtomicBool,
    warned: AtomicBool,
}

impl PipelineCache {
    /// Opens the cache, with what its file in `folder` holds.
    pub(super) fn open(raw: &Arc<Raw>, identity: Identity, folder: Option<&Path>) -> VkResult<Self> {
        let folder =
            private_folder::open(folder.map(|folder| folder.join("vulkan")), "compiled kernels are not cached");
        let file = folder.map(|folder| folder.join(file_name(&identity)));
        let data = file.as_deref().and_then(|file| read(file, &identity)).unwrap_or_default();
        let cache = match create(raw, &data) {
            Ok(cache) => cache,
            // A driver may still refuse what it wrote.
            Err(_) if !data.is_empty() => create(raw, &[])?,
            Err(error) => return Err(error),
        };
        let (changed, warned) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self { raw: raw.clone(), cache, identity, file, changed, warned })
    }

    pub(super) fn handle(&self) -> vk::PipelineCache {
        self.cache.handle
    }

    /// Notes that a pipeline was made.
    pub(super) fn note_new(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Writes the file if there is one and anything is new.
    pub(super) fn save(&self) {
        let Some(file) = &self.file else { return };
        if !self.changed.swap(false, Ordering::Relaxed) {
            return;
        }
        let written = self
            .data(file)
            .map_err(|error| error.to_string())
            .and_then(|data| write(file, &self.identity, &data).map_err(|error| error.to_string()));
        if let Err(reason) = written
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(file = %file.display(), reason, "the pipeline cache could not be written");
        }
    }

    /// Returns the driver's cache, merged with entries of the file that the driver lacks.
    fn data(&self, file: &Path) -> VkResult<Vec<u8>> {
        let device = &self.raw.device;
        let mut all = None;
        if let Some(data) = read(file, &self.identity)
            && let Ok(other) = create(&self.raw, &data)
        {
            // SAFETY: the caches are different ones, and `other` is used here only.
            unsafe { device.merge_pipeline_caches(other.handle, &[self.cache.handle]) }?;
            all = Some(other);
        }
        let cache = all.as_ref().map_or(self.cache.handle, |all| all.handle);
        // SAFETY: the cache lives.
        unsafe { device.get_pipeline_cache_data(cache) }
    }
}

fn create(raw: &Arc<Raw>, data: &[u8]) -> VkResult<Owned<vk::PipelineCache>> {
    let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
    // SAFETY: the data is what this driver wrote: header and checksum were checked.
    Ok(Owned::new(raw, unsafe { raw.device.create_pipeline_cache(&info, None) }?))
}

fn file_name(identity: &Identity) -> String {
    let uuid: String = identity.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("pipelines-{:08x}-{:08x}-{uuid}.bin", identity.vendor, identity.device)
}

/// The driver's data in a file, if all of it is right.
fn read(file: &Path, identity: &Identity) -> Option<Vec<u8>> {
    let bytes = std::fs::metadata(file).ok()?.len();
    if bytes > LARGEST {
        return None;
    }
    let data = unpack(&std::fs::read(file).ok()?, identity).map(<[u8]>::to_vec);
    if data.is_none() {
        tracing::info!(file = %file.display(), "the pipeline cache is damaged or from another driver; it is discarded");
    }
    data
}

fn unpack<'a>(bytes: &'a [u8], identity: &Identity) -> Option<&'a [u8]> {
    let word = |bytes: &[u8], at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let data = bytes.get(HEADER..)?;
    let ours = bytes.starts_with(&MAGIC)
        && word(bytes, 8)? == VERSION
        && word(bytes, 12)? == identity.driver
        && long(16)? == data.len() as u64
        && long(24)? == fnv(data);
    // Vulkan's own header: length, version, vendor, device, UUID.
    let theirs = word(data, 0)? >= 32
        && word(data, 4)? == 1
        && word(data, 8)? == identity.vendor
        && word(data, 12)? == identity.device
        && data.get(16..16 + vk::UUID_SIZE)? == identity.uuid;
    (ours && theirs).then_some(data)
}

/// A file of these data, and the data of a file, for a made-up device. For tests.
#[cfg(feature = "_test")]
#[doc(hidden)]
pub mod test {
    use super::{Identity, vk};

    const IDENTITY: Identity = Identity { vendor: 0x10005, device: 7, driver: 3, uuid: [9; vk::UUID_SIZE] };

    #[doc(hidden)]
    pub fn pack(data: &[u8]) -> Vec<u8> {
        super::pack(&IDENTITY, data)
    }

    #[doc(hidden)]
    pub fn unpack(file: &[u8]) -> Option<&[u8]> {
        super::unpack(file, &IDENTITY)
    }
}

fn pack(identity: &Identity, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + data.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(identity.driver.to_le_bytes());
    bytes.extend((data.len() as u64).to_le_bytes());
    bytes.extend(fnv(data).to_le_bytes());
    bytes.extend(data);
    bytes
}

fn write(file: &Path, identity: &Identity, data: &[u8]) -> std::io::Result<()> {
    files::write_cached(file, |file| file.write_all(&pack(identity, data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity = Identity { vendor: 0x10005, device: 7, driver: 3, uuid: [9; vk::UUID_SIZE] };

    fn driver_data() -> Vec<u8> {
        let mut data = Vec::new();
        for word in [32_u32, 1, IDENTITY.vendor, IDENTITY.device] {
            data.extend(word.to_le_bytes());
        }
        data.extend(IDENTITY.uuid);
        data.extend(b"what the driver keeps");
        data
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().expect("makes a folder");
        let file = folder.path().join("deeper").join(file_name(&IDENTITY));
        write(&file, &IDENTITY, &driver_data()).expect("writes");
        assert_eq!(read(&file, &IDENTITY), Some(driver_data()));
        // Nothing but the file is left.
        assert_eq!(std::fs::read_dir(file.parent().expect("has one")).expect("lists").count(), 1);
    }

    #[test]
    fn damage_anywhere_is_noticed() {
        let good = pack(&IDENTITY, &driver_data());
        assert!(unpack(&good, &IDENTITY).is_some());
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 0x10;
            assert_eq!(unpack(&bad, &IDENTITY), None, "byte {place}");
        }
        for length in 0..good.len() {
            assert_eq!(unpack(&good[..length], &IDENTITY), None, "cut to {length}");
        }
        assert_eq!(unpack(&[good.clone(), vec![0]].concat(), &IDENTITY), None);
    }

    #[test]
    fn another_driver_or_device_does_not_count() {
        let good = pack(&IDENTITY, &driver_data());
        let mut other_uuid = IDENTITY;
        other_uuid.uuid[3] = 0;
        for other in [
            Identity { vendor: 1, ..IDENTITY },
            Identity { device: 1, ..IDENTITY },
            Identity { driver: 1, ..IDENTITY },
            other_uuid,
        ] {
            assert_eq!(unpack(&good, &other), None);
        }
    }
}

//! Digests of what a source reads, by which a checkpoint knows it again. They find damage and mistakes, and are no defence against malice.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use crate::fnv::Fnv;

/// Returns what changes with a file: its length, the time of its last change, its number, and a digest. If it is too large to be digested whole, also the
/// time of its last change of status, which nobody can set back.
pub(super) fn told(mut file: &File) -> std::io::Result<String> {
    let found = file.metadata()?;
    let since = |at: std::io::Result<std::time::SystemTime>| at.ok()?.duration_since(std::time::UNIX_EPOCH).ok();
    let place = file.stream_position()?;
    let digest = digest(found.len(), WHOLE, |from, block| {
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(block)
    });
    file.seek(SeekFrom::Start(place))?;
    #[cfg(unix)]
    let own = {
        use std::os::unix::fs::MetadataExt as _;
        let status = (found.len() > WHOLE).then(|| (found.ctime(), found.ctime_nsec()));
        (found.ino(), status)
    };
    #[cfg(not(unix))]
    let own = since(found.created());
    Ok(format!("{} {:?} {own:?} {:016x}", found.len(), since(found.modified()), digest?))
}

/// Bytes up to which all of them are digested.
pub(super) const WHOLE: u64 = 1 << 30;

/// Bytes that are digested at a time.
const BLOCK: usize = 1 << 16;

/// Blocks of what is larger, evenly spread, the first and the last among them.
const BLOCKS: u64 = 1024;

/// Returns a digest of `length` bytes that `read` reads by place, or of some blocks of them if they are more than `whole`.
pub(super) fn digest(
    length: u64,
    whole: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> std::io::Result<()>,
) -> std::io::Result<u64> {
    let mut block = vec![0; BLOCK];
    let mut hash = Fnv::new().with(&length.to_le_bytes());
    let last = length.saturating_sub(BLOCK as u64);
    let blocks = if length > whole { BLOCKS } else { length.div_ceil(BLOCK as u64) };
    for number in 0..blocks {
        let from = if length > whole {
            (u128::from(last) * u128::from(number) / u128::from(BLOCKS - 1)) as u64
        } else {
            number * BLOCK as u64
        };
        let block = &mut block[..(length - from).min(BLOCK as u64) as usize];
        read(from, block)?;
        hash = hash.with_block(block);
    }
    Ok(hash.value())
}

#[cfg(test)]
mod tests {
    use super::digest;

    /// Every bit counts of what is digested whole; of what is larger the length, the ends and some blocks between.
    #[test]
    fn a_digest_finds_changes() {
        let of = |bytes: &[u8], whole: u64| {
            let mut read = Vec::new();
            let digest = digest(bytes.len() as u64, whole, |from, block| {
                block.copy_from_slice(&bytes[from as usize..][..block.len()]);
                read.push(from);
                Ok(())
            });
            (digest.expect("reads"), read)
        };
        let bytes: Vec<u8> = (0..300_007_u32).map(|at| (at.wrapping_mul(at) >> 3) as u8).collect();
        let (whole, read) = of(&bytes, 300_007);
        assert_eq!(read, [0, 65_536, 131_072, 196_608, 262_144]);
        for at in (0..bytes.len()).step_by(997).chain([bytes.len() - 1]) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            assert_ne!(of(&changed, 300_007).0, whole, "byte {at}");
        }
        let (sampled, read) = of(&bytes, 300_006);
        assert_eq!((read.len(), read[0], read[1023]), (1024, 0, 300_007 - 65_536));
        for at in [0, 150_000, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_ne!(of(&changed, 300_006).0, sampled);
        }
        assert_ne!(of(&bytes[..300_006], 300_005).0, sampled);
        assert!(of(&[], 10).1.is_empty());
    }
}

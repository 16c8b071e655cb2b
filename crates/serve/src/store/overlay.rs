//! A file under writes that stay in memory. A database that was not closed is mended when it is opened, and this lets it be opened, and read, where the
//! disk takes no writes.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;
use redb::backends::FileBackend;

const PAGE: u64 = 4096;

/// A file, and what was written over it.
#[derive(Debug)]
pub(super) struct Overlay {
    file: FileBackend,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    length: u64,
    /// Up to here the file's own bytes count; beyond are zeros.
    kept: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    /// Nothing is written yet.
    ///
    /// # Errors
    /// When the file's length cannot be read.
    pub fn new(file: FileBackend) -> Result<Self, Error> {
        let length = file.len()?;
        Ok(Self { file, written: Mutex::new(Written { length, kept: length, pages: BTreeMap::new() }) })
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the file, and zeros behind what is kept of it.
    fn below(&self, kept: u64, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let own = kept.saturating_sub(offset).min(out.len() as u64) as usize;
        let (own, rest) = out.split_at_mut(own);
        rest.fill(0);
        if own.is_empty() { Ok(()) } else { self.file.read(offset, own) }
    }
}

/// The parts of a range by pages: a page, the part of the page, and the part of the range.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let end = offset.saturating_add(length as u64);
    (offset / PAGE..end.div_ceil(PAGE)).map(move |page| {
        let (start, stop) = (offset.max(page * PAGE), end.min((page + 1) * PAGE));
        let within = (start - page * PAGE) as usize..(stop - page * PAGE) as usize;
        (page, within, (start - offset) as usize..(stop - offset) as usize)
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.lock().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let written = self.lock();
        if offset.saturating_add(out.len() as u64) > written.length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.below(written.kept, offset, out)?;
        for (page, within, own) in parts(offset, out.len()) {
            let held = written.pages.get(&page).and_then(|held| held.get(within));
            if let (Some(held), Some(out)) = (held, out.get_mut(own)) {
                out.copy_from_slice(held);
            }
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> Result<(), Error> {
        let mut written = self.lock();
        written.length = length;
        written.kept = written.kept.min(length);
        // What is beyond reads as zeros when it comes again.
        written.pages.retain(|page, _| page * PAGE < length);
        let cut = (length % PAGE) as usize;
        if let Some(rest) = written.pages.get_mut(&(length / PAGE)).and_then(|last| last.get_mut(cut..)) {
            rest.fill(0);
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "a page")]
    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut written = self.lock();
        for (page, within, own) in parts(offset, data.len()) {
            if !written.pages.contains_key(&page) {
                let mut bytes = vec![0; PAGE as usize];
                self.below(written.kept, page * PAGE, &mut bytes)?;
                written.pages.insert(page, bytes);
            }
            let held = written.pages.get_mut(&page).and_then(|held| held.get_mut(within));
            if let (Some(held), Some(data)) = (held, data.get(own)) {
                held.copy_from_slice(data);
            }
        }
        written.length = written.length.max(offset.saturating_add(data.len() as u64));
        Ok(())
    }

    fn close(&self) -> Result<(), Error> {
        self.file.close()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test waits, and takes little")]
mod tests {
    use super::*;

    /// The overlay reads as a vector that is written alike, and the file stays as it was.
    #[test]
    fn an_overlay_reads_as_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let before: Vec<u8> = (0..3 * PAGE + 100).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &before).unwrap();
        let overlay = Overlay::new(FileBackend::new(std::fs::File::open(&path).unwrap()).unwrap()).unwrap();
        let mut model = before.clone();
        // A generator of Lehmer's: the order is any, and the same each time.
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed * 48_271 % 0x7fff_ffff;
            seed % below
        };
        for turn in 0..2000_u64 {
            if turn % 50 == 7 {
                let length = random(8 * PAGE);
                overlay.set_len(length).unwrap();
                model.resize(length as usize, 0);
            } else if turn % 3 == 0 && !model.is_empty() {
                let at = random(model.len() as u64) as usize;
                let data = vec![turn as u8; (random(6000) as usize).min(model.len() - at)];
                overlay.write(at as u64, &data).unwrap();
                model[at..at + data.len()].copy_from_slice(&data);
            }
            assert_eq!(overlay.len().unwrap(), model.len() as u64);
            let at = random(model.len() as u64 + 1) as usize;
            let mut out = vec![1; (random(9000) as usize).min(model.len() - at)];
            overlay.read(at as u64, &mut out).unwrap();
            assert!(out == model[at..at + out.len()], "turn {turn}");
            assert!(overlay.read(at as u64, &mut vec![0; model.len() - at + 1]).is_err());
        }
        assert!(std::fs::read(&path).unwrap() == before);
    }
}

//! The source of each part of a linked text.

use std::ops::Range;
use std::sync::Arc;

/// A module's text, under the name that errors show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// A path, or `cantus::random` for a module of the library.
    pub file: Arc<str>,
    /// The author's text.
    pub text: Arc<str>,
}

/// A part of the linked text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    start: usize,
    end: usize,
    origin: usize,
    old_start: usize,
    old_end: usize,
}

/// The span table of a linked text: for each of its bytes, the author's file and bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins {
    files: Vec<Origin>,
    pieces: Vec<Piece>,
}

impl Origins {
    /// The files, the linked kernel's own first.
    #[must_use]
    pub fn files(&self) -> &[Origin] {
        &self.files
    }

    /// The author's file and bytes of a range of the linked text. A range over several files is cut at the end of its first one's part;
    /// `None` where nothing was linked from a file there.
    ///
    /// ```
    /// let linker = cantus_link::Linker::new().module("package::noise", "noise.wgsl", "fn hash(x: u32) -> u32 { return x; }");
    /// let linked = linker.link("a.wgsl", "import package::noise::hash;\nfn f() -> u32 { return hash(1u); }")?;
    /// let at = linked.text().find("fn hash").unwrap();
    /// let (origin, range) = linked.origins().of(at..at + 2).unwrap();
    /// assert_eq!((&*origin.file, range), ("noise.wgsl", 0..2));
    /// # Ok::<(), cantus_link::Error>(())
    /// ```
    #[must_use]
    pub fn of(&self, range: Range<usize>) -> Option<(&Origin, Range<usize>)> {
        let first = self.pieces.get(self.piece(range.start)?)?;
        let exact = |piece: &Piece| piece.end - piece.start == piece.old_end - piece.old_start;
        let start = if exact(first) { first.old_start + (range.start - first.start) } else { first.old_start };
        let last = range.end.checked_sub(1).filter(|last| *last >= range.start);
        let end = match last.and_then(|last| Some((last, self.pieces.get(self.piece(last)?)?))) {
            None => start,
            Some((last, piece)) if piece.origin == first.origin && piece.old_start >= first.old_start => {
                if exact(piece) { piece.old_start + (last - piece.start) + 1 } else { piece.old_end }
            }
            Some(_) => first.old_end,
        };
        Some((self.files.get(first.origin)?, start..end.max(start)))
    }

    /// The piece that holds a byte; behind the last byte of one, that one.
    fn piece(&self, at: usize) -> Option<usize> {
        let next = self.pieces.partition_point(|piece| piece.start <= at);
        let place = next.checked_sub(1)?;
        self.pieces.get(place).filter(|piece| at <= piece.end).map(|_| place)
    }

    /// The place of a file in the table, put in where it is new.
    pub(crate) fn file(&mut self, origin: &Origin) -> usize {
        self.files.iter().position(|known| known == origin).unwrap_or_else(|| {
            self.files.push(origin.clone());
            self.files.len() - 1
        })
    }

    pub(crate) fn add(&mut self, new: Range<usize>, origin: usize, old: Range<usize>) {
        if !new.is_empty() {
            self.pieces.push(Piece { start: new.start, end: new.end, origin, old_start: old.start, old_end: old.end });
        }
    }
}

//! Matrix products of which neither factor fits the memory: panels of rows of the first, and of the second.

use super::feed::{Cut, Feed};
use super::run::Contents;
use super::source::{Again, Source, row_bytes};
use super::{Progress, Rows, Sink};
use crate::engine::Engine;
use crate::error::{Bytes, Error, Result};
use crate::ops::Expr;

/// Passes the rows of the product of `a`, rows of `[k]`, and `b`, k rows of `[n]`, to `sink`: rows of `[n]`, as of [`Expr::matmul`]. A panel of rows
/// of `a` and of the product stays on the device while all of `b` is read, so `b` is read once per panel. Panels are as large as `memory` bytes allow
/// (by default the engine's limit, or 1 GiB). `progress` counts the rows of the product.
///
/// ```
/// use cantus::{Engine, stream::{self, Generated}};
///
/// # let engine = Engine::builder().backend("cpu").build()?;
/// let ones = |rows: u64, columns: usize| Generated::new(rows, &[columns], |_, values: &mut [f32]| values.fill(1.0));
/// let mut product = Vec::new();
/// let sink = |rows: stream::Rows<'_>| Ok(product.extend(rows.to_vec::<f32>()?));
/// stream::matmul(&engine, ones(30, 50)?, ones(50, 20)?, None, sink, |_| ())?;
/// assert_eq!(product, [50.0; 600]);
/// # Ok::<_, cantus::Error>(())
/// ```
///
/// # Errors
/// Those of the sources, of the engine and of the sink; [`Error::Shape`] if the shapes do not fit each other, [`Error::Limit`] if one row of each does not
/// fit the memory; [`Error::InvalidState`] if `b` cannot be read again.
pub fn matmul(
    engine: &Engine,
    a: impl Source + 'static,
    b: impl Source + 'static,
    memory: Option<u64>,
    mut sink: impl Sink,
    mut progress: impl FnMut(Progress),
) -> Result<()> {
    let what = || format!("the product of {} and {}", a.name(), b.name());
    let wrong = |reason: String| Error::shape(what(), reason);
    let (&[inner], &[columns], Some(known)) = (a.row(), b.row(), b.rows()) else {
        return Err(wrong(format!(
            "rows of {:?} and {:?} are not those of two matrices of known size",
            a.row(),
            b.row()
        )));
    };
    if known != inner as u64 {
        return Err(wrong(format!("the first has {inner} columns, the second {known} rows")));
    }
    let dtype = a.dtype();
    if b.dtype() != dtype {
        return Err(Error::dtype(what(), format!("the first is {dtype}, the second {} (cast one)", b.dtype())));
    }
    let limit = engine.memory().limit;
    let memory = memory.or(limit).unwrap_or(1 << 30).min(limit.unwrap_or(u64::MAX));
    // Half for a panel of `a` and of the product, twice; the other half for the panels of `b`, which the feed shares out.
    let (a_row, b_row) = (row_bytes(dtype, a.row())? as u64, row_bytes(dtype, b.row())? as u64);
    let panel_rows = memory / 2 / (2 * a_row + 3 * b_row).max(1);
    if panel_rows == 0 {
        return Err(Error::limit(
            what(),
            format!("one row of each takes {}, more than the limit of {}", Bytes(a_row + b_row), Bytes(memory)),
        ));
    }
    let of = a.rows();
    let panel = Cut { memory: Some(u64::MAX), rows: usize::try_from(panel_rows).ok(), ..Cut::default() };
    let second = Again::new(b);
    let mut first = Feed::new(engine, vec![Box::new(a)], &panel)?;
    while let Some(rows) = first.next()? {
        let of_a = rows.tensor().expr();
        let mut product = crate::ops::full(engine, &[rows.rows(), columns], 0.0, dtype).eval()?;
        let cut = Cut { memory: Some(memory / 2), ..Cut::default() };
        let mut feed = Feed::new(engine, vec![second.rewound()?], &cut)?;
        while let Some(part) = feed.next()?.filter(|part| part.rows() > 0 && rows.rows() > 0) {
            let begin = usize::try_from(part.first_row()).unwrap_or(usize::MAX);
            let across: Expr = of_a.slice(&[0..rows.rows(), begin..begin + part.rows()]);
            product = (across.matmul(part.tensor()) + &product).eval()?;
            engine.flush();
            crate::engine::blocking::block_on(product.wait_async())?;
        }
        let contents = Contents::of(&product)?;
        let row = [columns];
        let count = rows.rows();
        sink.write(Rows {
            first: rows.first_row(),
            count,
            dtype: product.dtype(),
            row: &row,
            bytes: contents.bytes(),
        })?;
        let done = rows.first_row() + count as u64;
        progress(Progress { rows: done, of, bytes: done.saturating_mul(a_row) });
    }
    sink.end()
}

//! Divides work among the members of a group, and records which member did what.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use crate::error::Error;
use cantus_base::listed::Listed;

/// Elements of a strip: 4 MiB of float32, which a device computes in much more time than it takes to hand it out.
const STRIP: usize = 1 << 20;
/// Strips of each member, at least, as far as there are rows: so that the last ones can go to who is quick.
const EACH: usize = 8;

/// A member's part of a [`Plan`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Share {
    /// Backend, index and name of its device.
    pub device: String,
    /// The planned rows. Rows that other members take over during the run are not included.
    pub rows: Range<usize>,
    /// Elements a second in the last run of that work, if there was one.
    pub speed: Option<f64>,
}

/// The division of work among the members. `Display` shows it as a table.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// All rows.
    pub rows: usize,
    /// Rows of a strip; the last one of a member may have fewer.
    pub strip_rows: usize,
    /// One for each member, in the group's order. Together they have every row once.
    pub shares: Vec<Share>,
}

impl Plan {
    /// Shares in whole strips, by speed where the speed of all is known, and else equal.
    pub(super) fn new(
        devices: Vec<String>,
        speeds: &[Option<f64>],
        (rows, row): (usize, usize),
        strip: Option<usize>,
    ) -> Self {
        let members = devices.len().max(1);
        let fair = rows.div_ceil(members.saturating_mul(EACH));
        let strip_rows = strip.unwrap_or_else(|| (STRIP / row.max(1)).min(fair)).max(1);
        let strips = rows.div_ceil(strip_rows);
        let known: Option<Vec<f64>> = speeds.iter().copied().try_listed();
        let weights = known.filter(|known| known.len() == members).unwrap_or_else(|| vec![1.0; members]);
        let whole: f64 = weights.iter().sum();
        let (mut sum, mut first) = (0.0, 0);
        let shares = devices.into_iter().zip(&weights).enumerate().map(|(member, (device, weight))| {
            sum += weight;
            let end = if member + 1 == members { strips } else { (sum / whole * strips as f64).round() as usize };
            let end = end.clamp(first, strips).saturating_mul(strip_rows).min(rows);
            let start = std::mem::replace(&mut first, end.div_ceil(strip_rows)).saturating_mul(strip_rows).min(rows);
            Share { device, rows: start..end, speed: speeds.get(member).copied().flatten() }
        });
        Self { rows, strip_rows, shares: shares.listed() }
    }

    /// The rows of each strip, with the member that it is for.
    pub(super) fn strips(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        self.shares.iter().enumerate().flat_map(move |(member, share)| {
            let end = share.rows.end;
            let firsts = share.rows.clone().step_by(self.strip_rows);
            firsts.map(move |first| (member, first..first.saturating_add(self.strip_rows).min(end)))
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows in strips of {}", self.rows, self.strip_rows)?;
        for share in &self.shares {
            write!(f, "\n  {}: rows {} to {}", share.device, share.rows.start, share.rows.end)?;
            if let Some(speed) = share.speed {
                write!(f, ", {:.1} million elements/s before", speed / 1e6)?;
            }
        }
        Ok(())
    }
}

/// A member's part of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Part {
    /// Backend, index and name of its device.
    pub device: String,
    /// Rows that it computed.
    pub rows: usize,
    /// Strips that it computed.
    pub strips: usize,
    /// The number of those that were planned for other members.
    pub taken_over: usize,
    /// The time until its last strip was done.
    pub time: Duration,
    /// The failure that ended its part early. Other members computed the rest.
    pub failure: Option<Error>,
}

/// A result, and each member's part in it. `Display` shows the plan and the parts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Done<T> {
    /// The result.
    pub values: T,
    /// The plan that the run began with.
    pub plan: Plan,
    /// Each member's part, in the group's order.
    pub parts: Vec<Part>,
}

impl<T> Done<T> {
    pub(super) fn map<U>(self, into: impl FnOnce(T) -> U) -> Done<U> {
        Done { values: into(self.values), plan: self.plan, parts: self.parts }
    }
}

impl<T> fmt::Display for Done<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\ndone by", self.plan)?;
        for part in &self.parts {
            let time = part.time.as_secs_f64() * 1e3;
            write!(f, "\n  {}: {} rows in {} strips, {time:.1} ms", part.device, part.rows, part.strips)?;
            if part.taken_over > 0 {
                write!(f, ", {} strips of others", part.taken_over)?;
            }
            if let Some(failure) = &part.failure {
                write!(f, ", until it failed: {failure}")?;
            }
        }
        Ok(())
    }
}

//! Tasks side by side where there are threads.

pub(super) use crate::threads::{count as threads, each, each_chunk as for_chunks, map};

//! Kernels of the vendor's own language in place of a translated one, for what WGSL cannot say. A takeover is registered for a kernel by its
//! frame (`shaders/tensor`), with what it needs and a rank; it calls the same functions of elements as the frame, translated, so it serves
//! whatever was fused into it. The translated kernel is always there beneath: it runs where nothing qualifies, or where a takeover fails.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use crate::backend::TakeoverFigures;
use crate::kernel::Kernel;
use cantus_base::listed::Listed;

/// A native kernel.
#[derive(Debug)]
pub(crate) struct Takeover {
    /// Its name for people.
    pub(crate) name: &'static str,
    /// The entry point of the kernel that it takes over.
    pub(crate) entry: &'static str,
    /// The end of that kernel's text, its switches off.
    pub(crate) frame: &'static str,
    /// Constants of the frame that may be on: `const NAME = true;`.
    pub(crate) switches: &'static [&'static str],
    /// The source: what several share, and its own.
    pub(crate) source: [&'static str; 2],
    /// The least compute capability.
    pub(crate) compute: (i32, i32),
    /// The highest that qualifies runs.
    pub(crate) rank: i32,
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Launches that would serve, best first, for the kernel's `words` and its workgroups; none where it is not worth it.
    pub(crate) plan: fn(words: &[u32], workgroups: [u32; 3], facts: &ClusterFacts) -> Vec<TakeoverLaunch>,
}

/// A device's limits for clusters.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "HIP has no clusters"))]
pub(crate) struct ClusterFacts {
    /// Bytes of shared memory that a block may ask for.
    pub(crate) shared_bytes: u32,
    /// Most blocks in a dimension of a launch.
    pub(crate) grid: u32,
}

/// The launch of a takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TakeoverLaunch {
    /// Blocks.
    pub(crate) grid: u32,
    /// Blocks of a cluster; 0 for a launch without clusters.
    pub(crate) cluster: u32,
    /// Bytes of shared memory of a block.
    pub(crate) shared_bytes: u32,
    /// Arguments behind the kernel's own.
    pub(crate) words: [u32; 3],
    /// Bytes of memory that is cleared before each launch, by whose address the last argument goes; 0 for none. Launches of one shape have as many.
    pub(crate) cleared: u32,
}

impl Takeover {
    /// Returns whether it is of this kernel.
    pub(crate) fn is_of(&self, kernel: &Kernel, entry: &str) -> bool {
        self.entry == entry && ends_with(kernel.wgsl(), self)
    }

    /// Its source for a kernel, whose functions of elements it calls.
    pub(crate) fn text(&self, kernel: &Kernel) -> String {
        let mut text = format!("#define THREADS {}u\n", self.threads);
        for switch in self.switches {
            let on = kernel.wgsl().contains(&format!("const {switch} = true;"));
            let _ = writeln!(text, "#define {switch} {}", u8::from(on));
        }
        text + self.source[0] + self.source[1]
    }
}

/// Returns whether a kernel's text ends in the takeover's frame. An app's own kernel of the same name does not.
fn ends_with(text: &str, takeover: &Takeover) -> bool {
    let mut plain = text.trim_end().to_owned();
    for switch in takeover.switches {
        plain = plain.replace(&format!("const {switch} = true;"), &format!("const {switch} = false;"));
    }
    plain.ends_with(takeover.frame.trim_end())
}

/// The record of takeovers on a device.
#[derive(Default)]
pub(super) struct Takeovers(Mutex<BTreeMap<&'static str, Record>>);

/// The record of one takeover, and whether it is given up.
struct Record {
    figures: TakeoverFigures,
    given_up: bool,
}

impl Takeovers {
    /// Notes a launch.
    pub(super) fn ran(&self, name: &'static str) {
        self.with(name, |record| record.figures.launches += 1);
    }

    /// It does not serve one kernel, whose translated form runs.
    pub(super) fn fail(&self, name: &'static str, reason: &str) {
        tracing::warn!("{name} does not serve a kernel, whose translated form runs in its place: {reason}");
        self.with(name, |record| {
            record.figures.refusal.get_or_insert_with(|| reason.to_owned());
        });
    }

    /// Refuses a takeover: from now on the translated kernel runs instead.
    pub(super) fn refuse(&self, name: &'static str, reason: &str) {
        tracing::warn!("{name} is given up, and translated kernels run in its place: {reason}");
        self.with(name, |record| {
            record.figures.refusal.get_or_insert_with(|| reason.to_owned());
            record.given_up = true;
        });
    }

    /// Notes that something it needs is missing.
    pub(super) fn lack(&self, name: &'static str, reason: &str) {
        tracing::debug!("{name} is not used: {reason}");
        self.with(name, |record| {
            record.figures.refusal.get_or_insert_with(|| reason.to_owned());
            record.given_up = true;
        });
    }

    pub(super) fn is_refused(&self, name: &'static str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).is_some_and(|record| record.given_up)
    }

    fn with(&self, name: &'static str, change: impl FnOnce(&mut Record)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(all.entry(name).or_insert_with(|| Record { figures: TakeoverFigures::new(name), given_up: false }));
    }

    /// All of them.
    pub(super) fn list(&self) -> Vec<TakeoverFigures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().map(|record| record.figures.clone()).listed()
    }
}

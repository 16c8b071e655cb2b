//! The part of a kernel that all entry points and overrides of a text share: the text, or a form that was rewritten from it, with its modules. Each module
//! is parsed and validated once, when it is first asked for.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
#[cfg(feature = "wgsl")]
use std::sync::OnceLock;

use rustc_hash::FxHasher;

#[cfg(feature = "wgsl")]
use super::{forms::Changes, front::File, wgsl::Parsed};
#[cfg(feature = "wgsl")]
use crate::error::Result;

pub(crate) struct Text {
    /// File name for reports, or `wgsl`.
    pub(crate) file: Arc<str>,
    /// Plain WGSL for GPUs.
    pub(crate) wgsl: Arc<str>,
    /// The same kernel for executors whose builtins are accurate; equal to `wgsl` for kernels that come at run time, and for forms.
    pub(crate) native_wgsl: Arc<str>,
    /// The rewritings: the module is then not what the text says.
    #[cfg(feature = "wgsl")]
    pub(crate) changes: Changes,
    /// Of `wgsl` alone.
    hash: u64,
    #[cfg(feature = "wgsl")]
    parsed: OnceLock<Result<Arc<Parsed>>>,
    /// The module of `native_wgsl`, if that differs.
    #[cfg(feature = "wgsl")]
    native: OnceLock<Result<Arc<Parsed>>>,
    #[cfg(feature = "wgsl")]
    reproducible: OnceLock<Result<Arc<Text>>>,
}

impl Text {
    pub(crate) fn new(file: Arc<str>, wgsl: Arc<str>, native_wgsl: Arc<str>) -> Self {
        let mut hasher = FxHasher::default();
        wgsl.hash(&mut hasher);
        Self {
            file,
            wgsl,
            native_wgsl,
            hash: hasher.finish(),
            #[cfg(feature = "wgsl")]
            changes: Changes::default(),
            #[cfg(feature = "wgsl")]
            parsed: OnceLock::new(),
            #[cfg(feature = "wgsl")]
            native: OnceLock::new(),
            #[cfg(feature = "wgsl")]
            reproducible: OnceLock::new(),
        }
    }
}

#[cfg(feature = "wgsl")]
impl Text {
    /// Parses a text now.
    pub(crate) fn parse(file: &File, wgsl: Arc<str>) -> Result<Self> {
        let parsed = Arc::new(Parsed::new(file, &wgsl)?);
        Ok(Self { parsed: OnceLock::from(Ok(parsed)), ..Self::new(file.name.as_str().into(), wgsl.clone(), wgsl) })
    }

    /// A form of the text, for GPUs and executors alike.
    pub(crate) fn rewritten(&self, parsed: Parsed, changes: Changes) -> Arc<Self> {
        Arc::new(Self {
            file: self.file.clone(),
            wgsl: self.wgsl.clone(),
            native_wgsl: self.wgsl.clone(),
            changes,
            hash: self.hash,
            parsed: OnceLock::from(Ok(Arc::new(parsed))),
            native: OnceLock::new(),
            reproducible: OnceLock::new(),
        })
    }

    /// The module for GPUs.
    pub(crate) fn parsed(&self) -> Result<&Arc<Parsed>> {
        let parse = || Parsed::new(&File::named(&self.file), &self.wgsl).map(Arc::new);
        self.parsed.get_or_init(parse).as_ref().map_err(Clone::clone)
    }

    /// The module for devices whose builtins are accurate.
    pub(crate) fn native(&self) -> Result<&Arc<Parsed>> {
        if self.native_wgsl == self.wgsl {
            return self.parsed();
        }
        let parse = || Parsed::new(&File::named(&self.file), &self.native_wgsl).map(Arc::new);
        self.native.get_or_init(parse).as_ref().map_err(Clone::clone)
    }

    /// The form whose arithmetic has the same bits on every device. CPUs run the text for GPUs too: their own functions are not those of GPUs.
    pub(crate) fn reproducible(&self) -> Result<&Arc<Self>> {
        let rewrite = || {
            let changes = Changes { is_reproducible: true, ..self.changes.clone() };
            Ok(self.rewritten(self.parsed()?.reproducible()?, changes))
        };
        self.reproducible.get_or_init(rewrite).as_ref().map_err(Clone::clone)
    }
}

/// File names do not count.
impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        #[cfg(feature = "wgsl")]
        if self.changes != other.changes {
            return false;
        }
        self.hash == other.hash && self.wgsl == other.wgsl && self.native_wgsl == other.native_wgsl
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
        #[cfg(feature = "wgsl")]
        self.changes.hash(state);
    }
}

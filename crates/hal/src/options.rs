//! Options of the device, set in code or by variables of the environment: a program that is left untouched, through a patched wgpu-core, has the variables alone.
//! A wrong value gives no adapter, so a test that asked for something never passes without it.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use cantus_spmd::Order;

/// Options of the device. The default is the fast one: workgroups in any order, the executor's limits, no checks.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// Runs the workgroups of each dispatch one after the other in this order, on one thread. A kernel whose results depend on it has a race.
    pub order: Option<Order>,
    /// Looks for stores and atomic operations out of range, which WGSL lets a device drop or move. One of them loses the device.
    pub check_stores: bool,
    /// Offers WebGPU's default limits and no more: what a program needs beyond them is an error, as it would be on some other device.
    pub default_limits: bool,
    /// Stops each dispatch after this time, which loses the device; without it an endless loop never ends.
    pub time_limit: Option<Duration>,
    /// Is told why the device is lost; without it the reason is an event of `tracing`, or a line on the standard error output where nothing listens to these.
    pub on_failure: Option<Failure>,
}

/// A function that is told why a device is lost. It runs on the queue's thread.
#[derive(Clone)]
pub struct Failure(Arc<dyn Fn(&str) + Send + Sync>);

impl Failure {
    /// Wraps a function.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Failure")
    }
}

impl Options {
    /// Reads the options from the environment:
    ///
    /// - `CANTUS_WGPU_ORDER`: `forward`, `reversed` or `random:SEED`
    /// - `CANTUS_WGPU_CHECK_STORES`: 0 or 1
    /// - `CANTUS_WGPU_DEFAULT_LIMITS`: 0 or 1
    /// - `CANTUS_WGPU_TIME_LIMIT`: seconds
    ///
    /// # Errors
    /// A sentence that names the variable and what it takes.
    pub fn from_env() -> Result<Self, String> {
        Self::read(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        fn of<T>(
            variable: &impl Fn(&str) -> Option<String>,
            name: &str,
            takes: &str,
            read: impl Fn(&str) -> Option<T>,
        ) -> Result<Option<T>, String> {
            let Some(text) = variable(name).filter(|text| !text.is_empty()) else { return Ok(None) };
            read(&text).map(Some).ok_or_else(|| format!("{name} is {text:?}, and takes {takes}"))
        }
        let switch = |text: &str| match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        };
        let order = |text: &str| match text {
            "forward" => Some(Order::Forward),
            "reversed" => Some(Order::Reversed),
            _ => text.strip_prefix("random:")?.parse().ok().map(Order::Random),
        };
        let seconds = |text: &str| {
            let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0)?;
            Duration::try_from_secs_f64(seconds).ok()
        };
        Ok(Self {
            order: of(&variable, "CANTUS_WGPU_ORDER", "forward, reversed or random:SEED", order)?,
            check_stores: of(&variable, "CANTUS_WGPU_CHECK_STORES", "0 or 1", switch)?.unwrap_or(false),
            default_limits: of(&variable, "CANTUS_WGPU_DEFAULT_LIMITS", "0 or 1", switch)?.unwrap_or(false),
            time_limit: of(&variable, "CANTUS_WGPU_TIME_LIMIT", "a number of seconds above 0", seconds)?,
            on_failure: None,
        })
    }

    /// Tells why the device is lost.
    pub(crate) fn fail(&self, reason: &str) {
        match &self.on_failure {
            Some(Failure(tell)) => tell(reason),
            None => report(&format!("the device is lost: {reason}")),
        }
    }
}

/// Reports an error for which wgpu has no way.
pub(crate) fn report(text: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::error!("{text}");
    } else {
        // Where it cannot be written there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "cantus-hal: {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, Order};
    use std::time::Duration;

    fn read(set: &[(&str, &str)]) -> Result<Options, String> {
        let named = |name: &str| set.iter().find(|(known, _)| name == format!("CANTUS_WGPU_{known}"));
        Options::read(|name| named(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn variables_are_read() {
        let none = read(&[]).unwrap();
        assert!(none.order.is_none() && !none.check_stores && !none.default_limits && none.time_limit.is_none());
        let all = read(&[("ORDER", "random:7"), ("CHECK_STORES", "1"), ("DEFAULT_LIMITS", "1"), ("TIME_LIMIT", "0.5")]);
        let all = all.unwrap();
        assert_eq!((all.order, all.time_limit), (Some(Order::Random(7)), Some(Duration::from_millis(500))));
        assert!(all.check_stores && all.default_limits);
        assert_eq!(read(&[("ORDER", "reversed")]).unwrap().order, Some(Order::Reversed));
        assert!(read(&[("ORDER", ""), ("CHECK_STORES", "0")]).is_ok_and(|options| !options.check_stores));
        for (name, value) in [
            ("ORDER", "random"),
            ("ORDER", "random:-1"),
            ("CHECK_STORES", "yes"),
            ("DEFAULT_LIMITS", "2"),
            ("TIME_LIMIT", "0"),
            ("TIME_LIMIT", "inf"),
            ("TIME_LIMIT", "1e300"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(error.contains(name) && error.contains(value) && error.contains("takes"), "{error}");
        }
    }
}

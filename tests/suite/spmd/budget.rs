//! Kernels that would take for ever, or all memory, to compile.

use std::fmt::Write;
use std::time::{Duration, Instant};

/// Time of this thread on a processor, where the system tells: others may be busy with other things.
struct Clock(Instant);

impl Clock {
    fn begin() -> Self {
        Self(Instant::now())
    }

    fn elapsed(&self) -> Duration {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
        let nanoseconds = text.and_then(|text| text.split_whitespace().next()?.parse().ok());
        // A test has a thread of its own.
        nanoseconds.map_or_else(|| self.0.elapsed(), Duration::from_nanos)
    }
}

use super::harness::{Run, compile, try_compile};

#[test]
fn calls_that_multiply_are_an_error_soon() {
    let mut text = String::from("fn f0() { }\n");
    for level in 1..60 {
        let _ = writeln!(text, "fn f{level}() {{ f{}(); f{}(); }}", level - 1, level - 1);
    }
    text += "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main() { f59(); a[0] = 1u; }";
    let begin = Clock::begin();
    let error = try_compile(&text).expect_err("2^59 calls");
    assert!(error.to_string().contains("million"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn values_that_multiply_are_an_error_soon() {
    let mut text = String::from(
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main() {\n",
    );
    for place in 0..3000 {
        let _ = writeln!(text, "let x{place} = array<u32, 60000>(); a[{place}] = x{place}[3];");
    }
    text += "a[0] = 1u; }";
    let begin = Clock::begin();
    assert!(try_compile(&text).is_err());
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

/// `n` variables, of which each takes the value of the one before; the first varies.
fn chain(n: usize, forwards: bool, link: impl Fn(usize) -> String) -> String {
    let mut text = String::from(
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {\n",
    );
    for place in 0..=n {
        let _ = write!(text, "var v{place} = 0u; ");
    }
    text += "\nfor (var i = 0u; i < 3u; i++) {\n";
    let mut lines: Vec<String> = (1..=n).map(link).collect();
    lines.insert(0, "v0 = id.x + i;".to_owned());
    if !forwards {
        lines.reverse();
    }
    text += &lines.join("\n");
    let _ = write!(text, "\n}}\na[id.x] = v{n}; }}");
    text
}

#[test]
fn chains_of_variables_compile_in_time() {
    for forwards in [true, false] {
        for conditional in [false, true] {
            let text = chain(4000, forwards, |place| {
                let before = place - 1;
                if conditional {
                    format!("if v{before} > 1u {{ v{place} = {place}u; }}")
                } else {
                    format!("v{place} = v{before} + 1u;")
                }
            });
            assert!(text.len() > 100_000);
            let begin = Clock::begin().elapsed();
            let _ = compile(&text);
            let took = Clock::begin().elapsed().saturating_sub(begin);
            assert!(took < Duration::from_secs(20), "{forwards} {conditional}: {took:?}");
        }
    }
}

/// Taking everything as varying makes no difference to the result.
#[test]
fn chains_of_variables_compute_the_same() {
    for n in [3, 200] {
        let text = chain(n, false, |place| format!("v{place} = v{} + 1u;", place - 1));
        let run = Run::new(&text).zeros(64 * 4).dispatch([1; 3]);
        // Each round carries a value one link further.
        let got = run.read::<u32>(0);
        let expected: Vec<u32> = (0..64)
            .map(|id| {
                let mut v = vec![0_u32; n + 1];
                for i in 0..3 {
                    for place in (1..=n).rev() {
                        v[place] = v[place - 1] + 1;
                    }
                    v[0] = id + i;
                }
                v[n]
            })
            .collect();
        assert_eq!(got, expected, "{n}");
    }
}

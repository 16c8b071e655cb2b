//! The passes of a transform: radices, and the statements of each. `transform` composes one kernel for each radix of a length, and `mod` asks whether a
//! length has radices at all; other lengths are convolutions with a chirp. The statements are text: a pass is unrolled, because WGSL's compilers do not
//! unroll loops over registers.

use super::tile;
use crate::ops::frame::Frame;
use cantus_base::listed::Listed;
use std::f64::consts::TAU;
use std::fmt::Write as _;

const FRAME: Frame<3> = Frame::new(cantus_shaders::tensor::FFT, ["// LOAD", "// BUTTERFLY", "// STORE"]);
pub(super) const ROOT: &str = cantus_shaders::tensor::UNIT_ROOT;

/// The greatest prime that has a pass.
const PRIMES: [usize; 5] = [3, 5, 7, 11, 13];

/// The radices of a length, or `None` where it has a greater prime factor.
pub(super) fn radices(length: usize) -> Option<Vec<usize>> {
    let (mut rest, mut radices) = (length, Vec::new());
    for prime in PRIMES {
        while rest.is_multiple_of(prime) {
            radices.push(prime);
            rest /= prime;
        }
    }
    let mut twos = rest.is_power_of_two().then(|| rest.ilog2())?;
    while twos > 0 {
        // Four and four rather than eight and two.
        let next = if twos == 4 || twos == 2 { 2 } else { twos.min(3) };
        radices.push(1 << next);
        twos -= next;
    }
    Some(radices)
}

/// The least length from `least` on with small prime factors alone: 2, 3 and 5.
pub(super) fn smooth(least: usize) -> usize {
    let mut best = least.next_power_of_two();
    let mut five = 1;
    while five < best {
        let mut three = five;
        while three < best {
            let candidate = three * least.div_ceil(three).next_power_of_two();
            best = best.min(candidate);
            three *= 3;
        }
        five *= 5;
    }
    best
}

/// The radices of the passes of a length, where those for its power of two are a tile's: as [`radices`], with how many are tiles' behind the others.
pub(super) fn passes(length: usize) -> Option<(Vec<usize>, usize)> {
    let twos = length.trailing_zeros();
    let tiles = tile::radices(twos);
    if tiles.is_empty() {
        return Some((radices(length)?, 0));
    }
    let mut all = radices(length >> twos)?;
    let count = tiles.len();
    all.extend(tiles);
    Some((all, count))
}

/// The text of a pass. The first needs no factors.
pub(super) fn pass(radix: usize, is_first: bool) -> String {
    let (mut load, mut store) = (String::new(), String::new());
    let _ = writeln!(load, "let x0 = load(row, place);");
    if !is_first {
        let _ = writeln!(load, "let w1 = unit_root(k, span * RADIX);");
    }
    for t in 1..radix {
        let read = format!("load(row, place + {t}u * stride)");
        if is_first {
            let _ = writeln!(load, "let x{t} = {read};");
            continue;
        }
        if t > 1 {
            let _ = writeln!(load, "let w{t} = times(w{}, w{});", t / 2, t - t / 2);
        }
        let _ = writeln!(load, "let x{t} = times(w{t}, {read});");
    }
    for s in 0..radix {
        let _ = writeln!(store, "store(to + {s}u * span, z{s});");
    }
    let butterfly = match radix {
        2 => "let z0 = x0 + x1;\nlet z1 = x0 - x1;\n".to_owned(),
        4 => four(["x0", "x1", "x2", "x3"], "z"),
        8 => eight(["x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"], "z"),
        _ => odd(radix),
    };
    let frame = FRAME.filled([Some(&load), Some(&butterfly), Some(&store)]);
    format!("\nconst RADIX = {radix}u;\n\n{ROOT}{frame}")
}

/// Four numbers.
pub(super) fn four([a, b, c, d]: [&str; 4], to: &str) -> String {
    format!(
        "let {to}_sum = {a} + {c};\nlet {to}_difference = {a} - {c};\nlet {to}_other = {b} + {d};\n\
         let {to}_turned = turned_back({b} - {d});\nlet {to}0 = {to}_sum + {to}_other;\n\
         let {to}1 = {to}_difference + {to}_turned;\nlet {to}2 = {to}_sum - {to}_other;\n\
         let {to}3 = {to}_difference - {to}_turned;\n"
    )
}

/// Eight numbers: the even and the odd ones, four each.
pub(super) fn eight([a, b, c, d, e, f, g, h]: [&str; 8], to: &str) -> String {
    let (even, odd) = (format!("{to}e"), format!("{to}o"));
    let mut text = four([a, c, e, g], &even) + &four([b, d, f, h], &odd);
    let _ = write!(
        text,
        "let {to}t0 = {odd}0;\nlet {to}t1 = 0.70710678 * ({odd}1 + turned_back({odd}1));\nlet {to}t2 = turned_back({odd}2);\n\
         let {to}t3 = 0.70710678 * (turned_back({odd}3) - {odd}3);\n"
    );
    for s in 0..4 {
        let _ = writeln!(text, "let {to}{s} = {even}{s} + {to}t{s};\nlet {to}{} = {even}{s} - {to}t{s};", s + 4);
    }
    text
}

/// An odd number of numbers, by the sums and differences of those that mirror each other.
fn odd(radix: usize) -> String {
    let half = radix / 2;
    let mut text = String::new();
    for q in 1..=half {
        let _ = writeln!(text, "let s{q} = x{q} + x{0};\nlet d{q} = x{q} - x{0};", radix - q);
    }
    let all: Vec<String> = (1..=half).map(|q| format!("s{q}")).listed();
    let _ = writeln!(text, "let z0 = x0 + ({});", all.join(" + "));
    for s in 1..=half {
        let angle = |q: usize| TAU * (q * s % radix) as f64 / radix as f64;
        let terms = |of: &str, f: fn(f64) -> f64| {
            let terms: Vec<String> = (1..=half).map(|q| format!("{:?} * {of}{q}", f(angle(q)) as f32)).listed();
            terms.join(" + ")
        };
        let _ = writeln!(text, "let c{s} = x0 + ({});", terms("s", f64::cos));
        let _ = writeln!(text, "let i{s} = turned_back({});", terms("d", f64::sin));
        let _ = writeln!(text, "let z{s} = c{s} + i{s};\nlet z{} = c{s} - i{s};", radix - s);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{radices, smooth};

    #[test]
    fn radices_multiply_to_the_length() {
        for length in 1..2000_usize {
            match radices(length) {
                Some(radices) => assert_eq!(radices.iter().product::<usize>(), length),
                None => assert!((14..=length).any(|prime| length % prime == 0)),
            }
        }
        assert_eq!(radices(1 << 20).map(|radices| radices.len()), Some(7));
        assert_eq!(radices(17), None);
    }

    #[test]
    fn smooth_lengths_are_the_least() {
        let fits = |mut length: usize| {
            for prime in [2, 3, 5] {
                while length.is_multiple_of(prime) {
                    length /= prime;
                }
            }
            length == 1
        };
        for least in 1..3000 {
            assert_eq!(Some(smooth(least)), (least..).find(|&length| fits(length)), "{least}");
        }
    }
}

//! Control flow. Each kernel is a function `f` of one number, run for many numbers at once so that invocations part
//! ways; the oracle is the same algorithm in Rust, one number at a time.

use crate::case::Case;
use crate::inputs::words;

/// A function from an invocation's input to its result.
type Oracle = fn(u32) -> u32;

pub fn cases() -> Vec<Case> {
    [branches().as_slice(), &loops(), &switches(), &nested(), &returns()]
        .concat()
        .into_iter()
        .map(|(name, function, oracle)| {
            let inputs: Vec<u32> = (0..150).chain(words(110, 106).into_iter().map(|x| x & 0xFFFF)).collect();
            let expected: Vec<u32> = inputs.iter().map(|&x| oracle(x)).collect();
            Case::each_with(format!("control.{name}"), function, "f(a[i])")
                .read("a", inputs)
                .write("out", expected)
                .invocations(256)
        })
        .chain(at_entry())
        .collect()
}

type Row = (&'static str, &'static str, Oracle);

fn branches() -> Vec<Row> {
    vec![
        ("if", "fn f(x: u32) -> u32 { var r = 1u; if x % 3u == 0u { r = x * 2u; } return r; }", |x| {
            if x % 3 == 0 { x * 2 } else { 1 }
        }),
        (
            "if_else_chain",
            "fn f(x: u32) -> u32 { var r = 0u; if x < 10u { r = 1u; } else if x < 100u { r = 2u; } else if x % 2u == 0u { r = 3u; } \
             else { r = x; } return r; }",
            |x| match x {
                0..10 => 1,
                10..100 => 2,
                _ if x % 2 == 0 => 3,
                _ => x,
            },
        ),
        (
            "if_nested_six_deep",
            "fn f(x: u32) -> u32 {\n var r = 0u;\n if (x & 1u) != 0u { r += 1u; if (x & 2u) != 0u { r += 2u; if (x & 4u) != 0u { r += 4u; \
             if (x & 8u) != 0u { r += 8u; if (x & 16u) != 0u { r += 16u; if (x & 32u) != 0u { r += 32u; } else { r += 1000u; } } \
             r *= 3u; } else { r += 77u; } } } else { r ^= 0x50u; } } return r; }",
            |x| {
                let bit = |k: u32| x >> k & 1 != 0;
                let mut r = 0;
                if bit(0) {
                    r += 1;
                    if bit(1) {
                        r += 2;
                        if bit(2) {
                            r += 4;
                            if bit(3) {
                                r += 8;
                                if bit(4) {
                                    r += 16;
                                    r += if bit(5) { 32 } else { 1000 };
                                }
                                r *= 3;
                            } else {
                                r += 77;
                            }
                        }
                    } else {
                        r ^= 0x50;
                    }
                }
                r
            },
        ),
        (
            "assignment_after_divergence",
            "fn f(x: u32) -> u32 { var a = x; var b = 0u; if x > 70u { b = a; a = 5u; } else { a += 1u; } let c = a * 10u + b; a = c; \
             if b == 0u { a += b + 1u; } return a + c; }",
            |x| {
                let (mut a, b) = if x > 70 { (5, x) } else { (x + 1, 0) };
                let c = a * 10 + b;
                a = c;
                if b == 0 {
                    a += 1;
                }
                a + c
            },
        ),
        (
            "short_circuit_guards",
            "fn f(x: u32) -> u32 { var hits = 0u; if x != 0u && 1000u / x > 10u { hits += 1u; } if x == 0u || 1000u % x == 0u { hits += 2u; } \
             return hits; }",
            |x| u32::from(x != 0 && 1000 / x > 10) + 2 * u32::from(x == 0 || 1000 % x == 0),
        ),
        (
            "short_circuit_skips_effects",
            "var<private> calls: u32;\nfn touch(r: bool) -> bool { calls += 1u; return r; }\n\
             fn f(x: u32) -> u32 { let p = x % 2u == 0u && touch(x % 3u == 0u); let q = p || (touch(true) && touch(x > 50u)); \
             return calls * 4u + u32(p) * 2u + u32(q); }",
            |x| {
                let mut calls = 0;
                let mut touch = |r: bool| {
                    calls += 1;
                    r
                };
                let p = x % 2 == 0 && touch(x % 3 == 0);
                let q = p || touch(true) && touch(x > 50);
                calls * 4 + u32::from(p) * 2 + u32::from(q)
            },
        ),
    ]
}

fn loops() -> Vec<Row> {
    vec![
        (
            "for",
            "fn f(x: u32) -> u32 { var s = 0u; for (var k = 0u; k < x % 50u; k++) { s += k * k; } return s; }",
            |x| (0..x % 50).map(|k| k * k).sum(),
        ),
        (
            "for_without_parts",
            "fn f(x: u32) -> u32 { var k = x; for (;;) { if k % 7u == 3u { break; } k += 1u; } return k; }",
            |x| (x..).find(|k| k % 7 == 3).unwrap(),
        ),
        (
            "while_collatz",
            "fn f(x: u32) -> u32 { var n = x + 1u; var steps = 0u; while n != 1u { if n % 2u == 0u { n /= 2u; } else { n = 3u * n + 1u; } steps++; } \
             return steps; }",
            |x| {
                let (mut n, mut steps) = (x + 1, 0);
                while n != 1 {
                    n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
                    steps += 1;
                }
                steps
            },
        ),
        (
            "loop_continuing",
            "fn f(x: u32) -> u32 { var s = 0u; var k = 0u; loop { if k >= x % 40u { break; } s += k; continuing { k += 3u; } } return s * 100u + k; }",
            |x| {
                let (mut s, mut k) = (0, 0);
                while k < x % 40 {
                    s += k;
                    k += 3;
                }
                s * 100 + k
            },
        ),
        (
            "break_if",
            "fn f(x: u32) -> u32 { var s = 0u; var k = 0u; loop { s += k; continuing { k += 1u; break if k > x % 30u; } } return s; }",
            |x| (0..=x % 30).sum(),
        ),
        (
            "break_if_sees_body_variable",
            "fn f(x: u32) -> u32 { var v = x % 1000u + 1u; var n = 0u; loop { let half = v / 2u; v = half; n++; continuing { break if half == 0u; } } \
             return n; }",
            |x| 32 - (x % 1000 + 1).leading_zeros(),
        ),
        (
            "continue_runs_continuing",
            "fn f(x: u32) -> u32 { var s = 0u; var k = 0u; loop { if k > 20u { break; } if (k ^ x) % 3u == 0u { continue; } s = s * 2u + k; \
             continuing { k += 1u; s ^= 1u; } } return s; }",
            |x| {
                let mut s = 0_u32;
                for k in 0..=20_u32 {
                    if (k ^ x) % 3 != 0 {
                        s = s.wrapping_mul(2).wrapping_add(k);
                    }
                    s ^= 1;
                }
                s
            },
        ),
        (
            "continue_in_for",
            "fn f(x: u32) -> u32 { var s = 0u; for (var k = 0u; k < 25u; k++) { if k % (x % 5u + 1u) != 0u { continue; } s += k; } return s; }",
            |x| (0..25).filter(|k| k % (x % 5 + 1) == 0).sum(),
        ),
        (
            "break_and_continue_diverge",
            "fn f(x: u32) -> u32 { var s = 0u; for (var k = 1u; k < 100u; k++) { if k * k > x { break; } if x % k != 0u { continue; } s += k; \
             if s > 50u { break; } } return s; }",
            |x| {
                let mut s = 0;
                for k in 1..100 {
                    if k * k > x {
                        break;
                    }
                    if x % k == 0 {
                        s += k;
                        if s > 50 {
                            break;
                        }
                    }
                }
                s
            },
        ),
        (
            "zero_iterations_for_some",
            "fn f(x: u32) -> u32 { var s = 7u; while s < x % 9u { s += 1u; } for (var k = x; k < 5u; k++) { s += 100u; } return s; }",
            |x| 7.max(x % 9) + 100 * 5_u32.saturating_sub(x),
        ),
        (
            "loop_carried_swap",
            "fn f(x: u32) -> u32 { var a = 0u; var b = 1u; for (var k = 0u; k < x % 47u; k++) { let t = a; a = b; b = t + b; } return a; }",
            |x| (0..x % 47).fold((0_u32, 1_u32), |(a, b), _| (b, a.wrapping_add(b))).0,
        ),
        (
            "variable_declared_in_loop_is_fresh",
            "fn f(x: u32) -> u32 { var s = 0u; for (var k = 0u; k < 6u; k++) { var t: u32; if ((x >> k) & 1u) != 0u { t += k + 1u; } s = s * 7u + t; } return s; }",
            |x| (0..6).fold(0, |s, k| s * 7 + if x >> k & 1 != 0 { k + 1 } else { 0 }),
        ),
    ]
}

fn switches() -> Vec<Row> {
    vec![
        (
            "switch_default_last",
            "fn f(x: u32) -> u32 { var r = 0u; switch x % 6u { case 0u: { r = 10u; } case 1u: { r = 20u; } case 3u: { r = x; } default: { r = 99u; } } return r; }",
            |x| [10, 20, 99, x, 99, 99][x as usize % 6],
        ),
        (
            "switch_default_first",
            "fn f(x: u32) -> u32 { var r = 0u; switch x % 4u { default: { r = 99u; } case 2u: { r = 20u; } case 1u: { r = 10u; } } return r; }",
            |x| [99, 10, 20, 99][x as usize % 4],
        ),
        (
            "switch_default_middle",
            "fn f(x: u32) -> u32 { var r = 0u; switch x % 5u { case 4u: { r = 44u; } default: { r = 9u + x; } case 2u: { r = 20u; } } return r; }",
            |x| match x % 5 {
                4 => 44,
                2 => 20,
                _ => 9 + x,
            },
        ),
        (
            "switch_many_selectors",
            "fn f(x: u32) -> u32 { switch x % 9u { case 0u, 3u, 5u: { return 1u; } case 1u, default, 8u: { return 2u; } case 2u: { return 3u; } } }",
            |x| match x % 9 {
                0 | 3 | 5 => 1,
                2 => 3,
                _ => 2,
            },
        ),
        (
            "switch_signed",
            "fn f(x: u32) -> u32 { var r = 5u; switch i32(x % 7u) - 3 { case -3: { r = 1u; } case -1, 2: { r = 2u; } case 0x7fffffff: { r = 3u; } default: { } } return r; }",
            |x| match x % 7 {
                0 => 1,
                2 | 5 => 2,
                _ => 5,
            },
        ),
        (
            "switch_break",
            "fn f(x: u32) -> u32 { var r = x; switch x % 3u { case 0u: { if x > 50u { break; } r += 1u; } case 1u: { r += 10u; break; } default: { r = 0u; } } return r + 1u; }",
            |x| match x % 3 {
                0 if x > 50 => x + 1,
                0 => x + 2,
                1 => x + 11,
                _ => 1,
            },
        ),
        (
            "switch_in_loop_with_continue",
            "fn f(x: u32) -> u32 { var s = 0u; for (var k = 0u; k < 12u; k++) { switch (x + k) % 4u { case 0u: { continue; } case 1u: { s += 1u; } \
             case 2u: { s += 100u; break; } default: { if s > 250u { return s * 2u; } } } s += 3u; } return s; }",
            |x| {
                let mut s = 0;
                for k in 0..12 {
                    match (x + k) % 4 {
                        0 => continue,
                        1 => s += 1,
                        2 => s += 100,
                        _ if s > 250 => return s * 2,
                        _ => {}
                    }
                    s += 3;
                }
                s
            },
        ),
        (
            "loop_in_switch_with_break",
            "fn f(x: u32) -> u32 { var s = 1u; switch x % 2u { case 0u: { loop { s *= 3u; if s > x { break; } } s += 1u; } \
             default: { for (var k = 0u; k < x % 11u; k++) { s += k; } } } return s; }",
            |x| {
                if x % 2 == 0 {
                    let mut s = 3;
                    while s <= x {
                        s *= 3;
                    }
                    s + 1
                } else {
                    1 + (0..x % 11).sum::<u32>()
                }
            },
        ),
        (
            "switch_nested",
            "fn f(x: u32) -> u32 { switch x % 3u { case 0u: { switch x % 5u { case 1u: { return 31u; } default: { break; } } return 30u; } \
             case 1u: { return 10u; } default: { switch x & 1u { case 0u: { return 200u; } default: { } } } } return 7u; }",
            |x| match (x % 3, x % 5) {
                (0, 1) => 31,
                (0, _) => 30,
                (1, _) => 10,
                _ if x & 1 == 0 => 200,
                _ => 7,
            },
        ),
        (
            "switch_on_constant_and_uniform",
            "const MODE = 2u;\nfn f(x: u32) -> u32 { var r = x; switch MODE { case 1u: { r = 0u; } case 2u: { r += 5u; } default: { r = 1u; } } \
             switch arrayLength(&out) { case 256u: { r *= 2u; } default: { r = 0u; } } return r; }",
            |x| (x + 5) * 2,
        ),
    ]
}

fn nested() -> Vec<Row> {
    vec![
        (
            "nested_loops",
            "fn f(x: u32) -> u32 { var s = 0u; for (var i = 0u; i < x % 9u; i++) { for (var j = i; j < x % 7u; j++) { s += i * 10u + j; } } return s; }",
            |x| (0..x % 9).map(|i| (i..x % 7).map(|j| i * 10 + j).sum::<u32>()).sum(),
        ),
        (
            "continue_in_nested_loops",
            "fn f(x: u32) -> u32 { var s = 0u; for (var i = 0u; i < 8u; i++) { if ((x >> i) & 1u) == 0u { continue; } var j = 0u; loop { \
             if j == 5u { break; } if (i + j) % (x % 3u + 2u) == 0u { continue; } s += i * j; if s > 60u { break; } continuing { j++; } } s += 1u; } return s; }",
            |x| {
                let mut s = 0;
                for i in 0..8 {
                    if x >> i & 1 == 0 {
                        continue;
                    }
                    for j in 0..5 {
                        if (i + j) % (x % 3 + 2) == 0 {
                            continue;
                        }
                        s += i * j;
                        if s > 60 {
                            break;
                        }
                    }
                    s += 1;
                }
                s
            },
        ),
        (
            "break_inner_then_outer",
            "fn f(x: u32) -> u32 { var found = 0u; for (var i = 2u; i < 40u; i++) { var prime = true; for (var j = 2u; j * j <= i; j++) { \
             if i % j == 0u { prime = false; break; } } if prime { found++; if found > x % 8u { return i; } } } return 0u; }",
            |x| {
                (2..40_u32)
                    .filter(|i| (2..*i).take_while(|j| j * j <= *i).all(|j| i % j != 0))
                    .nth(x as usize % 8)
                    .unwrap_or(0)
            },
        ),
        (
            "loop_in_divergent_branch",
            "fn f(x: u32) -> u32 { var s = 0u; if x % 4u == 1u { for (var k = 0u; k < x % 13u; k++) { s += k; } } else if x % 4u == 2u { \
             var k = x; while k > 9u { k /= 10u; s++; } } s += 1000u; return s; }",
            |x| {
                1000 + match x % 4 {
                    1 => (0..x % 13).sum(),
                    2 => x.to_string().len() as u32 - 1,
                    _ => 0,
                }
            },
        ),
        (
            "three_levels_with_returns",
            "fn f(x: u32) -> u32 { for (var i = 0u; i < 5u; i++) { for (var j = 0u; j < 5u; j++) { for (var k = 0u; k < 5u; k++) { \
             if i * 25u + j * 5u + k == x % 140u { return i * 100u + j * 10u + k; } if k > j { break; } } if (x ^ j) % 11u == 10u { continue; } } } return 9999u; }",
            |x| {
                for i in 0..5 {
                    for j in 0..5 {
                        for k in 0..5 {
                            if i * 25 + j * 5 + k == x % 140 {
                                return i * 100 + j * 10 + k;
                            }
                            if k > j {
                                break;
                            }
                        }
                    }
                }
                9999
            },
        ),
        (
            "loop_nested_in_continuing",
            "fn f(x: u32) -> u32 { var s = 0u; var k = 0u; loop { if k > 10u { break; } if k % 2u == x % 2u { continue; } s += 1u; \
             continuing { for (var j = 0u; j < 3u; j++) { s += j * (x & 1u) + 1u; } k += 1u; } } return s; }",
            |x| {
                let misses = (0..=10).filter(|k| k % 2 != x % 2).count() as u32;
                misses + 11 * (3 + 3 * (x & 1))
            },
        ),
    ]
}

fn returns() -> Vec<Row> {
    vec![
        (
            "early_return",
            "fn f(x: u32) -> u32 { if x < 20u { return x * 3u; } if x % 2u == 0u { return 1u; } return x + 1u; }",
            |x| match x {
                0..20 => x * 3,
                _ if x % 2 == 0 => 1,
                _ => x + 1,
            },
        ),
        (
            "return_from_loop_in_callee",
            "fn g(x: u32, limit: u32) -> u32 { var k = x; loop { if k > limit { break; } k = k * 2u + 1u; if k % 5u == 0u { return 0u; } } return k; }\n\
             fn f(x: u32) -> u32 { let a = g(x % 10u, 100u); let b = g(a % 7u, x % 50u); return a * 1000u + b; }",
            |x| {
                fn g(x: u32, limit: u32) -> u32 {
                    let mut k = x;
                    loop {
                        if k > limit {
                            return k;
                        }
                        k = k * 2 + 1;
                        if k % 5 == 0 {
                            return 0;
                        }
                    }
                }
                let a = g(x % 10, 100);
                a * 1000 + g(a % 7, x % 50)
            },
        ),
        (
            "call_under_divergence",
            "fn g(x: u32) -> u32 { if x % 3u == 0u { return 7u; } var s = 0u; for (var k = 0u; k < x % 5u; k++) { s += x; } return s; }\n\
             fn f(x: u32) -> u32 { var r = 2u; if x % 2u == 0u { r = g(x + 1u); } else { r += g(g(x)); } return r; }",
            |x| {
                let g = |x: u32| if x % 3 == 0 { 7 } else { x * (x % 5) };
                if x % 2 == 0 { g(x + 1) } else { 2 + g(g(x)) }
            },
        ),
        (
            "return_struct_and_discarded_call",
            "struct Two { a: u32, b: u32 }\nvar<private> log: u32;\n\
             fn split(x: u32) -> Two { log += 1u; if x > 100u { return Two(x / 100u, x % 100u); } return Two(0u, x); }\n\
             fn f(x: u32) -> u32 { _ = split(x); let t = split(x); return t.a * 1000000u + t.b * 100u + log; }",
            |x| if x > 100 { x / 100 * 1_000_000 + x % 100 * 100 + 2 } else { x * 100 + 2 },
        ),
        (
            "function_ends_with_uniform_else",
            "fn pick(x: u32, which: u32) -> u32 { if which == 1u { return x; } else { return x + 100u; } }\n\
             fn f(x: u32) -> u32 { return pick(x, 1u) * 1000u + pick(x, 2u); }",
            |x| x * 1000 + x + 100,
        ),
    ]
}

/// Returns from the entry point itself: what other invocations do afterwards must not change.
fn at_entry() -> Vec<Case> {
    let n = 256_u32;
    let main = |body: &str| {
        format!(
            "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{ let x = id.x; {body} }}"
        )
    };
    let case = |name: &str, body: &str, expected: fn(u32) -> u32| {
        Case::new(format!("control.{name}"), main(body))
            .write("out", (0..n).map(expected).collect::<Vec<u32>>())
            .invocations(256)
    };
    vec![
        case(
            "entry_return_before_store",
            "if x % 3u == 1u { return; } out[x] = x;",
            |x| if x % 3 == 1 { 0 } else { x },
        ),
        case("entry_return_uniform_guard", "if x >= 200u { return; } out[x] = x + 5u;", |x| {
            if x >= 200 { 0 } else { x + 5 }
        }),
        case(
            "entry_return_in_loop",
            "for (var k = 0u; k < 20u; k++) { out[x] += k; if (x + k) % 16u == 9u { return; } } out[x] += 1000u;",
            |x| {
                let mut s = 0;
                for k in 0..20 {
                    s += k;
                    if (x + k) % 16 == 9 {
                        return s;
                    }
                }
                s + 1000
            },
        ),
        case(
            "entry_return_in_switch",
            "out[x] = 1u; switch x % 4u { case 0u: { return; } case 1u: { out[x] = 2u; } default: { if x > 100u { return; } } } out[x] += 10u;",
            |x| match x % 4 {
                0 => 1,
                1 => 12,
                _ if x > 100 => 1,
                _ => 11,
            },
        ),
        // The last thing that a function does, on a condition that is the same for all invocations.
        case(
            "entry_ends_with_uniform_else",
            "let all = id.z + 1u; if all == 1u { out[x] = 1u; } else { out[x] = 2u; }",
            |_| 1,
        ),
        case(
            "entry_ends_with_constant_else",
            "if true { if false { out[x] = 3u; } else if true { out[x] = x; } else { out[x] = 4u; } } else { out[x] = 5u; }",
            |x| x,
        ),
        case(
            "entry_ends_with_else_and_return",
            "let all = id.y; if x < 100u { if all == 0u { out[x] = 6u; return; } else { out[x] = 7u; } } else { out[x] = 8u; }",
            |x| if x < 100 { 6 } else { 8 },
        ),
        // A variable that is the same for all invocations except for those that have left.
        case(
            "uniform_counter_after_returns",
            "var k = 0u; loop { if k == x % 64u { out[x] = k * 7u; return; } k += 1u; }",
            |x| x % 64 * 7,
        ),
    ]
}

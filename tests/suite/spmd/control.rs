//! Divergent control flow, masks, uniformity, and what variables and loaded values see of it.

use super::harness::{Run, compile};

/// Runs `fn f(i: u32, x: u32) -> u32`, given as WGSL and as Rust, for 1,500 invocations.
fn agree(name: &str, wgsl: &str, f: impl Fn(u32, u32) -> u32) {
    let text = format!(
        "@group(0) @binding(0) var<storage, read> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        {wgsl}
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3u) {{
            if id.x >= arrayLength(&y) {{ return; }}
            y[id.x] = f(id.x, x[id.x]);
        }}"
    );
    let n = 1500_u32;
    let x: Vec<u32> = (0..n).map(|i| i.wrapping_mul(2_654_435_761) >> 20).collect();
    let expected: Vec<u32> = x.iter().zip(0..).map(|(x, i)| f(i, *x)).collect();
    let run = Run::new(&text).buffer(&x).zeros(n as usize * 4).dispatch([n.div_ceil(64), 1, 1]);
    let got = run.read::<u32>(1);
    for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
        assert_eq!(got, expected, "{name}: invocation {i}, x = {}", x[i]);
    }
}

#[test]
fn branches() {
    agree(
        "if else",
        "fn f(i: u32, x: u32) -> u32 { var r = 1u; if x % 3u == 0u { r = 7u; } else { r += x; } return r; }",
        |_, x| {
            if x % 3 == 0 { 7 } else { 1 + x }
        },
    );
    agree(
        "nested",
        "fn f(i: u32, x: u32) -> u32 {
            var r = 0u;
            if x > 1000u { if i % 2u == 0u { r = x; } else { r = i; } r += 5u; } else if x > 500u { r = 9u; }
            return r;
        }",
        |i, x| {
            if x > 1000 {
                (if i % 2 == 0 { x } else { i }) + 5
            } else if x > 500 {
                9
            } else {
                0
            }
        },
    );
    agree(
        "early return",
        "fn g(x: u32) -> u32 { if x % 5u == 0u { return 1u; } if x % 5u == 1u { return 2u; } return x; }
        fn f(i: u32, x: u32) -> u32 { let a = g(x); let b = g(i); return a * 10000u + b; }",
        |i, x| {
            let g = |x: u32| match x % 5 {
                0 => 1,
                1 => 2,
                _ => x,
            };
            g(x) * 10000 + g(i)
        },
    );
    agree(
        "short circuit",
        "fn f(i: u32, x: u32) -> u32 { if x % 2u == 0u && (i % 3u == 1u || x > 2000u) { return 1u; } return 0u; }",
        |i, x| u32::from(x % 2 == 0 && (i % 3 == 1 || x > 2000)),
    );
}

#[test]
fn loops() {
    agree(
        "for",
        "fn f(i: u32, x: u32) -> u32 { var s = 0u; for (var k = 0u; k < x % 17u; k++) { s += k * i; } return s; }",
        |i, x| (0..x % 17).map(|k| k * i).sum(),
    );
    agree(
        "uniform trip, varying body",
        "fn f(i: u32, x: u32) -> u32 { var s = x; for (var k = 0u; k < 20u; k++) { if (s & 1u) == 1u { s = s * 3u + 1u; } else { s /= 2u; } } return s; }",
        |_, x| (0..20).fold(x, |s, _| if s & 1 == 1 { s.wrapping_mul(3).wrapping_add(1) } else { s / 2 }),
    );
    agree(
        "continue and break",
        "fn f(i: u32, x: u32) -> u32 {
            var s = 0u;
            for (var k = 0u; k < 30u; k++) {
                if (k + x) % 3u == 0u { continue; }
                if k > x % 23u { break; }
                s += k;
            }
            return s;
        }",
        |_, x| {
            let mut s = 0;
            for k in 0..30 {
                if (k + x) % 3 == 0 {
                    continue;
                }
                if k > x % 23 {
                    break;
                }
                s += k;
            }
            s
        },
    );
    agree(
        "break if",
        "fn f(i: u32, x: u32) -> u32 {
            var k = x % 7u; var n = 0u;
            loop { if n % 4u == 3u { n += 2u; continue; } n += 1u; continuing { k += 1u; break if k >= 12u; } }
            return n * 100u + k;
        }",
        |_, x| {
            let (mut k, mut n) = (x % 7, 0);
            loop {
                n += if n % 4 == 3 { 2 } else { 1 };
                k += 1;
                if k >= 12 {
                    return n * 100 + k;
                }
            }
        },
    );
    agree(
        "return from nested loops",
        "fn f(i: u32, x: u32) -> u32 {
            for (var a = 0u; a < 10u; a++) {
                for (var b = 0u; b < 10u; b++) { if a * 10u + b == x % 128u { return a * 1000u + b; } }
            }
            return 77777u;
        }",
        |_, x| if x % 128 < 100 { x % 128 / 10 * 1000 + x % 10_000 % 128 % 10 } else { 77777 },
    );
    agree(
        "nested divergent loops with inner uniform counters",
        "fn f(i: u32, x: u32) -> u32 {
            var s = 0u;
            var n = x % 9u;
            loop {
                if n == 0u { break; }
                var t = 0u;
                for (var k = 0u; k < 5u; k++) { t += k * n; if k == 3u { continue; } t ^= i; }
                s += t;
                n -= 1u;
            }
            return s;
        }",
        |i, x| {
            let mut s = 0_u32;
            for n in (1..=x % 9).rev() {
                let mut t = 0;
                for k in 0..5 {
                    t += k * n;
                    if k != 3 {
                        t ^= i;
                    }
                }
                s = s.wrapping_add(t);
            }
            s
        },
    );
    agree(
        "a variable that persists across iterations that some lanes skip",
        "fn f(i: u32, x: u32) -> u32 {
            var acc = 0u; var out = 0u;
            for (var k = 0u; k < 8u; k++) {
                if ((x >> k) & 1u) == 1u { continue; }
                acc += 1u;
                out = out * 3u + acc;
            }
            return out;
        }",
        |_, x| {
            let (mut acc, mut out) = (0, 0_u32);
            for k in 0..8 {
                if x >> k & 1 == 1 {
                    continue;
                }
                acc += 1;
                out = out * 3 + acc;
            }
            out
        },
    );
    agree(
        "return inside an endless loop",
        "fn f(i: u32, x: u32) -> u32 { var k = 0u; loop { k += 1u; if k * k > x { return k; } } return 0u; }",
        |_, x| (1..).find(|k| k * k > x).unwrap(),
    );
}

/// Variables that one loop alone reads are not kept for lanes that have left it; each case here shows a lane what another has stored if that went too far.
#[test]
fn variables_that_a_loop_carries() {
    agree(
        "points that escape",
        "fn f(i: u32, x: u32) -> u32 {
            var z = 1u; var n = 0u;
            for (var k = 0u; k < 30u; k++) { z = z * 5u + x; if z % 11u == 0u { break; } n += k; }
            return n;
        }",
        |_, x| {
            let (mut z, mut n) = (1_u32, 0);
            for k in 0..30 {
                z = z.wrapping_mul(5).wrapping_add(x);
                if z % 11 == 0 {
                    break;
                }
                n += k;
            }
            n
        },
    );
    let again = |set: bool, i: u32, x: u32| {
        let (mut z, mut r) = (i, 0_u32);
        for k in 0..6 {
            if x >> k & 1 == 0 {
                continue;
            }
            if set {
                z = i + k;
            }
            if x.is_multiple_of(3) && set {
                z += 7;
            }
            loop {
                z = z.wrapping_mul(3).wrapping_add(1);
                if z % 7 < 2 {
                    break;
                }
                r = r.wrapping_add(z);
            }
        }
        r
    };
    agree(
        "a loop that is entered again by some lanes, with what they left there",
        "fn f(i: u32, x: u32) -> u32 {
            var z = i; var r = 0u;
            for (var k = 0u; k < 6u; k++) {
                if ((x >> k) & 1u) == 0u { continue; }
                loop { z = z * 3u + 1u; if z % 7u < 2u { break; } r += z; }
            }
            return r;
        }",
        |i, x| again(false, i, x),
    );
    agree(
        "a loop that is entered again by some lanes, after a store of all and one of few",
        "fn f(i: u32, x: u32) -> u32 {
            var z = 0u; var r = 0u;
            for (var k = 0u; k < 6u; k++) {
                if ((x >> k) & 1u) == 0u { continue; }
                z = i + k;
                if x % 3u == 0u { z += 7u; }
                loop { z = z * 3u + 1u; if z % 7u < 2u { break; } r += z; }
            }
            return r;
        }",
        |i, x| again(true, i, x),
    );
    agree(
        "stores while others rest, and a loop within that counts anew",
        "fn f(i: u32, x: u32) -> u32 {
            var a = 3u; var r = 0u;
            for (var k = 0u; k < 9u; k++) {
                if (x + k) % 4u == 1u { r ^= a; continue; }
                a = a * 3u + k;
                var b = a;
                for (var j = k; j < 12u; j++) { b += j * a; if b % 5u == 0u { break; } }
                if a % 6u == 4u { r += j_of(b, i); }
                if x % 9u == k { return r + a; }
            }
            return r;
        }
        fn j_of(b: u32, i: u32) -> u32 {
            var t = b; var steps = 0u;
            while t > 1u && steps < 20u { t = select(t / 2u, t * 3u + i, (t & 1u) == 1u); steps++; }
            return steps;
        }",
        |i, x| {
            let (mut a, mut r) = (3_u32, 0_u32);
            for k in 0..9 {
                if (x + k) % 4 == 1 {
                    r ^= a;
                    continue;
                }
                a = a.wrapping_mul(3).wrapping_add(k);
                let mut b = a;
                for j in k..12 {
                    b = b.wrapping_add(a.wrapping_mul(j));
                    if b % 5 == 0 {
                        break;
                    }
                }
                if a % 6 == 4 {
                    let (mut t, mut steps) = (b, 0);
                    while t > 1 && steps < 20 {
                        t = if t & 1 == 1 { t.wrapping_mul(3).wrapping_add(i) } else { t / 2 };
                        steps += 1;
                    }
                    r = r.wrapping_add(steps);
                }
                if x % 9 == k {
                    return r.wrapping_add(a);
                }
            }
            r
        },
    );
    agree(
        "two loops that share a variable, and one that is read behind its loop",
        "fn f(i: u32, x: u32) -> u32 {
            var z = 1u; var k = 0u;
            loop { z += i; k++; if z % 5u == x % 5u || k > 8u { break; } }
            for (; k < 20u; k++) { z = z * 7u + x; if z % 4u == 1u { break; } }
            return k;
        }",
        |i, x| {
            let (mut z, mut k) = (1_u32, 0);
            loop {
                z = z.wrapping_add(i);
                k += 1;
                if z % 5 == x % 5 || k > 8 {
                    break;
                }
            }
            while k < 20 {
                z = z.wrapping_mul(7).wrapping_add(x);
                if z % 4 == 1 {
                    break;
                }
                k += 1;
            }
            k
        },
    );
    // The counter and z need no mask: one blend is left for each of the two ways of batching, that of n.
    let listing = compile(
        "@group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            var z = 0.0; var n = 0.0;
            for (var k = 0; k < 100; k++) { z = z * z + f32(id.x); if z > 4.0 { break; } n += 1.0; }
            y[id.x] = n;
        }",
    )
    .listing();
    assert_eq!(listing.matches("Blend").count(), 2, "{listing}");
    // Who leaves is taken from the loop's mask at once, z is added up where it stays, and lanes around those that are left are left out.
    let of_loops = |op: &str| listing.lines().filter(|line| line.split_whitespace().nth(1) == Some(op)).count();
    assert_eq!(["MaskDrop", "MaskAnd", "MaskRemove", "Narrow"].map(of_loops), [2, 0, 0, 4], "{listing}");
    // A value that is read elsewhere, too, is computed in its variable.
    let listing = compile(
        "@group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            var a = 0.0; var b = f32(id.x); var n = 0.0;
            for (var k = 0; k < 100; k++) { a = b * b - 2.0; b = a * a; if a + b > 4.0 { break; } n += 1.0; }
            y[id.x] = n;
        }",
    )
    .listing();
    assert_eq!(
        listing.lines().filter(|line| line.contains(" Copy ") && line.contains("form 00000")).count(),
        0,
        "{listing}"
    );
}

/// Neighbours make about as many rounds, so that whole runs of lanes on either side have left a loop, within which others begin and end.
#[test]
fn lanes_around_those_that_are_left() {
    agree(
        "loops in loops",
        "fn least(side: u32, x: u32) -> u32 {
            for (var k = 0u; k < side / 30u; k++) { if (x + k) % 11u == 3u { return k; } }
            return side;
        }
        fn f(i: u32, x: u32) -> u32 {
            let side = i % 512u;
            var total = 1u; var wide = 1lu; var table: array<u32, 8>;
            let most = select(side / 20u, (511u - side) / 10u, side > 170u);
            for (var k = 0u; k < most; k++) {
                total += x; wide = wide * 3lu + u64(k);
                table[(k + x) % 8u] += total;
                var inner = 0u;
                for (var j = 0u; j < (side / 64u + k) % 5u; j++) { inner += j * total; if (inner & 1023u) > 900u { break; } }
                total ^= inner + least(side, x);
                if total % 7u == 3u { continue; }
                if total % 61u == 5u { break; }
                total += table[k % 8u];
                loop { inner = inner / 2u + 1u; continuing { break if inner < 3u || inner == 4u; } }
                total += inner;
            }
            return total + table[x % 8u] + u32(wide & 0xfffffffflu);
        }",
        |i, x| {
            let side = i % 512;
            let least = (0..side / 30).find(|k| (x + k) % 11 == 3).unwrap_or(side);
            let (mut total, mut wide, mut table) = (1_u32, 1_u64, [0_u32; 8]);
            let most = if side > 170 { (511 - side) / 10 } else { side / 20 };
            for k in 0..most {
                total = total.wrapping_add(x);
                wide = wide.wrapping_mul(3).wrapping_add(k.into());
                let place = &mut table[((k + x) % 8) as usize];
                *place = place.wrapping_add(total);
                let mut inner = 0_u32;
                for j in 0..(side / 64 + k) % 5 {
                    inner = inner.wrapping_add(j.wrapping_mul(total));
                    if inner & 1023 > 900 {
                        break;
                    }
                }
                total ^= inner.wrapping_add(least);
                if total % 7 == 3 {
                    continue;
                }
                if total % 61 == 5 {
                    break;
                }
                total = total.wrapping_add(table[(k % 8) as usize]);
                loop {
                    inner = inner / 2 + 1;
                    if inner < 3 || inner == 4 {
                        break;
                    }
                }
                total = total.wrapping_add(inner);
            }
            total.wrapping_add(table[(x % 8) as usize]).wrapping_add(wide as u32)
        },
    );
    // The last lanes leave the loop and the function together; behind it all of them go on.
    agree(
        "all return from within a loop",
        "fn inverse(v: u32) -> u32 { var n = 0u; loop { if (n * 7u) % 13u == v % 13u { return n; } n += 1u; } return 0u; }
        fn f(i: u32, x: u32) -> u32 { return inverse(x) * 2u + i; }",
        |i, x| (0..13).find(|n| n * 7 % 13 == x % 13).unwrap_or(0) * 2 + i,
    );
}

#[test]
fn switches() {
    let text = "fn f(i: u32, x: u32) -> u32 {
        var r = 0u;
        switch SELECTOR % 9u {
            case 1u, 2u { r = 10u; }
            default { r = 50u; if x > 2000u { break; } r += 1u; }
            case 3u { r = 20u; }
            case 4u, 7u: { r = 30u; if (x & 1u) == 0u { break; } r += i; }
        }
        return r + 1u;
    }";
    let f = |selector: u32, i: u32, x: u32| {
        1 + match selector % 9 {
            1 | 2 => 10,
            3 => 20,
            4 | 7 => 30 + if x & 1 == 0 { 0 } else { i },
            _ => 50 + u32::from(x <= 2000),
        }
    };
    agree("varying", &text.replace("SELECTOR", "x"), |i, x| f(x, i, x));
    agree("uniform", &text.replace("SELECTOR", "7u"), |i, x| f(7, i, x));
    agree("uniform default", &text.replace("SELECTOR", "arrayLength(&y)"), |i, x| f(1500, i, x));
    agree(
        "continue in switch in loop",
        "fn f(i: u32, x: u32) -> u32 {
            var s = 0u;
            for (var k = 0u; k < 12u; k++) {
                switch (x + k) % 4u { case 0u { continue; } case 1u { s += 1u; } case 2u { if k > 8u { return s; } } default { break; } }
                s += 10u;
            }
            return s;
        }",
        |_, x| {
            let mut s = 0;
            for k in 0..12 {
                match (x + k) % 4 {
                    0 => continue,
                    1 => s += 1,
                    2 if k > 8 => return s,
                    _ => {}
                }
                s += 10;
            }
            s
        },
    );
}

#[test]
fn loaded_values_do_not_follow_the_variable() {
    agree(
        "swap",
        "fn f(i: u32, x: u32) -> u32 { var a = i; var b = x; let t = a; a = b; b = t; return a * 3u + b; }",
        |i, x| x * 3 + i,
    );
    agree(
        "loaded before a loop that stores",
        "fn f(i: u32, x: u32) -> u32 { var a = x; let before = a; for (var k = 0u; k < 4u; k++) { a += before; } return a; }",
        |_, x| 5 * x,
    );
    agree(
        "loaded before a branch that stores",
        "fn f(i: u32, x: u32) -> u32 { var a = x; let before = a; if i % 2u == 0u { a = 1u; } return a * 4096u + before; }",
        |i, x| if i % 2 == 0 { 4096 + x } else { x * 4096 + x },
    );
    agree(
        "uniform variable under a divergent mask",
        "fn f(i: u32, x: u32) -> u32 { var a = 5u; if x > 1500u { a = 6u; } for (var k = 0u; k < 3u; k++) { if x > 1000u { a *= 2u; } } return a; }",
        |_, x| (if x > 1500 { 6 } else { 5 }) * if x > 1000 { 8 } else { 1 },
    );
}

#[test]
fn pointers_and_functions() {
    agree(
        "out parameters",
        "fn bump(p: ptr<function, u32>, by: u32) { *p += by; if *p > 3000u { *p = 0u; return; } *p += 1u; }
        fn f(i: u32, x: u32) -> u32 { var a = x; bump(&a, i); bump(&a, 2u); return a; }",
        |i, x| {
            let bump = |a: u32, by: u32| if a + by > 3000 { 0 } else { a + by + 1 };
            bump(bump(x, i), 2)
        },
    );
    agree(
        "into a struct and an array",
        "struct S { a: u32, b: array<u32, 4>, c: vec3u }
        fn put(p: ptr<function, array<u32, 4>>, k: u32, v: u32) { (*p)[k] = v; }
        fn comp(p: ptr<function, vec3u>) { (*p).y = 9u; }
        fn f(i: u32, x: u32) -> u32 {
            var s: S;
            s.a = i;
            put(&s.b, x % 4u, x);
            put(&s.b, i % 4u, i);
            comp(&s.c);
            var t = s;
            s.a = 0u;
            return t.a + t.b[0] * 3u + t.b[1] * 5u + t.b[2] * 7u + t.b[3] * 11u + t.c.y + s.a;
        }",
        |i, x| {
            let mut b = [0; 4];
            b[x as usize % 4] = x;
            b[i as usize % 4] = i;
            i + b[0] * 3 + b[1] * 5 + b[2] * 7 + b[3] * 11 + 9
        },
    );
    agree(
        "private variables",
        "var<private> counter: u32 = 3u;
        var<private> seen: array<u32, 3>;
        fn note(x: u32) { seen[counter % 3u] += x; counter += 1u; }
        fn f(i: u32, x: u32) -> u32 { note(x); if x % 2u == 0u { note(i); } note(1u); return counter * 100000u + seen[0] + seen[1] * 2u + seen[2] * 3u; }",
        |i, x| {
            let (mut counter, mut seen) = (3_u32, [0_u32; 3]);
            let mut note = |x: u32| {
                seen[counter as usize % 3] += x;
                counter += 1;
            };
            note(x);
            if x % 2 == 0 {
                note(i);
            }
            note(1);
            counter * 100_000 + seen[0] + seen[1] * 2 + seen[2] * 3
        },
    );
    agree(
        "lookup tables and indexed values",
        "const TABLE = array<u32, 6>(3u, 1u, 4u, 1u, 5u, 9u);
        fn f(i: u32, x: u32) -> u32 {
            let v = vec4u(x, i, 7u, 8u);
            var local = array<u32, 12>(x, x, i, i, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u);
            let copy = local;
            local[3] = 0u;
            return TABLE[x % 6u] * 1000u + v[i % 4u] + copy[(x / 3u) % 12u] + local[3];
        }",
        |i, x| {
            let copy = [x, x, i, i, 1, 2, 3, 4, 5, 6, 7, 8];
            [3, 1, 4, 1, 5, 9][x as usize % 6] * 1000 + [x, i, 7, 8][i as usize % 4] + copy[x as usize / 3 % 12]
        },
    );
}

/// The counters are constants in each round: nothing jumps, and the array lies in registers.
#[test]
fn loops_of_known_rounds_are_unrolled() {
    let text = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            var cells: array<u32, 8>;
            for (var i = 0u; i < 8u; i++) { cells[i] = id.x * i; }
            var sum = 0u;
            for (var i = 0u; i < 4u; i++) { for (var k = i; k < 8u; k += 2u) { sum = sum * 3u + cells[(k + i) % 8u]; } }
            out[id.x] = sum;
        }";
    let listing = compile(text).listing();
    assert!(!listing.contains("Jump") && !listing.contains("Load"), "{listing}");
    let sum = |x: u32| {
        (0..4)
            .flat_map(|i| (i..8).step_by(2).map(move |k| (k + i) % 8 * x))
            .fold(0, |sum: u32, cell| sum.wrapping_mul(3).wrapping_add(cell))
    };
    let out = Run::new(text).zeros(640 * 4).dispatch([10, 1, 1]).read::<u32>(0);
    assert_eq!(out, (0..640).map(sum).collect::<Vec<u32>>());
}

/// Loops whose rounds are known, of every form: `BOUND(n)` is the number itself, or one that is read when the kernel runs.
const COUNTED: &str = "@group(0) @binding(0) var<storage, read> n: array<u32>;
    @group(0) @binding(1) var<storage, read_write> out: array<array<u32, 12>>;
    fn bump(p: ptr<function, u32>) { *p += 1u; }
    fn within(x: u32) -> u32 {
        var sum = x;
        for (var i = 0u; i < BOUND(3); i++) { sum = sum * 5u + i; if sum % 7u == 0u { sum += 1u; } }
        return sum;
    }
    @compute @workgroup_size(32)
    fn main(@builtin(global_invocation_id) id: vec3u) {
        var r: array<u32, 12>;
        r[11] = n[0];
        var cells: array<u32, 16>;
        for (var i = 0u; i < BOUND(16); i += 1u) { cells[i] = i * id.x + 1u; }
        for (var i = i32(BOUND(5)); i >= -i32(BOUND(4)); i -= 3) { r[0] = r[0] * 3u + u32(i + 9); }
        for (var i = BOUND(12); i != BOUND(2); i = i - 2u) { r[1] += cells[i] * i; }
        for (var i = BOUND(7); i < BOUND(7); i++) { r[2] = 99u; }
        for (var i = 0u; i <= BOUND(3); i++) {
            for (var k = i; k < BOUND(4); k++) {
                cells[i * 4u + k % 4u] ^= cells[k] << (i & 3u);
                if cells[k] % 3u == id.x % 3u { r[3] += k; } else { r[3] ^= cells[15u - k]; }
            }
        }
        for (var i = 0u; i < BOUND(6); i++) { if i == id.x % 8u { continue; } r[4] += i * i; }
        for (var i = 0u; i < BOUND(6); i++) { if i == id.x % 8u { break; } r[5] += i + 1u; }
        for (var i = 0u; i < BOUND(9); i++) { r[6] += i; if r[6] % 4u == 2u { i += 1u; } }
        for (var i = 0u; i < BOUND(9); i++) { r[7] += i; if r[7] % 4u == 2u { bump(&i); } }
        var last = 0u;
        for (; last < BOUND(5); last++) { r[8] += last * last; }
        r[8] = r[8] * 100u + last;
        if id.x % 3u != 1u {
            for (var i = 0u; i < BOUND(4); i++) {
                var own = i + id.x;
                for (var k = 0u; k < id.x % 5u; k++) { own = own * 3u + k; if own > 500u { break; } }
                switch own % 4u { case 0u: { r[9] += own; } case 1u: { break; } default: { r[9] ^= own; } }
            }
        }
        for (var i = 4294967294u; i > BOUND(3); i += 1u) { r[10] = r[10] * 2u + 1u; }
        for (var i = 0u; i < BOUND(2); i++) { r[11] = within(r[11] + within(id.x)) + cells[i * 5u]; }
        for (var i = 0u; i < BOUND(12); i++) { out[id.x][i] = r[i]; }
    }";

#[test]
fn counted_loops_do_the_same_unrolled() {
    let bounded = |with: &dyn Fn(&str) -> String| {
        let mut parts = COUNTED.split("BOUND(");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (number, rest) = part.split_once(')').unwrap();
            text += &with(number);
            text += rest;
        }
        text
    };
    let (known, read) = (bounded(&|number| format!("{number}u")), bounded(&|number| format!("n[{number}]")));
    let numbers: Vec<u32> = (0..20).collect();
    let run = |text: &str| Run::new(text).buffer(&numbers).zeros(20 * 32 * 48);
    let [known, read] = [known, read].map(|text| run(&text).dispatch([20, 1, 1]).read::<[u32; 12]>(1));
    for (id, (known, read)) in known.iter().zip(&read).enumerate() {
        assert_eq!(known, read, "invocation {id}");
    }
    // By hand: 5, 2, -1 and -4 and nine, then the squares of 0 to 4 and the counter.
    let first = [14, 11, 8, 5].into_iter().fold(0, |sum, next| sum * 3 + next);
    assert_eq!((known[7][0], known[7][2], known[7][8]), (first, 0, 30 * 100 + 5));
}

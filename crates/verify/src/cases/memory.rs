//! Private, function, workgroup and storage memory: zero-initialisation, initialisers, dynamic indices, constants. The conformance suite and `cantus
//! verify` run them on every device. They show whether memory begins as zero in every workgroup and invocation, and whether a computed index reaches the
//! right element in each address space.

use crate::case::Case;
use crate::inputs::words;

pub fn cases() -> Vec<Case> {
    let mut cases = variables();
    cases.extend(bindings());
    cases.extend(zeroed_workgroups());
    cases
}

fn variables() -> Vec<Case> {
    type Oracle = fn(u32) -> u32;
    let table: [(&str, &str, Oracle); 15] = [
        (
            "private_zero",
            "struct S { a: vec3u, b: array<u32, 7> }\nvar<private> s: S;\nvar<private> k: u32;\n\
          fn f(x: u32) -> u32 { let before = s.a.y + s.b[x % 7u] + k; s.a.y = 9u; k = x; return before * 10u + s.a.y + k; }",
            |x| 9 + x,
        ),
        (
            "private_initialiser",
            "var<private> p: u32 = 5u;\nvar<private> v = vec2u(6u, 7u);\nvar<private> t = array<u32, 3>(1u, 2u, 3u);\n\
          fn f(x: u32) -> u32 { p += x; t[x % 3u] += 10u; return p + v.y * 100u + t[0] * 1000u + t[1] * 10000u; }",
            |x| {
                let mut t = [1, 2, 3];
                t[x as usize % 3] += 10;
                5 + x + 700 + t[0] * 1000 + t[1] * 10000
            },
        ),
        (
            "private_across_functions",
            "var<private> depth: u32;\nfn down(n: u32) { depth += n; if n > 3u { depth *= 2u; } }\n\
          fn f(x: u32) -> u32 { down(x % 8u); down(2u); return depth; }",
            |x| {
                let n = x % 8;
                (if n > 3 { n * 2 } else { n }) + 2
            },
        ),
        (
            "function_zero",
            "fn f(x: u32) -> u32 { var a: u32; var v: vec4u; var m: array<vec2u, 3>; a += x; v.w += 2u; m[x % 3u].x += 3u; return a + v.w + m[0].x + m[1].x + m[2].x + v.x; }",
            |x| x + 5,
        ),
        (
            "array_dynamic",
            "fn f(x: u32) -> u32 { var a: array<u32, 8>; for (var k = 0u; k < 20u; k++) { a[(x * k + 3u) % 8u] += k; } return a[x % 8u] * 1000u + a[(x + 1u) % 8u]; }",
            |x| {
                let mut a = [0; 8];
                for k in 0..20 {
                    a[(x * k + 3) as usize % 8] += k;
                }
                a[x as usize % 8] * 1000 + a[(x + 1) as usize % 8]
            },
        ),
        (
            "array_of_arrays",
            "fn f(x: u32) -> u32 { var a: array<array<u32, 3>, 4>; for (var i = 0u; i < 4u; i++) { for (var j = 0u; j < 3u; j++) { a[i][j] = i * x + j; } } \
          let row = a[x % 4u]; return row[2] + row[x % 3u] * 100u; }",
            |x| {
                let i = x % 4;
                i * x + 2 + (i * x + x % 3) * 100
            },
        ),
        (
            "insertion_sort",
            "fn f(x: u32) -> u32 { var a: array<u32, 10>; var seed = x; for (var k = 0; k < 10; k++) { seed = (seed * 1103515245u + 12345u) & 0x7fffffffu; a[k] = seed % 100u; } \
          for (var i = 1; i < 10; i++) { let v = a[i]; var j = i - 1; while j >= 0 && a[max(j, 0)] > v { a[j + 1] = a[j]; j -= 1; } a[j + 1] = v; } \
          return a[0] + a[4] * 100u + a[9] * 10000u; }",
            |x| {
                let mut seed = x;
                let mut a = [0; 10].map(|_: u32| {
                    seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12345) & 0x7FFF_FFFF;
                    seed % 100
                });
                a.sort_unstable();
                a[0] + a[4] * 100 + a[9] * 10000
            },
        ),
        (
            "constant_table",
            "const TABLE = array<u32, 6>(3u, 1u, 4u, 1u, 5u, 9u);\nfn f(x: u32) -> u32 { return TABLE[x % 6u] * 10u + TABLE[2]; }",
            |x| [3, 1, 4, 1, 5, 9][x as usize % 6] * 10 + 4,
        ),
        (
            "constant_expressions",
            "const A = 7 * 6 - 2;\nconst B = vec3(A, A / 3, A % 7);\nconst C = B.y << 2;\nconst D: f32 = 1.5 * 2;\nconst_assert A == 40;\n\
          fn f(x: u32) -> u32 { return x + u32(A) + u32(B.z) * 100u + u32(C) * 1000u + u32(D); }",
            |x| x + 40 + 500 + 52_000 + 3,
        ),
        (
            "vector_dynamic_index",
            "fn f(x: u32) -> u32 { var v = vec4u(1u, 2u, 3u, x); v[x % 4u] += 50u; let w = v.wzyx; return w[x % 3u] + v[(x + 1u) % 4u] * 1000u; }",
            |x| {
                let mut v = [1, 2, 3, x];
                v[x as usize % 4] += 50;
                let w = [v[3], v[2], v[1], v[0]];
                w[x as usize % 3] + v[(x + 1) as usize % 4] * 1000
            },
        ),
        (
            "bool_arrays",
            "var<private> seen: array<bool, 11>;\nfn f(x: u32) -> u32 { var n = 0u; var k = x % 11u; loop { if seen[k] { break; } seen[k] = true; n++; k = (k * 3u + 1u) % 11u; } return n * 100u + k; }",
            |x| {
                let mut seen = [false; 11];
                let (mut n, mut k) = (0, x % 11);
                while !seen[k as usize] {
                    seen[k as usize] = true;
                    n += 1;
                    k = (k * 3 + 1) % 11;
                }
                n * 100 + k
            },
        ),
        (
            "structure_of_everything",
            "struct In { b: bool, v: vec2i }\nstruct S { i: i32, f: f32, m: mat2x2f, a: array<In, 3> }\n\
          fn f(x: u32) -> u32 { var s: S; s.i = -3; s.f = 2.5; s.m[1].x = 4.0; s.a[x % 3u].b = x % 2u == 0u; s.a[1].v.y = i32(x); let t = s; s.i = 0; \
          return u32(-t.i) + u32(t.f * 2.0) * 10u + u32(t.m[1][0]) * 100u + u32(t.a[0].b) * 1000u + u32(t.a[1].v.y + t.i + 3) * 10000u; }",
            |x| 3 + 50 + 400 + u32::from(x % 3 == 0 && x % 2 == 0) * 1000 + x * 10000,
        ),
        (
            "shadowing_scopes",
            "const x = 1000u;\nfn f(a: u32) -> u32 { var s = x; { let x = a; s += x; for (var x = 0u; x < 3u; x++) { s += x; } s += x; } if a > 5u { let x = 1u; s += x; } return s + x; }",
            |a| 1000 + a + 3 + a + u32::from(a > 5) + 1000,
        ),
        (
            "large_private_array",
            "var<private> t: array<u32, 300>;\nfn f(x: u32) -> u32 { for (var k = 0u; k < 300u; k += 7u) { t[(k + x) % 300u] = k; } var s = 0u; for (var k = 0u; k < 300u; k++) { s = s * 3u + t[k]; } return s; }",
            |x| {
                let mut t = [0_u32; 300];
                for k in (0..300).step_by(7) {
                    t[(k + x) as usize % 300] = k;
                }
                t.iter().fold(0_u32, |s, &t| s.wrapping_mul(3).wrapping_add(t))
            },
        ),
        (
            "conditional_stores",
            "fn f(x: u32) -> u32 { var a = array<u32, 4>(1u, 2u, 3u, 4u); if x % 2u == 0u { a[x % 4u] = 9u; } else { a[3] = a[x % 4u]; } if a[3] == 9u { a[0] = 7u; } return a[0] + a[1] * 10u + a[2] * 100u + a[3] * 1000u; }",
            |x| {
                let mut a = [1, 2, 3, 4];
                if x % 2 == 0 {
                    a[x as usize % 4] = 9;
                } else {
                    a[3] = a[x as usize % 4];
                }
                a[0] + a[1] * 10 + a[2] * 100 + a[3] * 1000
            },
        ),
    ];
    let inputs: Vec<u32> = (0..100).chain(words(140, 28).into_iter().map(|x| x & 0xFFFF)).collect();
    table
        .map(|(name, function, oracle)| {
            Case::each_with(format!("memory.{name}"), function, "f(a[i])")
                .read("a", &inputs)
                .write("out", inputs.iter().map(|&x| oracle(x)).collect::<Vec<u32>>())
                .invocations(128)
        })
        .into()
}

fn bindings() -> Vec<Case> {
    let a = words(141, 200);
    let order = crate::inputs::ints(142, 200, 0, 200).iter().map(|&i| i as u32).collect::<Vec<u32>>();
    let strided: Vec<u32> = (0..200).map(|i| a[i * 7 % 200]).collect();
    let mut histogramless = vec![0_u32; 200];
    (0..200).for_each(|i| histogramless[(i * 77 + 5) % 200] = a[i]);
    let main = |body: &str| {
        format!(
            "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{ let i = id.x; if i >= 200u {{ return; }} {body} }}"
        )
    };
    vec![
        Case::new("memory.gather", main("out[i] = a[at[i]];"))
            .read("a", &a)
            .read("at", &order)
            .write("out", order.iter().map(|&k| a[k as usize]).collect::<Vec<u32>>())
            .invocations(200),
        Case::new("memory.scatter", main("out[(i * 77u + 5u) % 200u] = a[i];")).read("a", &a).write("out", histogramless).invocations(200),
        Case::new("memory.strided", main("out[i] = a[i * 7u % 200u];")).read("a", &a).write("out", strided).invocations(200),
        Case::new("memory.reversed_in_place", main("if i < 100u { let t = a[i]; a[i] = a[199u - i]; a[199u - i] = t; }"))
            .update("a", &a, a.iter().rev().copied().collect::<Vec<u32>>())
            .invocations(200),
        Case::new("memory.read_modify_write", main("a[i] += i; a[i] *= 3u; a[i] ^= a[i] >> 7u; a[i]++;"))
            .update("a", &a, (0..).zip(&a).map(|(i, &a)| {
                let x = a.wrapping_add(i).wrapping_mul(3);
                (x ^ x >> 7).wrapping_add(1)
            }).collect::<Vec<u32>>())
            .invocations(200),
        Case::new("memory.uniform_broadcast", main("out[i] = a[3] * p.y + p.x + i;"))
            .read("a", &a)
            .uniform("p: vec2u", [17_u32, 5])
            .write("out", (0..200).map(|i| a[3].wrapping_mul(5).wrapping_add(17 + i)).collect::<Vec<u32>>())
            .invocations(200),
        Case::new("memory.eight_bindings", main("out[i] = a[i] ^ b[i] ^ c[i] ^ d[i] ^ e[i] ^ f[i] ^ g[i];"))
            .read("a", &a)
            .read("b", &order)
            .read("c", &a[..])
            .read("d", &order)
            .read("e", words(143, 200))
            .read("f", words(144, 200))
            .read("g", words(143, 200))
            .write("out", words(144, 200))
            .invocations(200),
        Case::new("memory.overlapping_components", main("v[i].x = v[i].y; v[i].y = v[i].z + 1u; v[i].z = v[i].x;"))
            .update("v: array<vec4u>", [9_u32, 5, 7, 1].repeat(200), [5_u32, 8, 5, 1].repeat(200))
            .invocations(200),
        Case::new(
            "memory.store_seen_by_later_load",
            main("out[i] = 1u; for (var k = 0u; k < 5u; k++) { out[i] = out[i] * 2u + (i & 1u); if out[i] > 20u { out[i] -= 3u; } }"),
        )
        .write("out", (0..200).map(|i| (0..5).fold(1_u32, |x, _| {
            let x = x * 2 + (i & 1);
            if x > 20 { x - 3 } else { x }
        })).collect::<Vec<u32>>())
        .invocations(200),
    ]
}

/// Workgroup memory is zero at the start of every workgroup, whatever the last one left there.
fn zeroed_workgroups() -> Vec<Case> {
    let body = "struct S { n: u32, v: array<vec3u, 40>, b: bool }\nvar<workgroup> s: S;\nvar<workgroup> hits: atomic<u32>;\n\
                @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {\n \
                var sum = s.n + atomicLoad(&hits) + u32(s.b);\n for (var k = 0u; k < 40u; k++) { sum += s.v[k].x + s.v[k].y + s.v[k].z; }\n \
                workgroupBarrier();\n s.v[i] = vec3u(0xFFu); s.v[i + 8u] = vec3u(0xFFFFu, i, 7u); atomicAdd(&hits, 1u); if i == 3u { s.n = 77u; s.b = true; }\n \
                workgroupBarrier();\n out[w.x * 32u + i] = sum * 1000u + s.n + atomicLoad(&hits) + u32(s.b);\n}";
    vec![
        Case::new("memory.workgroup_zero", body).write("out", vec![77 + 32 + 1_u32; 32 * 70]).workgroups(70, 1, 1),
        Case::new("memory.storage_keeps_contents", "@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { if i == 2u { out[i] += 1u; } }")
            .update("out", [5_u32, 6, 7, 8, 9], [5_u32, 6, 8, 8, 9]),
    ]
}

//! Functions and pointers: arguments in every address space, pointers to parts, aliasing by turns, and values copied
//! before they change.

use crate::case::Case;
use crate::inputs::words;

pub fn cases() -> Vec<Case> {
    type Oracle = fn(u32) -> u32;
    let table: [(&str, &str, Oracle); 14] = [
        (
            "function_argument",
            "fn bump(p: ptr<function, u32>) { *p += 3u; *p *= 2u; }\nfn f(x: u32) -> u32 { var v = x; bump(&v); bump(&v); return v; }",
            |x| ((x + 3) * 2 + 3) * 2,
        ),
        (
            "private_argument",
            "var<private> total: u32 = 100u;\nfn add(p: ptr<private, u32>, x: u32) { *p += x; }\n\
          fn f(x: u32) -> u32 { add(&total, x); add(&total, 1u); return total; }",
            |x| x + 101,
        ),
        (
            "swap_two",
            "fn swap(a: ptr<function, u32>, b: ptr<function, u32>) { let t = *a; *a = *b; *b = t; }\n\
          fn f(x: u32) -> u32 { var a = x; var b = 7u; if x % 2u == 0u { swap(&a, &b); } return a * 1000u + b; }",
            |x| {
                if x % 2 == 0 { 7000 + x } else { x * 1000 + 7 }
            },
        ),
        (
            "whole_array",
            "fn sum(p: ptr<function, array<u32, 5>>) -> u32 { var s = 0u; for (var k = 0u; k < 5u; k++) { s += (*p)[k]; (*p)[k] = s; } return s; }\n\
          fn f(x: u32) -> u32 { var a = array<u32, 5>(x, 1u, 2u, x, 5u); let s = sum(&a); return s * 3u + a[2] + a[x % 5u]; }",
            |x| {
                let prefix = [x, x + 1, x + 3, 2 * x + 3, 2 * x + 8];
                prefix[4] * 3 + prefix[2] + prefix[x as usize % 5]
            },
        ),
        (
            "let_pointer",
            "fn f(x: u32) -> u32 { var v = vec3u(x, 2u, 3u); let p = &v; (*p).y = (*p).x + 1u; let q = &v; (*q).z = v.y * 2u; return v.x + v.y * 10u + v.z * 100u; }",
            |x| x + (x + 1) * 10 + (x + 1) * 200,
        ),
        (
            "let_pointer_with_captured_index",
            "fn f(x: u32) -> u32 { var a = array<u32, 4>(10u, 20u, 30u, 40u); var k = x % 4u; let p = &a[k]; k = (k + 1u) % 4u; *p += 1u; return a[0] + a[1] * 3u + a[2] * 5u + a[3] * 7u + k; }",
            |x| {
                let mut a = [10, 20, 30, 40];
                a[x as usize % 4] += 1;
                a[0] + a[1] * 3 + a[2] * 5 + a[3] * 7 + (x + 1) % 4
            },
        ),
        (
            "struct_member",
            "struct S { a: u32, b: array<u32, 3>, c: vec2u }\nfn f(x: u32) -> u32 { var s: S; let p = &s.b; (*p)[x % 3u] = x; s.c.y = 5u; s.a = (*p)[1]; return s.a + s.b[0] * 2u + s.b[2] * 3u + s.c.x + s.c.y; }",
            |x| {
                let mut b = [0; 3];
                b[x as usize % 3] = x;
                b[1] + b[0] * 2 + b[2] * 3 + 5
            },
        ),
        (
            "nested_calls",
            "fn inner(p: ptr<function, i32>) -> i32 { *p -= 4; return *p * 2; }\nfn outer(p: ptr<function, i32>, n: i32) -> i32 { var s = 0; for (var k = 0; k < n; k++) { s += inner(p); } return s; }\n\
          fn f(x: u32) -> u32 { var v = i32(x % 100u); let s = outer(&v, i32(x % 4u)); return bitcast<u32>(s * 1000 + v); }",
            |x| {
                let (mut v, mut s) = (x as i32 % 100, 0);
                for _ in 0..x % 4 {
                    v -= 4;
                    s += v * 2;
                }
                (s * 1000 + v) as u32
            },
        ),
        (
            "value_taken_before_store",
            "fn f(x: u32) -> u32 { var a = x; let before = a; a = a + 10u; let between = a; a = before * 2u; return before + between * 3u + a * 5u; }",
            |x| x + (x + 10) * 3 + x * 10,
        ),
        (
            "struct_copied_by_value",
            "struct P { x: u32, y: u32 }\nfn change(p: P) -> P { var q = p; q.x += 5u; return q; }\n\
          fn f(x: u32) -> u32 { var p = P(x, 2u); let q = change(p); p.y = q.x; let r = p; p.x = 0u; return r.x + r.y * 2u + q.y * 3u + p.x; }",
            |x| x + (x + 5) * 2 + 6,
        ),
        (
            "array_copied_by_value",
            "fn f(x: u32) -> u32 { var a = array<u32, 3>(x, x + 1u, x + 2u); var b = a; b[1] = 100u; a[2] = b[1] + a[1]; let c = a; a = b; return c[2] * 2u + a[0] + a[1] + b[2]; }",
            |x| (101 + x) * 2 + x + 100 + x + 2,
        ),
        (
            "argument_shadowed_by_variable",
            "fn g(x: u32) -> u32 { var y = x; { var y = 5u; y += x; } { let x = y * 2u; y = x + 1u; } return y; }\nfn f(x: u32) -> u32 { return g(x) + g(x + 1u); }",
            |x| 2 * x + 1 + 2 * (x + 1) + 1,
        ),
        (
            "matrix_column",
            "fn f(x: u32) -> u32 { var m = mat2x3f(1.0, 2.0, 3.0, 4.0, 5.0, 6.0); let c = &m[x % 2u]; (*c).y = 10.0; (*c)[2] += f32(x % 8u); return u32(m[0].y + m[0].z * 10.0 + m[1].y * 100.0 + m[1].z * 1000.0); }",
            |x| {
                let mut m = [[1, 2, 3], [4, 5, 6]];
                m[x as usize % 2][1] = 10;
                m[x as usize % 2][2] += x % 8;
                m[0][1] + m[0][2] * 10 + m[1][1] * 100 + m[1][2] * 1000
            },
        ),
        (
            "many_arguments_and_results",
            "struct R { q: u32, v: vec3f, ok: bool }\nfn g(a: u32, b: vec2u, c: f32, d: bool, e: array<u32, 2>) -> R { return R(a + b.x * e[1], vec3f(c, f32(b.y), f32(e[0])), !d); }\n\
          fn f(x: u32) -> u32 { let r = g(x, vec2u(2u, 3u), 0.5, x > 9u, array<u32, 2>(4u, x)); return r.q + u32(dot(r.v, vec3f(2.0, 10.0, 100.0))) + u32(r.ok) * 100000u; }",
            |x| x + 2 * x + 1 + 30 + 400 + u32::from(x <= 9) * 100_000,
        ),
    ];
    let inputs: Vec<u32> = (0..100).chain(words(120, 28).into_iter().map(|x| x & 0xFFFF)).collect();
    let mut cases: Vec<Case> = table
        .map(|(name, function, oracle)| {
            Case::each_with(format!("pointers.{name}"), function, "f(a[i])")
                .read("a", &inputs)
                .write("out", inputs.iter().map(|&x| oracle(x)).collect::<Vec<u32>>())
                .invocations(128)
        })
        .into();
    cases.extend(in_storage());
    cases
}

/// Pointers that live and die inside one function may point into storage and workgroup memory.
fn in_storage() -> Vec<Case> {
    let storage = "struct Cell { count: u32, tags: array<vec2u, 3> }\n\
                   @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {\n \
                   let cell = &cells[i]; let tag = &(*cell).tags[i % 3u]; (*tag).y = (*cell).count + 1u; (*cell).count *= 2u;\n}";
    let cells: Vec<u32> = (0..64).map(|k| if k % 8 == 1 { 0 } else { k * 3 }).collect();
    let mut after = cells.clone();
    for i in 0..8 {
        after[i * 8 + 2 + i % 3 * 2 + 1] = cells[i * 8] + 1;
        after[i * 8] = cells[i * 8] * 2;
    }
    let workgroup = "var<workgroup> shared_values: array<vec2u, 32>;\n\
                     @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {\n \
                     let mine = &shared_values[i]; *mine = vec2u(i, i * i); (*mine).x += 1u;\n workgroupBarrier();\n \
                     let other = &shared_values[31u - i]; out[i] = (*other).x * 1000u + (*other).y;\n}";
    vec![
        Case::new("pointers.let_into_storage", storage).update("cells: array<Cell>", cells, after),
        Case::new("pointers.let_into_workgroup", workgroup)
            .write("out", (0..32).map(|i| 31 - i).map(|j| (j + 1) * 1000 + j * j).collect::<Vec<u32>>()),
    ]
}

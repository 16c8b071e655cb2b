//! Layout of members in memory: alignment, padding, strides and explicit attributes. Every structure is read member by member out of numbered
//! words, and written member by member into a field of guards, which must survive.

use crate::case::Case;
use crate::inputs::words;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, declarations, stride, members) in STRUCTURES {
        cases.push(reads(name, declarations, *stride, members));
        cases.push(writes(name, declarations, *stride, members));
    }
    cases.extend(uniforms());
    cases.extend(runtime_tails());
    cases.extend(whole_values());
    cases
}

/// Name, declarations of `T`, its stride in words, and for each member (all of them u32) its word.
type Structure = (&'static str, &'static str, usize, &'static [(&'static str, usize)]);

const STRUCTURES: &[Structure] = &[
    ("vec3_then_scalar", "struct T { v: vec3u, s: u32 }", 4, &[("v.x", 0), ("v.y", 1), ("v.z", 2), ("s", 3)]),
    ("scalar_then_vec3", "struct T { s: u32, v: vec3u }", 8, &[("s", 0), ("v.x", 4), ("v.z", 6)]),
    ("scalar_vec2_scalar", "struct T { a: u32, b: vec2u, c: u32 }", 6, &[("a", 0), ("b.x", 2), ("b.y", 3), ("c", 4)]),
    ("three_scalars", "struct T { a: u32, b: u32, c: u32 }", 3, &[("a", 0), ("b", 1), ("c", 2)]),
    (
        "vec3_array",
        "struct T { a: array<vec3u, 2>, b: u32 }",
        12,
        &[("a[0].x", 0), ("a[0].z", 2), ("a[1].x", 4), ("a[1].y", 5), ("b", 8)],
    ),
    (
        "nested",
        "struct Inner { p: u32, q: vec3u }\nstruct T { a: u32, i: Inner, b: u32, j: array<Inner, 2> }",
        32,
        &[
            ("a", 0),
            ("i.p", 4),
            ("i.q.x", 8),
            ("i.q.z", 10),
            ("b", 12),
            ("j[0].p", 16),
            ("j[0].q.y", 21),
            ("j[1].p", 24),
            ("j[1].q.z", 30),
        ],
    ),
    (
        "explicit_align",
        "struct T { a: u32, @align(16) b: u32, @align(32) c: vec2u, d: u32 }",
        16,
        &[("a", 0), ("b", 4), ("c.x", 8), ("c.y", 9), ("d", 10)],
    ),
    (
        "explicit_size",
        "struct T { @size(20) a: u32, b: u32, @size(16) c: vec2u, d: u32 }",
        12,
        &[("a", 0), ("b", 5), ("c.x", 6), ("c.y", 7), ("d", 10)],
    ),
    (
        "align_and_size",
        "struct Inner { @align(8) @size(12) x: u32, y: u32 }\nstruct T { k: u32, @align(8) i: Inner, l: array<array<u32, 3>, 2> }",
        12,
        &[("k", 0), ("i.x", 2), ("i.y", 5), ("l[0][0]", 6), ("l[0][2]", 8), ("l[1][0]", 9), ("l[1][2]", 11)],
    ),
    (
        "inherited_align",
        "struct Inner { @align(16) x: u32, y: u32 }\nstruct T { k: u32, i: Inner }",
        8,
        &[("k", 0), ("i.x", 4), ("i.y", 5)],
    ),
    (
        "array_of_structures",
        "struct Two { a: vec2u, b: u32 }\nstruct T { head: u32, two: array<Two, 3>, tail: u32 }",
        16,
        &[("head", 0), ("two[0].a.x", 2), ("two[0].b", 4), ("two[1].a.y", 7), ("two[2].b", 12), ("tail", 14)],
    ),
    (
        "alias_and_constant_size",
        "const N = 2u + 1u;\nalias Row = array<vec2u, N>;\nstruct T { rows: array<Row, 2>, n: u32 }",
        14,
        &[("rows[0][0].x", 0), ("rows[0][2].y", 5), ("rows[1][0].x", 6), ("rows[1][1].y", 9), ("n", 12)],
    ),
];

const COUNT: usize = 40;

fn reads(name: &str, declarations: &str, stride: usize, members: &[(&str, usize)]) -> Case {
    let statements: String = members
        .iter()
        .enumerate()
        .map(|(j, (path, _))| format!(" out[i * {}u + {j}u] = a[i].{path};\n", members.len()))
        .collect();
    let body = format!(
        "{declarations}\n@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3u) {{ let i = id.x;\n{statements}}}"
    );
    let memory = words(130, stride * COUNT);
    let expected = (0..COUNT).flat_map(|i| members.iter().map(move |&(_, word)| (i, word)));
    let expected: Vec<u32> = expected.map(|(i, word)| memory[i * stride + word]).collect();
    Case::new(format!("layout.read_{name}"), body).read("a: array<T>", memory).write("out", expected).workgroups(
        COUNT as u32 / 8,
        1,
        1,
    )
}

fn writes(name: &str, declarations: &str, stride: usize, members: &[(&str, usize)]) -> Case {
    let statements: String =
        members.iter().enumerate().map(|(j, (path, _))| format!(" a[i].{path} = i * 100u + {j}u;\n")).collect();
    let body = format!(
        "{declarations}\n@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3u) {{ let i = id.x;\n{statements}}}"
    );
    let guards = words(131, stride * COUNT);
    let mut after = guards.clone();
    for i in 0..COUNT {
        for (j, (_, word)) in members.iter().enumerate() {
            after[i * stride + word] = (i * 100 + j) as u32;
        }
    }
    Case::new(format!("layout.write_{name}"), body).update("a: array<T>", guards, after).workgroups(
        COUNT as u32 / 8,
        1,
        1,
    )
}

fn uniforms() -> Vec<Case> {
    let memory = words(132, 64);
    let case = |name: &str, ty: &str, declarations: &str, len: usize, members: &[(&str, usize)]| {
        let statements: String =
            members.iter().enumerate().map(|(j, (path, _))| format!(" out[{j}] = u{path};\n")).collect();
        Case::new(
            format!("layout.uniform_{name}"),
            format!("{declarations}\n@compute @workgroup_size(1) fn main() {{\n{statements}}}"),
        )
        .uniform(&format!("u: {ty}"), &memory[..len])
        .write("out", members.iter().map(|&(_, word)| memory[word]).collect::<Vec<u32>>())
    };
    vec![
        case(
            "members",
            "T",
            "struct T { a: u32, b: vec3u, c: u32, d: vec2u }",
            12,
            &[(".a", 0), (".b.y", 5), (".c", 7), (".d.x", 8), (".d.y", 9)],
        ),
        case("vec4_array", "array<vec4u, 5>", "", 20, &[("[0].x", 0), ("[3].w", 15), ("[4].y", 17)]),
        case(
            "nested",
            "T",
            "struct Inner { a: u32, @align(16) b: u32 }\nstruct T { x: u32, @align(16) i: Inner, @align(16) y: array<Inner, 2>, z: u32 }",
            32,
            &[(".x", 0), (".i.a", 4), (".i.b", 8), (".y[0].a", 12), (".y[1].a", 20), (".y[1].b", 24), (".z", 28)],
        ),
        case("scalar", "u32", "", 1, &[("", 0)]),
        Case::each("layout.uniform_dynamic_index", "u[i % 5u][i % 4u]")
            .uniform("u: array<vec4u, 5>", &memory[..20])
            .write("out", (0..64).map(|i| memory[i % 5 * 4 + i % 4]).collect::<Vec<u32>>()),
    ]
}

fn runtime_tails() -> Vec<Case> {
    let memory: Vec<u32> = words(133, 64);
    let length = |name: &str, declarations: &str, ty: &str, expression: &str, words: usize, expected: u32| {
        Case::new(
            format!("layout.length_{name}"),
            format!("{declarations}\n@compute @workgroup_size(1) fn main() {{ out[0] = arrayLength({expression}); }}"),
        )
        .read(&format!("a: {ty}"), &memory[..words])
        .write("out", vec![expected])
    };
    let sum = "struct T { scale: u32, tail: array<vec2u> }\n@compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32) {\n \
               if i < arrayLength(&a.tail) { a.tail[i].x += a.scale * i; }\n}";
    let mut after = memory[..24].to_vec();
    for i in 0..11 {
        after[2 + 2 * i] = after[2 + 2 * i].wrapping_add(memory[0].wrapping_mul(i as u32));
    }
    vec![
        length("of_array", "", "array<u32>", "&a", 17, 17),
        length("of_one", "", "array<u32>", "&a", 1, 1),
        // A binding that does not end on a whole element: the rest does not count.
        length("of_vec3_with_rest", "", "array<vec3u>", "&a", 14, 3),
        length("of_vec4_with_rest", "", "array<vec4u>", "&a", 7, 1),
        length("of_matrices_with_rest", "", "array<mat3x3f>", "&a", 35, 2),
        length("of_structures_with_rest", "struct E { x: vec3u, y: u32, z: u32 }", "array<E>", "&a", 31, 3),
        length(
            "of_tail_with_rest",
            "struct E { x: vec2u, y: u32 }\nstruct T { a: u32, tail: array<E> }",
            "T",
            "&a.tail",
            25,
            5,
        ),
        length("of_tail", "struct T { a: vec3u, tail: array<u32> }", "T", "&a.tail", 19, 16),
        length(
            "of_tail_of_structures",
            "struct E { x: vec2u, y: u32 }\nstruct T { a: u32, tail: array<E> }",
            "T",
            "&a.tail",
            23,
            5,
        ),
        length("of_tail_in_wide_binding", "struct T { a: u32, b: u32, tail: array<vec4u> }", "T", "&a.tail", 63, 14),
        Case::new("layout.tail_written", sum).update("a: T", &memory[..24], after),
        Case::new(
            "layout.length_by_pointer",
            "@compute @workgroup_size(1) fn main() { let p = &a; out[0] = (*p)[arrayLength(p) - 1u]; }",
        )
        .read("a", &memory[..29])
        .write("out", vec![memory[28]]),
    ]
}

/// Loads and stores of whole composites. What a store leaves in padding is not specified, so it is not looked at.
fn whole_values() -> Vec<Case> {
    let memory = words(134, 16 * 12);
    let structure = "struct T { a: u32, v: vec3u, m: array<u32, 3>, w: vec2u }";
    let members = [0_usize, 4, 5, 6, 7, 8, 9, 10, 11];
    let input = memory.clone();
    vec![
        Case::new("layout.copy_structure", format!("{structure}\n@compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32) {{ out[i] = a[15u - i]; }}"))
            .read("a: array<T>", &memory)
            .check("out: array<T>", vec![0_u32; 16 * 12], move |finals| {
                let out = finals[1].u32s();
                for i in 0..16 {
                    for word in members {
                        let (got, expected) = (out[i * 12 + word], input[(15 - i) * 12 + word]);
                        if got != expected {
                            return Err(format!("[{i}] word {word}: expected {expected}, got {got}"));
                        }
                    }
                }
                Ok(())
            }),
        Case::new(
            "layout.construct_and_copy_array",
            "@compute @workgroup_size(1) fn main() { var t = a; t[1] = t[3]; out = t; let c = a; out[3] = c[0] + c[1]; }",
        )
        .read("a: array<u32, 4>", [1_u32, 2, 3, 4])
        .write("out: array<u32, 4>", [1_u32, 4, 3, 3]),
        Case::new(
            "layout.structure_through_private_and_workgroup",
            format!(
                "{structure}\nvar<private> p: T;\nvar<workgroup> w: array<T, 16>;\n\
                 @compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32) {{\n \
                 p = a[i]; p.v.y += 1u; w[i] = p; workgroupBarrier();\n let t = w[(i + 5u) % 16u];\n \
                 out[i] = t.a ^ (t.v.x + t.v.y * 3u) ^ t.m[i % 3u] ^ t.w.y;\n}}"
            ),
        )
        .read("a: array<T>", &memory)
        .write(
            "out",
            (0..16)
                .map(|i| {
                    let t = &memory[(i + 5) % 16 * 12..][..12];
                    t[0] ^ t[4].wrapping_add(t[5].wrapping_add(1).wrapping_mul(3)) ^ t[7 + i % 3] ^ t[11]
                })
                .collect::<Vec<u32>>(),
        ),
    ]
}

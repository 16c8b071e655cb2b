//! Constructs of WGSL that naga 30 refuses or gets wrong: directives, names given at run time, pointers as arguments, functions that
//! end in a loop, alignment by attributes. Written from the specification's text; the numbers are its definitions, by hand.

use half::f16;

use crate::case::Case;
use crate::inputs::words;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(directives());
    cases.extend(run_time_names());
    cases.extend(signs());
    cases.extend(endless_loops());
    cases.extend(storage_pointers());
    cases.extend(workgroup_pointers());
    cases.extend(partial_pointers());
    cases.extend(layouts());
    cases.extend(halves());
    cases.extend(dead_code());
    cases.extend(nesting());
    cases.extend(features());
    cases.push(dead_results());
    cases
}

/// The first of the seeds.
const FIRST: u64 = 211;

/// A kernel that writes `i * 3 + 1`, with something around it that must not matter.
fn directives() -> Vec<Case> {
    let table: [(&str, &str, &str); 14] = [
        ("enable_subgroups", "enable subgroups;\n", ""),
        ("requires_one", "requires pointer_composite_access;\n", ""),
        ("requires_two", "requires unrestricted_pointer_parameters, packed_4x8_integer_dot_product;\n", ""),
        ("requires_with_a_comma", "requires packed_4x8_integer_dot_product,;\n", ""),
        ("enable_and_requires", "enable subgroups;\nrequires pointer_composite_access;\n", ""),
        ("diagnostic_off", "diagnostic(off, derivative_uniformity);\n", ""),
        ("diagnostic_warning", "diagnostic(warning, subgroup_uniformity);\n", ""),
        ("diagnostic_of_a_vendor", "diagnostic(info, vendor.some_rule);\n", ""),
        ("diagnostic_with_a_comma", "diagnostic(error, derivative_uniformity,);\n", ""),
        ("enable_and_diagnostic", "enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n", ""),
        (
            "attribute_of_a_function",
            "",
            "@diagnostic(off, derivative_uniformity) fn g(x: u32) -> u32 { return x * 3u + 1u; }",
        ),
        (
            "attribute_of_a_branch",
            "",
            "fn g(x: u32) -> u32 { @diagnostic(warning, derivative_uniformity) if x > 0u { return x * 3u + 1u; } return 1u; }",
        ),
        (
            "attribute_of_a_loop",
            "",
            "fn g(x: u32) -> u32 { var s = 1u; @diagnostic(off, derivative_uniformity) for (var k = 0u; k < 3u; k++) { s += x; } return s; }",
        ),
        (
            "attribute_of_blocks",
            "",
            "fn g(x: u32) -> u32 @diagnostic(off, derivative_uniformity) { var s = 0u; @diagnostic(info, derivative_uniformity) { s = x; }\n\
             @diagnostic(off, derivative_uniformity) switch x { default: { s = s * 3u; } }\n\
             @diagnostic(off, derivative_uniformity) while s < 1u { s = 1000u; break; }\n\
             if s == 1000u { s = 0u; } return s + 1u; }",
        ),
    ];
    let made = table.iter().map(|(name, directives, function)| {
        let call = if function.is_empty() { "i * 3u + 1u" } else { "g(i)" };
        let body = format!(
            "{directives}{function}\n@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {{ out[i] = {call}; }}"
        );
        Case::new(format!("front.{name}"), body).write("out", (0..8).map(|i| i * 3 + 1).collect::<Vec<u32>>())
    });
    made.collect()
}

/// Dead code does not count: only `Next` leads to the next statement.
fn dead_code() -> Vec<Case> {
    let table: [(&str, &str); 9] = [
        ("statement", "var v = x; return v + 1; v += 2;"),
        ("branch", "return x + 1; if x > 3 { return 2; }"),
        ("behind_a_branch", "if x > 3 { return 2; } else { return x + 1; } out[3] = 9;"),
        ("behind_a_switch", "switch x { case 77: { return 2; } default: { return x + 1; } } out[3] = 9;"),
        ("behind_a_loop", "loop { return x + 1; } out[3] = 9;"),
        (
            "behind_a_continuing",
            "var i = x; loop { i += 1; if i > 90 { continue; } return i; continuing { i -= 80; } } out[3] = i;",
        ),
        ("behind_a_break", "var v = x; loop { v += 1; break; v += 100; } return v;"),
        ("behind_a_continue", "var v = x; loop { if v > x { break; } v += 1; continue; v += 100; } return v;"),
        ("in_a_block", "{ if x > 3 { return 2; } return x + 1; } out[3] = 9;"),
    ];
    let made = table.iter().map(|(name, body)| {
        let text = format!(
            "fn f(x: u32) -> u32 {{ {body} }}\n@compute @workgroup_size(1) fn main() {{ out[0] = f(a[0]); out[1] = f(3u); }}"
        );
        Case::new(format!("front.dead_{name}"), text).read("a", [0_u32]).write("out", [1_u32, 4, 0, 0])
    });
    made.collect()
}

/// Long chains and deep brackets: writers name what is on the way.
fn nesting() -> Vec<Case> {
    let terms: String = (1..512).map(|at| format!(" + a[{}]", at % 7)).collect();
    let sum: u32 = (0..512).map(|at| at % 7).sum();
    let chain: String = (1..400).map(|at| format!("const c{at} = c{} + 1;\n", at - 1)).collect();
    let calls: String =
        (1..300).map(|at| format!("fn f{at}(x: u32) -> u32 {{ return f{}(x) + 1; }}\n", at - 1)).collect();
    let whole = |name: &str, before: &str, value: &str, right: u32| {
        let text = format!("{before}@compute @workgroup_size(1) fn main() {{ out[0] = {value}; }}");
        Case::new(format!("front.{name}"), text).read("a", [0_u32, 1, 2, 3, 4, 5, 6]).write("out", [right])
    };
    vec![
        whole("long_sum", "", &format!("a[0]{terms}"), sum),
        whole("brackets", "", &format!("{}a[1]{}", "(".repeat(126), " + 5)".repeat(126)), 631),
        whole("chain_of_constants", &format!("const c0 = 1u;\n{chain}"), "c399", 400),
        whole("chain_of_functions", &format!("fn f0(x: u32) -> u32 {{ return x; }}\n{calls}"), "f299(a[1])", 300),
    ]
}

/// Features of the language that naga lacks.
fn features() -> Vec<Case> {
    let swizzle = "requires swizzle_assignment;\n@compute @workgroup_size(1) fn main() {
        var v = vec4u(1, 2, 3, 4); v.zx = vec2u(7, 8); v.yw += vec2u(1, 1);
        let p = &v; (*p).xy *= 2;
        out[0] = v.x; out[1] = v.y; out[2] = v.z; out[3] = v.w; }";
    let linear = "requires linear_indexing;\n@compute @workgroup_size(2, 3)
        fn main(@builtin(global_invocation_index) i: u32, @builtin(workgroup_index) w: u32) { out[i] = i * 10u + w; }";
    let both = "override height: u32 = 3;\n@compute @workgroup_size(2, height)
        fn main(@builtin(workgroup_index) w: u32, @builtin(num_workgroups) n: vec3u, @builtin(global_invocation_index) i: u32,
                @builtin(workgroup_id) id: vec3u) { out[i] = i * 10u + w + (n.x - 2u) + id.y; }";
    // A continuing block is a scope of its own within the body's, a break's condition belongs to it, and so does what is within it.
    let shadowed = "@compute @workgroup_size(1) fn main() {
        var n = 0u; let v = 1000u;
        loop {
            let v = 10u + n; var w = v;
            out[0] += v;
            loop { let w = 1u; out[1] += w; continuing { n += 1u; let w = n; break if w > 2u; } }
            continuing {
                var v = w + 100u; v++;
                { let w = v * 2u; out[2] += w; }
                let w = n; n = w + 1u;
                out[3] += v; break if v + w > 120u;
            }
        }
        out[4] = v; }";
    // Each place once by its subgroup and its lane there, whichever invocations share one.
    let flat = "enable subgroups;\nvar<workgroup> sums: array<u32, 64>;\n@compute @workgroup_size(8, 4, 2)
        fn main(@builtin(local_invocation_id) l: vec3u, @builtin(global_invocation_id) g: vec3u, @builtin(subgroup_invocation_id) lane: u32,
                @builtin(subgroup_id) group: u32, @builtin(subgroup_size) size: u32) {
            sums[group * size + lane] = 1; workgroupBarrier();
            let i = g.x + g.y * 16 + g.z * 64; out[i] = l.x + l.y * 10 + l.z * 100 + sums[i % 64] * 1000; }";
    let placed: Vec<u32> = (0..128).map(|i| i % 8 + i / 16 % 4 * 10 + i / 64 * 100 + 1000).collect();
    // Rows of four invocations: two workgroups of two.
    let indexed: Vec<u32> = (0..12).map(|i| i * 10 + (i % 4) / 2).collect();
    vec![
        Case::new("front.shadowed_in_continuing", shadowed).write("out", [40_u32, 5, 686, 343, 1000]),
        Case::new("front.swizzle_assignment", swizzle).write("out", [16_u32, 6, 7, 5]),
        Case::new("front.linear_indexing", linear).write("out", indexed.clone()).workgroups(2, 1, 1),
        Case::new("front.linear_indexing_beside_others", both).write("out", indexed).workgroups(2, 1, 1),
        Case::new("front.subgroups_in_three_dimensions", flat)
            .write("out", placed)
            .workgroups(2, 1, 1)
            .needs(|needs| needs.subgroups = true),
    ]
}

/// Code that is never reached, whose statements give results.
fn dead_results() -> Case {
    let text = "var<workgroup> counter: atomic<u32>;
        fn twice(x: u32) -> u32 { return 2u * x; }
        @compute @workgroup_size(1) fn main() {
            loop {
                out[0] = 7u;
                if out[0] == 7u { break; } else { continue; }
                let a = atomicAdd(&counter, 1u);
                out[0] = a + twice(a);
            }
            out[1] = 8u;
            return;
            let b = atomicCompareExchangeWeak(&counter, 1u, 2u);
            out[0] = b.old_value + twice(3u);
        }";
    Case::new("front.dead_results", text).write("out", [7_u32, 8])
}

/// `let` names a value of the invocation: what it leads to is the run time's to define, not an error.
fn run_time_names() -> Vec<Case> {
    let signed: [(&str, &str, i32); 17] = [
        ("divide_by_zero", "let z = 0; let r = y / z;", 7),
        ("remainder_by_zero", "let z = 0; let r = y % z;", 0),
        ("divide_constant_by_zero", "let z = 0; let x = 5; let r = x / z;", 5),
        ("typed_zero", "let z: i32 = 0i; let r = (y + 1) / z;", 8),
        ("least_by_minus_one", "let m = -1; let least = -2147483647 - 1; let r = least / m;", i32::MIN),
        ("least_remainder_minus_one", "let m = -1; let least = -2147483647 - 1; let r = least % m;", 0),
        ("zero_of_a_name_of_a_name", "let a = 3; let z = a - 3; let r = y / z;", 7),
        ("zero_from_a_constant", "const c = 4; let z = c - 4; let r = y % z;", 0),
        ("overflow", "let most = 2147483647; let r = most + 1;", i32::MIN),
        ("underflow", "let least = -2147483647; let r = least - 2;", i32::MAX),
        ("product", "let a = 65536; let r = a * 65536;", 0),
        ("vector", "let z = vec2i(0, 2); let q = vec2i(9, 9) / z; let r = q.x * 10 + q.y;", 94),
        ("vector_remainder", "let z = vec3i(0, 4, 5); let q = vec3i(9) % z; let r = q.x * 100 + q.y * 10 + q.z;", 14),
        ("in_a_loop", "var r = 0; for (var k = 0; k < 3; k++) { let z = 0; r += y / z; }", 21),
        ("shift_keeps_the_sign", "let s = 36u; let r = (-9 * y) >> s;", -4),
        ("shadowed", "let z = 2; var r = 0; { let z = 0; r = y / z; } r = r * 10 + y / z;", 73),
        ("index_behind_the_end", "var a = array<i32, 4>(); let k = 9; let r = a[k] + 3;", 3),
    ];
    let unsigned: [(&str, &str, u32); 14] = [
        ("divide_unsigned_by_zero", "let z = 0u; let r = y / z;", 7),
        ("remainder_unsigned_by_zero", "let z = 0u; let r = y % z;", 0),
        ("unsigned_underflow", "let a = 1u; let r = a - 2u;", u32::MAX),
        ("shift_by_33", "let s = 33u; let r = y << s;", 14),
        ("shift_constant_by_32", "let s = 32u; let r = 5u << s;", 5),
        ("shift_right_by_34", "let s = 34u; let r = 40u >> s;", 10),
        ("shift_vector", "let s = vec2u(33u, 34u); let q = vec2u(y, 40u) << s; let r = q.x * 1000u + q.y;", 14_160),
        ("shift_in_place", "let s = 32u; var r = y; r <<= s; r >>= 33u * (s / 32u);", 3),
        ("shift_out", "let v = 0xf0000000u; let r = v << 4u;", 0),
        ("index_a_vector", "var v = vec4u(); let k = 7u; let r = v[k] + 1u;", 1),
        ("index_a_matrix_by_rows", "var m = array<array<u32, 2>, 2>(); let k = 5u; let r = m[1][k] + 4u;", 4),
        ("store_behind_the_end", "var a = array<u32, 4>(1, 1, 1, 1); let k = 3u; a[k] = y; let r = a[3];", 7),
        ("index_in_range", "var a = array<u32, 4>(1, 2, 3, 4); let k = 2u; let r = a[k];", 3),
        (
            "let_in_a_continuing",
            "var r = 0u; loop { if r > 20u { break; } continuing { let z = 0u; r += y / z; } }",
            21,
        ),
    ];
    let run = |name: &str, body: &str| {
        Case::new(
            format!("front.let_{name}"),
            format!("@compute @workgroup_size(1) fn main() {{ let y = a[0];\n{body}\nout[0] = r; out[1] = 77; }}"),
        )
    };
    let signed = signed.map(|(name, body, r)| run(name, body).read("a", [7_i32]).write("out", [r, 77]));
    let unsigned = unsigned.map(|(name, body, r)| run(name, body).read("a", [7_u32]).write("out", [r, 77]));
    signed.into_iter().chain(unsigned).collect()
}

/// Two minus signs that touch are two operators where an expression goes on.
fn signs() -> Vec<Case> {
    let table: [(&str, &str, i32); 6] = [
        ("difference", "two--one", 3),
        ("twice", "--two", 2),
        ("thrice", "two---one", 1),
        ("with_a_number", "two--7", 9),
        ("in_a_call", "abs(two--one)", 3),
        ("in_a_product", "two*--one", 2),
    ];
    let made = table.iter().map(|&(name, expression, value)| {
        let body = format!(
            "@compute @workgroup_size(1) fn main() {{ let two = a[0]; let one = a[1]; var n = 5; n--; out[0] = {expression}; out[1] = n; }}"
        );
        Case::new(format!("front.minus_{name}"), body).read("a", [2, 1]).write("out", [value, 4])
    });
    made.collect()
}

fn endless_loops() -> Vec<Case> {
    let table: [(&str, &str); 6] = [
        ("plain", "fn f(n: u32) -> u32 { var k = 0u; loop { if k * k > n { return k; } k++; } }"),
        (
            "with_continuing",
            "fn f(n: u32) -> u32 { var k = 0u; loop { if k * k > n { return k; } continuing { k++; } } }",
        ),
        (
            "in_both_branches",
            "fn f(n: u32) -> u32 { var k = 0u; if n > 3u { loop { if k * k > n { return k; } k++; } } else { loop { if k * k > n { return k; } k += 1u; } } }",
        ),
        (
            "around_another",
            "fn f(n: u32) -> u32 { var k = 0u; loop { loop { if k * k > n { return k; } if k % 3u == 2u { break; } k++; } k++; } }",
        ),
        (
            "around_a_switch",
            "fn f(n: u32) -> u32 { var k = 0u; loop { switch u32(k * k > n) { case 1u: { return k; } default: { break; } } k++; } }",
        ),
        ("in_a_block", "fn f(n: u32) -> u32 { { var k = 0u; loop { if k * k > n { return k; } k++; } } }"),
    ];
    let made = table.iter().map(|(name, function)| {
        let expected: Vec<u32> = (0..64).map(|n: u32| (0..).find(|k| k * k > n).unwrap_or(0)).collect();
        Case::each_with(format!("front.endless_{name}"), function, "f(i)").write("out", expected)
    });
    made.collect()
}

/// Pointers into storage and uniform memory, as arguments.
fn storage_pointers() -> Vec<Case> {
    let memory = words(FIRST, 64);
    let of = |expected: Vec<u32>, name: &str, functions: &str, body: &str| {
        let text = format!(
            "struct S {{ head: u32, rows: array<array<u32, 4>, 2>, v: vec2u }}\n{functions}\n\
             @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
        );
        Case::new(format!("front.pointer_{name}"), text).read("s: array<S, 4>", &memory[..48]).write("out", expected)
    };
    let at = |i: usize, word: usize| memory[12 * i + word];
    let each = |value: &dyn Fn(usize) -> u32| (0..4).map(value).collect::<Vec<u32>>();
    let read = "ptr<storage, u32, read>";
    vec![
        of(each(&|_| at(0, 0)), "to_a_member", &format!("fn f(p: {read}) -> u32 {{ return *p; }}"), "out[i] = f(&s[0].head);"),
        of(each(&|i| at(i, 0)), "by_an_index", &format!("fn f(p: {read}) -> u32 {{ return *p; }}"), "out[i] = f(&s[i].head);"),
        of(
            each(&|i| at(i, 1 + 4 + (i + 1) % 4)),
            "by_two_indices",
            &format!("fn f(p: {read}) -> u32 {{ return *p; }}"),
            "let k = (i + 1u) % 4u; out[i] = f(&s[i].rows[1][k]);",
        ),
        of(
            each(&|i| at(i, 1 + i)),
            "to_a_row",
            "fn f(p: ptr<storage, array<u32, 4>>, k: u32) -> u32 { return (*p)[k]; }",
            "out[i] = f(&s[i].rows[0], i);",
        ),
        of(
            each(&|i| at(i, 1 + i)),
            "indexed_without_a_star",
            "fn f(p: ptr<storage, array<u32, 4>>, k: u32) -> u32 { return p[k]; }",
            "out[i] = f(&s[i].rows[0], i);",
        ),
        of(
            each(&|i| at(i, 10).wrapping_add(at(i, 0))),
            "to_a_structure",
            "fn f(p: ptr<storage, S>) -> u32 { return p.v.x + (*p).head; }",
            "out[i] = f(&s[i]);",
        ),
        of(
            each(&|i| at(i, 11)),
            "to_all",
            "fn f(p: ptr<storage, array<S, 4>>, k: u32) -> u32 { return p[k].v.y; }",
            "out[i] = f(&s, i);",
        ),
        of(
            each(&|i| at(i, 1).wrapping_add(at(i, 2))),
            "handed_on",
            &format!(
                "fn g(p: {read}) -> u32 {{ return *p; }}\n\
                 fn f(p: ptr<storage, array<u32, 4>>) -> u32 {{ return g(&p[0]) + g(&(*p)[1]); }}"
            ),
            "out[i] = f(&s[i].rows[0]);",
        ),
        of(
            each(&|i| at(i, 10) ^ at(3 - i, 10)),
            "two_of_them",
            "fn f(a: ptr<storage, vec2u>, k: u32, b: ptr<storage, vec2u>) -> u32 { return a.x ^ (*b)[k]; }",
            "out[i] = f(&s[i].v, 0u, &s[3u - i].v);",
        ),
        of(
            each(&|i| at(i, 0)),
            "named_by_let",
            &format!("fn f(p: {read}) -> u32 {{ let q = p; return *q; }}"),
            "var k = i; let p = &s[k].head; k = 0u; out[i] = f(p);",
        ),
        of(
            each(&|i| at(i, 0)),
            "by_a_signed_index",
            &format!("fn f(p: {read}) -> u32 {{ return *p; }}"),
            "let k = i32(i); out[i] = f(&s[k].head);",
        ),
        of(
            each(&|i| at(i, 0).wrapping_add(7)),
            "in_a_loop",
            &format!("fn f(p: {read}) -> u32 {{ return *p + 7u; }}"),
            "for (var k = 0u; k < 4u; k++) { if k == i { out[k] = f(&s[k].head); } }",
        ),
        Case::new(
            "front.pointer_writes",
            "fn place(p: ptr<storage, u32, read_write>, x: u32) { *p = x; *p += 1u; }\n\
             @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { place(&out[i], i * 10u); }",
        )
        .write("out", [1_u32, 11, 21, 31]),
        Case::new(
            "front.pointer_to_an_atomic",
            "fn add(p: ptr<storage, atomic<u32>, read_write>, x: u32) -> u32 { return atomicAdd(p, x); }\n\
             @compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32) { let _old = add(&out[i % 2u], i); }",
        )
        .write("out: array<atomic<u32>, 2>", [56_u32, 64]),
        Case::new(
            "front.pointer_and_array_length",
            "fn last(p: ptr<storage, array<u32>>) -> u32 { return p[arrayLength(p) - 1u]; }\n\
             @compute @workgroup_size(1) fn main() { out[0] = last(&a); }",
        )
        .read("a", &memory[..9])
        .write("out", [memory[8]]),
        Case::new(
            "front.pointer_to_uniform",
            "struct U { a: vec4u, b: array<vec4u, 3> }\n\
             fn pick(p: ptr<uniform, vec4u>, k: u32) -> u32 { return (*p)[k]; }\n\
             fn all_of(p: ptr<uniform, array<vec4u, 3>>, k: u32) -> u32 { return p[k].x + pick(&p[k], 1u); }\n\
             @compute @workgroup_size(3) fn main(@builtin(local_invocation_index) i: u32) { out[i] = pick(&u.a, i) + all_of(&u.b, i); }",
        )
        .uniform("u: U", &memory[..16])
        .write(
            "out",
            (0..3)
                .map(|i| memory[i].wrapping_add(memory[4 + 4 * i]).wrapping_add(memory[5 + 4 * i]))
                .collect::<Vec<u32>>(),
        ),
        Case::new(
            "front.pointer_of_a_function_not_called",
            "fn f(p: ptr<storage, u32, read>) -> u32 { return *p; }\n\
             @compute @workgroup_size(1) fn main() { out[0] = 3u; }",
        )
        .write("out", [3_u32]),
    ]
}

fn workgroup_pointers() -> Vec<Case> {
    let case = |name: &str, functions: &str, body: &str, expected: Vec<u32>| {
        let text = format!(
            "{functions}\n@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
        );
        Case::new(format!("front.workgroup_pointer_{name}"), text).write("out", expected)
    };
    vec![
        case(
            "to_all",
            "var<workgroup> t: array<u32, 8>;\nfn put(p: ptr<workgroup, array<u32, 8>>, k: u32) { (*p)[k] = k * k; }\n\
             fn take(p: ptr<workgroup, array<u32, 8>>, k: u32) -> u32 { return p[7u - k]; }",
            "put(&t, i); workgroupBarrier(); out[i] = take(&t, i);",
            (0..8).map(|i| (7 - i) * (7 - i)).collect(),
        ),
        case(
            "to_an_element",
            "var<workgroup> t: array<u32, 8>;\nfn put(p: ptr<workgroup, u32>, x: u32) { *p = x; }\n\
             fn take(p: ptr<workgroup, u32>) -> u32 { return *p; }",
            "put(&t[i], i + 5u); workgroupBarrier(); out[i] = take(&t[(i + 1u) % 8u]);",
            (0..8).map(|i| (i + 1) % 8 + 5).collect(),
        ),
        case(
            "to_an_atomic",
            "var<workgroup> n: atomic<u32>;\nfn add(p: ptr<workgroup, atomic<u32>>, x: u32) { atomicAdd(p, x); }",
            "add(&n, i); workgroupBarrier(); out[i] = atomicLoad(&n) + i;",
            (0..8).map(|i| 28 + i).collect(),
        ),
        case(
            "to_a_member",
            "struct S { a: u32, b: array<vec2u, 8> }\nvar<workgroup> s: S;\n\
             fn put(p: ptr<workgroup, vec2u>, x: u32) { p.y = x; (*p).x = x * 2u; }\n\
             fn sum(p: ptr<workgroup, array<vec2u, 8>>) -> u32 { var r = 0u; for (var k = 0u; k < 8u; k++) { r += p[k].x + p[k].y; } return r; }",
            "put(&s.b[i], i); workgroupBarrier(); out[i] = sum(&s.b) + i;",
            (0..8).map(|i| 84 + i).collect(),
        ),
        case(
            "loaded_uniformly",
            "var<workgroup> n: u32;\nfn all_same(p: ptr<workgroup, u32>) -> u32 { return workgroupUniformLoad(p); }",
            "if i == 3u { n = 17u; } workgroupBarrier(); out[i] = all_same(&n) + i;",
            (0..8).map(|i| 17 + i).collect(),
        ),
        case(
            "and_others",
            "var<workgroup> t: array<u32, 8>;\nvar<private> own: u32;\n\
             fn mixed(w: ptr<workgroup, u32>, p: ptr<private, u32>, f: ptr<function, u32>) { *w = *p + *f; *f = 1u; *p = 2u; }",
            "own = i; var x = 100u; mixed(&t[i], &own, &x); workgroupBarrier(); out[i] = t[7u - i] + own * 1000u + x * 10000u;",
            (0..8).map(|i| 100 + 7 - i + 2000 + 10_000).collect(),
        ),
    ]
}

/// Pointers to parts of variables of the function and of the invocation.
fn partial_pointers() -> Vec<Case> {
    type Row = (&'static str, &'static str, fn(u32) -> u32);
    let table: [Row; 10] = [
        (
            "private_handed_on",
            "struct S { a: array<u32, 2>, b: u32 }\nvar<private> s: S;\nfn inner(p: ptr<private, u32>) { *p += 3u; }\n\
             fn outer(p: ptr<private, S>) { inner(&(*p).a[1]); inner(&p.b); }\n\
             fn f(x: u32) -> u32 { s = S(array(1u, x), 2u); outer(&s); return s.a[0] + s.a[1] * 10u + s.b; }",
            |x| 1 + 10 * (x + 3) + 5,
        ),
        (
            "member",
            "struct S { i: u32, j: u32 }\nfn load(p: ptr<function, u32>) -> u32 { return *p; }\n\
             fn f(x: u32) -> u32 { var s = S(x, 5u); return load(&s.i) * 10u + load(&s.j); }",
            |x| x * 10 + 5,
        ),
        (
            "element",
            "fn bump(p: ptr<function, u32>) { *p += 2u; }\n\
             fn f(x: u32) -> u32 { var a = array<u32, 3>(x, 1u, 2u); bump(&a[0]); bump(&a[2]); return a[0] * 100u + a[1] * 10u + a[2]; }",
            |x| (x + 2) * 100 + 14,
        ),
        (
            "element_by_index",
            "fn bump(p: ptr<function, u32>) { *p += 2u; }\n\
             fn f(x: u32) -> u32 { var a = array<u32, 4>(1u, 1u, 1u, 1u); bump(&a[x % 4u]); return a[0] + a[1] * 10u + a[2] * 100u + a[3] * 1000u; }",
            |x| 1111 + 2 * 10_u32.pow(x % 4),
        ),
        (
            "swap_of_two",
            "fn swap(a: ptr<function, u32>, b: ptr<function, u32>) { let t = *a; *a = *b; *b = t; }\n\
             struct S { a: u32, b: u32 }\nfn f(x: u32) -> u32 { var s = S(x, 9u); var t = S(1u, 2u); swap(&s.a, &t.b); return s.a * 100u + s.b * 10u + t.b; }",
            |x| 200 + 90 + x,
        ),
        (
            "structure_of_an_array",
            "struct S { a: u32, v: vec3u }\nfn g(p: ptr<function, S>) { p.v.z = p.a; }\n\
             fn f(x: u32) -> u32 { var s: array<S, 3>; s[1].a = x + 1u; g(&s[1]); return s[1].v.z + s[0].v.z; }",
            |x| x + 1,
        ),
        (
            "handed_on",
            "struct S { a: array<u32, 2>, b: u32 }\nfn inner(p: ptr<function, u32>) { *p *= 3u; }\n\
             fn outer(p: ptr<function, S>) { inner(&p.a[1]); inner(&(*p).b); }\n\
             fn f(x: u32) -> u32 { var s = S(array(1u, x), 2u); outer(&s); return s.a[0] + s.a[1] * 10u + s.b; }",
            |x| 1 + 30 * x + 6,
        ),
        (
            "private_member",
            "struct S { a: u32, b: u32 }\nvar<private> s: S;\nfn put(p: ptr<private, u32>, x: u32) { *p = x; }\n\
             fn f(x: u32) -> u32 { put(&s.a, x); put(&s.b, 4u); return s.a * 10u + s.b; }",
            |x| x * 10 + 4,
        ),
        (
            "private_element",
            "var<private> a: array<u32, 4>;\nfn bump(p: ptr<private, u32>) -> u32 { *p += 1u; return *p; }\n\
             fn f(x: u32) -> u32 { a[x % 4u] = 5u; let r = bump(&a[x % 4u]); return r * 10u + a[x % 4u]; }",
            |_| 66,
        ),
        (
            "result_used",
            "fn take(p: ptr<function, u32>) -> u32 { let old = *p; *p = 0u; return old; }\n\
             fn f(x: u32) -> u32 { var v = array<u32, 2>(x, x + 1u); var r = 0u; for (var k = 0u; k < 2u; k++) { r += take(&v[k]); } return r * 10u + v[0] + v[1]; }",
            |x| (2 * x + 1) * 10,
        ),
    ];
    let made = table.iter().map(|(name, functions, oracle)| {
        let expected: Vec<u32> = (0..64).map(oracle).collect();
        Case::each_with(format!("front.part_{name}"), functions, "f(i)").write("out", expected)
    });
    made.collect()
}

/// Structures whose members align them, within others: where each member must be, in words.
fn layouts() -> Vec<Case> {
    type Structure = (&'static str, &'static str, usize, &'static [(&'static str, usize)]);
    let table: [Structure; 9] = [
        ("aligned_64", "struct I { @align(64) v: u32 }\nstruct T { a: u32, b: I }", 32, &[("a", 0), ("b.v", 16)]),
        (
            "aligned_second",
            "struct I { x: u32, @align(32) v: u32 }\nstruct T { a: u32, b: I, c: u32 }",
            32,
            &[("a", 0), ("b.x", 8), ("b.v", 16), ("c", 24)],
        ),
        (
            "aligned_thrice",
            "struct I { @align(16) v: u32 }\nstruct J { p: u32, i: I }\nstruct T { a: u32, j: J, b: u32 }",
            16,
            &[("a", 0), ("j.p", 4), ("j.i.v", 8), ("b", 12)],
        ),
        (
            "aligned_array",
            "struct I { @align(16) v: u32 }\nstruct T { a: u32, b: array<I, 3>, c: u32 }",
            20,
            &[("a", 0), ("b[0].v", 4), ("b[1].v", 8), ("b[2].v", 12), ("c", 16)],
        ),
        (
            "aligned_and_sized",
            "struct I { @align(32) @size(48) v: u32 }\nstruct T { a: u32, b: I, c: u32 }",
            32,
            &[("a", 0), ("b.v", 8), ("c", 24)],
        ),
        (
            "sized_member",
            "struct I { v: u32, w: u32 }\nstruct T { @size(20) i: I, b: u32 }",
            6,
            &[("i.v", 0), ("i.w", 1), ("b", 5)],
        ),
        (
            "constant_alignment",
            "const A = 8 * 4;\nstruct I { @align(A) v: u32, @size(A / 2) w: u32 }\nstruct T { a: u32, b: I, c: u32 }",
            24,
            &[("a", 0), ("b.v", 8), ("b.w", 9), ("c", 16)],
        ),
        (
            "alias_between",
            "struct I { @align(32) v: u32 }\nalias K = I;\nstruct T { a: u32, b: K }",
            16,
            &[("a", 0), ("b.v", 8)],
        ),
        (
            "vectors_and_alignment",
            "struct I { @align(32) v: vec2u }\nstruct T { a: vec3u, b: I, c: vec2u }",
            24,
            &[("a.z", 2), ("b.v.y", 9), ("c.x", 16)],
        ),
    ];
    let mut cases = Vec::new();
    for (name, declarations, stride, members) in table {
        let memory = words(FIRST + 1, stride * 8);
        let path = |j: usize| members[j].0;
        let body = |statement: &dyn Fn(usize) -> String| {
            let statements: String = (0..members.len()).map(statement).collect();
            format!(
                "{declarations}\n@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {{\n{statements}}}"
            )
        };
        let count = members.len();
        let reads = body(&|j| format!(" out[i * {count}u + {j}u] = a[i].{};\n", path(j)));
        let expected = (0..8).flat_map(|i| members.iter().map(move |&(_, word)| i * stride + word));
        let expected: Vec<u32> = expected.map(|at| memory[at]).collect();
        cases.push(
            Case::new(format!("front.layout_read_{name}"), reads).read("a: array<T>", &memory).write("out", expected),
        );
        let writes = body(&|j| format!(" a[i].{} = i * 100u + {j}u;\n", path(j)));
        let mut after = memory.clone();
        for i in 0..8 {
            for (j, &(_, word)) in members.iter().enumerate() {
                after[i * stride + word] = (i * 100 + j) as u32;
            }
        }
        cases.push(Case::new(format!("front.layout_write_{name}"), writes).update("a: array<T>", memory, after));
    }
    let memory = words(FIRST + 2, 32);
    cases.push(
        Case::new(
            "front.layout_uniform_aligned",
            "struct I { @align(64) v: u32 }\nstruct T { a: u32, b: I }\n\
             @compute @workgroup_size(1) fn main() { out[0] = u.a; out[1] = u.b.v; }",
        )
        .uniform("u: T", &memory[..32])
        .write("out", [memory[0], memory[16]]),
    );
    cases
}

/// `frexp` of f16, which naga's C has no function for.
fn halves() -> Vec<Case> {
    let numbers: Vec<f16> = [6.0, -20.0, 0.125, 0.0, 1.0, 65504.0, 6.0e-8, -0.375].map(f16::from_f64).to_vec();
    let split = |value: f16| {
        let (mut number, mut exponent) = (value.to_f64(), 0);
        while number != 0.0 && number.abs() >= 1.0 {
            number /= 2.0;
            exponent += 1;
        }
        while number != 0.0 && number.abs() < 0.5 {
            number *= 2.0;
            exponent -= 1;
        }
        (f16::from_f64(number), exponent)
    };
    let fractions: Vec<f16> = numbers.iter().map(|&value| split(value).0).collect();
    let exponents: Vec<i32> = numbers.iter().map(|&value| split(value).1).collect();
    let pairs = |body: &str| {
        format!(
            "enable f16;\n@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
        )
    };
    vec![
        Case::new("front.frexp_f16", pairs("let r = frexp(a[i]); out[i] = r.fract; e[i] = r.exp;"))
            .read("a", numbers.clone())
            .write("out", fractions.clone())
            .write("e", exponents.clone()),
        Case::new(
            "front.frexp_f16_vector",
            pairs("if i < 4u { let r = frexp(vec2h(a[2u * i], a[2u * i + 1u])); out[2u * i] = r.fract.x; out[2u * i + 1u] = r.fract.y; let x: vec2<i32> = r.exp; e[2u * i] = x.x; e[2u * i + 1u] = x.y; }"),
        )
        .read("a", numbers)
        .write("out", fractions)
        .write("e", exponents),
    ]
}

//! Texts that pass or fail by the specification's rules. `U` stands for a uniform value, `V` for one that varies. Each list has bodies with their verdict,
//! in the order of the specification's rules, so a rule that changes shows as one line. `large_texts` holds the analysis to linear time.

use super::super::parse::parse;
use super::super::tree::Severity;
use super::{Failure, failures};

const HEAD: &str = "
    @group(0) @binding(0) var<storage> U: u32;
    @group(0) @binding(1) var<storage, read_write> V: u32;
    @group(0) @binding(2) var<storage> table: array<u32, 4>;
    struct Pair { a: u32, b: u32 }
    var<workgroup> shared_: array<u32, 16>;
    var<workgroup> count: atomic<u32>;
    var<private> own: u32;
    const C = 1u;
    override O: u32 = 1;
";

fn all(functions: &str, body: &str) -> Vec<Failure> {
    let text = format!(
        "{HEAD}{functions}\n@compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32, \
         @builtin(workgroup_id) group: vec3u) {{\n{body}\n}}"
    );
    failures(&parse(&text).unwrap_or_else(|| panic!("not read: {text}")))
}

fn passes(functions: &str, body: &str) -> bool {
    all(functions, body).iter().all(|failure| failure.severity != Severity::Error)
}

/// Each body passes or not.
fn check(functions: &str, cases: &[(&str, bool)]) {
    for (body, is_right) in cases {
        assert_eq!(passes(functions, body), *is_right, "{functions}\n{body}");
    }
}

/// Each body followed by a barrier that depends on `x`.
fn check_x(functions: &str, cases: &[(&str, bool)]) {
    for (body, is_right) in cases {
        let body = format!("{body}\nif x > 0 {{ workgroupBarrier(); }}");
        assert_eq!(passes(functions, &body), *is_right, "{functions}\n{body}");
    }
}

#[test]
fn values() {
    let cases = [
        ("U", true),
        ("V", false),
        ("C + O", true),
        ("group.x + arrayLength(&table)", true),
        ("i", false),
        ("own", false),
        ("shared_[0]", false),
        ("table[U]", true),
        ("table[V]", false),
        ("table[i & 3]", false),
        ("workgroupUniformLoad(&shared_[U])", true),
        ("workgroupUniformLoad(&shared_[i])", false),
        ("atomicLoad(&count)", false),
        ("atomicAdd(&count, U)", false),
        ("select(U, 2u, V == 0)", false),
        ("min(U, group.y)", true),
        ("u32(U == 1 || V == 1)", false),
        ("u32(V == 1 && U == 1)", false),
        ("u32(U == 1 && O == 1)", true),
        ("vec2u(U, V).x", false),
        ("Pair(U, U).b", true),
    ];
    for (value, is_right) in cases {
        check_x("", &[(&format!("let x = {value};"), is_right), (&format!("var x = {value};"), is_right)]);
    }
}

#[test]
fn branches() {
    check(
        "",
        &[
            ("if V == 0 { return; } workgroupBarrier();", false),
            ("if V == 0 { own = 1; } workgroupBarrier();", true),
            ("if V == 0 { own = 1; } else { return; } workgroupBarrier();", false),
            ("if U == 0 { return; } workgroupBarrier();", true),
            ("if U == 0 { workgroupBarrier(); } else if V == 0 { storageBarrier(); }", false),
            ("switch V { case 0: { return; } default: {} } workgroupBarrier();", false),
            ("switch V { case 0: { own = 1; } default: {} } workgroupBarrier();", true),
            ("switch V { case 0: { if U == 1 { break; } own = 1; } default: {} } workgroupBarrier();", true),
            ("switch U { case 0: { workgroupBarrier(); } default: {} }", true),
            ("switch V { case 0: { workgroupBarrier(); } default: {} }", false),
            ("return; if V == 0 { workgroupBarrier(); }", true),
            ("if true { return; } else { return; } if V == 0 { workgroupBarrier(); }", true),
            ("_ = V == 0 && workgroupUniformLoad(&shared_[0]) == 1;", false),
            ("_ = workgroupUniformLoad(&shared_[0]) == 1 && V == 0;", true),
        ],
    );
}

#[test]
fn loops() {
    check(
        "",
        &[
            ("for (var k = 0u; k < U; k++) { workgroupBarrier(); }", true),
            ("for (var k = 0u; k < V; k++) { workgroupBarrier(); }", false),
            ("for (var k = i; k < 16; k++) { workgroupBarrier(); }", false),
            ("for (var k = 0u; k < U; k += i) { workgroupBarrier(); }", false),
            ("for (var k = i; k < 16; k++) { own += 1; } workgroupBarrier();", true),
            ("for (var k = 0; k < 10; k++) { workgroupBarrier(); if i > 7 { break; } }", false),
            ("for (var k = 0; k < 10; k++) { workgroupBarrier(); if i > 7 { continue; } }", false),
            ("for (var k = 0; k < 10; k++) { workgroupBarrier(); if i > 7 { own = 1; } }", true),
            ("for (var k = 0; k < 10; k++) { if i > 7 { return; } } workgroupBarrier();", false),
            ("while U > 1 { workgroupBarrier(); }", true),
            ("while V > 1 { workgroupBarrier(); }", false),
            ("loop { workgroupBarrier(); if V == 1 { return; } else { break; } }", true),
            ("loop { if V == 1 { break; } workgroupBarrier(); }", false),
            ("loop { continuing { workgroupBarrier(); break if V == 1; } }", false),
            ("loop { continuing { workgroupBarrier(); break if U == 1; } }", true),
            ("loop { if V == 1 { continue; } own = 1; continuing { workgroupBarrier(); break if U == 1; } }", false),
            ("loop { loop { if V == 1 { break; } } workgroupBarrier(); if U == 1 { break; } }", true),
        ],
    );
}

#[test]
fn variables() {
    check_x(
        "",
        &[
            ("var x = V; x = U;", true),
            ("var x = U; x = V;", false),
            ("var x = U; if V == 0 { x = 1; }", false),
            ("var x = U; if V == 0 { x = 1; } x = 2;", true),
            ("var x = U; if U == 0 { x = V; }", false),
            ("var x = U; if U == 0 { x = V; return; }", true),
            ("var x = V; if U == 0 { x = 1; } else { x = 2; }", true),
            ("var x = V; if U == 0 { x = 1; } else if U == 1 { x = 2; }", false),
            ("var x = U; x += V;", false),
            ("var x = V; x++;", false),
            ("var x = V; { x = 1; }", true),
            ("var x: u32; loop { x = U; continuing { break if V == 0; } }", false),
            ("var x: u32; loop { x = U; continuing { break if U == 0; } }", true),
            ("var x = V; loop { x = U; if U == 0 { break; } }", true),
            ("var x = V; loop { if U == 0 { x = 1; break; } else { break; } }", false),
            ("var x = U; loop { break; x = V; }", true),
            ("var x = V; switch U { case 0: { x = 1; } case 1: { x = 2; break; } default: { x = 3; } }", true),
            ("var x = V; switch U { case 0: { x = 1; } case 1: { break; } default: { x = 3; } }", false),
            ("var p: Pair; p.a = V; let x = p.b;", false),
            ("var p: Pair; p.a = V; p = Pair(1, 2); let x = p.b;", true),
            ("var a: array<u32, 4>; a[V] = U; let x = a[0];", false),
            ("var a: array<u32, 4>; a[U] = U; let x = a[0];", true),
            ("var y = U; var x = 0u; for (var k = 0u; k < U; k++) { x = y; y = i; }", false),
        ],
    );
}

#[test]
fn pointers() {
    check_x(
        "",
        &[
            ("var y = U; let p = &y; *p = V; let x = y;", false),
            ("var y = V; let p = &y; y = 1; let x = *p;", true),
            ("var y = V; let p = &y; let q = p; *q = 1; let x = y;", true),
            ("var a: array<u32, 4>; let p = &a[V]; let x = *p;", false),
            ("var a: array<u32, 4>; let p = &a; let x = (*p)[U] + p[1];", true),
            ("var a: array<u32, 4>; var k = U; let p = &a[k]; k = V; let x = *p;", true),
            (
                "var y = U; let p = &y; for (var k = 0u; k < U; k++) { if y > 9 { workgroupBarrier(); } *p = V; } let x = 0u;",
                false,
            ),
        ],
    );
    let functions = "
        fn get(p: ptr<function, u32>) -> u32 { return *p; }
        fn put(p: ptr<function, u32>, v: u32) { *p = v; }
        fn keep(p: ptr<function, u32>) { }
        fn spoil(p: ptr<function, u32>) { *p = V; }
        fn copy(p: ptr<function, u32>, q: ptr<function, u32>) { *p = *q; }
        fn ask(p: ptr<function, u32>) { if *p == 0 { workgroupBarrier(); } }
        alias Elements = ptr<function, array<u32, 4>>;
        fn store(p: Elements, at: u32) { (*p)[at] = 1; }
        fn shared_load(p: ptr<workgroup, u32>) -> u32 { return workgroupUniformLoad(p); }
        fn plain_load(p: ptr<workgroup, u32>) -> u32 { return *p; }";
    check_x(
        functions,
        &[
            ("var y = U; let x = get(&y);", true),
            ("var y = V; let x = get(&y);", false),
            ("var x = V; put(&x, U);", true),
            ("var x = U; put(&x, V);", false),
            ("var x = U; if V == 0 { put(&x, U); }", false),
            ("var x = U; keep(&x);", true),
            ("var x = U; spoil(&x);", false),
            (
                "var y = U; let p = &y; for (var k = 0; k < 3; k++) { if y == 0 { workgroupBarrier(); } spoil(p); } let x = 0;",
                false,
            ),
            ("var x = V; var y = U; copy(&x, &y);", true),
            ("var x = U; var y = V; copy(&x, &y);", false),
            ("var x = U; ask(&x);", true),
            ("var x = V; ask(&x); x = 0;", false),
            ("var a: array<u32, 4>; store(&a, U); let x = a[1];", true),
            ("var a: array<u32, 4>; store(&a, V); let x = a[1];", false),
            ("let x = shared_load(&shared_[1]);", true),
            ("let x = shared_load(&shared_[i]);", false),
            ("let x = plain_load(&shared_[1]);", false),
        ],
    );
}

#[test]
fn functions() {
    let functions = "
        fn later(v: u32) -> u32 { return wait(v); }
        fn wait(v: u32) -> u32 { workgroupBarrier(); return v; }
        fn maybe(v: u32) { if v == 0 { workgroupBarrier(); } }
        fn varies() -> u32 { return V; }
        fn early() { if V == 0 { return; } }
        fn constant(v: u32) -> u32 { return 1; }";
    check(
        functions,
        &[
            ("_ = later(V);", true),
            ("if V == 0 { _ = later(0); }", false),
            ("if later(U) == 0 { workgroupBarrier(); }", true),
            ("if later(V) == 0 { workgroupBarrier(); }", false),
            ("maybe(U);", true),
            ("maybe(V);", false),
            ("maybe(varies());", false),
            ("early(); workgroupBarrier();", true),
            ("maybe(constant(V));", true),
            ("if V == 0 { maybe(constant(1)); }", false),
        ],
    );
}

#[test]
fn inputs_in_structures() {
    let passes = |members: &str| {
        let text = format!(
            "struct In {{ {members} }}\n@compute @workgroup_size(16) fn main(in: In) {{ if in.a.x == 0 {{ workgroupBarrier(); }} }}"
        );
        failures(&parse(&text).unwrap()).is_empty()
    };
    assert!(passes("@builtin(workgroup_id) a: vec3u, @builtin(num_workgroups) b: vec3u"));
    assert!(!passes("@builtin(workgroup_id) a: vec3u, @builtin(local_invocation_index) b: u32"));
}

/// A subgroup is a scope of its own: what all of its invocations get is uniform there, and nowhere else.
#[test]
fn subgroups() {
    let passes = |body: &str| {
        let text = format!(
            "enable subgroups;\n{HEAD}\n@compute @workgroup_size(16) fn main(@builtin(subgroup_id) sub: u32, \
             @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) size: u32) {{ {body} }}"
        );
        failures(&parse(&text).unwrap()).iter().all(|failure| failure.severity != Severity::Error)
    };
    for (body, is_right) in [
        ("_ = subgroupAdd(V);", true),
        ("if V == 0 { _ = subgroupAdd(1u); }", false),
        ("if lane == 0 { return; } _ = quadSwapX(1u);", false),
        ("if sub == 0 { _ = subgroupAdd(1u); }", true),
        ("if sub == 0 { workgroupBarrier(); }", false),
        ("if subgroupAny(V == 0) { _ = subgroupAdd(1u); }", true),
        ("if subgroupAny(V == 0) { workgroupBarrier(); }", false),
        ("if subgroupElect() { _ = subgroupAdd(1u); }", false),
        ("if subgroupShuffle(U, 1) == 0 { _ = subgroupAdd(1u); }", false),
        ("if size == 32 { workgroupBarrier(); }", true),
        ("_ = subgroupShuffleXor(V, U);", true),
        ("_ = subgroupShuffleXor(V, V);", false),
        ("_ = subgroupShuffleUp(V, lane);", false),
        ("_ = subgroupShuffle(V, lane);", true),
    ] {
        assert_eq!(passes(body), is_right, "{body}");
    }
}

#[test]
fn filters_lower_subgroup_operations_and_never_barriers() {
    let found = |text: &str| {
        let found = failures(&parse(&format!("{HEAD}{text}")).unwrap());
        found.first().map(|failure| failure.severity)
    };
    let add = "@compute @workgroup_size(16) fn main() { if V == 0 { _ = subgroupAdd(1u); } }";
    assert_eq!(found(add), Some(Severity::Error));
    assert_eq!(found(&format!("@diagnostic(off, subgroup_uniformity) {add}")), None);
    assert_eq!(found(&format!("@diagnostic(off, derivative_uniformity) {add}")), Some(Severity::Error));
    let within = |severity: &str| {
        format!(
            "diagnostic(off, subgroup_uniformity); @compute @workgroup_size(16) fn main() \
             {{ @diagnostic({severity}, subgroup_uniformity) if V == 0 {{ _ = subgroupAdd(1u); }} }}"
        )
    };
    assert_eq!(found(&within("warning")), Some(Severity::Warning));
    assert_eq!(found(&within("info")), Some(Severity::Info));
    assert_eq!(found(&within("error")), Some(Severity::Error));
    let barrier = "@diagnostic(off, subgroup_uniformity) @diagnostic(off, derivative_uniformity) \
                   @compute @workgroup_size(16) fn main() { if V == 0 { workgroupBarrier(); } }";
    assert_eq!(found(barrier), Some(Severity::Error));
}

#[test]
fn the_chain_is_told() {
    let functions = "fn pick(v: u32) -> u32 { return v + i_of(); }\nfn i_of() -> u32 { return own; }";
    let found = all(functions, "let n = pick(U);\nvar k = n;\nif k > 2 { return; }\nworkgroupBarrier();");
    let steps: Vec<&str> = found[0].steps.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(steps[0], "this condition varies");
    assert_eq!(steps[1], "`k` gets a value that varies");
    assert_eq!(steps[2], "`n` gets a value that varies");
    assert_eq!(
        steps[3],
        "`pick` returns a value that varies: at line 12, `own` varies because it is private to each invocation"
    );
    let found = all("", "if i > 2 { workgroupBarrier(); }");
    assert_eq!(found[0].steps[1].1, "`i` varies because of `local_invocation_index` at line 12");
}

/// Time is linear in the text, and nothing recurses over a sum's terms.
#[test]
fn large_texts() {
    let sum = format!("if {} > 0 {{ workgroupBarrier(); }}", vec!["U"; 50_000].join(" + "));
    assert!(passes("", &sum));
    let many: String = (0..3000).map(|at| format!("var x{at} = U;\n")).collect();
    let set: String = (0..3000).map(|at| format!("x{at} += U; if U > {at} {{ break; }}\n")).collect();
    assert!(passes("", &format!("{many} loop {{ {set} }} if x0 + x2999 > 0 {{ workgroupBarrier(); }}")));
    let chain: String = (1..3000).map(|at| format!("fn f{at}(v: u32) {{ f{}(v); }}\n", at - 1)).collect();
    let chain = format!("{chain} fn f0(v: u32) {{ if v == 0 {{ workgroupBarrier(); }} }}");
    check(&chain, &[("f2999(U);", true), ("f2999(V);", false)]);
}

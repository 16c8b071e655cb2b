//! The library of WGSL that apps' kernels import from (`cantus::…`), run and compared with Rust and with published answers.

use cantus::link::{Linker, library};
use cantus::{Engine, Kernel};

/// The words that a workgroup of 64 stores, one for each invocation: `body` gives `value` from the invocation's `x` and `i`.
fn words(imports: &str, body: &str, x: &[u32]) -> Vec<u32> {
    let text = format!(
        "{imports}
        @group(0) @binding(0) var<storage> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(50)
        fn main(@builtin(global_invocation_id) id: vec3u) {{
            let i = id.x;
            let word = x[min(i, arrayLength(&x) - 1u)];
            var value = 0u;
            {body}
            if i < arrayLength(&y) {{ y[i] = value; }}
        }}"
    );
    let mut results = Vec::new();
    for native in [false, true] {
        let linker = Linker::new().feature("native_math", native);
        let kernel = Kernel::linked(&linker, "probe.wgsl", &text).unwrap();
        let engine = Engine::builder().backend("cpu").build().unwrap();
        let (x, y) = (engine.tensor(x).unwrap(), engine.zeros::<u32>(&[x.len()]).unwrap());
        engine.dispatch(&kernel).bind("x", &x).bind("y", &y).invocations(x.len()).run().unwrap();
        results.push(y.to_vec::<u32>().unwrap());
    }
    // None of what is asked for here depends on the device's own functions.
    assert_eq!(results[0], results[1], "{imports} {body}");
    results.swap_remove(0)
}

fn floats(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn random_numbers_are_philox() {
    // Known answers of Random123's own tests, kat_vectors: philox4x32 10, counter and key of zeros.
    let answer = [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
    assert_eq!(words("import cantus::random::bits;", "value = bits(i, vec2u());", &[0; 4]), answer);
    assert_eq!(words("import cantus::random::block;", "value = block(0u, vec2u())[i];", &[0; 4]), answer);
    let below = words("import cantus::random;", "value = random::below(i, word, vec2u());", &[10, 1000, 1, u32::MAX]);
    let expected = answer
        .iter()
        .zip([10_u64, 1000, 1, u64::from(u32::MAX)])
        .map(|(&bits, end)| ((u64::from(bits) * end) >> 32) as u32);
    assert_eq!(below, expected.collect::<Vec<_>>());
    let uniform = words("import cantus::random::uniform;", "value = bitcast<u32>(uniform(i, vec2u()));", &[0; 4]);
    assert_eq!(uniform, floats(&answer.map(|bits| (bits >> 8) as f32 / 16_777_216.0)));
}

#[test]
fn workgroups_reduce_and_scan() {
    // 50 in a workgroup: no power of two. The second has other values.
    let x: Vec<u32> = (0..100_u32).map(|i| i.wrapping_mul(2_654_435_761) >> 20).collect();
    let groups: Vec<&[u32]> = x.chunks(50).collect();
    let each = |of: &dyn Fn(&[u32], usize) -> u32| -> Vec<u32> {
        groups.iter().flat_map(|group| (0..group.len()).map(|at| of(group, at)).collect::<Vec<_>>()).collect()
    };
    let run = |call: &str| words("import cantus::workgroup;", &format!("let lane = i % 50u; value = {call};"), &x);
    assert_eq!(run("workgroup::sum_u32(lane, 50u, word)"), each(&|group, _| group.iter().sum()));
    assert_eq!(run("workgroup::least_u32(lane, 50u, word)"), each(&|group, _| group.iter().copied().min().unwrap()));
    assert_eq!(run("workgroup::greatest_u32(lane, 50u, word)"), each(&|group, _| group.iter().copied().max().unwrap()));
    assert_eq!(run("workgroup::inclusive_sum_u32(lane, 50u, word)"), each(&|group, at| group[..=at].iter().sum()));
    assert_eq!(run("workgroup::exclusive_sum_u32(lane, 50u, word)"), each(&|group, at| group[..at].iter().sum()));
    // Whole numbers: floats are exact too. Below 0 for extremes.
    let shifted = "f32(word) - 2000.0";
    let run = |name: &str| run(&format!("bitcast<u32>(workgroup::{name}(lane, 50u, {shifted}))"));
    let float = |of: &dyn Fn(&[f32], usize) -> f32| {
        each(&|group, at| of(&group.iter().map(|&word| word as f32 - 2000.0).collect::<Vec<_>>(), at).to_bits())
    };
    assert_eq!(run("sum"), float(&|group, _| group.iter().sum()));
    assert_eq!(run("least"), float(&|group, _| group.iter().copied().fold(f32::MAX, f32::min)));
    assert_eq!(run("greatest"), float(&|group, _| group.iter().copied().fold(f32::MIN, f32::max)));
    assert_eq!(run("inclusive_sum"), float(&|group, at| group[..=at].iter().sum()));
    assert_eq!(run("exclusive_sum"), float(&|group, at| group[..at].iter().sum::<f32>() + 0.0));
    let signed = "i32(word) - 2000";
    let of = words(
        "import cantus::workgroup;",
        &format!(
            "value = bitcast<u32>(workgroup::sum_i32(i % 50u, 50u, {signed}) + workgroup::least_i32(i % 50u, 50u, {signed}));"
        ),
        &x,
    );
    let expected = each(&|group, _| {
        let values = group.iter().map(|&word| word as i32 - 2000);
        (values.clone().sum::<i32>() + values.min().unwrap()) as u32
    });
    assert_eq!(of, expected);
}

const EDGES: [f32; 20] = [
    0.0,
    -0.0,
    1.5,
    -1.5,
    2_147_483_520.0,
    2_147_483_648.0,
    -2_147_483_648.0,
    -3e9,
    4_294_967_040.0,
    4_294_967_296.0,
    1e30,
    -1e30,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    f32::MIN_POSITIVE,
    0.1,
    3.401_9e38,
    -0.1,
    65_280.0,
];

#[test]
fn conversions_saturate_and_round() {
    let x = floats(&EDGES);
    let run = |body: &str| words("import cantus::convert;", body, &x);
    // Rust's `as` saturates, and makes NaN 0.
    let signed = EDGES.map(|x| x as i32 as u32);
    assert_eq!(run("value = bitcast<u32>(convert::to_i32(bitcast<f32>(word)));"), signed);
    assert_eq!(run("value = convert::to_u32(bitcast<f32>(word));"), EDGES.map(|x| x as u32));
    let brain = EDGES.map(|x| u32::from(half::bf16::from_f32(x).to_bits()));
    assert_eq!(run("value = convert::to_bf16(bitcast<f32>(word));"), brain);
    assert_eq!(
        run("value = bitcast<u32>(convert::from_bf16(word >> 16u));"),
        x.iter().map(|word| word & 0xffff_0000).collect::<Vec<_>>()
    );
    let both = run("value = convert::pack_bf16(convert::unpack_bf16(word & 0x3fff3fffu));");
    assert_eq!(both, x.iter().map(|word| word & 0x3fff_3fff).collect::<Vec<_>>());
    assert_eq!(
        run("value = convert::byte(word, i);"),
        x.iter().enumerate().map(|(i, word)| (word >> (8 * (i % 4))) & 255).collect::<Vec<_>>()
    );
    let signed: Vec<u32> =
        x.iter().enumerate().map(|(i, word)| i32::from((word >> (8 * (i % 4))) as u8 as i8) as u32).collect();
    assert_eq!(run("value = bitcast<u32>(convert::signed_byte(word, i));"), signed);
    // There and back, within what `pow` of a device may lose.
    let levels: Vec<f32> = (0..=20).map(|level| level as f32 / 20.0).collect();
    let back = words(
        "import cantus::convert;",
        "value = bitcast<u32>(convert::from_srgb(convert::to_srgb(bitcast<f32>(word))));",
        &floats(&levels),
    );
    for (level, back) in levels.iter().zip(back) {
        assert!((f32::from_bits(back) - level).abs() < 1e-5, "{level}: {}", f32::from_bits(back));
    }
    let half = words(
        "import cantus::convert;",
        "value = bitcast<u32>(convert::to_srgb(bitcast<f32>(word)));",
        &floats(&[0.5, 0.002]),
    );
    assert!(
        (f32::from_bits(half[0]) - 0.735_357).abs() < 1e-5 && (f32::from_bits(half[1]) - 0.025_84).abs() < 1e-6,
        "{half:?}"
    );
}

#[test]
fn safe_arithmetic_has_one_answer() {
    let x = floats(&EDGES);
    let run = |body: &str| words("import cantus::safe;", body, &x);
    assert_eq!(run("value = u32(safe::is_nan(bitcast<f32>(word)));"), EDGES.map(|x| u32::from(x.is_nan())));
    assert_eq!(run("value = u32(safe::is_finite(bitcast<f32>(word)));"), EDGES.map(|x| u32::from(x.is_finite())));
    assert_eq!(
        run(
            "value = u32(safe::is_nan(safe::minimum(bitcast<f32>(word), 1.0)) || safe::is_nan(safe::maximum(1.0, bitcast<f32>(word))));"
        ),
        EDGES.map(|x| u32::from(x.is_nan()))
    );
    let divided = run("value = bitcast<u32>(safe::divide(6.0, f32(i % 4u), 7.0));");
    assert_eq!(
        divided,
        floats(&(0..20).map(|i| if i % 4 == 0 { 7.0 } else { 6.0 / (i % 4) as f32 }).collect::<Vec<_>>())
    );
    let ends = [0, 1, 2, 65_535, 65_536, 65_537, u32::MAX / 2, u32::MAX - 1, u32::MAX];
    for (call, of) in [
        ("add", u32::saturating_add as fn(u32, u32) -> u32),
        ("subtract", u32::saturating_sub),
        ("multiply", u32::saturating_mul),
        ("divide_up", |a, b| if b == 0 { 0 } else { a.div_ceil(b) }),
    ] {
        for other in ends {
            let made = words("import cantus::safe;", &format!("value = safe::{call}(word, {other}u);"), &ends);
            assert_eq!(made, ends.map(|end| of(end, other)), "{call} {other}");
        }
    }
    let unit = words(
        "import cantus::safe;",
        "let v = safe::unit(vec3f(0.0, bitcast<f32>(word), 0.0)); value = bitcast<u32>(v.y + safe::root(-v.y * v.y));",
        &floats(&[0.0, 3.0, 1e30, 1e-30]),
    );
    assert_eq!(unit, floats(&[0.0, 1.0, 1.0, 1.0]));
}

#[test]
fn every_module_says_what_it_is() {
    let names: Vec<&str> = library().iter().map(|module| module.name).collect();
    assert_eq!(names, ["convert", "functions", "math", "random", "safe", "workgroup"]);
    // The guide's table has each.
    let guide = include_str!("../../docs/guide/src/kernels.md");
    for name in names {
        assert!(guide.contains(&format!("| `cantus::{name}` |")), "{name}");
    }
}

//! Large tables of constants with a computed index, on every device: drivers of software Vulkan compile none, so there they lie in buffers.

use std::fmt::Write as _;

use cantus::engine::GraphInputs;
use cantus::{DType, Engine, Kernel, Tensor};
use kit::engine::{by_turns, name};

/// Numbers that no formula of a compiler's gives.
fn number(place: usize) -> i32 {
    (place * place * 37 % 101) as i32 - 50
}

fn list(count: usize, element: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for place in 0..count {
        let _ = write!(text, "{}, ", element(place));
    }
    text
}

fn run(engine: &Engine, text: &str) -> cantus::Result<Tensor> {
    let kernel = Kernel::from_wgsl(text)?;
    let y = engine.zeros_of(DType::I32, &[1024])?;
    engine.dispatch(&kernel).bind("y", &y).workgroups(16).run()?;
    Ok(y)
}

#[test]
fn tables_of_constants() {
    let n = list(1024, |place| number(place).to_string());
    let vectors = list(256, |place| {
        let [a, b, c] = [0, 1, 2].map(|axis| number(4 * place + axis));
        format!("vec3f({a}, {b}, {c})")
    });
    let rows = list(32, |row| format!("array<i32, 32>({})", list(32, |place| number(32 * row + place).to_string())));
    let pairs = list(512, |place| format!("Pair({}, vec2i({}))", number(2 * place), number(2 * place + 1)));
    let main = |body: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> y: array<i32>;
             @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3u) {{ let i = g.x; {body} }}\n"
        )
    };
    let forms: [(&str, String); 9] = [
        ("a constant", format!("const T = array<i32, 1024>({n});\n{}", main("y[i] = T[i];"))),
        ("of a function", main(&format!("const t = array<i32, 1024>({n}); y[i] = t[i];"))),
        ("a value", main(&format!("let t = array<i32, 1024>({n}); y[i] = t[i];"))),
        ("a variable", main(&format!("var t = array<i32, 1024>({n}); y[i] = t[i];"))),
        ("in a loop", main(&format!("for (var k = 0; k < 2; k++) {{ var t = array<i32, 1024>({n}); y[i] = t[i]; }}"))),
        ("private", format!("var<private> t = array<i32, 1024>({n});\n{}", main("y[i] = t[i];"))),
        (
            "rows, and two functions",
            format!(
                "const T = array<array<i32, 32>, 32>({rows});
                 fn at(r: u32, k: u32) -> i32 {{ return T[r][k]; }}\n{}",
                main(
                    "if i < 512u { y[i] = at(i / 32u, i % 32u); } else { let row = T[i / 32u]; y[i] = T[i / 32u][i % 32u] + 0 * row[0]; }"
                )
            ),
        ),
        (
            "vectors of three, and of a component",
            format!(
                "const T = array<vec3f, 256>({vectors});\n{}",
                main(
                    "y[i] = select(i32(T[i / 4u][i % 4u]), y[i], i % 4u == 3u); if i % 4u == 3u { y[i] = i32(T[i / 4u].x); }"
                )
            ),
        ),
        (
            "structures",
            format!(
                "struct Pair {{ a: i32, b: vec2i }}\nconst T = array<Pair, 512>({pairs});\n{}",
                main("let p = T[i / 2u]; y[i] = select(p.a, T[i / 2u].b.y, i % 2u == 1u);")
            ),
        ),
    ];
    for engine in by_turns() {
        for (what, text) in &forms {
            let y = run(engine, text).unwrap_or_else(|error| panic!("{what} on {}: {error}", name(engine)));
            let wanted = |place: usize| match what.starts_with("vectors") && place % 4 == 3 {
                true => number(place - 3),
                false => number(place),
            };
            assert_eq!(
                y.to_vec::<i32>().unwrap(),
                (0..1024).map(wanted).collect::<Vec<_>>(),
                "{what} on {}",
                name(engine)
            );
        }
        // In a graph as well, whose kernel is bound to the same table at each replay.
        let y = engine.zeros_of(DType::I32, &[1024]).unwrap();
        let kernel = Kernel::from_wgsl(&forms[0].1).unwrap();
        let graph = engine.capture(|| engine.dispatch(&kernel).bind("y", &y).workgroups(16).run()).unwrap();
        for _ in 0..2 {
            y.write(&[0; 1024]).unwrap();
            graph.replay(&GraphInputs::new()).unwrap();
            assert_eq!(y.to_vec::<i32>().unwrap(), (0..1024).map(number).collect::<Vec<_>>());
        }
        // What is written to is no table: it runs, or the device says why it does not.
        let text = main(&format!("var t = array<i32, 1024>({n}); t[i] += 1; y[i] = t[i];"));
        match run(engine, &text).and_then(|y| y.to_vec::<i32>()) {
            Ok(got) => assert_eq!(got, (0..1024).map(|place| number(place) + 1).collect::<Vec<_>>()),
            Err(error) => assert!(error.to_string().contains("1024 numbers with a computed index"), "{error}"),
        }
    }
}

//! Cooperative matrices. Factors are small whole numbers or halves with few digits, so that most sums are exact in any order; the others are judged
//! by the greatest sum of the products' sizes.

use half::f16;

use crate::case::Case;
use crate::check::Near;
use crate::inputs::Random;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for size in [8, 16] {
        for (a_rows, b_rows) in [(true, true), (true, false), (false, true), (false, false)] {
            cases.push(product(size, ["f16", "f32"], [a_rows, b_rows], Place::Storage));
            cases.push(product(size, ["f16", "f32"], [a_rows, b_rows], Place::Workgroup));
        }
        cases.push(product(size, ["f16", "f16"], [true, true], Place::Workgroup));
        cases.push(product(size, ["f32", "f32"], [true, false], Place::Workgroup));
        cases.push(product(size, ["f32", "f16"], [false, true], Place::Storage));
        cases.push(arithmetic(size));
        cases.push(out_of_range(size));
        cases.push(long_sum(size));
    }
    cases.push(in_a_function());
    cases.push(several_subgroups());
    cases
}

/// The memory that the factors are loaded from.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Storage,
    Workgroup,
}

/// Numbers with at most four binary digits, in f16 exact.
fn factors(seed: u64, count: usize) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..count).map(|_| f64::from(random.below(31)) / 4.0 - 3.75).collect()
}

fn halves(values: &[f64]) -> Vec<f16> {
    values.iter().map(|&value| f16::from_f64(value)).collect()
}

fn singles(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

/// Element (row, column) of a matrix in memory.
fn at(values: &[f64], (row, column): (usize, usize), stride: usize, by_rows: bool) -> f64 {
    values[if by_rows { row * stride + column } else { column * stride + row }]
}

/// Enables what a kernel of these types needs.
fn directives(types: [&str; 2]) -> &'static str {
    if types.contains(&"f16") {
        "enable f16;\nenable wgpu_cooperative_matrix;\n"
    } else {
        "enable wgpu_cooperative_matrix;\n"
    }
}

/// c + a b of one matrix, whose factors lie in rows or in columns that are further apart than they are long.
fn product(size: usize, [kind, sums]: [&'static str; 2], by_rows: [bool; 2], place: Place) -> Case {
    let stride = size + if place == Place::Workgroup { 8 } else { 3 };
    let count = stride * size;
    let (a, b) = (factors(1, count), factors(2, count));
    let c = factors(3, size * size);
    let mut expected = Vec::new();
    for (row, column) in (0..size).flat_map(|row| (0..size).map(move |column| (row, column))) {
        let products =
            (0..size).map(|k| at(&a, (row, k), stride, by_rows[0]) * at(&b, (k, column), stride, by_rows[1]));
        expected.push(c[row * size + column] + products.sum::<f64>());
    }
    let load = |by_rows: bool| if by_rows { "coopLoadT" } else { "coopLoad" };
    let (mut shared, mut staged, mut from) = (String::new(), "", ["a", "b"]);
    if place == Place::Workgroup {
        shared = format!("var<workgroup> wa: array<{kind}, {count}>;\nvar<workgroup> wb: array<{kind}, {count}>;\n");
        staged = "    for (var at = i; at < arrayLength(&a); at += 32u) { wa[at] = a[at]; wb[at] = b[at]; }\n    workgroupBarrier();\n";
        from = ["wa", "wb"];
    }
    let body = format!(
        "{}{shared}\n@compute @workgroup_size(32)\nfn main(@builtin(local_invocation_index) i: u32) {{\n{staged}    \
         let x = {}<coop_mat{size}x{size}<{kind}, A>>(&{}[0], {stride}u);\n    \
         let y = {}<coop_mat{size}x{size}<{kind}, B>>(&{}[0], {stride}u);\n    \
         let z = coopLoadT<coop_mat{size}x{size}<{sums}, C>>(&c[0], {size}u);\n    \
         coopStoreT(coopMultiplyAdd(x, y, z), &out[0], {size}u);\n}}\n",
        directives([kind, sums]),
        load(by_rows[0]),
        from[0],
        load(by_rows[1]),
        from[1],
    );
    let order = |by_rows: bool| if by_rows { "rows" } else { "columns" };
    let memory = if place == Place::Workgroup { "workgroup" } else { "storage" };
    let name = format!("cooperative.{kind}_{sums}_{size}_{}_{}_{memory}", order(by_rows[0]), order(by_rows[1]));
    let case = Case::new(name, body).needs(|needs| needs.cooperative_matrix = true);
    let case = match kind {
        "f16" => case.read("a", halves(&a)).read("b", halves(&b)),
        _ => case.read("a", singles(&a)).read("b", singles(&b)),
    };
    match sums {
        // Below 2^11 in steps of 1/16 it takes one rounding, and hardware may round each step.
        "f16" => case.read("c", halves(&c)).write_near_f16("out", Near::absolute(expected, 0.5)),
        _ => case.read("c", singles(&c)).write("out", singles(&expected)),
    }
}

/// Sums, differences and multiples of matrices, in both orders, and what is stored by columns.
fn arithmetic(size: usize) -> Case {
    let (x, y) = (factors(4, size * size), factors(5, size * size));
    let body = format!(
        "{}\n@compute @workgroup_size(32)\nfn main() {{\n    \
         let x = coopLoadT<coop_mat{size}x{size}<f32, C>>(&a[0], {size}u);\n    \
         var y = coopLoad<coop_mat{size}x{size}<f32, C>>(&b[0], {size}u);\n    \
         y = (x + y) * 3.0 - 0.5 * x;\n    coopStore(y, &out[0], {size}u);\n}}\n",
        directives(["f32", "f32"]),
    );
    let mut expected = vec![0.0; size * size];
    for (row, column) in (0..size).flat_map(|row| (0..size).map(move |column| (row, column))) {
        let (x, y) = (x[row * size + column], y[column * size + row]);
        expected[column * size + row] = (x + y) * 3.0 - 0.5 * x;
    }
    Case::new(format!("cooperative.arithmetic_{size}"), body)
        .needs(|needs| needs.cooperative_matrix = true)
        .read("a", singles(&x))
        .read("b", singles(&y))
        .write("out", singles(&expected))
}

/// A matrix that begins in the last row of an array: what is beyond reads as zero or as some element, and is not written.
fn out_of_range(size: usize) -> Case {
    let values = factors(6, size * size);
    let body = format!(
        "{}\n@compute @workgroup_size(32)\nfn main() {{\n    let x = coopLoadT<coop_mat{size}x{size}<f32, C>>(&a[{}], {size}u);\n    \
         coopStoreT(x, &out[{}], {size}u);\n}}\n",
        directives(["f32", "f32"]),
        size * (size - 1),
        size * (size - 2),
    );
    let kept = values.clone();
    Case::new(format!("cooperative.out_of_range_{size}"), body)
        .needs(|needs| needs.cooperative_matrix = true)
        .read("a", singles(&values))
        .check("out", vec![7.0_f32; size * size], move |finals| {
            let (out, begin) = (finals[1].f32s(), size * (size - 2));
            if out[..begin].iter().any(|value| *value != 7.0) {
                return Err("what lies before the matrix was written".to_owned());
            }
            let right =
                out[begin..][..size].iter().zip(&kept[size * (size - 1)..]).all(|(got, x)| f64::from(*got) == *x);
            let known = out[begin + size..].iter().all(|got| *got == 0.0 || kept.iter().any(|x| f64::from(*got) == *x));
            if right && known { Ok(()) } else { Err(format!("{:?}", &out[begin..])) }
        })
}

/// Sums over many steps, whose size is beyond what f16 holds.
fn long_sum(size: usize) -> Case {
    let depth = 20 * size;
    let mut random = Random::new(7);
    let mut draw =
        |count: usize| -> Vec<f16> { (0..count).map(|_| f16::from_f64(random.unit() * 200.0 - 50.0)).collect() };
    let (a, b) = (draw(size * depth), draw(size * depth));
    let body = format!(
        "{}\n@compute @workgroup_size(32)\nfn main() {{\n    var sum = coop_mat{size}x{size}<f32, C>();\n    \
         for (var k = 0u; k < {depth}u; k += {size}u) {{\n        \
         let x = coopLoadT<coop_mat{size}x{size}<f16, A>>(&a[k], {depth}u);\n        \
         let y = coopLoadT<coop_mat{size}x{size}<f16, B>>(&b[k * {size}u], {size}u);\n        \
         sum = coopMultiplyAdd(x, y, sum);\n    }}\n    coopStoreT(sum, &out[0], {size}u);\n}}\n",
        directives(["f16", "f32"]),
    );
    let pairs = (0..size).flat_map(|row| (0..size).map(move |column| (row, column))).map(|(row, column)| {
        let products = (0..depth).map(|k| a[row * depth + k].to_f64() * b[k * size + column].to_f64());
        let (sum, sizes) = products.fold((0.0, 0.0), |(sum, sizes), x: f64| (sum + x, sizes + x.abs()));
        // Hardware may cut its sums off, a step at a time.
        (sum, sizes * depth as f64 * f64::from(f32::EPSILON))
    });
    let near = Near::each("the greatest error of a sum", pairs);
    Case::new(format!("cooperative.long_sum_{size}"), body)
        .needs(|needs| needs.cooperative_matrix = true)
        .read("a", a.clone())
        .read("b", b.clone())
        .write_near("out", near)
}

/// Matrices that are handed to functions, come back, and lie in arrays.
fn in_a_function() -> Case {
    let (a, b) = (factors(8, 256), factors(9, 512));
    let mut expected = vec![0.0; 512];
    for (row, column) in (0..16).flat_map(|row| (0..32).map(move |column| (row, column))) {
        let products = (0..16).map(|k| a[row * 16 + k] * b[k * 32 + column]);
        expected[row * 32 + column] = 2.0 * products.sum::<f64>();
    }
    let body = "enable f16;\nenable wgpu_cooperative_matrix;\n\
        alias Sum = coop_mat16x16<f32, C>;\n\
        fn twice(x: coop_mat16x16<f16, A>, y: coop_mat16x16<f16, B>, sum: Sum) -> Sum {\n    \
        return coopMultiplyAdd(x, y, coopMultiplyAdd(x, y, sum));\n}\n\
        @compute @workgroup_size(32)\nfn main() {\n    var sums: array<coop_mat16x16<f32, C>, 2>;\n    \
        let x = coopLoadT<coop_mat16x16<f16, A>>(&a[0], 16u);\n    \
        for (var half = 0u; half < 2u; half++) {\n        \
        sums[half] = twice(x, coopLoadT<coop_mat16x16<f16, B>>(&b[half * 16u], 32u), sums[half]);\n    }\n    \
        coopStoreT(sums[0], &out[0], 32u);\n    coopStoreT(sums[1], &out[16], 32u);\n}\n";
    Case::new("cooperative.in_a_function", body)
        .needs(|needs| needs.cooperative_matrix = true)
        .read("a", halves(&a))
        .read("b", halves(&b))
        .write("out", singles(&expected))
}

/// Each subgroup of a workgroup takes the blocks that its number says.
fn several_subgroups() -> Case {
    let (a, b) = (factors(10, 32 * 48), factors(11, 48 * 32));
    let mut expected = vec![0.0; 32 * 32];
    for (row, column) in (0..32).flat_map(|row| (0..32).map(move |column| (row, column))) {
        expected[row * 32 + column] = (0..48).map(|k| a[row * 48 + k] * b[k * 32 + column]).sum::<f64>();
    }
    let body = "enable f16;\nenable wgpu_cooperative_matrix;\n\
        var<workgroup> rounds: u32;\n\
        @compute @workgroup_size(128)\n\
        fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) subgroups: u32) {\n    \
        if i == 0u { rounds = (3u + subgroups) / subgroups; }\n    \
        let turns = workgroupUniformLoad(&rounds);\n    \
        for (var turn = 0u; turn < turns; turn++) {\n        \
        let block = min(turn * subgroups + subgroup, 3u);\n        \
        let row = block / 2u * 16u;\n        let column = block % 2u * 16u;\n        \
        var sum = coop_mat16x16<f32, C>();\n        \
        for (var k = 0u; k < 48u; k += 16u) {\n            \
        let x = coopLoadT<coop_mat16x16<f16, A>>(&a[row * 48u + k], 48u);\n            \
        let y = coopLoadT<coop_mat16x16<f16, B>>(&b[k * 32u + column], 32u);\n            \
        sum = coopMultiplyAdd(x, y, sum);\n        }\n        \
        if turn * subgroups + subgroup < 4u { coopStoreT(sum, &out[row * 32u + column], 32u); }\n    }\n}\n";
    Case::new("cooperative.several_subgroups", body)
        .needs(|needs| {
            needs.cooperative_matrix = true;
            needs.subgroups = true;
        })
        .read("a", halves(&a))
        .read("b", halves(&b))
        .write("out", singles(&expected))
}

//! Matrices: all nine sizes as storage, columns, products, transpose and determinant. Entries are small integers, so
//! that every result is exact whatever the order of the sums.

use crate::case::Case;
use crate::inputs::ints;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for columns in 2..=4 {
        for rows in 2..=4 {
            cases.push(times_vector(columns, rows));
        }
    }
    cases.extend(products());
    cases
}

/// Column-major matrix of `columns` x `rows` as WGSL lays it out: columns of three rows take four places.
fn padded(m: &[Vec<f32>]) -> Vec<f32> {
    m.iter()
        .flat_map(|column| {
            let mut c = column.clone();
            c.resize(if c.len() == 2 { 2 } else { 4 }, 0.0);
            c
        })
        .collect()
}

fn matrix(seed: u64, columns: usize, rows: usize) -> Vec<Vec<f32>> {
    let entries = ints(seed, columns * rows, -9, 10);
    entries.chunks(rows).map(|c| c.iter().map(|&x| x as f32).collect()).collect()
}

fn product(a: &[Vec<f32>], b: &[Vec<f32>]) -> Vec<Vec<f32>> {
    b.iter().map(|column| (0..a[0].len()).map(|r| (0..a.len()).map(|k| a[k][r] * column[k]).sum()).collect()).collect()
}

fn transposed(m: &[Vec<f32>]) -> Vec<Vec<f32>> {
    (0..m[0].len()).map(|r| m.iter().map(|c| c[r]).collect()).collect()
}

/// `M v` and `u M` for 20 matrices of one size, from storage.
fn times_vector(columns: usize, rows: usize) -> Case {
    let ms: Vec<_> = (0..20).map(|i| matrix(70 + i, columns, rows)).collect();
    let v = matrix(90, 1, columns);
    let u = matrix(91, 1, rows);
    let list = |v: &[f32]| v.iter().map(|x| format!("{x:?}")).collect::<Vec<_>>().join(", ");
    let body = format!(
        "@compute @workgroup_size(20) fn main(@builtin(local_invocation_index) i: u32) {{\n let m = a[i];\n \
         let p = m * vec{columns}f({});\n let q = vec{rows}f({}) * m;\n \
         for (var k = 0u; k < {rows}u; k++) {{ out[i * 8u + k] = p[k]; }}\n \
         for (var k = 0u; k < {columns}u; k++) {{ out[i * 8u + 4u + k] = q[k]; }}\n}}",
        list(&v[0]),
        list(&u[0])
    );
    let mut expected = vec![0.0_f32; 160];
    for (i, m) in ms.iter().enumerate() {
        let p = &product(m, &v)[0];
        let q = &product(&transposed(m), &u)[0];
        expected[i * 8..i * 8 + rows].copy_from_slice(p);
        expected[i * 8 + 4..i * 8 + 4 + columns].copy_from_slice(q);
    }
    Case::new(format!("matrix.times_vector_{columns}x{rows}"), body)
        .read(&format!("a: array<mat{columns}x{rows}f>"), ms.iter().flat_map(|m| padded(m)).collect::<Vec<f32>>())
        .write("out", expected)
}

fn one(name: &str, statement: &str, bindings: impl FnOnce(Case) -> Case) -> Case {
    bindings(Case::new(format!("matrix.{name}"), format!("@compute @workgroup_size(1) fn main() {{ {statement} }}")))
}

fn products() -> Vec<Case> {
    let a = matrix(101, 4, 4);
    let b = matrix(102, 4, 4);
    let c = matrix(103, 3, 2);
    let d = matrix(104, 2, 3);
    let e = matrix(105, 3, 3);
    let f = matrix(106, 3, 3);
    let sum: Vec<Vec<f32>> =
        e.iter().zip(&f).map(|(e, f)| e.iter().zip(f).map(|(e, f)| 2.0 * e - f).collect()).collect();
    let det2 = |m: &[Vec<f32>], (i, j): (usize, usize)| m[i][0] * m[j][1] - m[i][1] * m[j][0];
    let det3 = |m: &[Vec<f32>]| m[0][2] * det2(m, (1, 2)) - m[1][2] * det2(m, (0, 2)) + m[2][2] * det2(m, (0, 1));
    let det4 = |m: &[Vec<f32>]| -> f32 {
        (0..4)
            .map(|k| {
                let minor: Vec<Vec<f32>> = (0..4).filter(|&c| c != k).map(|c| m[c][..3].to_vec()).collect();
                let sign = if (k + 3) % 2 == 0 { 1.0 } else { -1.0 };
                sign * m[k][3] * det3(&minor)
            })
            .sum()
    };
    let small = matrix(107, 2, 2);
    let mut stored = a.clone();
    stored[2] = vec![1.0, 2.0, 3.0, 4.0];
    stored[1][3] = 7.0;
    stored[3][0] = stored[0][1];
    vec![
        one("product_4x4", "out = a * b;", |case| {
            case.read("a: mat4x4f", padded(&a))
                .read("b: mat4x4f", padded(&b))
                .write("out: mat4x4f", padded(&product(&a, &b)))
        }),
        one("product_3x2_2x3", "out = a * b;", |case| {
            case.read("a: mat3x2f", padded(&c))
                .read("b: mat2x3f", padded(&d))
                .write("out: mat2x2f", padded(&product(&c, &d)))
        }),
        one("product_2x3_3x2", "out[0] = (b * a)[0]; out[1] = (b * a)[1]; out[2] = (b * a)[2];", |case| {
            case.read("a: mat3x2f", padded(&c))
                .read("b: mat2x3f", padded(&d))
                .write("out: mat3x3f", padded(&product(&d, &c)))
        }),
        one("sum_and_scale", "let m = 2.0 * a - b; out[0] = m[0]; out[1] = m[1]; out[2] = m[2];", |case| {
            case.read("a: mat3x3f", padded(&e)).read("b: mat3x3f", padded(&f)).write("out: mat3x3f", padded(&sum))
        }),
        one("transpose", "let m = transpose(a); out[0] = m[0]; out[1] = m[1];", |case| {
            case.read("a: mat3x2f", padded(&c)).write("out: mat2x3f", padded(&transposed(&c)))
        }),
        one("determinants", "out[0] = determinant(a); out[1] = determinant(b); out[2] = determinant(c);", |case| {
            case.read("a: mat2x2f", padded(&small))
                .read("b: mat3x3f", padded(&e))
                .read("c: mat4x4f", padded(&a))
                .write("out", vec![det2(&small, (0, 1)), det3(&e), det4(&a)])
        }),
        one(
            "columns_and_entries",
            "out[2] = vec4f(1.0, 2.0, 3.0, 4.0); out[1][3] = 7.0; out[3].x = out[0].y;",
            |case| case.update("out: mat4x4f", padded(&a), padded(&stored)),
        ),
        one(
            "dynamic_column",
            "var m = a; for (var k = 0; k < 3; k++) { m[k][k] = f32(k) + 0.5; out[k] = m[(k + 1) % 3]; }",
            |case| {
                let mut m = e.clone();
                let mut out = Vec::new();
                for k in 0..3 {
                    m[k][k] = k as f32 + 0.5;
                    out.push(m[(k + 1) % 3].clone());
                }
                case.read("a: mat3x3f", padded(&e)).write("out: mat3x3f", padded(&out))
            },
        ),
        one("from_columns_and_scalars", "out = mat2x2f(a[1], a[0]) * mat2x2f(0.0, 1.0, 1.0, 0.0);", |case| {
            case.read("a: mat2x2f", padded(&small)).write("out: mat2x2f", padded(&small))
        }),
        one("uniform_array", "out = a[1] * b * a[0];", |case| {
            let two = [padded(&a), padded(&b)].concat();
            case.uniform("a: array<mat4x4f, 2>", two)
                .read("b: mat4x4f", padded(&b))
                .write("out: mat4x4f", padded(&product(&product(&b, &b), &a)))
        }),
    ]
}

//! Short rows, long rows, rows of one and views, of every dtype: what is added up, compared, scanned and sorted. The oracles are whole numbers, or float64.

use cantus::ops::Expr;
use cantus::{DType, Tensor};

use crate::dtypes::{dtypes, elements, reduced};
use crate::values::{Value, doubles, limits, sampled, tensor_of, values_of};
use crate::{Numbers, by_turns, name};

/// Lengths around those at which another way is taken.
const LENGTHS: &[usize] = &[1, 2, 3, 15, 16, 17, 33, 63, 64, 65, 70, 100, 255, 256, 257, 513, 1000, 1025];

#[test]
fn rows_of_every_length_and_dtype() {
    for engine in by_turns() {
        for dtype in dtypes(engine) {
            for (number, &length) in LENGTHS.iter().enumerate() {
                if !sampled(engine, 32 * dtype as usize + number, 4) {
                    continue;
                }
                let mut numbers = Numbers::new(7000 + number as u64);
                let rows = [1, 5, 70, 130][number % 4].min(20_000 / length);
                let values = elements(&mut numbers, dtype, rows * length);
                let x = tensor_of(engine, dtype, &values, &[rows, length]);
                let lines: Vec<Vec<Value>> = values.chunks(length).map(<[Value]>::to_vec).collect();
                let columns: Vec<Vec<Value>> =
                    (0..length).map(|column| lines.iter().map(|line| line[column]).collect()).collect();
                let what = |op: &str| format!("{op} of {dtype}[{rows}, {length}] on {}", name(engine));
                reduced(&x, 1, &lines, &|op| what(op));
                reduced(&x, 0, &columns, &|op| what(op));
                let turned = eval(x.expr().transpose());
                reduced(&turned, 0, &lines, &|op| format!("turned, {}", what(op)));
            }
        }
    }
}

fn eval(expr: Expr) -> Tensor {
    expr.eval().unwrap()
}

/// Sums of views that are not contiguous and begin inside a word, over one axis, two, and all; before and after a conversion to what is wider.
#[test]
fn sums_of_views_of_every_dtype() {
    for engine in by_turns() {
        for dtype in dtypes(engine).filter(|&dtype| sampled(engine, 64 * dtype as usize, 2)) {
            let mut numbers = Numbers::new(7100 + dtype as u64);
            let [planes, rows, columns] = [7, 66, 75];
            let values = elements(&mut numbers, dtype, planes * rows * columns);
            let x = tensor_of(engine, dtype, &values, &[planes, rows, columns]);
            let view = x.expr().slice(&[1..6, 0..rows, 3..columns]).permute(&[1, 2, 0]);
            let at =
                |row: usize, column: usize, plane: usize| values[((plane + 1) * rows + row) * columns + column + 3];
            let [depth, wide] = [5, columns - 3];
            for axes in [vec![0], vec![1], vec![2], vec![0, 1], vec![1, 2], vec![0, 2], vec![0, 1, 2]] {
                let mut groups = std::collections::BTreeMap::<Vec<usize>, Vec<Value>>::new();
                for row in 0..rows {
                    for column in 0..wide {
                        for plane in 0..depth {
                            let place = [row, column, plane];
                            let key = (0..3).filter(|axis| !axes.contains(axis)).map(|axis| place[axis]).collect();
                            groups.entry(key).or_default().push(at(row, column, plane));
                        }
                    }
                }
                let signed: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
                let what = format!("sum over {axes:?} of a view of {dtype} on {}", name(engine));
                let sums = eval(view.sum(&signed, false));
                same_sums(&sums, groups.values(), &what);
                for wider in [DType::I64, DType::F64, DType::F32] {
                    let is_exact = limits(dtype).is_some() && 2 * dtype.bytes() <= wider.bytes() || dtype == DType::F32;
                    if is_exact && dtypes(engine).any(|known| known == wider) && wider.bytes() > dtype.bytes() {
                        if wider == DType::I64 && dtype == DType::F32 {
                            continue;
                        }
                        let sums = eval(view.cast(wider).sum(&signed, false));
                        assert_eq!(sums.dtype(), wider, "{what}");
                        same_sums(&sums, groups.values(), &format!("{what}, as {wider}"));
                    }
                }
            }
        }
    }
}

fn same_sums<'a>(sums: &Tensor, groups: impl Iterator<Item = &'a Vec<Value>>, what: &str) {
    let dtype = sums.dtype();
    for (place, (got, group)) in values_of(sums).into_iter().zip(groups).enumerate() {
        if limits(dtype).is_some() {
            let total = group.iter().map(|value| value.whole()).fold(0, i128::wrapping_add);
            assert_eq!(got, Value::Whole(total).held(dtype), "{what}[{place}]");
            continue;
        }
        let tolerance = match dtype {
            DType::BF16 => 4e-3,
            DType::F16 => 5e-4,
            DType::F64 | DType::Complex128 => 1e-14,
            _ => 1e-6,
        };
        let total = group.iter().map(|value| value.complex()).sum::<cantus::num_complex::Complex<f64>>();
        let size: f64 = group.iter().map(|value| value.complex().norm()).sum();
        assert!((got.complex() - total).norm() <= tolerance * size, "{what}[{place}]: {got:?}, not {total}");
    }
}

/// Long rows, few and many: all threads take one, or one takes many.
#[test]
fn long_rows_of_wide_dtypes() {
    for engine in by_turns() {
        let wide = [DType::F64, DType::I64, DType::U64, DType::Complex64, DType::Complex128, DType::U8, DType::Bool];
        for dtype in dtypes(engine).filter(|dtype| wide.contains(dtype)) {
            for (number, shape) in [[1, 300_001], [3, 70_003], [40_000, 3], [5000, 1]].into_iter().enumerate() {
                if !sampled(engine, 700 + 8 * dtype as usize + number, 4) {
                    continue;
                }
                let mut numbers = Numbers::new(7200 + number as u64);
                let values = elements(&mut numbers, dtype, shape[0] * shape[1]);
                let x = tensor_of(engine, dtype, &values, &shape);
                let what = |op: &str| format!("{op} of {dtype}{shape:?} on {}", name(engine));
                let lines: Vec<Vec<Value>> = values.chunks(shape[1]).map(<[Value]>::to_vec).collect();
                same_sums(&eval(x.sum(&[1], false)), lines.iter(), &what("sum"));
                let columns: Vec<Vec<Value>> =
                    (0..shape[1]).map(|column| lines.iter().map(|line| line[column]).collect()).collect();
                same_sums(&eval(x.sum(&[0], false)), columns.iter(), &what("sum of columns"));
                same_sums(&eval(x.sum(&[], false)), [values.clone()].iter(), &what("sum of all"));
                // Each element's running sum is that of those before it.
                let running = eval(x.cumsum(1));
                for (got, line) in values_of(&running).chunks(shape[1]).zip(&lines) {
                    scanned(got, line, running.dtype(), &what("cumsum"));
                }
            }
        }
    }
}

fn scanned(got: &[Value], line: &[Value], dtype: DType, what: &str) {
    let (mut whole, mut total, mut size) = (0_i128, cantus::num_complex::Complex::new(0.0, 0.0), 0.0);
    for (place, (got, value)) in got.iter().zip(line).enumerate() {
        if limits(dtype).is_some() {
            whole += value.whole();
            assert_eq!(*got, Value::Whole(whole).held(dtype), "{what}[{place}]");
            continue;
        }
        total += value.complex();
        size += value.complex().norm();
        let tolerance = if matches!(dtype, DType::F64 | DType::Complex128) { 1e-13 } else { 1e-6 };
        assert!((got.complex() - total).norm() <= tolerance * size, "{what}[{place}]: {got:?}, not {total}");
    }
}

/// Rows of one element are sorted and scanned as they are.
#[test]
fn rows_of_one_are_their_input() {
    for engine in by_turns() {
        for dtype in dtypes(engine) {
            let mut numbers = Numbers::new(7300);
            let values = elements(&mut numbers, dtype, 300);
            let x = tensor_of(engine, dtype, &values, &[300, 1]);
            let what = |op: &str| format!("{op} of {dtype}[300, 1] on {}", name(engine));
            let sums = eval(x.cumsum(1));
            let held: Vec<Value> = values.iter().map(|value| value.held(sums.dtype())).collect();
            assert_eq!(values_of(&sums), held, "{}", what("cumsum"));
            if matches!(dtype, DType::Complex64 | DType::Complex128) {
                assert!(x.sort(1, false).eval().is_err(), "{}", what("sort"));
                continue;
            }
            assert_eq!(values_of(&eval(x.sort(1, true))), values, "{}", what("sort"));
            assert_eq!(values_of(&eval(x.cummax(1))), values, "{}", what("cummax"));
            assert_eq!(doubles(&eval(x.argsort(1, false))), vec![0.0; 300], "{}", what("argsort"));
            assert_eq!(eval(x.sort(1, false).sum(&[], false)).len(), 1, "{}", what("a sum of the sorted"));
        }
    }
}

/// Scans and sorts of every dtype, and NaN, which goes last and stays once it was met.
#[test]
fn rows_of_every_dtype_are_scanned_and_sorted() {
    for engine in by_turns() {
        let gpu = engine.selected().device.backend != "cpu";
        for dtype in dtypes(engine).filter(|dtype| !matches!(dtype, DType::Complex64 | DType::Complex128)) {
            for (number, shape) in [[9, 70], [300, 3], [2, 1500], [33, 65]].into_iter().enumerate() {
                if !sampled(engine, 900 + 8 * dtype as usize + number, 4) {
                    continue;
                }
                let mut numbers = Numbers::new(7400 + number as u64);
                let mut values = elements(&mut numbers, dtype, shape[0] * shape[1]);
                if limits(dtype).is_none() && !gpu {
                    values[shape[1] / 2] = Value::Float(f64::NAN);
                }
                let x = tensor_of(engine, dtype, &values, &shape);
                let what = |op: &str| format!("{op} of {dtype}{shape:?} on {}", name(engine));
                let sorted = values_of(&eval(x.sort(1, false)));
                let running = values_of(&eval(x.cummax(1)));
                let best = doubles(&eval(x.argmax(Some(1), false)));
                for (row, line) in values.chunks(shape[1]).enumerate() {
                    let mut expected = line.to_vec();
                    let key = |value: &Value| match value {
                        Value::Whole(x) => (*x, 0.0),
                        other => (0, if other.real().is_nan() { f64::INFINITY } else { other.real() }),
                    };
                    expected.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap());
                    let from = row * shape[1];
                    let same = |a: &Value, b: &Value| a == b || a.real().is_nan() && b.real().is_nan();
                    let got = &sorted[from..from + shape[1]];
                    assert!(got.iter().zip(&expected).all(|(a, b)| same(a, b)), "{}: {got:?}", what("sort"));
                    let (mut most, mut place) = (line[0], 0);
                    for (at, value) in line.iter().enumerate() {
                        if !most.real().is_nan() && (value.real().is_nan() || key(value) > key(&most)) {
                            (most, place) = (*value, at);
                        }
                        assert!(same(&running[from + at], &most), "{} at {row}, {at}", what("cummax"));
                    }
                    assert_eq!(best[row], place as f64, "{} at {row}", what("argmax"));
                }
            }
        }
    }
}

/// Comparisons and conversions to bytes of more than a block.
#[test]
fn long_comparisons_and_conversions_to_bytes() {
    for engine in by_turns() {
        for dtype in dtypes(engine).filter(|dtype| !matches!(dtype, DType::Complex64 | DType::Complex128)) {
            if !sampled(engine, 1100 + dtype as usize, 2) {
                continue;
            }
            let mut numbers = Numbers::new(7500);
            let count = 5003;
            let (a, b) = (elements(&mut numbers, dtype, count), elements(&mut numbers, dtype, count));
            let (x, y) = (tensor_of(engine, dtype, &a, &[count]), tensor_of(engine, dtype, &b, &[count]));
            let what = |op: &str| format!("{op} of {dtype} on {}", name(engine));
            let less = eval(x.less(&y)).to_vec::<bool>().unwrap();
            let order = |a: &Value, b: &Value| match (a, b) {
                (Value::Whole(a), Value::Whole(b)) => a < b,
                (a, b) => a.real() < b.real(),
            };
            let expected: Vec<bool> = a.iter().zip(&b).map(|(a, b)| order(a, b)).collect();
            assert_eq!(less, expected, "{}", what("less"));
            let bytes = eval(x.cast(DType::U8)).to_vec::<u8>().unwrap();
            let expected: Vec<u8> = a
                .iter()
                .map(|value| match value {
                    Value::Whole(x) => *x as u8,
                    other => other.real() as u8,
                })
                .collect();
            assert_eq!(bytes, expected, "{}", what("conversion to bytes"));
            let counted = eval(x.less(&y).sum(&[], false)).item::<u32>().unwrap();
            assert_eq!(counted as usize, less.iter().filter(|less| **less).count(), "{}", what("count"));
            assert!(eval(x.less(&y).any(&[], false)).item::<bool>().unwrap(), "{}", what("any"));
        }
    }
}

/// Products of float64 and of complex numbers: square, thin, of vectors, in batches, turned. The oracle adds up in float64, one term after the other.
#[test]
fn products_of_wide_dtypes() {
    let sides = [
        ([1, 5, 70, 130], false),
        ([1, 97, 257, 65], true),
        ([1, 1, 300, 70], false),
        ([1, 300, 70, 1], true),
        ([1, 300, 3000, 1], true),
        ([1, 3, 5000, 4], true),
        ([1, 50, 2500, 50], true),
        ([9, 7, 33, 20], false),
        ([1, 200, 1, 33], false),
    ];
    for engine in by_turns() {
        for dtype in dtypes(engine).filter(|dtype| limits(*dtype).is_none() && dtype.bytes() >= 4) {
            for (number, &([batches, m, k, n], turned)) in sides.iter().enumerate() {
                if !sampled(engine, 1300 + 16 * dtype as usize + number, 2) {
                    continue;
                }
                let mut numbers = Numbers::new(7600 + number as u64);
                let (a, b) =
                    (elements(&mut numbers, dtype, batches * m * k), elements(&mut numbers, dtype, batches * k * n));
                let (x, y) = if turned {
                    (
                        tensor_of(engine, dtype, &a, &[batches, k, m]).expr().permute(&[0, 2, 1]),
                        tensor_of(engine, dtype, &b, &[batches, n, k]).expr().permute(&[0, 2, 1]),
                    )
                } else {
                    (
                        tensor_of(engine, dtype, &a, &[batches, m, k]).expr(),
                        tensor_of(engine, dtype, &b, &[batches, k, n]).expr(),
                    )
                };
                let left = |batch: usize, row: usize, term: usize| {
                    a[batch * m * k + if turned { term * m + row } else { row * k + term }].complex()
                };
                let right = |batch: usize, term: usize, column: usize| {
                    b[batch * k * n + if turned { column * k + term } else { term * n + column }].complex()
                };
                let tolerance = if matches!(dtype, DType::F64 | DType::Complex128) { 1e-14 } else { 2e-6 };
                let got = values_of(&eval(x.matmul(&y)));
                let what = format!("{batches} of {m} x {k} x {n} of {dtype} on {}", name(engine));
                assert_eq!(got.len(), batches * m * n, "{what}");
                for (place, got) in got.iter().enumerate() {
                    let (batch, row, column) = (place / (m * n), place / n % m, place % n);
                    let terms = (0..k).map(|term| left(batch, row, term) * right(batch, term, column));
                    let total = terms.clone().sum::<cantus::num_complex::Complex<f64>>();
                    let size: f64 = terms.map(|term| term.norm()).sum();
                    let far = (got.complex() - total).norm();
                    assert!(far <= tolerance * size.max(1e-3), "{what}[{place}]: {got:?}, not {total}");
                }
            }
        }
    }
}

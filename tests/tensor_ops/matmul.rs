//! Matrix products.

use cantus::ops::{Expr, Unary};
use ndarray::IxDyn;

use crate::{Numbers, by_turns, close, halves, name, of_halves, oracle, seeds, tensor, wide};

#[test]
fn matrix_products_of_any_layout() {
    for engine in by_turns() {
        for seed in seeds(engine, 0..40) {
            let mut numbers = Numbers::new(500 + seed);
            let mut side = |most: usize| numbers.side(most);
            let (m, k, n) = (side(150), side(150), side(150));
            let batch: Vec<usize> = match seed % 4 {
                0 => vec![2, 3],
                1 => vec![3],
                _ => Vec::new(),
            };
            let (turn_a, turn_b) = (seed % 3 == 0, seed % 5 < 2);
            let shaped = |sides: [usize; 2], turned: bool, batch: &[usize]| -> Vec<usize> {
                let sides = if turned { [sides[1], sides[0]] } else { sides };
                batch.iter().copied().chain(sides).collect()
            };
            // The right operand is shared by all batches at times.
            let shared = seed % 2 == 0;
            let a = numbers.array(&shaped([m, k], turn_a, &batch));
            let b = numbers.array(&shaped([k, n], turn_b, if shared { &[] } else { &batch }));
            let turned = |expr: Expr, turn: bool| if turn { expr.transpose() } else { expr };
            let (x, y) =
                (turned(Expr::from(&tensor(engine, &a)), turn_a), turned(Expr::from(&tensor(engine, &b)), turn_b));
            let straight = |array: &ndarray::ArrayD<f64>, turn: bool| {
                let mut array = array.clone();
                if turn {
                    let rank = array.ndim();
                    array.swap_axes(rank - 2, rank - 1);
                }
                array
            };
            let product = oracle::matmul(&straight(&wide(&a), turn_a), &straight(&wide(&b), turn_b));
            let what = format!("{batch:?} {m} x {k} x {n}, turned {turn_a} {turn_b}, seed {seed}, on {}", name(engine));
            let tolerance = 3e-6 * (k.max(1) as f64);
            close(&x.matmul(&y), &product, tolerance, &what);
            let bias = numbers.array(&[n]);
            let layer = x.fused_linear(&y, Some(&Expr::from(&tensor(engine, &bias))), Some(Unary::Relu));
            let expected = (&product + &wide(&bias)).mapv(|x| x.max(0.0));
            close(&layer, &expected, tolerance, &format!("linear {what}"));
        }
    }
}

/// More terms, rows and columns than the processor's own products take at a time; few rows, so that threads share by columns.
#[test]
fn products_of_many_blocks() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(550);
        for (m, k, n) in [(7, 700, 3100), (205, 513, 97), (6, 17, 16)] {
            let (a, b) = (numbers.array(&[m, k]), numbers.array(&[k, n]));
            let product = oracle::matmul(&wide(&a), &wide(&b));
            let (x, y) = (tensor(engine, &a), tensor(engine, &b));
            close(&x.matmul(&y), &product, 3e-6 * k as f64, &format!("{m} x {k} x {n} on {}", name(engine)));
        }
    }
}

#[test]
fn vectors_are_rows_and_columns() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(600);
        for (m, k, n) in [(1, 300, 257), (129, 1000, 1), (1, 5, 1), (1, 1, 40)] {
            let (a, b) = (numbers.array(&[m, k]), numbers.array(&[k, n]));
            let product = oracle::matmul(&wide(&a), &wide(&b));
            let (x, y) = (tensor(engine, &a), tensor(engine, &b));
            let what = format!("{m} x {k} x {n} on {}", name(engine));
            close(&x.matmul(&y), &product, 1e-3, &what);
            let flat = |expr: Expr, count: usize| expr.reshape(&[count]);
            if m == 1 {
                let row = product.clone().into_shape_with_order(IxDyn(&[n])).unwrap();
                close(&flat(x.expr(), k).matmul(&y), &row, 1e-3, &what);
            }
            if n == 1 {
                let column = product.clone().into_shape_with_order(IxDyn(&[m])).unwrap();
                close(&x.matmul(flat(y.expr(), k)), &column, 1e-3, &what);
                // Turned over in memory.
                let turned = tensor(engine, &a.t().as_standard_layout().into_owned());
                close(&turned.transpose().matmul(&y), &product, 1e-3, &what);
            }
        }
    }
}

#[test]
fn products_of_halves_are_summed_in_float32() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(700);
        let (a, b) = (numbers.array(&[33, 70]), numbers.array(&[70, 47]));
        let product = oracle::matmul(&of_halves(&a), &of_halves(&b));
        let expr = halves(engine, &a).matmul(halves(engine, &b));
        assert_eq!(expr.dtype().unwrap(), cantus::DType::F16);
        close(&expr, &product, 1e-3, &name(engine));
        let gelu = product.mapv(|x| {
            if x > 6.0 { x } else { 0.5 * x * (1.0 + (0.797_884_560_8 * (x + 0.044_715 * x.powi(3))).tanh()) }
        });
        close(&expr.gelu_tanh(), &gelu, 2e-3, &name(engine));
    }
}

/// Integers of a dtype, all bits at random, and what they are.
fn integers(engine: &cantus::Engine, dtype: cantus::DType, shape: &[usize], numbers: &mut Numbers) -> (Expr, Vec<i64>) {
    let count = shape.iter().product();
    let mut bits = || numbers.below(1 << 16) << 16 | numbers.below(1 << 16);
    let words: Vec<u32> = (0..count).map(|_| bits() as u32).collect();
    macro_rules! of {
        ($type:ty) => {{
            let values: Vec<$type> = words.iter().map(|&word| word as $type).collect();
            let wide = values.iter().map(|&value| i64::from(value)).collect();
            (engine.tensor_from(&values, shape).unwrap().expr(), wide)
        }};
    }
    match dtype {
        cantus::DType::I8 => of!(i8),
        cantus::DType::U8 => of!(u8),
        cantus::DType::I16 => of!(i16),
        cantus::DType::U16 => of!(u16),
        cantus::DType::I32 => of!(i32),
        _ => of!(u32),
    }
}

#[test]
fn products_of_integers_are_whole_and_wrap() {
    use cantus::DType;
    for engine in by_turns() {
        for seed in seeds(engine, 0..12) {
            let mut numbers = Numbers::new(800 + seed);
            let mut side = |most: usize| numbers.side(most);
            let (m, k, n) = (side(70), side(90), side(70));
            let dtypes = [DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32];
            let dtype = dtypes[seed as usize % 6];
            let (turn_a, turn_b) = (seed % 4 == 1, seed % 4 >= 2);
            let shaped =
                |[rows, columns]: [usize; 2], turned: bool| if turned { [columns, rows] } else { [rows, columns] };
            let (x, a) = integers(engine, dtype, &shaped([m, k], turn_a), &mut numbers);
            let (y, b) = integers(engine, dtype, &shaped([k, n], turn_b), &mut numbers);
            let turned = |expr: Expr, turn: bool| if turn { expr.transpose() } else { expr };
            let (x, y) = (turned(x, turn_a), turned(y, turn_b));
            let sums: Vec<i64> = (0..m * n)
                .map(|at| {
                    let (row, column) = (at / n, at % n);
                    (0..k).fold(0_i64, |sum, term| {
                        let x = a[if turn_a { term * m + row } else { row * k + term }];
                        let y = b[if turn_b { column * k + term } else { term * n + column }];
                        sum.wrapping_add(x.wrapping_mul(y))
                    })
                })
                .collect();
            let what = format!("{dtype} {m} x {k} x {n}, turned {turn_a} {turn_b}, seed {seed}, on {}", name(engine));
            let bits = |expr: &Expr| -> Vec<u32> {
                let tensor = expr.cast(DType::I32).eval().unwrap();
                tensor.to_vec::<i32>().unwrap().into_iter().map(|value| value as u32).collect()
            };
            let narrow = x.matmul(&y);
            assert_eq!(narrow.dtype().unwrap(), dtype, "{what}");
            let expected = |value: &i64| match dtype {
                DType::I8 => *value as i8 as u32,
                DType::U8 => u32::from(*value as u8),
                DType::I16 => *value as i16 as u32,
                DType::U16 => u32::from(*value as u16),
                _ => *value as u32,
            };
            assert_eq!(bits(&narrow), sums.iter().map(expected).collect::<Vec<_>>(), "{what}");
            // Whole sums, and what follows them.
            let whole = x.cast(DType::I32).matmul(y.cast(DType::I32));
            assert_eq!(bits(&whole), sums.iter().map(|sum| *sum as u32).collect::<Vec<_>>(), "{what}, as i32");
            let next = (&whole + 3_i32).cast(DType::F32).eval().unwrap().to_vec::<f32>().unwrap();
            let expected: Vec<f32> = sums.iter().map(|sum| (*sum as i32).wrapping_add(3) as f32).collect();
            assert_eq!(next, expected, "{what}, as i32, and 3 more");
        }
    }
}

/// An operand of one value, recorded and not laid out, in each dtype that is multiplied.
#[test]
fn products_with_one_value_everywhere() {
    use cantus::DType::{F16, F32, I8, I16, I32, U8, U16, U32};
    for engine in by_turns() {
        for dtype in [I8, U8, I16, U16, I32, U32, F16, F32] {
            let full = |shape: &[usize], value| cantus::ops::full(engine, shape, value, dtype);
            let laid = full(&[3, 4], 3.0).eval().unwrap().expr();
            let value = |expr: Expr| expr.cast(F32).eval().unwrap().to_vec::<f32>().unwrap();
            let what = format!("{dtype} on {}", name(engine));
            assert_eq!(value(full(&[3, 4], 1.0).matmul(full(&[4, 2], 2.0))), [8.0; 6], "{what}, of both");
            assert_eq!(value(laid.matmul(full(&[4, 2], 2.0))), [24.0; 6], "{what}, on the right");
            assert_eq!(value(full(&[2, 3], 0.0).matmul(&laid)), [0.0; 8], "{what}, on the left");
            assert_eq!(value(full(&[5, 2, 3], 1.0).matmul(&laid)), [9.0; 40], "{what}, in a batch");
            assert_eq!(value(full(&[3], 2.0).matmul(&laid)), [18.0; 4], "{what}, a vector");
        }
    }
}

//! Tensors as text, beside what `ndarray` and NumPy print.

use cantus::{Engine, Tensor};
use kit::engine::by_turns;

fn cpu() -> Engine {
    Engine::builder().backend("cpu").build().unwrap()
}

#[test]
fn values_are_printed_in_rows() {
    for engine in by_turns() {
        let shaped =
            |values: &[f32], shape: &[usize]| engine.tensor(values).unwrap().reshape(shape).eval().unwrap().to_string();
        assert_eq!(
            shaped(&[1.0, -2.5, 1e20, f32::NAN], &[4]),
            "[                    1                  -2.5 100000000000000000000                   NaN]"
        );
        assert_eq!(shaped(&[1.0, 2.0, 3.0, 40.0], &[2, 2]), "[[ 1  2]\n [ 3 40]]");
        assert_eq!(shaped(&[1.0, 2.0, 3.0, 4.0], &[2, 1, 2]), "[[[1 2]]\n\n [[3 4]]]");
        assert_eq!(shaped(&[7.5], &[]), "7.5");
        assert_eq!(engine.zeros::<f32>(&[0, 3]).unwrap().to_string(), "[]");
    }
}

#[test]
fn every_dtype_is_printed() {
    fn text<T: cantus::Element>(values: &[T]) -> String {
        cpu().tensor(values).unwrap().to_string()
    }
    assert_eq!(text(&[true, false]), "[ true false]");
    assert_eq!(text(&[half::f16::from_f32(1.5)]), "[1.5]");
    assert_eq!(text(&[half::bf16::from_f32(-3.0)]), "[-3]");
    assert_eq!(text(&[i64::MIN, i64::MAX]), "[-9223372036854775808  9223372036854775807]");
    assert_eq!(text(&[u64::MAX]), "[18446744073709551615]");
    assert_eq!(text(&[0.1_f64]), "[0.1]");
    assert_eq!(text(&[-1_i8, 127]), "[ -1 127]");
    assert_eq!(text(&[cantus::num_complex::Complex::new(1.0_f32, -2.0)]), "[1-2i]");
}

/// Long axes are shown by their ends, and nothing else is read: the places are those of NumPy's `repr`.
#[test]
fn long_axes_are_printed_by_their_ends() {
    for engine in by_turns() {
        let numbers: Vec<u32> = (0..3000).collect();
        let tensor: Tensor = engine.tensor(&numbers).unwrap();
        assert_eq!(tensor.to_string(), "[   0    1    2 ... 2997 2998 2999]");
        let grid = tensor.reshape(&[1000, 3]).eval().unwrap().to_string();
        let lines: Vec<&str> = grid.lines().collect();
        assert_eq!(lines[..4], ["[[   0    1    2]", " [   3    4    5]", " [   6    7    8]", " ..."], "{grid}");
        assert_eq!((lines.len(), lines[6]), (7, " [2997 2998 2999]]"), "{grid}");
        let wide = tensor.reshape(&[3, 1000]).eval().unwrap().to_string();
        assert_eq!(wide.lines().nth(1), Some(" [1000 1001 1002 ... 1997 1998 1999]"), "{wide}");
        let bytes: Vec<u8> = (0..3000).map(|value| (value % 251) as u8).collect();
        assert_eq!(engine.tensor(&bytes).unwrap().to_string(), "[  0   1   2 ... 236 237 238]");
    }
}

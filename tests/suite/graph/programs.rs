//! Programs of one operation or a few, over random shapes and dtypes.

use std::sync::LazyLock;

use cantus::ops::{self, Binary, Expr, Unary, Window};
use cantus::{DType, Engine, Tensor};
use kit::inputs::Random;

pub struct Program {
    pub name: String,
    pub op: String,
    pub expr: Expr,
    /// In units of the dtype: see `difference`.
    pub tolerance: f64,
}

/// The processor: what the graphs are compared with.
pub fn cpu() -> &'static Engine {
    static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::builder().backend("cpu").build().unwrap());
    &ENGINE
}

struct Maker {
    random: Random,
    programs: Vec<Program>,
}

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];
const WHOLES: [DType; 6] = [DType::I32, DType::U32, DType::I8, DType::U8, DType::I16, DType::U16];
const WIDE: [DType; 3] = [DType::F64, DType::I64, DType::U64];

fn is_float(dtype: DType) -> bool {
    FLOATS.contains(&dtype) || matches!(dtype, DType::F64 | DType::Complex64 | DType::Complex128)
}

impl Maker {
    fn below(&mut self, end: usize) -> usize {
        (self.random.unit() * end as f64) as usize % end.max(1)
    }

    fn shape(&mut self, rank: usize) -> Vec<usize> {
        const SIDES: [usize; 10] = [1, 2, 3, 5, 7, 8, 16, 17, 33, 40];
        (0..rank).map(|_| SIDES[self.below(SIDES.len())]).collect()
    }

    /// Numbers between two, with some of the dtype's edges.
    fn tensor(&mut self, shape: &[usize], dtype: DType, (low, high): (f64, f64)) -> Tensor {
        let count: usize = shape.iter().product();
        let number = |this: &mut Self| low + (high - low) * this.random.unit();
        match dtype {
            DType::I32 | DType::I8 | DType::I16 | DType::I64 => {
                let edges = [0, 1, -1, i32::MIN, i32::MAX, 31, 32, 127, -128];
                let values: Vec<i32> = (0..count)
                    .map(|_| match self.below(4) {
                        0 => edges[self.below(edges.len())],
                        1 => (self.random.unit() * 4e9 - 2e9) as i32,
                        _ => number(self) as i32,
                    })
                    .collect();
                cpu().tensor_from(&values, shape).unwrap().cast(dtype).eval().unwrap()
            }
            DType::U32 | DType::U8 | DType::U16 | DType::U64 => {
                let edges = [0, 1, 31, 32, u32::MAX, 1 << 31, 255];
                let values: Vec<u32> = (0..count)
                    .map(|_| match self.below(4) {
                        0 => edges[self.below(edges.len())],
                        1 => (self.random.unit() * 4e9) as u32,
                        _ => number(self).abs() as u32,
                    })
                    .collect();
                cpu().tensor_from(&values, shape).unwrap().cast(dtype).eval().unwrap()
            }
            DType::Bool => {
                let values: Vec<bool> = (0..count).map(|_| self.random.unit() < 0.5).collect();
                cpu().tensor_from(&values, shape).unwrap()
            }
            DType::Complex64 | DType::Complex128 => {
                let parts: Vec<Tensor> = (0..2)
                    .map(|_| {
                        let values: Vec<f64> = (0..count).map(|_| number(self)).collect();
                        let float = if dtype == DType::Complex64 { DType::F32 } else { DType::F64 };
                        cpu().tensor_from(&values, shape).unwrap().cast(float).eval().unwrap()
                    })
                    .collect();
                parts[0].complex(&parts[1]).eval().unwrap()
            }
            _ => {
                let values: Vec<f64> = (0..count).map(|_| number(self)).collect();
                cpu().tensor_from(&values, shape).unwrap().cast(dtype).eval().unwrap()
            }
        }
    }

    fn add(&mut self, op: &str, dtype: DType, tolerance: f64, expr: Expr) {
        let name = format!("{:03}_{op}_{dtype}", self.programs.len());
        self.programs.push(Program { name, op: op.to_owned(), expr, tolerance });
    }

    fn elementwise(&mut self) {
        for &op in Unary::ALL {
            let all: Vec<DType> = op.dtypes().collect();
            // Each function of floats and of integers, and one more dtype by turns.
            let mut dtypes: Vec<DType> = [DType::F32, DType::I32, DType::U32, DType::Bool, DType::Complex64]
                .into_iter()
                .filter(|dtype| all.contains(dtype))
                .collect();
            dtypes.push(all[self.below(all.len())]);
            dtypes.dedup();
            for dtype in dtypes {
                let rank = 1 + self.below(3);
                let shape = self.shape(rank);
                let range = match op {
                    Unary::Asin | Unary::Acos | Unary::Atanh => (-0.99, 0.99),
                    Unary::Acosh => (1.01, 8.0),
                    Unary::Log | Unary::Log2 | Unary::Log10 | Unary::Sqrt | Unary::Rsqrt | Unary::Log1p => (0.01, 9.0),
                    Unary::Tan | Unary::Lgamma | Unary::Digamma => (0.1, 1.4),
                    _ => (-6.0, 6.0),
                };
                let x = self.tensor(&shape, dtype, range);
                let tolerance = match op {
                    _ if !is_float(dtype) => 0.0,
                    Unary::Lgamma | Unary::Digamma | Unary::Mish | Unary::Gelu | Unary::GeluTanh => 16.0,
                    _ => 8.0,
                };
                self.add(op.name(), dtype, tolerance, x.unary(op));
            }
        }
        for &op in Binary::ALL {
            let all: Vec<DType> = op.dtypes().collect();
            let mut dtypes: Vec<DType> =
                [DType::F32, DType::I32, DType::U32].into_iter().filter(|dtype| all.contains(dtype)).collect();
            dtypes.push(all[self.below(all.len())]);
            dtypes.push(all[self.below(all.len())]);
            dtypes.sort_unstable_by_key(|dtype| dtype.name());
            dtypes.dedup();
            for dtype in dtypes {
                let rank = 1 + self.below(3);
                let shape = self.shape(rank);
                let mut other = shape.clone();
                // One of them is repeated, now and then.
                match self.below(3) {
                    0 => other[0] = 1,
                    1 => drop(other.remove(0)),
                    _ => {}
                }
                let (low, high) = if op == Binary::Pow { (0.1, 3.0) } else { (-6.0, 6.0) };
                let x = self.tensor(&shape, dtype, (low, high));
                let mut y = self.tensor(&other, dtype, (low, high));
                if matches!(op, Binary::ShiftLeft | Binary::ShiftRight) {
                    let distance = self.tensor(&other, DType::U32, (0.0, 40.0));
                    y = distance.minimum(63.0).cast(dtype).eval().unwrap();
                }
                if op == Binary::NextAfter && dtype != DType::F32 {
                    continue;
                }
                let tolerance = if is_float(dtype) { 16.0 } else { 0.0 };
                self.add(op.name(), dtype, tolerance, x.binary(op, &y));
            }
        }
    }

    fn reductions(&mut self) {
        for dtype in FLOATS.into_iter().chain(WHOLES).chain(WIDE) {
            let tolerance = if is_float(dtype) { 40.0 } else { 0.0 };
            let shape = self.shape(3);
            let x = self.tensor(&shape, dtype, (-2.0, 2.0));
            let axis = self.below(3) as isize;
            self.add("sum_axis", dtype, tolerance, x.sum(&[axis], false));
            self.add("sum_all", dtype, 4.0 * tolerance, x.sum(&[], true));
            self.add("max_last", dtype, 0.0, x.max(&[-1], true));
            self.add("min_two", dtype, 0.0, x.min(&[0, 2], false));
            self.add("argmax_last", dtype, 0.0, x.argmax(Some(-1), false));
            let short = self.tensor(&[3, 4], dtype, (-2.0, 2.0));
            self.add("prod_first", dtype, tolerance, short.prod(&[0], false));
        }
        let x = self.tensor(&[9, 21], DType::F32, (-3.0, 3.0));
        self.add("argmin_all", DType::F32, 0.0, x.argmin(None, false));
        self.add("mean_rows", DType::F32, 8.0, x.mean(&[1], false));
        self.add("variance_rows", DType::F32, 20.0, x.variance(&[1], 1.0, false));
    }

    fn composed(&mut self) {
        for dtype in FLOATS {
            for round in 0..3 {
                let shape = self.shape(2);
                let x = self.tensor(&shape, dtype, (-4.0, 4.0));
                let gain = self.tensor(&shape[1..], dtype, (0.5, 2.0));
                let bias = self.tensor(&shape[1..], dtype, (-1.0, 1.0));
                self.add("softmax_last", dtype, 8.0, x.softmax(-1));
                self.add("log_softmax_first", dtype, 16.0, x.log_softmax(0));
                self.add("rms_norm", dtype, 8.0, x.rms_norm(&gain, 1e-6));
                self.add("layer_norm", dtype, 60.0, x.layer_norm(&gain, &bias, 1e-3));
                let inner = [4, 17, 40][round];
                let a = self.tensor(&[shape[0], inner], dtype, (-1.0, 1.0));
                let b = self.tensor(&[inner, shape[1]], dtype, (-1.0, 1.0));
                self.add("matmul", dtype, 40.0, a.matmul(&b));
                let turned = self.tensor(&[shape[1], inner], dtype, (-1.0, 1.0));
                self.add("matmul_transposed", dtype, 40.0, a.matmul(turned.transpose()));
            }
            let a = self.tensor(&[2, 3, 5, 8], dtype, (-1.0, 1.0));
            let b = self.tensor(&[3, 8, 7], dtype, (-1.0, 1.0));
            self.add("matmul_batched", dtype, 40.0, a.matmul(&b));
            let x = self.tensor(&[2, 4, 9, 11], dtype, (-1.0, 1.0));
            let w = self.tensor(&[6, 2, 3, 3], dtype, (-1.0, 1.0));
            let window = Window::new([2, 1], [1, 2], [1, 2]);
            self.add("conv2d_grouped", dtype, 40.0, x.conv2d(&w, window, 2));
            let w = self.tensor(&[5, 4, 3, 2], dtype, (-1.0, 1.0));
            self.add("conv2d", dtype, 60.0, x.conv2d(&w, Window::default(), 1));
            let chain = (x.reshape(&[8, 99]).transpose() * 2.0 + 1.0).gelu().sum(&[0], false);
            self.add("chain", dtype, 200.0, chain);
        }
    }

    fn moved(&mut self) {
        for dtype in FLOATS.into_iter().chain(WHOLES).chain(WIDE).chain([DType::Bool, DType::Complex64]) {
            let x = self.tensor(&[6, 7, 4], dtype, (-9.0, 9.0));
            self.add("permute", dtype, 0.0, x.permute(&[2, 0, 1]));
            self.add("slice", dtype, 0.0, x.slice_steps(&[1..6, 0..7, 1..4], &[2, 3, 1]));
            self.add("split_transposed", dtype, 0.0, x.reshape(&[2, 3, 28]).permute(&[1, 2, 0]));
            self.add("broadcast", dtype, 0.0, x.slice(&[2..3]).broadcast_to(&[3, 7, 4]));
            self.add("flip", dtype, 0.0, x.flip(&[1]));
            let index = cpu().tensor_from(&[5_i32, -1, 0, 4, -6, 2], &[6]).unwrap();
            self.add("take", dtype, 0.0, x.take(&index, 0));
        }
        for (from, to) in [
            (DType::F32, DType::I32),
            (DType::F32, DType::U32),
            (DType::F32, DType::I8),
            (DType::F32, DType::U8),
            (DType::F32, DType::F16),
            (DType::F32, DType::BF16),
            (DType::F32, DType::Bool),
            (DType::I32, DType::F32),
            (DType::U32, DType::F32),
            (DType::I32, DType::U8),
            (DType::I32, DType::I16),
            (DType::I8, DType::U32),
            (DType::F64, DType::I32),
            (DType::F64, DType::F32),
            (DType::I64, DType::I32),
            (DType::F32, DType::Complex64),
            (DType::Complex64, DType::F32),
            (DType::F16, DType::BF16),
            (DType::Bool, DType::F32),
            (DType::F32, DType::U64),
        ] {
            let x = self.tensor(&[5, 13], from, (-300.0, 300.0));
            let x = match from {
                // NaN, infinity, and what no integer holds.
                DType::F32 => {
                    let odd = cpu().tensor_from(&[f32::NAN, f32::INFINITY, -1e20, 4e9, -0.0], &[5, 1]).unwrap();
                    x.expr().concat(&[odd.expr()], 1).eval().unwrap()
                }
                _ => x,
            };
            self.add(&format!("cast_to_{to}"), from, 0.0, x.cast(to));
        }
        let x = self.tensor(&[12, 5], DType::F32, (-3.0, 3.0));
        self.add("where", DType::F32, 0.0, x.r#where(x.greater(0.5), -1.0));
        self.add("lerp", DType::F32, 4.0, x.lerp(9.0, 0.25));
        self.add("clamp", DType::F32, 0.0, x.clamp(-1.0, 1.0));
        for seed in [1, 77] {
            self.add("rand", DType::F32, 0.0, ops::rand(cpu(), &[33, 7], seed));
            self.add("randn", DType::F32, 16.0, ops::randn(cpu(), &[5, 40], seed));
        }
        self.add("arange", DType::F32, 2.0, ops::arange(cpu(), 1.0, 9.0, 0.5, DType::F32));
        self.add("eye", DType::F32, 0.0, ops::eye(cpu(), 7, 9, 1, DType::F32));
    }
}

/// All of them, the same each time.
pub fn all() -> Vec<Program> {
    let mut maker = Maker { random: Random::new(17), programs: Vec::new() };
    maker.elementwise();
    maker.reductions();
    maker.composed();
    maker.moved();
    maker.programs
}

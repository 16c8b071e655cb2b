//! The operations that `cantus bench` times: a row for each operation. Functions of elements come from the library's
//! own table.

use cantus::graph::{Graph, ToGraph as _};
use cantus::ops::{self, Attention, Binary, Expr, Interpolation, Unary, Window, field::FieldParams};
use cantus::{DType, Engine, Error, Result, Tensor};

use super::parse::Size;

/// Computes once; the result may still be on its way.
pub type Work = Box<dyn Fn() -> Result<()>>;

/// An operation whose inputs are there.
pub enum Made {
    Work(Work),
    /// Evaluated each time.
    Recorded(Box<dyn Fn() -> Expr>),
    Graph(Box<dyn Fn() -> Result<Graph>>, Work),
}

/// Makes what an operation takes.
type Prepare = Box<dyn Fn(&Engine, Size) -> Result<Made> + Send + Sync>;

/// A count that depends on width and height.
type Count = fn(f64, f64) -> f64;

/// An operation that is timed.
pub struct Op {
    /// Its name: that of its kernel, its file and its test.
    pub name: &'static str,
    /// True if it is timed when no filter is given.
    pub usual: bool,
    /// Sides of the squares that are timed when no size is given: what grows faster than its data ends earlier.
    pub sides: [usize; 3],
    elements: Option<Count>,
    flops: Option<Count>,
    prepare: Prepare,
}

impl Op {
    pub fn new(name: &'static str, prepare: impl Fn(&Engine, Size) -> Result<Made> + Send + Sync + 'static) -> Self {
        let prepare = Box::new(prepare);
        Self { name, usual: true, sides: [256, 1024, 4096], elements: None, flops: None, prepare }
    }

    /// Elements that must be read and written at least, each once.
    pub fn elements(self, elements: Count) -> Self {
        Self { elements: Some(elements), ..self }
    }

    /// Additions and multiplications, where they are what the operation is about.
    fn flops(self, flops: Count) -> Self {
        Self { flops: Some(flops), ..self }
    }

    pub fn sides(self, sides: [usize; 3]) -> Self {
        Self { sides, ..self }
    }

    /// Not timed unless a filter names it.
    #[cfg(feature = "zk")]
    pub fn on_demand(self) -> Self {
        Self { usual: false, ..self }
    }

    /// Bytes that must be read and written at least; none where others bound the time.
    pub fn bytes(&self, size: Size) -> Option<f64> {
        self.elements.map(|elements| 4.0 * elements(size.width as f64, size.height as f64))
    }

    /// Additions and multiplications.
    pub fn flop_count(&self, size: Size) -> Option<f64> {
        self.flops.map(|flops| flops(size.width as f64, size.height as f64))
    }

    /// Makes the inputs, once.
    ///
    /// # Errors
    /// What making them met.
    pub fn prepare(&self, engine: &Engine, size: Size) -> Result<Work> {
        Ok(match (self.prepare)(engine, size)? {
            Made::Work(work) | Made::Graph(_, work) => work,
            Made::Recorded(make) => Box::new(move || make().eval().map(drop)),
        })
    }

    /// The operation as a graph.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for what is more than a graph.
    pub fn graph(&self, engine: &Engine, size: Size) -> Result<Graph> {
        match (self.prepare)(engine, size)? {
            Made::Recorded(make) => make().graph().map(|(graph, _)| graph.named(self.name)),
            Made::Graph(make, _) => make(),
            Made::Work(_) => Err(Error::Unsupported {
                kernel: self.name.to_owned(),
                device: "operation graphs".to_owned(),
                construct: "several steps with the host between them".to_owned(),
                report: String::new(),
            }),
        }
    }
}

/// Channels of the images that are convolved.
const CHANNELS: usize = 16;
/// Matrices of a batch.
const BATCH: usize = 64;
/// Heads of an attention, and numbers of a key.
const HEADS: usize = 8;
const WIDTH: usize = 64;
const GRIDS: [usize; 3] = [512, 2048, 4096];

/// Every operation, in the order of the table that is printed.
pub fn ops() -> Vec<Op> {
    let mut ops = vec![
        Op::new("field", |engine, size| {
            let (engine, params) = (engine.clone(), FieldParams::new(size.width, size.height));
            Ok(Made::Graph(
                Box::new(move || ops::field::field_graph(&params)),
                Box::new(move || ops::field::field(&engine, &params).map(drop)),
            ))
        })
        .elements(|w, h| w * h)
        .sides(GRIDS),
        Op::new("phi_pattern", |engine, size| {
            let engine = engine.clone();
            Ok(Made::Graph(
                Box::new(move || ops::field::phi_pattern_graph(size.width, size.height)),
                Box::new(move || ops::field::phi_pattern(&engine, size.width, size.height).map(drop)),
            ))
        })
        .elements(|w, h| w * h)
        .sides(GRIDS),
        Op::new("coherence", |engine, size| {
            let (engine, field) =
                (engine.clone(), ops::field::field(engine, &FieldParams::new(size.width, size.height))?);
            Ok(Made::Work(Box::new(move || ops::coherence(&engine, &field).map(drop))))
        })
        .sides(GRIDS),
        Op::new("copy", |engine, size| of_one(engine, size, |x| x * 1.0)).elements(|w, h| 2.0 * w * h),
    ];
    ops.extend(elementwise());
    ops.extend([
        Op::new("add_row", |engine, size| of_row(engine, size, |x, row| x + row)).elements(|w, h| 2.0 * w * h + w),
        Op::new("softmax", |engine, size| of_one(engine, size, |x| x.softmax(-1))).elements(|w, h| 2.0 * w * h),
        Op::new("rms_norm", |engine, size| of_row(engine, size, |x, row| x.rms_norm(row, 1e-6)))
            .elements(|w, h| 2.0 * w * h + w),
        Op::new("layer_norm", |engine, size| {
            let bias = random(engine, &[size.width], 3)?;
            of_row(engine, size, move |x, row| x.layer_norm(row, &bias, 1e-5))
        })
        .elements(|w, h| 2.0 * w * h + w),
        Op::new("reduce_rows", |engine, size| of_one(engine, size, |x| x.sum(&[], false))).elements(|w, h| w * h),
        Op::new("reduce_columns", |engine, size| of_one(engine, size, |x| x.sum(&[0], false)))
            .elements(|w, h| w * h + w),
        Op::new("cumsum", |engine, size| of_one(engine, size, |x| x.cumsum(-1))).elements(|w, h| 2.0 * w * h),
        Op::new("cummax", |engine, size| of_one(engine, size, |x| x.cummax(-1))).elements(|w, h| 2.0 * w * h),
        Op::new("argmax", |engine, size| of_one(engine, size, |x| x.argmax(Some(-1), false)))
            .elements(|w, h| w * h + h),
        Op::new("sort", |engine, size| of_one(engine, size, |x| x.sort(-1, false))).elements(|w, h| 2.0 * w * h),
        Op::new("topk", |engine, size| of_one(engine, size, |x| x.topk(8, -1, true).0))
            .elements(|w, h| w * h + 8.0 * h),
        Op::new("roll", |engine, size| of_one(engine, size, |x| x.roll(&[3], &[-1]))).elements(|w, h| 2.0 * w * h),
        Op::new("gather", |engine, size| {
            let x = random(engine, &[size.height, size.width], 1)?;
            let rows = size.height as f64;
            let index = (random(engine, &[size.height, size.width], 2)? * rows).cast(DType::U32).eval()?;
            evaluated(move || x.gather(&index, 0))
        })
        .elements(|w, h| 3.0 * w * h),
        Op::new("concat", |engine, size| {
            let shape = [size.height, size.width];
            let (x, y) = (random(engine, &shape, 1)?, random(engine, &shape, 2)?);
            evaluated(move || x.concat(&[y.expr()], 0))
        })
        .elements(|w, h| 4.0 * w * h),
        Op::new("scatter_add", |engine, size| {
            let values = random(engine, &[size.height * size.width], 1)?;
            let index = (values.abs() * 1000.0).cast(DType::U32).eval()?;
            let bins = engine.zeros::<f32>(&[1024])?;
            evaluated(move || bins.scatter_add(&index, &values, 0))
        })
        .elements(|w, h| 2.0 * w * h),
        Op::new("histogram", |engine, size| of_one(engine, size, |x| x.histogram(256, 0.0, 1.0)))
            .elements(|w, h| w * h),
        Op::new("transpose", |engine, size| of_one(engine, size, |x| x.transpose() * 1.0)).elements(|w, h| 2.0 * w * h),
        Op::new("matmul", |engine, size| {
            let (a, b) =
                (random(engine, &[size.height, size.width], 1)?, random(engine, &[size.width, size.height], 2)?);
            evaluated(move || a.matmul(&b))
        })
        .flops(|w, h| 2.0 * h * w * h)
        .sides([256, 512, 1024]),
        Op::new("bmm", |engine, size| {
            let a = random(engine, &[BATCH, size.height, size.width], 1)?;
            let b = random(engine, &[BATCH, size.width, size.height], 2)?;
            evaluated(move || a.matmul(&b))
        })
        .flops(|w, h| 2.0 * BATCH as f64 * h * w * h)
        .sides([64, 128, 256]),
        Op::new("attention", |engine, size| {
            let all = |seed| random(engine, &[1, HEADS, size.height, WIDTH], seed);
            let (q, k, v) = (all(1)?, all(2)?, all(3)?);
            let attention = Attention::new().causal();
            evaluated(move || q.scaled_dot_product_attention(&k, &v, &attention))
        })
        .flops(|_, h| 2.0 * h * h * (HEADS * WIDTH) as f64)
        .sides([256, 512, 1024]),
        Op::new("fft", |engine, size| {
            let x = random(engine, &[size.height * size.width, 2], 1)?;
            evaluated(move || x.fft(0))
        })
        .elements(|w, h| 4.0 * w * h)
        .flops(|w, h| 5.0 * w * h * (w * h).log2()),
        Op::new("matvec", |engine, size| of_row(engine, size, |x, row| x.matmul(row)))
            .elements(|w, h| w * h + w + h)
            .flops(|w, h| 2.0 * h * w),
        Op::new("conv2d", |engine, size| {
            let x = random(engine, &[1, CHANNELS, size.height, size.width], 1)?;
            let weight = random(engine, &[CHANNELS, CHANNELS, 3, 3], 2)?;
            evaluated(move || x.conv2d(&weight, Window::default().padded(1), 1))
        })
        .flops(|w, h| 2.0 * w * h * (CHANNELS * CHANNELS * 9) as f64)
        .sides([64, 128, 256]),
        Op::new("pool2d", |engine, size| {
            let x = random(engine, &[1, 1, size.height, size.width], 1)?;
            evaluated(move || x.max_pool2d([2, 2], Window::strided(2)))
        })
        .elements(|w, h| 1.25 * w * h),
        Op::new("interpolate", |engine, size| {
            let x = random(engine, &[1, 1, size.height, size.width], 1)?;
            evaluated(move || x.interpolate([size.height / 2, size.width / 2], Interpolation::BilinearAntialiased))
        })
        .elements(|w, h| 1.25 * w * h),
        Op::new("random", |engine, size| {
            let engine = engine.clone();
            evaluated(move || ops::rand(&engine, &[size.height, size.width], 1))
        })
        .elements(|w, h| w * h),
    ]);
    #[cfg(feature = "zk")]
    ops.extend(super::bench_zk::ops());
    ops
}

/// The functions of elements. They are alike, so that three of them are usual.
fn elementwise() -> impl Iterator<Item = Op> {
    const USUAL: [&str; 3] = ["add", "silu", "gelu"];
    let of_one = Unary::ALL.iter().map(|&op| {
        Op::new(op.name(), move |engine, size| of_one(engine, size, move |x| x.unary(op))).elements(|w, h| 2.0 * w * h)
    });
    let of_two = Binary::ALL.iter().map(|&op| {
        Op::new(op.name(), move |engine, size| {
            let shape = [size.height, size.width];
            let (x, y) = (random(engine, &shape, 1)?, random(engine, &shape, 2)?);
            evaluated(move || x.binary(op, &y))
        })
        .elements(|w, h| 3.0 * w * h)
    });
    of_one.chain(of_two).map(|op| Op { usual: USUAL.contains(&op.name), ..op })
}

/// Numbers from 0 to 1: the host's where the device makes none.
fn random(engine: &Engine, shape: &[usize], seed: u64) -> Result<Tensor> {
    match ops::rand(engine, shape, seed).eval() {
        Err(Error::Unsupported { .. }) => {
            let mut state = seed;
            let next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as f32 / (1 << 24) as f32
            };
            let values: Vec<f32> = std::iter::repeat_with(next).take(shape.iter().product()).collect();
            engine.tensor_from(&values, shape)
        }
        made => made,
    }
}

fn evaluated(make: impl Fn() -> Expr + 'static) -> Result<Made> {
    Ok(Made::Recorded(Box::new(make)))
}

/// An operation on a matrix.
fn of_one(engine: &Engine, size: Size, make: impl Fn(&Tensor) -> Expr + 'static) -> Result<Made> {
    let x = random(engine, &[size.height, size.width], 1)?;
    evaluated(move || make(&x))
}

/// An operation on a matrix and a row.
fn of_row(engine: &Engine, size: Size, make: impl Fn(&Tensor, &Tensor) -> Expr + 'static) -> Result<Made> {
    let (x, row) = (random(engine, &[size.height, size.width], 1)?, random(engine, &[size.width], 2)?);
    evaluated(move || make(&x, &row))
}

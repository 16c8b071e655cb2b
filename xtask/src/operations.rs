//! Writes `docs/operations.md`: every operation, the dtypes that it takes, and the kernels that serve it. Nothing of that is said by hand: each
//! operation runs once for each dtype.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use cantus::ops::{self, Attention, Binary, Expr, Interpolation, Padding, RopePairs, Unary, Window};
use cantus::{DType, Engine, Fallback};

use crate::prepare::{Generated, Outcome, stale};

pub fn write(root: &Path) -> Outcome<String> {
    let page = generate(root)?;
    std::fs::write(&page.path, &page.bytes)?;
    Ok("docs/operations.md is up to date".to_owned())
}

pub fn check(root: &Path) -> Outcome<String> {
    if stale(root, &[generate(root)?]).is_empty() {
        return Ok("docs/operations.md is fresh".to_owned());
    }
    Err("docs/operations.md is not fresh (run cargo xtask operations and commit)".into())
}

/// An engine, and the dtype of the inputs.
struct Inputs {
    engine: Engine,
    dtype: DType,
}

impl Inputs {
    fn x(&self, shape: &[usize]) -> cantus::Result<Expr> {
        Ok(self.engine.zeros_of(self.dtype, shape)?.expr())
    }

    fn index(&self, shape: &[usize]) -> cantus::Result<Expr> {
        Ok(self.engine.zeros::<u32>(shape)?.expr())
    }

    fn floats(&self, shape: &[usize]) -> cantus::Result<Expr> {
        Ok(self.engine.zeros::<f32>(shape)?.expr())
    }
}

type Run = fn(&Inputs) -> cantus::Result<Expr>;

/// Families of operations. Long enough that each kernel is among those that run.
const FAMILIES: &[(&str, &[(&str, Run)])] = &[
    (
        "Reductions and scans",
        &[
            ("sum", |i| Ok(i.x(&[2, 1 << 16])?.sum(&[1], false))),
            ("prod", |i| Ok(i.x(&[2, 1 << 16])?.prod(&[1], false))),
            ("max", |i| Ok(i.x(&[2, 1 << 16])?.max(&[1], false))),
            ("min", |i| Ok(i.x(&[2, 1 << 16])?.min(&[1], false))),
            ("argmax", |i| Ok(i.x(&[2, 1 << 16])?.argmax(Some(1), false))),
            ("argmin", |i| Ok(i.x(&[2, 1 << 16])?.argmin(Some(1), false))),
            ("mean", |i| Ok(i.x(&[2, 512])?.mean(&[1], false))),
            ("variance", |i| Ok(i.x(&[2, 512])?.variance(&[1], 1.0, false))),
            ("std", |i| Ok(i.x(&[2, 512])?.std(&[1], 1.0, false))),
            ("any", |i| Ok(i.x(&[2, 512])?.any(&[1], false))),
            ("all", |i| Ok(i.x(&[2, 512])?.all(&[1], false))),
            ("count_nonzero", |i| Ok(i.x(&[2, 512])?.count_nonzero(&[1], false))),
            ("norm", |i| Ok(i.x(&[2, 512])?.norm(2.0, &[1], false))),
            ("logsumexp", |i| Ok(i.x(&[2, 512])?.logsumexp(&[1], false))),
            ("median", |i| Ok(i.x(&[2, 512])?.median(Some(1), false))),
            ("quantile", |i| Ok(i.x(&[2, 512])?.quantile(0.3, Some(1), false))),
            ("cumsum", |i| Ok(i.x(&[2, 2048])?.cumsum(1))),
            ("cumsum_exclusive", |i| Ok(i.x(&[2, 2048])?.cumsum_exclusive(1))),
            ("cumprod", |i| Ok(i.x(&[2, 2048])?.cumprod(1))),
            ("cummax", |i| Ok(i.x(&[2, 2048])?.cummax(1))),
            ("cummin", |i| Ok(i.x(&[2, 2048])?.cummin(1))),
            ("logcumsumexp", |i| Ok(i.x(&[2, 2048])?.logcumsumexp(1))),
            ("diff", |i| Ok(i.x(&[2, 8])?.diff(1, 1))),
        ],
    ),
    (
        "Order and search",
        &[
            ("sort", |i| Ok(i.x(&[2, 512])?.sort(1, false))),
            ("argsort", |i| Ok(i.x(&[2, 512])?.argsort(1, false))),
            ("topk", |i| Ok(i.x(&[2, 512])?.topk(3, 1, true).0)),
            ("searchsorted", |i| Ok(i.x(&[512])?.searchsorted(i.x(&[9])?, false))),
            ("bincount", |i| Ok(i.x(&[512])?.bincount(4))),
            ("histogram", |i| Ok(i.x(&[512])?.histogram(4, 0.0, 1.0))),
            ("histogram_by", |i| Ok(i.x(&[512])?.histogram_by(i.x(&[3])?, 1.0))),
            ("unique", |i| Ok(i.x(&[512])?.unique()?.inverse.expr())),
            ("nonzero", |i| Ok(i.x(&[512])?.nonzero()?.expr())),
            ("masked_select", |i| {
                let x = i.x(&[512])?;
                Ok(x.masked_select(x.equal(0.0))?.expr())
            }),
        ],
    ),
    (
        "Moving data",
        &[
            ("broadcast_to", |i| Ok(i.x(&[1, 8])?.broadcast_to(&[2, 8]))),
            ("reshape", |i| Ok(i.x(&[2, 8])?.permute(&[1, 0]).reshape(&[16]))),
            ("permute", |i| Ok(i.x(&[2, 8])?.permute(&[1, 0]))),
            ("transpose", |i| Ok(i.x(&[2, 8])?.transpose())),
            ("slice", |i| Ok(i.x(&[8])?.split(&[2, 6], 0).remove(1).slice(std::slice::from_ref(&(1..2))))),
            ("slice_steps", |i| Ok(i.x(&[8])?.slice_steps(std::slice::from_ref(&(0..8)), &[2]))),
            ("expand", |i| Ok(i.x(&[1, 8])?.expand(0) * i.x(&[2, 1, 8])?)),
            ("squeeze", |i| Ok(i.x(&[1, 8])?.squeeze(0) * i.x(&[2, 8])?)),
            ("concat", |i| Ok(i.x(&[2, 8])?.concat(&[i.x(&[2, 8])?], 1))),
            ("stack", |i| Ok(i.x(&[2, 8])?.stack(&[i.x(&[2, 8])?], 1))),
            ("split", |i| Ok(i.x(&[8])?.split(&[2, 6], 0).remove(1))),
            ("tile", |i| Ok(i.x(&[2, 8])?.tile(&[2, 2]))),
            ("repeat", |i| Ok(i.x(&[2, 8])?.repeat(2, 1))),
            ("roll", |i| Ok(i.x(&[2, 8])?.roll(&[2], &[1]))),
            ("flip", |i| Ok(i.x(&[2, 8])?.flip(&[1]))),
            ("pad", |i| Ok(i.x(&[2, 8])?.pad(&[(1, 1), (1, 1)], 0.0).pad(&[(1, 1), (1, 1)], Padding::Reflect))),
            ("take", |i| Ok(i.x(&[2, 8])?.take(i.index(&[3])?, 1))),
            ("gather", |i| Ok(i.x(&[2, 8])?.gather(i.index(&[2, 3])?, 1))),
            ("scatter", |i| Ok(i.x(&[2, 512])?.scatter(i.index(&[2, 512])?, i.x(&[2, 512])?, 1))),
            ("scatter_add", |i| Ok(i.x(&[2, 512])?.scatter_add(i.index(&[2, 512])?, i.x(&[2, 512])?, 1))),
            ("scatter_max", |i| Ok(i.x(&[2, 512])?.scatter_max(i.index(&[2, 512])?, i.x(&[2, 512])?, 1))),
            ("scatter_min", |i| Ok(i.x(&[2, 512])?.scatter_min(i.index(&[2, 512])?, i.x(&[2, 512])?, 1))),
            ("index_add", |i| Ok(i.x(&[2, 8])?.index_add(i.index(&[3])?, i.x(&[2, 3])?, 1))),
            ("index_copy", |i| Ok(i.x(&[2, 8])?.index_copy(i.index(&[3])?, i.x(&[2, 3])?, 1))),
            ("index_fill", |i| Ok(i.x(&[2, 8])?.index_fill(i.index(&[3])?, 1.0, 1))),
            ("masked_fill", |i| Ok(i.x(&[2, 8])?.masked_fill(i.index(&[2, 8])?, 1.0))),
            ("slice_scatter", |i| Ok(i.x(&[2, 8])?.slice_scatter(&[0..1, 2..4], i.x(&[1, 2])?))),
            ("one_hot", |i| Ok(i.x(&[8])?.one_hot(3, DType::F32))),
            ("tril", |i| Ok(i.x(&[8, 8])?.tril(0))),
            ("triu", |i| Ok(i.x(&[8, 8])?.triu(0))),
            ("diagonal", |i| Ok(i.x(&[8, 8])?.diagonal(1))),
            ("unfold", |i| Ok(i.x(&[8])?.unfold(0, 2, 1))),
            ("im2col", |i| Ok(i.x(&[1, 1, 8, 8])?.im2col([3, 3], Window::default()))),
            ("interpolate", |i| Ok(i.x(&[1, 1, 8, 8])?.interpolate([5, 9], Interpolation::Bicubic))),
            ("grid_sample", |i| {
                let grid = i.floats(&[1, 4, 4, 2])?;
                Ok(i.x(&[1, 1, 8, 8])?.grid_sample(grid, Interpolation::Bilinear, 0.0, false))
            }),
            ("meshgrid", |i| Ok(ops::meshgrid(&[i.x(&[4])?, i.x(&[5])?]).remove(0))),
            ("full", |i| Ok(ops::full(&i.engine, &[8], 1.0, i.dtype))),
            ("arange", |i| Ok(ops::arange(&i.engine, 0.0, 8.0, 1.0, i.dtype))),
            ("linspace", |i| Ok(ops::linspace(&i.engine, 0.0, 1.0, 8, i.dtype))),
            ("eye", |i| Ok(ops::eye(&i.engine, 8, 8, 0, i.dtype))),
            ("cast", |i| Ok(i.x(&[8])?.cast(if i.dtype == DType::F32 { DType::I32 } else { DType::F32 }))),
            ("select", |i| Ok(i.index(&[8])?.select(i.x(&[8])?, i.x(&[8])?))),
            ("where", |i| Ok(i.x(&[8])?.r#where(i.index(&[8])?, i.x(&[8])?))),
            ("clamp", |i| Ok(i.x(&[8])?.clamp(0.0, 1.0))),
            ("lerp", |i| Ok(i.x(&[8])?.lerp(i.x(&[8])?, 0.5))),
        ],
    ),
    (
        "Linear algebra",
        &[
            ("matmul", |i| Ok(i.x(&[64, 64])?.matmul(i.x(&[64, 64])?))),
            ("fused_linear", |i| Ok(i.x(&[64, 64])?.fused_linear(i.x(&[64, 64])?, None, Some(Unary::Relu)))),
            ("einsum", |i| Ok(i.x(&[8, 8])?.einsum("ij,kj->ik", &[i.x(&[8, 8])?]))),
            ("tensordot", |i| Ok(i.x(&[8, 8])?.tensordot(i.x(&[8, 8])?, &[(0, 1)]))),
            ("kron", |i| Ok(i.x(&[8, 8])?.kron(i.x(&[2, 2])?))),
            ("matrix_power", |i| Ok(i.x(&[8, 8])?.matrix_power(3))),
            ("lu", |i| Ok(i.x(&[64, 64])?.lu().0)),
            ("solve", |i| Ok(i.x(&[64, 64])?.solve(i.x(&[64])?))),
            ("solve_triangular", |i| Ok(i.x(&[64, 64])?.solve_triangular(i.x(&[64])?, false))),
            ("inverse", |i| Ok(i.x(&[64, 64])?.inverse())),
            ("det", |i| Ok(i.x(&[64, 64])?.det())),
            ("slogdet", |i| Ok(i.x(&[64, 64])?.slogdet().1)),
            ("cholesky", |i| Ok(i.x(&[64, 64])?.cholesky())),
            ("qr", |i| Ok(i.x(&[64, 64])?.qr().0)),
            ("eigh", |i| Ok(i.x(&[8, 8])?.eigh().1)),
            ("qr_complete", |i| Ok(i.x(&[8, 4])?.qr_complete().0)),
            ("svd", |i| Ok(i.x(&[8, 8])?.svd().0)),
            ("svd_full", |i| Ok(i.x(&[8, 4])?.svd_full().0)),
            ("expm", |i| Ok(i.x(&[8, 8])?.expm())),
            ("Csr::matmul", |i| {
                let a = ops::Csr::new(&i.engine, 8, &[0, 2], &[1, 5], &[1.0, 2.0])?;
                Ok(a.matmul(i.x(&[8])?))
            }),
            ("outer", |i| Ok(i.x(&[8])?.outer(i.x(&[8])?))),
            ("trace", |i| Ok(i.x(&[8, 8])?.trace())),
        ],
    ),
    (
        "Fourier transforms",
        &[
            ("fft", |i| Ok(i.x(&[64, 2])?.fft(0))),
            ("ifft", |i| Ok(i.x(&[64, 2])?.ifft(0))),
            ("fftn", |i| Ok(i.x(&[8, 8, 2])?.fftn(&[]))),
            ("ifftn", |i| Ok(i.x(&[8, 8, 2])?.ifftn(&[]))),
            ("rfft", |i| Ok(i.x(&[64])?.rfft(0))),
            ("irfft", |i| Ok(i.x(&[33, 2])?.irfft(64, 0))),
            ("rfftn", |i| Ok(i.x(&[8, 8])?.rfftn(&[]))),
            ("irfftn", |i| Ok(i.x(&[8, 5, 2])?.irfftn(8, &[]))),
            ("convolve", |i| Ok(i.x(&[512])?.convolve(i.x(&[200])?, ops::Overlap::Full))),
        ],
    ),
    (
        "Networks",
        &[
            ("softmax", |i| Ok(i.x(&[2, 8])?.softmax(1))),
            ("log_softmax", |i| Ok(i.x(&[2, 8])?.log_softmax(1))),
            ("layer_norm", |i| Ok(i.x(&[2, 8])?.layer_norm(i.x(&[8])?, i.x(&[8])?, 1e-5))),
            ("rms_norm", |i| Ok(i.x(&[2, 8])?.rms_norm(i.x(&[8])?, 1e-6))),
            ("group_norm", |i| Ok(i.x(&[2, 8, 4])?.group_norm(2, i.x(&[8])?, i.x(&[8])?, 1e-5))),
            ("instance_norm", |i| Ok(i.x(&[2, 8, 4])?.instance_norm(i.x(&[8])?, i.x(&[8])?, 1e-5))),
            ("batch_norm", |i| {
                let c = i.x(&[8])?;
                Ok(i.x(&[2, 8, 4])?.batch_norm(&c, &c, &c, &c, 1e-5))
            }),
            ("conv1d", |i| Ok(i.x(&[1, 2, 8])?.conv1d(i.x(&[2, 2, 3])?, 1, 0, 1, 1))),
            ("conv2d", |i| Ok(i.x(&[1, 2, 8, 8])?.conv2d(i.x(&[2, 2, 3, 3])?, Window::default(), 1))),
            ("conv3d", |i| Ok(i.x(&[1, 2, 8, 8, 8])?.conv3d(i.x(&[2, 2, 3, 3, 3])?, [1; 3], [0; 3], [1; 3], 1))),
            ("conv_transpose2d", |i| {
                Ok(i.x(&[1, 2, 8, 8])?.conv_transpose2d(i.x(&[2, 2, 3, 3])?, Window::strided(2), [0; 2], 1))
            }),
            ("conv_transpose1d", |i| Ok(i.x(&[1, 2, 8])?.conv_transpose1d(i.x(&[2, 2, 3])?, 2, 0, 1, 0, 1))),
            ("conv_transpose3d", |i| {
                let w = i.x(&[2, 2, 2, 2, 2])?;
                Ok(i.x(&[1, 2, 4, 4, 4])?.conv_transpose3d(w, [2; 3], [0; 3], [1; 3], [0; 3], 1))
            }),
            ("pad_same", |i| Ok(i.x(&[1, 2, 8])?.pad_same(&[3], &[1], &[1]))),
            ("embedding", |i| Ok(i.index(&[3])?.embedding(i.x(&[8, 8])?))),
            ("max_pool2d", |i| Ok(i.x(&[1, 2, 8, 8])?.max_pool2d([2, 2], Window::strided(2)))),
            ("avg_pool2d", |i| Ok(i.x(&[1, 2, 8, 8])?.avg_pool2d([2, 2], Window::strided(2), false))),
            ("adaptive_avg_pool2d", |i| Ok(i.x(&[1, 2, 8, 8])?.adaptive_avg_pool2d([3, 3]))),
            ("adaptive_max_pool2d", |i| Ok(i.x(&[1, 2, 8, 8])?.adaptive_max_pool2d([3, 3]))),
            ("rope", |i| Ok(i.x(&[2, 8])?.rope(i.index(&[2])?, 1e4, RopePairs::Halves))),
            ("dropout", |i| Ok(i.x(&[2, 8])?.dropout(0.5, 1))),
            ("scaled_dot_product_attention", |i| {
                let x = i.x(&[2, 8, 4])?;
                Ok(x.scaled_dot_product_attention(&x, &x, &Attention::new()))
            }),
            ("mse_loss", |i| Ok(i.x(&[8])?.mse_loss(i.x(&[8])?))),
            ("l1_loss", |i| Ok(i.x(&[8])?.l1_loss(i.x(&[8])?))),
            ("huber_loss", |i| Ok(i.x(&[8])?.huber_loss(i.x(&[8])?, 1.0))),
            ("binary_cross_entropy", |i| Ok(i.x(&[8])?.binary_cross_entropy(i.x(&[8])?))),
            ("binary_cross_entropy_with_logits", |i| Ok(i.x(&[8])?.binary_cross_entropy_with_logits(i.x(&[8])?))),
            ("kl_div", |i| Ok(i.x(&[8])?.kl_div(i.x(&[8])?))),
            ("nll_loss", |i| Ok(i.x(&[2, 8])?.nll_loss(i.index(&[2])?))),
            ("cross_entropy", |i| Ok(i.x(&[2, 8])?.cross_entropy(i.index(&[2])?))),
        ],
    ),
    (
        "Random numbers",
        &[
            ("rand", |i| Ok(only(i, DType::F32, ops::rand(&i.engine, &[8], 1)))),
            ("randn", |i| Ok(only(i, DType::F32, ops::randn(&i.engine, &[8], 1)))),
            ("random_bits", |i| Ok(only(i, DType::U32, ops::random_bits(&i.engine, &[8], 1)))),
        ],
    ),
];

/// Returns the expression for a dtype, if that dtype was requested; a mistake elsewhere.
fn only(inputs: &Inputs, dtype: DType, expr: Expr) -> Expr {
    if inputs.dtype == dtype { expr } else { expr.squeeze(0) }
}

/// Public methods of the files that hold operations, that are none.
#[cfg(test)]
const OTHERS: &[&str] = &[
    "new",
    "strided",
    "padded",
    "dilated",
    "masked",
    "causal",
    "scaled",
    "constant",
    "shape",
    "dtype",
    "is_long",
    "sides",
    "values",
    "with_values",
    "append",
    "keys",
    "len",
    "is_empty",
    "truncate",
];

fn generate(root: &Path) -> Outcome<Generated> {
    let mut page = String::from(
        "# Operations\n\n\
         Every tensor operation, its dtypes and its kernels; `cargo xtask operations` runs each and writes this page. Operations are methods of `Expr` and\n\
         `Tensor`. Those that make tensors without an input are functions of `cantus::ops`. Each one's documentation has shapes, limits and an example.\n\n\
         - *Kernels* names the frames in `shaders/tensor` that run, here on the CPU. `elementwise` is a kernel written from the expression alone; elementwise\n\
         \x20\x20operations before and after another kernel are usually fused into it. *(native)* means that the CPU runs its own code in place of that kernel.\n\
         - All operations run on every device, except on f64, i64, u64 and complex128, which a device must support.\n\
         - f16 and bf16 are computed in f32. Bool and integers of 8 and 16 bits are computed in i32 and u32, and wrap. [dtypes.md](dtypes.md) has the dtypes\n\
         \x20\x20of results.\n\
         - If a dtype has no kernel (functions and sorts of f64, factorisations of complex numbers), the host computes it.\n\
         - With the features `fft` and `linalg`, the CPU uses `rustfft` for transforms and `faer` for factorisations.\n",
    );
    for (family, operations) in FAMILIES {
        let _ = write!(page, "\n## {family}\n\n| operation | dtypes | kernels |\n| --- | --- | --- |\n");
        for (name, run) in *operations {
            let (dtypes, kernels) = served(*run)?;
            if dtypes.is_empty() {
                return Err(format!("{name} takes no dtype").into());
            }
            let _ = writeln!(page, "| `{name}` | {} | {} |", dtypes.join(", "), kernels.join(", "));
        }
    }
    page.push_str(
        "\n## Functions of elements\n\nEach is part of the kernel of its expression. *Error* is the largest in float32 on every device, absolute below 1 and relative\n\
         above; *ULP* is the largest on the CPU in units in the last place, and a dash where only the error holds: near roots, and where results\n\
         are too small to be normal numbers.\n\n| function | dtypes | error | ULP |\n| --- | --- | --- | --- |\n",
    );
    let mut function = |name: &str, dtypes: &mut dyn Iterator<Item = DType>, accuracy: &str, ulps: Option<u32>| {
        let dtypes: Vec<String> = dtypes.map(|dtype| dtype.to_string()).collect();
        let ulps = ulps.map_or_else(|| "-".to_owned(), |ulps| ulps.to_string());
        let _ = writeln!(page, "| `{name}` | {} | {accuracy} | {ulps} |", dtypes.join(", "));
    };
    for op in Unary::ALL {
        function(op.name(), &mut op.dtypes(), op.accuracy(), op.ulps());
    }
    for op in Binary::ALL {
        function(op.name(), &mut op.dtypes(), op.accuracy(), op.ulps());
    }
    Ok(Generated { path: root.join("docs/operations.md"), bytes: page.into_bytes() })
}

/// The dtypes that an operation takes, and the kernels that run for the first of them.
fn served(run: Run) -> Outcome<(Vec<String>, Vec<String>)> {
    let (mut dtypes, mut kernels) = (Vec::new(), Vec::new());
    for &dtype in DType::ALL {
        // One for each: what is counted is its own.
        let engine = Engine::builder().backend("cpu").fallback(Fallback::Never).without_cache().build()?;
        let inputs = Inputs { engine: engine.clone(), dtype };
        if run(&inputs).and_then(|expr| expr.eval()).and_then(|_| engine.finish()).is_err() {
            continue;
        }
        if dtypes.is_empty() {
            let counts: BTreeMap<String, u64> =
                engine.metrics().into_iter().map(|row| (row.operation, row.count)).collect();
            kernels = counts.into_keys().collect();
        }
        dtypes.push(dtype.to_string());
    }
    Ok((dtypes, kernels))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

    use std::path::Path;

    use super::{FAMILIES, OTHERS, check};

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    #[test]
    fn the_page_of_operations_is_fresh() {
        check(root()).unwrap();
    }

    #[test]
    fn every_operation_is_on_the_page() {
        let listed: Vec<&str> = FAMILIES.iter().flat_map(|(_, rows)| rows.iter().map(|(name, _)| *name)).collect();
        let folders = ["tensor", "linalg", "fft"].map(|folder| root().join("crates/engine/src/ops").join(folder));
        let (mut files, mut folders) = (Vec::new(), folders.to_vec());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        let others =
            ["crates/engine/src/ops/expr/view.rs", "crates/engine/src/ops/expr/node.rs"].map(|file| root().join(file));
        let mut missing = Vec::new();
        for file in files.into_iter().chain(others) {
            let text = std::fs::read_to_string(&file).unwrap();
            for line in text.lines() {
                let declared = line.strip_prefix("    pub fn ").or_else(|| line.strip_prefix("pub fn "));
                let Some(name) = declared.and_then(|rest| rest.split(['(', '<']).next()) else { continue };
                let name = name.trim_start_matches("r#");
                let name = name.strip_suffix("_async").unwrap_or(name);
                if !listed.contains(&name) && !OTHERS.contains(&name) {
                    missing.push(format!("{name} of {}", file.display()));
                }
            }
        }
        assert!(missing.is_empty(), "write a row for {missing:?}");
    }
}

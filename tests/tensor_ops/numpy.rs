//! Every dtype against NumPy, in a process: arithmetic, promotion, conversions, reductions, and files both ways. `CANTUS_NUMPY` names a Python that
//! has NumPy; `./test` makes one.

use std::fmt::Write as _;
use std::process::Command;

use cantus::ops::Binary;
use cantus::{DType, Engine, Tensor};

use crate::values::{Value, limits, operand, sampled, supported, values_of};
use crate::{by_turns, name};

/// Returns NumPy's name of a dtype; it has no bf16.
fn numpy(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "bool",
        DType::I8 => "int8",
        DType::U8 => "uint8",
        DType::I16 => "int16",
        DType::U16 => "uint16",
        DType::I32 => "int32",
        DType::U32 => "uint32",
        DType::I64 => "int64",
        DType::U64 => "uint64",
        DType::F16 => "float16",
        DType::F32 => "float32",
        DType::F64 => "float64",
        DType::Complex64 => "complex64",
        DType::Complex128 => "complex128",
        _ => return None,
    })
}

/// Small numbers, of which no result is rounded much; none is 0.
fn numbers(dtype: DType, turn: usize) -> Vec<f64> {
    let signed = limits(dtype).is_none_or(|(low, _)| low < 0);
    (0..53_usize)
        .map(|at| {
            let number = 1.0 + ((at * 37 + turn * 11) % 113) as f64;
            if signed && at % 3 == 0 { -number } else { number }
        })
        .collect()
}

const BINARY: [(&str, Binary); 7] = [
    ("add", Binary::Add),
    ("subtract", Binary::Sub),
    ("multiply", Binary::Mul),
    ("maximum", Binary::Max),
    ("remainder", Binary::Remainder),
    ("less", Binary::Lt),
    ("bitwise_xor", Binary::BitwiseXor),
];

/// A case's name, its result here, and NumPy's expression for it over the arrays `a` and `b` of files.
struct Case {
    name: String,
    result: Tensor,
    python: String,
}

fn cases(engine: &Engine, folder: &std::path::Path) -> Vec<Case> {
    let mut cases = Vec::new();
    let known: Vec<DType> =
        DType::ALL.iter().copied().filter(|&dtype| numpy(dtype).is_some() && supported(engine, dtype)).collect();
    let inputs: Vec<[Tensor; 2]> = known
        .iter()
        .map(|&dtype| {
            [0, 1].map(|turn| {
                let (_, x) = operand(engine, dtype, &numbers(dtype, turn));
                x.to_npy(folder.join(format!("{dtype}_{turn}.npy"))).unwrap();
                x
            })
        })
        .collect();
    let mut add = |name: String, expr: cantus::ops::Expr, python: String| {
        let result = expr.eval().unwrap_or_else(|error| panic!("{name}: {error}"));
        cases.push(Case { name, result, python });
    };
    for (place, (&dtype, [a, b])) in known.iter().zip(&inputs).enumerate() {
        let (x, y) = (format!("load('{dtype}_0')"), format!("load('{dtype}_1')"));
        for (at, (ufunc, op)) in BINARY.iter().enumerate() {
            if op.dtypes().any(|taken| taken == dtype) && sampled(engine, 16 * place + at, 4) {
                add(format!("{ufunc} of {dtype}"), a.binary(*op, b), format!("np.{ufunc}({x}, {y})"));
            }
        }
        for (&other, [_, c]) in known.iter().zip(&inputs) {
            let z = format!("load('{other}_1')");
            if !sampled(engine, 1000 + 16 * place + other as usize, 8) {
                continue;
            }
            // A float that is out of range is not defined in NumPy, and a negative one of unsigned integers neither.
            let whole = limits(dtype).is_some() || limits(other).is_none();
            if whole || limits(other).is_some_and(|(low, high)| low < -200 && high > 200) || other == DType::Bool {
                let to = numpy(other).unwrap();
                add(format!("{dtype} to {other}"), a.cast(other), format!("real({x}, '{to}').astype('{to}')"));
            }
            // NumPy also promotes integers beside floats; where there is a dtype here it is the same one.
            let both_bool = dtype == DType::Bool && other == DType::Bool;
            if let Ok(promoted) = dtype.promoted(other)
                && supported(engine, promoted)
                && !both_bool
            {
                add(format!("{dtype} and {other}"), a * c, format!("{x} * {z}"));
            }
        }
        if !sampled(engine, 2000 + place, 2) {
            continue;
        }
        let summed = match dtype {
            DType::Bool | DType::U8 | DType::U16 => DType::U32,
            DType::I8 | DType::I16 => DType::I32,
            same => same,
        };
        let summed = numpy(summed).unwrap();
        add(format!("sum of {dtype}"), a.sum(&[], false), format!("{x}.sum(dtype='{summed}')"));
        add(format!("cumsum of {dtype}"), a.cumsum(0), format!("np.cumsum({x}, dtype='{summed}')"));
        add(format!("any of {dtype}"), a.any(&[], false), format!("{x}.any()"));
        if numpy(dtype).is_some_and(|name| !name.starts_with("complex")) {
            add(format!("max of {dtype}"), a.max(&[], false), format!("{x}.max()"));
            add(format!("argmin of {dtype}"), a.argmin(None, false), format!("{x}.argmin().astype('uint32')"));
        } else {
            for function in ["real", "imag", "conj", "abs", "angle", "exp"] {
                let expr = match function {
                    "real" => a.real(),
                    "imag" => a.imag(),
                    "conj" => a.conj(),
                    "abs" => a.abs(),
                    "angle" if dtype == DType::Complex64 => a.angle(),
                    "exp" if dtype == DType::Complex64 => (a * 0.01).exp(),
                    _ => continue,
                };
                let scaled = if function == "exp" { format!("np.complex64(0.01) * {x}") } else { x.clone() };
                add(format!("{function} of {dtype}"), expr, format!("np.{function}({scaled})"));
            }
        }
    }
    cases
}

#[test]
fn every_dtype_is_numpys() {
    let Ok(python) = std::env::var("CANTUS_NUMPY") else {
        kit::not_run("dtypes beside NumPy", "CANTUS_NUMPY names no Python with NumPy (./test makes one)");
        return;
    };
    let mut ran = 0;
    for engine in by_turns() {
        let folder = tempfile::tempdir().unwrap();
        let cases = cases(engine, folder.path());
        if cases.is_empty() {
            kit::not_run(&format!("dtypes beside NumPy on {}", name(engine)), "none of its cases has its turn");
            continue;
        }
        ran += 1;
        let mut script = String::from(
            "import sys, warnings, numpy as np\n\
             warnings.simplefilter('ignore')\n\
             def load(name): return np.load(f'{sys.argv[1]}/{name}.npy')\n\
             def real(x, to): return x.real if x.dtype.kind == 'c' and np.dtype(to).kind not in 'cb' else x\n",
        );
        for (place, case) in cases.iter().enumerate() {
            let _ = writeln!(script, "np.save(f'{{sys.argv[1]}}/theirs_{place}.npy', np.asarray({}))", case.python);
        }
        let path = folder.path().join("oracle.py");
        std::fs::write(&path, script).unwrap();
        let output = Command::new(&python).arg(&path).arg(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for (place, case) in cases.iter().enumerate() {
            let what = format!("{} ({}) on {}", case.name, case.python, name(engine));
            let theirs = Tensor::from_npy(engine, folder.path().join(format!("theirs_{place}.npy"))).unwrap();
            assert_eq!((theirs.dtype(), theirs.shape()), (case.result.dtype(), case.result.shape()), "{what}");
            if limits(theirs.dtype()).is_some() {
                // NumPy's own file, byte by byte.
                let ours = folder.path().join("ours.npy");
                case.result.to_npy(&ours).unwrap();
                let theirs = std::fs::read(folder.path().join(format!("theirs_{place}.npy"))).unwrap();
                assert_eq!(std::fs::read(ours).unwrap(), theirs, "{what}");
                continue;
            }
            let tolerance = match theirs.dtype() {
                DType::F16 => 1e-3,
                DType::F64 | DType::Complex128 => 1e-14,
                _ => 2e-6,
            };
            for (got, want) in values_of(&case.result).into_iter().zip(values_of(&theirs)) {
                let (got, want) = (Value::complex(got), Value::complex(want));
                let near = got == want || (got - want).norm() <= tolerance * want.norm().max(1.0);
                assert!(near, "{what}: {got}, not {want}");
            }
        }
    }
    assert!(ran > 0, "the processor takes all");
}

//! Runs the passes of a plan on tensors. Where the engine computes on the processor, `native` goes tile by tile through its cache; on every other
//! device the five kernels of `shaders` run. Matrices and the places of qubits are data: nothing is compiled for a circuit.

use std::sync::{Arc, LazyLock};

use bytemuck::{Pod, Zeroable};
use cantus::{DType, Engine, Error, Kernel, Result, Tensor};
use num_complex::Complex;

use crate::gate::{C, ONE};
use crate::kernels;
use crate::native;
use crate::observable::Factors;
use crate::plan::{Form, Op, Plan};
use crate::real::Real;

/// The kernels, by what they multiply by.
struct Kernels {
    dense: [Kernel; 5],
    diagonal: Kernel,
    begin: Kernel,
    inner: Kernel,
    accumulate: Kernel,
}

static SINGLE: LazyLock<Result<Kernels>> = LazyLock::new(|| {
    use kernels::dense::{dense1, dense2, dense3, dense4, dense5};
    Ok(Kernels {
        dense: [dense1::kernel()?, dense2::kernel()?, dense3::kernel()?, dense4::kernel()?, dense5::kernel()?],
        diagonal: kernels::diagonal::kernel()?,
        begin: kernels::begin::kernel()?,
        inner: kernels::inner::kernel()?,
        accumulate: kernels::accumulate::kernel()?,
    })
});

/// The same kernels in float64. Devices that have it are few, so these are read where they are used first, and not compiled ahead.
static DOUBLE: LazyLock<Result<Kernels>> = LazyLock::new(|| {
    let double = |file: &str, text: &str, entry: &str| {
        let text = text.replace("alias Real = f32;", "alias Real = f64;");
        Kernel::from_named_wgsl(&format!("{file} in float64"), &text)?.with_entry_point(entry)
    };
    macro_rules! double {
        ($file:literal, $entry:literal) => {
            double($file, include_str!(concat!("../shaders/", $file)), $entry)?
        };
    }
    Ok(Kernels {
        dense: [
            double!("dense.wgsl", "dense1"),
            double!("dense.wgsl", "dense2"),
            double!("dense.wgsl", "dense3"),
            double!("dense.wgsl", "dense4"),
            double!("dense.wgsl", "dense5"),
        ],
        diagonal: double!("diagonal.wgsl", "diagonal"),
        begin: double!("begin.wgsl", "begin"),
        inner: double!("inner.wgsl", "inner_product"),
        accumulate: double!("accumulate.wgsl", "accumulate"),
    })
});

/// The kernels of a precision, where the engine's device has it.
fn kernels<T: Real>(engine: &Engine) -> Result<&'static Kernels> {
    if T::COMPLEX == DType::Complex64 {
        return SINGLE.as_ref().map_err(Clone::clone);
    }
    let device = &engine.selected().device;
    if !device.capabilities.features.float64 {
        return Err(Error::Unsupported {
            kernel: "circuits".to_owned(),
            device: device.name.clone(),
            construct: "amplitudes in complex128, as the device has no float64 (use Precision::Single)".to_owned(),
            report: String::new(),
        });
    }
    DOUBLE.as_ref().map_err(Clone::clone)
}

/// The uniform of `dense.wgsl` and `diagonal.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Pass {
    fixed: u32,
    ones: u32,
    groups: u32,
    qubits: u32,
    table: u32,
    stride: u32,
    total: u32,
    targets: u32,
    places: [u32; 32],
    target: [u32; 16],
}

impl Pass {
    fn of(plan: &Plan, op: &Op, count: usize) -> Self {
        // A diagonal leaves its targets where they are.
        let fixed = op.mixes() | op.ones | op.zeros;
        let groups = plan.qubits as u32 - fixed.count_ones();
        let mut pass = Self::zeroed();
        (pass.fixed, pass.ones, pass.groups) = (fixed.count_ones(), op.ones as u32, groups);
        (pass.qubits, pass.table, pass.stride) = (plan.qubits as u32, op.table as u32, plan.entries as u32);
        (pass.total, pass.targets) = ((count << groups) as u32, op.targets.len() as u32);
        let places = (0..32_u32).filter(|place| fixed >> place & 1 == 1);
        pass.places.iter_mut().zip(places).for_each(|(to, place)| *to = place);
        pass.target.iter_mut().zip(&op.targets).for_each(|(to, place)| *to = u32::from(*place));
        pass
    }
}

/// Returns the number of amplitudes, which kernels number with 32 bits.
fn check_total(count: usize, qubits: usize) -> Result<u32> {
    count
        .checked_shl(qubits as u32)
        .filter(|total| *total <= 1 << 30)
        .and_then(|total| u32::try_from(total).ok())
        .ok_or_else(|| {
            Error::limit(
                "the states",
                format!("{count} of {qubits} qubits are more than the 2^30 amplitudes that kernels number (use fewer)"),
            )
        })
}

/// The states that a plan begins with: the amplitudes of tensors of equal size, in a row. Amplitudes may be other than 0 only at numbers whose bits are among
/// `support`'s.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before<'a> {
    pub parts: &'a [Tensor],
    pub support: u64,
}

/// Runs a plan on `count` states and returns them: [count, 2^qubits]. They begin as given, or with all qubits 0.
pub(crate) fn run<T: native::Run>(
    engine: &Engine,
    plan: &Arc<Plan>,
    tables: &Tensor,
    count: usize,
    before: Option<Before<'_>>,
) -> Result<Tensor> {
    let shape = [count, 1 << plan.qubits];
    let (parts, support) = before.map_or((&[][..], 0), |before| (before.parts, before.support));
    let inputs: Vec<&Tensor> = std::iter::once(tables).chain(parts).collect();
    if let Some(states) =
        engine.native(native::run::<T>(plan, count, parts.len(), support), &inputs, (T::COMPLEX, &shape), "circuit")?
    {
        return Ok(states);
    }
    let kernels = kernels::<T>(engine)?;
    let total = check_total(count, plan.qubits)?;
    let states = engine.output(Some(parts.first().unwrap_or(tables)), T::COMPLEX, &shape, "amplitudes")?;
    for (at, part) in parts.iter().enumerate() {
        copy::<T>(engine, part, 0, &states, at * part.len(), part.len())?;
    }
    if parts.is_empty() {
        let start = [plan.qubits as u32, total];
        engine
            .dispatch(&kernels.begin)
            .set_bytes("start", bytemuck::bytes_of(&start))
            .bind("amplitudes", &states)
            .invocations(total as usize)
            .run()?;
    }
    for op in &plan.ops {
        let kernel = match op.form {
            Form::Diagonal => &kernels.diagonal,
            // No matrix is over no qubit.
            Form::Dense => &kernels.dense[op.targets.len().clamp(1, 5) - 1],
        };
        let pass = Pass::of(plan, op, count);
        engine
            .dispatch(kernel)
            .set_bytes("job", bytemuck::bytes_of(&pass))
            .bind("tables", tables)
            .bind("amplitudes", &states)
            .invocations(pass.total as usize)
            .run()?;
    }
    Ok(states)
}

/// The uniform of `accumulate.wgsl` without the factor, which lies behind it in the precision of the amplitudes.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Term {
    flip: u32,
    signs: u32,
    total: u32,
    keep: u32,
    read_at: u32,
    write_at: u32,
    unused: [u32; 2],
}

fn accumulate_term<T: Real>(engine: &Engine, term: Term, factor: C, from: &Tensor, to: &Tensor) -> Result<()> {
    let factor = [T::from_f64(factor.re), T::from_f64(factor.im)];
    let mut bytes = bytemuck::bytes_of(&term).to_vec();
    bytes.extend_from_slice(bytemuck::bytes_of(&factor));
    engine
        .dispatch(&kernels::<T>(engine)?.accumulate)
        .set_bytes("term", &bytes)
        .bind("before", from)
        .bind("after", to)
        .invocations(term.total as usize)
        .run()
}

/// Copies amplitudes from a place of a tensor to a place of another one.
fn copy<T: Real>(
    engine: &Engine,
    from: &Tensor,
    read_at: usize,
    to: &Tensor,
    write_at: usize,
    count: usize,
) -> Result<()> {
    let (total, read_at, write_at) = (count as u32, read_at as u32, write_at as u32);
    let term = Term { total, read_at, write_at, ..Term::zeroed() };
    accumulate_term::<T>(engine, term, ONE, from, to)
}

/// Consecutive amplitudes of a tensor, as one of their own: [1, count].
pub(crate) fn part<T: native::Run>(engine: &Engine, whole: &Tensor, first: usize, count: usize) -> Result<Tensor> {
    let shape = [1, count];
    if let Some(part) = engine.native(native::part::<T>(first, count), &[whole], (T::COMPLEX, &shape), "amplitudes")? {
        return Ok(part);
    }
    let part = engine.output(Some(whole), T::COMPLEX, &shape, "amplitudes")?;
    copy::<T>(engine, whole, first, &part, 0, count)?;
    Ok(part)
}

/// A sum of Pauli strings times states of equal size, each of one among them.
pub(crate) fn accumulate<T: native::Run>(
    engine: &Engine,
    qubits: usize,
    states: &[&Tensor],
    terms: &Arc<Vec<(usize, Factors)>>,
) -> Result<Tensor> {
    let shape = [1, 1 << qubits];
    if let Some(result) = engine.native(
        native::accumulate::<T>(qubits, states.len(), terms),
        states,
        (T::COMPLEX, &shape),
        "Pauli strings",
    )? {
        return Ok(result);
    }
    kernels::<T>(engine)?;
    let total = check_total(1, qubits)?;
    let result = engine.output(states.first().copied(), T::COMPLEX, &shape, "Pauli strings")?;
    for (at, (state, factors)) in terms.iter().enumerate() {
        let Some(state) = states.get(*state) else { continue };
        let (flip, signs) = (factors.flip as u32, factors.signs as u32);
        let term = Term { flip, signs, total, keep: u32::from(at > 0), ..Term::zeroed() };
        accumulate_term::<T>(engine, term, factors.factor, state, &result)?;
    }
    Ok(result)
}

/// The sum of conj(a[i ^ flip]) b[i], with the sign of the bits of i that `signs` has.
pub(crate) fn inner<T: native::Run>(
    engine: &Engine,
    qubits: usize,
    (a, b): (&Tensor, &Tensor),
    flip: usize,
    signs: usize,
) -> Result<Complex<f64>> {
    if let Some(sum) =
        engine.native(native::inner::<T>(qubits, flip, signs), &[a, b], (DType::F64, &[2]), "inner product")?
    {
        return match sum.to_vec::<f64>()?[..] {
            [re, im] => Ok(Complex::new(re, im)),
            _ => Ok(Complex::new(f64::NAN, f64::NAN)),
        };
    }
    let kernels = kernels::<T>(engine)?;
    check_total(1, qubits)?;
    let part = qubits.min(12);
    let groups = 1_usize << (qubits - part);
    let sums = engine.output(Some(a), T::COMPLEX, &[groups], "sums")?;
    let uniform = [flip as u32, signs as u32, qubits as u32, part as u32];
    engine
        .dispatch(&kernels.inner)
        .set_bytes("inner", bytemuck::bytes_of(&uniform))
        .bind("a", a)
        .bind("b", b)
        .bind("sums", &sums)
        .workgroups(groups)
        .run()?;
    let mut parts = vec![Complex::new(T::ZERO, T::ZERO); groups];
    T::read(&sums, 0, &mut parts)?;
    Ok(parts.into_iter().map(crate::real::wide).sum())
}

/// Tables on the device that the engine uses first: [count, entries].
pub(crate) fn tables<T: Real>(engine: &Engine, count: usize, entries: usize) -> Result<Tensor> {
    engine.output(None, T::COMPLEX, &[count, entries.max(1)], "tables of gates")
}

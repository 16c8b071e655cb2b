//! Multi-scalar multiplication: Pippenger's method on the device, and the last few thousand additions on the host. Terms are sorted by windows and buckets,
//! summed in pieces of equal size, and the host combines the last sums. Chunks keep within a binding's limit. The result is exact for all inputs, infinity
//! and equal points included.

use std::marker::PhantomData;

use super::elementwise::word;
use super::form::LimbForm;
use super::kernel::{form_for, kernel};
use super::points::{PointTensor, point_kernel, points_of, run_on_the_host, scalar_values};
use super::tensor::FieldTensor;
use crate::algebra::{Affine, Curve, Field, MsmPlan, Operation, Projective, combine_windows, window_bits};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::host::DType;
use crate::native::native;
use cantus_base::listed::Listed;

const DIGITS: (&str, &str) = ("msm_digits", cantus_shaders::zk::MSM_DIGITS);
const SUMS: (&str, &str) = ("msm_sums", cantus_shaders::zk::MSM_SUMS);
const WEIGH: (&str, &str) = ("msm_weigh", cantus_shaders::zk::MSM_WEIGH);

/// Points that are summed at a time, at most: the rest of memory is bounded by it.
const CHUNK: usize = 1 << 20;
/// Terms that an invocation adds up, so that buckets of very different sizes take about as long.
const TERMS: usize = 32;
/// Buckets that an invocation weighs.
const RUN: usize = 32;
/// The cost of a bucket, in additions of terms.
const BUCKET_COST: f64 = 4.0;

/// Returns the sum of the points, each multiplied by the scalar at its index, exact for all points and scalars. The empty sum is infinity.
///
/// Devices sort the terms by windows and buckets and add them, a million at a time or as many as a binding holds. The host combines the rest of
/// each run of buckets. The CPU backend computes with 64-bit words instead of the kernels.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// use cantus::zk::{self, Bn254Fr, Bn254G1, Check, Curve, Field, FieldTensor, PointTensor, Projective};
///
/// let g = Bn254G1::generator();
/// let points = PointTensor::from_points(&engine, &[g, g, -g], Check::Strict)?;
/// let scalars = FieldTensor::from_elements(&engine, &[5, 6, 9].map(Bn254Fr::from_u64))?;
/// let sum = zk::multi_scalar_mul(&scalars, &points)?;
/// assert_eq!(sum, Projective::from(g).double().to_affine());
/// # Ok::<(), cantus::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] unless there is one scalar per point, else as [`crate::engine::DispatchBuilder::run_async`].
#[cfg(not(target_arch = "wasm32"))]
pub fn multi_scalar_mul<C: Curve>(scalars: &FieldTensor<C::Scalar>, points: &PointTensor<C>) -> Result<Affine<C>> {
    crate::engine::blocking::block_on(multi_scalar_mul_async(scalars, points))
}

/// Returns the sums for each row of scalars over the same points.
///
/// # Errors
/// As [`multi_scalar_mul`].
#[cfg(not(target_arch = "wasm32"))]
pub fn multi_scalar_mul_rows<C: Curve>(
    scalars: &FieldTensor<C::Scalar>,
    points: &PointTensor<C>,
) -> Result<Vec<Affine<C>>> {
    crate::engine::blocking::block_on(multi_scalar_mul_rows_async(scalars, points))
}

/// `multi_scalar_mul`, for async code and the web.
///
/// # Errors
/// [`Error::Shape`] unless there is one scalar per point, else as [`crate::engine::DispatchBuilder::run_async`].
pub async fn multi_scalar_mul_async<C: Curve>(
    scalars: &FieldTensor<C::Scalar>,
    points: &PointTensor<C>,
) -> Result<Affine<C>> {
    if scalars.len() != points.len() {
        return Err(mismatch(scalars.shape(), points.len()));
    }
    row(scalars.tensor(), 0, points).await
}

/// `multi_scalar_mul_rows`, for async code and the web.
///
/// # Errors
/// As [`multi_scalar_mul_async`].
pub async fn multi_scalar_mul_rows_async<C: Curve>(
    scalars: &FieldTensor<C::Scalar>,
    points: &PointTensor<C>,
) -> Result<Vec<Affine<C>>> {
    let &[rows, count] = scalars.shape() else { return Err(mismatch(scalars.shape(), points.len())) };
    if count != points.len() {
        return Err(mismatch(scalars.shape(), points.len()));
    }
    let mut sums = Vec::with_capacity(rows);
    for at in 0..rows {
        sums.push(row(scalars.tensor(), at * count, points).await?);
    }
    Ok(sums)
}

fn mismatch(shape: &[usize], points: usize) -> Error {
    Error::shape(format!("scalars of shape {shape:?} for {points} points"), "each point needs one scalar")
}

/// The sum with the scalars from `first` on.
async fn row<C: Curve>(scalars: &Tensor, first: usize, points: &PointTensor<C>) -> Result<Affine<C>> {
    let (engine, count) = (scalars.engine(), points.len());
    if count == 0 {
        return Ok(Affine::INFINITY);
    }
    let operation = Operation::Msm { curve: C::KIND, count, first };
    let words = C::KIND.point_words();
    let inputs = [points.tensor(), scalars];
    if let Some(sum) = native(&engine, operation.clone(), &inputs, &[words], "multi_scalar_mul").await? {
        return one_point(&sum.to_vec_async::<u32>().await?);
    }
    let form = form_for(points.tensor());
    if point_kernel(WEIGH, C::KIND, form, "").is_none() {
        let (points, scalars) = (points.tensor().to_vec_async::<u32>().await?, scalars.to_vec_async::<u32>().await?);
        let mut sum = vec![0; words];
        run_on_the_host(&operation, &[&points, &scalars], &mut sum)?;
        return one_point(&sum);
    }
    let limit = points.tensor().device().capabilities.limits.storage_binding_bytes;
    let chunk = chunk::<C>(count, limit);
    let mut sum = Projective::INFINITY;
    for from in (0..count).step_by(chunk) {
        let count = chunk.min(count - from);
        let (points, first_point) = bindable(points.tensor(), [from, count, words], limit).await?;
        let (scalars, first_scalar) = bindable(scalars, [first + from, count, C::Scalar::WORDS], limit).await?;
        let (engine, curve) = (&engine, PhantomData);
        let part = Part::<C> { engine, scalars, first_scalar, points, first_point, count, form, curve };
        sum = sum.add(part.sum().await?);
    }
    Ok(sum.to_affine())
}

/// The window and its plan for that many terms.
fn plan_for<C: Curve>(count: usize) -> MsmPlan {
    let bits = C::Scalar::KIND.bits();
    MsmPlan::new(window_bits(count, bits, BUCKET_COST).min(15), bits)
}

/// The most points whose memory fits bindings of that many bytes, as a power of two.
fn chunk<C: Curve>(count: usize, limit: u64) -> usize {
    let fits = |terms: usize| {
        let plan = plan_for::<C>(terms);
        let windows = plan.windows as usize;
        let entries = windows * terms;
        let sums = (entries / TERMS + windows * plan.buckets()).min(entries);
        let (field, _) = C::KIND.base();
        let words = [
            terms * C::KIND.point_words(),
            terms * (C::Scalar::WORDS + 1),
            entries,
            windows * plan.buckets(),
            3 * sums,
            3 * field.words() * sums,
        ];
        words.iter().all(|&words| 4 * words as u64 <= limit)
    };
    let mut terms = CHUNK.min(count.next_power_of_two());
    while terms > 1 && !fits(terms) {
        terms /= 2;
    }
    terms
}

/// A tensor whose rows `first..first + count` a kernel can bind, and the place of the first: the tensor itself, or a copy of them.
async fn bindable(tensor: &Tensor, [first, count, words]: [usize; 3], limit: u64) -> Result<(Tensor, usize)> {
    if tensor.byte_len() <= limit {
        return Ok((tensor.clone(), first));
    }
    let part = tensor.engine().words_async(tensor, first * words, &[count, words], "multi_scalar_mul").await?;
    Ok((part, 0))
}

fn one_point<C: Curve>(words: &[u32]) -> Result<Affine<C>> {
    points_of(words).into_iter().next().ok_or_else(|| Error::fault("the sum of multiples", "it has no coordinates"))
}

/// Terms that are summed together.
struct Part<'a, C: Curve> {
    engine: &'a Engine,
    scalars: Tensor,
    /// The place of the first of them.
    first_scalar: usize,
    points: Tensor,
    first_point: usize,
    count: usize,
    form: LimbForm,
    curve: PhantomData<C>,
}

impl<C: Curve> Part<'_, C> {
    async fn sum(&self) -> Result<Projective<C>> {
        let plan = plan_for::<C>(self.count);
        let offset: [u64; 6] = plan.offset();
        let offset: Vec<u32> = offset.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]).listed();
        let values = scalar_values::<C>(
            &self.scalars,
            [self.first_scalar, self.count],
            &offset[..=C::Scalar::WORDS],
            Some((&self.points, self.first_point)),
        )
        .await?;
        // How many terms each bucket has.
        let buckets = plan.windows as usize * plan.buckets();
        let cursors = self.engine.zeros_async::<u32>(&[buckets]).await?;
        self.digits(plan, &values, &cursors, None).await?;
        let counts = cursors.to_vec_async::<u32>().await?;
        let mut starts = Vec::with_capacity(buckets);
        let mut total = 0_u32;
        for &count in &counts {
            starts.push(total);
            total += count;
        }
        if total == 0 {
            return Ok(Projective::INFINITY);
        }
        let cursors = self.engine.tensor_async(&starts).await?;
        let entries = self.engine.output_async(Some(&self.points), DType::U32, &[total as usize], "msm_digits").await?;
        self.digits(plan, &values, &cursors, Some(&entries)).await?;
        // Sums of a few terms, then of a few sums, until each bucket has one.
        let mut pieces: Vec<(u32, u32)> = starts.into_iter().zip(counts).listed();
        let mut sums = self.sums(&mut pieces, Some(&entries), None).await?;
        while pieces.iter().any(|&(_, length)| length > 1) {
            sums = self.sums(&mut pieces, None, Some(&sums)).await?;
        }
        self.weighed(plan, &pieces, &sums).await
    }

    /// Counts the terms of each bucket, or puts them in their places.
    async fn digits(&self, plan: MsmPlan, values: &Tensor, cursors: &Tensor, entries: Option<&Tensor>) -> Result<()> {
        let (from, count) = (self.first_point, self.count);
        let note = match entries {
            None => "fn note(place: u32, entry: u32) {}",
            Some(_) => {
                "@group(0) @binding(4) var<storage, read_write> entries: array<u32>;
                 fn note(place: u32, entry: u32) { entries[place] = entry; }"
            }
        };
        let functions = format!("const WORDS = {}u;\n{note}", C::Scalar::WORDS);
        let kernel = kernel(DIGITS, C::Scalar::KIND, self.form, &functions)?;
        let mut dispatch = self
            .engine
            .dispatch(&kernel)
            .set("sizes.count", word(count)?)
            .set("sizes.first", word(from)?)
            .set("sizes.window", plan.window)
            .bind("values", values)
            .bind("cursors", cursors);
        if let Some(entries) = entries {
            dispatch = dispatch.bind("entries", entries);
        }
        dispatch.invocations([count, plan.windows as usize]).run_async().await
    }

    /// Sums of up to `TERMS` of each bucket's pieces: of points by their entries, or of earlier sums. `pieces` becomes those of the result.
    async fn sums(&self, pieces: &mut [(u32, u32)], entries: Option<&Tensor>, sums: Option<&Tensor>) -> Result<Tensor> {
        let mut tasks: Vec<[u32; 3]> = Vec::new();
        for (start, length) in pieces {
            let first = tasks.len() as u32;
            let (mut at, end) = (*start, *start + *length);
            while at < end {
                let length = (end - at).min(TERMS as u32);
                tasks.push([at, length, tasks.len() as u32]);
                at += length;
            }
            (*start, *length) = (first, tasks.len() as u32 - first);
        }
        // Neighbours with as much work end together.
        tasks.sort_by_key(|task| std::cmp::Reverse(task[1]));
        let functions = match entries {
            Some(_) => {
                "
                @group(0) @binding(2) var<storage> entries: array<u32>;
                @group(0) @binding(3) var<storage> points: array<Affine>;
                fn with_term(sum: Point, at: u32) -> Point {
                    let entry = entries[at];
                    var point = points[entry >> 1u];
                    if (entry & 1u) == 1u { point.y = fe_neg(point.y); }
                    return point_add_affine(sum, point);
                }"
            }
            None => {
                "
                @group(0) @binding(2) var<storage> sums: array<Point>;
                fn with_term(sum: Point, at: u32) -> Point { return point_add(sum, sums[at]); }"
            }
        };
        let kernel = self.kernel(SUMS, functions)?;
        let list = self.engine.tensor_from_async(tasks.as_flattened(), &[tasks.len(), 3]).await?;
        let (field, _) = C::KIND.base();
        let near = Some(&self.points);
        let result = self.engine.output_async(near, DType::U32, &[tasks.len(), 3 * field.words()], SUMS.0).await?;
        let mut dispatch =
            self.engine.dispatch(&kernel).set("count", word(tasks.len())?).bind("tasks", &list).bind("y", &result);
        if let Some(entries) = entries {
            dispatch = dispatch.bind("entries", entries).bind("points", &self.points);
        }
        if let Some(sums) = sums {
            dispatch = dispatch.bind("sums", sums);
        }
        dispatch.invocations(tasks.len()).run_async().await?;
        Ok(result)
    }

    /// Combines the buckets' sums, by runs on the device and the rest here.
    async fn weighed(&self, plan: MsmPlan, pieces: &[(u32, u32)], sums: &Tensor) -> Result<Projective<C>> {
        let places: Vec<u32> = pieces.iter().map(|&(at, length)| if length == 0 { u32::MAX } else { at }).listed();
        let run = RUN.min(plan.buckets());
        let runs = pieces.len() / run;
        let places = self.engine.tensor_async(&places).await?;
        let kernel = self.kernel(WEIGH, "")?;
        let (field, _) = C::KIND.base();
        let result = self.engine.output_async(Some(sums), DType::U32, &[2 * runs, 3 * field.words()], WEIGH.0).await?;
        self.engine
            .dispatch(&kernel)
            .set("sizes.count", word(runs)?)
            .set("sizes.run", word(run)?)
            .bind("places", &places)
            .bind("sums", sums)
            .bind("y", &result)
            .invocations(runs)
            .run_async()
            .await?;
        let words = result.to_vec_async::<u32>().await?;
        let points: Vec<Projective<C>> = words
            .chunks_exact(3 * C::Base::WORDS)
            .map(|words| {
                let mut coordinates = words.chunks_exact(C::Base::WORDS);
                let mut next = || {
                    coordinates
                        .next()
                        .map_or(C::Base::ZERO, |words| bytemuck::pod_read_unaligned(bytemuck::cast_slice(words)))
                };
                Projective::from_homogeneous([next(), next(), next()])
            })
            .listed();
        // A run counts its buckets from 1: the rest of their factors is `run` times the run's number.
        let window = |pairs: &[Projective<C>]| {
            let (mut running, mut numbered, mut weighted) =
                (Projective::INFINITY, Projective::INFINITY, Projective::INFINITY);
            for pair in pairs.chunks_exact(2).rev() {
                numbered = numbered.add(running);
                running = running.add(pair[1]);
                weighted = weighted.add(pair[0]);
            }
            weighted.add(numbered.times(&[run as u64]))
        };
        let windows: Vec<Projective<C>> = points.chunks(2 * plan.buckets() / run).map(window).listed();
        Ok(combine_windows(&windows, plan.window))
    }

    fn kernel(&self, frame: (&'static str, &'static str), functions: &str) -> Result<crate::Kernel> {
        point_kernel(frame, C::KIND, self.form, functions).unwrap_or_else(|| {
            Err(Error::Unsupported {
                kernel: frame.0.to_owned(),
                device: self.points.device_name(),
                construct: format!("there is no kernel for {}", C::KIND.name()),
                report: String::new(),
            })
        })
    }
}

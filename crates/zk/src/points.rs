//! Points of a curve on a device. `PointTensor` has points of a curve; `msm` computes with it. Points from outside are checked for the curve and the group,
//! unless they are trusted. Curves without kernels are computed on the host by the same methods.

use std::marker::PhantomData;

use super::elementwise::word;
use super::form::LimbForm;
use super::kernel::{form_for, kernel};
use super::tensor::{Check, FieldTensor};
#[doc(hidden)]
use crate::Kernel;
use crate::algebra::{Affine, Coordinate, Curve, CurveKind, Field, Operation, PointEncoding, PointFunction};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::host::DType;
use crate::native::native;
use cantus_base::listed::Listed;

const POINT: &str = cantus_shaders::zk::POINT;
const MAP: (&str, &str) = ("point_map", cantus_shaders::zk::POINT_MAP);
const SCALE: (&str, &str) = ("point_scale", cantus_shaders::zk::POINT_SCALE);
const HEIGHTS: (&str, &str) = ("point_heights", cantus_shaders::zk::POINT_HEIGHTS);
const NORMALIZE: (&str, &str) = ("point_normalize", cantus_shaders::zk::POINT_NORMALIZE);
const VALUES: (&str, &str) = ("scalar_values", cantus_shaders::zk::SCALAR_VALUES);

/// Points of a curve on a device, by affine coordinates; infinity is (0, 0). Cheap to clone; clones are the same array.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// use cantus::zk::{Affine, Bn254G1, Check, Curve, PointTensor};
///
/// let g = Bn254G1::generator();
/// let points = PointTensor::from_points(&engine, &[g, -g, Affine::INFINITY], Check::Strict)?;
/// let sums = points.add(&PointTensor::from_points(&engine, &[g; 3], Check::Strict)?)?.to_vec()?;
/// assert_eq!(sums[1..], [Affine::INFINITY, g]);
/// # Ok::<(), cantus::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PointTensor<C> {
    tensor: Tensor,
    curve: PhantomData<C>,
}

/// Three times the equation's constant times an element, where there are kernels for the curve.
pub(super) fn triple_b(curve: CurveKind) -> Option<&'static str> {
    match curve {
        CurveKind::Bn254G1 => Some(
            "fn triple_b(a: Fe) -> Fe { let b = fe_add(a, a); let c = fe_add(b, b); return fe_add(fe_add(c, c), a); }\n",
        ),
        CurveKind::Bls12381G1 => Some(
            "fn triple_b(a: Fe) -> Fe { let b = fe_add(a, a); let c = fe_add(b, a); let d = fe_add(c, c); return fe_add(d, d); }\n",
        ),
        CurveKind::Bn254G2 | CurveKind::Bls12381G2 => None,
    }
}

/// A kernel of points; `None` where the curve has none.
pub(super) fn point_kernel(
    frame: (&'static str, &'static str),
    curve: CurveKind,
    form: LimbForm,
    functions: &str,
) -> Option<Result<Kernel>> {
    let functions = format!("{}{POINT}{functions}", triple_b(curve)?);
    Some(kernel(frame, curve.base().0, form, &functions))
}

/// The values of scalars `first..first + count` plus an offset, by words, one more than a scalar has. With points, from one of them on, the
/// scalars of those at infinity count as 0.
pub(super) async fn scalar_values<C: Curve>(
    scalars: &Tensor,
    [first, count]: [usize; 2],
    offset: &[u32],
    points: Option<(&Tensor, usize)>,
) -> Result<Tensor> {
    let engine = scalars.engine();
    let (field, words) = (C::Scalar::KIND, C::Scalar::WORDS);
    let one = (0..words).map(|place| if place == 0 { "1u" } else { "0u" }).listed().join(", ");
    let counts = match points {
        None => "fn counts(i: u32) -> bool { return true; }",
        Some(_) => {
            "@group(0) @binding(4) var<storage> points: array<u32>;
             @group(0) @binding(5) var<uniform> from_point: u32;
             fn counts(i: u32) -> bool {
                 var any = 0u;
                 for (var word = 0u; word < POINT_WORDS; word++) { any |= points[(from_point + i) * POINT_WORDS + word]; }
                 return any != 0u;
             }"
        }
    };
    let functions = format!(
        "const WORDS = {words}u;\nconst POINT_WORDS = {}u;\nfn plain(a: Fe) -> Fe {{ return fe_mul(a, Fe({one})); }}\n{counts}",
        C::KIND.point_words()
    );
    let kernel = kernel(VALUES, field, form_for(scalars), &functions)?;
    let offset = engine.tensor_async(offset).await?;
    let values = engine.output_async(Some(scalars), DType::U32, &[words + 1, count], "scalar_values").await?;
    let mut dispatch = engine
        .dispatch(&kernel)
        .set("sizes.count", word(count)?)
        .set("sizes.first", word(first)?)
        .bind("scalars", scalars)
        .bind("offset", &offset)
        .bind("y", &values)
        .invocations(count);
    if let Some((points, from)) = points {
        dispatch = dispatch.bind("points", points).set("from_point", word(from)?);
    }
    dispatch.run_async().await?;
    Ok(values)
}

impl<C: Curve> PointTensor<C> {
    /// Creates a list of points.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] with the place of the first point that is not on the curve or not in the group (unless [`Check::Trusted`]); else as
    /// [`Engine::tensor_async`].
    pub async fn from_points_async(engine: &Engine, points: &[Affine<C>], check: Check) -> Result<Self> {
        if check != Check::Trusted {
            check_points(points)?;
        }
        let shape = [points.len(), C::KIND.point_words()];
        let tensor = engine.tensor_from_bytes_async(DType::U32, &shape, bytemuck::cast_slice(points)).await?;
        Ok(Self::of(tensor))
    }

    /// Points as bytes, one after the other.
    ///
    /// # Errors
    /// [`Error::Shape`] when they are no whole number of points; [`Error::InvalidInput`] with the place of the first bytes that are not a point, is
    /// not on the curve, or (unless [`Check::Trusted`]) not in the group; else as [`Engine::tensor_async`].
    pub async fn from_bytes_async(engine: &Engine, bytes: &[u8], encoding: PointEncoding, check: Check) -> Result<Self>
    where
        C::Base: Coordinate,
    {
        let each = C::KIND.encoded_bytes(encoding);
        if !bytes.len().is_multiple_of(each) {
            return Err(Error::shape(
                format!("{} bytes of points of {}", bytes.len(), C::KIND.name()),
                format!("a point takes {each}"),
            ));
        }
        let mut points = Vec::with_capacity(bytes.len() / each);
        for (place, bytes) in bytes.chunks_exact(each).enumerate() {
            points.push(Affine::from_bytes(bytes, encoding).map_err(|reason| wrong::<C>(place, reason))?);
        }
        Self::from_points_async(engine, &points, check).await
    }

    /// Returns the points as bytes, one after the other.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    pub async fn to_bytes_async(&self, encoding: PointEncoding) -> Result<Vec<u8>>
    where
        C::Base: Coordinate,
    {
        Ok(self.to_vec_async().await?.into_iter().flat_map(|point| point.to_bytes(encoding)).collect())
    }

    /// Returns the points.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    pub async fn to_vec_async(&self) -> Result<Vec<Affine<C>>> {
        let words = self.tensor.to_vec_async::<u32>().await?;
        Ok(points_of(&words))
    }

    /// Returns the number of points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tensor.shape().first().copied().unwrap_or(0)
    }

    /// Returns whether there is no point.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the words: points, and the words of x and y of each, in the form of their field.
    #[must_use]
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    fn of(tensor: Tensor) -> Self {
        Self { tensor, curve: PhantomData }
    }

    /// Returns the sums, point by point.
    ///
    /// # Errors
    /// [`Error::Shape`] when the numbers of points differ, else as [`crate::engine::DispatchBuilder::run_async`].
    pub async fn add_async(&self, other: &Self) -> Result<Self> {
        self.map(PointFunction::Add, Some(&other.tensor)).await
    }

    /// Twice each point.
    ///
    /// # Errors
    /// As [`crate::engine::DispatchBuilder::run_async`].
    pub async fn double_async(&self) -> Result<Self> {
        self.map(PointFunction::Double, None).await
    }

    /// Returns the opposites.
    ///
    /// # Errors
    /// As [`crate::engine::DispatchBuilder::run_async`].
    pub async fn neg_async(&self) -> Result<Self> {
        self.map(PointFunction::Neg, None).await
    }

    /// Returns each point times the scalar at its place.
    ///
    /// # Errors
    /// As [`PointTensor::add_async`].
    pub async fn scale_async(&self, scalars: &FieldTensor<C::Scalar>) -> Result<Self> {
        if scalars.shape().len() != 1 {
            return Err(Error::shape(
                format!("scalars of shape {:?}", scalars.shape()),
                "points are scaled by a list of scalars",
            ));
        }
        self.map(PointFunction::Scale, Some(scalars.tensor())).await
    }

    async fn map(&self, function: PointFunction, other: Option<&Tensor>) -> Result<Self> {
        let (engine, count) = (self.tensor.engine(), self.len());
        if let Some(other) = other.filter(|other| other.shape().first() != Some(&count)) {
            return Err(Error::shape(
                format!("{} of {count} points and {:?}", function.name(), other.shape().first()),
                "there is one for each",
            ));
        }
        if count == 0 {
            return Ok(self.clone());
        }
        let operation = Operation::Points { curve: C::KIND, function, count };
        let inputs: Vec<&Tensor> = [Some(&self.tensor), other].into_iter().flatten().listed();
        let (shape, name) = (self.tensor.shape(), function.name());
        if let Some(result) = native(&engine, operation.clone(), &inputs, shape, name).await? {
            return Ok(Self::of(result));
        }
        let form = form_for(&self.tensor);
        let functions = match function {
            PointFunction::Add => {
                "
                @group(0) @binding(2) var<storage> b: array<Affine>;
                fn apply(i: u32) -> Point { return point_add(from_affine(a[i]), from_affine(b[i])); }"
            }
            PointFunction::Double => "fn apply(i: u32) -> Point { return point_double(from_affine(a[i])); }",
            PointFunction::Neg => {
                "
                fn apply(i: u32) -> Point { let p = from_affine(a[i]); return Point(p.x, fe_neg(p.y), p.z); }"
            }
            PointFunction::Scale => "",
        };
        let frame = if function == PointFunction::Scale { SCALE } else { MAP };
        let Some(kernel) = point_kernel(frame, C::KIND, form, functions) else {
            return self.on_the_host(&operation, other).await;
        };
        let kernel = kernel?;
        let (field, degree) = C::KIND.base();
        let shape = [count, 3 * degree * field.words()];
        let result = engine.output_async(Some(&self.tensor), DType::U32, &shape, name).await?;
        if let (PointFunction::Scale, Some(scalars)) = (function, other) {
            let words = C::Scalar::WORDS;
            let values = scalar_values::<C>(scalars, [0, count], &vec![0; words + 1], None).await?;
            for place in (0..words).rev() {
                let dispatch =
                    engine.dispatch(&kernel).set("sizes.count", word(count)?).set("sizes.word", word(place)?);
                let dispatch = dispatch.set("sizes.first", u32::from(place + 1 == words)).bind("a", &self.tensor);
                dispatch.bind("scalars", &values).bind("y", &result).invocations(count).run_async().await?;
            }
        } else {
            let mut dispatch = engine.dispatch(&kernel).label(name).set("count", word(count)?).bind("a", &self.tensor);
            if let Some(other) = other {
                dispatch = dispatch.bind("b", other);
            }
            dispatch.bind("y", &result).invocations(count).run_async().await?;
        }
        normalized::<C>(&result, form).await
    }

    /// Computes on the host, for curves without kernels.
    async fn on_the_host(&self, operation: &Operation, other: Option<&Tensor>) -> Result<Self> {
        let engine = self.tensor.engine();
        let own = self.tensor.to_vec_async::<u32>().await?;
        let other = match other {
            Some(other) => other.to_vec_async::<u32>().await?,
            None => Vec::new(),
        };
        let inputs = if other.is_empty() { vec![&own[..]] } else { vec![&own[..], &other[..]] };
        let mut result = vec![0; own.len()];
        run_on_the_host(operation, &inputs, &mut result)?;
        Ok(Self::of(engine.tensor_from_async(&result, self.tensor.shape()).await?))
    }
}

/// Computes an operation here. Memory is copied where it is not aligned as elements are.
pub(super) fn run_on_the_host(operation: &Operation, inputs: &[&[u32]], result: &mut [u32]) -> Result<()> {
    let aligned: Vec<Vec<u64>> = inputs.iter().map(|words| wide(words)).listed();
    let inputs: Vec<&[u32]> = aligned.iter().map(|words| bytemuck::cast_slice(words)).listed();
    let mut output = vec![0_u64; result.len().div_ceil(2)];
    operation.run(&inputs, bytemuck::cast_slice_mut(&mut output), &|| false).map_err(|message| Error::Device {
        device: "the host".to_owned(),
        action: "computing with points".to_owned(),
        message,
    })?;
    let words: &[u32] = bytemuck::cast_slice(&output);
    result.copy_from_slice(&words[..result.len()]);
    Ok(())
}

fn wide(words: &[u32]) -> Vec<u64> {
    let mut wide = vec![0_u64; words.len().div_ceil(2)];
    let target: &mut [u32] = bytemuck::cast_slice_mut(&mut wide);
    target[..words.len()].copy_from_slice(words);
    wide
}

/// The points of their words.
pub(super) fn points_of<C: Curve>(words: &[u32]) -> Vec<Affine<C>> {
    let each = words.chunks_exact(C::KIND.point_words());
    each.map(|words| bytemuck::pod_read_unaligned(bytemuck::cast_slice(words))).collect()
}

fn wrong<C: Curve>(place: usize, reason: &str) -> Error {
    Error::invalid(format!("point {place} of {}", C::KIND.name()), reason)
}

fn check_points<C: Curve>(points: &[Affine<C>]) -> Result<()> {
    if let Some(place) = points.iter().position(|point| !point.is_on_curve()) {
        return Err(wrong::<C>(place, "it is not on the curve"));
    }
    if let Some(place) = points.iter().position(|point| !point.is_in_group()) {
        return Err(wrong::<C>(place, "it is on the curve, but not in the group of prime order"));
    }
    Ok(())
}

/// Affine coordinates of homogeneous ones: an inversion serves many.
async fn normalized<C: Curve>(points: &Tensor, form: LimbForm) -> Result<PointTensor<C>> {
    let engine = points.engine();
    let count = points.shape().first().copied().unwrap_or(0);
    let (field, _) = C::KIND.base();
    let (Some(heights_of), Some(normalize)) =
        (point_kernel(HEIGHTS, C::KIND, form, ""), point_kernel(NORMALIZE, C::KIND, form, ""))
    else {
        return Err(Error::Unsupported {
            kernel: NORMALIZE.0.to_owned(),
            device: points.device_name(),
            construct: format!("there is no kernel for {}", C::KIND.name()),
            report: String::new(),
        });
    };
    let (heights_of, normalize) = (heights_of?, normalize?);
    let heights = engine.output_async(Some(points), DType::U32, &[count, field.words()], HEIGHTS.0).await?;
    let dispatch = engine.dispatch(&heights_of).set("count", word(count)?).bind("a", points).bind("y", &heights);
    dispatch.invocations(count).run_async().await?;
    let inverses = super::elementwise::inverses(field, &heights).await?;
    let result = engine.output_async(Some(points), DType::U32, &[count, C::KIND.point_words()], NORMALIZE.0).await?;
    let dispatch = engine.dispatch(&normalize).set("count", word(count)?).bind("a", points);
    dispatch.bind("inverse", &inverses).bind("y", &result).invocations(count).run_async().await?;
    Ok(PointTensor::of(result))
}

/// The blocking forms.
#[cfg(not(target_arch = "wasm32"))]
impl<C: Curve> PointTensor<C> {
    /// [`PointTensor::from_points_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn from_points(engine: &Engine, points: &[Affine<C>], check: Check) -> Result<Self> {
        crate::engine::blocking::block_on(Self::from_points_async(engine, points, check))
    }

    /// [`PointTensor::from_bytes_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn from_bytes(engine: &Engine, bytes: &[u8], encoding: PointEncoding, check: Check) -> Result<Self>
    where
        C::Base: Coordinate,
    {
        crate::engine::blocking::block_on(Self::from_bytes_async(engine, bytes, encoding, check))
    }

    /// [`PointTensor::to_bytes_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn to_bytes(&self, encoding: PointEncoding) -> Result<Vec<u8>>
    where
        C::Base: Coordinate,
    {
        crate::engine::blocking::block_on(self.to_bytes_async(encoding))
    }

    /// [`PointTensor::to_vec_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn to_vec(&self) -> Result<Vec<Affine<C>>> {
        crate::engine::blocking::block_on(self.to_vec_async())
    }

    /// [`PointTensor::add_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn add(&self, other: &Self) -> Result<Self> {
        crate::engine::blocking::block_on(self.add_async(other))
    }

    /// [`PointTensor::double_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn double(&self) -> Result<Self> {
        crate::engine::blocking::block_on(self.double_async())
    }

    /// [`PointTensor::neg_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn neg(&self) -> Result<Self> {
        crate::engine::blocking::block_on(self.neg_async())
    }

    /// [`PointTensor::scale_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn scale(&self, scalars: &FieldTensor<C::Scalar>) -> Result<Self> {
        crate::engine::blocking::block_on(self.scale_async(scalars))
    }
}

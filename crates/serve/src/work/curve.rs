//! Curves: sums of multiples, and functions of points one by one. `work` calls `check` for a request and `run` on a lane. Reading a point takes up to a
//! millisecond, for it must be on the curve and in the group: that is part of the work and stops with it, in blocks. An infinity is zeros in the
//! uncompressed encoding.

use std::ops::Range;

use cantus::Engine;
use cantus::zk::{
    Affine, Check, Coordinate, Curve, CurveKind, Field as _, FieldTensor, PointEncoding, PointTensor, Projective,
    multi_scalar_mul,
};

use super::Failure;
use super::elements::{Bytes, Points};
use super::field::{check_elements, limbs_of, with_type};
use super::forms::{CurveFunction, CurveName, CurveWork, Encoding, FieldName, MsmWork};
use super::output::Output;
use super::progress::Steps;
use crate::job::Shape;
use crate::problem::Problem;

macro_rules! with_curve {
    ($name:expr, $type:ident => $body:expr) => {
        with_type!($name, CurveName: Bn254G1 | Bn254G2 | Bls12381G1 | Bls12381G2, $type => $body)
    };
}

impl CurveName {
    fn kind(self) -> CurveKind {
        with_curve!(self, C => C::KIND)
    }

    /// The field of scalars.
    pub fn scalars(self) -> FieldName {
        match self {
            Self::Bn254G1 | Self::Bn254G2 => FieldName::Bn254Fr,
            Self::Bls12381G1 | Self::Bls12381G2 => FieldName::Bls12381Fr,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bn254G1 => "bn254-g1",
            Self::Bn254G2 => "bn254-g2",
            Self::Bls12381G1 => "bls12381-g1",
            Self::Bls12381G2 => "bls12381-g2",
        }
    }
}

impl From<Encoding> for PointEncoding {
    fn from(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Eip => Self::Eip,
            Encoding::Compressed => Self::Compressed,
        }
    }
}

/// A problem of one point, with its place in the request.
fn wrong(points: &Points, pointer: &str, place: usize, reason: &str) -> Problem {
    match points {
        Points::Listed(_) => Problem::invalid(reason).at(format!("{pointer}/{place}")),
        Points::Together(_) => Problem::invalid(format!("point {place}: {reason}")).at(pointer),
    }
}

/// The bytes of each point of a block.
fn each(points: &Points, size: usize, block: Range<usize>) -> impl Iterator<Item = &[u8]> {
    let (together, listed) = match points {
        Points::Together(bytes) => (bytes.held().get(block.start * size..block.end * size), None),
        Points::Listed(list) => (None, list.get(block)),
    };
    together.unwrap_or_default().chunks_exact(size).chain(listed.unwrap_or_default().iter().map(Bytes::held))
}

/// The number of points.
fn count_of(points: &Points, size: usize) -> usize {
    match points {
        Points::Together(bytes) => bytes.held().len() / size,
        Points::Listed(list) => list.len(),
    }
}

/// Reads points' digits, and checks their lengths. How many there are. Whether they are points of the group takes long, and belongs to the work.
fn check_points(
    curve: CurveName,
    points: &mut Points,
    encoding: PointEncoding,
    pointer: &str,
) -> Result<usize, Problem> {
    let size = curve.kind().encoded_bytes(encoding);
    let length = || format!("a point of {} takes {size} bytes", curve.kind().name());
    match points {
        Points::Together(bytes) => {
            bytes.check(pointer)?;
            if !bytes.held().len().is_multiple_of(size) {
                return Err(Problem::invalid(length()).at(pointer));
            }
        }
        Points::Listed(list) => {
            for (place, bytes) in list.iter_mut().enumerate() {
                let pointer = format!("{pointer}/{place}");
                bytes.check(&pointer)?;
                if bytes.held().len() != size {
                    return Err(Problem::invalid(length()).at(pointer));
                }
            }
        }
    }
    let count = count_of(points, size);
    if encoding == PointEncoding::Compressed && count > COMPRESSED {
        return Err(Problem::too_large(format!("at most {COMPRESSED} compressed points are accepted")).at(pointer));
    }
    Ok(count)
}

/// The most compressed points: each takes a square root.
const COMPRESSED: usize = 1 << 16;

/// Points between two looks at whether the work is to stop: each takes up to a millisecond.
const LOOK: usize = 8;

/// The points of a block, each seen to be one of the group.
fn read_points<C: Curve>(
    points: &Points,
    encoding: PointEncoding,
    pointer: &str,
    block: &Range<usize>,
    steps: &Steps<'_>,
) -> Result<Vec<Affine<C>>, Problem>
where
    C::Base: Coordinate,
{
    let read = |(place, bytes)| {
        let place: usize = block.start + place;
        if place.is_multiple_of(LOOK) {
            steps.go_on()?;
        }
        let point = Affine::<C>::from_bytes(bytes, encoding).and_then(|point| match point.is_in_group() {
            true => Ok(point),
            false => Err("the point is on the curve, but not in the group of prime order"),
        });
        point.map_err(|reason| wrong(points, pointer, place, reason))
    };
    each(points, C::KIND.encoded_bytes(encoding), block.clone()).enumerate().map(read).collect()
}

pub fn check_msm(work: &mut MsmWork) -> Result<(), Problem> {
    let points = check_points(work.curve, &mut work.points, PointEncoding::Eip, "/points")?;
    let scalars = work.curve.scalars();
    check_elements(scalars, &mut work.scalars, "/scalars")?;
    let count = work.scalars.count(scalars.words());
    if points != count {
        return Err(
            Problem::invalid(format!("{count} scalars for {points} points: the numbers must be equal")).at("/scalars")
        );
    }
    Ok(())
}

pub fn check(work: &mut CurveWork) -> Result<(), Problem> {
    let CurveWork { curve, function, encoding, .. } = *work;
    let encoding = encoding.into();
    let count = check_points(curve, &mut work.points, encoding, "/points")?;
    if count == 0 {
        return Err(Problem::invalid("the points are missing").at("/points"));
    }
    match (&mut work.others, function == CurveFunction::Add) {
        (Some(others), true) => {
            let second = check_points(curve, others, encoding, "/others")?;
            if second != count {
                return Err(Problem::invalid(format!("{second} points beside {count}: the numbers must be equal"))
                    .at("/others"));
            }
        }
        (None, false) => {}
        (Some(_), false) => return Err(Problem::invalid("only add takes second points").at("/others")),
        (None, true) => return Err(Problem::invalid("add takes second points").at("/others")),
    }
    match (&mut work.scalars, function == CurveFunction::Multiply) {
        (Some(scalars), true) => {
            check_elements(curve.scalars(), scalars, "/scalars")?;
            let second = scalars.count(curve.scalars().words());
            if second != count {
                return Err(Problem::invalid(format!(
                    "{second} scalars for {count} points: the numbers must be equal"
                ))
                .at("/scalars"));
            }
        }
        (None, false) => {}
        (Some(_), false) => return Err(Problem::invalid("only multiply takes scalars").at("/scalars")),
        (None, true) => return Err(Problem::invalid("multiply takes scalars").at("/scalars")),
    }
    if function == CurveFunction::Check && work.answer.is_some() {
        return Err(Problem::invalid("check does not return points").at("/answer"));
    }
    Ok(())
}

fn output(curve: CurveName, encoding: PointEncoding, bytes: Vec<u8>) -> Output {
    let size = curve.kind().encoded_bytes(encoding);
    let shape = Shape { dtype: curve.name().to_owned(), shape: vec![bytes.len() / size], hex: Some(size) };
    Output { shape, bytes }
}

/// Terms that are summed up at once, and points that a function takes at once.
const TERMS: usize = 1 << 15;

pub fn msm(engine: &Engine, work: &MsmWork, steps: &Steps<'_>) -> Result<Output, Failure> {
    with_curve!(work.curve, C => msm_typed::<C>(engine, work, steps))
}

fn msm_typed<C: Curve>(engine: &Engine, work: &MsmWork, steps: &Steps<'_>) -> Result<Output, Failure>
where
    C::Base: Coordinate,
{
    let scalars = limbs_of(&work.scalars);
    let count = scalars.len() / C::Scalar::WORDS;
    let mut sum = Projective::<C>::INFINITY;
    steps.blocks(count, TERMS, |block| {
        let points = read_points::<C>(&work.points, PointEncoding::Eip, "/points", &block, steps)?;
        let points = PointTensor::from_points(engine, &points, Check::Trusted)?;
        let own = part(scalars, &block, C::Scalar::WORDS);
        sum = sum.add_affine(multi_scalar_mul(&FieldTensor::from_limbs(engine, own, Check::Strict)?, &points)?);
        Ok::<_, Failure>(())
    })?;
    Ok(output(work.curve, PointEncoding::Eip, sum.to_affine().to_bytes(PointEncoding::Eip)))
}

/// The elements of a block, of that many values each.
fn part<'a, T>(list: &'a [T], block: &Range<usize>, each: usize) -> &'a [T] {
    list.get(block.start * each..block.end * each).unwrap_or_default()
}

pub fn run(engine: &Engine, work: &CurveWork, steps: &Steps<'_>) -> Result<Output, Failure> {
    with_curve!(work.curve, C => run_typed::<C>(engine, work, steps))
}

fn run_typed<C: Curve>(engine: &Engine, work: &CurveWork, steps: &Steps<'_>) -> Result<Output, Failure>
where
    C::Base: Coordinate,
{
    let encoding = work.encoding.into();
    let answered = work.answer.unwrap_or(work.encoding).into();
    let size = C::KIND.encoded_bytes(encoding);
    let count = count_of(&work.points, size);
    let mut bytes = Vec::new();
    if work.function == CurveFunction::Check {
        let right = |bytes| Affine::<C>::from_bytes(bytes, encoding).is_ok_and(Affine::is_in_group);
        steps.blocks(count, LOOK, |block| {
            bytes.extend(each(&work.points, size, block).map(|bytes| u8::from(right(bytes))));
            Ok::<_, Problem>(())
        })?;
        let shape = Shape { dtype: "bool".to_owned(), shape: vec![bytes.len()], hex: None };
        return Ok(Output { shape, bytes });
    }
    steps.blocks(count, TERMS, |block| {
        let read = |points, pointer| read_points::<C>(points, encoding, pointer, &block, steps);
        let own = read(&work.points, "/points")?;
        let tensor = |points: &[Affine<C>]| PointTensor::<C>::from_points(engine, points, Check::Trusted);
        let result = match (work.function, &work.others, &work.scalars) {
            (CurveFunction::Add, Some(others), _) => {
                tensor(&own)?.add(&tensor(&read(others, "/others")?)?)?.to_vec()?
            }
            (CurveFunction::Multiply, _, Some(scalars)) => {
                let scalars = part(limbs_of(scalars), &block, C::Scalar::WORDS);
                tensor(&own)?.scale(&FieldTensor::from_limbs(engine, scalars, Check::Strict)?)?.to_vec()?
            }
            (CurveFunction::Double, ..) => tensor(&own)?.double()?.to_vec()?,
            (CurveFunction::Neg, ..) => tensor(&own)?.neg()?.to_vec()?,
            (CurveFunction::Encode, ..) => own,
            // It was checked.
            _ => return Err(Failure::Problem(Problem::internal())),
        };
        bytes.extend(result.into_iter().flat_map(|point| point.to_bytes(answered)));
        Ok(())
    })?;
    Ok(output(work.curve, answered, bytes))
}

//! Operations that a device may compute itself in place of the kernels of `zk`, as data, and their computation on the
//! host.

use super::curve::{Affine, Curve, Projective};
use super::curves::{Bls12381G1, Bls12381G2, Bn254G1, Bn254G2, CurveKind};
use super::field::{Field, batch_inverse};
use super::hash::HashFunction;
use super::kind::FieldKind;
use super::montgomery::{Bls12381Fq, Bls12381Fr, Bn254Fq, Bn254Fr};
use super::msm::msm;
use super::ntt::transform;
use super::parallel;
use super::poseidon2::{Poseidon2, Sponge};
use super::small::{BabyBear, Goldilocks, KoalaBear, Mersenne31};
use cantus_base::listed::Listed;

/// A function of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Elementwise {
    /// a + b.
    Add,
    /// a - b.
    Sub,
    /// a b.
    Mul,
    /// -a.
    Neg,
    /// a².
    Square,
}

impl Elementwise {
    /// Returns whether it takes two.
    #[must_use]
    pub fn is_binary(self) -> bool {
        matches!(self, Self::Add | Self::Sub | Self::Mul)
    }
}

/// A function of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PointFunction {
    /// a + b.
    Add,
    /// 2 a.
    Double,
    /// -a.
    Neg,
    /// Each point times the scalar at its place.
    Scale,
}

impl PointFunction {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "point_add",
            Self::Double => "point_double",
            Self::Neg => "point_neg",
            Self::Scale => "point_scale",
        }
    }
}

/// An operation on tensors of u32, in which elements are words, the least significant first, in Montgomery's form where the field says so
/// ([`FieldKind::is_montgomery`]).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Bindings: a, b where it takes two, and the result.
    Elementwise {
        /// The elements' field.
        field: FieldKind,
        /// The function.
        function: Elementwise,
        /// Elements of the result.
        count: usize,
        /// Steps through a and b: 1, or 0 where one element serves all.
        steps: [usize; 2],
    },
    /// Bindings: a, and its powers.
    Power {
        /// The elements' field.
        field: FieldKind,
        /// The exponent, its least significant word first.
        exponent: Vec<u64>,
        /// Elements.
        count: usize,
    },
    /// Bindings: a, and the inverses; 0 stays 0.
    Inverse {
        /// The elements' field.
        field: FieldKind,
        /// Elements.
        count: usize,
    },
    /// Bindings: the rows, and a sum for each.
    Sum {
        /// The elements' field.
        field: FieldKind,
        /// Rows.
        rows: usize,
        /// Elements of a row.
        length: usize,
    },
    /// Bindings: the rows of a, those of b, and a sum of products for each pair.
    Dot {
        /// The elements' field.
        field: FieldKind,
        /// Rows.
        rows: usize,
        /// Elements of a row.
        length: usize,
    },
    /// Bindings: the points' affine coordinates, the scalars, and the sum's affine coordinates; infinity is zeros.
    Msm {
        /// The points' curve.
        curve: CurveKind,
        /// Points.
        count: usize,
        /// The scalar of the first point.
        first: usize,
    },
    /// Bindings: a, what the function takes beside it, and the result.
    Points {
        /// The points' curve.
        curve: CurveKind,
        /// The function.
        function: PointFunction,
        /// Points.
        count: usize,
    },
    /// Bindings: padded blocks, the first block of each message and the end of the last, and the digests.
    Hash {
        /// The function.
        function: HashFunction,
        /// Messages.
        count: usize,
        /// Blocks of all.
        blocks: usize,
    },
    /// Bindings: pairs of digests, and the digest of each pair.
    HashPairs {
        /// The function.
        function: HashFunction,
        /// Pairs.
        count: usize,
    },
    /// Bindings: rows of elements, and the first elements of the state that absorbed each.
    Poseidon2 {
        /// The elements' field.
        field: FieldKind,
        /// Elements of the permutation.
        width: usize,
        /// Rows.
        rows: usize,
        /// Elements of a row.
        length: usize,
        /// Elements that are absorbed at a time.
        rate: usize,
        /// Elements of the result's rows.
        out: usize,
    },
    /// Bindings: the rows, and their transforms.
    Ntt {
        /// The elements' field.
        field: FieldKind,
        /// Rows.
        rows: usize,
        /// Elements of a row are 2^`log`.
        log: u32,
        /// Back from values to coefficients.
        inverse: bool,
        /// The coset's shift, in memory's form.
        shift: Vec<u32>,
    },
}

/// Calls for the field's type.
macro_rules! with_field {
    ($kind:expr, $field:ident => $body:expr) => {
        match $kind {
            FieldKind::Bn254Fr => {
                type $field = Bn254Fr;
                $body
            }
            FieldKind::Bn254Fq => {
                type $field = Bn254Fq;
                $body
            }
            FieldKind::Bls12381Fr => {
                type $field = Bls12381Fr;
                $body
            }
            FieldKind::Bls12381Fq => {
                type $field = Bls12381Fq;
                $body
            }
            FieldKind::BabyBear => {
                type $field = BabyBear;
                $body
            }
            FieldKind::KoalaBear => {
                type $field = KoalaBear;
                $body
            }
            FieldKind::Goldilocks => {
                type $field = Goldilocks;
                $body
            }
            FieldKind::Mersenne31 => {
                type $field = Mersenne31;
                $body
            }
        }
    };
}

/// Calls for the curve's type.
macro_rules! with_curve {
    ($kind:expr, $curve:ident => $body:expr) => {
        match $kind {
            CurveKind::Bn254G1 => {
                type $curve = Bn254G1;
                $body
            }
            CurveKind::Bn254G2 => {
                type $curve = Bn254G2;
                $body
            }
            CurveKind::Bls12381G1 => {
                type $curve = Bls12381G1;
                $body
            }
            CurveKind::Bls12381G2 => {
                type $curve = Bls12381G2;
                $body
            }
        }
    };
}

/// Elements that a task takes.
const TASK: usize = 1 << 12;

impl Operation {
    /// Words that each binding has at least; `None` where they cannot be counted.
    #[must_use]
    pub fn sizes(&self) -> Option<Vec<usize>> {
        let product =
            |factors: &[usize]| factors.iter().try_fold(1_usize, |product, &factor| product.checked_mul(factor));
        Some(match self {
            Self::Elementwise { field, function, count, steps } => {
                let operand = |step: usize| product(&[if step == 0 { 1 } else { *count }, field.words()]);
                let result = product(&[*count, field.words()])?;
                if function.is_binary() {
                    vec![operand(steps[0])?, operand(steps[1])?, result]
                } else {
                    vec![operand(steps[0])?, result]
                }
            }
            Self::Power { field, count, .. } | Self::Inverse { field, count } => {
                vec![product(&[*count, field.words()])?; 2]
            }
            Self::Sum { field, rows, length } => {
                vec![product(&[*rows, *length, field.words()])?, product(&[*rows, field.words()])?]
            }
            Self::Dot { field, rows, length } => {
                let operand = product(&[*rows, *length, field.words()])?;
                vec![operand, operand, product(&[*rows, field.words()])?]
            }
            Self::Msm { curve, count, first } => vec![
                product(&[*count, curve.point_words()])?,
                product(&[first.checked_add(*count)?, curve.scalar().words()])?,
                curve.point_words(),
            ],
            Self::Hash { function, count, blocks } => {
                vec![product(&[*blocks, function.block_words()])?, count.checked_add(1)?, product(&[*count, 8])?]
            }
            Self::Poseidon2 { field, rows, length, out, .. } => {
                vec![product(&[*rows, *length, field.words()])?, product(&[*rows, *out, field.words()])?]
            }
            Self::HashPairs { count, .. } => vec![product(&[*count, 16])?, product(&[*count, 8])?],
            Self::Points { curve, function, count } => {
                let points = product(&[*count, curve.point_words()])?;
                match function {
                    PointFunction::Add => vec![points; 3],
                    PointFunction::Scale => vec![points, product(&[*count, curve.scalar().words()])?, points],
                    PointFunction::Double | PointFunction::Neg => vec![points; 2],
                }
            }
            Self::Ntt { field, rows, log, .. } => {
                vec![product(&[*rows, 1_usize.checked_shl(*log)?, field.words()])?; 2]
            }
        })
    }

    /// Computes it on the host. Inputs and output have at least the words that [`Operation::sizes`] tells, aligned for u64. Where `stop` turns
    /// true it ends early.
    ///
    /// # Errors
    /// What is wrong with the operation or its operands.
    pub fn run(&self, inputs: &[&[u32]], output: &mut [u32], stop: &(dyn Fn() -> bool + Sync)) -> Result<(), String> {
        match (self, inputs) {
            (&Self::Elementwise { field, function, count, steps }, _) => {
                with_field!(field, F => elementwise::<F>(function, inputs, output, count, steps, stop))
            }
            (Self::Power { field, exponent, count }, [a]) => with_field!(*field, F => {
                let (a, y) = (elements::<F>(a, *count)?, elements_mut::<F>(output, *count)?);
                // Leading zeros would cost squares.
                let bits = exponent.iter().rposition(|&word| word != 0).map_or(0, |top| top + 1);
                parallel::for_chunks(y, 64, |place, y| {
                    if !stop() {
                        y.iter_mut().zip(&a[place * 64..]).for_each(|(y, a)| *y = a.pow(&exponent[..bits]));
                    }
                });
                Ok(())
            }),
            (&Self::Inverse { field, count }, [a]) => with_field!(field, F => {
                let (a, y) = (elements::<F>(a, count)?, elements_mut::<F>(output, count)?);
                parallel::for_chunks(y, TASK, |place, y| {
                    y.copy_from_slice(&a[place * TASK..][..y.len()]);
                    if !stop() {
                        batch_inverse(y);
                    }
                });
                Ok(())
            }),
            (&Self::Sum { field, rows, length }, [a]) => with_field!(field, F => {
                let a = elements::<F>(a, rows * length)?;
                sums::<F>(elements_mut(output, rows)?, length, stop, |at| a[at]);
                Ok(())
            }),
            (&Self::Dot { field, rows, length }, [a, b]) => with_field!(field, F => {
                let (a, b) = (elements::<F>(a, rows * length)?, elements::<F>(b, rows * length)?);
                sums::<F>(elements_mut(output, rows)?, length, stop, |at| a[at] * b[at]);
                Ok(())
            }),
            (&Self::Msm { curve, count, first }, [points, scalars]) => {
                with_curve!(curve, C => sum_of_multiples::<C>(points, scalars, output, [first, count]))
            }
            (&Self::Hash { function, count, .. }, [blocks, starts]) => hash(function, count, blocks, starts, output),
            (&Self::Poseidon2 { field, width, rows, length, rate, out }, [x]) => with_field!(field, F => {
                let fits = rate > 0 && rate <= width && out > 0 && out <= width && length > 0;
                let poseidon = Poseidon2::<F>::known(width).filter(|_| fits).ok_or("the permutation does not exist")?;
                let (x, y) = (elements::<F>(x, rows * length)?, elements_mut::<F>(output, rows * out)?);
                parallel::for_chunks(y, 64 * out, |task, y| {
                    if !stop() {
                        let rows = &x[64 * task * length..][..y.len() / out * length];
                        poseidon.absorb_rows(rows, y, Sponge { length, rate, out });
                    }
                });
                Ok(())
            }),
            (&Self::HashPairs { function, count }, [nodes]) => hash_pairs(function, count, nodes, output),
            (&Self::Points { curve, function, count }, [a, rest @ ..]) => {
                with_curve!(curve, C => points::<C>(function, a, rest.first().copied(), output, count, stop))
            }
            (Self::Ntt { field, rows, log, inverse, shift }, [a]) => with_field!(*field, F => {
                let count = rows << log;
                let (a, y) = (elements::<F>(a, count)?, elements_mut::<F>(output, count)?);
                let shift = elements::<F>(shift, 1).ok().and_then(<[F]>::first).copied();
                let shift = shift.ok_or("the shift is not an element of the field")?;
                if transform(a, y, *log, *inverse, shift) { Ok(()) } else { Err("there is no such transform".to_owned()) }
            }),
            _ => Err("its bindings are not those of the kernel".to_owned()),
        }
    }
}

/// The digest of each message, whose blocks begin at its start.
fn hash(
    function: HashFunction,
    count: usize,
    blocks: &[u32],
    starts: &[u32],
    output: &mut [u32],
) -> Result<(), String> {
    let (to, each) = (output.get_mut(..8 * count).ok_or("the result is too short")?, function.block_words());
    parallel::for_chunks(to, 8 * 32, |task, digests| {
        for (at, digest) in digests.chunks_exact_mut(8).enumerate() {
            let bound = |place: usize| starts.get(place).map_or(0, |&start| start as usize * each);
            let range = bound(32 * task + at)..bound(32 * task + at + 1);
            digest.copy_from_slice(&function.digest(blocks.get(range).unwrap_or_default()));
        }
    });
    Ok(())
}

/// The digest of each two nodes.
fn hash_pairs(function: HashFunction, count: usize, nodes: &[u32], output: &mut [u32]) -> Result<(), String> {
    let to = output.get_mut(..8 * count).ok_or("the result is too short")?;
    parallel::for_chunks(to, 8 * 32, |task, digests| {
        let mut blocks = Vec::new();
        function.pad(&[0; 64], &mut blocks);
        for (digest, pair) in digests.chunks_exact_mut(8).zip(nodes[task * 32 * 16..].chunks_exact(16)) {
            blocks[..16].copy_from_slice(pair);
            digest.copy_from_slice(&function.digest(&blocks));
        }
    });
    Ok(())
}

fn elements<F: Field>(words: &[u32], count: usize) -> Result<&[F], String> {
    let words = words.get(..count * F::WORDS).ok_or("a binding is too short")?;
    bytemuck::try_cast_slice(words).map_err(|error| format!("a binding's memory: {error}"))
}

fn elements_mut<F: Field>(words: &mut [u32], count: usize) -> Result<&mut [F], String> {
    let words = words.get_mut(..count * F::WORDS).ok_or("the result is too short")?;
    bytemuck::try_cast_slice_mut(words).map_err(|error| format!("the result's memory: {error}"))
}

fn elementwise<F: Field>(
    function: Elementwise,
    inputs: &[&[u32]],
    output: &mut [u32],
    count: usize,
    steps: [usize; 2],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), String> {
    let y = elements_mut::<F>(output, count)?;
    let operand = |place: usize| {
        let words = inputs.get(place).ok_or("an operand is missing")?;
        elements::<F>(words, if steps[place] == 0 { count.min(1) } else { count })
    };
    let a = operand(0)?;
    if function.is_binary() {
        let b = operand(1)?;
        match function {
            Elementwise::Add => pairs(y, a, b, stop, |a, b| a + b),
            Elementwise::Sub => pairs(y, a, b, stop, |a, b| a - b),
            _ => pairs(y, a, b, stop, |a, b| a * b),
        }
    } else {
        match function {
            Elementwise::Neg => pairs(y, a, a, stop, |a, _| -a),
            _ => pairs(y, a, a, stop, |a, _| a.square()),
        }
    }
    Ok(())
}

/// y = f(a, b), where an operand of one element serves all.
fn pairs<F: Field>(y: &mut [F], a: &[F], b: &[F], stop: &(dyn Fn() -> bool + Sync), f: impl Fn(F, F) -> F + Sync) {
    let (whole_a, whole_b) = (a.len() == y.len(), b.len() == y.len());
    parallel::for_chunks(y, TASK, |place, y| {
        if stop() {
            return;
        }
        let from = place * TASK;
        match (whole_a, whole_b) {
            (true, true) => {
                for ((y, &a), &b) in y.iter_mut().zip(&a[from..]).zip(&b[from..]) {
                    *y = f(a, b);
                }
            }
            (true, false) => {
                let b = b[0];
                y.iter_mut().zip(&a[from..]).for_each(|(y, &a)| *y = f(a, b));
            }
            (false, true) => {
                let a = a[0];
                y.iter_mut().zip(&b[from..]).for_each(|(y, &b)| *y = f(a, b));
            }
            (false, false) => y.fill(f(a[0], b[0])),
        }
    });
}

/// The sum of each row of `length`.
fn sums<F: Field>(y: &mut [F], length: usize, stop: &(dyn Fn() -> bool + Sync), load: impl Fn(usize) -> F + Sync) {
    for (row, y) in y.iter_mut().enumerate() {
        let from = row * length;
        let part = |place: usize| {
            if stop() {
                return F::ZERO;
            }
            (place * TASK..length.min((place + 1) * TASK)).fold(F::ZERO, |sum, at| sum + load(from + at))
        };
        *y = parallel::map(length.div_ceil(TASK), part).into_iter().fold(F::ZERO, |sum, part| sum + part);
    }
}

fn sum_of_multiples<C: Curve>(
    points: &[u32],
    scalars: &[u32],
    output: &mut [u32],
    [first, count]: [usize; 2],
) -> Result<(), String> {
    let words = 2 * C::Base::WORDS;
    let points = points.get(..count * words).ok_or("the points are too few")?;
    let points: &[Affine<C>] = bytemuck::try_cast_slice(points).map_err(|error| format!("the points: {error}"))?;
    let scalars = elements::<C::Scalar>(scalars, first + count)?;
    let sum = msm::<C>(points, &scalars[first..]).to_affine();
    let to = output.get_mut(..words).ok_or("the result is too short")?;
    to.copy_from_slice(bytemuck::cast_slice(&[sum]));
    Ok(())
}

fn affine<C: Curve>(words: &[u32], count: usize) -> Result<&[Affine<C>], String> {
    let words = words.get(..count * 2 * C::Base::WORDS).ok_or("the points are too few")?;
    bytemuck::try_cast_slice(words).map_err(|error| format!("the points: {error}"))
}

fn points<C: Curve>(
    function: PointFunction,
    a: &[u32],
    other: Option<&[u32]>,
    output: &mut [u32],
    count: usize,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), String> {
    let a = affine::<C>(a, count)?;
    let other = || other.ok_or("an operand is missing");
    let to = output.get_mut(..count * 2 * C::Base::WORDS).ok_or("the result is too short")?;
    let y: &mut [Affine<C>] = bytemuck::try_cast_slice_mut(to).map_err(|error| format!("the result: {error}"))?;
    match function {
        PointFunction::Neg => y.iter_mut().zip(a).for_each(|(y, &a)| *y = -a),
        PointFunction::Double => by_tasks(y, stop, |at| Projective::from(a[at]).double()),
        PointFunction::Add => {
            let b = affine::<C>(other()?, count)?;
            by_tasks(y, stop, |at| Projective::from(a[at]).add_affine(b[at]));
        }
        PointFunction::Scale => {
            let scalars = elements::<C::Scalar>(other()?, count)?;
            by_tasks(y, stop, |at| a[at].times(scalars[at]));
        }
    }
    Ok(())
}

/// Affine coordinates of what `point` gives, by stretches that share an inversion.
fn by_tasks<C: Curve>(
    y: &mut [Affine<C>],
    stop: &(dyn Fn() -> bool + Sync),
    point: impl Fn(usize) -> Projective<C> + Sync,
) {
    const POINTS: usize = 256;
    parallel::for_chunks(y, POINTS, |task, y| {
        if !stop() {
            let points: Vec<_> = (0..y.len()).map(|at| point(task * POINTS + at)).listed();
            y.copy_from_slice(&Projective::to_affines(&points));
        }
    });
}

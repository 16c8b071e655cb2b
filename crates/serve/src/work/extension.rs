//! Extensions of fields, on the host: there are no tensors of them.

use cantus::zk::{Field, batch_inverse};

use super::array::Output;
use super::field::{check_operands, limbs_of, with_type};
use super::forms::{ExtensionName, ExtensionWork, FieldFunction, FieldName};
use crate::job::Shape;
use crate::problem::Problem;

macro_rules! with_extension {
    ($name:expr, $type:ident => $body:expr) => {
        with_type!(
            $name, ExtensionName: Bn254Fq2 | Bls12381Fq2 | BabyBear4 | KoalaBear4 | Goldilocks2 | Mersenne31Complex,
            $type => $body
        )
    };
}

impl ExtensionName {
    /// The field of coefficients.
    pub fn base(self) -> FieldName {
        match self {
            Self::Bn254Fq2 => FieldName::Bn254Fq,
            Self::Bls12381Fq2 => FieldName::Bls12381Fq,
            Self::BabyBear4 => FieldName::BabyBear,
            Self::KoalaBear4 => FieldName::KoalaBear,
            Self::Goldilocks2 => FieldName::Goldilocks,
            Self::Mersenne31Complex => FieldName::Mersenne31,
        }
    }
}

pub fn check(work: &mut ExtensionWork) -> Result<(), Problem> {
    let base = work.extension.base();
    check_operands(base, work.function, &mut work.a, &mut work.b)?;
    let (count, degree) = (work.a.count(base.words()), with_extension!(work.extension, E => E::DEGREE));
    if !count.is_multiple_of(degree) {
        return Err(Problem::invalid(format!("{count} coefficients: an element takes {degree}")).at("/a"));
    }
    Ok(())
}

pub fn run(work: &ExtensionWork) -> Result<Output, Problem> {
    with_extension!(work.extension, E => run_typed::<E>(work))
}

fn run_typed<E: Field>(work: &ExtensionWork) -> Result<Output, Problem> {
    let read = |limbs: &[u32]| limbs.chunks_exact(E::WORDS).map(E::from_limbs).collect::<Option<Vec<E>>>();
    let operands = read(limbs_of(&work.a)).zip(read(work.b.as_ref().map_or(&[][..], limbs_of)));
    // They were checked.
    let (mut a, b) = operands.ok_or_else(Problem::internal)?;
    let pairs = |function: fn(E, E) -> E| a.iter().zip(&b).map(|(&x, &y)| function(x, y)).collect();
    let sum = |list: Vec<E>| vec![list.into_iter().fold(E::ZERO, |sum, x| sum + x)];
    let result: Vec<E> = match work.function {
        FieldFunction::Add => pairs(|x, y| x + y),
        FieldFunction::Sub => pairs(|x, y| x - y),
        FieldFunction::Mul => pairs(|x, y| x * y),
        FieldFunction::Dot => sum(pairs(|x, y| x * y)),
        FieldFunction::Neg => a.into_iter().map(|x| -x).collect(),
        FieldFunction::Square => a.into_iter().map(E::square).collect(),
        FieldFunction::Inverse => {
            batch_inverse(&mut a);
            a
        }
        FieldFunction::Sum => sum(a),
    };
    let limbs: Vec<u32> = result.iter().flat_map(|element| element.to_limbs()).collect();
    let base = work.extension.base();
    let shape =
        Shape { dtype: base.name().to_owned(), shape: vec![result.len(), E::DEGREE], hex: Some(4 * base.words()) };
    Ok(Output { shape, bytes: bytemuck::cast_slice(&limbs).to_vec() })
}

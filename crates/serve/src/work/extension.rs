//! Extensions of fields, on the host: there are no tensors of them.

use cantus::zk::{Field, batch_inverse};

use super::field::{check_operands, limbs_of, with_type};
use super::forms::{ExtensionName, ExtensionWork, FieldFunction, FieldName};
use super::output::Output;
use super::progress::Steps;
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

/// Elements between two looks at whether the work is to stop.
const BLOCK: usize = 4096;

pub fn run(work: &ExtensionWork, steps: &Steps<'_>) -> Result<Output, Problem> {
    with_extension!(work.extension, E => run_typed::<E>(work, steps))
}

fn run_typed<E: Field>(work: &ExtensionWork, steps: &Steps<'_>) -> Result<Output, Problem> {
    let read = |limbs: &[u32]| {
        let mut elements = super::room(limbs.len() / E::WORDS)?;
        for limbs in limbs.chunks_exact(E::WORDS) {
            // They were checked.
            elements.push(E::from_limbs(limbs).ok_or_else(Problem::internal)?);
        }
        Ok::<Vec<E>, Problem>(elements)
    };
    let (mut a, b) = (read(limbs_of(&work.a))?, read(work.b.as_ref().map_or(&[][..], limbs_of))?);
    let (count, mut sum) = (a.len(), E::ZERO);
    steps.blocks(count, BLOCK, |block| {
        let Some(own) = a.get_mut(block.clone()) else { return Err(Problem::internal()) };
        let pairs = own.iter_mut().zip(b.get(block).unwrap_or_default());
        match work.function {
            FieldFunction::Add => pairs.for_each(|(x, &y)| *x += y),
            FieldFunction::Sub => pairs.for_each(|(x, &y)| *x -= y),
            FieldFunction::Mul => pairs.for_each(|(x, &y)| *x *= y),
            FieldFunction::Dot => sum = pairs.fold(sum, |sum, (&mut x, &y)| sum + x * y),
            FieldFunction::Neg => own.iter_mut().for_each(|x| *x = -*x),
            FieldFunction::Square => own.iter_mut().for_each(|x| *x = x.square()),
            FieldFunction::Inverse => batch_inverse(own),
            FieldFunction::Sum => sum = own.iter().fold(sum, |sum, &x| sum + x),
        }
        Ok(())
    })?;
    let one = matches!(work.function, FieldFunction::Dot | FieldFunction::Sum);
    let result = if one { vec![sum] } else { a };
    let mut bytes = super::room(result.len() * E::WORDS * size_of::<u32>())?;
    for element in &result {
        bytes.extend(element.to_limbs().into_iter().flat_map(u32::to_ne_bytes));
    }
    let base = work.extension.base();
    let shape =
        Shape { dtype: base.name().to_owned(), shape: vec![result.len(), E::DEGREE], hex: Some(4 * base.words()) };
    Ok(Output { shape, bytes })
}

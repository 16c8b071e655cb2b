//! Finite fields. `work` calls `check` for a request and `run` on a lane. Several small requests of one function and field become one dispatch, whose
//! result is cut apart again. An element at or above the modulus is a problem with its place, never reduced.

use cantus::zk::{Check, Field, FieldKind, FieldTensor, PrimeField};
use cantus::{DType, Engine, Error, memory};

use super::array::Array;
use super::elements::{Element, Elements};
use super::forms::{FieldFunction, FieldName, FieldWork, NttWork};
use super::output::Output;
use crate::job::Shape;
use crate::problem::Problem;

/// Calls with the type of a field or curve.
macro_rules! with_type {
    ($name:expr, $kind:ident: $($variant:ident)|+, $type:ident => $body:expr) => {
        match $name {
            $($kind::$variant => {
                type $type = cantus::zk::$variant;
                $body
            })+
        }
    };
}
macro_rules! with_field {
    ($name:expr, $type:ident => $body:expr) => {
        $crate::work::field::with_type!(
            $name, FieldName: Bn254Fr | Bn254Fq | Bls12381Fr | Bls12381Fq | BabyBear | KoalaBear | Goldilocks | Mersenne31,
            $type => $body
        )
    };
}
pub(super) use {with_field, with_type};

impl FieldName {
    pub fn kind(self) -> FieldKind {
        with_field!(self, F => F::KIND)
    }

    /// 32-bit limbs of an element.
    pub fn words(self) -> usize {
        self.kind().words()
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Bn254Fr => "bn254-fr",
            Self::Bn254Fq => "bn254-fq",
            Self::Bls12381Fr => "bls12381-fr",
            Self::Bls12381Fq => "bls12381-fq",
            Self::BabyBear => "babybear",
            Self::KoalaBear => "koalabear",
            Self::Goldilocks => "goldilocks",
            Self::Mersenne31 => "mersenne31",
        }
    }
}

/// Limbs of elements that came as bytes.
///
/// # Errors
/// 422 unless they are uint32, with a last axis of an element's limbs where there are several.
pub fn limbs(field: FieldName, array: Array) -> Result<Elements, Problem> {
    let (words, sides) = (field.words(), array.sides());
    let fits = words == 1 && sides.len() == 1 || sides.len() == 2 && sides.last() == Some(&words);
    if array.dtype.dtype() != DType::U32 || !fits {
        let form = if words == 1 { "[n]".to_owned() } else { format!("[n, {words}]") };
        return Err(Problem::invalid(format!("elements of {} are uint32 of the shape {form}", field.name())));
    }
    let bytes = array.bytes()?;
    let mut limbs = super::room(bytes.len() / size_of::<u32>())?;
    limbs.extend(bytes.as_chunks().0.iter().map(|limb| u32::from_ne_bytes(*limb)));
    Ok(Elements::Limbs(limbs))
}

/// The limbs of a number in decimal digits, or hexadecimal digits after 0x; `None` for another text, or more limbs.
#[expect(clippy::disallowed_methods, reason = "the words of one element")]
fn parse(text: &str, words: usize) -> Option<Vec<u32>> {
    let mut limbs = vec![0_u32; words];
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if digits.is_empty() || digits.len() > 120 {
        return None;
    }
    for digit in digits.chars() {
        let mut carry = u64::from(digit.to_digit(radix)?);
        for limb in &mut limbs {
            let value = u64::from(*limb) * u64::from(radix) + carry;
            *limb = value as u32;
            carry = value >> 32;
        }
        if carry != 0 {
            return None;
        }
    }
    Some(limbs)
}

/// Checks elements, and turns them into limbs.
pub fn check_elements(field: FieldName, elements: &mut Elements, pointer: &str) -> Result<(), Problem> {
    let words = field.words();
    let refused = |place: usize| {
        Problem::invalid(format!("this is not an element of {}: give a number below its modulus", field.name()))
            .at(format!("{pointer}/{place}"))
    };
    let limbs = match elements {
        Elements::Limbs(limbs) => std::mem::take(limbs),
        Elements::Missing => {
            return Err(Problem::invalid("the elements are missing").at(pointer));
        }
        Elements::Listed(list) => {
            let mut limbs = super::room(list.len().saturating_mul(words))?;
            for (place, element) in list.iter().enumerate() {
                match element {
                    Element::Number(value) => {
                        let (low, high) = (*value as u32, (*value >> 32) as u32);
                        if high != 0 && words == 1 {
                            return Err(refused(place));
                        }
                        limbs.push(low);
                        limbs.extend([high].into_iter().chain(std::iter::repeat(0)).take(words - 1));
                    }
                    Element::Text(text) => limbs.extend(parse(text, words).ok_or_else(|| refused(place))?),
                }
            }
            limbs
        }
    };
    let right = |element: &[u32]| with_field!(field, F => F::from_limbs(element).is_some());
    if let Some(place) = limbs.chunks(words).position(|element| !right(element)) {
        return Err(refused(place));
    }
    *elements = Elements::Limbs(limbs);
    Ok(())
}

pub fn check(work: &mut FieldWork) -> Result<(), Problem> {
    check_operands(work.field, work.function, &mut work.a, &mut work.b)
}

/// Checks the operands of a function: one, or two of the same length.
pub fn check_operands(
    field: FieldName,
    function: FieldFunction,
    a: &mut Elements,
    b: &mut Option<Elements>,
) -> Result<(), Problem> {
    let two = matches!(function, FieldFunction::Add | FieldFunction::Sub | FieldFunction::Mul | FieldFunction::Dot);
    check_elements(field, a, "/a")?;
    let words = field.words();
    match (b, two) {
        (Some(b), true) => {
            check_elements(field, b, "/b")?;
            let (first, second) = (a.count(words), b.count(words));
            if first != second {
                return Err(
                    Problem::invalid(format!("{second} elements beside {first}: the numbers must be equal")).at("/b")
                );
            }
            Ok(())
        }
        (None, false) => Ok(()),
        (Some(_), false) => Err(Problem::invalid("this function takes one operand").at("/b")),
        (None, true) => Err(Problem::invalid("this function takes two operands").at("/b")),
    }
}

pub fn check_ntt(work: &mut NttWork) -> Result<(), Problem> {
    check_elements(work.field, &mut work.a, "/a")?;
    let count = work.a.count(work.field.words());
    let most = work.field.kind().two_adicity();
    if !count.is_power_of_two() || count.ilog2() > most {
        return Err(Problem::invalid(format!(
            "a transform is of 2^k elements, k from 0 to {most}; {count} were given"
        ))
        .at("/a"));
    }
    let words = work.field.words();
    let shift: Vec<u32> =
        [work.coset as u32, (work.coset >> 32) as u32].into_iter().chain([0; 16]).take(words).collect();
    let right = work.coset != 0
        && (words > 1 || work.coset >> 32 == 0)
        && with_field!(work.field, F => F::from_limbs(&shift).is_some());
    if !right {
        return Err(Problem::invalid("a coset's number is above 0 and below the modulus").at("/coset"));
    }
    Ok(())
}

/// Limbs, once they were checked.
pub fn limbs_of(elements: &Elements) -> &[u32] {
    match elements {
        Elements::Limbs(limbs) => limbs,
        _ => &[],
    }
}

/// Elements as an answer.
///
/// # Errors
/// There is no memory for it.
pub fn output<F: PrimeField>(field: FieldName, limbs: &[u32]) -> cantus::Result<Output> {
    let shape = Shape { dtype: field.name().to_owned(), shape: vec![limbs.len() / F::WORDS], hex: Some(4 * F::WORDS) };
    let bytes: &[u8] = bytemuck::cast_slice(limbs);
    Ok(Output { shape, bytes: memory::collect("a result", bytes.len(), bytes.iter().copied())? })
}

/// Computes the same function for several requests at once.
pub fn run(engine: &Engine, works: &[&FieldWork]) -> cantus::Result<Vec<Output>> {
    let Some(FieldWork { field, function, .. }) = works.first() else { return Ok(Vec::new()) };
    with_field!(*field, F => run_typed::<F>(engine, *field, *function, works))
}

fn run_typed<F: PrimeField>(
    engine: &Engine,
    field: FieldName,
    function: FieldFunction,
    works: &[&FieldWork],
) -> cantus::Result<Vec<Output>> {
    let all = |operand: fn(&FieldWork) -> &[u32]| {
        if let [work] = works {
            return FieldTensor::<F>::from_limbs(engine, operand(work), Check::Strict);
        }
        let limbs = works.iter().flat_map(|work| operand(work)).copied();
        let count = works.iter().map(|work| operand(work).len()).sum();
        let limbs = memory::collect("the operands of several requests", count, limbs)?;
        FieldTensor::<F>::from_limbs(engine, &limbs, Check::Strict)
    };
    let a = all(|work| limbs_of(&work.a))?;
    let second = || all(|work| work.b.as_ref().map_or(&[][..], limbs_of));
    let result = match function {
        FieldFunction::Add => a.add(&second()?),
        FieldFunction::Sub => a.sub(&second()?),
        FieldFunction::Mul => a.mul(&second()?),
        FieldFunction::Dot => a.dot(&second()?),
        FieldFunction::Neg => a.neg(),
        FieldFunction::Square => a.square(),
        FieldFunction::Inverse => a.inverse(),
        FieldFunction::Sum => a.sum(),
    }?;
    let limbs = result.to_limbs()?;
    if works.len() == 1 {
        return Ok(vec![output::<F>(field, &limbs)?]);
    }
    let mut rest = limbs.as_slice();
    works
        .iter()
        .map(|work| {
            let (own, after) = rest
                .split_at_checked(limbs_of(&work.a).len())
                .ok_or_else(|| Error::shape("the result of several requests", "it is shorter than they are"))?;
            rest = after;
            output::<F>(field, own)
        })
        .collect()
}

pub fn ntt(engine: &Engine, work: &NttWork) -> cantus::Result<Output> {
    with_field!(work.field, F => {
        let x = FieldTensor::<F>::from_limbs(engine, limbs_of(&work.a), Check::Strict)?;
        let shift = F::from_u64(work.coset);
        let result = if work.inverse { x.inverse_coset_ntt(shift) } else { x.coset_ntt(shift) }?;
        output::<F>(work.field, &result.to_limbs()?)
    })
}

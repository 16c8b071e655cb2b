//! Digests and trees of them. `work` calls the checks for a request and `run` on a lane. Messages are padded to whole blocks on a device, so the memory
//! that they take there is what is bounded. Trees need a power of two of leaves.

use cantus::zk::{Check, FieldTensor, HashFunction, MerkleTree, PrimeField};
use cantus::{Engine, Error};

use super::Failure;
use super::elements::Bytes;
use super::field::{check_elements, limbs_of, output, with_field};
use super::forms::{FieldName, HashName, HashWork, MerkleWork, Poseidon2Function, Poseidon2Work};
use super::output::Output;
use super::progress::Steps;
use crate::job::Shape;
use crate::problem::Problem;

impl From<HashName> for HashFunction {
    fn from(name: HashName) -> Self {
        match name {
            HashName::Sha256 => Self::Sha256,
            HashName::Keccak256 => Self::Keccak256,
        }
    }
}

/// Reads messages' digits. On a device each takes whole blocks.
fn check_messages(messages: &mut [Bytes], memory: u64, pointer: &str) -> Result<(), Problem> {
    if messages.is_empty() {
        return Err(Problem::invalid("at least one message is expected").at(pointer));
    }
    let mut bytes = 0_u64;
    for (place, message) in messages.iter_mut().enumerate() {
        message.check(&format!("{pointer}/{place}"))?;
        bytes = bytes.saturating_add(message.held().len() as u64 + 256);
    }
    if bytes > memory {
        return Err(Problem::too_large(format!("work may hold at most {memory} bytes on a device here")).at(pointer));
    }
    Ok(())
}

pub fn check(work: &mut HashWork, memory: u64) -> Result<(), Problem> {
    check_messages(&mut work.messages, memory, "/messages")
}

pub fn check_merkle(work: &mut MerkleWork, memory: u64) -> Result<(), Problem> {
    check_messages(&mut work.leaves, memory, "/leaves")?;
    let count = work.leaves.len();
    if !count.is_power_of_two() {
        return Err(Problem::invalid(format!("{count} leaves: a tree has a power of two of them")).at("/leaves"));
    }
    if work.path.is_some_and(|leaf| leaf as usize >= count) {
        return Err(Problem::invalid(format!("a leaf's number is below {count}")).at("/path"));
    }
    Ok(())
}

fn digests(list: &[[u8; 32]]) -> Result<Output, Problem> {
    let shape = Shape { dtype: "digest".to_owned(), shape: vec![list.len()], hex: Some(32) };
    Ok(Output { shape, bytes: super::copied(list.as_flattened())? })
}

/// The bytes of each part of a request.
fn held(parts: &[Bytes]) -> Result<Vec<&[u8]>, Problem> {
    let mut all = super::room(parts.len())?;
    all.extend(parts.iter().map(Bytes::held));
    Ok(all)
}

/// Messages that are hashed at once.
const MESSAGES: usize = 4096;

pub fn run(engine: &Engine, work: &HashWork, steps: &Steps<'_>) -> Result<Output, Failure> {
    let messages = held(&work.messages)?;
    let mut list = super::room(messages.len())?;
    steps.blocks(messages.len(), MESSAGES, |block| {
        let own = messages.get(block).unwrap_or_default();
        list.extend(cantus::zk::hash(engine, work.function.into(), own)?);
        Ok::<_, Failure>(())
    })?;
    Ok(digests(&list)?)
}

pub fn merkle(engine: &Engine, work: &MerkleWork) -> Result<Output, Failure> {
    let leaves = held(&work.leaves)?;
    let tree = MerkleTree::new(engine, work.function.into(), &leaves)?;
    Ok(digests(&match work.path {
        Some(leaf) => tree.path(leaf as usize)?,
        None => vec![tree.root()?],
    })?)
}

pub fn check_poseidon2(work: &mut Poseidon2Work) -> Result<(), Problem> {
    let (field, width) = (work.field, work.width as usize);
    let there = match field {
        FieldName::BabyBear | FieldName::KoalaBear => matches!(width, 16 | 24),
        FieldName::Bn254Fr => width == 3,
        _ => return Err(Problem::invalid("Poseidon2 needs the field babybear, koalabear or bn254-fr").at("/field")),
    };
    if !there {
        let widths = if field == FieldName::Bn254Fr { "3" } else { "16 or 24" };
        return Err(Problem::invalid(format!("Poseidon2 of {} permutes {widths} elements", field.name())).at("/width"));
    }
    check_elements(field, &mut work.a, "/a")?;
    let count = work.a.count(field.words());
    let columns = columns(work);
    if count == 0 || columns == 0 || !count.is_multiple_of(columns) {
        return Err(Problem::invalid(format!("{count} elements are not a multiple of a row's {columns}")).at("/a"));
    }
    let rows = count / columns;
    let permute = work.function == Poseidon2Function::Permute;
    if permute && work.columns.is_some() {
        return Err(Problem::invalid("a row of permute must have as many elements as the permutation").at("/columns"));
    }
    for (given, name) in [(work.rate, "rate"), (work.out, "out")] {
        match (given, work.function == Poseidon2Function::Hash) {
            (Some(given), true) if (1..=work.width).contains(&given) => {}
            (None, false) => {}
            (Some(_), false) => return Err(Problem::invalid(format!("only hash takes {name}")).at(format!("/{name}"))),
            (_, true) => {
                return Err(Problem::invalid(format!("hash takes {name}, from 1 to {width}")).at(format!("/{name}")));
            }
        }
    }
    if work.function == Poseidon2Function::Root && (!rows.is_power_of_two() || 2 * columns > width) {
        let rule = format!("a tree has 2^k rows, of at most {} elements; here are {rows} of {columns}", width / 2);
        return Err(Problem::invalid(rule).at("/columns"));
    }
    Ok(())
}

/// Elements of a row.
fn columns(work: &Poseidon2Work) -> usize {
    match (work.function, work.columns) {
        (Poseidon2Function::Permute, _) => work.width as usize,
        (_, Some(columns)) => columns as usize,
        (_, None) => work.a.count(work.field.words()),
    }
}

pub fn poseidon2(engine: &Engine, work: &Poseidon2Work) -> cantus::Result<Output> {
    with_field!(work.field, F => poseidon2_typed::<F>(engine, work))
}

fn poseidon2_typed<F: PrimeField>(engine: &Engine, work: &Poseidon2Work) -> cantus::Result<Output> {
    let (width, columns) = (work.width as usize, columns(work));
    let x = FieldTensor::<F>::from_limbs(engine, limbs_of(&work.a), Check::Strict)?;
    let rows = x.len() / columns.max(1);
    let x = pollster::block_on(x.reshape_async(&[rows, columns]))?;
    let missing = || Error::invalid("/rate", "hash takes rate and out");
    let (limbs, length) = match (work.function, work.rate, work.out) {
        (Poseidon2Function::Permute, ..) => (x.poseidon2()?.to_limbs()?, width),
        (Poseidon2Function::Hash, Some(rate), Some(out)) => {
            (x.poseidon2_hash(width, rate as usize, out as usize)?.to_limbs()?, out as usize)
        }
        (Poseidon2Function::Root, ..) => {
            (x.poseidon2_root(width)?.into_iter().flat_map(F::to_limbs).collect(), columns)
        }
        _ => return Err(missing()),
    };
    let mut output = output::<F>(work.field, &limbs)?;
    output.shape.shape = vec![output.shape.shape.iter().product::<usize>() / length.max(1), length];
    Ok(output)
}

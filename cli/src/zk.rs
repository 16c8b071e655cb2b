//! `cantus zk`: finite fields, curves, transforms and hashes over files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cantus::tensor::npy;
use cantus::zk::{
    self, BabyBear, Bls12381Fq, Bls12381Fr, Bls12381G1, Bls12381G2, Bn254Fq, Bn254Fr, Bn254G1, Bn254G2, Check,
    Coordinate, Curve, FieldTensor, Goldilocks, HashFunction, KoalaBear, Mersenne31, PointEncoding, PointTensor,
    PrimeField,
};
use cantus::{DType, Engine, Error, Result};
use clap::{Args, Subcommand, ValueEnum};

use super::global::Global;
use super::output::{self, OutputFile, fault};
use super::progress::Progress;
use super::{report, room};

/// Compute with finite fields and curves, for zero-knowledge proofs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  cantus zk field mul bn254-fr a.npy b.npy -o product.npy
  cantus zk ntt babybear coefficients.npy -o values.npy
  cantus zk msm bn254-g1 --points points.bin --scalars scalars.bin
  cantus zk msm bls12381-g1 --vectors msm_G1_bls.json
  cantus zk hash keccak256 *.bin

Elements are in .npy files of uint32, little-endian limbs along the last axis (8
for 254 bits, no axis for 31), or in other files as big-endian bytes, 32 for 254
bits. Points are bytes as in EIP-196 and EIP-2537. A value not below its
modulus, a point not on its curve and one not in its group are errors. The time
of these computations depends on the values: do not use them for secrets.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Add, multiply, invert or sum elements of a field
    Field(FieldArguments),
    /// Transform rows of elements, from coefficients to values
    Ntt(NttArguments),
    /// Sum multiples of points
    Msm(MsmArguments),
    /// Hash files
    Hash(HashArguments),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FieldName {
    Bn254Fr,
    Bn254Fq,
    Bls12381Fr,
    Bls12381Fq,
    #[value(name = "babybear")]
    BabyBear,
    #[value(name = "koalabear")]
    KoalaBear,
    Goldilocks,
    Mersenne31,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CurveName {
    Bn254G1,
    Bn254G2,
    Bls12381G1,
    Bls12381G2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Function {
    Add,
    Sub,
    Mul,
    Dot,
    Neg,
    Square,
    Inverse,
    Sum,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum HashName {
    Keccak256,
    Sha256,
}

#[derive(Debug, Args)]
struct FieldArguments {
    /// Function to compute
    function: Function,
    /// The elements' field
    field: FieldName,
    /// The first operand
    a: PathBuf,
    /// The second operand, for add, sub, mul and dot: the same shape, or a single element
    b: Option<PathBuf>,
    /// Output file: .npy, or bytes
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Debug, Args)]
struct NttArguments {
    /// The elements' field
    field: FieldName,
    /// The rows; their length is a power of two
    input: PathBuf,
    /// Transform values back to coefficients
    #[arg(long)]
    inverse: bool,
    /// Transform on the coset of this number
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    coset: u64,
    /// Output file: .npy, or bytes
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Debug, Args)]
struct MsmArguments {
    /// The points' group
    curve: CurveName,
    /// The points, as bytes
    #[arg(long, value_name = "FILE", required_unless_present = "vectors", requires = "scalars")]
    points: Option<PathBuf>,
    /// The scalars: .npy, or bytes
    #[arg(long, value_name = "FILE", requires = "points")]
    scalars: Option<PathBuf>,
    /// Instead, compute the cases of an EIP's JSON file, and compare each with its expected result
    #[arg(long, value_name = "FILE", conflicts_with_all = ["points", "scalars", "output"])]
    vectors: Option<PathBuf>,
    /// Output file for the sum, as bytes; without it, the sum is printed as hex
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct HashArguments {
    /// The function
    function: HashName,
    /// The files
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Calls with the field's type.
macro_rules! with_field {
    ($name:expr, $field:ident => $body:expr) => {
        match $name {
            FieldName::Bn254Fr => {
                type $field = Bn254Fr;
                $body
            }
            FieldName::Bn254Fq => {
                type $field = Bn254Fq;
                $body
            }
            FieldName::Bls12381Fr => {
                type $field = Bls12381Fr;
                $body
            }
            FieldName::Bls12381Fq => {
                type $field = Bls12381Fq;
                $body
            }
            FieldName::BabyBear => {
                type $field = BabyBear;
                $body
            }
            FieldName::KoalaBear => {
                type $field = KoalaBear;
                $body
            }
            FieldName::Goldilocks => {
                type $field = Goldilocks;
                $body
            }
            FieldName::Mersenne31 => {
                type $field = Mersenne31;
                $body
            }
        }
    };
}

/// Runs the subcommand.
///
/// # Errors
/// What the files, the values and the device say.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let engine = global.engine()?;
    match &arguments.command {
        Command::Field(arguments) => with_field!(arguments.field, F => field::<F>(&engine, arguments)),
        Command::Ntt(arguments) => with_field!(arguments.field, F => ntt::<F>(&engine, arguments)),
        Command::Msm(arguments) => match arguments.curve {
            CurveName::Bn254G1 => msm::<Bn254G1>(&engine, arguments),
            CurveName::Bn254G2 => msm::<Bn254G2>(&engine, arguments),
            CurveName::Bls12381G1 => msm::<Bls12381G1>(&engine, arguments),
            CurveName::Bls12381G2 => msm::<Bls12381G2>(&engine, arguments),
        },
        Command::Hash(arguments) => hash(&engine, arguments),
    }
}

/// Elements with the shape of their file.
fn elements<F: PrimeField>(engine: &Engine, path: &Path, check: Check) -> Result<FieldTensor<F>> {
    if output::extension(path) != "npy" {
        return FieldTensor::from_be_bytes(engine, &room::read(path)?, check);
    }
    let array = room::npy(path)?;
    let shape = match array.shape.split_last() {
        _ if F::WORDS == 1 => Some(array.shape.as_slice()),
        Some((&last, shape)) if last == F::WORDS => Some(shape),
        _ => None,
    };
    let Some(shape) = shape.filter(|_| array.dtype == DType::U32) else {
        let axis = if F::WORDS == 1 { String::new() } else { format!(" with a last axis of {}", F::WORDS) };
        return Err(Error::file(
            path.display().to_string(),
            format!("it holds {}{:?}; elements of {} are uint32{axis}", array.dtype, array.shape, F::KIND),
        ));
    };
    let limbs: Vec<u32> = bytemuck::pod_collect_to_vec(&array.bytes);
    FieldTensor::from_shaped(engine, &FieldTensor::<F>::from_limbs(engine, &limbs, check)?.to_vec()?, shape)
}

fn write<F: PrimeField>(engine: &Engine, path: &Path, result: &FieldTensor<F>) -> Result<ExitCode> {
    let mut file = OutputFile::create(path)?;
    let written = if output::extension(path) == "npy" {
        let words = (F::WORDS > 1).then_some(F::WORDS);
        let shape: Vec<usize> = result.shape().iter().copied().chain(words).collect();
        let limbs = result.to_limbs()?;
        npy::write_header(&mut file, DType::U32, &shape).and_then(|()| file.write_all(bytemuck::cast_slice(&limbs)))
    } else {
        file.write_all(&result.to_be_bytes()?)
    };
    written.map_err(|error| fault(path, &error))?;
    file.commit()?;
    Ok(report::done(&format!("{} elements of {} on {}", result.len(), F::KIND, report::device_text(engine))))
}

fn field<F: PrimeField>(engine: &Engine, arguments: &FieldArguments) -> Result<ExitCode> {
    let a = elements::<F>(engine, &arguments.a, Check::Strict)?;
    let takes_two = matches!(arguments.function, Function::Add | Function::Sub | Function::Mul | Function::Dot);
    if takes_two != arguments.b.is_some() {
        return Err(Error::invalid(
            format!("{:?}", arguments.function).to_lowercase(),
            if takes_two { "it takes two files" } else { "it takes one file" }.to_owned(),
        ));
    }
    let b = match &arguments.b {
        Some(path) => elements::<F>(engine, path, Check::Strict)?,
        None => a.clone(),
    };
    let result = match arguments.function {
        Function::Add => a.add(&b),
        Function::Sub => a.sub(&b),
        Function::Mul => a.mul(&b),
        Function::Dot => a.dot(&b),
        Function::Neg => a.neg(),
        Function::Square => a.square(),
        Function::Inverse => a.inverse(),
        Function::Sum => a.sum(),
    }?;
    write(engine, &arguments.output, &result)
}

fn ntt<F: PrimeField>(engine: &Engine, arguments: &NttArguments) -> Result<ExitCode> {
    let x = elements::<F>(engine, &arguments.input, Check::Strict)?;
    let shift = F::from_u64(arguments.coset);
    let result = if arguments.inverse { x.inverse_coset_ntt(shift) } else { x.coset_ntt(shift) }?;
    write(engine, &arguments.output, &result)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn msm<C: Curve>(engine: &Engine, arguments: &MsmArguments) -> Result<ExitCode>
where
    C::Base: Coordinate,
{
    if let Some(path) = &arguments.vectors {
        return vectors::<C>(engine, path);
    }
    let (Some(points), Some(scalars)) = (&arguments.points, &arguments.scalars) else {
        return Err(Error::invalid("cantus zk msm", "give --points and --scalars, or --vectors"));
    };
    let points = PointTensor::<C>::from_bytes(engine, &room::read(points)?, PointEncoding::Eip, Check::Strict)?;
    let scalars = elements::<C::Scalar>(engine, scalars, Check::Strict)?;
    let sum = zk::multi_scalar_mul(&scalars, &points)?.to_bytes(PointEncoding::Eip);
    let done = format!("{} points of {} on {}", points.len(), C::KIND.name(), report::device_text(engine));
    match &arguments.output {
        Some(path) => {
            let mut file = OutputFile::create(path)?;
            file.write_all(&sum).map_err(|error| fault(path, &error))?;
            file.commit()?;
        }
        None => {
            report::print(&format!("{}\n", hex(&sum)))?;
        }
    }
    Ok(report::done(&done))
}

/// A case of an EIP.
#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Vector {
    input: String,
    expected: Option<String>,
    #[serde(default)]
    name: String,
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if digits.len() % 2 == 1 { None } else { digits.as_bytes().chunks(2).map(pair).collect() }
}

/// The sum of a case: points and scalars by turns.
fn of_vector<C: Curve>(engine: &Engine, input: &[u8]) -> Result<Vec<u8>>
where
    C::Base: Coordinate,
{
    let (each, scalar) = (C::KIND.encoded_bytes(PointEncoding::Eip), 32);
    if input.is_empty() || !input.len().is_multiple_of(each + scalar) {
        return Err(Error::invalid(
            "the input",
            format!("it has {} bytes; each term takes {}", input.len(), each + scalar),
        ));
    }
    let (points, scalars): (Vec<&[u8]>, Vec<&[u8]>) =
        input.chunks(each + scalar).map(|term| term.split_at(each)).unzip();
    let points = PointTensor::<C>::from_bytes(engine, &points.concat(), PointEncoding::Eip, Check::Strict)?;
    let scalars = FieldTensor::from_be_bytes(engine, &scalars.concat(), Check::Reduce)?;
    Ok(zk::multi_scalar_mul(&scalars, &points)?.to_bytes(PointEncoding::Eip))
}

fn vectors<C: Curve>(engine: &Engine, path: &Path) -> Result<ExitCode>
where
    C::Base: Coordinate,
{
    let bad = |reason: String| Error::file(path.display().to_string(), reason);
    let list: Vec<Vector> = serde_json::from_slice(&room::read(path)?).map_err(|error| bad(error.to_string()))?;
    let bar = Progress::new(list.len() as u64, "cases");
    let mut wrong = Vec::new();
    for vector in &list {
        let input =
            unhex(&vector.input).ok_or_else(|| bad(format!("the input of {} is not hexadecimal", vector.name)))?;
        let result = match of_vector::<C>(engine, &input) {
            Ok(sum) => Some(hex(&sum)),
            Err(error) if error.is_input() => None,
            Err(error) => return Err(error),
        };
        let expected = vector.expected.as_deref().map(|text| text.strip_prefix("0x").unwrap_or(text).to_lowercase());
        if result != expected {
            wrong.push(vector.name.clone());
        }
        bar.add(1);
    }
    bar.clear();
    report::done(&format!(
        "{} of {} cases as expected on {}",
        list.len() - wrong.len(),
        list.len(),
        report::device_text(engine)
    ));
    if wrong.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    report::done(&format!("others: {}", wrong.join(", ")));
    Ok(ExitCode::FAILURE)
}

fn hash(engine: &Engine, arguments: &HashArguments) -> Result<ExitCode> {
    let function = match arguments.function {
        HashName::Keccak256 => HashFunction::Keccak256,
        HashName::Sha256 => HashFunction::Sha256,
    };
    let contents = arguments.files.iter().map(|path| room::read(path)).collect::<Result<Vec<_>>>()?;
    let messages: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
    let digests = zk::hash(engine, function, &messages)?;
    let lines =
        digests.iter().zip(&arguments.files).map(|(digest, path)| format!("{}  {}\n", hex(digest), path.display()));
    report::print(&lines.collect::<String>())
}

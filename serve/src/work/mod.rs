//! What a request asks for: read and checked here, computed by the files beside.

/// The schema of a type whose JSON is written by hand.
macro_rules! described {
    ($type:ident, $about:literal, $schema:tt) => {
        impl utoipa::ToSchema for $type {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
        }

        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let mut schema = serde_json::json!($schema);
                if let Some(map) = schema.as_object_mut() {
                    map.insert("description".to_owned(), $about.into());
                }
                serde_json::from_value::<utoipa::openapi::Schema>(schema).unwrap_or_default().into()
            }
        }
    };
}
pub(crate) use described;

pub mod array;
mod expression;
#[cfg(feature = "zk")]
mod field;
pub mod kernel;
mod picture;

use std::collections::BTreeMap;

use cantus::Engine;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::Problem;
use array::{Array, Output};
pub use expression::{Node, functions, node_schema};

/// What can be asked for.
#[derive(Debug, Clone, ToSchema)]
#[serde(untagged)]
pub enum Work {
    /// A function of elements of a finite field.
    Field(FieldWork),
    /// A number-theoretic transform.
    Ntt(NttWork),
    /// A sum of multiples of points.
    Msm(MsmWork),
    /// An expression over tensors.
    Expression(ExpressionWork),
    /// A picture of the library.
    Picture(PictureWork),
    /// A WGSL kernel of the caller's own, where the service allows it.
    Kernel(kernel::KernelWork),
}

/// The field `kind` of each form of a request.
macro_rules! kinds {
    ($($name:ident = $kind:ident, $about:literal;)*) => {$(
        #[doc = $about]
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "lowercase")]
        pub enum $name {
            #[doc = $about]
            #[default]
            $kind,
        }
    )*};
}
kinds! {
    FieldKind = Field, "Elements of a field.";
    NttKind = Ntt, "A transform.";
    MsmKind = Msm, "A sum of points.";
    ExpressionKind = Expression, "An expression.";
    PictureKind = Picture, "A picture.";
    KernelKind = Kernel, "A kernel.";
}

/// A function of elements of a finite field.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldWork {
    /// What this is.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: FieldKind,
    /// The field.
    pub field: FieldName,
    /// What is computed.
    pub function: FieldFunction,
    /// The first operand.
    #[serde(default)]
    #[schema(value_type = Vec<Element>)]
    pub a: Elements,
    /// The second operand, of add, sub, mul and dot: as many elements as the first.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Element>>)]
    pub b: Option<Elements>,
}

/// A number-theoretic transform, from coefficients to values.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NttWork {
    /// What this is.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: NttKind,
    /// The field.
    pub field: FieldName,
    /// The coefficients: a power of two of them.
    #[serde(default)]
    #[schema(value_type = Vec<Element>)]
    pub a: Elements,
    /// From values back to coefficients.
    #[serde(default)]
    pub inverse: bool,
    /// On the coset of this number.
    #[serde(default = "one")]
    #[schema(minimum = 1)]
    pub coset: u64,
}

/// A sum of multiples of points.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MsmWork {
    /// What this is.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: MsmKind,
    /// The points' group.
    pub curve: CurveName,
    /// The points, as EIP-196 and EIP-2537 encode them, in hexadecimal digits one after the other.
    #[serde(default)]
    #[schema(pattern = "^(0x)?([0-9a-fA-F]{2})*$")]
    pub points: String,
    /// As many scalars.
    #[serde(default)]
    #[schema(value_type = Vec<Element>)]
    pub scalars: Elements,
}

/// An expression over tensors.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpressionWork {
    /// What this is.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: ExpressionKind,
    /// The tensors by name.
    #[serde(default)]
    pub inputs: BTreeMap<String, Array>,
    /// What is computed.
    pub expression: Node,
}

/// A picture of the library: the field of a frequency, or the golden-ratio spiral, as a tensor of float32.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureWork {
    /// What this is.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: PictureKind,
    /// Which one.
    pub picture: PictureName,
    /// Columns.
    #[schema(minimum = 1)]
    pub width: u32,
    /// Rows.
    #[schema(minimum = 1)]
    pub height: u32,
    /// Of the field: its frequency in hertz, 528 without it.
    #[serde(default)]
    pub frequency: Option<f64>,
    /// Of the field: the time in seconds.
    #[serde(default)]
    pub time: f64,
}

fn one() -> u64 {
    1
}

/// A finite field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FieldName {
    Bn254Fr,
    Bn254Fq,
    Bls12381Fr,
    Bls12381Fq,
    #[serde(rename = "babybear")]
    BabyBear,
    #[serde(rename = "koalabear")]
    KoalaBear,
    Goldilocks,
    Mersenne31,
}

/// A group of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CurveName {
    Bn254G1,
    Bn254G2,
    Bls12381G1,
    Bls12381G2,
}

/// A function of elements of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldFunction {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a b
    Mul,
    /// The sum of the products.
    Dot,
    /// -a
    Neg,
    /// a²
    Square,
    /// 1 / a; of 0 it is 0.
    Inverse,
    /// The sum of the elements.
    Sum,
}

/// A picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PictureName {
    /// The field of a frequency.
    Field,
    /// The golden-ratio spiral.
    PhiPattern,
}

/// Elements of a field.
#[derive(Debug, Clone, Default)]
pub enum Elements {
    /// One by one, as JSON has them.
    Listed(Vec<Element>),
    /// Checked, or as they came as bytes: 32-bit limbs, the least significant first.
    Limbs(Vec<u32>),
    /// Not there.
    #[default]
    Missing,
}

/// An element of a field, below the modulus.
#[derive(Debug, Clone)]
pub enum Element {
    /// A number.
    Number(u64),
    /// Decimal digits, or hexadecimal digits after 0x.
    Text(String),
}

described!(Element, "An element of a field, below its modulus: a number, or text of decimal digits, or of hexadecimal digits after 0x.", {
    "anyOf": [
        { "type": "integer", "minimum": 0, "maximum": u64::MAX },
        { "type": "string", "pattern": "^(0x[0-9a-fA-F]{1,96}|[0-9]{1,116})$" },
    ]
});

impl<'de> Deserialize<'de> for Elements {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Vec::deserialize(from).map(Self::Listed)
    }
}

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Element;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "a whole number of at least 0, or text of decimal digits, or of hexadecimal digits after 0x",
                )
            }
            fn visit_u64<E>(self, value: u64) -> Result<Element, E> {
                Ok(Element::Number(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<Element, E> {
                Ok(Element::Text(value.to_owned()))
            }
        }
        from.deserialize_any(Visitor)
    }
}

impl Elements {
    /// How many there are, of so many limbs each.
    #[cfg(feature = "zk")]
    pub fn count(&self, words: usize) -> usize {
        match self {
            Self::Listed(list) => list.len(),
            Self::Limbs(limbs) => limbs.len() / words.max(1),
            Self::Missing => 0,
        }
    }
}

/// What limits the work of a request.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes that work may hold on a device.
    pub memory: u64,
    /// Callers' kernels, where they run at all.
    pub kernels: Option<kernel::KernelLimits>,
}

/// Requests that may become one dispatch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Alike {
    /// The same function of elements of the same field.
    #[cfg(feature = "zk")]
    Field(FieldName, FieldFunction),
    /// The same expression, element by element, over inputs of the same dtypes.
    Expression(String),
}

impl Work {
    /// Reads the JSON form.
    ///
    /// # Errors
    /// 400 for what is no JSON, 422 with the place for what has another form.
    pub fn from_json(text: &[u8]) -> Result<Self, Problem> {
        #[derive(Deserialize)]
        struct Peek {
            kind: String,
        }
        fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, Problem> {
            let mut from = serde_json::Deserializer::from_slice(text);
            serde_path_to_error::deserialize(&mut from).map_err(|error| {
                let problem = Problem::invalid(error.inner().to_string());
                problem.at(pointer(error.path()))
            })
        }
        let Peek { kind } = serde_json::from_slice(text).map_err(|error| {
            if error.is_data() {
                Problem::invalid(error.to_string()).at("/kind")
            } else {
                Problem::malformed(format!("the body is no JSON: {error}"))
            }
        })?;
        Ok(match kind.as_str() {
            "field" => Self::Field(read(text)?),
            "ntt" => Self::Ntt(read(text)?),
            "msm" => Self::Msm(read(text)?),
            "expression" => Self::Expression(read(text)?),
            "picture" => Self::Picture(read(text)?),
            "kernel" => Self::Kernel(read(text)?),
            _ => {
                return Err(
                    Problem::invalid("a kind is one of: field, ntt, msm, expression, picture, kernel").at("/kind")
                );
            }
        })
    }

    /// Its kind, as in the request.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Field(_) => "field",
            Self::Ntt(_) => "ntt",
            Self::Msm(_) => "msm",
            Self::Expression(_) => "expression",
            Self::Picture(_) => "picture",
            Self::Kernel(_) => "kernel",
        }
    }

    /// Gives it what came as bytes, by name.
    ///
    /// # Errors
    /// 422 for a name that the request has no place for.
    pub fn bind(&mut self, name: &str, array: Array) -> Result<(), Problem> {
        let nowhere = || Problem::invalid(format!("the request has no place for an array \"{name}\""));
        match self {
            Self::Expression(work) => {
                work.inputs.insert(name.to_owned(), array);
            }
            Self::Kernel(work) => work.bind(name, array)?,
            #[cfg(feature = "zk")]
            Self::Field(work) => match name {
                "a" => work.a = field::limbs(work.field, array)?,
                "b" => work.b = Some(field::limbs(work.field, array)?),
                _ => return Err(nowhere()),
            },
            #[cfg(feature = "zk")]
            Self::Ntt(work) if name == "a" => work.a = field::limbs(work.field, array)?,
            #[cfg(feature = "zk")]
            Self::Msm(work) if name == "scalars" => work.scalars = field::limbs(work.curve.scalars(), array)?,
            #[cfg(feature = "zk")]
            Self::Msm(work) if name == "points" => {
                work.points = array.bytes()?.iter().map(|byte| format!("{byte:02x}")).collect();
            }
            _ => return Err(nowhere()),
        }
        Ok(())
    }

    /// Checks what can be checked without a device.
    ///
    /// # Errors
    /// 422 with the place, 413 for what needs too much memory.
    pub fn check(&mut self, limits: &Limits) -> Result<(), Problem> {
        match self {
            #[cfg(feature = "zk")]
            Self::Field(work) => field::check(work),
            #[cfg(feature = "zk")]
            Self::Ntt(work) => field::check_ntt(work),
            #[cfg(feature = "zk")]
            Self::Msm(work) => field::check_msm(work),
            #[cfg(not(feature = "zk"))]
            Self::Field(_) | Self::Ntt(_) | Self::Msm(_) => {
                Err(Problem::invalid("this service was built without finite fields and curves").at("/kind"))
            }
            Self::Expression(work) => expression::check(work, limits.memory),
            Self::Picture(work) => picture::check(work, limits.memory),
            Self::Kernel(work) => match &limits.kernels {
                Some(limits) => work.check(limits),
                None => Err(Problem::new(
                    axum::http::StatusCode::FORBIDDEN,
                    "kernels-off",
                    "callers' kernels do not run here",
                    "whoever runs this service did not switch them on (--kernels)",
                )
                .at("/kind")),
            },
        }
    }

    /// With which other requests it may become one dispatch. Only what is small gains.
    pub fn alike(&self) -> Option<Alike> {
        match self {
            #[cfg(feature = "zk")]
            Self::Field(FieldWork { field, function, a, .. })
                if a.count(field.words()) <= SMALL && !matches!(function, FieldFunction::Dot | FieldFunction::Sum) =>
            {
                Some(Alike::Field(*field, *function))
            }
            Self::Expression(work) => expression::alike(work, SMALL).map(Alike::Expression),
            _ => None,
        }
    }

    /// Computes on a device.
    ///
    /// # Errors
    /// What the library says, or a problem of the request that showed only now.
    pub fn run(&self, engine: &Engine, memory: u64) -> Result<Output, Failure> {
        match self {
            #[cfg(feature = "zk")]
            Self::Field(work) => Ok(field::run(engine, &[work])?.remove(0)),
            #[cfg(feature = "zk")]
            Self::Ntt(work) => Ok(field::ntt(engine, work)?),
            #[cfg(feature = "zk")]
            Self::Msm(work) => Ok(field::msm(engine, work)?),
            Self::Expression(work) => expression::run(engine, work, memory),
            Self::Picture(work) => Ok(picture::run(engine, work)?),
            #[cfg(not(feature = "zk"))]
            Self::Field(_) | Self::Ntt(_) | Self::Msm(_) => Err(Failure::Problem(Problem::internal())),
            // In a process of its own.
            Self::Kernel(_) => Err(Failure::Problem(Problem::internal())),
        }
    }

    /// Computes several that are [`Alike`] as one.
    ///
    /// # Errors
    /// As [`Work::run`], of any one: then each is to be computed by itself.
    pub fn run_alike(engine: &Engine, works: &[&Self], memory: u64) -> Result<Vec<Output>, Failure> {
        match works {
            [one] => Ok(vec![one.run(engine, memory)?]),
            #[cfg(feature = "zk")]
            [Self::Field(_), ..] => {
                let works =
                    works.iter().filter_map(|work| if let Self::Field(work) = work { Some(work) } else { None });
                Ok(field::run(engine, &works.collect::<Vec<_>>())?)
            }
            [Self::Expression(_), ..] => {
                let works =
                    works.iter().filter_map(|work| if let Self::Expression(work) = work { Some(work) } else { None });
                expression::run_alike(engine, &works.collect::<Vec<_>>(), memory)
            }
            _ => Err(Failure::Problem(Problem::internal())),
        }
    }
}

/// A path in JSON as a JSON pointer (RFC 6901).
fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            Segment::Enum { variant } => format!("/{variant}"),
            Segment::Unknown => String::new(),
        })
        .collect()
}

/// The most elements of a request that is put together with others.
const SMALL: usize = 4096;

/// Why work did not end with its result.
#[derive(Debug)]
pub enum Failure {
    /// What the library says: another device may do better.
    Library(Box<cantus::Error>),
    /// What to answer.
    Problem(Problem),
}

impl From<cantus::Error> for Failure {
    fn from(error: cantus::Error) -> Self {
        Self::Library(Box::new(error))
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

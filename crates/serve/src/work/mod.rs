//! The work of a request: read and checked here, computed by the files beside. A request passes `from_json`, `bind` (arrays as bytes), `check` (no device
//! yet), and `run` or `run_alike`. Lists and maps are read with room that may fail to be had, and a name that comes twice is refused, so hostile JSON ends
//! in a problem.

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
#[cfg(feature = "zk")]
mod curve;
mod elements;
mod expression;
#[cfg(feature = "zk")]
mod extension;
#[cfg(feature = "zk")]
mod field;
mod forms;
#[cfg(feature = "zk")]
mod hash;
pub mod kernel;
pub mod output;
mod picture;
mod process;
pub mod progress;

use std::collections::BTreeMap;

use cantus::Engine;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::problem::Problem;
use array::Array;
#[cfg(feature = "zk")]
use elements::Points;
pub use expression::{functions, node_schema};
use forms::{
    CurveWork, ExpressionWork, ExtensionWork, FieldWork, HashWork, MerkleWork, MsmWork, NttWork, PictureWork,
    Poseidon2Work,
};
#[cfg(feature = "zk")]
use forms::{FieldFunction, FieldName};
use output::Output;
use progress::Steps;

/// The kinds of work.
#[derive(Debug, Clone, ToSchema)]
#[serde(untagged)]
pub enum Work {
    /// A function of elements of a finite field.
    Field(FieldWork),
    /// A number-theoretic transform.
    Ntt(NttWork),
    /// A function of elements of an extension of a field.
    Extension(ExtensionWork),
    /// A sum of multiples of points.
    Msm(MsmWork),
    /// A function of points.
    Curve(CurveWork),
    /// Digests of messages.
    Hash(HashWork),
    /// A tree of digests.
    Merkle(MerkleWork),
    /// Poseidon2.
    Poseidon2(Poseidon2Work),
    /// An expression over tensors.
    Expression(ExpressionWork),
    /// A picture of the library.
    Picture(PictureWork),
    /// A WGSL kernel of the caller's own, where the service allows it.
    Kernel(kernel::KernelWork),
}

/// The limits of a request's work.
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
    /// 400 for anything but JSON, 422 with the place for another form.
    pub fn from_json(text: &[u8]) -> Result<Self, Problem> {
        #[derive(Deserialize)]
        struct Peek {
            kind: String,
        }
        fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, Problem> {
            let mut from = serde_json::Deserializer::from_slice(text);
            serde_path_to_error::deserialize(&mut from).map_err(|error| {
                let reason = error.inner().to_string();
                if reason.starts_with(NO_MEMORY) {
                    return Problem::no_memory();
                }
                Problem::invalid(reason).at(pointer(error.path()))
            })
        }
        let Peek { kind } = serde_json::from_slice(text).map_err(|error| {
            if error.is_data() {
                Problem::invalid(error.to_string()).at("/kind")
            } else {
                Problem::malformed(format!("the body is not JSON: {error}"))
            }
        })?;
        Ok(match kind.as_str() {
            "field" => Self::Field(read(text)?),
            "ntt" => Self::Ntt(read(text)?),
            "extension" => Self::Extension(read(text)?),
            "msm" => Self::Msm(read(text)?),
            "curve" => Self::Curve(read(text)?),
            "hash" => Self::Hash(read(text)?),
            "merkle" => Self::Merkle(read(text)?),
            "poseidon2" => Self::Poseidon2(read(text)?),
            "expression" => Self::Expression(read(text)?),
            "picture" => Self::Picture(read(text)?),
            "kernel" => Self::Kernel(read(text)?),
            _ => {
                let kinds = "field, ntt, extension, msm, curve, hash, merkle, poseidon2, expression, picture, kernel";
                return Err(Problem::invalid(format!("a kind is one of: {kinds}")).at("/kind"));
            }
        })
    }

    /// Its kind, as in the request.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Field(_) => "field",
            Self::Ntt(_) => "ntt",
            Self::Extension(_) => "extension",
            Self::Msm(_) => "msm",
            Self::Curve(_) => "curve",
            Self::Hash(_) => "hash",
            Self::Merkle(_) => "merkle",
            Self::Poseidon2(_) => "poseidon2",
            Self::Expression(_) => "expression",
            Self::Picture(_) => "picture",
            Self::Kernel(_) => "kernel",
        }
    }

    /// Gives it what came as bytes, by name.
    ///
    /// # Errors
    /// 422 for a name that the request has no place for, or that was given before.
    pub fn bind(&mut self, name: &str, array: Array) -> Result<(), Problem> {
        let nowhere = || Problem::invalid(format!("the request has no place for an array \"{name}\""));
        match self {
            Self::Expression(work) => {
                once(!work.inputs.contains_key(name), "/inputs", name)?;
                work.inputs.insert(name.to_owned(), array);
            }
            Self::Kernel(work) => work.bind(name, array)?,
            #[cfg(feature = "zk")]
            Self::Field(work) => match name {
                "a" => work.a.bind(name, field::limbs(work.field, array)?)?,
                "b" => bind_new(&mut work.b, name, field::limbs(work.field, array)?)?,
                _ => return Err(nowhere()),
            },
            #[cfg(feature = "zk")]
            Self::Ntt(work) if name == "a" => work.a.bind(name, field::limbs(work.field, array)?)?,
            #[cfg(feature = "zk")]
            Self::Extension(work) => match name {
                "a" => work.a.bind(name, field::limbs(work.extension.base(), array)?)?,
                "b" => bind_new(&mut work.b, name, field::limbs(work.extension.base(), array)?)?,
                _ => return Err(nowhere()),
            },
            #[cfg(feature = "zk")]
            Self::Msm(work) => match name {
                "points" => work.points.bind(name, array)?,
                "scalars" => work.scalars.bind(name, field::limbs(work.curve.scalars(), array)?)?,
                _ => return Err(nowhere()),
            },
            #[cfg(feature = "zk")]
            Self::Curve(work) => match name {
                "points" => work.points.bind(name, array)?,
                "others" => bind_new(&mut work.others, name, Points::of(array)?)?,
                "scalars" => bind_new(&mut work.scalars, name, field::limbs(work.curve.scalars(), array)?)?,
                _ => return Err(nowhere()),
            },
            #[cfg(feature = "zk")]
            Self::Poseidon2(work) if name == "a" => work.a.bind(name, field::limbs(work.field, array)?)?,
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
            Self::Extension(work) => extension::check(work),
            #[cfg(feature = "zk")]
            Self::Msm(work) => curve::check_msm(work),
            #[cfg(feature = "zk")]
            Self::Curve(work) => curve::check(work),
            #[cfg(feature = "zk")]
            Self::Hash(work) => hash::check(work, limits.memory),
            #[cfg(feature = "zk")]
            Self::Merkle(work) => hash::check_merkle(work, limits.memory),
            #[cfg(feature = "zk")]
            Self::Poseidon2(work) => hash::check_poseidon2(work),
            #[cfg(not(feature = "zk"))]
            Self::Field(_)
            | Self::Ntt(_)
            | Self::Extension(_)
            | Self::Msm(_)
            | Self::Curve(_)
            | Self::Hash(_)
            | Self::Merkle(_)
            | Self::Poseidon2(_) => {
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
                    "the operator did not enable them (--kernels)",
                )
                .at("/kind")),
            },
        }
    }

    /// Returns the requests with which it may become one dispatch. Only small work gains.
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

    /// Returns whether it is over at once: others that are do not wait behind anything else. A large expression is not, since it is compiled first.
    pub fn is_quick(&self) -> bool {
        const PARTS: usize = 16;
        self.alike().is_some()
            && match self {
                Self::Expression(work) => work.expression.parts() <= PARTS,
                _ => true,
            }
    }

    /// Bytes of its result, as far as the request says.
    pub fn produces(&self) -> u64 {
        let product = |sides: &[u32], each: usize| {
            sides.iter().map(|&side| u64::from(side)).fold(each as u64, u64::saturating_mul)
        };
        #[cfg(feature = "zk")]
        let elements = |a: &elements::Elements, field: FieldName| {
            let words = field.words();
            (a.count(words) as u64).saturating_mul(4 * words as u64)
        };
        match self {
            Self::Picture(work) => product(&[work.width, work.height, work.frames.unwrap_or(1)], size_of::<f32>()),
            Self::Kernel(work) => work.produces(),
            #[cfg(feature = "zk")]
            Self::Field(work) if !matches!(work.function, FieldFunction::Dot | FieldFunction::Sum) => {
                elements(&work.a, work.field)
            }
            #[cfg(feature = "zk")]
            Self::Ntt(work) => elements(&work.a, work.field),
            #[cfg(feature = "zk")]
            Self::Hash(work) => 32 * work.messages.len() as u64,
            _ => 0,
        }
    }

    /// Returns whether it is computed on the host, whatever the device.
    pub fn on_host(&self) -> bool {
        use forms::CurveFunction::{Check, Encode};
        matches!(self, Self::Extension(_) | Self::Curve(CurveWork { function: Check | Encode, .. }))
    }

    /// Computes on a device.
    ///
    /// # Errors
    /// What the library says, or a problem of the request that showed only now.
    pub fn run(&self, engine: &Engine, memory: u64, steps: &Steps<'_>) -> Result<Output, Failure> {
        match self {
            #[cfg(feature = "zk")]
            Self::Field(work) => Ok(field::run(engine, &[work])?.remove(0)),
            #[cfg(feature = "zk")]
            Self::Ntt(work) => Ok(field::ntt(engine, work)?),
            #[cfg(feature = "zk")]
            Self::Extension(work) => Ok(extension::run(work, steps)?),
            #[cfg(feature = "zk")]
            Self::Msm(work) => curve::msm(engine, work, steps),
            #[cfg(feature = "zk")]
            Self::Curve(work) => curve::run(engine, work, steps),
            #[cfg(feature = "zk")]
            Self::Hash(work) => hash::run(engine, work, steps),
            #[cfg(feature = "zk")]
            Self::Merkle(work) => Ok(hash::merkle(engine, work)?),
            #[cfg(feature = "zk")]
            Self::Poseidon2(work) => Ok(hash::poseidon2(engine, work)?),
            Self::Expression(work) => expression::run(engine, work, memory),
            Self::Picture(work) => picture::run(engine, work, steps),
            // Refused before; a kernel runs in a process of its own.
            _ => Err(Failure::Problem(Problem::internal())),
        }
    }

    /// Computes several that are [`Alike`] as one.
    ///
    /// # Errors
    /// As [`Work::run`], of any one: then each is to be computed by itself.
    pub fn run_alike(engine: &Engine, works: &[&Self], memory: u64, steps: &Steps<'_>) -> Result<Vec<Output>, Failure> {
        match works {
            [one] => Ok(vec![one.run(engine, memory, steps)?]),
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

/// Refuses what was given before: of two one would be dropped.
fn once(new: bool, pointer: &str, name: &str) -> Result<(), Problem> {
    if new {
        return Ok(());
    }
    let detail = "it is given twice: give it in one place";
    Err(Problem::invalid(detail).at(format!("{pointer}/{}", escaped(name))))
}

/// Gives a request what it may have.
#[cfg(feature = "zk")]
fn bind_new<T>(place: &mut Option<T>, name: &str, given: T) -> Result<(), Problem> {
    once(place.is_none(), "", name)?;
    *place = Some(given);
    Ok(())
}

/// Reads an object in which no name comes twice: most parsers keep the last one silently.
fn distinct<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<BTreeMap<String, T>, D::Error> {
    struct Visitor<T>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
        type Value = BTreeMap<String, T>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut read = BTreeMap::new();
            while let Some((name, value)) = map.next_entry::<String, T>()? {
                if read.insert(name, value).is_some() {
                    return Err(serde::de::Error::custom("a name comes twice in the object"));
                }
            }
            Ok(read)
        }
    }
    from.deserialize_map(Visitor(std::marker::PhantomData))
}

/// An empty vector with room for that many elements.
///
/// # Errors
/// 503 where there is no memory.
fn room<T>(count: usize) -> Result<Vec<T>, Problem> {
    cantus::memory::vec("a request", count).map_err(|_| Problem::no_memory())
}

/// A copy of bytes.
///
/// # Errors
/// As [`room`].
pub fn copied(bytes: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut copy = room(bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// The error of a parser that has no memory for a list or a text.
const NO_MEMORY: &str = "there is no memory for it";

/// Reads a list whose growth may fail.
fn listed<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Visitor<T>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a sequence")
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
            all_of(list)
        }
    }
    from.deserialize_seq(Visitor(std::marker::PhantomData))
}

/// The elements of a list.
fn all_of<'de, A: serde::de::SeqAccess<'de>, T: Deserialize<'de>>(mut list: A) -> Result<Vec<T>, A::Error> {
    let mut read = Vec::new();
    while let Some(element) = list.next_element()? {
        if read.len() == read.capacity() {
            let more = read.try_reserve(read.len().max(16));
            more.map_err(|_| serde::de::Error::custom(NO_MEMORY))?;
        }
        read.push(element);
    }
    Ok(read)
}

/// A path in JSON as a JSON pointer (RFC 6901).
fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", escaped(key)),
            Segment::Enum { variant } => format!("/{variant}"),
            Segment::Unknown => String::new(),
        })
        .collect()
}

/// A name as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The most elements of a request that is put together with others.
const SMALL: usize = 4096;

/// Why work did not end with its result.
#[derive(Debug)]
pub enum Failure {
    /// An error of the library: another device may do better.
    Library(Box<cantus::Error>),
    /// The problem to answer.
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

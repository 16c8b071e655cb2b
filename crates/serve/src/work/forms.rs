//! The forms of requests, as they are read and described. One structure for each kind of request; serde reads them, and OpenAPI describes them by the same
//! comments. An unknown field is refused. What a form allows is not yet checked: `work/*.rs` have a `check` for each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::array::Array;
use super::elements::{Bytes, Element, Elements, Points};
use super::expression::Node;
use super::{distinct, listed};

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
    ExtensionKind = Extension, "Elements of an extension.";
    MsmKind = Msm, "A sum of points.";
    CurveWorkKind = Curve, "Points one by one.";
    HashKind = Hash, "Digests.";
    MerkleKind = Merkle, "A tree of digests.";
    Poseidon2Kind = Poseidon2, "Poseidon2.";
    ExpressionKind = Expression, "An expression.";
    PictureKind = Picture, "A picture.";
    KernelKind = Kernel, "A kernel.";
}

/// A function of elements of a finite field.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldWork {
    /// The kind of this work.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: FieldKind,
    /// The field.
    pub field: FieldName,
    /// The function to compute.
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
    /// The kind of this work.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: NttKind,
    /// The field.
    pub field: FieldName,
    /// The coefficients: a power of two of them.
    #[serde(default)]
    #[schema(value_type = Vec<Element>)]
    pub a: Elements,
    /// Transforms values back to coefficients.
    #[serde(default)]
    pub inverse: bool,
    /// Transform on the coset of this number.
    #[serde(default = "one")]
    #[schema(minimum = 1)]
    pub coset: u64,
}

/// A sum of multiples of points.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MsmWork {
    /// The kind of this work.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: MsmKind,
    /// The points' group.
    pub curve: CurveName,
    /// The points, as EIP-196 and EIP-2537 encode them.
    #[serde(default)]
    pub points: Points,
    /// Scalars, the same number.
    #[serde(default)]
    #[schema(value_type = Vec<Element>)]
    pub scalars: Elements,
}

/// A function of points, one by one. They are in the group of prime order; for `check` they may be anything of the right length.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CurveWork {
    /// The kind of this work.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: CurveWorkKind,
    /// The points' group.
    pub curve: CurveName,
    /// The function to compute.
    pub function: CurveFunction,
    /// The points.
    #[serde(default)]
    pub points: Points,
    /// The second points, of add: as many.
    #[serde(default)]
    pub others: Option<Points>,
    /// The scalars, of multiply: as many.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Element>>)]
    pub scalars: Option<Elements>,
    /// Encoding of the points in the request.
    #[serde(default)]
    pub encoding: Encoding,
    /// Encoding of the points in the answer; by default that of the request.
    #[serde(default)]
    pub answer: Option<Encoding>,
}

/// A function of elements of an extension of a field, whose coefficients lie one after the other, the constant first. It is computed on the
/// processor of the service.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtensionWork {
    /// The kind of this work.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: ExtensionKind,
    /// The extension.
    pub extension: ExtensionName,
    /// The function to compute.
    pub function: FieldFunction,
    /// The coefficients of the first operand.
    #[serde(default)]
    #[schema(value_type = Vec<Element>)]
    pub a: Elements,
    /// The coefficients of the second operand, the same number, for add, sub, mul and dot.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Element>>)]
    pub b: Option<Elements>,
}

/// Digests of messages.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HashWork {
    /// The kind of this work.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: HashKind,
    /// The function.
    pub function: HashName,
    /// The messages.
    #[schema(min_items = 1)]
    #[serde(deserialize_with = "listed")]
    pub messages: Vec<Bytes>,
}

/// The root of a binary tree of digests, or the path from one of its leaves: a node is the digest of its children's 64 bytes.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MerkleWork {
    /// The kind of this work.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: MerkleKind,
    /// The function.
    pub function: HashName,
    /// The leaves' messages: a power of two of them.
    #[schema(min_items = 1)]
    #[serde(deserialize_with = "listed")]
    pub leaves: Vec<Bytes>,
    /// The leaf whose path is answered, from its sibling up, in place of the root.
    #[serde(default)]
    pub path: Option<u32>,
}

/// Poseidon2 with its authors' constants, of 16 or 24 elements of BabyBear or KoalaBear, or of 3 of BN254's scalars.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Poseidon2Work {
    /// The kind of this work.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: Poseidon2Kind,
    /// The field.
    pub field: FieldName,
    /// The function to compute.
    pub function: Poseidon2Function,
    /// Elements of the permutation.
    #[schema(minimum = 1)]
    pub width: u32,
    /// The rows' elements, row by row.
    #[serde(default)]
    #[schema(value_type = Vec<Element>)]
    pub a: Elements,
    /// Elements of a row, of hash and root; without it everything is one row.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub columns: Option<u32>,
    /// Elements that a step of hash absorbs: at most the width.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub rate: Option<u32>,
    /// Elements of a digest of hash: at most the width.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub out: Option<u32>,
}

/// An expression over tensors.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpressionWork {
    /// The kind of this work.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: ExpressionKind,
    /// The tensors by name.
    #[serde(default, deserialize_with = "distinct")]
    pub inputs: BTreeMap<String, Array>,
    /// The expression to compute.
    pub expression: Node,
}

/// A picture of the library: the field of a frequency, or the golden-ratio spiral, as a tensor of float32.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureWork {
    /// The kind of this work.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: PictureKind,
    /// The picture.
    pub picture: PictureName,
    /// Columns.
    #[schema(minimum = 1)]
    pub width: u32,
    /// Rows.
    #[schema(minimum = 1)]
    pub height: u32,
    /// The field's frequency in hertz; by default 528.
    #[serde(default)]
    pub frequency: Option<f64>,
    /// The field's time in seconds.
    #[serde(default)]
    pub time: f64,
    /// The number of pictures of the field, along a first axis.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub frames: Option<u32>,
    /// Seconds from one of them to the next: 1/30 without it.
    #[serde(default)]
    pub interval: Option<f64>,
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

/// An extension of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExtensionName {
    /// u² = -1 over BN254's coordinates.
    Bn254Fq2,
    /// u² = -1 over BLS12-381's coordinates.
    Bls12381Fq2,
    /// x⁴ = 11
    #[serde(rename = "babybear4")]
    BabyBear4,
    /// x⁴ = 3
    #[serde(rename = "koalabear4")]
    KoalaBear4,
    /// x² = 7
    Goldilocks2,
    /// i² = -1
    Mersenne31Complex,
}

/// A function of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CurveFunction {
    /// The sum of a point and another.
    Add,
    /// Twice a point.
    Double,
    /// The opposite of a point.
    Neg,
    /// A point times a scalar.
    Multiply,
    /// Checks that the bytes are those of a point of the group: coordinates below the modulus, on the curve, in the group of prime
    /// order.
    Check,
    /// The point itself, in the encoding of the answer.
    Encode,
}

/// Encoding of points.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Both coordinates, as EIP-196, EIP-197 and EIP-2537 have them.
    #[default]
    Eip,
    /// x and flags: BLS12-381 as Zcash has it, BN254 as gnark.
    Compressed,
}

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HashName {
    /// SHA-256 (FIPS 180-4).
    #[serde(rename = "sha-256")]
    Sha256,
    /// Keccak-256 as Ethereum has it.
    #[serde(rename = "keccak-256")]
    Keccak256,
}

/// The use of Poseidon2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Poseidon2Function {
    /// Each row of `width` elements, permuted.
    Permute,
    /// The digest of each row, by a sponge without padding (Plonky3's `PaddingFreeSponge`).
    Hash,
    /// The root of the tree over the rows, which are digests (Plonky3's `TruncatedPermutation`): a power of two of them.
    Root,
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

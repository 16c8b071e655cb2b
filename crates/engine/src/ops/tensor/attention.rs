//! Attention in one kernel: no matrix of scores is stored. One kernel keeps the greatest score and the sum so far and rescales when a greater one comes,
//! block of keys by block of keys. Where a vendor's library multiplies quickly, long attention is two products and a softmax instead (`by_products`). A
//! query without keys gives 0, not NaN.

use std::hash::Hash;
use std::sync::Arc;

use super::matmul::operand;
use crate::backend::BoxFuture;
use crate::backend::native::{AttentionShape, MatmulShape, NativeOperation, Operand, ProductShape};
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{Writer, word};
use crate::ops::expr::node::{Expr, Typed, is_float, is_mask};
use crate::ops::expr::operation::{Call, Composed, Operation, looped};
use crate::ops::expr::shape::product;
use crate::tensor::DType;
use cantus_base::listed::Listed;

const ATTENTION: &str = cantus_shaders::tensor::ATTENTION;
const TILES: &str = cantus_shaders::tensor::ATTENTION_TILES;
/// The most elements of a key or a value, because a workgroup keeps that many of a query.
const WIDEST: usize = 1024;

/// Options of [`Expr::scaled_dot_product_attention`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Attention {
    /// The mask of each query and key, broadcast to (…, heads, queries, keys): u32, where 0 hides a key, or floats, which are added to the
    /// scores.
    pub mask: Option<Expr>,
    /// True if a query sees only keys up to its own position. The last query is at the position of the last key, so keys of a cache come before all
    /// queries.
    pub causal: bool,
    /// The factor of the products; by default 1 / √(elements of a key).
    pub scale: Option<f64>,
}

impl Attention {
    /// Creates options under which queries see all keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the options with a mask.
    #[must_use]
    pub fn masked(self, mask: impl Into<Expr>) -> Self {
        Self { mask: Some(mask.into()), ..self }
    }

    /// Returns the options under which queries see no later keys.
    #[must_use]
    pub fn causal(self) -> Self {
        Self { causal: true, ..self }
    }

    /// Returns the options with another scale.
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        Self { scale: Some(scale), ..self }
    }
}

/// The inputs have the axes (heads…, queries or keys, elements), the heads of all four being alike.
struct Attend {
    query: Arc<Typed>,
    key: Arc<Typed>,
    value: Arc<Typed>,
    bias: Arc<Typed>,
    /// True if the bias is more than zeros.
    masked: bool,
    causal: bool,
    scale: f32,
}

impl Attend {
    /// Runs the device's native operation, if it has one.
    async fn native(&self, call: Call<'_>) -> Result<Option<Tensor>> {
        let one = || Operand { offsets: vec![0], row: 1, column: 1 };
        let rank = self.query.shape.len();
        let side = |typed: &Typed, axis: usize| typed.shape[rank - 2 + axis];
        let mut shape = AttentionShape {
            query: one(),
            key: one(),
            value: one(),
            queries: side(&self.query, 0),
            keys: side(&self.key, 0),
            depth: side(&self.query, 1),
            width: side(&self.value, 1),
            causal: self.causal,
            scale: self.scale.to_bits(),
        };
        if self.masked || !call.engine.has_native(&NativeOperation::Attention(shape.clone())) {
            return Ok(None);
        }
        let mut tensors = Vec::new();
        for (typed, to) in
            [(&self.query, &mut shape.query), (&self.key, &mut shape.key), (&self.value, &mut shape.value)]
        {
            let typed = call.slim(typed).await?;
            let found = match operand(&typed) {
                Some(found) => Some(found),
                None => operand(&Typed::read(&call.compute(&typed).await?)),
            };
            let Some((found, tensor)) = found else { return Ok(None) };
            *to = found;
            tensors.push(tensor);
        }
        let tensors: Vec<&Tensor> = tensors.iter().listed();
        let operation = NativeOperation::Attention(shape);
        call.engine.native_async(operation, &tensors, (DType::F32, &call.of.shape), "attention").await
    }
}

/// From this many queries and keys on, a library's products are quicker than the kernel that stores no scores.
const PRODUCTS_PAY: usize = 128;
/// Scores, at most: 256 MiB.
const MOST_SCORES: usize = 1 << 26;

impl Attend {
    /// The softmax of a product and another product, where a library of the vendor's multiplies.
    async fn by_products(&self, call: Call<'_>) -> Result<Option<Tensor>> {
        let rank = self.query.shape.len();
        let heads = product(&self.query.shape[..rank - 2]);
        let (queries, depth) = (self.query.shape[rank - 2], self.query.shape[rank - 1]);
        let (keys, width) = (self.key.shape[rank - 2], self.value.shape[rank - 1]);
        // A mask may hide all keys from a query, which then gets 0: the softmax of nothing.
        if self.masked || queries.min(keys) < PRODUCTS_PAY || product(&[heads, queries, keys]) > MOST_SCORES {
            return Ok(None);
        }
        let offsets = |step: usize| (0..heads).map(|head| head * step).listed();
        let a = Operand { offsets: offsets(queries * depth), row: depth, column: 1 };
        let b = Operand { offsets: offsets(keys * depth), row: 1, column: depth };
        let shape = MatmulShape { m: queries, n: keys, k: depth, a, b, dtype: DType::F32 };
        let shape = ProductShape::new(shape);
        // Asked of the engine's own device first: what it does not take stays a part of the kernel.
        if !call.engine.takes_first(&shape) {
            return Ok(None);
        }
        let query = call.compute(&self.query).await?;
        if !call.engine.takes(&query, &shape) {
            return Ok(None);
        }
        let key = call.compute(&self.key).await?.expr().reshape(&[heads, keys, depth]);
        let value = call.compute(&self.value).await?.expr().reshape(&[heads, keys, width]);
        let query = query.expr().reshape(&[heads, queries, depth]);
        let mut scores = query.matmul(key.permute(&[0, 2, 1])) * f64::from(self.scale);
        if self.causal {
            let shown = scores.constant(1.0).cast(DType::Bool).broadcast_to(&[queries, keys]);
            let shown = shown.tril((keys - queries).cast_signed()).broadcast_to(&[heads, queries, keys]);
            scores = shown.select(&scores, scores.constant(f64::NEG_INFINITY));
        }
        scores.softmax(-1).matmul(value).reshape(&call.of.shape).eval_async().await.map(Some)
    }
}

/// Tile sizes for answering several queries at once: the constants of their frame.
struct Tiles {
    own: usize,
    each: usize,
    depth: usize,
    width: usize,
}

impl Tiles {
    /// Returns `None` if queries are few, or keys and values too wide for workgroup memory (16 KiB everywhere).
    fn of(queries: usize, depth: usize, width: usize) -> Option<Self> {
        let [depth, width] = [depth, width].map(|side| side.next_multiple_of(16));
        let (own, each) = match depth.max(width) {
            0..=64 => (4, 2),
            65..=128 => (2, 1),
            _ => return None,
        };
        (queries >= 8).then_some(Self { own, each, depth, width })
    }

    /// The rounds of an invocation's loops over that many keys.
    fn rounds(&self, keys: usize) -> usize {
        let Self { own, each, depth, width } = *self;
        let (block, parts, lanes) = (16 * each, width / 16, 64);
        let rows = looped(own, 0);
        let products = looped(depth, rows + looped(each, rows)) + looped(own, looped(each, 0));
        let loads = looped(block * depth / lanes, 0) + looped(block * width / lanes, 0);
        let sums = 2 * looped(block, 0) + looped(own, looped(parts, 0)) + looped(block, rows + looped(parts, rows));
        let around = looped(4 * own * depth / lanes, 0) + looped(own, looped(parts, 0));
        looped(keys.div_ceil(block), products + loads + sums).saturating_add(around)
    }
}

impl Operation for Attend {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.query, &self.key, &self.value, &self.bias]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        (self.masked, self.causal, self.scale.to_bits()).hash(digest);
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            if let Some(result) = self.native(call).await? {
                return call.followed(result).await;
            }
            if let Some(result) = self.by_products(call).await? {
                return call.followed(result).await;
            }
            let [query, key, value, bias] = [
                call.narrowed(&self.query, 1).await?,
                call.narrowed(&self.key, 1).await?,
                call.narrowed(&self.value, 1).await?,
                call.narrowed(&self.bias, 1).await?,
            ];
            let rank = query.shape.len();
            let heads = product(&query.shape[..rank - 2]);
            let (queries, depth) = (query.shape[rank - 2], query.shape[rank - 1]);
            let (keys, width) = (key.shape[rank - 2], value.shape[rank - 1]);
            for typed in [&query, &key, &value, &bias] {
                word(typed.count())?;
            }
            let sizes = [word(queries)?, word(keys)?, word(depth)?, word(width)?, self.scale.to_bits()];
            let mut writer = Writer::new(&sizes);
            let groups = |row, column| [("head", 0..rank - 2), (row, rank - 2..rank - 1), (column, rank - 1..rank)];
            writer.function("query", &query, &query.shape, &groups("row", "d"), None)?;
            writer.function("key", &key, &key.shape, &groups("at", "d"), None)?;
            writer.function("value_of", &value, &value.shape, &groups("at", "d"), None)?;
            writer.function("bias", &bias, &bias.shape, &groups("row", "at"), None)?;
            let tiles = Tiles::of(queries, depth, width);
            let given = match &tiles {
                Some(Tiles { own, each, depth, width }) => format!(
                    "const DEPTH = {depth}u;\nconst WIDTH = {width}u;\nconst OWN = {own}u;\nconst EACH = {each}u;\n"
                ),
                None => {
                    format!("const DEPTH = {}u;\nconst PARTS = {}u;\n", depth.next_multiple_of(64), width.div_ceil(64))
                }
            };
            let (name, frame, rows) = match tiles {
                Some(Tiles { own, .. }) => ("attention_tiles", TILES, 4 * own),
                None => ("attention", ATTENTION, 1),
            };
            let body = format!(
                "\n{given}const CAUSAL = {};\n\
                 fn store(head: u32, row: u32, d: u32, value: f32) {{ y[(head * words[0].x + row) * words[0].w + d] = value; }}\n\n{frame}",
                self.causal
            );
            let output = call.output(&writer, DType::F32, "attention").await?;
            let flops = 2 * product(&[heads, queries, keys, depth + width]);
            let workgroups = [queries.div_ceil(rows), heads, 1];
            let rounds = match &tiles {
                Some(tiles) => tiles.rounds(keys),
                // For each chunk of 64 keys: its scores, their greatest and their sum, and the values' parts.
                None => {
                    let (chunk, parts) = (looped(64, 0), width.div_ceil(64));
                    let each = looped(depth, 0) + 2 * chunk + looped(parts, chunk);
                    looped(keys.div_ceil(64), each).saturating_add(looped(depth, 0) + looped(parts, 0))
                }
            };
            Composed { name, writer: &writer, output: "f32", body: &body, workgroups, flops, rounds }
                .run(call.engine, &output)
                .await?;
            call.followed(output).await
        })
    }
}

impl Expr {
    /// Returns the weighted mean of values (…, key heads, keys, e) for each query (…, heads, queries, d). The weights are the softmax of the query's
    /// products with the keys (…, key heads, keys, d). Each key head serves the same number of consecutive heads, so the number of heads is a multiple
    /// of that of key heads. f16 is computed in f32. A query that sees no key gets 0. The matrix of scores is never stored.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::Attention;
    /// let x = engine.tensor_from(&[1.0_f32, 0.0, 0.0, 1.0], &[1, 2, 2])?.expr();
    /// let y = x.scaled_dot_product_attention(&x, &x, &Attention::new().causal()).eval()?;
    /// assert_eq!((y.shape(), &y.to_vec::<f32>()?[..2]), (&[1, 2, 2][..], &[1.0, 0.0][..])); // the first sees itself alone
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn scaled_dot_product_attention(
        &self,
        key: impl Into<Self>,
        value: impl Into<Self>,
        attention: &Attention,
    ) -> Self {
        let (key, value) = (key.into(), value.into());
        let result = self.attended(&key, &value, attention);
        self.of(result)
    }

    fn attended(&self, key: &Self, value: &Self, attention: &Attention) -> Result<Self> {
        let (q, k, v) = (self.shape()?, key.shape()?, value.shape()?);
        let fault = |reason: &str| Error::shape(format!("attention of {q:?} to {k:?} with values {v:?}"), reason);
        let (&[ref batch @ .., heads, queries, depth], &[ref of_key @ .., groups, keys, of_depth]) = (q, k) else {
            return Err(fault("it needs at least three axes: heads, positions, elements"));
        };
        let &[ref of_value @ .., value_groups, value_keys, width] = v else {
            return Err(fault("it needs at least three axes: heads, positions, elements"));
        };
        if batch != of_key || batch != of_value || [groups, keys] != [value_groups, value_keys] || depth != of_depth {
            return Err(fault(
                "queries, keys and values must have the same axes before the heads, keys as many elements as queries, and values as many heads and places as keys",
            ));
        }
        if groups == 0 || heads % groups != 0 {
            return Err(fault("the number of key heads must divide the number of heads"));
        }
        if attention.causal && queries > keys {
            return Err(fault("causal attention needs at least one key per query"));
        }
        if depth > WIDEST || width > WIDEST {
            return Err(fault("keys and values have at most 1,024 elements"));
        }
        let dtypes = [self.dtype()?, key.dtype()?, value.dtype()?];
        if dtypes.iter().any(|dtype| !is_float(*dtype) || *dtype != dtypes[0]) {
            return Err(Error::dtype(
                format!("attention of {} to {} with values of {}", dtypes[0], dtypes[1], dtypes[2]),
                "all must be f32, f16 or bf16 (cast first)",
            ));
        }
        let with = |sides: &[usize]| [batch, sides].concat();
        let mask = match &attention.mask {
            None => self.constant(0.0).cast(DType::F32),
            Some(mask) if is_mask(mask.dtype()?) => {
                let shown = self.constant(0.0).cast(DType::F32);
                mask.select(&shown, shown.constant(f64::NEG_INFINITY))
            }
            Some(mask) => mask.cast(DType::F32),
        };
        // Heads that share a key head are an axis beside it.
        let shared = heads / groups;
        let bias = mask.broadcast_to(&with(&[heads, queries, keys])).reshape(&with(&[groups, shared, queries, keys]));
        let query = self.cast(DType::F32).reshape(&with(&[groups, shared, queries, depth]));
        let spread = |x: &Self, last: usize| {
            let sides = with(&[groups, 1, keys, last]);
            x.cast(DType::F32).reshape(&sides).broadcast_to(&with(&[groups, shared, keys, last]))
        };
        let (key, value) = (spread(key, depth), spread(value, width));
        let shape = with(&[groups, shared, queries, width]);
        let scale = attention.scale.unwrap_or_else(|| (depth.max(1) as f64).sqrt().recip()) as f32;
        let result = query.derived(|typed| {
            let [key, value, bias] = [query.beside(&key)?, query.beside(&value)?, query.beside(&bias)?];
            if product(&shape) == 0 || keys == 0 || depth == 0 {
                // Keys without elements would all have the same weight, which is refused.
                if product(&shape) != 0 && keys != 0 {
                    return Err(fault("keys must have at least one element"));
                }
                return Ok(Typed::filled(0.0, &shape, DType::F32));
            }
            let masked = attention.mask.is_some();
            let attend = Attend { query: typed.clone(), key, value, bias, masked, causal: attention.causal, scale };
            Ok(Typed::deferred(attend, shape.clone(), DType::F32))
        });
        Ok(result.reshape(&with(&[heads, queries, width])).cast(dtypes[0]))
    }
}

impl Tensor {
    /// See [`Expr::scaled_dot_product_attention`].
    #[must_use]
    pub fn scaled_dot_product_attention(
        &self,
        key: impl Into<Expr>,
        value: impl Into<Expr>,
        attention: &Attention,
    ) -> Expr {
        self.expr().scaled_dot_product_attention(key, value, attention)
    }
}

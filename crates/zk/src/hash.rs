//! Keccak-256 and SHA-256 of many messages, and trees over them. Kernels hash one message for each invocation; messages of different lengths are padded on
//! the host. A tree keeps all its levels on the device, and only paths are read. `verify` runs on the host, for whoever has no device.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::elementwise::word;
use crate::Kernel;
use crate::algebra::{HashFunction, KECCAK_LANES, KECCAK_ROUNDS, Operation};
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::host::DType;
use crate::native::native;
use cantus_base::listed::Listed;
use cantus_base::memory;

const BLOCKS: &str = cantus_shaders::zk::HASH_BLOCKS;
const PAIRS: &str = cantus_shaders::zk::HASH_PAIRS;

/// The function's blocks as WGSL.
fn function_text(function: HashFunction) -> String {
    match function {
        HashFunction::Sha256 => cantus_shaders::zk::SHA256.to_owned(),
        HashFunction::Keccak256 => keccak_text(),
    }
}

/// Keccak with its lanes as pairs of words: steps by name, so that no lane is found by a computed index.
fn keccak_text() -> String {
    let list = |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).listed().join(", ");
    let turned = |lane: &str, by: u32| {
        let (low, high, by) = if by < 32 { ("x", "y", by) } else { ("y", "x", by - 32) };
        format!(
            "vec2u(({lane}.{low} << {by}u) | ({lane}.{high} >> {}u), ({lane}.{high} << {by}u) | ({lane}.{low} >> {}u))",
            32 - by,
            32 - by
        )
    };
    let constants = list(24, &|i| format!("vec2u({}u, {}u)", KECCAK_ROUNDS[i] as u32, KECCAK_ROUNDS[i] >> 32));
    let zeros = list(25, &|_| "vec2u(0u, 0u)".to_owned());
    let lanes = list(25, &|i| format!("s{i}"));
    let mut text = format!(
        "// Keccak-f[1600] with a rate of 34 words.
alias Digest = array<vec2u, 25>;
const BLOCK_WORDS = 34u;
fn hash_start() -> Digest {{ return Digest({zeros}); }}
fn hash_end(state: Digest) -> array<u32, 8> {{
    return array<u32, 8>(state[0].x, state[0].y, state[1].x, state[1].y, state[2].x, state[2].y, state[3].x, state[3].y);
}}
var<private> ROUND: array<vec2u, 24> = array<vec2u, 24>({constants});
fn hash_block(before: Digest, block: array<u32, 34>) -> Digest {{
"
    );
    let mut line = |line: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "    {line}");
    };
    for lane in 0..25 {
        let with =
            if lane < 17 { format!(" ^ vec2u(block[{}], block[{}])", 2 * lane, 2 * lane + 1) } else { String::new() };
        line(format!("var s{lane} = before[{lane}]{with};"));
    }
    line("for (var round = 0u; round < 24u; round++) {".to_owned());
    for column in 0..5 {
        let lanes: Vec<String> = (0..5).map(|row| format!("s{}", column + 5 * row)).listed();
        line(format!("let c{column} = {};", lanes.join(" ^ ")));
    }
    for column in 0..5 {
        line(format!("let d{column} = c{} ^ {};", (column + 4) % 5, turned(&format!("c{}", (column + 1) % 5), 1)));
    }
    line("let b0 = s0 ^ d0;".to_owned());
    let mut from = 1;
    for (to, by) in KECCAK_LANES {
        line(format!("let t{from} = s{from} ^ d{};", from % 5));
        line(format!("let b{to} = {};", turned(&format!("t{from}"), by)));
        from = to;
    }
    for lane in 0..25 {
        let (row, column) = (lane / 5 * 5, lane % 5);
        line(format!("s{lane} = b{lane} ^ (~b{} & b{});", row + (column + 1) % 5, row + (column + 2) % 5));
    }
    line("s0 = s0 ^ ROUND[round];\n    }".to_owned());
    line(format!("return Digest({lanes});\n}}"));
    text
}

fn kernel(name: &'static str, function: HashFunction) -> Result<Kernel> {
    static KERNELS: OnceLock<Mutex<HashMap<(&str, HashFunction), Kernel>>> = OnceLock::new();
    let kernels = KERNELS.get_or_init(Mutex::default);
    if let Some(known) = kernels.lock().unwrap_or_else(PoisonError::into_inner).get(&(name, function)) {
        return Ok(known.clone());
    }
    let frame = if name == "hash_blocks" {
        BLOCKS.to_owned()
    } else {
        // What follows 64 bytes.
        let mut pair = Vec::new();
        function.pad(&[0; 64], &mut pair);
        let cases: Vec<String> = pair
            .iter()
            .enumerate()
            .filter(|(_, word)| **word != 0)
            .map(|(at, word)| format!("        case {at}u: {{ return {word}u; }}"))
            .listed();
        let blocks = pair.len() / function.block_words();
        format!(
            "const PAIR_BLOCKS = {blocks}u;\nfn padding(at: u32) -> u32 {{\n    switch at {{\n{}\n        default: {{ return 0u; }}\n    }}\n}}\n{PAIRS}",
            cases.join("\n")
        )
    };
    let kernel = Kernel::from_named_wgsl(&format!("{name} {function}"), &(function_text(function) + &frame))?;
    kernels.lock().unwrap_or_else(PoisonError::into_inner).insert((name, function), kernel.clone());
    Ok(kernel)
}

/// Returns the digests of messages of any lengths: a tensor of u32, `[messages, 8]`, the bytes of each digest in their order.
///
/// # Errors
/// As [`crate::engine::DispatchBuilder::run_async`].
pub async fn hash_async(engine: &Engine, function: HashFunction, messages: &[&[u8]]) -> Result<Tensor> {
    let count = messages.len();
    if count == 0 {
        return engine.zeros_async::<u32>(&[0, 8]).await;
    }
    let (mut blocks, mut starts) = (Vec::new(), memory::vec("messages", count + 1)?);
    starts.push(0);
    for message in messages {
        let most = message.len() / size_of::<u32>() + 2 * function.block_words();
        if blocks.capacity() - blocks.len() < most {
            let more = most.max(blocks.len());
            memory::reserve("the blocks of messages", &mut blocks, more)?;
        }
        function.pad(message, &mut blocks);
        starts.push(word(blocks.len() / function.block_words())?);
    }
    let total = starts.last().copied().unwrap_or(0) as usize;
    let (blocks, starts) = (engine.tensor_async(&blocks).await?, engine.tensor_async(&starts).await?);
    let operation = Operation::Hash { function, count, blocks: total };
    if let Some(digests) = native(engine, operation, &[&blocks, &starts], &[count, 8], "hash_blocks").await? {
        return Ok(digests);
    }
    let kernel = kernel("hash_blocks", function)?;
    let digests = engine.output_async(Some(&blocks), DType::U32, &[count, 8], "hash_blocks").await?;
    let dispatch = engine.dispatch(&kernel).set("count", word(count)?).bind("blocks", &blocks).bind("starts", &starts);
    dispatch.bind("y", &digests).invocations(count).run_async().await?;
    Ok(digests)
}

/// The digest of each pair of digests: `[2 n, 8]` becomes `[n, 8]`.
async fn pairs(digests: &Tensor, function: HashFunction) -> Result<Tensor> {
    let (engine, count) = (digests.engine(), digests.len() / 16);
    let operation = Operation::HashPairs { function, count };
    if let Some(parents) = native(&engine, operation, &[digests], &[count, 8], "hash_pairs").await? {
        return Ok(parents);
    }
    let kernel = kernel("hash_pairs", function)?;
    let parents = engine.output_async(Some(digests), DType::U32, &[count, 8], "hash_pairs").await?;
    let dispatch = engine.dispatch(&kernel).set("count", word(count)?).bind("x", digests).bind("y", &parents);
    dispatch.invocations(count).run_async().await?;
    Ok(parents)
}

/// A binary tree of digests on a device: each node is the digest of its two children's 64 bytes.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// use cantus::zk::{HashFunction, MerkleTree};
///
/// let tree = MerkleTree::new(&engine, HashFunction::Sha256, &[&b"a"[..], b"b", b"c", b"d"])?;
/// let path = tree.path(2)?;
/// assert!(MerkleTree::verify(HashFunction::Sha256, &tree.root()?, b"c", 2, &path));
/// assert!(!MerkleTree::verify(HashFunction::Sha256, &tree.root()?, b"c", 3, &path));
/// # Ok::<(), cantus::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MerkleTree {
    levels: Vec<Tensor>,
}

/// The bytes of digests of 8 words.
fn bytes_of(words: &[u32]) -> impl Iterator<Item = [u8; 32]> {
    words.as_chunks::<8>().0.iter().map(|words| bytemuck::cast(words.map(u32::to_le)))
}

impl MerkleTree {
    /// Over the digests of the leaves, whose number is a power of two.
    ///
    /// # Errors
    /// [`Error::Shape`] for other numbers of leaves, else as [`hash_async`].
    pub async fn new_async(engine: &Engine, function: HashFunction, leaves: &[&[u8]]) -> Result<Self> {
        if !leaves.len().is_power_of_two() {
            return Err(Error::shape(
                format!("a tree of {} leaves", leaves.len()),
                "their number must be a power of two (add leaves)",
            ));
        }
        let mut levels = vec![hash_async(engine, function, leaves).await?];
        while let Some(last) = levels.last().filter(|last| last.len() > 8) {
            levels.push(pairs(last, function).await?);
        }
        Ok(Self { levels })
    }

    /// Returns the root.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    pub async fn root_async(&self) -> Result<[u8; 32]> {
        let words = match self.levels.last() {
            Some(last) => last.to_vec_async::<u32>().await?,
            None => Vec::new(),
        };
        bytes_of(&words).next().ok_or_else(|| absent(0))
    }

    /// Returns the siblings from a leaf up to the root.
    ///
    /// # Errors
    /// [`Error::Index`] if there is no such leaf, else as [`Tensor::to_vec_async`].
    pub async fn path_async(&self, leaf: usize) -> Result<Vec<[u8; 32]>> {
        let mut path = Vec::new();
        let mut at = leaf;
        for level in &self.levels {
            let nodes = level.shape().first().copied().unwrap_or(0);
            if at >= nodes {
                return Err(absent(leaf));
            }
            if nodes > 1 {
                let sibling = level.slice(&[at ^ 1..(at ^ 1) + 1, 0..8]).eval_async().await?;
                path.extend(bytes_of(&sibling.to_vec_async::<u32>().await?));
            }
            at /= 2;
        }
        Ok(path)
    }

    /// Returns whether a message is the leaf at that place of the tree with this root, by the path from it. On the host.
    #[must_use]
    pub fn verify(function: HashFunction, root: &[u8; 32], message: &[u8], leaf: usize, path: &[[u8; 32]]) -> bool {
        let digest = |message: &[u8]| {
            let mut blocks = Vec::new();
            function.pad(message, &mut blocks);
            bytes_of(&function.digest(&blocks)).next().unwrap_or_default()
        };
        let (mut node, mut at) = (digest(message), leaf);
        for sibling in path {
            node = digest(&if at % 2 == 0 { [node, *sibling] } else { [*sibling, node] }.concat());
            at /= 2;
        }
        at == 0 && node == *root
    }
}

fn absent(leaf: usize) -> Error {
    Error::index(format!("leaf {leaf}"), "the tree has no such leaf")
}

/// The blocking forms.
#[cfg(not(target_arch = "wasm32"))]
impl MerkleTree {
    /// [`MerkleTree::new_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn new(engine: &Engine, function: HashFunction, leaves: &[&[u8]]) -> Result<Self> {
        crate::engine::blocking::block_on(Self::new_async(engine, function, leaves))
    }

    /// [`MerkleTree::root_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn root(&self) -> Result<[u8; 32]> {
        crate::engine::blocking::block_on(self.root_async())
    }

    /// [`MerkleTree::path_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn path(&self, leaf: usize) -> Result<Vec<[u8; 32]>> {
        crate::engine::blocking::block_on(self.path_async(leaf))
    }
}

/// Returns the digests of messages as bytes.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// use cantus::zk::{self, HashFunction};
///
/// let digests = zk::hash(&engine, HashFunction::Keccak256, &[&b""[..], b"abc"])?;
/// assert_eq!(digests[0][..4], [0xc5, 0xd2, 0x46, 0x01]);
/// # Ok::<(), cantus::Error>(())
/// ```
///
/// # Errors
/// As [`hash_async`].
#[cfg(not(target_arch = "wasm32"))]
pub fn hash(engine: &Engine, function: HashFunction, messages: &[&[u8]]) -> Result<Vec<[u8; 32]>> {
    let digests = crate::engine::blocking::block_on(hash_async(engine, function, messages))?;
    let words = digests.to_vec::<u32>()?;
    memory::collect("digests", words.len() / 8, bytes_of(&words))
}

//! The bytecode: plain data, written by `lower`, checked by `check`, run by `exec`. Knows nothing of naga. A program has several `Code`s, one for each way
//! of batching. A register is an offset into one file of words, and an instruction's form says which operands are uniform. New operations need a row in
//! `Op::forms` (for `check`), a lane loop in `exec`, and a place in the generator.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::check::{Checked, Corrupt};
use cantus_base::listed::Listed;

/// One compute entry point, compiled for the CPU executor.
///
/// Plain data: clones, serialises and moves between threads. A deserialised program is checked before it first runs,
/// so that corrupt data ends in an error.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bytecode {
    pub(crate) workgroup_size: [u32; 3],
    pub(crate) bindings: Vec<BindingInfo>,
    /// Bytes of workgroup memory, zeroed before each batch.
    pub(crate) workgroup_bytes: u32,
    /// Lowerings of the same entry point for different ways of putting workgroups into one batch.
    pub(crate) codes: Vec<Code>,
    #[serde(skip)]
    pub(crate) checked: Checked,
}

impl Bytecode {
    /// Bindings in the order in which [`Launch::bindings`](super::Launch) takes memory: by group, then by binding.
    #[must_use]
    pub fn bindings(&self) -> &[BindingInfo] {
        &self.bindings
    }

    /// Invocations per workgroup in x, y and z.
    #[must_use]
    pub fn workgroup_size(&self) -> [u32; 3] {
        self.workgroup_size
    }

    /// Bytes of workgroup memory the entry point uses.
    #[must_use]
    pub fn workgroup_bytes(&self) -> u32 {
        self.workgroup_bytes
    }

    /// Checks that no instruction can reach outside the program's own registers and bindings.
    ///
    /// # Errors
    /// [`Corrupt`] names the first instruction that could.
    pub fn check(&self) -> Result<(), Corrupt> {
        super::check::check(self)
    }

    /// The instructions as text, one per line: for people who look into how a kernel was lowered.
    #[must_use]
    pub fn listing(&self) -> String {
        use std::fmt::Write;
        let mut text = String::new();
        for code in &self.codes {
            let _ = writeln!(text, "{:?}: {} lanes, {} words", code.batching, code.lanes, code.words);
            for (position, i) in code.instructions.iter().enumerate() {
                let _ = writeln!(
                    text,
                    "{position:5} {:<28} form {:05b} d {} a {} b {} c {} m {} x {}",
                    format!("{:?}", i.op),
                    i.form,
                    i.d as i32,
                    i.a as i32,
                    i.b as i32,
                    i.c as i32,
                    i.m as i32,
                    i.x as i32
                );
            }
        }
        text
    }
}

/// A buffer that a program reads or writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BindingInfo {
    /// `@group`.
    pub group: u32,
    /// `@binding`.
    pub binding: u32,
    /// The variable's name in the source.
    pub name: String,
    /// True for storage bindings that the shader may write.
    pub writable: bool,
    /// The least size in bytes: a runtime array counts as one element.
    pub min_bytes: u64,
    /// The address must be a multiple of this.
    pub align: u32,
}

/// The way in which workgroups become batches; a batch runs in lock-step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Batching {
    /// One workgroup: for kernels with workgroup memory or subgroup operations.
    Single,
    /// Consecutive workgroups along x: y and z of the workgroup are uniform.
    Row,
    /// Consecutive workgroups in linear order: for grids narrow in x.
    Linear,
    /// Consecutive small workgroups in linear order, each with workgroup memory of its own ([`Space::Groups`]).
    Groups,
}

/// Straight bytecode for one way of batching.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Code {
    pub batching: Batching,
    /// Lanes of a vector register; a multiple of [`LANE_STEP`].
    pub lanes: u32,
    /// Size of the register file in 4-byte words.
    pub words: u32,
    /// Words written into the register file once.
    pub constants: Vec<(u32, u32)>,
    /// Constant memory: lookup tables that are indexed at run time.
    pub table: Vec<u8>,
    pub accesses: Vec<Strided>,
    pub rows: Vec<Rows>,
    pub instructions: Vec<Instr>,
    #[serde(skip)]
    pub tables: OnceTables,
}

/// Local ids in x, y and z, local index, and place of the workgroup in the batch, for each lane; those that the code asks for.
pub(crate) type Ids = [Vec<u32>; 5];

/// The tables that every launch of a code reads, each made when it is first asked for. A clone makes its own.
#[derive(Debug, Default)]
pub(crate) struct OnceTables {
    /// By the number of workgroups in a batch, where that matters.
    ids: OnceLock<Box<[OnceLock<Box<Ids>>]>>,
    constants: OnceLock<Vec<u64>>,
}

impl Clone for OnceTables {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl OnceTables {
    /// Returns the code's table of constants, aligned for its elements.
    pub fn constants(&self, code: &Code) -> &[u64] {
        self.constants.get_or_init(|| {
            let mut constants = vec![0_u64; code.table.len().div_ceil(8)];
            bytemuck::cast_slice_mut::<u64, u8>(&mut constants)[..code.table.len()].copy_from_slice(&code.table);
            constants
        })
    }

    /// Returns the ids of the code that holds it, for a batch of `groups` workgroups of this size.
    ///
    /// In a row of workgroups the lanes follow each other along x through all of them, then comes the next y: neighbours in memory are neighbours
    /// in registers for as long as may be.
    pub fn ids(&self, code: &Code, [width, height, depth]: [u32; 3], groups: u64) -> &Ids {
        let (width, height, depth) = (width.max(1), height.max(1), depth.max(1));
        let rows = height.saturating_mul(depth);
        let group = width.saturating_mul(rows);
        let most = if code.batching == Batching::Row && rows > 1 { (code.lanes / group).max(1) } else { 1 };
        let slots = self.ids.get_or_init(|| (0..most).map(|_| OnceLock::new()).collect());
        let groups = groups.clamp(1, u64::from(most)) as u32;
        let along = if most > 1 { width * groups } else { group };
        let make = || {
            let asked = asked(code);
            let table = |place: usize, of: &dyn Fn(u32, u32) -> u32| -> Vec<u32> {
                let lanes = if asked[place] { code.lanes } else { 0 };
                (0..lanes).map(|lane| of(lane / along, lane % along)).listed()
            };
            if most > 1 {
                let index = |row: u32, at: u32| row * width + at % width;
                Box::new([
                    table(0, &|_, at| at % width),
                    table(1, &|row, _| row % height),
                    table(2, &|row, _| row / height),
                    table(3, &index),
                    table(4, &|_, at| at / width),
                ])
            } else {
                Box::new([
                    table(0, &|_, at| at % width),
                    table(1, &|_, at| at / width % height),
                    table(2, &|_, at| at / width / height),
                    table(3, &|_, at| at),
                    table(4, &|group, _| group),
                ])
            }
        };
        slots[groups as usize - 1].get_or_init(make)
    }
}

/// Returns which of the ids a code asks for.
fn asked(code: &Code) -> [bool; 5] {
    let mut asked = [false; 5];
    for instruction in &code.instructions {
        let Op::Input(input) = instruction.op else { continue };
        match input {
            Input::LocalId(axis) => asked[usize::from(axis) % 3] = true,
            Input::LocalIndex | Input::SubgroupId | Input::SubgroupInvocation => asked[3] = true,
            Input::GroupInBatch | Input::Workgroup(_) => asked[4] = true,
            _ => {}
        }
    }
    asked
}

/// Vector operations run over a multiple of this many lanes, so that vectorised loops have no tail.
pub(crate) const LANE_STEP: u32 = 32;
/// The most lanes of a batch, and so the most invocations of a workgroup.
pub(crate) const MAX_LANES: u32 = 1 << 16;
/// The most workgroup memory of a kernel: 1 MiB in WGSL's layout, of which the executor's takes up to four times as much.
pub(crate) const MAX_WORKGROUP_BYTES: u32 = 4 << 20;
/// The absence of a mask: all lanes are active.
pub const FULL: u32 = u32::MAX;
/// Unused operand.
#[cfg(feature = "wgsl")]
pub(crate) const NONE: u32 = u32::MAX;

/// One instruction. Registers are word offsets into the register file: a vector register holds `lanes` words (twice
/// as many for 8-byte values), a uniform one holds one value, a mask one lanes words and the count of active lanes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Instr {
    pub op: Op,
    /// Bits [`A_UNIFORM`] and so on.
    pub form: u8,
    pub d: u32,
    pub a: u32,
    pub b: u32,
    pub c: u32,
    pub m: u32,
    /// Jump target, access or other immediate.
    pub x: u32,
}

pub const A_UNIFORM: u8 = 1;
pub const B_UNIFORM: u8 = 2;
pub const C_UNIFORM: u8 = 4;
pub const D_UNIFORM: u8 = 8;
/// Memory: the index is `a` + lane, `a` being uniform.
pub const LINEAR: u8 = 16;

/// The memory of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Space {
    /// A binding, by its place in [`Bytecode::bindings`].
    Binding(u32),
    Workgroup,
    /// [`Code::table`].
    Table,
    /// Per-lane memory inside the register file, `[slot][lane]`: the word offset of slot 0 and the number of slots.
    Private {
        base: u32,
        slots: u32,
    },
    /// Workgroup memory of each workgroup of a batch: a lane's index counts in that of its own workgroup. Never in kernels compiled ahead.
    Groups,
}

/// The layout of one element in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Element {
    Word,
    Wide,
    Half,
    Short,
    UnsignedShort,
}

impl Element {
    pub fn bytes(self) -> u32 {
        match self {
            Element::Word => 4,
            Element::Wide => 8,
            Element::Half | Element::Short | Element::UnsignedShort => 2,
        }
    }
}

/// Element `i` lies at `offset + i * stride` and exists while `i < count`. Bytes, but slots for private memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Strided {
    pub space: Space,
    pub element: Element,
    pub offset: u32,
    pub stride: u32,
    pub count: Count,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Count {
    Fixed(u32),
    /// All that the binding holds: `(size - start) / stride`, start and stride of the runtime array, times `scale` if the index counts in smaller
    /// units than the array's elements.
    Runtime {
        start: u32,
        stride: u32,
        scale: u32,
    },
}

/// Elements in rows of a width that comes with the launch, as those of a texture are: the one at x and y has the index
/// `base + word + (x + y * width) * words`, and exists while `x < width`, `y < height`, and the access has such an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rows {
    /// The access, to words of a binding that follow each other.
    pub access: u32,
    /// The binding that holds width, height and base, by its place in [`Bytecode::bindings`]: one that is only read.
    pub sizes: u32,
    /// Offsets in bytes.
    pub width: u32,
    pub height: u32,
    pub base: u32,
    /// Words of an element, and which of them is meant.
    pub words: u32,
    pub word: u32,
}

/// Values that come with the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Input {
    /// Uniform: `workgroup_id` of the batch's first workgroup.
    FirstWorkgroup(u8),
    NumWorkgroups(u8),
    /// Vectors.
    LocalId(u8),
    LocalIndex,
    /// Place of the lane's workgroup within the batch.
    GroupInBatch,
    /// `workgroup_id` per lane, linear batching.
    Workgroup(u8),
    SubgroupId,
    SubgroupInvocation,
    /// Uniform, in kernels compiled ahead over rows of lanes along x: `global_invocation_id.x` of the first lane, its
    /// `local_invocation_id.x`, and `local_invocation_id` in y and z. Never in bytecode.
    RowStart,
    RowLocalStart,
    RowLocal(u8),
    /// Uniform, in kernels compiled ahead: the value of an override that comes with the launch. Never in bytecode.
    Argument(u8),
}

impl Input {
    pub fn is_uniform(self) -> bool {
        matches!(
            self,
            Input::FirstWorkgroup(_)
                | Input::NumWorkgroups(_)
                | Input::RowStart
                | Input::RowLocalStart
                | Input::RowLocal(_)
                | Input::Argument(_)
        )
    }

    /// Returns whether the executor knows it.
    pub fn is_bytecode(self) -> bool {
        !matches!(self, Input::RowStart | Input::RowLocalStart | Input::RowLocal(_) | Input::Argument(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Op {
    End,
    Jump,
    /// `a` is false.
    JumpUnless,
    /// `a` is true.
    JumpIf,
    /// Jumps if no lane of `m` is active.
    JumpNone,
    /// Some lane of `m` is active.
    JumpAny,
    Copy,
    Copy64,
    /// `d = a` where `m`.
    Blend,
    Blend64,
    /// All lanes of the batch.
    MaskAll,
    MaskCopy,
    /// `d = m & a`.
    MaskAnd,
    /// `d = m & !a`.
    MaskAndNot,
    /// `d &= !m`.
    MaskRemove,
    /// Clears the mask.
    MaskNone,
    Input(Input),
    /// `d = a + lane`.
    Iota,
    /// `d = c ? a : b`.
    Select,
    Select64,
    Float(Float),
    Float2(Float2),
    FloatCompare(Compare),
    /// `d = a * b + c`, rounded once.
    Fma,
    /// `d = a * b + c`, rounded twice.
    MulAdd,
    Fma64,
    Int(Int),
    Int2(Int2),
    IntCompare(IntCompare),
    /// Bits `b ..b + c` of `a`.
    ExtractSigned,
    ExtractUnsigned,
    Wide(Int),
    Wide2(Int2),
    WideCompare(IntCompare),
    Double(Float),
    Double2(Float2),
    DoubleCompare(Compare),
    Convert(Convert),
    Load,
    Store,
    /// The element of [`Code::rows`] at x = `a` and y = `b`, 0 outside.
    Texel,
    Atomic(Atomic, Number),
    /// Old value; `b` is stored where it equals `c`.
    CompareExchange(Number),
    /// Number of elements of an access.
    Length,
    Subgroup(Collective, Number),
    /// `d = a` of the lane that `mode` and `b` name.
    Gather(Gather),
    /// Votes of lanes: bits of the subgroup.
    Ballot,
    /// `d &= !a`.
    MaskDrop,
    /// `d &= a`.
    MaskKeep,
    /// Lets what follows leave out lanes before the first and behind the last one of `m`, until the next such instruction.
    Narrow,
    /// `d = a * b - c`, rounded twice.
    MulSub,
}

/// One operand, f32 or f64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Float {
    Neg,
    Abs,
    Sign,
    Sqrt,
    InverseSqrt,
    Floor,
    Ceil,
    Trunc,
    Round,
    Fract,
    Exp,
    Exp2,
    Log,
    Log2,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    /// Nearest half.
    RoundHalf,
    /// Fraction in 0.5..1 and, as an integer, exponent.
    Fraction,
    Exponent,
}

/// Two operands, f32 or f64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Float2 {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Min,
    Max,
    Pow,
    Atan2,
    /// `a * 2^b`, `b` an i32.
    Ldexp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Compare {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Int {
    Neg,
    Not,
    Abs,
    Sign,
    LeadingZeros,
    TrailingZeros,
    OneBits,
    Reverse,
    FirstLeadingSigned,
    FirstLeadingUnsigned,
    FirstTrailing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Int2 {
    Add,
    Sub,
    Mul,
    DivSigned,
    DivUnsigned,
    RemSigned,
    RemUnsigned,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRightSigned,
    ShiftRightUnsigned,
    MinSigned,
    MaxSigned,
    MinUnsigned,
    MaxUnsigned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum IntCompare {
    Equal,
    NotEqual,
    LessSigned,
    LessEqualSigned,
    LessUnsigned,
    LessEqualUnsigned,
}

/// Source and target in the name. Floats to integers saturate; NaN gives 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Convert {
    F32ToI32,
    F32ToU32,
    I32ToF32,
    U32ToF32,
    F32ToI64,
    F32ToU64,
    I64ToF32,
    U64ToF32,
    F64ToI32,
    F64ToU32,
    I32ToF64,
    U32ToF64,
    F64ToI64,
    F64ToU64,
    I64ToF64,
    U64ToF64,
    F32ToF64,
    F64ToF32,
    F64ToHalf,
    I32ToI64,
    U32ToU64,
    I64ToI32,
    /// Low and high words of a value.
    HighWord,
    SignExtend16,
    ZeroExtend16,
    F32ToHalfBits,
    HalfBitsToF32,
    /// bool of an 8-byte value.
    WideIsNonZero,
    DoubleIsNonZero,
    /// A byte of a word, over 255.
    Unorm8(u8),
    /// A number between 0 and 1 in steps of 1/255, as a byte of a word.
    ToUnorm8(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Atomic {
    Load,
    Store,
    Add,
    Sub,
    And,
    Or,
    Xor,
    Min,
    Max,
    Exchange,
}

/// Type of what an atomic or a collective works on. f16 computes as f32 and rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Number {
    I32,
    U32,
    F32,
    F16,
    I64,
    U64,
    F64,
}

impl Number {
    pub fn is_wide(self) -> bool {
        matches!(self, Number::I64 | Number::U64 | Number::F64)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Collective {
    pub scan: Scan,
    pub fold: Fold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scan {
    Reduce,
    Inclusive,
    Exclusive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Fold {
    Add,
    Mul,
    Min,
    Max,
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Gather {
    First,
    Broadcast,
    Shuffle,
    Down,
    Up,
    Xor,
    QuadBroadcast,
    QuadX,
    QuadY,
    QuadDiagonal,
}

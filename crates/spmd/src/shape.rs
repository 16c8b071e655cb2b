//! The operands of each operation and the forms that it may have: `check` verifies them, the lowering and its passes are driven by them, and
//! the lane loops rely on them.

use super::bytecode::{
    A_UNIFORM, Atomic, B_UNIFORM, C_UNIFORM, Convert, D_UNIFORM, Element, Float, Float2, Int2, LINEAR, Number, Op,
    Space, Strided,
};

/// Width of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    None,
    Word,
    Wide,
    Mask,
}

/// The operands of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub d: Width,
    pub a: Width,
    pub b: Width,
    pub c: Width,
    /// Takes a mask.
    pub m: bool,
    pub jumps: bool,
    /// Reads its target too.
    pub merges: bool,
    /// Has an effect besides its target.
    pub effect: bool,
}

impl Op {
    /// The operands of the operation. Loads and stores depend on their access.
    pub fn shape(self, accesses: &[Strided], x: u32) -> Shape {
        use Width::{Mask, None as No, Wide, Word};
        let element = || match accesses.get(x as usize).map(|access| access.element) {
            Some(Element::Wide) => Wide,
            _ => Word,
        };
        let plain = |d, a, b, c| Shape { d, a, b, c, m: false, jumps: false, merges: false, effect: false };
        let jump = |a, m| Shape { a, m, jumps: true, effect: true, ..plain(No, No, No, No) };
        let number = |n: Number| if n.is_wide() { Wide } else { Word };
        match self {
            Op::End => Shape { effect: true, ..plain(No, No, No, No) },
            Op::Jump => jump(No, false),
            Op::JumpUnless | Op::JumpIf => jump(Word, false),
            Op::JumpNone | Op::JumpAny => jump(No, true),
            Op::Copy => plain(Word, Word, No, No),
            Op::Copy64 => plain(Wide, Wide, No, No),
            Op::Blend => Shape { m: true, merges: true, ..plain(Word, Word, No, No) },
            Op::Blend64 => Shape { m: true, merges: true, ..plain(Wide, Wide, No, No) },
            Op::MaskAll => plain(Mask, No, No, No),
            Op::MaskNone => Shape { effect: true, ..plain(Mask, No, No, No) },
            Op::MaskCopy => Shape { m: true, ..plain(Mask, No, No, No) },
            Op::MaskAnd | Op::MaskAndNot => Shape { m: true, ..plain(Mask, Word, No, No) },
            Op::MaskRemove => Shape { m: true, merges: true, effect: true, ..plain(Mask, No, No, No) },
            Op::MaskDrop | Op::MaskKeep => Shape { merges: true, effect: true, ..plain(Mask, Word, No, No) },
            Op::Narrow => Shape { m: true, effect: true, ..plain(No, No, No, No) },
            Op::Input(_) => plain(Word, No, No, No),
            Op::Iota => plain(Word, Word, No, No),
            Op::Select => plain(Word, Word, Word, Word),
            Op::Select64 => plain(Wide, Wide, Wide, Word),
            Op::Float(_) | Op::Int(_) => plain(Word, Word, No, No),
            Op::Float2(_) | Op::FloatCompare(_) | Op::Int2(_) | Op::IntCompare(_) => plain(Word, Word, Word, No),
            Op::Fma | Op::MulAdd | Op::MulSub | Op::ExtractSigned | Op::ExtractUnsigned => {
                plain(Word, Word, Word, Word)
            }
            Op::Fma64 => plain(Wide, Wide, Wide, Wide),
            Op::Wide(_) => plain(Wide, Wide, No, No),
            Op::Double(Float::Exponent) => plain(Word, Wide, No, No),
            Op::Double(_) => plain(Wide, Wide, No, No),
            Op::Wide2(Int2::ShiftLeft | Int2::ShiftRightSigned | Int2::ShiftRightUnsigned)
            | Op::Double2(Float2::Ldexp) => plain(Wide, Wide, Word, No),
            Op::Wide2(_) | Op::Double2(_) => plain(Wide, Wide, Wide, No),
            Op::WideCompare(_) | Op::DoubleCompare(_) => plain(Word, Wide, Wide, No),
            Op::Convert(convert) => {
                use Convert as C;
                match convert {
                    C::F32ToI64 | C::F32ToU64 | C::I32ToF64 | C::U32ToF64 | C::F32ToF64 | C::I32ToI64 | C::U32ToU64 => {
                        plain(Wide, Word, No, No)
                    }
                    C::I64ToF32
                    | C::U64ToF32
                    | C::F64ToI32
                    | C::F64ToU32
                    | C::F64ToF32
                    | C::F64ToHalf
                    | C::I64ToI32
                    | C::HighWord
                    | C::WideIsNonZero
                    | C::DoubleIsNonZero => plain(Word, Wide, No, No),
                    C::F64ToI64 | C::F64ToU64 | C::I64ToF64 | C::U64ToF64 => plain(Wide, Wide, No, No),
                    C::F32ToI32
                    | C::F32ToU32
                    | C::I32ToF32
                    | C::U32ToF32
                    | C::SignExtend16
                    | C::ZeroExtend16
                    | C::F32ToHalfBits
                    | C::HalfBitsToF32
                    | C::Unorm8(_)
                    | C::ToUnorm8(_) => plain(Word, Word, No, No),
                }
            }
            Op::Load => plain(element(), Word, No, No),
            Op::Store => Shape { m: true, effect: true, ..plain(No, Word, element(), No) },
            Op::Atomic(Atomic::Load, n) => Shape { m: true, ..plain(number(n), Word, No, No) },
            Op::Atomic(Atomic::Store, n) => Shape { m: true, effect: true, ..plain(No, Word, number(n), No) },
            Op::Atomic(_, n) => Shape { m: true, effect: true, ..plain(number(n), Word, number(n), No) },
            Op::CompareExchange(n) => Shape { m: true, effect: true, ..plain(number(n), Word, number(n), number(n)) },
            Op::Texel => plain(Word, Word, Word, No),
            Op::Length => plain(Word, No, No, No),
            Op::Subgroup(_, n) => Shape { m: true, ..plain(number(n), number(n), No, No) },
            Op::Gather(_) => Shape { m: true, ..plain(Word, Word, Word, No) },
            Op::Ballot => Shape { m: true, ..plain(Word, Word, No, No) },
        }
    }
}

/// Forms, as bits of [`Instr::form`](super::bytecode::Instr): each list holds all that its operations may have.
mod form {
    use super::{A_UNIFORM as A, B_UNIFORM as B, C_UNIFORM as C, D_UNIFORM as D, LINEAR as L};

    /// Vectors only, or no operands at all.
    pub const PLAIN: &[u8] = &[0];
    pub const UNIFORM_RESULT: &[u8] = &[D];
    pub const UNIFORM_OPERAND: &[u8] = &[A];
    /// One operand: as many lanes are written as are read.
    pub const UNARY: &[u8] = &[0, A | D];
    pub const SPREADING: &[u8] = &[0, A, A | D];
    /// Never into a uniform register: some lanes keep what they have.
    pub const MASKED: &[u8] = &[0, A];
    pub const BINARY: &[u8] = &[0, A, B, A | B | D];
    pub const TERNARY: &[u8] = &[0, A | B | C | D];
    /// The first factor in lanes.
    pub const MUL_ADD: &[u8] = &[0, B, C, B | C];
    /// Lanes in a row, or anywhere.
    pub const TEXEL: &[u8] = &[0, B, A | B | L];
    pub const SELECT: &[u8] = &[0, A, B, A | B, A | B | C | D];
    pub const LOAD: &[u8] = &[0, A | D, A | L];
    pub const STORE: &[u8] = &[0, A, B, A | B, A | L, A | B | L];
    pub const ATOMIC_LOAD: &[u8] = &[0, A, A | L];
    /// Memory of the lanes: a value for each, and no run of elements.
    pub const PRIVATE_LOAD: &[u8] = &[0, A];
    /// A value for each workgroup.
    pub const GROUPS_LOAD: &[u8] = &[0, A, A | L];
    pub const PRIVATE_STORE: &[u8] = &[0, A, B, A | B];
    pub const COMPARE_EXCHANGE: &[u8] =
        &[0, A, A | L, B, A | B, A | B | L, C, A | C, A | C | L, B | C, A | B | C, A | B | C | L];
}

impl Op {
    /// The forms that the operation may have. `check` refuses all others, so that the lane loops need to know no others; the
    /// lowering asks here whether an index may be linear and a result uniform.
    pub fn forms(self, accesses: &[Strided], x: u32) -> &'static [u8] {
        let private = || matches!(accesses.get(x as usize), Some(Strided { space: Space::Private { .. }, .. }));
        let groups = || matches!(accesses.get(x as usize), Some(Strided { space: Space::Groups, .. }));
        match self {
            Op::End
            | Op::Jump
            | Op::JumpNone
            | Op::JumpAny
            | Op::MaskAll
            | Op::MaskNone
            | Op::MaskCopy
            | Op::MaskAnd
            | Op::MaskAndNot
            | Op::MaskRemove
            | Op::MaskDrop
            | Op::MaskKeep
            | Op::Narrow
            | Op::Subgroup(..)
            | Op::Gather(_)
            | Op::Ballot => form::PLAIN,
            Op::JumpIf | Op::JumpUnless | Op::Iota => form::UNIFORM_OPERAND,
            Op::Input(input) if !input.is_uniform() => form::PLAIN,
            Op::Input(_) | Op::Length => form::UNIFORM_RESULT,
            Op::Copy | Op::Copy64 => form::SPREADING,
            Op::Blend | Op::Blend64 => form::MASKED,
            Op::Float(_) | Op::Int(_) | Op::Wide(_) | Op::Double(_) | Op::Convert(_) => form::UNARY,
            Op::Float2(_)
            | Op::FloatCompare(_)
            | Op::Int2(_)
            | Op::IntCompare(_)
            | Op::Wide2(_)
            | Op::WideCompare(_)
            | Op::Double2(_)
            | Op::DoubleCompare(_) => form::BINARY,
            Op::Fma | Op::Fma64 | Op::ExtractSigned | Op::ExtractUnsigned => form::TERNARY,
            Op::MulAdd | Op::MulSub => form::MUL_ADD,
            Op::Texel => form::TEXEL,
            Op::Select | Op::Select64 => form::SELECT,
            Op::Load if private() => form::PRIVATE_LOAD,
            Op::Load if groups() => form::GROUPS_LOAD,
            Op::Load => form::LOAD,
            Op::Atomic(Atomic::Load, _) => form::ATOMIC_LOAD,
            Op::Store if private() => form::PRIVATE_STORE,
            Op::Store | Op::Atomic(..) => form::STORE,
            Op::CompareExchange(_) => form::COMPARE_EXCHANGE,
        }
    }
}

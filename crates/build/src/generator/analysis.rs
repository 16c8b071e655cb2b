//! The analysis of a flattened entry point's registers: their types in Rust, and where they are used. The executor's registers have no types, only widths;
//! Rust needs them. A register's type is what all its definitions agree on, else its bits. The predicates at the end (`is_scalar`, `is_heavy`, …) decide
//! where `plan` cuts.

use cantus_base::listed::Listed;
use cantus_spmd::bytecode::{
    A_UNIFORM, Convert, D_UNIFORM, Element, FULL, Float, Float2, Instr, Int, Int2, Number, Op,
};
use cantus_spmd::shape::Width;
use cantus_spmd::{Class, Flat, Register};

/// A register's type in the generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    U32,
    F32,
    Bool,
    U64,
    F64,
}

impl Ty {
    pub fn name(self) -> &'static str {
        match self {
            Ty::U32 => "u32",
            Ty::F32 => "f32",
            Ty::Bool => "bool",
            Ty::U64 => "u64",
            Ty::F64 => "f64",
        }
    }

    /// The type in which lanes keep it: bools take a word, as wide as what they choose between.
    pub fn stored(self) -> &'static str {
        if self == Ty::Bool { "u32" } else { self.name() }
    }

    pub fn zero(self) -> &'static str {
        match self {
            Ty::U32 | Ty::U64 => "0",
            Ty::F32 | Ty::F64 => "0.0",
            Ty::Bool => "false",
        }
    }

    pub fn bytes(self) -> u64 {
        if matches!(self, Ty::U64 | Ty::F64) { 8 } else { 4 }
    }

    fn of_number(number: Number) -> Self {
        match number {
            Number::I32 | Number::U32 => Ty::U32,
            Number::F32 | Number::F16 => Ty::F32,
            Number::I64 | Number::U64 => Ty::U64,
            Number::F64 => Ty::F64,
        }
    }
}

/// The type that a register's definitions agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guess {
    /// Nothing known, or constants of all bits or none, which fit every type.
    Open,
    /// Constants of other bits: no bool.
    Number,
    Is(Ty),
}

impl Guess {
    fn join(self, other: Guess, word: Ty) -> Guess {
        match (self, other) {
            (Guess::Open, x) | (x, Guess::Open) => x,
            (a, b) if a == b => a,
            (Guess::Number, Guess::Is(Ty::Bool)) | (Guess::Is(Ty::Bool), Guess::Number) => Guess::Is(word),
            (Guess::Number, x) | (x, Guess::Number) => x,
            _ => Guess::Is(word),
        }
    }
}

/// The types of all registers.
pub(super) fn types(flat: &Flat) -> Vec<Ty> {
    let word = |register: usize| if flat.registers[register].wide { Ty::U64 } else { Ty::U32 };
    let mut guesses = vec![Guess::Open; flat.registers.len()];
    for (register, (bits, wide)) in &flat.constants {
        let all = if *wide { u64::MAX } else { u64::from(u32::MAX) };
        if *bits != 0 && *bits != all {
            guesses[*register as usize] = Guess::Number;
        }
    }
    for (register, info) in flat.registers.iter().enumerate() {
        if info.class == Class::Mask {
            guesses[register] = Guess::Is(Ty::Bool);
        }
    }
    let floats = float_uses(flat);
    loop {
        let mut changed = false;
        for i in &flat.instructions {
            let shape = i.op.shape(&flat.accesses, i.x);
            if !matches!(shape.d, Width::Word | Width::Wide) {
                continue;
            }
            let d = i.d as usize;
            let guess = guesses[d].join(result(flat, i, &guesses, &floats), word(d));
            changed |= guess != guesses[d];
            guesses[d] = guess;
        }
        if !changed {
            break;
        }
    }
    let settle = |(register, guess): (usize, &Guess)| match guess {
        Guess::Is(ty) => *ty,
        _ => word(register),
    };
    guesses.iter().enumerate().map(settle).listed()
}

fn result(flat: &Flat, i: &Instr, guesses: &[Guess], floats: &[bool]) -> Guess {
    let of = |register: Register| guesses[register as usize];
    let wide = |register: Register| if flat.registers[register as usize].wide { Ty::U64 } else { Ty::U32 };
    Guess::Is(match i.op {
        Op::Copy | Op::Copy64 | Op::Blend | Op::Blend64 => return of(i.a),
        Op::Select | Op::Select64 => return of(i.a).join(of(i.b), wide(i.d)),
        Op::Int(Int::Not) if of(i.a) == Guess::Is(Ty::Bool) => Ty::Bool,
        Op::Int2(Int2::And | Int2::Or | Int2::Xor) => {
            let boolean = |guess| matches!(guess, Guess::Open | Guess::Is(Ty::Bool));
            let (a, b) = (of(i.a), of(i.b));
            match (a, b) {
                (Guess::Open, Guess::Open) => return Guess::Open,
                _ if boolean(a) && boolean(b) => Ty::Bool,
                _ => Ty::U32,
            }
        }
        Op::Float(Float::Exponent) => Ty::U32,
        Op::Float(_) | Op::Float2(_) | Op::Fma => Ty::F32,
        Op::FloatCompare(_) | Op::IntCompare(_) | Op::WideCompare(_) | Op::DoubleCompare(_) => Ty::Bool,
        Op::Wide(_) | Op::Wide2(_) => Ty::U64,
        Op::Double(Float::Exponent) => Ty::U32,
        Op::Double(_) | Op::Double2(_) | Op::Fma64 => Ty::F64,
        Op::Convert(convert) => converted(convert),
        Op::Load => match flat.accesses[i.x as usize].element {
            Element::Half => Ty::F32,
            Element::Wide if floats[i.d as usize] => Ty::F64,
            Element::Wide => Ty::U64,
            Element::Word if floats[i.d as usize] => Ty::F32,
            _ => Ty::U32,
        },
        Op::Atomic(_, number) | Op::CompareExchange(number) => match Ty::of_number(number) {
            Ty::U64 | Ty::F64 => Ty::U64,
            _ => Ty::U32,
        },
        Op::Subgroup(_, number) => Ty::of_number(number),
        _ => Ty::U32,
    })
}

fn converted(convert: Convert) -> Ty {
    use Convert as C;
    match convert {
        C::I32ToF32
        | C::U32ToF32
        | C::I64ToF32
        | C::U64ToF32
        | C::F64ToF32
        | C::F64ToHalf
        | C::HalfBitsToF32
        | C::Unorm8(_) => Ty::F32,
        C::I32ToF64 | C::U32ToF64 | C::I64ToF64 | C::U64ToF64 | C::F32ToF64 => Ty::F64,
        C::F32ToI64 | C::F32ToU64 | C::F64ToI64 | C::F64ToU64 | C::I32ToI64 | C::U32ToU64 => Ty::U64,
        C::WideIsNonZero | C::DoubleIsNonZero => Ty::Bool,
        C::F32ToI32
        | C::F32ToU32
        | C::F64ToI32
        | C::F64ToU32
        | C::I64ToI32
        | C::HighWord
        | C::SignExtend16
        | C::ZeroExtend16
        | C::F32ToHalfBits
        | C::ToUnorm8(_) => Ty::U32,
    }
}

/// Registers that some operation takes as a float: what is loaded into them becomes one at once.
fn float_uses(flat: &Flat) -> Vec<bool> {
    let mut floats = vec![false; flat.registers.len()];
    for i in &flat.instructions {
        let takes = match i.op {
            Op::Float(_) | Op::Double(_) => [true, false, false],
            Op::Float2(Float2::Ldexp) | Op::Double2(Float2::Ldexp) => [true, false, false],
            Op::Float2(_) | Op::FloatCompare(_) | Op::Double2(_) | Op::DoubleCompare(_) => [true, true, false],
            Op::Fma | Op::Fma64 => [true, true, true],
            Op::Subgroup(_, Number::F32 | Number::F16 | Number::F64) => [true, false, false],
            Op::Convert(
                Convert::F32ToI32
                | Convert::F32ToU32
                | Convert::F32ToI64
                | Convert::F32ToU64
                | Convert::F32ToF64
                | Convert::F32ToHalfBits
                | Convert::F64ToI32
                | Convert::F64ToU32
                | Convert::F64ToI64
                | Convert::F64ToU64
                | Convert::F64ToF32
                | Convert::F64ToHalf
                | Convert::DoubleIsNonZero,
            ) => [true, false, false],
            Op::Store if flat.accesses[i.x as usize].element == Element::Half => [false, true, false],
            _ => [false; 3],
        };
        for (register, takes) in [i.a, i.b, i.c].into_iter().zip(takes) {
            if takes {
                floats[register as usize] = true;
            }
        }
    }
    floats
}

/// Calls `f` with each source register of an instruction.
pub(super) fn sources(flat: &Flat, i: &Instr, mut f: impl FnMut(Register)) {
    let shape = i.op.shape(&flat.accesses, i.x);
    for (width, register) in [(shape.a, i.a), (shape.b, i.b), (shape.c, i.c)] {
        if width != Width::None {
            f(register);
        }
    }
    if shape.m && i.m != FULL {
        f(i.m);
    }
}

/// The register that an instruction writes.
pub(super) fn target(flat: &Flat, i: &Instr) -> Option<Register> {
    (i.op.shape(&flat.accesses, i.x).d != Width::None).then_some(i.d)
}

/// Returns whether the instruction's own target counts among what it reads.
pub(super) fn merges(flat: &Flat, i: &Instr) -> bool {
    i.op.shape(&flat.accesses, i.x).merges
}

/// Runs once for the chunk, and not in each lane.
pub(super) fn is_scalar(flat: &Flat, i: &Instr) -> bool {
    match target(flat, i) {
        Some(d) => i.form & D_UNIFORM != 0 || flat.registers[d as usize].class == Class::Uniform,
        None => matches!(i.op, Op::End),
    }
}

/// Reads and writes lanes in an order of its own: atomics and subgroups.
pub(super) fn is_special(op: Op) -> bool {
    matches!(op, Op::Atomic(..) | Op::CompareExchange(_) | Op::Subgroup(..) | Op::Gather(_) | Op::Ballot)
}

/// Sine, cosine or tangent in lanes: fast for most arguments, and repaired for the rest.
pub(super) fn is_trig(i: &Instr) -> bool {
    matches!(i.op, Op::Float(Float::Sin | Float::Cos | Float::Tan)) && i.form & A_UNIFORM == 0
}

/// A function of many operations and constants: more than one of them in one loop would not leave its constants in
/// registers, nor several rounds of the loop in flight.
pub(super) fn is_heavy(op: Op) -> bool {
    use Float as F;
    matches!(
        op,
        Op::Float(
            F::Exp
                | F::Exp2
                | F::Log
                | F::Log2
                | F::Sin
                | F::Cos
                | F::Tan
                | F::Asin
                | F::Acos
                | F::Atan
                | F::Sinh
                | F::Cosh
                | F::Tanh
                | F::Asinh
                | F::Acosh
                | F::Atanh,
        ) | Op::Float2(Float2::Pow | Float2::Atan2)
    )
}

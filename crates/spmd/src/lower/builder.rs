//! Collects instructions over virtual registers; `allocate` turns them into code. Knows nothing of naga. All of `lower` emits through it. An operation is
//! uniform if all its operands are. Constants are folded only for addresses and neutral operands, because naga has folded the rest. Registers that are base
//! + lane are remembered, so loads by them become contiguous.

use rustc_hash::FxHashMap;

use super::super::bytecode::{
    A_UNIFORM, Atomic, B_UNIFORM, C_UNIFORM, Compare, Convert, D_UNIFORM, FULL, Float, Float2, Input, Instr, Int, Int2,
    IntCompare, LINEAR, NONE, Number, Op, Rows, Strided,
};
use super::super::shape::Width;

/// A virtual register.
pub type Register = u32;

#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Vector,
    Uniform,
    Mask,
}

#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct RegisterInfo {
    pub class: Class,
    pub wide: bool,
    /// Written more than once: variables and masks.
    pub variable: bool,
}

/// One scalar, the same or different in each invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operand {
    Constant { bits: u64, wide: bool },
    Register(Register),
}

impl Operand {
    pub fn word(bits: u32) -> Self {
        Operand::Constant { bits: u64::from(bits), wide: false }
    }

    pub fn float(value: f32) -> Self {
        Self::word(value.to_bits())
    }

    pub fn wide(bits: u64) -> Self {
        Operand::Constant { bits, wide: true }
    }

    pub fn truth(value: bool) -> Self {
        Self::word(if value { u32::MAX } else { 0 })
    }

    pub fn constant(self) -> Option<u64> {
        match self {
            Operand::Constant { bits, .. } => Some(bits),
            Operand::Register(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(pub u32);

#[derive(Default)]
pub(crate) struct Builder {
    pub registers: Vec<RegisterInfo>,
    pub instructions: Vec<Instr>,
    /// Position of each label.
    pub labels: Vec<u32>,
    pub accesses: Vec<Strided>,
    pub rows: Vec<Rows>,
    pub table: Vec<u8>,
    /// Slots of private memory handed out.
    pub private_slots: u32,
    pub constants: FxHashMap<(u64, bool), Register>,
    /// The source's names of values, for readers of generated code.
    pub names: FxHashMap<Register, String>,
    /// Vector registers that are base + lane, the base being uniform.
    linear: FxHashMap<Register, Operand>,
}

impl Builder {
    /// Remembers the source's name of a value, unless it has one.
    pub fn name(&mut self, register: Register, name: &str, part: usize, parts: usize) {
        let name = if parts > 1 { format!("{name}_{part}") } else { name.to_owned() };
        self.names.entry(register).or_insert(name);
    }

    pub fn register(&mut self, class: Class, wide: bool) -> Register {
        self.registers.push(RegisterInfo { class, wide, variable: false });
        self.registers.len() as u32 - 1
    }

    pub fn variable(&mut self, class: Class, wide: bool) -> Register {
        self.registers.push(RegisterInfo { class, wide, variable: true });
        self.registers.len() as u32 - 1
    }

    pub fn label(&mut self) -> Label {
        self.labels.push(NONE);
        Label(self.labels.len() as u32 - 1)
    }

    pub fn place(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.instructions.len() as u32;
    }

    pub fn is_uniform(&self, operand: Operand) -> bool {
        match operand {
            Operand::Constant { .. } => true,
            Operand::Register(register) => self.registers[register as usize].class == Class::Uniform,
        }
    }

    pub fn is_wide(&self, operand: Operand) -> bool {
        match operand {
            Operand::Constant { wide, .. } => wide,
            Operand::Register(register) => self.registers[register as usize].wide,
        }
    }

    /// The register that holds the operand; constants get one of their own.
    pub fn hold(&mut self, operand: Operand) -> Register {
        match operand {
            Operand::Register(register) => register,
            Operand::Constant { bits, wide } => {
                if let Some(register) = self.constants.get(&(bits, wide)) {
                    return *register;
                }
                let register = self.register(Class::Uniform, wide);
                self.constants.insert((bits, wide), register);
                register
            }
        }
    }

    pub fn emit(&mut self, instruction: Instr) {
        self.instructions.push(instruction);
    }

    /// An instruction with nothing but an operation.
    pub fn bare(op: Op) -> Instr {
        Instr { op, form: 0, d: NONE, a: NONE, b: NONE, c: NONE, m: FULL, x: 0 }
    }

    /// The instruction with these sources, and their uniformity in its form.
    pub fn with(&mut self, op: Op, a: Option<Operand>, b: Option<Operand>, c: Option<Operand>) -> Instr {
        let mut i = Self::bare(op);
        for (source, field, bit) in [(a, 0, A_UNIFORM), (b, 1, B_UNIFORM), (c, 2, C_UNIFORM)] {
            let Some(operand) = source else { continue };
            if self.is_uniform(operand) {
                i.form |= bit;
            }
            let register = self.hold(operand);
            match field {
                0 => i.a = register,
                1 => i.b = register,
                _ => i.c = register,
            }
        }
        i
    }

    /// Gives the instruction a new target and emits it.
    fn append(&mut self, mut i: Instr, uniform: bool) -> Operand {
        let wide = i.op.shape(&self.accesses, i.x).d == Width::Wide;
        let d = self.register(if uniform { Class::Uniform } else { Class::Vector }, wide);
        if uniform {
            i.form |= D_UNIFORM;
        }
        i.d = d;
        self.emit(i);
        Operand::Register(d)
    }

    pub fn unary(&mut self, op: Op, a: Operand) -> Operand {
        let i = self.with(op, Some(a), None, None);
        let uniform = self.is_uniform(a);
        self.append(i, uniform)
    }

    pub fn binary(&mut self, op: Op, a: Operand, b: Operand) -> Operand {
        if let Some(folded) = self.fold(op, a, b) {
            return folded;
        }
        let i = self.with(op, Some(a), Some(b), None);
        let uniform = self.is_uniform(a) && self.is_uniform(b);
        let result = self.append(i, uniform);
        if !uniform {
            self.keep_linear(op, a, b, result);
        }
        result
    }

    /// Address arithmetic on constants, and neutral operands.
    fn fold(&self, op: Op, a: Operand, b: Operand) -> Option<Operand> {
        let (x, y) = (a.constant(), b.constant());
        match (op, x, y) {
            (Op::Int2(op), Some(x), Some(y)) => word_of(op, x as u32, y as u32).map(Operand::word),
            (Op::IntCompare(op), Some(x), Some(y)) => truth_of(op, x as u32, y as u32).map(Operand::truth),
            (Op::Int2(Int2::Add), Some(0), None) => Some(b),
            (Op::Int2(Int2::Add | Int2::Sub), None, Some(0)) => Some(a),
            (Op::Int2(Int2::Mul), Some(1), None) => Some(b),
            (Op::Int2(Int2::Mul), None, Some(1)) => Some(a),
            _ => None,
        }
    }

    /// Sums of a linear register and a uniform one are linear.
    fn keep_linear(&mut self, op: Op, a: Operand, b: Operand, result: Operand) {
        let base = match op {
            Op::Int2(Int2::Add) => match (self.linear_base(a), self.linear_base(b)) {
                (Some(base), None) if self.is_uniform(b) => Some((base, b)),
                (None, Some(base)) if self.is_uniform(a) => Some((base, a)),
                _ => None,
            },
            Op::Int2(Int2::Sub) => match self.linear_base(a) {
                Some(base) if self.is_uniform(b) => Some((base, b)),
                _ => None,
            },
            _ => None,
        };
        if let (Some((base, other)), Operand::Register(register)) = (base, result) {
            let base = self.binary(op, base, other);
            self.linear.insert(register, base);
        }
    }

    /// The uniform base of an operand that is base + lane.
    pub fn linear_base(&self, operand: Operand) -> Option<Operand> {
        match operand {
            Operand::Register(register) => self.linear.get(&register).copied(),
            Operand::Constant { .. } => None,
        }
    }

    /// base + lane.
    pub fn iota(&mut self, base: Operand) -> Operand {
        let i = self.with(Op::Iota, Some(base), None, None);
        let result = self.append(i, false);
        if let Operand::Register(register) = result {
            self.linear.insert(register, base);
        }
        result
    }

    pub fn input(&mut self, input: Input) -> Operand {
        self.append(Self::bare(Op::Input(input)), input.is_uniform())
    }

    /// Operations on three operands alike.
    pub fn ternary(&mut self, op: Op, operands: [Operand; 3]) -> Operand {
        let uniform = operands.iter().all(|operand| self.is_uniform(*operand));
        let [a, b, c] = if uniform { operands } else { operands.map(|operand| self.spread(operand)) };
        let i = self.with(op, Some(a), Some(b), Some(c));
        self.append(i, uniform)
    }

    pub fn select(&mut self, condition: Operand, accept: Operand, reject: Operand) -> Operand {
        if let Some(bits) = condition.constant() {
            return if bits == 0 { reject } else { accept };
        }
        let op = if self.is_wide(accept) { Op::Select64 } else { Op::Select };
        let uniform = self.is_uniform(condition) && self.is_uniform(accept) && self.is_uniform(reject);
        let condition = if uniform { condition } else { self.spread(condition) };
        let i = self.with(op, Some(accept), Some(reject), Some(condition));
        self.append(i, uniform)
    }

    /// The operand as a vector.
    pub fn spread(&mut self, operand: Operand) -> Operand {
        if !self.is_uniform(operand) {
            return operand;
        }
        let op = if self.is_wide(operand) { Op::Copy64 } else { Op::Copy };
        let i = self.with(op, Some(operand), None, None);
        self.append(i, false)
    }

    /// A copy that later stores into a variable do not touch. `allocate` drops it where none come in between.
    pub fn copy(&mut self, operand: Operand) -> Operand {
        let op = if self.is_wide(operand) { Op::Copy64 } else { Op::Copy };
        self.unary(op, operand)
    }

    /// `variable = value` in the lanes of `mask`.
    pub fn assign(&mut self, variable: Register, value: Operand, mask: u32) {
        let wide = self.registers[variable as usize].wide;
        let op = match (mask == FULL, wide) {
            (true, false) => Op::Copy,
            (true, true) => Op::Copy64,
            (false, false) => Op::Blend,
            (false, true) => Op::Blend64,
        };
        let mut i = self.with(op, Some(value), None, None);
        if self.registers[variable as usize].class == Class::Uniform {
            i.form |= D_UNIFORM;
        }
        i.d = variable;
        i.m = mask;
        self.emit(i);
    }

    pub fn jump(&mut self, op: Op, condition: Option<Operand>, mask: u32, label: Label) {
        let mut i = self.with(op, condition, None, None);
        i.m = mask;
        i.x = label.0;
        self.emit(i);
    }

    /// Writes a mask register.
    pub fn mask(&mut self, op: Op, d: Register, source: u32, condition: Option<Operand>) {
        let condition = condition.map(|condition| self.spread(condition));
        let mut i = self.with(op, condition, None, None);
        i.d = d;
        i.m = source;
        self.emit(i);
    }

    pub fn access(&mut self, access: Strided) -> u32 {
        if let Some(place) = self.accesses.iter().position(|known| *known == access) {
            return place as u32;
        }
        self.accesses.push(access);
        self.accesses.len() as u32 - 1
    }

    /// A memory instruction, its index in the linear form where it has one and the memory takes it.
    fn memory(&mut self, op: Op, access: Strided, index: Operand, b: Option<Operand>, c: Option<Operand>) -> Instr {
        let x = self.access(access);
        let linear = op.forms(&self.accesses, x).contains(&(A_UNIFORM | LINEAR));
        let mut i = match self.linear_base(index).filter(|_| linear) {
            Some(base) => {
                let mut i = self.with(op, Some(base), b, c);
                i.form |= LINEAR;
                i
            }
            None => self.with(op, Some(index), b, c),
        };
        i.x = x;
        i
    }

    pub fn load(&mut self, access: Strided, index: Operand) -> Operand {
        let i = self.memory(Op::Load, access, index, None, None);
        let uniform = i.op.forms(&self.accesses, i.x).contains(&(i.form | D_UNIFORM));
        self.append(i, uniform)
    }

    pub fn store(&mut self, access: Strided, index: Operand, value: Operand, mask: u32) {
        let mut i = self.memory(Op::Store, access, index, Some(value), None);
        i.m = mask;
        self.emit(i);
    }

    /// A store that other threads see whole.
    pub fn atomic_store(&mut self, number: Number, access: Strided, index: Operand, value: Operand, mask: u32) {
        let mut i = self.memory(Op::Atomic(Atomic::Store, number), access, index, Some(value), None);
        i.m = mask;
        self.emit(i);
    }

    pub fn atomic(
        &mut self,
        op: Op,
        access: Strided,
        index: Operand,
        value: Option<Operand>,
        compare: Option<Operand>,
        mask: u32,
    ) -> Operand {
        let mut i = self.memory(op, access, index, value, compare);
        i.m = mask;
        self.append(i, false)
    }

    pub fn length(&mut self, access: Strided) -> Operand {
        let x = self.access(access);
        let mut i = Self::bare(Op::Length);
        i.x = x;
        self.append(i, true)
    }

    /// Operations on whole subgroups: all operands are vectors.
    pub fn subgroup(&mut self, op: Op, a: Operand, b: Option<Operand>, mask: u32) -> Operand {
        let a = self.spread(a);
        let b = b.map(|b| self.spread(b));
        let mut i = self.with(op, Some(a), b, None);
        i.m = mask;
        self.append(i, false)
    }
}

/// Short names for the operations that the lowering composes others from.
impl Builder {
    pub fn add(&mut self, a: Operand, b: Operand) -> Operand {
        self.binary(Op::Int2(Int2::Add), a, b)
    }

    pub fn mul(&mut self, a: Operand, b: Operand) -> Operand {
        self.binary(Op::Int2(Int2::Mul), a, b)
    }

    pub fn and(&mut self, a: Operand, b: Operand) -> Operand {
        self.binary(Op::Int2(Int2::And), a, b)
    }

    pub fn or(&mut self, a: Operand, b: Operand) -> Operand {
        self.binary(Op::Int2(Int2::Or), a, b)
    }

    pub fn not(&mut self, a: Operand) -> Operand {
        self.unary(Op::Int(Int::Not), a)
    }

    pub fn int2(&mut self, op: Int2, a: Operand, b: Operand) -> Operand {
        self.binary(Op::Int2(op), a, b)
    }

    pub fn below(&mut self, a: Operand, b: Operand) -> Operand {
        self.binary(Op::IntCompare(IntCompare::LessUnsigned), a, b)
    }

    pub fn equal(&mut self, a: Operand, b: Operand) -> Operand {
        self.binary(Op::IntCompare(IntCompare::Equal), a, b)
    }

    pub fn float(&mut self, op: Float, a: Operand) -> Operand {
        self.unary(Op::Float(op), a)
    }

    pub fn float2(&mut self, op: Float2, a: Operand, b: Operand) -> Operand {
        self.binary(Op::Float2(op), a, b)
    }

    pub fn float_compare(&mut self, op: Compare, a: Operand, b: Operand) -> Operand {
        self.binary(Op::FloatCompare(op), a, b)
    }

    pub fn convert(&mut self, op: Convert, a: Operand) -> Operand {
        self.unary(Op::Convert(op), a)
    }
}

/// Operations on constants, as the counters of unrolled loops are; `None` for those that are left to the executor.
fn word_of(op: Int2, x: u32, y: u32) -> Option<u32> {
    Some(match op {
        Int2::Add => x.wrapping_add(y),
        Int2::Sub => x.wrapping_sub(y),
        Int2::Mul => x.wrapping_mul(y),
        Int2::And => x & y,
        Int2::Or => x | y,
        Int2::Xor => x ^ y,
        Int2::ShiftLeft if y < 32 => x << y,
        Int2::ShiftRightUnsigned if y < 32 => x >> y,
        Int2::DivUnsigned => return x.checked_div(y),
        Int2::RemUnsigned => return x.checked_rem(y),
        Int2::MinUnsigned => x.min(y),
        Int2::MaxUnsigned => x.max(y),
        _ => return None,
    })
}

fn truth_of(op: IntCompare, x: u32, y: u32) -> Option<bool> {
    Some(match op {
        IntCompare::Equal => x == y,
        IntCompare::NotEqual => x != y,
        IntCompare::LessUnsigned => x < y,
        IntCompare::LessEqualUnsigned => x <= y,
        IntCompare::LessSigned => (x as i32) < y as i32,
        IntCompare::LessEqualSigned => x as i32 <= y as i32,
    })
}

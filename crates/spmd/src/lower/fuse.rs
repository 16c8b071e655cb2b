//! Computes values once, and makes one instruction of several that often follow each other.
//!
//! Runs on virtual registers, for the executor only: compilers of generated code do both themselves. Results keep their bits.
//!
//! - **Values.** Within a block, an instruction that computes what another one has is dropped, and so is the load of a variable whose value is
//!   known. Blocks end at labels.
//! - **Texels.** The library of textures (`shaders/lib/texture.wgsl`) compares coordinates with a size, multiplies and adds up an index, loads, and
//!   selects zero outside; then it takes each channel from the word. A load of that shape is one instruction ([`Op::Texel`]), a channel of
//!   8 bits another ([`Convert::Unorm8`]), and so is a channel to be stored. The shape is what counts, not the name of a function.
//! - **Products** that are only added to something, or from which something is taken, are rounded there ([`Op::MulAdd`], [`Op::MulSub`]).

use rustc_hash::FxHashMap;

use super::super::bytecode::{
    A_UNIFORM, B_UNIFORM, BindingInfo, C_UNIFORM, Convert, Count, D_UNIFORM, Element, FULL, Float2, Instr, Int2,
    IntCompare, LINEAR, NONE, Op, Rows, Space,
};
use super::super::shape::Width;
use super::builder::{Builder, Class, Operand, Register};

/// Rewrites the builder's instructions, and returns which of them are to be dropped.
pub(crate) fn fuse(builder: &mut Builder, bindings: &[BindingInfo]) -> Vec<bool> {
    let mut fuse = Fuse::new(builder, bindings);
    fuse.compute_once();
    fuse.combine();
    fuse.dead
}

struct Fuse<'a> {
    builder: &'a mut Builder,
    bindings: &'a [BindingInfo],
    dead: Vec<bool>,
    /// Positions of labels.
    targets: Vec<bool>,
    /// The position of the only instruction that writes a register; [`NONE`] if there are none or several.
    origins: Vec<u32>,
    /// Registers that have one value: constants, and what one instruction computes.
    settled: Vec<bool>,
    constants: FxHashMap<Register, u64>,
    /// The first register with a register's value.
    same: Vec<Register>,
}

/// The value of an instruction: its operation, its operands, and how many stores came before, if those matter.
type Key = (Op, u8, [u32; 4], u32);

/// An element by its coordinates.
struct Place {
    /// In a linear load: of the first lane.
    x: Register,
    y: Register,
    width: Word,
    base: Word,
    words: u32,
    word: u32,
}

/// A word of a binding that is only read: its binding and offset.
type Word = (u32, u32);

impl<'a> Fuse<'a> {
    fn new(builder: &'a mut Builder, bindings: &'a [BindingInfo]) -> Self {
        let (length, registers) = (builder.instructions.len(), builder.registers.len());
        let mut targets = vec![false; length + 1];
        for position in &builder.labels {
            if let Some(target) = targets.get_mut(*position as usize) {
                *target = true;
            }
        }
        let (mut origins, mut counts) = (vec![NONE; registers], vec![0_u32; registers]);
        for (position, i) in builder.instructions.iter().enumerate() {
            if i.op.shape(&builder.accesses, i.x).d != Width::None {
                counts[i.d as usize] += 1;
                origins[i.d as usize] = if counts[i.d as usize] == 1 { position as u32 } else { NONE };
            }
        }
        let constants: FxHashMap<Register, u64> =
            builder.constants.iter().map(|((bits, _), register)| (*register, *bits)).collect();
        let is_settled = |register: usize| {
            let info = builder.registers[register];
            let is_constant = counts[register] == 0 && constants.contains_key(&(register as Register));
            info.class != Class::Mask && !info.variable && (counts[register] == 1 || is_constant)
        };
        let settled = (0..registers).map(is_settled).collect();
        let same = (0..registers as Register).collect();
        Fuse { dead: vec![false; length], builder, bindings, targets, origins, settled, constants, same }
    }

    fn is_settled(&self, register: Register) -> bool {
        self.settled.get(register as usize).is_some_and(|settled| *settled)
    }

    fn class(&self, register: Register) -> Class {
        self.builder.registers[register as usize].class
    }

    /// Returns whether a copy leaves the value as it is: neither spread over lanes, nor only for some of them.
    fn is_plain_copy(&self, i: &Instr) -> bool {
        matches!(i.op, Op::Copy | Op::Copy64) && i.m == FULL && self.class(i.d) == self.class(i.a)
    }

    fn compute_once(&mut self) {
        let mut known: FxHashMap<Key, Register> = FxHashMap::default();
        // Variables whose value a settled register has.
        let mut held: FxHashMap<Register, Register> = FxHashMap::default();
        let mut stores = 0_u32;
        for position in 0..self.builder.instructions.len() {
            if self.targets[position] {
                known.clear();
                held.clear();
            }
            let mut i = self.builder.instructions[position];
            let shape = i.op.shape(&self.builder.accesses, i.x);
            for (width, register) in [(shape.a, &mut i.a), (shape.b, &mut i.b), (shape.c, &mut i.c)] {
                if width != Width::None {
                    *register = self.same[*register as usize];
                }
            }
            self.builder.instructions[position] = i;
            if shape.effect && !shape.jumps || matches!(i.op, Op::Atomic(..)) {
                stores += 1;
            }
            if shape.d == Width::None {
                continue;
            }
            if !self.is_settled(i.d) {
                held.remove(&i.d);
                if self.is_plain_copy(&i) && self.is_settled(i.a) {
                    held.insert(i.d, i.a);
                }
                continue;
            }
            let first = if self.is_plain_copy(&i) {
                if self.is_settled(i.a) { i.a } else { *held.entry(i.a).or_insert(i.d) }
            } else {
                match self.key(&i, stores) {
                    Some(key) => *known.entry(key).or_insert(i.d),
                    None => i.d,
                }
            };
            if first != i.d {
                self.same[i.d as usize] = first;
                self.dead[position] = true;
            }
        }
    }

    /// `None` for what cannot be told from its operands.
    fn key(&self, i: &Instr, stores: u32) -> Option<Key> {
        let shape = i.op.shape(&self.builder.accesses, i.x);
        if shape.effect || shape.merges || shape.m || shape.jumps || shape.d == Width::Mask {
            return None;
        }
        let sources = [(shape.a, i.a), (shape.b, i.b), (shape.c, i.c)];
        if sources.iter().any(|(width, register)| *width != Width::None && !self.is_settled(*register)) {
            return None;
        }
        let is_constant = i.op != Op::Load
            || match self.builder.accesses.get(i.x as usize)?.space {
                Space::Binding(binding) => self.is_only_read(binding),
                Space::Table => true,
                Space::Workgroup | Space::Groups | Space::Private { .. } => false,
            };
        Some((i.op, i.form, [i.a, i.b, i.c, i.x], if is_constant { 0 } else { stores }))
    }

    fn is_only_read(&self, binding: u32) -> bool {
        self.bindings.get(binding as usize).is_some_and(|binding| !binding.writable)
    }

    fn combine(&mut self) {
        let mut uses = vec![0_u32; self.builder.registers.len()];
        for (i, dead) in self.builder.instructions.iter().zip(&self.dead) {
            let shape = i.op.shape(&self.builder.accesses, i.x);
            for (width, register) in [(shape.a, i.a), (shape.b, i.b), (shape.c, i.c)] {
                if !dead && width != Width::None {
                    uses[register as usize] += 1;
                }
            }
        }
        for position in 0..self.builder.instructions.len() {
            if self.dead[position] {
                continue;
            }
            let i = self.builder.instructions[position];
            let new = match i.op {
                Op::Float2(Float2::Add) => self.decoded(&i).or_else(|| self.mul_add(&i, &uses)),
                Op::Float2(Float2::Sub) => self.multiplied(Op::MulSub, i.a, i.b, &i, &uses),
                Op::Int2(Int2::ShiftLeft) => self.encoded(&i),
                Op::Select => self.texel(position, &i),
                _ => None,
            };
            if let Some(new) = new {
                self.builder.instructions[position] = new;
            }
        }
    }

    // The instructions that values come from.

    /// The instruction that computes a settled register.
    fn origin(&self, register: Register) -> Option<Instr> {
        let i = *self.builder.instructions.get(*self.origins.get(register as usize)? as usize)?;
        self.is_settled(register).then_some(i)
    }

    fn constant(&self, register: Register) -> Option<u32> {
        self.constants.get(&register).map(|bits| *bits as u32)
    }

    /// The operands of an operation on two.
    fn operands(&self, register: Register, op: Op) -> Option<(Register, Register)> {
        let i = self.origin(register)?;
        (i.op == op).then_some((i.a, i.b))
    }

    /// As [`Fuse::operands`], of an operation whose second operand is a constant; returns the first.
    fn by_constant(&self, register: Register, op: Op, constant: u32) -> Option<Register> {
        let (a, b) = self.operands(register, op)?;
        (self.constant(b) == Some(constant)).then_some(a)
    }

    /// An instruction on one operand, where operand and target are both in lanes or both not.
    fn unary(&self, op: Op, i: &Instr, a: Register) -> Option<Instr> {
        let form = if self.class(i.d) == Class::Uniform { A_UNIFORM | D_UNIFORM } else { 0 };
        let is_whole = self.class(a) == self.class(i.d) && self.is_settled(a);
        is_whole.then_some(Instr { op, form, a, b: NONE, c: NONE, ..*i })
    }

    // Channels.

    /// The word of which a register holds a byte, and the number of that byte.
    fn byte(&self, register: Register) -> Option<(Register, u8)> {
        let shift = |register: Register| {
            let (word, amount) = self.operands(register, Op::Int2(Int2::ShiftRightUnsigned))?;
            let byte = self.constant(amount).filter(|amount| matches!(amount, 8 | 16 | 24))? / 8;
            Some((word, byte as u8))
        };
        if let Some(part) = self.by_constant(register, Op::Int2(Int2::And), 0xff) {
            return Some(shift(part).unwrap_or((part, 0)));
        }
        shift(register).filter(|(_, byte)| *byte == 3)
    }

    /// `byte / 255`, as `byte / 256` and 1/255 of it.
    fn decoded(&self, i: &Instr) -> Option<Instr> {
        let multiply = Op::Float2(Float2::Mul);
        if self.by_constant(i.b, multiply, (1.0 / 255.0_f32).to_bits())? != i.a {
            return None;
        }
        let number = self.by_constant(i.a, multiply, (1.0 / 256.0_f32).to_bits())?;
        let convert = self.origin(number)?;
        if !matches!(convert.op, Op::Convert(Convert::I32ToF32 | Convert::U32ToF32)) {
            return None;
        }
        let (word, byte) = self.byte(convert.a)?;
        self.unary(Op::Convert(Convert::Unorm8(byte)), i, word)
    }

    /// `i32(clamp(value, 0, 1) * 255 + 0.5) << 8 * byte`.
    fn encoded(&self, i: &Instr) -> Option<Instr> {
        let byte = self.constant(i.b).filter(|amount| matches!(amount, 0 | 8 | 16 | 24))? / 8;
        let convert = self.origin(i.a).filter(|i| i.op == Op::Convert(Convert::F32ToI32))?;
        // Its product and sum are one instruction by now, unless the product has other uses.
        let scaled = self.origin(convert.a).filter(|i| i.op == Op::MulAdd)?;
        let is_scaled =
            (self.constant(scaled.b), self.constant(scaled.c)) == (Some(255.0_f32.to_bits()), Some(0.5_f32.to_bits()));
        let bounded = is_scaled.then_some(scaled.a)?;
        let raised = self.by_constant(bounded, Op::Float2(Float2::Min), 1.0_f32.to_bits())?;
        let value = self.by_constant(raised, Op::Float2(Float2::Max), 0)?;
        self.unary(Op::Convert(Convert::ToUnorm8(byte as u8)), i, value)
    }

    // Products.

    fn mul_add(&self, i: &Instr, uses: &[u32]) -> Option<Instr> {
        let sum = |product, addend| self.multiplied(Op::MulAdd, product, addend, i, uses);
        sum(i.b, i.a).or_else(|| sum(i.a, i.b))
    }

    /// An operation on the factors of a product that nothing else reads, and on what is added to it.
    fn multiplied(&self, op: Op, product: Register, addend: Register, i: &Instr, uses: &[u32]) -> Option<Instr> {
        let (mut a, mut b) = self.operands(product, Op::Float2(Float2::Mul))?;
        if self.class(a) == Class::Uniform {
            (a, b) = (b, a);
        }
        let is_only_added = uses[product as usize] == 1 && product != addend;
        let are_settled = [a, b, addend].iter().all(|&register| self.is_settled(register));
        if self.class(a) != Class::Vector || !is_only_added || !are_settled {
            return None;
        }
        let mut form = 0;
        for (register, bit) in [(b, B_UNIFORM), (addend, C_UNIFORM)] {
            if self.class(register) == Class::Uniform {
                form |= bit;
            }
        }
        Some(Instr { op, form, a, b, c: addend, ..*i })
    }

    // Texels.

    /// A load of what lies at two coordinates, if both are below the size, else zero.
    fn texel(&mut self, position: usize, i: &Instr) -> Option<Instr> {
        if self.constant(i.b) != Some(0) || i.form != B_UNIFORM {
            return None;
        }
        let load = self.origin(i.a).filter(|load| load.op == Op::Load)?;
        let access = *self.builder.accesses.get(load.x as usize)?;
        let Space::Binding(binding) = access.space else { return None };
        if access.element != Element::Word || access.stride != 4 || !matches!(access.count, Count::Runtime { .. }) {
            return None;
        }
        if !self.is_only_read(binding) && self.has_effects(self.origins[i.a as usize], position) {
            return None;
        }
        let place = self.place(load.a)?;
        let is_linear = match load.form {
            0 => false,
            form if form == A_UNIFORM | LINEAR => true,
            _ => return None,
        };
        let (first, second) = self.operands(i.c, Op::Int2(Int2::And))?;
        for (x_below, y_below) in [(first, second), (second, first)] {
            let below = Op::IntCompare(IntCompare::LessUnsigned);
            let (Some((x, width)), Some((y, height))) = (self.operands(x_below, below), self.operands(y_below, below))
            else {
                continue;
            };
            let Some(height) = self.word(height) else { continue };
            let is_x = if is_linear {
                let base = self.builder.linear_base(Operand::Register(x));
                matches!(base, Some(Operand::Register(base)) if self.same[base as usize] == place.x)
            } else {
                x == place.x
            };
            if !is_x || y != place.y || self.word(width) != Some(place.width) {
                continue;
            }
            let one_binding = height.0 == place.width.0 && place.base.0 == place.width.0;
            let form = match (is_linear, self.class(place.x), self.class(y)) {
                (true, Class::Uniform, Class::Uniform) => A_UNIFORM | B_UNIFORM | LINEAR,
                (false, Class::Vector, Class::Uniform) => B_UNIFORM,
                (false, Class::Vector, Class::Vector) => 0,
                _ => continue,
            };
            if !one_binding || !self.is_settled(place.x) || !self.is_settled(y) {
                continue;
            }
            let rows = Rows {
                access: load.x,
                sizes: place.width.0,
                width: place.width.1,
                height: height.1,
                base: place.base.1,
                words: place.words,
                word: place.word,
            };
            let known = self.builder.rows.iter().position(|known| *known == rows);
            let x = known.unwrap_or(self.builder.rows.len());
            if known.is_none() {
                self.builder.rows.push(rows);
            }
            return Some(Instr { op: Op::Texel, form, a: place.x, b: y, c: NONE, x: x as u32, ..*i });
        }
        None
    }

    /// Returns whether memory may change between two positions, or the first may be left out.
    fn has_effects(&self, from: u32, to: usize) -> bool {
        (from as usize..to).any(|position| {
            let i = &self.builder.instructions[position];
            let shape = i.op.shape(&self.builder.accesses, i.x);
            let is_label = position > from as usize && self.targets[position];
            is_label || shape.effect && !shape.jumps || matches!(i.op, Op::Atomic(..))
        }) || self.targets[to]
    }

    /// `base + (x + width * y) * words + word`, sums and products in any order.
    fn place(&self, index: Register) -> Option<Place> {
        let add = Op::Int2(Int2::Add);
        let (first, second) = self.operands(index, add)?;
        if let Some(word) = self.constant(second).filter(|word| *word < 4) {
            let place = self.place(first)?;
            return (place.word == 0).then_some(Place { word, ..place });
        }
        for (base, rest) in [(first, second), (second, first)] {
            let Some(base) = self.word(base) else { continue };
            let (at, words) = match self.operands(rest, Op::Int2(Int2::Mul)) {
                Some((at, factor)) => (at, self.constant(factor)?),
                None => (rest, 1),
            };
            let Some((first, second)) = self.operands(at, add) else { continue };
            for (x, row) in [(first, second), (second, first)] {
                let Some((a, b)) = self.operands(row, Op::Int2(Int2::Mul)) else { continue };
                for (width, y) in [(a, b), (b, a)] {
                    if let Some(width) = self.word(width) {
                        return Some(Place { x, y, width, base, words, word: 0 });
                    }
                }
            }
        }
        None
    }

    /// The place of a word that a uniform load takes from a binding that is only read.
    fn word(&self, register: Register) -> Option<Word> {
        let load = self.origin(register)?;
        if load.op != Op::Load || load.form != A_UNIFORM | D_UNIFORM {
            return None;
        }
        let access = self.builder.accesses.get(load.x as usize)?;
        let index = self.constant(load.a)?;
        let (Space::Binding(binding), Count::Fixed(count)) = (access.space, access.count) else { return None };
        let is_word = access.element == Element::Word && access.offset.is_multiple_of(4) && index < count;
        if !is_word || !self.is_only_read(binding) {
            return None;
        }
        let offset = access.offset.checked_add(access.stride.checked_mul(index)?)?;
        offset.is_multiple_of(4).then_some((binding, offset))
    }
}

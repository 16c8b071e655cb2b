//! The meaning of a program in plain Rust, one invocation at a time: a third opinion when two devices differ.

use super::program::{Array, Binary, Compare, Expression, Phase, Pick, Place, Program, Statement, Type, Unary};

/// The final contents of the bindings.
pub struct Finals {
    pub out: Vec<u32>,
    pub signed_out: Vec<i32>,
    pub counters: Vec<u32>,
}

/// Runs the whole dispatch.
pub fn run(program: &Program, input: &[u32], parameters: &[u32]) -> Finals {
    let size = program.workgroup_size;
    let mut finals = Finals { out: Vec::new(), signed_out: Vec::new(), counters: vec![0; 4] };
    for workgroup in 0..program.workgroups {
        let mut machines: Vec<Machine<'_>> = (0..size)
            .map(|lid| Machine {
                program,
                input,
                parameters,
                lid,
                gid: workgroup * size + lid,
                private: program.private_arrays.iter().map(|a| vec![0; a.len as usize]).collect(),
                frame: Frame::new(&program.arrays),
                counters: Vec::new(),
            })
            .collect();
        for m in &mut machines {
            for (variable, _, initial) in &program.variables {
                let value = m.value(initial);
                m.set(*variable, value);
            }
        }
        phases(&program.phases, &mut machines);
        for m in &machines {
            finals.out.extend(program.outputs.iter().map(|e| m.value(e)));
            finals.signed_out.extend(program.signed_outputs.iter().map(|e| m.value(e) as i32));
            for &(slot, value) in &m.counters {
                let counter = &mut finals.counters[slot as usize];
                *counter = match slot {
                    0 => counter.wrapping_add(value),
                    1 => *counter ^ value,
                    2 => (*counter).max(value),
                    _ => *counter | value,
                };
            }
        }
    }
    finals
}

fn phases(list: &[Phase], machines: &mut [Machine<'_>]) {
    let n = machines.len();
    for phase in list {
        match phase {
            Phase::Alone(statements) => {
                for m in machines.iter_mut() {
                    m.block(statements);
                }
            }
            Phase::Exchange { value, target, pick } => {
                let written: Vec<u32> = machines.iter().map(|m| m.value(value)).collect();
                for (i, m) in machines.iter_mut().enumerate() {
                    let from = match pick {
                        Pick::Rotate(by) => (i + *by as usize) % n,
                        Pick::Mirror => n - 1 - i,
                    };
                    m.set(*target, written[from]);
                }
            }
            Phase::Broadcast { leader, value, target } => {
                let told = machines[*leader as usize].value(value);
                machines.iter_mut().for_each(|m| m.set(*target, told));
            }
            Phase::Sum { value, target } => {
                let sum = machines.iter().fold(0_u32, |s, m| s.wrapping_add(m.value(value)));
                machines.iter_mut().for_each(|m| m.set(*target, sum));
            }
            Phase::Repeat { counter, bound, body } => {
                let mut k = 0;
                while k < machines[0].value(bound) & 3 {
                    machines.iter_mut().for_each(|m| m.set(*counter, k));
                    phases(body, machines);
                    k += 1;
                }
            }
            Phase::Choose { condition, then, otherwise } => {
                let chosen = if machines[0].value(condition) != 0 { then } else { otherwise };
                phases(chosen, machines);
            }
        }
    }
}

/// Variables and arrays of one call. Bools are 0 and 1.
struct Frame {
    variables: Vec<u32>,
    arrays: Vec<Vec<u32>>,
    pointed: u32,
}

impl Frame {
    fn new(arrays: &[Array]) -> Self {
        Self { variables: Vec::new(), arrays: arrays.iter().map(|a| vec![0; a.len as usize]).collect(), pointed: 0 }
    }
}

struct Machine<'a> {
    program: &'a Program,
    input: &'a [u32],
    parameters: &'a [u32],
    lid: u32,
    gid: u32,
    private: Vec<Vec<u32>>,
    frame: Frame,
    counters: Vec<(u32, u32)>,
}

enum Flow {
    Next,
    Break,
    Continue,
    Return(u32),
}

impl Machine<'_> {
    fn set(&mut self, variable: usize, value: u32) {
        if self.frame.variables.len() <= variable {
            self.frame.variables.resize(variable + 1, 0);
        }
        self.frame.variables[variable] = value;
    }

    fn load(&self, place: &Place) -> u32 {
        match place {
            Place::Variable(v) => self.frame.variables[*v],
            Place::Pointer => self.frame.pointed,
            Place::Element(array, index) => {
                let index = (self.value(index) % array.len) as usize;
                if array.private { self.private[array.number][index] } else { self.frame.arrays[array.number][index] }
            }
        }
    }

    fn store(&mut self, place: &Place, value: u32) {
        match place {
            Place::Variable(v) => self.set(*v, value),
            Place::Pointer => self.frame.pointed = value,
            Place::Element(array, index) => {
                let index = (self.value(index) % array.len) as usize;
                let arrays = if array.private { &mut self.private } else { &mut self.frame.arrays };
                arrays[array.number][index] = value;
            }
        }
    }

    fn block(&mut self, statements: &[Statement]) -> Flow {
        for statement in statements {
            match self.statement(statement) {
                Flow::Next => {}
                flow => return flow,
            }
        }
        Flow::Next
    }

    fn statement(&mut self, statement: &Statement) -> Flow {
        match statement {
            Statement::Declare { variable, initial, .. } => {
                let value = initial.as_ref().map_or(0, |e| self.value(e));
                self.set(*variable, value);
            }
            Statement::Assign(place, None, e) => {
                let value = self.value(e);
                self.store(place, value);
            }
            Statement::Assign(place, Some((op, ty)), e) => {
                let (old, right) = (self.load(place), self.value(e));
                self.store(place, binary(*op, *ty, old, right));
            }
            Statement::If(condition, then, otherwise) => {
                return if self.value(condition) != 0 { self.block(then) } else { self.block(otherwise) };
            }
            Statement::For { counter, bound, body } => {
                self.set(*counter, 0);
                while self.frame.variables[*counter] < self.value(bound) & 7 {
                    match self.block(body) {
                        Flow::Break => break,
                        Flow::Return(value) => return Flow::Return(value),
                        Flow::Next | Flow::Continue => {}
                    }
                    self.frame.variables[*counter] += 1;
                }
            }
            Statement::Loop { counter, limit, body, continuing, break_if } => {
                self.set(*counter, 0);
                while self.frame.variables[*counter] < *limit {
                    match self.block(body) {
                        Flow::Break => break,
                        Flow::Return(value) => return Flow::Return(value),
                        Flow::Next | Flow::Continue => {}
                    }
                    self.block(continuing);
                    self.frame.variables[*counter] += 1;
                    if break_if.as_ref().is_some_and(|e| self.value(e) != 0) {
                        break;
                    }
                }
            }
            Statement::Switch(_, selector, clauses) => {
                let value = self.value(selector);
                let hit = clauses.iter().find(|(selectors, _)| selectors.contains(&value));
                let clause = hit.or_else(|| clauses.iter().find(|(selectors, _)| selectors.is_empty()));
                if let Some((_, body)) = clause {
                    return match self.block(body) {
                        Flow::Break => Flow::Next,
                        flow => flow,
                    };
                }
            }
            Statement::Break => return Flow::Break,
            Statement::Continue => return Flow::Continue,
            Statement::Return(e) => return Flow::Return(e.as_ref().map_or(0, |e| self.value(e))),
            Statement::Call { target, function, arguments: [a, b], pointed } => {
                let arguments = vec![self.value(a), self.value(b)];
                let function = &self.program.functions[*function];
                let mut frame = Frame::new(&function.arrays);
                frame.variables = arguments;
                frame.pointed = self.frame.variables[*pointed];
                let caller = std::mem::replace(&mut self.frame, frame);
                let flow = self.block(&function.body);
                let callee = std::mem::replace(&mut self.frame, caller);
                self.set(*pointed, callee.pointed);
                self.store(target, if let Flow::Return(value) = flow { value } else { 0 });
            }
            Statement::Atomic(slot, e) => {
                let value = self.value(e);
                self.counters.push((*slot, value));
            }
        }
        Flow::Next
    }

    fn value(&self, e: &Expression) -> u32 {
        match e {
            Expression::Literal(_, bits) => *bits,
            Expression::Load(place) => self.load(place),
            Expression::Input(index) => self.input[self.value(index) as usize % self.input.len()],
            Expression::Parameter(k) => self.parameters[*k as usize],
            Expression::GlobalIndex => self.gid,
            Expression::LocalIndex => self.lid,
            Expression::Unary(op, ty, a) => unary(*op, *ty, self.value(a)),
            Expression::Binary(op, ty, a, b) => binary(*op, *ty, self.value(a), self.value(b)),
            Expression::Compare(op, ty, a, b) => compare(*op, *ty, self.value(a), self.value(b)),
            Expression::And(a, b) => u32::from(self.value(a) != 0 && self.value(b) != 0),
            Expression::Or(a, b) => u32::from(self.value(a) != 0 || self.value(b) != 0),
            Expression::Not(a) => u32::from(self.value(a) == 0),
            Expression::Select(a, b, c) => self.value(if self.value(c) != 0 { b } else { a }),
            Expression::Convert(to, a) => {
                let value = self.value(a);
                if *to == Type::Bool { u32::from(value != 0) } else { value }
            }
            Expression::ExtractBits(ty, a, b, c) => {
                let offset = self.value(b).min(32);
                let count = self.value(c).min(32 - offset);
                if count == 0 {
                    return 0;
                }
                let up = self.value(a) << (32 - offset - count);
                if *ty == Type::I32 { (up as i32 >> (32 - count)) as u32 } else { up >> (32 - count) }
            }
            Expression::Clamp(ty, a, b, c) => {
                let (a, b, c) = (self.value(a), self.value(b), self.value(c));
                if *ty == Type::I32 { (a as i32).max(b as i32).min(c as i32) as u32 } else { a.max(b).min(c) }
            }
        }
    }
}

fn unary(op: Unary, ty: Type, a: u32) -> u32 {
    match op {
        Unary::Negate => a.wrapping_neg(),
        Unary::Complement => !a,
        Unary::Abs => {
            if ty == Type::I32 {
                (a as i32).wrapping_abs() as u32
            } else {
                a
            }
        }
        Unary::Sign => (a as i32).signum() as u32,
        Unary::CountOneBits => a.count_ones(),
        Unary::CountLeadingZeros => a.leading_zeros(),
        Unary::CountTrailingZeros => a.trailing_zeros(),
        Unary::ReverseBits => a.reverse_bits(),
        Unary::FirstLeadingBit => {
            let a = if ty == Type::I32 && (a as i32) < 0 { !a } else { a };
            if a == 0 { u32::MAX } else { 31 - a.leading_zeros() }
        }
        Unary::FirstTrailingBit => {
            if a == 0 {
                u32::MAX
            } else {
                a.trailing_zeros()
            }
        }
    }
}

fn binary(op: Binary, ty: Type, a: u32, b: u32) -> u32 {
    let (sa, sb) = (a as i32, b as i32);
    let signed = ty == Type::I32;
    match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::Div => {
            if signed {
                div_i32(sa, sb) as u32
            } else {
                div_u32(a, b)
            }
        }
        Binary::Rem => {
            if signed {
                rem_i32(sa, sb) as u32
            } else {
                rem_u32(a, b)
            }
        }
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::Shl => a.wrapping_shl(b),
        Binary::Shr => {
            if signed {
                sa.wrapping_shr(b) as u32
            } else {
                a.wrapping_shr(b)
            }
        }
        Binary::Min => {
            if signed {
                sa.min(sb) as u32
            } else {
                a.min(b)
            }
        }
        Binary::Max => {
            if signed {
                sa.max(sb) as u32
            } else {
                a.max(b)
            }
        }
    }
}

fn compare(op: Compare, ty: Type, a: u32, b: u32) -> u32 {
    // Flipping the sign bit turns the signed order into the unsigned one.
    let flip = if ty == Type::I32 { 0x8000_0000 } else { 0 };
    let (a, b) = (a ^ flip, b ^ flip);
    u32::from(match op {
        Compare::Less => a < b,
        Compare::LessEqual => a <= b,
        Compare::Greater => a > b,
        Compare::GreaterEqual => a >= b,
        Compare::Equal => a == b,
        Compare::NotEqual => a != b,
    })
}

/// WGSL: x / 0 = x, MIN / -1 = MIN.
fn div_i32(a: i32, b: i32) -> i32 {
    if b == 0 { a } else { a.wrapping_div(b) }
}

/// WGSL: x % 0 = 0, MIN % -1 = 0.
fn rem_i32(a: i32, b: i32) -> i32 {
    if b == 0 { 0 } else { a.wrapping_rem(b) }
}

fn div_u32(a: u32, b: u32) -> u32 {
    a.checked_div(b).unwrap_or(a)
}

fn rem_u32(a: u32, b: u32) -> u32 {
    a.checked_rem(b).unwrap_or(0)
}

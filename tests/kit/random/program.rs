//! A random program as a tree, and its WGSL. Every program is well defined: loops are bounded, indices are masked,
//! nothing races, and barriers are where all invocations of a workgroup pass.

use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    I32,
    U32,
    Bool,
}

impl Type {
    pub fn name(self) -> &'static str {
        match self {
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::Bool => "bool",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Min,
    Max,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Negate,
    Complement,
    Abs,
    Sign,
    CountOneBits,
    CountLeadingZeros,
    CountTrailingZeros,
    ReverseBits,
    FirstLeadingBit,
    FirstTrailingBit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}

/// An array of a power of two elements (the index is masked) or not (it is divided).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    pub number: usize,
    pub len: u32,
    pub element: Type,
    /// Module-scope (`var<private>`) or of the function.
    pub private: bool,
}

#[derive(Clone, Debug)]
pub enum Place {
    Variable(usize),
    /// The function's pointer parameter.
    Pointer,
    Element(Array, Box<Expression>),
}

/// Only the leaf `Literal` is constant, and it is never used where a constant could be an error in WGSL.
#[derive(Clone, Debug)]
pub enum Expression {
    Literal(Type, u32),
    Load(Place),
    /// An element of the read-only input.
    Input(Box<Expression>),
    /// A component of the uniform parameters.
    Parameter(u32),
    GlobalIndex,
    LocalIndex,
    Unary(Unary, Type, Box<Expression>),
    Binary(Binary, Type, Box<Expression>, Box<Expression>),
    Compare(Compare, Type, Box<Expression>, Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Not(Box<Expression>),
    Select(Box<Expression>, Box<Expression>, Box<Expression>),
    /// A conversion to the given type.
    Convert(Type, Box<Expression>),
    /// value, offset, count
    ExtractBits(Type, Box<Expression>, Box<Expression>, Box<Expression>),
    /// value, low, high: `min(max(value, low), high)`
    Clamp(Type, Box<Expression>, Box<Expression>, Box<Expression>),
}

#[derive(Clone, Debug)]
pub enum Statement {
    Declare {
        variable: usize,
        ty: Type,
        initial: Option<Expression>,
    },
    Assign(Place, Option<(Binary, Type)>, Expression),
    If(Expression, Vec<Statement>, Vec<Statement>),
    /// A counter from 0 while below `bound & 7`.
    For {
        counter: usize,
        bound: Expression,
        body: Vec<Statement>,
    },
    /// A counter from 0 while below `limit`, counted up in `continuing`.
    Loop {
        counter: usize,
        limit: u32,
        body: Vec<Statement>,
        continuing: Vec<Statement>,
        break_if: Option<Expression>,
    },
    /// Selectors and body of each clause; the one without selectors is the default.
    Switch(Type, Expression, Vec<(Vec<u32>, Vec<Statement>)>),
    Break,
    Continue,
    Return(Option<Expression>),
    /// target = function(arguments, &pointed)
    Call {
        target: Place,
        function: usize,
        arguments: [Expression; 2],
        pointed: usize,
    },
    /// An atomic on a counter whose operation is always the same, with the old value left alone.
    Atomic(u32, Expression),
}

/// A step that all invocations of a workgroup take together.
#[derive(Clone, Debug)]
pub enum Phase {
    Alone(Vec<Statement>),
    /// Each writes `value`, and after a barrier reads what another one wrote.
    Exchange {
        value: Expression,
        target: usize,
        pick: Pick,
    },
    /// One invocation's value becomes everyone's.
    Broadcast {
        leader: u32,
        value: Expression,
        target: usize,
    },
    /// Sum over the workgroup by halves.
    Sum {
        value: Expression,
        target: usize,
    },
    Repeat {
        counter: usize,
        bound: Expression,
        body: Vec<Phase>,
    },
    Choose {
        condition: Expression,
        then: Vec<Phase>,
        otherwise: Vec<Phase>,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum Pick {
    Rotate(u32),
    Mirror,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub arrays: Vec<Array>,
    /// Ends in a return.
    pub body: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub seed: u64,
    pub workgroup_size: u32,
    pub workgroups: u32,
    pub private_arrays: Vec<Array>,
    pub functions: Vec<Function>,
    /// Arrays of the entry point.
    pub arrays: Vec<Array>,
    /// Variables of the entry point, declared first.
    pub variables: Vec<(usize, Type, Expression)>,
    pub phases: Vec<Phase>,
    pub outputs: Vec<Expression>,
    pub signed_outputs: Vec<Expression>,
}

/// Operation of each atomic counter.
pub const ATOMICS: [&str; 4] = ["Add", "Xor", "Max", "Or"];
pub const INPUTS: u32 = 64;

/// Every function is `fn(a0: i32, a1: u32, p: ptr<function, i32>) -> u32`; its parameters are variables 0 and 1.
pub const PARAMETERS: [Type; 2] = [Type::I32, Type::U32];

impl Program {
    pub fn wgsl(&self) -> String {
        let mut text = String::new();
        let size = self.workgroup_size;
        let _ = writeln!(text, "var<workgroup> exchange: array<u32, {size}>;\nvar<workgroup> told: u32;");
        for array in &self.private_arrays {
            let _ = writeln!(text, "var<private> g{}: array<{}, {}>;", array.number, array.element.name(), array.len);
        }
        for (number, function) in self.functions.iter().enumerate() {
            let _ = writeln!(
                text,
                "fn f{number}(a0: i32, a1: u32, p: ptr<function, i32>) -> u32 {{\n    var v0 = a0;\n    var v1 = a1;"
            );
            let mut writer = Writer { text: &mut text, depth: 1 };
            writer.arrays(&function.arrays);
            writer.block(&function.body);
            text.push_str("}\n");
        }
        let _ = writeln!(
            text,
            "@compute @workgroup_size({size})\nfn main(@builtin(local_invocation_index) lid: u32, @builtin(global_invocation_id) gid: vec3u) {{"
        );
        let mut writer = Writer { text: &mut text, depth: 1 };
        writer.arrays(&self.arrays);
        for (variable, ty, initial) in &self.variables {
            writer.line(&format!("var v{variable}: {} = {};", ty.name(), expression(initial)));
        }
        writer.phases(&self.phases, size);
        for (i, output) in self.outputs.iter().enumerate() {
            writer.line(&format!("out[gid.x * {}u + {i}u] = {};", self.outputs.len(), expression(output)));
        }
        for (i, output) in self.signed_outputs.iter().enumerate() {
            writer.line(&format!(
                "signed_out[gid.x * {}u + {i}u] = {};",
                self.signed_outputs.len(),
                expression(output)
            ));
        }
        text.push_str("}\n");
        text
    }
}

struct Writer<'a> {
    text: &'a mut String,
    depth: usize,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", self.depth * 4);
    }

    fn arrays(&mut self, arrays: &[Array]) {
        for array in arrays {
            self.line(&format!("var t{}: array<{}, {}>;", array.number, array.element.name(), array.len));
        }
    }

    fn nested(&mut self, open: &str, statements: &[Statement]) {
        self.line(open);
        self.depth += 1;
        self.block(statements);
        self.depth -= 1;
    }

    fn block(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|s| self.statement(s));
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Declare { variable, ty, initial: None } => {
                self.line(&format!("var v{variable}: {};", ty.name()))
            }
            Statement::Declare { variable, ty, initial: Some(e) } => {
                self.line(&format!("var v{variable}: {} = {};", ty.name(), expression(e)));
            }
            Statement::Assign(place, None, e) => self.line(&format!("{} = {};", place_text(place), expression(e))),
            Statement::Assign(place, Some((op, _)), e) => {
                self.line(&format!("{} {}= {};", place_text(place), operator(*op), expression(e)));
            }
            Statement::If(condition, then, otherwise) => {
                self.nested(&format!("if {} {{", expression(condition)), then);
                if !otherwise.is_empty() {
                    self.nested("} else {", otherwise);
                }
                self.line("}");
            }
            Statement::For { counter, bound, body } => {
                let head =
                    format!("for (var v{counter} = 0u; v{counter} < ({} & 7u); v{counter}++) {{", expression(bound));
                self.nested(&head, body);
                self.line("}");
            }
            Statement::Loop { counter, limit, body, continuing, break_if } => {
                self.line(&format!("var v{counter} = 0u;"));
                self.line("loop {");
                self.depth += 1;
                self.line(&format!("if v{counter} >= {limit}u {{ break; }}"));
                self.block(body);
                self.nested("continuing {", continuing);
                self.depth += 1;
                self.line(&format!("v{counter}++;"));
                if let Some(condition) = break_if {
                    self.line(&format!("break if {};", expression(condition)));
                }
                self.depth -= 1;
                self.line("}");
                self.depth -= 1;
                self.line("}");
            }
            Statement::Switch(ty, selector, clauses) => {
                self.line(&format!("switch {} {{", expression(selector)));
                self.depth += 1;
                for (selectors, body) in clauses {
                    let list: Vec<String> = selectors.iter().map(|s| literal(*ty, *s)).collect();
                    let head =
                        if list.is_empty() { "default: {".to_owned() } else { format!("case {}: {{", list.join(", ")) };
                    self.nested(&head, body);
                    self.line("}");
                }
                self.depth -= 1;
                self.line("}");
            }
            Statement::Break => self.line("break;"),
            Statement::Continue => self.line("continue;"),
            Statement::Return(None) => self.line("return;"),
            Statement::Return(Some(e)) => self.line(&format!("return {};", expression(e))),
            Statement::Call { target, function, arguments: [a, b], pointed } => self.line(&format!(
                "{} = f{function}({}, {}, &v{pointed});",
                place_text(target),
                expression(a),
                expression(b)
            )),
            Statement::Atomic(slot, e) => {
                self.line(&format!("atomic{}(&counters[{slot}], {});", ATOMICS[*slot as usize], expression(e)));
            }
        }
    }

    fn phases(&mut self, phases: &[Phase], size: u32) {
        for phase in phases {
            match phase {
                Phase::Alone(statements) => {
                    self.nested("{", statements);
                    self.line("}");
                }
                Phase::Exchange { value, target, pick } => {
                    let from = match pick {
                        Pick::Rotate(by) => format!("(lid + {by}u) % {size}u"),
                        Pick::Mirror => format!("{}u - lid", size - 1),
                    };
                    self.line(&format!("exchange[lid] = {};", expression(value)));
                    self.line("workgroupBarrier();");
                    self.line(&format!("v{target} = exchange[{from}];"));
                    self.line("workgroupBarrier();");
                }
                Phase::Broadcast { leader, value, target } => {
                    self.line(&format!("if lid == {leader}u {{ told = {}; }}", expression(value)));
                    self.line(&format!("v{target} = workgroupUniformLoad(&told);"));
                }
                Phase::Sum { value, target } => {
                    let half = size.next_power_of_two() / 2;
                    self.line(&format!("exchange[lid] = {};", expression(value)));
                    self.line("workgroupBarrier();");
                    self.line(&format!("for (var s = {half}u; s > 0u; s >>= 1u) {{"));
                    self.line(&format!(
                        "    if lid < s && lid + s < {size}u {{ exchange[lid] += exchange[lid + s]; }}"
                    ));
                    self.line("    workgroupBarrier();");
                    self.line("}");
                    self.line(&format!("v{target} = exchange[0];"));
                    self.line("workgroupBarrier();");
                }
                Phase::Repeat { counter, bound, body } => {
                    let bound = expression(bound);
                    self.line(&format!("for (var v{counter} = 0u; v{counter} < ({bound} & 3u); v{counter}++) {{"));
                    self.depth += 1;
                    self.phases(body, size);
                    self.depth -= 1;
                    self.line("}");
                }
                Phase::Choose { condition, then, otherwise } => {
                    self.line(&format!("if {} {{", expression(condition)));
                    self.depth += 1;
                    self.phases(then, size);
                    self.depth -= 1;
                    self.line("} else {");
                    self.depth += 1;
                    self.phases(otherwise, size);
                    self.depth -= 1;
                    self.line("}");
                }
            }
        }
    }
}

pub fn literal(ty: Type, bits: u32) -> String {
    match ty {
        Type::Bool => (bits != 0).to_string(),
        Type::U32 => format!("{bits}u"),
        // -2147483648i would be the negation of a number that i32 does not have.
        Type::I32 if bits == 0x8000_0000 => "(-2147483647i - 1i)".to_owned(),
        Type::I32 if (bits as i32) < 0 => format!("({}i)", bits as i32),
        Type::I32 => format!("{}i", bits as i32),
    }
}

pub fn place_text(place: &Place) -> String {
    match place {
        Place::Variable(v) => format!("v{v}"),
        Place::Pointer => "(*p)".to_owned(),
        Place::Element(array, index) => {
            let letter = if array.private { 'g' } else { 't' };
            let index = expression(index);
            if array.len.is_power_of_two() {
                format!("{letter}{}[{index} & {}u]", array.number, array.len - 1)
            } else {
                format!("{letter}{}[{index} % {}u]", array.number, array.len)
            }
        }
    }
}

fn operator(op: Binary) -> &'static str {
    match op {
        Binary::Add => "+",
        Binary::Sub => "-",
        Binary::Mul => "*",
        Binary::Div => "/",
        Binary::Rem => "%",
        Binary::And => "&",
        Binary::Or => "|",
        Binary::Xor => "^",
        Binary::Shl => "<<",
        Binary::Shr => ">>",
        Binary::Min => "min",
        Binary::Max => "max",
    }
}

pub fn expression(e: &Expression) -> String {
    match e {
        Expression::Literal(ty, bits) => literal(*ty, *bits),
        Expression::Load(place) => place_text(place),
        Expression::Input(index) => format!("input[{} & {}u]", expression(index), INPUTS - 1),
        Expression::Parameter(k) => format!("parameters.{}", ["x", "y", "z", "w"][*k as usize]),
        Expression::GlobalIndex => "gid.x".to_owned(),
        Expression::LocalIndex => "lid".to_owned(),
        Expression::Unary(op, _, a) => {
            let a = expression(a);
            match op {
                Unary::Negate => format!("(-({a}))"),
                Unary::Complement => format!("(~{a})"),
                Unary::Abs => format!("abs({a})"),
                Unary::Sign => format!("sign({a})"),
                Unary::CountOneBits => format!("countOneBits({a})"),
                Unary::CountLeadingZeros => format!("countLeadingZeros({a})"),
                Unary::CountTrailingZeros => format!("countTrailingZeros({a})"),
                Unary::ReverseBits => format!("reverseBits({a})"),
                Unary::FirstLeadingBit => format!("firstLeadingBit({a})"),
                Unary::FirstTrailingBit => format!("firstTrailingBit({a})"),
            }
        }
        Expression::Binary(op, _, a, b) => {
            let (a, b) = (expression(a), expression(b));
            match op {
                Binary::Min | Binary::Max => format!("{}({a}, {b})", operator(*op)),
                _ => format!("({a} {} {b})", operator(*op)),
            }
        }
        Expression::Compare(op, _, a, b) => {
            let op = match op {
                Compare::Less => "<",
                Compare::LessEqual => "<=",
                Compare::Greater => ">",
                Compare::GreaterEqual => ">=",
                Compare::Equal => "==",
                Compare::NotEqual => "!=",
            };
            format!("({} {op} {})", expression(a), expression(b))
        }
        Expression::And(a, b) => format!("({} && {})", expression(a), expression(b)),
        Expression::Or(a, b) => format!("({} || {})", expression(a), expression(b)),
        Expression::Not(a) => format!("(!{})", expression(a)),
        Expression::Select(a, b, c) => format!("select({}, {}, {})", expression(a), expression(b), expression(c)),
        Expression::Convert(to, a) => format!("{}({})", to.name(), expression(a)),
        Expression::ExtractBits(_, a, b, c) => {
            format!("extractBits({}, {}, {})", expression(a), expression(b), expression(c))
        }
        Expression::Clamp(_, a, b, c) => format!("clamp({}, {}, {})", expression(a), expression(b), expression(c)),
    }
}

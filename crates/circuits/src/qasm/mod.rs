//! OpenQASM 2 and 3, read into circuits. Statements run as they are read, over a flat table of words: a loop reads its body again for each value, a gate's
//! call its definition. There is no tree, so no depth of one to exhaust; nesting, steps and sizes have bounds.
//!
//! Not taken, each with an error that names it and its line: `def` and `extern`, timing (`delay`, `box`, `duration`, `stretch`), pulses (`cal`, `defcal`),
//! `switch`, `complex`, `array`, loops and assignments that depend on measurements, files to include other than the standard libraries.

mod call;
mod expression;
mod operand;
mod statement;
mod token;

use std::collections::HashMap;
use std::ops::Range;

use cantus::error::LimitError;
use cantus::{Error, Result};

use crate::angle::Angle;
use crate::circuit::Circuit;
use crate::condition::Condition;
use token::{Kind, Token};

/// The most statements, calls and expressions that a program runs.
const MOST_STEPS: usize = 1 << 24;
/// The deepest nesting of blocks, calls, and parts of an expression.
const MOST_DEPTH: usize = 100;
/// The most names.
const MOST_NAMES: usize = 1 << 20;

/// The value of an expression.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Integer(i64),
    Float(f64),
    Bool(bool),
    /// A value that depends on parameters.
    Angle(Angle),
    /// A value that depends on classical bits.
    Condition(Condition),
}

/// The meaning of a name.
#[derive(Debug, Clone)]
enum Meaning {
    Qubits(Vec<usize>),
    Bits(Range<usize>),
    /// A value, and whether it may change.
    Value(Value, bool),
    Gate(usize),
}

/// A gate that the program defines: its parameters' and qubits' names, and where its body begins among the words.
#[derive(Debug, Clone)]
struct Definition {
    parameters: Vec<String>,
    qubits: Vec<String>,
    body: usize,
    /// The words of which library: 0 for the program's own.
    source: usize,
}

/// A text and its words.
struct Source<'a> {
    text: &'a str,
    tokens: Vec<Token>,
}

struct Parser<'a> {
    sources: Vec<Source<'a>>,
    /// Which source, and which word is next.
    source: usize,
    at: usize,
    circuit: Circuit,
    scopes: Vec<HashMap<String, Meaning>>,
    definitions: Vec<Definition>,
    names: usize,
    steps: usize,
    depth: usize,
    /// True where statements are only read, for their syntax: what a condition leaves out, and gates before they are called.
    idle: bool,
    /// Branches on measurements that enclose the statement.
    branches: usize,
    /// Gates' bodies that enclose it, and their controls.
    bodies: usize,
    controls: Vec<(bool, usize)>,
    /// The word at which the program's own statement began.
    origin: usize,
    version: u32,
}

/// The words of version 3 that are no names.
const KEYWORDS: [&str; 55] = [
    "OPENQASM",
    "include",
    "defcalgrammar",
    "def",
    "cal",
    "defcal",
    "gate",
    "extern",
    "box",
    "let",
    "break",
    "continue",
    "if",
    "else",
    "end",
    "return",
    "for",
    "while",
    "in",
    "switch",
    "case",
    "default",
    "pragma",
    "input",
    "output",
    "const",
    "readonly",
    "mutable",
    "qreg",
    "qubit",
    "creg",
    "bool",
    "bit",
    "int",
    "uint",
    "float",
    "angle",
    "complex",
    "array",
    "void",
    "duration",
    "stretch",
    "gphase",
    "inv",
    "pow",
    "ctrl",
    "negctrl",
    "durationof",
    "delay",
    "reset",
    "measure",
    "barrier",
    "true",
    "false",
    "nop",
];

/// The composed gates of Qiskit's library.
const LIBRARY: &str = "
gate rccx a, b, c { u2(0, pi) c; p(pi/4) c; cx b, c; p(-pi/4) c; cx a, c; p(pi/4) c; cx b, c; p(-pi/4) c; u2(0, pi) c; }
gate rc3x a, b, c, d {
    u2(0, pi) d; p(pi/4) d; cx c, d; p(-pi/4) d; u2(0, pi) d; cx a, d; p(pi/4) d; cx b, d; p(-pi/4) d; cx a, d; p(pi/4) d; cx b, d;
    p(-pi/4) d; u2(0, pi) d; p(pi/4) d; cx c, d; p(-pi/4) d; u2(0, pi) d;
}
";

impl Circuit {
    /// Reads an OpenQASM 2 or 3 program. Its inputs of the types float and angle become parameters.
    ///
    /// ```
    /// let circuit = cantus_circuits::Circuit::from_qasm("
    ///     OPENQASM 3;
    ///     include \"stdgates.inc\";
    ///     input float theta;
    ///     qubit[2] q;
    ///     bit[2] c;
    ///     h q[0];
    ///     ctrl @ ry(2 * theta) q[0], q[1];
    ///     c = measure q;
    /// ")?;
    /// assert_eq!((circuit.qubits(), circuit.gates(), circuit.parameters().len()), (2, 2, 1));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// Not taken are `def` and `extern`, timing (`delay`, `box`, `duration`, `stretch`), pulses (`cal`, `defcal`), `switch`, `complex`, `array`, loops and
    /// assignments that depend on measurements, measurements whose outcome is not kept, and files to include other than the standard libraries.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] with the line: for text that is not OpenQASM, constructs that are not taken, and programs above the limits of qubits, bits, instructions and
    /// steps.
    pub fn from_qasm(text: &str) -> Result<Self> {
        Self::from_named_qasm("OpenQASM", text)
    }

    /// [`Circuit::from_qasm`] with a name for errors, such as the file's.
    ///
    /// # Errors
    /// As [`Circuit::from_qasm`].
    pub fn from_named_qasm(name: &str, text: &str) -> Result<Self> {
        let read = |text| match token::tokens(text) {
            Ok(tokens) => Ok(Source { text, tokens }),
            Err(fault) => Err(error(name, text, fault.at, &fault.reason)),
        };
        let mut parser = Parser {
            sources: vec![read(text)?, read(LIBRARY)?],
            source: 1,
            at: 0,
            circuit: Self::default(),
            scopes: vec![HashMap::new()],
            definitions: Vec::new(),
            names: 0,
            steps: 0,
            depth: 0,
            idle: false,
            branches: 0,
            bodies: 0,
            controls: Vec::new(),
            origin: 0,
            version: 3,
        };
        let result = parser.program();
        let Parser { circuit, sources, source, at, origin, .. } = parser;
        result.map(|()| circuit).map_err(|reason| {
            // In a library only what the program gives it can be wrong.
            let word = if source == 0 { at.saturating_sub(1) } else { origin };
            let place = sources.first().and_then(|own| own.tokens.get(word));
            error(name, text, place.map_or(0, |token| token.start as usize), &reason)
        })
    }
}

fn error(name: &str, text: &str, at: usize, reason: &str) -> Error {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let shown = text.lines().nth(line - 1).unwrap_or("").trim();
    let shown: String = shown.chars().take(80).collect();
    Error::file(format!("{name}, line {line}"), format!("{reason}\n  {shown}"))
}

/// A reason without its place, which is that of the last word.
type Read<T> = std::result::Result<T, String>;

impl<'a> Parser<'a> {
    fn program(&mut self) -> Read<()> {
        while !self.is_end() {
            self.statement()?;
        }
        (self.source, self.at) = (0, 0);
        // What a library defines, a program may define too.
        self.scopes.push(HashMap::new());
        while !self.is_end() {
            self.statement()?;
        }
        Ok(())
    }

    fn token(&self) -> Token {
        let tokens = self.sources.get(self.source).map_or(&[][..], |source| &source.tokens);
        tokens.get(self.at).or(tokens.last()).copied().unwrap_or(Token { kind: Kind::End, start: 0, end: 0 })
    }

    fn text_of(&self, token: Token) -> &'a str {
        self.sources.get(self.source).and_then(|source| source.text.get(token.range())).unwrap_or("")
    }

    /// The next word's text; empty at the end.
    fn peek(&self) -> &'a str {
        let token = self.token();
        if token.kind == Kind::Text { "\"" } else { self.text_of(token) }
    }

    fn is_end(&self) -> bool {
        self.token().kind == Kind::End
    }

    fn next(&mut self) -> Token {
        let token = self.token();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.peek() == word && !word.is_empty();
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Read<()> {
        if self.takes(word) {
            return Ok(());
        }
        let found = self.peek();
        self.next();
        Err(format!(
            "{word:?} is expected here, not {}",
            if found.is_empty() { "the end".to_owned() } else { format!("{found:?}") }
        ))
    }

    fn word(&mut self) -> Read<String> {
        let token = self.next();
        match token.kind {
            Kind::Word => Ok(self.text_of(token).to_owned()),
            _ => Err("a name is expected here".to_owned()),
        }
    }

    /// A word that the program may give a meaning.
    fn name(&mut self) -> Read<String> {
        let name = self.word()?;
        if self.version == 3 && KEYWORDS.contains(&name.as_str()) {
            return Err(format!("a name is expected here, and {name} is a word of the language"));
        }
        Ok(name)
    }

    /// Names with commas between them, and one behind the last if there is.
    fn names(&mut self, end: &str) -> Read<Vec<String>> {
        let mut names = Vec::new();
        while self.peek() != end {
            names.push(self.name()?);
            if !self.takes(",") {
                break;
            }
        }
        Ok(names)
    }

    /// Counts a step, so that every program ends.
    fn step(&mut self) -> Read<()> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(format!("the program runs for more than {MOST_STEPS} steps (unroll fewer loops)"));
        }
        Ok(())
    }

    /// Goes one level deeper for `work`.
    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(format!("it nests deeper than {MOST_DEPTH}"));
        }
        let result = work(self);
        self.depth -= 1;
        result
    }

    fn meaning(&self, name: &str) -> Option<&Meaning> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    fn declare(&mut self, name: String, meaning: Meaning) -> Read<()> {
        if self.idle {
            return Ok(());
        }
        self.names += 1;
        if self.names > MOST_NAMES {
            return Err(format!("the program declares more than {MOST_NAMES} names"));
        }
        if self.scopes.last().is_some_and(|scope| scope.contains_key(&name)) {
            return Err(format!("{name} is declared already"));
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, meaning);
        }
        Ok(())
    }

    /// Reads a statement without effect.
    fn skip(&mut self) -> Read<()> {
        let idle = std::mem::replace(&mut self.idle, true);
        let result = self.deeper(Self::statement);
        self.idle = idle;
        result
    }
}

/// A reason without its variant.
fn reason(error: Error) -> String {
    match error {
        Error::InvalidInput { reason, .. } | Error::Limit(LimitError::Beyond { reason, .. }) => reason,
        other => other.to_string(),
    }
}

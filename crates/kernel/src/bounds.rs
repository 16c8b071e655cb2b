//! Bounds on a text, checked before naga sees it: naga recurses over what is nested, and over what depends on each other, so both
//! are bounded here, by looking at tokens alone. Nothing else is decided: a text that passes may still be no WGSL.

use cantus_base::listed::Listed;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

/// Longer texts are refused.
const MAX_BYTES: usize = 2 << 20;
/// Expressions within expressions: brackets, and operators of a chain, each of which holds all those before it. On the web no stack is deep.
const MAX_EXPRESSION: usize = if cfg!(target_arch = "wasm32") { 512 } else { 5000 };
/// Brackets within brackets.
const MAX_BRACKETS: usize = 127;
/// Prefix operators before an operand, members and indices behind it.
const MAX_PREFIXES: usize = 256;
/// Blocks within blocks: an `else if` is nested in the `else` of the one before.
const MAX_BLOCKS: usize = 127;
/// Declarations that use each other.
const MAX_CHAIN: usize = if cfg!(target_arch = "wasm32") { 200 } else { 1000 };

/// The first place that is beyond a bound.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub span: Range<usize>,
    pub kind: Excess,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Excess {
    #[error("a kernel of more than {MAX_BYTES} bytes (split it)")]
    Long,
    #[error(
        "an expression of more than {MAX_EXPRESSION} operators or brackets within each other (give parts of it a name, with let)"
    )]
    Expression,
    #[error(
        "more than {MAX_BRACKETS} brackets within each other, or {MAX_PREFIXES} prefix operators, members or indices (give parts a name, with let)"
    )]
    Brackets,
    #[error("blocks and `else if`s of more than {MAX_BLOCKS} within each other (use switch, or functions)")]
    Blocks,
    #[error("a chain of more than {MAX_CHAIN} declarations of which each uses the next (join some of them)")]
    Chain,
    #[error("a bitcast to or from f16 gives wrong numbers in naga 30 (use pack2x16float and unpack2x16float)")]
    HalfBitcast,
}

/// Checks a text.
pub(super) fn check(text: &str) -> Result<(), Fault> {
    if text.len() > MAX_BYTES {
        return Err(Fault { span: MAX_BYTES..MAX_BYTES + 1, kind: Excess::Long }.within(text));
    }
    let mut scan = Walk::default();
    for token in (Tokens { text, place: 0 }) {
        scan.token(token)?;
    }
    scan.end_declaration();
    scan.chains()?;
    scan.half_bitcasts()
}

impl Fault {
    /// Moves the span to the boundaries of characters.
    fn within(mut self, text: &str) -> Self {
        let border = |mut place: usize| {
            place = place.min(text.len());
            while !text.is_char_boundary(place) {
                place -= 1;
            }
            place
        };
        self.span = border(self.span.start)..border(self.span.end);
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A name, a keyword or a number.
    Word(&'a str, usize),
    /// Any other character.
    Sign(char, usize),
}

struct Tokens<'a> {
    text: &'a str,
    place: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let rest = self.text.get(self.place..)?;
            let first = rest.chars().next()?;
            if rest.starts_with("//") {
                let breaks = ['\n', '\u{b}', '\u{c}', '\r', '\u{85}', '\u{2028}', '\u{2029}'];
                self.place += rest.find(breaks).unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.place += comment(rest);
            } else if is_word(first) {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                let start = self.place;
                self.place += length;
                return Some(Token::Word(&rest[..length], start));
            } else {
                self.place += first.len_utf8();
                if !first.is_whitespace() {
                    return Some(Token::Sign(first, self.place - first.len_utf8()));
                }
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric() || !c.is_ascii() && !c.is_whitespace()
}

/// Length of the comment that a text begins with; comments nest.
fn comment(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut place) = (0_usize, 0);
    while place < bytes.len() {
        match bytes.get(place..place + 2) {
            Some(b"/*") => (depth, place) = (depth + 1, place + 2),
            Some(b"*/") => (depth, place) = (depth - 1, place + 2),
            _ => place += 1,
        }
        if depth == 0 {
            break;
        }
    }
    // A cut character at the end is no border: the text ends there anyway.
    place
}

/// Operators by how tightly they bind: `&&` and bitwise ones, sums, products, prefixes, members and indices. Comparisons and shifts make no
/// chains.
const LEVELS: usize = 5;

/// An expression, or what is between two brackets.
#[derive(Default, Clone, Copy)]
struct Expression {
    /// Operators since a looser one.
    count: [usize; LEVELS],
    most: [usize; LEVELS],
    /// Of the brackets within.
    inner: usize,
    /// Of the parts before the last comma.
    before: usize,
    /// The last token ends an operand.
    operand: bool,
}

impl Expression {
    fn depth(&self) -> usize {
        self.before.max(self.most.iter().sum::<usize>() + self.inner)
    }

    fn operator(&mut self, level: usize) {
        self.count[level] += 1;
        self.most[level] = self.most[level].max(self.count[level]);
        self.count[level + 1..].fill(0);
    }

    fn next_part(&mut self) {
        *self = Expression { before: self.depth(), ..Expression::default() };
    }
}

#[derive(Default)]
struct Declaration<'a> {
    name: Option<&'a str>,
    start: usize,
    end: usize,
    is_alias: bool,
    uses: FxHashSet<&'a str>,
    /// Arrays directly within each other, and a structure.
    weight: usize,
}

#[derive(Default)]
struct Walk<'a> {
    brackets: Vec<Expression>,
    expression: Expression,
    /// For each open block, the number of `else if`s before it.
    blocks: Vec<usize>,
    /// Links of the chain of `else if`s that ended last, in the block that is open now.
    links: usize,
    last: [Option<Token<'a>>; 2],
    current: Declaration<'a>,
    keyword: Option<&'a str>,
    arrays: usize,
    declarations: Vec<Declaration<'a>>,
    /// Bitcasts: where they are, and the names in their type; the last one may be open.
    casts: Vec<(Range<usize>, Vec<&'a str>)>,
    angles: usize,
}

impl<'a> Walk<'a> {
    fn token(&mut self, token: Token<'a>) -> Result<(), Fault> {
        match token {
            Token::Word(word, start) => self.word(word, start)?,
            Token::Sign(sign, start) => self.sign(sign, start)?,
        }
        self.last = [Some(token), self.last[0]];
        Ok(())
    }

    fn word(&mut self, word: &'a str, start: usize) -> Result<(), Fault> {
        self.expression.operand = true;
        self.current.end = start + word.len();
        if self.current.uses.is_empty() {
            self.current.start = start;
        }
        self.current.uses.insert(word);
        self.declare(word);
        // `array < array < …`
        let nested = matches!(self.last, [Some(Token::Sign('<', _)), Some(Token::Word("array", _))]);
        self.arrays = if word != "array" {
            0
        } else if nested {
            self.arrays + 1
        } else {
            1
        };
        self.current.weight = self.current.weight.max(self.arrays);
        if self.angles > 0
            && let Some((_, names)) = self.casts.last_mut()
        {
            names.push(word);
        }
        if word == "if" && matches!(self.last[0], Some(Token::Word("else", _))) {
            self.links += 1;
            self.check_blocks(start)?;
        } else if word != "else" && matches!(self.last[0], Some(Token::Sign('}', _))) {
            self.links = 0;
        }
        Ok(())
    }

    /// Finds the name that a declaration of the module gives.
    fn declare(&mut self, word: &'a str) {
        if !self.blocks.is_empty() || self.current.name.is_some() {
            return;
        }
        match self.keyword {
            None if matches!(word, "fn" | "const" | "override" | "var" | "alias" | "struct") => {
                self.keyword = Some(word);
            }
            // `var<storage, read_write> name`: no name follows a `<` or a comma.
            Some("var") if matches!(self.last[0], Some(Token::Sign('<' | ',', _))) => {}
            Some(keyword) => {
                self.current.name = Some(word);
                self.current.is_alias = keyword == "alias";
                self.current.weight += usize::from(keyword != "var");
            }
            None => {}
        }
    }

    fn sign(&mut self, sign: char, start: usize) -> Result<(), Fault> {
        self.current.end = start + 1;
        if sign != '<' {
            self.arrays = 0;
        }
        if matches!(self.last[0], Some(Token::Sign('}', _))) {
            self.links = 0;
        }
        let operand = std::mem::replace(&mut self.expression.operand, matches!(sign, ')' | ']'));
        let doubled = matches!(self.last[0], Some(Token::Sign(last, place)) if last == sign && place + 1 == start);
        match sign {
            '<' if matches!(self.last[0], Some(Token::Word("bitcast", _))) => {
                self.casts.push((start..start + 1, Vec::new()));
                self.angles = 1;
            }
            '<' if self.angles > 0 => self.angles += 1,
            '>' if self.angles > 0 => {
                self.angles -= 1;
                if let (0, Some((span, _))) = (self.angles, self.casts.last_mut()) {
                    span.end = start + 1;
                }
            }
            '(' | '[' => {
                if sign == '[' || operand {
                    self.expression.operator(4);
                }
                self.brackets.push(std::mem::take(&mut self.expression));
                if self.brackets.len() > MAX_BRACKETS {
                    return Err(Fault { span: start..start + 1, kind: Excess::Brackets });
                }
            }
            ')' | ']' => {
                let inner = self.expression.depth();
                if let Some(outer) = self.brackets.pop() {
                    self.expression = outer;
                    self.expression.inner = self.expression.inner.max(inner + 1);
                    self.expression.operand = true;
                }
            }
            ',' => self.expression.next_part(),
            ';' | '{' | '}' => {
                self.brackets.clear();
                self.expression = Expression::default();
                self.angles = 0;
                self.block(sign, start)?;
            }
            '&' | '|' if doubled => {}
            '&' | '|' | '^' if operand => self.expression.operator(0),
            '+' | '-' if operand => self.expression.operator(1),
            '*' | '/' | '%' if operand => self.expression.operator(2),
            '&' | '*' | '-' | '!' | '~' => self.expression.operator(3),
            '.' => self.expression.operator(4),
            _ => {}
        }
        if self.expression.most[3..].iter().any(|&count| count > MAX_PREFIXES) {
            return Err(Fault { span: start..start + 1, kind: Excess::Brackets });
        }
        if self.expression.depth() > MAX_EXPRESSION {
            return Err(Fault { span: start..start + 1, kind: Excess::Expression });
        }
        Ok(())
    }

    fn block(&mut self, sign: char, start: usize) -> Result<(), Fault> {
        match sign {
            '{' => {
                self.blocks.push(self.links);
                self.links = 0;
                self.check_blocks(start)?;
            }
            '}' => self.links = self.blocks.pop().unwrap_or(0),
            _ => self.links = 0,
        }
        if self.blocks.is_empty() && sign != '{' {
            self.end_declaration();
        }
        Ok(())
    }

    fn check_blocks(&self, start: usize) -> Result<(), Fault> {
        let depth = self.blocks.len() + self.blocks.iter().sum::<usize>() + self.links;
        if depth > MAX_BLOCKS {
            return Err(Fault { span: start..start + 1, kind: Excess::Blocks });
        }
        Ok(())
    }

    fn end_declaration(&mut self) {
        self.keyword = None;
        let done = std::mem::take(&mut self.current);
        if done.name.is_some() {
            self.declarations.push(done);
        }
    }

    /// Refuses a chain of declarations that is too long: depth first, with a stack of its own. naga refuses those that come back to
    /// themselves.
    fn chains(&self) -> Result<(), Fault> {
        let named: FxHashMap<&str, usize> =
            self.declarations.iter().enumerate().filter_map(|(place, found)| Some((found.name?, place))).collect();
        let uses: Vec<Vec<usize>> = self
            .declarations
            .iter()
            .map(|found| {
                let others = found.uses.iter().filter(|word| Some(**word) != found.name);
                others.filter_map(|word| named.get(word).copied()).listed()
            })
            .listed();
        let mut depth = vec![0_usize; uses.len()];
        let mut seen = vec![false; uses.len()];
        for start in 0..uses.len() {
            let mut path = vec![(start, 0)];
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            while let Some((at, next)) = path.last_mut() {
                let at = *at;
                if let Some(used) = uses[at].get(*next).copied() {
                    *next += 1;
                    if !std::mem::replace(&mut seen[used], true) {
                        path.push((used, 0));
                    }
                    continue;
                }
                path.pop();
                let below = uses[at].iter().map(|used| depth[*used]).max().unwrap_or(0);
                depth[at] = below + self.declarations[at].weight;
                if depth[at] > MAX_CHAIN {
                    let found = &self.declarations[at];
                    return Err(Fault { span: found.start..found.end, kind: Excess::Chain });
                }
            }
        }
        Ok(())
    }

    /// The first bitcast to a type of f16, through any alias: naga 30 takes `bitcast<vec2<f16>>` of a `u32` for a bitcast to f32, and the
    /// module it gives shows no trace of it.
    fn half_bitcasts(&self) -> Result<(), Fault> {
        let aliases = self.declarations.iter().filter(|found| found.is_alias);
        let aliases: FxHashMap<&str, &Declaration<'_>> =
            aliases.filter_map(|found| Some((found.name?, found))).collect();
        for (span, names) in &self.casts {
            let mut open = names.clone();
            let mut seen = FxHashSet::default();
            while let Some(name) = open.pop() {
                if matches!(name, "f16" | "vec2h" | "vec3h" | "vec4h") {
                    return Err(Fault { span: span.clone(), kind: Excess::HalfBitcast });
                }
                if let (true, Some(alias)) = (seen.insert(name), aliases.get(name)) {
                    open.extend(alias.uses.iter().copied());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Excess, check};

    fn kind(text: &str) -> Option<Excess> {
        check(text).err().map(|fault| {
            assert!(text.get(fault.span.clone()).is_some(), "{fault:?}");
            fault.kind
        })
    }

    #[test]
    fn chains_of_operators_are_counted_by_how_they_nest() {
        let within = |expression: String| kind(&format!("fn f() {{ let x = {expression}; }}"));
        let chain = |term: &str, by: &str, n: usize| vec![term; n].join(by);
        assert_eq!(within(chain("a", "+", 200)), None);
        assert_eq!(within(chain("a", "+", 4990)), None);
        assert_eq!(within(chain("a", "+", 5010)), Some(Excess::Expression));
        assert_eq!(within(chain("a.x * b[i] * -c", "+", 200)), None);
        assert_eq!(within(chain("f(a, b, c)", " && ", 200)), None);
        assert_eq!(within(chain("a", " || ", 5010)), Some(Excess::Expression));
        assert_eq!(within(chain("a", "/* * */ *\n", 5010)), Some(Excess::Expression));
        assert_eq!(within(format!("f({})", chain("a", ",", 5000))), None);
        assert_eq!(within(format!("{}x", "!".repeat(300))), Some(Excess::Brackets));
        assert_eq!(within(format!("x{}", ".x".repeat(300))), Some(Excess::Brackets));
        assert_eq!(within(format!("x{}", "[0]".repeat(300))), Some(Excess::Brackets));
        assert_eq!(within(format!("{}x{}", "(".repeat(127), ")".repeat(127))), None);
        assert_eq!(within(format!("{}x{}", "(".repeat(128), ")".repeat(128))), Some(Excess::Brackets));
        // Each bracket adds to what is around it.
        let mut nested = "x".to_owned();
        for _ in 0..60 {
            nested = format!("{} + ({nested})", chain("a", "+", 100));
        }
        assert_eq!(within(nested), Some(Excess::Expression));
    }

    #[test]
    fn else_ifs_nest() {
        let chain =
            |n: usize| format!("fn f() {{ if a {{ x = 1; }}{} else {{ }} }}", " else if b { y = 2; }".repeat(n));
        assert_eq!(kind(&chain(120)), None);
        assert_eq!(kind(&chain(130)), Some(Excess::Blocks));
        // Others start over.
        assert_eq!(kind(&format!("fn f() {{ {} }}", "if a { x = 1; } else if b { y = 2; } z = 1;".repeat(200))), None);
        assert_eq!(kind(&format!("fn f() {{ {} }}", "if a { } else if b { } ".repeat(200))), None);
        let nested = format!("fn f() {{ {} {} }}", "if a { } else if b { ".repeat(100), "}".repeat(100));
        assert_eq!(kind(&nested), Some(Excess::Blocks));
    }

    #[test]
    fn chains_of_declarations() {
        let functions = |n: usize| (1..n).map(|i| format!("fn f{i}() {{ f{}(); }}\n", i - 1)).collect::<String>();
        assert_eq!(kind(&functions(990)), None);
        assert_eq!(kind(&functions(1010)), Some(Excess::Chain));
        let reversed: String = (1..1010).rev().map(|i| format!("const c{i} = c{} + 1;\n", i - 1)).collect();
        assert_eq!(kind(&reversed), Some(Excess::Chain));
        let types: String =
            (1..260).map(|i| format!("alias t{i} = array<array<array<array<t{}, 2>, 2>, 2>, 2>;\n", i - 1)).collect();
        assert_eq!(kind(&types), Some(Excess::Chain));
        let wide: String = (0..5000).map(|i| format!("const c{i} = {i};\n")).collect();
        assert_eq!(kind(&wide), None);
        // What comes back to itself is naga's to refuse.
        assert_eq!(kind("fn a() { b(); } fn b() { a(); }"), None);
    }

    #[test]
    fn bitcasts_to_half_are_found_wherever_they_hide() {
        for text in [
            "fn f() { let x = bitcast<vec2<f16>>(1u); }",
            "fn f() { let x = bitcast<vec2h>(1u); }",
            "fn f() { let x = bitcast\n<\nvec2\n<f16> >(1u); }",
            "fn f() { let x = bitcast/* , */<vec2/*<*/<f16>>(1u); }",
            "alias half = f16; fn f() { let x = bitcast<vec2<half>>(1u); }",
            "fn f() { let x = bitcast<pair>(1u); } alias pair = vec2<half>; alias half = f16;",
        ] {
            assert_eq!(kind(text), Some(Excess::HalfBitcast), "{text}");
        }
        for text in [
            "fn f() { let x = bitcast<vec2<f32>>(a); let y = vec2<f16>(1.0); }",
            "// bitcast<f16>\nfn f() { }",
            "alias half = f32; fn f() { let x = bitcast<half>(1u) < f32(f16(1.0)); }",
        ] {
            assert_eq!(kind(text), None, "{text}");
        }
    }

    #[test]
    fn long_texts() {
        assert_eq!(kind(&"é".repeat(1 << 20)), None);
        assert_eq!(kind(&"é".repeat((1 << 20) + 1)), Some(Excess::Long));
        assert_eq!(kind("/* /* é"), None);
    }
}

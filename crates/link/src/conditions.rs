//! Conditional parts: `@if(feature)`, `@elif(feature)` and `@else` before a declaration, an import, a member, a parameter, a case or a
//! statement.

use std::collections::HashMap;
use std::ops::Range;

use crate::lex::{Kind, Token};

/// The fault of a text, and where.
#[derive(Debug)]
pub(crate) struct Fault {
    pub message: String,
    pub place: Range<usize>,
}

/// The rest of a text: its tokens, and the bytes that fall away.
pub(crate) struct Kept {
    pub tokens: Vec<Token>,
    pub cuts: Vec<Range<usize>>,
}

/// Decides the conditions of a text. `is_on` tells whether a feature is on.
pub(crate) fn decide(text: &str, tokens: &[Token], is_on: &mut dyn FnMut(&str) -> bool) -> Result<Kept, Fault> {
    let mut kept = Kept { tokens: Vec::with_capacity(tokens.len()), cuts: Vec::new() };
    let reader = Reader { text, tokens };
    // Whether one of a chain was taken, by the place where its next would stand.
    let mut chains: HashMap<usize, bool> = HashMap::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if !token.is(b'@') {
            kept.tokens.push(*token);
            at += 1;
            continue;
        }
        let list = reader.attributes(at)?;
        let Some(condition) = list.condition else {
            kept.tokens.extend(tokens.get(at..list.end).unwrap_or_default());
            at = list.end;
            continue;
        };
        let before = match (condition.word, chains.remove(&at)) {
            ("if", _) => false,
            (_, Some(taken)) => taken,
            (word, None) => {
                let message = format!(
                    "`@{word}` has no `@if` before it: it must follow the construct that an `@if` or `@elif` decorates"
                );
                return Err(reader.fault(condition.tokens, message));
            }
        };
        let holds = match condition.expression {
            Some(expression) => reader.evaluate(expression, is_on)?,
            None => true,
        };
        let end = reader.extent(list.end)?;
        chains.insert(end, before || holds);
        if holds && !before {
            for (place, token) in tokens.iter().enumerate().take(list.end).skip(at) {
                if !condition.tokens.contains(&place) {
                    kept.tokens.push(*token);
                }
            }
            kept.cuts.push(reader.bytes(condition.tokens));
            at = list.end;
        } else {
            kept.cuts.push(reader.bytes(at..end));
            at = end;
        }
    }
    Ok(kept)
}

struct Condition<'t> {
    word: &'t str,
    tokens: Range<usize>,
    /// The tokens between its brackets.
    expression: Option<Range<usize>>,
}

/// Attributes in a row.
struct Attributes<'t> {
    end: usize,
    condition: Option<Condition<'t>>,
}

struct Reader<'t> {
    text: &'t str,
    tokens: &'t [Token],
}

impl<'t> Reader<'t> {
    fn word(&self, at: usize) -> &'t str {
        match self.tokens.get(at) {
            Some(token) if token.kind == Kind::Word => self.text.get(token.start..token.end).unwrap_or_default(),
            _ => "",
        }
    }

    fn is(&self, at: usize, sign: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(sign))
    }

    /// The bytes of tokens.
    fn bytes(&self, tokens: Range<usize>) -> Range<usize> {
        let start = self.tokens.get(tokens.start).map_or(self.text.len(), |token| token.start);
        let end = tokens.end.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(start, |token| token.end);
        start..end.max(start)
    }

    fn fault(&self, tokens: Range<usize>, message: String) -> Fault {
        Fault { message, place: self.bytes(tokens) }
    }

    fn unfinished(&self, from: usize) -> Fault {
        self.fault(from..from + 1, "the text ends inside this construct: a bracket or a `;` is missing".to_owned())
    }

    fn attributes(&self, from: usize) -> Result<Attributes<'t>, Fault> {
        let mut list = Attributes { end: from, condition: None };
        while self.is(list.end, b'@') {
            let start = list.end;
            let word = self.word(start + 1);
            let mut end = start + 2;
            let mut expression = None;
            if word != "else" && self.is(end, b'(') {
                let close = self.closing(end)?;
                expression = Some(end + 1..close);
                end = close + 1;
            }
            if matches!(word, "if" | "elif" | "else") {
                if list.condition.is_some() {
                    let message = "one declaration or statement has one condition: join them with `&&`".to_owned();
                    return Err(self.fault(start..end, message));
                }
                if word != "else" && expression.is_none() {
                    return Err(self.fault(start..end, format!("`@{word}` wants a feature: @{word}(feature)")));
                }
                list.condition = Some(Condition { word, tokens: start..end, expression });
            }
            list.end = end;
        }
        Ok(list)
    }

    /// The bracket that closes the one at a place.
    fn closing(&self, open: usize) -> Result<usize, Fault> {
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            match token.kind {
                Kind::Sign(b'(' | b'[' | b'{') => depth += 1,
                Kind::Sign(b')' | b']' | b'}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Ok(at);
                    }
                }
                _ => {}
            }
        }
        Err(self.unfinished(open))
    }

    /// The first of some signs outside of brackets.
    fn first(&self, from: usize, signs: &[u8]) -> Result<usize, Fault> {
        let mut at = from;
        while let Some(token) = self.tokens.get(at) {
            match token.kind {
                Kind::Sign(sign) if signs.contains(&sign) => return Ok(at),
                Kind::Sign(b'(' | b'[' | b'{') => at = self.closing(at)?,
                _ => {}
            }
            at += 1;
        }
        Err(self.unfinished(from))
    }

    fn block(&self, from: usize) -> Result<usize, Fault> {
        Ok(self.closing(self.first(from, b"{")?)? + 1)
    }

    /// The end of what begins at a token, behind its attributes.
    fn extent(&self, from: usize) -> Result<usize, Fault> {
        match self.word(from) {
            "fn" | "for" | "while" | "loop" | "switch" | "continuing" | "case" | "default" => self.block(from),
            "struct" => {
                let end = self.block(from)?;
                Ok(if self.is(end, b';') { end + 1 } else { end })
            }
            "if" => {
                let mut end = self.block(from)?;
                while self.word(end) == "else" {
                    end = self.block(end)?;
                }
                Ok(end)
            }
            "" if self.is(from, b'{') => self.block(from),
            word if !word.is_empty() && self.is(from + 1, b':') => self.member(from + 2),
            _ => Ok(self.first(from, b";")? + 1),
        }
    }

    /// The end of a member or a parameter, from its type on.
    fn member(&self, from: usize) -> Result<usize, Fault> {
        let mut templates = 0_usize;
        let mut at = from;
        while let Some(token) = self.tokens.get(at) {
            match token.kind {
                Kind::Sign(b'<') => templates += 1,
                Kind::Sign(b'>') => templates = templates.saturating_sub(1),
                Kind::Sign(b',') if templates == 0 => return Ok(at + 1),
                Kind::Sign(b')' | b'}') => return Ok(at),
                Kind::Sign(b'(' | b'[') => at = self.closing(at)?,
                _ => {}
            }
            at += 1;
        }
        Err(self.unfinished(from))
    }

    fn evaluate(&self, expression: Range<usize>, is_on: &mut dyn FnMut(&str) -> bool) -> Result<bool, Fault> {
        let mut parser = Parser { reader: self, at: expression.start, end: expression.end, depth: 0, is_on };
        let value = parser.either()?;
        if parser.at < parser.end { Err(parser.expected("`&&`, `||` or `)`")) } else { Ok(value) }
    }
}

/// Brackets and negations within each other, at most.
const DEEPEST: usize = 64;

/// A parser of conditions: names, `true`, `false`, `!`, `&&`, `||` and brackets.
struct Parser<'r, 't> {
    reader: &'r Reader<'t>,
    at: usize,
    end: usize,
    depth: usize,
    is_on: &'r mut dyn FnMut(&str) -> bool,
}

impl Parser<'_, '_> {
    fn expected(&self, what: &str) -> Fault {
        self.reader.fault(
            self.at..self.at + 1,
            format!("a condition is made of features, `!`, `&&` and `||`: expected {what}"),
        )
    }

    fn takes(&mut self, sign: u8) -> bool {
        let is_there = self.at < self.end && self.reader.is(self.at, sign);
        self.at += usize::from(is_there);
        is_there
    }

    fn either(&mut self) -> Result<bool, Fault> {
        let mut value = self.both()?;
        while self.takes(b'|') {
            if !self.takes(b'|') {
                return Err(self.expected("`||`"));
            }
            value |= self.both()?;
        }
        Ok(value)
    }

    fn both(&mut self) -> Result<bool, Fault> {
        let mut value = self.one()?;
        while self.takes(b'&') {
            if !self.takes(b'&') {
                return Err(self.expected("`&&`"));
            }
            value &= self.one()?;
        }
        Ok(value)
    }

    fn one(&mut self) -> Result<bool, Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.expected("fewer brackets"));
        }
        let value = if self.takes(b'!') {
            !self.one()?
        } else if self.takes(b'(') {
            let value = self.either()?;
            if !self.takes(b')') {
                return Err(self.expected("`)`"));
            }
            value
        } else {
            let name = if self.at < self.end { self.reader.word(self.at) } else { "" };
            if name.is_empty() {
                return Err(self.expected("a feature's name"));
            }
            self.at += 1;
            match name {
                "true" => true,
                "false" => false,
                name => (self.is_on)(name),
            }
        };
        self.depth -= 1;
        Ok(value)
    }
}

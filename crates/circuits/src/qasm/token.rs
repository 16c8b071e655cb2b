//! OpenQASM's words, in a flat table.

use std::ops::Range;

/// The most bytes of a program.
pub(super) const MOST_BYTES: usize = 1 << 24;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Word,
    Integer(i64),
    Float(f64),
    /// A text between quotes, without them.
    Text,
    /// Punctuation of one to three letters.
    Sign,
    End,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
}

impl Token {
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A part of the text that is not of the language, and its place.
pub(super) struct Fault {
    pub at: usize,
    pub reason: String,
}

const SIGNS: [&str; 23] = [
    "**=", "<<=", ">>=", "**", "->", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "++", "+=", "-=", "*=", "/=",
    "^=", "%=", "&=", "|=", "~=",
];

/// The words of a program, and `End` behind them.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    if text.len() > MOST_BYTES {
        return Err(Fault { at: 0, reason: format!("the program has more than {MOST_BYTES} bytes") });
    }
    let bytes = text.as_bytes();
    let mut tokens = Vec::with_capacity(text.len() / 3);
    let mut at = 0;
    let push = |tokens: &mut Vec<Token>, kind, range: Range<usize>| {
        tokens.push(Token { kind, start: range.start as u32, end: range.end as u32 });
    };
    while let Some(&byte) = bytes.get(at) {
        let rest = &text[at..];
        if byte.is_ascii_whitespace() {
            at += 1;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            let Some(end) = rest.find("*/") else {
                return Err(Fault { at, reason: "the comment does not end".to_owned() });
            };
            at += end + 2;
        } else if byte == b'"' || byte == b'\'' {
            let Some(end) = rest[1..].find(byte as char) else {
                return Err(Fault { at, reason: "the text does not end".to_owned() });
            };
            push(&mut tokens, Kind::Text, at + 1..at + 1 + end);
            at += end + 2;
        } else if byte.is_ascii_digit() || (byte == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)) {
            let (kind, len) = number(rest).map_err(|reason| Fault { at, reason })?;
            push(&mut tokens, kind, at..at + len);
            at += len;
        } else {
            let is_word = |letter: char| letter.is_alphabetic() || letter.is_ascii_digit() || letter == '_';
            let len = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
            if len > 0 {
                push(&mut tokens, Kind::Word, at..at + len);
                at += len;
            } else {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).map_or(1, |sign| sign.len());
                let mut letters = rest.chars();
                let letter = letters.next().unwrap_or(' ');
                if sign == 1 && !b"+-*/%^&|~!<>=(){}[];,:@.$#".contains(&byte) {
                    return Err(Fault { at, reason: format!("{letter:?} is no part of the language") });
                }
                if letter == '@' && letters.next().is_some_and(|next| is_word(next) && !next.is_ascii_digit()) {
                    let reason = "annotations are not taken (behind a modifier's @ is a space)".to_owned();
                    return Err(Fault { at, reason });
                }
                push(&mut tokens, Kind::Sign, at..at + sign);
                at += sign;
            }
        }
    }
    push(&mut tokens, Kind::End, text.len()..text.len());
    Ok(tokens)
}

/// Returns the end of the digits at a place of a text. There may be one `_` between two of them.
fn digits(text: &str, mut at: usize, is_digit: impl Fn(&u8) -> bool) -> usize {
    let bytes = text.as_bytes();
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(digit), _) if is_digit(digit) => at += 1,
            (Some(b'_'), Some(next)) if is_digit(next) && at > 0 && bytes.get(at - 1).is_some_and(&is_digit) => at += 1,
            _ => return at,
        }
    }
}

/// A number at the beginning of a text, and its length.
fn number(text: &str) -> Result<(Kind, usize), String> {
    for (prefix, radix) in [("0x", 16), ("0X", 16), ("0b", 2), ("0B", 2), ("0o", 8)] {
        if let Some(rest) = text.strip_prefix(prefix) {
            let len = digits(rest, 0, |letter| letter.is_ascii_alphanumeric());
            let digits = rest[..len].replace('_', "");
            let value =
                i64::from_str_radix(&digits, radix).map_err(|error| format!("{}: {error}", &text[..len + 2]))?;
            return Ok((Kind::Integer(value), len + 2));
        }
    }
    let bytes = text.as_bytes();
    let digits = |at| digits(text, at, |letter| letter.is_ascii_digit());
    let mut end = digits(0);
    let mut is_float = false;
    if bytes.get(end) == Some(&b'.') {
        is_float = true;
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            is_float = true;
            end = digits(end + 1 + sign);
        }
    }
    let plain = text[..end].replace('_', "");
    if is_float {
        let value: f64 = plain.parse().map_err(|_| format!("{plain} is no number"))?;
        return if value.is_finite() { Ok((Kind::Float(value), end)) } else { Err(format!("{plain} is too large")) };
    }
    let value = plain.parse().map_err(|_| format!("{plain} is too large for an integer"))?;
    Ok((Kind::Integer(value), end))
}

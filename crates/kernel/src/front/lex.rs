//! Tokens of WGSL, and which `<` and `>` enclose template arguments (the specification's template list discovery).

/// The kind of a token. Operators of several characters come as single ones: `glued` of the tree's parser puts them
/// together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word: identifier, keyword or `_`.
    Word,
    /// A literal that begins with a digit, or with a point before one.
    Number,
    /// One character.
    Sign(u8),
    /// `<` that opens template arguments.
    Open,
    /// `>` that closes template arguments.
    Close,
    /// Behind the last token.
    End,
}

/// A token: its kind and its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
}

/// The tokens of a text with one of kind `End` behind them, or `None` where it has a character that WGSL lacks.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    u32::try_from(text.len()).ok()?;
    let bytes = text.as_bytes();
    let mut tokens = Vec::with_capacity(text.len() / 4);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        let kind = match byte {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = line_end(text, at);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = comment_end(bytes, at)?;
                continue;
            }
            b' ' | b'\t'..=b'\r' => {
                at += 1;
                continue;
            }
            b'0'..=b'9' => Kind::Number,
            b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => Kind::Number,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Kind::Word,
            byte if byte.is_ascii_graphic() => Kind::Sign(byte),
            _ => match text.get(at..)?.chars().next()? {
                '\u{85}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' => {
                    at += text.get(at..)?.chars().next()?.len_utf8();
                    continue;
                }
                letter if letter.is_alphabetic() => Kind::Word,
                _ => return None,
            },
        };
        at = match kind {
            Kind::Word => word_end(text, at),
            Kind::Number => number_end(bytes, at),
            _ => at + 1,
        };
        tokens.push(Token { kind, start: start as u32, end: at as u32 });
    }
    tokens.push(Token { kind: Kind::End, start: at as u32, end: at as u32 });
    find_templates(&mut tokens);
    Some(tokens)
}

fn line_end(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.find(['\n', '\u{b}', '\u{c}', '\r', '\u{85}', '\u{2028}', '\u{2029}']).unwrap_or(rest.len())
}

/// Comments nest.
fn comment_end(bytes: &[u8], from: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, from);
    loop {
        match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'/', Some(b'*')) => {
                depth += 1;
                at += 2;
            }
            (b'*', Some(b'/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
}

fn word_end(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.find(|c: char| !(c == '_' || c.is_alphanumeric())).unwrap_or(rest.len())
}

/// Digits, letters and points, and a sign behind an exponent's letter.
fn number_end(bytes: &[u8], from: usize) -> usize {
    let hex = matches!(bytes.get(from..from + 2), Some(b"0x" | b"0X"));
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        let exponent = at > from
            && matches!((hex, bytes[at - 1]), (false, b'e' | b'E') | (true, b'p' | b'P'))
            && matches!(byte, b'+' | b'-');
        if !(byte.is_ascii_alphanumeric() || byte == b'.' || exponent) {
            break;
        }
        at += 1;
    }
    at
}

/// Marks the `<` and `>` of template lists.
fn find_templates(tokens: &mut [Token]) {
    let mut pending: Vec<(usize, u32)> = Vec::new();
    let mut depth = 0_u32;
    let mut at = 0;
    while at < tokens.len() {
        let glued = |next: usize| {
            let (here, next) = (tokens.get(next - 1)?, tokens.get(next)?);
            match next.kind {
                Kind::Sign(sign) if here.end == next.start => Some(sign),
                _ => None,
            }
        };
        match tokens[at].kind {
            Kind::Word if tokens.get(at + 1).is_some_and(|next| next.kind == Kind::Sign(b'<')) => {
                at += 1;
                if matches!(glued(at + 1), Some(b'<' | b'=')) {
                    at += 1;
                } else {
                    pending.push((at, depth));
                }
            }
            Kind::Sign(b'>') => {
                if let Some(&(open, opened)) = pending.last()
                    && opened == depth
                {
                    pending.pop();
                    tokens[open].kind = Kind::Open;
                    tokens[at].kind = Kind::Close;
                } else if glued(at + 1) == Some(b'=') {
                    at += 1;
                }
            }
            Kind::Sign(b'(' | b'[') => depth += 1,
            Kind::Sign(b')' | b']') => {
                while pending.last().is_some_and(|&(_, opened)| opened >= depth) {
                    pending.pop();
                }
                depth = depth.saturating_sub(1);
            }
            Kind::Sign(b'!') if glued(at + 1) == Some(b'=') => at += 1,
            Kind::Sign(b'=') if glued(at + 1) == Some(b'=') => at += 1,
            Kind::Sign(b';' | b'{' | b':' | b'=') => {
                depth = 0;
                pending.clear();
            }
            Kind::Sign(sign @ (b'&' | b'|')) if glued(at + 1) == Some(sign) => {
                at += 1;
                while pending.last().is_some_and(|&(_, opened)| opened >= depth) {
                    pending.pop();
                }
            }
            _ => {}
        }
        at += 1;
    }
}

//! Finds the tokens of WGSL. Readers of WGSL add their own kinds.

/// The kind of a token as it is found. Operators of several characters come as single ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// An identifier, a keyword or `_`.
    Word,
    /// A literal that begins with a digit, or with a point before one.
    Number,
    /// One character.
    Sign(u8),
}

/// Returns the next token from a place on, without the comments and spaces before it, as its kind and its bytes; `None` at the end of the text.
///
/// # Errors
/// The place of a character that WGSL lacks, or of a comment without an end.
pub fn next_token(text: &str, from: usize) -> Result<Option<(Found, std::ops::Range<usize>)>, usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1);
        let found = match byte {
            b'/' if next == Some(&b'/') => {
                at = line_end(text, at);
                continue;
            }
            b'/' if next == Some(&b'*') => {
                at = comment_end(bytes, at).ok_or(at)?;
                continue;
            }
            b' ' | b'\t'..=b'\r' => {
                at += 1;
                continue;
            }
            b'0'..=b'9' => Found::Number,
            b'.' if next.is_some_and(u8::is_ascii_digit) => Found::Number,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Found::Word,
            byte if byte.is_ascii_graphic() => Found::Sign(byte),
            _ => match text.get(at..).and_then(|rest| rest.chars().next()) {
                Some(space @ ('\u{85}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')) => {
                    at += space.len_utf8();
                    continue;
                }
                Some(letter) if letter.is_alphabetic() => Found::Word,
                _ => return Err(at),
            },
        };
        let end = match found {
            Found::Word => word_end(text, at),
            Found::Number => number_end(bytes, at),
            Found::Sign(_) => at + 1,
        };
        return Ok(Some((found, at..end)));
    }
    Ok(None)
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

/// Digits, letters and points, and a sign after an exponent's letter.
fn number_end(bytes: &[u8], from: usize) -> usize {
    let hex = matches!(bytes.get(from..from + 2), Some(b"0x" | b"0X"));
    let mut at = from;
    let mut before = 0;
    while let Some(&byte) = bytes.get(at) {
        let exponent =
            matches!((hex, before), (false, b'e' | b'E') | (true, b'p' | b'P')) && matches!(byte, b'+' | b'-');
        if !(byte.is_ascii_alphanumeric() || byte == b'.' || exponent) {
            break;
        }
        before = byte;
        at += 1;
    }
    at
}

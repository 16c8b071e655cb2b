//! Tokens of WGSL with WESL's `::`.

use cantus_shaders::scan::{Found, next_token};

/// The kind of a token. Operators of several characters come as single ones, `::` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier, a keyword or `_`.
    Word,
    /// A literal that begins with a digit, or with a point before one.
    Number,
    /// `::`
    Path,
    /// One character.
    Sign(u8),
}

/// A token: its kind and its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

impl Token {
    pub(crate) fn is(&self, sign: u8) -> bool {
        self.kind == Kind::Sign(sign)
    }
}

/// The tokens of a text.
///
/// # Errors
/// The place of a character that WGSL lacks, or of a comment without an end.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, usize> {
    let mut tokens: Vec<Token> = Vec::with_capacity(text.len() / 4);
    let mut at = 0;
    while let Some((found, place)) = next_token(text, at)? {
        at = place.end;
        let kind = match found {
            Found::Word => Kind::Word,
            Found::Number => Kind::Number,
            Found::Sign(b':') if text.as_bytes().get(at) == Some(&b':') => {
                at += 1;
                Kind::Path
            }
            Found::Sign(sign) => Kind::Sign(sign),
        };
        tokens.push(Token { kind, start: place.start, end: at });
    }
    Ok(tokens)
}

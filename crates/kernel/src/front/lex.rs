//! Tokens of WGSL, and which `<` and `>` enclose template arguments (the specification's template list discovery).

use cantus_shaders::scan::{Found, next_token};

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
    let mut tokens = Vec::with_capacity(text.len() / 4);
    let mut at = 0;
    while let Some((found, place)) = next_token(text, at).ok()? {
        at = place.end;
        let kind = match found {
            Found::Word => Kind::Word,
            Found::Number => Kind::Number,
            Found::Sign(sign) => Kind::Sign(sign),
        };
        tokens.push(Token { kind, start: place.start as u32, end: at as u32 });
    }
    let end = text.len() as u32;
    tokens.push(Token { kind: Kind::End, start: end, end });
    find_templates(&mut tokens);
    Some(tokens)
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

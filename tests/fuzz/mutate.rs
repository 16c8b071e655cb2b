//! Random numbers, and changes to bytes and to texts.

use kit::inputs::Random;

/// The kit's generator, and choices made with it.
pub struct Rng {
    random: Random,
    /// The number of the input that they are for: the first ones of a class may be what it begins with, as it is.
    pub input: u64,
}

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), input: u64::MAX }
    }

    pub fn next(&mut self) -> u64 {
        self.random.u64()
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Numbers at the borders of types more often than others.
    pub fn number(&mut self) -> u64 {
        let borders =
            [0, 1, 2, 3, 31, 32, 63, 64, 127, 128, 255, 256, 0x7fff, 0xffff, 0x1_0000, 0x7fff_ffff, 0xffff_ffff];
        match self.below(4) {
            0 => self.next() % 20,
            1 => self.next() >> self.below(64),
            _ => borders[self.below(borders.len())],
        }
    }
}

/// Changes a few bytes: flips, numbers, cuts, pieces moved within and from another input.
pub fn bytes(rng: &mut Rng, data: &mut Vec<u8>, other: &[u8], most: usize) {
    for _ in 0..=rng.below(most) {
        if data.is_empty() {
            return;
        }
        let place = rng.below(data.len());
        match rng.below(10) {
            0..=4 => data[place] ^= 1 << rng.below(8),
            5..=6 => data[place] = rng.number() as u8,
            7 => data.truncate(place),
            8 => {
                let end = (place + 1 + rng.below(16)).min(data.len());
                let piece = data[place..end].to_vec();
                let to = rng.below(data.len());
                data.splice(to..to, piece);
            }
            _ if !other.is_empty() => {
                let from = rng.below(other.len());
                let end = (from + 1 + rng.below(64)).min(other.len());
                let until = (place + rng.below(64)).min(data.len());
                data.splice(place..until, other[from..end].iter().copied());
            }
            _ => {}
        }
    }
}

/// A text as words, numbers, white space and signs.
pub fn tokens(text: &str) -> Vec<String> {
    let kind = |c: char| {
        if c.is_alphanumeric() || c == '_' {
            0
        } else if c.is_whitespace() {
            1
        } else {
            2
        }
    };
    let mut all: Vec<String> = Vec::new();
    for c in text.chars() {
        match all.last_mut() {
            Some(last) if kind(c) != 2 && last.chars().next_back().map(kind) == Some(kind(c)) => last.push(c),
            _ => all.push(c.to_string()),
        }
    }
    all
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Changes that often leave a text valid: numbers, operators of the same kind, names from elsewhere.
pub fn gently(rng: &mut Rng, tokens: &mut [String]) {
    for _ in 0..=rng.below(3) {
        let place = rng.below(tokens.len());
        let Some(from) = (place..tokens.len()).find(|at| !tokens[*at].trim().is_empty()) else { continue };
        let token = tokens[from].clone();
        let number = token.trim_end_matches(['u', 'i', 'f']);
        let before = from.checked_sub(1).map_or("", |at| tokens[at].as_str());
        if number.chars().all(|c| c.is_ascii_digit()) && !number.is_empty() && !matches!(before, "(" | ".") {
            tokens[from] = format!("{}{}", rng.number() % 1000, &token[number.len()..]);
        } else if ["+", "-", "*", "/", "%", "&", "|", "^"].contains(&token.as_str()) && before == " " {
            tokens[from] = (*rng.pick(&["+", "-", "*"])).to_owned();
        } else if matches!(token.as_str(), "min" | "max" | "sin" | "cos" | "abs" | "sqrt" | "exp" | "floor") {
            tokens[from] = (*rng.pick(if matches!(token.as_str(), "min" | "max") {
                &["min", "max"][..]
            } else {
                &["sin", "cos", "abs", "sqrt", "exp", "floor", "trunc", "tanh", "atan"][..]
            }))
            .to_owned();
        }
    }
}

/// Changes that seldom leave a text valid.
pub fn roughly(rng: &mut Rng, tokens: &mut Vec<String>, other: &[String]) {
    for _ in 0..=rng.below(4) {
        if tokens.is_empty() {
            return;
        }
        let place = rng.below(tokens.len());
        let to = rng.below(tokens.len());
        match rng.below(8) {
            0 => drop(tokens.remove(place)),
            1 => tokens.swap(place, to),
            2 => {
                let end = (place + 1 + rng.below(30)).min(tokens.len());
                let piece = tokens[place..end].to_vec();
                // A few times, and now and then often enough to nest deeply.
                let times = if rng.one_in(20) { 300 } else { 1 + rng.below(3) };
                let pieces: Vec<String> = std::iter::repeat_n(piece, times).flatten().collect();
                tokens.splice(to..to, pieces);
            }
            3 if !other.is_empty() => {
                let from = rng.below(other.len());
                let end = (from + 1 + rng.below(30)).min(other.len());
                tokens.splice(place..place, other[from..end].iter().cloned());
            }
            4 => {
                let words: Vec<usize> = (0..tokens.len()).filter(|at| is_word(&tokens[*at])).collect();
                if !words.is_empty() {
                    let (a, b) = (*rng.pick(&words), *rng.pick(&words));
                    tokens[a] = tokens[b].clone();
                }
            }
            5 => tokens[place] = (*rng.pick(&SIGNS)).to_owned(),
            6 => tokens[place] = rng.number().to_string(),
            _ => tokens[place] = (*rng.pick(&WORDS)).to_owned(),
        }
    }
}

const SIGNS: [&str; 24] = [
    "(", ")", "[", "]", "{", "}", "<", ">", ";", ",", ".", ":", "@", "&", "*", "-", "!", "~", "=", "/*", "*/", "//",
    "->", "\u{2028}",
];
const WORDS: [&str; 36] = [
    "array",
    "vec2",
    "vec3f",
    "mat4x4f",
    "f16",
    "f32",
    "i32",
    "u32",
    "i64",
    "f64",
    "bool",
    "atomic",
    "ptr",
    "struct",
    "fn",
    "let",
    "var",
    "const",
    "override",
    "alias",
    "if",
    "else",
    "loop",
    "for",
    "while",
    "switch",
    "continuing",
    "break",
    "return",
    "discard",
    "bitcast",
    "workgroup",
    "storage",
    "private",
    "uniform",
    "select",
];

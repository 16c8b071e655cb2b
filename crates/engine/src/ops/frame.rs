//! A frame's text with places that are filled when it is used: values of its constants, and marks in place of which statements stand. The places are found
//! when the crate is built, so a frame without one of them, or with two, does not build.

/// A text with `N` places, in their order in the text.
pub(in crate::ops) struct Frame<const N: usize> {
    text: &'static str,
    /// The first byte of each place, and the one after it.
    places: [(usize, usize); N],
}

impl<const N: usize> Frame<N> {
    /// Finds places by name: `LANES` is the value in `const LANES = …;`, `// SUMS` a line of that comment.
    pub(in crate::ops) const fn new(text: &'static str, names: [&str; N]) -> Self {
        let mut places = [(0, 0); N];
        let (mut number, mut from) = (0, 0);
        while number < N {
            places[number] = place(text.as_bytes(), from, names[number].as_bytes());
            from = places[number].1;
            number += 1;
        }
        Self { text, places }
    }

    /// Returns the text with these values. What has none stays as it is written.
    pub(in crate::ops) fn filled(&self, values: [Option<&str>; N]) -> String {
        let (mut filled, mut from) = (String::with_capacity(2 * self.text.len()), 0);
        for ((start, end), value) in self.places.iter().zip(values) {
            let Some(value) = value else { continue };
            filled.push_str(self.text.get(from..*start).unwrap_or_default());
            filled.push_str(value);
            from = *end;
        }
        filled.push_str(self.text.get(from..).unwrap_or_default());
        filled
    }
}

/// The one place of that name from a byte on.
const fn place(text: &[u8], from: usize, name: &[u8]) -> (usize, usize) {
    let is_mark = name[0] == b'/';
    let mut found = None;
    let mut at = from;
    while at < text.len() {
        let end = if is_mark { mark(text, at, name) } else { constant(text, at, name) };
        if let Some(place) = end {
            assert!(found.is_none(), "the frame has two such places");
            found = Some(place);
        }
        at += 1;
    }
    assert!(found.is_some(), "the frame has no such place after the one before");
    match found {
        Some(place) => place,
        None => (0, 0),
    }
}

/// A line of a comment that begins here, without what it is indented by.
const fn mark(text: &[u8], at: usize, name: &[u8]) -> Option<(usize, usize)> {
    let end = at + name.len();
    if has(text, at, name) && has(text, end, b"\n") { Some((at, end + 1)) } else { None }
}

/// The value of a constant whose declaration begins here.
const fn constant(text: &[u8], at: usize, name: &[u8]) -> Option<(usize, usize)> {
    let after = at + b"const ".len();
    let start = after + name.len() + b" = ".len();
    if !(has(text, at, b"const ") && has(text, after, name) && has(text, after + name.len(), b" = ")) {
        return None;
    }
    let mut end = start;
    while !has(text, end, b";") {
        end += 1;
    }
    Some((start, end))
}

/// Returns whether a text has a part at a byte.
const fn has(text: &[u8], at: usize, part: &[u8]) -> bool {
    let mut number = 0;
    while number < part.len() {
        if at + number >= text.len() || text[at + number] != part[number] {
            return false;
        }
        number += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::Frame;

    const TEXT: &str = "const LANES = 256u;\nconst BLOCK = 16u * LANES;\nfn main() {\n    // BODY\n}\n";
    const FRAME: Frame<3> = Frame::new(TEXT, ["LANES", "BLOCK", "// BODY"]);

    #[test]
    fn places_are_filled() {
        assert_eq!(FRAME.filled([None; 3]), TEXT);
        let filled = FRAME.filled([Some("64u"), None, Some("let x = 1;\n    let y = 2;\n")]);
        let expected =
            "const LANES = 64u;\nconst BLOCK = 16u * LANES;\nfn main() {\n    let x = 1;\n    let y = 2;\n}\n";
        assert_eq!(filled, expected);
    }

    #[test]
    fn a_place_that_is_not_there_is_refused() {
        let refused = |text: &'static str, name| std::panic::catch_unwind(|| Frame::new(text, [name])).is_err();
        assert!(refused(TEXT, "WIDTH") && refused(TEXT, "// SUMS"));
        assert!(refused("// SUMS", "// SUMS"), "not a line");
        assert!(refused("// SUMS\n// SUMS\n", "// SUMS"), "there are two");
        assert!(!refused("const A_B = 1u;\nconst A = 2u;\n", "A"));
        assert!(std::panic::catch_unwind(|| Frame::new(TEXT, ["BLOCK", "LANES"])).is_err(), "another order");
    }
}

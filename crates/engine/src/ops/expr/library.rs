//! The functions that expressions use, of which a kernel takes those that it calls and those that they call: what is not there is not parsed.

use cantus_base::listed::Listed;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Functions for every kind of device, after the functions of floats.
const COMMON: [&str; 3] =
    [cantus_shaders::tensor::numbers::CONVERSIONS, cantus_shaders::tensor::numbers::WIDE, COMPLEX];
const COMPLEX: &str = cantus_shaders::tensor::numbers::COMPLEX;

/// The functions of complex numbers once more, of parts of f64.
static DOUBLE_COMPLEX: LazyLock<String> = LazyLock::new(|| {
    let doubled = [("complex_", "double_complex_"), ("float_", "double_"), ("vec2f", "vec2<f64>"), ("f32", "f64")];
    doubled.iter().fold(COMPLEX.to_owned(), |text, (single, double)| text.replace(single, double))
});

/// Linked for devices whose own functions are not accurate, and for those whose are.
const TEXTS: [&str; 2] =
    [cantus_shaders::prepared::ELEMENTWISE_FUNCTIONS_PORTABLE, cantus_shaders::prepared::ELEMENTWISE_FUNCTIONS_NATIVE];

/// A function or a constant.
struct Item {
    text: &'static str,
    /// The places in the library of the items that its text names, its own among them.
    names: Vec<usize>,
}

struct Library {
    items: Vec<Item>,
    places: HashMap<&'static str, usize>,
}

/// Returns the identifiers in a text, and other words of the same characters.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
}

impl Library {
    /// Parses texts in which each item begins a line, and nothing else begins one with its keyword.
    fn new(texts: &[&'static str]) -> Self {
        let texts: Vec<&str> = texts.iter().copied().flat_map(Self::split).listed();
        let places: HashMap<&str, usize> =
            texts.iter().enumerate().filter_map(|(place, text)| Some((words(text).nth(1)?, place))).collect();
        let names = |text: &str| words(text).filter_map(|word| places.get(word).copied()).listed();
        let items = texts.iter().map(|text| Item { text, names: names(text) }).listed();
        Self { items, places }
    }

    /// The texts of a text's items.
    fn split(text: &'static str) -> Vec<&'static str> {
        let begins = |line: &str| line.starts_with("fn ") || line.starts_with("const ");
        let mut starts = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if begins(line) {
                starts.push(at);
            }
            at += line.len();
        }
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        starts.iter().zip(ends).filter_map(|(&start, end)| text.get(start..end)).listed()
    }

    /// The items that a body needs, in the library's order.
    fn used(&self, body: &str) -> String {
        let mut needed = vec![false; self.items.len()];
        let mut open: Vec<usize> = words(body).filter_map(|word| self.places.get(word).copied()).listed();
        while let Some(place) = open.pop() {
            let (Some(seen), Some(item)) = (needed.get_mut(place), self.items.get(place)) else { continue };
            if !std::mem::replace(seen, true) {
                open.extend(&item.names);
            }
        }
        self.items.iter().zip(needed).filter(|(_, needed)| *needed).map(|(item, _)| item.text).collect()
    }
}

/// A body with the functions that it uses before it, for both kinds of device.
pub(super) fn linked(body: &str) -> [String; 2] {
    static LIBRARIES: LazyLock<[Library; 2]> = LazyLock::new(|| {
        TEXTS.map(|text| {
            let texts: Vec<&str> = [text].into_iter().chain(COMMON).chain([DOUBLE_COMPLEX.as_str()]).listed();
            Library::new(&texts)
        })
    });
    // `enable` directives come first.
    let enabled = body.split_inclusive('\n').take_while(|line| line.starts_with("enable ")).map(str::len).sum();
    let (enabled, rest) = body.split_at(enabled);
    LIBRARIES.each_ref().map(|library| enabled.to_owned() + &library.used(rest) + rest)
}

#[cfg(test)]
mod tests {
    use super::linked;

    #[test]
    fn a_body_takes_what_it_calls() {
        let [portable, native] = linked("fn main() { y = float_sigmoid(x); }");
        let functions = |text: &str| text.matches("fn ").count();
        // The sigmoid, and the exponential beneath it, which on portable devices looks for numbers that are not finite.
        assert_eq!((functions(&portable), functions(&native)), (8, 3), "{portable}\n{native}");
        assert!(portable.contains("fn accurate_exp") && !portable.contains("fn accurate_log"));
        assert_eq!(linked("fn main() {}")[0], "fn main() {}");
        assert!(linked("enable f16;\nfn main() { y = float_relu(x); }")[0].starts_with("enable f16;\n"));
    }
}

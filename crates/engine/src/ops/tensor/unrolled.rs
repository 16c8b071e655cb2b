//! Statements of frames that are written out once for each of an invocation's elements: sorts, counts and norms of rows hold those in registers.
//! WGSL's compilers do not unroll loops over an array, so that it would lie in memory.

/// A text with the lines that have a hash sign once for each of `each` elements, whose number replaces the sign.
pub(super) fn unrolled(text: &str, each: usize) -> String {
    let mut unrolled = String::new();
    for line in text.split_inclusive('\n') {
        match line.contains('#') {
            true => (0..each).for_each(|number| unrolled += &line.replace('#', &number.to_string())),
            false => unrolled += line,
        }
    }
    unrolled
}

#[cfg(test)]
mod tests {
    use super::unrolled;

    #[test]
    fn lines_with_a_hash_are_repeated() {
        assert_eq!(unrolled("a\nlet x# = f(#u);\nb\n", 2), "a\nlet x0 = f(0u);\nlet x1 = f(1u);\nb\n");
    }
}

//! Text put together out of line.

/// As the standard library's, which this hides wherever a crate of Cantus takes it. That one looks, wherever it is used, whether the text is a
/// constant, and is 74 lines of LLVM IR in each of 1,700 places; a call is 44.
#[doc(hidden)]
#[macro_export]
macro_rules! format {
    ($($arguments:tt)*) => {
        $crate::text::text(::std::format_args!($($arguments)*))
    };
}

/// What `format` calls.
#[must_use]
#[inline(never)]
pub fn text(arguments: std::fmt::Arguments<'_>) -> String {
    std::fmt::format(arguments)
}

//! UniFFI's generator, of the version that the library was built with.

fn main() {
    uniffi::uniffi_bindgen_main();
}

//! Vectors that others made and that are not part of the project: in the folder `vectors` beside it, or where `CANTUS_VECTORS` points.

use std::path::PathBuf;

/// From hexadecimal digits.
pub(super) fn bytes(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|place| u8::from_str_radix(&text[2 * place..2 * place + 2], 16).unwrap()).collect()
}

/// Name, input, and what is expected; `None` where the input is refused.
pub(super) type Row = (String, Vec<u8>, Option<Vec<u8>>);

/// The rows of a file of vectors; `None` where it is not.
pub(super) fn rows(folder: &str, name: &str) -> Option<Vec<Row>> {
    let folder = std::env::var_os("CANTUS_VECTORS")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/vectors")), PathBuf::from)
        .join(folder);
    let path = folder.join(name);
    let Ok(text) = std::fs::read_to_string(&path) else {
        kit::not_run(name, &format!("it is not in {}", folder.display()));
        return None;
    };
    let list: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert!(!list.is_empty());
    let row = |value: &serde_json::Value| {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        (text("Name").unwrap_or_default(), bytes(&text("Input").unwrap()), text("Expected").map(|text| bytes(&text)))
    };
    Some(list.iter().map(row).collect())
}

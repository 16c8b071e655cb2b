//! Writes `docs/hardware/README.md` from the reports beside it.

use std::path::Path;

use cantus_verify::record::{Record, page};

use crate::prepare::{Generated, Outcome, stale};

pub fn write(root: &Path) -> Outcome<String> {
    let page = generate(root)?;
    std::fs::write(&page.path, &page.bytes)?;
    Ok("docs/hardware/README.md is up to date".to_owned())
}

pub fn check(root: &Path) -> Outcome<String> {
    if stale(root, &[generate(root)?]).is_empty() {
        return Ok("docs/hardware/README.md is fresh".to_owned());
    }
    Err("docs/hardware/README.md is not fresh (run cargo xtask hardware and commit)".into())
}

fn generate(root: &Path) -> Outcome<Generated> {
    let folder = root.join("docs/hardware");
    let mut reports = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let record: Record = serde_json::from_slice(&std::fs::read(&path)?)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            reports.push((name, record));
        }
    }
    reports.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Generated { path: folder.join("README.md"), bytes: page(&reports).into_bytes() })
}

//! Snapshots read back from a folder, for comparing two states of the API.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::diff::Catalogue;
use crate::error::{Error, Result};
use crate::snapshots;

/// The operations of a repository, of its `codegen-snapshots/`, or of its `data-design/`.
///
/// Snapshots come before specs where a folder has both: they are what was reviewed.
pub fn load(dir: &Path) -> Result<Catalogue> {
    for folder in [
        dir.join("codegen-snapshots/operations"),
        dir.join("operations"),
    ] {
        if folder.is_dir() {
            return from_snapshots(&folder);
        }
    }
    for folder in [dir.join("data-design"), dir.to_owned()] {
        if folder.join("surface.yaml").is_file() {
            return Ok(snapshots::operations(&crate::read(&folder)?));
        }
    }
    let found = from_snapshots(dir)?;
    match found.is_empty() {
        false => Ok(found),
        true => Err(Error::Usage(format!(
            "{} holds neither snapshots of operations nor a data-design/",
            dir.display()
        ))),
    }
}

fn from_snapshots(dir: &Path) -> Result<Catalogue> {
    let fail = |path: &Path, source: std::io::Error| Error::Read {
        path: path.to_owned(),
        source,
    };
    let mut catalogue = Catalogue::new();
    for entry in std::fs::read_dir(dir).map_err(|source| fail(dir, source))? {
        let path: PathBuf = entry.map_err(|source| fail(dir, source))?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|source| fail(&path, source))?;
        let snapshot: Value = serde_json::from_str(&text).map_err(|error| Error::Document {
            file: path.display().to_string(),
            pointer: String::new(),
            message: format!(" is not a snapshot: {error}"),
        })?;
        if let Some(name) = snapshot.get("name").and_then(Value::as_str) {
            catalogue.insert(name.to_owned(), snapshot.clone());
        }
    }
    Ok(catalogue)
}

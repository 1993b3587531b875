//! Loads operation snapshots from a folder, for comparing two versions of the API.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::diff::OperationSnapshots;
use crate::error::{Error, Result};
use crate::snapshots;

/// Loads the operations of a repository, of its `codegen-snapshots/`, or of its `data-design/`.
///
/// If a folder has both snapshots and specs, the reviewed snapshots take precedence.
pub fn load(dir: &Path) -> Result<OperationSnapshots> {
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
    let operations = from_snapshots(dir)?;
    if operations.is_empty() {
        return Err(Error::Usage(format!(
            "{} contains neither operation snapshots nor a data-design/",
            dir.display()
        )));
    }
    Ok(operations)
}

fn from_snapshots(dir: &Path) -> Result<OperationSnapshots> {
    let fail = |path: &Path, source: std::io::Error| Error::Read {
        path: path.to_owned(),
        source,
    };
    let mut operations = OperationSnapshots::new();
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
            operations.insert(name.to_owned(), snapshot.clone());
        }
    }
    Ok(operations)
}

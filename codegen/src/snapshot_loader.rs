//! Loads snapshots from a folder, for comparing two versions of the API.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::diff::{ApiSnapshot, OperationSnapshots};
use crate::error::{Error, Result};
use crate::{Design, shared_definitions, snapshots};

/// The file with the sets of tools.
pub const SETS: &str = "codegen-snapshots/sets.json";
/// The file with the commands.
pub const COMMANDS: &str = "codegen-snapshots/commands.json";

/// Loads a repository, its `codegen-snapshots/`, or its `data-design/`.
///
/// If a folder has both snapshots and specs, the reviewed snapshots take precedence.
pub fn load(dir: &Path) -> Result<ApiSnapshot> {
    for folder in [dir.join("codegen-snapshots"), dir.to_owned()] {
        let operations = folder.join("operations");
        if operations.is_dir() {
            return Ok(ApiSnapshot {
                operations: from_snapshots(&operations, &folder)?,
                tools: load_tools(&folder.join("tools"))?,
                sets: load_optional(&folder.join("sets.json"))?,
                commands: load_optional(&folder.join("commands.json"))?,
            });
        }
    }
    for folder in [dir.join("data-design"), dir.to_owned()] {
        if folder.join("surface.yaml").is_file() {
            return Ok(of_design(&crate::read(&folder)?));
        }
    }
    let operations = from_snapshots(dir, &dir.join(".."))?;
    if operations.is_empty() {
        return Err(Error::Usage(format!(
            "{} contains neither operation snapshots nor a data-design/",
            dir.display()
        )));
    }
    Ok(ApiSnapshot {
        operations,
        ..ApiSnapshot::default()
    })
}

/// Returns what callers see of a design.
pub fn of_design(design: &Design) -> ApiSnapshot {
    let tools = design.tools.tools.iter();
    let tools = tools.map(|(name, tool)| (name.clone(), json!(tool)));
    ApiSnapshot {
        operations: snapshots::operations(design),
        tools: Some(tools.collect()),
        sets: Some(design.tools.sets.clone()),
        commands: Some(json!(design.commands)),
    }
}

/// Loads the operations of a folder; `parent` has the folder of what they share.
fn from_snapshots(dir: &Path, parent: &Path) -> Result<OperationSnapshots> {
    let snapshots = json_files(dir)?.into_iter();
    let named = snapshots.filter_map(|snapshot| {
        let name = snapshot.get("name")?.as_str()?.to_owned();
        Some((name, snapshot))
    });
    let mut operations = named.collect();
    shared_definitions::restore(&mut operations, parent)?;
    Ok(operations)
}

/// Loads the tools; older versions may have none.
fn load_tools(dir: &Path) -> Result<Option<BTreeMap<String, Value>>> {
    if !dir.is_dir() {
        return Ok(None);
    }
    let tools = json_files(dir)?.into_iter();
    let named = tools.filter_map(|tool| {
        let name = tool.pointer("/definition/name")?.as_str()?.to_owned();
        Some((name, tool))
    });
    Ok(Some(named.collect()))
}

/// Loads a file that older versions may not have.
fn load_optional<T: DeserializeOwned>(file: &Path) -> Result<Option<T>> {
    if file.is_file() {
        read_json(file).map(Some)
    } else {
        Ok(None)
    }
}

fn json_files(dir: &Path) -> Result<Vec<Value>> {
    let fail = |source: std::io::Error| Error::Read {
        path: dir.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let path: PathBuf = entry.map_err(fail)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(read_json(&path)?);
        }
    }
    Ok(files)
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_str(&text).map_err(|error| Error::Document {
        file: path.display().to_string(),
        pointer: String::new(),
        message: format!(" is not a snapshot: {error}"),
    })
}

//! Generates from new specs without touching the repository.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::UpdateError;
use crate::diff::ApiSnapshot;
use crate::load::Document;
use crate::{Design, GeneratedOutput, snapshot_loader};

/// Everything that the new specs result in.
pub(super) struct StagedOutput {
    /// The generated files.
    pub(super) output: GeneratedOutput,
    design: Design,
}

impl StagedOutput {
    /// Returns what callers see.
    pub(super) fn snapshot(&self) -> ApiSnapshot {
        snapshot_loader::of_design(&self.design)
    }

    /// Returns the specs with their overlays applied.
    pub(super) fn documents(&self) -> Vec<&Document> {
        self.design.documents.values().collect()
    }
}

/// Generates from a copy of `root/data-design` in which `files` are replaced.
pub(super) fn generate(
    root: &Path,
    files: &BTreeMap<String, String>,
) -> Result<StagedOutput, UpdateError> {
    let temporary = tempfile::tempdir().map_err(UpdateError::reading(std::env::temp_dir()))?;
    let copy = temporary.path().join("data-design");
    copy_folder(&root.join("data-design"), &copy)?;
    for (name, text) in files {
        let path = copy.join(name);
        std::fs::write(&path, text).map_err(UpdateError::reading(&path))?;
    }
    let mut design = crate::read(&copy)?;
    let output = crate::generate_from(&mut design, &copy, root)?;
    Ok(StagedOutput { output, design })
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), UpdateError> {
    std::fs::create_dir_all(to).map_err(UpdateError::reading(to))?;
    for entry in std::fs::read_dir(from).map_err(UpdateError::reading(from))? {
        let path = entry.map_err(UpdateError::reading(from))?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_folder(&path, &target)?;
        } else {
            std::fs::copy(&path, &target).map_err(UpdateError::reading(&path))?;
        }
    }
    Ok(())
}

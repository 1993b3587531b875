//! Stage 10: compares the generated files with those on disk, or writes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{Error, Notice, Result};
use crate::fingerprint;

/// The folders that the generator owns. It removes any other file in them, except the manifest of the
/// crate.
pub const OWNED_FOLDERS: &[&str] = &["generated", "codegen-snapshots"];

/// Everything that the generator produces.
#[derive(Debug)]
pub struct GeneratedOutput {
    /// Contents by path relative to the repository.
    pub files: BTreeMap<String, String>,
    /// Notices for the maintainer.
    pub notices: Vec<Notice>,
    /// Why parts of the specs were left out.
    pub omissions: Vec<Error>,
}

impl GeneratedOutput {
    /// Fails if parts of the specs were left out.
    pub fn into_strict(self) -> Result<Self> {
        if self.omissions.is_empty() {
            Ok(self)
        } else {
            Err(Error::Omitted(self.omissions))
        }
    }

    /// Fails with the files below `root` that differ, are missing, or are obsolete.
    pub fn compare(&self, root: &Path) -> Result<()> {
        let mut stale: Vec<String> = self
            .files
            .iter()
            .filter(|(name, content)| !has_content(&root.join(name), content))
            .map(|(name, _)| name.clone())
            .collect();
        stale.extend(self.obsolete_files(root)?);
        stale.sort();
        if stale.is_empty() {
            Ok(())
        } else {
            Err(Error::Stale { files: stale })
        }
    }

    /// Writes files that differ and removes obsolete ones. Returns the names of the changed files.
    pub fn write(&self, root: &Path) -> Result<Vec<String>> {
        let mut changed = Vec::new();
        for (name, content) in &self.files {
            let path = root.join(name);
            // An unchanged file retains its modification time, so it is not compiled again.
            if has_content(&path, content) {
                continue;
            }
            replace(&path, content)?;
            changed.push(name.clone());
        }
        for name in self.obsolete_files(root)? {
            let path = root.join(&name);
            std::fs::remove_file(&path).map_err(|source| Error::Write { path, source })?;
            changed.push(name);
        }
        Ok(changed)
    }

    /// Returns the files below `root` in the generator's folders that it no longer produces.
    pub(crate) fn obsolete_files(&self, root: &Path) -> Result<Vec<String>> {
        let mut present = Vec::new();
        for folder in OWNED_FOLDERS {
            list_files(root, &root.join(folder), &mut present)?;
        }
        let manifest = format!("generated/{}", fingerprint::MANIFEST);
        present.retain(|name| !self.files.contains_key(name) && *name != manifest);
        Ok(present)
    }
}

/// Returns whether a file has this content.
pub(crate) fn has_content(path: &Path, content: &str) -> bool {
    std::fs::read(path).is_ok_and(|present| present == content.as_bytes())
}

/// Replaces a file atomically, so that a reader never sees a partial file.
pub(crate) fn replace(path: &Path, content: &str) -> Result<()> {
    let fail = |source: std::io::Error| Error::Write {
        path: path.to_owned(),
        source,
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(fail)?;
    }
    let temporary = path.with_extension("writing");
    std::fs::write(&temporary, content).map_err(fail)?;
    std::fs::rename(&temporary, path).map_err(|source| {
        let _ = std::fs::remove_file(&temporary);
        fail(source)
    })
}

fn list_files(root: &Path, dir: &Path, found: &mut Vec<String>) -> Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    let fail = |source: std::io::Error| Error::Read {
        path: dir.to_owned(),
        source,
    };
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let path: PathBuf = entry.map_err(fail)?.path();
        if path.is_dir() {
            list_files(root, &path, found)?;
        } else if let Ok(relative) = path.strip_prefix(root) {
            found.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

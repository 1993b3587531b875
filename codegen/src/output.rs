//! Stage 10: the files, compared or written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{Error, Notice, Result};
use crate::fingerprint;

/// The folders that belong to the generator. Anything else in them is left over and removed, except
/// the manifest of the crate.
pub const OWNED: &[&str] = &["generated", "codegen-snapshots"];

/// Everything that generation produces.
#[derive(Debug)]
pub struct Output {
    /// Contents by path relative to the repository.
    pub files: BTreeMap<String, String>,
    /// What a maintainer should know.
    pub notices: Vec<Notice>,
}

impl Output {
    /// Names the files below `root` that differ, are missing, or are left over.
    pub fn compare(&self, root: &Path) -> Result<()> {
        let mut stale: Vec<String> = self
            .files
            .iter()
            .filter(|(name, content)| !same(&root.join(name), content))
            .map(|(name, _)| name.clone())
            .collect();
        stale.extend(self.left_over(root)?);
        stale.sort();
        match stale.is_empty() {
            true => Ok(()),
            false => Err(Error::Stale { files: stale }),
        }
    }

    /// Writes what differs and removes what is left over; gives the names of the changed files.
    pub fn write(&self, root: &Path) -> Result<Vec<String>> {
        let mut changed = Vec::new();
        for (name, content) in &self.files {
            let path = root.join(name);
            // An untouched file keeps its time stamp, so nothing is compiled again for it.
            if same(&path, content) {
                continue;
            }
            replace(&path, content)?;
            changed.push(name.clone());
        }
        for name in self.left_over(root)? {
            let path = root.join(&name);
            std::fs::remove_file(&path).map_err(|source| Error::Write { path, source })?;
            changed.push(name);
        }
        Ok(changed)
    }

    fn left_over(&self, root: &Path) -> Result<Vec<String>> {
        let mut present = Vec::new();
        for folder in OWNED {
            list(root, &root.join(folder), &mut present)?;
        }
        let manifest = format!("generated/{}", fingerprint::MANIFEST);
        present.retain(|name| !self.files.contains_key(name) && *name != manifest);
        Ok(present)
    }
}

fn same(path: &Path, content: &str) -> bool {
    std::fs::read(path).is_ok_and(|present| present == content.as_bytes())
}

/// A reader sees the old file or the new one, never half of it.
fn replace(path: &Path, content: &str) -> Result<()> {
    let fail = |source: std::io::Error| Error::Write {
        path: path.to_owned(),
        source,
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(fail)?;
    }
    let temporary = path.with_extension("writing");
    std::fs::write(&temporary, content).map_err(fail)?;
    std::fs::rename(&temporary, path).map_err(fail)
}

fn list(root: &Path, dir: &Path, found: &mut Vec<String>) -> Result<()> {
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
            list(root, &path, found)?;
        } else if let Ok(relative) = path.strip_prefix(root) {
            found.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

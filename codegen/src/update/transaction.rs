//! Writes many files, or none if one of them cannot be written.

use std::path::{Path, PathBuf};

use super::error::UpdateError;
use crate::output::{has_content, replace};

/// A file with its former content, to restore it.
struct Backup {
    path: PathBuf,
    content: Option<Vec<u8>>,
}

/// Writes and removes files below `root`. Returns the names of those that changed.
///
/// After an error, all files have their former contents.
pub fn write_all<'a>(
    root: &Path,
    files: impl Iterator<Item = (&'a str, &'a str)>,
    removed: &[String],
) -> Result<Vec<String>, UpdateError> {
    let removals = removed.iter().map(|name| (name.as_str(), None));
    let changes = files.map(|(name, content)| (name, Some(content)));
    let mut backups = Vec::new();
    let mut changed = Vec::new();
    for (name, content) in changes.chain(removals) {
        let path = root.join(name);
        if content.is_some_and(|content| has_content(&path, content)) {
            continue;
        }
        backups.push(Backup {
            content: std::fs::read(&path).ok(),
            path: path.clone(),
        });
        if let Err(source) = apply(&path, content) {
            restore(&backups);
            return Err(UpdateError::Write { path, source });
        }
        changed.push(name.to_owned());
    }
    Ok(changed)
}

fn apply(path: &Path, content: Option<&str>) -> std::io::Result<()> {
    match content {
        None => std::fs::remove_file(path),
        Some(content) => match replace(path, content) {
            Err(crate::Error::Write { source, .. }) => Err(source),
            Err(error) => Err(std::io::Error::other(error)),
            Ok(()) => Ok(()),
        },
    }
}

/// Restores the files, the last one first. A file that cannot be restored is skipped.
fn restore(backups: &[Backup]) {
    for backup in backups.iter().rev() {
        let _ = match &backup.content {
            Some(content) => std::fs::write(&backup.path, content),
            None => std::fs::remove_file(&backup.path),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restores_all_files_if_one_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::write(root.join("a"), "old").unwrap();
        // A folder in the place of a file cannot be replaced.
        std::fs::create_dir_all(root.join("c/d")).unwrap();
        let files = [("a", "new"), ("b", "new"), ("c", "new")];
        let error = write_all(root, files.into_iter(), &[]).unwrap_err();
        assert!(error.to_string().contains("restored"), "{error}");
        assert_eq!(std::fs::read_to_string(root.join("a")).unwrap(), "old");
        assert!(!root.join("b").exists());
    }

    #[test]
    fn writes_and_removes_only_what_differs() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in ["a", "b", "c"] {
            std::fs::write(root.join(name), "old").unwrap();
        }
        let files = [("a", "new"), ("b", "old"), ("d/e", "new")];
        let changed = write_all(root, files.into_iter(), &["c".to_owned()]).unwrap();
        assert_eq!(changed, ["a", "d/e", "c"]);
        assert!(!root.join("c").exists());
    }
}

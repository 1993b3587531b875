//! Liveness of the processes that share a database: each holds a locked file next to it. The operating system
//! releases the lock when the process ends, even by a crash.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The lock of a live process.
pub(super) struct LivenessLock {
    path: PathBuf,
    _file: File,
}

impl Drop for LivenessLock {
    fn drop(&mut self) {
        // If this fails, the next check of the name removes the file.
        let _ = fs::remove_file(&self.path);
    }
}

/// Acquires the lock of a process.
pub(super) fn acquire(database: &Path, name: &str) -> io::Result<LivenessLock> {
    let path = lock_path(database, name)?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(LivenessLock { path, _file: file }),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns whether the process of this name is alive. Removes the file of one that is not.
pub(super) fn is_held(database: &Path, name: &str) -> io::Result<bool> {
    let path = lock_path(database, name)?;
    let file = match OpenOptions::new().write(true).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {
            let _ = fs::remove_file(&path);
            Ok(false)
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns the path of a lock. Names come from a database that others may write, so they must not escape its
/// directory.
fn lock_path(database: &Path, name: &str) -> io::Result<PathBuf> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut path = database.as_os_str().to_owned();
    path.push(format!("-alive-{name}"));
    Ok(path.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_until_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        assert!(!is_held(&file, "a").unwrap());
        let lock = acquire(&file, "a").unwrap();
        assert!(is_held(&file, "a").unwrap());
        assert!(!is_held(&file, "b").unwrap());
        assert!(acquire(&file, "a").is_err());
        drop(lock);
        assert!(!is_held(&file, "a").unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn removes_lock_files_of_dead_processes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        fs::write(folder.path().join("store.db-alive-a"), "").unwrap();
        assert!(!is_held(&file, "a").unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        for invalid in ["", "../a", "a/b", "a.b"] {
            assert!(is_held(&file, invalid).is_err(), "{invalid}");
        }
    }
}

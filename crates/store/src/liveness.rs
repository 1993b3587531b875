//! Signs of life of the processes that share a file: a locked file beside it for each. The system frees
//! the lock when the process ends, whatever its end.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A sign of this process.
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // One that stays behind is removed by whoever sees that its process has ended.
        let _ = fs::remove_file(&self.path);
    }
}

/// Shows a sign beside a file.
pub(super) fn show(beside: &Path, name: &str) -> io::Result<Lock> {
    let path = place(beside, name)?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock { path, _file: file }),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether the process with this sign lives.
pub(super) fn is_shown(beside: &Path, name: &str) -> io::Result<bool> {
    let path = place(beside, name)?;
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

/// Names come out of a file that others may write, so they must not lead elsewhere.
fn place(beside: &Path, name: &str) -> io::Result<PathBuf> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut path = beside.as_os_str().to_owned();
    path.push(format!("-alive-{name}"));
    Ok(path.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_lasts_as_long_as_it_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        assert!(!is_shown(&file, "a").unwrap());
        let lock = show(&file, "a").unwrap();
        assert!(is_shown(&file, "a").unwrap());
        assert!(!is_shown(&file, "b").unwrap());
        assert!(show(&file, "a").is_err());
        drop(lock);
        assert!(!is_shown(&file, "a").unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_process_left_behind_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        fs::write(folder.path().join("store.db-alive-a"), "").unwrap();
        assert!(!is_shown(&file, "a").unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        for odd in ["", "../a", "a/b", "a.b"] {
            assert!(is_shown(&file, odd).is_err(), "{odd}");
        }
    }
}

//! Opens a file that must be inside certain folders.
//!
//! The check applies to the file that was opened, not to the requested path: between checking and opening a path,
//! one of its folders may be replaced by a symbolic link. So the path is resolved and checked, opened without
//! following a link at its end, and then the opened file itself is checked.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use url::Url;

use super::folders::Allowed;

/// The most folders that an error lists.
const MAX_LISTED: usize = 5;

/// An open file that may be read.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) file: File,
    pub(super) size: u64,
}

/// Opens a regular file inside the allowed folders. A relative path is tried in each of them.
///
/// # Errors
/// Returns a predicate that completes a sentence about the argument, such as "is empty".
pub(super) fn open(given: &str, allowed: &Allowed) -> Result<OpenFile, String> {
    open_with_hook(given, allowed, || ())
}

/// Like [`open`], with a hook between checking the path and opening it.
fn open_with_hook(
    given: &str,
    allowed: &Allowed,
    before_open: impl FnOnce(),
) -> Result<OpenFile, String> {
    let path = parse_path(given)?;
    let scope = FolderScope::new(allowed)?;
    let path = scope.resolve(&path)?;
    check_regular(&fs::symlink_metadata(&path).map_err(|error| unreadable(&error))?)?;
    before_open();
    let file = open_no_follow(&path).map_err(|error| unreadable(&error))?;
    let metadata = file.metadata().map_err(|error| unreadable(&error))?;
    check_regular(&metadata)?;
    if !scope.contains_file(&file, &path) {
        return Err("was moved while it was being opened; try again".to_owned());
    }
    Ok(OpenFile {
        file,
        size: metadata.len(),
    })
}

/// Parses a path, which models also write as a `file://` URL.
fn parse_path(given: &str) -> Result<PathBuf, String> {
    let given = given.trim();
    if given.is_empty() {
        return Err("is empty".to_owned());
    }
    if given.contains('\0') {
        return Err("is not a path".to_owned());
    }
    match Url::parse(given) {
        Ok(url) if url.scheme() == "file" => url
            .to_file_path()
            .map_err(|()| "is the URL of a file on another machine".to_owned()),
        Ok(url) if url.has_host() => Err("must be the path of a file, not a web URL".to_owned()),
        _ => Ok(PathBuf::from(given)),
    }
}

/// The allowed folders, canonicalized.
struct FolderScope {
    anywhere: bool,
    folders: Vec<PathBuf>,
}

impl FolderScope {
    fn new(allowed: &Allowed) -> Result<Self, String> {
        let Allowed::Within(given) = allowed else {
            return Ok(Self {
                anywhere: true,
                folders: Vec::new(),
            });
        };
        let folders: Vec<PathBuf> = given
            .iter()
            .filter_map(|folder| fs::canonicalize(folder).ok())
            .filter(|folder| folder.is_dir())
            .collect();
        if folders.is_empty() {
            return Err(format!(
                "cannot be read, because none of the folders that are open to this server exists: {}",
                list(given)
            ));
        }
        Ok(Self {
            anywhere: false,
            folders,
        })
    }

    /// Compares whole path components, so that `/home/ann` does not contain `/home/anna`.
    fn contains(&self, path: &Path) -> bool {
        self.anywhere || self.folders.iter().any(|folder| path.starts_with(folder))
    }

    /// Resolves a path, which must be inside the folders.
    fn resolve(&self, path: &Path) -> Result<PathBuf, String> {
        let candidates: Vec<PathBuf> = if path.is_relative() && !self.anywhere {
            self.folders.iter().map(|it| it.join(path)).collect()
        } else {
            vec![path.to_owned()]
        };
        let mut missing = false;
        for candidate in &candidates {
            match fs::canonicalize(candidate) {
                Ok(path) if self.contains(&path) => return Ok(path),
                Ok(_) => {}
                // The error must not reveal whether a file outside the folders exists.
                Err(error) if self.contains(&nearest_folder(candidate)) => match error.kind() {
                    io::ErrorKind::NotFound => missing = true,
                    _ => return Err(unreadable(&error)),
                },
                Err(_) => {}
            }
        }
        if missing {
            return Err("does not exist".to_owned());
        }
        Err(format!(
            "is outside the folders that are open to this server ({}); put the file into one of them, or give its \
             text as `csvContent`",
            list(&self.folders)
        ))
    }

    /// Returns whether an open file is inside the folders.
    fn contains_file(&self, file: &File, path: &Path) -> bool {
        if self.anywhere {
            return true;
        }
        match real_path(file) {
            Some(real) => self.contains(&real),
            None => self.contains_same(file, path),
        }
    }

    /// Returns whether the file at `path` is still inside the folders and is the open file.
    fn contains_same(&self, file: &File, path: &Path) -> bool {
        let current = fs::canonicalize(path)
            .ok()
            .filter(|path| self.contains(path));
        let current = current.and_then(|path| fs::symlink_metadata(path).ok());
        match (current, file.metadata()) {
            (Some(current), Ok(opened)) => is_same(&current, &opened),
            _ => false,
        }
    }
}

/// Returns the innermost existing folder of a path, canonicalized.
fn nearest_folder(path: &Path) -> PathBuf {
    let mut ancestors = path.ancestors().skip(1);
    let found = ancestors.find_map(|folder| fs::canonicalize(folder).ok());
    found.unwrap_or_default()
}

fn list(folders: &[PathBuf]) -> String {
    let listed = folders.iter().take(MAX_LISTED);
    let mut names: Vec<String> = listed.map(|folder| folder.display().to_string()).collect();
    if folders.len() > MAX_LISTED {
        names.push("…".to_owned());
    }
    names.join(", ")
}

fn check_regular(metadata: &fs::Metadata) -> Result<(), String> {
    if metadata.is_file() {
        Ok(())
    } else if metadata.is_dir() {
        Err("is a folder, not a file".to_owned())
    } else {
        Err("is not a regular file".to_owned())
    }
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "is not readable by this server".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

/// Opens a file without following a symbolic link, and without blocking on a pipe or a device.
#[cfg(unix)]
fn open_no_follow(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
fn open_no_follow(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

/// Returns the path of an open file, as reported by the system.
#[cfg(target_os = "linux")]
fn real_path(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    let real = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    real.is_absolute().then_some(real)
}

#[cfg(not(target_os = "linux"))]
fn real_path(_file: &File) -> Option<PathBuf> {
    None
}

#[cfg(unix)]
fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    let facts = |it: &fs::Metadata| (it.len(), it.modified().ok(), it.created().ok());
    facts(one) == facts(other)
}

#[cfg(all(test, unix))]
#[path = "file_tests.rs"]
mod tests;

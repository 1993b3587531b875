//! Opening a file that must lie inside certain folders.
//!
//! What counts is the file that was opened, not the path that was asked for: between a look at a path
//! and its opening, a folder on the way may become a link to somewhere else. So the path is resolved
//! and judged, opened without following a link at its end, and then the opened file itself is judged.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use url::Url;

use super::folders::Allowed;

/// Folders that a refusal names.
const MOST_NAMED: usize = 5;

/// A file that may be read.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) size: u64,
}

/// Opens a regular file inside the allowed folders. A relative path is looked for in each of them.
///
/// # Errors
/// Why not, in half a sentence that goes on after the name of the argument.
pub(super) fn open(given: &str, allowed: &Allowed) -> Result<Opened, String> {
    open_with(given, allowed, || ())
}

/// The same with something that happens between the look at the path and its opening.
fn open_with(given: &str, allowed: &Allowed, between: impl FnOnce()) -> Result<Opened, String> {
    let path = read_path(given)?;
    let inside = Inside::of(allowed)?;
    let place = inside.find(&path)?;
    regular(&fs::symlink_metadata(&place).map_err(|error| unreadable(&error))?)?;
    between();
    let file = open_itself(&place).map_err(|error| unreadable(&error))?;
    let metadata = file.metadata().map_err(|error| unreadable(&error))?;
    regular(&metadata)?;
    if !inside.holds_opened(&file, &place) {
        return Err("was moved while it was opened; try again".to_owned());
    }
    Ok(Opened {
        file,
        size: metadata.len(),
    })
}

/// A path, which models also write as an address.
fn read_path(given: &str) -> Result<PathBuf, String> {
    let given = given.trim();
    if given.is_empty() {
        return Err("is empty".to_owned());
    }
    if given.contains('\0') {
        return Err("is no path".to_owned());
    }
    match Url::parse(given) {
        Ok(url) if url.scheme() == "file" => url
            .to_file_path()
            .map_err(|()| "is an address of a file on another machine".to_owned()),
        Ok(url) if url.has_host() => {
            Err("must be a path of a file, not an address on the web".to_owned())
        }
        _ => Ok(PathBuf::from(given)),
    }
}

/// The folders in the form in which paths are compared: absolute, without links.
struct Inside {
    anywhere: bool,
    folders: Vec<PathBuf>,
}

impl Inside {
    fn of(allowed: &Allowed) -> Result<Self, String> {
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
        match folders.is_empty() {
            true => Err(format!(
                "cannot be read, because none of the folders that are open to this server exists: {}",
                names(given)
            )),
            false => Ok(Self {
                anywhere: false,
                folders,
            }),
        }
    }

    /// Compared by whole steps, so that `/home/ann` does not hold `/home/anna`.
    fn holds(&self, place: &Path) -> bool {
        self.anywhere || self.folders.iter().any(|folder| place.starts_with(folder))
    }

    /// Where a path leads after all links, if that is inside.
    fn find(&self, path: &Path) -> Result<PathBuf, String> {
        let candidates: Vec<PathBuf> = match path.is_relative() && !self.anywhere {
            true => self.folders.iter().map(|it| it.join(path)).collect(),
            false => vec![path.to_owned()],
        };
        let mut missing = false;
        for candidate in &candidates {
            match fs::canonicalize(candidate) {
                Ok(place) if self.holds(&place) => return Ok(place),
                Ok(_) => {}
                // Whether something exists outside is nobody's business.
                Err(error) if self.holds(&nearest(candidate)) => match error.kind() {
                    io::ErrorKind::NotFound => missing = true,
                    _ => return Err(unreadable(&error)),
                },
                Err(_) => {}
            }
        }
        match missing {
            true => Err("names no file that exists".to_owned()),
            false => Err(format!(
                "lies outside the folders that are open to this server ({}); put the file into one of them, or give \
                 its text as `csvContent`",
                names(&self.folders)
            )),
        }
    }

    /// Judges an opened file by where it really is.
    fn holds_opened(&self, file: &File, place: &Path) -> bool {
        if self.anywhere {
            return true;
        }
        match real_path(file) {
            Some(real) => self.holds(&real),
            None => self.holds_same(file, place),
        }
    }

    /// Judges an opened file by the place it was opened at: what is there now, inside, must be it.
    fn holds_same(&self, file: &File, place: &Path) -> bool {
        let now = fs::canonicalize(place).ok().filter(|now| self.holds(now));
        let there = now.and_then(|now| fs::symlink_metadata(now).ok());
        match (there, file.metadata()) {
            (Some(there), Ok(opened)) => is_same(&there, &opened),
            _ => false,
        }
    }
}

/// The innermost folder of a path that exists, after all links.
fn nearest(path: &Path) -> PathBuf {
    let mut outwards = path.ancestors().skip(1);
    let found = outwards.find_map(|folder| fs::canonicalize(folder).ok());
    found.unwrap_or_default()
}

fn names(folders: &[PathBuf]) -> String {
    let named = folders.iter().take(MOST_NAMED);
    let mut names: Vec<String> = named.map(|folder| folder.display().to_string()).collect();
    if folders.len() > MOST_NAMED {
        names.push("…".to_owned());
    }
    names.join(", ")
}

fn regular(metadata: &fs::Metadata) -> Result<(), String> {
    match (metadata.is_file(), metadata.is_dir()) {
        (true, _) => Ok(()),
        (false, true) => Err("is a folder, not a file".to_owned()),
        (false, false) => Err("is not a regular file".to_owned()),
    }
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "names no file that exists".to_owned(),
        io::ErrorKind::PermissionDenied => "may not be read by this server".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

/// Opens what stands at this place. A link that has come there since is not followed, and a pipe or a
/// device does not keep us waiting.
#[cfg(unix)]
fn open_itself(place: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(place)
}

#[cfg(not(unix))]
fn open_itself(place: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(place)
}

/// Where an opened file is, as the system knows it.
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

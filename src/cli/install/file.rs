//! Reading and writing configuration files: atomically, through symbolic links, with a backup.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::InstallError;

/// The end of a backup's name.
const BACKUP_SUFFIX: &str = ".exa-mcp-server.bak";

/// The maximum number of symbolic links to follow.
const MAX_LINKS: usize = 40;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A configuration file and its content.
#[derive(Debug)]
pub(super) struct ClientFile {
    /// The path that the client uses.
    pub(super) path: PathBuf,
    /// The file that the path leads to through symbolic links.
    target: PathBuf,
    content: Option<Vec<u8>>,
}

impl ClientFile {
    pub(super) fn read(path: PathBuf) -> Result<Self, InstallError> {
        let failed = |source| InstallError::Read {
            path: path.clone(),
            source,
        };
        let target = follow_links(&path).map_err(failed)?;
        let content = read_if_exists(&target).map_err(failed)?;
        Ok(Self {
            path,
            target,
            content,
        })
    }

    pub(super) fn exists(&self) -> bool {
        self.content.is_some()
    }

    /// Returns the text without a byte order mark.
    pub(super) fn text(&self) -> Result<&str, InstallError> {
        let bytes = self.content.as_deref().unwrap_or_default();
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            InstallError::Broken {
                path: self.path.clone(),
                line: 1 + valid.iter().filter(|byte| **byte == b'\n').count(),
                message: "the text is not UTF-8".to_owned(),
            }
        })?;
        Ok(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))
    }

    /// Returns the path of the backup.
    pub(super) fn backup_path(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(BACKUP_SUFFIX);
        self.path.with_file_name(name)
    }

    /// Returns the text of the backup, if there is one in the same encoding.
    pub(super) fn backup(&self) -> Option<String> {
        let bytes = fs::read(self.backup_path()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let plain = text.strip_prefix(BYTE_ORDER_MARK);
        let same_encoding = !self.exists() || plain.is_some() == self.has_mark();
        same_encoding.then(|| plain.unwrap_or(&text).to_owned())
    }

    /// Copies the file to its backup.
    pub(super) fn back_up(&self) -> Result<(), InstallError> {
        let Some(content) = &self.content else {
            return Ok(());
        };
        let path = self.backup_path();
        write_atomically(&path, content, &self.target)
            .map_err(|source| InstallError::Write { path, source })
    }

    /// Replaces the text.
    pub(super) fn write(&self, text: &str) -> Result<(), InstallError> {
        let failed = |source| InstallError::Write {
            path: self.path.clone(),
            source,
        };
        if read_if_exists(&self.target).map_err(failed)? != self.content {
            return Err(InstallError::Changed(self.path.clone()));
        }
        let mark = if self.has_mark() { BYTE_ORDER_MARK } else { "" };
        let content = format!("{mark}{text}");
        if let Some(folder) = self.target.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        write_atomically(&self.target, content.as_bytes(), &self.target).map_err(failed)
    }

    /// Deletes the file.
    pub(super) fn delete(&self) -> Result<(), InstallError> {
        fs::remove_file(&self.target).map_err(|source| InstallError::Write {
            path: self.path.clone(),
            source,
        })
    }

    /// Rejects a file that is protected. Renaming another over it would be possible.
    pub(super) fn check_writable(&self) -> Result<(), InstallError> {
        let metadata = fs::metadata(&self.target);
        if metadata.is_ok_and(|metadata| metadata.permissions().readonly()) {
            return Err(InstallError::ReadOnly(self.path.clone()));
        }
        Ok(())
    }

    fn has_mark(&self) -> bool {
        let bytes = self.content.as_deref().unwrap_or_default();
        bytes.starts_with(BYTE_ORDER_MARK.as_bytes())
    }
}

fn read_if_exists(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns what a path leads to. The last file need not exist.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let is_link = fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
        if !is_link {
            return Ok(path);
        }
        let target = fs::read_link(&path)?;
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Writes a file under another name and renames it, so that no reader sees half of it. It gets the permissions of
/// another file; a new one is for its owner only.
fn write_atomically(path: &Path, content: &[u8], like: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(content)?;
    if let Ok(metadata) = fs::metadata(like) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

//! Secrets that stand in files of their own: `EXA_API_KEYS_FILE` names the file with `EXA_API_KEYS`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::known::{KNOWN, Kind, Known};
use super::variable;

/// The longest file that is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// What the name of the variable ends with.
const SUFFIX: &str = "_FILE";

/// Why a secret cannot be used. No text of it repeats the secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretFileError {
    /// The file cannot be read.
    #[error("{variable}_FILE: {path} cannot be read: {source}")]
    Read {
        /// The variable that the file stands for.
        variable: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is longer than any secret.
    #[error("{variable}_FILE: {path} is longer than {MAX_BYTES} bytes; is it the right file?")]
    TooLong {
        /// The variable that the file stands for.
        variable: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The file says nothing.
    #[error(
        "{variable}_FILE: {path} is empty; write the value into it, or do not set {variable}_FILE"
    )]
    Empty {
        /// The variable that the file stands for.
        variable: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The same is said twice.
    #[error("{variable} and {variable}_FILE are both set; set one of them")]
    Twice {
        /// The variable that the file stands for.
        variable: &'static str,
    },
}

/// Secrets that stand in files of their own, by the variable that would say the same. Not for printing.
#[derive(Default)]
pub(super) struct SecretFiles(BTreeMap<&'static str, SecretFile>);

struct SecretFile {
    path: PathBuf,
    text: String,
}

impl SecretFiles {
    /// Reads all files that the environment names.
    pub(super) fn read() -> Result<Self, SecretFileError> {
        let mut files = BTreeMap::new();
        for known in KNOWN.iter().filter(|known| known.secret) {
            let name = known.variable;
            let Some(path) = variable(&format!("{name}{SUFFIX}")) else {
                continue;
            };
            if variable(name).is_some() {
                return Err(SecretFileError::Twice { variable: name });
            }
            let path = PathBuf::from(path);
            let text = read(known, &path)?;
            files.insert(name, SecretFile { path, text });
        }
        Ok(Self(files))
    }

    /// What stands in the file for this variable.
    pub(super) fn text(&self, variable: &str) -> Option<&str> {
        Some(&self.0.get(variable)?.text)
    }

    /// The variables that have a file, and the files.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        self.0
            .iter()
            .map(|(name, file)| (*name, file.path.as_path()))
    }
}

fn read(known: &Known, path: &Path) -> Result<String, SecretFileError> {
    let (variable, path) = (known.variable, path.to_owned());
    let mut text = String::new();
    let read =
        File::open(&path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
    if let Err(source) = read {
        return Err(SecretFileError::Read {
            variable,
            path,
            source,
        });
    }
    if text.len() as u64 > MAX_BYTES {
        return Err(SecretFileError::TooLong { variable, path });
    }
    if text.trim().is_empty() {
        return Err(SecretFileError::Empty { variable, path });
    }
    Ok(match known.kind {
        // One entry a line reads better in a file.
        Kind::List => {
            let lines = text.lines().map(str::trim);
            let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
            lines.join(",")
        }
        _ => text.trim_end_matches(['\r', '\n']).to_owned(),
    })
}

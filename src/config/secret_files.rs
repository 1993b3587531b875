//! Secrets in separate files: `EXA_API_KEYS_FILE` names the file with `EXA_API_KEYS`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::setting::{SETTINGS, Setting, ValueType};
use super::variable;

/// The maximum size of a file.
const MAX_BYTES: u64 = 1024 * 1024;

/// The suffix of the variable.
const SUFFIX: &str = "_FILE";

/// An unusable secret file. The messages never contain the secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretFileError {
    /// The file cannot be read.
    #[error("{variable}_FILE: {path} cannot be read: {source}")]
    Read {
        /// The variable that the file replaces.
        variable: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file is too large.
    #[error("{variable}_FILE: {path} exceeds {MAX_BYTES} bytes; is it the right file?")]
    TooLong {
        /// The variable that the file replaces.
        variable: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The file is empty.
    #[error("{variable}_FILE: {path} is empty; write the value to it or unset {variable}_FILE")]
    Empty {
        /// The variable that the file replaces.
        variable: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// Both the variable and its file are set.
    #[error("{variable} and {variable}_FILE are both set; set one of them")]
    Twice {
        /// The variable that the file replaces.
        variable: &'static str,
    },
}

/// Secrets from files, by the variable they replace. There is no `Debug` implementation.
#[derive(Default)]
pub(super) struct SecretFiles(BTreeMap<&'static str, SecretFile>);

struct SecretFile {
    path: PathBuf,
    text: String,
}

impl SecretFiles {
    /// Reads all files named in the environment.
    pub(super) fn read() -> Result<Self, SecretFileError> {
        let mut files = BTreeMap::new();
        for setting in SETTINGS.iter().filter(|setting| setting.secret) {
            let name = setting.variable;
            let Some(path) = variable(&format!("{name}{SUFFIX}")) else {
                continue;
            };
            if variable(name).is_some() {
                return Err(SecretFileError::Twice { variable: name });
            }
            let path = PathBuf::from(path);
            let text = read(setting, &path)?;
            files.insert(name, SecretFile { path, text });
        }
        Ok(Self(files))
    }

    /// Returns the content of the file for this variable.
    pub(super) fn text(&self, variable: &str) -> Option<&str> {
        Some(&self.0.get(variable)?.text)
    }

    /// Returns the replaced variables with the paths of their files.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        self.0
            .iter()
            .map(|(name, file)| (*name, file.path.as_path()))
    }
}

fn read(setting: &Setting, path: &Path) -> Result<String, SecretFileError> {
    let (variable, path) = (setting.variable, path.to_owned());
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
    Ok(match setting.value_type {
        // In a file, one entry per line is allowed too.
        ValueType::List => {
            let lines = text.lines().map(str::trim);
            let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
            lines.join(",")
        }
        _ => text.trim_end_matches(['\r', '\n']).to_owned(),
    })
}

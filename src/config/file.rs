//! The configuration file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};

use super::known::{Kind, Known, by_key, nearest};
use super::secret_files::SecretFileError;

/// The longest file that is read.
const LONGEST: u64 = 1024 * 1024;

/// A file that was read. Not for printing: it holds secrets.
pub(crate) struct ConfigFile {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What it says, by the variable that would say the same.
    values: BTreeMap<&'static str, Entry>,
    /// Whether everybody on this machine can read or change it.
    open_to_all: bool,
}

/// One line of the file.
struct Entry {
    known: &'static Known,
    /// What the variable would hold.
    text: String,
    line: usize,
}

/// Why the file cannot be used. No text of it repeats a value, which may be a secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigFileError {
    /// It cannot be read.
    #[error("the configuration file {path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is longer than any configuration.
    #[error("the configuration file {path} is longer than {LONGEST} bytes; is it the right file?")]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// A file with a secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// It has mistakes.
    #[error("the configuration file {path} cannot be used:{}", listed(.problems))]
    Mistakes {
        /// The file.
        path: PathBuf,
        /// All of them, each with its line.
        problems: Vec<Problem>,
    },
}

/// A mistake in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    line: usize,
    text: String,
}

fn listed(problems: &[Problem]) -> String {
    let line = |problem: &Problem| format!("\n  line {}: {}", problem.line, problem.text);
    problems.iter().map(line).collect()
}

impl ConfigFile {
    /// Reads a file that somebody named.
    pub(super) fn read(path: &Path) -> Result<Self, ConfigFileError> {
        let named = |source| ConfigFileError::Read {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(named)?;
        Self::from_open(file, path)
    }

    /// Reads the file at the usual place, if there is one.
    pub(super) fn read_usual(path: &Path) -> Result<Option<Self>, ConfigFileError> {
        match File::open(path) {
            Ok(file) => Self::from_open(file, path).map(Some),
            // A service may be kept away from all homes; nobody named this file.
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied => {
                    Ok(None)
                }
                _ => Err(ConfigFileError::Read {
                    path: path.to_owned(),
                    source: error,
                }),
            },
        }
    }

    fn from_open(file: File, path: &Path) -> Result<Self, ConfigFileError> {
        let open_to_all = is_open_to_all(&file);
        let mut bytes = Vec::new();
        let read = file.take(LONGEST + 1).read_to_end(&mut bytes);
        read.map_err(|source| ConfigFileError::Read {
            path: path.to_owned(),
            source,
        })?;
        if bytes.len() as u64 > LONGEST {
            return Err(ConfigFileError::TooLong {
                path: path.to_owned(),
            });
        }
        let values = parse(&bytes).map_err(|problems| ConfigFileError::Mistakes {
            path: path.to_owned(),
            problems,
        })?;
        Ok(Self {
            path: path.to_owned(),
            values,
            open_to_all,
        })
    }

    /// What the file says instead of a variable.
    pub(super) fn text(&self, variable: &str) -> Option<&str> {
        self.as_written(variable)
            .filter(|text| !text.trim().is_empty())
    }

    /// What it sets, even if that is nothing.
    pub(super) fn as_written(&self, variable: &str) -> Option<&str> {
        let entry = self.values.get(variable)?;
        Some(&entry.text)
    }

    /// The settings that it has, and the line of each.
    pub(super) fn settings(&self) -> impl Iterator<Item = (&'static Known, usize)> {
        let entries = self.values.values();
        entries.map(|entry| (entry.known, entry.line))
    }

    /// What to say about a file that shows its secrets to everybody.
    pub(crate) fn warning(&self) -> Option<String> {
        let has_secrets = self.settings().any(|(known, _)| known.secret);
        (self.open_to_all && has_secrets).then(|| {
            format!(
                "everybody on this machine can read or change the secrets in {path}; do: chmod 600 {path}",
                path = self.path.display()
            )
        })
    }
}

#[cfg(unix)]
fn is_open_to_all(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let read_or_write = 0o006;
    file.metadata()
        .is_ok_and(|about| about.is_file() && about.mode() & read_or_write != 0)
}

#[cfg(not(unix))]
fn is_open_to_all(_: &File) -> bool {
    false
}

/// All settings of a file, or all its mistakes.
fn parse(bytes: &[u8]) -> Result<BTreeMap<&'static str, Entry>, Vec<Problem>> {
    let line_of = |place: usize| {
        let before = bytes.get(..place).unwrap_or(bytes);
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    };
    let problem = |place, text| Problem {
        line: line_of(place),
        text,
    };
    let text = std::str::from_utf8(bytes)
        .map_err(|error| vec![problem(error.valid_up_to(), "this is no UTF-8".to_owned())])?;
    // The library would show the line, which may hold a secret.
    let table = DeTable::parse(text).map_err(|error| {
        let place = error.span().map_or(0, |span| span.start);
        vec![problem(
            place,
            format!("this is no TOML: {}", error.message()),
        )]
    })?;
    let (mut values, mut problems) = (BTreeMap::new(), Vec::new());
    for (key, value) in table.get_ref() {
        let place = key.span().start;
        match setting(key.get_ref(), value.get_ref()) {
            Ok((known, text)) => {
                let line = line_of(place);
                values.insert(known.variable, Entry { known, text, line });
            }
            Err(text) => problems.push(problem(place, text)),
        }
    }
    problems.sort_by_key(|problem| problem.line);
    match problems.is_empty() {
        true => Ok(values),
        false => Err(problems),
    }
}

/// The setting that a key names, and its value as a variable would hold it.
fn setting(key: &str, value: &DeValue<'_>) -> Result<(&'static Known, String), String> {
    let Some(known) = by_key(key) else {
        let advice = match nearest(key) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "keys are the variables of `exa-mcp-server http --help` in lower case, without EXA_MCP_".to_owned(),
        };
        return Err(format!("there is no setting `{key}`; {advice}"));
    };
    let text = written(known.kind, value);
    text.map(|text| (known, text)).ok_or_else(|| {
        let (allowed, found) = (known.kind.allowed(), value.type_str());
        format!("`{key}` must be {allowed}; this is of type {found}")
    })
}

/// A value as a variable would hold it, if it is of the kind.
fn written(kind: Kind, value: &DeValue<'_>) -> Option<String> {
    match (kind, value) {
        (Kind::Text | Kind::List | Kind::Folders, DeValue::String(text)) => Some(text.to_string()),
        (Kind::List, DeValue::Array(_)) => Some(texts(value)?.join(",")),
        (Kind::Folders, DeValue::Array(_)) => {
            let joined = std::env::join_paths(texts(value)?).ok()?;
            joined.into_string().ok()
        }
        (Kind::Number, DeValue::Integer(number)) => {
            let number = u64::from_str_radix(number.as_str(), number.radix()).ok()?;
            Some(number.to_string())
        }
        (Kind::Switch, DeValue::Boolean(on)) => Some(on.to_string()),
        (Kind::Dollars, DeValue::Integer(_) | DeValue::Float(_)) => Some(json(value)?.to_string()),
        (Kind::Limits, DeValue::Table(_)) => Some(json(value)?.to_string()),
        _ => None,
    }
}

fn texts(value: &DeValue<'_>) -> Option<Vec<String>> {
    let items = value.as_array()?.iter();
    items
        .map(|item| item.get_ref().as_str().map(str::to_owned))
        .collect()
}

/// A value as JSON has it.
fn json(value: &DeValue<'_>) -> Option<Json> {
    Some(match value {
        DeValue::String(text) => Json::from(text.as_ref()),
        DeValue::Boolean(on) => Json::from(*on),
        DeValue::Integer(number) => {
            Json::from(i64::from_str_radix(number.as_str(), number.radix()).ok()?)
        }
        DeValue::Float(number) => Json::from(number.as_str().parse::<f64>().ok()?),
        DeValue::Array(items) => {
            let items: Option<Vec<Json>> = items.iter().map(|item| json(item.get_ref())).collect();
            Json::from(items?)
        }
        DeValue::Table(fields) => {
            let fields = fields.iter();
            let field = fields
                .map(|(name, value)| Some((name.get_ref().to_string(), json(value.get_ref())?)));
            Json::Object(field.collect::<Option<_>>()?)
        }
        DeValue::Datetime(_) => return None,
    })
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;

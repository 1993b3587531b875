//! The configuration file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};
use toml::de::{DeTable, DeValue};

use super::default_arguments::{self, DEFAULTS};
use super::secret_files::SecretFileError;
use super::setting::{Setting, ValueType, by_key, suggest_key};

/// The maximum size of the file.
const MAX_BYTES: u64 = 1024 * 1024;

/// A parsed configuration file. It contains secrets, so it does not implement `Debug`.
pub(crate) struct ConfigFile {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The settings by environment variable.
    values: BTreeMap<&'static str, FileSetting>,
    /// Default arguments of operations, by operation.
    default_arguments: Map<String, Json>,
    /// Whether every user of this machine can read or write it.
    world_accessible: bool,
}

/// One setting of the file.
struct FileSetting {
    setting: &'static Setting,
    /// The value in the form of the environment variable.
    text: String,
    line: usize,
}

/// An unusable configuration file. The messages never contain values, which may be secrets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigFileError {
    /// The file cannot be read.
    #[error("the configuration file {path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file is too large.
    #[error("the configuration file {path} exceeds {MAX_BYTES} bytes; is it the right file?")]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// A file with a secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// The content is invalid.
    #[error("the configuration file {path} is invalid:{}", format_problems(.problems))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// All problems with their lines.
        problems: Vec<ConfigProblem>,
    },
}

/// A problem in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigProblem {
    line: usize,
    text: String,
}

fn format_problems(problems: &[ConfigProblem]) -> String {
    let line = |problem: &ConfigProblem| format!("\n  line {}: {}", problem.line, problem.text);
    problems.iter().map(line).collect()
}

impl ConfigFile {
    /// Reads an explicitly named file.
    pub(super) fn read(path: &Path) -> Result<Self, ConfigFileError> {
        let named = |source| ConfigFileError::Read {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(named)?;
        Self::from_open(file, path)
    }

    /// Reads the file at the default path, if it exists.
    pub(super) fn read_default(path: &Path) -> Result<Option<Self>, ConfigFileError> {
        match File::open(path) {
            Ok(file) => Self::from_open(file, path).map(Some),
            // A service may have no access to home directories, and nobody asked for this file.
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
        let world_accessible = is_world_accessible(&file);
        let mut bytes = Vec::new();
        let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|source| ConfigFileError::Read {
            path: path.to_owned(),
            source,
        })?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(ConfigFileError::TooLong {
                path: path.to_owned(),
            });
        }
        let (values, default_arguments) =
            parse(&bytes).map_err(|problems| ConfigFileError::Invalid {
                path: path.to_owned(),
                problems,
            })?;
        Ok(Self {
            path: path.to_owned(),
            values,
            default_arguments,
            world_accessible,
        })
    }

    /// Checks the content of a file. Returns its default arguments.
    pub(crate) fn check(bytes: &[u8]) -> Result<Map<String, Json>, String> {
        let (_, default_arguments) = parse(bytes).map_err(|problems| {
            let texts = problems.into_iter();
            let texts: Vec<String> = texts
                .map(|problem| format!("line {}: {}", problem.line, problem.text))
                .collect();
            texts.join("; ")
        })?;
        Ok(default_arguments)
    }

    /// Returns the default arguments of operations, by operation.
    pub(crate) fn default_arguments(&self) -> &Map<String, Json> {
        &self.default_arguments
    }

    /// Returns the value of a setting, unless it is blank.
    pub(crate) fn text(&self, variable: &str) -> Option<&str> {
        self.as_written(variable)
            .filter(|text| !text.trim().is_empty())
    }

    /// Returns the value of a setting, even if it is blank.
    pub(super) fn as_written(&self, variable: &str) -> Option<&str> {
        let entry = self.values.get(variable)?;
        Some(&entry.text)
    }

    /// Returns the settings of the file with their lines.
    pub(super) fn settings(&self) -> impl Iterator<Item = (&'static Setting, usize)> {
        let entries = self.values.values();
        entries.map(|entry| (entry.setting, entry.line))
    }

    /// Returns a warning if every user of this machine can access the secrets in the file.
    pub(crate) fn warning(&self) -> Option<String> {
        let has_secrets = self.settings().any(|(setting, _)| setting.secret);
        (self.world_accessible && has_secrets).then(|| {
            format!(
                "every user of this machine can read or change the secrets in {path}; run: chmod 600 {path}",
                path = self.path.display()
            )
        })
    }
}

#[cfg(unix)]
fn is_world_accessible(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let read_or_write = 0o006;
    file.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.mode() & read_or_write != 0)
}

#[cfg(not(unix))]
fn is_world_accessible(_: &File) -> bool {
    false
}

/// The settings by environment variable, and the default arguments by operation.
type Parsed = (BTreeMap<&'static str, FileSetting>, Map<String, Json>);

/// Parses all settings of a file, or returns all problems.
fn parse(bytes: &[u8]) -> Result<Parsed, Vec<ConfigProblem>> {
    let line_of = |offset: usize| {
        let before = bytes.get(..offset).unwrap_or(bytes);
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    };
    let problem = |offset, text| ConfigProblem {
        line: line_of(offset),
        text,
    };
    let text = std::str::from_utf8(bytes)
        .map_err(|error| vec![problem(error.valid_up_to(), "invalid UTF-8".to_owned())])?;
    // The library's message would quote the line, which may contain a secret.
    let table = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        vec![problem(
            offset,
            format!("invalid TOML: {}", error.message()),
        )]
    })?;
    let (mut values, mut problems) = (BTreeMap::new(), Vec::new());
    let mut default_arguments = Map::new();
    for (key, value) in table.get_ref() {
        let offset = key.span().start;
        if key.get_ref() == DEFAULTS {
            match to_json(value.get_ref()).map_or_else(
                || Err(format!("`{DEFAULTS}` must be a table without dates")),
                default_arguments::read,
            ) {
                Ok(found) => default_arguments = found,
                Err(text) => problems.push(problem(offset, text)),
            }
            continue;
        }
        match parse_setting(key.get_ref(), value.get_ref()) {
            Ok((setting, text)) => {
                let line = line_of(offset);
                values.insert(
                    setting.variable,
                    FileSetting {
                        setting,
                        text,
                        line,
                    },
                );
            }
            Err(text) => problems.push(problem(offset, text)),
        }
    }
    problems.sort_by_key(|problem| problem.line);
    if problems.is_empty() {
        Ok((values, default_arguments))
    } else {
        Err(problems)
    }
}

/// Parses a setting. Returns its value in the form of the environment variable.
fn parse_setting(key: &str, value: &DeValue<'_>) -> Result<(&'static Setting, String), String> {
    let Some(setting) = by_key(key) else {
        let advice = match suggest_key(key) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "keys are the variables of `exa-mcp-server http --help` in lower case, without EXA_MCP_".to_owned(),
        };
        return Err(format!("unknown setting `{key}`; {advice}"));
    };
    let text = to_variable_text(setting.value_type, value);
    text.map(|text| (setting, text)).ok_or_else(|| {
        let (expected, found) = (setting.value_type.expected(), value.type_str());
        format!("`{key}` must be {expected}, not a value of type {found}")
    })
}

/// Converts a value of the expected type to the form of the environment variable.
fn to_variable_text(value_type: ValueType, value: &DeValue<'_>) -> Option<String> {
    match (value_type, value) {
        (ValueType::Text | ValueType::List | ValueType::Paths, DeValue::String(text)) => {
            Some(text.to_string())
        }
        (ValueType::List, DeValue::Array(_)) => Some(string_array(value)?.join(",")),
        (ValueType::Paths, DeValue::Array(_)) => {
            let joined = std::env::join_paths(string_array(value)?).ok()?;
            joined.into_string().ok()
        }
        (ValueType::Integer, DeValue::Integer(number)) => {
            let number = u64::from_str_radix(number.as_str(), number.radix()).ok()?;
            Some(number.to_string())
        }
        (ValueType::Boolean, DeValue::Boolean(on)) => Some(on.to_string()),
        (ValueType::Dollars, DeValue::Integer(_) | DeValue::Float(_)) => {
            Some(to_json(value)?.to_string())
        }
        (ValueType::Table, DeValue::Table(_)) => Some(to_json(value)?.to_string()),
        _ => None,
    }
}

fn string_array(value: &DeValue<'_>) -> Option<Vec<String>> {
    let items = value.as_array()?.iter();
    items
        .map(|item| item.get_ref().as_str().map(str::to_owned))
        .collect()
}

/// Converts a TOML value to JSON.
fn to_json(value: &DeValue<'_>) -> Option<Json> {
    Some(match value {
        DeValue::String(text) => Json::from(text.as_ref()),
        DeValue::Boolean(on) => Json::from(*on),
        DeValue::Integer(number) => {
            Json::from(i64::from_str_radix(number.as_str(), number.radix()).ok()?)
        }
        DeValue::Float(number) => Json::from(number.as_str().parse::<f64>().ok()?),
        DeValue::Array(items) => {
            let items: Option<Vec<Json>> =
                items.iter().map(|item| to_json(item.get_ref())).collect();
            Json::from(items?)
        }
        DeValue::Table(fields) => {
            let fields = fields.iter();
            let field = fields
                .map(|(name, value)| Some((name.get_ref().to_string(), to_json(value.get_ref())?)));
            Json::Object(field.collect::<Option<_>>()?)
        }
        DeValue::Datetime(_) => return None,
    })
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;

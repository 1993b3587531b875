//! `exa-mcp-server config`: reads and changes the configuration file.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::{Failure, command_name, output};
use crate::config::{
    ConfigFile, SettingsSource, ValueType, default_path, setting_by_key, suggest_key,
};

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(super) enum ConfigAction {
    /// Print the value of a setting
    Get {
        /// Key of the setting, such as enabled_tools or defaults.search.type
        key: String,
    },
    /// Change a setting in the configuration file
    Set {
        /// Key of the setting, such as enabled_tools or defaults.search.type
        key: String,
        /// The value; it is removed if it is empty
        value: String,
    },
    /// List the settings that are set, without secrets
    List,
}

/// What stands for a secret.
const HIDDEN: &str = "(hidden)";

/// Runs the command.
pub(super) fn run(action: &ConfigAction, file: Option<&Path>) -> Result<String, Failure> {
    match action {
        ConfigAction::Get { key } => get(key, file),
        ConfigAction::Set { key, value } => set(key, value, file),
        ConfigAction::List => list(file),
    }
}

fn list(file: Option<&Path>) -> Result<String, Failure> {
    let source = SettingsSource::find(file).map_err(Failure::usage)?;
    let settings = crate::config::SETTINGS.iter().filter_map(|setting| {
        let text = source.text(setting.variable)?;
        let shown = if setting.secret {
            HIDDEN.to_owned()
        } else {
            text
        };
        Some((setting.key.to_owned(), json!(shown)))
    });
    let mut settings: Map<String, Value> = settings.collect();
    let defaults = source.file().map(ConfigFile::default_arguments);
    if let Some(defaults) = defaults.filter(|defaults| !defaults.is_empty()) {
        settings.insert("defaults".to_owned(), json!(defaults));
    }
    Ok(output::pretty(&Value::Object(settings)))
}

fn get(key: &str, file: Option<&Path>) -> Result<String, Failure> {
    let source = SettingsSource::find(file).map_err(Failure::usage)?;
    if let Some(path) = key.strip_prefix("defaults.") {
        let defaults = source.file().map(ConfigFile::default_arguments);
        let defaults = defaults.cloned().unwrap_or_default();
        let found = defaults.iter().find_map(|(operation, arguments)| {
            let rest = path.strip_prefix(operation.as_str())?.strip_prefix('.')?;
            output::at(arguments, rest).cloned()
        });
        return match found {
            Some(Value::String(text)) => Ok(text),
            Some(value) => Ok(value.to_string()),
            None => Err(Failure::failed(format!("`{key}` is not set"))),
        };
    }
    let setting = known(key)?;
    match source.text(setting.variable) {
        Some(_) if setting.secret => Ok(HIDDEN.to_owned()),
        Some(text) => Ok(text),
        None => Err(Failure::failed(format!("`{key}` is not set"))),
    }
}

fn known(key: &str) -> Result<&'static crate::config::Setting, Failure> {
    setting_by_key(key).ok_or_else(|| {
        let hint = match suggest_key(key) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "`{} capabilities` lists them under environment",
                command_name()
            ),
        };
        Failure::usage(format!("unknown setting `{key}`; {hint}"))
    })
}

fn set(key: &str, value: &str, file: Option<&Path>) -> Result<String, Failure> {
    let path = path(file)?;
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::usage(format!("{}: {error}", path.display()))),
    };
    let literal = if key.starts_with("defaults.") {
        default_literal(value)
    } else {
        literal(known(key)?.value_type, value)
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let is_own = |line: &String| {
        let name = line.split('=').next().unwrap_or_default();
        line.contains('=') && name.trim().replace('"', "") == key
    };
    let end = lines
        .iter()
        .position(|line| line.trim_start().starts_with('['));
    let end = end.unwrap_or(lines.len());
    let found = lines.iter().take(end).position(is_own);
    match (found, value.is_empty()) {
        (Some(index), true) => drop(lines.remove(index)),
        (None, true) => {}
        (Some(index), false) => {
            if let Some(line) = lines.get_mut(index) {
                *line = format!("{} = {literal}", toml_key(key));
            }
        }
        (None, false) => lines.insert(end, format!("{} = {literal}", toml_key(key))),
    }
    let text = lines.join("\n") + "\n";
    ConfigFile::check(text.as_bytes())
        .map_err(|problem| Failure::usage(format!("the setting was not changed: {problem}")))?;
    write(&path, &text).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
    let done = if value.is_empty() { "Removed" } else { "Set" };
    Ok(format!("{done} `{key}` in {}.", path.display()))
}

/// Returns the path of the file that is changed.
fn path(file: Option<&Path>) -> Result<PathBuf, Failure> {
    let named = file.map(Path::to_owned);
    let named = named.or_else(|| crate::config::variable("EXA_MCP_CONFIG").map(PathBuf::from));
    named.or_else(default_path).ok_or_else(|| {
        Failure::usage(
            "there is no configuration directory: set HOME, or name a file with --config",
        )
    })
}

/// Writes the file, which may contain secrets, so that only the user can read it. A crash leaves the old one.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let temporary = path.with_extension("toml.new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(temporary, path)
}

/// Returns a key with quotes where TOML wants them.
fn toml_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if key.chars().all(is_bare) {
        key.to_owned()
    } else {
        json!(key).to_string()
    }
}

/// Returns a value as TOML.
fn literal(value_type: ValueType, value: &str) -> String {
    match value_type {
        ValueType::Integer | ValueType::Boolean | ValueType::Dollars => value.trim().to_owned(),
        ValueType::Table => inline(&serde_json::from_str(value).unwrap_or(json!(value))),
        ValueType::Text | ValueType::List | ValueType::Paths => json!(value).to_string(),
    }
}

/// Returns a default argument as TOML: numbers, booleans, lists and objects are JSON.
fn default_literal(value: &str) -> String {
    inline(&serde_json::from_str(value).unwrap_or(json!(value)))
}

/// Returns JSON as an inline TOML value.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields: Vec<String> = fields
                .map(|(name, value)| format!("{} = {}", json!(name), inline(value)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Array(list) => {
            let entries: Vec<String> = list.iter().map(inline).collect();
            format!("[{}]", entries.join(", "))
        }
        other => other.to_string(),
    }
}

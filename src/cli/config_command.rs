//! `exa-mcp-server config`: reads and changes the configuration file.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::{Failure, command_name, config_edit, output};
use crate::config::{ConfigFile, SettingsSource, default_path, setting_by_key, suggest_key};
use crate::operations::{OperationError, OperationExecutor, example, find};

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
            let rest = path.strip_prefix(operation.as_str())?;
            match rest.strip_prefix('.') {
                Some(rest) => output::at(arguments, rest).cloned(),
                None => rest.is_empty().then(|| arguments.clone()),
            }
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
    // A symbolic link stays one.
    let path = path(file)?;
    let path = std::fs::canonicalize(&path).unwrap_or(path);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::usage(format!("{}: {error}", path.display()))),
    };
    let not_changed =
        |problem: String| Failure::usage(format!("`{key}` was not changed: {problem}"));
    let is_default = key.starts_with("defaults.");
    let new = if value.is_empty() {
        if !is_default {
            known(key)?;
        }
        None
    } else if is_default {
        Some(config_edit::default_value(value).map_err(not_changed)?)
    } else {
        let value_type = known(key)?.value_type;
        Some(config_edit::setting_value(value_type, value).map_err(not_changed)?)
    };
    let before = ConfigFile::check(text.as_bytes());
    let text = config_edit::edit(&text, key, new).map_err(not_changed)?;
    let defaults = ConfigFile::check(text.as_bytes()).map_err(|problem| {
        // An earlier problem is not due to the change.
        let is_earlier = before.is_err();
        let file = is_earlier.then(|| format!("{} is invalid: ", path.display()));
        not_changed(format!("{}{problem}", file.unwrap_or_default()))
    })?;
    if is_default && !value.is_empty() {
        check_default(key, &defaults).map_err(not_changed)?;
    }
    write(&path, &text).map_err(|error| {
        Failure::failed(format!("{} cannot be written: {error}", path.display()))
    })?;
    let done = if value.is_empty() { "Removed" } else { "Set" };
    Ok(format!("{done} `{key}` in {}.", path.display()))
}

/// Rejects a default argument that no call could send.
fn check_default(key: &str, defaults: &Map<String, Value>) -> Result<(), String> {
    for (name, arguments) in defaults {
        let Some(operation) = find(name) else {
            continue;
        };
        let mut call = example(operation);
        if let (Value::Object(call), Value::Object(arguments)) = (&mut call, arguments) {
            call.extend(arguments.clone());
        }
        let Err(OperationError::Arguments(error)) = OperationExecutor::validate(operation, call)
        else {
            continue;
        };
        let argument = key.strip_prefix("defaults.").and_then(|rest| {
            let rest = rest.strip_prefix(name.as_str())?.strip_prefix('.')?;
            rest.split('.').next()
        });
        let is_own = |path: &str| {
            let rest = argument.and_then(|argument| path.strip_prefix(argument));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        if let Some(problem) = error.problems.iter().find(|it| is_own(&it.path)) {
            return Err(problem.message.clone());
        }
    }
    Ok(())
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

//! The sources of settings: the environment including secret files, then the configuration file.

use std::path::{Path, PathBuf};

use super::file::{ConfigFile, ConfigFileError};
use super::secret_files::SecretFiles;
use super::setting::overriding_variables;
use super::{SettingsError, variable};

/// The environment variable with the path of the configuration file.
pub(crate) const CONFIG_VARIABLE: &str = "EXA_MCP_CONFIG";

/// The environment and the configuration file, if there is one.
#[derive(Default)]
pub(crate) struct SettingsSource {
    file: Option<ConfigFile>,
    secrets: SecretFiles,
}

impl SettingsSource {
    /// Reads the configuration file: the one named on the command line or in the environment, or the default one
    /// if it exists.
    pub(crate) fn find(named: Option<&Path>) -> Result<Self, ConfigFileError> {
        let named = named.map(Path::to_owned);
        let file = match named.or_else(|| variable(CONFIG_VARIABLE).map(PathBuf::from)) {
            Some(path) => Some(ConfigFile::read(&path)?),
            None => match default_path() {
                Some(path) => ConfigFile::read_default(&path)?,
                None => None,
            },
        };
        let secrets = SecretFiles::read()?;
        Ok(Self { file, secrets })
    }

    /// Returns the configuration file.
    pub(crate) fn file(&self) -> Option<&ConfigFile> {
        self.file.as_ref()
    }

    /// Returns the value of a setting. The environment takes precedence over the file.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = variable(name).or_else(|| self.secrets.text(name).map(str::to_owned));
        text.or_else(|| self.in_file(name).map(str::to_owned))
    }

    /// Returns the value of a setting that must not be blank, because it protects access. An empty value counts as
    /// unset: tools such as Docker Compose pass on unset variables that way.
    pub(super) fn not_blank(&self, name: &'static str) -> Result<Option<String>, SettingsError> {
        let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
        let text = self.text(name);
        let in_file = self.file.as_ref().and_then(|file| file.as_written(name));
        let blank = std::env::var(name).is_ok_and(|value| is_blank(&value))
            || text.is_none() && in_file.is_some_and(is_blank);
        if blank {
            Err(SettingsError::Blank(name))
        } else {
            Ok(text)
        }
    }

    /// Returns the value in the file, unless the environment overrides it.
    pub(super) fn in_file(&self, name: &str) -> Option<&str> {
        let text = self.file.as_ref()?.text(name)?;
        let mut overriding = overriding_variables(name);
        let overridden = overriding.any(|name| self.is_in_environment(name));
        (!overridden).then_some(text)
    }

    /// Returns whether the environment sets the variable, directly or by a secret file.
    fn is_in_environment(&self, name: &str) -> bool {
        variable(name).is_some() || self.secrets.text(name).is_some()
    }

    /// Returns a boolean setting. A typo is an error, so that it cannot disable a safeguard silently.
    pub(super) fn boolean(&self, name: &'static str) -> Result<bool, SettingsError> {
        let text = self.text(name).unwrap_or_default();
        match text.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(true),
            "" | "0" | "false" | "no" | "off" => Ok(false),
            _ => Err(SettingsError::Boolean {
                variable: name,
                value: text,
            }),
        }
    }

    /// Returns an integer setting.
    pub(super) fn number(
        &self,
        name: &'static str,
        unit: &'static str,
    ) -> Result<Option<u64>, SettingsError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let number = text.trim().replace('_', "").parse();
        number.map(Some).map_err(|_| SettingsError::Number {
            variable: name,
            value: text,
            unit,
        })
    }

    /// Adds to an error message where the mentioned variables are set.
    pub(crate) fn with_origins(&self, message: String) -> String {
        let secrets = self.secrets.iter();
        let secrets = secrets.filter(|(variable, _)| mentions(&message, variable));
        let secrets = secrets.map(|(variable, path)| {
            let path = path.display();
            format!("\n{variable} comes from the file {path} of {variable}_FILE.")
        });
        let message = message.clone() + &secrets.collect::<String>();
        let Some(file) = &self.file else {
            return message;
        };
        let named: Vec<String> = file
            .settings()
            .filter(|(setting, _)| mentions(&message, setting.variable))
            .filter(|(setting, _)| self.in_file(setting.variable).is_some())
            .map(|(setting, line)| {
                let (variable, key, path) = (setting.variable, setting.key, file.path.display());
                format!("\n{variable} comes from `{key}` in {path}, line {line}.")
            })
            .collect();
        message + &named.concat()
    }

    /// Returns the keys of the file that take effect, and those that the environment overrides.
    pub(crate) fn keys(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        let settings = self.file.iter().flat_map(ConfigFile::settings);
        let (mut used, mut overridden) = (Vec::new(), Vec::new());
        for (setting, _) in settings {
            if overriding_variables(setting.variable).any(|name| self.is_in_environment(name)) {
                overridden.push(setting.key);
            } else {
                used.push(setting.key);
            }
        }
        (used, overridden)
    }
}

/// Returns whether a text contains the variable as a whole word.
fn mentions(text: &str, variable: &str) -> bool {
    text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
        .any(|word| word == variable)
}

/// Returns the default path of the configuration file.
pub(crate) fn default_path() -> Option<PathBuf> {
    // systemd sets CONFIGURATION_DIRECTORY; otherwise the XDG conventions apply.
    let managed = variable("CONFIGURATION_DIRECTORY");
    let managed = managed.and_then(|list| std::env::split_paths(&list).next());
    let directory = managed.or_else(|| Some(user_directory()?.join(env!("CARGO_PKG_NAME"))))?;
    Some(directory.join("config.toml"))
}

/// Returns the directory for configuration of the user.
#[cfg(not(windows))]
pub(crate) fn user_directory() -> Option<PathBuf> {
    let directory = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    // The XDG specification says to ignore relative paths.
    let directory = directory.filter(|path| path.is_absolute());
    directory.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")))
}

/// Returns the directory for configuration of the user.
#[cfg(windows)]
pub(crate) fn user_directory() -> Option<PathBuf> {
    variable("APPDATA").map(PathBuf::from)
}

/// Returns the directory for files of this program that may be deleted.
pub(crate) fn cache_directory() -> Option<PathBuf> {
    let directory = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let directory = directory.filter(|path| path.is_absolute());
    #[cfg(windows)]
    let home = || Some(PathBuf::from(variable("LOCALAPPDATA")?));
    #[cfg(not(windows))]
    let home = || Some(PathBuf::from(variable("HOME")?).join(".cache"));
    Some(directory.or_else(home)?.join(env!("CARGO_PKG_NAME")))
}

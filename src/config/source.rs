//! Where settings come from: the environment with the files of secrets, and below it the configuration file.

use std::path::{Path, PathBuf};

use super::file::{ConfigFile, ConfigFileError};
use super::known::above;
use super::secret_files::SecretFiles;
use super::{SettingsError, variable};

/// The environment variable that names the file.
pub(crate) const CONFIG_VARIABLE: &str = "EXA_MCP_CONFIG";

/// The environment and the configuration file, if there is one.
#[derive(Default)]
pub(crate) struct Source {
    file: Option<ConfigFile>,
    secrets: SecretFiles,
}

impl Source {
    /// Reads the file that the command line names, or the environment, or that at the usual place if
    /// there is one.
    pub(crate) fn find(named: Option<&Path>) -> Result<Self, ConfigFileError> {
        let named = named.map(Path::to_owned);
        let file = match named.or_else(|| variable(CONFIG_VARIABLE).map(PathBuf::from)) {
            Some(path) => Some(ConfigFile::read(&path)?),
            None => match usual_place() {
                Some(path) => ConfigFile::read_usual(&path)?,
                None => None,
            },
        };
        let secrets = SecretFiles::read()?;
        Ok(Self { file, secrets })
    }

    /// The file that was read.
    pub(crate) fn file(&self) -> Option<&ConfigFile> {
        self.file.as_ref()
    }

    /// What is set; the environment wins over the file.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = variable(name).or_else(|| self.secrets.text(name).map(str::to_owned));
        text.or_else(|| self.in_file(name).map(str::to_owned))
    }

    /// What is set, where blanks alone are a mistake: whoever sets it means to close a door. Nothing at
    /// all counts as not set, because that is how others hand on what is not set.
    pub(super) fn not_blank(&self, name: &'static str) -> Result<Option<String>, SettingsError> {
        let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
        let text = self.text(name);
        let in_file = self.file.as_ref().and_then(|file| file.as_written(name));
        let blank = std::env::var(name).is_ok_and(|value| is_blank(&value))
            || text.is_none() && in_file.is_some_and(is_blank);
        match blank {
            true => Err(SettingsError::Blank(name)),
            false => Ok(text),
        }
    }

    /// What the file sets, unless the environment does.
    pub(super) fn in_file(&self, name: &str) -> Option<&str> {
        let text = self.file.as_ref()?.text(name)?;
        let mut above = above(name);
        let overruled = above.any(|name| self.is_in_environment(name));
        (!overruled).then_some(text)
    }

    /// Whether the environment sets it, or names a file that does.
    fn is_in_environment(&self, name: &str) -> bool {
        variable(name).is_some() || self.secrets.text(name).is_some()
    }

    /// Something that is on or off. A slip must not switch a safeguard off in silence.
    pub(super) fn switch(&self, name: &'static str) -> Result<bool, SettingsError> {
        let text = self.text(name).unwrap_or_default();
        match text.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(true),
            "" | "0" | "false" | "no" | "off" => Ok(false),
            _ => Err(SettingsError::Switch {
                variable: name,
                value: text,
            }),
        }
    }

    /// A number.
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

    /// A complaint that also says where in the file the variables stand that it names.
    pub(crate) fn blamed(&self, complaint: String) -> String {
        let secrets = self.secrets.iter();
        let secrets = secrets.filter(|(variable, _)| names(&complaint, variable));
        let secrets = secrets.map(|(variable, path)| {
            let path = path.display();
            format!("\n{variable} comes from the file {path} of {variable}_FILE.")
        });
        let complaint = complaint.clone() + &secrets.collect::<String>();
        let Some(file) = &self.file else {
            return complaint;
        };
        let named: Vec<String> = file
            .settings()
            .filter(|(known, _)| names(&complaint, known.variable))
            .filter(|(known, _)| self.in_file(known.variable).is_some())
            .map(|(known, line)| {
                let (variable, key, path) = (known.variable, known.key, file.path.display());
                format!("\n{variable} comes from `{key}` in {path}, line {line}.")
            })
            .collect();
        complaint + &named.concat()
    }

    /// The keys of the file that count, and those that the environment overrules.
    pub(crate) fn keys(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        let settings = self.file.iter().flat_map(ConfigFile::settings);
        let (mut used, mut overruled) = (Vec::new(), Vec::new());
        for (known, _) in settings {
            match above(known.variable).any(|name| self.is_in_environment(name)) {
                true => overruled.push(known.key),
                false => used.push(known.key),
            }
        }
        (used, overruled)
    }
}

/// Whether a text has a variable as a whole word.
fn names(text: &str, variable: &str) -> bool {
    text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
        .any(|word| word == variable)
}

/// Where the file of this user would be.
pub(crate) fn usual_place() -> Option<PathBuf> {
    // A service manager names directories; without one there are conventions.
    let managed = variable("CONFIGURATION_DIRECTORY");
    let managed = managed.and_then(|list| std::env::split_paths(&list).next());
    let directory = managed.or_else(|| Some(user_directory()?.join(env!("CARGO_PKG_NAME"))))?;
    Some(directory.join("config.toml"))
}

#[cfg(not(windows))]
fn user_directory() -> Option<PathBuf> {
    let directory = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    // A relative path there counts for nothing, says the convention.
    let directory = directory.filter(|path| path.is_absolute());
    directory.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")))
}

#[cfg(windows)]
fn user_directory() -> Option<PathBuf> {
    variable("APPDATA").map(PathBuf::from)
}

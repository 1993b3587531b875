//! Where clients keep their files on each operating system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Platform {
    Linux,
    MacOs,
    Windows,
}

/// A directory that depends on the operating system and the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// The user's home directory.
    Home,
    /// The directory for the settings of desktop applications.
    Applications,
    /// Claude Desktop's directory, which is inside of its package on Windows.
    ClaudeDesktop,
    /// Zed's directory, which is not that of other applications on macOS.
    Zed,
    /// LM Studio's directory, which its users can move.
    LmStudio,
    /// A directory that a variable names, or a folder in the home directory.
    Variable(&'static str, &'static str),
}

/// A file or folder of a client. The path is separated by `/`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) base: Base,
    pub(super) path: &'static str,
}

/// The operating system and the environment.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) platform: Platform,
    pub(super) variables: BTreeMap<String, String>,
}

impl Machine {
    /// Returns the machine that the program runs on.
    pub(super) fn current() -> Self {
        let variables = std::env::vars_os();
        let variables = variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self {
            platform: if cfg!(windows) {
                Platform::Windows
            } else if cfg!(target_os = "macos") {
                Platform::MacOs
            } else {
                Platform::Linux
            },
            variables: variables.collect(),
        }
    }

    /// Returns a variable that is not blank.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(name)?.trim();
        (!value.is_empty()).then_some(value)
    }

    /// Returns the path of a place, or nothing without a home directory.
    pub(super) fn resolve(&self, place: Place) -> Option<PathBuf> {
        let base = self.base(place.base)?;
        Some(PathBuf::from(self.join(&base, place.path)))
    }

    /// Returns whether a command is in one of the directories of `PATH`.
    pub(super) fn has_command(&self, command: &str) -> bool {
        let names: &[&str] = match self.platform {
            Platform::Windows => &[".exe", ".cmd", ".bat"],
            Platform::Linux | Platform::MacOs => &[""],
        };
        let path = self.variable("PATH").unwrap_or_default();
        let mut candidates = std::env::split_paths(path).flat_map(|folder| {
            names
                .iter()
                .map(move |end| folder.join(format!("{command}{end}")))
        });
        candidates.any(|candidate| candidate.is_file())
    }

    fn home(&self) -> Option<&str> {
        self.variable(match self.platform {
            Platform::Windows => "USERPROFILE",
            Platform::Linux | Platform::MacOs => "HOME",
        })
    }

    fn base(&self, base: Base) -> Option<String> {
        let home = self.home();
        let in_home = |path: &str| Some(self.join(home?, path));
        match base {
            Base::Home => home.map(str::to_owned),
            Base::Variable(name, path) => match self.variable(name) {
                Some(directory) => Some(directory.to_owned()),
                None => in_home(path),
            },
            Base::Applications => match self.platform {
                Platform::Linux => self.xdg_config_home(),
                Platform::MacOs => in_home("Library/Application Support"),
                Platform::Windows => self.app_data(),
            },
            Base::ClaudeDesktop => match self.claude_package() {
                Some(directory) => Some(directory),
                None => Some(self.join(&self.base(Base::Applications)?, "Claude")),
            },
            Base::Zed => match self.platform {
                Platform::Linux => Some(self.join(&self.xdg_config_home()?, "zed")),
                Platform::MacOs => in_home(".config/zed"),
                Platform::Windows => Some(self.join(&self.app_data()?, "Zed")),
            },
            Base::LmStudio => self.lm_studio(),
        }
    }

    fn xdg_config_home(&self) -> Option<String> {
        // The XDG specification says to ignore relative paths.
        let directory = self.variable("XDG_CONFIG_HOME");
        let directory = directory.filter(|directory| Path::new(directory).is_absolute());
        match directory {
            Some(directory) => Some(directory.to_owned()),
            None => Some(self.join(self.home()?, ".config")),
        }
    }

    fn app_data(&self) -> Option<String> {
        match self.variable("APPDATA") {
            Some(directory) => Some(directory.to_owned()),
            None => Some(self.join(self.home()?, "AppData/Roaming")),
        }
    }

    /// Returns the directory that Windows shows to the packaged Claude Desktop as the one of applications. The package
    /// reads its configuration nowhere else.
    fn claude_package(&self) -> Option<String> {
        if self.platform != Platform::Windows {
            return None;
        }
        let local = match self.variable("LOCALAPPDATA") {
            Some(directory) => directory.to_owned(),
            None => self.join(self.home()?, "AppData/Local"),
        };
        let packages = self.join(&local, "Packages");
        let names = std::fs::read_dir(&packages).ok()?.flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let mut directories: Vec<String> = names
            .filter(|name| name.starts_with("Claude_"))
            .map(|name| self.join(&packages, &format!("{name}/LocalCache/Roaming/Claude")))
            .filter(|directory| Path::new(directory).is_dir())
            .collect();
        directories.sort();
        let has_file = |directory: &String| {
            let file = self.join(directory, "claude_desktop_config.json");
            Path::new(&file).is_file()
        };
        let used = directories.iter().find(|directory| has_file(directory));
        used.or_else(|| directories.first()).cloned()
    }

    /// Returns LM Studio's directory, as LM Studio finds it: in the file that points to it, where old versions put it,
    /// or in the home directory.
    fn lm_studio(&self) -> Option<String> {
        let home = self.home()?;
        let pointer = self.join(home, ".lmstudio-home-pointer");
        let pointed = std::fs::read_to_string(pointer).unwrap_or_default();
        if !pointed.trim().is_empty() {
            return Some(pointed.trim().to_owned());
        }
        let old = self.join(home, ".cache/lm-studio");
        if Path::new(&old).is_dir() {
            return Some(old);
        }
        Some(self.join(home, ".lmstudio"))
    }

    /// Joins paths with the separator of the platform, which need not be that of the machine running the tests.
    fn join(&self, base: &str, path: &str) -> String {
        let (separator, path) = match self.platform {
            Platform::Windows => ('\\', path.replace('/', "\\")),
            Platform::Linux | Platform::MacOs => ('/', path.to_owned()),
        };
        let base = base.trim_end_matches(separator);
        if path.is_empty() {
            base.to_owned()
        } else {
            format!("{base}{separator}{path}")
        }
    }
}

#[cfg(test)]
#[path = "platform_tests.rs"]
mod tests;

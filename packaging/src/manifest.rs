//! `packaging/manifest.toml`.

use serde::Deserialize;

/// What every package says about the program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) summary: String,
    pub(crate) version: String,
    pub(crate) license: String,
    pub(crate) author: String,
    pub(crate) repository: String,
    pub(crate) keywords: Vec<String>,
    pub(crate) registry_name: String,
    pub(crate) npm_name: String,
    pub(crate) server_name: String,
    pub(crate) docker_name: String,
    pub(crate) docker_image: String,
    pub(crate) icon: String,
    #[serde(rename = "variable")]
    pub(crate) variables: Vec<Variable>,
    #[serde(rename = "target")]
    pub(crate) targets: Vec<Target>,
}

/// An environment variable that clients ask for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) secret: bool,
    #[serde(default)]
    pub(crate) required: bool,
    pub(crate) default: Option<String>,
    /// The flag with the same meaning.
    pub(crate) flag: Option<String>,
}

/// A platform with a published binary.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Target {
    pub(crate) triple: String,
    pub(crate) os: String,
    pub(crate) cpu: String,
    pub(crate) libc: Option<String>,
    pub(crate) runner: String,
}

impl Target {
    /// Returns the suffix of the npm package, as `bin/launcher.js` computes it at run time.
    pub(crate) fn npm_suffix(&self) -> String {
        match self.libc.as_deref() {
            Some("musl") => format!("{}-{}-musl", self.os, self.cpu),
            _ => format!("{}-{}", self.os, self.cpu),
        }
    }

    /// Returns the file name of the program on this platform.
    pub(crate) fn program(&self, name: &str) -> String {
        if self.os == "win32" {
            format!("{name}.exe")
        } else {
            name.to_owned()
        }
    }
}

//! Parses `EXA_MCP_STORE`.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use super::{MemoryStore, RedisAddress, RedisStore, SqliteStore, Store};

/// The environment variable that names the store.
pub const STORE_VARIABLE: &str = "EXA_MCP_STORE";

/// The configured store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreConfig {
    /// In memory, lost when the process ends.
    #[default]
    Memory,
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A Redis server.
    Redis(RedisAddress),
}

/// An invalid store configuration. The message never contains the value, which may include a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreConfigError {
    /// The kind of store is unknown.
    #[error("unknown kind of store; use memory:, sqlite:PATH or redis://HOST:PORT")]
    Unknown,
    /// Something follows `memory:`.
    #[error("nothing may follow memory:")]
    MemoryPath,
    /// The path of `sqlite:` is missing or not a file.
    #[error(
        "sqlite: needs the path of a file, for example sqlite:/var/lib/exa-mcp-server/store.db"
    )]
    SqlitePath,
    /// The path starts with `~`, but there is no home directory.
    #[error("the path starts with ~, but HOME is not set; write the absolute path")]
    NoHome,
    /// The address of Redis is invalid.
    #[error(
        "invalid address of Redis; write redis://[USER:PASSWORD@]HOST:PORT[/DATABASE], rediss:// for TLS, \
         or unix:///PATH, with special characters percent-encoded"
    )]
    Redis,
}

impl StoreConfig {
    /// Creates the store. It connects or opens its file at the first use, so that the server starts quickly.
    pub fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory => Arc::new(MemoryStore::default()),
            Self::Sqlite(path) => Arc::new(SqliteStore::new(path.clone())),
            Self::Redis(address) => Arc::new(RedisStore::new(address.clone())),
        }
    }
}

impl FromStr for StoreConfig {
    type Err = StoreConfigError;

    fn from_str(text: &str) -> Result<Self, StoreConfigError> {
        let text = text.trim();
        let (scheme, value) = text.split_once(':').ok_or(StoreConfigError::Unknown)?;
        match scheme.to_ascii_lowercase().as_str() {
            "memory" if value.is_empty() => Ok(Self::Memory),
            "memory" => Err(StoreConfigError::MemoryPath),
            "sqlite" => parse_sqlite(value, std::env::var_os("HOME").map(PathBuf::from)),
            "redis" | "rediss" | "unix" => {
                let address = RedisAddress::parse(text).ok_or(StoreConfigError::Redis)?;
                Ok(Self::Redis(address))
            }
            _ => Err(StoreConfigError::Unknown),
        }
    }
}

/// Parses the path of a SQLite file. Expands `~/`, because MCP clients do not pass their settings through a shell.
fn parse_sqlite(path: &str, home: Option<PathBuf>) -> Result<StoreConfig, StoreConfigError> {
    // Accept the URL form `sqlite:///var/x.db`.
    let path = path.strip_prefix("//").unwrap_or(path);
    let is_file_name = !path.ends_with(['/', '\\']) && !path.contains('\0');
    if path.is_empty() || path.starts_with(':') || !is_file_name {
        return Err(StoreConfigError::SqlitePath);
    }
    match path.strip_prefix("~/") {
        None => Ok(StoreConfig::Sqlite(PathBuf::from(path))),
        Some(relative) => match home.filter(|home| !home.as_os_str().is_empty()) {
            Some(home) => Ok(StoreConfig::Sqlite(home.join(relative))),
            None => Err(StoreConfigError::NoHome),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Result<StoreConfig, StoreConfigError> {
        Ok(StoreConfig::Sqlite(PathBuf::from(path)))
    }

    #[test]
    fn parses_every_kind_of_store() {
        assert_eq!("memory:".parse(), Ok(StoreConfig::Memory));
        assert_eq!(" Memory: ".parse(), Ok(StoreConfig::Memory));
        assert_eq!("sqlite:notes.db".parse(), file("notes.db"));
        assert_eq!("sqlite:/a/b c.db".parse(), file("/a/b c.db"));
        assert_eq!("sqlite:///a/b.db".parse(), file("/a/b.db"));
        for url in [
            "redis://:secret@host:7/1",
            "rediss://host",
            "unix:///run/r.sock",
        ] {
            let parsed = url.parse();
            assert!(matches!(parsed, Ok(StoreConfig::Redis(_))), "{url}");
            assert!(!format!("{parsed:?}").contains("secret"));
        }
        let home = Some(PathBuf::from("/home/ann"));
        assert_eq!(parse_sqlite("~/x.db", home), file("/home/ann/x.db"));
    }

    #[test]
    fn errors_do_not_contain_the_value() {
        let cases = [
            ("memory", StoreConfigError::Unknown),
            ("memory:hunter2", StoreConfigError::MemoryPath),
            ("sqlite:", StoreConfigError::SqlitePath),
            ("sqlite::memory:", StoreConfigError::SqlitePath),
            ("sqlite:/hunter2/", StoreConfigError::SqlitePath),
            ("redis://:hunter2@", StoreConfigError::Redis),
            ("rediss://host/hunter2", StoreConfigError::Redis),
            ("postgres://hunter2", StoreConfigError::Unknown),
        ];
        for (text, error) in cases {
            assert_eq!(text.parse::<StoreConfig>(), Err(error), "{text}");
            assert!(!error.to_string().contains("hunter2"));
        }
        assert_eq!(parse_sqlite("~/x.db", None), Err(StoreConfigError::NoHome));
    }
}

//! Which store to use: `EXA_MCP_STORE`.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use super::{MemoryStore, RedisAddress, RedisStore, SqliteStore, Store};

/// The environment variable that names the store.
pub const STORE_VARIABLE: &str = "EXA_MCP_STORE";

/// Which store to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreConfig {
    /// Everything is gone when the process ends.
    #[default]
    Memory,
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A Redis server, which several servers may share.
    Redis(RedisAddress),
}

/// A store that cannot be used. No text of it repeats the value, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreConfigError {
    /// It names no known kind of store.
    #[error("it names no store; use memory:, sqlite:PATH or redis://HOST:PORT")]
    Unknown,
    /// `memory:` takes nothing after it.
    #[error("nothing may follow memory:")]
    MemoryPath,
    /// `sqlite:` without a usable path.
    #[error(
        "sqlite: needs the path of a file, for example sqlite:/var/lib/exa-mcp-server/store.db"
    )]
    SqlitePath,
    /// There is no home directory to start from.
    #[error("its path begins with ~, but HOME is not set; write the whole path")]
    NoHome,
    /// The address of Redis cannot be read.
    #[error(
        "the address of Redis cannot be read; write redis://[USER:PASSWORD@]HOST:PORT[/DATABASE], rediss:// for TLS, \
         or unix:///PATH, with special characters percent-encoded"
    )]
    Redis,
}

impl StoreConfig {
    /// The store. Nothing is opened before it is first used, so that starting stays quick.
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
        let (scheme, rest) = text.split_once(':').ok_or(StoreConfigError::Unknown)?;
        match scheme.to_ascii_lowercase().as_str() {
            "memory" if rest.is_empty() => Ok(Self::Memory),
            "memory" => Err(StoreConfigError::MemoryPath),
            "sqlite" => sqlite(rest, std::env::var_os("HOME").map(PathBuf::from)),
            "redis" | "rediss" | "unix" => {
                let address = RedisAddress::parse(text).ok_or(StoreConfigError::Redis)?;
                Ok(Self::Redis(address))
            }
            _ => Err(StoreConfigError::Unknown),
        }
    }
}

/// The settings of clients are not read by a shell, so `~/` is understood here.
fn sqlite(path: &str, home: Option<PathBuf>) -> Result<StoreConfig, StoreConfigError> {
    // `sqlite:///var/x.db` is how URLs would write it.
    let path = path.strip_prefix("//").unwrap_or(path);
    let ends_like_a_file = !path.ends_with(['/', '\\']) && !path.contains('\0');
    if path.is_empty() || path.starts_with(':') || !ends_like_a_file {
        return Err(StoreConfigError::SqlitePath);
    }
    match path.strip_prefix("~/") {
        None => Ok(StoreConfig::Sqlite(PathBuf::from(path))),
        Some(rest) => match home.filter(|home| !home.as_os_str().is_empty()) {
            Some(home) => Ok(StoreConfig::Sqlite(home.join(rest))),
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
    fn stores_are_named_by_their_kind() {
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
        assert_eq!(sqlite("~/x.db", home), file("/home/ann/x.db"));
    }

    #[test]
    fn what_cannot_be_used_says_why_without_repeating_it() {
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
        assert_eq!(sqlite("~/x.db", None), Err(StoreConfigError::NoHome));
    }
}

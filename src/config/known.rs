//! All settings: the name of each in the environment and in the configuration file.

use exa_mcp_text::similar_names::{self, MIN_SIMILARITY};

/// What a setting holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// A number.
    Number,
    /// On or off.
    Switch,
    /// Several texts.
    List,
    /// Several folders.
    Folders,
    /// The limits of tokens.
    Limits,
    /// A sum of money.
    Dollars,
}

impl Kind {
    /// What may be written in the file.
    pub(crate) fn allowed(self) -> &'static str {
        match self {
            Self::Text => "a text in quotes",
            Self::Number => "a whole number from 0 up",
            Self::Switch => "true or false",
            Self::List => "a list of texts, or one text with commas",
            Self::Folders => "a list of paths, or one path",
            Self::Limits => "a table such as { requestsPerMinute = 60 }",
            Self::Dollars => "a number of dollars such as 2.5",
        }
    }
}

/// A setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Its name in the environment.
    pub(crate) variable: &'static str,
    /// Its name in the file: that of the environment in lower case, without `EXA_MCP_`.
    pub(crate) key: &'static str,
    /// What it holds.
    pub(crate) kind: Kind,
    /// Whether it may be a secret, or hold one.
    pub(crate) secret: bool,
}

const fn plain(variable: &'static str, key: &'static str, kind: Kind) -> Known {
    Known {
        variable,
        key,
        kind,
        secret: false,
    }
}

const fn secret(variable: &'static str, key: &'static str, kind: Kind) -> Known {
    Known {
        variable,
        key,
        kind,
        secret: true,
    }
}

/// All settings, as the documentation lists them.
pub(crate) const KNOWN: [Known; 44] = [
    secret("EXA_API_KEY", "exa_api_key", Kind::Text),
    secret("EXA_API_KEYS", "exa_api_keys", Kind::List),
    plain("EXA_BASE_URL", "exa_base_url", Kind::Text),
    plain("EXA_MCP_RATE_LIMIT", "rate_limit", Kind::Number),
    plain("ENABLED_TOOLS", "enabled_tools", Kind::List),
    // An address of Redis may hold a password.
    secret("EXA_MCP_STORE", "store", Kind::Text),
    plain("EXA_MCP_CACHE_TTL", "cache_ttl", Kind::Number),
    plain("EXA_MCP_CACHE_BYTES", "cache_bytes", Kind::Number),
    plain("EXA_MCP_DEFAULT_TASK_TTL", "default_task_ttl", Kind::Number),
    plain("EXA_MCP_MAX_TASK_TTL", "max_task_ttl", Kind::Number),
    plain(
        "EXA_MCP_MAX_CONCURRENT_TASKS",
        "max_concurrent_tasks",
        Kind::Number,
    ),
    plain(
        "EXA_MCP_MAX_CONCURRENT_TASKS_PER_USER",
        "max_concurrent_tasks_per_user",
        Kind::Number,
    ),
    plain("EXA_MCP_IMPORT_DIR", "import_dir", Kind::Folders),
    plain("EXA_MCP_CONFIRM_DELETES", "confirm_deletes", Kind::Switch),
    plain("EXA_MCP_CLIENT_TIMEOUT", "client_timeout", Kind::Number),
    plain("EXA_MCP_DOLLARS_PER_DAY", "dollars_per_day", Kind::Dollars),
    plain(
        "EXA_MCP_DOLLARS_PER_MONTH",
        "dollars_per_month",
        Kind::Dollars,
    ),
    plain(
        "EXA_MCP_BUDGET_ON_STORE_FAILURE",
        "budget_on_store_failure",
        Kind::Text,
    ),
    plain("EXA_MCP_BUDGET_UNPRICED", "budget_unpriced", Kind::Text),
    plain("EXA_MCP_LOG_LEVEL", "log_level", Kind::Text),
    plain("EXA_MCP_DEBUG", "debug", Kind::Switch),
    plain("EXA_MCP_LISTEN", "listen", Kind::Text),
    secret("MCP_AUTH_TOKEN", "mcp_auth_token", Kind::Text),
    secret("USER_TOKENS", "user_tokens", Kind::List),
    plain("EXA_MCP_TOKEN_LIMITS", "token_limits", Kind::Limits),
    plain("EXA_MCP_USAGE_DAYS", "usage_days", Kind::Number),
    secret("EXA_MCP_SECRET", "secret", Kind::Text),
    plain("EXA_MCP_ALLOWED_HOSTS", "allowed_hosts", Kind::List),
    plain("EXA_MCP_ALLOWED_ORIGINS", "allowed_origins", Kind::List),
    plain("EXA_MCP_TRUSTED_PROXIES", "trusted_proxies", Kind::List),
    plain("EXA_MCP_ALLOW_KEY_IN_URL", "allow_key_in_url", Kind::Switch),
    plain("EXA_MCP_METRICS", "metrics", Kind::Text),
    plain("EXA_MCP_MAX_BODY_BYTES", "max_body_bytes", Kind::Number),
    plain("EXA_MCP_READ_TIMEOUT", "read_timeout", Kind::Number),
    plain("EXA_MCP_MAX_CONNECTIONS", "max_connections", Kind::Number),
    plain(
        "EXA_MCP_MAX_CONNECTIONS_PER_ADDRESS",
        "max_connections_per_address",
        Kind::Number,
    ),
    plain("EXA_MCP_MAX_SESSIONS", "max_sessions", Kind::Number),
    plain(
        "EXA_MCP_MAX_SESSIONS_PER_USER",
        "max_sessions_per_user",
        Kind::Number,
    ),
    plain(
        "EXA_MCP_MAX_SESSIONS_PER_ADDRESS",
        "max_sessions_per_address",
        Kind::Number,
    ),
    plain(
        "EXA_MCP_MAX_STREAMS_PER_ADDRESS",
        "max_streams_per_address",
        Kind::Number,
    ),
    plain(
        "EXA_MCP_MAX_TASKS_PER_ADDRESS",
        "max_tasks_per_address",
        Kind::Number,
    ),
    plain("EXA_MCP_SESSION_IDLE", "session_idle", Kind::Number),
    plain("EXA_MCP_KEEP_ALIVE", "keep_alive", Kind::Number),
    plain("EXA_MCP_DRAIN_TIMEOUT", "drain_timeout", Kind::Number),
];

/// Variables that say one thing together: whoever sets one in the environment means it instead of all
/// that the file says about it.
const TOGETHER: [&[&str]; 3] = [
    &["EXA_API_KEY", "EXA_API_KEYS"],
    &["ENABLED_TOOLS", "EXA_MCP_ENABLED_TOOLS"],
    &["EXA_MCP_LOG_LEVEL", "EXA_MCP_DEBUG"],
];

/// A setting by its name in the file.
pub(crate) fn by_key(key: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.key == key)
}

/// The variables that stand above what the file says about this one.
pub(super) fn above(variable: &str) -> impl Iterator<Item = &'static str> {
    let group = TOGETHER.iter().find(|group| group.contains(&variable));
    let own = KNOWN.iter().find(|known| known.variable == variable);
    let own = own.filter(|_| group.is_none()).map(|known| known.variable);
    group
        .into_iter()
        .flat_map(|group| group.iter().copied())
        .chain(own)
}

/// The key that was probably meant.
pub(super) fn nearest(key: &str) -> Option<&'static str> {
    let wanted = key.to_ascii_lowercase().replace('-', "_");
    let wanted = wanted.strip_prefix("exa_mcp_").unwrap_or(&wanted);
    similar_names::most_similar(wanted, KNOWN.iter().map(|known| known.key), MIN_SIMILARITY)
}

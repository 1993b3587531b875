//! All settings: the name of each in the environment and in the configuration file.

use exa_mcp_text::similar_names::{self, MIN_SIMILARITY};

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    /// A string.
    Text,
    /// A non-negative integer.
    Integer,
    /// A boolean.
    Boolean,
    /// A list of strings.
    List,
    /// A list of directories.
    Paths,
    /// The limits of tokens.
    Table,
    /// An amount in dollars.
    Dollars,
}

impl ValueType {
    /// Describes the expected value in the configuration file.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::Text => "a string in quotes",
            Self::Integer => "a non-negative integer",
            Self::Boolean => "true or false",
            Self::List => "a list of strings, or one comma-separated string",
            Self::Paths => "a list of paths, or one path",
            Self::Table => "a table such as { requestsPerMinute = 60 }",
            Self::Dollars => "an amount in dollars such as 2.5",
        }
    }
}

/// A setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The name of the environment variable.
    pub(crate) variable: &'static str,
    /// The key in the file: the variable in lower case, without `EXA_MCP_`.
    pub(crate) key: &'static str,
    /// The type of the value.
    pub(crate) value_type: ValueType,
    /// Whether the value is or may contain a secret.
    pub(crate) secret: bool,
}

const fn public(variable: &'static str, key: &'static str, value_type: ValueType) -> Setting {
    Setting {
        variable,
        key,
        value_type,
        secret: false,
    }
}

const fn secret(variable: &'static str, key: &'static str, value_type: ValueType) -> Setting {
    Setting {
        variable,
        key,
        value_type,
        secret: true,
    }
}

/// All settings, in the order of the documentation.
pub(crate) const SETTINGS: [Setting; 51] = [
    secret("EXA_API_KEY", "exa_api_key", ValueType::Text),
    secret("EXA_API_KEYS", "exa_api_keys", ValueType::List),
    secret("EXA_SERVICE_KEY", "exa_service_key", ValueType::Text),
    public("EXA_BASE_URL", "exa_base_url", ValueType::Text),
    public("EXA_ADMIN_BASE_URL", "exa_admin_base_url", ValueType::Text),
    public("EXA_MCP_RATE_LIMIT", "rate_limit", ValueType::Integer),
    public("ENABLED_TOOLS", "enabled_tools", ValueType::List),
    // A Redis URL may contain a password.
    secret("EXA_MCP_STORE", "store", ValueType::Text),
    public("EXA_MCP_CACHE_TTL", "cache_ttl", ValueType::Integer),
    public("EXA_MCP_CACHE_BYTES", "cache_bytes", ValueType::Integer),
    public(
        "EXA_MCP_DEFAULT_TASK_TTL",
        "default_task_ttl",
        ValueType::Integer,
    ),
    public("EXA_MCP_MAX_TASK_TTL", "max_task_ttl", ValueType::Integer),
    public(
        "EXA_MCP_MAX_CONCURRENT_TASKS",
        "max_concurrent_tasks",
        ValueType::Integer,
    ),
    public(
        "EXA_MCP_MAX_CONCURRENT_TASKS_PER_USER",
        "max_concurrent_tasks_per_user",
        ValueType::Integer,
    ),
    public("EXA_MCP_IMPORT_DIR", "import_dir", ValueType::Paths),
    public(
        "EXA_MCP_CONFIRM_DELETES",
        "confirm_deletes",
        ValueType::Boolean,
    ),
    public(
        "EXA_MCP_CLIENT_TIMEOUT",
        "client_timeout",
        ValueType::Integer,
    ),
    public("EXA_MCP_PING_INTERVAL", "ping_interval", ValueType::Integer),
    public(
        "EXA_MCP_WEBSET_POLL_INTERVAL",
        "webset_poll_interval",
        ValueType::Integer,
    ),
    public(
        "EXA_MCP_DOLLARS_PER_DAY",
        "dollars_per_day",
        ValueType::Dollars,
    ),
    public(
        "EXA_MCP_DOLLARS_PER_MONTH",
        "dollars_per_month",
        ValueType::Dollars,
    ),
    public(
        "EXA_MCP_BUDGET_ON_STORE_FAILURE",
        "budget_on_store_failure",
        ValueType::Text,
    ),
    public(
        "EXA_MCP_BUDGET_UNPRICED",
        "budget_unpriced",
        ValueType::Text,
    ),
    public("EXA_MCP_STRUCTURED", "structured", ValueType::Text),
    public("EXA_MCP_LOG_LEVEL", "log_level", ValueType::Text),
    public("EXA_MCP_DEBUG", "debug", ValueType::Boolean),
    public("EXA_MCP_LOG_FORMAT", "log_format", ValueType::Text),
    public("EXA_MCP_NO_NETWORK", "no_network", ValueType::Boolean),
    public("EXA_MCP_LISTEN", "listen", ValueType::Text),
    secret("MCP_AUTH_TOKEN", "mcp_auth_token", ValueType::Text),
    secret("USER_TOKENS", "user_tokens", ValueType::List),
    public("EXA_MCP_TOKEN_LIMITS", "token_limits", ValueType::Table),
    public("EXA_MCP_USAGE_DAYS", "usage_days", ValueType::Integer),
    secret("EXA_MCP_SECRET", "secret", ValueType::Text),
    public("EXA_MCP_ALLOWED_HOSTS", "allowed_hosts", ValueType::List),
    public(
        "EXA_MCP_ALLOWED_ORIGINS",
        "allowed_origins",
        ValueType::List,
    ),
    public(
        "EXA_MCP_TRUSTED_PROXIES",
        "trusted_proxies",
        ValueType::List,
    ),
    public(
        "EXA_MCP_ALLOW_KEY_IN_URL",
        "allow_key_in_url",
        ValueType::Boolean,
    ),
    public("EXA_MCP_METRICS", "metrics", ValueType::Text),
    public(
        "EXA_MCP_MAX_BODY_BYTES",
        "max_body_bytes",
        ValueType::Integer,
    ),
    public("EXA_MCP_READ_TIMEOUT", "read_timeout", ValueType::Integer),
    public(
        "EXA_MCP_MAX_CONNECTIONS",
        "max_connections",
        ValueType::Integer,
    ),
    public(
        "EXA_MCP_MAX_CONNECTIONS_PER_ADDRESS",
        "max_connections_per_address",
        ValueType::Integer,
    ),
    public("EXA_MCP_MAX_SESSIONS", "max_sessions", ValueType::Integer),
    public(
        "EXA_MCP_MAX_SESSIONS_PER_USER",
        "max_sessions_per_user",
        ValueType::Integer,
    ),
    public(
        "EXA_MCP_MAX_SESSIONS_PER_ADDRESS",
        "max_sessions_per_address",
        ValueType::Integer,
    ),
    public(
        "EXA_MCP_MAX_STREAMS_PER_ADDRESS",
        "max_streams_per_address",
        ValueType::Integer,
    ),
    public(
        "EXA_MCP_MAX_TASKS_PER_ADDRESS",
        "max_tasks_per_address",
        ValueType::Integer,
    ),
    public("EXA_MCP_SESSION_IDLE", "session_idle", ValueType::Integer),
    public("EXA_MCP_KEEP_ALIVE", "keep_alive", ValueType::Integer),
    public("EXA_MCP_DRAIN_TIMEOUT", "drain_timeout", ValueType::Integer),
];

/// Variables that belong together: setting one of them in the environment overrides the whole group in the
/// file.
const GROUPS: [&[&str]; 3] = [
    &["EXA_API_KEY", "EXA_API_KEYS"],
    &["ENABLED_TOOLS", "EXA_MCP_ENABLED_TOOLS"],
    &["EXA_MCP_LOG_LEVEL", "EXA_MCP_DEBUG"],
];

/// Returns the setting with this key.
pub(crate) fn by_key(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// Returns the environment variables that override this setting in the file.
pub(super) fn overriding_variables(variable: &str) -> impl Iterator<Item = &'static str> {
    let group = GROUPS.iter().find(|group| group.contains(&variable));
    let own = SETTINGS.iter().find(|setting| setting.variable == variable);
    let own = own
        .filter(|_| group.is_none())
        .map(|setting| setting.variable);
    group
        .into_iter()
        .flat_map(|group| group.iter().copied())
        .chain(own)
}

/// Returns the key that was probably meant.
pub(crate) fn suggest_key(key: &str) -> Option<&'static str> {
    let normalized = key.to_ascii_lowercase().replace('-', "_");
    let normalized = normalized.strip_prefix("exa_mcp_").unwrap_or(&normalized);
    similar_names::most_similar(
        normalized,
        SETTINGS.iter().map(|setting| setting.key),
        MIN_SIMILARITY,
    )
}

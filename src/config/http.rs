//! Settings of the HTTP server.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{SettingsError, SettingsSource, variable};
use crate::transport::http::{
    AllowListError, AllowedHosts, AllowedOrigins, HOSTS_VARIABLE, HttpConfig, HttpLimits,
    ORIGINS_VARIABLE, PROXIES_VARIABLE, TrustedProxies,
};
use exa_mcp_accounts::daily::{DEFAULT_RETENTION_DAYS, MAX_RETENTION_DAYS};
use exa_mcp_accounts::{LimitsError, TokenLimits};
use exa_mcp_store::{STORE_VARIABLE, StoreConfig};

/// The environment variable with the default limits of tokens.
const TOKEN_LIMITS_VARIABLE: &str = "EXA_MCP_TOKEN_LIMITS";

/// Settings of the HTTP server. They contain tokens, so there is no `Debug` implementation.
pub(crate) struct HttpSettings {
    /// The address to listen on.
    pub listen: Option<String>,
    /// The admin token.
    pub admin: Option<String>,
    /// The user tokens.
    pub users: Option<String>,
    /// The default limits of tokens.
    pub token_limits: TokenLimits,
    /// The retention of daily usage in days.
    pub usage_days: u64,
    /// Whether Exa API keys are accepted in the URL.
    pub key_in_url: bool,
    /// The secret that identities are derived from, so that they survive a restart.
    pub secret: Option<String>,
    /// The list of allowed hosts.
    pub hosts: Option<String>,
    /// The list of allowed origins.
    pub origins: Option<String>,
    proxies: String,
    public_metrics: bool,
    /// The store to use if none is configured.
    pub default_store: Option<StoreConfig>,
    limits: HttpLimits,
}

impl HttpSettings {
    /// Reads all settings.
    pub(crate) fn read(source: &SettingsSource) -> Result<Self, SettingsError> {
        Ok(Self {
            listen: source.text("EXA_MCP_LISTEN"),
            admin: source.not_blank("MCP_AUTH_TOKEN")?,
            users: source.not_blank("USER_TOKENS")?,
            token_limits: token_limits(source)?,
            usage_days: usage_days(source)?,
            key_in_url: source.boolean("EXA_MCP_ALLOW_KEY_IN_URL")?,
            secret: source.text("EXA_MCP_SECRET"),
            hosts: source.text(HOSTS_VARIABLE),
            origins: source.text(ORIGINS_VARIABLE),
            proxies: source.text(PROXIES_VARIABLE).unwrap_or_default(),
            public_metrics: public_metrics(source)?,
            default_store: match source.text(STORE_VARIABLE) {
                Some(_) => None,
                None => default_store(),
            },
            limits: limits(source)?,
        })
    }

    /// Returns whether clients need a token.
    pub(crate) fn is_pool(&self) -> bool {
        self.admin.is_some() || self.users.is_some()
    }

    /// Returns the configuration of a server that listens on this address.
    pub(crate) fn config(&self, listening: Option<IpAddr>) -> Result<HttpConfig, AllowListError> {
        Ok(HttpConfig {
            hosts: AllowedHosts::new(self.hosts.as_deref(), listening)?,
            origins: AllowedOrigins::new(self.origins.as_deref())?,
            proxies: TrustedProxies::new(&self.proxies)?,
            public_metrics: self.public_metrics,
            limits: self.limits,
        })
    }
}

/// Returns the default store of a shared server: a file in the user's state directory.
fn default_store() -> Option<StoreConfig> {
    // systemd sets STATE_DIRECTORY; otherwise the XDG conventions apply.
    let managed = variable("STATE_DIRECTORY").map(PathBuf::from);
    let state = variable("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/state")));
    let directory = managed.or_else(|| Some(state?.join(env!("CARGO_PKG_NAME"))))?;
    Some(StoreConfig::Sqlite(directory.join("store.db")))
}

/// Returns whether `/metrics` needs no authentication.
fn public_metrics(source: &SettingsSource) -> Result<bool, SettingsError> {
    match source.text("EXA_MCP_METRICS").as_deref().map(str::trim) {
        None | Some("" | "admin") => Ok(false),
        Some("public") => Ok(true),
        Some(other) => Err(SettingsError::Choice {
            variable: "EXA_MCP_METRICS",
            value: other.to_owned(),
            choices: "admin or public",
        }),
    }
}

fn token_limits(source: &SettingsSource) -> Result<TokenLimits, SettingsError> {
    let Some(text) = source.text(TOKEN_LIMITS_VARIABLE) else {
        return Ok(TokenLimits::default());
    };
    let value = serde_json::from_str(&text)
        .map_err(|error| LimitsError::Invalid(format!("invalid JSON: {error}")));
    let limits = value.and_then(|value| TokenLimits::default().with_changes(&value));
    limits.map_err(SettingsError::TokenLimits)
}

fn usage_days(source: &SettingsSource) -> Result<u64, SettingsError> {
    let days = source.number("EXA_MCP_USAGE_DAYS", "days")?;
    Ok(days
        .unwrap_or(DEFAULT_RETENTION_DAYS)
        .clamp(1, MAX_RETENTION_DAYS))
}

fn limits(source: &SettingsSource) -> Result<HttpLimits, SettingsError> {
    let default = HttpLimits::default();
    let seconds = |name, default: Duration| {
        let number = source.number(name, "seconds")?.map(Duration::from_secs);
        Ok::<_, SettingsError>(number.unwrap_or(default))
    };
    let count = |name, unit, default: usize| {
        let number = source
            .number(name, unit)?
            .map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        Ok::<_, SettingsError>(number.unwrap_or(default))
    };
    Ok(HttpLimits {
        body: count("EXA_MCP_MAX_BODY_BYTES", "bytes", default.body)?,
        client_timeout: seconds("EXA_MCP_READ_TIMEOUT", default.client_timeout)?,
        // The upper bound is safe for all counters.
        connections: count(
            "EXA_MCP_MAX_CONNECTIONS",
            "connections",
            default.connections,
        )?
        .clamp(1, 1_000_000),
        connections_per_address: count(
            "EXA_MCP_MAX_CONNECTIONS_PER_ADDRESS",
            "connections",
            default.connections_per_address,
        )?,
        sessions: count("EXA_MCP_MAX_SESSIONS", "sessions", default.sessions)?,
        sessions_per_owner: count(
            "EXA_MCP_MAX_SESSIONS_PER_USER",
            "sessions",
            default.sessions_per_owner,
        )?,
        sessions_per_address: count(
            "EXA_MCP_MAX_SESSIONS_PER_ADDRESS",
            "sessions",
            default.sessions_per_address,
        )?,
        streams_per_address: count(
            "EXA_MCP_MAX_STREAMS_PER_ADDRESS",
            "streams",
            default.streams_per_address,
        )?,
        session_idle: seconds("EXA_MCP_SESSION_IDLE", default.session_idle)?,
        keep_alive: seconds("EXA_MCP_KEEP_ALIVE", default.keep_alive)?.max(Duration::from_secs(1)),
        drain: seconds("EXA_MCP_DRAIN_TIMEOUT", default.drain)?,
    })
}

//! What the environment and the configuration file say about serving over HTTP.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{SettingsError, Source, variable};
use crate::transport::http::{
    AllowedError, HOSTS_VARIABLE, Hosts, HttpConfig, HttpLimits, ORIGINS_VARIABLE, Origins,
    PROXIES_VARIABLE, Proxies,
};
use exa_mcp_accounts::daily::{DEFAULT_RETENTION_DAYS, MAX_RETENTION_DAYS};
use exa_mcp_accounts::{LimitsError, TokenLimits};
use exa_mcp_store::{STORE_VARIABLE, StoreConfig};

/// The environment variable with the limits of tokens that have none of their own.
const TOKEN_LIMITS_VARIABLE: &str = "EXA_MCP_TOKEN_LIMITS";

/// How to serve over HTTP. Not for printing: it holds tokens.
pub(crate) struct HttpSettings {
    /// The address to listen on.
    pub listen: Option<String>,
    /// The admin's token.
    pub admin: Option<String>,
    /// The tokens of all others.
    pub users: Option<String>,
    /// The limits of tokens that have none of their own.
    pub token_limits: TokenLimits,
    /// Days for which use by day is kept.
    pub usage_days: u64,
    /// An Exa key may stand in the address.
    pub key_in_url: bool,
    /// What identities are made with, so that they stay the same after a restart.
    pub secret: Option<String>,
    /// Hosts, as a list.
    pub hosts: Option<String>,
    /// Origins, as a list.
    pub origins: Option<String>,
    proxies: String,
    open_metrics: bool,
    /// Where things are kept that nobody named a place for.
    pub usual_store: Option<StoreConfig>,
    limits: HttpLimits,
}

impl HttpSettings {
    /// Reads everything.
    pub(crate) fn read(source: &Source) -> Result<Self, SettingsError> {
        Ok(Self {
            listen: source.text("EXA_MCP_LISTEN"),
            admin: source.not_blank("MCP_AUTH_TOKEN")?,
            users: source.not_blank("USER_TOKENS")?,
            token_limits: token_limits(source)?,
            usage_days: usage_days(source)?,
            key_in_url: source.switch("EXA_MCP_ALLOW_KEY_IN_URL")?,
            secret: source.text("EXA_MCP_SECRET"),
            hosts: source.text(HOSTS_VARIABLE),
            origins: source.text(ORIGINS_VARIABLE),
            proxies: source.text(PROXIES_VARIABLE).unwrap_or_default(),
            open_metrics: open_metrics(source)?,
            usual_store: match source.text(STORE_VARIABLE) {
                Some(_) => None,
                None => usual_store(),
            },
            limits: limits(source)?,
        })
    }

    /// Whether tokens are needed to get in.
    pub(crate) fn is_pool(&self) -> bool {
        self.admin.is_some() || self.users.is_some()
    }

    /// How the server behaves that listens on this address.
    pub(crate) fn config(&self, listening: Option<IpAddr>) -> Result<HttpConfig, AllowedError> {
        Ok(HttpConfig {
            hosts: Hosts::new(self.hosts.as_deref(), listening)?,
            origins: Origins::new(self.origins.as_deref())?,
            proxies: Proxies::new(&self.proxies)?,
            open_metrics: self.open_metrics,
            limits: self.limits,
        })
    }
}

/// Where a shared server keeps things that nobody named a place for: in a file of its user.
fn usual_store() -> Option<StoreConfig> {
    // A service manager names a directory; without one there are conventions.
    let managed = variable("STATE_DIRECTORY").map(PathBuf::from);
    let state = variable("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/state")));
    let directory = managed.or_else(|| Some(state?.join(env!("CARGO_PKG_NAME"))))?;
    Some(StoreConfig::Sqlite(directory.join("store.db")))
}

/// Who may read the numbers of the server, beside this machine and the admin.
fn open_metrics(source: &Source) -> Result<bool, SettingsError> {
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

fn token_limits(source: &Source) -> Result<TokenLimits, SettingsError> {
    let Some(text) = source.text(TOKEN_LIMITS_VARIABLE) else {
        return Ok(TokenLimits::default());
    };
    let value = serde_json::from_str(&text)
        .map_err(|error| LimitsError::Invalid(format!("they are no JSON: {error}")));
    let limits = value.and_then(|value| TokenLimits::default().with_changes(&value));
    limits.map_err(SettingsError::TokenLimits)
}

fn usage_days(source: &Source) -> Result<u64, SettingsError> {
    let days = source.number("EXA_MCP_USAGE_DAYS", "days")?;
    Ok(days
        .unwrap_or(DEFAULT_RETENTION_DAYS)
        .clamp(1, MAX_RETENTION_DAYS))
}

fn limits(source: &Source) -> Result<HttpLimits, SettingsError> {
    let usual = HttpLimits::default();
    let seconds = |name, usual: Duration| {
        let number = source.number(name, "seconds")?.map(Duration::from_secs);
        Ok::<_, SettingsError>(number.unwrap_or(usual))
    };
    let count = |name, unit, usual: usize| {
        let number = source
            .number(name, unit)?
            .map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        Ok::<_, SettingsError>(number.unwrap_or(usual))
    };
    Ok(HttpLimits {
        body: count("EXA_MCP_MAX_BODY_BYTES", "bytes", usual.body)?,
        client_timeout: seconds("EXA_MCP_READ_TIMEOUT", usual.client_timeout)?,
        // No more than what counts them can count.
        connections: count("EXA_MCP_MAX_CONNECTIONS", "connections", usual.connections)?
            .clamp(1, 1_000_000),
        connections_per_address: count(
            "EXA_MCP_MAX_CONNECTIONS_PER_ADDRESS",
            "connections",
            usual.connections_per_address,
        )?,
        sessions: count("EXA_MCP_MAX_SESSIONS", "sessions", usual.sessions)?,
        sessions_per_owner: count(
            "EXA_MCP_MAX_SESSIONS_PER_USER",
            "sessions",
            usual.sessions_per_owner,
        )?,
        sessions_per_address: count(
            "EXA_MCP_MAX_SESSIONS_PER_ADDRESS",
            "sessions",
            usual.sessions_per_address,
        )?,
        streams_per_address: count(
            "EXA_MCP_MAX_STREAMS_PER_ADDRESS",
            "streams",
            usual.streams_per_address,
        )?,
        session_idle: seconds("EXA_MCP_SESSION_IDLE", usual.session_idle)?,
        keep_alive: seconds("EXA_MCP_KEEP_ALIVE", usual.keep_alive)?.max(Duration::from_secs(1)),
        drain: seconds("EXA_MCP_DRAIN_TIMEOUT", usual.drain)?,
    })
}

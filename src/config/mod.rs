//! Settings from the command line, the environment and the configuration file.

mod default_arguments;
mod file;
pub(crate) mod http;
mod secret_files;
mod setting;
mod source;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::operations::spend::Unlimited;
use crate::operations::{Folders, IMPORT_DIR_VARIABLE, OperationExecutor};
use crate::tools::{CacheLimits, PromptPolicy, StructuredContent, TaskLimits};
use exa_mcp_accounts::budget::{BudgetPolicy, UnenforcedAction};
use exa_mcp_accounts::{LimitsError, TokenLimits};
use exa_mcp_exa_client::{ApiKey, ConfigError, ExaConfig, ExaHttp, KeyKind, KeyOwner, KeyPool};
use exa_mcp_store::{STORE_VARIABLE, StoreConfig, StoreConfigError};

pub(crate) use file::ConfigFile;
pub(crate) use setting::{SETTINGS, Setting, ValueType, by_key as setting_by_key, suggest_key};
pub(crate) use source::{SettingsSource, cache_directory, default_path, user_directory};

/// The default tool set.
const DEFAULT_TOOLS: &str = "default";

/// How long a client is idle before it is pinged, unless configured.
const PING_INTERVAL: Duration = Duration::from_secs(300);

/// How often subscribed websets are polled, unless configured.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The settings of the program.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The first Exa API key, if there is one.
    pub key: Option<ApiKey>,
    /// Further keys of the pool.
    pub more_keys: Vec<ApiKey>,
    /// The Exa service key, if there is one.
    pub service_key: Option<ApiKey>,
    /// The maximum number of requests per second and key.
    pub rate: Option<u64>,
    /// The owner of the keys.
    pub key_owner: KeyOwner,
    /// The connection to the Exa API.
    pub exa: ExaConfig,
    /// Tool sets and tools, comma-separated.
    pub tools: String,
    /// The store for notes and tasks.
    pub store: StoreConfig,
    /// The limits of the result cache.
    pub cache: CacheLimits,
    /// The limits of tasks.
    pub tasks: TaskLimits,
    /// The directories that imports may read from.
    pub folders: Folders,
    /// How clients are prompted.
    pub prompt_policy: PromptPolicy,
    /// How often subscribed websets are polled, if they are.
    pub poll_interval: Option<Duration>,
    /// How much structured content results have.
    pub structured: StructuredContent,
    /// The budget of the local user.
    pub local_limits: TokenLimits,
    /// What happens when budgets cannot be enforced.
    pub budgets: BudgetPolicy,
    /// Default arguments of operations, by operation, for the command line.
    pub default_arguments: Map<String, Value>,
}

/// An invalid setting.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// A variable has an invalid value.
    #[error("{variable}: {source}")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// The reason.
        source: ConfigError,
    },
    /// Not an integer.
    #[error("{variable}: `{value}` is not an integer ({unit})")]
    Number {
        /// The variable.
        variable: &'static str,
        /// The invalid value.
        value: String,
        /// The unit of the value.
        unit: &'static str,
    },
    /// The default limits of tokens are invalid.
    #[error("EXA_MCP_TOKEN_LIMITS: {0}")]
    TokenLimits(LimitsError),
    /// Not a boolean.
    #[error("{variable}: `{value}` must be true or false")]
    Boolean {
        /// The variable.
        variable: &'static str,
        /// The invalid value.
        value: String,
    },
    /// A variable is blank that must not be.
    #[error("{0} is set but empty: give it a value or unset it")]
    Blank(&'static str),
    /// Not one of the possible choices.
    #[error("{variable}: `{value}` must be {choices}")]
    Choice {
        /// The variable.
        variable: &'static str,
        /// The invalid value.
        value: String,
        /// The possible choices.
        choices: &'static str,
    },
    /// Not an amount in dollars.
    #[error("{variable}: `{value}` is not a non-negative amount in dollars")]
    Dollars {
        /// The variable.
        variable: &'static str,
        /// The invalid value.
        value: String,
    },
    /// The store is invalid.
    #[error("{STORE_VARIABLE} is invalid: {0}")]
    Store(#[from] StoreConfigError),
}

impl Settings {
    /// Reads all settings. `tools` of the command line takes precedence.
    pub(crate) fn read(
        source: &SettingsSource,
        tools: Option<&str>,
    ) -> Result<Self, SettingsError> {
        let no_network = source.boolean("EXA_MCP_NO_NETWORK")?;
        // Without a network, no key is even read.
        let keys = if no_network {
            Vec::new()
        } else {
            keys(source)?
        };
        let mut keys = keys.into_iter();
        let exa = ExaConfig::from_env_or(|variable| source.in_file(variable));
        let mut exa = exa.map_err(|source| SettingsError::Variable {
            variable: match source {
                ConfigError::BaseUrl(kind, _) => kind.base_url_variable(),
                _ => KeyKind::Api.base_url_variable(),
            },
            source,
        })?;
        exa.no_network = no_network;
        let service_key = if no_network {
            None
        } else {
            service_key(source)?
        };
        let tools = tools
            .map(str::to_owned)
            .or_else(|| source.text("ENABLED_TOOLS"))
            .or_else(|| variable("EXA_MCP_ENABLED_TOOLS"))
            .unwrap_or_else(|| DEFAULT_TOOLS.to_owned());
        let rate = source.number("EXA_MCP_RATE_LIMIT", "requests a second")?;
        let store = match source.text(STORE_VARIABLE) {
            Some(text) => text.parse()?,
            None => StoreConfig::default(),
        };
        Ok(Self {
            key: keys.next(),
            more_keys: keys.collect(),
            service_key,
            rate: rate.filter(|rate| *rate > 0),
            key_owner: KeyOwner::User,
            exa,
            tools,
            store,
            cache: cache_limits(source)?,
            tasks: task_limits(source)?,
            folders: Folders::from_env_or(source.in_file(IMPORT_DIR_VARIABLE)),
            prompt_policy: prompt_policy(source)?,
            poll_interval: interval(source, "EXA_MCP_WEBSET_POLL_INTERVAL", POLL_INTERVAL)?,
            structured: structured_content(source)?,
            local_limits: local_limits(source)?,
            budgets: budget_policy(source)?,
            default_arguments: source
                .file()
                .map(|file| file.default_arguments().clone())
                .unwrap_or_default(),
        })
    }

    /// Limits the tasks per user, because several users share a server over HTTP.
    pub(crate) fn share_tasks(&mut self, source: &SettingsSource) -> Result<(), SettingsError> {
        let own = source.number("EXA_MCP_MAX_CONCURRENT_TASKS_PER_USER", "tasks")?;
        if own.is_none() {
            self.tasks.per_owner = TaskLimits::usual_share(self.tasks.concurrent);
        }
        Ok(())
    }

    /// Creates the client for the Exa API.
    pub(crate) fn operation_executor(&self) -> Result<OperationExecutor, ConfigError> {
        let http = ExaHttp::new(self.exa.clone())?;
        let keys = self.key.iter().chain(&self.more_keys).cloned();
        let keys = KeyPool::with_rate_limit(keys, self.rate, self.key_owner);
        let executor = OperationExecutor::new(http, None, Arc::new(Unlimited)).with_keys(keys);
        let executor = executor.with_service_key(self.service_key.clone());
        Ok(executor.with_folders(self.folders.clone()))
    }
}

fn cache_limits(source: &SettingsSource) -> Result<CacheLimits, SettingsError> {
    let default = CacheLimits::default();
    let ttl = source
        .number("EXA_MCP_CACHE_TTL", "seconds")?
        .map(Duration::from_secs);
    let bytes = source.number("EXA_MCP_CACHE_BYTES", "bytes")?;
    Ok(CacheLimits {
        ttl: ttl.unwrap_or(default.ttl),
        bytes: bytes.map_or(default.bytes, |bytes| {
            usize::try_from(bytes).unwrap_or(usize::MAX)
        }),
    })
}

fn task_limits(source: &SettingsSource) -> Result<TaskLimits, SettingsError> {
    let default = TaskLimits::default();
    let milliseconds = |name: &'static str| {
        source
            .number(name, "milliseconds")
            .map(|number| number.map(Duration::from_millis))
    };
    let max_ttl = milliseconds("EXA_MCP_MAX_TASK_TTL")?.unwrap_or(default.max_ttl);
    // The default maximum of one day cannot be exceeded.
    let max_ttl = max_ttl.clamp(TaskLimits::SHORTEST_TTL, default.max_ttl);
    let default_ttl = milliseconds("EXA_MCP_DEFAULT_TASK_TTL")?.unwrap_or(default.default_ttl);
    let count = |name: &'static str, default: usize| {
        let number = source.number(name, "tasks")?;
        let number = number.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        Ok::<_, SettingsError>(number.unwrap_or(default))
    };
    let concurrent = count("EXA_MCP_MAX_CONCURRENT_TASKS", default.concurrent)?;
    Ok(TaskLimits {
        default_ttl: default_ttl.clamp(TaskLimits::SHORTEST_TTL, max_ttl),
        max_ttl,
        concurrent,
        // Reduced over HTTP by `share_tasks`.
        per_owner: count("EXA_MCP_MAX_CONCURRENT_TASKS_PER_USER", concurrent)?,
        per_guest_address: count("EXA_MCP_MAX_TASKS_PER_ADDRESS", default.per_guest_address)?,
    })
}

fn structured_content(source: &SettingsSource) -> Result<StructuredContent, SettingsError> {
    let variable = "EXA_MCP_STRUCTURED";
    let value = source.text(variable).unwrap_or_default();
    match value.trim().to_ascii_lowercase().as_str() {
        "" => Ok(StructuredContent::Compact),
        name => StructuredContent::from_name(name).ok_or(SettingsError::Choice {
            variable,
            value,
            choices: "full, compact or off",
        }),
    }
}

fn prompt_policy(source: &SettingsSource) -> Result<PromptPolicy, SettingsError> {
    let timeout = source
        .number("EXA_MCP_CLIENT_TIMEOUT", "seconds")?
        .map(Duration::from_secs);
    Ok(PromptPolicy {
        confirm_deletes: source.boolean("EXA_MCP_CONFIRM_DELETES")?,
        timeout,
        ping_interval: interval(source, "EXA_MCP_PING_INTERVAL", PING_INTERVAL)?,
    })
}

/// Reads an interval in seconds; zero is none.
fn interval(
    source: &SettingsSource,
    variable: &'static str,
    default: Duration,
) -> Result<Option<Duration>, SettingsError> {
    let seconds = source.number(variable, "seconds")?;
    let interval = seconds.map_or(default, Duration::from_secs);
    Ok(Some(interval).filter(|interval| !interval.is_zero()))
}

/// Reads the budget of the command line and of a stdio server.
fn local_limits(source: &SettingsSource) -> Result<TokenLimits, SettingsError> {
    let dollars = |variable: &'static str| {
        let Some(text) = source.text(variable) else {
            return Ok(None);
        };
        let number = text.trim().parse().ok();
        let number = number.filter(|dollars| (0.0..=TokenLimits::MAX_DOLLARS).contains(dollars));
        let wrong = SettingsError::Dollars {
            variable,
            value: text,
        };
        number.map(Some).ok_or(wrong)
    };
    Ok(TokenLimits {
        dollars_per_day: dollars("EXA_MCP_DOLLARS_PER_DAY")?,
        dollars_per_month: dollars("EXA_MCP_DOLLARS_PER_MONTH")?,
        ..TokenLimits::default()
    })
}

fn budget_policy(source: &SettingsSource) -> Result<BudgetPolicy, SettingsError> {
    let choice = |variable: &'static str| {
        let text = source.text(variable).unwrap_or_default();
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "deny" => Ok(UnenforcedAction::Deny),
            "allow" => Ok(UnenforcedAction::Allow),
            _ => Err(SettingsError::Choice {
                variable,
                value: text,
                choices: "deny or allow",
            }),
        }
    };
    Ok(BudgetPolicy {
        on_store_failure: choice("EXA_MCP_BUDGET_ON_STORE_FAILURE")?,
        unpriced: choice("EXA_MCP_BUDGET_UNPRICED")?,
    })
}

/// Returns an environment variable that is not blank. Clients pass on a reference such as `${EXA_API_KEY}` as it is if
/// their own environment lacks the variable, so that counts as blank too.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name)
        .ok()
        .filter(|value| !value.trim().is_empty() && !is_reference(value.trim(), name))
}

/// Returns whether a value is a reference to the variable itself, in the syntax of some client.
fn is_reference(value: &str, name: &str) -> bool {
    let inner = value.strip_prefix('$').unwrap_or_default();
    let braced = inner.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    let inner = braced.unwrap_or(inner);
    inner.strip_prefix("env:").unwrap_or(inner) == name
}

fn service_key(source: &SettingsSource) -> Result<Option<ApiKey>, SettingsError> {
    let variable = KeyKind::Service.variable();
    let text = source.text(variable);
    let key = text.map(|text| ApiKey::of_kind(KeyKind::Service, text));
    key.transpose()
        .map_err(|source| SettingsError::Variable { variable, source })
}

/// Returns all keys: the single key first, then those of the pool.
fn keys(source: &SettingsSource) -> Result<Vec<ApiKey>, SettingsError> {
    let mut keys = Vec::new();
    for name in ["EXA_API_KEY", "EXA_API_KEYS"] {
        let text = source.text(name).unwrap_or_default();
        let texts: Vec<&str> = match name {
            "EXA_API_KEYS" => text.split(',').collect(),
            _ => vec![&text],
        };
        for text in texts.into_iter().filter(|text| !text.trim().is_empty()) {
            let key = ApiKey::new(text).map_err(|source| SettingsError::Variable {
                variable: name,
                source,
            })?;
            keys.push(key);
        }
    }
    Ok(keys)
}

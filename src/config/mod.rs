//! What the environment, the configuration file and the command line say about how to run.

mod file;
pub(crate) mod http;
mod known;
mod secret_files;
mod source;

use std::sync::Arc;
use std::time::Duration;

use crate::operations::spend::Unlimited;
use crate::operations::{Folders, IMPORT_DIR_VARIABLE, OperationExecutor};
use crate::tools::{CacheLimits, PromptPolicy, TaskLimits};
use exa_mcp_accounts::budget::{BudgetPolicy, UnenforcedAction};
use exa_mcp_accounts::{LimitsError, TokenLimits};
use exa_mcp_exa_client::{
    ApiKey, BASE_URL_VARIABLE, ConfigError, ExaConfig, ExaHttp, KeyOwner, KeyPool,
};
use exa_mcp_store::{STORE_VARIABLE, StoreConfig, StoreConfigError};

pub(crate) use file::ConfigFile;
#[cfg(test)]
pub(crate) use known::KNOWN;
pub(crate) use source::Source;
pub(crate) use source::usual_place;

/// The set of tools that is offered unless something else is asked for.
const DEFAULT_TOOLS: &str = "default";

/// How to run.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The key, if there is one.
    pub key: Option<ApiKey>,
    /// Further keys, which share the work with it.
    pub more_keys: Vec<ApiKey>,
    /// Requests a second that one key makes at most.
    pub rate: Option<u64>,
    /// Whose keys they are.
    pub holder: KeyOwner,
    /// How Exa is reached.
    pub exa: ExaConfig,
    /// Sets and tools, comma-separated.
    pub tools: String,
    /// Where notes are kept.
    pub store: StoreConfig,
    /// How long answers are kept, and how many of them.
    pub cache: CacheLimits,
    /// How long tasks live, and how many there may be.
    pub tasks: TaskLimits,
    /// Out of which folders files may be read.
    pub folders: Folders,
    /// How clients are asked.
    pub manners: PromptPolicy,
    /// What the local user may spend.
    pub local_limits: TokenLimits,
    /// What happens where budgets cannot be enforced.
    pub budgets: BudgetPolicy,
}

/// Why the program cannot run like this.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// A variable cannot be used.
    #[error("{variable}: {source}")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        source: ConfigError,
    },
    /// A number is none.
    #[error("{variable}: `{value}` is no whole number of {unit}")]
    Number {
        /// The variable.
        variable: &'static str,
        /// What it says.
        value: String,
        /// What it counts.
        unit: &'static str,
    },
    /// The limits of tokens cannot be used.
    #[error("EXA_MCP_TOKEN_LIMITS: {0}")]
    TokenLimits(LimitsError),
    /// A switch is neither on nor off.
    #[error("{variable}: `{value}` is neither true nor false")]
    Switch {
        /// The variable.
        variable: &'static str,
        /// What it says.
        value: String,
    },
    /// A variable that must not be is blank.
    #[error("{0} is set but empty: give it a value, or do not set it")]
    Blank(&'static str),
    /// A variable has a value that there is not.
    #[error("{variable}: `{value}` is not {choices}")]
    Choice {
        /// The variable.
        variable: &'static str,
        /// What it says.
        value: String,
        /// What it may say.
        choices: &'static str,
    },
    /// A sum of money is none.
    #[error("{variable}: `{value}` is not a number of dollars from 0 up")]
    Dollars {
        /// The variable.
        variable: &'static str,
        /// What it says.
        value: String,
    },
    /// The store cannot be used.
    #[error("{STORE_VARIABLE} cannot be used: {0}")]
    Store(#[from] StoreConfigError),
}

impl Settings {
    /// Reads everything; `tools` of the command line wins over the rest.
    pub(crate) fn read(source: &Source, tools: Option<&str>) -> Result<Self, SettingsError> {
        let mut keys = keys(source)?.into_iter();
        let exa = ExaConfig::from_env_or(source.in_file(BASE_URL_VARIABLE));
        let exa = exa.map_err(|source| SettingsError::Variable {
            variable: BASE_URL_VARIABLE,
            source,
        })?;
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
            rate: rate.filter(|rate| *rate > 0),
            holder: KeyOwner::User,
            exa,
            tools,
            store,
            cache: cache_limits(source)?,
            tasks: task_limits(source)?,
            folders: Folders::from_env_or(source.in_file(IMPORT_DIR_VARIABLE)),
            manners: manners(source)?,
            local_limits: local_limits(source)?,
            budgets: budget_policy(source)?,
        })
    }

    /// Leaves room for others: several people share a server over HTTP.
    pub(crate) fn share_tasks(&mut self, source: &Source) -> Result<(), SettingsError> {
        let own = source.number("EXA_MCP_MAX_CONCURRENT_TASKS_PER_USER", "tasks")?;
        if own.is_none() {
            self.tasks.per_owner = TaskLimits::usual_share(self.tasks.concurrent);
        }
        Ok(())
    }

    /// The way to Exa that these settings describe.
    pub(crate) fn caller(&self) -> Result<OperationExecutor, ConfigError> {
        let http = ExaHttp::new(self.exa.clone())?;
        let keys = self.key.iter().chain(&self.more_keys).cloned();
        let keys = KeyPool::with_rate_limit(keys, self.rate, self.holder);
        let caller = OperationExecutor::new(http, None, Arc::new(Unlimited)).with_keys(keys);
        Ok(caller.with_folders(self.folders.clone()))
    }
}

fn cache_limits(source: &Source) -> Result<CacheLimits, SettingsError> {
    let usual = CacheLimits::default();
    let ttl = source
        .number("EXA_MCP_CACHE_TTL", "seconds")?
        .map(Duration::from_secs);
    let bytes = source.number("EXA_MCP_CACHE_BYTES", "bytes")?;
    Ok(CacheLimits {
        ttl: ttl.unwrap_or(usual.ttl),
        bytes: bytes.map_or(usual.bytes, |bytes| {
            usize::try_from(bytes).unwrap_or(usize::MAX)
        }),
    })
}

fn task_limits(source: &Source) -> Result<TaskLimits, SettingsError> {
    let usual = TaskLimits::default();
    let milliseconds = |name: &'static str| {
        source
            .number(name, "milliseconds")
            .map(|number| number.map(Duration::from_millis))
    };
    let max_ttl = milliseconds("EXA_MCP_MAX_TASK_TTL")?.unwrap_or(usual.max_ttl);
    // No operator's setting makes a task live longer than a day.
    let max_ttl = max_ttl.clamp(TaskLimits::SHORTEST_TTL, usual.max_ttl);
    let default_ttl = milliseconds("EXA_MCP_DEFAULT_TASK_TTL")?.unwrap_or(usual.default_ttl);
    let count = |name: &'static str, usual: usize| {
        let number = source.number(name, "tasks")?;
        let number = number.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        Ok::<_, SettingsError>(number.unwrap_or(usual))
    };
    let concurrent = count("EXA_MCP_MAX_CONCURRENT_TASKS", usual.concurrent)?;
    Ok(TaskLimits {
        default_ttl: default_ttl.clamp(TaskLimits::SHORTEST_TTL, max_ttl),
        max_ttl,
        concurrent,
        // Over HTTP it is less, see `share_tasks`.
        per_owner: count("EXA_MCP_MAX_CONCURRENT_TASKS_PER_USER", concurrent)?,
        per_guest_address: count("EXA_MCP_MAX_TASKS_PER_ADDRESS", usual.per_guest_address)?,
    })
}

fn manners(source: &Source) -> Result<PromptPolicy, SettingsError> {
    let patience = source
        .number("EXA_MCP_CLIENT_TIMEOUT", "seconds")?
        .map(Duration::from_secs);
    Ok(PromptPolicy {
        confirm_deletes: source.switch("EXA_MCP_CONFIRM_DELETES")?,
        patience,
    })
}

/// What the user of the command line and of a stdio server may spend.
fn local_limits(source: &Source) -> Result<TokenLimits, SettingsError> {
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

fn budget_policy(source: &Source) -> Result<BudgetPolicy, SettingsError> {
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

/// A variable that is set to something.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name)
        .ok()
        .filter(|value| !value.trim().is_empty())
}

/// All keys: the single one first, then those of the pool.
fn keys(source: &Source) -> Result<Vec<ApiKey>, SettingsError> {
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

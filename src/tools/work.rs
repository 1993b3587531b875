//! Long work on behalf of a task: remembered when it starts, taken up again after a restart, stopped.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::plan::Plan;
use crate::operations::{self, RemoteJob};
use exa_mcp_model::Operation;

/// What goes on at Exa: the operation that looks at it, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The operation.
    #[serde(rename = "get")]
    pub get: String,
    /// Its arguments.
    #[serde(rename = "arguments")]
    pub arguments: Map<String, Value>,
}

impl fmt::Display for Work {
    /// The operation and the ids, for logs and as a name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.get)?;
        let ids = self.arguments.values().filter_map(Value::as_str);
        ids.into_iter().try_for_each(|id| write!(f, " {id}"))
    }
}

impl Work {
    /// The work that is followed like this.
    pub(super) fn of(following: &RemoteJob) -> Self {
        let (get, arguments) = following.poll_call();
        Self {
            get: get.to_owned(),
            arguments,
        }
    }

    /// Names it among all runs; `None` if the operation does not exist any more.
    pub fn key(&self) -> Option<String> {
        self.following().map(|following| following.key())
    }

    /// How it is followed; `None` if the operation does not exist any more.
    pub(super) fn following(&self) -> Option<RemoteJob> {
        RemoteJob::from_poll(&self.get, self.arguments.clone())
    }
}

/// Keeps what a task started.
pub trait Keeper: Send + Sync {
    /// Takes note of work before anything else happens. `false` if another task has it, or if nobody
    /// wants it any more.
    fn keep(&self, work: Work) -> BoxFuture<'_, bool>;

    /// Takes work that was found in a list. `false` if somebody else has it, or if nobody wants it any more.
    fn adopt(&self, work: Work) -> BoxFuture<'_, bool>;

    /// Whether somebody else has this work.
    fn is_taken(&self, work: Work) -> BoxFuture<'_, bool>;

    /// Whether somebody still wants the task to go on.
    fn is_wanted(&self) -> bool;
}

/// A call that is made for a task: it ends when the work does.
#[derive(Clone)]
pub struct TaskCall {
    /// When the call must have ended.
    pub deadline: Instant,
    /// When the task was made, in milliseconds since 1970.
    pub created: u64,
    /// What came before.
    pub attempt: Attempt,
    /// Told what is started.
    pub keeper: Arc<dyn Keeper>,
}

/// How often the call of a task was begun.
#[derive(Clone)]
pub enum Attempt {
    /// Never before.
    First,
    /// By a process that has ended; this is the work that Exa confirmed to it.
    Again(Option<Work>),
}

/// How long tasks live, and how many there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLimits {
    /// The life of a task whose client names none.
    pub default_ttl: Duration,
    /// The longest life.
    pub max_ttl: Duration,
    /// Tasks under way at once.
    pub concurrent: usize,
    /// Tasks of one owner under way at once.
    pub per_owner: usize,
    /// Tasks under way at once of all guests at one address.
    pub per_guest_address: usize,
}

impl TaskLimits {
    /// The shortest life of a task.
    pub const SHORTEST_TTL: Duration = Duration::from_secs(1);

    /// The share of one owner where several share a server and nobody set another: a tenth, but never
    /// fewer than a few.
    pub fn usual_share(concurrent: usize) -> usize {
        const FEW: usize = 10;
        (concurrent / 10).max(FEW).min(concurrent)
    }
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            default_ttl: Duration::from_secs(60 * 60),
            max_ttl: Duration::from_secs(24 * 60 * 60),
            concurrent: 2_000,
            per_owner: 2_000,
            per_guest_address: 100,
        }
    }
}

/// Whether an operation starts work that takes long; one that only looks at it does not.
pub(super) fn starts(operation: &Operation) -> bool {
    operation.behavior.long_running.is_some() && !operation.read_only
}

/// Whether a tool can start work that takes long.
pub(super) fn can_start(plan: &Plan) -> bool {
    let is_long = |name: &str| operations::find(name).is_some_and(starts);
    match plan {
        Plan::Operation { operation } => is_long(operation),
        Plan::Named(plan) => is_long(&plan.operation),
        Plan::Dispatcher { operations } => operations.iter().any(|name| is_long(name)),
        Plan::Host { entries } => entries
            .iter()
            .any(|entry| entry.operation.as_deref().is_some_and(is_long)),
        Plan::Note | Plan::Suggest { .. } => false,
    }
}

//! Calls on behalf of tasks, and the long-running jobs that they start.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::operations::{self, RemoteJob};
use exa_mcp_model::{Operation, ToolPlan};

/// A reference to a job at Exa: the operation that reads it, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobHandle {
    /// The operation.
    pub get: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

impl fmt::Display for JobHandle {
    /// Writes the operation and the ids, for logs and as a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.get)?;
        let ids = self.arguments.values().filter_map(Value::as_str);
        ids.into_iter().try_for_each(|id| write!(f, " {id}"))
    }
}

impl From<&RemoteJob> for JobHandle {
    fn from(job: &RemoteJob) -> Self {
        let (get, arguments) = job.poll_call();
        Self {
            get: get.to_owned(),
            arguments,
        }
    }
}

impl JobHandle {
    /// Returns a key that is unique among all jobs; `None` if the operation no longer exists.
    pub fn key(&self) -> Option<String> {
        self.to_job().map(|job| job.key())
    }

    /// Returns the job; `None` if the operation no longer exists.
    pub(super) fn to_job(&self) -> Option<RemoteJob> {
        RemoteJob::from_poll(&self.get, self.arguments.clone())
    }
}

/// Records the job of a task.
pub trait JobTracker: Send + Sync {
    /// Records a job that the task has just started. Returns `false` if another task has it, or if the task was
    /// cancelled.
    fn record(&self, job: JobHandle) -> BoxFuture<'_, bool>;

    /// Adopts a job that was found in a list. Returns `false` if another owner has it, or if the task was cancelled.
    fn adopt(&self, job: JobHandle) -> BoxFuture<'_, bool>;

    /// Returns whether another owner has the job.
    fn is_claimed_by_other(&self, job: JobHandle) -> BoxFuture<'_, bool>;

    /// Returns whether the task was not cancelled.
    fn is_active(&self) -> bool;
}

/// A call on behalf of a task, which ends when its job does.
#[derive(Clone)]
pub struct TaskCall {
    /// The deadline of the call.
    pub deadline: Instant,
    /// When the task was created, in milliseconds since 1970.
    pub created: u64,
    /// Whether an earlier process made the call.
    pub attempt: TaskAttempt,
    /// Records the job that the call starts.
    pub tracker: Arc<dyn JobTracker>,
}

/// Whether the call of a task was made before.
#[derive(Clone)]
pub enum TaskAttempt {
    /// The call was not made before.
    First,
    /// A process that has ended made the call; this is the job that Exa confirmed to it.
    Resumed(Option<JobHandle>),
}

/// Limits of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLimits {
    /// The lifetime of a task if the client names none.
    pub default_ttl: Duration,
    /// The maximum lifetime.
    pub max_ttl: Duration,
    /// Maximum concurrent tasks.
    pub concurrent: usize,
    /// Maximum concurrent tasks of one owner.
    pub per_owner: usize,
    /// Maximum concurrent tasks of all unauthenticated clients at one address.
    pub per_guest_address: usize,
}

impl TaskLimits {
    /// The minimum lifetime of a task.
    pub const SHORTEST_TTL: Duration = Duration::from_secs(1);

    /// Returns the default limit of one owner on a shared server: a tenth of all tasks, but at least ten.
    pub fn usual_share(concurrent: usize) -> usize {
        const MIN: usize = 10;
        (concurrent / 10).max(MIN).min(concurrent)
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

/// Returns whether an operation starts a long-running job.
pub(super) fn starts(operation: &Operation) -> bool {
    operation.behavior.long_running.is_some() && !operation.read_only
}

/// Returns whether a tool can start a long-running job.
pub(super) fn can_start(plan: &ToolPlan) -> bool {
    let is_long = |name: &str| operations::find(name).is_some_and(starts);
    match plan {
        ToolPlan::Operation { operation } => is_long(operation),
        ToolPlan::Named(plan) => is_long(&plan.operation),
        ToolPlan::Dispatcher { operations } => operations.iter().any(|name| is_long(name)),
        ToolPlan::Toolhost { entries } => entries
            .iter()
            .any(|entry| entry.operation.as_deref().is_some_and(is_long)),
        ToolPlan::Note | ToolPlan::Suggest { .. } => false,
    }
}

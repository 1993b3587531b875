//! Long work on behalf of a task: remembered when it starts, taken up again after a restart, stopped.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::plan::Plan;
use super::{Catalogue, request};
use crate::operations::{self, Following};

/// What goes on at Exa: the operation that looks at it, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The operation.
    pub get: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

impl Work {
    /// The work that is followed like this.
    pub(super) fn of(following: &Following) -> Self {
        let (get, arguments) = following.check_with();
        Self {
            get: get.to_owned(),
            arguments: arguments.clone(),
        }
    }

    /// How it is followed; `None` if the operation does not exist any more.
    pub(super) fn following(&self) -> Option<Following> {
        Following::again(&self.get, self.arguments.clone())
    }
}

/// Told what a call started, before the call goes on.
pub type Started = Arc<dyn Fn(Work) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A call that is made for a task: it ends when the work does.
#[derive(Clone)]
pub struct TaskCall {
    /// When the task must have ended.
    pub deadline: Instant,
    /// The work of an earlier process; nothing is started then.
    pub resume: Option<Work>,
    /// Told what is started.
    pub started: Started,
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
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            default_ttl: Duration::from_secs(60 * 60),
            max_ttl: Duration::from_secs(24 * 60 * 60),
            concurrent: 2_000,
        }
    }
}

/// Whether a tool can start work that takes long.
pub(super) fn can_start(plan: &Plan) -> bool {
    let is_long =
        |name: &str| operations::find(name).is_some_and(|found| found.long_running.is_some());
    match plan {
        Plan::Operation { operation } => is_long(operation),
        Plan::Named(plan) => is_long(&plan.operation),
        Plan::Dispatcher { operations } => operations.iter().any(|name| is_long(name)),
        Plan::Host { entries } => entries
            .iter()
            .any(|entry| entry.operation.as_deref().is_some_and(is_long)),
        Plan::Note => false,
    }
}

impl Catalogue {
    /// Whether a call starts work that takes long and does not itself wait for it.
    pub fn starts_work(&self, tool: &str, arguments: &Map<String, Value>) -> bool {
        let asked = self.find(tool).map(|tool| request(tool, arguments.clone()));
        matches!(asked, Some(Ok(asked)) if asked.operation.long_running.is_some())
            && !arguments.contains_key("wait_seconds")
    }

    /// Whether a call may be made twice without harm.
    pub fn repeats_safely(&self, tool: &str, arguments: &Map<String, Value>) -> bool {
        match self.find(tool).map(|tool| request(tool, arguments.clone())) {
            Some(Ok(asked)) => asked.operation.read_only,
            // A call that asks nothing of Exa starts nothing there; a note would be kept twice.
            Some(Err(_)) => self
                .find(tool)
                .is_some_and(|tool| !matches!(tool.plan, Plan::Note)),
            None => false,
        }
    }

    /// Stops work at Exa; says whether that was possible, `None` where Exa offers no way.
    pub async fn stop(&self, work: &Work) -> Option<bool> {
        let following = work.following()?;
        let stopped = following.cancel(&self.caller).await?;
        Some(stopped.is_ok())
    }
}

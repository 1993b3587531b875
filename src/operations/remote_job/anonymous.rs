//! Jobs that the response to their start does not identify: they are found in the list of jobs.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{JobMatches, JobSearchError, OperationExecutor, RemoteJob};
use exa_mcp_model::Operation;
use exa_mcp_model::time::now;

/// How far back to search for a job that was just started, in milliseconds, with a margin for clock differences.
const SEARCH_WINDOW: u64 = 60 * 60 * 1000;

/// The time limit of one search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(30);

impl RemoteJob {
    /// Returns whether the response of an operation does not identify the job that it starts.
    pub(crate) fn is_anonymous(operation: &Operation) -> bool {
        let long_running = operation.behavior.long_running.as_ref();
        let find = long_running.and_then(|long_running| long_running.find.as_ref());
        find.is_some_and(|find| find.same.is_empty())
    }

    /// Searches for recent jobs of the kind that an operation starts with these arguments; `None` if Exa does not list
    /// such jobs.
    pub(crate) async fn find_recent(
        executor: &OperationExecutor,
        start: &'static Operation,
        sent: &Map<String, Value>,
    ) -> Option<Result<JobMatches, JobSearchError>> {
        let since = now().saturating_sub(SEARCH_WINDOW);
        let deadline = Instant::now() + SEARCH_TIMEOUT;
        Self::find(executor, start, sent, since, deadline).await
    }

    /// Returns the call that lists the jobs that an operation starts, if Exa lists them.
    pub(crate) fn list_call(
        start: &Operation,
        sent: &Map<String, Value>,
    ) -> Option<(&'static Operation, Map<String, Value>)> {
        let find = start.behavior.long_running.as_ref()?.find.as_ref()?;
        let arguments = super::arguments(&find.arguments, sent, &Value::Null)?;
        Some((super::operation(&find.list)?, arguments))
    }
}

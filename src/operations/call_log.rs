//! Log lines and metrics of calls.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::timeout;

use super::executor::CompletedCall;
use crate::telemetry::{self, SpanOutcome};
use exa_mcp_exa_client::{CallError, ExaResponse};
use exa_mcp_model::Operation;

/// The module whose log lines are about single calls.
pub(crate) const CALL_LOG: &str = module_path!();

/// A call that takes longer than this is logged as slow.
const SLOW: Duration = Duration::from_secs(10);

/// Waits for a call, and logs once if it is slow.
///
/// The call is pinned by the caller, because this future would otherwise have room for it twice.
pub(super) async fn log_if_slow<T>(
    operation: &Operation,
    mut exchange: Pin<&mut impl Future<Output = T>>,
) -> T {
    match timeout(SLOW, &mut exchange).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let milliseconds = SLOW.as_millis();
            tracing::info!(operation = operation.name, milliseconds, "still waiting");
            exchange.await
        }
    }
}

/// Logs, when dropped, that a call was abandoned although it may take effect.
pub(super) struct AbandonedCallLog {
    operation: &'static Operation,
    pub(super) is_finished: bool,
}

impl AbandonedCallLog {
    pub(super) fn new(operation: &'static Operation) -> Self {
        Self {
            operation,
            is_finished: false,
        }
    }
}

impl Drop for AbandonedCallLog {
    fn drop(&mut self) {
        if !self.is_finished && !self.operation.read_only {
            let operation = self.operation.name;
            tracing::info!(
                operation,
                "the caller stopped waiting; the call may still take effect at Exa"
            );
        }
    }
}

/// Returns how a call ended, without any text from Exa.
pub(super) fn span_outcome(result: &Result<ExaResponse, CallError>) -> SpanOutcome {
    let (code, error) = match result {
        Ok(response) => (Some(response.status), None),
        Err(CallError::Exa(error)) => (error.status, Some(error.kind.class())),
        Err(CallError::Arguments(_)) => (None, Some("invalid_request".into())),
        Err(CallError::Limit(_)) => (None, Some("limit_reached".into())),
    };
    SpanOutcome {
        code: code.map(i64::from),
        error,
    }
}

/// Logs one line per call: operation, duration and outcome, but neither arguments nor response.
pub(super) fn log(
    operation: &Operation,
    outcome: &Result<CompletedCall, CallError>,
    elapsed: Duration,
) {
    let (name, milliseconds) = (operation.name, elapsed.as_millis());
    if let Some(metrics) = telemetry::metrics() {
        match outcome {
            Ok(call) => metrics.record_upstream_call(name, call.response.status, elapsed),
            Err(CallError::Exa(error)) => match error.status {
                Some(status) => metrics.record_upstream_call(name, status, elapsed),
                None => metrics.record_upstream_call(name, "no answer", elapsed),
            },
            // No request was sent.
            Err(CallError::Arguments(_) | CallError::Limit(_)) => {}
        }
    }
    match outcome {
        Ok(CompletedCall { response, .. }) => {
            let request_id = response.request_id.as_deref().unwrap_or("-");
            tracing::info!(
                operation = name,
                status = response.status,
                milliseconds,
                request_id,
                "answered"
            );
        }
        Err(CallError::Exa(error)) => {
            let request_id = error.request_id.as_deref().unwrap_or("-");
            tracing::warn!(
                operation = name,
                status = error.status,
                milliseconds,
                request_id,
                "failed"
            );
        }
        Err(CallError::Arguments(_)) => tracing::info!(operation = name, "invalid arguments"),
        Err(CallError::Limit(exceeded)) => {
            tracing::info!(operation = name, limit = exceeded.limit, "limit reached");
        }
    }
}

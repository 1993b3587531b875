//! What the log and the telemetry say of a call.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

use super::caller::Exchanged;
use crate::telemetry::{self, SpanOutcome};
use exa_mcp_exa_client::CallError;
use exa_mcp_exa_client::ExaResponse;
use exa_mcp_model::Operation;

/// An answer that takes longer than this is slow.
const SLOW: Duration = Duration::from_secs(10);

/// Waits for an answer, and says once that it takes long.
pub(super) async fn watched<T>(operation: &Operation, exchange: impl Future<Output = T>) -> T {
    let mut exchange = pin!(exchange);
    match timeout(SLOW, &mut exchange).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let milliseconds = SLOW.as_millis();
            tracing::info!(operation = operation.name, milliseconds, "still waiting");
            exchange.await
        }
    }
}

/// Says in the log what may still come of a call that nobody waits for any more.
pub(super) struct Sent {
    operation: &'static Operation,
    pub(super) is_answered: bool,
}

impl Sent {
    pub(super) fn new(operation: &'static Operation) -> Self {
        Self {
            operation,
            is_answered: false,
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if !self.is_answered && !self.operation.read_only {
            let operation = self.operation.name;
            tracing::info!(operation, "no longer waited for; it may take effect at Exa");
        }
    }
}

/// How a call ended; never in the words of Exa.
pub(super) fn ended(answer: &Result<ExaResponse, CallError>) -> SpanOutcome {
    let (code, error) = match answer {
        Ok(answer) => (Some(answer.status), None),
        Err(CallError::Exa(error)) => (error.status, Some(error.kind.class())),
        Err(CallError::Arguments(_)) => (None, Some("invalid_request".into())),
        Err(CallError::Limit(_)) => (None, Some("limit_reached".into())),
    };
    SpanOutcome {
        code: code.map(i64::from),
        error,
    }
}

/// One line a call: what, how long, how it ended; never what was asked or answered.
pub(super) fn log(
    operation: &Operation,
    outcome: &Result<Exchanged, CallError>,
    elapsed: Duration,
) {
    let (name, milliseconds) = (operation.name, elapsed.as_millis());
    if let Some(metrics) = telemetry::metrics() {
        match outcome {
            Ok(exchanged) => metrics.record_upstream_call(name, exchanged.answer.status, elapsed),
            Err(CallError::Exa(error)) => match error.status {
                Some(status) => metrics.record_upstream_call(name, status, elapsed),
                None => metrics.record_upstream_call(name, "no answer", elapsed),
            },
            // Nothing was sent.
            Err(CallError::Arguments(_) | CallError::Limit(_)) => {}
        }
    }
    match outcome {
        Ok(Exchanged { answer, .. }) => {
            let request_id = answer.request_id.as_deref().unwrap_or("-");
            tracing::info!(
                operation = name,
                status = answer.status,
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
        Err(CallError::Arguments(_)) => tracing::info!(operation = name, "refused"),
        Err(CallError::Limit(over)) => {
            tracing::info!(operation = name, limit = over.limit, "not allowed");
        }
    }
}

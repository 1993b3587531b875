//! Calls with the service key, which is apart from the pool of API keys: nothing else may use it, and these calls may
//! use nothing else.

use std::pin::pin;
use std::time::Instant;

use serde_json::{Map, Value};

use super::OperationError;
use super::ProgressReporter;
use super::call_log::{log, log_if_slow};
use super::executor::{CompletedCall, OperationExecutor};
use exa_mcp_exa_client::{ApiKey, CallError, KeyKind};
use exa_mcp_model::Operation;

impl OperationExecutor {
    /// Returns an executor with this service key, or without one.
    #[must_use]
    pub(crate) fn with_service_key(&self, key: Option<ApiKey>) -> Self {
        let mut executor = self.clone();
        executor.service_key = key.filter(|key| key.kind() == KeyKind::Service);
        executor
    }

    /// Returns the service key.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn service_key(&self) -> Result<&ApiKey, OperationError> {
        self.service_key
            .as_ref()
            .ok_or(OperationError::NoServiceKey)
    }

    /// Calls with the service key. There is no other key to try if Exa rejects it.
    pub(super) async fn call_with_service_key(
        &self,
        operation: &'static Operation,
        arguments: &Map<String, Value>,
        progress: &ProgressReporter,
    ) -> Result<(ApiKey, Result<CompletedCall, CallError>), OperationError> {
        let key = self.service_key()?;
        let started = Instant::now();
        tracing::debug!(operation = operation.name, "calling");
        let call = self.call_with_key(key, operation, arguments.clone(), progress);
        let outcome = log_if_slow(operation, pin!(call)).await;
        log(operation, &outcome, started.elapsed());
        Ok((key.clone(), outcome))
    }
}

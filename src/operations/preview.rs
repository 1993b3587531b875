//! Builds the request of a call without sending it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::stream::requested_stream;
use super::{OperationError, import};
use super::{OperationExecutor, call_arguments};
use exa_mcp_exa_client::{
    ApiKey, CallContext, CallError, ExaConfig, ExaError, ExaHttp, RequestDescription,
    RequestPreview, StreamOptions, Unguarded, split_arguments,
};
use exa_mcp_generated::operations;
use exa_mcp_model::Operation;

/// Stands for the key of a request that is not sent. It never appears in the description.
const PLACEHOLDER_KEY: &str = "preview-without-key";

impl OperationExecutor {
    /// Rejects every call if the network is disabled.
    pub(crate) fn check_network(&self) -> Result<(), OperationError> {
        let allowed = self.http().check_network();
        allowed.map_err(|error| OperationError::Exa(Box::new(error)))
    }

    /// Returns the request that a call with validated arguments would send first. Needs neither a key nor the network.
    pub(crate) async fn preview(
        &self,
        operation: &'static Operation,
        arguments: &Map<String, Value>,
    ) -> Result<RequestDescription, OperationError> {
        let mut arguments = arguments.clone();
        if import::is_requested(operation, &arguments) {
            let counted = import::count_content(self, operation, &mut arguments).await;
            counted.map_err(|error| refused(operation, error))?;
        }
        let internal = |error: ExaError| OperationError::Exa(Box::new(error));
        let config = ExaConfig {
            no_network: false,
            ..self.http().config().clone()
        };
        let invalid = |error: exa_mcp_exa_client::ConfigError| {
            internal(ExaError::invalid_request(error.to_string()))
        };
        let http = ExaHttp::new(config).map_err(invalid)?;
        let key = ApiKey::of_kind(operation.api.key, PLACEHOLDER_KEY).map_err(invalid)?;
        let timeout = Duration::from_secs(operation.timeout_seconds);
        let preview = RequestPreview::default();
        let context = CallContext::new(http, key, timeout, Arc::new(Unguarded));
        let mut context = context.with_preview(preview.clone());
        if let Some(streaming) = requested_stream(operation, &arguments) {
            context = context.with_stream(StreamOptions::new(streaming.kind, false, |_| {}));
        }
        let parts = split_arguments(operation, arguments.into());
        let parts = parts.map_err(|error| refused(operation, error.into()))?;
        let outcome = operations::call(operation, context, parts).await;
        match (preview.take(), outcome) {
            (Some(description), _) => Ok(description),
            (None, Err(error)) => Err(refused(operation, error)),
            (None, Ok(_)) => Err(internal(ExaError::invalid_request(
                "The request of the call cannot be shown.",
            ))),
        }
    }
}

fn refused(operation: &'static Operation, error: CallError) -> OperationError {
    call_arguments::call_error(operation, error)
}

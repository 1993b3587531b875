//! Calls operations in the test process, for tables too long to start a program for each entry.

use std::sync::Arc;
use std::time::Duration;

use exa_mcp_exa_client::{
    ApiKey, CallContext, ExaConfig, ExaHttp, ExaResponse, RetryPolicy, Unguarded,
};
use exa_mcp_exa_client::{CallError, split_arguments};
use exa_mcp_model::{KeyKind, Operation};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::{API_KEY, RecordedRequest, Recorder, Response};

/// An Exa client connected to a recorder that responds to every request with an empty object.
pub(crate) struct InProcessClient {
    recorder: Recorder,
    runtime: Runtime,
    http: ExaHttp,
}

impl InProcessClient {
    pub(crate) fn new() -> Self {
        Self::with_recorder(Recorder::always(Response::json(200, &json!({}))))
    }

    /// Creates a client connected to a recorder with its own responses.
    pub(crate) fn with_recorder(recorder: Recorder) -> Self {
        let url = recorder.url();
        Self::with(recorder, &url)
    }

    /// Creates a client connected to another server, whose requests are not recorded.
    pub(crate) fn with_url(url: &str) -> Self {
        Self::with(Recorder::always(Response::json(200, &json!({}))), url)
    }

    fn with(recorder: Recorder, url: &str) -> Self {
        let config = ExaConfig {
            base_url: Some(url.parse().expect("a URL")),
            service_base_url: Some(url.parse().expect("a URL")),
            retry: RetryPolicy {
                max_retries: 0,
                ..RetryPolicy::default()
            },
            ..ExaConfig::default()
        };
        let http = ExaHttp::new(config).expect("a usable configuration");
        Self {
            recorder,
            runtime: Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
            http,
        }
    }

    fn context(&self, kind: KeyKind) -> CallContext {
        let key = ApiKey::of_kind(kind, API_KEY).expect("a usable key");
        let timeout = Duration::from_secs(20);
        CallContext::new(self.http.clone(), key, timeout, Arc::new(Unguarded))
    }

    /// Calls an operation and returns the result and the requests that were sent.
    pub(crate) fn call(
        &self,
        operation: &'static Operation,
        arguments: Value,
    ) -> (Result<ExaResponse, CallError>, Vec<RecordedRequest>) {
        let result = match split_arguments(operation, arguments) {
            Ok(parts) => {
                let context = self.context(operation.api.key);
                let call = exa_mcp_generated::operations::call(operation, context, parts);
                self.runtime.block_on(call)
            }
            Err(error) => Err(error.into()),
        };
        (result, self.recorder.take())
    }
}

//! Executes operations: validates the arguments, chooses a key, sends the request.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::time::sleep;

use super::call_arguments::{call_error, validate};
use super::call_log::{AbandonedCallLog, log, log_if_slow, span_outcome};
use super::price::{self, CostSource};
use super::spend::{LostReservation, RequestGuard, Settlement, SpendGuard, SpendRequest};
use super::stream;
use super::{Folders, OperationError, ProgressReporter, RemoteJob, import, validation};
use crate::telemetry::{self, Span, TraceContext};
use exa_mcp_exa_client::{
    ApiKey, CallContext, CallError, ExaErrorKind, ExaHttp, ExaResponse, KeyLease, KeyPool,
    KeyPoolError, StreamKind, StreamOptions, blocking, split_arguments,
};
use exa_mcp_generated::{operations, response_fields};
use exa_mcp_model::{ArgumentLocation, JobCost, KeyKind, Operation};

/// Executes operations with one API key, or with a pool of them.
#[derive(Clone)]
pub(crate) struct OperationExecutor {
    http: ExaHttp,
    keys: KeyPool,
    /// The key for APIs that take service keys. It is never in the pool.
    pub(super) service_key: Option<ApiKey>,
    folders: Folders,
    /// Admits every request.
    pub(super) guard: Arc<dyn SpendGuard>,
    /// Failed requests are not retried.
    pub(super) without_retries: bool,
    /// The call probes whether a key works again, so a rejection of the key is not waited out.
    probing: bool,
    /// The index of the only key of the pool that may be used.
    only_key: Option<usize>,
    /// Holds the reservation of a start whose response is lost.
    lost: Option<LostReservation>,
    /// Calls are about a resource that is known to exist, so a 404 for a single key proves nothing.
    is_existing_resource: bool,
}

/// A call with its response, however many requests it took.
#[derive(Debug)]
pub(crate) struct CompletedCall {
    /// The response of Exa.
    pub(crate) response: ExaResponse,
    /// The arguments as they were sent.
    pub(crate) arguments: Map<String, Value>,
    /// The progress reported so far, at which the progress of follow-up work starts.
    pub(crate) reported_progress: f64,
}

impl OperationExecutor {
    /// Creates an executor that cannot read files. Without a key, every call is rejected.
    pub(crate) fn new(
        http: ExaHttp,
        keys: impl IntoIterator<Item = ApiKey>,
        guard: Arc<dyn SpendGuard>,
    ) -> Self {
        Self {
            guard,
            http,
            keys: KeyPool::new(keys),
            service_key: None,
            folders: Folders::none("no folder is open to this server"),
            without_retries: false,
            probing: false,
            only_key: None,
            lost: None,
            is_existing_resource: false,
        }
    }

    /// Returns an executor that may read files in these folders.
    #[must_use]
    pub(crate) fn with_folders(&self, folders: Folders) -> Self {
        Self {
            folders,
            ..self.clone()
        }
    }

    /// Returns an executor whose requests pass another guard.
    #[must_use]
    pub(crate) fn with_guard(&self, guard: Arc<dyn SpendGuard>) -> Self {
        Self {
            guard,
            ..self.clone()
        }
    }

    /// Returns an executor with another key.
    #[must_use]
    pub(crate) fn with_key(&self, key: ApiKey) -> Self {
        self.with_keys(KeyPool::new([key]))
    }

    /// Returns an executor with another key pool.
    #[must_use]
    pub(crate) fn with_keys(&self, keys: KeyPool) -> Self {
        Self {
            keys,
            ..self.clone()
        }
    }

    /// Returns the key pool.
    pub(crate) fn keys(&self) -> &KeyPool {
        &self.keys
    }

    /// Returns whether the last call reached Exa, if there was one.
    pub(crate) fn is_exa_healthy(&self) -> Option<bool> {
        self.http.is_healthy()
    }

    pub(super) fn http(&self) -> &ExaHttp {
        &self.http
    }

    /// Returns the folders in which files may be read.
    pub(crate) fn folders(&self) -> &Folders {
        &self.folders
    }

    /// Returns an executor that does not retry failed requests.
    #[must_use]
    pub(crate) fn without_retries(&self) -> Self {
        Self {
            without_retries: true,
            ..self.clone()
        }
    }

    /// Returns an executor for calls about a resource that is known to exist. Unless the key that created it is known,
    /// it counts as missing only after every key was tried.
    pub(super) fn for_existing_resource(&self) -> Self {
        Self {
            is_existing_resource: true,
            ..self.clone()
        }
    }

    /// Returns an executor that holds the reservation of a start whose response is lost, until it is known whether
    /// the start reached Exa.
    pub(crate) fn holding_lost_reservation(&self) -> (Self, LostReservation) {
        let lost = LostReservation::default();
        let executor = Self {
            lost: Some(lost.clone()),
            ..self.clone()
        };
        (executor, lost)
    }

    /// Returns one executor per key of the pool. The pool accounts for its keys as usual.
    pub(super) fn per_key(&self) -> Vec<Self> {
        let with_key = |index| Self {
            only_key: Some(index),
            ..self.clone()
        };
        (0..self.keys.len()).map(with_key).collect()
    }

    /// Returns the indexes of the keys that must not be used.
    fn excluded_keys(&self) -> Vec<usize> {
        let Some(only) = self.only_key else {
            return Vec::new();
        };
        let indexes = 0..self.keys.len();
        indexes.filter(|index| *index != only).collect()
    }

    /// Returns whether there is a key.
    pub(crate) fn has_key(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Validates the arguments, then calls the operation.
    pub(crate) async fn call(
        &self,
        operation: &'static Operation,
        arguments: Value,
    ) -> Result<CompletedCall, OperationError> {
        let arguments = Self::validate(operation, arguments)?;
        self.send(operation, arguments, &ProgressReporter::disabled())
            .await
    }

    /// Corrects and validates the arguments of a call.
    pub(crate) fn validate(
        operation: &'static Operation,
        arguments: Value,
    ) -> Result<validation::ValidatedArguments, OperationError> {
        validate(operation, arguments).map_err(|error| OperationError::Arguments(Box::new(error)))
    }

    /// Calls an operation with validated arguments. A streamed response is reported as progress.
    pub(crate) async fn send(
        &self,
        operation: &'static Operation,
        arguments: validation::ValidatedArguments,
        progress: &ProgressReporter,
    ) -> Result<CompletedCall, OperationError> {
        let mut abandoned = AbandonedCallLog::new(operation);
        // Boxed, because it is far larger than the futures that wait for it.
        let call = self.call_with_any_key(operation, &arguments.arguments, progress);
        let outcome = Box::pin(call).await;
        abandoned.is_finished = true;
        let (key, outcome) = outcome?;
        match outcome {
            Ok(call) => {
                let response = call.response;
                let is_large = blocking::is_large_value(&response.value);
                // Some proxies echo headers; the response must not reveal the key.
                let value = blocking::run(is_large, || key.redact_json(response.value)).await;
                Ok(CompletedCall {
                    response: ExaResponse { value, ..response },
                    ..call
                })
            }
            Err(error) => Err(call_error(operation, error)),
        }
    }

    /// Calls with the least busy key; where Exa rejects the key, or does not know the resource, with the next.
    async fn call_with_any_key(
        &self,
        operation: &'static Operation,
        arguments: &Map<String, Value>,
        progress: &ProgressReporter,
    ) -> Result<(ApiKey, Result<CompletedCall, CallError>), OperationError> {
        // Refused before a key is read.
        self.check_network()?;
        if operation.api.key == KeyKind::Service {
            return self
                .call_with_service_key(operation, arguments, progress)
                .await;
        }
        let resource = resource_id(operation, arguments);
        let mut tried = self.excluded_keys();
        // Keys that do not know the resource, or must not access it.
        let mut denied = Vec::new();
        // Keys with which Exa forbade the call.
        let mut forbidden: Vec<KeyLease> = Vec::new();
        loop {
            let lease = self
                .keys
                .lease(operation.domain, resource, &tried)
                .map_err(OperationError::from)?;
            if !lease.wait().is_zero() {
                sleep(lease.wait()).await;
            }
            let started = Instant::now();
            tracing::debug!(operation = operation.name, "calling");
            let executor = Self {
                probing: lease.is_probe(),
                ..self.clone()
            };
            let call = executor.call_with_key(lease.key(), operation, arguments.clone(), progress);
            let outcome = log_if_slow(operation, pin!(call)).await;
            log(operation, &outcome, started.elapsed());
            match &outcome {
                Ok(_) => self.http.record_health(true),
                Err(CallError::Exa(error)) => {
                    self.http
                        .record_health(error.status.is_some_and(|status| status < 500));
                }
                Err(CallError::Arguments(_) | CallError::Limit(_)) => {}
            }
            let try_another = match &outcome {
                Ok(call) => {
                    let returned = returned_id(&call.response.value);
                    for known in resource.into_iter().chain(returned) {
                        self.keys.remember(known, &lease);
                    }
                    forbidden.iter().for_each(KeyLease::report_forbidden);
                    lease.report(Ok(()))
                }
                Err(CallError::Exa(error)) => {
                    let may_be_elsewhere = resource.is_some() && error.status == Some(404);
                    lease.report(Err(error)) || may_be_elsewhere
                }
                Err(CallError::Arguments(_) | CallError::Limit(_)) => false,
            };
            tried.push(lease.index());
            let status = outcome.as_ref().err().and_then(CallError::status);
            if matches!(status, Some(403 | 404)) {
                denied.push(lease.index());
            }
            let is_missing = status == Some(404);
            let may_have = |resource| {
                self.keys
                    .may_exist(resource, self.is_existing_resource, &denied)
            };
            if !try_another || !self.keys.has_ready(operation.domain, &tried) {
                if is_missing && resource.is_some_and(may_have) {
                    // The key that can see the resource is cooling down; the next lease reports until when.
                    continue;
                }
                let outcome = outcome.map_err(|error| self.with_next_key(operation, error));
                return Ok((lease.key().clone(), outcome));
            }
            forbidden.extend(Some(lease).filter(|_| status == Some(403)));
        }
    }

    /// Adds to an error when the next key is ready, if none is.
    fn with_next_key(&self, operation: &'static Operation, mut error: CallError) -> CallError {
        if let CallError::Exa(error) = &mut error
            && let Some(unavailable) = self.keys.unavailable_after(operation.domain, error)
        {
            let message = error.message.trim_end_matches('.');
            error.message = format!("{message} ({unavailable})");
            if let KeyPoolError::CoolingDown { wait, .. } = unavailable {
                error.retry_after = Some(wait);
            }
        }
        error
    }

    /// Calls with this key: with a plain request, a stream, or a file upload, as the arguments require.
    pub(crate) async fn call_with_key(
        &self,
        key: &ApiKey,
        operation: &'static Operation,
        mut arguments: Map<String, Value>,
        progress: &ProgressReporter,
    ) -> Result<CompletedCall, CallError> {
        if import::is_requested(operation, &arguments) {
            return import::run(self, key, operation, arguments, progress).await;
        }
        if let Some(streaming) = stream::requested_stream(operation, &arguments) {
            let response = self
                .request_stream(key, operation, &arguments, streaming, progress)
                .await?;
            if streaming.kind != StreamKind::Research {
                return Ok(CompletedCall::new(response, arguments));
            }
            // The events of a research task do not contain the task, so it is fetched now.
            arguments.shift_remove("stream");
        }
        let response = self
            .request(key, operation, arguments.clone(), None)
            .await?;
        Ok(CompletedCall::new(response, arguments))
    }

    /// Sends one request and returns its response.
    pub(super) async fn request(
        &self,
        key: &ApiKey,
        operation: &'static Operation,
        arguments: Map<String, Value>,
        stream: Option<StreamOptions>,
    ) -> Result<ExaResponse, CallError> {
        let guard = RequestGuard::new(&self.guard, operation, &arguments);
        let guard = Arc::new(guard.holding_lost(self.lost.clone()));
        let parts = split_arguments(operation, arguments.into())?;
        let _slot = self.http.acquire_slot().await;
        let timeout = Duration::from_secs(operation.timeout_seconds);
        let guarded = guard.clone();
        let context = CallContext::new(self.http.clone(), key.clone(), timeout, guarded);
        let context = context.with_other_keys(self.probing || self.keys.len() > 1);
        let context = if self.without_retries {
            context.without_retries()
        } else {
            context
        };
        let context = match stream {
            Some(stream) => context.with_stream(stream),
            None => context,
        };
        let span = Span::for_call(|| self.span_attributes(operation));
        let trace = span.trace().or_else(TraceContext::current);
        let headers = trace.clone().into_iter().flat_map(TraceContext::headers);
        let context = headers.fold(context, |context, (name, value)| {
            context.with_header(name, value)
        });
        let result = TraceContext::scope(
            trace,
            blocking::run_large_parts(operations::call(operation, context, parts)),
        )
        .await;
        let result = match (result, guard.rejection()) {
            (Err(CallError::Exa(error)), Some(exceeded))
                if error.kind == ExaErrorKind::NotAllowed =>
            {
                Err(CallError::Limit(Box::new(exceeded)))
            }
            (result, _) => result,
        };
        let result = result.map(|response| response.with_loggable_request_id(key));
        span.end(|| span_outcome(&result));
        result
    }

    /// Charges a job that was started although Exa responded with an error.
    pub(crate) async fn charge_recovered_job(
        &self,
        operation: &'static Operation,
        arguments: &Map<String, Value>,
        job: &RemoteJob,
    ) {
        let request = SpendRequest {
            operation,
            estimate: price::estimate(operation, arguments),
        };
        if request.estimate.charged != CostSource::AtEndOfJob {
            return;
        }
        match self.guard.reserve(&request).await {
            Ok(reservation) => {
                let settlement = Settlement::Job(job.clone(), JobCost::Pending);
                reservation.settle(settlement).await;
            }
            Err(exceeded) => {
                tracing::warn!(over = %exceeded, "a run that exceeds the budget continues")
            }
        }
    }

    /// Returns the span attributes of a call.
    fn span_attributes(&self, operation: &'static Operation) -> telemetry::CallAttributes {
        telemetry::CallAttributes {
            operation: operation.name,
            method: operation.method,
            path: operation.path,
            base_url: self
                .http
                .base_url(operation.api.key, operation.api.base_url),
        }
    }
}

impl CompletedCall {
    fn new(response: ExaResponse, arguments: Map<String, Value>) -> Self {
        Self {
            response,
            arguments,
            reported_progress: 0.0,
        }
    }
}

/// Returns the id of the resource that a call is about: its first path parameter.
pub(super) fn resource_id<'a>(
    operation: &Operation,
    arguments: &'a Map<String, Value>,
) -> Option<&'a str> {
    let mut parameters = operation.arguments.iter();
    let parameter = parameters.find(|argument| argument.location == ArgumentLocation::Path)?;
    arguments.get(parameter.name)?.as_str()
}

/// Returns the id of the resource that a response contains.
fn returned_id(response: &Value) -> Option<&str> {
    response_fields::ID.text(response)
}

//! Calling an operation: checked, sent, answered.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::time::{sleep, timeout};

use super::price::{self, Charged};
use super::spend::{RequestGuard, RunState, Settlement, SpendGuard, SpendRequest, StartedRun};
use super::stream::{self, Teller};
use super::{
    CallError, Folders, Following, Operation, Place, Progress, import, input_schema, split,
    validation,
};
use crate::telemetry::{self, Ended, Span, Trace};
use exa_mcp_exa_client::{
    ApiKey, CallContext, ExaError, ExaErrorKind, ExaHttp, ExaResponse, KeyLease, KeyOwner, KeyPool,
    NoKey, StreamForm, StreamOptions,
};
use exa_mcp_model::LimitExceeded;

/// An answer that takes longer than this is slow.
const SLOW: Duration = Duration::from_secs(10);

/// Calls operations with one key, or with several that share the work.
#[derive(Clone)]
pub struct Caller {
    http: ExaHttp,
    keys: KeyPool,
    folders: Folders,
    /// What every request passes.
    guard: Arc<dyn SpendGuard>,
    /// A request that failed is not sent again.
    once: bool,
    /// The call finds out whether a key works again, so a refusal of the key is not waited out.
    probing: bool,
}

/// An answered call.
#[derive(Debug)]
pub struct Called {
    /// What Exa said.
    pub answer: ExaResponse,
    /// The arguments as they were sent.
    pub arguments: Map<String, Value>,
    /// What was put right in the arguments, a sentence each.
    pub mended: Vec<String>,
    /// How far the progress of the call was told; what follows it begins there.
    pub told: f64,
}

impl From<NoKey> for Refusal {
    fn from(none: NoKey) -> Self {
        match none {
            NoKey::Empty(holder) => Self::NoKey(holder),
            out => Self::KeysOut(out),
        }
    }
}

/// What came of a call, however many requests it took.
#[derive(Debug)]
pub(crate) struct Exchanged {
    /// What Exa said.
    pub(crate) answer: ExaResponse,
    /// The arguments as they were sent.
    pub(crate) arguments: Map<String, Value>,
    /// How far progress was told.
    pub(crate) told: f64,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Refusal {
    /// There is no key to call with; it would have to come from these.
    NoKey(KeyOwner),
    /// Exa turned every key away.
    KeysOut(NoKey),
    /// The arguments do not fit; nothing was sent.
    Arguments(Box<validation::ValidationError>),
    /// The API or the way to it failed.
    Exa(Box<ExaError>),
    /// A limit of whoever pays does not allow it; nothing was sent.
    Limit(Box<LimitExceeded>),
}

impl Caller {
    /// A caller; without a key every call is refused, and no file is read. Every request passes the guard.
    pub fn new(
        http: ExaHttp,
        keys: impl IntoIterator<Item = ApiKey>,
        guard: Arc<dyn SpendGuard>,
    ) -> Self {
        Self {
            guard,
            http,
            keys: KeyPool::new(keys),
            folders: Folders::none("no folder is open to this server"),
            once: false,
            probing: false,
        }
    }

    /// The same caller, which may read files out of these folders.
    #[must_use]
    pub fn with_folders(&self, folders: Folders) -> Self {
        Self {
            folders,
            ..self.clone()
        }
    }

    /// The same caller for someone else who pays.
    #[must_use]
    pub fn with_guard(&self, guard: Arc<dyn SpendGuard>) -> Self {
        Self {
            guard,
            ..self.clone()
        }
    }

    /// The same caller with another key.
    #[must_use]
    pub fn with_key(&self, key: ApiKey) -> Self {
        self.with_keys(KeyPool::new([key]))
    }

    /// The same caller with other keys.
    #[must_use]
    pub fn with_keys(&self, keys: KeyPool) -> Self {
        Self {
            keys,
            ..self.clone()
        }
    }

    /// The keys and how they stand.
    pub fn keys(&self) -> &KeyPool {
        &self.keys
    }

    /// Whether Exa answered when it was last called, if it was.
    pub fn is_exa_well(&self) -> Option<bool> {
        self.http.is_healthy()
    }

    pub(super) fn http(&self) -> &ExaHttp {
        &self.http
    }

    /// The folders out of which files may be read.
    pub fn folders(&self) -> &Folders {
        &self.folders
    }

    /// The same caller, which sends every request once only.
    #[must_use]
    pub fn once(&self) -> Self {
        Self {
            once: true,
            ..self.clone()
        }
    }

    /// Whether there is a key.
    pub fn has_key(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Mends and checks the arguments, then calls.
    pub async fn call(
        &self,
        operation: &'static Operation,
        arguments: Value,
    ) -> Result<Called, Refusal> {
        let checked = Self::check(operation, arguments)?;
        self.send(operation, checked, &Progress::none()).await
    }

    /// Mends and checks the arguments of a call.
    pub fn check(
        operation: &'static Operation,
        arguments: Value,
    ) -> Result<validation::Checked, Refusal> {
        checked(operation, arguments).map_err(|refused| Refusal::Arguments(Box::new(refused)))
    }

    /// Calls with arguments that are known to fit. What comes of the answer before it is complete is
    /// told as progress.
    pub async fn send(
        &self,
        operation: &'static Operation,
        checked: validation::Checked,
        progress: &Progress,
    ) -> Result<Called, Refusal> {
        let mut sent = Sent::new(operation);
        // Boxed, because it is far larger than everything that waits for it.
        let exchange = self.with_any_key(operation, &checked.arguments, progress);
        let outcome = Box::pin(exchange).await;
        sent.is_answered = true;
        let (key, outcome) = outcome?;
        match outcome {
            Ok(exchanged) => Ok(Called {
                // Some proxies echo headers; whoever reads the answer must not learn the key.
                answer: ExaResponse {
                    value: key.redact_json(exchanged.answer.value),
                    ..exchanged.answer
                },
                arguments: exchanged.arguments,
                mended: checked.corrections,
                told: exchanged.told,
            }),
            Err(CallError::Exa(error)) => Err(Refusal::Exa(Box::new(error))),
            Err(CallError::Limit(over)) => Err(Refusal::Limit(over)),
            Err(CallError::Arguments(error)) => {
                let problems = error
                    .problems
                    .into_iter()
                    .map(|text| validation::Problem {
                        place: error.place.to_owned(),
                        text,
                    })
                    .collect();
                Err(Refusal::Arguments(Box::new(refused(operation, problems))))
            }
        }
    }
}

impl Caller {
    /// Calls with the least busy key; where Exa turns it away before it has acted, or does not know the
    /// thing, with the next.
    async fn with_any_key(
        &self,
        operation: &'static Operation,
        arguments: &Map<String, Value>,
        progress: &Progress,
    ) -> Result<(ApiKey, Result<Exchanged, CallError>), Refusal> {
        let thing = thing(operation, arguments);
        let mut tried = Vec::new();
        // Keys with which the call was forbidden.
        let mut forbidden: Vec<KeyLease> = Vec::new();
        loop {
            let lease = self
                .keys
                .lease(operation.domain, thing, &tried)
                .map_err(Refusal::from)?;
            if !lease.wait().is_zero() {
                sleep(lease.wait()).await;
            }
            let started = Instant::now();
            tracing::debug!(operation = operation.name, "called");
            let caller = Self {
                probing: lease.is_probe(),
                ..self.clone()
            };
            let exchange = caller.exchange(lease.key(), operation, arguments.clone(), progress);
            let outcome = watched(operation, exchange).await;
            log(operation, &outcome, started.elapsed());
            match &outcome {
                Ok(_) => self.http.record_health(true),
                Err(CallError::Exa(error)) => {
                    self.http
                        .record_health(error.status.is_some_and(|status| status < 500));
                }
                Err(CallError::Arguments(_) | CallError::Limit(_)) => {}
            }
            let another = match &outcome {
                Ok(exchanged) => {
                    let made = made(&exchanged.answer.value);
                    for found in thing.into_iter().chain(made) {
                        self.keys.remember(found, &lease);
                    }
                    forbidden.iter().for_each(KeyLease::report_forbidden);
                    lease.report(Ok(()))
                }
                Err(CallError::Exa(error)) => {
                    let elsewhere = thing.is_some() && error.status == Some(404);
                    lease.report(Err(error)) || elsewhere
                }
                Err(CallError::Arguments(_) | CallError::Limit(_)) => false,
            };
            tried.push(lease.place());
            if !another || !self.keys.has_ready(operation.domain, &tried) {
                let outcome = outcome.map_err(|error| self.with_next_key(operation, error));
                return Ok((lease.key().clone(), outcome));
            }
            let status = outcome.as_ref().err().and_then(CallError::status);
            forbidden.extend(Some(lease).filter(|_| status == Some(403)));
        }
    }

    /// Adds to an error after which no key is ready when the next one is.
    fn with_next_key(&self, operation: &'static Operation, mut error: CallError) -> CallError {
        if let CallError::Exa(error) = &mut error
            && let Some(out) = self.keys.out_after(operation.domain, error)
        {
            let said = error.message.trim_end_matches('.');
            error.message = format!("{said} ({out})");
            if let NoKey::CoolingDown { wait, .. } = out {
                error.retry_after = Some(wait);
            }
        }
        error
    }

    /// Calls in the way that the arguments ask for: at once, as a stream, or with a file to upload.
    pub(crate) async fn exchange(
        &self,
        key: &ApiKey,
        operation: &'static Operation,
        mut arguments: Map<String, Value>,
        progress: &Progress,
    ) -> Result<Exchanged, CallError> {
        if import::is_wanted(operation, &arguments) {
            return import::run(self, key, operation, arguments, progress).await;
        }
        if let Some(streaming) = stream::wanted(operation, &arguments) {
            let teller = Teller::new(progress, key.clone());
            let stream = teller.stream(streaming, &arguments);
            let call = self.plain(key, operation, arguments.clone(), Some(stream));
            let answer = teller.during(call).await?;
            if streaming.form != StreamForm::Research {
                return Ok(Exchanged::at_once(answer, arguments));
            }
            // The events of a research task are not the task, which is now there to be had.
            arguments.shift_remove("stream");
        }
        let answer = self.plain(key, operation, arguments.clone(), None).await?;
        Ok(Exchanged::at_once(answer, arguments))
    }

    /// One request, and its answer.
    pub(super) async fn plain(
        &self,
        key: &ApiKey,
        operation: &'static Operation,
        arguments: Map<String, Value>,
        stream: Option<StreamOptions>,
    ) -> Result<ExaResponse, CallError> {
        let guard = Arc::new(RequestGuard::new(&self.guard, operation, &arguments));
        let parts = split(operation, arguments.into())?;
        let _slot = self.http.acquire_slot().await;
        let timeout = Duration::from_secs(operation.timeout_seconds);
        let guarded = guard.clone();
        let context = CallContext::new(self.http.clone(), key.clone(), timeout, guarded);
        let context = context.with_other_keys(self.probing || self.keys.len() > 1);
        let context = match self.once {
            true => context.without_retries(),
            false => context,
        };
        let context = match stream {
            Some(stream) => context.with_stream(stream),
            None => context,
        };
        let span = Span::of_call(|| self.seen(operation));
        let trace = span.trace().or_else(Trace::current);
        let headers = trace.clone().into_iter().flat_map(Trace::headers);
        let context = headers.fold(context, |context, (name, value)| {
            context.with_header(name, value)
        });
        let answer = Trace::during(trace, (operation.call)(context, parts)).await;
        let answer = match (answer, guard.refusal()) {
            (Err(CallError::Exa(error)), Some(over)) if error.kind == ExaErrorKind::NotAllowed => {
                Err(CallError::Limit(Box::new(over)))
            }
            (answer, _) => answer,
        };
        span.end(|| ended(&answer));
        answer
    }

    /// Charges a run whose start was answered with an error, although it was made.
    pub(crate) async fn adopt(
        &self,
        operation: &'static Operation,
        arguments: &Map<String, Value>,
        following: &Following,
    ) {
        let request = SpendRequest {
            operation,
            estimate: price::estimate(operation, arguments),
        };
        if request.estimate.charged != Charged::AtEndOfRun {
            return;
        }
        match self.guard.reserve(&request).await {
            Ok(reservation) => {
                let run = StartedRun::of(following);
                reservation
                    .settle(Settlement::Run(run, RunState::Running))
                    .await;
            }
            Err(over) => tracing::warn!(%over, "a run goes on that no budget pays for"),
        }
    }

    /// What operators see of a call.
    fn seen(&self, operation: &'static Operation) -> telemetry::Called {
        telemetry::Called {
            operation: operation.name,
            method: operation.method,
            path: operation.path,
            base_url: self.http.base_url(operation.api.base_url),
        }
    }
}

impl Exchanged {
    fn at_once(answer: ExaResponse, arguments: Map<String, Value>) -> Self {
        Self {
            answer,
            arguments,
            told: 0.0,
        }
    }
}

/// What a call is about: the first thing that its path names.
fn thing<'a>(operation: &Operation, arguments: &'a Map<String, Value>) -> Option<&'a str> {
    let mut path = operation.arguments.iter();
    let named = path.find(|argument| argument.place == Place::Path)?;
    arguments.get(named.name)?.as_str()
}

/// The thing that an answer is or has made.
fn made(answer: &Value) -> Option<&str> {
    let id = answer.get("id").or_else(|| answer.get("researchId"))?;
    id.as_str()
}

/// Waits for an answer, and says once that it takes long.
async fn watched<T>(operation: &Operation, exchange: impl Future<Output = T>) -> T {
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
struct Sent {
    operation: &'static Operation,
    is_answered: bool,
}

impl Sent {
    fn new(operation: &'static Operation) -> Self {
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
fn ended(answer: &Result<ExaResponse, CallError>) -> Ended {
    let (code, error) = match answer {
        Ok(answer) => (Some(answer.status), None),
        Err(CallError::Exa(error)) => (error.status, Some(error.kind.class())),
        Err(CallError::Arguments(_)) => (None, Some("invalid_request".into())),
        Err(CallError::Limit(_)) => (None, Some("limit_reached".into())),
    };
    Ended {
        code: code.map(i64::from),
        error,
    }
}

/// One line a call: what, how long, how it ended; never what was asked or answered.
fn log(operation: &Operation, outcome: &Result<Exchanged, CallError>, elapsed: Duration) {
    let (name, milliseconds) = (operation.name, elapsed.as_millis());
    if let Some(metrics) = telemetry::metrics() {
        match outcome {
            Ok(exchanged) => metrics.called(name, exchanged.answer.status, elapsed),
            Err(CallError::Exa(error)) => match error.status {
                Some(status) => metrics.called(name, status, elapsed),
                None => metrics.called(name, "no answer", elapsed),
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

fn checked(
    operation: &'static Operation,
    arguments: Value,
) -> Result<validation::Checked, validation::ValidationError> {
    let aliases: Vec<(&str, &str)> = operation
        .arguments
        .iter()
        .flat_map(|argument| argument.aliases.iter().map(|alias| (*alias, argument.name)))
        .collect();
    let subject = validation::Subject::new(input_schema(operation))
        .with_aliases(&aliases)
        .with_behavior(&operation.behavior);
    validation::check(&subject, arguments)
}

fn refused(
    operation: &'static Operation,
    problems: Vec<validation::Problem>,
) -> validation::ValidationError {
    validation::ValidationError {
        problems,
        example: Box::new(operation.example()),
        hints: operation.behavior.hints.clone(),
        missing: Vec::new(),
    }
}

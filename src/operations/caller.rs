//! Calling an operation: checked, sent, answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::time::sleep;

use super::call_arguments::{checked, refused};
use super::call_log::{Sent, ended, log, watched};
use super::price::{self, Charged};
use super::spend::{
    LostReservation, RequestGuard, RunState, Settlement, SpendGuard, SpendRequest, StartedRun,
};
use super::stream::{self, Teller};
use super::{Folders, Following, Progress, import, validation};
use crate::telemetry::{self, Span, TraceContext};
use exa_mcp_exa_client::{
    ApiKey, CallContext, CallError, ExaError, ExaErrorKind, ExaHttp, ExaResponse, KeyLease,
    KeyOwner, KeyPool, NoKey, StreamForm, StreamOptions, blocking, split,
};
use exa_mcp_generated::operations;
use exa_mcp_model::{ArgumentLocation, LimitExceeded, Operation};

/// Calls operations with one key, or with several that share the work.
#[derive(Clone)]
pub(crate) struct Caller {
    http: ExaHttp,
    keys: KeyPool,
    folders: Folders,
    /// What every request passes.
    guard: Arc<dyn SpendGuard>,
    /// A request that failed is not sent again.
    once: bool,
    /// The call finds out whether a key works again, so a refusal of the key is not waited out.
    probing: bool,
    /// The place of the only key of the pool that may be used.
    only_key: Option<usize>,
    /// Where the reservation of a start is kept whose response is lost.
    lost: Option<LostReservation>,
    /// What calls are about was started before, so one key that does not know it proves nothing.
    is_known_thing: bool,
}

/// An answered call.
#[derive(Debug)]
pub(crate) struct Called {
    /// What Exa said.
    pub answer: ExaResponse,
    /// The arguments as they were sent.
    pub arguments: Map<String, Value>,
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
pub(crate) enum Refusal {
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
    pub(crate) fn new(
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
            only_key: None,
            lost: None,
            is_known_thing: false,
        }
    }

    /// The same caller, which may read files out of these folders.
    #[must_use]
    pub(crate) fn with_folders(&self, folders: Folders) -> Self {
        Self {
            folders,
            ..self.clone()
        }
    }

    /// The same caller for someone else who pays.
    #[must_use]
    pub(crate) fn with_guard(&self, guard: Arc<dyn SpendGuard>) -> Self {
        Self {
            guard,
            ..self.clone()
        }
    }

    /// The same caller with another key.
    #[must_use]
    pub(crate) fn with_key(&self, key: ApiKey) -> Self {
        self.with_keys(KeyPool::new([key]))
    }

    /// The same caller with other keys.
    #[must_use]
    pub(crate) fn with_keys(&self, keys: KeyPool) -> Self {
        Self {
            keys,
            ..self.clone()
        }
    }

    /// The keys and how they stand.
    pub(crate) fn keys(&self) -> &KeyPool {
        &self.keys
    }

    /// Whether Exa answered when it was last called, if it was.
    pub(crate) fn is_exa_well(&self) -> Option<bool> {
        self.http.is_healthy()
    }

    pub(super) fn http(&self) -> &ExaHttp {
        &self.http
    }

    /// The folders out of which files may be read.
    pub(crate) fn folders(&self) -> &Folders {
        &self.folders
    }

    /// The same caller, which sends every request once only.
    #[must_use]
    pub(crate) fn once(&self) -> Self {
        Self {
            once: true,
            ..self.clone()
        }
    }

    /// The same caller for something that was started before. Unless the key that started it is known, it is
    /// missing only if every key was asked.
    pub(super) fn for_known_thing(&self) -> Self {
        Self {
            is_known_thing: true,
            ..self.clone()
        }
    }

    /// The same caller, which keeps the reservation of a start whose response is lost until it is known whether
    /// the start arrived.
    pub(crate) fn keeping_lost(&self) -> (Self, LostReservation) {
        let lost = LostReservation::default();
        let caller = Self {
            lost: Some(lost.clone()),
            ..self.clone()
        };
        (caller, lost)
    }

    /// One caller for each key of the pool, which uses no other key. The pool keeps account of its keys as usual.
    pub(super) fn by_key(&self) -> Vec<Self> {
        let places = 0..self.keys.len();
        let caller = |place| Self {
            only_key: Some(place),
            ..self.clone()
        };
        places.map(caller).collect()
    }

    /// The places of the keys that must not be used.
    fn excluded_keys(&self) -> Vec<usize> {
        let Some(only) = self.only_key else {
            return Vec::new();
        };
        let places = 0..self.keys.len();
        places.filter(|place| *place != only).collect()
    }

    /// Whether there is a key.
    pub(crate) fn has_key(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Mends and checks the arguments, then calls.
    pub(crate) async fn call(
        &self,
        operation: &'static Operation,
        arguments: Value,
    ) -> Result<Called, Refusal> {
        let checked = Self::check(operation, arguments)?;
        self.send(operation, checked, &Progress::none()).await
    }

    /// Mends and checks the arguments of a call.
    pub(crate) fn check(
        operation: &'static Operation,
        arguments: Value,
    ) -> Result<validation::Checked, Refusal> {
        checked(operation, arguments).map_err(|refused| Refusal::Arguments(Box::new(refused)))
    }

    /// Calls with arguments that are known to fit. What comes of the answer before it is complete is
    /// told as progress.
    pub(crate) async fn send(
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
            Ok(exchanged) => {
                let answer = exchanged.answer;
                let is_large = blocking::is_large_value(&answer.value);
                // Some proxies echo headers; whoever reads the answer must not learn the key.
                let value = blocking::run(is_large, || key.redact_json(answer.value)).await;
                Ok(Called {
                    answer: ExaResponse { value, ..answer },
                    arguments: exchanged.arguments,
                    told: exchanged.told,
                })
            }
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
        let mut tried = self.excluded_keys();
        // Keys that do not know the thing, or must not.
        let mut denied = Vec::new();
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
            let status = outcome.as_ref().err().and_then(CallError::status);
            if matches!(status, Some(403 | 404)) {
                denied.push(lease.place());
            }
            let is_missing = status == Some(404);
            let may_have = |thing| self.keys.may_have(thing, self.is_known_thing, &denied);
            if !another || !self.keys.has_ready(operation.domain, &tried) {
                if is_missing && thing.is_some_and(may_have) {
                    // The key that knows it is not ready, and the next lease says when it is.
                    continue;
                }
                let outcome = outcome.map_err(|error| self.with_next_key(operation, error));
                return Ok((lease.key().clone(), outcome));
            }
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
        let guard = RequestGuard::new(&self.guard, operation, &arguments);
        let guard = Arc::new(guard.keeping(self.lost.clone()));
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
        let span = Span::for_call(|| self.seen(operation));
        let trace = span.trace().or_else(TraceContext::current);
        let headers = trace.clone().into_iter().flat_map(TraceContext::headers);
        let context = headers.fold(context, |context, (name, value)| {
            context.with_header(name, value)
        });
        let answer = TraceContext::scope(
            trace,
            blocking::run_large_parts(operations::call(operation, context, parts)),
        )
        .await;
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
    fn seen(&self, operation: &'static Operation) -> telemetry::CallAttributes {
        telemetry::CallAttributes {
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
pub(super) fn thing<'a>(
    operation: &Operation,
    arguments: &'a Map<String, Value>,
) -> Option<&'a str> {
    let mut path = operation.arguments.iter();
    let named = path.find(|argument| argument.location == ArgumentLocation::Path)?;
    arguments.get(named.name)?.as_str()
}

/// The thing that an answer is or has made.
fn made(answer: &Value) -> Option<&str> {
    let id = answer.get("id").or_else(|| answer.get("researchId"))?;
    id.as_str()
}

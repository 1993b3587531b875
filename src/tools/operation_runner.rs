//! Runs a call of an operation: calls Exa or reads the cache; sanitizes, caches and renders the response.

use serde_json::{Map, Value};

use super::cache::CachedResult;
use super::call::{OperationCall, Source};
use super::context::ToolContext;
use super::error::ToolError;
use super::executor::ToolExecutor;
use super::outcome::ToolResult;
use super::polling::Polling;
use super::shared_cache::SharedCache;
use super::{elicitation, error_messages, extra_contents};
use crate::operations::spend::LostReservation;
use crate::operations::validation::ValidatedArguments;
use crate::operations::{CompletedCall, OperationExecutor, PagedCall, PagingStop, is_paged, price};
use exa_mcp_exa_client::blocking;
use exa_mcp_model::{Identity, JobEnd, Operation};
use exa_mcp_text::sanitize::clean_json;

/// Maximum characters of a single text in a response.
const MAX_TEXT_CHARS: usize = 500_000;

/// Maximum entries of a list that is read with `all`.
const MAX_ENTRIES: usize = 1_000;

/// The response of a call and facts about it.
pub(super) struct CallOutput {
    pub(super) response: Value,
    pub(super) arguments: Map<String, Value>,
    /// Fields about a job that was started, such as how to follow it.
    pub(super) job_fields: Map<String, Value>,
    pub(super) warnings: Vec<String>,
    /// Why a list was not read to its end, if it was not.
    pub(super) paging_stop: Option<String>,
    /// How the job ended, if it did.
    pub(super) job_end: Option<JobEnd>,
    /// The progress reported so far.
    pub(super) progress: f64,
}

impl CallOutput {
    pub(super) fn new(response: Value, arguments: Map<String, Value>) -> Self {
        Self {
            response,
            arguments,
            job_fields: Map::new(),
            warnings: Vec::new(),
            paging_stop: None,
            job_end: None,
            progress: 0.0,
        }
    }
}

/// Runs one call of an operation.
pub(super) struct OperationRunner<'a> {
    pub(super) tools: &'a ToolExecutor,
    pub(super) context: &'a ToolContext,
    pub(super) call: &'a OperationCall,
    /// The owner of the result.
    pub(super) owner: &'a Identity,
}

impl<'a> OperationRunner<'a> {
    pub(super) fn new(
        tools: &'a ToolExecutor,
        context: &'a ToolContext,
        call: &'a OperationCall,
    ) -> Self {
        Self {
            tools,
            context,
            call,
            owner: context.owner.identity(),
        }
    }

    /// Calls the operation or reads a cached result, and renders it.
    pub(super) async fn run(&self, source: Source) -> ToolResult {
        let OperationCall {
            operation, options, ..
        } = self.call;
        let (arguments, sent_filters) = match source {
            Source::Cache(id) => return self.render_by_id(&id).await,
            Source::Exa {
                arguments,
                sent_filters,
            } => (arguments, sent_filters),
        };
        if is_cacheable(operation)
            && !options.fresh()
            && let Some(cached) = self.find_cached(&arguments).await
        {
            let view = self.call.view.clone();
            return self.render_cached(&cached, view, sent_filters).await;
        }
        elicitation::prepare(self.tools, self.context, operation, &arguments).await?;
        let output = self.call_exa(arguments, &sent_filters).await?;
        self.render_new(sent_filters, output).await
    }

    /// Returns the cache that servers share through the store, if any.
    pub(super) fn shared<'s>(
        &self,
        store: &'s dyn exa_mcp_store::Store,
    ) -> Option<SharedCache<'s>> {
        SharedCache::open(store, self.tools.cache().limits())
    }

    /// Renders the cached result with an id, from this server or another.
    async fn render_by_id(&self, id: &str) -> ToolResult {
        let mut cached = self.find_by_id(id).await?;
        let mut _purchase = None;
        if self.lacks_contents(&cached) {
            // Another call may be buying them, and then they are there when it ends.
            _purchase = Some(self.tools.cache().lock_purchase(id).await);
            cached = self.find_by_id(id).await?;
        }
        let view = extra_contents::view_of_cached(&self.call.view, &self.call.options, &cached);
        // Boxed, because every call would have room for this rare one.
        if let Some(expanded) = Box::pin(self.expand(&cached, &view)).await {
            return expanded;
        }
        self.render_cached(&cached, view, Vec::new()).await
    }

    /// Returns the cached result with an id, from this server or another.
    async fn find_by_id(&self, id: &str) -> Result<CachedResult, Box<ToolError>> {
        let cache = self.tools.cache();
        let store = self.tools.store();
        let cached = match (cache.get(self.owner, id), self.shared(&*store)) {
            (None, Some(shared)) => shared.get(self.owner, id).await,
            (Some(here), Some(shared)) if self.lacks_contents(&here) => {
                // Another server may have bought them meanwhile.
                let there = shared.get(self.owner, id).await;
                there.filter(|it| it.has_more_than(&here)).or(Some(here))
            }
            (cached, _) => cached,
        };
        cached.ok_or_else(|| {
            Box::new(ToolError::NotCached {
                id: id.to_owned(),
                limits: cache.limits(),
            })
        })
    }

    /// Returns the cached result of the same call, from this server or another.
    pub(super) async fn find_cached(&self, arguments: &Map<String, Value>) -> Option<CachedResult> {
        let name = self.call.operation.name;
        let store = self.tools.store();
        let here = self
            .tools
            .cache()
            .find_by_request(self.owner, name, arguments);
        match (here, self.shared(&*store)) {
            (None, Some(shared)) => shared.find_by_request(self.owner, name, arguments).await,
            (cached, _) => cached,
        }
    }

    /// Calls Exa once, or once per page of a list.
    pub(super) async fn call_exa(
        &self,
        arguments: Map<String, Value>,
        sent_filters: &[String],
    ) -> ToolResult<CallOutput> {
        let (operation, options) = (self.call.operation, &self.call.options);
        let polling = Polling::new(self.tools, self.context, self.call);
        if let Some(resumed) = polling.resume(&arguments).await {
            return resumed;
        }
        let mut checked = ValidatedArguments {
            arguments,
            corrections: Vec::new(),
        };
        let task = &self.context.task;
        if task.is_some() && operation.behavior.long_running.is_some() {
            // Polling survives a restart; reading a stream of events does not.
            checked.arguments.shift_remove("stream");
        }
        let before = polling.existing_jobs(&checked.arguments).await;
        let call_error = |error| ToolError::from_call_error(operation, error);
        let progress = &self.context.progress;
        let mut warnings = Vec::new();
        let mut paging_stop = None;
        let called = if options.all() && is_paged(operation) {
            let max = options
                .max_useful_results(sent_filters)
                .unwrap_or(MAX_ENTRIES);
            let max = max.min(MAX_ENTRIES);
            let executor = self.tools.operation_executor();
            let paged = executor.send_all(operation, checked, max, progress).await;
            let mut paged = paged.map_err(call_error)?;
            paging_stop = stop_reason(operation, &mut paged, max);
            paged.call
        } else {
            if options.all() {
                warnings.push(format!(
                    "`all` has no effect: `{}` is not paginated",
                    operation.name
                ));
            }
            let sent = task.is_some().then(|| checked.arguments.clone());
            let (executor, lost) = match (self.operation_executor(), task) {
                (executor, Some(_)) => executor.holding_lost_reservation(),
                (executor, None) => (executor, LostReservation::default()),
            };
            match executor.send(operation, checked, progress).await {
                Ok(called) => called,
                Err(error) => return polling.recover_start(sent, error, lost).await,
            }
        };
        warnings.extend(recurring_cost(operation, &called.arguments));
        let resources = self.tools.resources();
        resources.notify_webset_change(self.owner, operation, &called);
        let CompletedCall {
            response,
            arguments,
            reported_progress: progress,
            ..
        } = called;
        let mut output = CallOutput {
            warnings,
            paging_stop,
            progress,
            ..CallOutput::new(sanitize_response(response.value).await, arguments)
        };
        let titles = self.tools.enrichment_titles();
        titles.learn(self.owner, operation, &output.response);
        polling.follow_new(before, &mut output).await?;
        Ok(output)
    }

    /// Returns the executor for the call, with access to the folders of its client.
    fn operation_executor(&self) -> OperationExecutor {
        let executor = self.tools.operation_executor();
        match &self.context.folders {
            Some(folders) => executor.with_folders(folders.and(executor.folders())),
            None => executor.clone(),
        }
    }
}

/// Describes the cost of something recurring that a call has created.
fn recurring_cost(operation: &Operation, arguments: &Map<String, Value>) -> Option<String> {
    let recurring = price::estimate(operation, arguments).recurring?;
    let price::Recurring {
        period,
        runs_per_day,
        per_run,
        per_day,
        per_month,
        unpriced,
        ..
    } = recurring;
    let schedule = format!(
        "it repeats ({period}: up to {runs_per_day} runs a day) until it is deleted or paused"
    );
    Some(if unpriced && per_run.is_zero() {
        format!("{schedule}; the price of a run is unknown")
    } else if unpriced {
        format!(
            "{schedule}; a run costs {per_run} plus an unknown amount, at least {per_day} a day and {per_month} a month"
        )
    } else {
        format!(
            "{schedule}; a run costs up to {per_run}, which is up to {per_day} a day and {per_month} a month, and is not part \
             of the budget of this token"
        )
    })
}

/// Returns whether a repeated request may return the cached result: the response costs money and changes slowly.
/// Data of the caller is always requested from Exa.
fn is_cacheable(operation: &Operation) -> bool {
    operation.read_only && operation.method != "GET"
}

/// Removes hidden characters from the texts of a response.
pub(super) async fn sanitize_response(mut response: Value) -> Value {
    let is_large = blocking::is_large_value(&response);
    blocking::run(is_large, || {
        clean_json(&mut response, MAX_TEXT_CHARS);
        response
    })
    .await
}

/// Describes why a list was not read to its end.
fn stop_reason(operation: &'static Operation, paged: &mut PagedCall, max: usize) -> Option<String> {
    Some(match paged.stop.take()? {
        PagingStop::LimitReached => format!("limit of {max} results reached"),
        PagingStop::RepeatedCursor => "Exa repeated a page".to_owned(),
        PagingStop::TooManyPages => format!("limit of {} pages reached", paged.pages),
        PagingStop::Failed(error) => {
            let error = ToolError::from_call_error(operation, error);
            let headline = error_messages::headline(&error);
            format!("page {} failed: {headline}", paged.pages + 1)
        }
    })
}

//! Running a call of an operation: Exa is called or the cache read, the answer cleaned, cached and shown.

use serde_json::{Map, Value};

use super::cache::CachedResult;
use super::call::{OperationCall, Source};
use super::context::ToolContext;
use super::error::ToolError;
use super::executor::ToolExecutor;
use super::outcome::ToolResult;
use super::polling::Polling;
use super::shared_cache::SharedCache;
use super::{elicitation, error_messages};
use crate::operations::spend::LostReservation;
use crate::operations::validation::ValidatedArguments;
use crate::operations::{CompletedCall, OperationExecutor, PagedCall, PagingStop, is_paged, price};
use crate::render::View;
use exa_mcp_exa_client::blocking;
use exa_mcp_model::Identity;
use exa_mcp_model::Operation;
use exa_mcp_text::sanitize::clean_json;

/// Characters of a single text of an answer; more is no text.
const LONGEST_TEXT: usize = 500_000;

/// Entries of a list that is followed to its end.
const MOST_ENTRIES: usize = 1_000;

/// An answer and how it came.
pub(super) struct Answered {
    pub(super) answer: Value,
    pub(super) arguments: Map<String, Value>,
    /// What is said of work that goes on.
    pub(super) work: Map<String, Value>,
    pub(super) warnings: Vec<String>,
    /// How far progress was told.
    pub(super) told: f64,
}

impl Answered {
    pub(super) fn new(answer: Value, arguments: Map<String, Value>) -> Self {
        Self {
            answer,
            arguments,
            work: Map::new(),
            warnings: Vec::new(),
            told: 0.0,
        }
    }
}

/// One run of a call of an operation.
pub(super) struct OperationRun<'a> {
    pub(super) tools: &'a ToolExecutor,
    context: &'a ToolContext,
    pub(super) call: &'a OperationCall,
    /// To whom the answer belongs.
    pub(super) owner: &'a Identity,
}

impl<'a> OperationRun<'a> {
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

    /// Calls the operation, or reads a cached result, and shows what it says.
    pub(super) async fn run(&self, source: Source) -> ToolResult {
        let OperationCall {
            operation, options, ..
        } = self.call;
        let (arguments, sent_filters) = match source {
            Source::Cache(id) => return self.show_by_id(&id).await,
            Source::Exa {
                arguments,
                sent_filters,
            } => (arguments, sent_filters),
        };
        if repeats(operation)
            && !options.fresh()
            && let Some(cached) = self.find_same(&arguments).await
        {
            let view = self.call.view.clone();
            return self.show_cached(&cached, view, sent_filters).await;
        }
        elicitation::prepare(self.tools, self.context, operation, &arguments).await?;
        let answered = self.ask(arguments, &sent_filters).await?;
        self.show_new(sent_filters, answered).await
    }

    /// Returns the results that other servers on the same store have cached.
    pub(super) fn shared<'s>(
        &self,
        store: &'s dyn exa_mcp_store::Store,
    ) -> Option<SharedCache<'s>> {
        SharedCache::of(store, self.tools.cache().limits())
    }

    /// Shows the cached result with an id, from this server or another.
    async fn show_by_id(&self, id: &str) -> ToolResult {
        let cache = self.tools.cache();
        let store = self.tools.store();
        let cached = match (cache.get(self.owner, id), self.shared(&*store)) {
            (None, Some(shared)) => shared.get(self.owner, id).await,
            (cached, _) => cached,
        };
        let Some(cached) = cached else {
            return Err(Box::new(ToolError::NotCached {
                id: id.to_owned(),
                limits: cache.limits(),
            }));
        };
        let view = View {
            extract: cached.extract,
            ..self.call.view.clone()
        };
        self.show_cached(&cached, view, Vec::new()).await
    }

    /// Returns the cached result of the same call, from this server or another.
    async fn find_same(&self, arguments: &Map<String, Value>) -> Option<CachedResult> {
        let name = self.call.operation.name;
        let store = self.tools.store();
        let here = self.tools.cache().same(self.owner, name, arguments);
        match (here, self.shared(&*store)) {
            (None, Some(shared)) => shared.same(self.owner, name, arguments).await,
            (cached, _) => cached,
        }
    }

    /// Calls Exa once, or as often as a list has pages.
    async fn ask(
        &self,
        arguments: Map<String, Value>,
        sent_filters: &[String],
    ) -> ToolResult<Answered> {
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
            // Looking at work survives a restart; reading its events does not.
            checked.arguments.shift_remove("stream");
        }
        let before = polling.seen_before(&checked.arguments).await;
        let refused = |refusal| ToolError::refused(operation, refusal);
        let progress = &self.context.progress;
        let mut warnings = Vec::new();
        let called = if options.all() && is_paged(operation) {
            let most = options.most(sent_filters).unwrap_or(MOST_ENTRIES);
            let most = most.min(MOST_ENTRIES);
            let caller = self.tools.caller();
            let paged = caller.send_all(operation, checked, most, progress).await;
            let mut paged = paged.map_err(refused)?;
            warnings.extend(stopped(operation, &mut paged, most));
            paged.call
        } else {
            if options.all() {
                warnings.push(format!(
                    "`all` changes nothing: `{}` does not answer in pages",
                    operation.name
                ));
            }
            let sent = task.is_some().then(|| checked.arguments.clone());
            let (caller, lost) = match (self.caller(), task) {
                (caller, Some(_)) => caller.holding_lost_reservation(),
                (caller, None) => (caller, LostReservation::default()),
            };
            match caller.send(operation, checked, progress).await {
                Ok(called) => called,
                Err(refusal) => return polling.unanswered(sent, refusal, lost).await,
            }
        };
        warnings.extend(recurring_cost(operation, &called.arguments));
        let resources = self.tools.resources();
        resources.heed(self.owner, operation, &called);
        let CompletedCall {
            response: answer,
            arguments,
            reported_progress: told,
            ..
        } = called;
        let mut answered = Answered {
            warnings,
            told,
            ..Answered::new(cleaned(answer.value).await, arguments)
        };
        polling.follow_new(before, &mut answered).await?;
        Ok(answered)
    }

    /// Returns the way to Exa for the call, with the folders that its client opened.
    fn caller(&self) -> OperationExecutor {
        let caller = self.tools.caller();
        match &self.context.folders {
            Some(folders) => caller.with_folders(folders.and(caller.folders())),
            None => caller.clone(),
        }
    }
}

/// What a call costs again and again that set up something recurring.
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
    let known = format!(
        "it repeats ({period}: up to {runs_per_day} runs a day) until it is deleted or paused"
    );
    Some(match unpriced {
        true if per_run.is_zero() => format!("{known}; the price of a run is not known"),
        true => format!(
            "{known}; a run costs {per_run} and what is not known beside it, at least {per_day} a day and {per_month} a month"
        ),
        false => format!(
            "{known}; a run costs up to {per_run}, which is up to {per_day} a day and {per_month} a month, and is not part \
             of the budget of this token"
        ),
    })
}

/// Operations whose answers cost money and do not change by the minute: asking the same again within
/// the life of an answer gives the kept one. What belongs to the caller is always asked for anew.
fn repeats(operation: &Operation) -> bool {
    operation.read_only && operation.method != "GET"
}

/// An answer without anything hidden in its texts.
pub(super) async fn cleaned(mut answer: Value) -> Value {
    let is_large = blocking::is_large_value(&answer);
    blocking::run(is_large, || {
        clean_json(&mut answer, LONGEST_TEXT);
        answer
    })
    .await
}

/// Why a list was not followed to its end, and where to go on.
fn stopped(operation: &'static Operation, paged: &mut PagedCall, most: usize) -> Option<String> {
    let reason = match paged.stop.take()? {
        PagingStop::LimitReached => format!("{most} results are enough"),
        PagingStop::RepeatedCursor => "Exa gave the same pages again".to_owned(),
        PagingStop::TooManyPages => format!("after {} pages there were still more", paged.pages),
        PagingStop::Failed(refusal) => {
            let error = ToolError::refused(operation, refusal);
            let first = error_messages::headline(&error);
            format!("page {} failed: {first}", paged.pages + 1)
        }
    };
    let answer = &paged.call.response.value;
    let mut cursor = answer.get("nextCursor").cloned().unwrap_or_default();
    clean_json(&mut cursor, LONGEST_TEXT);
    let cursor = cursor.as_str().unwrap_or_default();
    Some(format!(
        "not all pages were read, because {reason}; go on with cursor \"{cursor}\""
    ))
}

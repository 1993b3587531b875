//! Makes a call: validates, sends, follows the work that it starts, and prints the response.

use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::progress::CallProgress;
use super::request::Request;
use super::{Failure, call_failure, preview};
use crate::cli::command_name;
use crate::cli::output::{self, OutputView, Terminal};
use crate::cli::{
    FAILED, INTERRUPTED, LEDGER_TIMEOUT, TIMED_OUT, known_ids, print_stderr, shutdown,
};
use crate::config::Settings;
use crate::operations::validation::ValidatedArguments;
use crate::operations::{
    CompletedCall, Folders, JobState, OperationExecutor, PagingStop, PollOutcome, ProgressReporter,
    RemoteJob, is_paged,
};
use crate::spending::{AccountGuard, check_jobs, local_account, spent_locally};
use exa_mcp_accounts::budget::BudgetLedger;
use exa_mcp_model::{LocalUser, Operation, lock};
use exa_mcp_store::Store;

/// The most entries of a list that `--all` reads.
const MAX_ENTRIES: usize = 100_000;

/// An executor that charges the budget of the local user.
pub(in super::super) struct BudgetedExecutor {
    /// Makes the calls.
    pub(in super::super) executor: OperationExecutor,
    ledger: Option<Arc<BudgetLedger>>,
    store: Arc<dyn Store>,
}

impl BudgetedExecutor {
    /// Returns what this user has spent, in dollars, if there is a budget.
    pub(in super::super) async fn spent(&self) -> Value {
        if self.ledger.is_none() {
            return Value::Null;
        }
        let spent = spent_locally(&*self.store).await;
        spent.map_or(
            Value::Null,
            |(day, month)| json!({"today": day.dollars(), "thisMonth": month.dollars()}),
        )
    }

    /// Waits until the spent budget is written.
    pub(in super::super) async fn close(&self) {
        if let Some(ledger) = &self.ledger {
            ledger.drain(LEDGER_TIMEOUT).await;
        }
    }
}

/// Returns an executor that may read the files of the user of this shell.
pub(in super::super) fn executor(settings: &Settings) -> Result<OperationExecutor, Failure> {
    let executor = settings.operation_executor().map_err(Failure::usage)?;
    // The user of this shell can read the files anyway.
    Ok(executor.with_folders(Folders::anywhere(&LocalUser::of_this_process())))
}

/// Opens the budget of the local user, which every request of the session passes.
pub(in super::super) async fn open_session(
    settings: &Settings,
) -> Result<BudgetedExecutor, Failure> {
    let executor = executor(settings)?;
    let store = settings.store.open();
    let account = local_account(&settings.local_limits, settings.budgets, Arc::clone(&store));
    let Some(account) = account else {
        return Ok(BudgetedExecutor {
            executor,
            ledger: None,
            store,
        });
    };
    let ledger = Arc::clone(account.ledger());
    if ledger.recover_once().await.is_ok() {
        // A job started by an earlier command may have ended.
        check_jobs(&ledger, &executor).await;
    }
    Ok(BudgetedExecutor {
        executor: executor.with_guard(Arc::new(AccountGuard::new(account))),
        ledger: Some(ledger),
        store,
    })
}

/// Makes a call and returns the text to print.
pub(in super::super) async fn run(
    settings: &Settings,
    terminal: &Terminal,
    request: Request,
) -> Result<String, Failure> {
    let operation = request.operation;
    let arguments = with_defaults(settings, operation, request.arguments.clone());
    let arguments = check(operation, arguments, request.options.unchecked)?;
    if request.options.cost {
        let cost = preview::cost(operation, &arguments.arguments);
        return Ok(output::pretty(&cost));
    }
    if request.options.dry_run {
        let executor = executor(settings)?;
        let request = preview::dry_run(&executor, operation, &arguments.arguments).await?;
        return Ok(output::pretty(&request));
    }
    let mut arguments = arguments;
    let streams = streams(&request, terminal, &mut arguments.arguments);
    let (finished, streamed, _) = make(settings, terminal, &request, arguments, streams).await?;
    known_ids::record(operation.name, &finished.response);
    let view = OutputView {
        format: request.output.format,
        fields: &request.output.fields,
        plan: request.plan,
        operation,
    };
    let text = if streams {
        output::rest_of_stream(&finished.response, &streamed, &view, terminal)
    } else {
        output::render(&finished.response, &view, terminal)?
    };
    match finished.failure {
        None => Ok(text),
        Some(failure) => {
            super::super::print(&text);
            Err(failure)
        }
    }
}

/// Makes a call and returns its response, and what made it.
pub(in super::super) async fn call_value(
    settings: &Settings,
    terminal: &Terminal,
    request: &Request,
) -> Result<(Value, OperationExecutor), Failure> {
    let arguments = check(request.operation, request.arguments.clone(), false)?;
    let (finished, _, executor) = make(settings, terminal, request, arguments, false).await?;
    match finished.failure {
        None => Ok((finished.response, executor)),
        Some(failure) => Err(failure),
    }
}

/// Makes a call. Returns its response and the text that was streamed.
async fn make(
    settings: &Settings,
    terminal: &Terminal,
    request: &Request,
    arguments: ValidatedArguments,
    streams: bool,
) -> Result<(Finished, String, OperationExecutor), Failure> {
    let operation = request.operation;
    let session = open_session(settings).await?;
    let refused = session.executor.check_network();
    refused.map_err(|error| call_failure(operation, &error))?;
    let progress = CallProgress::start(terminal, operation.summary, streams);
    let call = Call {
        executor: &session.executor,
        request,
        progress: &progress,
        job: Mutex::default(),
    };
    let outcome = tokio::select! {
        outcome = call.run(arguments) => outcome,
        () = shutdown() => Err(call.interrupted()),
    };
    let streamed = progress.finish();
    session.close().await;
    Ok((outcome?, streamed, session.executor.clone()))
}

/// Adds the default arguments of the configuration, where the call names none.
fn with_defaults(settings: &Settings, operation: &Operation, arguments: Value) -> Value {
    let Some(Value::Object(defaults)) = settings.default_arguments.get(operation.name) else {
        return arguments;
    };
    let mut arguments = match arguments {
        Value::Null => Map::new(),
        Value::Object(given) => given,
        // Validation explains what is wrong.
        other => return other,
    };
    for (name, value) in defaults {
        arguments
            .entry(name.clone())
            .or_insert_with(|| value.clone());
    }
    Value::Object(arguments)
}

/// Validates the arguments and reports corrections.
fn check(
    operation: &'static Operation,
    arguments: Value,
    unchecked: bool,
) -> Result<ValidatedArguments, Failure> {
    if unchecked {
        return match arguments {
            Value::Null => Ok(ValidatedArguments {
                arguments: Map::new(),
                corrections: Vec::new(),
            }),
            Value::Object(arguments) => Ok(ValidatedArguments {
                arguments,
                corrections: Vec::new(),
            }),
            _ => Err(Failure::usage(format!(
                "the arguments of `{}` must be a JSON object",
                operation.name
            ))),
        };
    }
    let checked = OperationExecutor::validate(operation, arguments);
    let checked = checked.map_err(|error| call_failure(operation, &error))?;
    for correction in &checked.corrections {
        print_stderr(&format!("note: {}", output::clean_line(correction)));
    }
    Ok(checked)
}

/// Returns whether the response is shown while it is written, and requests the stream if so.
fn streams(request: &Request, terminal: &Terminal, arguments: &mut Map<String, Value>) -> bool {
    let wanted = request.plan.is_some_and(|plan| plan.stream)
        && terminal.is_terminal
        && request.output.format.is_none()
        && request.output.fields.is_empty();
    let Some(streaming) = request
        .operation
        .behavior
        .stream
        .as_ref()
        .filter(|_| wanted)
    else {
        return false;
    };
    arguments.insert(streaming.argument().to_owned(), json!(true));
    true
}

/// A finished call.
struct Finished {
    response: Value,
    /// Why the command fails although there is a response.
    failure: Option<Failure>,
}

/// A call that is being made.
struct Call<'a> {
    executor: &'a OperationExecutor,
    request: &'a Request,
    progress: &'a CallProgress,
    /// The work that the call has started.
    job: Mutex<Option<RemoteJob>>,
}

impl Call<'_> {
    async fn run(&self, arguments: ValidatedArguments) -> Result<Finished, Failure> {
        let operation = self.request.operation;
        let reporter = self.progress.reporter();
        let failed = |error| call_failure(operation, &error);
        let call = if self.request.reads_all() && is_paged(operation) {
            let paged = self
                .executor
                .send_all(operation, arguments, MAX_ENTRIES, &reporter);
            let paged = paged.await.map_err(failed)?;
            if let Some(stop) = paged.stop {
                return Ok(self.incomplete(paged.call.response.value, stop, paged.pages));
            }
            paged.call
        } else {
            if self.request.options.all {
                print_stderr(&format!(
                    "note: --all has no effect: `{}` is not paginated",
                    operation.name
                ));
            }
            let sent = self.executor.send(operation, arguments, &reporter).await;
            sent.map_err(failed)?
        };
        self.follow(call, &reporter).await
    }

    /// Returns a list that was not read to its end.
    fn incomplete(&self, response: Value, stop: PagingStop, pages: usize) -> Finished {
        let failure = match stop {
            PagingStop::LimitReached => {
                print_stderr(&format!("note: limit of {MAX_ENTRIES} entries reached"));
                None
            }
            PagingStop::RepeatedCursor => Some(Failure::failed("Exa repeated a page of the list")),
            PagingStop::TooManyPages => {
                Some(Failure::failed(format!("limit of {pages} pages reached")))
            }
            PagingStop::Failed(error) => {
                let failure = call_failure(self.request.operation, &error);
                let text = format!("{}\npage {} is missing", failure.text, pages + 1);
                // Earlier pages were sent, whatever the reason of this failure.
                let code = FAILED;
                Some(Failure { text, code })
            }
        };
        Finished { response, failure }
    }

    /// Waits for the end of the work that a call has started or read, if requested.
    async fn follow(
        &self,
        call: CompletedCall,
        reporter: &ProgressReporter,
    ) -> Result<Finished, Failure> {
        let (operation, response) = (self.request.operation, call.response.value);
        let done = |response| Finished {
            response,
            failure: None,
        };
        let Some(job) = RemoteJob::from_call(operation, &call.arguments, &response) else {
            return Ok(done(response));
        };
        *lock(&self.job) = Some(job.clone());
        let Some(wait) = self.request.wait() else {
            return Ok(done(response));
        };
        let state = job.state(response);
        if state.is_final || state.is_blocked {
            return Ok(self.ended(state));
        }
        reporter.report_state(&state.response);
        let reporter = reporter.with_offset(call.reported_progress);
        let deadline = Instant::now() + wait;
        let polled = job.poll_until_done(self.executor, deadline, &reporter, state);
        Ok(match polled.await {
            PollOutcome::Finished(state) => self.ended(state),
            PollOutcome::TimedOut(state) => Finished {
                response: state.response,
                failure: Some(Failure {
                    text: format!(
                        "the time limit of {} seconds passed before the work ended; {}",
                        wait.as_secs(),
                        continues(&job)
                    ),
                    code: TIMED_OUT,
                }),
            },
            PollOutcome::Lost { latest, error } => Finished {
                response: latest.response,
                failure: Some(Failure {
                    code: FAILED,
                    ..call_failure(job.operation(), &error)
                }),
            },
        })
    }

    fn ended(&self, state: JobState) -> Finished {
        *lock(&self.job) = None;
        let failure = state.is_failed.then(|| {
            let reason = state
                .reason
                .map_or_else(String::new, |it| format!(": {it}"));
            Failure::failed(format!("the work failed at Exa{reason}"))
        });
        Finished {
            response: state.response,
            failure,
        }
    }

    /// Describes what goes on at Exa after Ctrl-C.
    fn interrupted(&self) -> Failure {
        let text = match &*lock(&self.job) {
            Some(job) => format!("interrupted; {}", continues(job)),
            None if self.request.operation.read_only => "interrupted".to_owned(),
            None => format!(
                "interrupted; `{}` may have arrived at Exa: check before you repeat it",
                self.request.operation.name
            ),
        };
        Failure {
            text,
            code: INTERRUPTED,
        }
    }
}

/// Says that work continues at Exa, how to follow it, and how to cancel it.
fn continues(job: &RemoteJob) -> String {
    let command = |(name, arguments): (&str, Map<String, Value>)| {
        let pairs: String = arguments
            .iter()
            .map(|(name, value)| {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                format!(" {name}={}", output::clean_line(&value))
            })
            .collect();
        format!("{} call {name}{pairs}", command_name())
    };
    let follow = command(job.poll_call());
    let cancel = match job.cancel_call() {
        Some(call) => format!("\n  cancel: {}", command(call)),
        None => "\n  Exa cannot cancel it.".to_owned(),
    };
    format!("the work continues at Exa:\n  follow: {follow} --wait{cancel}")
}

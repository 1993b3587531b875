//! Makes a call: validates, sends, follows the work that it starts, and prints the response.

use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::follow::continues;
use super::progress::CallProgress;
use super::request::Request;
use super::{Failure, call_failure, plan_failure, preview};
use crate::cli::output::{self, OutputView, Terminal};
use crate::cli::{FAILED, INTERRUPTED, LEDGER_TIMEOUT, known_ids, print_stderr, shutdown};
use crate::config::Settings;
use crate::operations::validation::ValidatedArguments;
use crate::operations::{Folders, OperationExecutor, PagingStop, RemoteJob, is_paged};
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
    let arguments = check(&request, arguments)?;
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
    if let Some(note) = output::unknown_fields(&finished.response, &request.output.fields) {
        print_stderr(&note);
    }
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
    let arguments = check(request, request.arguments.clone())?;
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
        program: &terminal.program,
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
pub(in super::super) fn with_defaults(
    settings: &Settings,
    operation: &Operation,
    arguments: Value,
) -> Value {
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
fn check(request: &Request, arguments: Value) -> Result<ValidatedArguments, Failure> {
    let operation = request.operation;
    if request.options.unchecked {
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
    let checked = checked.map_err(|error| match request.plan {
        Some(plan) => plan_failure(plan, operation, &error),
        None => call_failure(operation, &error),
    })?;
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
pub(super) struct Finished {
    pub(super) response: Value,
    /// Why the command fails although there is a response.
    pub(super) failure: Option<Failure>,
}

/// A call that is being made.
pub(super) struct Call<'a> {
    pub(super) executor: &'a OperationExecutor,
    pub(super) request: &'a Request,
    progress: &'a CallProgress,
    /// The program with the flags that the call was made with.
    pub(super) program: &'a str,
    /// The work that the call has started.
    pub(super) job: Mutex<Option<RemoteJob>>,
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
            if self.request.options.wait.is_some() && !RemoteJob::is_job_call(operation) {
                print_stderr(&format!(
                    "note: --wait has no effect: `{}` neither starts nor reads work that takes time",
                    operation.name
                ));
            }
            let before = self.jobs_before(&arguments.arguments).await;
            let sent = self.executor.send(operation, arguments, &reporter).await;
            let call = sent.map_err(failed)?;
            return self.follow(call, before, &reporter).await;
        };
        self.follow(call, None, &reporter).await
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

    /// Describes what goes on at Exa after Ctrl-C.
    fn interrupted(&self) -> Failure {
        let text = match &*lock(&self.job) {
            Some(job) => format!("interrupted; {}", continues(self.program, job)),
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

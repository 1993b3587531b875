//! `exa-mcp-server call`.

use std::io::Read;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{FAILED, Failure, LEDGER_TIMEOUT, USAGE};
use crate::config::Settings;
use crate::operations::{CompletedCall, Folders, ProgressReporter, find, nearest};
use crate::spending::{AccountGuard, check_jobs, local_account};
use exa_mcp_exa_client::{CallError, ExaError, ExaErrorKind, KeyKind, split_arguments};
use exa_mcp_model::LocalUser;

/// Shown in the help of the command.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  the response was printed
    1  Exa rejected the call or could not be reached
    2  the call was not made: unknown operation, invalid arguments, no key";

/// The maximum size of arguments on standard input.
const MAX_INPUT: u64 = 64 * 1024 * 1024;

/// Calls one operation and returns the response as JSON.
///
/// The arguments are sent unchanged: this command is for people and scripts, not for models.
pub(super) async fn run(
    settings: &Settings,
    name: &str,
    arguments: Option<&str>,
) -> Result<String, Failure> {
    let operation = find(name).ok_or_else(|| unknown_operation(name))?;
    let arguments = read_arguments(arguments)?;
    // Invalid arguments are reported even without a key.
    split_arguments(operation, arguments.clone()).map_err(Failure::usage)?;
    let key = match operation.api.key {
        KeyKind::Api => settings.key.as_ref().ok_or(
            "no Exa API key; get one at https://dashboard.exa.ai/api-keys and set EXA_API_KEY",
        ),
        KeyKind::Service => settings.service_key.as_ref().ok_or(
            "no Exa service key, which team management needs; create one in the settings of the team at \
             https://dashboard.exa.ai and set EXA_SERVICE_KEY",
        ),
    };
    let key = key.map_err(Failure::usage)?;
    // The user of this shell can read the files anyway.
    let executor = settings.operation_executor().map_err(Failure::usage)?;
    let executor = executor.with_folders(Folders::anywhere(&LocalUser::of_this_process()));
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    let store = settings.store.open();
    let account = local_account(&settings.local_limits, settings.budgets, store);
    let ledger = account.as_ref().map(|account| Arc::clone(account.ledger()));
    if let Some(ledger) = &ledger
        && ledger.recover_once().await.is_ok()
    {
        // A job started by an earlier command may have ended.
        check_jobs(ledger, &executor).await;
    }
    let executor = match account {
        Some(account) => executor.with_guard(Arc::new(AccountGuard::new(account))),
        None => executor,
    };
    let progress = ProgressReporter::disabled();
    let outcome = executor.call_with_key(key, operation, arguments, &progress);
    let outcome = outcome.await;
    if let Some(ledger) = ledger {
        ledger.drain(LEDGER_TIMEOUT).await;
    }
    match outcome {
        Ok(CompletedCall { response, .. }) => {
            serde_json::to_string_pretty(&response.value).map_err(Failure::usage)
        }
        Err(CallError::Arguments(error)) => Err(Failure::usage(error)),
        Err(CallError::Exa(error)) => Err(exa_failure(&error)),
        Err(CallError::Limit(exceeded)) => Err(Failure::usage(exceeded)),
    }
}

fn unknown_operation(name: &str) -> Failure {
    let hint = match nearest(name) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "`exa-mcp-server operations` lists them all".to_owned(),
    };
    Failure::usage(format!("unknown operation `{name}`; {hint}"))
}

fn read_arguments(arguments: Option<&str>) -> Result<Value, Failure> {
    let text = match arguments {
        None => return Ok(Value::Null),
        Some("-") => {
            let mut text = String::new();
            std::io::stdin()
                .lock()
                .take(MAX_INPUT)
                .read_to_string(&mut text)
                .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
            text
        }
        Some(text) => text.to_owned(),
    };
    // Some Windows shells start piped text with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(text)
        .map_err(|error| Failure::usage(format!("the arguments are not JSON: {error}")))
}

fn exa_failure(error: &ExaError) -> Failure {
    // A request that could not be built was not sent.
    let code = match error.kind {
        ExaErrorKind::InvalidRequest | ExaErrorKind::Config => USAGE,
        _ => FAILED,
    };
    let mut lines = vec![format!("error: {error}")];
    lines.extend(
        error
            .detail_lines()
            .into_iter()
            .map(|line| format!("  {line}")),
    );
    Failure {
        text: lines.join("\n"),
        code,
    }
}

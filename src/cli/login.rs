//! `exa-mcp-server login`, `logout` and `whoami`.

use std::io::{IsTerminal, Read};

use serde_json::{Map, Value, json};

use super::call::{call_failure, open_session};
use super::keychain::{self, KeyStorage};
use super::output::{self, Format, OutputView, Terminal};
use super::{Failure, INTERRUPTED, command_name, print_stderr, shutdown};
use crate::config::Settings;
use crate::operations::{OperationExecutor, find};
use exa_mcp_accounts::{KeyPrompt, KeyUse};
use exa_mcp_exa_client::{ApiKey, KeyPool};
use exa_mcp_generated::tools::COMMANDS;
use exa_mcp_model::Operation;

/// The longest text that is read as a key.
const MAX_KEY: u64 = 4096;

/// Asks for a key, checks it with a call that costs nothing, and stores it.
pub(super) async fn login(
    settings: &Settings,
    browser: bool,
    no_check: bool,
) -> Result<String, Failure> {
    let executor = settings.operation_executor().map_err(Failure::usage)?;
    let check = account_operation().filter(|_| !no_check);
    if let Some(operation) = check {
        let refused = executor.check_network();
        refused.map_err(|error| call_failure(operation, &error))?;
    }
    let key = if browser {
        ask_in_browser().await?
    } else {
        ask_in_terminal().await?
    };
    let team = match check {
        Some(operation) => team_of(&executor.with_key(key.clone()), operation).await?,
        None => String::new(),
    };
    let storage = keychain::write(&key).map_err(Failure::failed)?;
    let mut text = format!("Logged in{team}. The key is stored in {storage}.");
    if settings.key.is_some() {
        text += "\nEXA_API_KEY or the configuration sets another key, which takes precedence.";
    }
    if matches!(storage, KeyStorage::File(_)) {
        text += &format!("\nRemove it with: {} logout", command_name());
    }
    Ok(text)
}

/// Removes the stored key.
pub(super) fn logout() -> Result<String, Failure> {
    let removed = keychain::remove().map_err(Failure::failed)?;
    Ok(if removed {
        "Logged out. The stored key is removed; it stays valid at Exa until you delete it there."
            .to_owned()
    } else {
        "There is no stored key.".to_owned()
    })
}

/// Returns the team of the key, its limits, and the budget of this user.
pub(super) async fn whoami(settings: &Settings, terminal: &Terminal) -> Result<String, Failure> {
    let operation = account_operation().ok_or_else(|| {
        Failure::failed("Exa has no operation that describes the account of a key")
    })?;
    let session = open_session(settings).await?;
    let called = session.executor.call(operation, json!({})).await;
    let spent = session.spent().await;
    session.close().await;
    let called = called.map_err(|error| call_failure(operation, &error))?;
    let mut account = match called.response.value {
        Value::Object(fields) => fields,
        other => Map::from_iter([("team".to_owned(), other)]),
    };
    let limits = &settings.local_limits;
    account.insert(
        "budget".to_owned(),
        json!({
            "dollarsPerDay": limits.dollars_per_day,
            "dollarsPerMonth": limits.dollars_per_month,
            "spent": spent,
        }),
    );
    let view = OutputView {
        format: terminal.is_terminal.then_some(Format::Table),
        fields: &[],
        plan: None,
        operation,
    };
    output::render(&Value::Object(account), &view, terminal)
}

/// Returns the operation that describes the account of a key.
fn account_operation() -> Option<&'static Operation> {
    find(COMMANDS.account.as_deref()?)
}

/// Checks a key. Returns the name of its team, for a message.
async fn team_of(
    executor: &OperationExecutor,
    operation: &'static Operation,
) -> Result<String, Failure> {
    let called = executor.call(operation, json!({})).await;
    let called = called.map_err(|error| {
        let failure = call_failure(operation, &error);
        let text = format!("{}\nThe key was not stored.", failure.text);
        Failure { text, ..failure }
    })?;
    let name = called.response.value.get("name").and_then(Value::as_str);
    Ok(name.map_or_else(String::new, |name| {
        format!(" as {}", output::clean_line(name))
    }))
}

/// Reads a key without showing it; from a pipe if standard input is one.
async fn ask_in_terminal() -> Result<ApiKey, Failure> {
    let text = if std::io::stdin().is_terminal() {
        print_stderr("Get a key at https://dashboard.exa.ai/api-keys");
        prompt().await?
    } else {
        let mut text = String::new();
        let read = std::io::stdin()
            .lock()
            .take(MAX_KEY)
            .read_to_string(&mut text);
        read.map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
        text
    };
    ApiKey::new(text.trim()).map_err(Failure::usage)
}

/// Reads a line without showing it. Ctrl-C leaves a terminal that shows what is typed.
async fn prompt() -> Result<String, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::usage(format!("the key cannot be read: {error}"));
    #[cfg(unix)]
    let mode = rustix::termios::tcgetattr(std::io::stdin());
    let typed = tokio::task::spawn_blocking(|| rpassword::prompt_password("Exa API key: "));
    tokio::select! {
        typed = typed => match typed {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(error)) => Err(failed(&error)),
            Err(error) => Err(failed(&error)),
        },
        () = shutdown() => {
            #[cfg(unix)]
            if let Ok(mode) = mode {
                let now = rustix::termios::OptionalActions::Now;
                let _ = rustix::termios::tcsetattr(std::io::stdin(), now, &mode);
            }
            Err(Failure {
                text: "\ninterrupted; no key was stored".to_owned(),
                code: INTERRUPTED,
            })
        }
    }
}

/// Asks for a key on a page that only this computer can open.
async fn ask_in_browser() -> Result<ApiKey, Failure> {
    let keys = KeyPool::new([]);
    let page = KeyPrompt::new(keys.clone(), KeyUse::Login).page().await;
    let page = page.map_err(Failure::failed)?;
    print_stderr(&format!(
        "Open this page in a browser on this computer, and enter the key there:\n  {}",
        page.url
    ));
    let entered = page.wait().await;
    let lease = keys.lease("login", None, &[]);
    match lease {
        Ok(lease) if entered => Ok(lease.key().clone()),
        _ => Err(Failure::usage("no key was entered before the page expired")),
    }
}

//! Batches that Exa runs itself.

use serde_json::{Map, Value, json};

use super::super::call::{OutputOptions, Request, RequestOptions, call_value};
use super::super::output::{self, Terminal};
use super::super::{Failure, USAGE};
use super::{BatchLine, BatchOptions, Output, announce};
use crate::config::Settings;
use crate::operations::find;
use exa_mcp_generated::tools::COMMANDS;
use exa_mcp_model::RemoteBatch;

/// How long a batch may take, in seconds.
const MAX_WAIT: u64 = 24 * 60 * 60;

/// Starts a batch at Exa, waits for its end, and writes its results.
pub(super) async fn run(
    settings: &Settings,
    terminal: &Terminal,
    options: &BatchOptions,
    lines: &[BatchLine],
) -> Result<String, Failure> {
    let remote = COMMANDS
        .batch
        .as_ref()
        .and_then(|batch| batch.remote.as_ref());
    let remote = remote.ok_or_else(|| Failure::usage("Exa has no operation that runs batches"))?;
    let operation = find(&remote.operation);
    let operation =
        operation.ok_or_else(|| Failure::usage("Exa has no operation that runs batches"))?;
    let requests: Result<Vec<Value>, Failure> =
        lines.iter().map(|line| request(remote, line)).collect();
    let arguments = json!({ &remote.requests: requests? });
    let request = Request {
        operation,
        arguments,
        options: RequestOptions {
            wait: Some(MAX_WAIT),
            dry_run: options.dry_run,
            ..RequestOptions::default()
        },
        output: OutputOptions::default(),
        plan: None,
    };
    if options.dry_run {
        return super::super::call::run(settings, terminal, request).await;
    }
    let (batch, executor) = call_value(settings, terminal, &request).await?;
    let url = output::at(&batch, &remote.results).and_then(Value::as_str);
    let Some(url) = url else {
        return Ok(output::pretty(&batch));
    };
    announce("the batch has ended; reading its results");
    let results = executor.download(url).await.map_err(|error| {
        let failure = super::super::call::call_failure(operation, &error);
        let text = format!("{}\nThe batch: {batch}", failure.text);
        Failure { text, ..failure }
    })?;
    write(options, remote, lines, &results)
}

/// Returns the request of a line.
fn request(remote: &RemoteBatch, line: &BatchLine) -> Result<Value, Failure> {
    let call = line.call.as_ref().map_err(|problem| Failure {
        text: format!("error: {}", line.failure(problem, USAGE)),
        code: USAGE,
    })?;
    Ok(json!({
        &remote.id: custom_id(line),
        &remote.method: call.operation.method,
        &remote.url: call.operation.path,
        &remote.body: call.arguments.arguments,
    }))
}

/// Returns the id of a line in the batch.
fn custom_id(line: &BatchLine) -> String {
    match &line.id {
        Some(Value::String(id)) => id.clone(),
        Some(id) => id.to_string(),
        None => format!("line-{}", line.number + 1),
    }
}

/// Writes the results in the order of the lines, in the same form as those of local calls.
fn write(
    options: &BatchOptions,
    remote: &RemoteBatch,
    lines: &[BatchLine],
    results: &str,
) -> Result<String, Failure> {
    let parsed = results
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut by_id: Map<String, Value> = parsed
        .filter_map(|result| {
            let id = result.get(&remote.id)?.as_str()?.to_owned();
            Some((id, result))
        })
        .collect();
    let mut output = Output::open(options.output.as_deref())?;
    let mut failed = 0;
    for line in lines {
        let result = by_id.shift_remove(&custom_id(line)).unwrap_or_default();
        let response = result.get("response").filter(|it| !it.is_null());
        let result = match (response, &line.call) {
            (Some(response), Ok(call)) => {
                // The response of a request is beside its status.
                let body = response.get("body").unwrap_or(response);
                line.success(call.operation, body.clone())
            }
            _ => {
                failed += 1;
                let error = result.get("error").cloned().unwrap_or_default();
                let message = error.get("message").and_then(Value::as_str);
                let message = message.map_or_else(|| error.to_string(), str::to_owned);
                line.failure(&message, super::FAILED)
            }
        };
        output.add(line.number, &result)?;
    }
    output.finish()?;
    if failed > 0 {
        return Err(Failure::failed(format!(
            "{failed} of {} requests failed at Exa",
            lines.len()
        )));
    }
    Ok(String::new())
}

//! Imports from a text or a file: counted, announced, uploaded.

mod content;
mod csv;
mod file;
mod folders;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use content::{Content, Sending};
use csv::Survey;
pub(crate) use folders::{Folders, IMPORT_DIR_VARIABLE};

use super::caller::Exchanged;
use super::{Caller, Progress, find};
use exa_mcp_exa_client::{self as exa, ApiKey, ExaError, ExaErrorKind, ExaResponse, upload};
use exa_mcp_exa_client::{ArgumentsError, CallError};
use exa_mcp_model::UploadOperations;
use exa_mcp_model::{Argument, ArgumentLocation, Operation};
use exa_mcp_text::is_identifier;

/// The largest file that Exa takes.
const LARGEST: u64 = 50_000_000;

/// The arguments in which the content may stand.
const TEXT: &str = "csvContent";
const FILE: &str = "filePath";

/// Says whether a call comes with the content of an import.
pub(super) fn is_wanted(operation: &Operation, arguments: &Map<String, Value>) -> bool {
    let own = |argument: &&Argument| argument.location == ArgumentLocation::Server;
    let mut own = operation.arguments.iter().filter(own);
    own.any(|argument| {
        [TEXT, FILE].contains(&argument.name)
            && arguments
                .get(argument.name)
                .is_some_and(|value| !value.is_null())
    })
}

/// Counts the content, announces it, uploads it and looks at what became of it.
pub(super) async fn run(
    caller: &Caller,
    key: &ApiKey,
    operation: &'static Operation,
    mut arguments: Map<String, Value>,
    progress: &Progress,
) -> Result<Exchanged, CallError> {
    let refuse = |place: &'static str, problem: String| {
        CallError::from(ArgumentsError {
            operation: operation.name,
            argument: place,
            problems: vec![problem],
        })
    };
    let (place, content) = content(caller, &mut arguments)
        .await
        .map_err(|(place, problem)| refuse(place, format!("`{place}` {problem}")))?;
    let (content, survey) = content::survey(content)
        .await
        .map_err(|problem| refuse(place, format!("`{place}` {problem}")))?;
    fill(&mut arguments, survey).map_err(|problem| refuse("size", problem))?;
    let created = caller
        .plain(key, operation, arguments.clone(), None)
        .await?;
    let import = Created::of(operation, &created.value)?;
    let mut unfinished = Unfinished(Some(&import.id));
    let sending = Sending::new(content, survey, progress);
    let told = exa::UploadRequest {
        address: &import.address,
        size: survey.size,
        content_type: "text/csv",
    };
    let sent = upload(caller.http(), told, || sending.open()).await;
    if let Err(error) = sent {
        return Err(import.failed(error, sending.problem()).into());
    }
    sending.tell_end();
    unfinished.0 = None;
    let answer = match look(caller, key, &import).await {
        Some(answer) => answer,
        None => without_address(created),
    };
    Ok(Exchanged {
        answer,
        arguments,
        told: survey.size as f64,
    })
}

/// Takes the content out of the arguments, and opens it if it is a file.
async fn content(
    caller: &Caller,
    arguments: &mut Map<String, Value>,
) -> Result<(&'static str, Content), (&'static str, String)> {
    let mut take = |name: &str| arguments.shift_remove(name).filter(|it| !it.is_null());
    let (text, file) = (take(TEXT), take(FILE));
    let (place, given) = match (text, file) {
        (Some(_), Some(_)) => {
            let problem = "and `filePath` are two contents for one import; give one of them";
            return Err((TEXT, problem.to_owned()));
        }
        (Some(text), None) => (TEXT, text),
        (None, file) => (FILE, file.unwrap_or_default()),
    };
    let Value::String(given) = given else {
        return Err((place, "must be a string".to_owned()));
    };
    if place == TEXT {
        return Ok((TEXT, Content::Text(given.into_bytes().into())));
    }
    let allowed = caller.folders().allowed().await.map_err(|reason| {
        let problem = format!("cannot be read, because {reason}; or give its text as `csvContent`");
        (FILE, problem)
    })?;
    let opened = tokio::task::spawn_blocking(move || file::open(&given, &allowed)).await;
    let opened = opened.map_err(|error| (FILE, format!("cannot be read: {error}")))?;
    let opened = opened.map_err(|problem| (FILE, problem))?;
    if opened.size > LARGEST {
        return Err((FILE, too_large(opened.size)));
    }
    Ok((FILE, Content::File(Arc::new(opened.file))))
}

fn too_large(size: u64) -> String {
    format!("has {size} bytes, but an import takes at most {LARGEST} (50 MB); split it")
}

/// Fills in what was counted. A size that is told must be right, or the upload would be refused.
fn fill(arguments: &mut Map<String, Value>, survey: Survey) -> Result<(), String> {
    let is_told = |value: &&Value| !value.is_null();
    if let Some(size) = arguments.get("size").filter(is_told)
        && size.as_f64() != Some(survey.size as f64)
    {
        return Err(format!(
            "`size` says {size}, but there are {} bytes; leave it out, it is counted",
            survey.size
        ));
    }
    for (name, value) in [
        ("size", json!(survey.size)),
        ("count", json!(survey.records)),
        ("format", json!("csv")),
    ] {
        if arguments.get(name).filter(is_told).is_none() {
            arguments.insert(name.to_owned(), value);
        }
    }
    Ok(())
}

/// What Exa said about an import that it waits for.
struct Created {
    operation: &'static Operation,
    id: String,
    address: String,
    until: Option<String>,
}

impl Created {
    fn of(operation: &'static Operation, answer: &Value) -> Result<Self, ExaError> {
        let text = |name: &str| Some(answer.get(name)?.as_str()?.to_owned());
        match (text("id"), text("uploadUrl")) {
            (Some(id), Some(address)) => Ok(Self {
                operation,
                id,
                address,
                until: text("uploadValidUntil"),
            }),
            (id, _) => {
                let id = id.filter(|id| is_identifier(id));
                let id = id.unwrap_or_else(|| "without an id".to_owned());
                let advice = operation.behavior.upload.as_ref().map(|upload| {
                    let UploadOperations { get, delete, .. } = upload;
                    format!(
                        " Look at it with {get}, and delete it with {delete} before you try again."
                    )
                });
                Err(ExaError::upload(format!(
                    "The import {id} was created, but Exa named no address to upload its file to.{}",
                    advice.unwrap_or_default()
                )))
            }
        }
    }

    /// The import stays: the file may have arrived although nobody said so, and then it is processed.
    fn failed(&self, error: ExaError, problem: Option<String>) -> ExaError {
        let id = Some(self.id.as_str())
            .filter(|id| is_identifier(id))
            .unwrap_or("without a plain id");
        let quote = error.quote.filter(|_| problem.is_none());
        let why = problem.unwrap_or(error.message);
        let until = self.until.as_ref().filter(|until| is_identifier(until));
        let until = until.map_or(String::new(), |until| format!(" until {until}"));
        let advice = self.operation.behavior.upload.as_ref().map(|upload| {
            let UploadOperations { get, delete, .. } = upload;
            let create = self.operation.name;
            format!(" Look at it with {get}: if it is still pending, delete it with {delete} and call {create} again.")
        });
        let message = format!(
            "The import {id} was created, but its file was not uploaded: {why}. It waits for the file{until}.{}",
            advice.unwrap_or_default()
        );
        ExaError {
            kind: ExaErrorKind::Upload,
            message,
            quote,
            detail: Some(Box::new(json!({"importId": self.id}))),
            ..error
        }
    }
}

/// Says in the log what is left behind when nobody waits for an upload any more.
struct Unfinished<'a>(Option<&'a str>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(import) = self.0 {
            tracing::warn!(import, "its file was not uploaded");
        }
    }
}

/// The import as it is after the upload.
async fn look(caller: &Caller, key: &ApiKey, import: &Created) -> Option<ExaResponse> {
    let upload = import.operation.behavior.upload.as_ref()?;
    let arguments = Map::from_iter([(upload.id.clone(), json!(import.id))]);
    let get = find(&upload.get)?;
    caller.plain(key, get, arguments, None).await.ok()
}

/// The answer to the creation, without the address that has done its duty.
fn without_address(mut created: ExaResponse) -> ExaResponse {
    if let Value::Object(import) = &mut created.value {
        import.shift_remove("uploadUrl");
        import.shift_remove("uploadValidUntil");
    }
    created
}

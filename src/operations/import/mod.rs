//! CSV imports from a text or a file: count the records, create the import, upload the content.

mod content;
mod csv;
mod file;
mod folders;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use content::{Content, ContentUpload};
use csv::CsvStats;
pub(crate) use folders::{Folders, IMPORT_DIR_VARIABLE};

use super::{CompletedCall, OperationExecutor, ProgressReporter, find};
use exa_mcp_exa_client::{
    self as exa, ApiKey, ArgumentsError, CallError, ExaError, ExaErrorKind, ExaResponse, upload,
};
use exa_mcp_generated::response_fields::{ID, UPLOAD_URL, UPLOAD_VALID_UNTIL};
use exa_mcp_model::{Argument, ArgumentLocation, Operation, ResponseField, UploadOperations};
use exa_mcp_text::is_identifier;

/// The largest file that Exa accepts, in bytes.
const MAX_SIZE: u64 = 50_000_000;

/// The arguments that may hold the content.
const TEXT: &str = "csvContent";
const FILE: &str = "filePath";

/// Returns whether the arguments contain the content of an import.
pub(super) fn is_requested(operation: &Operation, arguments: &Map<String, Value>) -> bool {
    let own = |argument: &&Argument| argument.location == ArgumentLocation::Server;
    let mut own = operation.arguments.iter().filter(own);
    own.any(|argument| {
        [TEXT, FILE].contains(&argument.name)
            && arguments
                .get(argument.name)
                .is_some_and(|value| !value.is_null())
    })
}

/// Counts the content, creates the import, uploads the content, and reads the import again.
pub(super) async fn run(
    executor: &OperationExecutor,
    key: &ApiKey,
    operation: &'static Operation,
    mut arguments: Map<String, Value>,
    progress: &ProgressReporter,
) -> Result<CompletedCall, CallError> {
    let (content, stats) = counted(executor, operation, &mut arguments).await?;
    let created = executor
        .request(key, operation, arguments.clone(), None)
        .await?;
    let import = CreatedImport::parse(operation, &created.value)?;
    let mut incomplete = IncompleteUploadLog(Some(&import.id));
    let content = ContentUpload::new(content, stats, progress);
    let target = exa::UploadRequest {
        address: &import.upload_url,
        size: stats.size,
        content_type: "text/csv",
    };
    let uploaded = upload(executor.http(), target, || content.open()).await;
    if let Err(error) = uploaded {
        return Err(import.upload_error(error, content.error()).into());
    }
    content.report_completion();
    incomplete.0 = None;
    let response = match read_import(executor, key, &import).await {
        Some(response) => response,
        None => without_upload_url(created),
    };
    Ok(CompletedCall {
        response,
        arguments,
        reported_progress: stats.size as f64,
    })
}

/// Replaces the content in the arguments with its size and number of records.
pub(super) async fn count_content(
    executor: &OperationExecutor,
    operation: &'static Operation,
    arguments: &mut Map<String, Value>,
) -> Result<(), CallError> {
    counted(executor, operation, arguments).await.map(drop)
}

/// Takes the content out of the arguments, and adds its size and number of records.
async fn counted(
    executor: &OperationExecutor,
    operation: &'static Operation,
    arguments: &mut Map<String, Value>,
) -> Result<(Content, CsvStats), CallError> {
    let invalid = |argument: &'static str, problem: String| {
        CallError::from(ArgumentsError {
            operation: operation.name,
            argument,
            problems: vec![problem],
        })
    };
    let (argument, content) = take_content(executor, arguments)
        .await
        .map_err(|(argument, problem)| invalid(argument, format!("`{argument}` {problem}")))?;
    let (content, stats) = content::count(content)
        .await
        .map_err(|problem| invalid(argument, format!("`{argument}` {problem}")))?;
    add_counts(arguments, stats).map_err(|problem| invalid("size", problem))?;
    Ok((content, stats))
}

/// Removes the content from the arguments, and opens it if it is a file. Returns it with the name of its argument.
async fn take_content(
    executor: &OperationExecutor,
    arguments: &mut Map<String, Value>,
) -> Result<(&'static str, Content), (&'static str, String)> {
    let mut take = |name: &str| arguments.shift_remove(name).filter(|it| !it.is_null());
    let (text, file) = (take(TEXT), take(FILE));
    let (argument, given) = match (text, file) {
        (Some(_), Some(_)) => {
            let problem = "and `filePath` cannot be combined; give one of them";
            return Err((TEXT, problem.to_owned()));
        }
        (Some(text), None) => (TEXT, text),
        (None, file) => (FILE, file.unwrap_or_default()),
    };
    let Value::String(given) = given else {
        return Err((argument, "must be a string".to_owned()));
    };
    if argument == TEXT {
        return Ok((TEXT, Content::Text(given.into_bytes().into())));
    }
    let allowed = executor.folders().allowed().await.map_err(|reason| {
        let problem = format!("cannot be read, because {reason}; or give its text as `csvContent`");
        (FILE, problem)
    })?;
    let opened = tokio::task::spawn_blocking(move || file::open(&given, &allowed)).await;
    let opened = opened.map_err(|error| (FILE, format!("cannot be read: {error}")))?;
    let opened = opened.map_err(|problem| (FILE, problem))?;
    if opened.size > MAX_SIZE {
        return Err((FILE, too_large(opened.size)));
    }
    Ok((FILE, Content::File(Arc::new(opened.file))))
}

fn too_large(size: u64) -> String {
    format!("has {size} bytes, but an import accepts at most {MAX_SIZE} (50 MB); split it")
}

/// Adds size, count and format to the arguments. A given size must be correct, or the upload would be rejected.
fn add_counts(arguments: &mut Map<String, Value>, stats: CsvStats) -> Result<(), String> {
    let is_given = |value: &&Value| !value.is_null();
    if let Some(size) = arguments.get("size").filter(is_given)
        && size.as_f64() != Some(stats.size as f64)
    {
        return Err(format!(
            "`size` is {size}, but the content has {} bytes; leave it out, it is counted",
            stats.size
        ));
    }
    for (name, value) in [
        ("size", json!(stats.size)),
        ("count", json!(stats.records)),
        ("format", json!("csv")),
    ] {
        if arguments.get(name).filter(is_given).is_none() {
            arguments.insert(name.to_owned(), value);
        }
    }
    Ok(())
}

/// An import that waits for its content.
struct CreatedImport {
    operation: &'static Operation,
    id: String,
    upload_url: String,
    valid_until: Option<String>,
}

impl CreatedImport {
    fn parse(operation: &'static Operation, response: &Value) -> Result<Self, ExaError> {
        let text = |field: ResponseField| field.text(response).map(str::to_owned);
        match (text(ID), text(UPLOAD_URL)) {
            (Some(id), Some(upload_url)) => Ok(Self {
                operation,
                id,
                upload_url,
                valid_until: text(UPLOAD_VALID_UNTIL),
            }),
            (id, _) => {
                let id = id.filter(|id| is_identifier(id));
                let id = id.unwrap_or_else(|| "without an id".to_owned());
                let advice = operation.behavior.upload.as_ref().map(|upload| {
                    let UploadOperations { get, delete, .. } = upload;
                    format!(
                        " Check it with {get}, and delete it with {delete} before you try again."
                    )
                });
                Err(ExaError::upload(format!(
                    "The import {id} was created, but Exa returned no upload URL for its file.{}",
                    advice.unwrap_or_default()
                )))
            }
        }
    }

    /// Returns the error of a failed upload. The import is not deleted: the file may have arrived without a
    /// confirmation, and is processed then.
    fn upload_error(&self, error: ExaError, content_error: Option<String>) -> ExaError {
        let id = Some(self.id.as_str())
            .filter(|id| is_identifier(id))
            .unwrap_or("without a plain id");
        let quote = error.quote.filter(|_| content_error.is_none());
        let why = content_error.unwrap_or(error.message);
        let until = self
            .valid_until
            .as_ref()
            .filter(|until| is_identifier(until));
        let until = until.map_or(String::new(), |until| format!(" until {until}"));
        let advice = self.operation.behavior.upload.as_ref().map(|upload| {
            let UploadOperations { get, delete, .. } = upload;
            let create = self.operation.name;
            format!(" Check it with {get}: if it is still pending, delete it with {delete} and call {create} again.")
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

/// Logs, when dropped, that an import has no content because its upload was abandoned.
struct IncompleteUploadLog<'a>(Option<&'a str>);

impl Drop for IncompleteUploadLog<'_> {
    fn drop(&mut self) {
        if let Some(import) = self.0 {
            tracing::warn!(import, "the file of the import was not uploaded");
        }
    }
}

/// Reads the import after the upload.
async fn read_import(
    executor: &OperationExecutor,
    key: &ApiKey,
    import: &CreatedImport,
) -> Option<ExaResponse> {
    let upload = import.operation.behavior.upload.as_ref()?;
    let arguments = Map::from_iter([(upload.id.clone(), json!(import.id))]);
    let get = find(&upload.get)?;
    executor.request(key, get, arguments, None).await.ok()
}

/// Removes the upload URL, which is no longer useful, from the response.
fn without_upload_url(mut created: ExaResponse) -> ExaResponse {
    for field in [UPLOAD_URL, UPLOAD_VALID_UNTIL] {
        field.remove(&mut created.value);
    }
    created
}

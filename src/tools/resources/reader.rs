//! Reads resources.

use exa_mcp_model::WebsetResources;
use serde_json::{Map, Value, json};

use super::{JSON, MARKDOWN, PLAIN, Resources};
use crate::operations::{OperationError, example, find, input_schema, nearest};
use crate::render::{self, ContentLevel, View};
use crate::tools::error_messages;
use crate::tools::notes::NoteError;
use crate::tools::operation_runner::sanitize_response;
use crate::tools::{CachedResult, ResourceUri, ToolError};
use exa_mcp_exa_client::{ExaErrorKind, KeyOwner, blocking};
use exa_mcp_generated::tools::RESOURCES;
use exa_mcp_model::Identity;
use exa_mcp_model::Operation;

/// The token budget of a resource, larger than any result.
const UNLIMITED_TOKENS: usize = 100_000_000;

/// The content of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceContent {
    /// Its MIME type.
    pub mime: &'static str,
    /// The text.
    pub text: String,
    /// The content never changes, though the resource may disappear.
    pub is_final: bool,
}

/// Why a resource could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such resource, or it has another owner.
    #[error("{0}")]
    NotFound(String),
    /// The resource may exist but could not be read.
    #[error("{0}")]
    Failed(String),
}

impl From<NoteError> for ReadError {
    fn from(error: NoteError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Reads the resources of one owner.
pub(super) struct Reader<'a> {
    pub(super) resources: &'a Resources,
    pub(super) owner: &'a Identity,
}

impl Reader<'_> {
    /// Reads a resource.
    pub(super) async fn read(&self, uri: &ResourceUri) -> Result<ResourceContent, ReadError> {
        match uri {
            ResourceUri::Result(id) => render_cached(&self.cached(id)?, None).await,
            ResourceUri::ResultItem(id, index) => {
                render_cached(&self.cached(id)?, Some(*index)).await
            }
            ResourceUri::Operation(name) => operation(name),
            ResourceUri::Webset(id) => self.fetch_webset(|websets| &websets.get, id).await,
            ResourceUri::WebsetItems(id) => self.fetch_webset(|websets| &websets.items, id).await,
            ResourceUri::Note(id) => self.note(id).await,
        }
    }

    /// Checks that a resource exists, without calling Exa.
    pub(super) async fn check_exists(&self, uri: &ResourceUri) -> Result<(), ReadError> {
        match uri {
            ResourceUri::Result(id) => self.cached(id).map(drop),
            ResourceUri::ResultItem(id, index) => match self.cached(id)? {
                cached if *index < cached.results => Ok(()),
                cached => render_cached(&cached, Some(*index)).await.map(drop),
            },
            ResourceUri::Webset(_) | ResourceUri::WebsetItems(_) => self.require_websets(),
            ResourceUri::Operation(_) | ResourceUri::Note(_) => self.read(uri).await.map(drop),
        }
    }

    fn cached(&self, id: &str) -> Result<CachedResult, ReadError> {
        let results = &self.resources.shared.results;
        results.get(self.owner, id).ok_or_else(|| {
            ReadError::NotFound(format!(
                "There is no cached result `{id}`. Results are cached for a few minutes; call the tool again."
            ))
        })
    }

    fn require_websets(&self) -> Result<(), ReadError> {
        if self.resources.websets {
            return Ok(());
        }
        let reason = "The tools for Websets are not enabled on this server.";
        Err(ReadError::NotFound(reason.to_owned()))
    }

    async fn note(&self, id: &str) -> Result<ResourceContent, ReadError> {
        let Some(notes) = &self.resources.notes else {
            return Err(ReadError::NotFound(
                "Notes are not enabled on this server; its operator adds the tool set `notes`."
                    .to_owned(),
            ));
        };
        let note = notes.get(self.owner, id).await?;
        let note = note.ok_or_else(|| ReadError::NotFound(format!("There is no note `{id}`.")))?;
        Ok(ResourceContent {
            mime: PLAIN,
            text: note.draft.content.clone(),
            is_final: true,
        })
    }

    /// Reads a webset or its items from Exa.
    async fn fetch_webset(
        &self,
        operation: impl Fn(&WebsetResources) -> &String,
        webset: &str,
    ) -> Result<ResourceContent, ReadError> {
        self.require_websets()?;
        let unavailable = || ReadError::Failed("Exa has no operation that reads this.".to_owned());
        let websets = RESOURCES.websets.as_ref().ok_or_else(unavailable)?;
        let operation = find(operation(websets)).ok_or_else(unavailable)?;
        let arguments = Map::from_iter([(websets.argument.clone(), json!(webset))]);
        match self
            .resources
            .executor
            .call(operation, arguments.into())
            .await
        {
            Ok(called) => {
                let response = sanitize_response(called.response.value).await;
                let is_large = blocking::is_large_value(&response);
                Ok(ResourceContent {
                    mime: JSON,
                    text: blocking::run(is_large, || pretty(&response)).await,
                    is_final: false,
                })
            }
            Err(error) => Err(fetch_error(operation, webset, error)),
        }
    }
}

fn fetch_error(operation: &'static Operation, webset: &str, error: OperationError) -> ReadError {
    match error {
        OperationError::Exa(error) if error.kind == ExaErrorKind::Api(404) => {
            ReadError::NotFound(format!("There is no webset `{webset}`."))
        }
        OperationError::Arguments(_) => {
            ReadError::NotFound(format!("`{webset}` is not a webset id."))
        }
        OperationError::Exa(error) => {
            let error = ToolError::Exa {
                operation: operation.name,
                error,
                hints: &[],
            };
            ReadError::Failed(error_messages::text(&error))
        }
        OperationError::KeysUnavailable(no_key) => ReadError::Failed(no_key.to_string()),
        OperationError::Limit(limit) => ReadError::Failed(limit.message),
        OperationError::NoKey(owner) => ReadError::Failed(owner.advice().to_owned()),
        OperationError::NoServiceKey => ReadError::Failed(KeyOwner::NO_SERVICE_KEY.to_owned()),
    }
}

/// Renders a cached result in full, or one of its entries.
async fn render_cached(
    cached: &CachedResult,
    index: Option<usize>,
) -> Result<ResourceContent, ReadError> {
    let view = View {
        level: ContentLevel::Full,
        max_tokens: UNLIMITED_TOKENS,
        extract: cached.extract,
        index,
        ..View::default()
    };
    let is_large = blocking::is_large_text(cached.bytes);
    let render = || render::render(cached.to_render_input(), &view);
    match blocking::run(is_large, render).await {
        Ok(rendered) => Ok(ResourceContent {
            mime: MARKDOWN,
            text: rendered.text,
            is_final: true,
        }),
        Err(error) => Err(ReadError::NotFound(format!("`{}`: {error}", cached.id))),
    }
}

fn operation(name: &str) -> Result<ResourceContent, ReadError> {
    let find = |name: &str| find(name).filter(|operation| !operation.api.admin_only);
    let Some(operation) = find(name) else {
        let hint = match nearest(name).filter(|near| find(near).is_some()) {
            Some(near) => format!("Did you mean `{near}`?"),
            None => "resources/list shows all of them.".to_owned(),
        };
        let text = format!("There is no operation `{name}`. {hint}");
        return Err(ReadError::NotFound(text));
    };
    Ok(ResourceContent {
        mime: JSON,
        text: describe_operation(operation),
        is_final: true,
    })
}

/// Describes an operation as JSON.
pub(super) fn describe_operation(operation: &'static Operation) -> String {
    let input: &Value = input_schema(operation);
    let output: Value = serde_json::from_str(operation.output_schema).unwrap_or_default();
    let mut described = json!({
        "name": operation.name,
        "summary": operation.summary,
        "description": operation.description,
        "signature": operation.signature,
        "method": operation.method,
        "path": operation.path,
        "example": {"operation": operation.name, "args": example(operation)},
        "inputSchema": input,
        "outputSchema": output,
    });
    let hints = &operation.behavior.hints;
    if let Value::Object(map) = &mut described {
        add(map, "hints", (!hints.is_empty()).then(|| json!(hints)));
        add(map, "deprecated", operation.deprecated.then(|| json!(true)));
    }
    pretty(&described)
}

fn add(map: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    map.extend(value.map(|value| (name.to_owned(), value)));
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

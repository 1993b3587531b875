//! Reading one resource.

use exa_mcp_model::WebsetResources;
use serde_json::{Map, Value, json};

use super::{JSON, MARKDOWN, PLAIN, Resources};
use crate::operations::{OperationError, example, find, input_schema, nearest};
use crate::render::{self, Level, View};
use crate::tools::error_messages;
use crate::tools::notes::NoteError;
use crate::tools::operation_run::cleaned;
use crate::tools::{Address, CachedResult, ToolError};
use exa_mcp_exa_client::{ExaErrorKind, blocking};
use exa_mcp_generated::tools::RESOURCES;
use exa_mcp_model::Identity;
use exa_mcp_model::Operation;

/// Tokens of a kept answer: more than any has, because whoever reads a resource wants the whole of it.
const EVERYTHING: usize = 100_000_000;

/// What stands at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// What kind of text it is.
    pub mime: &'static str,
    /// The text.
    pub text: String,
    /// It will never read otherwise, though it may vanish.
    pub is_final: bool,
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing is there: it never was, is no longer, or belongs to somebody else.
    #[error("{0}")]
    NotFound(String),
    /// Something is there, perhaps, but could not be read.
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
    /// Reads what stands at an address.
    pub(super) async fn read(&self, address: &Address) -> Result<Content, ReadError> {
        match address {
            Address::Result(id) => shown(&self.cached(id)?, None).await,
            Address::ResultItem(id, index) => shown(&self.cached(id)?, Some(*index)).await,
            Address::Operation(name) => operation(name),
            Address::Webset(id) => self.live(|websets| &websets.get, id).await,
            Address::WebsetItems(id) => self.live(|websets| &websets.items, id).await,
            Address::Note(id) => self.note(id).await,
        }
    }

    /// Says whether there is something to follow, without asking Exa.
    pub(super) async fn knows(&self, address: &Address) -> Result<(), ReadError> {
        match address {
            Address::Result(id) => self.cached(id).map(drop),
            Address::ResultItem(id, index) => match self.cached(id)? {
                cached if *index < cached.results => Ok(()),
                cached => shown(&cached, Some(*index)).await.map(drop),
            },
            Address::Webset(_) | Address::WebsetItems(_) => self.require_websets(),
            Address::Operation(_) | Address::Note(_) => self.read(address).await.map(drop),
        }
    }

    fn cached(&self, id: &str) -> Result<CachedResult, ReadError> {
        let results = &self.resources.shared.results;
        results.get(self.owner, id).ok_or_else(|| {
            ReadError::NotFound(format!(
                "No answer is kept under `{id}` any more. Answers are kept for a few minutes; call the tool again."
            ))
        })
    }

    fn require_websets(&self) -> Result<(), ReadError> {
        if self.resources.websets {
            return Ok(());
        }
        let why = "The tools for Websets are not enabled on this server.";
        Err(ReadError::NotFound(why.to_owned()))
    }

    async fn note(&self, id: &str) -> Result<Content, ReadError> {
        let Some(notes) = &self.resources.notes else {
            return Err(ReadError::NotFound(
                "Notes are not enabled on this server; its operator adds the tool set `notes`."
                    .to_owned(),
            ));
        };
        let note = notes.get(self.owner, id).await?;
        let note = note.ok_or_else(|| ReadError::NotFound(format!("There is no note `{id}`.")))?;
        Ok(Content {
            mime: PLAIN,
            text: note.text(),
            is_final: true,
        })
    }

    /// Asks Exa for a webset, or for its items.
    async fn live(
        &self,
        operation: impl Fn(&WebsetResources) -> &String,
        webset: &str,
    ) -> Result<Content, ReadError> {
        self.require_websets()?;
        let gone = || ReadError::Failed("Exa has no operation that reads this.".to_owned());
        let websets = RESOURCES.websets.as_ref().ok_or_else(gone)?;
        let operation = find(operation(websets)).ok_or_else(gone)?;
        let arguments = Map::from_iter([(websets.argument.clone(), json!(webset))]);
        match self
            .resources
            .caller
            .call(operation, arguments.into())
            .await
        {
            Ok(called) => {
                let answer = cleaned(called.response.value).await;
                let is_large = blocking::is_large_value(&answer);
                Ok(Content {
                    mime: JSON,
                    text: blocking::run(is_large, || pretty(&answer)).await,
                    is_final: false,
                })
            }
            Err(refusal) => Err(failed(operation, webset, refusal)),
        }
    }
}

fn failed(operation: &'static Operation, webset: &str, refusal: OperationError) -> ReadError {
    match refusal {
        OperationError::Exa(error) if error.kind == ExaErrorKind::Api(404) => {
            ReadError::NotFound(format!("There is no webset `{webset}`."))
        }
        OperationError::Arguments(_) => {
            ReadError::NotFound(format!("`{webset}` is no id of a webset."))
        }
        OperationError::Exa(error) => {
            let error = ToolError::Exa {
                operation: operation.name,
                error,
                hints: &[],
            };
            ReadError::Failed(error_messages::text(&error))
        }
        OperationError::KeysUnavailable(out) => ReadError::Failed(out.to_string()),
        OperationError::Limit(over) => ReadError::Failed(over.message),
        OperationError::NoKey(holder) => ReadError::Failed(holder.advice().to_owned()),
    }
}

/// A kept answer in full, or one of its results.
async fn shown(kept: &CachedResult, index: Option<usize>) -> Result<Content, ReadError> {
    let view = View {
        level: Level::Full,
        max_tokens: EVERYTHING,
        extract: kept.extract,
        index,
        ..View::default()
    };
    let is_large = blocking::is_large_text(kept.bytes);
    let show = || render::show(kept.opened(), &view);
    match blocking::run(is_large, show).await {
        Ok(rendered) => Ok(Content {
            mime: MARKDOWN,
            text: rendered.text,
            is_final: true,
        }),
        Err(error) => Err(ReadError::NotFound(format!("`{}`: {error}", kept.id))),
    }
}

fn operation(name: &str) -> Result<Content, ReadError> {
    let Some(operation) = find(name) else {
        let hint = match nearest(name) {
            Some(near) => format!("Did you mean `{near}`?"),
            None => "resources/list shows all of them.".to_owned(),
        };
        let text = format!("There is no operation `{name}`. {hint}");
        return Err(ReadError::NotFound(text));
    };
    Ok(Content {
        mime: JSON,
        text: description(operation),
        is_final: true,
    })
}

/// Everything there is to know about an operation.
pub(super) fn description(operation: &'static Operation) -> String {
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

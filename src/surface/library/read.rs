//! Reading one resource.

use serde_json::{Map, Value, json};

use super::{JSON, Library, MARKDOWN, PLAIN};
use crate::accounts::Identity;
use crate::operations::{Operation, Refusal, check, find, input_schema, nearest};
use crate::render::{self, Level, View};
use crate::surface::answer::cleaned;
use crate::surface::notes::NoteError;
use crate::surface::{Address, Kept, Outcome};
use exa_mcp_exa_client::ExaErrorKind;

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

impl Library {
    /// Reads what stands at an address.
    pub async fn read(&self, owner: &Identity, address: &Address) -> Result<Content, ReadError> {
        match address {
            Address::Result(id) => shown(&self.kept(owner, id)?, None),
            Address::ResultItem(id, index) => shown(&self.kept(owner, id)?, Some(*index)),
            Address::Operation(name) => operation(name),
            Address::Webset(id) => self.live("websets.get", id).await,
            Address::WebsetItems(id) => self.live("items.list", id).await,
            Address::Note(id) => self.note(owner, id).await,
        }
    }

    /// Says whether there is something to follow, without asking Exa.
    pub async fn knows(&self, owner: &Identity, address: &Address) -> Result<(), ReadError> {
        match address {
            Address::Result(id) => self.kept(owner, id).map(drop),
            Address::ResultItem(id, index) => match self.kept(owner, id)? {
                kept if *index < kept.results => Ok(()),
                kept => shown(&kept, Some(*index)).map(drop),
            },
            Address::Webset(_) | Address::WebsetItems(_) => self.demand_websets(),
            Address::Operation(_) | Address::Note(_) => self.read(owner, address).await.map(drop),
        }
    }

    fn kept(&self, owner: &Identity, id: &str) -> Result<Kept, ReadError> {
        self.shelves.results.get(owner, id).ok_or_else(|| {
            ReadError::NotFound(format!(
                "No answer is kept under `{id}` any more. Answers are kept for a few minutes; call the tool again."
            ))
        })
    }

    fn demand_websets(&self) -> Result<(), ReadError> {
        match self.websets {
            true => Ok(()),
            false => Err(ReadError::NotFound(
                "The tools for Websets are not enabled on this server.".to_owned(),
            )),
        }
    }

    async fn note(&self, owner: &Identity, id: &str) -> Result<Content, ReadError> {
        let Some(notes) = &self.notes else {
            return Err(ReadError::NotFound(
                "Notes are not enabled on this server; its operator adds the tool set `notes`."
                    .to_owned(),
            ));
        };
        let note = notes.get(owner, id).await?;
        let note = note.ok_or_else(|| ReadError::NotFound(format!("There is no note `{id}`.")))?;
        Ok(Content {
            mime: PLAIN,
            text: note.text(),
            is_final: true,
        })
    }

    /// Asks Exa for a webset, or for its items.
    async fn live(&self, operation: &str, webset: &str) -> Result<Content, ReadError> {
        self.demand_websets()?;
        let gone = || ReadError::Failed(format!("Exa has no operation `{operation}` any more."));
        let operation = find(operation).ok_or_else(gone)?;
        let called = self.caller.call(operation, json!({"websetId": webset}));
        match called.await {
            Ok(called) => {
                let answer = cleaned(called.answer.value);
                Ok(Content {
                    mime: JSON,
                    text: pretty(&answer),
                    is_final: false,
                })
            }
            Err(refusal) => Err(failed(operation, webset, &refusal)),
        }
    }
}

fn failed(operation: &Operation, webset: &str, refusal: &Refusal) -> ReadError {
    match refusal {
        Refusal::Exa(error) if error.kind == ExaErrorKind::Api(404) => {
            ReadError::NotFound(format!("There is no webset `{webset}`."))
        }
        Refusal::Arguments(_) => ReadError::NotFound(format!("`{webset}` is no id of a webset.")),
        Refusal::Exa(error) => ReadError::Failed(Outcome::exa(operation.name, error, &[]).text),
        Refusal::KeysOut(out) => ReadError::Failed(out.to_string()),
        Refusal::Limit(over) => ReadError::Failed(over.message.clone()),
        Refusal::NoKey(holder) => ReadError::Failed(holder.advice().to_owned()),
    }
}

/// A kept answer in full, or one of its results.
fn shown(kept: &Kept, index: Option<usize>) -> Result<Content, ReadError> {
    let view = View {
        level: Level::Full,
        max_tokens: EVERYTHING,
        extract: kept.extract,
        index,
        ..View::default()
    };
    match render::show(kept.opened(), &view) {
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
        "example": {"operation": operation.name, "args": check::example(operation.name, input)},
        "inputSchema": input,
        "outputSchema": output,
    });
    let hints = check::hints(operation.name);
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

//! The subject of suggestions: a webset or a description.

use serde_json::{Map, Value, json};

use super::super::context::ToolContext;
use super::super::elicitation;
use super::super::error::ToolError;
use super::super::executor::ToolExecutor;
use super::super::outcome::ToolResult;
use super::builtin::Entity;
use crate::operations;

/// Maximum texts of a webset that are considered.
const MAX_TEXTS: usize = 20;

/// Maximum characters of each text.
const MAX_TEXT_CHARS: usize = 1_000;

/// The webset or description for which enrichments are suggested.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Subject {
    /// The webset, if there is one.
    pub(super) webset: Option<String>,
    /// What it collects: descriptions, queries and criteria.
    pub(super) texts: Vec<String>,
    /// The descriptions of its enrichments.
    pub(super) existing: Vec<String>,
    /// The type of its entities.
    pub(super) entity: Entity,
}

/// Determines the subject of a call, and reads its webset.
pub(super) async fn find(
    tools: &ToolExecutor,
    context: &ToolContext,
    read: Option<&str>,
    given: &Map<String, Value>,
) -> ToolResult<Subject> {
    let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut subject = Subject {
        webset: text("websetId"),
        texts: text("description").into_iter().collect(),
        existing: Vec::new(),
        entity: Entity::Other,
    };
    let mut entity_type = text("entityType");
    if let Some(webset) = subject.webset.clone() {
        let webset = read_webset(tools, context, read, &webset).await?;
        subject.add_webset(&webset);
        entity_type = entity_type.or_else(|| entity_of(&webset));
    }
    subject.entity = match entity_type {
        Some(name) => Entity::from_name(&name),
        None => Entity::guess(&subject.texts.join(" ")),
    };
    Ok(subject)
}

async fn read_webset(
    tools: &ToolExecutor,
    context: &ToolContext,
    read: Option<&str>,
    id: &str,
) -> ToolResult<Value> {
    let unavailable =
        || ToolError::Internal("Exa has no operation that reads a webset.".to_owned());
    let operation = read.and_then(operations::find).ok_or_else(unavailable)?;
    elicitation::require_key(tools, context).await?;
    let called = tools
        .operation_executor()
        .call(operation, json!({"websetId": id}))
        .await;
    let called = called.map_err(|error| ToolError::from_call_error(operation, error))?;
    Ok(called.response.value)
}

impl Subject {
    /// Adds the texts and enrichments of a webset.
    fn add_webset(&mut self, webset: &Value) {
        let title = webset.get("title").and_then(Value::as_str);
        let mut texts: Vec<&str> = title.into_iter().collect();
        for search in list(webset, "searches") {
            texts.extend(search.get("query").and_then(Value::as_str));
            let criteria = list(search, "criteria");
            texts.extend(criteria.filter_map(|it| it.get("description")?.as_str()));
        }
        let columns = list(webset, "enrichments");
        let columns = columns.filter_map(|it| it.get("description")?.as_str());
        self.existing = columns.take(MAX_TEXTS).map(shorten).collect();
        for text in texts {
            let text = shorten(text);
            if self.texts.len() < MAX_TEXTS && !text.is_empty() && !self.texts.contains(&text) {
                self.texts.push(text);
            }
        }
    }
}

/// Returns the type of entity that a webset collects, as named by Exa.
fn entity_of(webset: &Value) -> Option<String> {
    let mut searches = list(webset, "searches").chain(list(webset, "imports"));
    let entity = searches.find_map(|search| {
        let entity = search.get("entity").filter(|it| it.is_object())?;
        let kind = entity.get("type")?.as_str()?;
        match (kind, entity.get("description").and_then(Value::as_str)) {
            ("custom", Some(description)) => Some(description),
            _ => Some(kind),
        }
    });
    entity.map(str::to_owned)
}

fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    let list = value.get(name).and_then(Value::as_array);
    list.into_iter().flatten()
}

fn shorten(text: &str) -> String {
    let text: String = text.trim().chars().take(MAX_TEXT_CHARS).collect();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_subject_from_a_webset() {
        let webset = json!({
            "id": "ws_1", "title": "Labs",
            "searches": [
                {"query": "AI labs", "entity": {"type": "company"}, "criteria": [{"description": "in Europe"}]},
                {"query": "AI labs", "entity": null, "criteria": []}],
            "enrichments": [{"description": "Founding year"}, {"description": null}],
        });
        let mut subject = Subject {
            webset: None,
            texts: vec!["given".to_owned()],
            existing: Vec::new(),
            entity: Entity::Other,
        };
        subject.add_webset(&webset);
        assert_eq!(subject.texts, ["given", "Labs", "AI labs", "in Europe"]);
        assert_eq!(subject.existing, ["Founding year"]);
        assert_eq!(entity_of(&webset).as_deref(), Some("company"));
        let custom =
            json!({"searches": [{"entity": {"type": "custom", "description": "job postings"}}]});
        assert_eq!(entity_of(&custom).as_deref(), Some("job postings"));
        assert_eq!(entity_of(&json!({"searches": "invalid"})), None);
    }
}

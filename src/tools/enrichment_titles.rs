//! The titles of enrichments, which items name by id only.

use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::operation_runner::OperationRunner;
use crate::operations;
use crate::render::{ColumnTitles, ContentLevel, OutputFormat};
use exa_mcp_generated::tools::RESOURCES;
use exa_mcp_model::{Identity, Operation, lock};

/// Maximum titles in memory; beyond it, all are forgotten and looked up again.
const MAX_TITLES: usize = 5_000;

/// Maximum websets that are read for the titles of one result.
const MAX_WEBSETS: usize = 3;

/// Titles by owner and id of the enrichment. One without a title could not be found.
#[derive(Default)]
pub(super) struct EnrichmentTitles(Mutex<HashMap<(Identity, String), Option<String>>>);

impl EnrichmentTitles {
    fn get(&self, owner: &Identity, id: &str) -> Option<Option<String>> {
        lock(&self.0).get(&(owner.clone(), id.to_owned())).cloned()
    }

    fn insert(&self, owner: &Identity, id: &str, title: Option<String>) {
        let mut titles = lock(&self.0);
        if titles.len() >= MAX_TITLES {
            titles.clear();
        }
        titles.insert((owner.clone(), id.to_owned()), title);
    }

    /// Remembers the titles of all enrichments that a response describes.
    pub(super) fn learn(&self, owner: &Identity, operation: &Operation, response: &Value) {
        if webset_reader().is_some_and(|reader| reader.api.name == operation.api.name) {
            self.learn_from(owner, response);
        }
    }

    fn learn_from(&self, owner: &Identity, value: &Value) {
        match value {
            Value::Array(list) => list.iter().for_each(|entry| self.learn_from(owner, entry)),
            Value::Object(fields) => {
                if let Some((id, title)) = described(fields) {
                    self.insert(owner, id, Some(title.to_owned()));
                }
                for name in ["data", "enrichments"] {
                    if let Some(inner) = fields.get(name) {
                        self.learn_from(owner, inner);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns the id and the title of an enrichment; an enrichment without a title has a description.
fn described(fields: &Map<String, Value>) -> Option<(&str, &str)> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    // Only enrichments have both.
    fields.get("format")?;
    let title = text("title").filter(|title| !title.trim().is_empty());
    Some((text("id")?, title.or_else(|| text("description"))?))
}

fn webset_reader() -> Option<&'static Operation> {
    operations::find(&RESOURCES.websets.as_ref()?.get)
}

/// An enrichment of an item, and the webset of the item.
type EnrichmentOfItem<'a> = (&'a str, Option<&'a str>);

/// Returns the enrichments of items.
fn enrichments(items: &[Value]) -> Vec<EnrichmentOfItem<'_>> {
    let mut found: Vec<EnrichmentOfItem<'_>> = Vec::new();
    for item in items {
        let webset = item.get("websetId").and_then(Value::as_str);
        let list = item.get("enrichments").and_then(Value::as_array);
        for entry in list.into_iter().flatten() {
            let id = entry.get("enrichmentId").and_then(Value::as_str);
            if let Some(id) = id.filter(|id| !found.iter().any(|(known, _)| known == id)) {
                found.push((id, webset));
            }
        }
    }
    found
}

impl OperationRunner<'_> {
    /// Returns the titles of the enrichments of items that the view shows. Unknown ones are read from their webset;
    /// texts can do without, so only the webset that the call names is read for them.
    pub(super) async fn column_titles(
        &self,
        items: &[Value],
        arguments: &Map<String, Value>,
    ) -> ColumnTitles {
        let view = &self.call.view;
        let is_plain_json = view.format == OutputFormat::Json && view.fields.is_empty();
        if is_plain_json || view.level == ContentLevel::Summary && view.fields.is_empty() {
            return ColumnTitles::default();
        }
        let titles = self.tools.enrichment_titles();
        let enrichments = enrichments(items);
        let unknown = enrichments
            .iter()
            .filter(|(id, _)| titles.get(self.owner, id).is_none());
        let named = RESOURCES
            .websets
            .as_ref()
            .and_then(|it| arguments.get(&it.argument));
        let has_columns = view.format != OutputFormat::Markdown || !view.fields.is_empty();
        let is_read = |webset: &&str| has_columns || named.and_then(Value::as_str) == Some(webset);
        let mut websets: Vec<&str> = Vec::new();
        for webset in unknown.filter_map(|(_, webset)| *webset).filter(is_read) {
            if websets.len() < MAX_WEBSETS && !websets.contains(&webset) {
                websets.push(webset);
            }
        }
        for webset in websets {
            self.read_titles(webset, &enrichments).await;
        }
        let title = |(id, _): &EnrichmentOfItem<'_>| {
            let title = titles.get(self.owner, id)??;
            Some(((*id).to_owned(), title))
        };
        enrichments.iter().filter_map(title).collect()
    }

    /// Reads the titles of a webset's enrichments; none if that fails, since items are shown without them, too.
    async fn read_titles(&self, webset: &str, enrichments: &[EnrichmentOfItem<'_>]) {
        let (Some(reader), Some(websets)) = (webset_reader(), &RESOURCES.websets) else {
            return;
        };
        let titles = self.tools.enrichment_titles();
        let executor = self.tools.operation_executor();
        let called = executor.call(reader, json!({websets.argument.clone(): webset}));
        if let Ok(called) = called.await {
            let response = super::operation_runner::sanitize_response(called.response.value).await;
            titles.learn(self.owner, reader, &response);
        }
        let own = enrichments.iter().filter(|(_, own)| *own == Some(webset));
        for (id, _) in own {
            if titles.get(self.owner, id).is_none() {
                titles.insert(self.owner, id, None);
            }
        }
    }
}

//! Other websets and imports that a search excludes or is limited to.

use std::collections::HashSet;

use serde_json::Value;

use super::items::Item;
use super::webset::Webset;
use crate::api_error::ApiError;
use crate::json::text;
use crate::state::Account;

/// Resolves the sources that a request names. A webset that is being changed is not in its table, so
/// it is passed separately.
pub(super) struct SourceLookup<'a> {
    pub(super) account: &'a Account,
    pub(super) own: Option<&'a Webset>,
}

/// Returns type and id of a source.
fn parse_source(source: &Value) -> (&str, &str) {
    (text(source, "source"), text(source, "id"))
}

impl SourceLookup<'_> {
    fn webset(&self, name: &str) -> Option<&Webset> {
        let id = self.account.webset_id(name).ok();
        let other = id.and_then(|id| self.account.websets.get(&id));
        other.or_else(|| self.own.filter(|own| own.has_name(name)))
    }

    /// Rejects sources that do not exist.
    pub(super) fn validate(&self, sources: &[Value]) -> Result<(), ApiError> {
        for (kind, id) in sources.iter().map(parse_source) {
            let exists = match kind {
                "import" => self.account.imports.contains(id),
                _ => self.webset(id).is_some(),
            };
            if !exists {
                return Err(ApiError::invalid(format!("There is no {kind} {id}")));
            }
        }
        Ok(())
    }

    /// Returns the properties of everything that the sources contain now.
    pub(super) fn properties(&self, sources: &[Value]) -> Vec<Value> {
        let mut properties = Vec::new();
        for (kind, id) in sources.iter().map(parse_source) {
            if kind == "import" {
                if let Some(import) = self.account.imports.get(id) {
                    properties.extend(import.properties(self.account.data_seed()));
                }
            } else if let Some(webset) = self.webset(id) {
                properties.extend(webset.items.values().map(|item| item.properties.clone()));
            }
        }
        properties
    }

    /// Returns the URLs of everything that the sources contain now.
    pub(super) fn urls(&self, sources: &[Value]) -> HashSet<String> {
        self.properties(sources).iter().map(Item::url_of).collect()
    }
}

//! Other websets and imports that a search excludes or is limited to.

use std::collections::HashSet;

use serde_json::Value;

use super::items::Item;
use super::webset::Webset;
use crate::failure::Failure;
use crate::state::Account;

/// Where the entries of a request are looked up. A webset that is being worked on is out of its
/// table, so it is named extra.
pub(super) struct Sources<'a> {
    pub(super) account: &'a Account,
    pub(super) own: Option<&'a Webset>,
}

/// Source and id of one entry.
fn read(entry: &Value) -> (&str, &str) {
    let part = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    (part("source"), part("id"))
}

impl Sources<'_> {
    fn webset(&self, name: &str) -> Option<&Webset> {
        let id = self.account.webset_id(name).ok();
        let other = id.and_then(|id| self.account.websets.get(&id));
        other.or_else(|| self.own.filter(|own| own.goes_by(name)))
    }

    /// Refuses entries that name nothing.
    pub(super) fn check(&self, entries: &[Value]) -> Result<(), Failure> {
        for (source, id) in entries.iter().map(read) {
            let known = match source {
                "import" => self.account.imports.contains(id),
                _ => self.webset(id).is_some(),
            };
            if !known {
                return Err(Failure::invalid(format!("There is no {source} {id}")));
            }
        }
        Ok(())
    }

    /// Properties of everything the entries hold at this moment.
    pub(super) fn properties(&self, entries: &[Value]) -> Vec<Value> {
        let seed = self.account.data_seed();
        let mut all = Vec::new();
        for (source, id) in entries.iter().map(read) {
            if source == "import" {
                let import = self.account.imports.get(id);
                all.extend(
                    import
                        .into_iter()
                        .flat_map(|import| import.properties(seed)),
                );
            } else if let Some(webset) = self.webset(id) {
                all.extend(webset.items.values().map(|item| item.properties.clone()));
            }
        }
        all
    }

    /// Addresses of everything the entries hold at this moment.
    pub(super) fn addresses(&self, entries: &[Value]) -> HashSet<String> {
        self.properties(entries).iter().map(Item::address).collect()
    }
}

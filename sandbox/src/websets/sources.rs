//! Other websets and imports that a search excludes or is limited to.

use std::collections::HashSet;

use serde_json::Value;

use super::items::Item;
use crate::failure::Failure;
use crate::state::Account;

/// Source and id of one entry.
fn read(entry: &Value) -> (&str, &str) {
    let part = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    (part("source"), part("id"))
}

/// Refuses entries that name nothing.
pub(super) fn check(account: &Account, entries: &[Value]) -> Result<(), Failure> {
    for (source, id) in entries.iter().map(read) {
        let known = match source {
            "import" => account.imports.contains(id),
            _ => account.webset_id(id).is_ok(),
        };
        if !known {
            return Err(Failure::invalid(format!("There is no {source} {id}")));
        }
    }
    Ok(())
}

/// Properties of everything the entries hold at this moment.
pub(super) fn properties(account: &Account, entries: &[Value]) -> Vec<Value> {
    let mut all = Vec::new();
    for (source, id) in entries.iter().map(read) {
        if source == "import" {
            all.extend(
                account
                    .imports
                    .get(id)
                    .map(|import| import.properties(account.data_seed()))
                    .unwrap_or_default(),
            );
        } else if let Ok(id) = account.webset_id(id) {
            let webset = account.websets.get(&id);
            all.extend(
                webset
                    .into_iter()
                    .flat_map(|webset| webset.items.values())
                    .map(|item| item.properties.clone()),
            );
        }
    }
    all
}

/// Addresses of everything the entries hold at this moment.
pub(super) fn addresses(account: &Account, entries: &[Value]) -> HashSet<String> {
    properties(account, entries)
        .iter()
        .map(Item::address)
        .collect()
}

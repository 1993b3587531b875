//! Moves what several schemas define alike out of the snapshots of operations, so that a change of it is one change.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::diff::OperationSnapshots;
use crate::error::{Error, Result};
use crate::{snapshot_loader, snapshot_text};

/// The schemas of a snapshot.
const SCHEMAS: [&str; 3] = ["inputSchema", "outputSchema", "streamSchema"];

/// The folder of shared definitions, beside that of the operations.
const FOLDER: &str = "definitions";

/// A definition and the number of schemas that have it.
type Counted = (Value, usize);

/// Replaces definitions that several schemas of an API have by references, and returns the files with the former.
pub(crate) fn extract(operations: &mut OperationSnapshots) -> BTreeMap<String, String> {
    let mut counted: BTreeMap<(String, String), Vec<Counted>> = BTreeMap::new();
    for_each(operations, |api, name, definition| {
        let known = counted.entry((api.to_owned(), name.to_owned()));
        let known = known.or_default();
        match known.iter_mut().find(|(other, _)| other == definition) {
            Some((_, count)) => *count += 1,
            None => known.push((definition.clone(), 1)),
        }
    });
    // Of definitions that differ, the most frequent one is shared.
    let mut shared: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for ((api, name), known) in counted {
        let frequent = known.into_iter().max_by_key(|(_, count)| *count);
        if let Some((definition, 2..)) = frequent {
            shared.entry(api).or_default().insert(name, definition);
        }
    }
    for_each(operations, |api, name, definition| {
        if shared.get(api).and_then(|of_api| of_api.get(name)) == Some(definition) {
            *definition = json!({"$ref": reference(api, name)});
        }
    });
    let files = shared.into_iter().map(|(api, definitions)| {
        let path = format!("codegen-snapshots/{FOLDER}/{api}.json");
        (path, snapshot_text::to_text(&json!({"$defs": definitions})))
    });
    files.collect()
}

/// Puts the shared definitions of a folder of snapshots back. Older versions have none.
pub(crate) fn restore(operations: &mut OperationSnapshots, folder: &Path) -> Result<()> {
    let mut shared: BTreeMap<String, Value> = BTreeMap::new();
    let mut failure = None;
    for_each(operations, |api, name, definition| {
        let expected = reference(api, name);
        if failure.is_some() || definition.get("$ref") != Some(&json!(expected)) {
            return;
        }
        if !shared.contains_key(api) {
            let path = folder.join(FOLDER).join(format!("{api}.json"));
            match snapshot_loader::read_json(&path) {
                Ok(file) => {
                    shared.insert(api.to_owned(), file);
                }
                Err(error) => failure = Some(error),
            }
        }
        let found = shared
            .get(api)
            .and_then(|file| file.get("$defs")?.get(name));
        match found {
            Some(found) => *definition = found.clone(),
            None if failure.is_none() => {
                failure = Some(Error::Usage(format!(
                    "{}: no file defines {expected}",
                    folder.display()
                )));
            }
            None => {}
        }
    });
    failure.map_or(Ok(()), Err)
}

/// Returns the reference to a shared definition. It is the same everywhere in the document.
fn reference(api: &str, name: &str) -> String {
    let name = name.replace('~', "~0").replace('/', "~1");
    format!("../{FOLDER}/{api}.json#/$defs/{name}")
}

/// Visits the definitions of all schemas, with the API and the name of each.
fn for_each(operations: &mut OperationSnapshots, mut visit: impl FnMut(&str, &str, &mut Value)) {
    for snapshot in operations.values_mut() {
        let api = snapshot.get("api").and_then(Value::as_str);
        let api = api.unwrap_or_default().to_owned();
        for schema in SCHEMAS {
            let definitions = snapshot
                .get_mut(schema)
                .and_then(|schema| schema.get_mut("$defs")?.as_object_mut());
            for (name, definition) in definitions.into_iter().flatten() {
                visit(&api, name, definition);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations() -> OperationSnapshots {
        let snapshot = |api: &str, own: &str| {
            json!({
                "api": api,
                "inputSchema": {"$defs": {"Own": {"title": own}, "Item": {"type": "object"}}},
                "outputSchema": {"$defs": {"Item": {"type": "object"}, "a/b": {"type": "string"}}},
            })
        };
        let named = [("one", "x", "1"), ("two", "x", "2"), ("other", "y", "1")];
        let named = named.map(|(name, api, own)| (name.to_owned(), snapshot(api, own)));
        named.into_iter().collect()
    }

    #[test]
    fn a_shared_definition_is_in_one_file() {
        let mut extracted = operations();
        let files = extract(&mut extracted);
        let names: Vec<&String> = files.keys().collect();
        assert_eq!(
            names,
            [
                "codegen-snapshots/definitions/x.json",
                "codegen-snapshots/definitions/y.json"
            ]
        );
        let file: Value =
            serde_json::from_str(&files["codegen-snapshots/definitions/x.json"]).unwrap();
        let shared = json!({"$defs": {"Item": {"type": "object"}, "a/b": {"type": "string"}}});
        assert_eq!(file, shared);
        let input = &extracted["one"]["inputSchema"]["$defs"];
        // Only one schema has this one.
        assert_eq!(input["Own"], json!({"title": "1"}));
        let item = json!({"$ref": "../definitions/x.json#/$defs/Item"});
        assert_eq!(input["Item"], item);
        assert_eq!(extracted["two"]["outputSchema"]["$defs"]["Item"], item);
        // In another API, one operation has it twice, and the other definition once.
        let output = &extracted["other"]["outputSchema"]["$defs"];
        assert_eq!(
            output["Item"],
            json!({"$ref": "../definitions/y.json#/$defs/Item"})
        );
        assert_eq!(output["a/b"], json!({"type": "string"}));
    }

    #[test]
    fn restoring_is_the_inverse() {
        let root = tempfile::tempdir().unwrap();
        let mut snapshots = operations();
        for (name, text) in extract(&mut snapshots) {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        assert_ne!(snapshots, operations());
        let folder = root.path().join("codegen-snapshots");
        restore(&mut snapshots, &folder).unwrap();
        assert_eq!(snapshots, operations());
        // Snapshots of older versions have no references.
        restore(&mut snapshots, Path::new("/none")).unwrap();
        assert_eq!(snapshots, operations());
    }

    #[test]
    fn a_missing_definition_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let mut snapshots = operations();
        extract(&mut snapshots);
        let error = restore(&mut snapshots.clone(), root.path()).unwrap_err();
        assert!(error.to_string().contains("x.json"), "{error}");
        std::fs::create_dir(root.path().join("definitions")).unwrap();
        std::fs::write(root.path().join("definitions/x.json"), "{}").unwrap();
        let error = restore(&mut snapshots, root.path())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("no file defines ../definitions/x.json#/$defs/Item"),
            "{error}"
        );
    }
}

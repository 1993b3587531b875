//! Default arguments of operations, such as `defaults.search.type = "lite"`, for the command line.

use serde_json::{Map, Value};

use crate::operations::{find, nearest};
use exa_mcp_text::similar_names::{self, MIN_SIMILARITY};

/// The table of the configuration file.
pub(super) const DEFAULTS: &str = "defaults";

/// Reads the table: the arguments of each operation by its name. The dots of a name may be tables.
pub(super) fn read(table: Value) -> Result<Map<String, Value>, String> {
    let Value::Object(table) = table else {
        return Err(format!(
            "`{DEFAULTS}` must be a table such as {{ search = {{ numResults = 5 }} }}"
        ));
    };
    let mut found = Map::new();
    for (name, value) in table {
        collect(&name, value, &mut found)?;
    }
    Ok(found)
}

fn collect(name: &str, value: Value, found: &mut Map<String, Value>) -> Result<(), String> {
    let Value::Object(fields) = value else {
        return Err(unknown(
            name.rsplit_once('.').map_or(name, |(parent, _)| parent),
        ));
    };
    let Some(operation) = find(name) else {
        if fields.is_empty() {
            return Err(unknown(name));
        }
        for (inner, value) in fields {
            collect(&format!("{name}.{inner}"), value, found)?;
        }
        return Ok(());
    };
    let known = || operation.arguments.iter().map(|argument| argument.name);
    let mut own = Map::new();
    for (argument, value) in fields {
        let nested = format!("{name}.{argument}");
        if known().any(|name| name == argument) {
            own.insert(argument, value);
        } else if find(&nested).is_some() {
            collect(&nested, value, found)?;
        } else {
            let near = similar_names::most_similar(&argument, known(), MIN_SIMILARITY);
            let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(format!("`{name}` has no argument `{argument}`{hint}"));
        }
    }
    if !own.is_empty() {
        found.insert(name.to_owned(), Value::Object(own));
    }
    Ok(())
}

fn unknown(name: &str) -> String {
    let hint = nearest(name).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    format!("`{DEFAULTS}` names `{name}`, which is no operation{hint}")
}

#[allow(clippy::unwrap_used)]
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_operations_in_nested_tables() {
        let table = json!({"search": {"type": "fast"}, "items": {"list": {"limit": 5}}});
        let found = Value::from(read(table).unwrap());
        assert_eq!(
            found,
            json!({"search": {"type": "fast"}, "items.list": {"limit": 5}})
        );
    }

    #[test]
    fn suggests_operations_and_arguments() {
        let problem = |table| read(table).unwrap_err();
        assert!(problem(json!({"serch": {"type": "fast"}})).contains("`search`"));
        assert!(problem(json!({"search": {"numResult": 5}})).contains("`numResults`"));
    }
}

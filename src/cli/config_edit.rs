//! Edits the configuration file, and leaves everything else in it as it is.

use serde_json::Value as Json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::config::ValueType;
use crate::operations::all;

/// The table of the default arguments.
const DEFAULTS: &str = "defaults";

/// Sets or removes the value of a key in the text of a configuration file.
pub(super) fn edit(text: &str, key: &str, value: Option<Value>) -> Result<String, String> {
    let parsed = text.parse::<DocumentMut>();
    let mut document = parsed.map_err(|error| format!("invalid TOML: {}", error.message()))?;
    let path = path(document.as_table(), key);
    let Some((last, parents)) = path.split_last() else {
        return Ok(text.to_owned());
    };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for parent in parents {
        if value.is_none() && table.get(parent).is_none() {
            return Ok(text.to_owned());
        }
        let item = table.entry(parent).or_insert_with(|| {
            let mut table = Table::new();
            table.set_dotted(true);
            Item::Table(table)
        });
        table = item
            .as_table_like_mut()
            .ok_or_else(|| format!("`{parent}` is a plain value in the file, not a table"))?;
    }
    match (value, table.get_mut(last)) {
        (None, _) => {
            table.remove(last);
        }
        // The comment behind the value stays.
        (Some(mut value), Some(Item::Value(known))) => {
            *value.decor_mut() = known.decor().clone();
            *known = value;
        }
        (Some(value), _) => {
            table.insert(last, Item::Value(value));
        }
    }
    Ok(document.to_string())
}

/// Returns the path of a key. The name of an operation is one key if the file writes it so, else its words are tables.
fn path<'k>(document: &Table, key: &'k str) -> Vec<&'k str> {
    let Some(rest) = key
        .strip_prefix(DEFAULTS)
        .and_then(|it| it.strip_prefix('.'))
    else {
        return vec![key];
    };
    let defaults = document.get(DEFAULTS).and_then(Item::as_table_like);
    let quoted = all().iter().find_map(|operation| {
        let argument = rest.strip_prefix(operation.name)?.strip_prefix('.')?;
        let is_key = defaults?.contains_key(operation.name);
        is_key.then(|| (rest.get(..operation.name.len()), argument))
    });
    match quoted {
        Some((Some(operation), argument)) => [DEFAULTS, operation]
            .into_iter()
            .chain(argument.split('.'))
            .collect(),
        _ => key.split('.').collect(),
    }
}

/// Returns a value of a setting as TOML.
pub(super) fn setting_value(value_type: ValueType, text: &str) -> Result<Value, String> {
    let text = text.trim();
    Ok(match value_type {
        ValueType::Integer => match text.parse::<u64>() {
            Ok(number) => i64::try_from(number)
                .map_err(|_| format!("{number} is too large"))?
                .into(),
            Err(_) => return Err(format!("it must be a whole number; got `{text}`")),
        },
        ValueType::Boolean => match text {
            "true" | "1" => true.into(),
            "false" | "0" => false.into(),
            _ => return Err(format!("it must be true or false; got `{text}`")),
        },
        ValueType::Dollars => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) if number.is_finite() => number.into(),
            _ => {
                return Err(format!(
                    "it must be an amount of dollars, such as 5 or 0.5; got `{text}`"
                ));
            }
        },
        ValueType::Table => match serde_json::from_str::<Json>(text) {
            Ok(table @ Json::Object(_)) => toml_value(&table)?,
            _ => return Err(format!("it must be a JSON object; got `{text}`")),
        },
        ValueType::Text | ValueType::List | ValueType::Paths => text.into(),
    })
}

/// Returns a default argument as TOML: numbers, booleans, lists and objects are JSON.
pub(super) fn default_value(text: &str) -> Result<Value, String> {
    match serde_json::from_str::<Json>(text) {
        Ok(value) => toml_value(&value),
        Err(_) => Ok(text.into()),
    }
}

fn toml_value(value: &Json) -> Result<Value, String> {
    Ok(match value {
        Json::Null => return Err("null has no form in TOML".to_owned()),
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => return Err(format!("{number} is too large")),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(list) => {
            let list: Result<Array, String> = list.iter().map(toml_value).collect();
            list?.into()
        }
        Json::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| Ok((name.as_str(), toml_value(value)?)));
            let fields: Result<InlineTable, String> = fields.collect();
            fields?.into()
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn set(text: &str, key: &str, value: &str) -> String {
        edit(text, key, Some(default_value(value).unwrap())).unwrap()
    }

    #[test]
    fn keeps_everything_else() {
        let text =
            "# keys\ncache_ttl = 5 # seconds\n\n[defaults.search]\ntype = \"fast\" # cheap\n";
        let changed = set(text, "cache_ttl", "10");
        assert_eq!(changed, text.replace('5', "10"));
        let changed = set(text, "defaults.search.type", "deep");
        assert_eq!(changed, text.replace("fast", "deep"));
        let removed = edit(text, "defaults.search.type", None).unwrap();
        assert_eq!(
            removed,
            "# keys\ncache_ttl = 5 # seconds\n\n[defaults.search]\n"
        );
    }

    #[test]
    fn writes_dotted_keys() {
        assert_eq!(
            set("", "defaults.search.type", "fast"),
            "defaults.search.type = \"fast\"\n"
        );
        let nested = set("a = 1\n", "defaults.items.list.limit", "5");
        assert_eq!(nested, "a = 1\ndefaults.items.list.limit = 5\n");
        let quoted = "[defaults]\n\"items.list\" = { limit = 5 }\n";
        let changed = set(quoted, "defaults.items.list.limit", "7");
        assert_eq!(changed, quoted.replace('5', "7"));
    }

    #[test]
    fn replaces_values_of_several_lines() {
        let changed = set("list = [\n  \"a\",\n  \"b\"\n]\nb = 1\n", "list", "c");
        assert_eq!(changed, "list = \"c\"\nb = 1\n");
    }

    #[test]
    fn names_the_expected_type() {
        let problem = |value_type, text| setting_value(value_type, text).unwrap_err();
        assert!(problem(ValueType::Integer, "abc").contains("whole number"));
        assert!(problem(ValueType::Boolean, "maybe").contains("true or false"));
        assert!(problem(ValueType::Dollars, "abc").contains("dollars"));
        assert!(edit("a = [", "b", Some(1.into())).is_err());
    }
}

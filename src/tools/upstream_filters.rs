//! Filters that Exa applies itself.

use serde_json::{Map, Value, json};

use super::discovery;
use crate::operations::input_schema;
use crate::render::Filters;
use exa_mcp_model::Operation;

/// Filters and the equivalent arguments of operations.
const ARGUMENTS: [(&str, &str); 8] = [
    ("afterDate", "startPublishedDate"),
    ("afterDate", "createdAfter"),
    ("beforeDate", "endPublishedDate"),
    ("beforeDate", "createdBefore"),
    ("includeDomains", "includeDomains"),
    ("excludeDomains", "excludeDomains"),
    ("maxResults", "numResults"),
    ("maxResults", "limit"),
];

/// Adds the filters for which the operation has arguments, unless the caller set those. Returns the added filters.
/// `defaulted` are arguments set by the tool, not by the caller.
pub(super) fn send(
    operation: &'static Operation,
    filters: &Map<String, Value>,
    arguments: &mut Map<String, Value>,
    defaulted: &[String],
) -> Vec<String> {
    let mut sent: Vec<String> = Vec::new();
    let given = |argument: &str, arguments: &Map<String, Value>| {
        let mut names = arguments.keys();
        names.any(|name| discovery::is_same_name(name, argument))
    };
    let own = operation.behavior.filters.iter();
    let own = own.map(|(filter, argument)| (filter.as_str(), argument.as_str()));
    for (filter, argument) in own.chain(ARGUMENTS) {
        let Some(value) = filters.get(filter) else {
            continue;
        };
        // Other filters remove results here, so fewer results from Exa might be too few.
        let others = filters.keys().filter(|other| *other != "maxResults");
        if filter == "maxResults" && others.clone().any(|other| !sent.contains(other)) {
            continue;
        }
        let schema = input_schema(operation).pointer(&format!("/properties/{argument}"));
        // The default number of results of a tool may be overridden, unlike its domains.
        let is_default = filter == "maxResults" && defaulted.iter().any(|name| name == argument);
        let Some(schema) = schema.filter(|_| is_default || !given(argument, arguments)) else {
            continue;
        };
        let Some(value) = argument_value(filter, value, filters, schema) else {
            continue;
        };
        arguments.insert(argument.to_owned(), value);
        sent.push(filter.to_owned());
    }
    sent
}

/// Converts the value of a filter to that of the argument; `None` if it is out of range.
fn argument_value(
    filter: &str,
    value: &Value,
    filters: &Map<String, Value>,
    schema: &Value,
) -> Option<Value> {
    let parse = || Filters::parse(filters).ok();
    match filter {
        "maxResults" => {
            let max = schema.get("maximum").and_then(Value::as_f64);
            let wanted = value.as_f64()?;
            (wanted <= max.unwrap_or(100.0)).then(|| value.clone())
        }
        "afterDate" => Some(json!(parse()?.after_timestamp()?)),
        "beforeDate" => Some(json!(parse()?.before_timestamp()?)),
        _ => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::operations::find;

    fn sent(operation: &str, filters: Value, arguments: Value) -> (Value, Vec<String>) {
        let mut arguments = arguments.as_object().unwrap().clone();
        let sent = send(
            find(operation).unwrap(),
            filters.as_object().unwrap(),
            &mut arguments,
            &[],
        );
        (arguments.into(), sent)
    }

    #[test]
    fn filters_override_the_default_number_of_results() {
        let defaulted = ["numResults".to_owned(), "includeDomains".to_owned()];
        for (filters, numbers) in [
            (json!({"maxResults": 3}), 3),
            (json!({"maxResults": 25}), 25),
            (json!({"maxResults": 5_000}), 10),
            (json!({"maxResults": 3, "minScore": 0.5}), 10),
            (json!({"includeDomains": ["b.example"]}), 10),
        ] {
            let mut arguments = Map::from_iter([
                ("numResults".to_owned(), json!(10)),
                ("includeDomains".to_owned(), json!(["a.example"])),
            ]);
            let given = filters.as_object().unwrap();
            send(find("search").unwrap(), given, &mut arguments, &defaulted);
            assert_eq!(
                arguments.get("numResults"),
                Some(&json!(numbers)),
                "{filters}"
            );
            assert_eq!(arguments.get("includeDomains"), Some(&json!(["a.example"])));
        }
    }

    #[test]
    fn sends_filters_that_exa_supports() {
        let filters = json!({"afterDate": "2024-01-01", "beforeDate": "2024-12-31", "maxResults": 3,
            "includeDomains": ["a.example"]});
        let (arguments, names) = sent("search", filters, json!({"query": "q"}));
        assert_eq!(
            arguments,
            json!({
                "query": "q", "startPublishedDate": "2024-01-01T00:00:00.000Z",
                "endPublishedDate": "2024-12-31T23:59:59.999Z", "includeDomains": ["a.example"], "numResults": 3,
            })
        );
        assert_eq!(
            names,
            ["afterDate", "beforeDate", "includeDomains", "maxResults"]
        );
    }

    #[test]
    fn sends_dates_under_the_names_of_the_operation() {
        let filters =
            json!({"afterDate": "2024-01-01", "beforeDate": "2024-12-31", "maxResults": 3});
        let (arguments, names) = sent("events.list", filters.clone(), json!({}));
        assert_eq!(
            arguments,
            json!({"createdAfter": "2024-01-01T00:00:00.000Z", "createdBefore": "2024-12-31T23:59:59.999Z", "limit": 3})
        );
        assert_eq!(names, ["afterDate", "beforeDate", "maxResults"]);
        let monitor = json!({"monitorId": "m"});
        let (arguments, names) = sent(
            "agent.monitors.changes.list",
            filters.clone(),
            monitor.clone(),
        );
        assert_eq!(
            arguments,
            json!({"monitorId": "m", "since": "2024-01-01T00:00:00.000Z"})
        );
        assert_eq!(names, ["afterDate"]);
        let (arguments, names) = sent("agent.monitors.entities.list", filters, monitor.clone());
        assert_eq!(arguments, monitor);
        assert!(names.is_empty());
    }

    #[test]
    fn limits_results_only_without_local_filters() {
        let (arguments, names) = sent(
            "search",
            json!({"maxResults": 3, "minScore": 0.5}),
            json!({"query": "q"}),
        );
        assert_eq!(arguments, json!({"query": "q"}));
        assert!(names.is_empty());
    }

    #[test]
    fn keeps_the_arguments_of_the_caller() {
        let (arguments, names) = sent(
            "search",
            json!({"maxResults": 3}),
            json!({"query": "q", "numResults": 50}),
        );
        assert_eq!(arguments, json!({"query": "q", "numResults": 50}));
        assert!(names.is_empty());
        let (arguments, names) = sent(
            "items.list",
            json!({"maxResults": 5000, "afterDate": "2024-01-01"}),
            json!({"websetId": "w"}),
        );
        assert_eq!(arguments, json!({"websetId": "w"}));
        assert!(names.is_empty());
    }
}

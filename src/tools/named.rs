//! Named tools, whose flat arguments are mapped to those of one operation.

use serde_json::{Map, Value};

use super::{discovery, path};
use crate::operations::validation::{self, values_at};
use crate::render::ContentLevel;
use exa_mcp_model::{ArgumentMapping, NamedToolPlan};

/// Returns the operation to call and its arguments. Notes arguments that others replace.
pub(super) fn arguments<'a>(
    plan: &'a NamedToolPlan,
    mut given: Map<String, Value>,
    level: ContentLevel,
    notes: &mut Vec<String>,
) -> (&'a str, Map<String, Value>) {
    if let Some(instead) = &plan.instead
        && let Some(value) = given
            .shift_remove(&instead.given)
            .filter(|value| !value.is_null())
    {
        let only = Map::from_iter([(instead.given.clone(), value)]);
        for name in given.keys() {
            notes.push(format!("`{name}` was ignored beside `{}`", instead.given));
        }
        return (&instead.operation, only);
    }
    let mut arguments = Map::new();
    let mut switches = Vec::new();
    for step in &plan.moves {
        let Some(value) = given.shift_remove(&step.from) else {
            continue;
        };
        match &step.switch {
            Some(on) => switches.push((step.to.as_str(), on, value == Value::Bool(true))),
            None => {
                let meant = value.as_str().and_then(|value| step.values.get(value));
                let value = meant.cloned().unwrap_or(value);
                path::set(&mut arguments, &step.to, value);
            }
        }
    }
    // Arguments unknown to the tool may be arguments of the operation.
    for (name, value) in given {
        for path in path::join(&mut arguments, name, value) {
            notes.push(format!("`{path}` was ignored: another argument sets it"));
        }
    }
    for (to, on, _) in switches.iter().filter(|(.., wanted)| *wanted) {
        if !path::has(&arguments, to) {
            path::set(&mut arguments, to, (*on).clone());
        }
    }
    path::fill(&mut arguments, &plan.defaults);
    if let Some(wanted) = plan.levels.get(level.name()) {
        path::fill(&mut arguments, wanted);
    }
    for (path, fixed) in &plan.fixed {
        if path::get(&arguments, path).is_some_and(|given| given != fixed) {
            notes.push(format!(
                "`{path}` was ignored: this tool always uses {fixed}"
            ));
        }
    }
    path::force(&mut arguments, &plan.fixed);
    // A switch that is off also removes the default.
    for (to, ..) in switches.iter().filter(|(.., wanted)| !*wanted) {
        path::take(&mut arguments, to);
    }
    (&plan.operation, arguments)
}

/// Returns the arguments with values of the tool that the operation does not have. Exa adds no values to those.
///
/// A tool that lists a part of the values, or all of them in another order, means those of the operation.
pub(super) fn own_enums<'p>(
    plan: &'p NamedToolPlan,
    tool: &Value,
    operation: &Value,
) -> Vec<&'p str> {
    let is_own = |step: &&'p ArgumentMapping| {
        let known = values_at(operation, &step.to);
        let listed = values_at(tool, &step.from);
        listed.iter().any(|value| !known.contains(value))
    };
    let own = plan.moves.iter().filter(is_own);
    own.map(|step| step.from.as_str()).collect()
}

/// Returns the arguments that are set by defaults of the tool, not by the caller.
pub(super) fn defaulted_arguments(plan: &NamedToolPlan, given: &Map<String, Value>) -> Vec<String> {
    let goes_to = |name: &str, to: &str| {
        let mut moves = plan.moves.iter();
        moves.any(|step| step.from == name && step.to == to) || discovery::is_same_name(name, to)
    };
    let is_free = |to: &&String| !given.keys().any(|name| goes_to(name, to));
    plan.defaults.keys().filter(is_free).cloned().collect()
}

/// Moves `category:x` from the query into an argument and appends the suffix of the tool.
pub(super) fn rewrite_query(
    plan: &NamedToolPlan,
    arguments: &mut Map<String, Value>,
    categories: &[&str],
) {
    let Some(Value::String(query)) = arguments.get("query").cloned() else {
        return;
    };
    let mut query = query;
    if plan.category_in_query
        && let Some((rest, category)) = take_category(&query, categories)
        // Beside another category, the words of the query are meant for the search.
        && arguments
            .get("category")
            .is_none_or(|given| given.is_null() || *given == *category)
    {
        query = rest;
        arguments.insert("category".to_owned(), Value::String(category));
    }
    if let Some(suffix) = &plan.suffix {
        query = format!("{} {suffix}", query.trim_end());
    }
    arguments.insert("query".to_owned(), Value::String(query));
}

/// Extracts `category:news` from a query, if `news` is a category. Returns the rest of the query and the category.
fn take_category(query: &str, categories: &[&str]) -> Option<(String, String)> {
    const PREFIX: &str = "category:";
    let lower = query.to_ascii_lowercase();
    // It must not be the end of a longer word or a part of a URL.
    let is_word = |start: &usize| {
        let before = lower
            .get(..*start)
            .and_then(|before| before.chars().next_back());
        before.is_none_or(|before| before.is_whitespace() || "([\"'".contains(before))
    };
    let start = lower
        .match_indices(PREFIX)
        .map(|(at, _)| at)
        .find(is_word)?;
    let before = query.get(..start)?;
    let after = query
        .get(start + PREFIX.len()..)?
        .trim_start_matches(['"', '\'', ' ']);
    let mut known = validation::value_synonyms(categories);
    let own = categories.iter().map(|category| (*category, *category));
    known.extend(own);
    known.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
    let (category, meant) = known.into_iter().find(|(category, _)| {
        let head = after.get(..category.len());
        let next = after
            .get(category.len()..)
            .and_then(|rest| rest.chars().next());
        head.is_some_and(|head| head.eq_ignore_ascii_case(category))
            && next.is_none_or(|next| !next.is_alphanumeric())
    })?;
    let rest = after.get(category.len()..)?.trim_start_matches(['"', '\'']);
    let words: Vec<&str> = before
        .split_whitespace()
        .chain(rest.split_whitespace())
        .collect();
    // A query that consists of a category only stays unchanged.
    (!words.is_empty()).then(|| (words.join(" "), meant.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    fn plan() -> NamedToolPlan {
        serde_json::from_value(json!({
            "operation": "search",
            "moves": [
                {"from": "query", "to": "query", "switch": null},
                {"from": "maxCharacters", "to": "contents.text.maxCharacters", "switch": null},
                {"from": "enableHighlights", "to": "contents.highlights", "switch": true}],
            "defaults": {"numResults": 10, "contents.text": true, "contents.highlights": true},
            "fixed": {"type": "fast"},
            "suffix": "company",
            "categoryInQuery": true,
            "instead": {"given": "runId", "operation": "agent.runs.get"},
        }))
        .unwrap()
    }

    fn arguments_of(given: Value) -> (String, Value) {
        let Value::Object(given) = given else {
            panic!()
        };
        let plan = plan();
        let (operation, arguments) =
            arguments(&plan, given, ContentLevel::Standard, &mut Vec::new());
        (operation.to_owned(), arguments.into())
    }

    #[test]
    fn fills_in_defaults_and_enforces_fixed_values() {
        assert_eq!(
            arguments_of(json!({"query": "x", "type": "deep", "numResults": 3})),
            (
                "search".to_owned(),
                json!({"query": "x", "type": "fast", "numResults": 3,
                    "contents": {"text": true, "highlights": true}})
            )
        );
    }

    #[test]
    fn does_not_report_arguments_of_the_caller_as_defaulted() {
        let of = |given: Value| defaulted_arguments(&plan(), given.as_object().unwrap());
        let contents = ["contents.text", "contents.highlights"];
        assert_eq!(of(json!({"query": "x", "num_results": 3})), contents);
        assert!(of(json!({"query": "x"})).contains(&"numResults".to_owned()));
    }

    #[test]
    fn a_detail_replaces_a_scalar_default() {
        let (_, arguments) = arguments_of(json!({"query": "x", "maxCharacters": 5}));
        assert_eq!(arguments["contents"]["text"], json!({"maxCharacters": 5}));
    }

    #[test]
    fn a_disabled_switch_removes_the_default() {
        let (_, arguments) = arguments_of(json!({"query": "x", "enableHighlights": false}));
        assert_eq!(arguments["contents"], json!({"text": true}));
    }

    #[test]
    fn calls_the_alternative_operation() {
        assert_eq!(
            arguments_of(json!({"runId": "agent_run_1", "query": "x"})),
            ("agent.runs.get".to_owned(), json!({"runId": "agent_run_1"}))
        );
    }

    #[test]
    fn keeps_a_category_in_the_query_beside_another_one() {
        let given = json!({"query": "category:news fusion", "category": "people"});
        let mut arguments = given.as_object().unwrap().clone();
        rewrite_query(&plan(), &mut arguments, &["news", "people"]);
        assert_eq!(arguments["query"], "category:news fusion company");
        assert_eq!(arguments["category"], "people");
    }

    #[test]
    fn moves_a_category_from_the_query_into_an_argument() {
        let categories = ["news", "publication", "personal site"];
        let cases = [
            ("category:news fusion", "fusion company", Some("news")),
            (
                "fusion category:research paper 2026",
                "fusion 2026 company",
                Some("publication"),
            ),
            (
                "fusion Category:\"personal site\"",
                "fusion company",
                Some("personal site"),
            ),
            (
                "fusion category:newsletter",
                "fusion category:newsletter company",
                None,
            ),
            ("category:news", "category:news company", None),
            (
                "category:paper qubits",
                "qubits company",
                Some("publication"),
            ),
            (
                "what does subcategory:news mean",
                "what does subcategory:news mean company",
                None,
            ),
            (
                "https://a.example/?category:news x category:news",
                "https://a.example/?category:news x company",
                Some("news"),
            ),
        ];
        for (query, expected, category) in cases {
            let mut arguments = Map::from_iter([("query".to_owned(), json!(query))]);
            rewrite_query(&plan(), &mut arguments, &categories);
            assert_eq!(arguments["query"], json!(expected));
            assert_eq!(
                arguments.get("category").and_then(Value::as_str),
                category,
                "{query}"
            );
        }
    }
}

//! Options: arguments of the tools, not of the operations, that control how a result is rendered.

use std::sync::LazyLock;
use std::time::Duration;

use exa_mcp_text::similar_names;
use serde_json::{Map, Value, json};

use super::discovery;
use super::signature::typed_signature;
use crate::operations::validation;
use crate::render::{ContentLevel, OutputFormat, View, ViewError};
use exa_mcp_generated::tools::OPTIONS;
use exa_mcp_model::Operation;

/// Minimum similarity of a misspelled option.
const MIN_SIMILARITY: f64 = 0.93;

/// Maximum tokens of the signature of all options.
const MAX_SIGNATURE_TOKENS: usize = 400;

static SCHEMA: LazyLock<validation::InputSchema> = LazyLock::new(|| {
    validation::InputSchema::new(serde_json::from_str(OPTIONS).unwrap_or_default())
});

/// Returns the names of all options.
fn known() -> impl Iterator<Item = &'static str> + Clone {
    let properties = SCHEMA.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(|map| map.keys().map(String::as_str))
}

/// Returns the options with their types, which stand beside the parameters of a call.
pub(super) fn signature() -> String {
    typed_signature("beside params: ", &SCHEMA, MAX_SIGNATURE_TOKENS)
}

/// Returns whether this is the name of an option.
pub(super) fn is_option(name: &str) -> bool {
    known().any(|option| option == name)
}

/// The options of a call.
#[derive(Debug, Clone, Default)]
pub(super) struct Options(Map<String, Value>);

impl Options {
    /// Takes the options out of the arguments. `own` returns whether the tool itself has an argument. Reading a cached
    /// result needs no arguments of the tool, so there options take precedence.
    pub(super) fn take(
        given: &mut Map<String, Value>,
        own: impl Fn(&str) -> bool,
        corrections: &mut Vec<String>,
    ) -> Self {
        let reads_cache = given.contains_key("cache_id") || given.contains_key("cacheId");
        let names: Vec<String> = given.keys().cloned().collect();
        let mut options = Self::default();
        for name in names {
            let Some(option) = resolve_option(&name, reads_cache, &own) else {
                continue;
            };
            if let Some(value) = given.shift_remove(&name).filter(|value| !value.is_null()) {
                if options.0.get(&option).is_some_and(|known| *known != value) {
                    corrections.push(format!(
                        "`{name}` was ignored: `{option}` has another value"
                    ));
                } else if option != name {
                    corrections.push(format!("`{name}` was read as `{option}`"));
                }
                options.0.entry(option).or_insert(value);
            }
        }
        options
    }

    /// Takes options from the arguments of an operation; those given beside them take precedence.
    pub(super) fn take_more(
        &mut self,
        given: &mut Map<String, Value>,
        own: impl Fn(&str) -> bool,
        corrections: &mut Vec<String>,
    ) {
        for (name, value) in Self::take(given, own, corrections).0 {
            corrections.push(match self.0.get(&name) {
                Some(known) if *known != value => {
                    format!("`{name}` inside the arguments was ignored: it has another value beside them")
                }
                _ => format!("`{name}` belongs beside the arguments, not inside"),
            });
            self.0.entry(name).or_insert(value);
        }
    }

    /// Validates and corrects the values.
    pub(super) fn check(
        self,
        corrections: &mut Vec<String>,
    ) -> Result<Self, Box<validation::ValidationError>> {
        if self.0.is_empty() {
            return Ok(self);
        }
        let subject = validation::ArgumentSpec::new(&SCHEMA);
        let given = self.0.clone();
        match validation::validate(&subject, self.0.into()) {
            Ok(checked) => {
                corrections.extend(checked.corrections);
                Ok(Self(checked.arguments))
            }
            Err(mut error) => {
                error.example = Box::new(example(&given));
                Err(Box::new(error))
            }
        }
    }

    /// Adds the problems of the options to an error about the arguments.
    pub(super) fn add_problems(
        &self,
        mut error: validation::ValidationError,
    ) -> validation::ValidationError {
        if let Err(more) = self.clone().check(&mut Vec::new()) {
            error.problems.extend(more.problems);
            error.missing.clear();
            if let (Value::Object(call), Value::Object(options)) =
                (&mut *error.example, *more.example)
            {
                call.extend(options);
            }
        }
        error
    }

    /// Returns the view that the options describe; `default` are level and format if none is named.
    pub(super) fn view(
        &self,
        default: (ContentLevel, OutputFormat),
    ) -> Result<View, Box<validation::ValidationError>> {
        View::parse(&self.0, default).map_err(|error| Box::new(view_problem(&error)))
    }

    /// Returns the requested level.
    pub(super) fn level(&self) -> Option<ContentLevel> {
        self.text("content_level").and_then(ContentLevel::from_name)
    }

    /// Returns whether the text is to be JSON.
    pub(super) fn wants_json(&self) -> bool {
        self.text("output_format").and_then(OutputFormat::from_name) == Some(OutputFormat::Json)
    }

    /// Returns the id of the cached result to read.
    pub(super) fn cache_id(&self) -> Option<&str> {
        self.text("cache_id")
    }

    /// Returns whether a cached result is to be read, even if its id is malformed.
    pub(super) fn reads_cache(&self) -> bool {
        self.0.contains_key("cache_id")
    }

    /// Returns whether the cached result of the same request must not be used.
    pub(super) fn fresh(&self) -> bool {
        self.flag("fresh")
    }

    /// Returns how long to wait for the end of the job that the call starts.
    pub(super) fn wait(&self) -> Duration {
        let seconds = self.0.get("wait_seconds").and_then(Value::as_u64);
        Duration::from_secs(seconds.unwrap_or(0))
    }

    /// Returns whether the caller sets the waiting time.
    pub(super) fn waits(&self) -> bool {
        self.0.contains_key("wait_seconds")
    }

    /// Returns whether all pages of a list are requested.
    pub(super) fn all(&self) -> bool {
        self.flag("all")
    }

    /// Returns how many results are skipped.
    pub(super) fn offset(&self) -> usize {
        let offset = self.0.get("offset").and_then(Value::as_u64);
        offset.map_or(0, |offset| usize::try_from(offset).unwrap_or(usize::MAX))
    }

    /// Requests all pages of a list, but at most so many entries.
    pub(super) fn read_all(&mut self, limit: u64) {
        self.0.insert("all".to_owned(), json!(true));
        self.0.insert("limit".to_owned(), json!(limit));
    }

    /// Returns the maximum number of results that can be shown. `sent` are the filters applied by Exa. Any other filter
    /// may remove results, so that there is no maximum.
    pub(super) fn max_useful_results(&self, sent: &[String]) -> Option<usize> {
        let is_here = |filter: &String| filter != "maxResults" && !sent.contains(filter);
        if self.filters().is_some_and(|all| all.keys().any(is_here)) {
            return None;
        }
        let number = |value: Option<&Value>| usize::try_from(value?.as_u64()?).ok();
        let offset = self.offset();
        let limit = number(self.0.get("limit")).map(|limit| limit.saturating_add(offset));
        let filter = self.filters().and_then(|all| number(all.get("maxResults")));
        limit.into_iter().chain(filter).min()
    }

    /// Returns whether filters are given, valid or not.
    pub(super) fn has_filters(&self) -> bool {
        self.0.contains_key("filters")
    }

    /// Returns the filters.
    pub(super) fn filters(&self) -> Option<&Map<String, Value>> {
        self.0.get("filters").and_then(Value::as_object)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool) == Some(true)
    }
}

/// Converts a view error to a validation error.
pub(super) fn view_problem(error: &ViewError) -> validation::ValidationError {
    let path = match error {
        ViewError::Index { .. } => "index".to_owned(),
        ViewError::Date { filter, .. } => format!("filters.{filter}"),
    };
    let given = match error {
        ViewError::Index { .. } => Map::from_iter([("index".to_owned(), Value::Null)]),
        ViewError::Date { .. } => Map::from_iter([("filters".to_owned(), Value::Null)]),
    };
    validation::ValidationError {
        problems: vec![validation::ArgumentProblem {
            path,
            message: error.to_string(),
        }],
        example: Box::new(example(&given)),
        hints: Vec::new(),
        missing: Vec::new(),
    }
}

/// Returns valid values for the given options.
fn example(given: &Map<String, Value>) -> Value {
    let valid = json!({
        "content_level": "summary", "output_format": "json", "cache_id": "r_…", "index": 1, "offset": 0,
        "limit": 5, "max_tokens": 5000, "fresh": true, "wait_seconds": 60, "all": true, "fields": ["title", "url"],
        "filters": {"afterDate": "2024-01-31", "includeDomains": ["example.com"], "maxResults": 5},
    });
    let Value::Object(mut valid) = valid else {
        return Value::Null;
    };
    valid.retain(|name, _| given.contains_key(name));
    Value::Object(valid)
}

/// Returns the option that a name stands for.
fn resolve_option(name: &str, reads_cache: bool, own: &impl Fn(&str) -> bool) -> Option<String> {
    if own(name) && !(reads_cache && known().any(|option| option == name)) {
        return None;
    }
    let exact = discovery::resolve_name("option", name, known(), &mut Vec::new());
    exact.or_else(|| {
        let near = similar_names::most_similar(name, known(), MIN_SIMILARITY)?;
        (name.len() > 5).then(|| near.to_owned())
    })
}

/// Returns whether an operation has an argument with this name.
pub(super) fn is_argument(operation: &Operation, name: &str) -> bool {
    let mut arguments = operation.arguments.iter();
    arguments.any(|argument| argument.name == name || argument.aliases.contains(&name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn take(given: Value, own: &[&str]) -> (Map<String, Value>, Value, Vec<String>) {
        let mut given = given.as_object().unwrap().clone();
        let mut corrections = Vec::new();
        let options = Options::take(&mut given, |name| own.contains(&name), &mut corrections);
        (options.0, given.into(), corrections)
    }

    #[test]
    fn separates_options_from_arguments() {
        let (options, left, _) = take(
            json!({"query": "q", "content_level": "full", "limit": 5}),
            &["limit"],
        );
        assert_eq!(Value::from(options), json!({"content_level": "full"}));
        assert_eq!(left, json!({"query": "q", "limit": 5}));
        let (options, left, _) = take(
            json!({"query": "q", "cache_id": "r", "limit": 5}),
            &["limit"],
        );
        assert_eq!(Value::from(options), json!({"cache_id": "r", "limit": 5}));
        assert_eq!(left, json!({"query": "q"}));
    }

    #[test]
    fn computes_the_maximum_number_of_useful_results() {
        for (given, sent, max) in [
            (json!({}), None, None),
            (json!({"filters": {"maxResults": 5}}), None, Some(5)),
            (json!({"limit": 5, "offset": 2}), None, Some(7)),
            (
                json!({"limit": 5, "filters": {"maxResults": 3}}),
                None,
                Some(3),
            ),
            (
                json!({"filters": {"maxResults": 5, "titleContains": "x"}}),
                None,
                None,
            ),
            (json!({"limit": 5, "filters": {"minScore": 1}}), None, None),
            (
                json!({"filters": {"maxResults": 5, "afterDate": "2024"}}),
                Some("afterDate"),
                Some(5),
            ),
        ] {
            let options = Options(given.as_object().unwrap().clone());
            let sent: Vec<String> = sent.into_iter().map(str::to_owned).collect();
            assert_eq!(options.max_useful_results(&sent), max, "{given}");
        }
    }

    #[test]
    fn corrects_misspelled_options() {
        let (options, _, corrections) = take(
            json!({"contentLevel": "full", "output_fromat": "json"}),
            &[],
        );
        assert_eq!(
            Value::from(options),
            json!({"content_level": "full", "output_format": "json"})
        );
        assert_eq!(corrections.len(), 2);
    }

    #[test]
    fn explains_invalid_values() {
        for (given, part) in [
            (json!({"content_level": "everything"}), "summary"),
            (json!({"max_tokens": 0}), "at least 1"),
            (json!({"filters": {"minScor": 1}}), "minScore"),
            (json!({"index": 0}), "at least 1"),
        ] {
            let options = Options(given.as_object().unwrap().clone());
            let error = options.check(&mut Vec::new()).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
            assert_eq!(error.example.as_object().unwrap().len(), 1);
        }
        let options = Options(
            json!({"filters": {"afterDate": "later"}})
                .as_object()
                .unwrap()
                .clone(),
        );
        let error = options
            .view((ContentLevel::Standard, OutputFormat::Markdown))
            .unwrap_err();
        assert_eq!(error.problems[0].path, "filters.afterDate");
    }
}

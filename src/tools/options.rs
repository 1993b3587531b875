//! Arguments that say how an answer is shown. They belong to the tools, not to the operations.

use std::sync::LazyLock;
use std::time::Duration;

use exa_mcp_text::similar_names;
use serde_json::{Map, Value, json};

use super::discovery;
use crate::operations::validation;
use crate::render::{Level, View, ViewError};
use exa_mcp_generated::tools::OPTIONS;
use exa_mcp_model::Operation;

/// A name this close to an option is one.
const CLOSE: f64 = 0.93;

static SCHEMA: LazyLock<validation::InputSchema> = LazyLock::new(|| {
    validation::InputSchema::new(serde_json::from_str(OPTIONS).unwrap_or_default())
});

/// The options by name.
fn known() -> impl Iterator<Item = &'static str> + Clone {
    let properties = SCHEMA.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(|map| map.keys().map(String::as_str))
}

/// What a caller wants to see.
#[derive(Debug, Clone, Default)]
pub(super) struct Options(Map<String, Value>);

impl Options {
    /// Takes the options out of arguments; `own` says which names the tool itself has. A look at a
    /// kept answer needs no arguments of the tool, so there every name is an option's.
    pub(super) fn take(
        given: &mut Map<String, Value>,
        own: impl Fn(&str) -> bool,
        mended: &mut Vec<String>,
    ) -> Self {
        let again = given.contains_key("cache_id") || given.contains_key("cacheId");
        let names: Vec<String> = given.keys().cloned().collect();
        let mut options = Self::default();
        for name in names {
            let Some(option) = meant(&name, again, &own) else {
                continue;
            };
            if let Some(value) = given.shift_remove(&name).filter(|value| !value.is_null()) {
                if option != name {
                    mended.push(format!("`{name}` was read as `{option}`"));
                }
                options.0.entry(option).or_insert(value);
            }
        }
        options
    }

    /// Takes options that stand among the arguments of an operation; those beside them count more.
    pub(super) fn take_more(
        &mut self,
        given: &mut Map<String, Value>,
        own: impl Fn(&str) -> bool,
        mended: &mut Vec<String>,
    ) {
        for (name, value) in Self::take(given, own, mended).0 {
            mended.push(format!(
                "`{name}` stands beside the arguments, not among them"
            ));
            self.0.entry(name).or_insert(value);
        }
    }

    /// Puts the values right or says what is wrong with them.
    pub(super) fn check(
        self,
        mended: &mut Vec<String>,
    ) -> Result<Self, Box<validation::ValidationError>> {
        if self.0.is_empty() {
            return Ok(self);
        }
        let subject = validation::ArgumentSpec::new(&SCHEMA);
        let given = self.0.clone();
        match validation::validate(&subject, self.0.into()) {
            Ok(checked) => {
                mended.extend(checked.corrections);
                Ok(Self(checked.arguments))
            }
            Err(mut refused) => {
                refused.example = Box::new(example(&given));
                Err(Box::new(refused))
            }
        }
    }

    /// A refusal of the arguments, with what is wrong with the options beside them.
    pub(super) fn refusing(
        &self,
        mut refused: validation::ValidationError,
    ) -> validation::ValidationError {
        if let Err(more) = self.clone().check(&mut Vec::new()) {
            refused.problems.extend(more.problems);
            refused.missing.clear();
            if let (Value::Object(call), Value::Object(options)) =
                (&mut *refused.example, *more.example)
            {
                call.extend(options);
            }
        }
        refused
    }

    /// The view they describe; `usual` is the level for callers that name none.
    pub(super) fn view(&self, usual: Level) -> Result<View, Box<validation::ValidationError>> {
        View::read(&self.0, usual).map_err(|error| Box::new(unfit(&error)))
    }

    /// The level that was asked for.
    pub(super) fn level(&self) -> Option<Level> {
        self.text("content_level").and_then(Level::named)
    }

    /// Whether the text is to be JSON.
    pub(super) fn wants_json(&self) -> bool {
        self.text("output_format") == Some("json")
    }

    /// The kept answer to look at.
    pub(super) fn cache_id(&self) -> Option<&str> {
        self.text("cache_id")
    }

    /// Whether a kept answer is to be looked at, even if its id turns out to be none.
    pub(super) fn looks_back(&self) -> bool {
        self.0.contains_key("cache_id")
    }

    /// Whether a kept answer to the same question will not do.
    pub(super) fn fresh(&self) -> bool {
        self.flag("fresh")
    }

    /// How long to wait for the end of work that a call starts.
    pub(super) fn wait(&self) -> Duration {
        let seconds = self.0.get("wait_seconds").and_then(Value::as_u64);
        Duration::from_secs(seconds.unwrap_or(0))
    }

    /// Whether the caller says how long to wait.
    pub(super) fn waits(&self) -> bool {
        self.0.contains_key("wait_seconds")
    }

    /// Whether all pages of a list are wanted.
    pub(super) fn all(&self) -> bool {
        self.flag("all")
    }

    /// The most results that are of use; `sent` are the filters that Exa applies. What other filters
    /// take away must be made up for, so with these every result is of use.
    pub(super) fn most(&self, sent: &[String]) -> Option<usize> {
        let is_here = |filter: &String| filter != "maxResults" && !sent.contains(filter);
        if self.filters().is_some_and(|all| all.keys().any(is_here)) {
            return None;
        }
        let number = |value: Option<&Value>| usize::try_from(value?.as_u64()?).ok();
        let offset = number(self.0.get("offset")).unwrap_or(0);
        let limit = number(self.0.get("limit")).map(|limit| limit.saturating_add(offset));
        let filter = self.filters().and_then(|all| number(all.get("maxResults")));
        limit.into_iter().chain(filter).min()
    }

    /// Whether there are filters, in whatever form.
    pub(super) fn has_filters(&self) -> bool {
        self.0.contains_key("filters")
    }

    /// The filters as they were given.
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

/// Why a view is not possible, in the form that other refusals have.
pub(super) fn unfit(error: &ViewError) -> validation::ValidationError {
    let place = match error {
        ViewError::Index { .. } => "index".to_owned(),
        ViewError::Date { filter, .. } => format!("filters.{filter}"),
    };
    let given = match error {
        ViewError::Index { .. } => Map::from_iter([("index".to_owned(), Value::Null)]),
        ViewError::Date { .. } => Map::from_iter([("filters".to_owned(), Value::Null)]),
    };
    validation::ValidationError {
        problems: vec![validation::ArgumentProblem {
            path: place,
            message: error.to_string(),
        }],
        example: Box::new(example(&given)),
        hints: Vec::new(),
        missing: Vec::new(),
    }
}

/// Values that fit, for the options that were given.
fn example(given: &Map<String, Value>) -> Value {
    let fitting = json!({
        "content_level": "summary", "output_format": "json", "cache_id": "r_…", "index": 0, "offset": 0,
        "limit": 5, "max_tokens": 5000, "fresh": true, "wait_seconds": 60, "all": true, "fields": ["title", "url"],
        "filters": {"afterDate": "2024-01-31", "includeDomains": ["example.com"], "maxResults": 5},
    });
    let Value::Object(mut fitting) = fitting else {
        return Value::Null;
    };
    fitting.retain(|name, _| given.contains_key(name));
    Value::Object(fitting)
}

/// The option that a name means.
fn meant(name: &str, again: bool, own: &impl Fn(&str) -> bool) -> Option<String> {
    if own(name) && !(again && known().any(|option| option == name)) {
        return None;
    }
    let exact = discovery::meant("option", name, known(), &mut Vec::new());
    exact.or_else(|| {
        let near = similar_names::most_similar(name, known(), CLOSE)?;
        (name.len() > 5).then(|| near.to_owned())
    })
}

/// Whether an operation has an argument of this name.
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
        let mut mended = Vec::new();
        let options = Options::take(&mut given, |name| own.contains(&name), &mut mended);
        (options.0, given.into(), mended)
    }

    #[test]
    fn options_are_told_from_arguments() {
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
    fn no_more_is_wanted_than_is_of_use() {
        for (given, sent, most) in [
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
            assert_eq!(options.most(&sent), most, "{given}");
        }
    }

    #[test]
    fn slips_are_mended() {
        let (options, _, mended) = take(
            json!({"contentLevel": "full", "output_fromat": "json"}),
            &[],
        );
        assert_eq!(
            Value::from(options),
            json!({"content_level": "full", "output_format": "json"})
        );
        assert_eq!(mended.len(), 2);
    }

    #[test]
    fn bad_values_are_explained() {
        for (given, part) in [
            (json!({"content_level": "everything"}), "summary"),
            (json!({"max_tokens": 0}), "at least 1"),
            (json!({"filters": {"minScor": 1}}), "minScore"),
            (json!({"index": -1}), "0"),
        ] {
            let options = Options(given.as_object().unwrap().clone());
            let refused = options.check(&mut Vec::new()).unwrap_err();
            assert!(refused.to_string().contains(part), "{refused}");
            assert_eq!(refused.example.as_object().unwrap().len(), 1);
        }
        let options = Options(
            json!({"filters": {"afterDate": "soon"}})
                .as_object()
                .unwrap()
                .clone(),
        );
        let refused = options.view(Level::Standard).unwrap_err();
        assert_eq!(refused.problems[0].path, "filters.afterDate");
    }
}

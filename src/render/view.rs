//! How a caller wants a result to be rendered.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{ContentLevel, Filters};

/// The default token budget: clients warn about longer results.
pub(crate) const DEFAULT_MAX_TOKENS: usize = 10_000;

/// The format of the text of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Markdown, for models and people.
    Markdown,
    /// JSON, for programs.
    Json,
    /// A table of comma-separated values, for long lists.
    Csv,
    /// A Markdown table.
    Table,
}

impl OutputFormat {
    /// Returns the format with a name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Markdown, Self::Json, Self::Csv, Self::Table]
            .into_iter()
            .find(|format| format.name() == name)
    }

    /// Returns the name of the format in arguments.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Table => "table",
        }
    }
}

/// How a caller wants a result to be rendered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    /// How much of each result is shown.
    pub level: ContentLevel,
    /// The format of the text.
    pub format: OutputFormat,
    /// The token budget.
    pub max_tokens: usize,
    /// Fields to show of each result; empty for all.
    pub fields: Vec<String>,
    /// Which results are shown.
    pub filters: Filters,
    /// The index of the first result, after filtering.
    pub offset: usize,
    /// The maximum number of results.
    pub limit: Option<usize>,
    /// The index of a single result to show, counted from 0.
    pub index: Option<usize>,
    /// Characters of text that the request asked for, if it did.
    pub extract: Option<usize>,
    /// The operation of a toolhost that was called. Its lists keep the names that they have at Exa.
    pub toolhost_operation: Option<String>,
    /// Pages are written with as little Markdown as possible.
    pub is_plain: bool,
    /// Below the full level, pages have title, URL and passages only.
    pub is_brief: bool,
    /// Contents that were only requested in case the caller wants more.
    pub extra: ExtraContents,
}

/// Contents of pages that a request had for the same price, although its level does not show them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExtraContents {
    /// The names of the fields of a result.
    pub fields: Vec<String>,
    /// The level of the request without them, if they are hidden.
    pub hidden_above: Option<ContentLevel>,
}

/// Why a result cannot be rendered with a view.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The index is out of range.
    #[error("there is no result {}: found {}", .index + 1, range(*.results))]
    Index {
        /// The requested index, counted from 0.
        index: usize,
        /// The number of results.
        results: usize,
    },
    /// A date is malformed.
    #[error("invalid date `{value}`; use 2024-05-31 or 2024-05-31T12:00:00Z")]
    Date {
        /// The filter.
        filter: &'static str,
        /// The malformed date.
        value: String,
    },
}

fn range(results: usize) -> String {
    match results {
        0 => "no results".to_owned(),
        1 => "one result, index 1".to_owned(),
        _ => format!("{results} results, index 1 to {results}"),
    }
}

impl Default for View {
    fn default() -> Self {
        Self {
            level: ContentLevel::Standard,
            format: OutputFormat::Markdown,
            max_tokens: DEFAULT_MAX_TOKENS,
            fields: Vec::new(),
            filters: Filters::default(),
            offset: 0,
            limit: None,
            index: None,
            extract: None,
            toolhost_operation: None,
            is_plain: false,
            is_brief: false,
            extra: ExtraContents::default(),
        }
    }
}

impl View {
    /// Parses validated options. `level` and `format` are the defaults of the tool; JSON, single fields and a single
    /// result default to the full level.
    pub(crate) fn parse(
        options: &Map<String, Value>,
        (level, format): (ContentLevel, OutputFormat),
    ) -> Result<Self, ViewError> {
        let default_format = format;
        let text = |name: &str| options.get(name).and_then(Value::as_str);
        let number = |name: &str| {
            let number = options.get(name).and_then(Value::as_u64);
            number.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let format = text("output_format").and_then(OutputFormat::from_name);
        let format = format.unwrap_or(default_format);
        let fields = options.get("fields").and_then(Value::as_array);
        let fields: Vec<String> = fields
            .into_iter()
            .flatten()
            .filter_map(|field| field.as_str().map(str::to_owned))
            .collect();
        // Results are numbered from 1.
        let index = number("index").map(|index| index.saturating_sub(1));
        let wants_all = format == OutputFormat::Json || index.is_some() || !fields.is_empty();
        let default = if wants_all { ContentLevel::Full } else { level };
        let filters = options.get("filters").and_then(Value::as_object);
        let filters = filters.map_or_else(|| Ok(Filters::default()), Filters::parse);
        Ok(Self {
            level: text("content_level")
                .and_then(ContentLevel::from_name)
                .unwrap_or(default),
            format,
            max_tokens: number("max_tokens").unwrap_or(DEFAULT_MAX_TOKENS),
            fields,
            filters: filters.map_err(|(filter, value)| ViewError::Date { filter, value })?,
            offset: number("offset").unwrap_or(0),
            limit: number("limit"),
            index,
            extract: None,
            toolhost_operation: None,
            is_plain: false,
            is_brief: false,
            extra: ExtraContents::default(),
        })
    }

    /// Returns this view if a list of `results` results has the one that it selects.
    pub(crate) fn for_results(&self, results: usize) -> Result<Cow<'_, Self>, ViewError> {
        match self.index {
            Some(index) if index >= results => Err(ViewError::Index { index, results }),
            _ => Ok(Cow::Borrowed(self)),
        }
    }

    /// Returns this view without the selection of a single result.
    #[must_use]
    pub(crate) fn without_index(&self) -> Self {
        Self {
            index: None,
            ..self.clone()
        }
    }

    /// Returns the results that this view shows, in order.
    pub(super) fn select<'a>(
        &self,
        results: Vec<(usize, &'a Value)>,
    ) -> Result<Vec<(usize, &'a Value)>, ViewError> {
        match self.index {
            Some(index) => {
                let count = results.len();
                let found = results.into_iter().find(|(at, _)| *at == index);
                found.map(|found| vec![found]).ok_or(ViewError::Index {
                    index,
                    results: count,
                })
            }
            None => {
                let limit = self.limit.unwrap_or(usize::MAX);
                Ok(results.into_iter().skip(self.offset).take(limit).collect())
            }
        }
    }
}

//! How the caller wants to see an answer.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Filters, Level};

/// Tokens of an answer unless the caller says otherwise: clients warn about more.
pub(crate) const DEFAULT_MAX_TOKENS: usize = 10_000;

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For reading.
    Markdown,
    /// For code.
    Json,
}

/// How the caller wants to see an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    /// How much of each result.
    pub level: Level,
    /// How it is written.
    pub format: Format,
    /// The most tokens.
    pub max_tokens: usize,
    /// Single fields of the results; none means all.
    pub fields: Vec<String>,
    /// Which results.
    pub filters: Filters,
    /// The first result.
    pub offset: usize,
    /// The most results.
    pub limit: Option<usize>,
    /// One result alone.
    pub index: Option<usize>,
    /// Characters of text that the request asked for.
    pub extract: Option<usize>,
}

/// Why an answer cannot be seen like that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// There is no such result.
    #[error("there is no result {index}: the answer has {}", range(*.results))]
    Index {
        /// The result asked for.
        index: usize,
        /// How many there are.
        results: usize,
    },
    /// A date cannot be read.
    #[error("`{value}` is no date; write 2024-05-31 or 2024-05-31T12:00:00Z")]
    Date {
        /// The filter.
        filter: &'static str,
        /// What was given.
        value: String,
    },
}

fn range(results: usize) -> String {
    match results {
        0 => "no results".to_owned(),
        1 => "one result, index 0".to_owned(),
        _ => format!("{results} results, index 0 to {}", results - 1),
    }
}

impl Default for View {
    fn default() -> Self {
        Self {
            level: Level::Standard,
            format: Format::Markdown,
            max_tokens: DEFAULT_MAX_TOKENS,
            fields: Vec::new(),
            filters: Filters::default(),
            offset: 0,
            limit: None,
            index: None,
            extract: None,
        }
    }
}

impl View {
    /// Reads checked options. `level` is what the tool shows unless the caller says otherwise; code
    /// and callers that ask for single fields or one result want everything.
    pub(crate) fn read(options: &Map<String, Value>, level: Level) -> Result<Self, ViewError> {
        let text = |name: &str| options.get(name).and_then(Value::as_str);
        let number = |name: &str| {
            let number = options.get(name).and_then(Value::as_u64);
            number.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let format = match text("output_format") {
            Some("json") => Format::Json,
            _ => Format::Markdown,
        };
        let fields = options.get("fields").and_then(Value::as_array);
        let fields: Vec<String> = fields
            .into_iter()
            .flatten()
            .filter_map(|field| field.as_str().map(str::to_owned))
            .collect();
        let index = number("index");
        let everything = format == Format::Json || index.is_some() || !fields.is_empty();
        let usual = if everything { Level::Full } else { level };
        let filters = options.get("filters").and_then(Value::as_object);
        let filters = filters.map_or_else(|| Ok(Filters::default()), Filters::read);
        Ok(Self {
            level: text("content_level")
                .and_then(Level::named)
                .unwrap_or(usual),
            format,
            max_tokens: number("max_tokens").unwrap_or(DEFAULT_MAX_TOKENS),
            fields,
            filters: filters.map_err(|(filter, value)| ViewError::Date { filter, value })?,
            offset: number("offset").unwrap_or(0),
            limit: number("limit"),
            index,
            extract: None,
        })
    }

    /// This view of an answer with so many results, if they have the one that it shows.
    pub(crate) fn within(&self, results: usize) -> Result<Cow<'_, Self>, ViewError> {
        match self.index {
            Some(index) if index >= results => Err(ViewError::Index { index, results }),
            _ => Ok(Cow::Borrowed(self)),
        }
    }

    /// This view without a choice of one result.
    #[must_use]
    pub(crate) fn of_all(&self) -> Self {
        Self {
            index: None,
            ..self.clone()
        }
    }

    /// The results that this view shows, in order.
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

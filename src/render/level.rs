//! The content levels, and what each shows of every type of result.

use serde_json::Value;

use super::path;

/// How much of each result is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ContentLevel {
    /// Title, URL, date and one line.
    Summary,
    /// The summary with passages or an extract.
    Standard,
    /// Everything.
    Full,
}

impl ContentLevel {
    /// Returns the level with a name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Summary, Self::Standard, Self::Full]
            .into_iter()
            .find(|level| level.name() == name)
    }

    /// Returns the name of the level in arguments and metadata.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }
}

/// What the levels show of one type of result. Paths are dotted; the first that leads to a value wins.
#[derive(Debug)]
pub(super) struct ResultType {
    /// Fields that every result of this type has.
    has: &'static [&'static str],
    /// Fields that no result of this type has.
    lacks: &'static [&'static str],
    /// The identifier, where the URL is not one.
    pub(super) id: &'static [&'static str],
    /// The title.
    pub(super) title: &'static [&'static str],
    /// The URL.
    pub(super) url: &'static [&'static str],
    /// The date of creation or publication.
    pub(super) date: &'static [&'static str],
    /// The status.
    pub(super) status: &'static [&'static str],
    /// The text from which the line of a summary is taken.
    pub(super) line: &'static [&'static str],
    /// What the standard level adds to the heading.
    pub(super) standard: StandardFields,
}

/// What the standard level shows.
#[derive(Debug)]
pub(super) enum StandardFields {
    /// These fields, and the first passage that is present.
    Fields {
        /// Fields that are always shown.
        keep: &'static [&'static str],
        /// The first that is not empty is shown.
        passages: &'static [&'static str],
        /// Maximum characters of a text.
        bound: usize,
        /// Lists of further results of the same type, which are shown in the same manner.
        nested: &'static [&'static str],
        /// An object of which only the kept fields are shown.
        excerpt: Option<&'static str>,
        /// Fields that only the full level shows, without mention; others are named if they are left out.
        ignored: Option<&'static [&'static str]>,
    },
    /// All fields that are not empty, with long texts and lists truncated.
    Bounded {
        /// Maximum characters of a text.
        bound: usize,
        /// Maximum entries of a list.
        entries: usize,
    },
}

/// The types, specific ones first; the last one matches everything.
pub(super) static TYPES: [ResultType; 5] = [
    // An event, with the object that it is about.
    ResultType {
        has: &["id", "type", "data", "createdAt"],
        lacks: &["properties"],
        id: &["id"],
        title: &["type"],
        url: &[],
        date: &["createdAt"],
        status: &[],
        line: &[
            "data.properties.*.name",
            "data.properties.*.title",
            "data.title",
            "data.query",
            "data.search.query",
            "data.description",
            "data.id",
        ],
        standard: StandardFields::Fields {
            keep: &[
                "data.id",
                "data.object",
                "data.status",
                "data.failedReason",
                "data.websetId",
                "data.title",
                "data.query",
                "data.properties.url",
                "data.properties.*.name",
                "data.properties.*.title",
            ],
            passages: &[],
            bound: 300,
            nested: &[],
            excerpt: Some("data"),
            ignored: None,
        },
    },
    // An item of a webset.
    ResultType {
        has: &["properties"],
        lacks: &[],
        id: &["id"],
        title: &["properties.*.name", "properties.*.title"],
        url: &["properties.url"],
        date: &["createdAt"],
        status: &[],
        line: &["properties.description", "properties.content"],
        standard: StandardFields::Fields {
            keep: &[
                "evaluations.criterion",
                "evaluations.satisfied",
                "enrichments.enrichmentId",
                "enrichments.status",
                "enrichments.result",
            ],
            passages: &["properties.description", "properties.content"],
            bound: 600,
            nested: &[],
            excerpt: None,
            ignored: None,
        },
    },
    // A web page.
    ResultType {
        has: &["url"],
        lacks: &["object", "secret", "status"],
        id: &[],
        title: &["title"],
        url: &["url"],
        date: &["publishedDate"],
        status: &[],
        line: &["summary", "highlights", "text", "snippet", "description"],
        standard: StandardFields::Fields {
            keep: &["author", "score", "summary", "extras"],
            passages: &["highlights", "text", "snippet", "description"],
            bound: 600,
            nested: &["subpages"],
            excerpt: None,
            ignored: Some(&["id", "image", "favicon", "highlightScores"]),
        },
    },
    // A research task or the run of an agent or monitor.
    ResultType {
        has: &["output", "status"],
        lacks: &[],
        id: &["id", "researchId"],
        title: &["instructions", "request.query"],
        url: &[],
        date: &["createdAt"],
        status: &["status"],
        line: &[
            "output.content",
            "output.text",
            "output",
            "error",
            "failReason",
        ],
        standard: StandardFields::Fields {
            keep: &[
                "monitorId",
                "model",
                "stopReason",
                "completedAt",
                "finishedAt",
                "error",
                "failReason",
                "citations.title",
                "citations.url",
            ],
            passages: &["output"],
            bound: 4_000,
            nested: &[],
            excerpt: None,
            ignored: None,
        },
    },
    // Everything else.
    ResultType {
        has: &[],
        lacks: &[],
        id: &["id", "researchId"],
        title: &[
            "title",
            "name",
            "query",
            "search.query",
            "instructions",
            "request.query",
            "description",
            "type",
            "event",
            "object",
        ],
        url: &["url"],
        date: &["createdAt"],
        status: &["status"],
        line: &[
            "description",
            "query",
            "search.query",
            "progress.completion",
            "message",
            "error",
        ],
        standard: StandardFields::Bounded {
            bound: 600,
            entries: 20,
        },
    },
];

/// Returns the type of a result.
pub(super) fn type_of(result: &Value) -> &'static ResultType {
    let [.., record] = &TYPES;
    let fields = result.as_object();
    let has = |name: &str| fields.is_some_and(|map| path::field(map, name).is_some());
    TYPES
        .iter()
        .find(|result_type| {
            result_type.has.iter().all(|name| has(name))
                && !result_type.lacks.iter().any(|name| has(name))
        })
        .unwrap_or(record)
}

/// Returns the title of a result, else its URL or identifier.
pub(super) fn title(result: &Value) -> Option<&str> {
    let result_type = type_of(result);
    let paths = [result_type.title, result_type.url, result_type.id].concat();
    path::first(result, &paths).and_then(Value::as_str)
}

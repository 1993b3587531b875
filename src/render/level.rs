//! How much of a result is shown: the levels, declared for every type of result.

use serde_json::Value;

use super::path;

/// How much of each result is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Title, address, date and one line.
    Summary,
    /// The same with passages or an extract.
    Standard,
    /// Everything.
    Full,
}

impl Level {
    /// The level of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Summary, Self::Standard, Self::Full]
            .into_iter()
            .find(|level| level.name() == name)
    }

    /// How callers write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }
}

/// What the levels show of one type of result. Paths are dotted; the first that leads somewhere wins.
#[derive(Debug)]
pub(super) struct ResultType {
    /// A result of this type has all of these,
    has: &'static [&'static str],
    /// and none of these.
    lacks: &'static [&'static str],
    /// Identifies it, where its address does not.
    pub(super) id: &'static [&'static str],
    /// What it is called.
    pub(super) title: &'static [&'static str],
    /// Where it is.
    pub(super) url: &'static [&'static str],
    /// When it came to be.
    pub(super) date: &'static [&'static str],
    /// How it stands.
    pub(super) status: &'static [&'static str],
    /// Says most in one line.
    pub(super) line: &'static [&'static str],
    /// What `standard` adds to the summary's fields.
    pub(super) standard: Standard,
}

/// What `standard` shows.
#[derive(Debug)]
pub(super) enum Standard {
    /// These fields, and the first of the passages that there is.
    Fields {
        /// Always shown.
        keep: &'static [&'static str],
        /// The first that says anything is shown.
        passages: &'static [&'static str],
        /// Characters of a text.
        bound: usize,
    },
    /// Everything that says something, with long texts and lists cut.
    Bounded {
        /// Characters of a text.
        bound: usize,
        /// Entries of a list.
        entries: usize,
    },
}

/// The types, the particular ones first; the last one fits everything.
pub(super) static TYPES: [ResultType; 4] = [
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
        standard: Standard::Fields {
            keep: &[
                "evaluations.criterion",
                "evaluations.satisfied",
                "enrichments.enrichmentId",
                "enrichments.status",
                "enrichments.result",
            ],
            passages: &["properties.description", "properties.content"],
            bound: 600,
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
        standard: Standard::Fields {
            keep: &["author", "score", "summary"],
            passages: &["highlights", "text", "snippet", "description"],
            bound: 600,
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
        standard: Standard::Fields {
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
        standard: Standard::Bounded {
            bound: 600,
            entries: 20,
        },
    },
];

/// The type of a result.
pub(super) fn type_of(result: &Value) -> &'static ResultType {
    let [.., record] = &TYPES;
    let fields = result.as_object();
    let has = |name: &str| fields.is_some_and(|map| path::field(map, name).is_some());
    TYPES
        .iter()
        .find(|kind| {
            kind.has.iter().all(|name| has(name)) && !kind.lacks.iter().any(|name| has(name))
        })
        .unwrap_or(record)
}

/// The title of a result, or what comes closest to one.
pub(super) fn title(result: &Value) -> Option<&str> {
    let kind = type_of(result);
    let paths = [kind.title, kind.url, kind.id].concat();
    path::first(result, &paths).and_then(Value::as_str)
}

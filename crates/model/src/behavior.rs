//! Additions to the spec of an operation, from `surface.yaml`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The behavior of an operation that no spec describes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OperationBehavior {
    /// Sentences about common mistakes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Additions to the example call.
    #[serde(skip_serializing_if = "ExampleCall::is_empty")]
    pub example: ExampleCall,
    /// Rules that the schema of the arguments cannot express.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<ArgumentCheck>,
    /// How a streamed response is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<Streaming>,
    /// How its file is uploaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload: Option<UploadOperations>,
    /// The content that a call gets if it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contents: Option<DefaultContents>,
    /// Arguments that implement a result filter, by filter name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub filters: BTreeMap<String, String>,
    /// Whether a call without arguments is free and can be used as a health check.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub probe: bool,
    /// Whether the response contains a secret that Exa shows only once. Such a response is never stored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// How to poll the job that it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_running: Option<LongRunning>,
    /// The operation that replaces it, if Exa has retired it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
    /// Whether few callers can use it, so that descriptions of tools do not explain it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unlisted: bool,
}

/// The content that a call gets if it names none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultContents {
    /// The arguments that name content.
    pub unless: Vec<String>,
    /// The arguments that are added, for each content level.
    pub summary: Map<String, Value>,
    /// The same for the standard level.
    pub standard: Map<String, Value>,
    /// The same for the full level.
    pub full: Map<String, Value>,
}

/// What an example call shows in addition to the required arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExampleCall {
    /// Optional arguments that make the call useful.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// Example texts by argument.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<String, String>,
}

impl ExampleCall {
    /// An example with only the required arguments.
    pub const EMPTY: Self = Self {
        with: Vec::new(),
        texts: BTreeMap::new(),
    };

    /// Returns whether the example shows only the required arguments.
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }
}

/// A rule that the schema of the arguments cannot express.
///
/// `argument` is a dotted path; `[]` after a name stands for every item of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "rule",
    deny_unknown_fields,
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum ArgumentCheck {
    /// An enrichment with the format `options` lists its labels.
    EnrichmentOptions {
        /// The path of the enrichment; empty if it is the arguments themselves.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        argument: String,
    },
    /// An object with a cron expression and the name of a time zone.
    Schedule {
        /// The path of the object.
        argument: String,
    },
    /// A number and a unit of time, such as `12h`.
    Duration {
        /// The path of the text.
        argument: String,
        /// The minimum duration.
        at_least: String,
        /// The accepted units, as letters: minutes, hours, days, weeks.
        units: String,
        /// A description of the expected value.
        expected: String,
    },
    /// A whole number of at least 1.
    Count {
        /// The path of the number.
        argument: String,
    },
    /// Either a file to upload, or its size and count.
    ImportContent,
    /// A URL that starts with http:// or https://.
    WebAddress {
        /// The path of the text.
        argument: String,
        /// Anything that is not an address is accepted: it may be an id.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        or_id: bool,
    },
}

impl ArgumentCheck {
    /// Returns the top-level argument that the rule concerns, if there is a single one.
    pub fn argument(&self) -> Option<&str> {
        let path = match self {
            Self::EnrichmentOptions { argument }
            | Self::Schedule { argument }
            | Self::Duration { argument, .. }
            | Self::Count { argument }
            | Self::WebAddress { argument, .. } => argument,
            Self::ImportContent => return None,
        };
        let first = path.split(['.', '[']).next()?;
        (!first.is_empty()).then_some(first)
    }
}

/// The kind of a streamed response, which determines the meaning of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamKind {
    /// Results and a text about them, `{results, output, …}`.
    Search,
    /// A text and its sources, `{answer, citations, …}`.
    Answer,
    /// The progress of an agent run; the response is the final run.
    AgentRun,
    /// The progress of a research task.
    Research,
    /// Stored events; the response is a list of them.
    Events,
}

/// How a streamed response of an operation is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Streaming {
    /// The kind of the stream.
    #[serde(rename = "form")]
    pub kind: StreamKind,
    /// The argument that requests the stream by being given; without it, `stream: true` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// The operation that reads the job if its stream breaks off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub get: Option<String>,
    /// The operation that continues the stream after it has broken off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<StreamResumption>,
}

/// The operation that continues a broken stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamResumption {
    /// The operation. If it is the one that streams, it keeps the arguments of the call.
    pub operation: String,
    /// Its arguments that identify the job, and the fields of the job that have their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// Its argument that takes the id of the last event.
    pub after: String,
}

impl Streaming {
    /// Returns the argument that requests the stream.
    pub fn argument(&self) -> &str {
        self.with.as_deref().unwrap_or("stream")
    }
}

/// The operations that manage the upload of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadOperations {
    /// The operation that reads the state of the upload.
    pub get: String,
    /// The operation that deletes an upload that failed.
    pub delete: String,
    /// The id argument of both operations.
    pub id: String,
}

/// How to poll a job that an operation starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LongRunning {
    /// The operation that reads the job.
    pub get: String,
    /// The operation that cancels the job, if upstream has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<String>,
    /// The arguments of `get` and `cancel`, mapped to a field of the response or, with `$`, to an argument of the
    /// starting call.
    pub arguments: BTreeMap<String, String>,
    /// The field of the response with the status.
    pub status: String,
    /// The final states.
    #[serde(rename = "final")]
    pub final_states: Vec<String>,
    /// The other states that the spec has. The generator reports a state that is in neither list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<String>,
    /// The final states in which the job has failed.
    #[serde(rename = "failed", default, skip_serializing_if = "Vec::is_empty")]
    pub failed_states: Vec<String>,
    /// The fields of the response that may say why it failed; the first one with a value counts.
    #[serde(rename = "reason", default, skip_serializing_if = "Vec::is_empty")]
    pub reason_fields: Vec<String>,
    /// A field of the response that requires the caller to act first. While it is present, polling is useless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless: Option<String>,
    /// How to find a job if the response of the starting call was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub find: Option<JobLookup>,
}

/// How to find a job in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobLookup {
    /// The operation that lists jobs.
    pub list: String,
    /// Its arguments, mapped to arguments of the starting call (written `$name`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// The field of its response with the list.
    pub entries: String,
    /// The field of an entry with its creation time.
    pub created: String,
    /// Arguments of the starting call and the dotted paths under which an entry repeats them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub same: BTreeMap<String, String>,
    /// The field of an entry that repeats the whole request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<String>,
    /// Arguments that the API adds to that field by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<String>,
}

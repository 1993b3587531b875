//! What `surface.yaml` says about an operation beyond its spec.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the server does for one operation that no spec describes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OperationBehavior {
    /// Sentences about mistakes that callers often make.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// What an example call shows beside the required arguments.
    #[serde(skip_serializing_if = "ExampleCall::is_empty")]
    pub example: ExampleCall,
    /// Rules that the schema of the arguments cannot express.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<ArgumentCheck>,
    /// How its response is read when it comes as a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<Streaming>,
    /// How a file that it announces is uploaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload: Option<UploadOperations>,
    /// Arguments that do the work of a filter, by the name of the filter.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub filters: BTreeMap<String, String>,
    /// A call without arguments costs nothing and shows whether the API can be reached.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub probe: bool,
    /// How the work that it starts is followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_running: Option<LongRunning>,
}

/// What an example call shows beside the required arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExampleCall {
    /// Optional arguments without which the call would do nothing useful.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// Texts for single arguments.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<String, String>,
}

impl ExampleCall {
    /// An example that shows the required arguments only.
    pub const EMPTY: Self = Self {
        with: Vec::new(),
        texts: BTreeMap::new(),
    };

    /// Whether nothing is said about the example.
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }
}

/// A rule that the schema of the arguments cannot express.
///
/// `argument` is a dotted path; `[]` behind a name stands for every entry of a list.
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
        /// Where the enrichment is; the arguments themselves if empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        argument: String,
    },
    /// An object with a cron expression and the name of a time zone.
    Schedule {
        /// Where the object is.
        argument: String,
    },
    /// A number and a unit of time, such as `12h`.
    Duration {
        /// Where the text is.
        argument: String,
        /// The shortest one that is accepted.
        at_least: String,
        /// The letters of the units that are accepted: minutes, hours, days, weeks.
        units: String,
        /// What it must be, in words.
        expected: String,
    },
    /// A whole number of at least 1.
    Count {
        /// Where the number is.
        argument: String,
    },
    /// Either a content to upload, or the figures that announce it.
    ImportContent,
    /// An address that starts with http:// or https://.
    WebAddress {
        /// Where the text is.
        argument: String,
    },
}

impl ArgumentCheck {
    /// The argument at the top level that the rule is about, if it is about a single one.
    pub fn argument(&self) -> Option<&str> {
        let path = match self {
            Self::EnrichmentOptions { argument }
            | Self::Schedule { argument }
            | Self::Duration { argument, .. }
            | Self::Count { argument }
            | Self::WebAddress { argument } => argument,
            Self::ImportContent => return None,
        };
        let first = path.split(['.', '[']).next()?;
        (!first.is_empty()).then_some(first)
    }
}

/// What a streamed response consists of, and so what its events mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamForm {
    /// Found pages and a text about them, `{results, output, …}`.
    Search,
    /// A text and its sources, `{answer, citations, …}`.
    Answer,
    /// The life of an agent run; the result is the run at its end.
    AgentRun,
    /// The steps of a research task.
    Research,
}

/// How the response of an operation is read when it comes as a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Streaming {
    /// What the stream consists of.
    pub form: StreamForm,
    /// The operation that reads the work whose events were not read to their end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub get: Option<String>,
}

/// How a file that an operation announces is uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadOperations {
    /// The operation that reads the state of the upload.
    pub get: String,
    /// The operation that deletes an upload that failed.
    pub delete: String,
    /// The argument of both that takes the id.
    pub id: String,
}

/// How work that an operation starts is followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LongRunning {
    /// The operation that reads the state.
    pub get: String,
    /// The operation that ends the work early, where upstream has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<String>,
    /// Arguments of `get` and `cancel`, by the field of the response or the argument of the start
    /// (written `$name`) that holds the value.
    pub arguments: BTreeMap<String, String>,
    /// The field of the response that holds the state.
    pub status: String,
    /// The states after which nothing more happens.
    #[serde(rename = "final")]
    pub final_states: Vec<String>,
    /// A field of the response that asks the caller to act first; while it is there, waiting is
    /// pointless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless: Option<String>,
    /// How to find the work of a start whose response never arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub find: Option<JobLookup>,
}

/// How to find work in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobLookup {
    /// The operation that lists the work.
    pub list: String,
    /// Its arguments, by the argument of the start (written `$name`) that holds the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// The field of its response that holds the entries.
    pub entries: String,
    /// The field of an entry that holds its time of creation.
    pub created: String,
    /// Arguments of the start and where an entry repeats them, as dotted paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub same: BTreeMap<String, String>,
    /// The field of an entry that repeats the whole request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<String>,
    /// Arguments that the API adds to that field if they were not sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<String>,
}

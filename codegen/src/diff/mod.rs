//! Compares two versions of the API and reports the changes to a reviewer.
//!
//! [`compare`] compares the operation snapshots and classifies every difference by its impact on
//! callers; [`report`] prints the result as Markdown. Schemas are normalized before they are
//! compared (see `normalize`), so rewriting a schema without changing its meaning is not reported.

mod arguments;
mod branches;
mod commands;
mod comparer;
mod constraints;
mod keyword_groups;
mod markdown;
mod matching;
mod merge;
mod normalize;
mod operations;
mod properties;
mod report;
mod schema_path;
#[cfg(test)]
mod tests;
mod tools;
mod types;
mod wrappers;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

pub use operations::compare;
pub use report::report;

/// The tools of each set, in order.
pub type ToolSets = BTreeMap<String, Vec<String>>;

/// One version of everything that callers see.
#[derive(Debug, Default)]
pub struct ApiSnapshot {
    /// The operations.
    pub operations: OperationSnapshots,
    /// The tools by name, or nothing if this version is known by its operations only.
    pub tools: Option<BTreeMap<String, Value>>,
    /// The sets of tools, or nothing if they are not known.
    pub sets: Option<ToolSets>,
    /// The commands of the command line, or nothing if they are not known.
    pub commands: Option<Value>,
}

/// Compares the operations, tools, sets and commands of two versions.
#[must_use]
pub fn compare_versions(old: &ApiSnapshot, new: &ApiSnapshot) -> Vec<ApiChange> {
    let mut changes = compare(&old.operations, &new.operations);
    changes.extend(tools::compare(old, new));
    changes.extend(commands::compare(old, new));
    changes
}

/// The snapshots of all operations, by operation name.
pub type OperationSnapshots = BTreeMap<String, Value>;

/// The impact of a change on the callers of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Impact {
    /// Existing calls, or clients that read the response, may fail.
    Breaking,
    /// Existing calls and clients still work.
    Compatible,
    /// Only texts for people changed.
    Documentation,
}

impl Impact {
    /// Returns the exit status of commands that report the worst impact for CI.
    #[must_use]
    pub const fn exit_code(worst: Option<Self>) -> u8 {
        match worst {
            None => 0,
            Some(Self::Compatible | Self::Documentation) => 10,
            Some(Self::Breaking) => 20,
        }
    }

    /// Returns the label used on every line of the report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Breaking => "breaking",
            Self::Compatible => "compatible",
            Self::Documentation => "documentation",
        }
    }
}

impl fmt::Display for Impact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Returns the changes as JSON, in the order of the report's data.
#[must_use]
pub fn to_json(changes: &[ApiChange]) -> Value {
    let entries = changes.iter().map(|change| {
        json!({
            "impact": change.impact.as_str(),
            "subject": change.subject.as_str(),
            "operation": change.operation,
            "location": change.location,
            "text": change.text,
        })
    });
    Value::Array(entries.collect())
}

/// What a change is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// An operation.
    #[default]
    Operation,
    /// A tool.
    Tool,
    /// A set of tools.
    Set,
    /// A command of the command line.
    Command,
    /// A text of ours.
    Wording,
}

impl Subject {
    /// Returns the word for it in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operation => "operation",
            Self::Tool => "tool",
            Self::Set => "set",
            Self::Command => "command",
            Self::Wording => "wording",
        }
    }
}

/// One difference between two versions of the API.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiChange {
    /// The impact on callers.
    pub impact: Impact,
    /// What it is about.
    pub subject: Subject,
    /// The name of the operation, tool, set or command; for a renamed operation, its new name.
    pub operation: String,
    /// Where in the operation: empty for the operation itself, `arguments` or `output` for a whole
    /// schema, otherwise such as `argument search.criteria[].description` or `output data[].id`.
    pub location: String,
    /// The location relative to the named definition around it, such as `Criterion.description`.
    /// Changes of several operations with the same path share one line of the report.
    pub definition_path: Option<String>,
    /// What changed, as Markdown. Text from a spec is already escaped.
    pub text: String,
}

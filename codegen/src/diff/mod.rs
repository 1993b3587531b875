//! What changed between two catalogues of operations, told to a reviewer.
//!
//! [`compare`] walks two catalogues and classifies every difference by what it means to a caller;
//! [`report`] prints the result as Markdown. Schemas are brought to one common form before they
//! are compared (see `normalise`), so rewriting a schema without changing its meaning is silent.

mod arguments;
mod body;
mod fold;
mod keywords;
mod markdown;
mod matching;
mod merge;
mod normalise;
mod operations;
mod properties;
mod reference;
mod report;
mod spot;
#[cfg(test)]
mod tests;
mod types;
mod vocabulary;
mod walker;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

pub use operations::compare;
pub use report::report;

/// Operations by name; each value is the snapshot of one operation.
pub type Catalogue = BTreeMap<String, Value>;

/// What a change means to those who call the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A call that worked, or a reader of its answer, may fail now.
    Breaking,
    /// Everything that worked still works.
    Compatible,
    /// Only what people read has changed.
    Documentation,
}

impl Class {
    /// The word that stands for this class on every line of the report.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Breaking => "breaking",
            Self::Compatible => "compatible",
            Self::Documentation => "documentation",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

/// One difference between the two catalogues.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Change {
    /// What the change means to callers.
    pub class: Class,
    /// The operation's name; for a renamed operation, its new name.
    pub operation: String,
    /// Where in the operation: empty for the operation itself, `arguments` or `output` for a
    /// whole schema, else such as `argument search.criteria[].description` or `output data[].id`.
    pub place: String,
    /// The place told from the named definition it lies in, such as `Criterion.description`.
    /// Changes of several operations that agree on it share one line of the report.
    pub shared: Option<String>,
    /// What changed, as Markdown: text taken from a spec is already escaped.
    pub text: String,
}

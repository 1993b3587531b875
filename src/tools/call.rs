//! Parsed tool calls.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::create_note::NoteCall;
use super::expansion::Expansion;
use super::failure::ErrorForm;
use super::options::Options;
use super::outcome::ToolResult;
use super::registry::Tool;
use super::suggest::SuggestCall;
use crate::render::{ContentLevel, Rendered, View};
use exa_mcp_model::{Operation, ToolPlan, ToolhostEntry};

/// A parsed and validated tool call. Its cost and effects are known before it runs.
pub(crate) struct ToolCall {
    pub(super) name: String,
    /// The original arguments, which are stored with tasks.
    pub(super) arguments: Map<String, Value>,
    pub(super) tool: Option<Arc<Tool>>,
    pub(super) start_cost: Option<u64>,
    pub(super) waits: bool,
    /// The form in which the caller expects errors.
    pub(super) error_form: ErrorForm,
    /// What to do, or why the call is invalid.
    pub(super) action: ToolResult<Action>,
}

impl ToolCall {
    /// Returns the name of the tool.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the original arguments.
    pub(crate) fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// Returns the maximum cost of a call that starts long-running work, in millionths of a dollar; `None` for other
    /// calls.
    pub(crate) fn start_cost(&self) -> Option<u64> {
        self.start_cost
    }

    /// Returns whether the call sets its own waiting time.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// Returns whether the operation is called with this argument.
    pub(super) fn has_argument(&self, name: &str) -> bool {
        match &self.action {
            Ok(Action::Operation(_, Source::Exa { arguments, .. })) => arguments.contains_key(name),
            _ => false,
        }
    }
}

/// What a call does.
pub(super) enum Action {
    /// Returns an outcome that is already known.
    Show(Rendered),
    /// Creates a note.
    CreateNote(NoteCall),
    /// Suggests enrichments.
    Suggest(SuggestCall),
    /// Calls an operation, or reads its cached result.
    Operation(Box<OperationCall>, Source),
}

/// A call of an operation whose arguments and options are valid.
pub(super) struct OperationCall {
    /// The tool that was called.
    pub(super) tool: Arc<Tool>,
    /// The operation.
    pub(super) operation: &'static Operation,
    /// Options for the result.
    pub(super) options: Options,
    /// The view that the options describe.
    pub(super) view: View,
    /// The level for which the tool chose the arguments of the request, if it did.
    pub(super) requested_level: Option<ContentLevel>,
    /// How to get the contents of a higher level later, if the request does not have them.
    pub(super) expansion: Option<Arc<Expansion>>,
    /// The index of the toolhost entry that was called, if any.
    pub(super) entry: Option<usize>,
    /// Corrections made to the arguments.
    pub(super) corrections: Vec<String>,
}

/// Where the result of a call comes from.
pub(super) enum Source {
    /// The cache, by id.
    Cache(String),
    /// Exa, or the cache if it has the result of the same request.
    Exa {
        /// The arguments of the operation.
        arguments: Map<String, Value>,
        /// Filters sent to Exa.
        sent_filters: Vec<String>,
    },
}

impl OperationCall {
    /// Returns the toolhost entry that was called, if any.
    pub(super) fn entry(&self) -> Option<&ToolhostEntry> {
        entry(&self.tool, self.entry)
    }
}

/// Returns an entry of a toolhost.
pub(super) fn entry(tool: &Tool, index: Option<usize>) -> Option<&ToolhostEntry> {
    match &tool.plan {
        ToolPlan::Toolhost { entries } => entries.get(index?),
        _ => None,
    }
}

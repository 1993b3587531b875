//! Tool calls, parsed: what they ask for, and what they will do.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::create_note::NoteCall;
use super::options::Options;
use super::outcome::ToolResult;
use super::plan::{Entry, Plan};
use super::registry::Tool;
use super::suggest::SuggestCall;
use crate::render::{Level, Rendered, View};
use exa_mcp_model::Operation;

/// A tool call that is parsed and validated. It can be asked what it will do before it runs.
pub(crate) struct ToolCall {
    pub(super) name: String,
    /// The arguments as they were given: tasks are stored with them.
    pub(super) arguments: Map<String, Value>,
    pub(super) tool: Option<Arc<Tool>>,
    pub(super) start_cost: Option<u64>,
    pub(super) waits: bool,
    /// What to do, or why it cannot be done.
    pub(super) action: ToolResult<Action>,
}

impl ToolCall {
    /// Returns the name of the tool.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the arguments as they were given.
    pub(crate) fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// Returns what the call can cost if it starts work that takes long, in millionths of a dollar;
    /// `None` for other calls.
    pub(crate) fn start_cost(&self) -> Option<u64> {
        self.start_cost
    }

    /// Returns whether the call says itself how long it waits.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// Returns whether the call reads this argument of its operation.
    pub(super) fn has_argument(&self, name: &str) -> bool {
        match &self.action {
            Ok(Action::Operation(_, Source::Exa { arguments, .. })) => arguments.contains_key(name),
            _ => false,
        }
    }
}

/// What a call does.
pub(super) enum Action {
    /// Shows what is known already.
    Show(Rendered),
    /// Keeps a note.
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
    /// How the answer is to be shown.
    pub(super) options: Options,
    /// The same, read.
    pub(super) view: View,
    /// The level by which the tool chose what to ask Exa for.
    pub(super) requested_level: Option<Level>,
    /// Which entry of a host stands for the operation.
    pub(super) entry: Option<usize>,
    /// What was put right in the arguments.
    pub(super) corrections: Vec<String>,
}

/// Where the answer to a call comes from.
pub(super) enum Source {
    /// From the cache, under this id.
    Cache(String),
    /// From Exa, or from the cache if it was asked the same before.
    Exa {
        /// The arguments of the operation.
        arguments: Map<String, Value>,
        /// Filters that Exa applies.
        sent_filters: Vec<String>,
    },
}

impl OperationCall {
    /// Returns the entry of a host that stands for the operation.
    pub(super) fn entry(&self) -> Option<&Entry> {
        entry(&self.tool, self.entry)
    }
}

/// Returns an entry of a host.
pub(super) fn entry(tool: &Tool, index: Option<usize>) -> Option<&Entry> {
    match &tool.plan {
        Plan::Host { entries } => entries.get(index?),
        _ => None,
    }
}

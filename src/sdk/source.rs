//! What a tree is made from: the operations, with the tool that carries each out.

use serde_json::Value;

use super::SdkError;
use crate::operations::{self, LongRunning, Operation};
use crate::tools;

/// One operation.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) domain: String,
    /// The dispatcher that takes it.
    pub(super) tool: String,
    pub(super) summary: String,
    pub(super) description: String,
    pub(super) deprecated: bool,
    /// How the work that it starts is followed, in words.
    pub(super) follow: Option<String>,
    pub(super) input: Value,
    pub(super) output: Value,
}

/// The operations of the registry.
pub(super) fn registry() -> Result<Vec<Source>, SdkError> {
    operations::all().iter().map(source).collect()
}

fn source(operation: &Operation) -> Result<Source, SdkError> {
    let schema = |text: &str| {
        serde_json::from_str(text).map_err(|error| SdkError::Schema(operation.name, error))
    };
    Ok(Source {
        name: operation.name.to_owned(),
        domain: operation.domain.to_owned(),
        tool: tools::dispatcher_of(operation.name)
            .ok_or(SdkError::NoTool(operation.name))?
            .to_owned(),
        summary: operation.summary.to_owned(),
        description: operation.description.to_owned(),
        deprecated: operation.deprecated,
        follow: operation
            .long_running
            .as_ref()
            .filter(|_| !operation.read_only)
            .map(follow),
        input: schema(operation.input_schema)?,
        output: schema(operation.output_schema)?,
    })
}

fn follow(marker: &LongRunning) -> String {
    format!(
        "The work goes on after the answer: give the option wait_seconds, or call {} until {} is one of {}.",
        marker.get,
        marker.status,
        marker.final_states.join(", ")
    )
}

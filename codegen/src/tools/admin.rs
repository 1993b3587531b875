//! Confines the operations of some APIs to a tool set for admins.

use exa_mcp_model::ToolPlan;

use super::{Tool, ToolRegistry, tool_report};
use crate::error::Findings;
use crate::model::Model;

/// Removes tools that would offer a confined operation beside other operations, or under another name.
pub(super) fn confine(registry: &mut ToolRegistry, model: &Model, findings: &mut Findings) {
    registry.tools.retain(|name, tool| {
        let is_single = matches!(tool.plan, ToolPlan::Operation { .. });
        let Some(set) = set_of(tool, model).filter(|_| !is_single) else {
            return true;
        };
        tool_report(name, findings).omit(format!(
            "it calls operations of the set `{set}`; tool omitted"
        ));
        false
    });
}

/// Returns the set to which a tool is confined, because of an operation that it calls.
pub(super) fn set_of(tool: &Tool, model: &Model) -> Option<String> {
    let operations = tool.plan.operations().into_iter();
    let mut operations = operations.filter_map(|name| model.find(name));
    operations
        .find_map(|operation| model.only_set(operation))
        .map(str::to_owned)
}

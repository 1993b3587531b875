//! Which of the enabled tools can call an operation.

use std::sync::Arc;

use super::registry::Tool;
use exa_mcp_model::ToolPlan;

/// Describes how to call an operation with these tools.
pub(super) fn route_to(tools: &[Arc<Tool>], operation: &str) -> Option<String> {
    let routes = tools.iter().filter_map(|tool| route(tool, operation));
    routes.min_by_key(|(rank, _)| *rank).map(|(_, route)| route)
}

/// Returns the route through one tool and its rank: dedicated tools come first, then dispatchers, then tools that
/// restrict the operation.
fn route(tool: &Tool, operation: &str) -> Option<(u8, String)> {
    let name = &tool.definition.name;
    let alone = |rank| Some((rank, format!("`{name}`")));
    match &tool.plan {
        ToolPlan::Named(plan) if plan.operation == operation && plan.fixed.is_empty() => alone(0),
        ToolPlan::Named(plan) if plan.operation == operation => alone(4),
        ToolPlan::Operation { operation: own } if own == operation => alone(1),
        ToolPlan::Dispatcher { operations } if operations.iter().any(|own| own == operation) => {
            Some((2, format!("`{name}` with operation `{operation}`")))
        }
        ToolPlan::Toolhost { entries } => {
            let mut entries = entries.iter();
            let entry = entries.find(|entry| entry.operation.as_deref() == Some(operation))?;
            Some((3, format!("`{name}` with operation `{}`", entry.name)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::tools::registry::ToolRegistry;

    fn route(tools: &str, operation: &str) -> Option<String> {
        ToolRegistry::new(tools).unwrap().route_to(operation)
    }

    #[test]
    fn prefers_dedicated_tools() {
        let cases = [
            ("default", "search", "`web_search_exa`"),
            ("default", "answer", "`exa_api` with operation `answer`"),
            ("exa_api,search", "search", "`search`"),
            (
                "toolhost",
                "websets.create",
                "`websets-sync` with operation `create_webset`",
            ),
            (
                "company_research_exa,exa_api",
                "search",
                "`exa_api` with operation `search`",
            ),
            ("company_research_exa", "search", "`company_research_exa`"),
        ];
        for (tools, operation, expected) in cases {
            assert_eq!(
                route(tools, operation).as_deref(),
                Some(expected),
                "{tools}"
            );
        }
    }

    #[test]
    fn has_no_route_without_a_suitable_tool() {
        assert_eq!(route("classic", "websets.create"), None);
        assert_eq!(route("notes", "search"), None);
    }
}

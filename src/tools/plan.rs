//! The plans of tools in the generated table.

pub use exa_mcp_model::ToolHints as Hints;
pub(super) use exa_mcp_model::{
    HostEntry as Entry, HostRole as Role, NamedToolPlan as Named, ToolFile, ToolPlan as Plan,
};

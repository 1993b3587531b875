//! How a call of a tool is carried out, as the generated table describes it.

pub use exa_mcp_model::ToolHints as Hints;
pub(super) use exa_mcp_model::{
    HostEntry as Entry, HostRole as Role, NamedToolPlan as Named, ToolFile, ToolPlan as Plan,
};

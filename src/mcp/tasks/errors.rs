//! Errors of task methods.

use exa_mcp_store::StoreError;
use rmcp::model::ErrorData;

/// A task that the owner does not have.
pub(super) fn unknown(id: &str) -> ErrorData {
    let shown: String = id.chars().take(64).collect();
    ErrorData::invalid_params(
        format!("Unknown task {shown}: it never existed, belongs to another user, or has expired"),
        None,
    )
}

/// A failure of the store.
pub(super) fn store_error(error: StoreError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// The server runs too many tasks.
pub(super) fn too_many(limit: usize) -> ErrorData {
    ErrorData::internal_error(
        format!(
            "{limit} tasks are running already; wait for some to end, or raise EXA_MCP_MAX_CONCURRENT_TASKS"
        ),
        None,
    )
}

/// The owner runs too many tasks.
pub(super) fn too_many_of_owner(limit: usize) -> ErrorData {
    ErrorData::internal_error(
        format!(
            "{limit} of your tasks are running already, which is the limit per user; wait for some to end or cancel some, \
             or ask the operator to raise EXA_MCP_MAX_CONCURRENT_TASKS_PER_USER"
        ),
        None,
    )
}

/// The guests at an address run too many tasks.
pub(super) fn too_many_of_address(limit: usize) -> ErrorData {
    ErrorData::internal_error(
        format!(
            "{limit} tasks of clients at your address are running already; wait for some to end \
             (EXA_MCP_MAX_TASKS_PER_ADDRESS sets the limit)"
        ),
        None,
    )
}

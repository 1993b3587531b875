//! Which dispatcher accepts an operation.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use exa_mcp_generated::tools::TOOLS;
use exa_mcp_model::{ToolFile, ToolPlan};

/// Returns the dispatcher that accepts an operation.
pub(crate) fn dispatcher_of(operation: &str) -> Option<&'static str> {
    static DISPATCHERS: LazyLock<BTreeMap<String, &'static str>> = LazyLock::new(load);
    DISPATCHERS.get(operation).copied()
}

fn load() -> BTreeMap<String, &'static str> {
    let mut found = BTreeMap::new();
    for (name, text) in TOOLS {
        let file: Option<ToolFile> = serde_json::from_str(text).ok();
        if let Some(ToolPlan::Dispatcher { operations }) = file.map(|file| file.plan) {
            found.extend(operations.into_iter().map(|operation| (operation, *name)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_that_is_not_for_admins_has_a_dispatcher() {
        for operation in crate::operations::all() {
            let has_dispatcher = dispatcher_of(operation.name).is_some();
            assert_eq!(
                has_dispatcher, !operation.api.admin_only,
                "{}",
                operation.name
            );
        }
        assert_eq!(dispatcher_of("no.such"), None);
    }
}

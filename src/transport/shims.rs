//! Tasks of 2025-11-25, which rmcp does not know.
//!
//! Their requests reach the handler as custom ones. On the way out only the answer to `initialize`
//! needs a change: there the handler says what it can do in the words of the later extension.

use rmcp::model::{
    CustomResult, InitializeResult, ProtocolVersion, ServerResult, TASKS_EXTENSION_ID,
};
use serde_json::{Value, json};

use crate::mcp::request::declared_version;

/// Whether a request belongs to the tasks of 2025-11-25. A request that introduces itself belongs to a
/// later version. Lists of tools say there which tools take tasks.
pub(super) fn is_legacy_task(method: &str, params: Option<&Value>) -> bool {
    let given = |name: &str| params.and_then(|params| params.get(name));
    let has = |name: &str| given(name).is_some_and(|value| !value.is_null());
    let concerns = match method {
        "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" | "tools/list" => true,
        "tools/call" => has("task"),
        _ => false,
    };
    concerns && !introduces(params)
}

/// Whether a request introduces itself.
pub(super) fn introduces(params: Option<&Value>) -> bool {
    declared_version(params).is_some()
}

/// Whether a request introduces itself as one of a version without a handshake that we know.
pub(super) fn is_stateless(params: Option<&Value>) -> bool {
    let named = declared_version(params).and_then(Value::as_str);
    let mut versions = ProtocolVersion::KNOWN_VERSIONS.iter();
    versions
        .any(|version| *version >= ProtocolVersion::V_2026_07_28 && named == Some(version.as_str()))
}

/// Whether a custom request is one that we made of a request that rmcp does not know.
pub(super) fn is_known(method: &str) -> bool {
    method.starts_with("tasks/") || method.starts_with("tools/")
}

/// The answer to `initialize` as a version of the handshake writes it.
pub(super) fn initialized(result: InitializeResult) -> ServerResult {
    let knows_tasks = result.protocol_version == ProtocolVersion::V_2025_11_25;
    let mut value = match serde_json::to_value(&result) {
        Ok(value) => value,
        Err(_) => return ServerResult::InitializeResult(result),
    };
    if let Some(Value::Object(capabilities)) = value.get_mut("capabilities") {
        let Some(Value::Object(extensions)) = capabilities.get_mut("extensions") else {
            return ServerResult::InitializeResult(result);
        };
        let tasks = extensions.shift_remove(TASKS_EXTENSION_ID);
        if extensions.is_empty() {
            capabilities.shift_remove("extensions");
        }
        if knows_tasks && tasks.is_some() {
            let tasks = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
            capabilities.insert("tasks".to_owned(), tasks);
        }
    }
    ServerResult::CustomResult(CustomResult::new(value))
}

//! Support for the tasks of protocol 2025-11-25, which rmcp does not implement.
//!
//! Their requests reach the handler as custom requests. Only the response to `initialize`
//! is rewritten: the handler announces tasks as the extension of the later protocol.

use rmcp::model::{
    CustomResult, InitializeResult, ProtocolVersion, ServerResult, TASKS_EXTENSION_ID,
};
use serde_json::{Value, json};

use crate::mcp::request::declared_version;

/// Returns whether a request uses the tasks of 2025-11-25. A request that declares its version belongs to a
/// later protocol. `tools/list` is included because its result states which tools support tasks.
pub(super) fn is_legacy_task(method: &str, params: Option<&Value>) -> bool {
    let given = |name: &str| params.and_then(|params| params.get(name));
    let has = |name: &str| given(name).is_some_and(|value| !value.is_null());
    let uses_tasks = match method {
        "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" | "tools/list" => true,
        "tools/call" => has("task"),
        _ => false,
    };
    uses_tasks && !declares_version(params)
}

/// Returns whether a request declares its protocol version.
pub(super) fn declares_version(params: Option<&Value>) -> bool {
    declared_version(params).is_some()
}

/// Returns whether a request declares a known protocol version without a handshake.
pub(super) fn is_stateless(params: Option<&Value>) -> bool {
    let named = declared_version(params).and_then(Value::as_str);
    let mut versions = ProtocolVersion::KNOWN_VERSIONS.iter();
    versions
        .any(|version| *version >= ProtocolVersion::V_2026_07_28 && named == Some(version.as_str()))
}

/// Returns whether a custom request stands for a request that rmcp does not implement.
pub(super) fn is_custom_method(method: &str) -> bool {
    let groups = ["tasks/", "tools/", "skills/", "resources/directory/"];
    groups.iter().any(|group| method.starts_with(group))
}

/// Returns the result of `initialize` in the form of the negotiated version.
pub(super) fn initialize_result(result: InitializeResult) -> ServerResult {
    let supports_tasks = result.protocol_version == ProtocolVersion::V_2025_11_25;
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
        if supports_tasks && tasks.is_some() {
            let tasks = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
            capabilities.insert("tasks".to_owned(), tasks);
        }
    }
    ServerResult::CustomResult(CustomResult::new(value))
}

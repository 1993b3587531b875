//! Reasons for cancellations.

use serde_json::json;

use crate::support::{McpServer, Program};

#[test]
fn reasons_of_cancellations_are_logged() {
    let program = Program::new(["--sandbox"]).env("EXA_MCP_LOG_LEVEL", "info");
    let mut server = McpServer::connect(program, "2025-11-25");
    let args = json!({"search": {"query": "banks", "count": 500}});
    let call = json!({"operation": "websets.create", "args": args, "wait_seconds": 60});
    let params = json!({"name": "manage_websets", "arguments": call});
    let id = server.send("tools/call", params);
    let reason = "the user \u{1b}[31mchanged their mind";
    server.notify(
        "notifications/cancelled",
        json!({"requestId": id, "reason": reason}),
    );
    server.request("ping", json!({}));
    let stderr = server.shut_down().stderr;
    assert!(stderr.contains("changed their mind"), "{stderr}");
    assert!(!stderr.contains('\u{1b}'), "{stderr}");
}

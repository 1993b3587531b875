//! A client that declares nothing is asked nothing and gets a usable answer.

use serde_json::json;

use super::{BOTH, Scripted, never};
use crate::support::{Program, STATELESS};

const VERSIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    STATELESS,
];

#[test]
fn client_without_capabilities_gets_no_requests() {
    for version in VERSIONS {
        let program = Program::new(["--sandbox", "--tools", "default,assist"]);
        let program = program.env("EXA_MCP_CONFIRM_DELETES", "true");
        let mut client = Scripted::new(program, version, json!({}));
        let suggested = client.call(
            "suggest_enrichments",
            json!({"description": "AI startups", "output_format": "json"}),
            never,
        );
        assert!(!suggested.is_error, "{}", suggested.text);
        let missing = json!({"operation": "items.list"});
        assert!(client.call("manage_websets", missing, never).is_error);
        let delete = json!({"operation": "websets.delete", "args": {"websetId": "ws_none"}});
        let deleted = client.call("manage_websets", delete, never);
        assert!(deleted.text.contains("404"), "{}", deleted.text);
        let import = json!({"operation": "imports.create", "args": {
            "title": "t", "filePath": "/etc/hostname", "entity": {"type": "company"}}});
        assert!(client.call("manage_websets", import, never).is_error);
    }
}

#[test]
fn missing_key_is_explained_in_text() {
    for version in BOTH {
        let program = Program::new([]).without("EXA_API_KEY");
        let mut client = Scripted::new(program, version, json!({"elicitation": {"form": {}}}));
        let search = json!({"query": "heat pumps", "output_format": "json"});
        let failure = client.call("web_search_exa", search, never).failure();
        failure.assert_code(-32002, "AUTHENTICATION_ERROR");
    }
}

#[test]
fn capabilities_unknown_to_a_version_are_ignored() {
    let all = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}});
    let program = Program::new(["--tools", "default"]).without("EXA_API_KEY");
    let mut client = Scripted::new(program, "2025-03-26", all);
    let missing = json!({"operation": "items.list"});
    assert!(client.call("manage_websets", missing, never).is_error);
    let search = json!({"query": "heat pumps"});
    assert!(client.call("web_search_exa", search, never).is_error);
}

//! A client without capabilities receives no requests and gets usable results.

use serde_json::json;

use super::{ScriptedClient, VERSIONS, no_requests};
use crate::support::{Program, STATELESS_VERSION};

const ALL_VERSIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    STATELESS_VERSION,
];

#[test]
fn client_without_capabilities_gets_no_requests() {
    for version in ALL_VERSIONS {
        let program = Program::new(["--sandbox", "--tools", "default,assist"]);
        let program = program.env("EXA_MCP_CONFIRM_DELETES", "true");
        let mut client = ScriptedClient::new(program, version, json!({}));
        let suggested = client.call(
            "suggest_enrichments",
            json!({"description": "AI startups", "output_format": "json"}),
            no_requests,
        );
        assert!(!suggested.is_error, "{}", suggested.text);
        let missing = json!({"operation": "items.list"});
        assert!(client.call("manage_websets", missing, no_requests).is_error);
        let delete = json!({"operation": "websets.delete", "args": {"websetId": "ws_none"}});
        let deleted = client.call("manage_websets", delete, no_requests);
        assert!(deleted.text.contains("404"), "{}", deleted.text);
        let import = json!({"operation": "imports.create", "args": {
            "title": "t", "filePath": "/etc/hostname", "entity": {"type": "company"}}});
        assert!(client.call("manage_websets", import, no_requests).is_error);
    }
}

#[test]
fn missing_key_is_explained_in_text() {
    for version in VERSIONS {
        let program = Program::new([]).env_remove("EXA_API_KEY");
        let mut client =
            ScriptedClient::new(program, version, json!({"elicitation": {"form": {}}}));
        let search = json!({"query": "heat pumps", "output_format": "json"});
        let failure = client.call("web_search_exa", search, no_requests).failure();
        failure.assert_code(-32002, "AUTHENTICATION_ERROR");
    }
}

#[test]
fn capabilities_unknown_to_a_version_are_ignored() {
    let all = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}});
    let program = Program::new(["--tools", "default"]).env_remove("EXA_API_KEY");
    let mut client = ScriptedClient::new(program, "2025-03-26", all);
    let missing = json!({"operation": "items.list"});
    assert!(client.call("manage_websets", missing, no_requests).is_error);
    let search = json!({"query": "heat pumps"});
    assert!(client.call("web_search_exa", search, no_requests).is_error);
}

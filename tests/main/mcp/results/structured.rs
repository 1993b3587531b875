//! Structured content by the setting `EXA_MCP_STRUCTURED`.

use serde_json::{Value, json};

use crate::support::{McpServer, Program};

fn server(mode: &str) -> McpServer {
    let program = Program::new(["--sandbox", "--tools", "default"]);
    McpServer::connect(program.env("EXA_MCP_STRUCTURED", mode), "2025-11-25")
}

fn result(server: &mut McpServer, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    server.request("tools/call", params)["result"].clone()
}

/// Returns whether a value contains null somewhere.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

#[test]
fn compact_content_is_as_short_as_the_text() {
    // Empty counts as not set, so this is the default.
    let mut server = server("");
    for arguments in [
        json!({"query": "banks"}),
        json!({"query": "banks", "content_level": "summary"}),
        json!({"query": "banks", "output_format": "table"}),
    ] {
        let result = result(&mut server, "web_search_exa", arguments);
        let text = result["content"][0]["text"].as_str().expect("a text");
        let structured = &result["structuredContent"];
        assert!(
            structured.is_object() && !has_null(structured),
            "{structured}"
        );
        let json = structured.to_string();
        let tokens = exa_mcp_text::tokens::estimate;
        assert!(tokens(&json) * 10 <= tokens(text) * 11, "{json}");
        assert!(
            json.contains("<untrusted id=") && json.contains("</untrusted id="),
            "{json}"
        );
        assert!(json.contains("https://"), "{json}");
    }
}

/// Errors as well: their fields, or their text where the names of the fields would make them longer.
#[test]
fn compact_errors_are_as_short_as_their_text() {
    let mut server = server("");
    for (tool, arguments) in [
        ("web_search_exa", json!({})),
        (
            "web_search_exa",
            json!({"query": "banks", "numResults": "many"}),
        ),
        ("web_fetch_exa", json!({"urls": ["ftp://a.example/"]})),
        ("exa_api", json!({"operation": "serch", "args": {}})),
        ("exa_api", json!({"operation": "answer", "args": {}})),
        (
            "exa_api",
            json!({"operation": "search", "args": {"query": "banks"}, "index": 99}),
        ),
        (
            "exa_api",
            json!({"operation": "agent.runs.get", "args": {"runId": "none"}}),
        ),
        (
            "manage_websets",
            json!({"operation": "websets.get", "args": {"websetId": "none"}}),
        ),
    ] {
        let found = result(&mut server, tool, arguments);
        assert_eq!(found["isError"], true, "{found}");
        let text = found["content"][0]["text"].as_str().expect("a text");
        let structured = &found["structuredContent"];
        assert!(!has_null(structured), "{structured}");
        let tokens = |text: &str| bpe_openai::o200k_base().count(text);
        let (size, limit) = (tokens(&structured.to_string()), tokens(text));
        // Braces and quotes take four tokens, which is more than a tenth of a short text.
        assert!(
            size <= (limit * 11).div_ceil(10).max(limit + 4),
            "{size} > {limit}: {text}\n{structured}"
        );
        // Nothing is lost: every line is there, or the fields that it was written from.
        let json = structured.to_string();
        let error = &structured["error"];
        let has_all_fields = error["operation"].is_string() && error["code"].is_i64();
        for line in text.lines() {
            let quoted = json!(line).to_string();
            let call = line.find('{').map(|start| &line[start..]);
            let is_there = json.contains(quoted.trim_matches('"'))
                || call.is_some_and(|call| json.contains(call));
            assert!(has_all_fields || is_there, "{line}: {structured}");
        }
    }
}

#[test]
fn structured_content_can_be_full_or_off() {
    let mut full = server("full");
    let found = result(&mut full, "web_search_exa", json!({"query": "banks"}));
    assert_eq!(
        found["structuredContent"]["results"]
            .as_array()
            .map(Vec::len),
        Some(10)
    );
    let mut off = server("off");
    for arguments in [json!({"query": "banks"}), json!({})] {
        let found = result(&mut off, "web_search_exa", arguments);
        assert_eq!(found.get("structuredContent"), None, "{found}");
    }
    for tool in off.tools() {
        assert_eq!(tool.get("outputSchema"), None, "{tool}");
    }
}

#[test]
fn json_pages_have_all_keys_at_every_level() {
    let mut server = server("compact");
    for level in ["summary", "standard", "full"] {
        let arguments = json!({"query": "banks", "output_format": "json", "content_level": level});
        let found = result(&mut server, "web_search_exa", arguments);
        let text = found["content"][0]["text"].as_str().expect("a text");
        let text: Value = serde_json::from_str(text).expect("JSON");
        for name in ["cacheId", "totalResults", "tokenEstimate", "contentLevel"] {
            assert!(text["metadata"].get(name).is_some(), "{name}: {text}");
        }
        for page in text["results"].as_array().expect("results") {
            for name in "id title url publishedDate author text score image favicon".split(' ') {
                assert!(page.get(name).is_some(), "{level}: no {name} in {page}");
            }
        }
    }
}

#[test]
fn errors_are_json_in_every_version_when_json_was_requested() {
    for version in ["2024-11-05", "2025-11-25"] {
        let program = Program::new(["--sandbox", "--tools", "default"]);
        let mut server = McpServer::connect(program, version);
        let arguments = json!({"operation": "answer", "args": {}, "output_format": "json"});
        let found = result(&mut server, "exa_api", arguments);
        let text = found["content"][0]["text"].as_str().expect("a text");
        let error: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(error["error"]["code"], -32602, "{error}");
    }
}

#[test]
fn tables_have_a_row_for_each_result() {
    let mut server = server("compact");
    let arguments = json!({"query": "banks", "numResults": 3, "output_format": "table"});
    let found = result(&mut server, "web_search_exa", arguments);
    let text = found["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("| # | title | url |"), "{text}");
    assert_eq!(
        text.lines().filter(|line| line.starts_with("| ")).count(),
        4,
        "{text}"
    );
}

#[test]
fn every_option_is_declared_and_the_default_set_is_small() {
    let mut server = server("compact");
    let tools = server.tools();
    let tokens = bpe_openai::o200k_base().count(&json!(tools).to_string());
    assert!(tokens <= 2_000, "{tokens}");
    for tool in &tools {
        let description = tool["description"].as_str().expect("a description");
        assert!(description.len() < 1_024, "{description}");
        let properties = &tool["inputSchema"]["properties"];
        let is_dispatcher = properties.get("args").is_some();
        let mut names = vec!["content_level", "output_format", "cache_id", "index"];
        if is_dispatcher {
            names.extend([
                "wait_seconds",
                "fields",
                "offset",
                "max_tokens",
                "fresh",
                "all",
            ]);
            assert!(properties["filters"]["properties"]["minScore"].is_object());
            let signatures = properties["args"]["description"]
                .as_str()
                .expect("signatures");
            for gone in ["research:", "agent.monitors:", "batches:"] {
                assert!(!signatures.contains(gone), "{signatures}");
            }
        }
        for name in names {
            assert!(properties[name].is_object(), "{}: no {name}", tool["name"]);
        }
    }
}

//! Prompts.

use serde_json::{Value, json};

use crate::support::{DEFAULT_VERSION, McpServer, Program, STATELESS_VERSION};

fn connect(tools: &str, version: &str) -> McpServer {
    McpServer::connect(Program::new(["--sandbox", "--tools", tools]), version)
}

fn get(server: &mut McpServer, name: &str, arguments: Value) -> Value {
    server.request("prompts/get", json!({"name": name, "arguments": arguments}))
}

#[track_caller]
fn text(server: &mut McpServer, name: &str, arguments: Value) -> String {
    let response = get(server, name, arguments);
    let message = &response["result"]["messages"][0];
    assert_eq!(message["role"], "user", "{response}");
    message["content"]["text"]
        .as_str()
        .expect("a string")
        .to_owned()
}

#[test]
fn prompts_have_the_fields_of_the_version() {
    for version in [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        DEFAULT_VERSION,
        STATELESS_VERSION,
    ] {
        let mut server = connect("default,notes", version);
        let response = server.request("prompts/list", json!({}));
        let prompts = response["result"]["prompts"].as_array().expect("a list");
        let names: Vec<&str> = prompts
            .iter()
            .filter_map(|prompt| prompt["name"].as_str())
            .collect();
        assert_eq!(
            names,
            [
                "research_topic",
                "build_webset",
                "compare_companies",
                "summarize_notes"
            ]
        );
        for prompt in prompts {
            assert_eq!(
                prompt.get("title").is_some(),
                version >= "2025-06-18",
                "{prompt}"
            );
            assert!(prompt["description"].is_string());
            for argument in prompt["arguments"].as_array().expect("arguments") {
                assert!(argument["description"].is_string() && argument["required"].is_boolean());
            }
        }
        let required: Vec<&Value> = prompts
            .iter()
            .flat_map(|prompt| prompt["arguments"].as_array().expect("arguments"))
            .filter(|argument| argument["required"] == true)
            .map(|argument| &argument["name"])
            .collect();
        assert_eq!(required, ["topic", "description", "companies"]);
        assert_eq!(
            response["result"].get("ttlMs").is_some(),
            version == STATELESS_VERSION
        );
    }
}

#[test]
fn prompts_are_filled_in_with_available_tools() {
    for version in ["2024-11-05", DEFAULT_VERSION, STATELESS_VERSION] {
        for (tools, names) in [
            (
                "default",
                [
                    "`web_search_exa`",
                    "`manage_websets` with operation `websets.create`",
                ],
            ),
            (
                "toolhost",
                [
                    "`exa-sync` with operation `search`",
                    "`websets-sync` with operation `create_webset`",
                ],
            ),
            ("granular", ["`search`", "`websets_create`"]),
        ] {
            let mut server = connect(tools, version);
            let research = text(
                &mut server,
                "research_topic",
                json!({"topic": "heat pumps"}),
            );
            assert!(
                research.contains("heat pumps") && research.contains(names[0]),
                "{research}"
            );
            let arguments = json!({"description": "databases", "count": "25", "criteria": "in Rust; open source"});
            let webset = text(&mut server, "build_webset", arguments);
            assert!(webset.contains(names[1]), "{webset}");
            let args = r#"{"search":{"query":"databases","count":25,"criteria":[{"description":"in Rust"},{"description":"open source"}]}}"#;
            assert!(webset.contains(args), "{webset}");
            let comparison = text(
                &mut server,
                "compare_companies",
                json!({"companies": "Exa, Acme", "aspects": "pricing"}),
            );
            assert!(
                comparison.contains("Exa, Acme") && comparison.contains("pricing"),
                "{comparison}"
            );
        }
    }
}

#[test]
fn prompt_argument_errors_are_named() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let mut server = connect("default", version);
        for (name, arguments, part) in [
            ("research_topic", json!({}), "`topic` is required"),
            (
                "research_topic",
                json!({"topic": ""}),
                "`topic` is required",
            ),
            (
                "research_topic",
                json!({"topic": "x", "depth": "abyss"}),
                "`depth` must be one of",
            ),
            (
                "build_webset",
                json!({"count": "zero"}),
                "`count` must be a whole number",
            ),
            (
                "build_webset",
                json!({"count": "zero"}),
                "`description` is required",
            ),
            (
                "compare_companies",
                json!({"companies": "Exa"}),
                "at least 2",
            ),
            ("no_such_prompt", json!({}), "Unknown prompt"),
            ("summarize_notes", json!({}), "Unknown prompt"),
        ] {
            let error = get(&mut server, name, arguments)["error"].clone();
            assert_eq!(error["code"], -32602, "{error}");
            assert!(
                error["message"].as_str().expect("a string").contains(part),
                "{error}"
            );
        }
        let missing = server.request("prompts/get", json!({"name": "research_topic"}));
        assert_eq!(missing["error"]["code"], -32602);
        for params in [
            json!({}),
            json!({"name": 5}),
            json!({"name": "x", "arguments": []}),
        ] {
            assert_eq!(
                server.request("prompts/get", params)["error"]["code"],
                -32602
            );
        }
    }
}

#[test]
fn notes_are_summarized_with_their_texts() {
    for version in ["2024-11-05", DEFAULT_VERSION, STATELESS_VERSION] {
        let mut server = connect("notes", version);
        let empty = get(&mut server, "summarize_notes", json!({}));
        assert!(empty.to_string().contains("no notes yet"), "{empty}");
        for title in ["one", "two"] {
            let note = json!({"title": title, "content": "Text."});
            server.request(
                "tools/call",
                json!({"name": "create_note", "arguments": note}),
            );
        }
        let response = get(&mut server, "summarize_notes", json!({"focus": "costs"}));
        let messages = response["result"]["messages"].as_array().expect("messages");
        let notes: Vec<&Value> = messages
            .iter()
            .map(|message| &message["content"])
            .filter(|content| content["type"] == "resource")
            .map(|content| &content["resource"])
            .collect();
        assert_eq!(notes.len(), 2, "{response}");
        assert_eq!(notes[0]["text"], "two\n\nText.");
        assert_eq!(notes[1]["text"], "one\n\nText.");
        let uri = notes[1]["uri"].as_str().expect("an address");
        let read = server.request("resources/read", json!({"uri": uri}));
        assert_eq!(read["result"]["contents"][0]["text"], "Text.");
        let last = messages.last().expect("a message")["content"]["text"].clone();
        assert!(last.as_str().expect("a string").contains("costs"), "{last}");
        let id = uri.strip_prefix("note:///").expect("a note");
        let one = get(&mut server, "summarize_notes", json!({"notes": id}));
        assert_eq!(
            one["result"]["messages"].as_array().map(Vec::len),
            Some(3),
            "{one}"
        );
        let none = get(&mut server, "summarize_notes", json!({"notes": "unknown"}));
        assert_eq!(none["error"]["code"], -32602, "{none}");
    }
}

//! Tool selection: `--tools`, `ENABLED_TOOLS` and `EXA_MCP_ENABLED_TOOLS`.

use serde_json::Value;

use crate::support::{DEFAULT_VERSION, McpServer, Program};

const DEFAULT: &str = "web_search_exa web_fetch_exa exa_api manage_websets";

/// Returns the names of the tools that this program lists.
fn listed_tools(program: Program) -> String {
    let tools = McpServer::connect(program, DEFAULT_VERSION).tools();
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    names.join(" ")
}

/// Returns the names of the tools that this selection enables.
fn selected_tools(list: &str) -> String {
    listed_tools(Program::new(["--tools", list]))
}

#[test]
fn flag_overrides_variables() {
    let program = || Program::new([]).env("EXA_MCP_ENABLED_TOOLS", "answer_exa");
    assert_eq!(listed_tools(Program::new([])), DEFAULT);
    assert_eq!(listed_tools(program()), "answer_exa");
    assert_eq!(
        listed_tools(program().env("ENABLED_TOOLS", "agent_run")),
        "agent_run"
    );
    let flagged = Program::new(["--tools", "exa_api"])
        .env("ENABLED_TOOLS", "agent_run")
        .env("EXA_MCP_ENABLED_TOOLS", "answer_exa");
    assert_eq!(listed_tools(flagged), "exa_api");
}

/// Client settings often leave a variable empty.
#[test]
fn blank_variable_is_ignored() {
    for blank in ["", " ", "\t"] {
        assert_eq!(
            listed_tools(Program::new([]).env("ENABLED_TOOLS", blank)),
            DEFAULT
        );
        let both = Program::new([])
            .env("ENABLED_TOOLS", blank)
            .env("EXA_MCP_ENABLED_TOOLS", "answer_exa");
        assert_eq!(listed_tools(both), "answer_exa");
    }
}

#[test]
fn overridden_variable_is_not_validated() {
    let program = Program::new(["--tools", "exa_api"]).env("ENABLED_TOOLS", "nonsense");
    assert_eq!(listed_tools(program), "exa_api");
}

#[test]
fn sets_domains_and_tools_can_be_mixed() {
    assert_eq!(selected_tools("items"), "items_delete items_get items_list");
    assert_eq!(
        selected_tools("items_list,toolhost"),
        "items_list websets-sync websets-async exa-sync exa-async"
    );
    assert_eq!(
        selected_tools("answer_exa,default"),
        format!("answer_exa {DEFAULT}")
    );
    assert_eq!(
        selected_tools(" items_get , answer_exa ,, "),
        "items_get answer_exa"
    );
    assert!(selected_tools("agent.runs").starts_with("agent_runs_cancel agent_runs_create "));
}

#[test]
fn a_tool_is_listed_once() {
    assert_eq!(selected_tools("exa_api,exa_api"), "exa_api");
    assert_eq!(
        selected_tools("items_list,items,items"),
        "items_list items_delete items_get"
    );
    assert_eq!(selected_tools("default,web_fetch_exa,default"), DEFAULT);
}

/// `search` is a domain and an operation; the domain takes precedence.
#[test]
fn set_name_wins_over_tool_name() {
    assert_eq!(
        selected_tools("search"),
        "answer find_similar get_contents search"
    );
}

#[test]
fn disabled_tool_cannot_be_called() {
    let mut server = McpServer::sandboxed(&["--tools", "web_search_exa"]);
    let params =
        serde_json::json!({"name": "exa_api", "arguments": {"operation": "list_operations"}});
    let response = server.request("tools/call", params);
    assert_eq!(response["error"]["code"], -32602, "{response}");
}

#[test]
fn unknown_tool_names_abort_start() {
    let parts = [
        "serch",
        "toolz",
        "default",
        "granular",
        "agent.runs",
        "web_search_exa",
        "items_list",
    ];
    for arguments in [
        &["--tools", "items,serch,toolz"][..],
        &["tools", "--tools", "serch,toolz"],
    ] {
        Program::new(arguments.iter().copied())
            .run()
            .assert_failed(2, &parts);
    }
    for variable in ["ENABLED_TOOLS", "EXA_MCP_ENABLED_TOOLS"] {
        Program::new([])
            .env(variable, "serch,toolz")
            .run()
            .assert_failed(2, &parts);
    }
    // Names are exact: guessing could enable unwanted tools.
    Program::new(["--tools", "Default"])
        .run()
        .assert_failed(2, &["Default"]);
}

#[test]
fn empty_tool_list_is_rejected() {
    for list in ["", " ", ",", " , "] {
        Program::new(["--tools", list])
            .run()
            .assert_failed(2, &["empty"]);
    }
    Program::new([])
        .env("ENABLED_TOOLS", ",")
        .run()
        .assert_failed(2, &["empty"]);
}

/// Instructions cost tokens in every session, so they mention only enabled tools.
#[test]
fn instructions_match_the_tools() {
    let initialize = |list: &str| -> Value {
        let mut server = McpServer::start(Program::new(["--tools", list]));
        server.handshake(DEFAULT_VERSION)["instructions"].clone()
    };
    let text = |value: Value| value.as_str().expect("a string").to_owned();
    assert!(text(initialize("default")).contains("list_operations"));
    assert!(text(initialize("toolhost")).contains("list_operations"));
    assert!(!text(initialize("classic")).contains("list_operations"));
}

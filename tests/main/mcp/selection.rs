//! Which tools are offered: `--tools`, `ENABLED_TOOLS` and `EXA_MCP_ENABLED_TOOLS`.

use serde_json::Value;

use crate::support::{McpServer, Program, USUAL};

const DEFAULT: &str = "web_search_exa web_fetch_exa exa_api manage_websets";

/// The names that a server lists which is started like this.
fn listed(program: Program) -> String {
    let tools = McpServer::connect(program, USUAL).tools();
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    names.join(" ")
}

/// The names that this list comes to.
fn chosen(list: &str) -> String {
    listed(Program::new(["--tools", list]))
}

#[test]
fn flag_overrides_variables() {
    let program = || Program::new([]).env("EXA_MCP_ENABLED_TOOLS", "answer_exa");
    assert_eq!(listed(Program::new([])), DEFAULT);
    assert_eq!(listed(program()), "answer_exa");
    assert_eq!(
        listed(program().env("ENABLED_TOOLS", "agent_run")),
        "agent_run"
    );
    let flagged = Program::new(["--tools", "exa_api"])
        .env("ENABLED_TOOLS", "agent_run")
        .env("EXA_MCP_ENABLED_TOOLS", "answer_exa");
    assert_eq!(listed(flagged), "exa_api");
}

/// Client settings often leave a variable set to nothing.
#[test]
fn blank_variable_is_ignored() {
    for blank in ["", " ", "\t"] {
        assert_eq!(
            listed(Program::new([]).env("ENABLED_TOOLS", blank)),
            DEFAULT
        );
        let both = Program::new([])
            .env("ENABLED_TOOLS", blank)
            .env("EXA_MCP_ENABLED_TOOLS", "answer_exa");
        assert_eq!(listed(both), "answer_exa");
    }
}

#[test]
fn overridden_variable_is_not_validated() {
    let program = Program::new(["--tools", "exa_api"]).env("ENABLED_TOOLS", "nonsense");
    assert_eq!(listed(program), "exa_api");
}

#[test]
fn sets_domains_and_tools_can_be_mixed() {
    assert_eq!(chosen("items"), "items_delete items_get items_list");
    assert_eq!(
        chosen("items_list,toolhost"),
        "items_list websets-sync websets-async exa-sync exa-async"
    );
    assert_eq!(
        chosen("answer_exa,default"),
        format!("answer_exa {DEFAULT}")
    );
    assert_eq!(
        chosen(" items_get , answer_exa ,, "),
        "items_get answer_exa"
    );
    assert!(chosen("agent.runs").starts_with("agent_runs_cancel agent_runs_create "));
}

#[test]
fn a_tool_is_listed_once() {
    assert_eq!(chosen("exa_api,exa_api"), "exa_api");
    assert_eq!(
        chosen("items_list,items,items"),
        "items_list items_delete items_get"
    );
    assert_eq!(chosen("default,web_fetch_exa,default"), DEFAULT);
}

/// `search` is a domain and an operation; the wider meaning is taken.
#[test]
fn set_name_wins_over_tool_name() {
    assert_eq!(chosen("search"), "answer find_similar get_contents search");
}

#[test]
fn disabled_tool_cannot_be_called() {
    let mut server = McpServer::sandboxed(&["--tools", "web_search_exa"]);
    let params =
        serde_json::json!({"name": "exa_api", "arguments": {"operation": "list_operations"}});
    let answer = server.ask("tools/call", params);
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
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
    // Names are exact: a server that guesses would offer what nobody asked for.
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

/// Instructions cost tokens in every session, so they speak of what is there.
#[test]
fn instructions_match_the_tools() {
    let told = |list: &str| -> Value {
        let mut server = McpServer::start(Program::new(["--tools", list]));
        server.handshake(USUAL)["instructions"].clone()
    };
    let text = |value: Value| value.as_str().expect("a text").to_owned();
    assert!(text(told("default")).contains("list_operations"));
    assert!(text(told("toolhost")).contains("list_operations"));
    assert!(!text(told("classic")).contains("list_operations"));
}

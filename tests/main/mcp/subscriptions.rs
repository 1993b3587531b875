//! Hearing of changes, in the way of either era.

use serde_json::{Value, json};

use crate::support::{McpServer, Program, STATELESS, Sandbox, USUAL};

const UPDATED: &str = "notifications/resources/updated";
const LIST_CHANGED: &str = "notifications/resources/list_changed";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn connect(sandbox: &Sandbox, version: &str) -> McpServer {
    let program = Program::new(["--tools", "default,notes"]).env("EXA_BASE_URL", &sandbox.url());
    McpServer::connect(program, version)
}

fn create_note(server: &mut McpServer) {
    let note = json!({"title": "t", "content": "c"});
    let answer = server.ask(
        "tools/call",
        json!({"name": "create_note", "arguments": note}),
    );
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}

fn websets(server: &mut McpServer, operation: &str, args: Value) -> Value {
    let call = json!({"operation": operation, "args": args, "output_format": "json"});
    let answer = server.ask(
        "tools/call",
        json!({"name": "manage_websets", "arguments": call}),
    );
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    answer["result"]["content"][0]["text"].clone()
}

/// Makes a webset and gives its address.
fn webset(server: &mut McpServer, name: &str) -> String {
    let args = json!({"search": {"query": "x"}, "externalId": name});
    websets(server, "websets.create", args);
    format!("exa://websets/{name}")
}

/// Asks to be told of changes and gives the id of the request.
fn listen(server: &mut McpServer, notifications: Value) -> Value {
    let id = server.send(
        "subscriptions/listen",
        json!({"notifications": notifications}),
    );
    let acknowledged = server.notification(ACKNOWLEDGED);
    assert_eq!(acknowledged["_meta"][SUBSCRIPTION], id);
    id
}

#[test]
fn new_note_notifies_list_changed() {
    let sandbox = Sandbox::start();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", USUAL] {
        let mut server = connect(&sandbox, version);
        create_note(&mut server);
        server.notification(LIST_CHANGED);
        assert_eq!(server.end().stderr, "");
    }
}

#[test]
fn subscribed_webset_notifies_updates() {
    let sandbox = Sandbox::start();
    for version in ["2024-11-05", USUAL] {
        let mut server = connect(&sandbox, version);
        let followed = webset(&mut server, &format!("a-{version}"));
        let other = webset(&mut server, &format!("b-{version}"));
        let name = |uri: &str| uri.rsplit('/').next().map(str::to_owned);
        let items = format!("{followed}/items");
        for uri in [&followed, &items] {
            let answer = server.ask("resources/subscribe", json!({"uri": uri}));
            assert_eq!(answer["result"], json!({}), "{answer}");
        }
        let title = |title: &str| json!({"title": title});
        websets(
            &mut server,
            "websets.update",
            json!({"websetId": name(&other), "metadata": title("x")}),
        );
        websets(
            &mut server,
            "websets.update",
            json!({"websetId": name(&followed), "metadata": title("x")}),
        );
        let mut told = [(); 2].map(|()| server.notification(UPDATED)["uri"].clone());
        told.sort_by_key(Value::to_string);
        assert_eq!(told, [json!(followed), json!(items)]);
        let answer = server.ask("resources/unsubscribe", json!({"uri": followed}));
        assert_eq!(answer["result"], json!({}));
        websets(
            &mut server,
            "websets.cancel",
            json!({"websetId": name(&followed)}),
        );
        assert_eq!(server.notification(UPDATED)["uri"], items);
        websets(
            &mut server,
            "websets.get",
            json!({"websetId": name(&followed)}),
        );
        // Reading tells nobody; deleting does.
        websets(
            &mut server,
            "websets.delete",
            json!({"websetId": name(&followed)}),
        );
        assert_eq!(server.notification(UPDATED)["uri"], items);
    }
}

/// Answers are kept for a moment only; whoever follows one hears of its end without asking.
#[test]
fn expired_cached_result_notifies() {
    for version in [USUAL, STATELESS] {
        let program = Program::new(["--sandbox"]).env("EXA_MCP_CACHE_TTL", "1");
        let mut server = McpServer::connect(program, version);
        if version == STATELESS {
            listen(&mut server, json!({"resourcesListChanged": true}));
        }
        let search =
            json!({"name": "web_search_exa", "arguments": {"query": "x", "numResults": 2}});
        let answer = server.ask("tools/call", search);
        let id = &answer["result"]["structuredContent"]["metadata"]["cacheId"];
        let whole = format!("exa://results/{}", id.as_str().expect("an id"));
        let part = format!("{whole}/1");
        if version == STATELESS {
            listen(&mut server, json!({"resourceSubscriptions": [whole, part]}));
        } else {
            for uri in [&whole, &part] {
                server.ask("resources/subscribe", json!({"uri": uri}));
            }
        }
        server.notification(LIST_CHANGED);
        let mut told = [(); 2].map(|()| server.notification(UPDATED)["uri"].clone());
        told.sort_by_key(Value::to_string);
        assert_eq!(told, [json!(whole), json!(part)]);
        server.notification(LIST_CHANGED);
        let answer = server.ask("resources/read", json!({"uri": whole}));
        assert!(answer["error"].is_object(), "{answer}");
    }
}

#[test]
fn only_existing_resources_can_be_subscribed() {
    let sandbox = Sandbox::start();
    let mut server = connect(&sandbox, USUAL);
    for uri in [
        "exa://nothing",
        "exa://results/r_x",
        "note:///x",
        "exa://operations/x",
        "file:///x",
    ] {
        let answer = server.ask("resources/subscribe", json!({"uri": uri}));
        assert_eq!(answer["error"]["code"], -32002, "{uri}: {answer}");
    }
    // Leaving what was never followed is no mistake.
    let answer = server.ask("resources/unsubscribe", json!({"uri": "exa://nothing"}));
    assert_eq!(answer["result"], json!({}));
    for number in 0..1000 {
        let uri = format!("exa://websets/{number}");
        assert_eq!(
            server.ask("resources/subscribe", json!({"uri": uri}))["result"],
            json!({})
        );
    }
    let answer = server.ask(
        "resources/subscribe",
        json!({"uri": "exa://websets/one-too-many"}),
    );
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[test]
fn stateless_version_subscribes() {
    let sandbox = Sandbox::start();
    let mut server = connect(&sandbox, STATELESS);
    let followed = webset(&mut server, "a");
    create_note(&mut server);
    server.assert_silent();
    let wanted = json!({
        "resourcesListChanged": true, "toolsListChanged": true, "promptsListChanged": true,
        "resourceSubscriptions": [followed, "file:///etc/passwd"],
    });
    let id = server.send("subscriptions/listen", json!({"notifications": wanted}));
    let acknowledged = server.notification(ACKNOWLEDGED);
    assert_eq!(
        acknowledged["notifications"],
        json!({"resourcesListChanged": true, "resourceSubscriptions": [followed]})
    );
    assert_eq!(acknowledged["_meta"][SUBSCRIPTION], id);
    create_note(&mut server);
    assert_eq!(server.notification(LIST_CHANGED)["_meta"][SUBSCRIPTION], id);
    websets(&mut server, "websets.cancel", json!({"websetId": "a"}));
    let updated = server.notification(UPDATED);
    assert_eq!(updated["uri"], followed);
    assert_eq!(updated["_meta"][SUBSCRIPTION], id);
    assert_eq!(server.end().rest, Vec::<Value>::new());
}

#[test]
fn subscriptions_are_filtered() {
    let sandbox = Sandbox::start();
    let mut server = connect(&sandbox, STATELESS);
    let (a, b) = (webset(&mut server, "a"), webset(&mut server, "b"));
    let first = listen(&mut server, json!({"resourceSubscriptions": [a]}));
    let second = listen(&mut server, json!({"resourceSubscriptions": [b]}));
    websets(&mut server, "websets.cancel", json!({"websetId": "b"}));
    let told = server.notification(UPDATED);
    assert_eq!(
        (&told["uri"], &told["_meta"][SUBSCRIPTION]),
        (&json!(b), &second)
    );
    websets(&mut server, "websets.cancel", json!({"websetId": "a"}));
    let told = server.notification(UPDATED);
    assert_eq!(
        (&told["uri"], &told["_meta"][SUBSCRIPTION]),
        (&json!(a), &first)
    );
    server.notify("notifications/cancelled", json!({"requestId": first}));
    server.ask("tools/list", json!({}));
    websets(&mut server, "websets.delete", json!({"websetId": "a"}));
    websets(&mut server, "websets.delete", json!({"websetId": "b"}));
    let told = server.notification(UPDATED);
    assert_eq!(
        (&told["uri"], &told["_meta"][SUBSCRIPTION]),
        (&json!(b), &second)
    );
    server.assert_silent();
}

/// A client names its requests as it likes, and knows its subscription again by that name.
#[test]
fn subscription_uses_the_client_request_id() {
    let sandbox = Sandbox::start();
    let mut server = connect(&sandbox, STATELESS);
    let params =
        crate::support::introduced(json!({"notifications": {"resourcesListChanged": true}}));
    let request =
        json!({"jsonrpc": "2.0", "id": "mine", "method": "subscriptions/listen", "params": params});
    server.write(request.to_string().as_bytes());
    assert_eq!(
        server.notification(ACKNOWLEDGED)["_meta"][SUBSCRIPTION],
        "mine"
    );
    create_note(&mut server);
    assert_eq!(
        server.notification(LIST_CHANGED)["_meta"][SUBSCRIPTION],
        "mine"
    );
    // The server says goodbye to its listeners when it is ended.
    #[cfg(unix)]
    {
        server.terminate();
        let ended = server.wait();
        assert_eq!(ended.rest.len(), 1, "{ended:#?}");
        assert_eq!(ended.rest[0]["id"], "mine");
        assert_eq!(ended.rest[0]["result"]["_meta"][SUBSCRIPTION], "mine");
    }
}

/// Someone who listens must not keep the server from ending with its input.
#[test]
fn end_of_input_ends_every_subscription() {
    let sandbox = Sandbox::start();
    let mut server = connect(&sandbox, STATELESS);
    for _ in 0..3 {
        listen(&mut server, json!({"resourcesListChanged": true}));
    }
    let start = std::time::Instant::now();
    let ended = server.end();
    assert_eq!(ended.rest, Vec::<Value>::new());
    assert!(
        start.elapsed().as_secs() < 4,
        "it waited for those who listen"
    );
}

#[test]
fn subscription_methods_are_version_specific() {
    let sandbox = Sandbox::start();
    let mut old = connect(&sandbox, USUAL);
    let answer = old.ask("subscriptions/listen", json!({"notifications": {}}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let mut new = connect(&sandbox, STATELESS);
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let answer = new.ask(method, json!({"uri": "exa://websets/a"}));
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
    for params in [
        json!({}),
        json!({"notifications": 1}),
        json!({"notifications": {"resourceSubscriptions": "x"}}),
    ] {
        let answer = new.ask("subscriptions/listen", params);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

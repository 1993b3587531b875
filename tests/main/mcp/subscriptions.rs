//! Subscriptions, with sessions and stateless.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{DEFAULT_VERSION, McpServer, Program, STATELESS_VERSION, Sandbox};

const UPDATED: &str = "notifications/resources/updated";
const LIST_CHANGED: &str = "notifications/resources/list_changed";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A notification that the list changed is sent a second late.
const LONGEST_DELAY: Duration = Duration::from_millis(1_800);

fn connect(sandbox: &Sandbox, version: &str) -> McpServer {
    let program = Program::new(["--tools", "default,notes"]).env("EXA_BASE_URL", &sandbox.url());
    McpServer::connect(program, version)
}

fn create_note(server: &mut McpServer) {
    let note = json!({"title": "t", "content": "c"});
    let response = server.request(
        "tools/call",
        json!({"name": "create_note", "arguments": note}),
    );
    assert_eq!(response["result"]["isError"], false, "{response}");
}

fn websets(server: &mut McpServer, operation: &str, args: Value) -> Value {
    let call = json!({"operation": operation, "args": args, "output_format": "json"});
    let response = server.request(
        "tools/call",
        json!({"name": "manage_websets", "arguments": call}),
    );
    assert_eq!(response["result"]["isError"], false, "{response}");
    response["result"]["content"][0]["text"].clone()
}

/// Creates a webset and returns its URI.
fn webset(server: &mut McpServer, name: &str) -> String {
    let args = json!({"search": {"query": "x"}, "externalId": name});
    websets(server, "websets.create", args);
    format!("exa://websets/{name}")
}

/// Subscribes to notifications and returns the id of the request.
fn listen(server: &mut McpServer, notifications: Value) -> Value {
    let id = server.send(
        "subscriptions/listen",
        json!({"notifications": notifications}),
    );
    let acknowledged = server.notification(ACKNOWLEDGED);
    assert_eq!(acknowledged["_meta"][SUBSCRIPTION], id);
    id
}

/// Clients that never asked for the list have no use for its changes.
#[test]
fn new_note_notifies_list_changed_after_a_list_or_subscription() {
    let sandbox = Sandbox::start();
    let interests = [
        ("resources/list", json!({})),
        (
            "resources/subscribe",
            json!({"uri": "exa://operations/search"}),
        ),
    ];
    let versions = ["2024-11-05", "2025-03-26", "2025-06-18", DEFAULT_VERSION];
    for (version, (method, params)) in versions.iter().zip(interests.iter().cycle()) {
        let mut server = connect(&sandbox, version);
        create_note(&mut server);
        for method in ["resources/templates/list", "tools/list", "prompts/list"] {
            server.request(method, json!({}));
        }
        assert_eq!(server.list_changes_after(LONGEST_DELAY), 0, "{version}");
        let response = server.request(method, params.clone());
        assert!(response["result"].is_object(), "{response}");
        assert_eq!(server.list_changes_after(LONGEST_DELAY), 0, "{version}");
        create_note(&mut server);
        create_note(&mut server);
        server.notification(LIST_CHANGED);
        assert_eq!(server.shut_down().stderr, "");
    }
}

#[test]
fn subscribed_webset_notifies_updates() {
    let sandbox = Sandbox::start();
    for version in ["2024-11-05", DEFAULT_VERSION] {
        let mut server = connect(&sandbox, version);
        let followed = webset(&mut server, &format!("a-{version}"));
        let other = webset(&mut server, &format!("b-{version}"));
        let name = |uri: &str| uri.rsplit('/').next().map(str::to_owned);
        let items = format!("{followed}/items");
        for uri in [&followed, &items] {
            let response = server.request("resources/subscribe", json!({"uri": uri}));
            assert_eq!(response["result"], json!({}), "{response}");
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
        let mut updated = [(); 2].map(|()| server.notification(UPDATED)["uri"].clone());
        updated.sort_by_key(Value::to_string);
        assert_eq!(updated, [json!(followed), json!(items)]);
        let response = server.request("resources/unsubscribe", json!({"uri": followed}));
        assert_eq!(response["result"], json!({}));
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
        // Reading sends no notification; deleting does.
        websets(
            &mut server,
            "websets.delete",
            json!({"websetId": name(&followed)}),
        );
        assert_eq!(server.notification(UPDATED)["uri"], items);
    }
}

/// Cached results expire soon; a subscriber is notified without a request.
#[test]
fn expired_cached_result_notifies() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        // Long enough that the list changes twice: notifications within a second are one.
        let program = Program::new(["--sandbox"]).env("EXA_MCP_CACHE_TTL", "3");
        let mut server = McpServer::connect(program, version);
        if version == STATELESS_VERSION {
            listen(&mut server, json!({"resourcesListChanged": true}));
        } else {
            server.request("resources/list", json!({}));
        }
        let search =
            json!({"name": "web_search_exa", "arguments": {"query": "x", "numResults": 2}});
        let response = server.request("tools/call", search);
        let id = &response["result"]["structuredContent"]["metadata"]["cacheId"];
        let whole = format!("exa://results/{}", id.as_str().expect("an id"));
        let part = format!("{whole}/1");
        if version == STATELESS_VERSION {
            listen(&mut server, json!({"resourceSubscriptions": [whole, part]}));
        } else {
            for uri in [&whole, &part] {
                server.request("resources/subscribe", json!({"uri": uri}));
            }
        }
        server.notification(LIST_CHANGED);
        let mut updated = [(); 2].map(|()| server.notification(UPDATED)["uri"].clone());
        updated.sort_by_key(Value::to_string);
        assert_eq!(updated, [json!(whole), json!(part)]);
        server.notification(LIST_CHANGED);
        let response = server.request("resources/read", json!({"uri": whole}));
        assert!(response["error"].is_object(), "{response}");
    }
}

#[test]
fn only_existing_resources_can_be_subscribed() {
    let sandbox = Sandbox::start();
    let mut server = connect(&sandbox, DEFAULT_VERSION);
    for uri in [
        "exa://nothing",
        "exa://results/r_x",
        "note:///x",
        "exa://operations/x",
        "file:///x",
    ] {
        let response = server.request("resources/subscribe", json!({"uri": uri}));
        assert_eq!(response["error"]["code"], -32002, "{uri}: {response}");
    }
    // Unsubscribing without a subscription succeeds.
    let response = server.request("resources/unsubscribe", json!({"uri": "exa://nothing"}));
    assert_eq!(response["result"], json!({}));
    for number in 0..1000 {
        let uri = format!("exa://websets/{number}");
        assert_eq!(
            server.request("resources/subscribe", json!({"uri": uri}))["result"],
            json!({})
        );
    }
    let response = server.request(
        "resources/subscribe",
        json!({"uri": "exa://websets/one-too-many"}),
    );
    assert_eq!(response["error"]["code"], -32602, "{response}");
}

#[test]
fn stateless_version_subscribes() {
    let sandbox = Sandbox::start();
    let mut server = connect(&sandbox, STATELESS_VERSION);
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
    assert_eq!(server.shut_down().unread, Vec::<Value>::new());
}

#[test]
fn subscriptions_are_filtered() {
    let sandbox = Sandbox::start();
    let mut server = connect(&sandbox, STATELESS_VERSION);
    let (a, b) = (webset(&mut server, "a"), webset(&mut server, "b"));
    let first = listen(&mut server, json!({"resourceSubscriptions": [a]}));
    let second = listen(&mut server, json!({"resourceSubscriptions": [b]}));
    websets(&mut server, "websets.cancel", json!({"websetId": "b"}));
    let updated = server.notification(UPDATED);
    assert_eq!(
        (&updated["uri"], &updated["_meta"][SUBSCRIPTION]),
        (&json!(b), &second)
    );
    websets(&mut server, "websets.cancel", json!({"websetId": "a"}));
    let updated = server.notification(UPDATED);
    assert_eq!(
        (&updated["uri"], &updated["_meta"][SUBSCRIPTION]),
        (&json!(a), &first)
    );
    server.notify("notifications/cancelled", json!({"requestId": first}));
    server.request("tools/list", json!({}));
    websets(&mut server, "websets.delete", json!({"websetId": "a"}));
    websets(&mut server, "websets.delete", json!({"websetId": "b"}));
    let updated = server.notification(UPDATED);
    assert_eq!(
        (&updated["uri"], &updated["_meta"][SUBSCRIPTION]),
        (&json!(b), &second)
    );
    server.assert_silent();
}

/// The subscription id is the request id in the form that the client chose.
#[test]
fn subscription_uses_the_client_request_id() {
    let sandbox = Sandbox::start();
    let mut server = connect(&sandbox, STATELESS_VERSION);
    let params =
        crate::support::stateless_params(json!({"notifications": {"resourcesListChanged": true}}));
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
    // The server completes the subscription when it is terminated.
    #[cfg(unix)]
    {
        server.terminate();
        let ended = server.wait();
        assert_eq!(ended.unread.len(), 1, "{ended:#?}");
        assert_eq!(ended.unread[0]["id"], "mine");
        assert_eq!(ended.unread[0]["result"]["_meta"][SUBSCRIPTION], "mine");
    }
}

/// A subscription must not prevent the server from exiting when its input is closed.
#[test]
fn end_of_input_ends_every_subscription() {
    let sandbox = Sandbox::start();
    let mut server = connect(&sandbox, STATELESS_VERSION);
    for _ in 0..3 {
        listen(&mut server, json!({"resourcesListChanged": true}));
    }
    let start = std::time::Instant::now();
    let ended = server.shut_down();
    assert_eq!(ended.unread, Vec::<Value>::new());
    assert!(
        start.elapsed().as_secs() < 4,
        "it waited for those who listen"
    );
}

#[test]
fn subscription_methods_are_version_specific() {
    let sandbox = Sandbox::start();
    let mut old = connect(&sandbox, DEFAULT_VERSION);
    let response = old.request("subscriptions/listen", json!({"notifications": {}}));
    assert_eq!(response["error"]["code"], -32601, "{response}");
    let mut new = connect(&sandbox, STATELESS_VERSION);
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let response = new.request(method, json!({"uri": "exa://websets/a"}));
        assert_eq!(response["error"]["code"], -32601, "{response}");
    }
    for params in [
        json!({}),
        json!({"notifications": 1}),
        json!({"notifications": {"resourceSubscriptions": "x"}}),
    ] {
        let response = new.request("subscriptions/listen", params);
        assert_eq!(response["error"]["code"], -32602, "{response}");
    }
}

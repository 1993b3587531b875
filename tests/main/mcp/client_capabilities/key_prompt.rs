//! A missing API key: requested on a local web page, never by form elicitation.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{ClientResponse, ScriptedClient, VERSIONS, no_requests};
use crate::support::{DEFAULT_VERSION, Program, Recorder, Response, STATELESS_VERSION};

/// The key that the user enters.
const ENTERED: &str = "entered-key-0123456789";

fn url_capability() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}})
}

/// Starts a server without a key, and its upstream.
fn client_without_key(version: &str, capabilities: Value) -> (ScriptedClient, Recorder) {
    let recorder = Recorder::always(Response::json(200, &json!({"results": [], "data": []})));
    let program = Program::new([])
        .env_remove("EXA_API_KEY")
        .env("EXA_BASE_URL", &recorder.url())
        .env("EXA_MCP_LOG_LEVEL", "debug")
        .env("EXA_MCP_CLIENT_TIMEOUT", "1");
    (
        ScriptedClient::new(program, version, capabilities),
        recorder,
    )
}

fn search() -> Value {
    json!({"query": "heat pumps", "fresh": true})
}

/// Sends a browser's request; returns an empty string if nothing listens.
fn browse(url: &str, method: &str, form: &str) -> String {
    try_browse(url, method, form).expect("a response")
}

fn try_browse(url: &str, method: &str, form: &str) -> io::Result<String> {
    let rest = url.strip_prefix("http://").expect("an address");
    let (host, path) = rest.split_once('/').expect("a path");
    assert!(host.starts_with("127.0.0.1:"), "{url}");
    let Ok(mut stream) = TcpStream::connect(host) else {
        return Ok(String::new());
    };
    let head = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    );
    stream.write_all(head.as_bytes())?;
    let mut body = String::new();
    stream.read_to_string(&mut body)?;
    Ok(body)
}

/// Opens the page and enters a key.
fn enter(url: &str, key: &str) {
    let page = browse(url, "GET", "");
    assert!(page.contains("default-src 'none'"), "{page}");
    let (_, rest) = page.split_once("name=\"token\" value=\"").expect("a token");
    let token = rest.split('"').next().expect("a token");
    let thanks = browse(url, "POST", &format!("token={token}&key={key}"));
    assert!(thanks.starts_with("HTTP/1.1 200"), "{thanks}");
    assert!(!thanks.contains(key));
}

fn address(params: &Value) -> String {
    params["url"].as_str().expect("an address").to_owned()
}

#[test]
fn key_entered_on_a_page_continues_the_call() {
    for version in VERSIONS {
        let (mut client, recorder) = client_without_key(version, url_capability());
        let mut url = String::new();
        let outcome = client.call("web_search_exa", search(), |method, params| {
            assert_eq!(
                (method, &params["mode"]),
                ("elicitation/create", &json!("url"))
            );
            url = address(params);
            enter(&url, ENTERED);
            ClientResponse::Result(json!({"action": "accept"}))
        });
        assert!(!outcome.is_error, "{}", outcome.text);
        assert_eq!(recorder.only_request().header("x-api-key"), [ENTERED]);
        // The next call uses the key, and the page is closed.
        assert!(
            !client
                .call("web_search_exa", search(), no_requests)
                .is_error
        );
        let again = browse(&url, "GET", "");
        assert!(
            again.is_empty() || again.starts_with("HTTP/1.1 410"),
            "{again}"
        );
        if version == DEFAULT_VERSION {
            let (method, params) = client.notifications.first().expect("a message");
            assert_eq!(method, "notifications/elicitation/complete");
            assert_eq!(
                params["elicitationId"],
                client.requests[0].1["elicitationId"]
            );
        }
        let ended = client.server.shut_down();
        assert!(!ended.stderr.contains(ENTERED), "{}", ended.stderr);
    }
}

#[test]
fn key_is_never_requested_by_form() {
    for version in VERSIONS {
        let (mut client, recorder) =
            client_without_key(version, json!({"elicitation": {"form": {}}}));
        let failure = client
            .call("web_search_exa", search(), no_requests)
            .failure();
        failure.assert_code(-32002, "AUTHENTICATION_ERROR");
        assert!(recorder.take().is_empty());
    }
}

#[test]
fn declining_closes_the_key_page() {
    for version in VERSIONS {
        let (mut client, recorder) = client_without_key(version, url_capability());
        for action in ["decline", "cancel"] {
            let mut url = String::new();
            let outcome = client.call("web_search_exa", search(), |_, params| {
                url = address(params);
                ClientResponse::Result(json!({"action": action}))
            });
            outcome
                .failure()
                .assert_code(-32002, "AUTHENTICATION_ERROR");
            // A connection that arrives while the page closes is reset.
            let cut = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
            match try_browse(&url, "GET", "") {
                Ok(page) => assert!(
                    page.is_empty() || page.starts_with("HTTP/1.1 410"),
                    "{page}"
                ),
                Err(error) => assert!(cut.contains(&error.kind()), "{error}"),
            }
        }
        assert!(recorder.take().is_empty());
    }
}

#[test]
fn failed_key_prompt_ends_the_call_cleanly() {
    let (mut client, recorder) = client_without_key(DEFAULT_VERSION, url_capability());
    let silence = client.call("web_search_exa", search(), |_, _| ClientResponse::Silence);
    silence
        .failure()
        .assert_code(-32002, "AUTHENTICATION_ERROR");
    for odd in [json!({}), json!({"action": "maybe"}), json!([])] {
        let outcome = client.call("web_search_exa", search(), |_, _| {
            ClientResponse::Result(odd.clone())
        });
        outcome
            .failure()
            .assert_code(-32002, "AUTHENTICATION_ERROR");
    }
    assert!(recorder.take().is_empty());
}

#[test]
fn late_key_is_awaited_per_protocol_version() {
    let accept = || ClientResponse::Result(json!({"action": "accept"}));
    // 2025-11-25 has an error with the URL, and a notification when the elicitation is complete.
    let (mut client, recorder) = client_without_key(DEFAULT_VERSION, url_capability());
    let body = client.request("web_search_exa", search(), |_, _| accept());
    assert_eq!(body["error"]["code"], -32042, "{body}");
    let elicitation = body["error"]["data"]["elicitations"][0].clone();
    assert_eq!(elicitation["mode"], "url");
    enter(&address(&elicitation), ENTERED);
    let done = client
        .server
        .notification("notifications/elicitation/complete");
    assert_eq!(done["elicitationId"], elicitation["elicitationId"]);
    assert!(
        !client
            .call("web_search_exa", search(), no_requests)
            .is_error
    );
    assert_eq!(recorder.only_request().header("x-api-key"), [ENTERED]);
    // Later versions have no such error: the result contains the URL, and the page stays open.
    let (mut client, recorder) = client_without_key(STATELESS_VERSION, url_capability());
    let failure = client
        .call("web_search_exa", search(), |_, _| accept())
        .failure();
    failure.assert_code(-32042, "URL_ELICITATION_REQUIRED");
    enter(&address(&failure.error), ENTERED);
    assert!(
        !client
            .call("web_search_exa", search(), no_requests)
            .is_error
    );
    assert_eq!(recorder.only_request().header("x-api-key"), [ENTERED]);
}

#[test]
fn reading_a_webset_without_a_key_links_the_page() {
    let (mut client, _recorder) = client_without_key(DEFAULT_VERSION, url_capability());
    let read = json!({"uri": "exa://websets/ws_1"});
    let body = client.server.request("resources/read", read.clone());
    assert_eq!(body["error"]["code"], -32042, "{body}");
    let elicitation = body["error"]["data"]["elicitations"][0].clone();
    enter(&address(&elicitation), ENTERED);
    client
        .server
        .notification("notifications/elicitation/complete");
    let body = client.server.request("resources/read", read);
    assert!(body.get("result").is_some(), "{body}");
}

#[test]
fn concurrent_calls_share_one_key_prompt() {
    let (mut client, recorder) = client_without_key(DEFAULT_VERSION, url_capability());
    let call = |query: &str| json!({"name": "web_search_exa", "arguments": {"query": query}});
    let first = client.server.send("tools/call", call("first"));
    let question = client.server.next();
    assert_eq!(question["method"], "elicitation/create");
    let second = client.server.send("tools/call", call("second"));
    client.server.assert_silent();
    enter(&address(&question["params"]), ENTERED);
    let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    client.server.write(reply.to_string().as_bytes());
    for id in [first, second] {
        let outcome = crate::support::Outcome::from_response(&client.server.response(&id));
        assert!(!outcome.is_error, "{}", outcome.text);
    }
    assert_eq!(recorder.take().len(), 2);
}

//! A missing key: asked for on a page of this machine, never in a form.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{Answer, BOTH, Scripted, never};
use crate::support::{Program, Recorder, Reply, STATELESS, USUAL};

/// What a user enters.
const ENTERED: &str = "entered-key-0123456789";

fn pages() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}})
}

/// A server without a key, and its upstream.
fn keyless(version: &str, capabilities: Value) -> (Scripted, Recorder) {
    let recorder = Recorder::always(Reply::json(200, &json!({"results": [], "data": []})));
    let program = Program::new([])
        .without("EXA_API_KEY")
        .env("EXA_BASE_URL", &recorder.url())
        .env("EXA_MCP_LOG_LEVEL", "debug")
        .env("EXA_MCP_CLIENT_TIMEOUT", "1");
    (Scripted::new(program, version, capabilities), recorder)
}

fn search() -> Value {
    json!({"query": "heat pumps", "fresh": true})
}

/// One request of a browser; nothing comes back where nobody listens.
fn browse(url: &str, method: &str, form: &str) -> String {
    try_browse(url, method, form).expect("an answer")
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
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
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
    for version in BOTH {
        let (mut client, recorder) = keyless(version, pages());
        let mut url = String::new();
        let outcome = client.call("web_search_exa", search(), |method, params| {
            assert_eq!(
                (method, &params["mode"]),
                ("elicitation/create", &json!("url"))
            );
            url = address(params);
            enter(&url, ENTERED);
            Answer::Result(json!({"action": "accept"}))
        });
        assert!(!outcome.is_error, "{}", outcome.text);
        assert_eq!(recorder.only().header("x-api-key"), [ENTERED]);
        // The key is there for the next call, and the page is gone.
        assert!(!client.call("web_search_exa", search(), never).is_error);
        let again = browse(&url, "GET", "");
        assert!(
            again.is_empty() || again.starts_with("HTTP/1.1 410"),
            "{again}"
        );
        if version == USUAL {
            let (method, params) = client.told.first().expect("a message");
            assert_eq!(method, "notifications/elicitation/complete");
            assert_eq!(params["elicitationId"], client.asked[0].1["elicitationId"]);
        }
        let ended = client.server.end();
        assert!(!ended.stderr.contains(ENTERED), "{}", ended.stderr);
    }
}

#[test]
fn key_is_never_requested_by_form() {
    for version in BOTH {
        let (mut client, recorder) = keyless(version, json!({"elicitation": {"form": {}}}));
        let failure = client.call("web_search_exa", search(), never).failure();
        failure.assert_code(-32002, "AUTHENTICATION_ERROR");
        assert!(recorder.take().is_empty());
    }
}

#[test]
fn declining_closes_the_key_page() {
    for version in BOTH {
        let (mut client, recorder) = keyless(version, pages());
        for action in ["decline", "cancel"] {
            let mut url = String::new();
            let outcome = client.call("web_search_exa", search(), |_, params| {
                url = address(params);
                Answer::Result(json!({"action": action}))
            });
            outcome
                .failure()
                .assert_code(-32002, "AUTHENTICATION_ERROR");
            // Whoever connects while the page is being closed is cut off.
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
    let (mut client, recorder) = keyless(USUAL, pages());
    let silence = client.call("web_search_exa", search(), |_, _| Answer::Silence);
    silence
        .failure()
        .assert_code(-32002, "AUTHENTICATION_ERROR");
    for odd in [json!({}), json!({"action": "maybe"}), json!([])] {
        let outcome = client.call("web_search_exa", search(), |_, _| {
            Answer::Result(odd.clone())
        });
        outcome
            .failure()
            .assert_code(-32002, "AUTHENTICATION_ERROR");
    }
    assert!(recorder.take().is_empty());
}

#[test]
fn late_key_is_awaited_per_protocol_version() {
    let accept = || Answer::Result(json!({"action": "accept"}));
    // 2025-11-25 has an error that names the page, and tells when it is done.
    let (mut client, recorder) = keyless(USUAL, pages());
    let answer = client.ask("web_search_exa", search(), |_, _| accept());
    assert_eq!(answer["error"]["code"], -32042, "{answer}");
    let elicitation = answer["error"]["data"]["elicitations"][0].clone();
    assert_eq!(elicitation["mode"], "url");
    enter(&address(&elicitation), ENTERED);
    let done = client
        .server
        .notification("notifications/elicitation/complete");
    assert_eq!(done["elicitationId"], elicitation["elicitationId"]);
    assert!(!client.call("web_search_exa", search(), never).is_error);
    assert_eq!(recorder.only().header("x-api-key"), [ENTERED]);
    // Later versions have none: the result says where to go, and the page stays open.
    let (mut client, recorder) = keyless(STATELESS, pages());
    let failure = client
        .call("web_search_exa", search(), |_, _| accept())
        .failure();
    failure.assert_code(-32042, "URL_ELICITATION_REQUIRED");
    enter(&address(&failure.error), ENTERED);
    assert!(!client.call("web_search_exa", search(), never).is_error);
    assert_eq!(recorder.only().header("x-api-key"), [ENTERED]);
}

#[test]
fn reading_a_webset_without_a_key_links_the_page() {
    let (mut client, _recorder) = keyless(USUAL, pages());
    let read = json!({"uri": "exa://websets/ws_1"});
    let answer = client.server.ask("resources/read", read.clone());
    assert_eq!(answer["error"]["code"], -32042, "{answer}");
    let elicitation = answer["error"]["data"]["elicitations"][0].clone();
    enter(&address(&elicitation), ENTERED);
    client
        .server
        .notification("notifications/elicitation/complete");
    let answer = client.server.ask("resources/read", read);
    assert!(answer.get("result").is_some(), "{answer}");
}

#[test]
fn concurrent_calls_share_one_key_prompt() {
    let (mut client, recorder) = keyless(USUAL, pages());
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
        let outcome = crate::support::Outcome::of(&client.server.answer(&id));
        assert!(!outcome.is_error, "{}", outcome.text);
    }
    assert_eq!(recorder.take().len(), 2);
}

//! The life of a connection.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{DEFAULT_VERSION, McpServer, Program, Sandbox, json_rpc, signal};

/// Starts a server whose next search takes this long, and its upstream.
fn slow(milliseconds: u64) -> (McpServer, Sandbox) {
    let sandbox = Sandbox::start();
    sandbox.fault("search", &format!("delay={milliseconds}"));
    (McpServer::with_upstream(&sandbox.url(), &[]), sandbox)
}

/// Starts a search without waiting for it.
fn search(server: &mut McpServer) -> Value {
    server.send(
        "tools/call",
        json!({"name": "web_search_exa", "arguments": {"query": "heat pumps"}}),
    )
}

#[test]
fn invalid_lines_get_errors_and_the_server_continues() {
    let mut server = McpServer::sandboxed(&[]);
    for (line, code) in [
        (&b"{"[..], -32700),
        (b"nonsense", -32700),
        (b"\xff\xfe", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"", -32700),
        (b"5", -32600),
        (b"{}", -32600),
        (b"[]", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"method\":\"ping\"}", -32600),
    ] {
        server.write(line);
        let body = server.next();
        assert_eq!(body["error"]["code"], code, "{body}");
        assert_eq!(body["id"], Value::Null, "{body}");
    }
    for (method, params, code) in [
        ("no/such", json!({}), -32601),
        ("prompts/delete", json!({}), -32601),
        ("resources/list", json!({"cursor": 5}), -32602),
        ("tools/list", json!({"cursor": "made up"}), -32602),
        ("tools/list", json!({"cursor": 5}), -32602),
        (
            "tools/call",
            json!({"name": "web_search_exa", "arguments": "x"}),
            -32602,
        ),
        (
            "initialize",
            json!({"protocolVersion": DEFAULT_VERSION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
            -32600,
        ),
    ] {
        let body = server.request(method, params);
        assert_eq!(body["error"]["code"], code, "{method}: {body}");
    }
    // Blank lines are ignored.
    server.write(b"");
    server.write(b" \r");
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    assert_eq!(server.shut_down().unread, Vec::<Value>::new());
}

#[test]
fn endless_line_is_rejected_and_discarded() {
    let mut server = McpServer::sandboxed(&[]);
    server.write(&vec![b'x'; 17 * 1024 * 1024]);
    assert_eq!(server.next()["error"]["code"], -32600);
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn requests_before_initialize_are_rejected() {
    let mut server = McpServer::start(Program::new([]));
    let body = server.request("tools/list", json!({}));
    assert_eq!(body["error"]["code"], -32602, "{body}");
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    server.handshake(DEFAULT_VERSION);
    assert_eq!(server.tools().len(), 4);
}

#[test]
fn request_ids_are_echoed_unchanged() {
    let mut server = McpServer::sandboxed(&[]);
    for id in [
        "7",
        "\"seven\"",
        "\"\"",
        "\"é\\u0000\"",
        "-1",
        "18446744073709551615",
    ] {
        server.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}").as_bytes());
        let expected: Value = serde_json::from_str(id).expect("an id");
        assert_eq!(server.next()["id"], expected);
    }
}

#[test]
fn cancelled_call_gets_no_response() {
    let (mut server, _sandbox) = slow(120_000);
    let id = search(&mut server);
    server
        .call("exa_api", json!({"operation": "research.list"}))
        .success();
    server.notify(
        "notifications/cancelled",
        json!({"requestId": id, "reason": "changed my mind"}),
    );
    server.assert_silent();
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    let started = Instant::now();
    assert_eq!(server.shut_down().unread, Vec::<Value>::new());
    assert!(
        started.elapsed() < Duration::from_secs(60),
        "the cancelled call held up the end"
    );
}

#[test]
fn calls_run_concurrently() {
    let sandbox = Sandbox::start();
    let mut server = McpServer::with_upstream(&sandbox.url(), &[]);
    for _ in 0..8 {
        sandbox.fault("search", "delay=4000");
    }
    let started = Instant::now();
    let ids: Vec<Value> = (0..8).map(|_| search(&mut server)).collect();
    for id in ids {
        assert_eq!(server.response(&id)["result"]["isError"], false);
    }
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn end_of_input_exits_with_success() {
    for handshake in [false, true] {
        let mut server = McpServer::start(Program::new([]));
        if handshake {
            server.handshake(DEFAULT_VERSION);
        }
        let ended = server.shut_down();
        assert_eq!((ended.stderr.as_str(), ended.unread.len()), ("", 0));
    }
}

#[test]
fn running_calls_finish_after_end_of_input() {
    let (mut server, _sandbox) = slow(500);
    let id = search(&mut server);
    let ended = server.shut_down();
    assert_eq!(ended.unread.len(), 1, "{ended:?}");
    assert_eq!(ended.unread[0]["id"], id);
    assert_eq!(ended.unread[0]["result"]["isError"], false);
}

/// People who try the server by hand often omit the last line feed.
#[test]
fn last_line_needs_no_newline() {
    let params = json!({"protocolVersion": DEFAULT_VERSION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let input = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let output = Program::new([]).input(input.to_string()).run();
    assert_eq!(output.json()["result"]["protocolVersion"], DEFAULT_VERSION);
}

#[cfg(unix)]
#[test]
fn signal_exits_with_success_during_calls() {
    let server = McpServer::sandboxed(&[]);
    server.terminate();
    let ended = server.wait();
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(0), ""),
        "{ended:?}"
    );

    let (mut server, _sandbox) = slow(120_000);
    let id = search(&mut server);
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    let started = Instant::now();
    server.terminate();
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(started.elapsed() < Duration::from_secs(60));
    // Pending requests get an error.
    assert_eq!(ended.unread.len(), 1, "{ended:?}");
    assert_eq!(
        (&ended.unread[0]["id"], &ended.unread[0]["error"]["code"]),
        (&id, &json!(-32603))
    );
}

/// Node clients connect by sockets, which are read differently from pipes.
#[cfg(unix)]
#[test]
fn stdio_may_be_sockets() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::{fd::OwnedFd, unix::net::UnixStream};

    let (mut ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let output = OwnedFd::from(theirs.try_clone().expect("a second end"));
    let mut child = Program::new([])
        .into_command()
        .stdin(OwnedFd::from(theirs))
        .stdout(output)
        .spawn()
        .expect("the program starts");
    ours.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n")
        .expect("the server reads");
    let mut line = String::new();
    let mut reader = BufReader::new(ours.try_clone().expect("a reader"));
    reader.read_line(&mut line).expect("a response");
    assert_eq!(json_rpc::parse(line.as_bytes())["result"], json!({}));
    // The input stays open: the signal alone must end the server.
    signal(child.id(), "TERM");
    assert_eq!(child.wait().expect("an exit code").code(), Some(0));
}

#[test]
fn client_that_stops_reading_is_not_a_failure() {
    let mut child = Program::new([])
        .into_command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let mut input = child.stdin.take().expect("a pipe");
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    // The server may have noticed already and closed its input.
    drop(std::io::Write::write_all(&mut input, ping.as_bytes()));
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

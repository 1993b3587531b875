//! A full store reports an error, and a closed store has all data in its file.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{DEFAULT_VERSION, HttpServer, McpServer, Program, RedisServer, signal};

/// How long `/health` may take to notice a change: it checks every five seconds.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of notes that fill a store.
const MAX_NOTES: usize = 200;

fn sqlite(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// Creates a note of this length; returns whether it was stored.
fn note(server: &HttpServer, letters: usize) -> bool {
    let params =
        json!({"name": "create_note", "arguments": {"title": "t", "content": "x".repeat(letters)}});
    let response = server.send_stateless(&[], "tools/call", params);
    assert_eq!(response.status, 200, "{}", response.text());
    let body = match response.header("content-type") {
        Some("text/event-stream") => response.events().pop().expect("an event"),
        _ => response.json(),
    };
    body["result"]["isError"] == false
}

fn fill(server: &HttpServer) {
    for letters in [50_000, 5_000, 500] {
        let full = (0..MAX_NOTES).any(|_| !note(server, letters));
        assert!(full, "the store is never full");
    }
}

/// Waits until `/health` reports this state of the store.
#[track_caller]
fn await_store(server: &HttpServer, store: &str, status: &str) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let health = server.get("/health", &[]).json();
        if health["store"] == store && health["status"] == status {
            return;
        }
        assert!(Instant::now() < deadline, "{health}");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn health_reports_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(&folder.path().join("store.db"));
    let program = Program::new(["--sandbox", "http", "--listen", "127.0.0.1:0"])
        .env("EXA_MCP_STORE", &store)
        .env("ENABLED_TOOLS", "notes")
        // 1 MiB.
        .with_file_size_limit(2_048);
    let server = HttpServer::start(program);
    await_store(&server, "ok", "ok");
    fill(&server);
    await_store(&server, "unavailable", "degraded");
    // Requests that need no store still succeed.
    assert_eq!(server.get("/health", &[]).status, 200);
    let tools = server.send_stateless(&[], "tools/list", json!({}));
    assert_eq!(tools.status, 200);
}

#[test]
fn health_check_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(&folder.path().join("store.db"));
    let server = HttpServer::sandboxed(&[("EXA_MCP_STORE", &store), ("ENABLED_TOOLS", "notes")]);
    await_store(&server, "ok", "ok");
    let names = fs::read_dir(folder.path()).unwrap();
    let names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("probe"))
        .collect();
    assert_eq!(names, Vec::<String>::new());
}

#[test]
fn health_reports_a_full_redis_and_its_recovery() {
    let redis = RedisServer::with_options(&["--maxmemory-policy", "noeviction"]);
    let url = redis.url();
    let server = HttpServer::sandboxed(&[("EXA_MCP_STORE", &url), ("ENABLED_TOOLS", "notes")]);
    await_store(&server, "ok", "ok");
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    await_store(&server, "unavailable", "degraded");
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    await_store(&server, "ok", "ok");
}

/// Returns the number of notes in a copy of the store's file, without its journal files.
#[track_caller]
fn notes_in_copied_file(path: &Path) -> i64 {
    let log = PathBuf::from(format!("{}-wal", path.display()));
    let left = fs::metadata(&log).map_or(0, |log| log.len());
    assert_eq!(left, 0, "bytes in the log");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    fs::copy(path, &copy).unwrap();
    let connection = Connection::open(&copy).unwrap();
    let sql = "SELECT count(*) FROM documents WHERE collection = 'notes'";
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn http_shutdown_flushes_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = sqlite(&path);
    for (round, name) in [(1, "TERM"), (2, "INT")] {
        let variables = [
            ("EXA_MCP_STORE", store.as_str()),
            ("ENABLED_TOOLS", "notes"),
        ];
        let mut server = HttpServer::sandboxed(&variables);
        for letters in [10, 1_000, 90_000] {
            assert!(note(&server, letters));
        }
        signal(server.process_id(), name);
        assert_eq!(server.wait(), Some(0), "{}", server.log());
        assert_eq!(notes_in_copied_file(&path), 3 * round);
    }
}

#[test]
fn stdio_shutdown_flushes_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    for round in 1..=2 {
        let program = Program::new(["--sandbox", "--tools", "notes"]);
        let program = program.env("EXA_MCP_STORE", &sqlite(&path));
        let mut server = McpServer::connect(program, DEFAULT_VERSION);
        for letters in [10, 90_000] {
            let arguments = json!({"title": "t", "content": "x".repeat(letters)});
            let params = json!({"name": "create_note", "arguments": arguments});
            let body: Value = server.request("tools/call", params);
            assert_eq!(body["result"]["isError"], false, "{body}");
        }
        if round == 1 {
            server.terminate();
            server.wait();
        } else {
            server.shut_down();
        }
        assert_eq!(notes_in_copied_file(&path), 2 * round);
    }
}

/// A server that exits must not disturb another one with the same file.
#[test]
fn shutdown_leaves_the_database_to_other_servers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = sqlite(&path);
    let variables = [
        ("EXA_MCP_STORE", store.as_str()),
        ("ENABLED_TOOLS", "notes"),
    ];
    let mut first = HttpServer::sandboxed(&variables);
    let mut second = HttpServer::sandboxed(&variables);
    assert!(note(&first, 1_000) && note(&second, 1_000));
    signal(first.process_id(), "TERM");
    assert_eq!(first.wait(), Some(0));
    assert!(note(&second, 1_000));
    signal(second.process_id(), "TERM");
    assert_eq!(second.wait(), Some(0));
    assert_eq!(notes_in_copied_file(&path), 3);
}

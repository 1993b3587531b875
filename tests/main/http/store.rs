//! A store that is full says so, and one that is closed leaves everything in its file.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{HttpServer, McpServer, Program, RedisServer, USUAL, signal};

/// How long `/health` may take to notice: it looks every five seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many notes make a store full, at most.
const MANY: usize = 200;

fn sqlite(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// Makes a note of so many letters; says whether it was kept.
fn note(server: &HttpServer, letters: usize) -> bool {
    let params =
        json!({"name": "create_note", "arguments": {"title": "t", "content": "x".repeat(letters)}});
    let reply = server.stateless(&[], "tools/call", params);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let answer = match reply.header("content-type") {
        Some("text/event-stream") => reply.events().pop().expect("an event"),
        _ => reply.json(),
    };
    answer["result"]["isError"] == false
}

fn fill(server: &HttpServer) {
    for letters in [50_000, 5_000, 500] {
        let full = (0..MANY).any(|_| !note(server, letters));
        assert!(full, "the store is never full");
    }
}

/// Waits until `/health` says this of the store.
#[track_caller]
fn await_store(server: &HttpServer, store: &str, status: &str) {
    let deadline = Instant::now() + PATIENCE;
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
        // One mebibyte for the file, and one for its log.
        .with_files_up_to(2_048);
    let server = HttpServer::start(program);
    await_store(&server, "ok", "ok");
    fill(&server);
    await_store(&server, "unavailable", "degraded");
    // What needs no store goes on.
    assert_eq!(server.get("/health", &[]).status, 200);
    let tools = server.stateless(&[], "tools/list", json!({}));
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
    let redis = RedisServer::with(&["--maxmemory-policy", "noeviction"]);
    let url = redis.url();
    let server = HttpServer::sandboxed(&[("EXA_MCP_STORE", &url), ("ENABLED_TOOLS", "notes")]);
    await_store(&server, "ok", "ok");
    redis.say(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    await_store(&server, "unavailable", "degraded");
    redis.say(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    await_store(&server, "ok", "ok");
}

/// Notes in a copy of the store's file, without the files beside it.
#[track_caller]
fn notes_of_file_alone(path: &Path) -> i64 {
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
        signal(server.id(), name);
        assert_eq!(server.wait(), Some(0), "{}", server.log());
        assert_eq!(notes_of_file_alone(&path), 3 * round);
    }
}

#[test]
fn stdio_shutdown_flushes_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    for round in 1..=2 {
        let program = Program::new(["--sandbox", "--tools", "notes"]);
        let program = program.env("EXA_MCP_STORE", &sqlite(&path));
        let mut server = McpServer::connect(program, USUAL);
        for letters in [10, 90_000] {
            let arguments = json!({"title": "t", "content": "x".repeat(letters)});
            let params = json!({"name": "create_note", "arguments": arguments});
            let answer: Value = server.ask("tools/call", params);
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
        if round == 1 {
            server.terminate();
            server.wait();
        } else {
            server.end();
        }
        assert_eq!(notes_of_file_alone(&path), 2 * round);
    }
}

/// A server that ends must not disturb one that goes on with the same file.
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
    signal(first.id(), "TERM");
    assert_eq!(first.wait(), Some(0));
    assert!(note(&second, 1_000));
    signal(second.id(), "TERM");
    assert_eq!(second.wait(), Some(0));
    assert_eq!(notes_of_file_alone(&path), 3);
}

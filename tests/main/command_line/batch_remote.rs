//! `batch run --remote`: Exa runs the calls, and an interrupted run continues with its batch.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Output, Program, RecordedRequest, Recorder, Response};

/// Exa with at most one batch, which ends when `is_done` is set.
struct BatchServer {
    recorder: Recorder,
    is_done: Arc<AtomicBool>,
}

impl BatchServer {
    /// With `loses_response`, the batch is created, but its response never arrives. With `forgets`, it is not even
    /// created.
    fn start(loses_response: bool, forgets: bool) -> Self {
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let created: Mutex<Option<Value>> = Mutex::default();
        let address = Arc::new(Mutex::new(String::new()));
        let own = Arc::clone(&address);
        let recorder = Recorder::start(move |request, _| {
            let mut created = created.lock().expect("the batch");
            let is_done = done.load(Ordering::Relaxed);
            let batch = |metadata: &Value| {
                let url = format!("{}/results", own.lock().expect("the address"));
                json!({
                    "id": "batch_1", "object": "batch", "metadata": metadata,
                    "status": if is_done { "completed" } else { "in_progress" },
                    "createdAt": "2030-01-01T00:00:00.000Z",
                    "resultsUrl": if is_done { json!(url) } else { Value::Null },
                })
            };
            match (request.method.as_str(), request.path()) {
                ("POST", "/batches") => {
                    let body = request.json().expect("JSON");
                    let response = Response::json(200, &batch(&body["metadata"]));
                    let is_first = created.is_none();
                    if !(forgets && is_first) {
                        *created = Some(body);
                    } else {
                        *created = Some(Value::Null);
                    }
                    if loses_response && is_first {
                        return Response::slow_json(Duration::from_secs(60), &Value::Null);
                    }
                    response
                }
                ("GET", "/batches") => {
                    let found = created.as_ref().filter(|body| !body.is_null());
                    let found: Vec<Value> =
                        found.iter().map(|body| batch(&body["metadata"])).collect();
                    let list = json!({"data": found, "hasMore": false, "nextCursor": null});
                    Response::json(200, &list)
                }
                ("GET", "/batches/batch_1") => {
                    let body = created.clone().unwrap_or_default();
                    Response::json(200, &batch(&body["metadata"]))
                }
                _ => {
                    let body = created.clone().unwrap_or_default();
                    let requests = body["requests"].as_array().cloned().unwrap_or_default();
                    let lines = requests.iter().map(|request| {
                        let query = &request["body"]["query"];
                        let response = json!({"status": 200, "body": {"echo": query}});
                        json!({"customId": request["customId"], "response": response}).to_string()
                    });
                    let lines: Vec<String> = lines.collect();
                    Response::new(200).body(lines.join("\n"))
                }
            }
        });
        *address.lock().expect("the address") = recorder.url();
        Self { recorder, is_done }
    }

    fn finish(&self) {
        self.is_done.store(true, Ordering::Relaxed);
    }

    /// Returns how many batches were started since the last call, and all requests.
    fn starts(&self) -> (usize, Vec<RecordedRequest>) {
        let requests = self.recorder.take();
        let starts = requests
            .iter()
            .filter(|it| it.method == "POST" && it.path() == "/batches");
        (starts.count(), requests)
    }
}

struct Fixture {
    _folder: tempfile::TempDir,
    input: PathBuf,
    output: PathBuf,
    server: BatchServer,
}

impl Fixture {
    fn new(server: BatchServer) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let input = folder.path().join("in.jsonl");
        let lines = [
            "{\"query\": \"a\"}",
            "nonsense",
            "{\"id\": \"x\", \"query\": \"b\"}",
        ];
        std::fs::write(&input, lines.join("\n")).expect("a file");
        let output = folder.path().join("out.jsonl");
        Self {
            _folder: folder,
            input,
            output,
            server,
        }
    }

    fn journal(&self) -> PathBuf {
        self.output.with_extension("jsonl.journal")
    }

    fn program(&self, flags: &[&str]) -> Program {
        let path = |path: &Path| path.display().to_string();
        let (input, output) = (path(&self.input), path(&self.output));
        let arguments = ["batch", "run", &input, "--output", &output];
        Program::new(arguments.into_iter().chain(flags.iter().copied()))
            .env("EXA_BASE_URL", &self.server.recorder.url())
    }

    fn run(&self, flags: &[&str]) -> Output {
        self.program(flags).run()
    }

    /// Starts a run, and kills it as soon as its journal contains a text.
    fn kill_when_journal_has(&self, text: &str) {
        let mut command = self.program(&["--remote"]).into_command();
        let command = command.stdin(Stdio::null()).stderr(Stdio::null());
        let mut child: Child = command.spawn().expect("it starts");
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let journal = std::fs::read_to_string(self.journal()).unwrap_or_default();
            if journal.contains(text) {
                break;
            }
            assert!(Instant::now() < deadline, "the journal is {journal}");
            std::thread::sleep(Duration::from_millis(20));
        }
        // The request must have been sent.
        std::thread::sleep(Duration::from_millis(300));
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
    }

    #[track_caller]
    fn assert_results(&self) {
        let text = std::fs::read_to_string(&self.output).expect("the output");
        let results: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let found: Vec<Value> = results
            .iter()
            .map(|it| json!([it["line"], it["id"], it["response"]["echo"], it["ok"]]))
            .collect();
        let expected = json!([
            [1, null, "a", true],
            [2, null, null, false],
            [3, "x", "b", true]
        ]);
        assert_eq!(json!(found), expected);
    }
}

#[test]
fn killed_run_continues_with_its_batch() {
    let fixture = Fixture::new(BatchServer::start(false, false));
    fixture.kill_when_journal_has("batch_1");
    assert_eq!(fixture.server.starts().0, 1);
    // Nothing may be called twice: neither here nor as another batch.
    fixture.run(&[]).assert_failed(2, &["batch_1", "--remote"]);
    assert_eq!(fixture.server.starts().1.len(), 0);
    fixture.server.finish();
    // The second line is not JSON.
    let output = fixture.run(&["--remote"]);
    output.assert_failed(1, &["1 of 3 calls failed"]);
    assert_eq!(fixture.server.starts().0, 0);
    fixture.assert_results();
    // The journal has the results now.
    fixture.run(&["--remote"]).assert_failed(1, &["1 of 3"]);
    assert_eq!(fixture.server.starts().1.len(), 0);
    fixture.assert_results();
}

#[test]
fn batch_whose_start_was_not_confirmed_is_found_again() {
    let fixture = Fixture::new(BatchServer::start(true, false));
    fixture.kill_when_journal_has("token");
    let (starts, requests) = fixture.server.starts();
    assert_eq!(starts, 1, "{requests:#?}");
    fixture.server.finish();
    let output = fixture.run(&["--remote"]);
    output.assert_failed(1, &["1 of 3 calls failed"]);
    assert_eq!(fixture.server.starts().0, 0);
    fixture.assert_results();
}

#[test]
fn batch_that_never_arrived_is_started_again() {
    let fixture = Fixture::new(BatchServer::start(true, true));
    fixture.kill_when_journal_has("token");
    assert_eq!(fixture.server.starts().0, 1);
    fixture.server.finish();
    let output = fixture.run(&["--remote"]);
    output.assert_failed(1, &["1 of 3 calls failed"]);
    assert_eq!(fixture.server.starts().0, 1);
    fixture.assert_results();
}

#[test]
fn changed_file_does_not_continue_with_the_batch() {
    let fixture = Fixture::new(BatchServer::start(false, false));
    fixture.kill_when_journal_has("batch_1");
    std::fs::write(&fixture.input, "{\"query\": \"other\"}").expect("a file");
    fixture.server.starts();
    let output = fixture.run(&["--remote"]);
    output.assert_failed(2, &["has changed", "out.jsonl.journal"]);
    assert_eq!(fixture.server.starts().1.len(), 0);
}

#[test]
fn batch_without_results_is_a_failure() {
    let batch = json!({"id": "b1", "object": "batch", "status": "expired", "resultsUrl": null});
    let mut fixture = Fixture::new(BatchServer::start(false, false));
    fixture.server.recorder = Recorder::always(Response::json(200, &batch));
    fixture
        .run(&["--remote"])
        .assert_failed(1, &["without results", "expired"]);
}

//! `batch run`.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Program, Recorder, Response};

fn results(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn results_are_in_the_order_of_the_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("in.jsonl");
    let lines = [
        r#"{"query": "a"}"#,
        "",
        r#"{"id": 7, "operation": "answer", "arguments": {"query": "b"}}"#,
        r#"{"method": "POST", "url": "/search", "customId": "c", "body": {"query": "c"}}"#,
        r#"{"operation": "serch", "arguments": {}}"#,
    ];
    std::fs::write(&file, lines.join("\n")).expect("a file");
    let path = file.display().to_string();
    let output = Program::new(["--sandbox", "batch", "run", &path]).run();
    assert_eq!(output.code, Some(1), "{output:#?}");
    let found = results(&output.stdout);
    let numbers: Vec<&Value> = found.iter().map(|it| &it["line"]).collect();
    assert_eq!(json!(numbers), json!([1, 3, 4, 5]));
    assert_eq!(found[1]["id"], 7);
    assert_eq!(found[1]["operation"], "answer");
    assert_eq!(found[2]["id"], "c");
    let problem = found[3]["error"]["message"].as_str().expect("a message");
    assert!(problem.contains("`search`"), "{problem}");
    assert_eq!(found[3]["ok"], false);
}

#[test]
fn exa_runs_a_remote_batch() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("in.jsonl");
    std::fs::write(
        &file,
        "{\"query\": \"a\"}\n{\"id\": \"x\", \"query\": \"b\"}\n",
    )
    .expect("a file");
    let path = file.display().to_string();
    let output = Program::new(["--sandbox", "batch", "run", &path, "--remote"]).run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    let found = results(&output.stdout);
    assert_eq!(
        (&found[0]["ok"], &found[1]["id"]),
        (&json!(true), &json!("x"))
    );
    assert!(found[1]["response"]["results"].is_array(), "{}", found[1]);
}

/// The address of the results comes from a response, so it must not lead into the network of the user.
#[test]
fn results_of_a_remote_batch_are_read_from_public_hosts_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("in.jsonl");
    std::fs::write(&file, "{\"query\": \"a\"}\n").expect("a file");
    let path = file.display().to_string();
    for (address, reason) in [
        ("https://10.0.0.1/results", "not a public host"),
        ("https://[::ffff:169.254.169.254]/", "not a public host"),
        (
            "https://me:secret@127.0.0.1/results",
            "user name or password",
        ),
        ("http://storage.example/results", "not an https address"),
        ("file:///etc/passwd", "not an https address"),
    ] {
        let batch =
            json!({"id": "b1", "object": "batch", "status": "completed", "resultsUrl": address});
        let server = Recorder::always(Response::json(200, &batch));
        let program = Program::new(["batch", "run", &path, "--remote"]);
        let output = program.env("EXA_BASE_URL", &server.url()).run();
        assert_eq!(output.code, Some(1), "{output:#?}");
        assert!(output.stderr.contains(reason), "{address}: {output:#?}");
    }
}

/// A killed run is continued: no finished call is made again.
#[test]
fn killed_run_is_continued() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("in.jsonl");
    let queries: Vec<String> = (0..12)
        .map(|n| json!({"query": format!("q{n}")}).to_string())
        .collect();
    std::fs::write(&file, queries.join("\n")).expect("a file");
    let out = folder.path().join("out.jsonl");
    let (path, out_path) = (file.display().to_string(), out.display().to_string());
    let server = Recorder::always(Response::json(200, &json!({"results": []})));
    let arguments = [
        "batch",
        "run",
        &path,
        "--output",
        &out_path,
        "--concurrency",
        "1",
        "--rate",
        "5",
    ];
    let program = || Program::new(arguments).env("EXA_BASE_URL", &server.url());
    let mut child = program()
        .into_command()
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    let journal = folder.path().join("out.jsonl.journal");
    let deadline = Instant::now() + Duration::from_secs(30);
    let finished = || {
        let text = std::fs::read_to_string(&journal).unwrap_or_default();
        text.matches("\"finished\"").count()
    };
    while finished() < 3 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    let done = finished();
    assert!((3..12).contains(&done), "{done} calls were made");
    server.take();
    let output = program().run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    assert_eq!(server.take().len(), 12 - done);
    let found = results(&std::fs::read_to_string(&out).expect("the output"));
    assert_eq!(found.len(), 12);
    assert!(found.iter().all(|result| result["ok"] == true));
    assert!(!journal.exists());
}

#[test]
fn default_arguments_apply_to_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "defaults.search.type = \"lite\"\n").expect("a file");
    let file = folder.path().join("in.jsonl");
    let lines = [
        r#"{"query": "a"}"#,
        r#"{"query": "b", "type": "deep"}"#,
        r#"{"operation": "answer", "arguments": {"query": "c"}}"#,
    ];
    std::fs::write(&file, lines.join("\n")).expect("a file");
    let (config, file) = (config.display().to_string(), file.display().to_string());
    let server = Recorder::always(Response::json(200, &json!({"results": []})));
    let arguments = [
        "--config",
        &config,
        "batch",
        "run",
        &file,
        "--concurrency",
        "1",
    ];
    let output = Program::new(arguments)
        .env("EXA_BASE_URL", &server.url())
        .run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    let bodies: Vec<Value> = server.take().iter().filter_map(|it| it.json()).collect();
    let expected = json!([
        {"query": "a", "type": "lite"}, {"query": "b", "type": "deep"}, {"query": "c"},
    ]);
    assert_eq!(json!(bodies), expected);
}

/// Two processes with the same journal would make each call twice.
#[test]
fn a_file_is_run_by_one_process_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("in.jsonl");
    std::fs::write(&file, "{\"query\": \"a\"}\n").expect("a file");
    let path = file.display().to_string();
    let slow = Response::slow_json(Duration::from_secs(60), &json!({"results": []}));
    let server = Recorder::always(slow);
    let program = || Program::new(["batch", "run", &path]).env("EXA_BASE_URL", &server.url());
    let mut first = program()
        .into_command()
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    let journal = folder.path().join("in.jsonl.journal");
    let deadline = Instant::now() + Duration::from_secs(30);
    let is_started = || std::fs::read_to_string(&journal).is_ok_and(|it| it.contains("started"));
    while !is_started() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let second = program().run();
    first.kill().expect("it is killed");
    first.wait().expect("it ends");
    second.assert_failed(2, &["another process", "in.jsonl.journal"]);
}

#[test]
fn results_do_not_replace_the_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("in.jsonl");
    std::fs::write(&file, "{\"query\": \"a\"}\n").expect("a file");
    let path = file.display().to_string();
    let output = Program::new(["--sandbox", "batch", "run", &path, "--output", &path]).run();
    output.assert_failed(2, &["replace the input"]);
    assert_eq!(
        std::fs::read_to_string(&file).expect("the file"),
        "{\"query\": \"a\"}\n"
    );
}

#[test]
fn corrections_are_reported_with_the_result() {
    let output = Program::new(["--sandbox", "batch", "run", "-"])
        .input("{\"query\": \"a\", \"num_results\": 1}\n{\"query\": \"b\"}\n")
        .run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    let found = results(&output.stdout);
    let corrections = found[0]["corrections"].as_array().expect("a list");
    assert!(
        corrections[0]
            .as_str()
            .is_some_and(|it| it.contains("numResults"))
    );
    assert_eq!(found[1].get("corrections"), None);
}

/// Nothing can lie beside a pipe or a device.
#[cfg(unix)]
#[test]
fn pipes_and_devices_have_no_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("in.jsonl");
    std::fs::write(&file, "{\"query\": \"a\"}\nnonsense\n").expect("a file");
    let path = file.display().to_string();
    let arguments = ["--sandbox", "batch", "run", &path, "--output", "/dev/null"];
    Program::new(arguments)
        .run()
        .assert_failed(1, &["1 of 2 calls failed"]);
    assert!(!std::path::Path::new("/dev/null.journal").exists());
    assert!(folder.path().join("in.jsonl.journal").exists());
}

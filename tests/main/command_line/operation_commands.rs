//! The commands that are views of operations, and the arguments of `call`.

use serde_json::{Value, json};

use crate::support::{Output, Program, RecordedRequest, Recorder, Response};

/// Runs a command against a recorder. Returns its output and the requests.
fn run(arguments: &[&str]) -> (Output, Vec<RecordedRequest>) {
    let server = Recorder::always(Response::json(200, &json!({"ok": true})));
    let output = Program::new(arguments.iter().copied())
        .env("EXA_BASE_URL", &server.url())
        .run();
    (output, server.take())
}

/// Returns the body of the only request of a command.
#[track_caller]
fn body(arguments: &[&str]) -> Value {
    let (output, requests) = run(arguments);
    assert_eq!(output.code, Some(0), "{output:#?}");
    let [request] = &requests[..] else {
        panic!("{} requests", requests.len())
    };
    request.json().expect("JSON")
}

fn sandboxed(arguments: &[&str]) -> Output {
    let arguments = ["--sandbox"].iter().chain(arguments).copied();
    Program::new(arguments).env_remove("EXA_API_KEY").run()
}

#[test]
fn flags_of_search_become_arguments() {
    let given = [
        "search",
        "solid-state",
        "batteries",
        "-n",
        "5",
        "--type",
        "deep",
        "--category",
        "news",
        "--site",
        "a.com",
        "--not-site",
        "b.com,c.com",
        "--since",
        "2026-01-01",
        "--text",
        "--summary",
    ];
    let expected = json!({
        "query": "solid-state batteries", "numResults": 5, "type": "deep", "category": "news",
        "includeDomains": ["a.com"], "excludeDomains": ["b.com", "c.com"],
        "startPublishedDate": "2026-01-01T00:00:00.000Z", "contents": {"text": true, "summary": true},
    });
    assert_eq!(body(&given), expected);
    let wrong = Program::new(["search", "x", "--since", "yesterday"]).run();
    wrong.assert_failed(2, &["--since", "2026-01-31"]);
}

#[test]
fn fetch_reads_text_unless_something_else_is_wanted() {
    let urls = json!(["https://a.com", "https://b.com"]);
    let fetched = body(&["fetch", "https://a.com", "https://b.com"]);
    assert_eq!(fetched, json!({"urls": urls, "text": true}));
    let fetched = body(&["fetch", "https://a.com", "--highlights"]);
    assert_eq!(
        fetched,
        json!({"urls": ["https://a.com"], "highlights": true})
    );
}

/// A value that Exa has learned since the last update of the spec is no reason to refuse a command.
#[test]
fn flags_accept_values_that_are_not_offered() {
    let text = include_str!("../../../codegen-snapshots/commands.json");
    let commands: Value = serde_json::from_str(text).expect("JSON");
    let list = |owner: &Value, key: &str| owner[key].as_array().cloned().unwrap_or_default();
    let text = |owner: &Value, key: &str| owner[key].as_str().expect("a text").to_owned();
    let mut tried = 0;
    for plan in list(&commands, "plans") {
        for flag in list(&plan, "flags")
            .iter()
            .filter(|flag| flag["values"].is_array())
        {
            let mut arguments: Vec<String> =
                text(&plan, "name").split(' ').map(str::to_owned).collect();
            let required = list(&plan, "arguments").into_iter();
            let required = required.filter(|argument| argument["required"] == json!(true));
            arguments.extend(required.map(|_| "sample".to_owned()));
            arguments.extend([
                format!("--{}", text(flag, "name")),
                "newly_learned".to_owned(),
            ]);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let (output, requests) = run(&arguments);
            let body = requests.first().and_then(RecordedRequest::json);
            let pointer = format!("/{}", text(flag, "to").replace('.', "/"));
            let sent = body.as_ref().and_then(|body| body.pointer(&pointer));
            assert_eq!(
                sent,
                Some(&json!("newly_learned")),
                "{arguments:?}: {output:#?}"
            );
            tried += 1;
        }
    }
    assert!(tried > 0, "no flag offers values");
}

#[test]
fn any_argument_can_be_set() {
    let found = body(&[
        "search",
        "x",
        "--arg",
        "contents.text.maxCharacters=5",
        "--arg",
        "moderation=true",
    ]);
    let expected =
        json!({"query": "x", "contents": {"text": {"maxCharacters": 5}}, "moderation": true});
    assert_eq!(found, expected);
}

#[test]
fn pairs_take_the_type_that_the_schema_wants() {
    let found = body(&[
        "call",
        "search",
        "query=5",
        "numResults=5",
        "includeDomains=a.com,b.com",
    ]);
    let expected = json!({"query": "5", "numResults": 5, "includeDomains": ["a.com", "b.com"]});
    assert_eq!(found, expected);
    let found = body(&[
        "call",
        "websets.create",
        "search.query=AI startups",
        "search.count=3",
    ]);
    assert_eq!(
        found,
        json!({"search": {"query": "AI startups", "count": 3}})
    );
}

#[test]
fn arguments_and_values_come_from_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("arguments.json");
    std::fs::write(&file, r#"{"query": "from a file"}"#).expect("a file");
    let whole = format!("@{}", file.display());
    assert_eq!(
        body(&["call", "search", &whole]),
        json!({"query": "from a file"})
    );
    let schema = folder.path().join("schema.json");
    std::fs::write(&schema, r#"{"type": "object"}"#).expect("a file");
    let pair = format!("outputSchema=@{}", schema.display());
    let found = body(&["call", "search", "query=q", &pair]);
    assert_eq!(
        found,
        json!({"query": "q", "outputSchema": {"type": "object"}})
    );
}

#[test]
fn dry_run_shows_the_request_and_sends_nothing() {
    for arguments in [
        &["call", "search", "query=q", "numResults=5", "--dry-run"][..],
        &["search", "q", "-n", "5", "--dry-run"],
    ] {
        let output = Program::new(arguments.iter().copied())
            .env_remove("EXA_API_KEY")
            .env_remove("EXA_BASE_URL")
            .run();
        let shown = output.json();
        assert_eq!(shown["method"], "POST");
        assert_eq!(shown["url"], "https://api.exa.ai/search");
        assert_eq!(shown["body"], json!({"query": "q", "numResults": 5}));
        assert_eq!(shown["headers"].get("x-api-key"), None);
    }
    let (output, requests) = run(&["call", "items.list", "websetId=w/1", "limit=2", "--dry-run"]);
    assert!(requests.is_empty());
    assert!(!output.stdout.contains(crate::support::API_KEY));
    let url = output.json()["url"].as_str().expect("a URL").to_owned();
    assert!(
        url.ends_with("/websets/v0/websets/w%2F1/items?limit=2"),
        "{url}"
    );
}

#[test]
fn cost_is_estimated_without_a_request() {
    let (output, requests) = run(&["call", "search", "query=q", "--cost"]);
    assert!(requests.is_empty());
    assert_eq!(output.json()["maxCostDollars"], 0.007);
    let (output, _) = run(&["search", "q", "-n", "20", "--cost"]);
    assert!(output.json()["maxCostDollars"].as_f64() > Some(0.007));
}

#[test]
fn formats_show_the_requested_fields() {
    let call = |format: &str| {
        let output = sandboxed(&[
            "search",
            "x",
            "-n",
            "2",
            "--fields",
            "title,url",
            "--format",
            format,
        ]);
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(0), ""),
            "{output:#?}"
        );
        output.stdout
    };
    let lines = call("jsonl");
    let rows: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(rows.len(), 2);
    assert!(
        rows.iter()
            .all(|row| row.as_object().map(serde_json::Map::len) == Some(2))
    );
    let csv = call("csv");
    assert_eq!(csv.lines().next(), Some("title,url"));
    assert_eq!(csv.lines().count(), 3);
    let whole: Value = serde_json::from_str(&call("json")).expect("JSON");
    assert_eq!(whole["results"], json!(rows));
    let markdown = call("markdown");
    assert!(markdown.contains(rows[0]["title"].as_str().expect("a title")));
    assert!(call("table").contains("title"));
}

#[test]
fn fields_that_no_result_has_are_noted() {
    let output = sandboxed(&["search", "x", "-n", "1", "--fields", "title,titel"]);
    assert_eq!(output.code, Some(0), "{output:#?}");
    assert!(output.stderr.contains("field `titel`"), "{}", output.stderr);
    assert!(output.stderr.contains("publishedDate"), "{}", output.stderr);
}

#[test]
fn all_reads_every_page() {
    let page = |id: &str, cursor: Value| {
        Response::json(
            200,
            &json!({"data": [{"id": id}], "hasMore": !cursor.is_null(), "nextCursor": cursor}),
        )
    };
    let server = Recorder::responses([page("a", json!("c")), page("b", Value::Null)]);
    let output = Program::new(["call", "websets.list", "--all", "--format", "jsonl"])
        .env("EXA_BASE_URL", &server.url())
        .run();
    assert_eq!(
        output.stdout, "{\"id\":\"a\"}\n{\"id\":\"b\"}\n",
        "{output:#?}"
    );
}

#[test]
fn wait_ends_with_the_work_or_with_exit_code_3() {
    let create = ["websets", "create", "AI startups", "-n", "2"];
    let output = sandboxed(&[&create[..], &["--wait"]].concat());
    assert_eq!(output.code, Some(0), "{output:#?}");
    assert_eq!(output.json()["status"], "idle");
    let output = sandboxed(&[&create[..], &["--wait=0"]].concat());
    assert_eq!(output.code, Some(3), "{output:#?}");
    let webset: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let id = webset["id"].as_str().expect("an id");
    // The command works as it is printed, so it has the flag of this one.
    let cancel = format!("exa-mcp-server --sandbox call websets.cancel websetId={id}");
    assert!(output.stderr.contains(&cancel), "{}", output.stderr);
}

/// Commands that run at the same time do not see each other's requests, but the next one sees all of them.
#[test]
fn concurrent_commands_share_the_state_of_the_sandbox() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = format!("--sandbox={}", folder.path().join("state").display());
    let run = |arguments: &[&str]| {
        Program::new(
            [state.as_str()]
                .into_iter()
                .chain(arguments.iter().copied()),
        )
        .run()
    };
    let create = |number: usize| {
        let query = format!("search.query=x{number}");
        let webhook = "webhook.url=https://hooks.example/x";
        let created = run(&["call", "search_monitors.create", &query, webhook]).json();
        created["id"].as_str().expect("an id").to_owned()
    };
    let ids: Vec<String> = std::thread::scope(|scope| {
        let commands: Vec<_> = (0..8)
            .map(|number| scope.spawn(move || create(number)))
            .collect();
        let ids = commands.into_iter().map(|it| it.join().expect("an id"));
        ids.collect()
    });
    for id in &ids {
        let found = run(&["call", "search_monitors.get", &format!("monitorId={id}")]);
        assert_eq!(found.json()["id"], json!(id), "{found:#?}");
    }
}

/// The response of a trigger does not name the run that it starts.
#[test]
fn wait_follows_the_run_of_a_trigger() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = format!("--sandbox={}", folder.path().join("state").display());
    let session = |arguments: &[&str]| {
        let arguments = [state.as_str()]
            .into_iter()
            .chain(arguments.iter().copied());
        Program::new(arguments).run()
    };
    let monitor = session(&[
        "call",
        "search_monitors.create",
        "search.query=x",
        "webhook.url=https://hooks.example/x",
    ]);
    let id = format!(
        "monitorId={}",
        monitor.json()["id"].as_str().expect("an id")
    );
    for _ in 0..2 {
        let run = session(&["call", "search_monitors.trigger", &id, "--wait"]);
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert_eq!(run.json()["status"], "completed");
    }
    let started = session(&["call", "search_monitors.trigger", &id]);
    assert_eq!(started.json()["triggered"], true);
    let late = session(&["call", "search_monitors.trigger", &id, "--wait=0"]);
    assert_eq!(late.code, Some(3), "{late:#?}");
    assert!(
        late.stderr
            .contains("call search_monitors.runs.get monitorId="),
        "{late:#?}"
    );
    // A run that is never listed cannot be followed.
    let server = Recorder::start(|request, _| {
        Response::json(
            200,
            &match request.method.as_str() {
                "POST" => json!({"triggered": true}),
                _ => json!({"data": [], "hasMore": false, "nextCursor": null}),
            },
        )
    });
    let output = Program::new(["call", "search_monitors.trigger", "monitorId=m", "--wait"])
        .env("EXA_BASE_URL", &server.url())
        .run();
    assert_eq!(output.code, Some(3), "{output:#?}");
    let list = "list: exa-mcp-server call search_monitors.runs.list monitorId=m";
    assert!(output.stderr.contains(list), "{output:#?}");
    assert_eq!(output.stdout, "{\n  \"triggered\": true\n}\n");
}

#[test]
fn wait_without_effect_is_noted() {
    let (output, _) = run(&["call", "search", "query=q", "--wait"]);
    assert_eq!(output.code, Some(0));
    assert!(
        output.stderr.contains("--wait has no effect"),
        "{output:#?}"
    );
}

#[test]
fn failed_work_is_exit_code_1() {
    let output = sandboxed(&["research", "sandbox-fail", "--effort", "low"]);
    assert_eq!(output.code, Some(1), "{output:#?}");
    let run: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(run["status"], "failed");
}

#[test]
fn help_of_an_operation_shows_its_arguments() {
    for arguments in [&["call", "search", "--help"][..], &["operations", "search"]] {
        let output = Program::new(arguments.iter().copied())
            .env_remove("EXA_API_KEY")
            .run();
        assert_eq!(output.code, Some(0), "{output:#?}");
        for part in [
            "numResults (integer, default 10)",
            "required",
            "values: ",
            "Cost: $",
            "Example:",
        ] {
            assert!(
                output.stdout.contains(part),
                "no {part} in {}",
                output.stdout
            );
        }
    }
}

#[test]
fn states_of_the_sandbox_survive_a_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = format!("--sandbox={}", folder.path().join("state").display());
    let run =
        |arguments: &[&str]| Program::new([state.as_str()].iter().chain(arguments).copied()).run();
    let created = run(&["call", "websets.create", "search.query=x", "search.count=2"]).json();
    let id = created["id"].as_str().expect("an id");
    let found = run(&["call", "websets.get", &format!("websetId={id}")]).json();
    assert_eq!(found["id"], created["id"]);
    let watched = run(&["websets", "watch", id]).json();
    assert_eq!(watched["status"], "idle");
    let exported = run(&["websets", "export", id]);
    assert_eq!(exported.stdout.lines().count(), 2, "{exported:#?}");
    // A session of its own, and one that has ended.
    let shared = |name: &str, arguments: &[&str]| {
        let arguments = ["--sandbox"].iter().chain(arguments).copied();
        let folder = folder.path().display().to_string();
        let program = Program::new(arguments).env("XDG_RUNTIME_DIR", &folder);
        program.env("EXA_SANDBOX_SESSION", name).run()
    };
    shared("one", &["websets", "create", "x", "-n", "1"]).json();
    let count = |name: &str| {
        shared(name, &["websets", "list"]).json()["data"]
            .as_array()
            .map(Vec::len)
    };
    assert_eq!((count("one"), count("two")), (Some(1), Some(0)));
}

#[test]
fn default_arguments_come_from_the_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.toml").display().to_string();
    let config =
        |arguments: &[&str]| Program::new(["--config", &file].iter().chain(arguments).copied());
    let set = config(&["config", "set", "defaults.search.type", "fast"]).run();
    assert_eq!(set.code, Some(0), "{set:#?}");
    let get = config(&["config", "get", "defaults.search.type"]).run();
    assert_eq!(get.stdout, "fast\n");
    let body = |arguments: &[&str]| config(arguments).run().json()["body"].clone();
    assert_eq!(
        body(&["search", "q", "--dry-run"]),
        json!({"query": "q", "type": "fast"})
    );
    let given = body(&["call", "search", "query=q", "type=deep", "--dry-run"]);
    assert_eq!(given, json!({"query": "q", "type": "deep"}));
    let doctor = config(&["doctor", "--sandbox"]).run();
    assert!(
        doctor
            .stdout
            .contains("default arguments: search {\"type\":\"fast\"}"),
        "{doctor:#?}"
    );
    let listed = config(&["config", "list"]).run();
    assert!(listed.stdout.contains("fast"));
    config(&["config", "set", "defaults.serch.type", "fast"])
        .run()
        .assert_failed(2, &["`search`"]);
    config(&["config", "set", "enabled_tool", "x"])
        .run()
        .assert_failed(2, &["`enabled_tools`"]);
    // The secret is stored, but never shown.
    let secret = config(&["config", "set", "exa_api_key", "secret-4711"]).run();
    assert_eq!(secret.code, Some(0));
    let shown = config(&["config", "get", "exa_api_key"])
        .env_remove("EXA_API_KEY")
        .run();
    assert_eq!(shown.stdout, "(hidden)\n");
}

#[test]
fn misspelled_tool_sets_are_suggested() {
    Program::new(["--tools", "defualt", "tools"])
        .run()
        .assert_failed(2, &["did you mean `default`?"]);
}

/// The file keeps its comments and tables, and a symbolic link stays one.
#[cfg(unix)]
#[test]
fn config_set_changes_only_the_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let real = folder.path().join("real.toml");
    let text = "# mine\ncache_ttl = 5 # s\n\n[defaults.search]\ntype = \"fast\" # cheap\n";
    std::fs::write(&real, text).expect("a file");
    let link = folder.path().join("config.toml");
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    let link_path = link.display().to_string();
    let set = |key: &str, value: &str| {
        Program::new(["--config", &link_path, "config", "set", key, value]).run()
    };
    assert_eq!(set("defaults.search.type", "deep").code, Some(0));
    assert_eq!(set("cache_ttl", "7").code, Some(0));
    let changed = std::fs::read_to_string(&real).expect("the file");
    assert_eq!(changed, text.replace('5', "7").replace("fast", "deep"));
    assert!(link.is_symlink());
    set("cache_ttl", "soon").assert_failed(2, &["`cache_ttl`", "whole number", "`soon`"]);
    set("defaults.search.numResults", "500").assert_failed(2, &["at most 100"]);
    std::fs::write(&real, "cache_ttl = 5\nnonsense = 1\n").expect("a file");
    set("cache_ttl", "7").assert_failed(2, &["is invalid", "line 2", "`nonsense`"]);
}

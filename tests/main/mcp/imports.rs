//! Imports from text and files.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{API_KEY, DEFAULT_VERSION, McpServer, Program, Recorder, Response, Sandbox};

/// Two records in five lines.
const CSV: &str =
    "\u{feff}name,url\r\n\"Ex\"\"a\r\n, Inc.\",https://exa.ai\r\nOther,https://other.example";

/// Creates an allowed folder with a file in it, and files and folders next to it.
fn dir() -> TempDir {
    let dir = TempDir::new().expect("a folder");
    for folder in ["open", "opened"] {
        fs::create_dir(dir.path().join(folder)).expect("a folder");
    }
    for file in ["open/list.csv", "opened/list.csv", "beside.csv"] {
        fs::write(dir.path().join(file), CSV).expect("a file");
    }
    dir
}

fn path_in(dir: &TempDir, path: &str) -> String {
    let path = dir.path().join(path);
    path.to_str().expect("a UTF-8 path").to_owned()
}

/// Starts a server that may read one folder.
fn server(url: &str, folder: &str) -> McpServer {
    let program = Program::new(["--tools", "imports,manage_websets"])
        .env("EXA_BASE_URL", url)
        .env("EXA_MCP_IMPORT_DIR", folder);
    McpServer::connect(program, DEFAULT_VERSION)
}

fn from_file(path: &str) -> Value {
    json!({"filePath": path, "entity": {"type": "company"}, "title": "Mine"})
}

/// Starts a mock of Exa whose upload URLs point to another server.
fn exa(storage: &Recorder) -> Recorder {
    let address = format!("{}/bucket/file?signature=abc", storage.url());
    Recorder::start(move |request, _| {
        let import = json!({"id": "import_1", "object": "import", "status": "pending", "count": 2});
        let mut created = import.clone();
        created["uploadUrl"] = json!(address);
        created["uploadValidUntil"] = json!("2026-04-03T11:00:00Z");
        let mut read = import;
        read["status"] = json!("processing");
        match request.method.as_str() {
            "POST" => Response::json(201, &created),
            _ => Response::json(200, &read),
        }
    })
}

#[test]
fn file_import_is_followed_to_completion() {
    let (sandbox, dir) = (Sandbox::start(), dir());
    let mut server = server(&sandbox.url(), &path_in(&dir, "open"));
    let mut call = from_file(&path_in(&dir, "open/list.csv"));
    call["wait_seconds"] = json!(60);
    let (steps, outcome) = server.call_with_progress("imports_create", call);
    let import = outcome.success();
    assert_eq!(
        (&import["status"], &import["count"]),
        (&json!("completed"), &json!(2)),
        "{import}"
    );
    assert_eq!(import["title"], "Mine");
    assert!(import.get("uploadUrl").is_none(), "{import}");
    let size = CSV.len() as f64;
    let uploaded = steps.iter().find(|step| step["progress"] == size);
    let uploaded = uploaded.unwrap_or_else(|| panic!("no upload in {steps:?}"));
    assert_eq!(uploaded["total"], size);
    // The progress of the processing follows that of the upload.
    assert!(steps.len() > 1, "{steps:?}");
    // The import can be used for a webset.
    let webset = json!({"operation": "websets.create", "args": {"import": [{"source": "import", "id": import["id"]}]}});
    let webset = server.call("manage_websets", webset).success();
    sandbox.advance(60_000);
    let list = json!({"operation": "items.list", "args": {"websetId": webset["id"]}});
    let items = server.call("manage_websets", list).success();
    assert_eq!(items["data"].as_array().map(Vec::len), Some(2), "{items}");
}

#[test]
fn text_import_needs_no_directory() {
    let sandbox = Sandbox::start();
    let mut server = McpServer::with_upstream(&sandbox.url(), &[]);
    let args = json!({"csvContent": CSV, "entity": "company"});
    let call = json!({"operation": "imports.create", "args": args});
    let import = server.call("manage_websets", call).success();
    assert_eq!(
        (&import["status"], &import["count"]),
        (&json!("processing"), &json!(2))
    );
    sandbox.advance(10_000);
    let look = json!({"operation": "imports.get", "args": {"importId": import["id"]}});
    assert_eq!(
        server.call("manage_websets", look).success()["status"],
        "completed"
    );
}

#[test]
fn upload_does_not_receive_the_key() {
    let storage = Recorder::always(Response::new(200));
    let (exa, dir) = (exa(&storage), dir());
    let mut server = server(&exa.url(), &path_in(&dir, "open"));
    let import = server
        .call("imports_create", from_file("list.csv"))
        .success();
    assert_eq!(
        (&import["id"], &import["status"]),
        (&json!("import_1"), &json!("processing"))
    );
    let upload = storage.only_request();
    assert_eq!(
        (upload.method.as_str(), upload.target.as_str()),
        ("PUT", "/bucket/file?signature=abc")
    );
    assert_eq!(upload.body, CSV.as_bytes());
    assert_eq!(upload.header("content-type"), ["text/csv"]);
    assert!(!format!("{upload:?}").contains(API_KEY), "{upload:?}");
    for name in ["x-api-key", "authorization", "cookie"] {
        assert_eq!(upload.header(name), Vec::<&str>::new());
    }
    let requests = exa.take();
    let targets: Vec<&str> = requests.iter().map(|it| it.target.as_str()).collect();
    assert_eq!(
        targets,
        ["/websets/v0/imports", "/websets/v0/imports/import_1"]
    );
    // Neither the path nor the content is sent to the API.
    assert_eq!(
        requests[0].json(),
        Some(
            json!({"entity": {"type": "company"}, "title": "Mine", "size": CSV.len(), "count": 2, "format": "csv"})
        )
    );
}

#[test]
fn failed_upload_names_the_import() {
    let storage = Recorder::always(
        Response::new(403).body("<Error><Message>Request has expired</Message></Error>"),
    );
    let (exa, dir) = (exa(&storage), dir());
    let mut server = server(&exa.url(), &path_in(&dir, "open"));
    let failure = server
        .call("imports_create", from_file("list.csv"))
        .failure();
    failure.assert_code(-32000, "API_ERROR");
    failure.assert_contains(&[
        "import_1 was created",
        "Request has expired",
        "imports.delete",
        "2026-04-03T11:00:00Z",
    ]);
    assert_eq!(failure.error["detail"]["importId"], "import_1");
    assert_eq!(failure.error["retryable"], false);
    assert!(!failure.text.contains("signature=abc"), "{}", failure.text);
    assert_eq!(exa.take().len(), 1, "nothing is created twice or deleted");
}

#[test]
fn upload_needs_a_public_https_url() {
    let dir = dir();
    for address in [
        "http://storage.example/file",
        "https://10.1.2.3/file",
        "https://169.254.169.254/latest/meta-data",
        "https://[fd00::1]/file",
        "https://[::ffff:192.168.0.1]/file",
        "http://172.16.0.1/file",
        "ftp://127.0.0.1/file",
        "/file",
        "",
    ] {
        let created = json!({"id": "import_1", "uploadUrl": address});
        let exa = Recorder::always(Response::json(201, &created));
        let mut server = server(&exa.url(), &path_in(&dir, "open"));
        let failure = server
            .call("imports_create", from_file("list.csv"))
            .failure();
        failure.assert_contains(&["import_1 was created", "address"]);
    }
    let moved = Response::new(307).header("location", "http://127.0.0.1:1/elsewhere");
    let storage = Recorder::always(moved);
    let exa = exa(&storage);
    let mut server = server(&exa.url(), &path_in(&dir, "open"));
    let failure = server
        .call("imports_create", from_file("list.csv"))
        .failure();
    failure.assert_contains(&["follows no redirect"]);
    assert_eq!(storage.take().len(), 1);
}

/// Asserts that the call is rejected before anything is sent, with advice.
#[track_caller]
fn assert_rejected(server: &mut McpServer, exa: &Recorder, arguments: Value, parts: &[&str]) {
    let failure = server.call("imports_create", arguments).failure();
    failure.assert_code(-32602, "INVALID_PARAMS");
    failure.assert_contains(parts);
    assert_eq!(exa.take().len(), 0, "nothing is sent");
}

#[test]
fn files_outside_the_import_directory_are_rejected() {
    let (exa, dir) = (Recorder::always(Response::new(500)), dir());
    let mut server = server(&exa.url(), &path_in(&dir, "open"));
    let outside = ["is outside", "csvContent", "/open"];
    let mut paths = vec![
        "opened/list.csv",
        "beside.csv",
        "open/../beside.csv",
        "opened/none.csv",
    ];
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink(
            dir.path().join("beside.csv"),
            dir.path().join("open/link.csv"),
        )
        .expect("a link");
        symlink(dir.path(), dir.path().join("open/door")).expect("a link");
        paths.extend(["open/link.csv", "open/door/beside.csv"]);
    }
    for path in paths {
        let arguments = from_file(&path_in(&dir, path));
        assert_rejected(&mut server, &exa, arguments, &outside);
    }
    assert_rejected(&mut server, &exa, from_file("../beside.csv"), &outside);
    for (path, part) in [("none.csv", "does not exist"), (".", "is a folder")] {
        assert_rejected(&mut server, &exa, from_file(path), &[part]);
    }
}

#[cfg(unix)]
#[test]
fn named_pipe_does_not_block() {
    let (exa, dir) = (Recorder::always(Response::new(500)), dir());
    let pipe = dir.path().join("open/pipe.csv");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    let mut server = server(&exa.url(), &path_in(&dir, "open"));
    assert_rejected(
        &mut server,
        &exa,
        from_file("pipe.csv"),
        &["not a regular file"],
    );
}

#[test]
fn import_without_a_directory_is_explained() {
    let (exa, dir) = (Recorder::always(Response::new(500)), dir());
    let mut server = McpServer::with_recorder(&exa, &["--tools", "imports"]);
    let arguments = from_file(&path_in(&dir, "open/list.csv"));
    let parts = ["no folder is open", "EXA_MCP_IMPORT_DIR", "csvContent"];
    assert_rejected(&mut server, &exa, arguments, &parts);
    let mut server = self::server(&exa.url(), "/no/such/folder");
    assert_rejected(
        &mut server,
        &exa,
        from_file("list.csv"),
        &["/no/such/folder"],
    );
}

#[test]
fn several_import_directories_are_supported() {
    let storage = Recorder::always(Response::new(200));
    let (exa, dir) = (exa(&storage), dir());
    let folders = std::env::join_paths([dir.path().join("open"), dir.path().join("opened")]);
    let folders = folders.expect("folders").into_string().expect("text");
    let mut server = server(&exa.url(), &folders);
    for path in ["open/list.csv", "opened/list.csv"] {
        server
            .call("imports_create", from_file(&path_in(&dir, path)))
            .success();
    }
    assert_eq!(storage.take().len(), 2);
}

#[test]
fn invalid_import_contents_are_rejected() {
    let (exa, dir) = (Recorder::always(Response::new(500)), dir());
    let mut server = server(&exa.url(), &path_in(&dir, "open"));
    let write = |name: &str, content: &[u8]| {
        fs::write(Path::new(&path_in(&dir, "open")).join(name), content)
    };
    write("empty.csv", b"").expect("a file");
    write("header.csv", b"name,url\n").expect("a file");
    write("open.csv", b"name\n\"never closed\n").expect("a file");
    write("utf16.csv", b"\xff\xfen\0a\0").expect("a file");
    let large = fs::File::create(dir.path().join("open/large.csv")).expect("a file");
    large.set_len(50_000_001).expect("a size");
    for (path, part) in [
        ("empty.csv", "is empty"),
        ("header.csv", "no records"),
        ("open.csv", "never closed"),
        ("utf16.csv", "UTF-8"),
        (
            "large.csv",
            "50000001 bytes, but an import accepts at most 50000000 (50 MB)",
        ),
    ] {
        assert_rejected(&mut server, &exa, from_file(path), &[part, "filePath"]);
    }
    let entity = json!({"type": "company"});
    let text = |text: &str| json!({"csvContent": text, "entity": entity});
    assert_rejected(
        &mut server,
        &exa,
        text("name"),
        &["no records", "csvContent"],
    );
    let mut wrong = text("name\nA\n");
    wrong["size"] = json!(9);
    assert_rejected(
        &mut server,
        &exa,
        wrong,
        &["`size` is 9, but the content has 7 bytes"],
    );
    let mut both = text("name\nA\n");
    both["filePath"] = json!("list.csv");
    assert_rejected(&mut server, &exa, both, &["cannot be combined"]);
    let none = json!({"entity": entity});
    assert_rejected(
        &mut server,
        &exa,
        none,
        &["`size` is required, unless `csvContent` or `filePath` is given"],
    );
}

#[test]
fn largest_file_is_streamed() {
    let storage = Recorder::always(Response::new(200));
    let (exa, dir) = (exa(&storage), dir());
    let line = format!("Name,{}\n", "x".repeat(994));
    let file = format!("name,text\n{}", line.repeat(49_999));
    assert!(
        (49_900_000..=50_000_000).contains(&file.len()),
        "{}",
        file.len()
    );
    fs::write(dir.path().join("open/large.csv"), &file).expect("a file");
    let mut server = server(&exa.url(), &path_in(&dir, "open"));
    let (steps, outcome) = server.call_with_progress("imports_create", from_file("large.csv"));
    outcome.success();
    assert_eq!(storage.only_request().body.len(), file.len());
    let created = exa.take()[0].json().expect("a body");
    assert_eq!(
        (&created["size"], &created["count"]),
        (&json!(file.len()), &json!(49_999))
    );
    let last = steps.last().expect("steps");
    assert_eq!(
        (&last["progress"], &last["total"]),
        (&json!(file.len() as f64), &json!(file.len() as f64))
    );
}

#[test]
fn declared_size_and_count_are_sent() {
    let created = json!({"id": "import_1", "uploadUrl": "https://storage.example/file"});
    let exa = Recorder::always(Response::json(201, &created));
    let mut server = McpServer::with_recorder(&exa, &["--tools", "imports"]);
    let arguments = json!({"size": 10, "count": 1, "format": "csv", "entity": {"type": "company"}});
    let import = server.call("imports_create", arguments.clone()).success();
    let import = import.get("result").unwrap_or(&import);
    assert_eq!(import["uploadUrl"], "https://storage.example/file");
    assert_eq!(exa.only_request().json(), Some(arguments));
}

#[test]
fn cli_imports_any_file_of_the_user() {
    let storage = Recorder::always(Response::new(200));
    let (exa, dir) = (exa(&storage), dir());
    let arguments = from_file(&path_in(&dir, "beside.csv"));
    let import = Program::call(&exa, "imports.create", &arguments)
        .run()
        .json();
    assert_eq!(import["status"], "processing");
    assert_eq!(storage.only_request().body, CSV.as_bytes());
    let missing = from_file(&path_in(&dir, "none.csv"));
    let output = Program::call(&exa, "imports.create", &missing).run();
    output.assert_failed(2, &["`filePath` does not exist"]);
}

#[test]
fn import_arguments_are_described() {
    let mut server = McpServer::sandboxed(&["--tools", "imports,manage_websets"]);
    let describe =
        json!({"operation": "describe", "args": {"operation": "imports.create", "schema": true}});
    let described = server.call_raw("manage_websets", describe).success();
    let schema = &described["inputSchema"];
    assert_eq!(schema["required"], json!(["entity"]));
    for name in ["csvContent", "filePath"] {
        assert_eq!(schema["properties"][name]["type"], "string", "{name}");
    }
    let tools = server.tools();
    let tool = tools.iter().find(|tool| tool["name"] == "imports_create");
    let properties = &tool.expect("the tool")["inputSchema"]["properties"];
    assert!(properties["filePath"].is_object(), "{properties}");
    // The example of the description is a valid call.
    let example = described["example"].clone();
    server.call("manage_websets", example).success();
}

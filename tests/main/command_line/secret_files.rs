//! Secrets in separate files.

use std::fs;

use serde_json::json;

use crate::support::{HttpServer, Program, Recorder, Response};

/// The variables whose value may come from a file.
const SECRETS: [&str; 6] = [
    "EXA_API_KEY",
    "EXA_API_KEYS",
    "MCP_AUTH_TOKEN",
    "USER_TOKENS",
    "EXA_MCP_SECRET",
    "EXA_MCP_STORE",
];

fn call(server: &Recorder) -> Program {
    Program::call(server, "websets.list", &json!({})).env_remove("EXA_API_KEY")
}

#[test]
fn key_is_read_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("key");
    let name = path.to_str().expect("UTF-8");
    for (variable, content, used) in [
        ("EXA_API_KEY_FILE", "key-of-a-file", "key-of-a-file"),
        ("EXA_API_KEY_FILE", "key-of-a-file\n", "key-of-a-file"),
        ("EXA_API_KEY_FILE", "key-of-a-file\r\n\n", "key-of-a-file"),
        ("EXA_API_KEYS_FILE", "first-key,second-key\n", "first-key"),
        (
            "EXA_API_KEYS_FILE",
            "first-key\nsecond-key\n\n",
            "first-key",
        ),
    ] {
        fs::write(&path, content).expect("a file");
        let server = Recorder::responses([Response::json(200, &json!({"data": []}))]);
        call(&server).env(variable, name).run().json();
        let requests = server.take();
        assert_eq!(
            requests[0].header("x-api-key"),
            [used],
            "{variable} {content:?}"
        );
    }
}

#[test]
fn secret_file_overrides_config_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (key, config) = (folder.path().join("key"), folder.path().join("config.toml"));
    fs::write(&key, "by-secret-file\n").expect("a file");
    fs::write(&config, "exa_api_keys = ['by-config', 'other']").expect("a file");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let own = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&config, own).expect("a file of one's own");
    }
    let server = Recorder::responses([Response::json(200, &json!({"data": []}))]);
    call(&server)
        .env("EXA_MCP_CONFIG", config.to_str().expect("UTF-8"))
        .env("EXA_API_KEY_FILE", key.to_str().expect("UTF-8"))
        .run()
        .json();
    assert_eq!(server.take()[0].header("x-api-key"), ["by-secret-file"]);
}

#[test]
fn secret_file_errors_do_not_show_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| {
        let path = folder.path().join(name);
        path.to_str().expect("UTF-8").to_owned()
    };
    fs::write(path("blank"), " \n\n").expect("a file");
    fs::write(path("bytes"), b"s3cret\xff\xfe").expect("a file");
    fs::write(path("long"), "s3cret ".repeat(200_000)).expect("a file");
    fs::write(path("fine"), "s3cret\n").expect("a file");
    let listening = || Program::new(["http", "--listen", "127.0.0.1:0"]).env_remove("EXA_API_KEY");
    for name in SECRETS {
        let variable = format!("{name}_FILE");
        for (file, message) in [
            ("missing", "cannot be read"),
            ("blank", "empty"),
            ("bytes", "cannot be read"),
            ("long", "exceeds"),
        ] {
            let file = path(file);
            let output = listening().env(&variable, &file).run();
            output.assert_failed(2, &[&variable, &file, message]);
            assert!(!output.stderr.contains("s3cret"), "{}", output.stderr);
        }
        let twice = listening().env(name, "other").env(&variable, &path("fine"));
        let output = twice.run();
        output.assert_failed(2, &[name, &variable, "both"]);
        assert!(!output.stderr.contains("s3cret"), "{}", output.stderr);
    }
    // The error for an invalid value names the file.
    fs::write(path("store"), "s3cret://nowhere\n").expect("a file");
    let output = listening().env("EXA_MCP_STORE_FILE", &path("store")).run();
    output.assert_failed(2, &["EXA_MCP_STORE_FILE", &path("store")]);
}

#[test]
fn http_server_reads_all_secrets_from_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("store.db").display());
    let contents = [
        ("MCP_AUTH_TOKEN", "admin-token\n"),
        ("USER_TOKENS", "ann-token:ann\nbob-token:bob:never\n"),
        ("EXA_MCP_SECRET", "a-secret\n"),
        ("EXA_MCP_STORE", &store),
    ];
    let mut variables = Vec::new();
    for (name, content) in contents {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("a file");
        variables.push((
            format!("{name}_FILE"),
            path.to_str().expect("UTF-8").to_owned(),
        ));
    }
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let server = HttpServer::with_upstream("http://127.0.0.1:1", &variables);
    let status = |path: &str, token: &str| {
        let token = format!("Bearer {token}");
        server.get(path, &[("authorization", &token)]).status
    };
    assert_eq!(status("/admin/tokens", "admin-token"), 200);
    for token in ["ann-token", "bob-token"] {
        assert_eq!(status("/mcp/usage", token), 200, "{token}");
    }
    assert_eq!(status("/mcp/usage", "other"), 401);
    assert!(folder.path().join("store.db").exists());
}

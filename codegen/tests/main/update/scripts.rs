//! The scripts that CI runs, with a local server, a local Git remote and a stand-in for `gh`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use codegen::load;

use super::server::{Reply, TestServer};
use super::{Workspace, websets_spec};
use crate::support::repository;

/// A Git repository with the scripts, whose remote is a folder.
struct Checkout {
    workspace: Workspace,
    outside: tempfile::TempDir,
}

impl Checkout {
    fn new(server: &TestServer) -> Self {
        let workspace = Workspace::new(&format!("{}exa-websets-spec.yaml", server.url));
        let outside = tempfile::tempdir().unwrap();
        let scripts = workspace.root().join("scripts");
        std::fs::create_dir_all(&scripts).unwrap();
        for name in ["spec-sync", "spec-pull-request", "api-changes"] {
            let script = repository().join("scripts").join(name);
            std::fs::copy(script, scripts.join(name)).unwrap();
        }
        let checkout = Self { workspace, outside };
        checkout.write_gh();
        let remote = checkout.outside.path().join("remote.git");
        let remote = remote.to_str().unwrap();
        checkout.git(&["init", "--quiet", "--bare", remote]);
        checkout.git(&["init", "--quiet", "--initial-branch", "main", "."]);
        checkout.git(&["remote", "add", "origin", remote]);
        std::fs::write(checkout.root().join(".gitignore"), "/target\n").unwrap();
        checkout.commit();
        checkout
    }

    fn root(&self) -> &Path {
        self.workspace.root()
    }

    /// Writes a `gh` that records its arguments; the file `open` contains the open pull request.
    fn write_gh(&self) {
        use std::os::unix::fs::PermissionsExt;
        let dir = self.outside.path();
        let gh = dir.join("gh");
        let text = format!(
            "#!/bin/sh\necho \"$*\" >>'{0}/calls'\n[ \"$1 $2\" != 'pr list' ] || cat '{0}/open' 2>/dev/null || :\n",
            dir.display()
        );
        std::fs::write(&gh, text).unwrap();
        std::fs::set_permissions(&gh, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn gh_calls(&self) -> String {
        std::fs::read_to_string(self.outside.path().join("calls")).unwrap_or_default()
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = self.run(Path::new("git"), arguments);
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "state"]);
    }

    fn script(&self, name: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.run(&self.root().join("scripts").join(name), arguments);
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        let mut path = vec![self.outside.path().to_owned()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        Command::new(program)
            .args(arguments)
            .current_dir(self.root())
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("CODEGEN", env!("CARGO_BIN_EXE_codegen"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .envs([
                ("GIT_AUTHOR_NAME", "Test"),
                ("GIT_AUTHOR_EMAIL", "test@example.com"),
                ("GIT_COMMITTER_NAME", "Test"),
                ("GIT_COMMITTER_EMAIL", "test@example.com"),
            ])
            .output()
            .unwrap()
    }

    fn result(&self, file: &str) -> PathBuf {
        self.root().join("target/spec-sync").join(file)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the spec without one operation.
fn smaller_spec() -> String {
    let mut root = load::parse("spec.yaml", &websets_spec()).unwrap().root;
    let paths = root["paths"].as_object_mut().unwrap();
    paths.shift_remove("/v0/webhooks/{id}/attempts").unwrap();
    root.to_string()
}

#[test]
fn opens_one_pull_request_and_updates_it() {
    let server = TestServer::start(vec![Reply::document(&websets_spec(), "\"one\"")]);
    let checkout = Checkout::new(&server);

    // Upstream's texts are replaced by hashes: a change, but not a breaking one.
    let (status, report, errors) = checkout.script("spec-sync", &[]);
    assert_eq!(status, Some(10), "{errors}");
    assert_eq!(
        std::fs::read_to_string(checkout.result("report.md")).unwrap(),
        report
    );
    assert_eq!(
        std::fs::read_to_string(checkout.result("label")).unwrap(),
        "compatible\n"
    );
    let patch = std::fs::read_to_string(checkout.result("update.patch")).unwrap();
    assert!(patch.contains("+++ b/data-design/upstream.lock"), "{patch}");

    let (status, _, errors) = checkout.script("spec-pull-request", &["success"]);
    assert_eq!(status, Some(0), "{errors}");
    let calls = checkout.gh_calls();
    assert!(
        calls.contains("pr create --head spec-sync --base main"),
        "{calls}"
    );
    assert!(calls.contains("--label compatible"), "{calls}");
    assert!(
        checkout
            .git(&["ls-remote", "origin"])
            .contains("refs/heads/spec-sync")
    );
    assert_eq!(checkout.git(&["status", "--porcelain"]), "");

    // Nothing changed since, so there is no second pull request.
    let (status, output, errors) = checkout.script("spec-sync", &[]);
    assert_eq!(
        (status, output.contains("up to date")),
        (Some(0), true),
        "{errors}"
    );
    assert!(!checkout.result("report.md").exists());
    let (status, output, _) = checkout.script("spec-pull-request", &[]);
    assert_eq!(status, Some(0));
    assert!(output.contains("no pull request"), "{output}");

    // A breaking change updates the pull request that is open.
    std::fs::write(checkout.outside.path().join("open"), "7\n").unwrap();
    server.set(Reply::document(&smaller_spec(), "\"two\""));
    let (status, report, errors) = checkout.script("spec-sync", &[]);
    assert_eq!(status, Some(20), "{errors}");
    assert!(report.contains("webhooks.list_attempts"), "{report}");
    let (_, changes, _) = checkout.script("api-changes", &["HEAD"]);
    assert!(
        changes.contains("**breaking** `webhooks.list_attempts`"),
        "{changes}"
    );
    let (status, _, errors) = checkout.script("spec-pull-request", &["failure"]);
    assert_eq!(status, Some(0), "{errors}");
    let calls = checkout.gh_calls();
    assert!(
        calls.contains("pr edit 7 --title Update the API specs (breaking)"),
        "{calls}"
    );
    assert!(
        calls.contains("--add-label breaking --remove-label compatible"),
        "{calls}"
    );
    assert_eq!(calls.matches("pr create").count(), 1);
    let body = std::fs::read_to_string(checkout.result("body.md")).unwrap();
    assert!(body.starts_with("**Tests: failure.**"), "{body}");
}

#[test]
fn a_failed_update_leaves_the_checkout_clean() {
    let server = TestServer::start(vec![Reply::Response(
        "500 Internal Server Error",
        String::new(),
        String::new(),
    )]);
    let checkout = Checkout::new(&server);
    let (status, _, errors) = checkout.script("spec-sync", &[]);
    assert_eq!(status, Some(1));
    assert!(errors.contains("HTTP status 500"), "{errors}");
    assert_eq!(checkout.git(&["status", "--porcelain"]), "");
    assert!(!checkout.result("report.md").exists());
    let (status, _, errors) = checkout.script("spec-sync", &["--unknown"]);
    assert_eq!(status, Some(2), "{errors}");
    let (status, changes, errors) = checkout.script("api-changes", &["HEAD"]);
    assert_eq!((status, changes.as_str()), (Some(0), ""), "{errors}");
}

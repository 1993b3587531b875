//! A copy of the project that is regenerated, compiled and called.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::JoinHandle;

use codegen::load;
use serde_json::Value;

use crate::support::{copy_dir, repository};

/// A copy of the project with a build folder that persists between test runs.
pub struct Project {
    pub root: PathBuf,
    /// The folder of its programs.
    target: PathBuf,
    /// The build folder of dependencies, shared with this workspace because they are the same.
    build: PathBuf,
}

impl Project {
    /// Copies the project to a folder of this name.
    pub fn new(name: &str) -> Self {
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => PathBuf::from(dir),
            None => repository().join("target"),
        };
        let base = target.join(name);
        let root = base.join("copy");
        let _ = std::fs::remove_dir_all(&root);
        for folder in [
            "src",
            "codegen/src",
            "crates",
            "data-design",
            "generated",
            "packaging",
            "skills",
            "codegen-snapshots",
        ] {
            copy_dir(&repository().join(folder), &root.join(folder));
        }
        for file in ["Cargo.toml", "Cargo.lock", "build.rs", "codegen/Cargo.toml"] {
            std::fs::copy(repository().join(file), root.join(file)).unwrap();
        }
        change_version(&root);
        Self {
            root,
            target: base.join("target"),
            build: target,
        }
    }

    pub fn cargo(&self, arguments: &[&str], check: bool) -> Output {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(arguments)
            .arg("--locked")
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_BUILD_BUILD_DIR", &self.build)
            .env_remove("EXA_CODEGEN");
        if check {
            cargo.env("EXA_CODEGEN", "check");
        }
        cargo.output().unwrap()
    }

    pub fn edit(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let dir = self.root.join("data-design");
        let mut root = load::load(&dir, file).unwrap().root;
        change(&mut root);
        std::fs::write(dir.join(file), root.to_string()).unwrap();
    }

    pub fn program(&self, arguments: &[&str], base_url: &str) -> Output {
        Command::new(self.target.join("debug/exa-mcp-server"))
            .args(arguments)
            .env("EXA_API_KEY", "exa-test-key")
            .env("EXA_BASE_URL", base_url)
            .env("NO_PROXY", "127.0.0.1")
            .output()
            .unwrap()
    }

    /// Returns the files that the generator owns, with their contents.
    pub fn generated_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        for folder in codegen::output::OWNED_FOLDERS {
            collect_files(&self.root.join(folder), &mut files);
        }
        files.sort();
        files
    }
}

/// Gives the packages of the copy another version. Cargo would otherwise take its crates for those of this
/// workspace, as both have the same build folder.
fn change_version(root: &Path) {
    let version = concat!("version = \"", env!("CARGO_PKG_VERSION"), "\"");
    let changed = concat!("version = \"", env!("CARGO_PKG_VERSION"), "+copy\"");
    let manifest = root.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(manifest, text.replacen(version, changed, 1)).unwrap();
    let lock = root.join("Cargo.lock");
    let text = std::fs::read_to_string(&lock).unwrap();
    let packages = text.split("\n\n").map(|package| {
        if package.contains("\nsource = ") {
            package.to_owned()
        } else {
            package.replace(version, changed)
        }
    });
    std::fs::write(lock, packages.collect::<Vec<_>>().join("\n\n")).unwrap();
}

fn collect_files(dir: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_files(&path, files)
        } else {
            files.push((path.clone(), std::fs::read(&path).unwrap()))
        }
    }
}

/// Returns the messages of a program.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A request as a server received it.
pub struct Request {
    /// Method, path and query.
    pub line: String,
    /// The headers in lower case, one per line.
    pub headers: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// Returns the body as JSON, or null.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns path and query.
    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap()
    }
}

/// Serves one request with a response of this status, media type and body.
pub fn serve_once(
    status: &'static str,
    media_type: &'static str,
    body: &'static [u8],
) -> (String, JoinHandle<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let mut headers = String::new();
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            if header.trim().is_empty() {
                break;
            }
            let header = header.to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            headers.push_str(&header);
        }
        let mut content = vec![0; length];
        reader.read_exact(&mut content).unwrap();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        Request {
            line,
            headers,
            body: content,
        }
    });
    (url, thread)
}

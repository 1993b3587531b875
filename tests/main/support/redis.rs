//! A real Redis server for one test, on a Unix socket in a temporary folder.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The longest that Redis may take to start or respond. The tests of `crates/store` compile this file, too.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A Redis server with an append-only file, so that it can be killed and restarted.
pub(crate) struct RedisServer {
    folder: tempfile::TempDir,
    options: Vec<String>,
    child: Child,
}

impl RedisServer {
    pub(crate) fn start() -> Self {
        Self::with_options(&[])
    }

    /// Starts a server with additional command-line options.
    pub(crate) fn with_options(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let child = spawn(&folder, &options);
        let server = Self {
            folder,
            options,
            child,
        };
        server.wait_until_ready();
        server
    }

    /// Returns the value for `EXA_MCP_STORE`.
    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// Suspends the process: connections stay open, but nothing responds.
    #[allow(dead_code)]
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
    }

    /// Resumes a suspended process.
    #[allow(dead_code)]
    pub(crate) fn unfreeze(&self) {
        self.signal("CONT");
    }

    /// Kills the process.
    #[allow(dead_code)]
    pub(crate) fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Restarts the server with its data.
    #[allow(dead_code)]
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.folder, &self.options);
        self.wait_until_ready();
    }

    /// Restarts the server without its data.
    #[allow(dead_code)]
    pub(crate) fn restart_empty(&mut self) {
        self.kill();
        for entry in std::fs::read_dir(self.folder.path()).expect("the folder") {
            let path = entry.expect("an entry").path();
            let removed = if path.is_dir() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            removed.expect("a removable file");
        }
        self.restart();
    }

    /// Sends a command and returns the raw reply.
    pub(crate) fn command(&self, arguments: &[&str]) -> Option<String> {
        let mut stream = UnixStream::connect(self.socket()).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).ok()?;
        let mut command = format!("*{}\r\n", arguments.len());
        for argument in arguments {
            command += &format!("${}\r\n{argument}\r\n", argument.len());
        }
        command += "*1\r\n$4\r\nQUIT\r\n";
        stream.write_all(command.as_bytes()).ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).ok()?;
        Some(response.trim_end_matches("+OK\r\n").to_owned())
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(sent.expect("kill runs").success());
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + TIMEOUT;
        let is_ready = || {
            let response = self.command(&["PING"]).unwrap_or_default();
            response.starts_with("+PONG") || response.starts_with("-NOAUTH")
        };
        while !is_ready() {
            assert!(Instant::now() < deadline, "redis-server does not respond");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(folder: &tempfile::TempDir, options: &[String]) -> Child {
    let (path, socket) = (folder.path(), folder.path().join("s"));
    let _ = std::fs::remove_file(&socket);
    let started = Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--appendonly", "yes"])
        .arg("--dir")
        .arg(path)
        .arg("--unixsocket")
        .arg(&socket)
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.expect("redis-server is needed for this test: apt-get install redis-server")
}

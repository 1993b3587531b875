//! A real Redis server of a test's own: it listens on a socket in a folder, and ends with the test.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long Redis may take to start. Only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A Redis server that writes everything down, so that it can be killed and started again.
pub(crate) struct RedisServer {
    folder: tempfile::TempDir,
    options: Vec<String>,
    child: Child,
}

impl RedisServer {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// With further options of the program.
    pub(crate) fn with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let child = spawn(&folder, &options);
        let server = Self {
            folder,
            options,
            child,
        };
        server.wait_until_it_answers();
        server
    }

    /// What `EXA_MCP_STORE` is set to.
    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// Stops it as it stands: connections stay, answers do not come.
    #[allow(dead_code)]
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
    }

    /// Lets it go on.
    #[allow(dead_code)]
    pub(crate) fn thaw(&self) {
        self.signal("CONT");
    }

    /// Ends it at once.
    #[allow(dead_code)]
    pub(crate) fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Starts it again with what it had written down.
    #[allow(dead_code)]
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.folder, &self.options);
        self.wait_until_it_answers();
    }

    /// Starts it again without what it had written down.
    #[allow(dead_code)]
    pub(crate) fn restart_empty(&mut self) {
        self.kill();
        for entry in std::fs::read_dir(self.folder.path()).expect("the folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => std::fs::remove_dir_all(&path).expect("its files go"),
                false => std::fs::remove_file(&path).expect("its files go"),
            }
        }
        self.restart();
    }

    /// Says something as `redis-cli` would, and gives the answer as it comes.
    pub(crate) fn say(&self, words: &[&str]) -> Option<String> {
        let mut stream = UnixStream::connect(self.socket()).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut command = format!("*{}\r\n", words.len());
        for word in words {
            command += &format!("${}\r\n{word}\r\n", word.len());
        }
        command += "*1\r\n$4\r\nQUIT\r\n";
        stream.write_all(command.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.trim_end_matches("+OK\r\n").to_owned())
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(sent.expect("kill runs").success());
    }

    fn wait_until_it_answers(&self) {
        let deadline = Instant::now() + PATIENCE;
        let answers = || {
            let answer = self.say(&["PING"]).unwrap_or_default();
            answer.starts_with("+PONG") || answer.starts_with("-NOAUTH")
        };
        while !answers() {
            assert!(Instant::now() < deadline, "redis-server does not answer");
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

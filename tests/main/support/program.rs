//! Runs the real program.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use super::Recorder;

/// The Exa API key of the program under test.
pub(crate) const API_KEY: &str = "exa-test-key-0123456789";

/// The program with its arguments. It inherits nothing from the environment but `PATH`.
pub(crate) struct Program {
    command: Command,
    input: Vec<u8>,
}

impl Program {
    /// Creates a program with an API key and no reachable Exa API.
    pub(crate) fn new<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_exa-mcp-server"));
        command
            .args(arguments)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("NO_PROXY", "127.0.0.1")
            // Most tests compare the text with every field.
            .env("EXA_MCP_STRUCTURED", "full")
            .env("EXA_API_KEY", API_KEY)
            // Many tests follow research, which Exa has retired.
            .env("EXA_SANDBOX_RESEARCH", "1")
            // A test that forgets its server must not reach the real API.
            .env("EXA_BASE_URL", "http://127.0.0.1:1");
        Self {
            command,
            input: Vec::new(),
        }
    }

    /// Creates a program that calls one operation of an upstream.
    pub(crate) fn call(server: &Recorder, operation: &str, arguments: &Value) -> Self {
        Self::new(["call", operation, &arguments.to_string()]).env("EXA_BASE_URL", &server.url())
    }

    /// Creates a program that calls one operation of an upstream with arguments that are not validated.
    pub(crate) fn call_unchecked(server: &Recorder, operation: &str, arguments: &str) -> Self {
        Self::new(["call", operation, "--unchecked", arguments]).env("EXA_BASE_URL", &server.url())
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes an environment variable.
    pub(crate) fn env_remove(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Limits the size of the files that the program writes, in blocks of 512 bytes, to simulate a full disk. A write
    /// beyond the limit fails without terminating the program.
    #[cfg(unix)]
    pub(crate) fn with_file_size_limit(self, blocks: u32) -> Self {
        let mut command = Command::new("/bin/sh");
        let script = r#"trap '' XFSZ; ulimit -f "$0"; exec "$@""#;
        command
            .args(["-c", script, &blocks.to_string()])
            .arg(self.command.get_program())
            .args(self.command.get_args())
            .env_clear();
        for (name, value) in self.command.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        Self { command, ..self }
    }

    /// Sets the content of standard input.
    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Returns the command, for tests that connect its streams themselves.
    pub(crate) fn into_command(self) -> Command {
        self.command
    }

    /// Runs the program until it exits.
    pub(crate) fn run(mut self) -> Output {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A program that does not read its input breaks the pipe, which is no error.
        let writer = thread::spawn(move || drop(stdin.write_all(&self.input)));
        let output = child.wait_with_output().expect("the program ends");
        writer.join().expect("the writer ends");
        Output {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
        }
    }
}

/// The exit code and the output of a run.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    /// Returns the JSON output of a successful run.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:#?}");
        assert_eq!(self.stderr, "", "a successful run writes nothing to stderr");
        serde_json::from_str(&self.stdout).expect("JSON on stdout")
    }

    /// Asserts that the run failed with this code and that its error message contains all these parts.
    #[track_caller]
    pub(crate) fn assert_failed(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert_eq!(self.stdout, "", "a failed run writes nothing to stdout");
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in {}", self.stderr);
        }
    }
}

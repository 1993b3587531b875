//! The journal of a batch: which calls were started and which have finished. It survives the end of the process.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Error, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::line::BatchLine;
use exa_mcp_model::lock;

/// What the journal knows about a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LineState {
    /// Its call was started.
    Started,
    /// Its call has this result.
    Finished(Value),
}

/// What the journal knows about a batch that Exa runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoteBatchState {
    /// The digest of all lines.
    pub(super) lines: String,
    /// A random text that the batch carries, by which it is found if the response to its start was lost.
    pub(super) token: String,
    /// When it was started, in milliseconds since 1970.
    pub(super) since: u64,
    /// The arguments of the operation that reads it, as soon as they are known.
    pub(super) job: Option<Map<String, Value>>,
}

/// The journal of one file. While it is open, no other process can open it.
pub(super) struct Journal {
    file: Option<(Mutex<File>, PathBuf)>,
    known: HashMap<(usize, String), LineState>,
    remote: Option<RemoteBatchState>,
}

impl Journal {
    /// Opens the journal beside a file, and reads what an earlier run has recorded. Without a file, nothing is recorded.
    pub(super) fn open(beside: Option<&Path>) -> std::io::Result<Self> {
        let mut journal = Self {
            file: None,
            known: HashMap::new(),
            remote: None,
        };
        let Some(beside) = beside else {
            return Ok(journal);
        };
        let mut name = beside.as_os_str().to_owned();
        name.push(".journal");
        let path = PathBuf::from(name);
        let mut options = OpenOptions::new();
        let opened = options.create(true).read(true).append(true).open(&path);
        let named = |error: Error| Error::new(error.kind(), format!("{}: {error}", path.display()));
        let file = opened.map_err(named)?;
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            let problem = format!("another process is running the calls of {}", path.display());
            return Err(Error::new(ErrorKind::ResourceBusy, problem));
        }
        let mut ends_with_line = true;
        for line in BufReader::new(&file).split(b'\n') {
            ends_with_line = journal.read_entry(&line?);
        }
        journal.file = Some((Mutex::new(file), path));
        // The last line may have been cut off.
        if !ends_with_line {
            journal.append("")?;
        }
        Ok(journal)
    }

    /// Returns what is known about a line from an earlier run.
    pub(super) fn state(&self, line: &BatchLine) -> Option<LineState> {
        self.known.get(&(line.number, line.text.clone())).cloned()
    }

    /// Returns the batch that an earlier run has started at Exa and whose results have not been read.
    pub(super) fn remote(&self) -> Option<&RemoteBatchState> {
        self.remote.as_ref()
    }

    /// Returns the name of the file, for messages.
    pub(super) fn place(&self) -> String {
        let path = self.file.as_ref().map(|(_, path)| path.display());
        path.map_or_else(|| "the journal".to_owned(), |path| path.to_string())
    }

    /// Records a batch that is about to be started at Exa, or was started; without one, that it is done.
    pub(super) fn record_remote(&self, batch: Option<&RemoteBatchState>) -> std::io::Result<()> {
        self.append(&json!({"batch": batch}).to_string())?;
        if let Some((file, _)) = &self.file {
            lock(file).sync_data()?;
        }
        Ok(())
    }

    /// Records that the call of a line is about to be made.
    pub(super) fn start(&self, line: &BatchLine) -> std::io::Result<()> {
        self.append(&entry(line, "started", &Value::Null))
    }

    /// Records that the call of a line had no effect.
    pub(super) fn cancel(&self, line: &BatchLine) {
        self.append_or_warn(&entry(line, "cancelled", &Value::Null));
    }

    /// Records the result of a line.
    pub(super) fn finish(&self, line: &BatchLine, result: &Value) {
        self.append_or_warn(&entry(line, "finished", result));
    }

    /// Removes the journal, because all calls have succeeded.
    pub(super) fn remove(&self) {
        if let Some((_, path)) = &self.file {
            let _ = std::fs::remove_file(path);
        }
    }

    fn append_or_warn(&self, line: &str) {
        if let Err(error) = self.append(line) {
            tracing::warn!(path = self.place(), %error, "the journal cannot be written");
        }
    }

    /// Appends a line with a single write, so that a process that is killed leaves whole lines.
    fn append(&self, line: &str) -> std::io::Result<()> {
        let Some((file, _)) = &self.file else {
            return Ok(());
        };
        lock(file).write_all(format!("{line}\n").as_bytes())
    }

    /// Reads one entry. Returns whether it is whole.
    fn read_entry(&mut self, line: &[u8]) -> bool {
        let Ok(Value::Object(mut entry)) = serde_json::from_slice::<Value>(line) else {
            return line.is_empty();
        };
        if let Some(batch) = entry.shift_remove("batch") {
            self.remote = serde_json::from_value(batch).unwrap_or_default();
            return true;
        }
        let number = entry.get("line").and_then(Value::as_u64);
        let number = number.and_then(|number| usize::try_from(number).ok());
        let text = entry.get("text").and_then(Value::as_str).map(str::to_owned);
        let (Some(number), Some(text)) = (number, text) else {
            return true;
        };
        let result = entry.shift_remove("result").unwrap_or_default();
        match entry.get("state").and_then(Value::as_str) {
            Some("started") => {
                self.known.insert((number, text), LineState::Started);
            }
            Some("finished") => {
                let finished = LineState::Finished(result);
                self.known.insert((number, text), finished);
            }
            _ => {
                self.known.remove(&(number, text));
            }
        }
        true
    }
}

impl Drop for Journal {
    /// Removes a journal in which nothing was recorded.
    fn drop(&mut self) {
        if let Some((file, path)) = &self.file
            && lock(file).metadata().is_ok_and(|it| it.len() == 0)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Returns the entry of a line.
fn entry(line: &BatchLine, state: &str, result: &Value) -> String {
    json!({"line": line.number, "text": line.text, "state": state, "result": result}).to_string()
}

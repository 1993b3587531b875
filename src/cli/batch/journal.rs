//! The journal of a batch: which calls were started and which have finished. It survives the end of the process.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Value, json};

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

/// The journal of one file.
pub(super) struct Journal {
    file: Option<(Mutex<File>, PathBuf)>,
    known: HashMap<(usize, String), LineState>,
}

impl Journal {
    /// Opens the journal beside a file. Without `is_stream`, an earlier run is continued.
    pub(super) fn open(beside: &Path, is_stream: bool) -> std::io::Result<Self> {
        let mut known = HashMap::new();
        if is_stream && beside.as_os_str() == "-" {
            return Ok(Self { file: None, known });
        }
        let mut name = beside.as_os_str().to_owned();
        name.push(".journal");
        let path = PathBuf::from(name);
        let mut ends_with_line = true;
        if let Ok(file) = File::open(&path) {
            for line in BufReader::new(file).split(b'\n') {
                let line = line?;
                ends_with_line = read_entry(&line, &mut known);
            }
        }
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let journal = Self {
            file: Some((Mutex::new(file), path)),
            known,
        };
        // The last line may have been cut off.
        if !ends_with_line {
            journal.append("");
        }
        Ok(journal)
    }

    /// Returns what is known about a line from an earlier run.
    pub(super) fn state(&self, line: &BatchLine) -> Option<LineState> {
        self.known.get(&(line.number, line.text.clone())).cloned()
    }

    /// Records that the call of a line is about to be made.
    pub(super) fn start(&self, line: &BatchLine) {
        self.record(line, "started", &Value::Null);
    }

    /// Records that the call of a line had no effect.
    pub(super) fn cancel(&self, line: &BatchLine) {
        self.record(line, "cancelled", &Value::Null);
    }

    /// Records the result of a line.
    pub(super) fn finish(&self, line: &BatchLine, result: &Value) {
        self.record(line, "finished", result);
    }

    /// Removes the journal, because all calls have succeeded.
    pub(super) fn remove(&self) {
        if let Some((_, path)) = &self.file {
            let _ = std::fs::remove_file(path);
        }
    }

    fn record(&self, line: &BatchLine, state: &str, result: &Value) {
        let entry =
            json!({"line": line.number, "text": line.text, "state": state, "result": result});
        self.append(&entry.to_string());
    }

    /// Appends a line with a single write, so that a process that is killed leaves whole lines.
    fn append(&self, line: &str) {
        let Some((file, path)) = &self.file else {
            return;
        };
        if let Err(error) = lock(file).write_all(format!("{line}\n").as_bytes()) {
            tracing::warn!(path = %path.display(), %error, "the journal cannot be written");
        }
    }
}

/// Reads one entry. Returns whether it is whole.
fn read_entry(line: &[u8], known: &mut HashMap<(usize, String), LineState>) -> bool {
    let Ok(Value::Object(mut entry)) = serde_json::from_slice::<Value>(line) else {
        return line.is_empty();
    };
    let number = entry.get("line").and_then(Value::as_u64);
    let number = number.and_then(|number| usize::try_from(number).ok());
    let text = entry.get("text").and_then(Value::as_str).map(str::to_owned);
    let (Some(number), Some(text)) = (number, text) else {
        return true;
    };
    let result = entry.shift_remove("result").unwrap_or_default();
    match entry.get("state").and_then(Value::as_str) {
        Some("started") => {
            known.insert((number, text), LineState::Started);
        }
        Some("finished") => {
            known.insert((number, text), LineState::Finished(result));
        }
        _ => {
            known.remove(&(number, text));
        }
    }
    true
}

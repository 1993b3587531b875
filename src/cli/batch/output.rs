//! The output of a batch: results in the order of the lines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::Value;

use super::super::Failure;

/// Writes results in the order of the lines.
pub(super) struct Output {
    file: Option<BufWriter<File>>,
    waiting: BTreeMap<usize, String>,
    next: usize,
}

impl Output {
    /// Opens the file, which replaces an earlier one, or standard output.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let file = path.map(|path| {
            let created = File::create(path);
            created.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
        });
        Ok(Self {
            file: file.transpose()?.map(BufWriter::new),
            waiting: BTreeMap::new(),
            next: 0,
        })
    }

    /// Adds the result of a line, and writes all results whose turn it is.
    pub(super) fn add(&mut self, number: usize, result: &Value) -> Result<(), Failure> {
        self.waiting.insert(number, result.to_string());
        // Blank lines have no results, so numbers may be skipped.
        while let Some((&first, _)) = self.waiting.first_key_value() {
            if first > self.next {
                break;
            }
            if let Some((_, text)) = self.waiting.pop_first() {
                self.write(&text)?;
            }
            self.next = first + 1;
        }
        Ok(())
    }

    /// Writes the results that are left.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        for text in std::mem::take(&mut self.waiting).into_values() {
            self.write(&text)?;
        }
        let flushed = self.file.as_mut().map_or(Ok(()), BufWriter::flush);
        flushed.map_err(|error| Failure::failed(format!("the output cannot be written: {error}")))
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let written = match &mut self.file {
            Some(file) => writeln!(file, "{text}").and_then(|()| file.flush()),
            None => {
                let mut out = std::io::stdout().lock();
                writeln!(out, "{text}").and_then(|()| out.flush())
            }
        };
        written.map_err(|error| Failure::failed(format!("the output cannot be written: {error}")))
    }
}

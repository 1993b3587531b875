//! Reports what is wrong with one place of a hand-written file.

use crate::error::{Error, Findings, Notice};

/// Collects the problems of one entry.
pub(crate) struct Report<'a> {
    findings: &'a mut Findings,
    file: &'static str,
    location: String,
}

impl<'a> Report<'a> {
    /// Reports on the entry at `location` of `surface.yaml`.
    pub(crate) fn new(findings: &'a mut Findings, location: String) -> Self {
        Self::on_file("surface.yaml", findings, location)
    }

    /// Reports on the entry at `location` of a file.
    pub(crate) fn on_file(
        file: &'static str,
        findings: &'a mut Findings,
        location: String,
    ) -> Self {
        Self {
            findings,
            file,
            location,
        }
    }

    /// Reports something that is wrong and left out. With `--strict` it is an error.
    pub(crate) fn omit(&mut self, message: impl Into<String>) {
        let message = message.into();
        self.findings.omissions.push(Error::Document {
            file: self.file.to_owned(),
            pointer: format!(" {}", self.location),
            message: message.clone(),
        });
        self.note(message);
    }

    /// Reports something that the maintainer should know.
    pub(crate) fn note(&mut self, message: impl Into<String>) {
        self.findings.notices.push(Notice {
            file: self.file.to_owned(),
            location: self.location.clone(),
            message: message.into(),
        });
    }
}

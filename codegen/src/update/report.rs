//! The report of an update, as Markdown for people and as JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::wording::{MissingWording, WordingKind};
use crate::Notice;
use crate::diff::{self, ApiChange, Impact};

/// What happened to one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceReport {
    /// Its name.
    pub name: String,
    /// Its title and version.
    pub document: String,
    /// The version before, if it differs.
    pub former_version: Option<String>,
    /// Whether the document is another one than before.
    pub changed: bool,
    /// Where it was read.
    pub location: String,
}

/// The result of an update.
#[derive(Debug, Default)]
pub struct UpdateReport {
    /// The sources that were read.
    pub sources: Vec<SourceReport>,
    /// The changes of the API.
    pub changes: Vec<ApiChange>,
    /// Texts of upstream that changed, as `FILE#POINTER`.
    pub stale_wording: Vec<String>,
    /// Operations and fields without a description.
    pub missing_wording: Vec<MissingWording>,
    /// Notices of the split and of the generator.
    pub notices: Vec<Notice>,
    /// The files that were written or removed, relative to the repository.
    pub files: Vec<String>,
}

impl UpdateReport {
    /// Returns whether anything changed besides the record of where the specs come from.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        let is_record = |file: &String| file == &format!("data-design/{}", super::manifest::FILE);
        !self.files.iter().all(is_record)
    }

    /// Returns the worst impact of the update, if it changed anything.
    #[must_use]
    pub fn impact(&self) -> Option<Impact> {
        if !self.has_changes() {
            return None;
        }
        let worst = self.changes.iter().map(|change| change.impact).min();
        Some(worst.unwrap_or(Impact::Documentation))
    }

    /// Returns the report as Markdown. With `quote`, it shows upstream's own texts.
    #[must_use]
    pub fn to_markdown(&self, quote: bool) -> String {
        let mut text = diff::report(&self.changes);
        self.write_wording(&mut text, quote);
        write_list(&mut text, "Notices", self.notices.iter());
        let sources = self.sources.iter().map(source_line);
        write_list(&mut text, "Sources", sources);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\nChanged files: {}", self.files.len());
        text
    }

    fn write_wording(&self, text: &mut String, quote: bool) {
        let stale = self.stale_wording.iter();
        write_list(
            text,
            "Wording",
            stale.map(|location| format!("wording may be out of date: `{location}`")),
        );
        for (kind, title) in [
            (WordingKind::Operation, "Operations that need wording"),
            (
                WordingKind::RequestField,
                "Request fields that need wording",
            ),
            (
                WordingKind::ResponseField,
                "Response fields that need wording",
            ),
        ] {
            let missing = self.missing_wording.iter().filter(|m| m.kind == kind);
            let lines: Vec<String> = missing
                .map(|missing| missing_line(missing, quote))
                .collect();
            if lines.is_empty() {
                continue;
            }
            // Hundreds of lines would hide the rest of the report.
            let _ = write!(
                text,
                "\n<details><summary>{title}: {}</summary>\n\n{}</details>\n",
                lines.len(),
                lines.concat()
            );
        }
    }

    /// Returns the report as JSON. It does not contain upstream's texts.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let missing = self.missing_wording.iter().map(|missing| {
            let kind = match missing.kind {
                WordingKind::Operation => "operation",
                WordingKind::RequestField => "request",
                WordingKind::ResponseField => "response",
            };
            json!({"kind": kind, "location": missing.location})
        });
        let sources = self.sources.iter().map(|source| {
            json!({
                "name": source.name, "document": source.document, "changed": source.changed,
                "formerVersion": source.former_version, "location": source.location,
            })
        });
        let notices = self.notices.iter().map(ToString::to_string);
        json!({
            "impact": self.impact().map_or("none", Impact::as_str),
            "changes": diff::to_json(&self.changes),
            "staleWording": self.stale_wording,
            "needsWording": missing.collect::<Vec<_>>(),
            "notices": notices.collect::<Vec<_>>(),
            "sources": sources.collect::<Vec<_>>(),
            "files": self.files,
        })
    }
}

fn missing_line(missing: &MissingWording, quote: bool) -> String {
    let mut line = format!("- needs wording: `{}`", missing.location);
    if let Some(text) = missing.upstream.as_ref().filter(|_| quote) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let _ = write!(line, " (upstream: “{}”)", words.join(" "));
    }
    line.push('\n');
    line
}

fn source_line(source: &SourceReport) -> String {
    let former = match &source.former_version {
        Some(version) => format!(" (was {version})"),
        None => String::new(),
    };
    let state = if source.changed {
        "changed"
    } else {
        "unchanged"
    };
    format!(
        "`{}`: {}{former}, {state}, from {}",
        source.name, source.document, source.location
    )
}

fn write_list(text: &mut String, title: &str, lines: impl Iterator<Item = impl std::fmt::Display>) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    let _ = writeln!(text, "\n## {title}\n");
    for line in lines {
        let _ = writeln!(text, "- {line}");
    }
}

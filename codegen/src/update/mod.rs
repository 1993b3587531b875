//! Updates the specs in `data-design/` from upstream: `codegen update`.
//!
//! In this order: `manifest` and `source` (what is read, and where) → `http` → `document` (is it a
//! complete spec?) → `split` → `prose` and `lock` → `yaml` → the generator → `wording` → `report` →
//! `transaction`. All but the last step work in memory and in a temporary folder, so that an
//! update that fails changes nothing.

mod command_line;
mod document;
mod error;
mod http;
mod lock;
mod manifest;
mod position;
mod prose;
mod report;
mod source;
mod split;
mod staging;
mod transaction;
mod wording;
mod yaml;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

pub use command_line::{Command, parse as parse_command};
use document::UpstreamDocument;
pub use error::UpdateError;
use http::FetchOutcome;
use lock::TextLock;
use manifest::{Manifest, ProsePolicy, Source};
use prose::Texts;
pub use report::{SourceReport, UpdateReport};
use source::SourceLocation;
pub use wording::{MissingWording, WordingKind};

use crate::{Notice, diff, snapshot_loader};

/// The first line of every spec that an update writes.
const HEADER: &str = "# Written by `codegen update`; see UPSTREAM.toml. Do not edit.\n";

/// The parameters of an update.
#[derive(Debug, Clone)]
pub struct UpdateOptions {
    /// The repository.
    pub root: PathBuf,
    /// A file, folder or URL to read instead of the recorded addresses.
    pub from: Option<String>,
    /// The only source to update.
    pub name: Option<String>,
    /// The time limit of each request.
    pub timeout: Duration,
    /// Accepts documents that look truncated.
    pub accept_removals: bool,
    /// The day to record, as `2026-11-18`.
    pub today: String,
}

/// Reads the sources, and writes new specs with everything that is generated from them.
pub fn update(options: &UpdateOptions) -> Result<UpdateReport, UpdateError> {
    let data_design = options.root.join("data-design");
    let mut state = UpdateState::load(&data_design)?;
    let former_lock = state.lock.clone();
    let selected = source::select(
        &state.manifest,
        options.from.as_deref(),
        options.name.as_deref(),
    )?;
    for (source, location) in selected {
        state.read_source(source, &location, &data_design, options)?;
    }
    let mut files = state.files;
    files.insert(manifest::FILE.to_owned(), state.manifest.to_text());
    if state.lock != former_lock {
        files.insert(lock::FILE.to_owned(), state.lock.to_text());
    }
    let former = snapshot_loader::load(&options.root)?;
    let generated = staging::generate(&options.root, &files)?;
    let mut report = state.report;
    report.changes = diff::compare_versions(&former, &generated.snapshot());
    report.stale_wording = state.lock.changed_since(&former_lock);
    report.missing_wording = wording::missing(&generated.documents(), &state.texts);
    report.notices.extend(generated.output.notices.clone());
    report.files = write(&options.root, &files, &generated.output)?;
    Ok(report)
}

/// Returns the texts of upstream that changed between two checkouts, for which our wording may be out of date.
///
/// A folder without `upstream.lock` has no texts to compare.
pub fn stale_wording(old: &Path, new: &Path) -> Result<Vec<diff::ApiChange>, UpdateError> {
    let load = |folder: &Path| {
        let inner = folder.join("data-design");
        TextLock::load(if inner.is_dir() { &inner } else { folder })
    };
    let stale = load(new)?.changed_since(&load(old)?).into_iter();
    let changes = stale.map(|location| diff::ApiChange {
        impact: diff::Impact::Documentation,
        subject: diff::Subject::Wording,
        operation: String::new(),
        location: format!("wording {location}"),
        definition_path: None,
        text: "may be out of date, because upstream's text changed".to_owned(),
    });
    Ok(changes.collect())
}

fn write(
    root: &Path,
    data_design: &BTreeMap<String, String>,
    output: &crate::GeneratedOutput,
) -> Result<Vec<String>, UpdateError> {
    let inputs: BTreeMap<String, &String> = data_design
        .iter()
        .map(|(name, text)| (format!("data-design/{name}"), text))
        .collect();
    let files = inputs
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .chain(output.files.iter().map(|(n, t)| (n.as_str(), t.as_str())));
    transaction::write_all(root, files, &output.obsolete_files(root)?)
}

/// What an update has read so far.
struct UpdateState {
    manifest: Manifest,
    lock: TextLock,
    /// New contents of files in `data-design/`.
    files: BTreeMap<String, String>,
    /// Upstream's texts by spec, which are never written.
    texts: BTreeMap<String, Texts>,
    report: UpdateReport,
}

impl UpdateState {
    fn load(data_design: &Path) -> Result<Self, UpdateError> {
        Ok(Self {
            manifest: Manifest::load(data_design)?,
            lock: TextLock::load(data_design)?,
            files: BTreeMap::new(),
            texts: BTreeMap::new(),
            report: UpdateReport::default(),
        })
    }

    fn read_source(
        &mut self,
        source: Source,
        location: &SourceLocation,
        data_design: &Path,
        options: &UpdateOptions,
    ) -> Result<(), UpdateError> {
        // Without its specs, an unchanged document is needed all the same.
        let has_specs = source
            .specs
            .iter()
            .all(|s| data_design.join(&s.file).is_file());
        let etag = source.etag.as_deref().filter(|_| has_specs);
        let (bytes, etag) = match location.read(etag, options.timeout)? {
            FetchOutcome::Document { bytes, etag } => (bytes, etag),
            FetchOutcome::NotModified => {
                self.report.sources.push(unchanged(&source, location));
                return Ok(());
            }
        };
        let place = location.to_string();
        let document = UpstreamDocument::parse(&place, &bytes)?;
        if !options.accept_removals {
            document.check_complete(&place, present_operations(data_design, &source))?;
        }
        self.add_specs(&document.root, &source, &place)?;
        let updated = record(&source, &document.root, &bytes, etag, &options.today);
        self.report.sources.push(SourceReport {
            name: source.name.clone(),
            document: title_and_version(&document.root),
            former_version: source
                .version
                .clone()
                .filter(|_| updated.version != source.version),
            changed: updated.sha256 != source.sha256,
            location: place,
        });
        self.manifest.record(&updated);
        Ok(())
    }

    /// Splits a document into specs and removes its texts.
    fn add_specs(&mut self, root: &Value, source: &Source, place: &str) -> Result<(), UpdateError> {
        let split = split::split(root, &source.specs);
        self.report
            .notices
            .extend(split.unassigned.into_iter().map(|operation| Notice {
                file: manifest::FILE.to_owned(),
                location: format!("source `{}`", source.name),
                message: format!("no rule selects {operation}; it is left out"),
            }));
        for (mut spec, rule) in split.specs.into_iter().zip(&source.specs) {
            if split::count_operations(&spec) == 0 {
                return Err(UpdateError::EmptySpec {
                    location: place.to_owned(),
                    file: rule.file.clone(),
                    rule: rule.in_words(),
                });
            }
            let texts = match self.manifest.prose {
                ProsePolicy::Strip => prose::strip(&mut spec),
                ProsePolicy::Keep => prose::texts(&spec),
            };
            self.lock.set(&rule.file, &texts);
            self.texts.insert(rule.file.clone(), texts);
            let text = format!("{HEADER}{}", yaml::to_yaml(&spec));
            self.files.insert(rule.file.clone(), text);
        }
        Ok(())
    }
}

/// Returns the source with the state of the document that was read.
fn record(
    source: &Source,
    root: &Value,
    bytes: &[u8],
    etag: Option<String>,
    today: &str,
) -> Source {
    let sha256 = Some(lock::sha256_hex(bytes));
    let mut updated = source.clone();
    if sha256 == source.sha256 {
        // Some servers change the `ETag` of an unchanged document; the first one is good enough.
        updated.etag = updated.etag.or(etag);
        return updated;
    }
    updated.version = info(root, "version");
    updated.date = Some(today.to_owned());
    updated.sha256 = sha256;
    updated.etag = etag;
    updated
}

fn unchanged(source: &Source, location: &SourceLocation) -> SourceReport {
    SourceReport {
        name: source.name.clone(),
        document: source.version.clone().unwrap_or_default(),
        former_version: None,
        changed: false,
        location: location.to_string(),
    }
}

fn title_and_version(root: &Value) -> String {
    let part = |key| info(root, key).unwrap_or_else(|| "?".to_owned());
    format!("{} {}", part("title"), part("version"))
}

fn info(root: &Value, key: &str) -> Option<String> {
    Some(root.get("info")?.get(key)?.as_str()?.to_owned())
}

/// Counts the operations of the present specs of a source.
fn present_operations(data_design: &Path, source: &Source) -> usize {
    let specs = source.specs.iter();
    let documents = specs.filter_map(|spec| crate::load::load(data_design, &spec.file).ok());
    documents.map(|d| split::count_operations(&d.root)).sum()
}

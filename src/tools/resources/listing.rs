//! The list of resources, and the URI templates.

use std::sync::OnceLock;

use super::reader::describe_operation;
use super::{JSON, MARKDOWN, PLAIN, ReadError, Resources};
use crate::operations::all;
use crate::tools::notes::Note;
use crate::tools::{CachedResult, ResourceUri};
use exa_mcp_model::time::{format_seconds, milliseconds};
use exa_mcp_model::{Identity, Operation};

/// A listed resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceEntry {
    /// Its URI.
    pub uri: ResourceUri,
    /// Its name.
    pub name: String,
    /// A title for people, if it differs from the name.
    pub title: Option<String>,
    /// A description in one line.
    pub description: String,
    /// Its MIME type.
    pub mime: &'static str,
    /// Its size in bytes, if known without rendering.
    pub size: Option<usize>,
    /// When it was created.
    pub modified: Option<String>,
    /// It is intended for people as well as for models.
    pub for_people: bool,
}

/// A page of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourcePage {
    /// The entries.
    pub entries: Vec<ResourceEntry>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// A URI template.
#[derive(Debug, PartialEq, Eq)]
pub struct ResourceTemplate {
    /// The template.
    pub pattern: &'static str,
    /// Its name.
    pub name: &'static str,
    /// A title for people.
    pub title: &'static str,
    /// A description.
    pub description: &'static str,
    /// Its MIME type.
    pub mime: &'static str,
}

/// All URI templates.
pub(crate) static TEMPLATES: &[ResourceTemplate] = &[
    ResourceTemplate {
        pattern: "exa://results/{cacheId}",
        name: "result",
        title: "Cached result",
        description: "A result of this session in full, while it is cached. cacheId is in the metadata.",
        mime: MARKDOWN,
    },
    ResourceTemplate {
        pattern: "exa://results/{cacheId}/{index}",
        name: "result_item",
        title: "One entry of a cached result",
        description: "A single result in full; index counts from 1.",
        mime: MARKDOWN,
    },
    ResourceTemplate {
        pattern: "exa://operations/{name}",
        name: "operation",
        title: "Operation of the Exa API",
        description: "Arguments and response of an operation as JSON Schema, with its signature and an example.",
        mime: JSON,
    },
    ResourceTemplate {
        pattern: "exa://websets/{websetId}",
        name: "webset",
        title: "Webset",
        description: "The current state of a webset, with searches and enrichments.",
        mime: JSON,
    },
    ResourceTemplate {
        pattern: "exa://websets/{websetId}/items",
        name: "webset_items",
        title: "Items of a webset",
        description: "The first page of the current items of a webset.",
        mime: JSON,
    },
    ResourceTemplate {
        pattern: "note:///{id}",
        name: "note",
        title: "Note",
        description: "A note created with create_note.",
        mime: PLAIN,
    },
];

/// The last resource of the previous page.
enum Cursor<'a> {
    /// A cached result, by time and id.
    Result(u64, &'a str),
    /// A note, by number.
    Note(u64),
    /// An operation, by position.
    Operation(usize),
}

/// Returns the URI templates of enabled resources.
pub(super) fn templates(resources: &Resources) -> Vec<&'static ResourceTemplate> {
    let is_enabled = |template: &&ResourceTemplate| match template.name {
        "webset" | "webset_items" => resources.websets,
        "note" => resources.notes.is_some(),
        _ => true,
    };
    TEMPLATES.iter().filter(is_enabled).collect()
}

/// Returns a page of resources: cached results and notes, each newest first, then operations.
///
/// The cursor names the last resource of the previous page, not a position, so that concurrent changes do not skip
/// any. Returns `Ok(None)` for an invalid cursor.
pub(super) async fn page(
    resources: &Resources,
    owner: &Identity,
    cursor: Option<&str>,
    size: usize,
) -> Result<Option<ResourcePage>, ReadError> {
    let last = match cursor {
        None => None,
        Some(cursor) => match parse_cursor(cursor) {
            Some(last) => Some(last),
            None => return Ok(None),
        },
    };
    let mut page = PageBuilder::new(size);
    match last {
        None => page.add(results(resources, owner, (u64::MAX, ""))),
        Some(Cursor::Result(at, id)) => page.add(results(resources, owner, (at, id))),
        Some(_) => {}
    }
    if let Some(notes) = &resources.notes
        && !matches!(last, Some(Cursor::Operation(_)))
        && !page.is_full()
    {
        let before = match last {
            Some(Cursor::Note(number)) => Some(number),
            _ => None,
        };
        let listed = notes.list(owner, before, page.remaining()).await?;
        page.add(listed.iter().map(note_entry));
    }
    let from = match last {
        Some(Cursor::Operation(last_seen)) => last_seen + 1,
        _ => 0,
    };
    if !page.is_full() {
        // Operations for admins are not resources; `operations` of the command line describes them.
        let numbered = all().iter().enumerate().skip(from);
        let numbered = numbered.filter(|(_, operation)| !operation.api.admin_only);
        page.add(numbered.map(|(number, operation)| operation_entry(number, operation)));
    }
    Ok(Some(page.build()))
}

/// Returns the cached results that are older than the last one of the previous page.
fn results(
    resources: &Resources,
    owner: &Identity,
    last_seen: (u64, &str),
) -> Vec<(String, ResourceEntry)> {
    let mut cached = resources.shared.results.list(owner);
    // Results of the same millisecond need a stable order across pages.
    cached.sort_by(|a, b| (stored_millis(b), &b.id).cmp(&(stored_millis(a), &a.id)));
    let is_older = |cached: &&CachedResult| (stored_millis(cached), cached.id.as_str()) < last_seen;
    cached.iter().filter(is_older).map(result_entry).collect()
}

/// Collects the entries of a page and one more, which shows that there is a next page.
struct PageBuilder {
    entries: Vec<(String, ResourceEntry)>,
    size: usize,
}

impl PageBuilder {
    fn new(size: usize) -> Self {
        let entries = Vec::new();
        Self { entries, size }
    }

    fn remaining(&self) -> usize {
        (self.size + 1).saturating_sub(self.entries.len())
    }

    fn is_full(&self) -> bool {
        self.remaining() == 0
    }

    fn add(&mut self, entries: impl IntoIterator<Item = (String, ResourceEntry)>) {
        let remaining = self.remaining();
        self.entries.extend(entries.into_iter().take(remaining));
    }

    fn build(mut self) -> ResourcePage {
        let more = self.entries.len() > self.size;
        self.entries.truncate(self.size);
        let last = self.entries.last().map(|(cursor, _)| cursor.clone());
        ResourcePage {
            next: last.filter(|_| more),
            entries: self.entries.into_iter().map(|(_, entry)| entry).collect(),
        }
    }
}

/// Parses a cursor; `None` if it is not in canonical form.
fn parse_cursor(cursor: &str) -> Option<Cursor<'_>> {
    let (kind, rest) = cursor.split_once('-')?;
    let number = |text: &str| -> Option<u64> {
        let number: u64 = text.parse().ok()?;
        (number.to_string() == text).then_some(number)
    };
    match kind {
        "results" => {
            let (at, id) = rest.split_once('-').filter(|(_, id)| !id.is_empty())?;
            Some(Cursor::Result(number(at)?, id))
        }
        "notes" => Some(Cursor::Note(number(rest)?)),
        "operations" => {
            let last_seen = usize::try_from(number(rest)?).ok()?;
            (last_seen < all().len()).then_some(Cursor::Operation(last_seen))
        }
        _ => None,
    }
}

/// Returns when a result was stored, in milliseconds since 1970.
fn stored_millis(cached: &CachedResult) -> u64 {
    milliseconds(cached.stored_at)
}

fn result_entry(cached: &CachedResult) -> (String, ResourceEntry) {
    let results = match cached.results {
        1 => "1 result".to_owned(),
        count => format!("{count} results"),
    };
    let entry = ResourceEntry {
        uri: ResourceUri::Result(cached.id.clone()),
        name: one_line(&cached.title),
        title: None,
        description: format!("Result of {}: {results}", cached.operation),
        mime: MARKDOWN,
        // The cached response is not the text that is read.
        size: None,
        modified: format_seconds(stored_millis(cached)),
        for_people: true,
    };
    (
        format!("results-{}-{}", stored_millis(cached), cached.id),
        entry,
    )
}

fn note_entry(note: &Note) -> (String, ResourceEntry) {
    let entry = ResourceEntry {
        uri: note.uri(),
        name: note.draft.title.clone(),
        title: None,
        description: format!("A text note: {}", note.draft.title),
        mime: PLAIN,
        size: Some(note.draft.content.len()),
        modified: format_seconds(note.created),
        for_people: true,
    };
    (format!("notes-{}", note.number), entry)
}

fn operation_entry(number: usize, operation: &'static Operation) -> (String, ResourceEntry) {
    static SIZES: OnceLock<Vec<usize>> = OnceLock::new();
    let sizes = SIZES.get_or_init(|| {
        all()
            .iter()
            .map(|one| describe_operation(one).len())
            .collect()
    });
    let entry = ResourceEntry {
        uri: ResourceUri::Operation(operation.name.to_owned()),
        name: operation.name.to_owned(),
        title: Some(operation.summary.to_owned()),
        description: operation.signature.to_owned(),
        mime: JSON,
        size: sizes.get(number).copied(),
        modified: None,
        for_people: false,
    };
    (format!("operations-{number}"), entry)
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

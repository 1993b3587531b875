//! The list of what can be read, and the patterns of addresses.

use std::sync::OnceLock;

use super::read::description;
use super::{JSON, MARKDOWN, PLAIN, ReadError, Resources};
use crate::operations::all;
use crate::tools::notes::Note;
use crate::tools::{Address, CachedResult};
use exa_mcp_model::time::{format_seconds, milliseconds};
use exa_mcp_model::{Identity, Operation};

/// One thing that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub address: Address,
    /// What it is called.
    pub name: String,
    /// A name for people, where it is another one.
    pub title: Option<String>,
    /// What it is, in a line.
    pub description: String,
    /// What kind of text it is.
    pub mime: &'static str,
    /// Its size in bytes, where that is known without writing it.
    pub size: Option<usize>,
    /// When it was made.
    pub modified: Option<String>,
    /// People read it too, not only models.
    pub for_people: bool,
}

/// Some entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourcePage {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Where the next ones begin, if there are any.
    pub next: Option<String>,
}

/// A pattern of addresses.
#[derive(Debug, PartialEq, Eq)]
pub struct Template {
    /// The pattern.
    pub pattern: &'static str,
    /// What it is called.
    pub name: &'static str,
    /// A name for people.
    pub title: &'static str,
    /// What is there.
    pub description: &'static str,
    /// What kind of text it is.
    pub mime: &'static str,
}

/// All patterns.
pub(crate) static TEMPLATES: &[Template] = &[
    Template {
        pattern: "exa://results/{cacheId}",
        name: "result",
        title: "CachedResult answer",
        description: "An answer of this session in full, for as long as it is kept. cacheId stands in the answer.",
        mime: MARKDOWN,
    },
    Template {
        pattern: "exa://results/{cacheId}/{index}",
        name: "result_item",
        title: "One result of a kept answer",
        description: "A single result in full; index counts from 0.",
        mime: MARKDOWN,
    },
    Template {
        pattern: "exa://operations/{name}",
        name: "operation",
        title: "Operation of the Exa API",
        description: "Arguments and answer of an operation as JSON Schema, with its signature and an example.",
        mime: JSON,
    },
    Template {
        pattern: "exa://websets/{websetId}",
        name: "webset",
        title: "Webset",
        description: "A webset as it is now: its state, searches and enrichments.",
        mime: JSON,
    },
    Template {
        pattern: "exa://websets/{websetId}/items",
        name: "webset_items",
        title: "Items of a webset",
        description: "The first page of a webset's items as they are now.",
        mime: JSON,
    },
    Template {
        pattern: "note:///{id}",
        name: "note",
        title: "Note",
        description: "A note that was made with create_note.",
        mime: PLAIN,
    },
];

/// The entry that was seen last.
enum Mark<'a> {
    /// An answer, by its time and id.
    Result(u64, &'a str),
    /// A note, by its number.
    Note(u64),
    /// An operation, by its place.
    Operation(usize),
}

/// Returns the patterns of what is offered.
pub(super) fn templates(resources: &Resources) -> Vec<&'static Template> {
    let offered = |template: &&Template| match template.name {
        "webset" | "webset_items" => resources.websets,
        "note" => resources.notes.is_some(),
        _ => true,
    };
    TEMPLATES.iter().filter(offered).collect()
}

/// Some of the entries: kept answers and notes, each the newest first, then operations.
///
/// The cursor names the last entry that was seen, not a position, so that nothing is left out when
/// entries come and go meanwhile. `Ok(None)` is for a cursor that was never given out.
pub(super) async fn page(
    resources: &Resources,
    owner: &Identity,
    cursor: Option<&str>,
    size: usize,
) -> Result<Option<ResourcePage>, ReadError> {
    let mark = match cursor {
        None => None,
        Some(cursor) => match read_mark(cursor) {
            Some(mark) => Some(mark),
            None => return Ok(None),
        },
    };
    let mut cut = Cut::new(size);
    match mark {
        None => cut.add(results(resources, owner, (u64::MAX, ""))),
        Some(Mark::Result(at, id)) => cut.add(results(resources, owner, (at, id))),
        Some(_) => {}
    }
    if let Some(notes) = &resources.notes
        && !matches!(mark, Some(Mark::Operation(_)))
        && !cut.is_full()
    {
        let before = match mark {
            Some(Mark::Note(number)) => Some(number),
            _ => None,
        };
        let listed = notes.list(owner, before, cut.room()).await?;
        cut.add(listed.iter().map(of_note));
    }
    let from = match mark {
        Some(Mark::Operation(seen)) => seen + 1,
        _ => 0,
    };
    if !cut.is_full() {
        let numbered = all().iter().enumerate().skip(from);
        cut.add(numbered.map(|(number, operation)| of_operation(number, operation)));
    }
    Ok(Some(cut.page()))
}

/// The answers that were kept before the one that was seen last.
fn results(resources: &Resources, owner: &Identity, seen: (u64, &str)) -> Vec<(String, Entry)> {
    let mut kept = resources.shared.results.list(owner);
    // Two answers of the same moment must not change places between two pages.
    kept.sort_by(|a, b| (at(b), &b.id).cmp(&(at(a), &a.id)));
    let earlier = |kept: &&CachedResult| (at(kept), kept.id.as_str()) < seen;
    kept.iter().filter(earlier).map(of_result).collect()
}

/// Gathers entries until the page is full and one more is known, which tells that there is a next page.
struct Cut {
    entries: Vec<(String, Entry)>,
    size: usize,
}

impl Cut {
    fn new(size: usize) -> Self {
        let entries = Vec::new();
        Self { entries, size }
    }

    fn room(&self) -> usize {
        (self.size + 1).saturating_sub(self.entries.len())
    }

    fn is_full(&self) -> bool {
        self.room() == 0
    }

    fn add(&mut self, entries: impl IntoIterator<Item = (String, Entry)>) {
        let room = self.room();
        self.entries.extend(entries.into_iter().take(room));
    }

    fn page(mut self) -> ResourcePage {
        let more = self.entries.len() > self.size;
        self.entries.truncate(self.size);
        let last = self.entries.last().map(|(mark, _)| mark.clone());
        ResourcePage {
            next: last.filter(|_| more),
            entries: self.entries.into_iter().map(|(_, entry)| entry).collect(),
        }
    }
}

/// Reads where a list goes on, if it is in the form that we give out.
fn read_mark(cursor: &str) -> Option<Mark<'_>> {
    let (kind, rest) = cursor.split_once('-')?;
    let number = |text: &str| -> Option<u64> {
        let number: u64 = text.parse().ok()?;
        (number.to_string() == text).then_some(number)
    };
    match kind {
        "results" => {
            let (at, id) = rest.split_once('-').filter(|(_, id)| !id.is_empty())?;
            Some(Mark::Result(number(at)?, id))
        }
        "notes" => Some(Mark::Note(number(rest)?)),
        "operations" => {
            let seen = usize::try_from(number(rest)?).ok()?;
            (seen < all().len()).then_some(Mark::Operation(seen))
        }
        _ => None,
    }
}

/// When an answer was kept, in milliseconds since 1970.
fn at(kept: &CachedResult) -> u64 {
    milliseconds(kept.kept_at)
}

fn of_result(kept: &CachedResult) -> (String, Entry) {
    let results = match kept.results {
        1 => "1 result".to_owned(),
        count => format!("{count} results"),
    };
    let entry = Entry {
        address: Address::Result(kept.id.clone()),
        name: one_line(&kept.title),
        title: None,
        description: format!("Answer of {}: {results}", kept.operation),
        mime: MARKDOWN,
        // What is kept is another text than the one that is read.
        size: None,
        modified: format_seconds(at(kept)),
        for_people: true,
    };
    (format!("results-{}-{}", at(kept), kept.id), entry)
}

fn of_note(note: &Note) -> (String, Entry) {
    let entry = Entry {
        address: note.address(),
        name: note.draft.title.clone(),
        title: None,
        description: "A note made with create_note".to_owned(),
        mime: PLAIN,
        size: Some(note.text().len()),
        modified: format_seconds(note.created),
        for_people: true,
    };
    (format!("notes-{}", note.number), entry)
}

fn of_operation(number: usize, operation: &'static Operation) -> (String, Entry) {
    static SIZES: OnceLock<Vec<usize>> = OnceLock::new();
    let sizes = SIZES.get_or_init(|| all().iter().map(|one| description(one).len()).collect());
    let entry = Entry {
        address: Address::Operation(operation.name.to_owned()),
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

//! Notes: what someone wants to remember, with the pages it comes from.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use super::Address;
use exa_mcp_model::Identity;
use exa_mcp_model::ids::{self, RandomnessError};
use exa_mcp_store::format::{self, DocumentFormat};
use exa_mcp_store::{
    Document, DocumentKey, DocumentQuery, ExpectedRevision, Store, StoreError, WriteOptions,
};

const COLLECTION: &str = "notes";

/// The most notes of one owner.
pub(crate) const MOST_NOTES: usize = 1_000;

/// The longest note, all its parts together, in bytes.
pub(crate) const LARGEST_NOTE: usize = 512 * 1024;

/// The notes of everybody, in a store.
#[derive(Clone)]
pub struct Notes {
    store: Arc<dyn Store>,
}

/// What a note says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// One line.
    #[serde(rename = "title")]
    pub title: String,
    /// The text.
    #[serde(rename = "content")]
    pub content: String,
    /// The pages it comes from.
    #[serde(rename = "sourceUrls", default, skip_serializing_if = "Vec::is_empty")]
    pub source_urls: Vec<String>,
}

impl DocumentFormat for Draft {
    const KIND: &'static str = "note";
}

/// A kept note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its id.
    pub id: String,
    /// What it says.
    pub draft: Draft,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// Its place in the order of making.
    pub number: u64,
}

/// Why a note was not kept or found.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// The title says nothing.
    #[error("`title` is blank; give the note a line that tells what it is about")]
    BlankTitle,
    /// A source is not a page.
    #[error("`sourceUrls`: {0:?} is not an http or https URL")]
    Source(String),
    /// It is too long.
    #[error("the note has {0} bytes; at most {LARGEST_NOTE} are kept. Split it into several notes")]
    TooLarge(usize),
    /// There are too many.
    #[error(
        "there are {0} notes already, the most that are kept for one person; \
         to begin anew, start the server with another EXA_MCP_STORE"
    )]
    TooMany(usize),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// No id could be made.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

impl NoteError {
    /// Another note would have been kept: the fault is the caller's.
    pub fn is_callers(&self) -> bool {
        matches!(
            self,
            Self::BlankTitle | Self::Source(_) | Self::TooLarge(_) | Self::TooMany(_)
        )
    }
}

impl From<StoreError> for NoteError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::TooMany(most) => Self::TooMany(most),
            error => Self::Store(error),
        }
    }
}

impl Notes {
    /// The notes in this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Keeps a note.
    pub async fn create(&self, owner: &Identity, draft: Draft) -> Result<Note, NoteError> {
        let draft = draft.checked()?;
        let id = ids::random_id()?;
        let body = format::encode(&draft);
        let rules = WriteOptions {
            max_documents: Some(MOST_NOTES),
            expected: ExpectedRevision::Absent,
            time_to_live: None,
        };
        self.store.put(place(owner, &id), body, rules).await?;
        let kept = self.get(owner, &id).await?;
        // Deleted by another process in the meantime: it was kept all the same.
        Ok(kept.unwrap_or(Note {
            id,
            draft,
            created: 0,
            number: 0,
        }))
    }

    /// Finds a note; one of somebody else is not found.
    pub async fn get(&self, owner: &Identity, id: &str) -> Result<Option<Note>, NoteError> {
        let found = self.store.get(place(owner, id)).await?;
        Ok(found.and_then(note))
    }

    /// Some notes, the newest first; `before` is the number of the last one that was seen.
    pub async fn list(
        &self,
        owner: &Identity,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Note>, NoteError> {
        let query = DocumentQuery {
            owner: Some(owner.clone()),
            collection: COLLECTION,
            before,
            limit,
        };
        let documents = self.store.list(query).await?;
        Ok(documents.into_iter().filter_map(note).collect())
    }
}

fn place(owner: &Identity, id: &str) -> DocumentKey {
    DocumentKey {
        owner: owner.clone(),
        collection: COLLECTION,
        id: id.to_owned(),
    }
}

fn note(document: Document) -> Option<Note> {
    Some(Note {
        draft: format::decode(&document.body)?,
        id: document.id,
        created: document.created_at,
        number: document.sequence,
    })
}

impl Draft {
    /// The draft with its title on one line, if it can be kept.
    fn checked(mut self) -> Result<Self, NoteError> {
        let words: Vec<&str> = self.title.split_whitespace().collect();
        self.title = words.join(" ").replace(char::is_control, "");
        if self.title.is_empty() {
            return Err(NoteError::BlankTitle);
        }
        if let Some(source) = self.source_urls.iter().find(|source| !is_page(source)) {
            return Err(NoteError::Source(source.chars().take(200).collect()));
        }
        let sources: usize = self.source_urls.iter().map(String::len).sum();
        let bytes = self.title.len() + self.content.len() + sources;
        match bytes {
            0..=LARGEST_NOTE => Ok(self),
            _ => Err(NoteError::TooLarge(bytes)),
        }
    }
}

fn is_page(text: &str) -> bool {
    let host = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    Url::parse(text).is_ok_and(|url| host(&url))
}

impl Note {
    /// Where it can be read.
    pub fn address(&self) -> Address {
        Address::Note(self.id.clone())
    }

    /// The note as plain text: the title, the text, the sources.
    pub fn text(&self) -> String {
        let Draft {
            title,
            content,
            source_urls,
        } = &self.draft;
        let mut text = format!("{title}\n\n{content}");
        if !source_urls.is_empty() {
            text.push_str("\n\nSources:");
        }
        for source in source_urls {
            text.push_str(&format!("\n- {source}"));
        }
        text
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use exa_mcp_store::MemoryStore;

    fn notes() -> Notes {
        Notes::new(Arc::new(MemoryStore::default()))
    }

    fn draft(title: &str) -> Draft {
        Draft {
            title: title.to_owned(),
            content: "Text.".to_owned(),
            source_urls: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_note_is_kept_for_its_owner() {
        let (notes, ann, bob) = (notes(), Identity::user("ann"), Identity::user("bob"));
        let written = Draft {
            source_urls: vec!["https://example.com/a".to_owned()],
            ..draft(" Heat\n pumps\u{7} ")
        };
        let note = notes.create(&ann, written).await.unwrap();
        assert_eq!(note.draft.title, "Heat pumps");
        assert_eq!(
            note.text(),
            "Heat pumps\n\nText.\n\nSources:\n- https://example.com/a"
        );
        assert_eq!(notes.get(&ann, &note.id).await.unwrap(), Some(note.clone()));
        assert_eq!(notes.get(&bob, &note.id).await.unwrap(), None);
        assert_eq!(notes.list(&bob, None, 9).await.unwrap(), []);
        assert_eq!(notes.list(&ann, None, 9).await.unwrap(), [note]);
    }

    #[tokio::test]
    async fn what_is_no_note_is_refused_with_the_reason() {
        let (notes, ann) = (notes(), Identity::user("ann"));
        let refused = async |draft| notes.create(&ann, draft).await.unwrap_err();
        let error = refused(draft(" \n\u{7}")).await;
        assert!(error.is_callers() && error.to_string().contains("`title`"));
        for source in [
            "example.com",
            "ftp://example.com",
            "javascript:alert(1)",
            "https://",
        ] {
            let source_urls = vec![source.to_owned()];
            let error = refused(Draft {
                source_urls,
                ..draft("t")
            })
            .await;
            assert!(
                error.to_string().contains("sourceUrls"),
                "{source}: {error}"
            );
        }
        let content = "x".repeat(LARGEST_NOTE);
        let error = refused(Draft {
            content,
            ..draft("t")
        })
        .await;
        assert!(error.to_string().contains("524289"), "{error}");
    }

    #[tokio::test]
    async fn an_owner_has_room_for_so_many() {
        let (notes, ann) = (notes(), Identity::user("ann"));
        for _ in 0..MOST_NOTES {
            notes.create(&ann, draft("t")).await.unwrap();
        }
        let error = notes.create(&ann, draft("t")).await.unwrap_err();
        assert!(
            error.is_callers() && error.to_string().contains("1000"),
            "{error}"
        );
        notes
            .create(&Identity::user("bob"), draft("t"))
            .await
            .unwrap();
    }

    /// The format of notes in stores. Whoever changes it breaks the stores of others: see
    /// docs/upgrading.md.
    #[test]
    fn the_format_of_a_stored_note_does_not_change() {
        let with_sources = Draft {
            source_urls: vec!["https://x.example".to_owned()],
            ..draft("t")
        };
        let text = r#"{"v":1,"title":"t","content":"Text.","sourceUrls":["https://x.example"]}"#;
        assert_eq!(format::encode(&with_sources), text);
        let before = r#"{"title":"t","content":"Text."}"#;
        assert_eq!(format::decode(before), Some(draft("t")));
    }
}

//! Notes with their sources.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use super::ResourceUri;
use exa_mcp_model::Identity;
use exa_mcp_model::ids::{self, RandomnessError};
use exa_mcp_store::format::{self, DocumentFormat};
use exa_mcp_store::{
    Document, DocumentKey, DocumentQuery, ExpectedRevision, Store, StoreError, WriteOptions,
};

const COLLECTION: &str = "notes";

/// The maximum number of notes of one owner.
pub(crate) const MAX_NOTES: usize = 1_000;

/// The maximum size of a note, all parts together, in bytes.
pub(crate) const MAX_NOTE_BYTES: usize = 512 * 1024;

/// The notes of all owners, in a store.
#[derive(Clone)]
pub struct Notes {
    store: Arc<dyn Store>,
}

/// The content of a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteDraft {
    /// The title, on one line.
    pub title: String,
    /// The text.
    pub content: String,
    /// The URLs of the sources.
    #[serde(rename = "sourceUrls", default, skip_serializing_if = "Vec::is_empty")]
    pub source_urls: Vec<String>,
}

impl DocumentFormat for NoteDraft {
    const KIND: &'static str = "note";
}

/// A stored note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its id.
    pub id: String,
    /// Its content.
    pub draft: NoteDraft,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// Its position in the order of creation.
    pub number: u64,
}

/// Why a note could not be stored or found.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// The title is blank.
    #[error("`title` is blank; describe the note in one line")]
    BlankTitle,
    /// A source is not a web page.
    #[error("`sourceUrls`: {0:?} is not an http or https URL")]
    Source(String),
    /// The note is too large.
    #[error("the note has {0} bytes; the limit is {MAX_NOTE_BYTES}. Split it into several notes")]
    TooLarge(usize),
    /// The owner has too many notes.
    #[error(
        "the limit of {0} notes per person is reached; \
         to start over, use another EXA_MCP_STORE"
    )]
    TooMany(usize),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// No id could be generated.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

impl NoteError {
    /// Returns whether the caller can fix the error with another note.
    pub fn is_caller_error(&self) -> bool {
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
    /// Creates the notes of a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Stores a note.
    pub async fn create(&self, owner: &Identity, draft: NoteDraft) -> Result<Note, NoteError> {
        let draft = draft.validate()?;
        let id = ids::random_id()?;
        let body = format::encode(&draft);
        let rules = WriteOptions {
            max_documents: Some(MAX_NOTES),
            expected: ExpectedRevision::Absent,
            time_to_live: None,
        };
        self.store
            .put(document_key(owner, &id), body, rules)
            .await?;
        let stored = self.get(owner, &id).await?;
        // Another process may have deleted it meanwhile.
        Ok(stored.unwrap_or(Note {
            id,
            draft,
            created: 0,
            number: 0,
        }))
    }

    /// Returns a note of an owner.
    pub async fn get(&self, owner: &Identity, id: &str) -> Result<Option<Note>, NoteError> {
        let found = self.store.get(document_key(owner, id)).await?;
        Ok(found.and_then(note))
    }

    /// Lists notes, newest first; `before` is the number of the last note of the previous page.
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

fn document_key(owner: &Identity, id: &str) -> DocumentKey {
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

impl NoteDraft {
    /// Returns the draft with its title on one line, if it is valid.
    fn validate(mut self) -> Result<Self, NoteError> {
        let words: Vec<&str> = self.title.split_whitespace().collect();
        self.title = words.join(" ").replace(char::is_control, "");
        if self.title.is_empty() {
            return Err(NoteError::BlankTitle);
        }
        if let Some(source) = self.source_urls.iter().find(|source| !is_web_url(source)) {
            return Err(NoteError::Source(source.chars().take(200).collect()));
        }
        let sources: usize = self.source_urls.iter().map(String::len).sum();
        let bytes = self.title.len() + self.content.len() + sources;
        match bytes {
            0..=MAX_NOTE_BYTES => Ok(self),
            _ => Err(NoteError::TooLarge(bytes)),
        }
    }
}

fn is_web_url(text: &str) -> bool {
    let host = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    Url::parse(text).is_ok_and(|url| host(&url))
}

impl Note {
    /// Returns the URI of the note.
    pub fn uri(&self) -> ResourceUri {
        ResourceUri::Note(self.id.clone())
    }

    /// Returns the note as plain text: title, content, sources.
    pub fn text(&self) -> String {
        let NoteDraft {
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

    fn draft(title: &str) -> NoteDraft {
        NoteDraft {
            title: title.to_owned(),
            content: "Text.".to_owned(),
            source_urls: Vec::new(),
        }
    }

    #[tokio::test]
    async fn only_the_owner_finds_a_note() {
        let (notes, ann, bob) = (notes(), Identity::user("ann"), Identity::user("bob"));
        let written = NoteDraft {
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
    async fn rejects_invalid_notes_with_the_reason() {
        let (notes, ann) = (notes(), Identity::user("ann"));
        let rejected = async |draft| notes.create(&ann, draft).await.unwrap_err();
        let error = rejected(draft(" \n\u{7}")).await;
        assert!(error.is_caller_error() && error.to_string().contains("`title`"));
        for source in [
            "example.com",
            "ftp://example.com",
            "javascript:alert(1)",
            "https://",
        ] {
            let source_urls = vec![source.to_owned()];
            let error = rejected(NoteDraft {
                source_urls,
                ..draft("t")
            })
            .await;
            assert!(
                error.to_string().contains("sourceUrls"),
                "{source}: {error}"
            );
        }
        let content = "x".repeat(MAX_NOTE_BYTES);
        let error = rejected(NoteDraft {
            content,
            ..draft("t")
        })
        .await;
        assert!(error.to_string().contains("524289"), "{error}");
    }

    #[tokio::test]
    async fn limits_the_notes_of_an_owner() {
        let (notes, ann) = (notes(), Identity::user("ann"));
        for _ in 0..MAX_NOTES {
            notes.create(&ann, draft("t")).await.unwrap();
        }
        let error = notes.create(&ann, draft("t")).await.unwrap_err();
        assert!(
            error.is_caller_error() && error.to_string().contains("1000"),
            "{error}"
        );
        notes
            .create(&Identity::user("bob"), draft("t"))
            .await
            .unwrap();
    }

    /// Existing stores depend on this format: see docs/upgrading.md.
    #[test]
    fn the_stored_format_does_not_change() {
        let with_sources = NoteDraft {
            source_urls: vec!["https://x.example".to_owned()],
            ..draft("t")
        };
        let text = r#"{"v":1,"title":"t","content":"Text.","sourceUrls":["https://x.example"]}"#;
        assert_eq!(format::encode(&with_sources), text);
        let before = r#"{"title":"t","content":"Text."}"#;
        assert_eq!(format::decode(before), Some(draft("t")));
    }
}

//! `data-design/UPSTREAM.toml`: where the specs come from, and the state of the last update.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Table, value};

use super::error::UpdateError;

/// The name of the file in `data-design/`.
pub const FILE: &str = "UPSTREAM.toml";

/// The sources of all specs, with the text of the file for editing.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// What happens to upstream's texts.
    pub prose: ProsePolicy,
    /// The sources in the order of the file.
    pub sources: Vec<Source>,
    text: DocumentMut,
}

/// What happens to upstream's texts and examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProsePolicy {
    /// They are removed, and only their hashes are recorded.
    Strip,
    /// They are written.
    Keep,
}

/// One document of upstream.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its name on the command line.
    pub name: String,
    /// Its address. A source without one is read only with `--from`.
    pub url: Option<String>,
    /// The specs that it becomes, in the order in which they select operations.
    #[serde(rename = "spec")]
    pub specs: Vec<SpecRule>,
    /// `info.version` of the document that was read last.
    pub version: Option<String>,
    /// The day on which this content was read first.
    pub date: Option<String>,
    /// The SHA-256 digest of the document as served.
    pub sha256: Option<String>,
    /// The `ETag` of the response.
    pub etag: Option<String>,
}

/// A spec in `data-design/` and the operations that belong to it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecRule {
    /// The file name in `data-design/`.
    pub file: String,
    /// Selects operations whose path starts with one of these.
    #[serde(default)]
    pub path_prefix: OneOrMany,
    /// Selects operations with one of these tags.
    #[serde(default)]
    pub tag: OneOrMany,
    /// Selects operations with a server whose URL starts with one of these.
    #[serde(default)]
    pub server: OneOrMany,
}

/// One string or a list of them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "OneOrManyForm")]
pub struct OneOrMany(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrManyForm {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrManyForm> for OneOrMany {
    fn from(form: OneOrManyForm) -> Self {
        match form {
            OneOrManyForm::One(text) => Self(vec![text]),
            OneOrManyForm::Many(texts) => Self(texts),
        }
    }
}

impl SpecRule {
    /// Returns whether the rule takes every operation that no earlier rule has taken.
    pub fn takes_the_rest(&self) -> bool {
        self.path_prefix.0.is_empty() && self.tag.0.is_empty() && self.server.0.is_empty()
    }

    /// Describes the rule for messages.
    pub fn in_words(&self) -> String {
        let conditions = [
            ("path_prefix", &self.path_prefix),
            ("tag", &self.tag),
            ("server", &self.server),
        ];
        let parts: Vec<String> = conditions
            .iter()
            .filter(|(_, values)| !values.0.is_empty())
            .map(|(name, values)| format!("`{name}` {}", values.0.join(" or ")))
            .collect();
        if parts.is_empty() {
            "everything that the other rules leave".to_owned()
        } else {
            parts.join(", ")
        }
    }
}

impl Source {
    /// Returns the file names under which a folder may contain this document.
    pub fn served_names(&self) -> Vec<String> {
        let from_url = self.url.as_deref().and_then(last_segment);
        let named = match (&from_url, self.specs.as_slice()) {
            (Some(name), _) => Some(name.as_str()),
            (None, [only]) => Some(only.file.as_str()),
            (None, _) => None,
        };
        let Some(name) = named else {
            return Vec::new();
        };
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let mut names = vec![name.to_owned()];
        for extension in ["yaml", "yml", "json"] {
            let other = format!("{stem}.{extension}");
            if other != name {
                names.push(other);
            }
        }
        names
    }
}

/// Returns the last segment of the path of a URL.
pub fn last_segment(url: &str) -> Option<String> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let (_, name) = path.rsplit_once('/')?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The part of the file that is deserialized.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestForm {
    prose: ProsePolicy,
    #[serde(rename = "source")]
    sources: Vec<Source>,
}

impl Manifest {
    /// Reads the file in `data_design`.
    pub fn load(data_design: &Path) -> Result<Self, UpdateError> {
        let path = data_design.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(UpdateError::reading(&path))?;
        Self::parse(&text)
    }

    /// Parses and checks the text of the file.
    pub fn parse(text: &str) -> Result<Self, UpdateError> {
        let invalid = |error: &dyn std::fmt::Display| UpdateError::Manifest(error.to_string());
        let document: DocumentMut = text.parse().map_err(|error| invalid(&error))?;
        let form: ManifestForm = toml_edit::de::from_str(text).map_err(|error| invalid(&error))?;
        for source in &form.sources {
            check_source(source)?;
        }
        let names: BTreeSet<&str> = form.sources.iter().map(|s| s.name.as_str()).collect();
        if names.len() != form.sources.len() {
            return Err(UpdateError::Manifest("two sources have one name".into()));
        }
        Ok(Self {
            prose: form.prose,
            sources: form.sources,
            text: document,
        })
    }

    /// Returns the names of all sources.
    pub fn names(&self) -> Vec<String> {
        self.sources.iter().map(|s| s.name.clone()).collect()
    }

    /// Records the state of a source, and forgets that of others with the same specs.
    pub fn record(&mut self, updated: &Source) {
        let files: BTreeSet<&str> = updated.specs.iter().map(|s| s.file.as_str()).collect();
        for index in 0..self.sources.len() {
            let Some(source) = self.sources.get_mut(index) else {
                continue;
            };
            if source.name == updated.name {
                *source = updated.clone();
            } else if source.specs.iter().any(|s| files.contains(s.file.as_str())) {
                source.version = None;
                source.date = None;
                source.sha256 = None;
                source.etag = None;
            } else {
                continue;
            }
            let source = source.clone();
            if let Some(table) = self.table_mut(index) {
                write_state(table, &source);
            }
        }
    }

    fn table_mut(&mut self, index: usize) -> Option<&mut Table> {
        self.text
            .get_mut("source")
            .and_then(Item::as_array_of_tables_mut)?
            .get_mut(index)
    }

    /// Returns the text of the file with all recorded states.
    pub fn to_text(&self) -> String {
        self.text.to_string()
    }
}

fn write_state(table: &mut Table, source: &Source) {
    for (key, state) in [
        ("version", &source.version),
        ("date", &source.date),
        ("sha256", &source.sha256),
        ("etag", &source.etag),
    ] {
        let present = table.get(key).and_then(Item::as_str);
        match state {
            // An unchanged line retains its formatting.
            Some(text) if present == Some(text) => {}
            Some(text) => {
                table.insert(key, value(text));
            }
            None => {
                table.remove(key);
            }
        }
    }
}

fn check_source(source: &Source) -> Result<(), UpdateError> {
    let fail = |message: String| {
        Err(UpdateError::Manifest(format!(
            "source `{}`: {message}",
            source.name
        )))
    };
    if source.specs.is_empty() {
        return fail("needs at least one `[[source.spec]]`".to_owned());
    }
    let last = source.specs.len() - 1;
    for (index, spec) in source.specs.iter().enumerate() {
        if spec.file.contains(['/', '\\']) || !spec.file.ends_with("-spec.yaml") {
            return fail(format!(
                "`{}` must be a file name that ends in `-spec.yaml`",
                spec.file
            ));
        }
        if spec.takes_the_rest() && index < last {
            return fail(format!(
                "`{}` has no rule and would leave nothing for the specs after it; put it last",
                spec.file
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# Where the specs come from.
prose = "strip"

# One document, two specs.
[[source]]
name = "public"
url = "https://example.com/docs/exa-spec.yaml?v=1"
date = "2026-01-01" # first

[[source.spec]]
file = "exa-websets-spec.yaml"
path_prefix = "/v0/"

[[source.spec]]
file = "exa-search-spec.yaml"

[[source]]
name = "search"
sha256 = "old"

[[source.spec]]
file = "exa-search-spec.yaml"
"#;

    #[test]
    fn served_names_follow_the_address_or_the_only_spec() {
        let manifest = Manifest::parse(TEXT).unwrap();
        let names = |index: usize| manifest.sources[index].served_names();
        assert_eq!(names(0), ["exa-spec.yaml", "exa-spec.yml", "exa-spec.json"]);
        assert_eq!(names(1)[0], "exa-search-spec.yaml");
    }

    #[test]
    fn recording_keeps_comments_and_clears_sources_of_the_same_spec() {
        let mut manifest = Manifest::parse(TEXT).unwrap();
        assert_eq!(manifest.to_text(), TEXT);
        let mut source = manifest.sources[0].clone();
        source.version = Some("2.0.0".into());
        source.sha256 = Some("new".into());
        manifest.record(&source);
        let text = manifest.to_text();
        assert!(text.contains("# One document, two specs."), "{text}");
        assert!(text.contains("date = \"2026-01-01\" # first"), "{text}");
        assert!(text.contains("sha256 = \"new\""), "{text}");
        assert!(!text.contains("old"), "{text}");
        let again = Manifest::parse(&text).unwrap();
        assert_eq!(again.sources[0].version.as_deref(), Some("2.0.0"));
        assert_eq!(again.sources[1].sha256, None);
    }

    #[test]
    fn rejects_contradictory_rules() {
        let error = |text: &str| Manifest::parse(text).unwrap_err().to_string();
        let swapped = TEXT.replace("path_prefix = \"/v0/\"", "");
        assert!(error(&swapped).contains("put it last"));
        let outside = TEXT.replace("exa-websets-spec.yaml", "../exa-websets-spec.yaml");
        assert!(error(&outside).contains("must be a file name"));
        assert!(error("prose = \"delete\"\nsource = []").contains("UPSTREAM.toml"));
    }
}

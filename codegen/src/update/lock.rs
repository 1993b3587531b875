//! `data-design/upstream.lock`: a hash of each text of upstream, by file and JSON pointer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::error::UpdateError;
use super::prose::Texts;

/// The name of the file in `data-design/`.
pub const FILE: &str = "upstream.lock";

const HEADER: &str = "\
# Hashes of upstream's texts, which are not checked in. Written by `codegen update`; do not edit.
";

/// Enough to notice a change; the texts are no secret.
const HASH_LENGTH: usize = 16;

/// The hashes of texts, by spec and JSON pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextLock {
    specs: BTreeMap<String, BTreeMap<String, String>>,
}

impl TextLock {
    /// Reads the file in `data_design`; a missing file has no hashes.
    pub fn load(data_design: &Path) -> Result<Self, UpdateError> {
        let path = data_design.join(FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(UpdateError::reading(path)(error)),
        }
    }

    /// Parses the text of the file.
    pub fn parse(text: &str) -> Result<Self, UpdateError> {
        let mut lock = Self::default();
        for (index, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let parsed = line.rsplit_once(' ').and_then(|(location, hash)| {
                let (file, pointer) = location.split_once('#')?;
                Some((file, pointer, hash))
            });
            let Some((file, pointer, hash)) = parsed else {
                return Err(UpdateError::Lock { line: index + 1 });
            };
            let spec = lock.specs.entry(file.to_owned()).or_default();
            spec.insert(pointer.to_owned(), hash.to_owned());
        }
        Ok(lock)
    }

    /// Replaces the hashes of one spec.
    pub fn set(&mut self, file: &str, texts: &Texts) {
        if texts.is_empty() {
            self.specs.remove(file);
            return;
        }
        let hashes = texts
            .iter()
            .map(|(pointer, text)| (pointer.clone(), hash(text)))
            .collect();
        self.specs.insert(file.to_owned(), hashes);
    }

    /// Returns the texts that differ from those of an earlier lock, as `FILE#POINTER`.
    ///
    /// A text that moved because entries were added to or removed from a list has not changed.
    pub fn changed_since(&self, earlier: &Self) -> Vec<String> {
        let mut changed = Vec::new();
        for (file, hashes) in &self.specs {
            let Some(before) = earlier.specs.get(file) else {
                continue;
            };
            let known: BTreeSet<(String, &str)> = before
                .iter()
                .map(|(pointer, hash)| (without_indices(pointer), hash.as_str()))
                .collect();
            for (pointer, hash) in hashes {
                let is_known = known.contains(&(without_indices(pointer), hash.as_str()));
                if before.contains_key(pointer) && !is_known {
                    changed.push(format!("{file}#{pointer}"));
                }
            }
        }
        changed
    }

    /// Returns the text of the file.
    pub fn to_text(&self) -> String {
        let mut text = HEADER.to_owned();
        for (file, hashes) in &self.specs {
            for (pointer, hash) in hashes {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{file}#{pointer} {hash}");
            }
        }
        text
    }
}

/// Returns the pointer with `*` for list indices.
fn without_indices(pointer: &str) -> String {
    let is_index = |s: &&str| !s.is_empty() && s.bytes().all(|byte| byte.is_ascii_digit());
    let segments = pointer.split('/');
    let segments = segments.map(|segment| if is_index(&segment) { "*" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

/// Returns the start of the SHA-256 digest of a text. White space at line ends does not count.
fn hash(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    let mut digest = sha256_hex(lines.join("\n").as_bytes());
    digest.truncate(HASH_LENGTH);
    digest
}

/// Returns the SHA-256 digest as hexadecimal text.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(texts: &[(&str, &str)]) -> TextLock {
        let texts = texts.iter().map(|(p, t)| (p.to_string(), t.to_string()));
        let mut lock = TextLock::default();
        lock.set("exa-a-spec.yaml", &texts.collect());
        lock
    }

    #[test]
    fn survives_a_round_trip() {
        let lock = lock(&[
            ("/paths/~1a b/get/summary", "One"),
            ("/info/description", "Two"),
        ]);
        let text = lock.to_text();
        assert_eq!(TextLock::parse(&text).unwrap(), lock);
        assert!(!text.contains("One"), "{text}");
        assert!(
            TextLock::parse("# x\nnonsense\n")
                .unwrap_err()
                .to_string()
                .contains("line 2")
        );
    }

    #[test]
    fn reports_changed_texts_only() {
        let before = lock(&[
            ("/a/0/description", "A"),
            ("/a/1/description", "B"),
            ("/gone", "G"),
        ]);
        // One entry was inserted before the others, and one text was reworded.
        let after = lock(&[
            ("/a/0/description", "New"),
            ("/a/1/description", "A"),
            ("/a/2/description", "B"),
            ("/added", "X"),
        ]);
        assert_eq!(
            after.changed_since(&before),
            ["exa-a-spec.yaml#/a/0/description"]
        );
        assert!(after.changed_since(&after).is_empty());
        assert!(after.changed_since(&TextLock::default()).is_empty());
        let reflowed = lock(&[("/gone", " G \n")]);
        assert!(reflowed.changed_since(&before).is_empty());
    }
}

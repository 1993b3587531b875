//! What can go wrong, said so that a maintainer knows where to look.

use std::path::PathBuf;

/// A result of the generator.
pub type Result<T> = std::result::Result<T, Error>;

/// Why nothing was generated. Every variant names the place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file could not be written; the tree may be half updated.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not well-formed YAML.
    #[error("{file} is not valid YAML: {message}")]
    Yaml {
        /// The file, relative to `data-design/`.
        file: String,
        /// Line, column and cause.
        message: String,
    },
    /// A file is YAML, but not the kind of document it has to be.
    #[error("{file}{pointer}: {message}")]
    Document {
        /// The file, relative to `data-design/`.
        file: String,
        /// JSON pointer of the offending node, empty for the whole file.
        pointer: String,
        /// What is wrong and what is expected.
        message: String,
    },
    /// A `$ref` leads nowhere.
    #[error("{file}#{pointer}: `$ref: {reference}` does not resolve; {advice}")]
    Reference {
        /// The file, relative to `data-design/`.
        file: String,
        /// JSON pointer of the object that holds the reference.
        pointer: String,
        /// The reference as written.
        reference: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// A construct that no rule covers.
    #[error(
        "{file}#{pointer}: no rule of family `{family}` covers {construct}; \
         add a rule to codegen/src/lower, or an overlay action that rewrites this place"
    )]
    Unsupported {
        /// The file, relative to `data-design/`.
        file: String,
        /// JSON pointer of the construct.
        pointer: String,
        /// The rule family that would have to cover it.
        family: &'static str,
        /// The construct in words.
        construct: String,
    },
    /// Two operations got the same name.
    #[error(
        "two operations are called `{name}`: {first} and {second}; \
         give one of them another `name` in surface.yaml"
    )]
    DuplicateName {
        /// The name both have.
        name: String,
        /// Where the first stands.
        first: String,
        /// Where the second stands.
        second: String,
    },
    /// The client generator refused a document that the rules let through.
    #[error("{file}#{pointer}: the client generator failed (rule family `client`): {message}")]
    Client {
        /// The file, relative to `data-design/`.
        file: String,
        /// JSON pointer of the operation.
        pointer: String,
        /// What the client generator said.
        message: String,
    },
    /// The checked-in output differs from what the specs give.
    #[error("out of date: {}; run `cargo build --features codegen`", files.join(", "))]
    Stale {
        /// The files that differ, are missing, or are left over.
        files: Vec<String>,
    },
    /// The command line was not understood.
    #[error("{0}")]
    Usage(String),
}

/// Something a maintainer should know, though generation goes on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    /// The file that the notice is about.
    pub file: String,
    /// The place in the file: an action, an entry, a JSON pointer.
    pub place: String,
    /// What was found and what was done about it.
    pub text: String,
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.file, self.place, self.text)
    }
}

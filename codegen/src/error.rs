//! Errors and notices, with the location of the problem for the maintainer.

use std::path::PathBuf;

/// The result type of the generator.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why nothing was generated. Every variant names the location.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file could not be written; the output may be partially updated.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
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
    /// A file is YAML but not the expected kind of document.
    #[error("{file}{pointer}: {message}")]
    Document {
        /// The file, relative to `data-design/`.
        file: String,
        /// JSON pointer of the offending node, empty for the whole file.
        pointer: String,
        /// What is wrong and what is expected.
        message: String,
    },
    /// The target of a `$ref` does not exist.
    #[error("{file}#{pointer}: `$ref: {reference}` does not resolve; {advice}")]
    Reference {
        /// The file, relative to `data-design/`.
        file: String,
        /// JSON pointer of the object that contains the reference.
        pointer: String,
        /// The reference as written.
        reference: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// A construct that no rule covers.
    #[error(
        "{file}#{pointer}: no rule of family `{family}` covers {construct}; \
         add a rule to codegen/src/lower, or an overlay action that rewrites it"
    )]
    Unsupported {
        /// The file, relative to `data-design/`.
        file: String,
        /// JSON pointer of the construct.
        pointer: String,
        /// The rule family that should cover it.
        family: &'static str,
        /// A description of the construct.
        construct: String,
    },
    /// The client generator rejected a document that the rules accept.
    #[error("{file}#{pointer}: the client generator failed (rule family `client`): {message}")]
    Client {
        /// The file, relative to `data-design/`.
        file: String,
        /// JSON pointer of the operation.
        pointer: String,
        /// The message of the client generator.
        message: String,
    },
    /// The checked-in output differs from the output for the current specs.
    #[error("out of date: {}; run `cargo build --features codegen`", files.join(", "))]
    Stale {
        /// The files that differ, are missing, or are obsolete.
        files: Vec<String>,
    },
    /// Several independent errors.
    #[error("{} errors:\n{}", .0.len(), list(.0))]
    Several(Vec<Error>),
    /// Parts of the specs were left out, and `--strict` forbids that.
    #[error(
        "{} parts of the specs cannot be generated:\n{}\n\
         run without `--strict` to leave them out, or fix them with an overlay",
        .0.len(), list(.0)
    )]
    Omitted(Vec<Error>),
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// Fails if there are errors. A single one is returned as it is.
    pub fn combine(mut errors: Vec<Error>) -> Result<()> {
        match errors.len() {
            0 => Ok(()),
            1 => errors.pop().map_or(Ok(()), Err),
            _ => Err(Error::Several(errors)),
        }
    }
}

fn list(errors: &[Error]) -> String {
    let lines = errors.iter().map(|error| format!("- {error}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// What the generator reports besides its output.
#[derive(Debug, Default)]
pub struct Findings {
    /// Notices for the maintainer.
    pub notices: Vec<Notice>,
    /// Why parts of the specs were left out. Each has a notice, too.
    pub omissions: Vec<Error>,
}

impl Findings {
    /// Records that the part of `file` at `location` was left out, with what happened instead.
    pub fn omit(&mut self, file: &str, location: String, what: &str, error: Error) {
        self.notices.push(Notice {
            file: file.to_owned(),
            location,
            message: format!("{what}: {error}"),
        });
        self.omissions.push(error);
    }
}

/// A problem that does not stop the generator but that the maintainer should know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    /// The file with the problem.
    pub file: String,
    /// The location in the file: an action, an entry or a JSON pointer.
    pub location: String,
    /// The problem and how the generator handled it.
    pub message: String,
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.file, self.location, self.message)
    }
}

//! Errors of `codegen update`. Whichever occurs, nothing has been written.

use std::path::PathBuf;

/// The reason why an update was abandoned.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// `UPSTREAM.toml` is missing, malformed or contradictory.
    #[error("data-design/UPSTREAM.toml: {0}")]
    Manifest(String),
    /// `upstream.lock` has a line of another form.
    #[error(
        "data-design/upstream.lock: line {line} is not `FILE#POINTER HASH`; \
         restore the file, or delete it to record all hashes again"
    )]
    Lock {
        /// The number of the line, from 1.
        line: usize,
    },
    /// A file or folder could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file could not be written; all files have their former contents again.
    #[error("cannot write {path}: {source}; all files were restored")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A request failed before a complete response arrived.
    #[error("cannot fetch {url}: {message}; nothing was written, try again later")]
    Fetch {
        /// The address.
        url: String,
        /// The cause.
        message: String,
    },
    /// The server responded with a status other than 200 and 304.
    #[error("{url} responded with HTTP status {status}; nothing was written. {advice}")]
    Status {
        /// The address.
        url: String,
        /// The status.
        status: u16,
        /// What to do about it.
        advice: &'static str,
    },
    /// The server redirected to an address that is not followed.
    #[error(
        "{url} redirects to {target}, which is not followed: {reason}. \
         If the source has moved, change its `url` in data-design/UPSTREAM.toml"
    )]
    Redirect {
        /// The address.
        url: String,
        /// The target of the redirect.
        target: String,
        /// Why it is not followed.
        reason: &'static str,
    },
    /// A response or file exceeds the size limit.
    #[error("{location} is larger than {limit} bytes, so it is probably not a spec")]
    TooLarge {
        /// The address or file.
        location: String,
        /// The limit.
        limit: u64,
    },
    /// A document is not an OpenAPI description.
    #[error("{location} is not an OpenAPI document: {message}")]
    NotASpec {
        /// The address or file.
        location: String,
        /// What it is instead.
        message: String,
    },
    /// A document is well-formed but incomplete.
    #[error(
        "{location} looks truncated: {evidence}. Fetch it again; if it is complete, \
         pass --accept-removals"
    )]
    Truncated {
        /// The address or file.
        location: String,
        /// Why it looks truncated.
        evidence: String,
    },
    /// A rule of `UPSTREAM.toml` selects no operation.
    #[error(
        "no operation of {location} belongs to {file}: the rule is {rule}. \
         Adapt the rules of the source in data-design/UPSTREAM.toml"
    )]
    EmptySpec {
        /// The address or file.
        location: String,
        /// The spec that would be empty.
        file: String,
        /// The rule in words.
        rule: String,
    },
    /// The source to update cannot be determined.
    #[error("{message}; the sources are {}", known.join(", "))]
    Source {
        /// What is missing or ambiguous.
        message: String,
        /// The names of all sources.
        known: Vec<String>,
    },
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// The generator rejected the new specs.
    #[error("the new specs do not generate, so nothing was written: {0}")]
    Generate(#[from] crate::Error),
}

impl UpdateError {
    /// Returns a closure that wraps an error of reading `path`.
    pub(super) fn reading(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Read { path, source }
    }
}

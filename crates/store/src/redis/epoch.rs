//! Which data a Redis holds: the version of its format, and an epoch that is made once with the data.
//!
//! A server remembers the epoch that it found at its first use. Every script compares it with that of the
//! Redis before it does anything, so a server neither reads nor writes data of another epoch: where Redis
//! lost its data or was replaced, the tokens, revocations and identities that the server knows belong to data
//! that is gone.

use std::sync::{LazyLock, Mutex};

use redis::{RedisError, Script, ScriptInvocation};
use tokio::sync::OnceCell;

use super::super::StoreError;
use super::link::Link;
use super::{key, mark};
use exa_mcp_model::lock;

/// The version of the format that this program reads and writes. What was written before there was a
/// version is the first.
pub(super) const VERSION: u32 = 1;

/// The version of the program, by which people know what to update.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// The codes with which scripts refuse.
const NEWER: &str = "EXANEWER";
const REPLACED: &str = "EXAEPOCH";

static BEGIN: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("begin.lua")));

/// The epoch of the data, as this server knows it.
#[derive(Default)]
pub(super) struct Epoch {
    known: OnceCell<String>,
    /// Why the last script was refused, if it was.
    problem: Mutex<Option<StoreError>>,
}

impl Epoch {
    /// The epoch of the data. The first look remembers it, and makes it where there is none; data of a newer
    /// version is refused before anything is written.
    pub(super) async fn get(&self, link: &Link) -> Result<&str, StoreError> {
        let begun = self.known.get_or_try_init(|| async {
            let mut begin = BEGIN.prepare_invoke();
            let own = mark()?;
            begin
                .key(key(&["store"]))
                .arg(VERSION)
                .arg(own)
                .arg(PROGRAM);
            let ask = async |mut connection| begin.invoke_async(&mut connection).await;
            link.ask(ask).await
        });
        let begun = begun.await;
        // That it is known says nothing about the data that is there now.
        if begun.is_err() {
            self.note(&begun);
        }
        begun.map(String::as_str)
    }

    /// Has a script refuse data of another epoch or of a newer version.
    pub(super) async fn bind(
        &self,
        link: &Link,
        script: &mut ScriptInvocation<'_>,
    ) -> Result<(), StoreError> {
        let epoch = self.get(link).await?;
        script.arg(VERSION).arg(epoch);
        Ok(())
    }

    /// Takes notice of what came of a script.
    pub(super) fn note<T>(&self, result: &Result<T, StoreError>) {
        let problem = match result {
            Ok(_) => None,
            Err(error @ (StoreError::Newer(_) | StoreError::Replaced)) => Some(error.clone()),
            // Whoever could not be asked has not changed.
            Err(_) => return,
        };
        let mut known = lock(&self.problem);
        if *known != problem {
            match &problem {
                Some(problem) => tracing::error!(%problem, "nothing is served with this store"),
                None => tracing::warn!("the store is the one from before again; it is used again"),
            }
            *known = problem;
        }
    }

    /// Why the data must not be used, if it was refused last.
    pub(super) fn problem(&self) -> Option<StoreError> {
        lock(&self.problem).clone()
    }
}

/// What a script says that refuses.
pub(super) fn refusal(error: &RedisError) -> Option<StoreError> {
    match error.code()? {
        REPLACED => Some(StoreError::Replaced),
        NEWER => {
            let detail = error.detail().unwrap_or_default();
            let (found, program) = detail.split_once(' ').unwrap_or((detail, ""));
            Some(StoreError::newer(found, Some(program), VERSION))
        }
        _ => None,
    }
}

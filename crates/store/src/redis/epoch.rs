//! Identifies the data in Redis by its format version and by an epoch, a random id created with the data.
//!
//! A server remembers the epoch of its first use. Every script compares it with the stored one before it does
//! anything, so a server neither reads nor writes data of another epoch. If Redis lost its data or was replaced, the
//! tokens, revocations and identities that the server has in memory belong to data that no longer exists.

use std::sync::{LazyLock, Mutex};

use redis::{RedisError, Script, ScriptInvocation};
use tokio::sync::OnceCell;

use super::connection::RedisConnection;
use super::{key, unique_name};
use crate::StoreError;
use exa_mcp_model::lock;

/// The format version that this program reads and writes. Data without a version has version 1.
pub(super) const VERSION: u32 = 1;

/// The version of the program, shown to operators who have to update.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// The error codes of the scripts.
const NEWER: &str = "EXANEWER";
const REPLACED: &str = "EXAEPOCH";

static INIT_EPOCH: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("init_epoch.lua")));

/// The epoch of the data, as this server knows it.
#[derive(Default)]
pub(super) struct Epoch {
    known: OnceCell<String>,
    /// Why the last script was rejected, if it was.
    blocking_error: Mutex<Option<StoreError>>,
}

impl Epoch {
    /// Returns the epoch of the data. The first call reads or creates it, and rejects data of a newer version before
    /// anything is written.
    pub(super) async fn get(&self, connection: &RedisConnection) -> Result<&str, StoreError> {
        let epoch = self.known.get_or_try_init(|| async {
            let mut script = INIT_EPOCH.prepare_invoke();
            let new = unique_name()?;
            script
                .key(key(&["store"]))
                .arg(VERSION)
                .arg(new)
                .arg(PROGRAM);
            let query = async |mut connection| script.invoke_async(&mut connection).await;
            connection.query(query).await
        });
        let epoch = epoch.await;
        // Success may come from memory and does not tell whether the data is still the same.
        if epoch.is_err() {
            self.observe(&epoch);
        }
        epoch.map(String::as_str)
    }

    /// Makes a script reject data of another epoch or of a newer version.
    pub(super) async fn bind(
        &self,
        connection: &RedisConnection,
        script: &mut ScriptInvocation<'_>,
    ) -> Result<(), StoreError> {
        let epoch = self.get(connection).await?;
        script.arg(VERSION).arg(epoch);
        Ok(())
    }

    /// Records whether a script was rejected.
    pub(super) fn observe<T>(&self, result: &Result<T, StoreError>) {
        let blocking_error = match result {
            Ok(_) => None,
            Err(error @ (StoreError::Newer(_) | StoreError::Replaced)) => Some(error.clone()),
            // An unreachable Redis tells nothing about its data.
            Err(_) => return,
        };
        let mut current = lock(&self.blocking_error);
        if *current != blocking_error {
            match &blocking_error {
                Some(error) => {
                    tracing::error!(%error, "rejecting all requests because of the store")
                }
                None => tracing::warn!("the original store is back; serving requests again"),
            }
            *current = blocking_error;
        }
    }

    /// Returns why the data must not be used, if the last script was rejected.
    pub(super) fn blocking_error(&self) -> Option<StoreError> {
        lock(&self.blocking_error).clone()
    }
}

/// Converts the error of a script that rejected the data.
pub(super) fn script_error(error: &RedisError) -> Option<StoreError> {
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

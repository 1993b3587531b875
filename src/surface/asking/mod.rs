//! What a call asks its client for before it goes on. Everything is asked before anything is changed:
//! a client of the newer era answers by making the whole call again, and the call of a task that waits for
//! an answer is made again by the next server.

mod confirm;
mod key;
mod missing;
mod prepare;

use std::time::Duration;

pub(super) use missing::Again;
pub use prepare::Prepared;

use super::{Call, Catalogue, Outcome};
use crate::accounts::{KeyDesk, KeyPage, LocalUser};
use crate::operations::Operation;
use serde_json::{Map, Value};

/// How an operator wants clients to be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Manners {
    /// Nothing is deleted before the user has agreed, where the client can ask.
    pub confirm_deletes: bool,
    /// How long to wait for an answer, if not as long as usual.
    pub patience: Option<Duration>,
}

impl Catalogue {
    /// The same tools with other manners.
    #[must_use]
    pub fn with_manners(self, manners: Manners) -> Self {
        Self { manners, ..self }
    }

    /// How clients are asked.
    pub fn manners(&self) -> Manners {
        self.manners
    }

    /// The same tools, which ask for a missing key on a page of this machine, where the local user can
    /// see it.
    #[must_use]
    pub fn with_key_page(self, _user: &LocalUser) -> Self {
        Self {
            desk: Some(KeyDesk::new(self.caller.keys().clone())),
            ..self
        }
    }

    /// The page on which a missing key can be entered; nothing if there is a key, or no page.
    pub async fn key_page(&self) -> Option<KeyPage> {
        let desk = self.desk.as_ref().filter(|_| self.caller.keys().is_empty());
        desk?.page().await.ok()
    }

    /// Asks for what a call needs before it is sent.
    pub(super) async fn ready(
        &self,
        call: &Call,
        operation: &Operation,
        arguments: &Map<String, Value>,
    ) -> Result<(), Box<Outcome>> {
        self.demand_key(call).await?;
        self.confirm(call, operation, arguments).await
    }
}

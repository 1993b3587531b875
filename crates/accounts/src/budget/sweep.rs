//! Settling what processes left behind that have ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::entry::Entry;
use super::ledger::Ledger;
use exa_mcp_store::{Reassigned, Reservation, StoreError};

/// How often it is looked for.
const PAUSE: Duration = Duration::from_secs(5);

impl Ledger {
    /// Settles what ended processes left behind, for ever.
    pub async fn sweep(self: Arc<Self>) {
        if !self.store.is_shared() {
            return;
        }
        // Known to the others before the first call comes; if this fails now, that call tries again.
        let _ = self.process().await;
        let mut fails = false;
        loop {
            match self.sweep_once().await {
                Ok(()) => fails = false,
                Err(error) if !fails => {
                    fails = true;
                    tracing::warn!(%error, "open reservations cannot be read; trying again");
                }
                Err(_) => {}
            }
            sleep(PAUSE).await;
        }
    }

    /// Settles what ended processes have left behind until now.
    ///
    /// # Errors
    /// The store failed.
    pub async fn sweep_once(&self) -> Result<(), StoreError> {
        // A store that nobody made is not made by looking.
        if !self.store.is_made() {
            return Ok(());
        }
        let mut known = HashMap::new();
        for reservation in self.store.reservations().await? {
            if self.is_alive(&mut known, &reservation.holder).await {
                continue;
            }
            // What a newer version has written is left to it.
            let Some(entry) = Entry::read(&reservation.body) else {
                continue;
            };
            self.take_over(reservation, entry).await?;
        }
        Ok(())
    }

    /// Charges a lost call at its reservation, and follows a run.
    async fn take_over(&self, present: Reservation, entry: Entry) -> Result<(), StoreError> {
        let Some(run) = entry.run.clone() else {
            tracing::info!(
                operation = entry.operation,
                "was under way when its server ended; it is charged at its reservation"
            );
            let spent = present.amount;
            self.settle(present, &entry, spent).await;
            return Ok(());
        };
        let holder = self.process().await?.to_owned();
        let changed = Reservation {
            holder,
            ..present.clone()
        };
        let outcome = self.store.reassign(present, changed.clone(), None).await?;
        if outcome == Reassigned::Done {
            tracing::info!(run = run.key, "is followed by this server now");
            self.follow(run, changed);
        }
        Ok(())
    }
}

//! Recovers the reservations of dead processes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::ledger::BudgetLedger;
use super::record::ReservationBody;
use exa_mcp_store::{ReassignOutcome, Reservation, StoreError};

/// How often reservations are checked.
const INTERVAL: Duration = Duration::from_secs(5);

impl BudgetLedger {
    /// Periodically recovers the reservations of dead processes.
    pub async fn recover(self: Arc<Self>) {
        if !self.store.is_shared() {
            return;
        }
        // Registers this process before the first call, which retries if this fails.
        let _ = self.process().await;
        let mut has_warned = false;
        loop {
            match self.recover_once().await {
                Ok(()) => has_warned = false,
                Err(error) if !has_warned => {
                    has_warned = true;
                    tracing::warn!(%error, "cannot read open reservations; trying again");
                }
                Err(_) => {}
            }
            sleep(INTERVAL).await;
        }
    }

    /// Recovers the reservations of processes that are dead now.
    ///
    /// # Errors
    /// The store failed.
    pub async fn recover_once(&self) -> Result<(), StoreError> {
        // Do not create a store just to read it.
        if !self.store.may_contain_data() {
            return Ok(());
        }
        let mut known = HashMap::new();
        for reservation in self.store.reservations().await? {
            if self.is_alive(&mut known, &reservation.holder).await {
                continue;
            }
            // Leave reservations of a newer version to it.
            let Some(body) = ReservationBody::decode(&reservation.body) else {
                continue;
            };
            self.take_over(reservation, body).await?;
        }
        Ok(())
    }

    /// Charges an interrupted call at its reservation, or follows a job.
    async fn take_over(
        &self,
        current: Reservation,
        body: ReservationBody,
    ) -> Result<(), StoreError> {
        let Some(job) = body.job.clone() else {
            tracing::info!(
                operation = body.operation,
                "a call was in progress when its server ended; charging it at its reservation"
            );
            let spent = current.amount;
            self.settle(current, &body, spent).await;
            return Ok(());
        };
        let holder = self.process().await?.to_owned();
        let changed = Reservation {
            holder,
            ..current.clone()
        };
        let outcome = self.store.reassign(current, changed.clone(), None).await?;
        if outcome == ReassignOutcome::Done {
            tracing::info!(run = job.key, "following a run of a dead server");
            self.follow(job, changed);
        }
        Ok(())
    }
}

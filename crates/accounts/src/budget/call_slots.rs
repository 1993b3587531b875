//! Slots of calls in progress, counted across all servers that share a store.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::ledger::{BudgetLedger, with_timeout};
use super::write_queue::LedgerWrite;
use exa_mcp_model::ids;
use exa_mcp_store::{Slot, SlotLimit, StoreError};

/// The slot of a call in progress, released when dropped.
pub struct CallSlot {
    ledger: Arc<BudgetLedger>,
    pub(super) key: String,
    pub(super) id: String,
}

impl BudgetLedger {
    /// Acquires a slot; `None` if the limit is reached.
    pub(crate) async fn acquire_slot(
        self: &Arc<Self>,
        key: &str,
        limit: Option<SlotLimit>,
    ) -> Result<Option<CallSlot>, StoreError> {
        let holder = with_timeout(Box::pin(async { self.process().await.map(str::to_owned) }));
        let holder = holder.await?;
        let id = ids::random_id().map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let slot = Slot {
            key: key.to_owned(),
            group: id.clone(),
            id,
            holder,
            is_durable: false,
        };
        // Created first, so that it is released if the store does not respond.
        let held = CallSlot {
            ledger: Arc::clone(self),
            key: slot.key.clone(),
            id: slot.id.clone(),
        };
        let mut acquired = with_timeout(self.store.acquire_slot(slot.clone(), limit)).await?;
        if !acquired && self.release_abandoned(key).await? {
            acquired = with_timeout(self.store.acquire_slot(slot, limit)).await?;
        }
        Ok(acquired.then_some(held))
    }

    /// Releases the slots of dead processes and of charged jobs, and returns whether there were any.
    async fn release_abandoned(&self, key: &str) -> Result<bool, StoreError> {
        let slots = with_timeout(self.store.slots(key.to_owned())).await?;
        let open = with_timeout(self.store.reservations()).await?;
        let mut known = HashMap::new();
        let mut released = false;
        for slot in slots {
            let is_in_use = if slot.is_durable {
                open.iter().any(|reservation| reservation.id == slot.id)
            } else {
                self.is_alive(&mut known, &slot.holder).await
            };
            if !is_in_use {
                with_timeout(self.store.release_slot(slot.key, slot.id)).await?;
                released = true;
            }
        }
        Ok(released)
    }

    /// Returns whether a process is alive, and `true` if that is unknown.
    pub(super) async fn is_alive(&self, known: &mut HashMap<String, bool>, holder: &str) -> bool {
        if self.is_own(holder) {
            return true;
        }
        if let Some(is_alive) = known.get(holder) {
            return *is_alive;
        }
        let is_alive = with_timeout(self.store.is_alive(holder.to_owned())).await;
        let is_alive = is_alive.unwrap_or(true);
        known.insert(holder.to_owned(), is_alive);
        is_alive
    }
}

impl std::fmt::Debug for CallSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CallSlot").field(&self.key).finish()
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        // Without a runtime the process is ending, and its slots with it.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let (ledger, key, id) = (
            Arc::clone(&self.ledger),
            std::mem::take(&mut self.key),
            std::mem::take(&mut self.id),
        );
        runtime.spawn(async move { ledger.write(LedgerWrite::ReleaseSlot { key, id }).await });
    }
}

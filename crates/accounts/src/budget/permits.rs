//! Slots for calls under way, counted over all servers that share a store.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::ledger::{Ledger, patiently};
use super::queue::Duty;
use exa_mcp_model::ids;
use exa_mcp_store::{Slot, SlotLimit, StoreError};

/// A slot that is free again when this is dropped.
pub struct HeldSlot {
    ledger: Arc<Ledger>,
    pub(super) key: String,
    pub(super) id: String,
}

impl Ledger {
    /// Takes a slot, or gives `None` where there is no room; without a limit there always is.
    pub(crate) async fn occupy(
        self: &Arc<Self>,
        key: &str,
        limit: Option<SlotLimit>,
    ) -> Result<Option<HeldSlot>, StoreError> {
        let holder = patiently(Box::pin(async { self.process().await.map(str::to_owned) }));
        let holder = holder.await?;
        let id = ids::random_id().map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let slot = Slot {
            key: key.to_owned(),
            group: id.clone(),
            id,
            holder,
            is_lasting: false,
        };
        // Given back if the answer does not come, too.
        let held = HeldSlot {
            ledger: Arc::clone(self),
            key: slot.key.clone(),
            id: slot.id.clone(),
        };
        let mut taken = patiently(self.store.occupy(slot.clone(), limit)).await?;
        if !taken && self.free_abandoned(key).await? {
            taken = patiently(self.store.occupy(slot, limit)).await?;
        }
        Ok(taken.then_some(held))
    }

    /// Frees the slots of processes that have ended, and of runs that are charged; says whether there were any.
    async fn free_abandoned(&self, key: &str) -> Result<bool, StoreError> {
        let slots = patiently(self.store.slots(key.to_owned())).await?;
        let open = patiently(self.store.reservations()).await?;
        let mut known = HashMap::new();
        let mut freed = false;
        for slot in slots {
            let is_used = if slot.is_lasting {
                open.iter().any(|reservation| reservation.id == slot.id)
            } else {
                self.is_alive(&mut known, &slot.holder).await
            };
            if !is_used {
                patiently(self.store.vacate(slot.key, slot.id)).await?;
                freed = true;
            }
        }
        Ok(freed)
    }

    /// Whether a process lives; where that cannot be told, it does.
    pub(super) async fn is_alive(&self, known: &mut HashMap<String, bool>, holder: &str) -> bool {
        if self.is_own(holder) {
            return true;
        }
        if let Some(lives) = known.get(holder) {
            return *lives;
        }
        let lives = patiently(self.store.lives(holder.to_owned())).await;
        let lives = lives.unwrap_or(true);
        known.insert(holder.to_owned(), lives);
        lives
    }
}

impl std::fmt::Debug for HeldSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HeldSlot").field(&self.key).finish()
    }
}

impl Drop for HeldSlot {
    fn drop(&mut self) {
        // Without a runtime the process ends, and its slots with it.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let (ledger, key, id) = (
            Arc::clone(&self.ledger),
            std::mem::take(&mut self.key),
            std::mem::take(&mut self.id),
        );
        runtime.spawn(async move { ledger.carry_out(Duty::Vacate { key, id }).await });
    }
}

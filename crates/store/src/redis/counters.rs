//! Counters in Redis.

use std::sync::LazyLock;
use std::time::Duration;

use redis::Script;

use super::{RedisStore, key, milliseconds};
use crate::{Counter, CounterBatch, CounterOp, StoreError};

static UPDATE_COUNTERS: LazyLock<Script> = script!("update_counters.lua");

impl RedisStore {
    /// Applies a batch, unless the writer's last batch is the same or newer.
    pub(super) async fn apply_batch(
        &self,
        batch: &CounterBatch,
        retention: Duration,
    ) -> Result<(), StoreError> {
        let mut script = UPDATE_COUNTERS.prepare_invoke();
        script
            .key(key(&["batch", &batch.writer]))
            .key(key(&["subjects"]))
            .arg(milliseconds(Some(retention)))
            .arg(batch.sequence);
        for update in &batch.updates {
            let (op, value) = match update.op {
                CounterOp::Add(amount) => ("add", amount),
                CounterOp::RaiseTo(minimum) => ("reach", minimum),
            };
            script
                .arg(key(&["count", &update.subject]))
                .arg(&update.subject)
                .arg(&update.name)
                .arg(op)
                // Redis only has signed integers.
                .arg(value.min(i64::MAX as u64));
        }
        self.run::<i64>(&mut script).await.map(drop)
    }

    /// Deletes the counters of some subjects. They have no expiry, because Redis evicts keys with one when memory is
    /// short, and with them what a user has spent today.
    pub(super) async fn delete_subjects(&self, subjects: &[String]) -> Result<(), StoreError> {
        if subjects.is_empty() {
            return Ok(());
        }
        let mut pipe = redis::pipe();
        for subject in subjects {
            pipe.cmd("UNLINK").arg(key(&["count", subject])).ignore();
        }
        pipe.cmd("SREM")
            .arg(key(&["subjects"]))
            .arg(subjects)
            .ignore();
        let query = async |mut connection| pipe.query_async(&mut connection).await;
        self.connection.query(query).await
    }

    /// Reads the counters of some subjects in one round trip.
    pub(super) async fn read_counters(
        &self,
        subjects: &[String],
    ) -> Result<Vec<Counter>, StoreError> {
        let mut pipe = redis::pipe();
        for subject in subjects {
            pipe.cmd("HGETALL").arg(key(&["count", subject]));
        }
        let query = async |mut connection| pipe.query_async(&mut connection).await;
        let replies: Vec<Vec<(String, u64)>> = self.connection.query(query).await?;
        let counters = subjects
            .iter()
            .zip(replies)
            .flat_map(|(subject, mut values)| {
                values.sort();
                values.into_iter().map(|(name, value)| Counter {
                    subject: subject.clone(),
                    name,
                    value,
                })
            });
        Ok(counters.collect())
    }
}

//! Giving memory back to the system after a flood.
//!
//! What one thread allocated and another freed stays with the first one until it has made many allocations
//! outside of the allocator's fast path. A server that has become quiet makes none, so some are made for it.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// After 10,000 allocations outside of its fast path, mimalloc looks for pages that are free.
const ALLOCATIONS: usize = 12_000;

/// The bytes of each of them; up to 1 KiB would take the fast path.
const ALLOCATION: usize = 4 * 1024;

/// Tasks for each worker thread, so that each gets at least one.
const TASKS_PER_WORKER: usize = 4;

static LAST_ROUND: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The round in which this thread last did its part.
    static DONE: Cell<u64> = const { Cell::new(0) };
}

/// Has every worker thread look for memory that it no longer needs, about a millisecond each. What is found
/// leaves at the next round.
pub(super) async fn give_back() {
    let round = LAST_ROUND.fetch_add(1, Ordering::Relaxed) + 1;
    let workers = Handle::current().metrics().num_workers();
    let mut parts = JoinSet::new();
    for _ in 0..workers * TASKS_PER_WORKER {
        parts.spawn(async move {
            if DONE.replace(round) != round {
                (0..ALLOCATIONS)
                    .for_each(|_| drop(black_box(Vec::<u8>::with_capacity(ALLOCATION))));
            }
        });
    }
    while parts.join_next().await.is_some() {}
}

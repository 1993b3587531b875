//! Releases memory to the system after a load peak.
//!
//! Memory allocated on one thread and freed on another stays with the first thread until that has made many
//! allocations outside the allocator's fast path. An idle server makes none, so this module makes some.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// mimalloc looks for free pages after 10,000 allocations outside its fast path.
const ALLOCATIONS: usize = 12_000;

/// The size of each allocation. Up to 1 KiB would take the fast path.
const ALLOCATION_BYTES: usize = 4 * 1024;

/// Tasks per worker thread, so that each thread runs at least one.
const TASKS_PER_WORKER: usize = 4;

static LAST_ROUND: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The round in which this thread last did its part.
    static LAST_DONE: Cell<u64> = const { Cell::new(0) };
}

/// Makes every worker thread look for unused memory, which takes about a millisecond each. The memory is
/// released in the next round.
pub(super) async fn release_unused() {
    let round = LAST_ROUND.fetch_add(1, Ordering::Relaxed) + 1;
    let workers = Handle::current().metrics().num_workers();
    let mut parts = JoinSet::new();
    for _ in 0..workers * TASKS_PER_WORKER {
        parts.spawn(async move {
            if LAST_DONE.replace(round) != round {
                (0..ALLOCATIONS)
                    .for_each(|_| drop(black_box(Vec::<u8>::with_capacity(ALLOCATION_BYTES))));
            }
        });
    }
    while parts.join_next().await.is_some() {}
}

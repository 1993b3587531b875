//! Runs CPU-bound work on large values without blocking the other tasks of the runtime.
//!
//! Parsing, sanitizing or rendering 25 MB takes a large part of a second. On a runtime thread, it would
//! delay everything else, even `/health`.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::{block_in_place, yield_now};

/// Work on more bytes than this counts as large.
const LARGE_BYTES: usize = 256 * 1024;

/// The assumed size of a value in addition to its text.
const BYTES_PER_VALUE: usize = 64;

/// Limits concurrent large work, so that one core stays free for everything else.
static LARGE_WORK: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(max_concurrent()));

fn max_concurrent() -> usize {
    let cores = available_parallelism().map_or(1, usize::from);
    cores.saturating_sub(1).max(1)
}

tokio::task_local! {
    /// The permit of a future in [`run_large_parts`] that is about to do large work.
    static PERMIT: RefCell<Option<SemaphorePermit<'static>>>;
}

/// Returns whether work on a text of this many bytes is large.
pub fn is_large_text(bytes: usize) -> bool {
    bytes > LARGE_BYTES
}

/// Returns whether work on a value is large. Stops counting once it is.
pub fn is_large_value(value: &Value) -> bool {
    let mut remaining = Some(LARGE_BYTES);
    subtract_size(value, &mut remaining);
    remaining.is_none()
}

/// Subtracts the size of a value from `remaining`, which becomes `None` on underflow.
fn subtract_size(value: &Value, remaining: &mut Option<usize>) {
    let text = match value {
        Value::String(text) => text.len(),
        _ => 0,
    };
    *remaining = remaining.and_then(|bytes| bytes.checked_sub(text + BYTES_PER_VALUE));
    match value {
        Value::Array(items) => {
            for item in items {
                if remaining.is_none() {
                    return;
                }
                subtract_size(item, remaining);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                *remaining = remaining.and_then(|bytes| bytes.checked_sub(name.len()));
                if remaining.is_none() {
                    return;
                }
                subtract_size(field, remaining);
            }
        }
        _ => {}
    }
}

/// Runs `work`. Large work first acquires a permit and then blocks the thread, whose other tasks move to
/// another thread. In a single-threaded runtime it runs in place.
pub async fn run<T>(is_large: bool, work: impl FnOnce() -> T) -> T {
    if !is_large {
        return work();
    }
    let _permit = LARGE_WORK.acquire().await;
    block(work)
}

/// Runs `work` on this thread and moves its other tasks to another thread, if there is one.
fn block<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    if flavor.is_ok_and(|flavor| flavor == RuntimeFlavor::MultiThread) {
        block_in_place(work)
    } else {
        work()
    }
}

/// Runs a future whose large work cannot be wrapped in [`run`], because a generated client decodes the
/// response. Everything after `next_is_large` runs as large work until the future ends.
pub async fn run_large_parts<F: Future>(work: F) -> F::Output {
    let polling = async {
        let mut work = pin!(work);
        poll_fn(|context| {
            let is_large = PERMIT.try_with(|permit| permit.borrow().is_some());
            if is_large.unwrap_or_default() {
                block(|| work.as_mut().poll(context))
            } else {
                work.as_mut().poll(context)
            }
        })
        .await
    };
    PERMIT.scope(RefCell::default(), polling).await
}

/// Acquires a permit if large work follows in a future inside [`run_large_parts`].
pub(crate) async fn next_is_large(is_large: bool) {
    if !is_large || PERMIT.try_with(|_| ()).is_err() {
        return;
    }
    let permit = LARGE_WORK.acquire().await.ok();
    let _ = PERMIT.try_with(|current| current.replace(permit));
    // Only the next poll may block.
    yield_now().await;
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    #[test]
    fn large_values_have_long_texts_or_many_items() {
        for (value, expected) in [
            (json!(null), false),
            (json!({"a": ["b", 1, null]}), false),
            (json!("x".repeat(200_000)), false),
            (json!("x".repeat(300_000)), true),
            (
                json!({"a": ["x".repeat(150_000), "x".repeat(150_000)]}),
                true,
            ),
            (json!({"x".repeat(300_000): 1}), true),
            (json!(vec![1; 3_000]), false),
            (json!(vec![1; 5_000]), true),
        ] {
            assert_eq!(is_large_value(&value), expected);
        }
    }

    #[tokio::test]
    async fn runs_in_place_in_a_single_threaded_runtime() {
        assert_eq!(run(true, || 1).await, 1);
        assert_eq!(run(false, || 2).await, 2);
    }

    #[tokio::test]
    async fn releases_the_permit_when_the_future_ends() {
        for is_large in [false, true] {
            let work = run_large_parts(async {
                next_is_large(is_large).await;
                PERMIT.with(|permit| permit.borrow().is_some())
            });
            assert_eq!(work.await, is_large);
        }
        next_is_large(true).await;
        assert!(PERMIT.try_with(|_| ()).is_err());
        // Other tests of the process may hold permits for a while.
        let all = LARGE_WORK.acquire_many(max_concurrent().try_into().unwrap());
        let all = tokio::time::timeout(Duration::from_secs(60), all).await;
        assert!(all.is_ok(), "a permit was not released");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn large_work_does_not_block_other_tasks() {
        static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
        const WORK: Duration = Duration::from_secs(2);
        let work = || {
            run(true, || {
                let at_once = AT_ONCE.fetch_add(1, Ordering::SeqCst) + 1;
                std::thread::sleep(WORK);
                AT_ONCE.fetch_sub(1, Ordering::SeqCst);
                at_once
            })
        };
        let large: Vec<_> = (0..3).map(|_| tokio::spawn(work())).collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let start = Instant::now();
        for _ in 0..10 {
            tokio::spawn(tokio::task::yield_now()).await.unwrap();
        }
        assert!(start.elapsed() < WORK / 2, "{:?}", start.elapsed());
        for work in large {
            assert!(work.await.unwrap() <= max_concurrent());
        }
    }
}

//! Runs work on large values without holding up the other tasks of the runtime.
//!
//! Parsing, cleaning or rendering 25 MB takes a good part of a second. On a thread of the runtime nothing
//! else would be served meanwhile, not even `/health`.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::{block_in_place, yield_now};

/// Work on more bytes than this is large.
const LARGE_BYTES: usize = 256 * 1024;

/// What a value counts beside its text.
const BYTES_PER_VALUE: usize = 64;

/// How much large work runs at once: one core is left to everything else.
static WORKERS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(1, usize::from);
    Semaphore::new(cores.saturating_sub(1).max(1))
});

tokio::task_local! {
    /// The turn of a future in [`run_large_parts`] that is about to do large work.
    static TURN: RefCell<Option<SemaphorePermit<'static>>>;
}

/// Returns whether work on a text of this many bytes is large.
pub fn is_large_text(bytes: usize) -> bool {
    bytes > LARGE_BYTES
}

/// Returns whether work on a value is large. It looks at no more of the value than that takes.
pub fn is_large_value(value: &Value) -> bool {
    let mut room = Some(LARGE_BYTES);
    count(value, &mut room);
    room.is_none()
}

/// Subtracts the size of a value from `room`, which is `None` when there is not enough.
fn count(value: &Value, room: &mut Option<usize>) {
    let text = match value {
        Value::String(text) => text.len(),
        _ => 0,
    };
    *room = room.and_then(|room| room.checked_sub(text + BYTES_PER_VALUE));
    match value {
        Value::Array(items) => {
            for item in items {
                if room.is_none() {
                    return;
                }
                count(item, room);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                *room = room.and_then(|room| room.checked_sub(name.len()));
                if room.is_none() {
                    return;
                }
                count(field, room);
            }
        }
        _ => {}
    }
}

/// Runs `work`. Large work waits for its turn, and the other tasks of this thread move to another one; in a
/// runtime with a single thread there is none, and nobody else to serve.
pub async fn run<T>(is_large: bool, work: impl FnOnce() -> T) -> T {
    if !is_large {
        return work();
    }
    let _turn = WORKERS.acquire().await;
    block(work)
}

/// Runs `work` on this thread, whose other tasks move to another one if there is one.
fn block<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    if flavor.is_ok_and(|flavor| flavor == RuntimeFlavor::MultiThread) {
        block_in_place(work)
    } else {
        work()
    }
}

/// Runs a future that contains large work in code that is not ours: a generated client decodes a response
/// itself. What the future does after `next_is_large` runs as [`run`] does it, until the future ends.
pub async fn run_large_parts<F: Future>(work: F) -> F::Output {
    let polled = async {
        let mut work = pin!(work);
        poll_fn(|context| {
            let is_large = TURN.try_with(|turn| turn.borrow().is_some());
            if is_large.unwrap_or_default() {
                block(|| work.as_mut().poll(context))
            } else {
                work.as_mut().poll(context)
            }
        })
        .await
    };
    TURN.scope(RefCell::default(), polled).await
}

/// Waits for a turn if what follows is large work of a future in [`run_large_parts`].
pub(crate) async fn next_is_large(is_large: bool) {
    if !is_large || TURN.try_with(|_| ()).is_err() {
        return;
    }
    let turn = WORKERS.acquire().await.ok();
    let _ = TURN.try_with(|own| own.replace(turn));
    // The next poll is the one that may block.
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
    fn values_are_large_by_their_texts_or_their_number() {
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
    async fn a_runtime_with_one_thread_works_by_itself() {
        assert_eq!(run(true, || 1).await, 1);
        assert_eq!(run(false, || 2).await, 2);
    }

    #[tokio::test]
    async fn a_turn_ends_with_its_future() {
        let free = WORKERS.available_permits();
        for is_large in [false, true] {
            let work = run_large_parts(async {
                next_is_large(is_large).await;
                TURN.with(|turn| turn.borrow().is_some())
            });
            assert_eq!(work.await, is_large);
        }
        next_is_large(true).await;
        assert!(WORKERS.available_permits() <= free);
        assert!(TURN.try_with(|_| ()).is_err());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn large_work_leaves_the_runtime_to_others() {
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
        let began = Instant::now();
        for _ in 0..10 {
            tokio::spawn(tokio::task::yield_now()).await.unwrap();
        }
        assert!(began.elapsed() < WORK / 2, "{:?}", began.elapsed());
        let cores = available_parallelism().map_or(1, usize::from);
        for work in large {
            assert!(work.await.unwrap() <= cores.saturating_sub(1).max(1));
        }
    }
}

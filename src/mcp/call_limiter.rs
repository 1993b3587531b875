//! Runs calls with limited concurrency, cancellation and panic isolation.

use std::{future::Future, panic::AssertUnwindSafe};

use futures_util::FutureExt;
use rmcp::model::ErrorData;
use tokio::sync::Semaphore;

/// The default limit of concurrent calls; further ones wait.
const MAX_CONCURRENT_CALLS: usize = 256;

/// Limits the number of concurrent calls.
pub(super) struct CallLimiter {
    permits: Semaphore,
}

impl Default for CallLimiter {
    fn default() -> Self {
        Self::new(MAX_CONCURRENT_CALLS)
    }
}

impl CallLimiter {
    /// Creates a limiter for this many concurrent calls.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            permits: Semaphore::new(limit),
        }
    }

    /// Runs a call to its end, or drops it when `stopped` completes.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
        stopped: impl Future<Output = ()>,
    ) -> Result<T, ErrorData> {
        tokio::select! {
            biased;
            // A client that cancelled gets no response; this error is for a shutdown of the server.
            () = stopped => Err(internal("The call was stopped because the server is shutting down")),
            outcome = self.run_with_permit(call) => outcome,
        }
    }

    async fn run_with_permit<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let _permit = self.permits.acquire().await.map_err(|_| crashed())?;
        // A call that panics is dropped, and the locks that it shares with others tolerate poisoning.
        let outcome = AssertUnwindSafe(call).catch_unwind().await;
        outcome.map_err(|_| crashed())
    }
}

fn crashed() -> ErrorData {
    internal("Internal error: the call crashed; please report this")
}

fn internal(text: &'static str) -> ErrorData {
    ErrorData::internal_error(text, None)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::{
        future::pending,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use tokio::{task::JoinSet, time::sleep};

    use super::*;

    /// Counts its live instances.
    struct Alive(Arc<AtomicUsize>);

    impl Alive {
        fn new(count: &Arc<AtomicUsize>) -> Self {
            count.fetch_add(1, Ordering::SeqCst);
            Self(Arc::clone(count))
        }
    }

    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn drops_a_stopped_call_at_once() {
        let count = Arc::new(AtomicUsize::new(0));
        let alive = Alive::new(&count);
        let call = async move {
            let _alive = alive;
            pending().await
        };
        let stop = sleep(Duration::from_millis(5));
        let error = CallLimiter::new(1).run::<()>(call, stop).await.unwrap_err();
        assert_eq!(error.code.0, -32603);
        tokio::task::yield_now().await;
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn turns_a_panic_into_an_internal_error() {
        let limiter = CallLimiter::new(1);
        let call = async { panic!("a planned panic") };
        let error = limiter.run::<()>(call, pending()).await.unwrap_err();
        assert_eq!(error.code.0, -32603);
        let next = limiter.run(async { "fine" }, pending()).await;
        assert_eq!(next.unwrap(), "fine");
    }

    #[tokio::test(start_paused = true)]
    async fn queues_calls_beyond_the_limit() {
        let limiter = Arc::new(CallLimiter::new(3));
        let count = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let mut set = JoinSet::new();
        for _ in 0..10 {
            let (limiter, count, most) = (limiter.clone(), count.clone(), most.clone());
            set.spawn(async move {
                let call = async move {
                    let _alive = Alive::new(&count);
                    most.fetch_max(count.load(Ordering::SeqCst), Ordering::SeqCst);
                    sleep(Duration::from_secs(1)).await;
                    "done"
                };
                limiter.run(call, pending()).await.unwrap()
            });
        }
        assert_eq!(set.join_all().await, ["done"; 10]);
        assert_eq!(most.load(Ordering::SeqCst), 3);
    }
}

//! Runs calls: not too many at once, stoppable, and none can take the server down.

use std::{future::Future, panic::AssertUnwindSafe};

use futures_util::FutureExt;
use rmcp::model::ErrorData;
use tokio::sync::Semaphore;

/// How many calls run at once; further ones wait for their turn.
const CALLS_AT_ONCE: usize = 256;

/// The places for calls.
pub(super) struct Calls {
    places: Semaphore,
}

impl Default for Calls {
    fn default() -> Self {
        Self::new(CALLS_AT_ONCE)
    }
}

impl Calls {
    /// Makes this many places.
    pub(super) fn new(places: usize) -> Self {
        Self {
            places: Semaphore::new(places),
        }
    }

    /// Runs a call to its end, or until `stopped`; a stopped call is dropped, not left to finish.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
        stopped: impl Future<Output = ()>,
    ) -> Result<T, ErrorData> {
        tokio::select! {
            biased;
            // A client that cancelled gets no answer; this one is for the end of the server.
            () = stopped => Err(internal("The call was stopped because the server is ending")),
            outcome = self.run_in_place(call) => outcome,
        }
    }

    async fn run_in_place<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let _place = self.places.acquire().await.map_err(|_| crashed())?;
        // A call that panicked is dropped, and what it shares with others are locks that outlive panics.
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

    /// Counts what is alive.
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
    async fn a_stopped_call_is_dropped_at_once() {
        let count = Arc::new(AtomicUsize::new(0));
        let alive = Alive::new(&count);
        let call = async move {
            let _alive = alive;
            pending().await
        };
        let stop = sleep(Duration::from_millis(5));
        let error = Calls::new(1).run::<()>(call, stop).await.unwrap_err();
        assert_eq!(error.code.0, -32603);
        tokio::task::yield_now().await;
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn a_panic_is_an_internal_error() {
        let calls = Calls::new(1);
        let call = async { panic!("a planned panic") };
        let error = calls.run::<()>(call, pending()).await.unwrap_err();
        assert_eq!(error.code.0, -32603);
        let next = calls.run(async { "fine" }, pending()).await;
        assert_eq!(next.unwrap(), "fine");
    }

    #[tokio::test(start_paused = true)]
    async fn calls_beyond_the_limit_wait() {
        let calls = Arc::new(Calls::new(3));
        let count = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let mut set = JoinSet::new();
        for _ in 0..10 {
            let (calls, count, most) = (calls.clone(), count.clone(), most.clone());
            set.spawn(async move {
                let call = async move {
                    let _alive = Alive::new(&count);
                    most.fetch_max(count.load(Ordering::SeqCst), Ordering::SeqCst);
                    sleep(Duration::from_secs(1)).await;
                    "done"
                };
                calls.run(call, pending()).await.unwrap()
            });
        }
        assert_eq!(set.join_all().await, ["done"; 10]);
        assert_eq!(most.load(Ordering::SeqCst), 3);
    }
}

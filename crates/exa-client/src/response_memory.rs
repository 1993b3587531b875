//! Limits the memory of concurrent large responses.
//!
//! A response needs memory twice: for its bytes while they are read, and for the parsed values, which can be
//! ten times as large, until its call is done. Both are counted separately, and a large response waits for a
//! reservation of each. While it waits for the first, TCP backpressure stops the server.
//!
//! Calls cannot deadlock. A call that waits for value memory holds none: before it reads a further response,
//! it returns its reservation and requests both amounts at once. A call that waits for byte memory holds
//! neither. Each reservation covers the maximum that a response may need.

use std::{cell::RefCell, future::Future, sync::Arc};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Smaller responses are not counted; most are.
pub(super) const SMALL: usize = 1024 * 1024;

/// The unit of reservations, in bytes.
const UNIT: usize = 1024;

/// The assumed memory of a field or list item in addition to its text.
const BYTES_PER_VALUE: usize = 192;

/// The memory limit for the values of one call.
const MAX_VALUES_SIZE: usize = 256 * 1024 * 1024;

/// The values of a call exceed its memory limit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The response of the Exa API would take about {} MB of memory; the limit is {} MB per call. Request fewer \
     results (`numResults`, `limit`) or shorter contents (`maxCharacters`).",
    .0 / 1_000_000, MAX_VALUES_SIZE / 1_000_000
)]
pub(super) struct ValuesTooLarge(usize);

tokio::task_local! {
    static HELD: RefCell<HeldValues>;
}

/// The reservation for the values that a call has read so far.
#[derive(Default)]
struct HeldValues {
    bytes: usize,
    permit: Option<OwnedSemaphorePermit>,
}

/// Counts the values of all responses that `work` reads against the memory limit, until `work` ends.
///
/// Not an `async fn`, whose future would have room for `work` twice.
pub fn hold_response_memory<F: Future>(work: F) -> impl Future<Output = F::Output> {
    HELD.scope(RefCell::default(), work)
}

/// Releases the reservation of the current call, which is about to wait for something else.
pub fn release_response_memory() {
    let _ = HELD.try_with(|held| held.take());
}

/// Releases the reservation temporarily; the next response that is read requests it again.
pub(super) fn lend_response_memory() {
    let _ = HELD.try_with(|held| held.borrow_mut().permit = None);
}

/// The memory budget of all responses.
pub(super) struct ResponseMemory {
    bytes: Arc<Semaphore>,
    values: Arc<Semaphore>,
    units: u32,
}

/// A reservation for the bytes of a response.
pub(super) struct ByteReservation {
    /// `None` only if the semaphore is closed, which never happens.
    permit: Option<OwnedSemaphorePermit>,
}

impl ResponseMemory {
    /// Creates a budget of this many bytes for reading, and as many for values.
    pub(super) fn new(bytes: usize) -> Self {
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX).max(1);
        let all = || Arc::new(Semaphore::new(usize::try_from(units).unwrap_or(usize::MAX)));
        Self {
            bytes: all(),
            values: all(),
            units,
        }
    }

    /// Waits until this many bytes may be read. A larger amount than the budget reserves all of it.
    pub(super) async fn reserve_bytes(&self, bytes: usize) -> ByteReservation {
        let units = self.units_of(bytes);
        if let Ok(permit) = Arc::clone(&self.bytes).try_acquire_many_owned(units) {
            return ByteReservation {
                permit: Some(permit),
            };
        }
        // Calls that hold bytes may be waiting for the values of this call.
        lend_response_memory();
        let permit = Arc::clone(&self.bytes).acquire_many_owned(units).await;
        ByteReservation {
            permit: permit.ok(),
        }
    }

    /// Waits until values of this [size](values_size) may be parsed. They count until the call is done;
    /// outside of [`hold_response_memory`], until the reservation is dropped.
    ///
    /// # Errors
    /// The values of this call would exceed its limit; its existing reservation stays.
    pub(super) async fn reserve_values(
        &self,
        bytes: usize,
    ) -> Result<Option<ValueReservation>, ValuesTooLarge> {
        if bytes <= SMALL {
            return Ok(None);
        }
        let held = HELD.try_with(|held| held.borrow().bytes);
        let bytes = held.unwrap_or_default().saturating_add(bytes);
        if bytes > MAX_VALUES_SIZE {
            return Err(ValuesTooLarge(bytes));
        }
        let held = HELD.try_with(|held| held.take());
        // Released before more is requested, to avoid deadlocks.
        drop(held);
        let permit = Arc::clone(&self.values).acquire_many_owned(self.units_of(bytes));
        Ok(Some(ValueReservation {
            permit: permit.await.ok(),
            bytes,
        }))
    }

    fn units_of(&self, bytes: usize) -> u32 {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        units.min(self.units)
    }
}

impl ByteReservation {
    /// Releases what the response did not need.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        if let Some(permit) = &mut self.permit {
            let surplus = permit.num_permits().saturating_sub(bytes.div_ceil(UNIT));
            drop(permit.split(surplus));
        }
    }
}

/// A reservation for the values of a response.
pub(super) struct ValueReservation {
    permit: Option<OwnedSemaphorePermit>,
    /// Including the values that the call has read before.
    bytes: usize,
}

/// Moves the reservation to the call, if there is one.
impl Drop for ValueReservation {
    fn drop(&mut self) {
        let (bytes, permit) = (self.bytes, self.permit.take());
        let _ = HELD.try_with(|held| {
            if let Ok(mut held) = held.try_borrow_mut() {
                *held = HeldValues { bytes, permit };
            }
        });
    }
}

/// Estimates the memory of the values of a JSON text.
pub(super) fn values_size(json: &[u8]) -> usize {
    // A value takes at least two bytes of text, so this text is small.
    if json.len() / 2 * BYTES_PER_VALUE <= SMALL {
        return json.len();
    }
    let mut values = 0_usize;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b',' | b':' | b'{' | b'[' => values += 1,
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    json.len()
        .saturating_add(values.saturating_mul(BYTES_PER_VALUE))
}

/// Advances past the end of a string.
fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::time::timeout;

    use super::*;

    const MEBI: usize = 1024 * 1024;

    fn free(semaphore: &Semaphore) -> usize {
        semaphore.available_permits() * UNIT
    }

    /// A text whose value takes this many mebibytes.
    fn text(mebibytes: usize) -> Vec<u8> {
        let mut text = vec![b'x'; mebibytes * MEBI];
        *text.first_mut().unwrap() = b'"';
        *text.last_mut().unwrap() = b'"';
        text
    }

    #[tokio::test]
    async fn releases_bytes_after_they_are_read() {
        let memory = ResponseMemory::new(8 * MEBI);
        let mut first = memory.reserve_bytes(6 * MEBI).await;
        assert!(memory.reserve_bytes(3 * MEBI).now_or_never().is_none());
        first.shrink_to(5 * MEBI);
        let second = memory.reserve_bytes(3 * MEBI).now_or_never();
        assert!(second.is_some());
        drop((first, second));
        assert_eq!(free(&memory.bytes), 8 * MEBI);
    }

    #[tokio::test]
    async fn an_oversized_request_reserves_the_whole_budget() {
        let memory = ResponseMemory::new(8 * MEBI);
        let read = memory.reserve_bytes(usize::MAX).await;
        let parsed = memory.reserve_values(values_size(&text(9))).await.unwrap();
        assert_eq!((free(&memory.bytes), free(&memory.values)), (0, 0));
        drop((read, parsed));
        assert_eq!(free(&memory.bytes), 8 * MEBI);
        assert_eq!(free(&memory.values), 8 * MEBI);
    }

    #[tokio::test]
    async fn limits_the_values_of_one_call() {
        let memory = ResponseMemory::new(8 * MEBI);
        let excess = memory.reserve_values(MAX_VALUES_SIZE + 1).await;
        assert!(excess.is_err_and(|excess| excess.to_string().contains("268 MB")));
        hold_response_memory(async {
            for _ in 0..2 {
                drop(memory.reserve_values(MAX_VALUES_SIZE / 2).await.unwrap());
            }
            assert!(memory.reserve_values(2 * MEBI).await.is_err());
            // The existing reservation stays, and can be released.
            assert_eq!(free(&memory.values), 0);
            release_response_memory();
            assert!(memory.reserve_values(2 * MEBI).await.is_ok());
        })
        .await;
        assert_eq!(free(&memory.values), 8 * MEBI);
    }

    #[test]
    fn many_values_are_larger_than_their_text() {
        let objects = format!("[{}]", vec![r#"{"a":1}"#; 100_000].join(","));
        assert!(values_size(objects.as_bytes()) > 40 * MEBI);
        // Structural characters inside a string do not count.
        let prose = format!(r#"["{}"]"#, r#"a,{[:\"b "#.repeat(200_000));
        assert_eq!(values_size(prose.as_bytes()), prose.len() + BYTES_PER_VALUE);
        assert!(values_size(&text(2)) < 2 * MEBI + 10);
        assert_eq!(values_size(b"{}"), 2);
    }

    #[tokio::test]
    async fn a_call_holds_its_reservation_until_it_is_done() {
        let memory = ResponseMemory::new(8 * MEBI);
        hold_response_memory(async {
            for read in 1..=3 {
                drop(memory.reserve_values(values_size(&text(2))).await.unwrap());
                assert_eq!(free(&memory.values), (8 - 2 * read) * MEBI);
            }
            lend_response_memory();
            assert_eq!(free(&memory.values), 8 * MEBI);
            drop(memory.reserve_values(values_size(&text(2))).await.unwrap());
            assert_eq!(free(&memory.values), 0);
            release_response_memory();
            assert_eq!(free(&memory.values), 8 * MEBI);
            drop(memory.reserve_values(values_size(&text(2))).await.unwrap());
        })
        .await;
        assert_eq!(free(&memory.values), 8 * MEBI);
    }

    #[tokio::test]
    async fn without_a_call_a_reservation_ends_when_dropped() {
        let memory = ResponseMemory::new(8 * MEBI);
        let reservation = memory.reserve_values(values_size(&text(2))).await.unwrap();
        assert_eq!(free(&memory.values), 6 * MEBI);
        drop(reservation);
        assert_eq!(free(&memory.values), 8 * MEBI);
    }

    #[tokio::test]
    async fn calls_with_many_large_responses_do_not_deadlock() {
        let memory = Arc::new(ResponseMemory::new(8 * MEBI));
        let body = Arc::new(text(3));
        let call = || {
            let (memory, body) = (Arc::clone(&memory), Arc::clone(&body));
            hold_response_memory(async move {
                for _ in 0..10 {
                    let mut read = memory.reserve_bytes(5 * MEBI).await;
                    tokio::task::yield_now().await;
                    read.shrink_to(3 * MEBI);
                    let parsed = memory.reserve_values(values_size(&body)).await.unwrap();
                    tokio::task::yield_now().await;
                    drop((read, parsed));
                }
            })
        };
        let mut calls = tokio::task::JoinSet::new();
        (0..20).for_each(|_| drop(calls.spawn(call())));
        let all = timeout(Duration::from_secs(60), calls.join_all()).await;
        assert!(all.is_ok(), "the calls deadlock");
        assert_eq!(free(&memory.bytes), 8 * MEBI);
        assert_eq!(free(&memory.values), 8 * MEBI);
    }

    #[tokio::test]
    async fn a_cancelled_call_releases_its_reservation() {
        let memory = ResponseMemory::new(8 * MEBI);
        let call = hold_response_memory(async {
            let read = memory.reserve_bytes(6 * MEBI).await;
            drop(memory.reserve_values(values_size(&text(6))).await.unwrap());
            std::future::pending::<()>().await;
            drop(read);
        });
        let ended = timeout(Duration::from_millis(50), call).await;
        assert!(ended.is_err());
        assert_eq!(free(&memory.bytes), 8 * MEBI);
        assert_eq!(free(&memory.values), 8 * MEBI);
    }
}

//! Bounds the memory that large responses take at once.
//!
//! A response needs memory twice: for its bytes while they are read, and for the values they hold, which
//! can be ten times as large, until the call that asked for it is done. Both are counted, and a large
//! response waits for its share of each. While it waits for the first, its server waits as well.
//!
//! Calls cannot wait for each other in a circle. Whoever waits for the values of a response holds none: a
//! call that reads a further response gives its share back and asks for both at once. Whoever waits for the
//! bytes of one holds neither. What a response may need at most is reserved in one go.

use std::{cell::RefCell, future::Future, sync::Arc};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What needs no more than this is not counted; most responses are smaller.
pub(super) const SMALL: usize = 1024 * 1024;

/// The unit in which shares are counted.
const UNIT: usize = 1024;

/// What a field or an entry takes in memory beside its text.
const PER_VALUE: usize = 192;

/// What the values of one call may take.
const MAX_VALUES_SIZE: usize = 256 * 1024 * 1024;

/// The responses of a call have more values than fit into the memory for one call.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The response of the Exa API has so many values that they would take about {} MB of memory; one call \
     may take {} MB. Fewer results (`numResults`, `limit`) or shorter contents (`maxCharacters`) take less.",
    .0 / 1_000_000, MAX_VALUES_SIZE / 1_000_000
)]
pub(super) struct TooManyValues(usize);

tokio::task_local! {
    static HELD: RefCell<Held>;
}

/// The values that a call has read so far.
#[derive(Default)]
struct Held {
    bytes: usize,
    permit: Option<OwnedSemaphorePermit>,
}

/// Counts the values of all responses that `work` reads against the memory limit until `work` ends.
pub async fn hold_response_memory<F: Future>(work: F) -> F::Output {
    HELD.scope(RefCell::default(), work).await
}

/// Returns the share of what the current call has read so far: it is about to wait for something else.
pub fn release_response_memory() {
    let _ = HELD.try_with(|held| held.take());
}

/// Gives the share back for a while; the next response that is read asks for it again.
pub(super) fn lend_response_memory() {
    let _ = HELD.try_with(|held| held.borrow_mut().permit = None);
}

/// The memory that responses share.
pub(super) struct ResponseMemory {
    bytes: Arc<Semaphore>,
    values: Arc<Semaphore>,
    units: u32,
}

/// The share of the bytes of a response that is being read.
pub(super) struct ReadShare {
    /// `None` only after the end of everything.
    permit: Option<OwnedSemaphorePermit>,
}

impl ResponseMemory {
    /// Memory for this many bytes, and for values that take as much.
    pub(super) fn new(bytes: usize) -> Self {
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX).max(1);
        let all = || Arc::new(Semaphore::new(usize::try_from(units).unwrap_or(usize::MAX)));
        Self {
            bytes: all(),
            values: all(),
            units,
        }
    }

    /// Backoff until this many bytes may be read. More than there are in all get all.
    pub(super) async fn share_to_read(&self, bytes: usize) -> ReadShare {
        let units = self.units_of(bytes);
        if let Ok(permit) = Arc::clone(&self.bytes).try_acquire_many_owned(units) {
            return ReadShare {
                permit: Some(permit),
            };
        }
        // Those who have read theirs may wait for the share of this call.
        lend_response_memory();
        let permit = Arc::clone(&self.bytes).acquire_many_owned(units).await;
        ReadShare {
            permit: permit.ok(),
        }
    }

    /// Waits until values of this [size](values_size) may be made. They count until the call that reads
    /// them is done; outside of [`hold_response_memory`], for as long as the share is held.
    ///
    /// # Errors
    /// The values of this call would be too large; the share of those it has read so far stays.
    pub(super) async fn share_to_parse(
        &self,
        bytes: usize,
    ) -> Result<Option<ParseShare>, TooManyValues> {
        if bytes <= SMALL {
            return Ok(None);
        }
        let held = HELD.try_with(|held| held.borrow().bytes);
        let bytes = held.unwrap_or_default().saturating_add(bytes);
        if bytes > MAX_VALUES_SIZE {
            return Err(TooManyValues(bytes));
        }
        let held = HELD.try_with(|held| held.take());
        // Given back before more is asked for.
        drop(held);
        let permit = Arc::clone(&self.values).acquire_many_owned(self.units_of(bytes));
        Ok(Some(ParseShare {
            permit: permit.await.ok(),
            bytes,
        }))
    }

    fn units_of(&self, bytes: usize) -> u32 {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        units.min(self.units)
    }
}

impl ReadShare {
    /// Gives back what the response did not need.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        if let Some(permit) = &mut self.permit {
            let surplus = permit.num_permits().saturating_sub(bytes.div_ceil(UNIT));
            drop(permit.split(surplus));
        }
    }
}

/// The share of the values of a response.
pub(super) struct ParseShare {
    permit: Option<OwnedSemaphorePermit>,
    /// With those that the call has read before.
    bytes: usize,
}

/// The share stays with the call, if there is one.
impl Drop for ParseShare {
    fn drop(&mut self) {
        let (bytes, permit) = (self.bytes, self.permit.take());
        let _ = HELD.try_with(|held| {
            if let Ok(mut held) = held.try_borrow_mut() {
                *held = Held { bytes, permit };
            }
        });
    }
}

/// What the values of a JSON text take in memory, nearly.
pub(super) fn values_size(json: &[u8]) -> usize {
    // The smallest text with so many values has two bytes for each.
    if json.len() / 2 * PER_VALUE <= SMALL {
        return json.len();
    }
    let mut values = 0_usize;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b',' | b':' | b'{' | b'[' => values += 1,
            b'"' => skip_text(&mut bytes),
            _ => {}
        }
    }
    json.len().saturating_add(values.saturating_mul(PER_VALUE))
}

/// Goes on after the end of a text.
fn skip_text(bytes: &mut std::slice::Iter<'_, u8>) {
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
    async fn bytes_are_free_again_after_they_are_read() {
        let memory = ResponseMemory::new(8 * MEBI);
        let mut first = memory.share_to_read(6 * MEBI).await;
        assert!(memory.share_to_read(3 * MEBI).now_or_never().is_none());
        first.shrink_to(5 * MEBI);
        let second = memory.share_to_read(3 * MEBI).now_or_never();
        assert!(second.is_some());
        drop((first, second));
        assert_eq!(free(&memory.bytes), 8 * MEBI);
    }

    #[tokio::test]
    async fn what_is_larger_than_the_whole_gets_the_whole() {
        let memory = ResponseMemory::new(8 * MEBI);
        let read = memory.share_to_read(usize::MAX).await;
        let parsed = memory.share_to_parse(values_size(&text(9))).await.unwrap();
        assert_eq!((free(&memory.bytes), free(&memory.values)), (0, 0));
        drop((read, parsed));
        assert_eq!(free(&memory.bytes), 8 * MEBI);
        assert_eq!(free(&memory.values), 8 * MEBI);
    }

    #[tokio::test]
    async fn the_values_of_one_call_are_bounded() {
        let memory = ResponseMemory::new(8 * MEBI);
        let excess = memory.share_to_parse(MAX_VALUES_SIZE + 1).await;
        assert!(excess.is_err_and(|excess| excess.to_string().contains("268 MB")));
        hold_response_memory(async {
            for _ in 0..2 {
                drop(memory.share_to_parse(MAX_VALUES_SIZE / 2).await.unwrap());
            }
            assert!(memory.share_to_parse(2 * MEBI).await.is_err());
            // What it has read so far still counts, and can be given back.
            assert_eq!(free(&memory.values), 0);
            release_response_memory();
            assert!(memory.share_to_parse(2 * MEBI).await.is_ok());
        })
        .await;
        assert_eq!(free(&memory.values), 8 * MEBI);
    }

    #[test]
    fn many_values_are_larger_than_their_text() {
        let objects = format!("[{}]", vec![r#"{"a":1}"#; 100_000].join(","));
        assert!(values_size(objects.as_bytes()) > 40 * MEBI);
        // What looks like structure inside a text is none.
        let prose = format!(r#"["{}"]"#, r#"a,{[:\"b "#.repeat(200_000));
        assert_eq!(values_size(prose.as_bytes()), prose.len() + PER_VALUE);
        assert!(values_size(&text(2)) < 2 * MEBI + 10);
        assert_eq!(values_size(b"{}"), 2);
    }

    #[tokio::test]
    async fn a_call_keeps_its_share_until_it_is_done() {
        let memory = ResponseMemory::new(8 * MEBI);
        hold_response_memory(async {
            for read in 1..=3 {
                drop(memory.share_to_parse(values_size(&text(2))).await.unwrap());
                assert_eq!(free(&memory.values), (8 - 2 * read) * MEBI);
            }
            lend_response_memory();
            assert_eq!(free(&memory.values), 8 * MEBI);
            drop(memory.share_to_parse(values_size(&text(2))).await.unwrap());
            assert_eq!(free(&memory.values), 0);
            release_response_memory();
            assert_eq!(free(&memory.values), 8 * MEBI);
            drop(memory.share_to_parse(values_size(&text(2))).await.unwrap());
        })
        .await;
        assert_eq!(free(&memory.values), 8 * MEBI);
    }

    #[tokio::test]
    async fn without_a_call_a_share_ends_with_itself() {
        let memory = ResponseMemory::new(8 * MEBI);
        let share = memory.share_to_parse(values_size(&text(2))).await.unwrap();
        assert_eq!(free(&memory.values), 6 * MEBI);
        drop(share);
        assert_eq!(free(&memory.values), 8 * MEBI);
    }

    #[tokio::test]
    async fn calls_with_many_large_responses_do_not_wait_for_each_other() {
        let memory = Arc::new(ResponseMemory::new(8 * MEBI));
        let body = Arc::new(text(3));
        let call = || {
            let (memory, body) = (Arc::clone(&memory), Arc::clone(&body));
            hold_response_memory(async move {
                for _ in 0..10 {
                    let mut read = memory.share_to_read(5 * MEBI).await;
                    tokio::task::yield_now().await;
                    read.shrink_to(3 * MEBI);
                    let parsed = memory.share_to_parse(values_size(&body)).await.unwrap();
                    tokio::task::yield_now().await;
                    drop((read, parsed));
                }
            })
        };
        let mut calls = tokio::task::JoinSet::new();
        (0..20).for_each(|_| drop(calls.spawn(call())));
        let all = timeout(Duration::from_secs(60), calls.join_all()).await;
        assert!(all.is_ok(), "the calls wait for each other");
        assert_eq!(free(&memory.bytes), 8 * MEBI);
        assert_eq!(free(&memory.values), 8 * MEBI);
    }

    #[tokio::test]
    async fn a_call_that_is_given_up_frees_its_share() {
        let memory = ResponseMemory::new(8 * MEBI);
        let call = hold_response_memory(async {
            let read = memory.share_to_read(6 * MEBI).await;
            drop(memory.share_to_parse(values_size(&text(6))).await.unwrap());
            std::future::pending::<()>().await;
            drop(read);
        });
        let ended = timeout(Duration::from_millis(50), call).await;
        assert!(ended.is_err());
        assert_eq!(free(&memory.bytes), 8 * MEBI);
        assert_eq!(free(&memory.values), 8 * MEBI);
    }
}

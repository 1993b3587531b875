//! Answers that clients may come back for, because their connections may have been cut.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

/// How long an answer is kept.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// Bytes of all answers that are kept; the oldest make way.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The answers that are kept.
#[derive(Default)]
pub(super) struct KeptAnswers(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    answers: HashMap<Place, Answer>,
    /// The oldest first. An answer that was kept anew is there more than once.
    order: VecDeque<(Instant, Place)>,
    bytes: usize,
}

/// A session, and the number of a request in it.
type Place = (String, u64);

struct Answer {
    kept_at: Instant,
    events: Vec<Written>,
}

/// An event as it was sent.
pub(super) struct Written {
    /// Its number in its stream.
    pub(super) index: u64,
    pub(super) text: Bytes,
}

/// The id of an event, which says to which request of its session it belongs.
pub(super) struct EventId {
    pub(super) index: u64,
    pub(super) request: u64,
}

impl EventId {
    /// Reads `index/request`; events that belong to no request have no second part.
    pub(super) fn of_request(text: &str) -> Option<Self> {
        let (index, request) = text.split_once('/')?;
        Some(Self {
            index: index.parse().ok()?,
            request: request.parse().ok()?,
        })
    }
}

impl KeptAnswers {
    /// Keeps the events of a request that is answered.
    pub(super) fn keep(&self, session: &str, request: u64, events: Vec<Written>) {
        let kept_at = Instant::now();
        let place = (session.to_owned(), request);
        let mut kept = self.open();
        kept.forget(&place);
        kept.bytes += size(&events);
        kept.order.push_back((kept_at, place.clone()));
        kept.answers.insert(place, Answer { kept_at, events });
        kept.make_room(kept_at);
    }

    /// What followed an event, if the request that it belongs to is answered and the answer kept.
    pub(super) fn after(&self, session: &str, event: &str) -> Option<Bytes> {
        let id = EventId::of_request(event)?;
        let mut kept = self.open();
        kept.make_room(Instant::now());
        let answer = kept.answers.get(&(session.to_owned(), id.request))?;
        let later = answer.events.iter().filter(|event| event.index > id.index);
        let text: Vec<u8> = later.flat_map(|event| event.text.iter().copied()).collect();
        Some(text.into())
    }

    fn open(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn forget(&mut self, place: &Place) {
        if let Some(answer) = self.answers.remove(place) {
            self.bytes = self.bytes.saturating_sub(size(&answer.events));
        }
    }

    fn make_room(&mut self, now: Instant) {
        while let Some((kept_at, place)) = self.order.front()
            && (self.bytes > MOST_BYTES || now.duration_since(*kept_at) >= KEPT_FOR)
        {
            let is_latest = |answer: &Answer| answer.kept_at == *kept_at;
            let place = place.clone();
            if self.answers.get(&place).is_some_and(is_latest) {
                self.forget(&place);
            }
            self.order.pop_front();
        }
    }
}

fn size(events: &[Written]) -> usize {
    events.iter().map(|event| event.text.len()).sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn events(texts: &[&str]) -> Vec<Written> {
        let numbered = (0..).zip(texts);
        let written = numbered.map(|(index, text)| Written {
            index,
            text: Bytes::copy_from_slice(text.as_bytes()),
        });
        written.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_followed_an_event_is_there_for_a_minute() {
        let kept = KeptAnswers::default();
        kept.keep("s", 7, events(&["a", "b", "c"]));
        assert_eq!(kept.after("s", "0/7").unwrap(), "bc");
        assert_eq!(kept.after("s", "2/7").unwrap(), "");
        for unknown in ["0/8", "0", "", "x/7", "0/7/7"] {
            assert!(kept.after("s", unknown).is_none(), "{unknown}");
        }
        assert!(kept.after("other", "0/7").is_none());
        tokio::time::advance(KEPT_FOR / 2).await;
        kept.keep("s", 7, events(&["a", "b", "d"]));
        tokio::time::advance(KEPT_FOR / 2).await;
        assert_eq!(kept.after("s", "1/7").unwrap(), "d");
        tokio::time::advance(KEPT_FOR / 2).await;
        assert!(kept.after("s", "0/7").is_none());
        let kept = kept.open();
        assert_eq!((kept.bytes, kept.order.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_make_way() {
        let kept = KeptAnswers::default();
        let large = "x".repeat(MOST_BYTES / 3);
        for request in 0..5 {
            tokio::time::advance(Duration::from_millis(1)).await;
            kept.keep("s", request, events(&["", &large]));
        }
        assert!(kept.after("s", "0/1").is_none());
        assert!(kept.after("s", "0/2").is_some());
        assert!(kept.open().bytes <= MOST_BYTES);
    }
}

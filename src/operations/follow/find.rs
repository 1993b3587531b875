//! Finding the work of a start whose answer never came.
//!
//! Exa shows what there is, but not who started it. Work counts as the one that is looked for if it
//! was made since then and repeats what was sent. Work that was not found is missing only once the list
//! was read to its end, or past the moment of the start where it runs from new to old.

use std::collections::HashSet;
use std::time::Duration;

use chrono::DateTime;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::super::caller::thing;
use super::super::pages::{next_cursor, widen};
use super::super::{Caller, Refusal, find as operation, is_paged};
use super::judge::{Judgement, judge};
use super::{Following, passing};
use exa_mcp_model::{JobLookup, Operation};

/// Entries of a page, where the list lets us choose.
const PAGE: usize = 100;

/// How far the clock of Exa may be behind ours, in milliseconds.
const SKEW: u64 = 30_000;

/// The pause after a page that could not be had.
const PAUSE: Duration = Duration::from_secs(5);

/// How often a list is read from its beginning, because a later page was refused: its cursor may have
/// expired.
const MOST_READINGS: usize = 3;

/// Pages without any entry in a row, after which a list counts as endless.
const MOST_EMPTY_PAGES: usize = 20;

/// Work that may be the one that is looked for, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Work that repeats what was sent.
    pub same: Vec<Following>,
    /// Work that does not say what was sent.
    pub unclear: Vec<Following>,
}

/// Why nobody can tell whether there is such work.
#[derive(Debug)]
pub(crate) enum Undecided {
    /// Exa refuses to show the list.
    Refused {
        /// The operation that shows the list.
        list: &'static Operation,
        /// What it says.
        refusal: Refusal,
    },
    /// The list cannot be read to its end.
    NoEnd {
        /// The operation that shows the list.
        list: &'static Operation,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The time was over before the end of the list.
    TimeUp {
        /// The operation that shows the list.
        list: &'static Operation,
        /// Pages that were read.
        pages: usize,
    },
}

impl Following {
    /// Looks for what a call of `start` with these arguments has started since a moment, in milliseconds
    /// since 1970; `None` if Exa shows no list of it. Failures that may pass are waited out until the
    /// deadline.
    pub(crate) async fn find(
        caller: &Caller,
        start: &'static Operation,
        sent: &Map<String, Value>,
        since: u64,
        deadline: Instant,
    ) -> Option<Result<Found, Undecided>> {
        let marker = start.behavior.long_running.as_ref()?;
        let find = marker.find.as_ref()?;
        let list = operation(&find.list)?;
        let mut arguments = super::arguments(&find.arguments, sent, &Value::Null)?;
        if is_paged(list) {
            widen(list, &mut arguments, PAGE);
        }
        let since = since.saturating_sub(SKEW);
        let callers = match thing(list, &arguments) {
            // The key that knows the thing sees all of its list.
            Some(_) => vec![caller.clone()],
            // Each team sees its own work only. What one key does not list may be another's.
            None => caller.by_key(),
        };
        let reading = |caller| Reading {
            caller,
            list,
            find,
            arguments: &arguments,
            since,
            deadline,
        };
        let pick = |entry: &Value| {
            let judgement = judge(start, find, sent, entry);
            let wanted = judgement != Judgement::Other;
            let work = wanted.then(|| Self::started(marker, sent, entry)).flatten();
            work.map(|work| (judgement, work))
        };
        Some(
            read_all(callers.iter().map(reading), pick)
                .await
                .map(|judged| {
                    let mut found = Found::default();
                    for (judgement, work) in judged {
                        match judgement {
                            Judgement::Same => found.same.push(work),
                            _ => found.unclear.push(work),
                        }
                    }
                    found
                }),
        )
    }
}

/// What `pick` makes of the entries of several lists, the oldest first. Keys of the same team list the same work,
/// which counts once. If one list cannot be read, nobody can tell what there is.
async fn read_all(
    readings: impl Iterator<Item = Reading<'_>>,
    pick: impl Fn(&Value) -> Option<(Judgement, Following)>,
) -> Result<Vec<(Judgement, Following)>, Undecided> {
    let mut known = HashSet::new();
    let mut all = Vec::new();
    for reading in readings {
        let mut picked = reading.until_end(&pick).await?;
        picked.retain(|(_, (_, work))| known.insert(work.key()));
        all.append(&mut picked);
    }
    all.sort_by_key(|(time, _)| *time);
    Ok(all.into_iter().map(|(_, picked)| picked).collect())
}

/// A list that is read to its end.
struct Reading<'a> {
    caller: &'a Caller,
    list: &'static Operation,
    find: &'static JobLookup,
    arguments: &'a Map<String, Value>,
    since: u64,
    deadline: Instant,
}

/// Why a reading did not come to its end.
enum Broken {
    /// A later page was refused for good; a new reading may get further.
    Refused(Refusal),
    Undecided(Undecided),
}

impl Reading<'_> {
    /// What `pick` makes of the entries that were made since the moment, each with its time. Only what is
    /// picked is held: the list may be long.
    async fn until_end<T>(
        &self,
        pick: impl Fn(&Value) -> Option<T>,
    ) -> Result<Vec<(u64, T)>, Undecided> {
        let mut readings = 1;
        loop {
            match self.once(&pick).await {
                Ok(picked) => return Ok(picked),
                Err(Broken::Refused(_)) if readings < MOST_READINGS => readings += 1,
                Err(Broken::Refused(refusal)) => {
                    let list = self.list;
                    return Err(Undecided::Refused { list, refusal });
                }
                Err(Broken::Undecided(undecided)) => return Err(undecided),
            }
        }
    }

    async fn once<T>(&self, pick: impl Fn(&Value) -> Option<T>) -> Result<Vec<(u64, T)>, Broken> {
        let mut arguments = self.arguments.clone();
        let mut picked = Vec::new();
        let mut order = Order::default();
        let mut cursors = HashSet::new();
        let (mut pages, mut empty) = (0, 0);
        loop {
            let mut answer = self.page(&arguments, pages).await?;
            pages += 1;
            let next = self.next(&answer)?;
            let Some(Value::Array(page)) = answer.get_mut(&self.find.entries).map(Value::take)
            else {
                return Err(self.no_end("a page has no entries"));
            };
            empty = if page.is_empty() { empty + 1 } else { 0 };
            for entry in &page {
                let time = created(self.find, entry);
                order.see(time);
                if time.is_none_or(|time| time >= self.since) {
                    let entry = pick(entry).map(|it| (time.unwrap_or(u64::MAX), it));
                    picked.extend(entry);
                }
            }
            let Some(cursor) = next.filter(|_| !order.is_past(self.since)) else {
                return Ok(picked);
            };
            if empty >= MOST_EMPTY_PAGES {
                return Err(self.no_end("its pages have no entries, and there are always more"));
            }
            if !cursors.insert(cursor.clone()) {
                return Err(self.no_end("it leads back to a page that was read"));
            }
            arguments.insert("cursor".to_owned(), json!(cursor));
        }
    }

    /// One page; failures that may pass are waited out.
    async fn page(&self, arguments: &Map<String, Value>, pages: usize) -> Result<Value, Broken> {
        let list = self.list;
        loop {
            if Instant::now() >= self.deadline {
                return Err(Broken::Undecided(Undecided::TimeUp { list, pages }));
            }
            let refusal = match self.caller.call(self.list, arguments.clone().into()).await {
                Ok(called) => return Ok(called.answer.value),
                Err(refusal) => refusal,
            };
            let Some(wish) = passing(&refusal) else {
                return Err(match pages {
                    0 => Broken::Undecided(Undecided::Refused { list, refusal }),
                    _ => Broken::Refused(refusal),
                });
            };
            let wait = wish.max(PAUSE);
            if Instant::now() + wait >= self.deadline {
                return Err(Broken::Undecided(Undecided::Refused { list, refusal }));
            }
            sleep(wait).await;
        }
    }

    /// Where the next page begins; `None` at the end of the list.
    fn next(&self, answer: &Value) -> Result<Option<String>, Broken> {
        let cursor = next_cursor(answer).filter(|_| is_paged(self.list));
        let more = answer.get("hasMore").and_then(Value::as_bool) == Some(true);
        if more && cursor.is_none() {
            return Err(self.no_end("there is more, but nothing says where"));
        }
        Ok(cursor)
    }

    fn no_end(&self, why: &'static str) -> Broken {
        let list = self.list;
        Broken::Undecided(Undecided::NoEnd { list, why })
    }
}

/// The order in which the entries of a list were made, as far as it was read.
#[derive(Debug, Default)]
struct Order {
    newest: Option<u64>,
    last: Option<u64>,
    /// An entry was newer than the one before it, or does not say when it was made.
    is_broken: bool,
}

impl Order {
    fn see(&mut self, time: Option<u64>) {
        match (time, self.last) {
            (Some(time), Some(last)) if time > last => self.is_broken = true,
            (None, _) => self.is_broken = true,
            _ => {}
        }
        self.newest = self.newest.max(time);
        self.last = time;
    }

    /// Whether all further entries are older than a moment: the list runs from new to old.
    fn is_past(&self, since: u64) -> bool {
        let runs_back = !self.is_broken && self.newest > self.last;
        runs_back && self.last.is_some_and(|last| last < since)
    }
}

/// When an entry was made, in milliseconds since 1970.
fn created(find: &JobLookup, entry: &Value) -> Option<u64> {
    match entry.get(&find.created)? {
        Value::String(text) => {
            let time = DateTime::parse_from_rfc3339(text).ok()?;
            u64::try_from(time.timestamp_millis()).ok()
        }
        number => number.as_f64().map(|number| number as u64),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn find_of(start: &str) -> &'static JobLookup {
        let marker = operation(start)
            .unwrap()
            .behavior
            .long_running
            .as_ref()
            .unwrap();
        marker.find.as_ref().unwrap()
    }

    #[test]
    fn times_are_read_in_both_forms() {
        let find = find_of("research.create");
        let time = |value: Value| created(find, &json!({"createdAt": value}));
        assert_eq!(time(json!(1_700_000_000_123.0)), Some(1_700_000_000_123));
        let text = json!("2023-11-14T22:13:20.123Z");
        assert_eq!(time(text), Some(1_700_000_000_123));
        assert_eq!(time(json!("soon")), None);
    }

    #[test]
    fn a_list_is_past_a_moment_only_if_it_runs_from_new_to_old() {
        let is_past = |times: &[Option<u64>]| {
            let mut order = Order::default();
            times.iter().for_each(|time| order.see(*time));
            order.is_past(5)
        };
        assert!(is_past(&[Some(9), Some(9), Some(3)]));
        assert!(!is_past(&[Some(9), Some(6)]));
        assert!(!is_past(&[Some(3), Some(9)]));
        assert!(!is_past(&[Some(9), Some(3), Some(8), Some(3)]));
        assert!(!is_past(&[Some(9), None, Some(3)]));
        assert!(!is_past(&[Some(3)]));
        assert!(!is_past(&[Some(3), Some(3)]));
        assert!(!is_past(&[]));
    }
}

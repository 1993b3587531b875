//! Finds the job of a start whose response was lost.
//!
//! Exa lists jobs, but not who started them. A job matches if it was created since the start and repeats the arguments
//! that were sent. A job is missing only after the list was read to its end, or, if it is sorted from new to old, past
//! the time of the start.

use std::collections::HashSet;
use std::time::Duration;

use chrono::DateTime;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::super::executor::resource_id;
use super::super::pagination::{next_cursor, use_largest_pages};
use super::super::{OperationError, OperationExecutor, find as operation, is_paged};
use super::matching::{JobMatch, compare};
use super::{RemoteJob, retry_delay};
use exa_mcp_generated::response_fields::HAS_MORE;
use exa_mcp_model::{JobLookup, Operation};

/// Entries per page, if the list has a page size.
const PAGE_SIZE: usize = 100;

/// How far Exa's clock may be behind ours, in milliseconds.
const MAX_CLOCK_SKEW: u64 = 30_000;

/// The pause after a page that could not be read.
const PAUSE: Duration = Duration::from_secs(5);

/// How often a list is read from its beginning because a later page was rejected: its cursor may have expired.
const MAX_READS: usize = 3;

/// Consecutive pages without entries after which a list counts as endless.
const MAX_EMPTY_PAGES: usize = 20;

/// The jobs that a search found, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct JobMatches {
    /// Jobs that repeat the arguments that were sent.
    pub matching: Vec<RemoteJob>,
    /// Jobs that do not report their arguments.
    pub possible: Vec<RemoteJob>,
}

/// Why a search for a job is inconclusive.
#[derive(Debug)]
pub(crate) enum JobSearchError {
    /// The list could not be read.
    ListFailed {
        /// The operation that lists jobs.
        list: &'static Operation,
        /// The error of the list operation.
        error: OperationError,
    },
    /// The list has no end.
    Endless {
        /// The operation that lists jobs.
        list: &'static Operation,
        /// What is wrong with the list.
        reason: &'static str,
    },
    /// The deadline passed before the end of the list.
    TimedOut {
        /// The operation that lists jobs.
        list: &'static Operation,
        /// The number of pages read.
        pages: usize,
    },
}

impl RemoteJob {
    /// Searches for the job that a call of `start` with these arguments has started since a time in milliseconds since
    /// 1970; `None` if Exa does not list such jobs. Temporary failures are retried until the deadline.
    pub(crate) async fn find(
        executor: &OperationExecutor,
        start: &'static Operation,
        sent: &Map<String, Value>,
        since: u64,
        deadline: Instant,
    ) -> Option<Result<JobMatches, JobSearchError>> {
        let long_running = start.behavior.long_running.as_ref()?;
        let find = long_running.find.as_ref()?;
        let list = operation(&find.list)?;
        let mut arguments = super::arguments(&find.arguments, sent, &Value::Null)?;
        if is_paged(list) {
            use_largest_pages(list, &mut arguments, PAGE_SIZE);
        }
        let since = since.saturating_sub(MAX_CLOCK_SKEW);
        let executors = match resource_id(list, &arguments) {
            // The key that knows the resource sees all of its list.
            Some(_) => vec![executor.clone()],
            // Each team sees only its own jobs, so every key is tried.
            None => executor.per_key(),
        };
        let reader = |executor| ListReader {
            executor,
            list,
            find,
            arguments: &arguments,
            since,
            deadline,
        };
        let pick = |entry: &Value| {
            let job_match = compare(start, find, sent, entry);
            let may_match = job_match != JobMatch::No;
            let job = may_match
                .then(|| Self::from_start(long_running, sent, entry))
                .flatten();
            job.map(|job| (job_match, job))
        };
        Some(
            read_all(executors.iter().map(reader), pick)
                .await
                .map(|jobs| {
                    let mut found = JobMatches::default();
                    for (job_match, job) in jobs {
                        match job_match {
                            JobMatch::Yes => found.matching.push(job),
                            _ => found.possible.push(job),
                        }
                    }
                    found
                }),
        )
    }
}

/// Collects the entries that `pick` selects from several lists, the oldest first. Keys of the same team list the same
/// jobs, which count once. Fails if one list cannot be read.
async fn read_all(
    readers: impl Iterator<Item = ListReader<'_>>,
    pick: impl Fn(&Value) -> Option<(JobMatch, RemoteJob)>,
) -> Result<Vec<(JobMatch, RemoteJob)>, JobSearchError> {
    let mut known = HashSet::new();
    let mut all = Vec::new();
    for reader in readers {
        let mut picked = reader.read_to_end(&pick).await?;
        picked.retain(|(_, (_, job))| known.insert(job.key()));
        all.append(&mut picked);
    }
    all.sort_by_key(|(time, _)| *time);
    Ok(all.into_iter().map(|(_, picked)| picked).collect())
}

/// Reads a list to its end.
struct ListReader<'a> {
    executor: &'a OperationExecutor,
    list: &'static Operation,
    find: &'static JobLookup,
    arguments: &'a Map<String, Value>,
    since: u64,
    deadline: Instant,
}

/// Why a list could not be read to its end.
enum ReadError {
    /// A later page failed permanently. Reading the list from its beginning may get further.
    LaterPage(OperationError),
    Search(JobSearchError),
}

impl ListReader<'_> {
    /// Returns what `pick` selects from the entries created since the start, each with its creation time. Holds only
    /// the selected entries, because the list may be long.
    async fn read_to_end<T>(
        &self,
        pick: impl Fn(&Value) -> Option<T>,
    ) -> Result<Vec<(u64, T)>, JobSearchError> {
        let mut reads = 1;
        loop {
            match self.read_once(&pick).await {
                Ok(picked) => return Ok(picked),
                Err(ReadError::LaterPage(_)) if reads < MAX_READS => reads += 1,
                Err(ReadError::LaterPage(error)) => {
                    let list = self.list;
                    return Err(JobSearchError::ListFailed { list, error });
                }
                Err(ReadError::Search(error)) => return Err(error),
            }
        }
    }

    async fn read_once<T>(
        &self,
        pick: impl Fn(&Value) -> Option<T>,
    ) -> Result<Vec<(u64, T)>, ReadError> {
        let mut arguments = self.arguments.clone();
        let mut picked = Vec::new();
        let mut order = EntryOrder::default();
        let mut cursors = HashSet::new();
        let (mut pages, mut empty) = (0, 0);
        loop {
            let mut response = self.page(&arguments, pages).await?;
            pages += 1;
            let next = self.next_cursor(&response)?;
            let Some(Value::Array(page)) = response.get_mut(&self.find.entries).map(Value::take)
            else {
                return Err(self.endless("a page has no entries"));
            };
            empty = if page.is_empty() { empty + 1 } else { 0 };
            for entry in &page {
                let time = created(self.find, entry);
                order.observe(time);
                if time.is_none_or(|time| time >= self.since) {
                    let entry = pick(entry).map(|it| (time.unwrap_or(u64::MAX), it));
                    picked.extend(entry);
                }
            }
            let Some(cursor) = next.filter(|_| !order.is_past(self.since)) else {
                return Ok(picked);
            };
            if empty >= MAX_EMPTY_PAGES {
                return Err(self.endless("its pages have no entries, but there are always more"));
            }
            if !cursors.insert(cursor.clone()) {
                return Err(self.endless("a cursor leads back to an earlier page"));
            }
            arguments.insert("cursor".to_owned(), json!(cursor));
        }
    }

    /// Reads one page; retries temporary failures.
    async fn page(&self, arguments: &Map<String, Value>, pages: usize) -> Result<Value, ReadError> {
        let list = self.list;
        loop {
            if Instant::now() >= self.deadline {
                return Err(ReadError::Search(JobSearchError::TimedOut { list, pages }));
            }
            let error = match self.executor.call(list, arguments.clone().into()).await {
                Ok(call) => return Ok(call.response.value),
                Err(error) => error,
            };
            let Some(delay) = retry_delay(&error) else {
                return Err(match pages {
                    0 => ReadError::Search(JobSearchError::ListFailed { list, error }),
                    _ => ReadError::LaterPage(error),
                });
            };
            let wait = delay.max(PAUSE);
            if Instant::now() + wait >= self.deadline {
                return Err(ReadError::Search(JobSearchError::ListFailed {
                    list,
                    error,
                }));
            }
            sleep(wait).await;
        }
    }

    /// Returns the cursor of the next page; `None` at the end of the list.
    fn next_cursor(&self, page: &Value) -> Result<Option<String>, ReadError> {
        let cursor = next_cursor(page).filter(|_| is_paged(self.list));
        let more = HAS_MORE.get(page) == Some(&Value::Bool(true));
        if more && cursor.is_none() {
            return Err(self.endless("there are more pages, but no cursor"));
        }
        Ok(cursor)
    }

    fn endless(&self, reason: &'static str) -> ReadError {
        let list = self.list;
        ReadError::Search(JobSearchError::Endless { list, reason })
    }
}

/// The order of the entries of a list, as far as it was read.
#[derive(Debug, Default)]
struct EntryOrder {
    newest: Option<u64>,
    last: Option<u64>,
    /// An entry was newer than the one before it, or has no creation time.
    is_unordered: bool,
}

impl EntryOrder {
    fn observe(&mut self, time: Option<u64>) {
        match (time, self.last) {
            (Some(time), Some(last)) if time > last => self.is_unordered = true,
            (None, _) => self.is_unordered = true,
            _ => {}
        }
        self.newest = self.newest.max(time);
        self.last = time;
    }

    /// Returns whether all further entries are older than a time, because the list is sorted from new to old.
    fn is_past(&self, since: u64) -> bool {
        let is_descending = !self.is_unordered && self.newest > self.last;
        is_descending && self.last.is_some_and(|last| last < since)
    }
}

/// Returns the creation time of an entry, in milliseconds since 1970.
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

    use super::super::matching::lookup_of;
    use super::*;

    #[test]
    fn parses_numeric_and_text_timestamps() {
        let find = lookup_of("research.create");
        let time = |value: Value| created(find, &json!({"createdAt": value}));
        assert_eq!(time(json!(1_700_000_000_123.0)), Some(1_700_000_000_123));
        let text = json!("2023-11-14T22:13:20.123Z");
        assert_eq!(time(text), Some(1_700_000_000_123));
        assert_eq!(time(json!("tomorrow")), None);
    }

    #[test]
    fn recognizes_the_end_only_in_a_list_sorted_from_new_to_old() {
        let is_past = |times: &[Option<u64>]| {
            let mut order = EntryOrder::default();
            times.iter().for_each(|time| order.observe(*time));
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

//! Cursor pagination. A cursor holds the sequence number of the last row shown, so pages stay
//! consistent while rows are added and removed.

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::call::Call;
use crate::json::count;

/// Obscures the sequence number, so that clients treat cursors as opaque.
const MASK: u64 = 0x5a17_93c4_e2d0_86b1;

/// The requested page of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paging {
    after: Option<u64>,
    limit: usize,
    /// Begins the cursors, so that those of different lists cannot be mixed up.
    prefix: &'static str,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    OldestFirst,
    NewestFirst,
}

impl Paging {
    /// Reads `cursor` and `limit`; a limit above `max` is lowered to `max`.
    pub(crate) fn from_call(call: &Call, default: u64, max: u64) -> Result<Self, ApiError> {
        let limit = call.get("limit").and_then(count).unwrap_or(default);
        Paging::with_prefix(call, limit.clamp(1, max), "cursor_")
    }

    /// Reads the page of a list whose cursors are not those of the other lists.
    pub(crate) fn of_own_list(
        call: &Call,
        default: u64,
        prefix: &'static str,
    ) -> Result<Self, ApiError> {
        let limit = call.get("limit").and_then(count).unwrap_or(default);
        Paging::with_prefix(call, limit.max(1), prefix)
    }

    fn with_prefix(call: &Call, limit: u64, prefix: &'static str) -> Result<Self, ApiError> {
        let cursor = call.opt_text("cursor");
        let after = cursor.map(|cursor| decode_cursor(cursor, prefix));
        Ok(Paging {
            after: after.transpose()?,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            prefix,
        })
    }

    /// Returns one page of `rows`, which have their sequence numbers and run from old to new.
    pub(crate) fn page<T>(
        self,
        rows: impl DoubleEndedIterator<Item = (u64, T)>,
        order: Order,
        to_json: impl Fn(T) -> Value,
    ) -> Value {
        let follows_cursor = |sequence: u64| match (self.after, order) {
            (None, _) => true,
            (Some(after), Order::OldestFirst) => sequence > after,
            (Some(after), Order::NewestFirst) => sequence < after,
        };
        let rows: Box<dyn Iterator<Item = (u64, T)>> = match order {
            Order::OldestFirst => Box::new(rows),
            Order::NewestFirst => Box::new(rows.rev()),
        };
        let mut rows = rows.filter(|(sequence, _)| follows_cursor(*sequence));
        let mut last = None;
        let mut data = Vec::new();
        for (sequence, row) in rows.by_ref().take(self.limit) {
            last = Some(sequence);
            data.push(to_json(row));
        }
        let has_more = rows.next().is_some();
        let next = last.filter(|_| has_more);
        let next = next.map(|sequence| format!("{}{:016x}", self.prefix, sequence ^ MASK));
        json!({ "data": data, "hasMore": has_more, "nextCursor": next })
    }
}

fn decode_cursor(text: &str, prefix: &str) -> Result<u64, ApiError> {
    let digits = text
        .strip_prefix(prefix)
        .filter(|digits| digits.len() == 16);
    let masked = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    masked.map(|masked| masked ^ MASK).ok_or_else(|| {
        ApiError::new(
            400,
            "INVALID_REQUEST_QUERY",
            format!("cursor: '{text}' was not given out for this list"),
        )
    })
}

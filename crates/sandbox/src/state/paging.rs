//! Cursor pagination. A cursor holds the sequence number of the last row shown, so pages stay
//! consistent while rows are added and removed.

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::call::Call;
use crate::json::count;

const PREFIX: &str = "cursor_";
/// Obscures the sequence number, so that clients treat cursors as opaque.
const MASK: u64 = 0x5a17_93c4_e2d0_86b1;

/// The requested page of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paging {
    after: Option<u64>,
    limit: usize,
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
        let after = call.opt_text("cursor").map(decode_cursor).transpose()?;
        Ok(Paging {
            after,
            limit: usize::try_from(limit.clamp(1, max)).unwrap_or(1),
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
        let next = last.filter(|_| has_more).map(encode_cursor);
        json!({ "data": data, "hasMore": has_more, "nextCursor": next })
    }
}

fn encode_cursor(sequence: u64) -> String {
    format!("{PREFIX}{:016x}", sequence ^ MASK)
}

fn decode_cursor(text: &str) -> Result<u64, ApiError> {
    let digits = text
        .strip_prefix(PREFIX)
        .filter(|digits| digits.len() == 16);
    let masked = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    masked.map(|masked| masked ^ MASK).ok_or_else(|| {
        ApiError::new(
            400,
            "INVALID_REQUEST_QUERY",
            format!("cursor: '{text}' was not given out by this API"),
        )
    })
}

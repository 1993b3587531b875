//! Lists page by page. A cursor names the last place that was shown, so pages stay right when
//! objects come and go in between.

use serde_json::{Value, json};

use crate::call::{Call, whole};
use crate::failure::Failure;

const PREFIX: &str = "cursor_";
/// Keeps people from reading meaning into cursors.
const VEIL: u64 = 0x5a17_93c4_e2d0_86b1;

/// Which page of a list is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paging {
    after: Option<u64>,
    limit: usize,
}

/// In which order a list runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    OldestFirst,
    NewestFirst,
}

impl Paging {
    /// Reads `cursor` and `limit`; a limit above `most` counts as `most`.
    pub(crate) fn of(call: &Call, usual: u64, most: u64) -> Result<Self, Failure> {
        let limit = call
            .get("limit")
            .and_then(whole)
            .unwrap_or(usual)
            .clamp(1, most);
        let after = call.opt_text("cursor").map(read_cursor).transpose()?;
        Ok(Paging {
            after,
            limit: usize::try_from(limit).unwrap_or(1),
        })
    }

    /// One page of rows that come with their places, oldest first.
    pub(crate) fn page<T>(
        self,
        rows: impl DoubleEndedIterator<Item = (u64, T)>,
        order: Order,
        show: impl Fn(T) -> Value,
    ) -> Value {
        let wanted = |place: u64| match (self.after, order) {
            (None, _) => true,
            (Some(after), Order::OldestFirst) => place > after,
            (Some(after), Order::NewestFirst) => place < after,
        };
        let rows: Box<dyn Iterator<Item = (u64, T)>> = match order {
            Order::OldestFirst => Box::new(rows),
            Order::NewestFirst => Box::new(rows.rev()),
        };
        let mut rows = rows.filter(|(place, _)| wanted(*place));
        let mut last = None;
        let mut data = Vec::new();
        for (place, row) in rows.by_ref().take(self.limit) {
            last = Some(place);
            data.push(show(row));
        }
        let more = rows.next().is_some();
        let next = last.filter(|_| more).map(write_cursor);
        json!({ "data": data, "hasMore": more, "nextCursor": next })
    }
}

fn write_cursor(place: u64) -> String {
    format!("{PREFIX}{:016x}", place ^ VEIL)
}

fn read_cursor(text: &str) -> Result<u64, Failure> {
    let digits = text
        .strip_prefix(PREFIX)
        .filter(|digits| digits.len() == 16);
    let place = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    place.map(|place| place ^ VEIL).ok_or_else(|| {
        Failure::new(
            400,
            "INVALID_REQUEST_QUERY",
            format!("cursor: '{text}' was not given out by this API"),
        )
    })
}

//! Pagination of lists.

use rmcp::model::ErrorData;

/// Entries per page.
pub(super) const PAGE_SIZE: usize = 200;

/// The prefix of every cursor. Cursors are opaque to clients.
const CURSOR_PREFIX: &str = "page-";

/// One page of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page<T> {
    /// The entries of the page.
    pub(super) items: Vec<T>,
    /// The cursor of the next page, if there is one.
    pub(super) next: Option<String>,
}

/// Returns a page of a list; rejects cursors that this server did not issue.
pub(super) fn page<T>(
    items: Vec<T>,
    cursor: Option<&str>,
    size: usize,
) -> Result<Page<T>, ErrorData> {
    let start = match cursor {
        None => 0,
        Some(cursor) => start(cursor, items.len(), size).ok_or_else(unknown_cursor)?,
    };
    let end = start.saturating_add(size);
    let next = (end < items.len()).then(|| format!("{CURSOR_PREFIX}{end}"));
    let items = items.into_iter().skip(start).take(size).collect();
    Ok(Page { items, next })
}

/// Parses a cursor into an offset, if this server issued it.
fn start(cursor: &str, length: usize, size: usize) -> Option<usize> {
    let offset = cursor.strip_prefix(CURSOR_PREFIX)?;
    let start: usize = offset.parse().ok()?;
    // The text is compared too: "+200" and "0200" are numbers, but were never issued.
    let is_ours = start > 0 && start < length && start.is_multiple_of(size);
    (is_ours && offset == start.to_string()).then_some(start)
}

/// Returns the error for an unknown cursor.
pub(super) fn unknown_cursor() -> ErrorData {
    ErrorData::invalid_params(
        "Invalid params: unknown cursor; leave it out to start from the beginning",
        None,
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_the_whole_list() {
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let items = (0..7).collect();
            let page = page(items, cursor.as_deref(), 3).unwrap();
            seen.push(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
    }

    #[test]
    fn a_list_that_fits_has_no_next_page() {
        assert_eq!(page(vec![1, 2, 3], None, 3).unwrap().next, None);
        assert_eq!(page(Vec::<u8>::new(), None, 3).unwrap().next, None);
    }

    #[test]
    fn rejects_unknown_cursors() {
        for cursor in [
            "", "page-", "page-0", "page-1", "page-+3", "page-03", "page-9", "3",
        ] {
            let error = page((0..7).collect::<Vec<_>>(), Some(cursor), 3).unwrap_err();
            assert_eq!(error.code.0, -32602, "{cursor}");
        }
    }
}

//! Collects all pages of a list.

use serde_json::{Map, Value, json};

use super::{
    CompletedCall, OperationError, OperationExecutor, ProgressReporter, ProgressUpdate,
    input_schema, validation,
};
use exa_mcp_generated::response_fields::{ENTRIES, HAS_MORE, NEXT_CURSOR};
use exa_mcp_model::Operation;

/// The most pages of one list, in case the API never reports the last one.
const MAX_PAGES: usize = 200;

/// Why a list was not read to its end.
#[derive(Debug)]
pub(crate) enum PagingStop {
    /// As many entries as requested were read.
    LimitReached,
    /// The API returned a cursor for the second time.
    RepeatedCursor,
    /// The list has more than [`MAX_PAGES`] pages.
    TooManyPages,
    /// A page could not be read.
    Failed(OperationError),
}

/// All pages of a list, joined.
#[derive(Debug)]
pub(crate) struct PagedCall {
    /// The first response with the entries of all pages; its cursor is that of the next page, if there is one.
    pub call: CompletedCall,
    /// The number of pages read.
    pub pages: usize,
    /// Why reading stopped early, if it did.
    pub stop: Option<PagingStop>,
}

/// Returns whether an operation returns a paginated list.
pub fn is_paged(operation: &'static Operation) -> bool {
    operation
        .arguments
        .iter()
        .any(|argument| argument.name == "cursor")
}

impl OperationExecutor {
    /// Reads a list page by page until there are `limit` entries or no more pages.
    pub(crate) async fn send_all(
        &self,
        operation: &'static Operation,
        mut first: validation::ValidatedArguments,
        limit: usize,
        progress: &ProgressReporter,
    ) -> Result<PagedCall, OperationError> {
        use_largest_pages(operation, &mut first.arguments, limit);
        let arguments = first.arguments.clone();
        let call = self
            .send(operation, first, &ProgressReporter::disabled())
            .await?;
        let mut paged = PagedCall {
            call,
            pages: 1,
            stop: None,
        };
        // A cycle may also lead back to the cursor in the arguments.
        let start = arguments.get("cursor").and_then(Value::as_str);
        let mut seen: Vec<String> = start.map(str::to_owned).into_iter().collect();
        while let Some(cursor) = next_cursor(&paged.call.response.value) {
            let count = report(&paged, progress);
            paged.stop = if count >= limit {
                Some(PagingStop::LimitReached)
            } else if seen.contains(&cursor) {
                Some(PagingStop::RepeatedCursor)
            } else if paged.pages >= MAX_PAGES {
                Some(PagingStop::TooManyPages)
            } else {
                None
            };
            if paged.stop.is_some() {
                return Ok(paged);
            }
            seen.push(cursor.clone());
            let mut next = arguments.clone();
            next.insert("cursor".to_owned(), json!(cursor));
            let next = validation::ValidatedArguments {
                arguments: next,
                corrections: Vec::new(),
            };
            match self
                .send(operation, next, &ProgressReporter::disabled())
                .await
            {
                Ok(page) => append(&mut paged.call.response.value, page.response.value),
                // The pages so far were paid for, and the cursor allows to continue.
                Err(error) => {
                    paged.stop = Some(PagingStop::Failed(error));
                    return Ok(paged);
                }
            }
            paged.pages += 1;
        }
        report(&paged, progress);
        Ok(paged)
    }
}

/// Requests pages as large as allowed, unless the arguments set a size.
pub(super) fn use_largest_pages(
    operation: &'static Operation,
    arguments: &mut Map<String, Value>,
    limit: usize,
) {
    let largest = input_schema(operation)
        .pointer("/properties/limit/maximum")
        .and_then(Value::as_u64);
    if let Some(largest) = largest {
        let largest = largest.min(limit.max(1) as u64);
        arguments.entry("limit").or_insert(json!(largest));
    }
}

/// Reports the number of entries, and returns it.
fn report(paged: &PagedCall, progress: &ProgressReporter) -> usize {
    let count = list(&paged.call.response.value).map_or(0, Vec::len);
    progress.report(ProgressUpdate {
        done: count as f64,
        total: None,
        message: format!("{count} results, page {}", paged.pages),
        is_quoted: false,
    });
    count
}

/// Returns the entries of a page.
fn list(page: &Value) -> Option<&Vec<Value>> {
    ENTRIES.list(page)
}

/// Returns the cursor of the next page.
pub(super) fn next_cursor(page: &Value) -> Option<String> {
    let more = HAS_MORE.get(page).and_then(Value::as_bool);
    NEXT_CURSOR
        .text(page)
        .filter(|cursor| !cursor.is_empty() && more != Some(false))
        .map(str::to_owned)
}

/// Adds a page: appends its entries and overwrites the other fields.
fn append(all: &mut Value, page: Value) {
    let (Value::Object(all), Value::Object(page)) = (all, page) else {
        return;
    };
    for (name, value) in page {
        match (all.get_mut(&name), value) {
            (Some(Value::Array(entries)), Value::Array(more)) => entries.extend(more),
            (_, value) => drop(all.insert(name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_pages() {
        let mut all = json!({"data": [1], "hasMore": true, "nextCursor": "a"});
        append(
            &mut all,
            json!({"data": [2, 3], "hasMore": false, "nextCursor": null}),
        );
        assert_eq!(
            all,
            json!({"data": [1, 2, 3], "hasMore": false, "nextCursor": null})
        );
        assert_eq!(next_cursor(&all), None);
    }

    #[test]
    fn ignores_the_cursor_of_the_last_page() {
        assert_eq!(
            next_cursor(&json!({"nextCursor": "a"})).as_deref(),
            Some("a")
        );
        assert_eq!(
            next_cursor(&json!({"nextCursor": "a", "hasMore": false})),
            None
        );
        assert_eq!(
            next_cursor(&json!({"nextCursor": "", "hasMore": true})),
            None
        );
    }
}

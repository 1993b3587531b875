//! Following the cursors of a list to its end.

use serde_json::{Map, Value, json};

use super::{Called, Caller, Progress, Refusal, Step, input_schema, validation};
use exa_mcp_model::Operation;

/// Pages of one list: an API that never says that it has no more must not keep us for ever.
const MOST_PAGES: usize = 200;

/// Why a list was not followed to its end.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// There are as many entries as wanted.
    Enough,
    /// The API gave a cursor that it had given before.
    Circle,
    /// The API has more pages than any list should have.
    Endless,
    /// A page could not be had.
    Failed(Refusal),
}

/// All pages of a list in one answer.
#[derive(Debug)]
pub(crate) struct Paged {
    /// The first answer with the entries of all; its cursor is that of the next page, if there is one.
    pub called: Called,
    /// How many pages it took.
    pub pages: usize,
    /// Why there are more entries than these.
    pub stopped: Option<Stopped>,
}

/// Whether an operation answers in pages.
pub fn is_paged(operation: &'static Operation) -> bool {
    operation
        .arguments
        .iter()
        .any(|argument| argument.name == "cursor")
}

impl Caller {
    /// Calls a list and follows its cursors until there are `most` entries or no more pages.
    pub(crate) async fn send_all(
        &self,
        operation: &'static Operation,
        mut checked: validation::Checked,
        most: usize,
        progress: &Progress,
    ) -> Result<Paged, Refusal> {
        widen(operation, &mut checked.arguments, most);
        let arguments = checked.arguments.clone();
        let first = self.send(operation, checked, &Progress::none()).await?;
        let mut paged = Paged {
            called: first,
            pages: 1,
            stopped: None,
        };
        // A circle may also lead back to where the caller began.
        let began = arguments.get("cursor").and_then(Value::as_str);
        let mut seen: Vec<String> = began.map(str::to_owned).into_iter().collect();
        while let Some(cursor) = next_cursor(&paged.called.answer.value) {
            let count = tell(&paged, progress);
            paged.stopped = match () {
                () if count >= most => Some(Stopped::Enough),
                () if seen.contains(&cursor) => Some(Stopped::Circle),
                () if paged.pages >= MOST_PAGES => Some(Stopped::Endless),
                () => None,
            };
            if paged.stopped.is_some() {
                return Ok(paged);
            }
            seen.push(cursor.clone());
            let mut next = arguments.clone();
            next.insert("cursor".to_owned(), json!(cursor));
            let next = validation::Checked {
                arguments: next,
                corrections: Vec::new(),
            };
            match self.send(operation, next, &Progress::none()).await {
                Ok(page) => append(&mut paged.called.answer.value, page.answer.value),
                // What there is so far was paid for, and its cursor says where to go on.
                Err(refusal) => {
                    paged.stopped = Some(Stopped::Failed(refusal));
                    return Ok(paged);
                }
            }
            paged.pages += 1;
        }
        tell(&paged, progress);
        Ok(paged)
    }
}

/// Asks for pages as large as allowed, unless the caller said how large.
pub(super) fn widen(
    operation: &'static Operation,
    arguments: &mut Map<String, Value>,
    most: usize,
) {
    let largest = input_schema(operation)
        .pointer("/properties/limit/maximum")
        .and_then(Value::as_u64);
    if let Some(largest) = largest {
        let largest = largest.min(most.max(1) as u64);
        arguments.entry("limit").or_insert(json!(largest));
    }
}

fn tell(paged: &Paged, progress: &Progress) -> usize {
    let count = list(&paged.called.answer.value).map_or(0, Vec::len);
    progress.tell(Step {
        done: count as f64,
        total: None,
        message: format!("{count} results, page {}", paged.pages),
        is_quoted: false,
    });
    count
}

/// The entries of a page.
fn list(answer: &Value) -> Option<&Vec<Value>> {
    ["data", "results"]
        .iter()
        .find_map(|name| answer.get(*name)?.as_array())
}

/// Where the next page begins.
pub(super) fn next_cursor(answer: &Value) -> Option<String> {
    let more = answer.get("hasMore").and_then(Value::as_bool);
    let cursor = answer.get("nextCursor").and_then(Value::as_str);
    cursor
        .filter(|cursor| !cursor.is_empty() && more != Some(false))
        .map(str::to_owned)
}

/// Adds a page; what it says beside its entries counts from now on.
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
    fn pages_are_joined() {
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
    fn a_cursor_counts_only_while_there_is_more() {
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

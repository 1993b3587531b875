//! Caches and renders the response of an operation.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::cache::{CachedResult, NewResult, RequestedView};
use super::call::OperationCall;
use super::error::ToolError;
use super::operation_runner::{CallOutput, OperationRunner};
use super::outcome::ToolResult;
use super::{options, toolhost};
use crate::render::{self, Envelope, RenderInput, Rendered, View};
use exa_mcp_exa_client::blocking;
use exa_mcp_model::Operation;

impl OperationRunner<'_> {
    /// Caches a new response and renders it.
    pub(super) async fn render_new(
        &self,
        sent_filters: Vec<String>,
        output: CallOutput,
    ) -> ToolResult {
        let OperationCall {
            operation,
            requested_level,
            expansion,
            view,
            ..
        } = self.call;
        let mut tool_fields = match self.call.entry() {
            Some(entry) => {
                let end = output.job_end.as_ref();
                toolhost::role_fields(entry, &output.arguments, &output.response, end)
            }
            None => Map::new(),
        };
        for (name, value) in output.job_fields {
            tool_fields.entry(name).or_insert(value);
        }
        let response = output.response;
        let is_large = blocking::is_large_value(&response);
        let max_bytes = self.tools.cache().max_response_bytes();
        let (text, envelope) = blocking::run(is_large, || {
            let text = json_within(&response, max_bytes);
            (text, Envelope::from(response))
        })
        .await;
        let cached = text.filter(|_| may_be_stored(operation)).and_then(|text| {
            let new_result = NewResult {
                title: title(operation, &output.arguments),
                operation: operation.name,
                arguments: &output.arguments,
                results: envelope.results.len(),
                response: text,
                requested_level: *requested_level,
                extract: view.extract,
                extra: view.extra.fields.clone(),
                expansion: expansion.clone(),
            };
            self.tools.cache().insert(self.owner, new_result)
        });
        let store = self.tools.store();
        if let (Some(cached), Some(shared)) = (&cached, self.shared(&*store)) {
            shared.insert(self.owner, &output.arguments, cached).await;
        }
        let cache_id = cached.as_ref().map(|cached| cached.id.as_str());
        let mut warnings = output.warnings;
        let view = match view.for_results(envelope.results.len()) {
            Ok(view) => view,
            Err(error) if operation.read_only => {
                return Err(Box::new(ToolError::NotInResult {
                    operation: operation.name,
                    error,
                    cache_id: cache_id.map(str::to_owned),
                }));
            }
            // The caller must see the result of a change, whichever part was requested.
            Err(error) => {
                warnings.push(format!("{error}; showing all"));
                Cow::Owned(view.without_index())
            }
        };
        let titles = self
            .column_titles(&envelope.results, &output.arguments)
            .await;
        let input = RenderInput {
            operation: operation.name,
            envelope,
            named: texts(&output.arguments),
            tool_fields,
            cache_id,
            repeatable: operation.read_only,
            cached: false,
            requested_level: requested_level.filter(|_| view.extra.fields.is_empty()),
            is_expandable: expansion.is_some(),
            titles,
            corrections: self.call.corrections.clone(),
            warnings,
            sent_filters,
            paging_stop: output.paging_stop,
        };
        let rendered = blocking::run(is_large, || render::render(input, &view)).await;
        let mut rendered = rendered
            .map_err(|error| ToolError::invalid(operation.name, options::view_problem(&error)))?;
        rendered.job_end = output.job_end;
        Ok(rendered)
    }

    /// Renders a cached result, or returns its last rendering if the view is the same.
    pub(super) async fn render_cached(
        &self,
        cached: &CachedResult,
        view: View,
        sent_filters: Vec<String>,
    ) -> ToolResult {
        let requested = RequestedView {
            view,
            level: self.call.options.level(),
            corrections: self.call.corrections.clone(),
            sent_filters,
        };
        let cache = self.tools.cache();
        if let Some(rendered) = cache.cached_view(self.owner, &cached.id, &requested) {
            return Ok(Rendered::clone(&rendered));
        }
        let is_large = blocking::is_large_text(cached.bytes);
        let mut input = cached_input(cached, &requested);
        input.titles = self
            .column_titles(&input.envelope.results, &Map::new())
            .await;
        let render = || render::render(input, &requested.view);
        let rendered = blocking::run(is_large, render).await.map_err(|error| {
            ToolError::invalid(&cached.operation, options::view_problem(&error))
        })?;
        cache.store_view(
            self.owner,
            &cached.id,
            requested,
            Arc::new(rendered.clone()),
        );
        Ok(rendered)
    }
}

/// Returns whether the response of an operation may outlive its call, in the cache and the store.
fn may_be_stored(operation: &Operation) -> bool {
    !operation.behavior.secret && !operation.api.admin_only
}

/// Returns the JSON of a value, unless it has more than `max` bytes.
fn json_within(value: &Value, max: usize) -> Option<String> {
    let mut text = BoundedText {
        bytes: Vec::new(),
        max,
    };
    serde_json::to_writer(&mut text, value).ok()?;
    String::from_utf8(text.bytes).ok()
}

/// A writer that fails beyond a number of bytes.
struct BoundedText {
    bytes: Vec<u8>,
    max: usize,
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.max.saturating_sub(self.bytes.len()) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a cached result for rendering, with a warning if it has less than the requested level.
fn cached_input<'a>(cached: &'a CachedResult, requested: &RequestedView) -> RenderInput<'a> {
    let lower = cached
        .fetched_level()
        .filter(|level| Some(*level) < requested.level);
    let warnings = lower.map(|level| {
        format!(
            "only {} content was requested from Exa; for more, call without cache_id and with content_level \"{}\"",
            level.name(),
            requested.view.level.name(),
        )
    });
    RenderInput {
        corrections: requested.corrections.clone(),
        warnings: warnings.into_iter().collect(),
        sent_filters: requested.sent_filters.clone(),
        ..cached.to_render_input()
    }
}

/// Returns the texts among arguments, alone or in lists.
fn texts(arguments: &Map<String, Value>) -> Vec<String> {
    let lists = arguments.values().map(|value| match value {
        Value::Array(list) => list.as_slice(),
        other => std::slice::from_ref(other),
    });
    lists
        .flatten()
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect()
}

/// Returns the request in one line.
fn title(operation: &Operation, arguments: &Map<String, Value>) -> String {
    let main = arguments.values().find_map(|value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => list.first()?.as_str().map(str::to_owned),
        _ => None,
    });
    let title = match main {
        Some(main) => format!("{}: {main}", operation.name),
        None => operation.name.to_owned(),
    };
    title
        .chars()
        .filter(|c| !c.is_control())
        .take(120)
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_the_size_of_json() {
        let value = json!({"a": [1, "ä"]});
        let text = value.to_string();
        assert_eq!(json_within(&value, text.len()), Some(text.clone()));
        assert_eq!(json_within(&value, text.len() - 1), None);
        assert_eq!(json_within(&value, 0), None);
    }
}

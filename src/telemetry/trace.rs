//! The trace context of a request, in the format of W3C Trace Context.
//!
//! A client sends it in `_meta` or in HTTP headers, and requests to Exa propagate it. Malformed values are
//! ignored, as the standard requires.

use std::future::Future;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// The maximum length of `tracestate` that the standard requires to be propagated.
const MAX_STATE_BYTES: usize = 512;

tokio::task_local! {
    static TRACE: TraceContext;
}

/// The trace context of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceContext {
    parent: HeaderValue,
    state: Option<HeaderValue>,
}

impl TraceContext {
    /// Returns the trace context of a request, from its metadata or else from its headers.
    pub(crate) fn from_request(
        meta: &Map<String, Value>,
        headers: Option<&HeaderMap>,
    ) -> Option<Self> {
        let text = |name: &str| meta.get(name).and_then(Value::as_str);
        let header = |name: &str| headers?.get(name)?.to_str().ok();
        Self::parse(text(PARENT), text(STATE))
            .or_else(|| Self::parse(header(PARENT), header(STATE)))
    }

    /// Parses the values of `traceparent` and `tracestate`.
    pub(super) fn parse(parent: Option<&str>, state: Option<&str>) -> Option<Self> {
        let parent = parent.filter(|parent| is_valid_parent(parent))?;
        let state = state.filter(|state| !state.is_empty() && state.len() <= MAX_STATE_BYTES);
        Some(Self {
            parent: HeaderValue::from_str(parent).ok()?,
            state: state.and_then(|state| HeaderValue::from_str(state).ok()),
        })
    }

    /// Returns the current trace context.
    pub(crate) fn current() -> Option<Self> {
        TRACE.try_with(Clone::clone).ok()
    }

    /// Returns the headers that propagate the trace context.
    pub(crate) fn headers(self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let parent = (HeaderName::from_static(PARENT), self.parent);
        let state = self
            .state
            .map(|state| (HeaderName::from_static(STATE), state));
        std::iter::once(parent).chain(state)
    }

    /// Runs a future within a trace context, if there is one.
    pub(crate) async fn scope<F: Future>(trace: Option<Self>, future: F) -> F::Output {
        match trace {
            Some(trace) => TRACE.scope(trace, future).await,
            None => future.await,
        }
    }
}

/// Runs a future with the caller's trace context.
pub(super) fn inherit_trace<F>(future: F) -> impl Future<Output = F::Output> + Send
where
    F: Future + Send,
{
    TraceContext::scope(TraceContext::current(), future)
}

/// Returns whether the text is `version-trace-parent-flags` in hexadecimal digits, with nonzero ids.
fn is_valid_parent(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut next = |length: usize| {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let part = parts.next().filter(|part| part.len() == length);
        part.filter(|part| part.bytes().all(hex))
    };
    let (version, trace, parent, flags) = (next(2), next(32), next(16), next(2));
    let named = |part: Option<&str>| part.is_some_and(|part| part.bytes().any(|byte| byte != b'0'));
    let known = version.is_some_and(|version| version != "ff");
    // Later versions may have more parts, but version 00 has exactly these.
    let complete = version != Some("00") || parts.next().is_none();
    known && named(trace) && named(parent) && flags.is_some() && complete
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PARENT_VALUE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn meta(parent: &str, state: &str) -> Map<String, Value> {
        let mut meta = Map::new();
        meta.insert(PARENT.to_owned(), Value::from(parent));
        meta.insert(STATE.to_owned(), Value::from(state));
        meta
    }

    #[test]
    fn prefers_metadata_over_headers() {
        let mut headers = HeaderMap::new();
        headers.insert(PARENT, HeaderValue::from_static(PARENT_VALUE));
        let other = PARENT_VALUE.replace("b7", "c7");
        let trace = TraceContext::from_request(&meta(&other, "a=b"), Some(&headers)).unwrap();
        assert_eq!(trace.parent, other.as_str());
        assert_eq!(trace.headers().count(), 2);
        let trace = TraceContext::from_request(&Map::new(), Some(&headers)).unwrap();
        assert_eq!(trace.parent, PARENT_VALUE);
        assert_eq!(TraceContext::from_request(&Map::new(), None), None);
    }

    #[test]
    fn ignores_malformed_values() {
        assert!(is_valid_parent(PARENT_VALUE));
        assert!(is_valid_parent(&format!(
            "{}-more",
            PARENT_VALUE.replacen("00", "01", 1)
        )));
        for bad in [
            "",
            "00",
            &PARENT_VALUE.to_uppercase(),
            &PARENT_VALUE.replace("b7ad6b7169203331", "0000000000000000"),
            &PARENT_VALUE.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &PARENT_VALUE.replacen("00", "ff", 1),
            &format!("{PARENT_VALUE}-more"),
            &PARENT_VALUE.replace("-01", "-1"),
            &PARENT_VALUE.replace('-', " "),
        ] {
            assert!(!is_valid_parent(bad), "{bad}");
        }
        let long = TraceContext::from_request(&meta(PARENT_VALUE, &"x".repeat(600)), None).unwrap();
        assert_eq!(long.state, None);
        let broken = TraceContext::from_request(&meta(PARENT_VALUE, "a=b\r\nx: y"), None).unwrap();
        assert_eq!(broken.state, None);
    }

    #[tokio::test]
    async fn spawned_tasks_inherit_the_trace() {
        let trace = TraceContext::from_request(&meta(PARENT_VALUE, ""), None);
        let inherited = TraceContext::scope(trace.clone(), async {
            tokio::spawn(inherit_trace(async { TraceContext::current() }))
                .await
                .unwrap()
        });
        assert_eq!(inherited.await, trace);
        assert_eq!(TraceContext::current(), None);
    }
}

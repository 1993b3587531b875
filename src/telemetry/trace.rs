//! The trace that a request belongs to, as W3C Trace Context writes it.
//!
//! A client names it in `_meta` of a request or in the headers of HTTP; requests to Exa carry it on. What
//! is malformed is left out, as the standard says.

use std::future::Future;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// What a trace may tell of itself beside its parent, in bytes; the standard asks for no more.
const LONGEST_STATE: usize = 512;

tokio::task_local! {
    static TRACE: Trace;
}

/// The trace that a request belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    parent: HeaderValue,
    state: Option<HeaderValue>,
}

impl Trace {
    /// The trace that a request names: in its metadata, else in the headers it came with.
    pub(crate) fn of(meta: &Map<String, Value>, headers: Option<&HeaderMap>) -> Option<Self> {
        let text = |name: &str| meta.get(name).and_then(Value::as_str);
        let header = |name: &str| headers?.get(name)?.to_str().ok();
        Self::read(text(PARENT), text(STATE)).or_else(|| Self::read(header(PARENT), header(STATE)))
    }

    /// The trace that these texts name.
    pub(super) fn read(parent: Option<&str>, state: Option<&str>) -> Option<Self> {
        let parent = parent.filter(|parent| is_parent(parent))?;
        let state = state.filter(|state| !state.is_empty() && state.len() <= LONGEST_STATE);
        Some(Self {
            parent: HeaderValue::from_str(parent).ok()?,
            state: state.and_then(|state| HeaderValue::from_str(state).ok()),
        })
    }

    /// The trace that runs here.
    pub(crate) fn current() -> Option<Self> {
        TRACE.try_with(Clone::clone).ok()
    }

    /// The headers by which it goes on.
    pub(crate) fn headers(self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let parent = (HeaderName::from_static(PARENT), self.parent);
        let state = self
            .state
            .map(|state| (HeaderName::from_static(STATE), state));
        std::iter::once(parent).chain(state)
    }

    /// Runs a future that belongs to a trace, if it does.
    pub(crate) async fn during<F: Future>(trace: Option<Self>, future: F) -> F::Output {
        match trace {
            Some(trace) => TRACE.scope(trace, future).await,
            None => future.await,
        }
    }
}

/// Runs a future in the trace of whoever calls this.
pub(super) fn inherited<F>(future: F) -> impl Future<Output = F::Output> + Send
where
    F: Future + Send,
{
    Trace::during(Trace::current(), future)
}

/// Whether a text is `version-trace-parent-flags` in hexadecimal digits, none of them all zeros.
fn is_parent(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut next = |length: usize| {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let part = parts.next().filter(|part| part.len() == length);
        part.filter(|part| part.bytes().all(hex))
    };
    let (version, trace, parent, flags) = (next(2), next(32), next(16), next(2));
    let named = |part: Option<&str>| part.is_some_and(|part| part.bytes().any(|byte| byte != b'0'));
    let known = version.is_some_and(|version| version != "ff");
    // Later versions may have more parts, the first has exactly these.
    let complete = version != Some("00") || parts.next().is_none();
    known && named(trace) && named(parent) && flags.is_some() && complete
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PARENT_OF: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn meta(parent: &str, state: &str) -> Map<String, Value> {
        let mut meta = Map::new();
        meta.insert(PARENT.to_owned(), Value::from(parent));
        meta.insert(STATE.to_owned(), Value::from(state));
        meta
    }

    #[test]
    fn metadata_comes_before_headers() {
        let mut headers = HeaderMap::new();
        headers.insert(PARENT, HeaderValue::from_static(PARENT_OF));
        let other = PARENT_OF.replace("b7", "c7");
        let trace = Trace::of(&meta(&other, "a=b"), Some(&headers)).unwrap();
        assert_eq!(trace.parent, other.as_str());
        assert_eq!(trace.headers().count(), 2);
        let trace = Trace::of(&Map::new(), Some(&headers)).unwrap();
        assert_eq!(trace.parent, PARENT_OF);
        assert_eq!(Trace::of(&Map::new(), None), None);
    }

    #[test]
    fn what_is_malformed_is_left_out() {
        assert!(is_parent(PARENT_OF));
        assert!(is_parent(&format!(
            "{}-more",
            PARENT_OF.replacen("00", "01", 1)
        )));
        for bad in [
            "",
            "00",
            &PARENT_OF.to_uppercase(),
            &PARENT_OF.replace("b7ad6b7169203331", "0000000000000000"),
            &PARENT_OF.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &PARENT_OF.replacen("00", "ff", 1),
            &format!("{PARENT_OF}-more"),
            &PARENT_OF.replace("-01", "-1"),
            &PARENT_OF.replace('-', " "),
        ] {
            assert!(!is_parent(bad), "{bad}");
        }
        let long = Trace::of(&meta(PARENT_OF, &"x".repeat(600)), None).unwrap();
        assert_eq!(long.state, None);
        let broken = Trace::of(&meta(PARENT_OF, "a=b\r\nx: y"), None).unwrap();
        assert_eq!(broken.state, None);
    }

    #[tokio::test]
    async fn work_that_goes_on_keeps_the_trace() {
        let trace = Trace::of(&meta(PARENT_OF, ""), None);
        let kept = Trace::during(trace.clone(), async {
            tokio::spawn(inherited(async { Trace::current() }))
                .await
                .unwrap()
        });
        assert_eq!(kept.await, trace);
        assert_eq!(Trace::current(), None);
    }
}

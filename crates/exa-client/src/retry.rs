//! Retry policy and backoff.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, header::RETRY_AFTER};

use super::ExaErrorKind;

/// When and how often a failed request is retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of retries.
    pub max_retries: u32,
    /// The maximum of the first wait; it doubles with each retry.
    pub base_delay: Duration,
    /// The maximum of any wait without `Retry-After`.
    pub max_delay: Duration,
    /// The maximum of all waits of one call together; zero disables retries.
    pub max_total_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 3,
            base_delay: Duration::from_millis(250),
            max_delay: Duration::from_secs(8),
            max_total_wait: Duration::from_secs(30),
        }
    }
}

/// The possible effect of a failed attempt on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The server has not acted, so any request may be retried.
    None,
    /// The server may have acted, so only idempotent requests may be retried.
    Unknown,
    /// A retry would not help or take too long.
    Final,
}

impl Effect {
    /// Returns the effect of an attempt that failed with this kind of error.
    pub(super) fn from_error_kind(kind: ExaErrorKind) -> Self {
        match kind {
            ExaErrorKind::Api(429 | 503) | ExaErrorKind::Connect => Self::None,
            ExaErrorKind::Api(408 | 500..=599) | ExaErrorKind::ConnectionLost => Self::Unknown,
            _ => Self::Final,
        }
    }

    /// Returns whether a request with this method may be retried.
    pub(super) fn allows(self, method: &Method) -> bool {
        let idempotent = [Method::GET, Method::HEAD, Method::PUT, Method::DELETE];
        match self {
            Self::None => true,
            Self::Unknown => idempotent.contains(method),
            Self::Final => false,
        }
    }
}

/// The retry state of one call.
pub(super) struct Backoff<'a> {
    policy: &'a RetryPolicy,
    retries: u32,
    remaining: Duration,
}

impl<'a> Backoff<'a> {
    pub(super) fn new(policy: &'a RetryPolicy) -> Self {
        Self {
            policy,
            retries: 0,
            remaining: policy.max_total_wait,
        }
    }

    /// Returns the wait before the next attempt, or `None` if there must not be one. `Retry-After` is a
    /// minimum; if it exceeds the remaining time, there is no retry.
    pub(super) fn next(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        if self.retries >= self.policy.max_retries || self.remaining.is_zero() {
            return None;
        }
        let jitter = self.jitter().min(self.remaining);
        let wait = retry_after.map_or(jitter, |wait| wait.max(jitter));
        self.remaining = self.remaining.checked_sub(wait)?;
        self.retries += 1;
        Some(wait)
    }

    /// Returns an exponential backoff with full jitter, so that clients do not retry in lockstep.
    fn jitter(&self) -> Duration {
        let factor = 1_u32.checked_shl(self.retries).unwrap_or(u32::MAX);
        let ceiling = self.policy.base_delay.saturating_mul(factor);
        ceiling.min(self.policy.max_delay).mul_f64(fastrand::f64())
    }
}

/// Parses `Retry-After`: seconds, or a date.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that overflows is an endless wait, not an invalid one.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn read(value: &str, now: SystemTime) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(value).unwrap());
        retry_after(&headers, now)
    }

    #[test]
    fn parses_retry_after_as_seconds_or_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(read("120", now), Some(Duration::from_secs(120)));
        assert_eq!(read(" 0 ", now), Some(Duration::ZERO));
        let date = read("Sun, 06 Nov 1994 08:49:47 GMT", now);
        assert_eq!(date, Some(Duration::from_secs(10)));
        let past = read("Sun, 06 Nov 1994 08:49:27 GMT", now);
        assert_eq!(past, Some(Duration::ZERO));
        let endless = read("99999999999999999999999", now);
        assert_eq!(endless, Some(Duration::from_secs(u64::MAX)));
        for invalid in ["later", "-1", "1.5", ""] {
            assert_eq!(read(invalid, now), None, "{invalid}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn waits_grow_up_to_the_maximum() {
        let policy = RetryPolicy {
            max_retries: 40,
            max_delay: Duration::from_secs(1),
            max_total_wait: Duration::from_secs(600),
            ..RetryPolicy::default()
        };
        let mut backoff = Backoff::new(&policy);
        for retry in 0..40_u32 {
            let wait = backoff.next(None).unwrap();
            let ceiling = Duration::from_millis(250) * 2_u32.pow(retry.min(3));
            assert!(wait <= ceiling.min(policy.max_delay), "{retry}: {wait:?}");
        }
        assert_eq!(backoff.next(None), None);
    }

    #[test]
    fn retry_after_is_a_minimum_within_the_total() {
        let policy = RetryPolicy::default();
        let mut backoff = Backoff::new(&policy);
        let wait = backoff.next(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(wait, Duration::from_secs(20));
        assert_eq!(backoff.next(Some(Duration::from_secs(11))), None);
        let none = RetryPolicy {
            max_total_wait: Duration::ZERO,
            ..policy
        };
        assert_eq!(Backoff::new(&none).next(None), None);
    }

    #[test]
    fn retries_only_idempotent_methods_after_an_unknown_effect() {
        for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE] {
            assert!(Effect::Unknown.allows(&method), "{method}");
        }
        for method in [Method::POST, Method::PATCH] {
            assert!(!Effect::Unknown.allows(&method), "{method}");
            assert!(Effect::None.allows(&method), "{method}");
        }
        assert!(!Effect::Final.allows(&Method::GET));
    }
}

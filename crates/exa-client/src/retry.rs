//! When a request is sent again, and how long to wait before.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, header::RETRY_AFTER};

use super::ExaErrorKind;

/// How often and how patiently a failed request is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a request is sent again at most.
    pub max_retries: u32,
    /// The upper end of the first wait; it doubles with each retry.
    pub base_delay: Duration,
    /// The upper end of any wait that the server did not ask for.
    pub max_delay: Duration,
    /// How long all waits of one call may take together; zero means that nothing is sent again.
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

/// What a failed attempt may have done on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The server cannot have acted, so any request may be sent again.
    None,
    /// The server may have acted, so only requests that bear repetition may be sent again.
    Unknown,
    /// Sending the same again would not help, or take too long.
    Final,
}

impl Effect {
    /// The effect of an attempt that failed in this way.
    pub(super) fn of(kind: ExaErrorKind) -> Self {
        match kind {
            ExaErrorKind::Api(429 | 503) | ExaErrorKind::Connect => Self::None,
            ExaErrorKind::Api(408 | 500..=599) | ExaErrorKind::ConnectionLost => Self::Unknown,
            _ => Self::Final,
        }
    }

    /// Says whether a request of this method may be sent again.
    pub(super) fn allows(self, method: &Method) -> bool {
        let repeatable = [Method::GET, Method::HEAD, Method::PUT, Method::DELETE];
        match self {
            Self::None => true,
            Self::Unknown => repeatable.contains(method),
            Self::Final => false,
        }
    }
}

/// The waits of one call.
pub(super) struct Backoff<'a> {
    policy: &'a RetryPolicy,
    retries: u32,
    left: Duration,
}

impl<'a> Backoff<'a> {
    pub(super) fn new(policy: &'a RetryPolicy) -> Self {
        Self {
            policy,
            retries: 0,
            left: policy.max_total_wait,
        }
    }

    /// How long to wait before the next attempt, or nothing if there is to be none. The server's own
    /// wish is a minimum; if it is longer than what is left, waiting would be in vain.
    pub(super) fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        if self.retries >= self.policy.max_retries || self.left.is_zero() {
            return None;
        }
        let own = self.jitter().min(self.left);
        let wait = asked.map_or(own, |asked| asked.max(own));
        self.left = self.left.checked_sub(wait)?;
        self.retries += 1;
        Some(wait)
    }

    /// Exponential back-off with full jitter, so that many clients do not come back at once.
    fn jitter(&self) -> Duration {
        let factor = 1_u32.checked_shl(self.retries).unwrap_or(u32::MAX);
        let ceiling = self.policy.base_delay.saturating_mul(factor);
        ceiling.min(self.policy.max_delay).mul_f64(fastrand::f64())
    }
}

/// Reads `Retry-After`: seconds, or the date from which to try again.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that overflow mean a wait without end, not one of no length.
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
    fn retry_after_is_read_as_seconds_or_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(read("120", now), Some(Duration::from_secs(120)));
        assert_eq!(read(" 0 ", now), Some(Duration::ZERO));
        let date = read("Sun, 06 Nov 1994 08:49:47 GMT", now);
        assert_eq!(date, Some(Duration::from_secs(10)));
        let past = read("Sun, 06 Nov 1994 08:49:27 GMT", now);
        assert_eq!(past, Some(Duration::ZERO));
        let endless = read("99999999999999999999999", now);
        assert_eq!(endless, Some(Duration::from_secs(u64::MAX)));
        for odd in ["soon", "-1", "1.5", ""] {
            assert_eq!(read(odd, now), None, "{odd}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn waits_grow_up_to_the_cap_and_end_after_the_retries() {
        let policy = RetryPolicy {
            max_retries: 40,
            max_delay: Duration::from_secs(1),
            max_total_wait: Duration::from_secs(600),
            ..RetryPolicy::default()
        };
        let mut waits = Backoff::new(&policy);
        for retry in 0..40_u32 {
            let wait = waits.next(None).unwrap();
            let ceiling = Duration::from_millis(250) * 2_u32.pow(retry.min(3));
            assert!(wait <= ceiling.min(policy.max_delay), "{retry}: {wait:?}");
        }
        assert_eq!(waits.next(None), None);
    }

    #[test]
    fn the_wish_of_the_server_is_a_minimum_within_the_total() {
        let policy = RetryPolicy::default();
        let mut waits = Backoff::new(&policy);
        let wait = waits.next(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(wait, Duration::from_secs(20));
        assert_eq!(waits.next(Some(Duration::from_secs(11))), None);
        let none = RetryPolicy {
            max_total_wait: Duration::ZERO,
            ..policy
        };
        assert_eq!(Backoff::new(&none).next(None), None);
    }

    #[test]
    fn only_repeatable_methods_follow_an_unknown_effect() {
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

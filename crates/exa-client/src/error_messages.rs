//! The messages of errors: what happened, why, and what to do about it.

use std::fmt;

use http::StatusCode;

use super::{ExaError, ExaErrorKind, text};
use exa_mcp_text::is_identifier;

const KEYS_PAGE: &str = "https://dashboard.exa.ai/api-keys";

impl fmt::Display for ExaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let ExaErrorKind::Api(status) = self.kind {
            let name = status_name(status);
            write!(f, "The Exa API answered {name}")?;
            // Without words of the API, the message is the name of the status.
            if !self.message.is_empty() && name != format!("{status} {}", self.message) {
                write!(f, ": {}", self.message)?;
            }
        } else {
            f.write_str(&self.message)?;
        }
        if !self.message.ends_with(['.', '!', '?', '…']) {
            f.write_str(".")?;
        }
        let advice = self.advice();
        if !advice.is_empty() {
            write!(f, " {advice}")?;
        }
        Ok(())
    }
}

/// Stands for the words of others where only our own are told.
const QUOTED: &str = "(quoted below)";

impl ExaError {
    /// What happened and what to do, in our own words alone. Those of others are told by
    /// [`Self::untrusted_text`].
    #[must_use]
    pub fn trusted_text(&self) -> String {
        let mut text = match self.kind {
            ExaErrorKind::Api(status) => format!("The Exa API answered {}.", status_name(status)),
            _ => self.trusted_message(),
        };
        if !text.ends_with(['.', '!', '?', '…']) {
            text.push('.');
        }
        let advice = self.advice();
        if !advice.is_empty() {
            text.push(' ');
            text.push_str(&advice);
        }
        text
    }

    /// The message without the words of others. Of an error of the API nothing is left.
    #[must_use]
    pub fn trusted_message(&self) -> String {
        match (&self.quote, self.kind) {
            (_, ExaErrorKind::Api(_)) => String::new(),
            (Some(said), _) if !said.0.is_empty() => self.message.replacen(&said.0, QUOTED, 1),
            _ => self.message.clone(),
        }
    }

    /// What others said of the failure, if they did. It may hold anything, instructions included.
    #[must_use]
    pub fn untrusted_text(&self) -> Option<&str> {
        let words = match self.kind {
            ExaErrorKind::Api(status) => {
                let is_reason = status_name(status) == format!("{status} {}", self.message);
                Some(self.message.as_str()).filter(|_| !is_reason)
            }
            _ => self.quote.as_ref().map(|said| said.0.as_str()),
        };
        words.filter(|words| !words.is_empty())
    }

    /// What others wrote, by the names of the fields: their words, names that are no plain names, and
    /// the detail.
    #[must_use]
    pub fn untrusted_fields(&self) -> Vec<(&'static str, String)> {
        let words = match self.kind {
            ExaErrorKind::Api(_) => "message",
            _ => "said",
        };
        let odd = |name: &Option<String>| name.clone().filter(|name| !is_identifier(name));
        let quotes = [
            (words, self.untrusted_text().map(str::to_owned)),
            ("tag", odd(&self.tag)),
            ("requestId", odd(&self.request_id)),
            ("detail", self.detail.as_ref().map(ToString::to_string)),
        ];
        let quotes = quotes.into_iter();
        quotes
            .filter_map(|(name, text)| Some((name, text?)))
            .collect()
    }

    /// The same as [`Self::detail_lines`] without what [`Self::untrusted_fields`] gives.
    #[must_use]
    pub fn trusted_lines(&self) -> Vec<String> {
        let plain = |name: &Option<String>| name.clone().filter(|name| is_identifier(name));
        let plain = Self {
            tag: plain(&self.tag),
            request_id: plain(&self.request_id),
            detail: None,
            ..self.clone()
        };
        plain.detail_lines()
    }

    /// What else is known, as `name: value` lines: tag, request id, wait, attempts and detail.
    #[must_use]
    pub fn detail_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(tag) = &self.tag {
            lines.push(format!("tag: {tag}"));
        }
        if let Some(id) = &self.request_id {
            lines.push(format!("request id: {id}"));
        }
        if let Some(wait) = self.retry_after {
            lines.push(format!("retry after: {}", text::duration(wait)));
        }
        if self.attempts > 1 {
            lines.push(format!("attempts: {}", self.attempts));
        }
        if let Some(detail) = &self.detail {
            lines.push(format!("detail: {detail}"));
        }
        lines
    }

    /// What to do about the error; empty where its message already says so.
    #[must_use]
    pub fn advice(&self) -> String {
        match self.kind {
            ExaErrorKind::Api(status) => self.api_advice(status),
            ExaErrorKind::Timeout | ExaErrorKind::ConnectionLost => {
                "Try again, but if the request was to create or change something, first check \
                 whether it took effect."
                    .to_owned()
            }
            ExaErrorKind::Connect => "Check the network connection, the proxy settings \
                 (HTTPS_PROXY) and EXA_BASE_URL, then try again."
                .to_owned(),
            ExaErrorKind::TooLarge => {
                "Ask for less: fewer results, a smaller page or shorter contents.".to_owned()
            }
            ExaErrorKind::Stream if self.is_about_credits() => self.api_advice(402),
            ExaErrorKind::Stream => self
                .status
                .map_or_else(String::new, |status| self.api_advice(status)),
            ExaErrorKind::NotJson
            | ExaErrorKind::Upload
            | ExaErrorKind::Redirect
            | ExaErrorKind::InvalidRequest
            | ExaErrorKind::Config
            | ExaErrorKind::NotAllowed => String::new(),
        }
    }

    fn api_advice(&self, status: u16) -> String {
        if self.is_about_credits() {
            return "Top up the credits at https://dashboard.exa.ai, or raise the budget of the API \
                    key."
                .to_owned();
        }
        let advice = match status {
            401 => return format!("Check that EXA_API_KEY holds a valid key; see {KEYS_PAGE}."),
            403 => {
                "The API key may not do this: check its permissions and your plan, or the content \
                 is blocked by Exa's policy."
            }
            404 => {
                "Check the id: it may be misspelt, deleted, or belong to the account of another API \
                 key."
            }
            409 => {
                "Something with this identifier exists already or is in a state that forbids this: \
                 fetch it, then change it or use another identifier."
            }
            413 => "Send a smaller request.",
            400 | 422 => "Correct what the message names, then send the request again.",
            405 => "Check that EXA_BASE_URL points to the Exa API.",
            407 => "Check the user name and password of the proxy in HTTPS_PROXY.",
            429 => return self.wait_advice(),
            408 | 500..=599 => {
                "This is trouble on the side of Exa: try again later, see https://status.exa.ai, and \
                 quote the request id if it persists."
            }
            _ => "",
        };
        advice.to_owned()
    }

    fn wait_advice(&self) -> String {
        let wait = self.retry_after.map_or_else(
            || "a few seconds".to_owned(),
            |wait| format!("at least {}", text::duration(wait)),
        );
        format!("Too many requests at once: wait {wait}, then try again with fewer at a time.")
    }
}

/// A status with its name, such as `404 Not Found`.
pub(super) fn status_name(status: u16) -> String {
    let code = StatusCode::from_u16(status).ok();
    match code.and_then(|code| code.canonical_reason()) {
        Some(reason) => format!("{status} {reason}"),
        None => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn api(status: u16, message: &str) -> ExaError {
        let mut error = ExaError::new(ExaErrorKind::Api(status), message);
        error.status = Some(status);
        error
    }

    #[test]
    fn an_api_error_says_what_why_and_what_to_do() {
        let text = api(401, "Invalid API key").to_string();
        assert_eq!(
            text,
            "The Exa API answered 401 Unauthorized: Invalid API key. Check that EXA_API_KEY holds a \
             valid key; see https://dashboard.exa.ai/api-keys."
        );
        let text = api(502, "Bad Gateway").to_string();
        assert!(
            text.starts_with("The Exa API answered 502 Bad Gateway. This"),
            "{text}"
        );
        assert_eq!(
            api(418, "Short.").to_string(),
            "The Exa API answered 418 I'm a teapot: Short."
        );
    }

    #[test]
    fn each_class_has_its_advice() {
        for (status, part) in [
            (400, "Correct"),
            (402, "credits"),
            (403, "permissions"),
            (404, "id"),
            (409, "identifier"),
            (429, "wait a few seconds"),
            (500, "try again later"),
            (504, "try again later"),
        ] {
            let text = api(status, "x").to_string();
            assert!(text.contains(part), "{text}");
        }
        let mut error = api(429, "slow down");
        error.retry_after = Some(Duration::from_millis(11_500));
        assert!(error.to_string().contains("wait at least 12 s"), "{error}");
        error.tag = Some("API_KEY_BUDGET_EXCEEDED".to_owned());
        assert!(error.to_string().contains("budget"), "{error}");
        let error = ExaError::new(ExaErrorKind::Timeout, "No answer within 1 s.");
        assert!(error.to_string().contains("took effect"), "{error}");
    }

    #[test]
    fn lines_name_what_else_is_known() {
        let mut error = api(429, "x");
        assert_eq!(error.detail_lines(), Vec::<String>::new());
        error.tag = Some("T".to_owned());
        error.request_id = Some("r1".to_owned());
        error.retry_after = Some(Duration::from_secs(3));
        error.attempts = 4;
        error.detail = Some(Box::new(json!(["a"])));
        assert_eq!(
            error.detail_lines(),
            [
                "tag: T",
                "request id: r1",
                "retry after: 3 s",
                "attempts: 4",
                "detail: [\"a\"]"
            ]
        );
    }
}

//! Error messages: what happened, why, and what to do about it.

use std::fmt;

use http::StatusCode;

use super::{ExaError, ExaErrorKind, text};
use exa_mcp_model::KeyKind;
use exa_mcp_text::is_identifier;

impl fmt::Display for ExaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let ExaErrorKind::Api(status) = self.kind {
            let name = status_name(status);
            write!(f, "The Exa API returned {name}")?;
            // Without a message from the API, the message is the reason phrase.
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

/// Replaces untrusted text in a trusted message.
const QUOTE_PLACEHOLDER: &str = "(quoted below)";

impl ExaError {
    /// Returns what happened and what to do, without untrusted text; see [`Self::untrusted_text`].
    #[must_use]
    pub fn trusted_text(&self) -> String {
        let mut text = match self.kind {
            ExaErrorKind::Api(status) => format!("The Exa API returned {}.", status_name(status)),
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

    /// Returns the message without untrusted text. Empty for an error of the API.
    #[must_use]
    pub fn trusted_message(&self) -> String {
        match (&self.quote, self.kind) {
            (_, ExaErrorKind::Api(_)) => String::new(),
            (Some(quote), _) if !quote.0.is_empty() => {
                self.message.replacen(&quote.0, QUOTE_PLACEHOLDER, 1)
            }
            _ => self.message.clone(),
        }
    }

    /// Returns the untrusted text of the message, which may contain anything, including instructions.
    #[must_use]
    pub fn untrusted_text(&self) -> Option<&str> {
        let text = match self.kind {
            ExaErrorKind::Api(status) => {
                let is_reason = status_name(status) == format!("{status} {}", self.message);
                Some(self.message.as_str()).filter(|_| !is_reason)
            }
            _ => self.quote.as_ref().map(|quote| quote.0.as_str()),
        };
        text.filter(|text| !text.is_empty())
    }

    /// Returns the untrusted fields by name: the message, a tag or request id that is not an identifier, and
    /// the detail.
    #[must_use]
    pub fn untrusted_fields(&self) -> Vec<(&'static str, String)> {
        let text_field = match self.kind {
            ExaErrorKind::Api(_) => "message",
            _ => "said",
        };
        let untrusted = |name: &Option<String>| name.clone().filter(|name| !is_identifier(name));
        let fields = [
            (text_field, self.untrusted_text().map(str::to_owned)),
            ("tag", untrusted(&self.tag)),
            ("requestId", untrusted(&self.request_id)),
            ("detail", self.detail.as_ref().map(ToString::to_string)),
        ];
        fields
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?)))
            .collect()
    }

    /// Returns [`Self::detail_lines`] without the [`Self::untrusted_fields`].
    #[must_use]
    pub fn trusted_lines(&self) -> Vec<String> {
        let trusted = |name: &Option<String>| name.clone().filter(|name| is_identifier(name));
        let trusted = Self {
            tag: trusted(&self.tag),
            request_id: trusted(&self.request_id),
            detail: None,
            ..self.clone()
        };
        trusted.detail_lines()
    }

    /// Returns further details as `name: value` lines: tag, request id, wait, attempts and detail.
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

    /// Returns what to do about the error; empty if the message already says so.
    #[must_use]
    pub fn advice(&self) -> String {
        match self.kind {
            ExaErrorKind::Api(status) => self.api_advice(status),
            ExaErrorKind::Timeout | ExaErrorKind::ConnectionLost => {
                "Try again. If the request creates or changes something, first check whether it took \
                 effect."
                    .to_owned()
            }
            ExaErrorKind::Connect => format!(
                "Check the network connection, the proxy settings (HTTPS_PROXY) and {}, then try again.",
                self.key.base_url_variable()
            ),
            ExaErrorKind::TooLarge => {
                "Request less: fewer results, a smaller page or shorter contents.".to_owned()
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
            401 => {
                let (variable, page) = (self.key.variable(), self.key.page());
                return format!("Check that {variable} holds a valid key; see {page}.");
            }
            403 if self.key == KeyKind::Service => {
                "The service key is not allowed to do this: check its permissions and your role in the team."
            }
            403 => {
                "The API key is not allowed to do this, or the content is blocked by Exa's policy: check \
                 the permissions of the key and your plan."
            }
            404 => {
                "Check the id: it may be misspelt, deleted, or belong to the account of another API \
                 key."
            }
            409 => {
                "An object with this identifier already exists, or its state does not allow this: \
                 fetch it, then update it or use another identifier."
            }
            413 => "Send a smaller request.",
            400 | 422 => "Correct the request as the message says, then send it again.",
            405 => {
                let variable = self.key.base_url_variable();
                return format!("Check that {variable} points to the Exa API.");
            }
            407 => "Check the user name and password of the proxy in HTTPS_PROXY.",
            429 => return self.wait_advice(),
            408 | 500..=599 => {
                "This is a problem on the side of Exa: try again later, see https://status.exa.ai, and \
                 report the request id if it persists."
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
        format!("Too many requests: wait {wait}, then try again with fewer concurrent requests.")
    }
}

/// Returns a status with its reason phrase, such as `404 Not Found`.
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
    fn api_errors_say_what_happened_and_what_to_do() {
        let text = api(401, "Invalid API key").to_string();
        assert_eq!(
            text,
            "The Exa API returned 401 Unauthorized: Invalid API key. Check that EXA_API_KEY holds a \
             valid key; see https://dashboard.exa.ai/api-keys."
        );
        let text = api(502, "Bad Gateway").to_string();
        assert!(
            text.starts_with("The Exa API returned 502 Bad Gateway. This"),
            "{text}"
        );
        assert_eq!(
            api(418, "Short.").to_string(),
            "The Exa API returned 418 I'm a teapot: Short."
        );
    }

    #[test]
    fn each_status_has_its_advice() {
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
        let error = ExaError::new(ExaErrorKind::Timeout, "No response within 1 s.");
        assert!(error.to_string().contains("took effect"), "{error}");
    }

    #[test]
    fn detail_lines_list_all_fields() {
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

//! Hides secrets of configuration files, those of other servers included, before a change is shown.

use std::ops::Range;

use serde_json::Value;
use url::Url;

/// What is shown instead of a secret.
pub(super) const MASK: &str = "********";

/// Objects whose texts are all taken for secrets.
const CONTAINERS: [&str; 3] = ["env", "headers", "http_headers"];

/// The ends of names of secrets, in lower case.
const NAMES: [&str; 7] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "auth",
    "authorization",
];

/// Parameters of addresses that are no secrets.
const PUBLIC_PARAMETERS: [&str; 1] = ["tools"];

/// Where a text is in a document.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Position<'a> {
    in_container: bool,
    /// The key or, in an array, the element before it.
    label: Option<&'a str>,
}

impl<'a> Position<'a> {
    pub(super) fn member(self, key: &'a str) -> Self {
        Self {
            in_container: self.in_container || CONTAINERS.contains(&key),
            label: Some(key),
        }
    }

    pub(super) fn element(self, previous: Option<&'a str>) -> Self {
        // Only flags announce that a secret follows.
        let label = previous.filter(|text| text.starts_with('-') && !text.contains('='));
        Self {
            in_container: self.in_container,
            label,
        }
    }
}

/// Returns what is shown instead of a text, or nothing if it is no secret.
pub(super) fn redact(text: &str, position: Position<'_>) -> Option<String> {
    if text.is_empty() || is_reference(text) {
        return None;
    }
    let is_secret = position.in_container || position.label.is_some_and(is_secret_name);
    let redacted = if is_secret {
        redact_credentials(text)
    } else {
        redact_argument(text)?
    };
    (redacted != text).then_some(redacted)
}

/// Replaces parts of a text, and keeps its number of lines.
pub(super) fn replace(text: &str, mut replacements: Vec<(Range<usize>, String)>) -> String {
    let mut text = text.to_owned();
    replacements.sort_by_key(|(range, _)| range.start);
    for (range, shown) in replacements.into_iter().rev() {
        let lines = text.get(range.clone()).unwrap_or_default();
        let lines = lines.matches('\n').count();
        let shown = Value::from(shown).to_string() + &"\n".repeat(lines);
        text.replace_range(range, &shown);
    }
    text
}

/// Returns whether a text names a variable or an input instead of containing a secret.
fn is_reference(text: &str) -> bool {
    let text = text.rsplit(' ').next().unwrap_or_default();
    let braces = text.starts_with("${") && text.ends_with('}');
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    braces || text.strip_prefix('$').is_some_and(is_name)
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|end| name.ends_with(end))
}

/// Keeps the scheme of a header such as `Bearer`.
fn redact_credentials(text: &str) -> String {
    match text.split_once(' ') {
        Some((scheme @ ("Bearer" | "Basic"), _)) => format!("{scheme} {MASK}"),
        _ => MASK.to_owned(),
    }
}

/// Redacts an argument or address: `--api-key=…`, `Authorization: …`, `https://user:password@host/?key=…`.
fn redact_argument(text: &str) -> Option<String> {
    if let Some(redacted) = redact_url(text) {
        return Some(redacted);
    }
    let (name, value) = text.split_once(['=', ':'])?;
    let value = value.trim_start();
    if value.is_empty() || is_reference(value) || !is_secret_name(name.trim_end()) {
        return None;
    }
    let lead = text.get(..text.len() - value.len())?;
    Some(format!("{lead}{}", redact_credentials(value)))
}

fn redact_url(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(Url::has_host)?;
    let mut shown = text.to_owned();
    if let Some((scheme, rest)) = text.split_once("://") {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if let Some((user, _)) = authority.rsplit_once('@') {
            let rest = rest.get(user.len()..).unwrap_or_default();
            shown = format!("{scheme}://{MASK}{rest}");
        }
    }
    let query = url.query().unwrap_or_default();
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        if !PUBLIC_PARAMETERS.contains(&name) && !value.is_empty() && !is_reference(value) {
            shown = shown.replace(&format!("{name}={value}"), &format!("{name}={MASK}"));
        }
    }
    Some(shown)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn member(key: &str, text: &str) -> Option<String> {
        redact(text, Position::default().member("exa").member(key))
    }

    #[test]
    fn secrets_are_hidden_and_references_are_not() {
        let env = Position::default().member("env").member("A");
        assert_eq!(redact("value", env).unwrap(), MASK);
        for reference in ["", "$A", "${A}", "${env:A}", "${input:a}", "Bearer ${A}"] {
            assert_eq!(redact(reference, env), None, "{reference}");
        }
        assert_eq!(redact("$money!", env).unwrap(), MASK);
        let headers = Position::default().member("headers").member("X");
        assert_eq!(redact("Bearer abc", headers).unwrap(), "Bearer ********");
        assert_eq!(member("apiKey", "abc").unwrap(), MASK);
        assert_eq!(member("command", "npx"), None);
    }

    #[test]
    fn arguments_and_addresses_are_hidden_in_part() {
        for (text, expected) in [
            ("--api-key=abc", "--api-key=********"),
            (
                "Authorization: Bearer abc",
                "Authorization: Bearer ********",
            ),
            ("https://a:b@h.example/x", "https://********@h.example/x"),
            (
                "https://h.example/mcp?exaApiKey=abc&tools=a,b",
                "https://h.example/mcp?exaApiKey=********&tools=a,b",
            ),
        ] {
            assert_eq!(member("args", text).unwrap(), expected);
        }
        for text in ["--tools=a", "C:\\exa.exe", "https://h.example/mcp", "-y"] {
            assert_eq!(member("args", text), None, "{text}");
        }
        let args = Position::default().member("args");
        assert_eq!(redact("abc", args.element(Some("--token"))).unwrap(), MASK);
        assert_eq!(redact("abc", args.element(Some("--tools"))), None);
        assert_eq!(redact("abc", args.element(Some("token"))), None);
    }
}

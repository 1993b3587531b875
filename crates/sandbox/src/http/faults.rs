//! Simulated faults. A request names one in the header `x-sandbox-fault` or the query parameter
//! `sandboxFault`; rules from `POST /sandbox/faults` apply to future requests.
//!
//! A fault is text (`status=503;retryAfter=2`, `delay=500`, `cut=body`) or a JSON object with the same
//! names.

use serde_json::{Map, Value, json};

use crate::json::opt_text;
use crate::percent::decode;

/// Maximum delay in milliseconds, so that no connection stays open for days.
const MAX_DELAY: u64 = 10 * 60 * 1000;
/// Maximum size of a huge body in bytes.
const MAX_HUGE_BODY: u64 = 1 << 30;
const DEFAULT_HUGE_BODY: u64 = 32 << 20;
/// Maximum number of rules.
const MAX_RULES: usize = 1_000;

/// A fault of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fault {
    /// Milliseconds before the request is executed.
    pub(super) delay: u64,
    /// Milliseconds between the execution and the response.
    pub(super) hold: u64,
    pub(super) status: Option<u16>,
    /// Tag or code of the error body.
    pub(super) tag: Option<String>,
    /// Value of `Retry-After`: seconds or an HTTP date.
    pub(super) retry_after: Option<String>,
    pub(super) effect: FaultEffect,
}

/// What happens to the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum FaultEffect {
    /// The normal response, or the error body for the status.
    #[default]
    Normal,
    Html,
    Empty,
    Huge(u64),
    Malformed,
    Cut(CutPoint),
}

/// The point at which the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutPoint {
    /// Before the request is executed.
    Before,
    /// After the execution, before the response.
    After,
    /// After the execution, in the middle of the response body.
    Body,
}

impl Fault {
    /// Parses text or JSON.
    pub(super) fn from_text(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with('{') {
            let value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
            return Fault::from_json(&value);
        }
        let mut fields = Map::new();
        for part in text
            .split(';')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let (name, value) = part.split_once('=').unwrap_or((part, "true"));
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            fields.insert(name.trim().to_owned(), value);
        }
        Fault::from_json(&Value::Object(fields))
    }

    pub(super) fn from_json(value: &Value) -> Result<Self, String> {
        let Value::Object(fields) = value else {
            return Err("a fault is an object".to_owned());
        };
        if fields.is_empty() {
            return Err(
                "a fault needs at least one of status, tag, delay, hold, cut, html, empty, huge, malformed"
                    .into(),
            );
        }
        let mut fault = Fault::default();
        for (name, value) in fields {
            fault.set(name, value)?;
        }
        Ok(fault)
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match name {
            "status" => self.status = Some(parse_status(value)?),
            "tag" => self.tag = Some(to_text(value)),
            "retryAfter" => self.retry_after = Some(to_text(value)),
            "delay" | "delayMs" => self.delay = parse_number(name, value)?.min(MAX_DELAY),
            "hold" | "holdMs" => self.hold = parse_number(name, value)?.min(MAX_DELAY),
            "cut" => self.effect = FaultEffect::Cut(CutPoint::parse(value)?),
            "html" => self.set_effect(value, FaultEffect::Html)?,
            "empty" => self.set_effect(value, FaultEffect::Empty)?,
            "malformed" => self.set_effect(value, FaultEffect::Malformed)?,
            "huge" if value.as_bool() == Some(true) => {
                self.effect = FaultEffect::Huge(DEFAULT_HUGE_BODY)
            }
            "huge" => {
                self.effect = FaultEffect::Huge(parse_number(name, value)?.min(MAX_HUGE_BODY))
            }
            other => return Err(format!("unknown part '{other}' of a fault")),
        }
        Ok(())
    }

    /// Sets an effect with an optional status: `html`, `html=502` and `html=true;status=502`.
    fn set_effect(&mut self, value: &Value, effect: FaultEffect) -> Result<(), String> {
        match value {
            Value::Bool(false) => return Ok(()),
            Value::Bool(true) => {}
            _ => self.status = Some(parse_status(value)?),
        }
        self.effect = effect;
        Ok(())
    }

    /// Whether the request is executed in spite of the fault.
    pub(super) fn executes_request(&self) -> bool {
        matches!(
            (&self.effect, self.status, &self.tag),
            (FaultEffect::Normal, None, None)
                | (FaultEffect::Cut(CutPoint::After | CutPoint::Body), _, _)
        )
    }
}

impl CutPoint {
    fn parse(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("before") => Ok(CutPoint::Before),
            Some("after") => Ok(CutPoint::After),
            Some("body") => Ok(CutPoint::Body),
            None if value.as_bool() == Some(true) => Ok(CutPoint::Before),
            _ => Err("cut must be before, after or body".to_owned()),
        }
    }
}

fn parse_status(value: &Value) -> Result<u16, String> {
    let code = value.as_u64().and_then(|code| u16::try_from(code).ok());
    code.filter(|code| (200..600).contains(code))
        .ok_or_else(|| "status must be 200 to 599".to_owned())
}

fn parse_number(name: &str, value: &Value) -> Result<u64, String> {
    value
        .as_u64()
        .ok_or_else(|| format!("{name} must be a whole number"))
}

fn to_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The properties of a request that rules match.
pub(super) struct FaultTarget<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) operation: Option<&'a str>,
    pub(super) key: Option<&'a str>,
}

/// A fault for some of the future requests.
pub(crate) struct FaultRule {
    id: u64,
    pattern: String,
    /// Number of matching requests to let through first.
    skip: u64,
    /// Number of matching requests left to fail; `None` means all.
    times: Option<u64>,
    /// Limits the rule to requests with this key; never shown.
    key: Option<String>,
    /// The fault as the client wrote it.
    definition: Value,
    fault: Fault,
}

/// All rules, the oldest first.
#[derive(Default)]
pub(crate) struct FaultRules {
    rules: Vec<FaultRule>,
    next: u64,
}

impl FaultRules {
    /// Adds the rule of a `POST /sandbox/faults` and returns its JSON.
    pub(super) fn add(&mut self, body: &Value) -> Result<Value, String> {
        let Value::Object(fields) = body else {
            return Err("a rule is an object".to_owned());
        };
        const FIELDS: [&str; 5] = ["match", "times", "skip", "key", "fault"];
        let mut names = fields.keys();
        if let Some(name) = names.find(|name| !FIELDS.contains(&name.as_str())) {
            return Err(format!("unknown part '{name}' of a rule"));
        }
        if self.rules.len() >= MAX_RULES {
            return Err(format!("there are {MAX_RULES} rules already"));
        }
        let pattern =
            opt_text(body, "match").ok_or("match must be a text such as 'POST /search'")?;
        let definition = body.get("fault").ok_or("fault is missing")?;
        let fault = match definition {
            Value::String(text) => Fault::from_text(text)?,
            other => Fault::from_json(other)?,
        };
        self.next += 1;
        let rule = FaultRule {
            id: self.next,
            pattern: pattern.to_owned(),
            skip: body
                .get("skip")
                .map_or(Ok(0), |value| parse_number("skip", value))?,
            times: parse_times(body.get("times"))?,
            key: opt_text(body, "key").map(str::to_owned),
            definition: definition.clone(),
            fault,
        };
        let json = rule.to_json();
        self.rules.push(rule);
        Ok(json)
    }

    /// Returns the fault of the first rule that applies to the request, and removes exhausted rules.
    pub(super) fn take(&mut self, target: &FaultTarget<'_>) -> Option<Fault> {
        let mut fault = None;
        for rule in self.rules.iter_mut().filter(|rule| rule.matches(target)) {
            if rule.skip > 0 {
                rule.skip -= 1;
                continue;
            }
            rule.times = rule.times.map(|times| times.saturating_sub(1));
            fault = Some(rule.fault.clone());
            break;
        }
        self.rules.retain(|rule| rule.times != Some(0));
        fault
    }

    pub(super) fn list(&self) -> Vec<Value> {
        self.rules.iter().map(FaultRule::to_json).collect()
    }

    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }
}

/// Parses how often a rule applies: a number or `always`; once by default.
fn parse_times(value: Option<&Value>) -> Result<Option<u64>, String> {
    match value {
        None => Ok(Some(1)),
        Some(Value::String(text)) if text == "always" => Ok(None),
        Some(value) => match value.as_u64() {
            Some(times) if times > 0 => Ok(Some(times)),
            _ => Err("times must be a number above 0, or 'always'".to_owned()),
        },
    }
}

impl FaultRule {
    fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "match": self.pattern,
            "times": self.times.map_or_else(|| Value::from("always"), Value::from),
            "skip": self.skip,
            "onlyOneKey": self.key.is_some(),
            "fault": self.definition,
        })
    }

    fn matches(&self, target: &FaultTarget<'_>) -> bool {
        if self.key.is_some() && self.key.as_deref() != target.key {
            return false;
        }
        match self.pattern.split_once(' ') {
            Some((method, path)) => {
                (method == "*" || method.eq_ignore_ascii_case(target.method))
                    && path_matches(path.trim(), target.path)
            }
            None if self.pattern.starts_with('/') => path_matches(&self.pattern, target.path),
            None => self.pattern == "*" || target.operation == Some(self.pattern.as_str()),
        }
    }
}

/// Matches a path; `*` and `{id}` stand for one segment, a final `**` for any number.
fn path_matches(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    for segment in pattern.split('/') {
        if segment == "**" {
            return true;
        }
        let is_wildcard = segment == "*" || (segment.starts_with('{') && segment.ends_with('}'));
        match parts.next() {
            Some(part) if is_wildcard && !part.is_empty() => {}
            Some(part) if segment == part || segment == decode(part) => {}
            _ => return false,
        }
    }
    parts.next().is_none()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_are_equivalent() {
        let text = Fault::from_text("status=503; retryAfter=2; delay=10").unwrap();
        let object = Fault::from_text(r#"{"status":503,"retryAfter":"2","delayMs":10}"#).unwrap();
        assert_eq!(text, object);
        assert_eq!(
            Fault::from_text("html=502").unwrap(),
            Fault::from_text("html;status=502").unwrap()
        );
        assert_eq!(
            Fault::from_text("cut").unwrap().effect,
            FaultEffect::Cut(CutPoint::Before)
        );
        for invalid in ["", "status=99", "cut=never", "nonsense", "{", "delay=later"] {
            assert!(Fault::from_text(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn rules_apply_to_matching_requests_a_limited_number_of_times() {
        let mut rules = FaultRules::default();
        rules
            .add(&json!({"match": "POST /a/*/b", "times": 2, "skip": 1, "fault": "status=500"}))
            .unwrap();
        let target = |method, path| FaultTarget {
            method,
            path,
            operation: Some("x.y"),
            key: Some("k"),
        };
        assert!(rules.take(&target("GET", "/a/1/b")).is_none());
        assert!(rules.take(&target("POST", "/a/1/c")).is_none());
        let hits: Vec<bool> = (0..4)
            .map(|_| rules.take(&target("POST", "/a/1/b")).is_some())
            .collect();
        assert_eq!(hits, [false, true, true, false]);
        assert!(rules.list().is_empty());

        rules
            .add(&json!({"match": "x.y", "times": "always", "key": "k", "fault": {"empty": true}}))
            .unwrap();
        assert!(rules.take(&target("PUT", "/z")).is_some());
        assert!(
            rules
                .take(&FaultTarget {
                    key: Some("other"),
                    ..target("PUT", "/z")
                })
                .is_none()
        );
        assert!(!rules.list().first().unwrap().to_string().contains("\"k\""));
    }

    #[test]
    fn matches_wildcards() {
        assert!(path_matches("/a/**", "/a/b/c"));
        assert!(path_matches("/a/{id}", "/a/b"));
        assert!(!path_matches("/a/*", "/a/b/c"));
        assert!(!path_matches("/a/*", "/a/"));
        assert!(!path_matches("/a/b", "/a"));
    }
}

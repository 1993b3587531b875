//! Faults on request: by the header `x-sandbox-fault`, by the query parameter `sandboxFault`, or for
//! whole paths by `POST /sandbox/faults`.
//!
//! Written as text (`status=503;retryAfter=2`, `delay=500`, `cut=body`) or as a JSON object with the
//! same names.

use serde_json::{Map, Value, json};

use crate::percent::decode;

/// Longest delay in milliseconds: a forgotten one must not hold a connection for days.
const LONGEST_DELAY: u64 = 10 * 60 * 1000;
/// Largest made-up body in bytes.
const LARGEST_BODY: u64 = 1 << 30;
const USUAL_HUGE_BODY: u64 = 32 << 20;
/// Rules kept at a time.
const MOST_RULES: usize = 1_000;

/// What goes wrong with one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fault {
    /// Milliseconds before anything happens.
    pub(super) delay: u64,
    /// Milliseconds between the effect and the answer.
    pub(super) hold: u64,
    pub(super) status: Option<u16>,
    /// Value of `Retry-After`: seconds or an HTTP date.
    pub(super) retry_after: Option<String>,
    pub(super) shape: Shape,
}

/// What the answer looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Shape {
    /// The usual answer, or the error body that fits the status.
    #[default]
    Usual,
    Html,
    Empty,
    Huge(u64),
    Malformed,
    Cut(Cut),
}

/// When the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Before anything is done.
    Before,
    /// After the request took effect, before any of the answer.
    After,
    /// After the request took effect, in the middle of the answer's body.
    Body,
}

impl Fault {
    /// Reads the text or JSON form.
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
                "a fault needs at least one of status, delay, hold, cut, html, empty, huge, malformed"
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
            "status" => self.status = Some(status(value)?),
            "retryAfter" => self.retry_after = Some(plain(value)),
            "delay" | "delayMs" => {
                self.delay = number(name, value)?.min(LONGEST_DELAY);
            }
            "hold" | "holdMs" => {
                self.hold = number(name, value)?.min(LONGEST_DELAY);
            }
            "cut" => self.shape = Shape::Cut(Cut::read(value)?),
            "html" => self.page(value, Shape::Html)?,
            "empty" => self.page(value, Shape::Empty)?,
            "malformed" => self.page(value, Shape::Malformed)?,
            "huge" if value.as_bool() == Some(true) => self.shape = Shape::Huge(USUAL_HUGE_BODY),
            "huge" => self.shape = Shape::Huge(number(name, value)?.min(LARGEST_BODY)),
            other => return Err(format!("unknown part '{other}' of a fault")),
        }
        Ok(())
    }

    /// `html`, `html=502` and `html=true;status=502` say the same.
    fn page(&mut self, value: &Value, shape: Shape) -> Result<(), String> {
        match value {
            Value::Bool(false) => return Ok(()),
            Value::Bool(true) => {}
            _ => self.status = Some(status(value)?),
        }
        self.shape = shape;
        Ok(())
    }

    /// Whether the request is to be carried out at all.
    pub(super) fn lets_work(&self) -> bool {
        matches!(
            (&self.shape, self.status),
            (Shape::Usual, None) | (Shape::Cut(Cut::After | Cut::Body), _)
        )
    }
}

impl Cut {
    fn read(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("before") => Ok(Cut::Before),
            Some("after") => Ok(Cut::After),
            Some("body") => Ok(Cut::Body),
            None if value.as_bool() == Some(true) => Ok(Cut::Before),
            _ => Err("cut must be before, after or body".to_owned()),
        }
    }
}

fn status(value: &Value) -> Result<u16, String> {
    let code = value.as_u64().and_then(|code| u16::try_from(code).ok());
    code.filter(|code| (200..600).contains(code))
        .ok_or_else(|| "status must be 200 to 599".to_owned())
}

fn number(name: &str, value: &Value) -> Result<u64, String> {
    value
        .as_u64()
        .ok_or_else(|| format!("{name} must be a whole number"))
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// What a rule is held against.
pub(super) struct Target<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) operation: Option<&'a str>,
    pub(super) key: Option<&'a str>,
}

/// A fault for some of the coming requests.
pub(crate) struct Rule {
    id: u64,
    pattern: String,
    /// Matching requests left alone first.
    skip: u64,
    /// Matching requests still to be hit; none means for ever.
    times: Option<u64>,
    /// Only requests with this key; never shown.
    key: Option<String>,
    shown: Value,
    fault: Fault,
}

/// All rules, the oldest first.
#[derive(Default)]
pub(crate) struct Rules {
    rules: Vec<Rule>,
    next: u64,
}

impl Rules {
    /// Adds the rule a `POST /sandbox/faults` describes and returns what it looks like.
    pub(super) fn add(&mut self, body: &Value) -> Result<Value, String> {
        let Value::Object(fields) = body else {
            return Err("a rule is an object".to_owned());
        };
        if let Some(name) = fields
            .keys()
            .find(|name| !["match", "times", "skip", "key", "fault"].contains(&name.as_str()))
        {
            return Err(format!("unknown part '{name}' of a rule"));
        }
        if self.rules.len() >= MOST_RULES {
            return Err(format!("there are {MOST_RULES} rules already"));
        }
        let pattern = body
            .get("match")
            .and_then(Value::as_str)
            .ok_or("match must be a text such as 'POST /search'")?;
        let shown = body.get("fault").ok_or("fault is missing")?;
        let fault = match shown {
            Value::String(text) => Fault::from_text(text)?,
            other => Fault::from_json(other)?,
        };
        self.next += 1;
        let rule = Rule {
            id: self.next,
            pattern: pattern.to_owned(),
            skip: body
                .get("skip")
                .map_or(Ok(0), |value| number("skip", value))?,
            times: times(body.get("times"))?,
            key: body.get("key").and_then(Value::as_str).map(str::to_owned),
            shown: shown.clone(),
            fault,
        };
        let json = rule.to_json();
        self.rules.push(rule);
        Ok(json)
    }

    /// The fault of the first rule that hits the request; a used-up rule goes.
    pub(super) fn take(&mut self, target: &Target<'_>) -> Option<Fault> {
        let mut found = None;
        for rule in &mut self.rules {
            if !rule.matches(target) {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
                continue;
            }
            rule.times = rule.times.map(|times| times.saturating_sub(1));
            found = Some(rule.fault.clone());
            break;
        }
        self.rules.retain(|rule| rule.times != Some(0));
        found
    }

    pub(super) fn list(&self) -> Vec<Value> {
        self.rules.iter().map(Rule::to_json).collect()
    }

    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }
}

/// How often a rule hits: once unless it says a number or `always`.
fn times(value: Option<&Value>) -> Result<Option<u64>, String> {
    match value {
        None => Ok(Some(1)),
        Some(Value::String(word)) if word == "always" => Ok(None),
        Some(value) => match value.as_u64() {
            Some(times) if times > 0 => Ok(Some(times)),
            _ => Err("times must be a number above 0, or 'always'".to_owned()),
        },
    }
}

impl Rule {
    fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "match": self.pattern,
            "times": self.times.map_or_else(|| Value::from("always"), Value::from),
            "skip": self.skip,
            "onlyOneKey": self.key.is_some(),
            "fault": self.shown,
        })
    }

    fn matches(&self, target: &Target<'_>) -> bool {
        if self.key.is_some() && self.key.as_deref() != target.key {
            return false;
        }
        match self.pattern.split_once(' ') {
            Some((method, path)) => {
                (method == "*" || method.eq_ignore_ascii_case(target.method))
                    && path_fits(path.trim(), target.path)
            }
            None if self.pattern.starts_with('/') => path_fits(&self.pattern, target.path),
            None => self.pattern == "*" || target.operation == Some(self.pattern.as_str()),
        }
    }
}

/// `*` and `{id}` stand for one segment, a final `**` for any number.
fn path_fits(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    for wanted in pattern.split('/') {
        if wanted == "**" {
            return true;
        }
        let any = wanted == "*" || (wanted.starts_with('{') && wanted.ends_with('}'));
        match parts.next() {
            Some(part) if (any && !part.is_empty()) || wanted == part || wanted == decode(part) => {
            }
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
    fn both_forms_say_the_same() {
        let text = Fault::from_text("status=503; retryAfter=2; delay=10").unwrap();
        let object = Fault::from_text(r#"{"status":503,"retryAfter":"2","delayMs":10}"#).unwrap();
        assert_eq!(text, object);
        assert_eq!(
            Fault::from_text("html=502").unwrap(),
            Fault::from_text("html;status=502").unwrap()
        );
        assert_eq!(
            Fault::from_text("cut").unwrap().shape,
            Shape::Cut(Cut::Before)
        );
        for wrong in ["", "status=99", "cut=never", "nonsense", "{", "delay=soon"] {
            assert!(Fault::from_text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rules_hit_what_they_name_as_often_as_they_say() {
        let mut rules = Rules::default();
        rules
            .add(&json!({"match": "POST /a/*/b", "times": 2, "skip": 1, "fault": "status=500"}))
            .unwrap();
        let target = |method, path| Target {
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
                .take(&Target {
                    key: Some("other"),
                    ..target("PUT", "/z")
                })
                .is_none()
        );
        assert!(!rules.list().first().unwrap().to_string().contains("\"k\""));
    }

    #[test]
    fn wildcards() {
        assert!(path_fits("/a/**", "/a/b/c"));
        assert!(path_fits("/a/{id}", "/a/b"));
        assert!(!path_fits("/a/*", "/a/b/c"));
        assert!(!path_fits("/a/*", "/a/"));
        assert!(!path_fits("/a/b", "/a"));
    }
}

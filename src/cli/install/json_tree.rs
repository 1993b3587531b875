//! A JSON parser that reports where each part of a document is, so that it can be edited without being rewritten.

use std::ops::Range;

use exa_mcp_text::surrogates;
use serde_json::{Map, Value};

use super::Problem;

/// What a client accepts beyond JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// JSON as in RFC 8259.
    Strict,
    /// JSON with comments.
    Comments,
    /// JSON with comments and trailing commas.
    Lenient,
}

/// The maximum nesting of a document.
const MAX_DEPTH: usize = 128;

/// A value and its place in the text.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

/// What a value is.
#[derive(Debug)]
pub(super) enum Kind {
    Object(Container),
    Array(Container),
    Scalar(Value),
}

/// The parts of an object or an array.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) parts: Vec<Part>,
    /// The end of the last value, comma or comment before the closing bracket; the end of the opening bracket if there
    /// is none.
    pub(super) content_end: usize,
}

/// A member of an object, or an element of an array.
#[derive(Debug)]
pub(super) struct Part {
    /// The start of the key or the value.
    pub(super) start: usize,
    /// The key in an object.
    pub(super) key: Option<String>,
    pub(super) value: Node,
    /// The place of the comma after the value.
    pub(super) comma: Option<usize>,
}

impl Part {
    /// Returns the end of the part with its comma.
    pub(super) fn end(&self) -> usize {
        self.comma.map_or(self.value.span.end, |comma| comma + 1)
    }
}

impl Node {
    /// Returns the value of the last member with this key, which is the one that counts.
    pub(super) fn member(&self, key: &str) -> Option<&Self> {
        let Kind::Object(object) = &self.kind else {
            return None;
        };
        let mut parts = object.parts.iter();
        let part = parts.rfind(|part| part.key.as_deref() == Some(key));
        part.map(|part| &part.value)
    }

    /// Returns the text of a string.
    pub(super) fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(value) => value.as_str(),
            _ => None,
        }
    }

    /// Returns the value without its places.
    pub(super) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Object(object) => {
                let pairs = object.parts.iter();
                let pairs =
                    pairs.filter_map(|part| Some((part.key.clone()?, part.value.to_value())));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
            Kind::Array(array) => array
                .parts
                .iter()
                .map(|part| part.value.to_value())
                .collect(),
            Kind::Scalar(value) => value.clone(),
        }
    }
}

/// Parses a document. A document without any value is `None`.
pub(super) fn parse(text: &str, dialect: Dialect) -> Result<Option<Node>, Problem> {
    let mut parser = Parser {
        text,
        position: 0,
        last_token_end: 0,
        dialect,
    };
    parser.skip_trivia()?;
    if parser.peek().is_none() {
        return Ok(None);
    }
    let node = parser.value(0)?;
    parser.skip_trivia()?;
    if parser.peek().is_some() {
        return Err(parser.problem("text after the end of the document"));
    }
    Ok(Some(node))
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
    /// The end of the last token or comment.
    last_token_end: usize,
    dialect: Dialect,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn problem(&self, message: &str) -> Problem {
        Problem::at(self.text, self.position, message)
    }

    /// Moves past a token.
    fn advance(&mut self, length: usize) {
        self.position += length;
        self.last_token_end = self.position;
    }

    /// Skips whitespace and comments.
    fn skip_trivia(&mut self) -> Result<(), Problem> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            self.position += rest.len() - trimmed.len();
            let rest = self.rest();
            let length = if rest.starts_with("//") {
                rest.lines().next().unwrap_or_default().len()
            } else if rest.starts_with("/*") {
                rest.find("*/")
                    .map(|end| end + 2)
                    .ok_or_else(|| self.problem("a comment without an end"))?
            } else {
                return Ok(());
            };
            if self.dialect == Dialect::Strict {
                return Err(self.problem("a comment, which this client does not accept"));
            }
            self.advance(length);
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Problem> {
        if depth > MAX_DEPTH {
            return Err(self.problem("the document is nested too deeply"));
        }
        let start = self.position;
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.container(b'}', depth + 1)?),
            Some(b'[') => Kind::Array(self.container(b']', depth + 1)?),
            Some(b'"') => Kind::Scalar(Value::String(self.string()?)),
            _ => Kind::Scalar(self.literal()?),
        };
        Ok(Node {
            span: start..self.position,
            kind,
        })
    }

    /// Parses what is between two brackets.
    fn container(&mut self, close: u8, depth: usize) -> Result<Container, Problem> {
        self.advance(1);
        let mut parts: Vec<Part> = Vec::new();
        loop {
            self.skip_trivia()?;
            let has_comma = parts.last().map(|last| last.comma.is_some());
            if self.peek() == Some(close) {
                if has_comma == Some(true) && self.dialect != Dialect::Lenient {
                    return Err(self.problem("a comma before the closing bracket"));
                }
                let content_end = self.last_token_end;
                self.advance(1);
                return Ok(Container { parts, content_end });
            }
            if has_comma == Some(false) {
                let expected = format!("expected a comma or {}", char::from(close));
                return Err(self.problem(&expected));
            }
            let start = self.position;
            let key = (close == b'}').then(|| self.key()).transpose()?;
            let value = self.value(depth)?;
            self.skip_trivia()?;
            let comma = (self.peek() == Some(b',')).then_some(self.position);
            if comma.is_some() {
                self.advance(1);
            }
            parts.push(Part {
                start,
                key,
                value,
                comma,
            });
        }
    }

    /// Parses a key and its colon.
    fn key(&mut self) -> Result<String, Problem> {
        if self.peek() != Some(b'"') {
            return Err(self.problem("expected a key in double quotes or }"));
        }
        let key = self.string()?;
        self.skip_trivia()?;
        if self.peek() != Some(b':') {
            return Err(self.problem("expected a colon"));
        }
        self.advance(1);
        self.skip_trivia()?;
        Ok(key)
    }

    fn string(&mut self) -> Result<String, Problem> {
        let mut escaped = false;
        let bytes = self.rest().bytes().enumerate().skip(1);
        let mut end = None;
        for (index, byte) in bytes {
            match byte {
                b'\n' => break,
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    end = Some(index + 1);
                    break;
                }
                _ => {}
            }
        }
        let end = end.ok_or_else(|| self.problem("a string without an end"))?;
        let token = self.rest().get(..end).unwrap_or_default();
        // Clients write half a surrogate pair where they cut a text.
        let repaired = || serde_json::from_slice(&surrogates::repair(token.as_bytes())?).ok();
        let text = serde_json::from_str(token).ok().or_else(repaired);
        let text =
            text.ok_or_else(|| self.problem("a string with an invalid escape or character"))?;
        self.advance(end);
        Ok(text)
    }

    /// Parses a number, `true`, `false` or `null`.
    fn literal(&mut self) -> Result<Value, Problem> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let rest = self.rest();
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let value = serde_json::from_str(rest.get(..end).unwrap_or_default())
            .map_err(|_| self.problem("expected a value"))?;
        self.advance(end);
        Ok(value)
    }
}

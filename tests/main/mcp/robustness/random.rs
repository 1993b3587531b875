//! Random JSON, and mutations of JSON and bytes.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Returns a random JSON value.
pub(super) fn value(rng: &mut Rng, depth: usize) -> Value {
    let kinds = if depth == 0 { 6 } else { 9 };
    match rng.u8(..kinds) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i64(..)),
        3 => json!(rng.f64() * 1e3),
        4 => json!(text(rng)),
        5 => json!(keyword(rng)),
        6 | 7 => (0..rng.usize(..4)).map(|_| value(rng, depth - 1)).collect(),
        _ => {
            let entries =
                (0..rng.usize(..5)).map(|_| (keyword(rng).to_owned(), value(rng, depth - 1)));
            Value::Object(entries.collect())
        }
    }
}

/// Returns a random string with many unusual characters.
fn text(rng: &mut Rng) -> String {
    let length = if rng.u8(..50) == 0 {
        20_000
    } else {
        rng.usize(..12)
    };
    let odd = [
        '\0', '\u{1b}', '\n', '"', '\\', '\u{202e}', '\u{feff}', '/', '.', '%', '🙂',
    ];
    let character = |rng: &mut Rng| {
        if rng.bool() {
            rng.choice(odd).unwrap_or(' ')
        } else {
            rng.char(..)
        }
    };
    (0..length).map(|_| character(rng)).collect()
}

/// Returns a word with a meaning in some context.
fn keyword(rng: &mut Rng) -> &'static str {
    let words = "name arguments args params operation query id websetId limit cursor _meta urls type \
                 entity criteria options format cadence cron search contents text betas count \
                 list_operations describe websets.get ../../x 5 true null {} [] {\"a\":1} $ref jsonrpc";
    let words: Vec<&str> = words.split_whitespace().collect();
    rng.choice(words).unwrap_or("x")
}

/// Mutates a few places of a value.
pub(super) fn mutate(rng: &mut Rng, mut value_of: Value) -> Value {
    for _ in 0..rng.usize(1..4) {
        mutate_at(rng, &mut value_of);
    }
    value_of
}

/// Mutates a random place of a value.
fn mutate_at(rng: &mut Rng, target: &mut Value) {
    match target {
        Value::Object(fields) if !fields.is_empty() && rng.u8(..4) > 0 => change_field(rng, fields),
        Value::Array(items) if !items.is_empty() && rng.u8(..4) > 0 => {
            let index = rng.usize(..items.len());
            mutate_at(rng, &mut items[index]);
        }
        other => *other = mistake(rng, other),
    }
}

fn change_field(rng: &mut Rng, fields: &mut Map<String, Value>) {
    let index = rng.usize(..fields.len());
    let Some(name) = fields.keys().nth(index).cloned() else {
        return;
    };
    match rng.u8(..8) {
        0 => drop(fields.remove(&name)),
        1 => {
            let value = fields.remove(&name).unwrap_or_default();
            fields.insert(name.to_uppercase(), value);
        }
        2 => drop(fields.insert(keyword(rng).to_owned(), value(rng, 2))),
        3 => drop(fields.insert(text(rng), value(rng, 1))),
        _ => {
            if let Some(inner) = fields.get_mut(&name) {
                mutate_at(rng, inner);
            }
        }
    }
}

/// Returns a value with a typical or an unlikely mistake.
fn mistake(rng: &mut Rng, value_of: &Value) -> Value {
    match rng.u8(..6) {
        0 => json!(value_of.to_string()),
        1 => json!([value_of]),
        2 => json!({keyword(rng): value_of}),
        3 => Value::Null,
        // The parser's limit is 128 levels, beyond which it cannot read the id of a request.
        4 => (0..30).fold(value_of.clone(), |inner, _| json!([inner])),
        _ => value(rng, 3),
    }
}

/// Changes, removes, inserts or truncates a few bytes of a line.
pub(super) fn damage(rng: &mut Rng, mut line: Vec<u8>) -> Vec<u8> {
    for _ in 0..rng.usize(1..4) {
        let target = rng.usize(..line.len().max(1));
        match rng.u8(..4) {
            0 if target < line.len() => line[target] = byte(rng),
            1 if target < line.len() => drop(line.remove(target)),
            2 => line.truncate(target.max(line.len().saturating_sub(3))),
            _ => line.insert(target, byte(rng)),
        }
    }
    line
}

/// Returns a random byte other than a line feed, often one with a meaning in JSON.
pub(super) fn byte(rng: &mut Rng) -> u8 {
    let keyword = b"{}[]\",:0123456789.eE+-\\nulltrue ";
    let byte = if rng.bool() {
        rng.choice(keyword).copied().unwrap_or(b' ')
    } else {
        rng.u8(..)
    };
    if byte == b'\n' { b' ' } else { byte }
}

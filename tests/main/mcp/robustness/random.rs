//! Random JSON, and JSON and bytes that were changed a little.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Any JSON.
pub(super) fn value(rng: &mut Rng, depth: usize) -> Value {
    let kinds = if depth == 0 { 6 } else { 9 };
    match rng.u8(..kinds) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i64(..)),
        3 => json!(rng.f64() * 1e3),
        4 => json!(text(rng)),
        5 => json!(telling(rng)),
        6 | 7 => (0..rng.usize(..4)).map(|_| value(rng, depth - 1)).collect(),
        _ => {
            let entries =
                (0..rng.usize(..5)).map(|_| (telling(rng).to_owned(), value(rng, depth - 1)));
            Value::Object(entries.collect())
        }
    }
}

/// Any text; the odd characters are more likely than in life.
fn text(rng: &mut Rng) -> String {
    let length = if rng.u8(..50) == 0 {
        20_000
    } else {
        rng.usize(..12)
    };
    let odd = [
        '\0', '\u{1b}', '\n', '"', '\\', '\u{202e}', '\u{feff}', '/', '.', '%', '🙂',
    ];
    let character = |rng: &mut Rng| match rng.bool() {
        true => rng.choice(odd).unwrap_or(' '),
        false => rng.char(..),
    };
    (0..length).map(|_| character(rng)).collect()
}

/// Words that mean something somewhere.
fn telling(rng: &mut Rng) -> &'static str {
    let words = "name arguments args params operation query id websetId limit cursor _meta urls type \
                 entity criteria options format cadence cron search contents text betas count \
                 list_operations describe websets.get ../../x 5 true null {} [] {\"a\":1} $ref jsonrpc";
    let words: Vec<&str> = words.split_whitespace().collect();
    rng.choice(words).unwrap_or("x")
}

/// Changes a few places of a value.
pub(super) fn changed(rng: &mut Rng, mut value_of: Value) -> Value {
    for _ in 0..rng.usize(1..4) {
        change(rng, &mut value_of);
    }
    value_of
}

/// Walks down to a random place and changes it.
fn change(rng: &mut Rng, place: &mut Value) {
    match place {
        Value::Object(fields) if !fields.is_empty() && rng.u8(..4) > 0 => change_field(rng, fields),
        Value::Array(items) if !items.is_empty() && rng.u8(..4) > 0 => {
            let index = rng.usize(..items.len());
            change(rng, &mut items[index]);
        }
        other => *other = slip(rng, other),
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
        2 => drop(fields.insert(telling(rng).to_owned(), value(rng, 2))),
        3 => drop(fields.insert(text(rng), value(rng, 1))),
        _ => {
            if let Some(inner) = fields.get_mut(&name) {
                change(rng, inner);
            }
        }
    }
}

/// Slips as models make them, and some that nobody makes.
fn slip(rng: &mut Rng, value_of: &Value) -> Value {
    match rng.u8(..6) {
        0 => json!(value_of.to_string()),
        1 => json!([value_of]),
        2 => json!({telling(rng): value_of}),
        3 => Value::Null,
        // The parser ends at 128 levels, beyond which it cannot tell the id of a request either.
        4 => (0..30).fold(value_of.clone(), |inner, _| json!([inner])),
        _ => value(rng, 3),
    }
}

/// Changes, removes, inserts or cuts a few bytes of a line.
pub(super) fn damaged(rng: &mut Rng, mut line: Vec<u8>) -> Vec<u8> {
    for _ in 0..rng.usize(1..4) {
        let place = rng.usize(..line.len().max(1));
        match rng.u8(..4) {
            0 if place < line.len() => line[place] = byte(rng),
            1 if place < line.len() => drop(line.remove(place)),
            2 => line.truncate(place.max(line.len().saturating_sub(3))),
            _ => line.insert(place, byte(rng)),
        }
    }
    line
}

/// Any byte but the end of a line; those that mean something in JSON more often.
pub(super) fn byte(rng: &mut Rng) -> u8 {
    let telling = b"{}[]\",:0123456789.eE+-\\nulltrue ";
    let byte = match rng.bool() {
        true => rng.choice(telling).copied().unwrap_or(b' '),
        false => rng.u8(..),
    };
    if byte == b'\n' { b' ' } else { byte }
}

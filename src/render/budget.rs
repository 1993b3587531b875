//! Keeping an answer within its tokens.

use serde_json::{Map, Value};

use super::shape::{Bounds, Shaped};
use exa_mcp_text::tokens::estimate;

/// Tokens for what is said about the answer.
const HEADER: usize = 150;

/// The least that a text and a list are cut to.
const LEAST: Bounds = Bounds {
    text: 20,
    entries: 1,
    fields: 3,
};

/// Characters that one token has at most on average; the first guess when something is cut.
const CHARACTERS: usize = 4;

/// Entries and fields that something which does not fit has at first.
const MOST_ENTRIES: usize = 100;

/// What fits.
pub(super) struct Fitted {
    /// The results that are shown.
    pub(super) shown: Vec<Shaped>,
    /// The places of those that were cut to fit,
    pub(super) shrunk: Vec<usize>,
    /// and of those that are left out.
    pub(super) left_out: Vec<usize>,
    /// What stands beside them.
    pub(super) rest: Map<String, Value>,
    /// Something beside them was cut to fit.
    pub(super) rest_cut: bool,
}

impl Fitted {
    /// Everything, whether it fits or not.
    pub(super) fn whole(results: Vec<Shaped>, rest: Map<String, Value>) -> Self {
        Self {
            shown: results,
            shrunk: Vec::new(),
            left_out: Vec::new(),
            rest,
            rest_cut: false,
        }
    }

    /// Nothing, with everything left out.
    pub(super) fn nothing(results: &[Shaped], rest: &Map<String, Value>) -> Self {
        Self {
            shown: Vec::new(),
            shrunk: Vec::new(),
            left_out: results.iter().map(|result| result.index).collect(),
            rest: Map::new(),
            rest_cut: !rest.is_empty(),
        }
    }

    /// Whether more tokens would show more.
    pub(super) fn is_tight(&self) -> bool {
        self.rest_cut || !self.shrunk.is_empty() || !self.left_out.is_empty()
    }
}

/// Takes results as long as they fit; the first one is cut rather than left out.
pub(super) fn fit(
    results: &[Shaped],
    rest: &Map<String, Value>,
    most: usize,
    written: impl Fn(&Shaped) -> String,
) -> Fitted {
    let most = most.saturating_sub(HEADER.min(most / 2));
    // What stands beside the results must leave them some room.
    let for_rest = match results.is_empty() {
        true => most,
        false => most * 3 / 5,
    };
    let (rest, rest_cost) = fit_rest(rest, for_rest);
    let mut left = most.saturating_sub(rest_cost.min(for_rest));
    let mut fitted = Fitted {
        shown: Vec::new(),
        shrunk: Vec::new(),
        left_out: Vec::new(),
        rest_cut: rest.cut,
        rest: match rest.value {
            Value::Object(rest) => rest,
            _ => Map::new(),
        },
    };
    for result in results {
        // Once one is left out, all that follow are: what is shown must not have holes.
        if !fitted.left_out.is_empty() {
            fitted.left_out.push(result.index);
            continue;
        }
        let cost = cost(&written(result));
        if cost <= left {
            left -= cost;
            fitted.shown.push(result.clone());
        } else if fitted.shown.is_empty() {
            fitted.shrunk.push(result.index);
            fitted.shown.push(shrink(result, left, &written));
            left = 0;
        } else {
            fitted.left_out.push(result.index);
        }
    }
    fitted
}

fn cost(text: &str) -> usize {
    estimate(text) + 2
}

fn fit_rest(rest: &Map<String, Value>, most: usize) -> (Shaped, usize) {
    let written = |shaped: &Shaped| shaped.value.to_string();
    let whole = Shaped {
        index: 0,
        value: Value::Object(rest.clone()),
        cut: false,
    };
    let cost_of = |shaped: &Shaped| match rest.is_empty() {
        true => 0,
        false => cost(&written(shaped)),
    };
    let fitting = match cost_of(&whole) <= most {
        true => whole,
        false => shrink(&whole, most, &written),
    };
    let cost = cost_of(&fitting);
    (fitting, cost)
}

/// Cuts the texts and lists of a result until it fits.
fn shrink(result: &Shaped, most: usize, written: &impl Fn(&Shaped) -> String) -> Shaped {
    let mut bounds = Bounds {
        text: longest_text(&result.value, most.saturating_mul(CHARACTERS)),
        entries: MOST_ENTRIES,
        fields: MOST_ENTRIES,
    };
    loop {
        let mut shrunk = Shaped {
            cut: true,
            ..result.clone()
        };
        bounds.apply(&mut shrunk.value, &mut false);
        if bounds == LEAST || cost(&written(&shrunk)) <= most {
            return shrunk;
        }
        let less = |bound: usize, least: usize| (bound * 7 / 10).max(least);
        bounds = Bounds {
            text: less(bounds.text, LEAST.text),
            entries: less(bounds.entries, LEAST.entries),
            fields: less(bounds.fields, LEAST.fields),
        };
    }
}

/// How long texts may be so that all of them together have so many characters: short ones stay
/// whole, and what they leave is for the long ones.
fn longest_text(value: &Value, most: usize) -> usize {
    let mut lengths = Vec::new();
    text_lengths(value, &mut lengths);
    lengths.sort_unstable();
    let mut left = most;
    for (at, length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - at);
        if *length > share {
            return share.max(LEAST.text);
        }
        left -= length;
    }
    most.max(LEAST.text)
}

fn text_lengths(value: &Value, lengths: &mut Vec<usize>) {
    match value {
        Value::String(text) => lengths.push(text.len()),
        Value::Array(list) => list.iter().for_each(|entry| text_lengths(entry, lengths)),
        Value::Object(map) => map.values().for_each(|entry| text_lengths(entry, lengths)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn results(count: usize, words: usize) -> Vec<Shaped> {
        (0..count)
            .map(|index| Shaped {
                index,
                value: json!({"text": "word ".repeat(words)}),
                cut: false,
            })
            .collect()
    }

    fn written(result: &Shaped) -> String {
        result.value.to_string()
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let fitted = fit(&results(10, 300), &Map::new(), 1_500, written);
        assert!(!fitted.shown.is_empty() && fitted.shown.len() < 10);
        let next = fitted.shown.len();
        assert_eq!(fitted.left_out, (next..10).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_is_cut_rather_than_left_out() {
        let fitted = fit(&results(2, 30_000), &Map::new(), 500, written);
        assert_eq!(fitted.shrunk, [0]);
        assert!(
            fitted
                .shown
                .iter()
                .all(|result| result.cut && estimate(&written(result)) <= 500)
        );
        assert_eq!(fitted.left_out, [1]);
    }

    #[test]
    fn long_texts_are_cut_before_short_ones() {
        let value = json!(["short", "x".repeat(1_000), ["y".repeat(3_000)]]);
        assert_eq!(longest_text(&value, 1_005), 500);
        assert_eq!(longest_text(&value, 10_000), 10_000);
    }
}

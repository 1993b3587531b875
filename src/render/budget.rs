//! Reduces a result to its token budget.

use serde_json::{Map, Value};

use super::passages::fair_share;
use super::shape::{Bounds, ShapedResult};
use exa_mcp_text::tokens::estimate;

/// Tokens reserved for the header.
const HEADER_TOKENS: usize = 150;

/// Texts, lists and objects are never truncated below this.
const MIN_BOUNDS: Bounds = Bounds {
    text: 20,
    entries: 1,
    fields: 3,
};

/// Average characters per token, for the first guess when something is truncated.
const CHARS_PER_TOKEN: usize = 4;

/// Initial bound for lists and objects of a result that does not fit.
const MAX_ENTRIES: usize = 100;

/// The part of a result that fits into the budget.
pub(super) struct FittedResults {
    /// The results that are shown.
    pub(super) shown: Vec<ShapedResult>,
    /// The indexes of results truncated to fit.
    pub(super) shrunk: Vec<usize>,
    /// The indexes of results left out.
    pub(super) left_out: Vec<usize>,
    /// The fields beside the results.
    pub(super) rest: Map<String, Value>,
    /// A field beside the results was truncated to fit.
    pub(super) rest_truncated: bool,
}

impl FittedResults {
    /// Includes everything, whether it fits or not.
    pub(super) fn whole(results: Vec<ShapedResult>, rest: Map<String, Value>) -> Self {
        Self {
            shown: results,
            shrunk: Vec::new(),
            left_out: Vec::new(),
            rest,
            rest_truncated: false,
        }
    }

    /// Leaves everything out.
    pub(super) fn empty(results: &[ShapedResult], rest: &Map<String, Value>) -> Self {
        Self {
            shown: Vec::new(),
            shrunk: Vec::new(),
            left_out: results.iter().map(|result| result.index).collect(),
            rest: Map::new(),
            rest_truncated: !rest.is_empty(),
        }
    }

    /// Returns whether a larger budget would show more.
    pub(super) fn is_reduced(&self) -> bool {
        self.rest_truncated || !self.shrunk.is_empty() || !self.left_out.is_empty()
    }
}

/// Selects results while they fit; the first one is truncated instead of left out.
pub(super) fn fit(
    results: &[ShapedResult],
    rest: &Map<String, Value>,
    budget: usize,
    write: impl Fn(&ShapedResult) -> String,
) -> FittedResults {
    let budget = budget.saturating_sub(HEADER_TOKENS.min(budget / 2));
    // The fields beside the results must not use up the budget of the results.
    let rest_budget = if results.is_empty() {
        budget
    } else {
        budget * 3 / 5
    };
    let (rest, rest_cost) = fit_rest(rest, rest_budget);
    let mut left = budget.saturating_sub(rest_cost.min(rest_budget));
    let mut fitted = FittedResults {
        shown: Vec::new(),
        shrunk: Vec::new(),
        left_out: Vec::new(),
        rest_truncated: rest.truncated,
        rest: match rest.value {
            Value::Object(rest) => rest,
            _ => Map::new(),
        },
    };
    for result in results {
        // Once one is left out, all that follow are: the shown results have no gaps.
        if !fitted.left_out.is_empty() {
            fitted.left_out.push(result.index);
            continue;
        }
        let cost = cost(&write(result));
        if cost <= left {
            left -= cost;
            fitted.shown.push(result.clone());
        } else if fitted.shown.is_empty() {
            fitted.shrunk.push(result.index);
            fitted.shown.push(shrink(result, left, &write));
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

fn fit_rest(rest: &Map<String, Value>, budget: usize) -> (ShapedResult, usize) {
    let write = |shaped: &ShapedResult| shaped.value.to_string();
    let whole = ShapedResult {
        value: Value::Object(rest.clone()),
        ..ShapedResult::default()
    };
    let cost_of = |shaped: &ShapedResult| {
        if rest.is_empty() {
            0
        } else {
            cost(&write(shaped))
        }
    };
    let fitting = if cost_of(&whole) <= budget {
        whole
    } else {
        shrink(&whole, budget, &write)
    };
    let cost = cost_of(&fitting);
    (fitting, cost)
}

/// Truncates the texts and lists of a result until it fits.
fn shrink(
    result: &ShapedResult,
    budget: usize,
    write: &impl Fn(&ShapedResult) -> String,
) -> ShapedResult {
    let mut bounds = Bounds {
        text: max_text_chars(&result.value, budget.saturating_mul(CHARS_PER_TOKEN)),
        entries: MAX_ENTRIES,
        fields: MAX_ENTRIES,
    };
    loop {
        let mut shrunk = ShapedResult {
            truncated: true,
            ..result.clone()
        };
        bounds.apply(&mut shrunk.value, &mut false);
        if bounds == MIN_BOUNDS || cost(&write(&shrunk)) <= budget {
            return shrunk;
        }
        let less = |bound: usize, least: usize| (bound * 7 / 10).max(least);
        bounds = Bounds {
            text: less(bounds.text, MIN_BOUNDS.text),
            entries: less(bounds.entries, MIN_BOUNDS.entries),
            fields: less(bounds.fields, MIN_BOUNDS.fields),
        };
    }
}

/// Returns the maximum length of a text such that all texts together have at most `budget` characters. Lengths count
/// bytes, so non-ASCII texts get less.
fn max_text_chars(value: &Value, budget: usize) -> usize {
    let mut lengths = Vec::new();
    text_lengths(value, &mut lengths);
    fair_share(&mut lengths, budget).max(MIN_BOUNDS.text)
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

    fn results(count: usize, words: usize) -> Vec<ShapedResult> {
        (0..count)
            .map(|index| ShapedResult {
                index,
                value: json!({"text": "word ".repeat(words)}),
                ..ShapedResult::default()
            })
            .collect()
    }

    fn write(result: &ShapedResult) -> String {
        result.value.to_string()
    }

    #[test]
    fn leaves_out_results_that_do_not_fit() {
        let fitted = fit(&results(10, 300), &Map::new(), 1_500, write);
        assert!(!fitted.shown.is_empty() && fitted.shown.len() < 10);
        let next = fitted.shown.len();
        assert_eq!(fitted.left_out, (next..10).collect::<Vec<_>>());
    }

    #[test]
    fn truncates_the_first_result_instead_of_leaving_it_out() {
        let fitted = fit(&results(2, 30_000), &Map::new(), 500, write);
        assert_eq!(fitted.shrunk, [0]);
        assert!(
            fitted
                .shown
                .iter()
                .all(|result| result.truncated && estimate(&write(result)) <= 500)
        );
        assert_eq!(fitted.left_out, [1]);
    }

    #[test]
    fn truncates_long_texts_before_short_ones() {
        let value = json!(["short", "x".repeat(1_000), ["y".repeat(3_000)]]);
        assert_eq!(max_text_chars(&value, 1_005), 500);
        assert_eq!(max_text_chars(&value, 10_000), 10_000);
    }
}

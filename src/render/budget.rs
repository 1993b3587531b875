//! Keeping an answer within its tokens.

use serde_json::{Map, Value};

use super::shape::{Shaped, bounded};
use super::tokens::estimate;

/// Tokens for what is said about the answer.
const HEADER: usize = 150;

/// The least characters that a text is cut to.
const LEAST: usize = 80;

/// Characters that one token has at most on average; the first guess when something is cut.
const CHARACTERS: usize = 4;

/// What fits.
pub(super) struct Fitted {
    /// The results that are shown.
    pub(super) shown: Vec<Shaped>,
    /// The places of those that are left out.
    pub(super) left_out: Vec<usize>,
    /// What stands beside them.
    pub(super) rest: Map<String, Value>,
    /// Something beside them was cut.
    pub(super) rest_cut: bool,
}

/// Takes results as long as they fit; the first one is cut rather than left out.
pub(super) fn fit(
    results: Vec<Shaped>,
    rest: Map<String, Value>,
    most: usize,
    written: impl Fn(&Shaped) -> String,
) -> Fitted {
    let most = most.saturating_sub(HEADER.min(most / 2));
    // What stands beside the results must leave them some room.
    let for_rest = if results.is_empty() {
        most
    } else {
        most * 3 / 5
    };
    let (rest, rest_cut) = shrink_rest(rest, for_rest);
    let mut left =
        most.saturating_sub(estimate(&Value::Object(rest.clone()).to_string()).min(for_rest));
    let mut fitted = Fitted {
        shown: Vec::new(),
        left_out: Vec::new(),
        rest,
        rest_cut,
    };
    for mut result in results {
        let mut cost = estimate(&written(&result)) + 2;
        if cost > left && fitted.shown.is_empty() && fitted.left_out.is_empty() {
            result = shrink(result, left, &written);
            cost = left;
        }
        // Once one is left out, all that follow are: what is shown must not have holes.
        if cost <= left && fitted.left_out.is_empty() {
            left -= cost;
            fitted.shown.push(result);
        } else {
            fitted.left_out.push(result.index);
        }
    }
    fitted
}

/// Cuts the texts of a result until it fits.
fn shrink(result: Shaped, most: usize, written: &impl Fn(&Shaped) -> String) -> Shaped {
    let mut bound = most.saturating_mul(CHARACTERS);
    let mut entries = 100;
    loop {
        let mut cut = false;
        let shrunk = Shaped {
            index: result.index,
            value: bounded(&result.value, bound, entries, &mut cut),
            cut: true,
        };
        if bound <= LEAST || estimate(&written(&shrunk)) + 2 <= most {
            return shrunk;
        }
        bound = (bound * 7 / 10).max(LEAST);
        entries = (entries * 7 / 10).max(3);
    }
}

fn shrink_rest(rest: Map<String, Value>, most: usize) -> (Map<String, Value>, bool) {
    let whole = Shaped {
        index: 0,
        value: Value::Object(rest),
        cut: false,
    };
    let written = |shaped: &Shaped| shaped.value.to_string();
    let fits = estimate(&written(&whole)) <= most;
    let fitting = if fits {
        whole
    } else {
        shrink(whole, most, &written)
    };
    match fitting.value {
        Value::Object(rest) => (rest, fitting.cut),
        _ => (Map::new(), fitting.cut),
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

    #[test]
    fn what_does_not_fit_is_left_out() {
        let written = |result: &Shaped| result.value.to_string();
        let fitted = fit(results(10, 300), Map::new(), 1_500, written);
        assert!(!fitted.shown.is_empty() && fitted.shown.len() < 10);
        let next = fitted.shown.len();
        assert_eq!(fitted.left_out, (next..10).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_is_cut_rather_than_left_out() {
        let written = |result: &Shaped| result.value.to_string();
        let fitted = fit(results(2, 30_000), Map::new(), 500, written);
        assert_eq!(fitted.shown.len(), 1);
        assert!(
            fitted
                .shown
                .iter()
                .all(|result| result.cut && estimate(&written(result)) <= 500)
        );
        assert_eq!(fitted.left_out, [1]);
    }
}

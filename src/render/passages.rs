//! Divides a number of characters among passages.

use serde_json::Value;

use super::shape::{MAX_ENTRIES, truncate_value};

/// Minimum characters of a passage that is shown.
const MIN_PASSAGE_CHARS: usize = 60;

/// Truncates passages to `bound` characters in total, and other values text by text.
pub(super) fn extract_passages(value: Value, bound: usize, truncated: &mut bool) -> Value {
    let Value::Array(mut passages) = value else {
        return truncate_value(value, bound, MAX_ENTRIES, truncated);
    };
    // A passage of a few characters is useless.
    let max = (bound / MIN_PASSAGE_CHARS).max(1);
    *truncated |= passages.len() > max;
    passages.truncate(max);
    let mut lengths: Vec<usize> = passages
        .iter()
        .map(|passage| passage.as_str().map_or(0, |text| text.chars().count()))
        .collect();
    let share = fair_share(&mut lengths, bound);
    let passages = passages.into_iter();
    passages
        .map(|passage| truncate_value(passage, share, MAX_ENTRIES, truncated))
        .collect()
}

/// Returns the maximum length of a text such that all together have at most `budget` characters. Short texts stay
/// whole and leave their share to long ones.
pub(super) fn fair_share(lengths: &mut [usize], budget: usize) -> usize {
    lengths.sort_unstable();
    let mut left = budget;
    for (at, length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - at);
        if *length > share {
            return share;
        }
        left -= length;
    }
    budget
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shows_a_part_of_every_passage() {
        let passages = json!(["Short one.", "word ".repeat(200), "other ".repeat(200)]);
        let mut truncated = false;
        let shown = extract_passages(passages, 600, &mut truncated);
        let lengths: Vec<usize> = shown
            .as_array()
            .unwrap()
            .iter()
            .map(|passage| passage.as_str().unwrap().len())
            .collect();
        assert_eq!(lengths.len(), 3);
        assert!(lengths[1] > 200 && lengths[2] > 200, "{lengths:?}");
        assert!(truncated && lengths.iter().sum::<usize>() <= 620);
        let few = json!(["One.", "Two."]);
        assert_eq!(extract_passages(few.clone(), 600, &mut false), few);
    }

    #[test]
    fn short_texts_leave_their_share_to_long_ones() {
        assert_eq!(fair_share(&mut [5, 3_000, 1_000], 1_005), 500);
        assert_eq!(fair_share(&mut [5, 10], 100), 100);
    }
}

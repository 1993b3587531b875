//! How far work is, in numbers where its state has some.

use std::time::Duration;

use serde_json::Value;

use super::super::Step;
use super::State;
use exa_mcp_text::is_identifier;

/// How far the work is.
pub(super) fn step(state: &State, elapsed: Duration) -> Step {
    let status = state
        .status
        .as_deref()
        .filter(|status| is_identifier(status));
    let status = status.unwrap_or("running");
    match counts(&state.answer) {
        Some(Counts {
            found,
            analyzed,
            wanted,
        }) => Step {
            done: found,
            total: wanted,
            is_quoted: false,
            message: match (analyzed, wanted) {
                (Some(analyzed), Some(wanted)) => {
                    format!("{status}: found {found} of {wanted}, analyzed {analyzed}")
                }
                (None, Some(wanted)) => format!("{status}: {found} of {wanted}"),
                _ => format!("{status}: found {found}"),
            },
        },
        None => Step {
            done: elapsed.as_secs_f64().floor(),
            total: None,
            is_quoted: false,
            message: match state.is_final {
                true => format!("{status} after {} seconds", elapsed.as_secs()),
                false => format!("{status} for {} seconds", elapsed.as_secs()),
            },
        },
    }
}

struct Counts {
    found: f64,
    analyzed: Option<f64>,
    wanted: Option<f64>,
}

/// The counts of a search, or of all searches of a webset together.
fn counts(answer: &Value) -> Option<Counts> {
    if let Some(searches) = answer.get("searches").and_then(Value::as_array) {
        let all: Vec<Counts> = searches.iter().filter_map(counts).collect();
        let sum = |part: fn(&Counts) -> Option<f64>| all.iter().filter_map(part).sum();
        return (!all.is_empty()).then(|| Counts {
            found: sum(|one| Some(one.found)),
            analyzed: Some(sum(|one| one.analyzed)),
            wanted: Some(sum(|one| one.wanted)),
        });
    }
    let progress = answer.get("progress").or_else(|| answer.get("refresh"))?;
    let number = |names: &[&str]| names.iter().find_map(|name| progress.get(*name)?.as_f64());
    Some(Counts {
        found: number(&["found", "entitiesProcessed", "completed"])?,
        analyzed: number(&["analyzed"]),
        wanted: number(&["entitiesTotal", "total"]).or_else(|| answer.get("count")?.as_f64()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_count_what_matters() {
        let state = |answer| State {
            status: Some("running".to_owned()),
            is_final: false,
            is_blocked: false,
            answer,
        };
        let search = json!({"count": 10, "progress": {"found": 3, "analyzed": 20}});
        let one = step(&state(search.clone()), Duration::ZERO);
        assert_eq!((one.done, one.total), (3.0, Some(10.0)));
        assert_eq!(one.message, "running: found 3 of 10, analyzed 20");
        let webset = json!({"searches": [search.clone(), search]});
        assert_eq!(step(&state(webset), Duration::ZERO).total, Some(20.0));
        let other = step(&state(json!({})), Duration::from_secs(7));
        assert_eq!((other.done, other.total), (7.0, None));
        assert_eq!(other.message, "running for 7 seconds");
    }
}

//! Progress of a remote job, with counts where its state has them.

use std::time::Duration;

use serde_json::Value;

use super::super::ProgressUpdate;
use super::JobState;
use exa_mcp_generated::response_fields::{ANALYZED, FOUND, PARTS, REQUESTED};
use exa_mcp_text::is_identifier;

/// Returns the progress of a job.
pub(super) fn update(state: &JobState, elapsed: Duration) -> ProgressUpdate {
    let mut update = counted(state, elapsed);
    if let Some(reason) = &state.reason {
        update.message.push_str(&format!(": {reason}"));
    }
    update
}

fn counted(state: &JobState, elapsed: Duration) -> ProgressUpdate {
    let status = state
        .status
        .as_deref()
        .filter(|status| is_identifier(status));
    let status = status.unwrap_or("running");
    // How much a failed job had found matters less than that it failed.
    match counts(&state.response).filter(|_| !state.is_failed) {
        Some(Counts {
            found,
            analyzed,
            requested,
        }) => ProgressUpdate {
            done: found,
            total: requested,
            is_quoted: false,
            message: match (analyzed, requested) {
                (Some(analyzed), Some(requested)) => {
                    format!("{status}: found {found} of {requested}, analyzed {analyzed}")
                }
                (None, Some(requested)) => format!("{status}: {found} of {requested}"),
                _ => format!("{status}: found {found}"),
            },
        },
        None => ProgressUpdate {
            done: elapsed.as_secs_f64().floor(),
            total: None,
            is_quoted: false,
            message: if state.is_final {
                format!("{status} after {} seconds", elapsed.as_secs())
            } else {
                format!("{status} for {} seconds", elapsed.as_secs())
            },
        },
    }
}

struct Counts {
    found: f64,
    analyzed: Option<f64>,
    requested: Option<f64>,
}

/// Returns the counts of a job, or the sums over all of its parts.
fn counts(response: &Value) -> Option<Counts> {
    if let Some(parts) = PARTS.list(response) {
        let all: Vec<Counts> = parts.iter().filter_map(counts).collect();
        let sum = |part: fn(&Counts) -> Option<f64>| all.iter().filter_map(part).sum();
        return (!all.is_empty()).then(|| Counts {
            found: sum(|one| Some(one.found)),
            analyzed: Some(sum(|one| one.analyzed)),
            requested: Some(sum(|one| one.requested)),
        });
    }
    Some(Counts {
        found: FOUND.number(response)?,
        analyzed: ANALYZED.number(response),
        requested: REQUESTED.number(response),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reports_counts_or_elapsed_time() {
        let state = |response| JobState {
            status: Some("running".to_owned()),
            is_final: false,
            is_failed: false,
            reason: None,
            is_blocked: false,
            response,
        };
        let search = json!({"count": 10, "progress": {"found": 3, "analyzed": 20}});
        let one = update(&state(search.clone()), Duration::ZERO);
        assert_eq!((one.done, one.total), (3.0, Some(10.0)));
        assert_eq!(one.message, "running: found 3 of 10, analyzed 20");
        let webset = json!({"searches": [search.clone(), search]});
        assert_eq!(update(&state(webset), Duration::ZERO).total, Some(20.0));
        let other = update(&state(json!({})), Duration::from_secs(7));
        assert_eq!((other.done, other.total), (7.0, None));
        assert_eq!(other.message, "running for 7 seconds");
    }
}

//! Following work that an operation started to its end.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::{Caller, LongRunning, Operation, Progress, Refusal, Step, all, find};
use crate::accounts::NoKey;
use crate::exa::ExaErrorKind;

/// The pause before the first look, and the longest one between two.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Looks that may fail in a row before the work is given up for lost.
const MOST_FAILURES: u32 = 12;

/// Work that goes on at Exa, and how to look at it.
#[derive(Debug, Clone)]
pub struct Following {
    get: &'static Operation,
    marker: &'static LongRunning,
    arguments: Map<String, Value>,
}

/// How work stands.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// The state in Exa's words.
    pub status: Option<String>,
    /// Nothing more will happen.
    pub is_final: bool,
    /// The latest answer.
    pub answer: Value,
}

/// How following came out.
#[derive(Debug)]
pub enum Followed {
    /// The work ended.
    Ended(State),
    /// The time was up first; this is the latest that is known, if anything is.
    TimeUp(Option<State>),
    /// The work cannot be looked at any more.
    Lost(Refusal),
}

impl Following {
    /// How to follow what a call started, or what it looked at; `None` for calls that do neither.
    pub fn of(
        operation: &'static Operation,
        sent: &Map<String, Value>,
        answer: &Value,
    ) -> Option<Self> {
        if let Some(marker) = &operation.long_running {
            return Self::started(marker, sent, answer);
        }
        let mut markers = all().iter().filter_map(|other| other.long_running.as_ref());
        let marker = markers.find(|marker| marker.get == operation.name)?;
        Some(Self {
            get: operation,
            marker,
            arguments: sent.clone(),
        })
    }

    fn started(
        marker: &'static LongRunning,
        sent: &Map<String, Value>,
        answer: &Value,
    ) -> Option<Self> {
        let argument = |(name, source): &(&str, &str)| {
            let value = match source.strip_prefix('$') {
                Some(argument) => sent.get(argument),
                None => answer.get(*source),
            };
            Some(((*name).to_owned(), value?.clone()))
        };
        Some(Self {
            get: find(marker.get)?,
            marker,
            arguments: marker
                .arguments
                .iter()
                .map(argument)
                .collect::<Option<_>>()?,
        })
    }

    /// The same work, known by the operation that looks at it and its arguments.
    pub fn again(get: &str, arguments: Map<String, Value>) -> Option<Self> {
        Self::of(find(get)?, &arguments, &Value::Null)
    }

    /// The operation that looks at the work, and its arguments.
    pub fn check_with(&self) -> (&'static str, &Map<String, Value>) {
        (self.get.name, &self.arguments)
    }

    /// The operation that ends the work early, where there is one.
    pub fn cancel_with(&self) -> Option<&'static str> {
        self.marker.cancel
    }

    /// How an answer says that the work stands.
    pub fn state(&self, answer: Value) -> State {
        let status = answer.get(self.marker.status).and_then(Value::as_str);
        let is_final = status.is_some_and(|status| self.marker.final_states.contains(&status));
        State {
            status: status.map(str::to_owned),
            is_final,
            answer,
        }
    }

    /// Whether a failed look says that the work cannot be looked at any more.
    pub fn is_lost(&self, refusal: &Refusal) -> bool {
        passing(refusal).is_none()
    }

    /// Looks once.
    pub async fn look(&self, caller: &Caller) -> Result<State, Refusal> {
        let called = caller.call(self.get, self.arguments.clone().into()).await?;
        Ok(self.state(called.answer.value))
    }

    /// Ends the work early.
    pub async fn cancel(&self, caller: &Caller) -> Option<Result<Value, Refusal>> {
        let operation = find(self.marker.cancel?)?;
        let called = caller.call(operation, self.arguments.clone().into()).await;
        Some(called.map(|called| called.answer.value))
    }

    /// Looks again and again until the work ends or the time is up: often at first, then less, and
    /// never more than once a second. Passing failures are waited out.
    pub async fn until_end(
        &self,
        caller: &Caller,
        deadline: Instant,
        progress: &Progress,
    ) -> Followed {
        let _guard = Waiting::new(self);
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut latest = None;
        let mut failures = 0;
        loop {
            let wait = with_jitter(pause);
            if Instant::now() + wait >= deadline {
                sleep(deadline.saturating_duration_since(Instant::now())).await;
                return self.last_look(caller, latest).await;
            }
            sleep(wait).await;
            let Ok(look) = timeout_at(deadline, self.look(caller)).await else {
                return Followed::TimeUp(latest);
            };
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
            match look {
                Ok(state) => {
                    failures = 0;
                    progress.tell(step(&state, started.elapsed()));
                    if state.is_final {
                        return Followed::Ended(state);
                    }
                    latest = Some(state);
                }
                Err(refusal) => match passing(&refusal) {
                    Some(retry_after) if failures < MOST_FAILURES => {
                        failures += 1;
                        pause = pause.max(retry_after);
                    }
                    _ => return Followed::Lost(refusal),
                },
            }
        }
    }

    /// The time is up; the answer should still be the newest.
    async fn last_look(&self, caller: &Caller, latest: Option<State>) -> Followed {
        let short = Instant::now() + FIRST_PAUSE * 5;
        match timeout_at(short, self.look(caller)).await {
            Ok(Ok(state)) if state.is_final => Followed::Ended(state),
            Ok(Ok(state)) => Followed::TimeUp(Some(state)),
            _ => Followed::TimeUp(latest),
        }
    }
}

/// Says in the log what goes on at Exa when nobody waits for it any more.
struct Waiting<'a>(&'a Following);

impl<'a> Waiting<'a> {
    fn new(following: &'a Following) -> Self {
        Self(following)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let (operation, arguments) = self.0.check_with();
        let ids: Vec<&str> = arguments.values().filter_map(Value::as_str).collect();
        tracing::debug!(operation, work = ids.join(" "), "no longer waited for");
    }
}

/// How long to wait at least after a failure that may pass; `None` for one that will not.
fn passing(refusal: &Refusal) -> Option<Duration> {
    match refusal {
        Refusal::Exa(error) if error.is_retryable() => Some(error.retry_after.unwrap_or_default()),
        // A server that is being changed may answer anything for a moment, but "not found" is final.
        Refusal::Exa(error) => match error.kind {
            ExaErrorKind::Api(status) if status >= 500 => Some(Duration::ZERO),
            _ => None,
        },
        Refusal::KeysOut(NoKey::AllRest(wait)) => Some(*wait),
        Refusal::NoKey | Refusal::KeysOut(_) | Refusal::Arguments(_) => None,
    }
}

/// Many who wait for the same thing should not all look at once.
fn with_jitter(pause: Duration) -> Duration {
    pause.mul_f64(1.0 + fastrand::f64() * 0.25)
}

/// How far the work is, in numbers where the answer has some.
fn step(state: &State, elapsed: Duration) -> Step {
    let status = state.status.as_deref().unwrap_or("running");
    let counts = counts(&state.answer);
    match counts {
        Some(Counts {
            found,
            analyzed,
            wanted,
        }) => Step {
            done: found,
            total: wanted,
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
            message: format!("{status} for {} seconds", elapsed.as_secs()),
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

/// How to look at work and how to end it, as other calls.
pub fn next_calls(following: &Following) -> Map<String, Value> {
    let (get, arguments) = following.check_with();
    let mut next = Map::new();
    next.insert(
        "checkWith".to_owned(),
        json!({"operation": get, "args": arguments}),
    );
    if let Some(cancel) = following.cancel_with() {
        let call = json!({"operation": cancel, "args": arguments});
        next.insert("cancelWith".to_owned(), call);
    }
    next
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn started(operation: &str, sent: Value, answer: Value) -> Following {
        let sent = sent.as_object().unwrap();
        Following::of(find(operation).unwrap(), sent, &answer).unwrap()
    }

    #[test]
    fn a_start_says_how_it_is_followed() {
        let search = started(
            "searches.create",
            json!({"websetId": "w", "query": "q"}),
            json!({"id": "s"}),
        );
        let next = Value::from(next_calls(&search));
        assert_eq!(
            next,
            json!({
                "checkWith": {"operation": "searches.get", "args": {"websetId": "w", "searchId": "s"}},
                "cancelWith": {"operation": "searches.cancel", "args": {"websetId": "w", "searchId": "s"}},
            })
        );
        let research = started("research.create", json!({}), json!({"researchId": "r"}));
        assert!(!next_calls(&research).contains_key("cancelWith"));
    }

    #[test]
    fn a_look_can_be_followed_too() {
        let look = started(
            "searches.get",
            json!({"websetId": "w", "searchId": "s"}),
            json!({}),
        );
        assert_eq!(look.check_with().0, "searches.get");
        assert_eq!(look.cancel_with(), Some("searches.cancel"));
        let none = Following::of(find("search").unwrap(), &Map::new(), &json!({}));
        assert!(none.is_none());
    }

    #[test]
    fn final_states_are_known() {
        let webset = started("websets.create", json!({}), json!({"id": "w"}));
        let is_final = |status: &str| webset.state(json!({"status": status})).is_final;
        assert!(is_final("idle") && is_final("paused"));
        assert!(!is_final("running") && !is_final("pending"));
    }

    #[test]
    fn steps_count_what_matters() {
        let state = |answer| State {
            status: Some("running".to_owned()),
            is_final: false,
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
    }
}

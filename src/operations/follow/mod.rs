//! Following work that an operation started to its end.

mod counts;
mod find;
mod judge;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout_at};

pub(crate) use find::{Found, Undecided};

use super::{Caller, Progress, Refusal, all, find as operation};
use exa_mcp_exa_client::{ExaErrorKind, KeyPoolError, release_response_memory};
use exa_mcp_model::{LongRunning, Operation};

/// The pause before the first look, and the longest one between two.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Looks that may fail in a row before the work is given up for lost: six minutes of failures.
const MOST_FAILURES: u32 = 30;

/// Looks in a row that may find nothing before the work was ever seen: what was made a moment ago is
/// not always known everywhere at once.
const MOST_MISSES: u32 = 3;

/// How often Exa is asked to end work early.
const MOST_CANCELS: u32 = 5;

/// Work that goes on at Exa, and how to look at it.
#[derive(Debug, Clone)]
pub(crate) struct Following {
    get: &'static Operation,
    marker: &'static LongRunning,
    arguments: Map<String, Value>,
}

/// How work stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    /// The state in Exa's words.
    pub status: Option<String>,
    /// Nothing more will happen.
    pub is_final: bool,
    /// Nothing will happen before the caller does something.
    pub is_blocked: bool,
    /// The latest answer.
    pub answer: Value,
}

/// How following came out.
#[derive(Debug)]
pub(crate) enum Followed {
    /// The work ended.
    Ended(State),
    /// The time was up first; this is the latest that is known.
    TimeUp(State),
    /// The work cannot be looked at any more.
    Lost {
        /// The latest that is known.
        latest: State,
        /// Why not.
        refusal: Refusal,
    },
}

impl Following {
    /// How to follow what a call started, or what it looked at; `None` for calls that do neither.
    pub(crate) fn of(
        operation: &'static Operation,
        sent: &Map<String, Value>,
        answer: &Value,
    ) -> Option<Self> {
        if let Some(marker) = &operation.behavior.long_running {
            return Self::started(marker, sent, answer);
        }
        let mut markers = all()
            .iter()
            .filter_map(|other| other.behavior.long_running.as_ref());
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
        Some(Self {
            get: operation(&marker.get)?,
            marker,
            arguments: arguments(&marker.arguments, sent, answer)?,
        })
    }

    /// The same work, known by the operation that looks at it and its arguments.
    pub(crate) fn again(get: &str, arguments: Map<String, Value>) -> Option<Self> {
        Self::of(operation(get)?, &arguments, &Value::Null)
    }

    /// The operation that looks at the work.
    pub(crate) fn operation(&self) -> &'static Operation {
        self.get
    }

    /// The operation that looks at the work, and its arguments.
    pub(crate) fn check_with(&self) -> (&'static str, Map<String, Value>) {
        (self.get.name, self.arguments.clone())
    }

    /// The operation that ends the work early, where there is one, and its arguments: those that name
    /// the work, not those that say how to look at it.
    pub(crate) fn cancel_with(&self) -> Option<(&'static str, Map<String, Value>)> {
        let mut arguments = self.arguments.clone();
        arguments.retain(|name, _| self.marker.arguments.contains_key(name));
        Some((self.marker.cancel.as_deref()?, arguments))
    }

    /// Names the work among all work: the operation that looks at it, and the ids.
    pub(crate) fn key(&self) -> String {
        let ids = self.marker.arguments.keys().filter_map(|name| {
            let value = self.arguments.get(name)?;
            Some(
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned),
            )
        });
        let names: Vec<String> = [self.get.name.to_owned()].into_iter().chain(ids).collect();
        names.join(" ")
    }

    /// Whether an answer says that nothing more will happen.
    pub(crate) fn is_final(&self, answer: &Value) -> bool {
        let status = answer.get(&self.marker.status).and_then(Value::as_str);
        status.is_some_and(|status| self.marker.final_states.iter().any(|it| it == status))
    }

    /// How an answer says that the work stands.
    pub(crate) fn state(&self, answer: Value) -> State {
        let status = answer.get(&self.marker.status).and_then(Value::as_str);
        let is_final = self.is_final(&answer);
        let asks = |field: &str| answer.get(field).is_some_and(|value| !value.is_null());
        State {
            status: status.map(str::to_owned),
            is_final,
            is_blocked: self.marker.unless.as_deref().is_some_and(asks),
            answer,
        }
    }

    /// Whether a failed look says that the work cannot be looked at any more.
    pub(crate) fn is_lost(&self, refusal: &Refusal) -> bool {
        passing(refusal).is_none()
    }

    /// Looks once. A failed look is not repeated at once: whoever follows looks again anyway.
    pub(crate) async fn look(&self, caller: &Caller) -> Result<State, Refusal> {
        let look = caller.once().for_known_thing();
        let called = look.call(self.get, self.arguments.clone().into()).await?;
        Ok(self.state(called.answer.value))
    }

    /// Ends the work early; passing failures are waited out for a while. `None` where Exa offers no
    /// way.
    pub(crate) async fn cancel(&self, caller: &Caller) -> Option<Result<Value, Refusal>> {
        let (name, arguments) = self.cancel_with()?;
        let cancel = operation(name)?;
        let mut pause = FIRST_PAUSE;
        for _ in 1..MOST_CANCELS {
            match caller.call(cancel, arguments.clone().into()).await {
                Ok(called) => return Some(Ok(called.answer.value)),
                Err(refusal) => match passing(&refusal) {
                    Some(wish) => sleep(pause.max(wish).min(LONGEST_PAUSE)).await,
                    None => return Some(Err(refusal)),
                },
            }
            pause *= 2;
        }
        let called = caller.call(cancel, arguments.into()).await;
        Some(called.map(|called| called.answer.value))
    }

    /// Looks again and again until the work ends or the time is up: often at first, then less, and
    /// never more than once a second. Passing failures are waited out. `latest` is what is known so far;
    /// no older state is held, because many may be followed at once.
    pub(crate) async fn until_end(
        &self,
        caller: &Caller,
        deadline: Instant,
        progress: &Progress,
        latest: State,
    ) -> Followed {
        let mut guard = Waiting::new(self);
        let followed = self.looks(caller, deadline, progress, latest).await;
        guard.goes_on = matches!(followed, Followed::TimeUp(_));
        followed
    }

    async fn looks(
        &self,
        caller: &Caller,
        deadline: Instant,
        progress: &Progress,
        mut latest: State,
    ) -> Followed {
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut was_seen = false;
        let (mut failures, mut misses) = (0, 0);
        loop {
            // Nobody should wait for the memory of a state while nothing happens.
            release_response_memory();
            let wait = with_jitter(pause);
            if Instant::now() + wait >= deadline {
                sleep(deadline.saturating_duration_since(Instant::now())).await;
                return self.last_look(caller, latest).await;
            }
            sleep(wait).await;
            // Boxed, because most of the time is spent between the looks.
            let Ok(look) = timeout_at(deadline, Box::pin(self.look(caller))).await else {
                return Followed::TimeUp(latest);
            };
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
            match look {
                Ok(state) => {
                    failures = 0;
                    progress.tell(counts::step(&state, started.elapsed()));
                    if state.is_final {
                        return Followed::Ended(state);
                    }
                    (latest, was_seen) = (state, true);
                }
                Err(refusal) if is_missing(&refusal) && !was_seen && misses < MOST_MISSES => {
                    misses += 1;
                }
                Err(refusal) => match passing(&refusal) {
                    Some(wish) if failures < MOST_FAILURES => {
                        failures += 1;
                        pause = pause.max(wish);
                    }
                    _ => return Followed::Lost { latest, refusal },
                },
            }
        }
    }

    /// The time is up; the answer should still be the newest.
    async fn last_look(&self, caller: &Caller, latest: State) -> Followed {
        let short = Instant::now() + FIRST_PAUSE * 5;
        match timeout_at(short, Box::pin(self.look(caller))).await {
            Ok(Ok(state)) if state.is_final => Followed::Ended(state),
            Ok(Ok(state)) => Followed::TimeUp(state),
            _ => Followed::TimeUp(latest),
        }
    }
}

/// Arguments by the field of an answer or (with `$`) the argument of the start that holds each.
fn arguments(
    sources: &BTreeMap<String, String>,
    sent: &Map<String, Value>,
    answer: &Value,
) -> Option<Map<String, Value>> {
    let argument = |(name, source): (&String, &String)| {
        let value = match source.strip_prefix('$') {
            Some(argument) => sent.get(argument),
            None => answer.get(source),
        };
        Some((name.clone(), value?.clone()))
    };
    sources.iter().map(argument).collect()
}

/// Says in the log what goes on at Exa when nobody waits for it any more.
struct Waiting<'a> {
    following: &'a Following,
    goes_on: bool,
}

impl<'a> Waiting<'a> {
    /// Someone who stops waiting without a word leaves the work as it is.
    fn new(following: &'a Following) -> Self {
        let goes_on = true;
        Self { following, goes_on }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.goes_on {
            let (operation, arguments) = self.following.check_with();
            let ids: Vec<&str> = arguments.values().filter_map(Value::as_str).collect();
            tracing::info!(
                operation,
                work = ids.join(" "),
                "no longer waited for; it goes on at Exa"
            );
        }
    }
}

/// How long to wait at least after a failure that may pass; `None` for one that will not.
pub(super) fn passing(refusal: &Refusal) -> Option<Duration> {
    match refusal {
        Refusal::Exa(error) if error.is_retryable() => Some(error.retry_after.unwrap_or_default()),
        // A proxy on the way may answer with a page of its own for a moment.
        Refusal::Exa(error) if error.kind == ExaErrorKind::NotJson => Some(Duration::ZERO),
        Refusal::KeysOut(KeyPoolError::CoolingDown { wait, .. }) => Some(*wait),
        Refusal::Exa(_)
        | Refusal::NoKey(_)
        | Refusal::KeysOut(_)
        | Refusal::Arguments(_)
        | Refusal::Limit(_) => None,
    }
}

fn is_missing(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Exa(error) if error.kind == ExaErrorKind::Api(404))
}

/// Many who wait for the same thing should not all look at once.
fn with_jitter(pause: Duration) -> Duration {
    pause.mul_f64(1.0 + fastrand::f64() * 0.25)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn started(name: &str, sent: Value, answer: Value) -> Following {
        let sent = sent.as_object().unwrap();
        Following::of(operation(name).unwrap(), sent, &answer).unwrap()
    }

    #[test]
    fn a_start_says_how_it_is_followed() {
        let search = started(
            "searches.create",
            json!({"websetId": "w", "query": "q"}),
            json!({"id": "s"}),
        );
        let ids = json!({"websetId": "w", "searchId": "s"});
        let (get, arguments) = search.check_with();
        assert_eq!((get, Value::from(arguments)), ("searches.get", ids.clone()));
        let (cancel, arguments) = search.cancel_with().unwrap();
        assert_eq!((cancel, Value::from(arguments)), ("searches.cancel", ids));
        let research = started("research.create", json!({}), json!({"researchId": "r"}));
        assert_eq!(research.cancel_with(), None);
    }

    #[test]
    fn a_look_can_be_followed_too() {
        let look = started(
            "websets.get",
            json!({"websetId": "w", "expand": ["items"]}),
            json!({}),
        );
        assert_eq!(look.check_with().1.len(), 2);
        let (cancel, arguments) = look.cancel_with().unwrap();
        assert_eq!(cancel, "websets.cancel");
        assert_eq!(Value::from(arguments), json!({"websetId": "w"}));
        let run = started(
            "monitors.runs.get",
            json!({"monitorId": "m", "runId": "r"}),
            json!({"status": "running"}),
        );
        assert_eq!(run.check_with().0, "monitors.runs.get");
        let none = Following::of(operation("search").unwrap(), &Map::new(), &json!({}));
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
    fn an_import_without_its_file_waits_for_the_caller() {
        let import = started("imports.create", json!({}), json!({"id": "i"}));
        let blocked = |answer: Value| import.state(answer).is_blocked;
        assert!(blocked(
            json!({"status": "pending", "uploadUrl": "https://x.example"})
        ));
        assert!(!blocked(json!({"status": "pending"})));
        assert!(!blocked(json!({"status": "pending", "uploadUrl": null})));
    }
}

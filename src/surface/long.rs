//! Long work behind a call: started, found again after a restart, followed to its end.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::answer::{Answered, Asked, cleaned};
use super::work::{Attempt, TaskCall, Work};
use super::{Call, Catalogue, Outcome, failed};
use crate::operations::{Followed, Following, Found, Operation, Refusal, Undecided};
use exa_mcp_exa_client::ExaErrorKind;
use exa_mcp_store::milliseconds;

/// How long nothing is looked for after a restart: what the earlier process sent in its last moment may
/// still be on its way.
const QUIET: Duration = Duration::from_secs(10);

/// The pause between two tries to look for something.
const PAUSE: Duration = Duration::from_secs(1);

/// How often work is looked for whose start was answered without its name.
const MOST_LOOKS: usize = 3;

/// How often nothing must be found before a call is made again: what was made a moment ago is not always
/// listed at once.
const LOOKS_BEFORE_A_START: usize = 2;

/// How far back a start can be that was answered without the name of its work; the clocks of Exa and of
/// this machine may differ.
const RECENT: Duration = Duration::from_secs(60 * 60);

/// How long one such look may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What an earlier process left behind.
enum Left {
    /// Work to follow.
    Work(Following),
    /// Nothing: the call may be made.
    Nothing,
}

impl Catalogue {
    /// Goes on with the call of an earlier process, if the call is made for such a task; `None` if it
    /// has to be made now.
    pub(super) async fn resume(
        &self,
        call: &Call,
        asked: &Asked<'_>,
        arguments: &Map<String, Value>,
    ) -> Option<Result<Answered, Refusal>> {
        let task = call.task.as_ref()?;
        let left = match &task.attempt {
            Attempt::First => Ok(Left::Nothing),
            Attempt::Again(Some(work)) => match work.following() {
                Some(following) => Ok(Left::Work(following)),
                None => Err(self.unconfirmed(
                    asked,
                    task,
                    arguments,
                    &format!("this version does not know `{}`", work.get),
                )),
            },
            // What changes nothing may be asked for again.
            Attempt::Again(None) if asked.operation.read_only => Ok(Left::Nothing),
            Attempt::Again(None) => {
                sleep(QUIET).await;
                self.left_behind(task, asked, arguments, LOOKS_BEFORE_A_START)
                    .await
            }
        };
        let following = match left {
            Ok(Left::Work(following)) => following,
            Ok(Left::Nothing) if task.keeper.is_wanted() => return None,
            Ok(Left::Nothing) => return Some(Ok(Answered::failed(Outcome::unwanted()))),
            Err(outcome) => return Some(Ok(Answered::failed(outcome))),
        };
        Some(self.go_on(call, asked, arguments, &following).await)
    }

    /// Follows work that was started before.
    async fn go_on(
        &self,
        call: &Call,
        asked: &Asked<'_>,
        arguments: &Map<String, Value>,
        following: &Following,
    ) -> Result<Answered, Refusal> {
        let mut answered = Answered::new(Value::Null, arguments.clone());
        match following.look(&self.caller).await {
            Ok(state) => answered.answer = state.answer,
            Err(refusal) if following.is_lost(&refusal) => return Err(refusal),
            Err(_) => {}
        }
        self.follow(call, asked, following, &mut answered).await;
        Ok(answered)
    }

    /// A start failed in a way that leaves open whether it arrived. A task has the time to find out.
    pub(super) async fn unanswered(
        &self,
        call: &Call,
        asked: &Asked<'_>,
        arguments: Option<Map<String, Value>>,
        refusal: Refusal,
    ) -> Result<Answered, Refusal> {
        let (Some(task), Some(arguments)) = (&call.task, arguments) else {
            return Err(refusal);
        };
        if asked.operation.read_only || !may_have_arrived(&refusal) {
            return Err(refusal);
        }
        sleep(PAUSE * 2).await;
        match self.left_behind(task, asked, &arguments, 1).await {
            Ok(Left::Work(following)) => {
                // An error is not charged; a lost response is, at its reservation.
                if matches!(&refusal, Refusal::Exa(error) if matches!(error.kind, ExaErrorKind::Api(_)))
                {
                    let caller = &self.caller;
                    caller.adopt(asked.operation, &arguments, &following).await;
                }
                self.go_on(call, asked, &arguments, &following).await
            }
            Err(outcome) if is_listed(asked.operation) => Ok(Answered::failed(outcome)),
            Ok(Left::Nothing) | Err(_) => Err(refusal),
        }
    }

    /// What a call may have started that was never confirmed. There is nothing only if so many looks
    /// through the whole list find nothing.
    async fn left_behind(
        &self,
        task: &TaskCall,
        asked: &Asked<'_>,
        arguments: &Map<String, Value>,
        looks: usize,
    ) -> Result<Left, Outcome> {
        let unconfirmed = |why: &str| self.unconfirmed(asked, task, arguments, why);
        let operation = asked.operation;
        for look in 1.. {
            let deadline = task.deadline;
            let found =
                Following::find(&self.caller, operation, arguments, task.created, deadline).await;
            let found = found.ok_or_else(|| unconfirmed("Exa does not list what it starts"))?;
            let found = found.map_err(|undecided| unconfirmed(&reason(&undecided)))?;
            match claim(task, found).await {
                Some(Left::Nothing) if look < looks && task.keeper.is_wanted() => {
                    sleep(PAUSE * 5).await;
                }
                Some(left) => return Ok(left),
                None => {
                    return Err(unconfirmed(
                        "Exa lists work that does not say what it was asked",
                    ));
                }
            }
        }
        Ok(Left::Nothing)
    }

    /// It cannot be decided whether a call started something.
    fn unconfirmed(
        &self,
        asked: &Asked<'_>,
        task: &TaskCall,
        arguments: &Map<String, Value>,
        why: &str,
    ) -> Outcome {
        let list = self.list_call(asked, arguments);
        let what = match task.attempt {
            Attempt::First => "Exa's answer got lost before it confirmed",
            Attempt::Again(_) => "The server ended before Exa confirmed",
        };
        Outcome::unconfirmed(asked.operation.name, (what, why), task.created, list)
    }

    /// Follows what a call has just started or looked at, if it did either.
    pub(super) async fn follow_new(
        &self,
        call: &Call,
        asked: &Asked<'_>,
        before: Option<Vec<Work>>,
        answered: &mut Answered,
    ) {
        let operation = asked.operation;
        // Who only looks at work does not own it.
        let task = call.task.as_ref().filter(|_| !operation.read_only);
        let named = Following::of(operation, &answered.arguments, &answered.answer);
        let following = match (named, before) {
            (Some(following), _) => match task {
                Some(task) if !task.keeper.keep(Work::of(&following)).await => {
                    answered.failure = Some(Box::new(Outcome::unwanted()));
                    return;
                }
                _ => Some(following),
            },
            (None, Some(before)) => {
                let arguments = &answered.arguments;
                self.named_later(task, operation, arguments, &before).await
            }
            (None, None) => None,
        };
        match following {
            Some(following) => self.follow(call, asked, &following, answered).await,
            None => self.tell_list(asked, answered),
        }
    }

    /// Waits for the end of what a call started or looked at, as long as the caller wants to.
    pub(super) async fn follow(
        &self,
        call: &Call,
        asked: &Asked<'_>,
        following: &Following,
        answered: &mut Answered,
    ) {
        let mut state = following.state(answered.answer.take());
        let mut lost = None;
        let deadline = match &call.task {
            Some(task) => task.deadline,
            None => Instant::now() + asked.options.wait(),
        };
        if deadline > Instant::now() && !state.is_final && !state.is_blocked {
            let progress = call.progress.beyond(answered.told);
            let followed = following.until_end(&self.caller, deadline, &progress, state);
            match followed.await {
                Followed::Ended(ended) => state = ended,
                Followed::TimeUp(latest) => state = latest,
                Followed::Lost { latest, refusal } => {
                    state = latest;
                    lost = Some(failed(following.operation(), &refusal));
                }
            }
        }
        let next = || self.next_calls(asked.tool, following);
        if call.task.is_some() && !state.is_final && !state.is_blocked {
            let status = state.status.as_deref();
            let outcome = Outcome::unfinished(asked.operation.name, status, lost, next());
            answered.failure = Some(Box::new(outcome));
            return;
        }
        if let Some(lost) = lost {
            let first = lost.text.lines().next().unwrap_or_default();
            answered.warnings.push(format!(
                "it was started, but cannot be looked at any more: {first}"
            ));
        }
        if !asked.operation.read_only || asked.options.waits() {
            let is_complete = json!(state.is_final);
            answered.work.insert("isComplete".to_owned(), is_complete);
            if !state.is_final {
                answered.work.extend(next());
            }
        }
        answered.answer = cleaned(state.answer);
    }

    /// What there is of the kind that a call starts without naming it, for callers who want to wait.
    pub(super) async fn seen_before(
        &self,
        call: &Call,
        asked: &Asked<'_>,
        arguments: &Map<String, Value>,
    ) -> Option<Vec<Work>> {
        let waits = call.task.is_some() || !asked.options.wait().is_zero();
        if !waits || !names_nothing(asked.operation) {
            return None;
        }
        let found = self.recent(asked.operation, arguments).await;
        let found = found?.ok()?;
        Some(found.same.iter().map(Work::of).collect())
    }

    /// Work of the kind that an operation starts, as far back as clocks may differ.
    async fn recent(
        &self,
        operation: &'static Operation,
        arguments: &Map<String, Value>,
    ) -> Option<Result<Found, Undecided>> {
        let since = milliseconds(SystemTime::now() - RECENT);
        let deadline = Instant::now() + PATIENCE;
        Following::find(&self.caller, operation, arguments, since, deadline).await
    }

    /// The work that a call has started without naming it.
    async fn named_later(
        &self,
        task: Option<&TaskCall>,
        operation: &'static Operation,
        arguments: &Map<String, Value>,
        before: &[Work],
    ) -> Option<Following> {
        for _ in 0..MOST_LOOKS {
            let found = self.recent(operation, arguments).await;
            let found = found?.unwrap_or_default();
            let works = found.same.into_iter().map(|one| (Work::of(&one), one));
            for (work, following) in works.filter(|(work, _)| !before.contains(work)) {
                match task {
                    Some(task) if !task.keeper.keep(work).await => {}
                    _ => return Some(following),
                }
            }
            sleep(PAUSE).await;
        }
        None
    }

    /// Tells where work shows up that was started without being named.
    fn tell_list(&self, asked: &Asked<'_>, answered: &mut Answered) {
        let call = self.list_call(asked, &answered.arguments);
        let call = call.map(|call| ("checkWith".to_owned(), call));
        answered.work.extend(call);
    }

    /// The call that lists what an operation starts.
    fn list_call(&self, asked: &Asked<'_>, arguments: &Map<String, Value>) -> Option<Value> {
        let marker = asked.operation.long_running.as_ref();
        let find = marker.and_then(|marker| marker.find.as_ref())?;
        let argument = |(name, source): &(&str, &str)| {
            let value = arguments.get(source.strip_prefix('$')?)?;
            Some(((*name).to_owned(), value.clone()))
        };
        let arguments: Option<Map<String, Value>> = find.arguments.iter().map(argument).collect();
        self.next_call(asked.tool, find.list, &arguments?)
    }
}

/// Whether Exa lists what an operation starts.
fn is_listed(operation: &Operation) -> bool {
    let marker = operation.long_running.as_ref();
    marker.is_some_and(|marker| marker.find.is_some())
}

/// Whether the answer of an operation does not name the work that it starts.
fn names_nothing(operation: &Operation) -> bool {
    let find = operation
        .long_running
        .as_ref()
        .and_then(|marker| marker.find.as_ref());
    find.is_some_and(|find| find.same.is_empty())
}

/// The oldest work that no other task has; `None` if it cannot be told.
async fn claim(task: &TaskCall, found: Found) -> Option<Left> {
    for following in found.same {
        if task.keeper.keep(Work::of(&following)).await {
            return Some(Left::Work(following));
        }
        if !task.keeper.is_wanted() {
            return Some(Left::Nothing);
        }
    }
    for following in found.unclear {
        if !task.keeper.is_taken(Work::of(&following)).await {
            return None;
        }
    }
    Some(Left::Nothing)
}

/// Why it cannot be decided whether there is some work.
fn reason(undecided: &Undecided) -> String {
    match undecided {
        Undecided::Refused { list, refusal } => {
            let refused = failed(list, refusal);
            let first = refused.text.lines().next().unwrap_or_default();
            format!("`{}` failed: {}", list.name, first.trim_end_matches('.'))
        }
        Undecided::NoEnd { list, why } => {
            format!("`{}` cannot be read to its end: {why}", list.name)
        }
        Undecided::TimeUp { list, pages } => format!(
            "the time was over after {pages} pages of `{}`, before its end",
            list.name
        ),
    }
}

/// Whether a call that failed like this may have taken effect.
fn may_have_arrived(refusal: &Refusal) -> bool {
    let Refusal::Exa(error) = refusal else {
        return false;
    };
    match error.kind {
        ExaErrorKind::Timeout | ExaErrorKind::ConnectionLost | ExaErrorKind::NotJson => true,
        // An overloaded server has not begun.
        ExaErrorKind::Api(status) => status >= 500 && status != 503,
        _ => false,
    }
}

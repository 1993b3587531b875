//! Long work behind a call: started, found again after a restart, followed to its end.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::answer::{Answered, Asked, cleaned};
use super::work::{Attempt, TaskCall, Work};
use super::{Call, Catalogue, Outcome, failed};
use crate::exa::ExaErrorKind;
use crate::operations::{Followed, Following, Found, Operation, Refusal};

/// How long nothing is looked for after a restart: what the earlier process sent in its last moment may
/// still be on its way.
const QUIET: Duration = Duration::from_secs(10);

/// The pause between two tries to look for something.
const PAUSE: Duration = Duration::from_secs(1);

/// How often work is looked for whose start was answered without its name.
const MOST_LOOKS: usize = 3;

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
                None => Err(Outcome::unconfirmed(asked.operation.name)),
            },
            // What changes nothing may be asked for again.
            Attempt::Again(None) if asked.operation.read_only => Ok(Left::Nothing),
            Attempt::Again(None) => {
                sleep(QUIET).await;
                self.left_behind(task, asked.operation, arguments).await
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
        match self.left_behind(task, asked.operation, &arguments).await {
            Ok(Left::Work(following)) => self.go_on(call, asked, &arguments, &following).await,
            Ok(Left::Nothing) | Err(_) => Err(refusal),
        }
    }

    /// What a call may have started that was never confirmed.
    async fn left_behind(
        &self,
        task: &TaskCall,
        operation: &'static Operation,
        arguments: &Map<String, Value>,
    ) -> Result<Left, Outcome> {
        let unconfirmed = || Outcome::unconfirmed(operation.name);
        let find = operation
            .long_running
            .as_ref()
            .and_then(|marker| marker.find.as_ref());
        find.ok_or_else(unconfirmed)?;
        loop {
            let found = Following::find(&self.caller, operation, arguments, task.created).await;
            match found {
                Some(Ok(found)) => return claim(task, found).await.ok_or_else(unconfirmed),
                Some(Err(refusal)) if is_passing(&refusal) && Instant::now() < task.deadline => {
                    sleep(PAUSE * 5).await;
                }
                Some(Err(_)) | None => return Err(unconfirmed()),
            }
        }
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
        let found = Following::find(&self.caller, asked.operation, arguments, 0).await;
        let found = found?.ok()?;
        Some(found.same.iter().map(Work::of).collect())
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
            let found = Following::find(&self.caller, operation, arguments, 0).await;
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
        let marker = asked.operation.long_running.as_ref();
        let Some(find) = marker.and_then(|marker| marker.find.as_ref()) else {
            return;
        };
        let argument = |(name, source): &(&str, &str)| {
            let value = answered.arguments.get(source.strip_prefix('$')?)?;
            Some(((*name).to_owned(), value.clone()))
        };
        let arguments: Option<Map<String, Value>> = find.arguments.iter().map(argument).collect();
        if let Some(arguments) = arguments {
            let call = self.next_call(asked.tool, find.list, &arguments);
            let call = call.map(|call| ("checkWith".to_owned(), call));
            answered.work.extend(call);
        }
    }
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

fn is_passing(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Exa(error) if error.is_retryable())
}

//! Long work behind a call: started, found again after a restart, followed to its end.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::call::OperationCall;
use super::claims::Claims;
use super::context::ToolContext;
use super::error::{ToolError, Unconfirmed, Unfinished};
use super::executor::ToolExecutor;
use super::operation_run::{Answered, cleaned};
use super::outcome::ToolResult;
use super::work::{Attempt, TaskCall, Work};
use super::{error_messages, follow_up};
use crate::operations::spend::LostReservation;
use crate::operations::{JobMatches, JobSearchError, OperationError, PollOutcome, RemoteJob};
use exa_mcp_exa_client::ExaErrorKind;
use exa_mcp_model::Operation;
use exa_mcp_model::time::milliseconds;

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
    Work(RemoteJob),
    /// Nothing: the call may be made.
    Nothing,
}

/// Follows the work behind one call.
pub(super) struct Polling<'a> {
    tools: &'a ToolExecutor,
    context: &'a ToolContext,
    call: &'a OperationCall,
    operation: &'static Operation,
}

impl<'a> Polling<'a> {
    pub(super) fn new(
        tools: &'a ToolExecutor,
        context: &'a ToolContext,
        call: &'a OperationCall,
    ) -> Self {
        Self {
            tools,
            context,
            call,
            operation: call.operation,
        }
    }

    /// Goes on with the call of an earlier process, if the call is made for such a task; `None` if it
    /// has to be made now.
    pub(super) async fn resume(
        &self,
        arguments: &Map<String, Value>,
    ) -> Option<ToolResult<Answered>> {
        let task = self.context.task.as_ref()?;
        let left = match &task.attempt {
            Attempt::First => Ok(Left::Nothing),
            Attempt::Again(Some(work)) => work.following().map(Left::Work).ok_or_else(|| {
                let why = format!("this version does not know `{}`", work.get);
                self.unconfirmed(task, arguments, why)
            }),
            // What changes nothing may be asked for again.
            Attempt::Again(None) if self.operation.read_only => Ok(Left::Nothing),
            Attempt::Again(None) => {
                sleep(QUIET).await;
                self.left_behind(task, arguments, LOOKS_BEFORE_A_START)
                    .await
            }
        };
        match left {
            Ok(Left::Work(following)) => Some(self.go_on(arguments, &following).await),
            Ok(Left::Nothing) if task.keeper.is_wanted() => None,
            Ok(Left::Nothing) => Some(Err(ToolError::Cancelled.into())),
            Err(error) => Some(Err(error)),
        }
    }

    /// Follows work that was started before.
    async fn go_on(
        &self,
        arguments: &Map<String, Value>,
        following: &RemoteJob,
    ) -> ToolResult<Answered> {
        let mut answered = Answered::new(Value::Null, arguments.clone());
        match following.poll(self.tools.caller()).await {
            Ok(state) => answered.answer = state.response,
            Err(refusal) if following.is_lost(&refusal) => return Err(self.refused(refusal)),
            Err(_) => {}
        }
        self.follow(following, &mut answered).await?;
        Ok(answered)
    }

    fn refused(&self, refusal: OperationError) -> Box<ToolError> {
        ToolError::refused(self.operation, refusal)
    }

    /// A start failed in a way that leaves open whether it arrived. A task has the time to find out.
    pub(super) async fn unanswered(
        &self,
        arguments: Option<Map<String, Value>>,
        refusal: OperationError,
        lost: LostReservation,
    ) -> ToolResult<Answered> {
        let (Some(task), Some(arguments)) = (&self.context.task, arguments) else {
            return Err(self.refused(refusal));
        };
        if self.operation.read_only || !may_have_arrived(&refusal) {
            return Err(self.refused(refusal));
        }
        sleep(PAUSE * 2).await;
        match self.left_behind(task, &arguments, 1).await {
            Ok(Left::Work(following)) => {
                // An error is not charged, so nothing was kept of its reservation.
                if !lost.transfer_to(&following).await && is_api_error(&refusal) {
                    let caller = self.tools.caller();
                    caller
                        .charge_recovered_job(self.operation, &arguments, &following)
                        .await;
                }
                self.go_on(&arguments, &following).await
            }
            Err(error) if is_listed(self.operation) => Err(error),
            Ok(Left::Nothing) | Err(_) => Err(self.refused(refusal)),
        }
    }

    /// What a call may have started that was never confirmed. There is nothing only if so many looks
    /// through the whole list find nothing.
    async fn left_behind(
        &self,
        task: &TaskCall,
        arguments: &Map<String, Value>,
        looks: usize,
    ) -> ToolResult<Left> {
        let unconfirmed = |why: String| self.unconfirmed(task, arguments, why);
        let caller = self.tools.caller();
        for look in 1.. {
            let deadline = task.deadline;
            let found =
                RemoteJob::find(caller, self.operation, arguments, task.created, deadline).await;
            let found =
                found.ok_or_else(|| unconfirmed("Exa does not list what it starts".to_owned()))?;
            let found = found.map_err(|undecided| unconfirmed(reason(undecided)))?;
            match claim(task, found).await {
                Some(Left::Nothing) if look < looks && task.keeper.is_wanted() => {
                    sleep(PAUSE * 5).await;
                }
                Some(left) => return Ok(left),
                None => {
                    let why = "Exa lists work that does not say what it was asked";
                    return Err(unconfirmed(why.to_owned()));
                }
            }
        }
        Ok(Left::Nothing)
    }

    /// It cannot be decided whether a call started something.
    fn unconfirmed(
        &self,
        task: &TaskCall,
        arguments: &Map<String, Value>,
        reason: String,
    ) -> Box<ToolError> {
        let event = match task.attempt {
            Attempt::First => "Exa's answer got lost before it confirmed",
            Attempt::Again(_) => "The server ended before Exa confirmed",
        };
        Box::new(ToolError::Unconfirmed(Unconfirmed {
            operation: self.operation.name,
            event,
            reason,
            since: task.created,
            list: self.list_call(arguments),
        }))
    }

    /// Follows what a call has just started or looked at, if it did either.
    pub(super) async fn follow_new(
        &self,
        before: Option<Vec<Work>>,
        answered: &mut Answered,
    ) -> ToolResult<()> {
        let operation = self.operation;
        // Who only looks at work does not own it.
        let task = self.context.task.as_ref();
        let task = task.filter(|_| !operation.read_only);
        let named = RemoteJob::from_call(operation, &answered.arguments, &answered.answer);
        let following = match (named, before) {
            (Some(following), _) => {
                if let Some(task) = task
                    && !task.keeper.keep(Work::of(&following)).await
                {
                    return Err(ToolError::Cancelled.into());
                }
                if task.is_none() {
                    self.claim_for_call(&following);
                }
                Some(following)
            }
            (None, Some(before)) => self.named_later(task, &answered.arguments, &before).await,
            (None, None) => None,
        };
        match following {
            Some(following) => self.follow(&following, answered).await,
            None => {
                // Tells where work shows up that was started without being named.
                let call = self.list_call(&answered.arguments);
                let call = call.map(|call| ("checkWith".to_owned(), call));
                answered.work.extend(call);
                Ok(())
            }
        }
    }

    /// Records that work belongs to a call that is no task. The answer does not wait for that.
    fn claim_for_call(&self, following: &RemoteJob) {
        let store = self.tools.store();
        // A store that nobody made holds no tasks.
        if self.operation.read_only || !store.may_contain_data() {
            return;
        }
        let work = Work::of(following);
        tokio::spawn(async move {
            if let Err(error) = Claims::of(&*store).record(&work, None).await {
                tracing::debug!(%work, %error, "a task may take it for its own");
            }
        });
    }

    /// Waits for the end of what a call started or looked at, as long as the caller wants to.
    async fn follow(&self, following: &RemoteJob, answered: &mut Answered) -> ToolResult<()> {
        let (task, options) = (&self.context.task, &self.call.options);
        let mut state = following.state(answered.answer.take());
        let mut lost = None;
        let deadline = match task {
            Some(task) => task.deadline,
            None => Instant::now() + options.wait(),
        };
        if deadline > Instant::now() && !state.is_final && !state.is_blocked {
            let progress = self.context.progress.with_offset(answered.told);
            let followed =
                following.poll_until_done(self.tools.caller(), deadline, &progress, state);
            match followed.await {
                PollOutcome::Finished(ended) => state = ended,
                PollOutcome::TimedOut(latest) => state = latest,
                PollOutcome::Lost { latest, error } => {
                    state = latest;
                    lost = Some(ToolError::refused(following.operation(), error));
                }
            }
        }
        let next = || follow_up::next_calls(self.tools.registry(), &self.call.tool, following);
        if task.is_some() && !state.is_final && !state.is_blocked {
            return Err(Box::new(ToolError::Unfinished(Unfinished {
                operation: self.operation.name,
                status: state.status,
                cause: lost,
                next: next(),
            })));
        }
        if let Some(lost) = lost {
            let first = error_messages::headline(&lost);
            answered.warnings.push(format!(
                "it was started, but cannot be looked at any more: {first}"
            ));
        }
        if !self.operation.read_only || options.waits() {
            let is_complete = json!(state.is_final);
            answered.work.insert("isComplete".to_owned(), is_complete);
            if !state.is_final {
                answered.work.extend(next());
            }
        }
        answered.answer = cleaned(state.response).await;
        Ok(())
    }

    /// What there is of the kind that a call starts without naming it, for callers who want to wait.
    pub(super) async fn seen_before(&self, arguments: &Map<String, Value>) -> Option<Vec<Work>> {
        let waits = self.context.task.is_some() || !self.call.options.wait().is_zero();
        if !waits || !names_nothing(self.operation) {
            return None;
        }
        let found = self.recent(arguments).await;
        let found = found?.ok()?;
        Some(found.matching.iter().map(Work::of).collect())
    }

    /// Work of the kind that the operation starts, as far back as clocks may differ.
    async fn recent(
        &self,
        arguments: &Map<String, Value>,
    ) -> Option<Result<JobMatches, JobSearchError>> {
        let since = milliseconds(SystemTime::now() - RECENT);
        let deadline = Instant::now() + PATIENCE;
        let caller = self.tools.caller();
        RemoteJob::find(caller, self.operation, arguments, since, deadline).await
    }

    /// The work that a call has started without naming it.
    async fn named_later(
        &self,
        task: Option<&TaskCall>,
        arguments: &Map<String, Value>,
        before: &[Work],
    ) -> Option<RemoteJob> {
        for _ in 0..MOST_LOOKS {
            let found = self.recent(arguments).await;
            let found = found?.unwrap_or_default();
            let works = found.matching.into_iter().map(|one| (Work::of(&one), one));
            for (work, following) in works.filter(|(work, _)| !before.contains(work)) {
                match task {
                    Some(task) if !task.keeper.adopt(work).await => {}
                    Some(_) => return Some(following),
                    None => {
                        self.claim_for_call(&following);
                        return Some(following);
                    }
                }
            }
            sleep(PAUSE).await;
        }
        None
    }

    /// The call that lists what the operation starts.
    fn list_call(&self, arguments: &Map<String, Value>) -> Option<Value> {
        let marker = self.operation.behavior.long_running.as_ref();
        let find = marker.and_then(|marker| marker.find.as_ref())?;
        let argument = |(name, source): (&String, &String)| {
            let value = arguments.get(source.strip_prefix('$')?)?;
            Some((name.clone(), value.clone()))
        };
        let arguments: Option<Map<String, Value>> = find.arguments.iter().map(argument).collect();
        let (registry, tool) = (self.tools.registry(), &self.call.tool);
        follow_up::next_call(registry, tool, &find.list, &arguments?)
    }
}

/// Whether Exa lists what an operation starts.
fn is_listed(operation: &Operation) -> bool {
    let marker = operation.behavior.long_running.as_ref();
    marker.is_some_and(|marker| marker.find.is_some())
}

/// Whether the answer of an operation does not name the work that it starts.
fn names_nothing(operation: &Operation) -> bool {
    let find = operation
        .behavior
        .long_running
        .as_ref()
        .and_then(|marker| marker.find.as_ref());
    find.is_some_and(|find| find.same.is_empty())
}

/// The oldest work that no other task has; `None` if it cannot be told.
async fn claim(task: &TaskCall, found: JobMatches) -> Option<Left> {
    for following in found.matching {
        if task.keeper.adopt(Work::of(&following)).await {
            return Some(Left::Work(following));
        }
        if !task.keeper.is_wanted() {
            return Some(Left::Nothing);
        }
    }
    for following in found.possible {
        if !task.keeper.is_taken(Work::of(&following)).await {
            return None;
        }
    }
    Some(Left::Nothing)
}

/// Why it cannot be decided whether there is some work.
fn reason(undecided: JobSearchError) -> String {
    match undecided {
        JobSearchError::ListFailed { list, error } => {
            let first = error_messages::headline(&ToolError::refused(list, error));
            format!("`{}` failed: {}", list.name, first.trim_end_matches('.'))
        }
        JobSearchError::Endless { list, reason } => {
            format!("`{}` cannot be read to its end: {reason}", list.name)
        }
        JobSearchError::TimedOut { list, pages } => format!(
            "the time was over after {pages} pages of `{}`, before its end",
            list.name
        ),
    }
}

/// Whether a call that failed like this may have taken effect.
fn may_have_arrived(refusal: &OperationError) -> bool {
    let OperationError::Exa(error) = refusal else {
        return false;
    };
    match error.kind {
        ExaErrorKind::Timeout | ExaErrorKind::ConnectionLost | ExaErrorKind::NotJson => true,
        // An overloaded server has not begun.
        ExaErrorKind::Api(status) => status >= 500 && status != 503 || error.is_from_gateway(),
        _ => error.is_from_gateway(),
    }
}

fn is_api_error(refusal: &OperationError) -> bool {
    matches!(refusal, OperationError::Exa(error) if matches!(error.kind, ExaErrorKind::Api(_)))
}

//! The answers to what a task asks. The client of 2026-07-28 finds the questions with the task and updates it;
//! the one of 2025-11-25 is asked while it waits for the result.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ErrorData, InputResponses};
use rmcp::service::RequestContext;
use tokio::sync::watch;
use tokio::time::sleep;

use super::super::client::{self, Carried, Detected, Patience};
use super::super::version::Era;
use super::input::Answer;
use super::{Live, Record, Tasks, Tools, unkept};
use crate::operations::client::{ClientCapabilities, Question};
use exa_mcp_model::{Identity, lock};
use exa_mcp_store::StoreError;

/// How often is looked for what another process may have changed.
const PAUSE: Duration = Duration::from_secs(1);

impl<T: Tools> Tasks<T> {
    /// Takes the answers of a client of 2026-07-28. Those to what is not asked do not count.
    pub(in super::super) async fn update(
        &self,
        owner: &Identity,
        id: &str,
        responses: InputResponses,
    ) -> Result<(), ErrorData> {
        self.get(owner, id).await?;
        let responses = responses.into_iter();
        let answers = responses.filter(|(_, answer)| !answer.is_null());
        let answers = answers
            .map(|(key, answer)| (key, Ok(answer)))
            .collect::<Vec<_>>();
        self.answer(owner, id, answers).await.map_err(unkept)
    }

    /// Takes answers. With the last one the task goes on.
    pub(super) async fn answer(
        &self,
        owner: &Identity,
        id: &str,
        answers: impl AsRef<[(String, Answer)]>,
    ) -> Result<(), StoreError> {
        let take = |record: &mut Record| record.take_answers(answers.as_ref());
        self.shared.shelf.change(owner, id, take).await?;
        self.turn(id);
        Ok(())
    }

    /// Tells those who wait that a task asks something else now.
    pub(super) fn turn(&self, id: &str) {
        if let Some(running) = self.running().get(id) {
            running.live.send_modify(|live| live.turns += 1);
        }
    }

    /// The next time that a task asks something else than now, or is over; `None` if another process runs
    /// it.
    pub(super) fn next_turn(&self, id: &str) -> Option<Turn> {
        let live = self.running().get(id)?.live.subscribe();
        let seen = live.borrow().turns;
        let is_shared = self.shared.shelf.store().is_shared();
        Some(Turn {
            live,
            seen,
            is_shared,
        })
    }

    /// Waits until a task of this owner is final. Meanwhile its client is asked what the task asks.
    pub(super) async fn finished(
        &self,
        owner: &Identity,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<Record, ErrorData> {
        let era = Era::of(context.protocol_version());
        let capabilities = Detected::of(context, &era).capabilities();
        loop {
            let turn = self.next_turn(id);
            let record = self.get(owner, id).await?;
            if record.is_final() {
                return Ok(record);
            }
            let unasked = self.unasked(&record, capabilities);
            // Many may wait at once, and none of them needs it.
            drop(record);
            match unasked {
                Some((key, question, _asked)) => {
                    let carried = self.carry(owner, id, &key, &question, context);
                    Box::pin(carried).await?;
                }
                None => tokio::select! {
                    () = here(turn) => {}
                    () = context.ct.cancelled() => return Err(cancelled()),
                },
            }
        }
    }

    /// Asks one question and takes the answer.
    async fn carry(
        &self,
        owner: &Identity,
        id: &str,
        key: &str,
        question: &Question,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let patience = Patience::of(self.tools.patience());
        let moot = async {
            tokio::select! {
                () = self.closed(owner, id, key) => {}
                () = context.ct.cancelled() => {}
            }
        };
        match client::carry(&context.peer, question, id, patience, moot).await {
            Carried::Answered(answer) => {
                let answers = [(key.to_owned(), answer)];
                self.answer(owner, id, answers).await.map_err(unkept)
            }
            Carried::Moot if context.ct.is_cancelled() => Err(cancelled()),
            Carried::Moot => Ok(()),
            Carried::Gone => Err(ErrorData::internal_error("The connection is closed", None)),
        }
    }

    /// Waits until an answer to a question is of no use any more.
    async fn closed(&self, owner: &Identity, id: &str, key: &str) {
        loop {
            let turn = self.next_turn(id);
            match self.shared.shelf.get(owner, id).await {
                Ok(Some(record)) if record.questions.is_awaited(key) && !record.is_final() => {}
                // A store that does not answer has not said that it is closed.
                Err(_) => sleep(PAUSE).await,
                Ok(_) => return,
            }
            match turn {
                Some(turn) => turn.or_from_elsewhere().await,
                None => sleep(PAUSE).await,
            }
        }
    }

    /// A question of a task that its client can be asked, and is not being asked by this process.
    fn unasked(
        &self,
        record: &Record,
        capabilities: ClientCapabilities,
    ) -> Option<(String, Question, BeingAsked)> {
        let mut open = record.questions.open();
        open.find_map(|(key, question)| {
            let live = self
                .running()
                .get(&record.id)
                .map(|it| Arc::clone(&it.live));
            let asked = capabilities
                .allow(question)
                .then(|| (record.id.clone(), key.clone()))?;
            let asked = BeingAsked::enter(&self.shared.asked, asked, live)?;
            Some((key.clone(), question.clone(), asked))
        })
    }
}

/// The next time that a task of this process asks something else.
pub(super) struct Turn {
    live: watch::Receiver<Live>,
    seen: u64,
    is_shared: bool,
}

impl Turn {
    /// Waits for what this process knows of.
    async fn here(mut self) {
        let seen = self.seen;
        let is_next = |live: &Live| live.is_over || live.turns != seen;
        let _ = self.live.wait_for(is_next).await;
    }

    /// Waits, but not longer than another process may have changed nothing.
    pub(super) async fn or_from_elsewhere(self) {
        let is_shared = self.is_shared;
        tokio::select! {
            () = self.here() => {}
            () = sleep(PAUSE), if is_shared => {}
        }
    }
}

/// Waits for the next turn of a task; where another process runs it, for a while.
async fn here(turn: Option<Turn>) {
    match turn {
        Some(turn) => turn.here().await,
        None => sleep(PAUSE).await,
    }
}

/// Task and name of the questions that a client is being asked in a session.
pub(super) type Asked = Arc<Mutex<HashSet<(String, String)>>>;

/// Marks a question as being asked, for as long as it is.
struct BeingAsked {
    asked: Asked,
    entry: (String, String),
    live: Option<Arc<watch::Sender<Live>>>,
}

impl BeingAsked {
    fn enter(
        asked: &Asked,
        entry: (String, String),
        live: Option<Arc<watch::Sender<Live>>>,
    ) -> Option<Self> {
        let entered = lock(asked).insert(entry.clone());
        entered.then(|| Self {
            asked: Arc::clone(asked),
            entry,
            live,
        })
    }
}

impl Drop for BeingAsked {
    fn drop(&mut self) {
        lock(&self.asked).remove(&self.entry);
        // Someone else who waits for the task may be asked now.
        if let Some(live) = &self.live {
            live.send_modify(|live| live.turns += 1);
        }
    }
}

fn cancelled() -> ErrorData {
    ErrorData::internal_error("The request was cancelled", None)
}

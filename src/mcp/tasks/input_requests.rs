//! A task that asks its client. The question is kept with the task, which waits for input.

use std::sync::Arc;

use rmcp::{Peer, RoleServer};
use tokio::time::{Instant, sleep_until};

use super::super::client;
use super::input::Answer;
use super::run::tell;
use super::worker::TaskKeeper;
use super::{Change, Record, Tools};
use crate::operations::client::{
    ClientCapabilities, ClientHandle, ClientInteraction, NoReply, Question, ReplyFuture,
};

/// The client of a task.
pub(super) struct TaskClient<T: Tools> {
    pub(super) keeper: Arc<TaskKeeper<T>>,
    /// What was answered before the task began.
    pub(super) known: ClientHandle,
    pub(super) capabilities: ClientCapabilities,
    /// Whether the call is made for the first time, so that nothing has been sent yet.
    pub(super) is_first: bool,
    /// Until when an answer can be of use.
    pub(super) deadline: Instant,
    /// Told when the task begins and ceases to wait.
    pub(super) peer: Option<Peer<RoleServer>>,
}

impl<T: Tools> Clone for TaskClient<T> {
    fn clone(&self) -> Self {
        Self {
            keeper: Arc::clone(&self.keeper),
            known: self.known.clone(),
            peer: self.peer.clone(),
            ..*self
        }
    }
}

impl<T: Tools> ClientInteraction for TaskClient<T> {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities
    }

    fn ask(&self, question: Question) -> ReplyFuture {
        let this = self.clone();
        Box::pin(async move {
            if this.known.capabilities().allow(&question) {
                return this.known.ask(question).await;
            }
            let answer = this.answered(&question).await?;
            client::reply(&question, &answer)
        })
    }
}

impl<T: Tools> TaskClient<T> {
    /// Has the task wait for an answer.
    async fn answered(&self, question: &Question) -> Answer {
        let TaskKeeper { tasks, owner, .. } = &*self.keeper;
        let (id, key) = (self.keeper.id(), client::key(question));
        if client::input(question).is_none() {
            return Err(NoReply::Failed("a question without words".to_owned()));
        }
        // What waits for an answer is not on its way to Exa.
        let _pause = self.keeper.pause();
        let ask = |record: &mut Record| {
            tasks.is_ours(record) && record.ask(&key, question, self.is_first)
        };
        match tasks.shared.shelf.change(owner, id, ask).await {
            Ok(Change::Made(record)) => {
                if let Some(peer) = &self.peer {
                    tell(peer, &record).await;
                }
            }
            Ok(Change::Refused(record)) => {
                let answer = record.questions.answer(&key).cloned();
                return answer.unwrap_or(Err(NoReply::Cancelled));
            }
            Ok(Change::Gone) => return Err(NoReply::Cancelled),
            Err(error) => {
                tracing::warn!(task = id, %error, "a question could not be kept");
                return Err(NoReply::Failed("the store did not take it".to_owned()));
            }
        }
        tasks.turn(id);
        let answer = tokio::select! {
            biased;
            answer = self.heard(&key) => answer,
            () = sleep_until(self.deadline) => {
                let late = [(key.clone(), Err(NoReply::TimedOut))];
                let _ = tasks.answer(owner, id, late).await;
                Err(NoReply::TimedOut)
            }
        };
        self.go_on().await?;
        if let Some(peer) = &self.peer
            && let Ok(Some(record)) = tasks.shared.shelf.get(owner, id).await
            && !record.is_final()
        {
            tell(peer, &record).await;
        }
        answer
    }

    /// Keeps that the call goes on, before it may send anything: until then, a process that takes the task up
    /// makes the call as if it were the first.
    async fn go_on(&self) -> Result<(), NoReply> {
        let TaskKeeper { tasks, owner, .. } = &*self.keeper;
        let id = self.keeper.id();
        let mut is_ours = false;
        let go_on = |record: &mut Record| {
            is_ours = tasks.is_ours(record);
            is_ours && record.questions.go_on()
        };
        match tasks.shared.shelf.change(owner, id, go_on).await {
            Ok(_) if is_ours => Ok(()),
            // It was cancelled, or another server runs it.
            Ok(_) => Err(NoReply::Cancelled),
            Err(error) => {
                tracing::warn!(task = id, %error, "an answer could not be acted on");
                Err(NoReply::Failed("the store did not take it".to_owned()))
            }
        }
    }

    /// The answer to a question, when there is one.
    async fn heard(&self, key: &str) -> Answer {
        let TaskKeeper { tasks, owner, .. } = &*self.keeper;
        let id = self.keeper.id();
        loop {
            let turn = tasks.next_turn(id).ok_or(NoReply::Cancelled)?;
            match tasks.shared.shelf.get(owner, id).await {
                Ok(Some(record)) if tasks.is_ours(&record) => {
                    if let Some(answer) = record.questions.answer(key) {
                        return answer.clone();
                    }
                }
                // It was cancelled, or another server runs it.
                Ok(_) => return Err(NoReply::Cancelled),
                Err(error) => tracing::warn!(task = id, %error, "answers cannot be looked for"),
            }
            turn.or_from_elsewhere().await;
        }
    }
}

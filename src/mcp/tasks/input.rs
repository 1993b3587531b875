//! What a task asks its client, as it is kept: whoever comes with an answer, at whichever server, finds the
//! question there.

use std::collections::{BTreeMap, BTreeSet};

use rmcp::model::InputRequests;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::client;
use crate::operations::client::{ClientCapabilities, NoReply, Question};

/// What came of a question, before it is read.
pub(super) type Answer = Result<Value, NoReply>;

/// Questions and answers of one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Questions {
    /// What the client can be asked for.
    #[serde(rename = "powers")]
    pub(super) capabilities: ClientCapabilities,
    /// Those that wait for an answer, by their names.
    #[serde(rename = "open")]
    open: BTreeMap<String, Question>,
    /// Those that a process asked which has ended. An answer to them may still be on its way.
    #[serde(rename = "left")]
    left: BTreeSet<String>,
    #[serde(rename = "answers")]
    answers: BTreeMap<String, Answer>,
    /// Nothing has been sent to Exa since the open ones were asked. Stays set when they are answered: the process
    /// that runs the task clears it before it goes on, and that process may have ended.
    #[serde(rename = "untouched")]
    untouched: bool,
}

impl Questions {
    /// Those of a task whose client can be asked for this much.
    pub(super) fn of(capabilities: ClientCapabilities) -> Self {
        Self {
            capabilities,
            ..Self::default()
        }
    }

    /// Whether there is nothing to keep.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an answer is waited for.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Those that wait for an answer.
    pub(super) fn open(&self) -> impl Iterator<Item = (&String, &Question)> {
        self.open.iter()
    }

    /// Whether an answer to a question is of use: it is open, or its process has ended and the next one has not
    /// asked anything yet.
    pub(super) fn is_awaited(&self, key: &str) -> bool {
        self.open.contains_key(key) || (self.left.contains(key) && !self.are_open())
    }

    /// What came of a question, once nothing else is waited for.
    pub(super) fn answer(&self, key: &str) -> Option<&Answer> {
        self.answers.get(key).filter(|_| !self.are_open())
    }

    /// Opens a question, unless it has been answered.
    pub(super) fn ask(&mut self, key: &str, question: &Question, untouched: bool) -> bool {
        if self.answers.contains_key(key) {
            return false;
        }
        self.left.remove(key);
        self.open.insert(key.to_owned(), question.clone());
        self.untouched = untouched;
        true
    }

    /// Takes an answer to what was asked; others do not count.
    pub(super) fn take(&mut self, key: &str, answer: &Answer) -> bool {
        let asked = self.open.remove(key).is_some() | self.left.remove(key);
        if asked {
            let answer = answer.clone().and_then(client::short);
            self.answers.insert(key.to_owned(), answer);
        }
        asked
    }

    /// The process that runs the task goes on and may send something to Exa from now on. Says whether that is
    /// new.
    pub(super) fn go_on(&mut self) -> bool {
        std::mem::take(&mut self.untouched)
    }

    /// Takes back what a process asked that has ended. Says whether that process had sent nothing to Exa.
    pub(super) fn leave(&mut self) -> bool {
        let open = std::mem::take(&mut self.open);
        self.left.extend(open.into_keys());
        self.go_on()
    }

    /// The open ones in the form of the extension of 2026-07-28.
    pub(super) fn requests(&self) -> InputRequests {
        let requests = self.open.iter();
        let requests = requests.filter_map(|(key, it)| Some((key.clone(), client::input(it)?)));
        requests.collect()
    }

    /// What is waited for, in words.
    pub(super) fn in_words(&self) -> String {
        let words = |question: &Question| match question {
            Question::Sample(_) => "an answer of the client's model".to_owned(),
            Question::Form(form) => form.message.clone(),
            Question::Visit(visit) => visit.message.clone(),
            Question::Roots => "the client's folders".to_owned(),
        };
        let words: Vec<String> = self.open.values().map(words).collect();
        format!("waits for the client: {}", words.join(" "))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operations::client::Form;

    fn form(message: &str) -> Question {
        Question::Form(Form {
            message: message.to_owned(),
            schema: Default::default(),
        })
    }

    fn asking(keys: &[&str]) -> Questions {
        let mut questions = Questions::default();
        for key in keys {
            assert!(questions.ask(key, &form(key), true));
        }
        questions
    }

    #[test]
    fn nothing_is_answered_before_everything_is() {
        let mut questions = asking(&["a", "b"]);
        let yes = Ok(json!({"action": "accept"}));
        assert!(questions.take("a", &yes));
        assert!(!questions.take("a", &yes), "it is answered once");
        assert!(!questions.take("c", &yes), "nobody asked");
        assert_eq!(
            (questions.answer("a"), questions.is_awaited("b")),
            (None, true)
        );
        assert!(questions.take("b", &Err(NoReply::Declined)));
        assert_eq!(questions.answer("a"), Some(&yes));
        assert_eq!(questions.answer("b"), Some(&Err(NoReply::Declined)));
    }

    #[test]
    fn the_next_process_finds_the_answers_of_the_one_before() {
        let mut questions = asking(&["a", "b"]);
        assert!(questions.take("a", &Ok(json!(1))));
        assert!(questions.leave(), "nothing was sent");
        assert!(!questions.are_open());
        assert!(questions.take("b", &Ok(json!(2))), "it was asked");
        let kept = serde_json::to_string(&questions).unwrap();
        let mut questions: Questions = serde_json::from_str(&kept).unwrap();
        assert!(!questions.ask("a", &form("a"), true));
        assert_eq!(questions.answer("b"), Some(&Ok(json!(2))));
        assert!(!questions.leave(), "it is not known any more");
    }

    #[test]
    fn a_question_is_awaited_until_the_next_process_asks_another_one() {
        let mut questions = asking(&["a"]);
        questions.leave();
        assert!(
            questions.is_awaited("a"),
            "the next process may ask it again"
        );
        assert!(questions.ask("a", &form("a"), true));
        assert!(questions.is_awaited("a"));
        questions.leave();
        assert!(questions.ask("b", &form("b"), true));
        assert!(!questions.is_awaited("a"), "something else is asked now");
        questions.leave();
        assert!(questions.take("a", &Ok(json!(1))));
        assert!(!questions.is_awaited("a"), "it is answered");
    }

    #[test]
    fn an_answer_that_no_process_has_read_sends_nothing() {
        let mut questions = asking(&["a"]);
        // The process that asked has ended, and another one takes the answer before it takes up the task.
        assert!(questions.take("a", &Ok(json!(1))));
        assert!(questions.leave(), "nothing was sent");

        let mut questions = asking(&["a"]);
        assert!(questions.take("a", &Ok(json!(1))));
        assert!(questions.go_on() && !questions.go_on());
        assert!(!questions.leave(), "the process that asked went on");
    }

    #[test]
    fn a_long_answer_is_not_kept() {
        let mut questions = asking(&["a"]);
        assert!(questions.take("a", &Ok(json!("x".repeat(1 << 20)))));
        assert!(matches!(
            questions.answer("a"),
            Some(Err(NoReply::Failed(_)))
        ));
    }
}

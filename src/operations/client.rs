//! Asking whoever calls: the model of the client, the person in front of it, its folders.
//!
//! Nothing here knows how a question travels. The protocol room carries it in one of two ways; a client
//! that did not say it can be asked is never asked.

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use exa_mcp_model::{LocalUser, Owner};

/// What a client said it can be asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientCapabilities {
    /// Its model writes a text.
    #[serde(rename = "sampling")]
    pub sampling: bool,
    /// Its model calls a tool of ours.
    #[serde(rename = "samplingWithTools")]
    pub sampling_with_tools: bool,
    /// Its user fills in a form.
    #[serde(rename = "forms")]
    pub forms: bool,
    /// Its user visits a page.
    #[serde(rename = "urls")]
    pub urls: bool,
    /// It tells its folders.
    #[serde(rename = "roots")]
    pub roots: bool,
}

impl ClientCapabilities {
    /// Whether they are enough for a question.
    pub fn allow(&self, question: &Question) -> bool {
        match question {
            Question::Sample(Sampling { tool: Some(_), .. }) => self.sampling_with_tools,
            Question::Sample(_) => self.sampling,
            Question::Form(_) => self.forms,
            Question::Visit(_) => self.urls,
            Question::Roots => self.roots,
        }
    }

    /// The part of them that counts for a call of this owner. The roots of a remote client name folders
    /// of another machine, so it is not asked for them.
    #[must_use]
    pub fn allowed_for(self, owner: &Owner) -> Self {
        Self {
            roots: self.roots && owner.local_user().is_some(),
            ..self
        }
    }

    /// These and others.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self {
            sampling: self.sampling || others.sampling,
            sampling_with_tools: self.sampling_with_tools || others.sampling_with_tools,
            forms: self.forms || others.forms,
            urls: self.urls || others.urls,
            roots: self.roots || others.roots,
        }
    }
}

/// What is asked of the client's model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// What the model is told about its task.
    #[serde(rename = "system")]
    pub system: String,
    /// The task.
    #[serde(rename = "message")]
    pub message: String,
    /// The tool that it must call, if its answer is to be one.
    #[serde(rename = "tool")]
    pub tool: Option<SamplingTool>,
    /// How much it may write.
    #[serde(rename = "max_tokens")]
    pub max_tokens: u32,
}

/// A tool that exists only to give an answer a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplingTool {
    /// Its name.
    #[serde(rename = "name")]
    pub name: String,
    /// What it is for.
    #[serde(rename = "description")]
    pub description: String,
    /// JSON Schema of its input.
    #[serde(rename = "input_schema")]
    pub input_schema: Map<String, Value>,
}

/// What the client's model said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// The model, in the client's words.
    pub model: Option<String>,
    /// Its text.
    pub text: String,
    /// The inputs with which it called the tool.
    pub inputs: Vec<Map<String, Value>>,
}

/// A form for the user. Never for secrets: the client and its model see what is written into it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Form {
    /// Why it is asked.
    #[serde(rename = "message")]
    pub message: String,
    /// An object schema whose properties are single values.
    #[serde(rename = "schema")]
    pub schema: Map<String, Value>,
}

/// A page that the user is to visit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// Why.
    #[serde(rename = "message")]
    pub message: String,
    /// Its address.
    #[serde(rename = "url")]
    pub url: String,
    /// Names the visit when it is over.
    #[serde(rename = "id")]
    pub id: String,
}

/// Anything that a client is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Question {
    /// Of its model.
    #[serde(rename = "sample")]
    Sample(Sampling),
    /// Of its user.
    #[serde(rename = "form")]
    Form(Form),
    /// Of its user, on a page.
    #[serde(rename = "visit")]
    Visit(Visit),
    /// Of itself.
    #[serde(rename = "roots")]
    Roots,
}

/// The answer to a question of the same kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// What the model said.
    Sampled(Sampled),
    /// What the user wrote.
    Filled(Map<String, Value>),
    /// The user agreed to visit the page; what happens there, the page knows.
    Visiting,
    /// The addresses of its folders.
    Roots(Vec<String>),
}

/// Why there is no answer. None of these is a failure of the call itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum NoReply {
    /// It never said it could.
    #[error("the client cannot be asked for this")]
    #[serde(rename = "Unable")]
    Unable,
    /// The user said no.
    #[error("the user declined")]
    #[serde(rename = "Declined")]
    Declined,
    /// The user closed the question.
    #[error("the user closed the question without an answer")]
    #[serde(rename = "Cancelled")]
    Cancelled,
    /// Nobody answered.
    #[error("no answer came in time")]
    #[serde(rename = "TimedOut")]
    TimedOut,
    /// The client could not ask, or its answer makes no sense.
    #[error("the client gave no usable answer ({0})")]
    #[serde(rename = "Failed")]
    Failed(String),
}

impl NoReply {
    /// Someone decided against it; asking in another way would not respect that.
    pub fn is_decision(&self) -> bool {
        matches!(self, Self::Declined | Self::Cancelled)
    }
}

/// What a question comes to.
pub type ReplyFuture = Pin<Box<dyn Future<Output = Result<Reply, NoReply>> + Send>>;

/// A way to the client.
pub trait ClientInteraction: Send + Sync {
    /// What it can be asked for.
    fn capabilities(&self) -> ClientCapabilities;

    /// Asks; only what the capabilities allow arrives here.
    fn ask(&self, question: Question) -> ReplyFuture;

    /// Tells that what a page was for is done.
    fn visited(&self, _id: &str) {}
}

/// The client of a call. Cheap to clone.
#[derive(Clone)]
pub struct ClientHandle(Arc<dyn ClientInteraction>);

impl ClientHandle {
    /// The client behind this way.
    pub fn new(client: impl ClientInteraction + 'static) -> Self {
        Self(Arc::new(client))
    }

    /// A client that can be asked for nothing.
    pub fn mute() -> Self {
        Self::new(Mute)
    }

    /// What it can be asked for.
    pub fn capabilities(&self) -> ClientCapabilities {
        self.0.capabilities()
    }

    /// Asks its model.
    pub async fn sample(&self, sampling: Sampling) -> Result<Sampled, NoReply> {
        match self.ask(Question::Sample(sampling)).await? {
            Reply::Sampled(sampled) => Ok(sampled),
            _ => Err(astray()),
        }
    }

    /// Has its user fill in a form.
    pub async fn fill(&self, form: Form) -> Result<Map<String, Value>, NoReply> {
        match self.ask(Question::Form(form)).await? {
            Reply::Filled(content) => Ok(content),
            _ => Err(astray()),
        }
    }

    /// Sends its user to a page; `Ok` says that they agreed to go there.
    pub async fn visit(&self, visit: Visit) -> Result<(), NoReply> {
        match self.ask(Question::Visit(visit)).await? {
            Reply::Visiting => Ok(()),
            _ => Err(astray()),
        }
    }

    /// The addresses of its folders. They mean something only where the client runs on this machine.
    pub async fn roots(&self, _user: &LocalUser) -> Result<Vec<String>, NoReply> {
        match self.ask(Question::Roots).await? {
            Reply::Roots(roots) => Ok(roots),
            _ => Err(astray()),
        }
    }

    /// Tells that what a page was for is done.
    pub fn visited(&self, id: &str) {
        self.0.visited(id);
    }

    /// Asks anything that it can be asked for.
    pub async fn ask(&self, question: Question) -> Result<Reply, NoReply> {
        match self.capabilities().allow(&question) {
            true => self.0.ask(question).await,
            false => Err(NoReply::Unable),
        }
    }
}

impl Default for ClientHandle {
    fn default() -> Self {
        Self::mute()
    }
}

impl fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.capabilities()).finish()
    }
}

struct Mute;

impl ClientInteraction for Mute {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default()
    }

    fn ask(&self, _question: Question) -> ReplyFuture {
        Box::pin(ready(Err(NoReply::Unable)))
    }
}

fn astray() -> NoReply {
    NoReply::Failed("an answer to another question".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Would answer anything, but says that it can do nothing.
    struct Eager(ClientCapabilities);

    impl ClientInteraction for Eager {
        fn capabilities(&self) -> ClientCapabilities {
            self.0
        }

        fn ask(&self, _question: Question) -> ReplyFuture {
            Box::pin(ready(Ok(Reply::Roots(Vec::new()))))
        }
    }

    fn sampling(tool: bool) -> Sampling {
        let tool = tool.then(|| SamplingTool {
            name: "t".to_owned(),
            description: String::new(),
            input_schema: Map::new(),
        });
        Sampling {
            system: String::new(),
            message: "m".to_owned(),
            tool,
            max_tokens: 1,
        }
    }

    #[tokio::test]
    async fn who_declared_nothing_is_asked_nothing() {
        let client = ClientHandle::new(Eager(ClientCapabilities::default()));
        let form = Form {
            message: String::new(),
            schema: Map::new(),
        };
        assert_eq!(
            client.roots(&LocalUser::of_this_process()).await,
            Err(NoReply::Unable)
        );
        assert_eq!(client.fill(form).await, Err(NoReply::Unable));
        assert_eq!(client.sample(sampling(false)).await, Err(NoReply::Unable));
        let plain = ClientCapabilities {
            sampling: true,
            ..ClientCapabilities::default()
        };
        let client = ClientHandle::new(Eager(plain));
        assert_eq!(client.sample(sampling(true)).await, Err(NoReply::Unable));
    }

    #[tokio::test]
    async fn an_answer_to_another_question_is_none() {
        let all = ClientCapabilities {
            sampling: true,
            roots: true,
            ..ClientCapabilities::default()
        };
        let client = ClientHandle::new(Eager(all));
        assert_eq!(
            client.roots(&LocalUser::of_this_process()).await,
            Ok(Vec::new())
        );
        let sampled = client.sample(sampling(false)).await;
        assert!(matches!(sampled, Err(NoReply::Failed(_))));
    }
}

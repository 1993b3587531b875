//! Requests to the MCP client: sampling, elicitation and roots.
//!
//! How a request reaches the client is up to the `mcp` layer, which implements [`ClientInteraction`]. A client is
//! never asked for something that it did not declare as a capability.

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use exa_mcp_model::{LocalUser, Owner};

/// The kinds of requests that a client supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientCapabilities {
    /// Sampling.
    pub sampling: bool,
    /// Sampling with a tool of ours.
    #[serde(rename = "samplingWithTools")]
    pub sampling_with_tools: bool,
    /// Elicitation by form.
    pub forms: bool,
    /// Elicitation by URL.
    pub urls: bool,
    /// Roots.
    pub roots: bool,
}

impl ClientCapabilities {
    /// Returns whether the client supports a request.
    pub fn supports(&self, request: &InputRequest) -> bool {
        match request {
            InputRequest::Sampling(SamplingRequest { tool: Some(_), .. }) => {
                self.sampling_with_tools
            }
            InputRequest::Sampling(_) => self.sampling,
            InputRequest::Form(_) => self.forms,
            InputRequest::Url(_) => self.urls,
            InputRequest::Roots => self.roots,
        }
    }

    /// Returns the capabilities that apply to calls of this owner. The roots of a remote client are folders of
    /// another machine, so it is not asked for them.
    #[must_use]
    pub fn allowed_for(self, owner: &Owner) -> Self {
        Self {
            roots: self.roots && owner.local_user().is_some(),
            ..self
        }
    }

    /// Returns the union of two sets of capabilities.
    #[must_use]
    pub fn union(self, others: Self) -> Self {
        Self {
            sampling: self.sampling || others.sampling,
            sampling_with_tools: self.sampling_with_tools || others.sampling_with_tools,
            forms: self.forms || others.forms,
            urls: self.urls || others.urls,
            roots: self.roots || others.roots,
        }
    }
}

/// A request for a completion by the client's model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplingRequest {
    /// The system prompt.
    pub system: String,
    /// The user message.
    pub message: String,
    /// The tool that the model must call, if any.
    pub tool: Option<SamplingTool>,
    /// The most tokens that the model may generate.
    pub max_tokens: u32,
}

/// A tool that exists only to give the model's output a structure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplingTool {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// JSON Schema of its input.
    pub input_schema: Map<String, Value>,
}

/// The output of the client's model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SamplingResult {
    /// The model name, as the client reports it.
    pub model: Option<String>,
    /// Its text.
    pub text: String,
    /// The inputs of the tool calls.
    pub inputs: Vec<Map<String, Value>>,
}

/// A form for the user. Must not ask for secrets: the client and its model see the input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FormRequest {
    /// The reason, shown to the user.
    pub message: String,
    /// An object schema whose properties are primitive values.
    pub schema: Map<String, Value>,
}

/// A page that the user is asked to open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UrlRequest {
    /// The reason, shown to the user.
    pub message: String,
    /// Its URL.
    pub url: String,
    /// The elicitation id.
    pub id: String,
}

/// A request to the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum InputRequest {
    /// To its model.
    #[serde(rename = "sample")]
    Sampling(SamplingRequest),
    /// To its user, by form.
    #[serde(rename = "form")]
    Form(FormRequest),
    /// To its user, by URL.
    #[serde(rename = "visit")]
    Url(UrlRequest),
    /// To the client itself.
    #[serde(rename = "roots")]
    Roots,
}

/// The response to a request of the same kind.
#[derive(Debug, Clone, PartialEq)]
pub enum InputResponse {
    /// The output of the model.
    Sampling(SamplingResult),
    /// The content of the form.
    Form(Map<String, Value>),
    /// The user agreed to open the page. Whether they completed it is up to the page.
    UrlAccepted,
    /// The URIs of the roots.
    Roots(Vec<String>),
}

/// Why the client gave no response. The tool call itself can continue without one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum InputError {
    /// The client lacks the capability.
    #[error("the client does not support this")]
    Unable,
    /// The user declined.
    #[error("the user declined")]
    Declined,
    /// The user dismissed the request.
    #[error("the user dismissed the request")]
    Cancelled,
    /// The client did not respond in time.
    #[error("the client did not respond in time")]
    TimedOut,
    /// The client failed, or its response is invalid.
    #[error("the client gave no usable response ({0})")]
    Failed(String),
}

impl InputError {
    /// Returns whether the user decided against it. Asking by other means would not respect that.
    pub fn is_decision(&self) -> bool {
        matches!(self, Self::Declined | Self::Cancelled)
    }
}

/// The eventual response to a request.
pub type InputFuture = Pin<Box<dyn Future<Output = Result<InputResponse, InputError>> + Send>>;

/// Sends requests to a client.
pub trait ClientInteraction: Send + Sync {
    /// Returns the requests that the client supports.
    fn capabilities(&self) -> ClientCapabilities;

    /// Sends a request, which the capabilities support.
    fn request(&self, request: InputRequest) -> InputFuture;

    /// Notifies the client that the purpose of a page is fulfilled.
    fn url_completed(&self, _id: &str) {}
}

/// The client of a call. Cheap to clone.
#[derive(Clone)]
pub struct ClientHandle(Arc<dyn ClientInteraction>);

impl ClientHandle {
    /// Wraps an implementation.
    pub fn new(client: impl ClientInteraction + 'static) -> Self {
        Self(Arc::new(client))
    }

    /// Returns a client that supports no requests.
    pub fn non_interactive() -> Self {
        Self::new(NonInteractive)
    }

    /// Returns the requests that the client supports.
    pub fn capabilities(&self) -> ClientCapabilities {
        self.0.capabilities()
    }

    /// Requests a completion by the client's model.
    pub async fn sample(&self, sampling: SamplingRequest) -> Result<SamplingResult, InputError> {
        match self.request(InputRequest::Sampling(sampling)).await? {
            InputResponse::Sampling(result) => Ok(result),
            _ => Err(mismatched_response()),
        }
    }

    /// Asks the user to fill in a form.
    pub async fn fill_form(&self, form: FormRequest) -> Result<Map<String, Value>, InputError> {
        match self.request(InputRequest::Form(form)).await? {
            InputResponse::Form(content) => Ok(content),
            _ => Err(mismatched_response()),
        }
    }

    /// Asks the user to open a page; `Ok` means that they agreed.
    pub async fn open_url(&self, page: UrlRequest) -> Result<(), InputError> {
        match self.request(InputRequest::Url(page)).await? {
            InputResponse::UrlAccepted => Ok(()),
            _ => Err(mismatched_response()),
        }
    }

    /// Returns the URIs of the client's roots. They are meaningful only if the client runs on this machine.
    pub async fn roots(&self, _user: &LocalUser) -> Result<Vec<String>, InputError> {
        match self.request(InputRequest::Roots).await? {
            InputResponse::Roots(roots) => Ok(roots),
            _ => Err(mismatched_response()),
        }
    }

    /// Notifies the client that the purpose of a page is fulfilled.
    pub fn url_completed(&self, id: &str) {
        self.0.url_completed(id);
    }

    /// Sends a request, if the client supports it.
    pub async fn request(&self, request: InputRequest) -> Result<InputResponse, InputError> {
        if self.capabilities().supports(&request) {
            self.0.request(request).await
        } else {
            Err(InputError::Unable)
        }
    }
}

impl Default for ClientHandle {
    fn default() -> Self {
        Self::non_interactive()
    }
}

impl fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientHandle")
            .field(&self.capabilities())
            .finish()
    }
}

struct NonInteractive;

impl ClientInteraction for NonInteractive {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default()
    }

    fn request(&self, _request: InputRequest) -> InputFuture {
        Box::pin(ready(Err(InputError::Unable)))
    }
}

fn mismatched_response() -> InputError {
    InputError::Failed("the response does not match the request".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Responds to every request with an empty list of roots, whatever its capabilities.
    struct RootsOnly(ClientCapabilities);

    impl ClientInteraction for RootsOnly {
        fn capabilities(&self) -> ClientCapabilities {
            self.0
        }

        fn request(&self, _request: InputRequest) -> InputFuture {
            Box::pin(ready(Ok(InputResponse::Roots(Vec::new()))))
        }
    }

    fn sampling(tool: bool) -> SamplingRequest {
        let tool = tool.then(|| SamplingTool {
            name: "t".to_owned(),
            description: String::new(),
            input_schema: Map::new(),
        });
        SamplingRequest {
            system: String::new(),
            message: "m".to_owned(),
            tool,
            max_tokens: 1,
        }
    }

    #[tokio::test]
    async fn rejects_requests_without_the_capability() {
        let client = ClientHandle::new(RootsOnly(ClientCapabilities::default()));
        let form = FormRequest {
            message: String::new(),
            schema: Map::new(),
        };
        assert_eq!(
            client.roots(&LocalUser::of_this_process()).await,
            Err(InputError::Unable)
        );
        assert_eq!(client.fill_form(form).await, Err(InputError::Unable));
        assert_eq!(
            client.sample(sampling(false)).await,
            Err(InputError::Unable)
        );
        let plain = ClientCapabilities {
            sampling: true,
            ..ClientCapabilities::default()
        };
        let client = ClientHandle::new(RootsOnly(plain));
        assert_eq!(client.sample(sampling(true)).await, Err(InputError::Unable));
    }

    #[tokio::test]
    async fn rejects_a_response_of_another_kind() {
        let all = ClientCapabilities {
            sampling: true,
            roots: true,
            ..ClientCapabilities::default()
        };
        let client = ClientHandle::new(RootsOnly(all));
        assert_eq!(
            client.roots(&LocalUser::of_this_process()).await,
            Ok(Vec::new())
        );
        let result = client.sample(sampling(false)).await;
        assert!(matches!(result, Err(InputError::Failed(_))));
    }
}

//! One request of a batch.

use serde_json::{Map, Value, json};

use crate::agent::runs;
use crate::api_error::ApiError;
use crate::call::{ApiResponse, BodyParser, Call};
use crate::json::{set, text};
use crate::search;
use crate::state::Account;

/// A request and its result.
pub(super) struct BatchItem {
    custom_id: String,
    url: String,
    /// The arguments, or why they are invalid.
    args: Result<Map<String, Value>, ApiError>,
    betas: Vec<String>,
    state: ItemState,
}

enum ItemState {
    Waiting,
    /// Waits for the end of an agent run.
    Running(String),
    Done(Result<Value, ApiError>),
}

impl BatchItem {
    pub(super) fn new(request: &Value, call: &Call, parse: &BodyParser<'_>) -> Self {
        let url = text(request, "url");
        let body = request.get("body").and_then(Value::as_object);
        BatchItem {
            custom_id: text(request, "customId").to_owned(),
            url: url.to_owned(),
            args: parse(url, body.unwrap_or(&Map::new())),
            betas: call.betas.clone(),
            state: ItemState::Waiting,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state, ItemState::Waiting)
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, ItemState::Running(_))
    }

    /// Whether the request succeeded; `None` while it is not done.
    pub(super) fn succeeded(&self) -> Option<bool> {
        match &self.state {
            ItemState::Done(result) => Some(result.is_ok()),
            _ => None,
        }
    }

    /// Executes the request. Agent runs take a while longer.
    pub(super) fn start(&mut self, account: &mut Account) {
        self.state = match self.execute(account) {
            Ok(run) if self.url == "/agent/runs" => ItemState::Running(text(&run, "id").to_owned()),
            result => ItemState::Done(result),
        };
    }

    fn execute(&self, account: &mut Account) -> Result<Value, ApiError> {
        let call = Call {
            args: self.args.clone()?,
            host: String::new(),
            wants_events: false,
            betas: self.betas.clone(),
            last_event_id: None,
            request_id: account.new_id("request"),
            salt: None,
        };
        let is_run = self.url == "/agent/runs";
        if !is_run && call.text("query").contains("sandbox-fail") {
            return Err(ApiError::new(
                500,
                "DEFAULT_ERROR",
                "The query asked for a failure",
            ));
        }
        let handle = if is_run { runs::create } else { search::search };
        match handle(account, &call)? {
            ApiResponse::Json { value, .. } => Ok(value),
            _ => Err(ApiError::invalid("A batch cannot stream")),
        }
    }

    /// Takes the result of an agent run that has ended.
    pub(super) fn update(&mut self, account: &Account) {
        let ItemState::Running(id) = &self.state else {
            return;
        };
        let run = account.agent_runs.find(id);
        let result = match run {
            Ok(run) if !run.has_ended() => return,
            Ok(run) => run.result(),
            Err(error) => Err(error),
        };
        self.state = ItemState::Done(result);
    }

    /// Returns the line in the file of results; `None` if the request was not executed.
    pub(super) fn line(&self, marker: &str) -> Option<Value> {
        let ItemState::Done(result) = &self.state else {
            return None;
        };
        let mut line = json!({ "customId": self.custom_id });
        match result {
            Ok(body) => set(
                &mut line,
                "response",
                json!({ "statusCode": 200, "body": body }),
            ),
            Err(error) => {
                let error = json!({ "code": "API_ERROR", "message": error.message });
                set(&mut line, "error", error);
            }
        }
        set(&mut line, "sandbox", marker);
        Some(line)
    }
}

//! The task methods of 2025-11-25. rmcp does not support them, so they are custom messages.

use rmcp::{
    RoleServer,
    model::{CustomRequest, CustomResult, ErrorData, JsonObject},
    service::RequestContext,
};
use serde_json::{Value, json};

use super::super::client::ClientPeer;
use super::super::errors::unknown_method;
use super::super::progress::related_task_meta;
use super::input_responses::InputExchange;
use super::run::notify_status;
use super::{TaskRecord, Tasks, Tools, store_error};
use exa_mcp_model::Identity;

/// Tasks per page.
const PAGE_SIZE: usize = 50;

/// A task method.
pub(in super::super) enum TaskMethod {
    /// `tools/call` with `task`.
    Call,
    /// `tasks/get`.
    Get,
    /// `tasks/result`.
    Result,
    /// `tasks/list`.
    List,
    /// `tasks/cancel`.
    Cancel,
}

impl TaskMethod {
    /// Returns the method with this name.
    pub(in super::super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "tools/call" => Self::Call,
            "tasks/get" => Self::Get,
            "tasks/result" => Self::Result,
            "tasks/list" => Self::List,
            "tasks/cancel" => Self::Cancel,
            _ => return None,
        })
    }
}

/// Handles the task methods of one requester.
pub(in super::super) struct TaskMethods<'a, T> {
    tasks: &'a Tasks<T>,
    owner: &'a Identity,
    client: ClientPeer,
}

impl<'a, T: Tools> TaskMethods<'a, T> {
    /// Creates the methods for the tasks of an owner.
    pub(in super::super) fn new(
        tasks: &'a Tasks<T>,
        owner: &'a Identity,
        client: ClientPeer,
    ) -> Self {
        Self {
            tasks,
            owner,
            client,
        }
    }

    /// Handles a method of 2025-11-25.
    pub(in super::super) async fn serve(
        &self,
        method: TaskMethod,
        request: CustomRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let name = request.method.clone();
        let params = match request.params {
            Some(Value::Object(params)) => params,
            None => JsonObject::new(),
            Some(_) => return Err(invalid_params(&name, "params must be an object")),
        };
        let id = || match params.get("taskId") {
            Some(Value::String(id)) => Ok(id.as_str()),
            _ => Err(invalid_params(&name, "taskId must be a string")),
        };
        let result = match method {
            TaskMethod::Call => return Err(unknown_method(&name)),
            TaskMethod::Get => self.tasks.get(self.owner, id()?).await?.legacy(),
            TaskMethod::Result => {
                let exchange = InputExchange { tasks: self.tasks };
                let record = exchange
                    .wait_until_finished(self.owner, id()?, (context, &self.client))
                    .await?;
                result(&record)?
            }
            TaskMethod::List => self.list(&params).await?,
            TaskMethod::Cancel => {
                let record = self.tasks.cancel(self.owner, id()?).await?;
                notify_status(&self.client, &record).await;
                record.legacy()
            }
        };
        Ok(CustomResult::new(result))
    }

    async fn list(&self, params: &JsonObject) -> Result<Value, ErrorData> {
        let before = match params.get("cursor") {
            None | Some(Value::Null) => None,
            Some(cursor) => {
                let number = cursor.as_str().and_then(|cursor| cursor.parse().ok());
                Some(number.ok_or_else(|| invalid_params("tasks/list", "unknown cursor"))?)
            }
        };
        let page = self
            .tasks
            .shared
            .task_store
            .page(Some(self.owner), before, PAGE_SIZE + 1)
            .await;
        let page = page.map_err(store_error)?;
        let more = page.len() > PAGE_SIZE;
        let last = page.iter().take(PAGE_SIZE).next_back();
        let last = last.map(|task| task.number.to_string());
        let tasks: Vec<Value> = page
            .into_iter()
            .take(PAGE_SIZE)
            .map(|task| self.tasks.with_live_state(task.record).legacy())
            .collect();
        let mut result = json!({"tasks": tasks});
        if let (true, Some(last), Value::Object(result)) = (more, last, &mut result) {
            result.insert("nextCursor".to_owned(), json!(last));
        }
        Ok(result)
    }
}

/// The parameters of `tools/call` with `task`.
pub(in super::super) struct TaskParams {
    pub(in super::super) tool: String,
    pub(in super::super) arguments: JsonObject,
    /// The requested lifetime of the task, in milliseconds.
    pub(in super::super) ttl: Option<u64>,
}

impl TaskParams {
    /// Parses the parameters; `check_tool` checks that the tool supports tasks.
    pub(in super::super) fn parse(
        params: Option<Value>,
        check_tool: impl FnOnce(&str) -> Result<(), ErrorData>,
    ) -> Result<Self, ErrorData> {
        let invalid_params = |why| invalid_params("tools/call", why);
        let mut params = match params {
            Some(Value::Object(params)) => params,
            _ => JsonObject::new(),
        };
        let Some(Value::String(tool)) = params.shift_remove("name") else {
            return Err(invalid_params("name must be a string"));
        };
        check_tool(&tool)?;
        let arguments = match params.shift_remove("arguments") {
            None | Some(Value::Null) => JsonObject::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(invalid_params("arguments must be an object")),
        };
        let Some(Value::Object(task)) = params.get("task") else {
            return Err(invalid_params("task must be an object"));
        };
        let milliseconds = |ttl: &Value| {
            let number = || ttl.as_f64().filter(|ttl| *ttl >= 0.0);
            ttl.as_u64().or_else(|| number().map(|ttl| ttl as u64))
        };
        let ttl = match task.get("ttl") {
            None | Some(Value::Null) => None,
            Some(ttl) => {
                let ttl = milliseconds(ttl);
                Some(ttl.ok_or_else(|| invalid_params("task.ttl must be milliseconds"))?)
            }
        };
        Ok(Self {
            tool,
            arguments,
            ttl,
        })
    }
}

/// Returns the result of the call.
fn result(record: &TaskRecord) -> Result<Value, ErrorData> {
    let Some(mut result) = record.result.clone() else {
        let cancelled =
            || ErrorData::invalid_params(format!("The task {} was cancelled", record.id), None);
        return Err(record.error.clone().unwrap_or_else(cancelled));
    };
    // Only later versions have a result type.
    result.shift_remove("resultType");
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if let Value::Object(meta) = meta {
        meta.extend(related_task_meta(&record.id));
    }
    Ok(Value::Object(result))
}

fn invalid_params(method: &str, why: &str) -> ErrorData {
    ErrorData::invalid_params(format!("Invalid params for {method}: {why}"), None)
}

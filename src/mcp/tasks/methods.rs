//! The methods of 2025-11-25. rmcp does not know them, so they come and go as custom messages.

use rmcp::{
    RoleServer,
    model::{CustomRequest, CustomResult, ErrorData, JsonObject},
    service::RequestContext,
};
use serde_json::{Value, json};

use super::super::handler::unknown_method;
use super::super::progress::related;
use super::run::tell;
use super::{Record, Tasks, Tools};
use exa_mcp_model::Identity;

/// Tasks on one page.
const PAGE: usize = 50;

/// A method that has to do with tasks.
pub(in super::super) enum Method {
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

impl Method {
    /// The method of this name.
    pub(in super::super) fn named(name: &str) -> Option<Self> {
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

impl<T: Tools> Tasks<T> {
    /// Answers a method of 2025-11-25.
    pub(in super::super) async fn serve(
        &self,
        method: Method,
        owner: &Identity,
        request: CustomRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let name = request.method.clone();
        let params = match request.params {
            Some(Value::Object(params)) => params,
            None => JsonObject::new(),
            Some(_) => return Err(unfit(&name, "params must be an object")),
        };
        let id = || match params.get("taskId") {
            Some(Value::String(id)) => Ok(id.as_str()),
            _ => Err(unfit(&name, "taskId must be a string")),
        };
        let result = match method {
            Method::Call => return Err(unknown_method(&name)),
            Method::Get => self.get(owner, id()?).await?.legacy(),
            Method::Result => {
                let record = self.finished(owner, id()?, context).await?;
                result(&record)?
            }
            Method::List => self.list(owner, &params).await?,
            Method::Cancel => {
                let record = self.cancel(owner, id()?).await?;
                tell(&context.peer, &record).await;
                record.legacy()
            }
        };
        Ok(CustomResult::new(result))
    }

    async fn list(&self, owner: &Identity, params: &JsonObject) -> Result<Value, ErrorData> {
        let before = match params.get("cursor") {
            None | Some(Value::Null) => None,
            Some(cursor) => {
                let number = cursor.as_str().and_then(|cursor| cursor.parse().ok());
                Some(number.ok_or_else(|| unfit("tasks/list", "unknown cursor"))?)
            }
        };
        let page = self.shared.shelf.page(Some(owner), before, PAGE + 1).await;
        let page = page.map_err(super::unkept)?;
        let more = page.len() > PAGE;
        let last = page.iter().take(PAGE).next_back();
        let last = last.map(|kept| kept.number.to_string());
        let tasks: Vec<Value> = page
            .into_iter()
            .take(PAGE)
            .map(|kept| self.brought_up_to_date(kept.record).legacy())
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
    /// How long the task is to live, in milliseconds.
    pub(in super::super) ttl: Option<u64>,
}

impl TaskParams {
    /// Reads the parameters; `admit` says whether the tool takes tasks.
    pub(in super::super) fn read(
        params: Option<Value>,
        admit: impl FnOnce(&str) -> Result<(), ErrorData>,
    ) -> Result<Self, ErrorData> {
        let unfit = |why| unfit("tools/call", why);
        let mut params = match params {
            Some(Value::Object(params)) => params,
            _ => JsonObject::new(),
        };
        let Some(Value::String(tool)) = params.shift_remove("name") else {
            return Err(unfit("name must be a string"));
        };
        admit(&tool)?;
        let arguments = match params.shift_remove("arguments") {
            None | Some(Value::Null) => JsonObject::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(unfit("arguments must be an object")),
        };
        let Some(Value::Object(task)) = params.get("task") else {
            return Err(unfit("task must be an object"));
        };
        let milliseconds = |ttl: &Value| {
            let number = || ttl.as_f64().filter(|ttl| *ttl >= 0.0);
            ttl.as_u64().or_else(|| number().map(|ttl| ttl as u64))
        };
        let ttl = match task.get("ttl") {
            None | Some(Value::Null) => None,
            Some(ttl) => {
                let ttl = milliseconds(ttl);
                Some(ttl.ok_or_else(|| unfit("task.ttl must be milliseconds"))?)
            }
        };
        Ok(Self {
            tool,
            arguments,
            ttl,
        })
    }
}

/// What the call would have been answered with.
fn result(record: &Record) -> Result<Value, ErrorData> {
    let Some(mut result) = record.result.clone() else {
        let cancelled =
            || ErrorData::invalid_params(format!("The task {} was cancelled", record.id), None);
        return Err(record.error.clone().unwrap_or_else(cancelled));
    };
    // Only later versions say what kind of result it is.
    result.shift_remove("resultType");
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if let Value::Object(meta) = meta {
        meta.extend(related(&record.id));
    }
    Ok(Value::Object(result))
}

fn unfit(method: &str, why: &str) -> ErrorData {
    ErrorData::invalid_params(format!("Invalid params for {method}: {why}"), None)
}

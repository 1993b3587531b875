//! Follow-up calls, in the form that the enabled tools accept.

use serde_json::{Map, Value, json};

use super::registry::{Tool, ToolRegistry};
use crate::operations::RemoteJob;
use exa_mcp_model::{NamedToolPlan, ToolPlan, ToolhostEntry};

/// Returns the calls that read and cancel a job.
pub(super) fn next_calls(
    registry: &ToolRegistry,
    tool: &Tool,
    job: &RemoteJob,
) -> Map<String, Value> {
    let (get, arguments) = job.poll_call();
    let mut next = Map::new();
    let check = next_call(registry, tool, get, &arguments);
    next.extend(check.map(|check| ("checkWith".to_owned(), check)));
    if let Some((cancel, arguments)) = job.cancel_call() {
        let cancel = next_call(registry, tool, cancel, &arguments);
        next.extend(cancel.map(|cancel| ("cancelWith".to_owned(), cancel)));
    }
    next
}

/// Returns a call of an operation with the same tool or, named in the call, with another one. `None` if no enabled
/// tool can call it.
pub(super) fn next_call(
    registry: &ToolRegistry,
    tool: &Tool,
    operation: &str,
    arguments: &Map<String, Value>,
) -> Option<Value> {
    if let Some(mut call) = call_form(tool, operation, arguments) {
        // Arguments alone do not identify the tool.
        if call.contains_key("arguments") {
            call.shift_insert(0, "tool".to_owned(), json!(tool.name()));
        }
        return Some(Value::Object(call));
    }
    call_with_any(registry, operation, arguments)
}

/// Returns a call of an operation with any enabled tool, named in the call.
pub(super) fn call_with_any(
    registry: &ToolRegistry,
    operation: &str,
    arguments: &Map<String, Value>,
) -> Option<Value> {
    let others = registry.iter().filter_map(|other| {
        let call = call_form(other, operation, arguments)?;
        Some((other.name(), call))
    });
    let (name, call) = others.min_by_key(|(_, call)| call.len())?;
    let mut named = Map::from_iter([("tool".to_owned(), json!(name))]);
    named.extend(call);
    Some(Value::Object(named))
}

/// Returns a call of an operation in the form that a tool accepts; `None` if it cannot call it.
fn call_form(
    tool: &Tool,
    operation: &str,
    arguments: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let call_form = match &tool.plan {
        ToolPlan::Dispatcher { operations } => {
            operations.iter().find(|own| *own == operation)?;
            json!({"operation": operation, "args": arguments})
        }
        ToolPlan::Toolhost { entries } => {
            let entry = entries
                .iter()
                .find(|entry| is_same_call(entry, operation))?;
            json!({"operation": entry.name, "params": own_parameters(entry, arguments)})
        }
        ToolPlan::Operation { operation: own } if own == operation => {
            json!({"arguments": arguments})
        }
        ToolPlan::Named(plan) => json!({"arguments": named_arguments(plan, operation, arguments)?}),
        ToolPlan::Operation { .. } | ToolPlan::Note | ToolPlan::Suggest { .. } => return None,
    };
    match call_form {
        Value::Object(call_form) => Some(call_form),
        _ => None,
    }
}

/// Returns whether an entry of a toolhost calls the operation as the caller would.
fn is_same_call(entry: &ToolhostEntry, operation: &str) -> bool {
    entry.operation.as_deref() == Some(operation) && entry.fixed.is_empty()
}

/// Returns arguments of the operation under the names of the entry.
fn own_parameters(entry: &ToolhostEntry, arguments: &Map<String, Value>) -> Map<String, Value> {
    let own_name = |name: &String| {
        let mut renames = entry.rename.iter();
        let found = renames.find(|(own, to)| *to == name && !entry.values.contains_key(*own));
        found.map_or(name, |(own, _)| own).clone()
    };
    let arguments = arguments.iter();
    arguments
        .map(|(name, value)| (own_name(name), value.clone()))
        .collect()
}

/// Returns the arguments with which a named tool makes exactly this call.
fn named_arguments(
    plan: &NamedToolPlan,
    operation: &str,
    arguments: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let is_other = plan.instead.as_ref().is_some_and(|instead| {
        let only = arguments.keys().eq([&instead.given]);
        only && instead.operation == operation
    });
    if is_other {
        return Some(arguments.clone());
    }
    if plan.operation != operation || !plan.fixed.is_empty() {
        return None;
    }
    let argument = |(name, value): (&String, &Value)| {
        let mut moves = plan.moves.iter();
        let found = moves.find(|step| step.to == *name && step.switch.is_none())?;
        Some((found.from.clone(), value.clone()))
    };
    arguments.iter().map(argument).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::operations::find;

    fn next(tools: &str, tool: &str, start: &str, sent: Value, answer: Value) -> Value {
        let registry = ToolRegistry::new(tools).unwrap();
        let sent = sent.as_object().unwrap();
        let job = RemoteJob::from_call(find(start).unwrap(), sent, &answer).unwrap();
        next_calls(&registry, registry.find(tool).unwrap(), &job).into()
    }

    #[test]
    fn suggests_calls_that_the_tools_accept() {
        let webset = |tools: &str, tool: &str| {
            next(tools, tool, "websets.create", json!({}), json!({"id": "w"}))
        };
        let args = json!({"websetId": "w"});
        assert_eq!(
            webset("default", "manage_websets"),
            json!({
                "checkWith": {"operation": "websets.get", "args": args},
                "cancelWith": {"operation": "websets.cancel", "args": args},
            })
        );
        assert_eq!(
            webset("granular", "websets_create"),
            json!({
                "checkWith": {"tool": "websets_get", "arguments": args},
                "cancelWith": {"tool": "websets_cancel", "arguments": args},
            })
        );
        assert_eq!(
            webset("toolhost", "websets-sync").get("checkWith"),
            Some(&json!({"operation": "get_webset", "params": args}))
        );
        assert_eq!(
            webset("toolhost", "websets-sync").get("cancelWith"),
            Some(&json!({"operation": "cancel_webset", "params": args}))
        );
    }

    #[test]
    fn named_tools_refer_to_each_other() {
        let research = next(
            "classic",
            "deep_researcher_start",
            "agent.runs.create",
            json!({"query": "x"}),
            json!({"id": "r"}),
        );
        let check = json!({"tool": "deep_researcher_check", "arguments": {"researchId": "r"}});
        assert_eq!(research, json!({"checkWith": check}));
        let run = next(
            "classic",
            "agent_run",
            "agent.runs.create",
            json!({"query": "x"}),
            json!({"id": "agent_run_1"}),
        );
        let check = json!({"tool": "agent_run", "arguments": {"runId": "agent_run_1"}});
        assert_eq!(run, json!({"checkWith": check}));
    }
}

//! Encodes requests to the client and parses its responses. The encoding is the same in all protocol versions.

use std::hash::{DefaultHasher, Hash, Hasher};

use rmcp::model;
use serde_json::{Map, Value, json};

use crate::operations::interaction::{
    InputError, InputRequest, InputResponse, SamplingRequest, SamplingResult,
};

/// The most roots of a client that are used.
const MAX_ROOTS: usize = 1_000;

/// The longest response that is parsed, in bytes.
const MAX_RESPONSE: usize = 256 * 1024;

/// Returns the method and the parameters of a request.
pub(super) fn method_and_params(request: &InputRequest) -> (&'static str, Option<Value>) {
    match request {
        InputRequest::Sampling(sampling) => {
            ("sampling/createMessage", Some(sampling_params(sampling)))
        }
        // Without `mode`, the elicitation is a form in every version.
        InputRequest::Form(form) => (
            "elicitation/create",
            Some(json!({"message": form.message, "requestedSchema": form.schema})),
        ),
        InputRequest::Url(page) => (
            "elicitation/create",
            Some(json!({
                "mode": "url", "message": page.message, "url": page.url, "elicitationId": page.id,
            })),
        ),
        InputRequest::Roots => ("roots/list", None),
    }
}

/// Converts a request for the result of a call or the state of a task.
pub(in super::super) fn to_input_request(request: &InputRequest) -> Option<model::InputRequest> {
    let (method, params) = method_and_params(request);
    let mut input = Map::from_iter([("method".to_owned(), json!(method))]);
    input.extend(params.map(|params| ("params".to_owned(), params)));
    serde_json::from_value(Value::Object(input)).ok()
}

/// Returns the key of a request: its kind and a hash of its content. A repeated call with a different request does not
/// get the earlier response.
pub(in super::super) fn request_key(request: &InputRequest) -> String {
    let kind = match request {
        InputRequest::Sampling(_) => "sampling",
        InputRequest::Form(_) => "form",
        InputRequest::Url(_) => "page",
        InputRequest::Roots => "roots",
    };
    let mut hasher = DefaultHasher::new();
    let text = serde_json::to_string(request).unwrap_or_default();
    text.hash(&mut hasher);
    format!("{kind}_{:016x}", hasher.finish())
}

fn sampling_params(sampling: &SamplingRequest) -> Value {
    let content = json!({"type": "text", "text": sampling.message});
    let mut params = json!({
        "messages": [{"role": "user", "content": content}],
        "systemPrompt": sampling.system,
        "maxTokens": sampling.max_tokens,
    });
    if let (Value::Object(params), Some(tool)) = (&mut params, &sampling.tool) {
        let tool = json!({
            "name": tool.name, "description": tool.description, "inputSchema": tool.input_schema,
        });
        params.insert("tools".to_owned(), json!([tool]));
        params.insert("toolChoice".to_owned(), json!({"mode": "required"}));
    }
    params
}

/// Rejects a response that is too long.
pub(in super::super) fn check_length(response: &Value) -> Result<(), InputError> {
    if response.to_string().len() > MAX_RESPONSE {
        return Err(invalid("a response that is too long"));
    }
    Ok(())
}

/// Parses the response to a request.
pub(in super::super) fn parse_response(
    request: &InputRequest,
    response: &Value,
) -> Result<InputResponse, InputError> {
    check_length(response)?;
    match request {
        InputRequest::Sampling(sampling) => {
            sampling_result(sampling, response).map(InputResponse::Sampling)
        }
        InputRequest::Form(_) => {
            check_action(response)?;
            match response.get("content") {
                Some(Value::Object(content)) => Ok(InputResponse::Form(content.clone())),
                _ => Err(invalid("a filled-in form without content")),
            }
        }
        InputRequest::Url(_) => check_action(response).map(|()| InputResponse::UrlAccepted),
        InputRequest::Roots => {
            let roots = response.get("roots").and_then(Value::as_array);
            let roots = roots.ok_or_else(|| invalid("no list of roots"))?;
            let uri = |root: &Value| root.get("uri")?.as_str().map(str::to_owned);
            Ok(InputResponse::Roots(
                roots.iter().filter_map(uri).take(MAX_ROOTS).collect(),
            ))
        }
    }
}

/// Checks that the user accepted an elicitation.
fn check_action(response: &Value) -> Result<(), InputError> {
    match response.get("action").and_then(Value::as_str) {
        Some("accept") => Ok(()),
        Some("decline") => Err(InputError::Declined),
        Some("cancel") => Err(InputError::Cancelled),
        _ => Err(invalid("an action other than accept, decline or cancel")),
    }
}

/// Parses the output of the model, which has one content block or several.
fn sampling_result(
    sampling: &SamplingRequest,
    response: &Value,
) -> Result<SamplingResult, InputError> {
    let blocks = match response.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().collect(),
        Some(block @ Value::Object(_)) => vec![block],
        _ => return Err(invalid("a message without content")),
    };
    let kind = |block: &&&Value, kind: &str| block.get("type").is_some_and(|it| it == kind);
    let texts: Vec<&str> = blocks
        .iter()
        .filter(|block| kind(block, "text"))
        .filter_map(|block| block.get("text")?.as_str())
        .collect();
    let tool = sampling.tool.as_ref().map(|tool| tool.name.as_str());
    let inputs: Vec<Map<String, Value>> = blocks
        .iter()
        .filter(|block| kind(block, "tool_use"))
        .filter(|block| block.get("name").and_then(Value::as_str) == tool)
        .filter_map(|block| block.get("input")?.as_object().cloned())
        .collect();
    Ok(SamplingResult {
        model: response
            .get("model")
            .and_then(Value::as_str)
            .map(str::to_owned),
        text: texts.join("\n"),
        inputs,
    })
}

fn invalid(what: &str) -> InputError {
    InputError::Failed(what.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::operations::interaction::{FormRequest, SamplingTool, UrlRequest};

    fn form() -> InputRequest {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        InputRequest::Form(FormRequest {
            message: "Which?".to_owned(),
            schema: schema.as_object().unwrap().clone(),
        })
    }

    fn sampling(tool: bool) -> InputRequest {
        let tool = tool.then(|| SamplingTool {
            name: "give".to_owned(),
            description: "d".to_owned(),
            input_schema: Map::new(),
        });
        InputRequest::Sampling(SamplingRequest {
            system: "s".to_owned(),
            message: "m".to_owned(),
            tool,
            max_tokens: 7,
        })
    }

    #[test]
    fn only_url_elicitation_has_a_mode() {
        let (method, params) = method_and_params(&form());
        assert_eq!(method, "elicitation/create");
        assert_eq!(params.unwrap().get("mode"), None);
        let page = InputRequest::Url(UrlRequest {
            message: "m".to_owned(),
            url: "http://127.0.0.1:1/x".to_owned(),
            id: "v".to_owned(),
        });
        let expected = json!({
            "mode": "url", "message": "m", "url": "http://127.0.0.1:1/x", "elicitationId": "v",
        });
        assert_eq!(method_and_params(&page).1, Some(expected));
    }

    #[test]
    fn requires_the_tool_call() {
        let params = method_and_params(&sampling(true)).1.unwrap();
        assert_eq!(params.pointer("/toolChoice/mode"), Some(&json!("required")));
        assert_eq!(params.pointer("/tools/0/name"), Some(&json!("give")));
        let params = method_and_params(&sampling(false)).1.unwrap();
        assert_eq!(
            (params.get("tools"), params.get("toolChoice")),
            (None, None)
        );
    }

    #[test]
    fn parses_elicitation_actions() {
        let parse = |response: Value| parse_response(&form(), &response);
        let content = json!({"a": "b"}).as_object().unwrap().clone();
        assert_eq!(
            parse(json!({"action": "accept", "content": {"a": "b"}})),
            Ok(InputResponse::Form(content))
        );
        assert_eq!(
            parse(json!({"action": "decline"})),
            Err(InputError::Declined)
        );
        assert_eq!(
            parse(json!({"action": "cancel"})),
            Err(InputError::Cancelled)
        );
        for odd in [
            json!({}),
            json!(null),
            json!([1]),
            json!({"action": 5}),
            json!({"action": "accept"}),
            json!({"action": "accept", "content": "b"}),
        ] {
            assert!(matches!(parse(odd), Err(InputError::Failed(_))));
        }
    }

    #[test]
    fn parses_one_content_block_or_several() {
        let parse = |response: Value| match parse_response(&sampling(true), &response) {
            Ok(InputResponse::Sampling(result)) => result,
            other => panic!("{other:?}"),
        };
        let one = parse(json!({"model": "x", "content": {"type": "text", "text": "hi"}}));
        assert_eq!((one.text.as_str(), one.model.as_deref()), ("hi", Some("x")));
        let call =
            |name: &str| json!({"type": "tool_use", "id": "1", "name": name, "input": {"n": 1}});
        let several = parse(json!({"content": [call("other"), call("give"), {"type": "image"}]}));
        assert_eq!(several.inputs.len(), 1);
        assert!(parse_response(&sampling(true), &json!({"model": "x"})).is_err());
    }

    #[test]
    fn rejects_long_responses() {
        let response = json!({"content": {"type": "text", "text": "x".repeat(MAX_RESPONSE)}});
        assert!(parse_response(&sampling(false), &response).is_err());
    }

    #[test]
    fn skips_roots_without_a_uri() {
        let response = json!({"roots": [{"uri": "file:///a"}, {"name": "b"}, 7]});
        let roots = InputResponse::Roots(vec!["file:///a".to_owned()]);
        assert_eq!(parse_response(&InputRequest::Roots, &response), Ok(roots));
        assert!(parse_response(&InputRequest::Roots, &json!({"roots": {}})).is_err());
    }
}

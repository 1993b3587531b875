//! Resources, prompts and tool results that the suite reads by name.

use rmcp::model::{ErrorData, JsonObject};
use serde_json::{Value, json};

/// A PNG of one red pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// An empty WAV.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Returns the list of resources.
pub(super) fn resources() -> Value {
    let resource = |uri: &str, mime: &str| json!({"uri": uri, "name": uri, "description": format!("The resource {uri}"), "mimeType": mime});
    json!([
        resource("test://static-text", "text/plain"),
        resource("test://static-binary", "image/png"),
        resource("test://watched-resource", "text/plain"),
    ])
}

/// Returns the list of resource templates.
pub(super) fn resource_templates() -> Value {
    json!([{
        "uriTemplate": "test://template/{id}/data", "name": "template",
        "description": "Data by an id", "mimeType": "application/json",
    }])
}

/// Returns the contents of a resource.
pub(super) fn resource_contents(uri: &str) -> Result<Value, ErrorData> {
    let id = uri
        .strip_prefix("test://template/")
        .and_then(|rest| rest.strip_suffix("/data"));
    Ok(match (uri, id) {
        (_, Some(id)) => {
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!([{"uri": uri, "mimeType": "application/json", "text": data.to_string()}])
        }
        ("test://static-text", _) => {
            let text = "This is the content of the static text resource.";
            json!([{"uri": uri, "mimeType": "text/plain", "text": text}])
        }
        ("test://watched-resource", _) => {
            json!([{"uri": uri, "mimeType": "text/plain", "text": "Nothing happens here."}])
        }
        ("test://static-binary", _) => {
            json!([{"uri": uri, "mimeType": "image/png", "blob": PIXEL}])
        }
        _ => {
            let data = Some(json!({"uri": uri}));
            return Err(ErrorData::resource_not_found("Resource not found", data));
        }
    })
}

/// Returns the list of prompts.
pub(super) fn prompts() -> Value {
    let argument = |name: &str| json!({"name": name, "description": name, "required": true});
    let prompt = |name: &str, arguments: &[&str]| {
        let arguments: Vec<Value> = arguments.iter().map(|name| argument(name)).collect();
        json!({"name": name, "description": format!("The prompt {name}"), "arguments": arguments})
    };
    json!([
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ])
}

/// Returns one message of the user.
pub(super) fn user_message(text: &str) -> Value {
    json!([{"role": "user", "content": {"type": "text", "text": text}}])
}

/// Returns the messages of a prompt.
pub(super) fn prompt_messages(name: &str, arguments: &JsonObject) -> Result<Value, ErrorData> {
    let user = |content: Value| json!({"role": "user", "content": content});
    let text = |text: &str| user(json!({"type": "text", "text": text}));
    let argument = |name: &str| {
        arguments
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    Ok(match name {
        "test_simple_prompt" => json!([text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            json!([text(&format!(
                "Prompt with arguments: arg1='{first}', arg2='{second}'"
            ))])
        }
        "test_prompt_with_embedded_resource" => {
            let content = "Embedded resource content for testing.";
            let resource =
                json!({"uri": argument("resourceUri"), "mimeType": "text/plain", "text": content});
            let embedded = user(json!({"type": "resource", "resource": resource}));
            json!([
                embedded,
                text("Please process the embedded resource above.")
            ])
        }
        "test_prompt_with_image" => {
            let image = user(json!({"type": "image", "data": PIXEL, "mimeType": "image/png"}));
            json!([image, text("Please analyze the image above.")])
        }
        _ => {
            let message = format!("unknown prompt: {name}");
            return Err(ErrorData::invalid_params(message, None));
        }
    })
}

/// Returns the content of a tool whose result is more than text.
pub(super) fn tool_content(tool: &str) -> Option<Value> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    let resource = |uri: &str, mime: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}});
    Some(match tool {
        "test_image_content" => json!([image]),
        "test_audio_content" => {
            json!([{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}])
        }
        "test_embedded_resource" => {
            let words = "This is an embedded resource content.";
            json!([resource("test://embedded-resource", "text/plain", words)])
        }
        "test_multiple_content_types" => {
            let data = json!({"test": "data", "value": 123}).to_string();
            let data = resource("test://mixed-content-resource", "application/json", &data);
            json!([text("Multiple content types test:"), image, data])
        }
        _ => return None,
    })
}

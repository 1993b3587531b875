//! Questions and answers as the protocol writes them. Both eras use the same words; only the way they
//! travel differs.

use std::hash::{DefaultHasher, Hash, Hasher};

use rmcp::model::InputRequest;
use serde_json::{Map, Value, json};

use crate::operations::client::{NoReply, Question, Reply, Sampled, Sampling};

/// Folders of a client beyond this number are not looked at.
const MOST_ROOTS: usize = 1_000;

/// Bytes of an answer that is read.
const LONGEST_ANSWER: usize = 256 * 1024;

/// The method of a question and its parameters.
pub(super) fn request(question: &Question) -> (&'static str, Option<Value>) {
    match question {
        Question::Sample(sampling) => ("sampling/createMessage", Some(sample(sampling))),
        // Without `mode` it is a form in every version.
        Question::Form(form) => (
            "elicitation/create",
            Some(json!({"message": form.message, "requestedSchema": form.schema})),
        ),
        Question::Visit(visit) => (
            "elicitation/create",
            Some(json!({
                "mode": "url", "message": visit.message, "url": visit.url, "elicitationId": visit.id,
            })),
        ),
        Question::Roots => ("roots/list", None),
    }
}

/// A question as a part of an answer or of a task.
pub(in super::super) fn input(question: &Question) -> Option<InputRequest> {
    let (method, params) = request(question);
    let mut input = Map::from_iter([("method".to_owned(), json!(method))]);
    input.extend(params.map(|params| ("params".to_owned(), params)));
    serde_json::from_value(Value::Object(input)).ok()
}

/// The name of a question: its kind and what it says. A call that asks something else in the next
/// round, because the world has changed, is not given the old answer.
pub(in super::super) fn key(question: &Question) -> String {
    let kind = match question {
        Question::Sample(_) => "sampling",
        Question::Form(_) => "form",
        Question::Visit(_) => "page",
        Question::Roots => "roots",
    };
    let mut hasher = DefaultHasher::new();
    let text = serde_json::to_string(question).unwrap_or_default();
    text.hash(&mut hasher);
    format!("{kind}_{:016x}", hasher.finish())
}

fn sample(sampling: &Sampling) -> Value {
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

/// Refuses an answer that is too long to be read.
pub(in super::super) fn short(answer: Value) -> Result<Value, NoReply> {
    match is_long(&answer) {
        true => Err(nonsense("an answer that is too long")),
        false => Ok(answer),
    }
}

fn is_long(answer: &Value) -> bool {
    answer.to_string().len() > LONGEST_ANSWER
}

/// Reads the answer to a question.
pub(in super::super) fn reply(question: &Question, answer: &Value) -> Result<Reply, NoReply> {
    if is_long(answer) {
        return Err(nonsense("an answer that is too long"));
    }
    match question {
        Question::Sample(sampling) => sampled(sampling, answer).map(Reply::Sampled),
        Question::Form(_) => {
            decided(answer)?;
            match answer.get("content") {
                Some(Value::Object(content)) => Ok(Reply::Filled(content.clone())),
                _ => Err(nonsense("a filled-in form without content")),
            }
        }
        Question::Visit(_) => decided(answer).map(|()| Reply::Visiting),
        Question::Roots => {
            let roots = answer.get("roots").and_then(Value::as_array);
            let roots = roots.ok_or_else(|| nonsense("no list of roots"))?;
            let uri = |root: &Value| root.get("uri")?.as_str().map(str::to_owned);
            Ok(Reply::Roots(
                roots.iter().filter_map(uri).take(MOST_ROOTS).collect(),
            ))
        }
    }
}

/// What the user decided.
fn decided(answer: &Value) -> Result<(), NoReply> {
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => Ok(()),
        Some("decline") => Err(NoReply::Declined),
        Some("cancel") => Err(NoReply::Cancelled),
        _ => Err(nonsense("neither accept, decline nor cancel")),
    }
}

/// What the model said: one block or several.
fn sampled(sampling: &Sampling, answer: &Value) -> Result<Sampled, NoReply> {
    let blocks = match answer.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().collect(),
        Some(block @ Value::Object(_)) => vec![block],
        _ => return Err(nonsense("a message without content")),
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
    Ok(Sampled {
        model: answer
            .get("model")
            .and_then(Value::as_str)
            .map(str::to_owned),
        text: texts.join("\n"),
        inputs,
    })
}

fn nonsense(what: &str) -> NoReply {
    NoReply::Failed(what.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::operations::client::{Form, SamplingTool, Visit};

    fn form() -> Question {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        Question::Form(Form {
            message: "Which?".to_owned(),
            schema: schema.as_object().unwrap().clone(),
        })
    }

    fn sampling(tool: bool) -> Question {
        let tool = tool.then(|| SamplingTool {
            name: "give".to_owned(),
            description: "d".to_owned(),
            input_schema: Map::new(),
        });
        Question::Sample(Sampling {
            system: "s".to_owned(),
            message: "m".to_owned(),
            tool,
            max_tokens: 7,
        })
    }

    #[test]
    fn a_form_names_no_mode_and_a_page_does() {
        let (method, params) = request(&form());
        assert_eq!(method, "elicitation/create");
        assert_eq!(params.unwrap().get("mode"), None);
        let visit = Question::Visit(Visit {
            message: "m".to_owned(),
            url: "http://127.0.0.1:1/x".to_owned(),
            id: "v".to_owned(),
        });
        let expected = json!({
            "mode": "url", "message": "m", "url": "http://127.0.0.1:1/x", "elicitationId": "v",
        });
        assert_eq!(request(&visit).1, Some(expected));
    }

    #[test]
    fn a_tool_must_be_called() {
        let params = request(&sampling(true)).1.unwrap();
        assert_eq!(params.pointer("/toolChoice/mode"), Some(&json!("required")));
        assert_eq!(params.pointer("/tools/0/name"), Some(&json!("give")));
        let params = request(&sampling(false)).1.unwrap();
        assert_eq!(
            (params.get("tools"), params.get("toolChoice")),
            (None, None)
        );
    }

    #[test]
    fn decisions_are_told_apart() {
        let read = |answer: Value| reply(&form(), &answer);
        let content = json!({"a": "b"}).as_object().unwrap().clone();
        assert_eq!(
            read(json!({"action": "accept", "content": {"a": "b"}})),
            Ok(Reply::Filled(content))
        );
        assert_eq!(read(json!({"action": "decline"})), Err(NoReply::Declined));
        assert_eq!(read(json!({"action": "cancel"})), Err(NoReply::Cancelled));
        for odd in [
            json!({}),
            json!(null),
            json!([1]),
            json!({"action": 5}),
            json!({"action": "accept"}),
            json!({"action": "accept", "content": "b"}),
        ] {
            assert!(matches!(read(odd), Err(NoReply::Failed(_))));
        }
    }

    #[test]
    fn one_block_or_several_are_read() {
        let read = |answer: Value| match reply(&sampling(true), &answer) {
            Ok(Reply::Sampled(sampled)) => sampled,
            other => panic!("{other:?}"),
        };
        let one = read(json!({"model": "x", "content": {"type": "text", "text": "hi"}}));
        assert_eq!((one.text.as_str(), one.model.as_deref()), ("hi", Some("x")));
        let call =
            |name: &str| json!({"type": "tool_use", "id": "1", "name": name, "input": {"n": 1}});
        let several = read(json!({"content": [call("other"), call("give"), {"type": "image"}]}));
        assert_eq!(several.inputs.len(), 1);
        assert!(reply(&sampling(true), &json!({"model": "x"})).is_err());
    }

    #[test]
    fn long_answers_are_not_read() {
        let answer = json!({"content": {"type": "text", "text": "x".repeat(LONGEST_ANSWER)}});
        assert!(reply(&sampling(false), &answer).is_err());
    }

    #[test]
    fn roots_without_an_address_are_left_out() {
        let answer = json!({"roots": [{"uri": "file:///a"}, {"name": "b"}, 7]});
        let roots = Reply::Roots(vec!["file:///a".to_owned()]);
        assert_eq!(reply(&Question::Roots, &answer), Ok(roots));
        assert!(reply(&Question::Roots, &json!({"roots": {}})).is_err());
    }
}

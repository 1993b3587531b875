//! Reads the file with the results of a batch that Exa has run.

use std::collections::HashMap;

use serde_json::Value;

/// Why a line has no result.
pub(super) const MISSING: &str = "the batch has no result for this call";

/// The body of a successful response, or why there is none.
pub(super) type RemoteResult = Result<Value, String>;

/// Returns the results by the ids of their requests.
///
/// Fails if a line is something else, such as the page of a proxy, because the results may then be missing.
pub(super) fn by_id(text: &str, id_field: &str) -> Result<HashMap<String, RemoteResult>, String> {
    let lines = text.lines().zip(1_usize..);
    let lines = lines.filter(|(line, _)| !line.trim().is_empty());
    let results = lines.map(|(line, number)| {
        let result: Value = serde_json::from_str(line)
            .map_err(|error| format!("line {number} is not JSON: {error}"))?;
        let id = result.get(id_field).and_then(Value::as_str);
        let id = id.ok_or_else(|| format!("line {number} has no `{id_field}`"))?;
        Ok((id.to_owned(), outcome(&result)))
    });
    results.collect()
}

/// Returns the outcome of one request.
fn outcome(result: &Value) -> RemoteResult {
    let field = |name: &str| result.get(name).filter(|value| !value.is_null());
    match (field("response"), field("error")) {
        (Some(response), _) => response_body(response),
        (None, Some(error)) => Err(error_message(error).unwrap_or_else(|| error.to_string())),
        (None, None) => Err(MISSING.to_owned()),
    }
}

/// Returns the body of a response, which is beside its status.
fn response_body(response: &Value) -> RemoteResult {
    let body = response.get("body").unwrap_or(response);
    let status = response.get("statusCode").and_then(Value::as_u64);
    match status {
        Some(status) if !(200..300).contains(&status) => {
            let message = error_message(body).unwrap_or_else(|| body.to_string());
            Err(format!("HTTP status {status}: {message}"))
        }
        _ => Ok(body.clone()),
    }
}

/// Returns the message of an error, which Exa states in one of two fields.
fn error_message(error: &Value) -> Option<String> {
    let stated = |name: &str| error.get(name).and_then(Value::as_str);
    let message = stated("message").or_else(|| stated("error"));
    message.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    #[test]
    fn results_are_assigned_by_id() {
        let text = concat!(
            r#"{"customId": "b", "response": {"statusCode": 201, "body": {"results": []}}}"#,
            "\r\n\n",
            r#"{"customId": "a", "error": {"code": "API_ERROR", "message": "overloaded"}, "response": null}"#,
            "\n",
            r#"{"customId": "c"}"#,
        );
        let results = by_id(text, "customId").unwrap();
        assert_eq!(results["b"], Ok(json!({"results": []})));
        assert_eq!(results["a"], Err("overloaded".to_owned()));
        assert_eq!(results["c"], Err(MISSING.to_owned()));
    }

    #[test]
    fn unsuccessful_responses_are_failures() {
        for (body, message) in [
            (json!({"error": "Invalid API key"}), "Invalid API key"),
            (
                json!({"message": "slow down", "statusCode": 429}),
                "slow down",
            ),
            (json!({"odd": true}), r#"{"odd":true}"#),
        ] {
            let line = json!({"customId": "a", "response": {"statusCode": 429, "body": body}});
            let results = by_id(&line.to_string(), "customId").unwrap();
            assert_eq!(results["a"], Err(format!("HTTP status 429: {message}")));
        }
    }

    /// Otherwise every call would look unanswered, and the next run would pay for all of them once more.
    #[test]
    fn other_files_are_rejected() {
        let whole = r#"{"customId": "a", "response": {"statusCode": 200, "body": {}}}"#;
        for (text, problem) in [
            ("<html>Sign in</html>".to_owned(), "line 1 is not JSON"),
            (format!("{whole}\n{}", &whole[..20]), "line 2 is not JSON"),
            (format!("{whole}\n[]"), "line 2 has no `customId`"),
            (
                r#"{"error": "expired"}"#.to_owned(),
                "line 1 has no `customId`",
            ),
        ] {
            let error = by_id(&text, "customId").unwrap_err();
            assert!(error.starts_with(problem), "{error}");
        }
    }
}

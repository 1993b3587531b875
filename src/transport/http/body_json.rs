//! Parses JSON bodies. Large ones are parsed on blocking threads.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use bytes::Bytes;
use rmcp::model::ErrorData;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::message_check;

/// Larger bodies are parsed on a blocking thread.
const INLINE_LIMIT: usize = 32 * 1024;

/// A body may contain this many values, or one per `BYTES_PER_VALUE` of the maximum body size. Parsed
/// values take far more time and memory than their text.
const MIN_VALUES: usize = 10_000;
const BYTES_PER_VALUE: usize = 100;

/// Limits the number of large bodies parsed concurrently.
static PARSERS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(1, usize::from);
    Semaphore::new((cores / 2).max(1))
});

/// Parses the JSON of a body. `max_body` is the maximum body size.
pub(super) async fn parse(body: Bytes, max_body: usize) -> Result<Value, ErrorData> {
    if body.len() <= INLINE_LIMIT {
        return message_check::parse_body(&body);
    }
    let max_values = MIN_VALUES.max(max_body / BYTES_PER_VALUE);
    let failed = || ErrorData::internal_error("The body could not be read", None);
    let _permit = PARSERS.acquire().await.map_err(|_| failed())?;
    let read = spawn_blocking(move || {
        if count_values(&body) > max_values {
            let reason = format!(
                "Invalid request: the body has more than {max_values} values; send less at a time, or raise \
                 EXA_MCP_MAX_BODY_BYTES, which allows one value for {BYTES_PER_VALUE} bytes"
            );
            return Err(ErrorData::invalid_request(reason, None));
        }
        message_check::parse_body(&body)
    });
    read.await.unwrap_or_else(|_| Err(failed()))
}

/// Estimates the number of JSON values: one per comma and opening bracket.
fn count_values(text: &[u8]) -> usize {
    let (mut values, mut in_string, mut is_escaped) = (1, false, false);
    for byte in text {
        if in_string {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => in_string = true,
                b',' | b'[' | b'{' => values += 1,
                _ => {}
            }
        }
    }
    values
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn counts_values_outside_of_strings() {
        for (text, expected) in [
            ("1", 1),
            (r#"{"a":1,"b":[1,2,3]}"#, 6),
            (r#"{"a":"x,y,[{\",\\"}"#, 2),
            (r#"["\\",1]"#, 3),
        ] {
            assert_eq!(count_values(text.as_bytes()), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn large_bodies_may_not_contain_too_many_values() {
        let read = async |text: String| parse(text.into(), 1024 * 1024).await;
        let text = format!("\"{}\"", ",[{".repeat(300_000));
        assert!(read(text).await.is_ok());
        for part in ["1,", "[1],", "{\"a\":2},", "[],"] {
            let count = 400_000 / part.len();
            let text = format!("[{}1]", part.repeat(count));
            let error = read(text).await.unwrap_err();
            assert!(
                error.message.contains("EXA_MCP_MAX_BODY_BYTES"),
                "{error:?}"
            );
        }
        let error = read("[".repeat(50_000)).await.unwrap_err();
        assert!(error.message.contains("values"), "{error:?}");
        let error = read("[".repeat(9_000) + &" ".repeat(INLINE_LIMIT))
            .await
            .unwrap_err();
        assert_eq!(error.code.0, -32700, "{error:?}");
    }
}

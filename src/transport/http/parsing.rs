//! Reading the JSON of bodies; long ones away from the threads that serve everybody.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use bytes::Bytes;
use rmcp::model::ErrorData;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::incoming;

/// Longer bodies are read on threads of their own.
const LONG: usize = 32 * 1024;

/// A body may have this many values, or one for so many bytes of the longest body: values cost time and
/// memory far beyond their length.
const MIN_VALUES: usize = 10_000;
const BYTES_PER_VALUE: usize = 100;

/// Long bodies that are read at once.
static READERS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(1, usize::from);
    Semaphore::new((cores / 2).max(1))
});

/// Reads the JSON of a body, of which the longest has `longest` bytes.
pub(super) async fn parse(body: Bytes, longest: usize) -> Result<Value, ErrorData> {
    if body.len() <= LONG {
        return incoming::parse(&body);
    }
    let most = MIN_VALUES.max(longest / BYTES_PER_VALUE);
    let failed = || ErrorData::internal_error("The body could not be read", None);
    let _reader = READERS.acquire().await.map_err(|_| failed())?;
    let read = spawn_blocking(move || {
        if values(&body) > most {
            let why = format!(
                "Invalid request: the body has more than {most} values; send less at a time, or raise \
                 EXA_MCP_MAX_BODY_BYTES, which allows one value for {BYTES_PER_VALUE} bytes"
            );
            return Err(ErrorData::invalid_request(why, None));
        }
        incoming::parse(&body)
    });
    read.await.unwrap_or_else(|_| Err(failed()))
}

/// How many values a text of JSON has, roughly: one for each comma and each opening bracket.
fn values(text: &[u8]) -> usize {
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
    fn values_are_counted_outside_of_texts() {
        for (text, expected) in [
            ("1", 1),
            (r#"{"a":1,"b":[1,2,3]}"#, 6),
            (r#"{"a":"x,y,[{\",\\"}"#, 2),
            (r#"["\\",1]"#, 3),
        ] {
            assert_eq!(values(text.as_bytes()), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn long_bodies_may_be_long_but_not_intricate() {
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
        let error = read("[".repeat(9_000) + &" ".repeat(LONG))
            .await
            .unwrap_err();
        assert_eq!(error.code.0, -32700, "{error:?}");
    }
}

//! Reading answers within bounds.

use reqwest::Response;

/// How much of the body of an error answer is read.
pub(super) const MAX_ERROR_BYTES: usize = 64 * 1024;

/// How much room is made at once for a body that says its length.
const MAX_RESERVE: usize = 1024 * 1024;

/// Why a body was not read to its end.
pub(super) enum ReadError {
    /// It is longer than allowed.
    TooLarge,
    /// The connection failed, or the compression is not valid.
    Transport(reqwest::Error),
}

/// Reads a whole body of at most `limit` bytes, counted after decompression.
pub(super) async fn read_all(response: &mut Response, limit: usize) -> Result<Vec<u8>, ReadError> {
    let announced = response.content_length().unwrap_or_default();
    let announced = usize::try_from(announced).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(ReadError::TooLarge);
    }
    let mut body = Vec::with_capacity(announced.min(MAX_RESERVE));
    while let Some(chunk) = response.chunk().await.map_err(ReadError::Transport)? {
        if chunk.len() > limit.saturating_sub(body.len()) {
            return Err(ReadError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Reads the beginning of an error body. A body that breaks off is still worth reading, since the
/// status says what happened.
pub(super) async fn read_start(response: &mut Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = MAX_ERROR_BYTES.saturating_sub(body.len());
        body.extend(chunk.iter().take(room));
        if chunk.len() >= room {
            break;
        }
    }
    body
}

//! Reading answers within bounds.

use reqwest::Response;
use tokio::time::Instant;

use super::{
    blocking,
    deadline::Deadline,
    response_memory::{ParseShare, ReadShare, ResponseMemory, SMALL, TooManyValues, values_size},
};

/// How much of the body of an error answer is read.
pub(super) const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Why a body was not read to its end.
pub(super) enum ReadError {
    /// It is longer than allowed.
    TooLarge,
    /// It was not complete in time.
    TimedOut,
    /// The connection failed, or the compression is not valid.
    Transport(reqwest::Error),
}

/// A body, and its shares of the memory for responses if it is large. They are held for as long as the
/// body is, so until the generated client has decoded it.
pub(super) struct Body {
    bytes: Vec<u8>,
    _share: Option<ReadShare>,
    values: Option<ParseShare>,
}

impl Body {
    /// Waits until the values of the body may be made.
    ///
    /// # Errors
    /// The values of this call would be too large.
    pub(super) async fn reserve_values(
        &mut self,
        memory: &ResponseMemory,
    ) -> Result<(), TooManyValues> {
        let is_large = blocking::is_large_text(self.bytes.len());
        let size = blocking::run(is_large, || values_size(&self.bytes)).await;
        self.values = memory.share_to_parse(size).await?;
        Ok(())
    }

    /// Replaces the content by a repaired one.
    pub(super) fn replace(&mut self, bytes: Vec<u8>) {
        self.bytes = bytes;
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a whole body of at most `limit` bytes, counted after decompression. What it waits for memory does
/// not count as time of the API.
pub(super) async fn read_all(
    response: &mut Response,
    limit: usize,
    memory: &ResponseMemory,
    deadline: &mut Deadline,
) -> Result<Body, ReadError> {
    let announced = response.content_length().unwrap_or_default();
    let announced = usize::try_from(announced).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(ReadError::TooLarge);
    }
    let mut share = None;
    if announced > SMALL {
        share = Some(share_of(memory, announced, deadline).await);
    }
    let mut body = Vec::with_capacity(announced);
    loop {
        let chunk = deadline.bound(response.chunk()).await;
        let chunk = chunk.ok_or(ReadError::TimedOut)?;
        let Some(chunk) = chunk.map_err(ReadError::Transport)? else {
            break;
        };
        if chunk.len() > limit.saturating_sub(body.len()) {
            return Err(ReadError::TooLarge);
        }
        if share.is_none() && body.len() + chunk.len() > SMALL {
            // It does not say its length: it may become as long as any.
            share = Some(share_of(memory, limit, deadline).await);
        }
        body.extend_from_slice(&chunk);
    }
    if let Some(share) = &mut share {
        share.shrink_to(body.len());
    }
    Ok(Body {
        bytes: body,
        _share: share,
        values: None,
    })
}

/// Waits for memory.
async fn share_of(memory: &ResponseMemory, bytes: usize, deadline: &mut Deadline) -> ReadShare {
    let began = Instant::now();
    let share = memory.share_to_read(bytes).await;
    deadline.extend(began.elapsed());
    share
}

/// Reads the beginning of an error body. A body that breaks off is still worth reading, since the
/// status says what happened.
pub(super) async fn read_start(response: &mut Response, deadline: &Deadline) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(Ok(Some(chunk))) = deadline.bound(response.chunk()).await {
        let room = MAX_ERROR_BYTES.saturating_sub(body.len());
        body.extend(chunk.iter().take(room));
        if chunk.len() >= room {
            break;
        }
    }
    body
}

//! Reads response bodies within limits.

use reqwest::Response;
use tokio::time::Instant;

use super::{
    blocking,
    deadline::Deadline,
    response_memory::{
        ByteReservation, ResponseMemory, SMALL, ValueReservation, ValuesTooLarge, values_size,
    },
};

/// The maximum number of bytes that are read of an error response.
pub(super) const MAX_ERROR_BYTES: usize = 64 * 1024;

/// An error while reading a body.
pub(super) enum ReadError {
    /// The body exceeds the limit.
    TooLarge,
    /// The deadline passed.
    TimedOut,
    /// The connection failed, or the compressed data is invalid.
    Transport(reqwest::Error),
}

/// A body with its memory reservations, which are held until the generated client has decoded it.
pub(super) struct Body {
    bytes: Vec<u8>,
    _reservation: Option<ByteReservation>,
    values: Option<ValueReservation>,
}

impl Body {
    /// Waits until the body may be parsed.
    ///
    /// # Errors
    /// The values of this call would exceed the memory limit.
    pub(super) async fn reserve_values(
        &mut self,
        memory: &ResponseMemory,
    ) -> Result<(), ValuesTooLarge> {
        let is_large = blocking::is_large_text(self.bytes.len());
        let size = blocking::run(is_large, || values_size(&self.bytes)).await;
        self.values = memory.reserve_values(size).await?;
        Ok(())
    }

    /// Replaces the contents with repaired ones.
    pub(super) fn replace(&mut self, bytes: Vec<u8>) {
        self.bytes = bytes;
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a whole body of at most `limit` bytes after decompression. Waiting for memory extends the deadline.
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
    let mut reservation = None;
    if announced > SMALL {
        reservation = Some(reserve_bytes(memory, announced, deadline).await);
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
        if reservation.is_none() && body.len() + chunk.len() > SMALL {
            // Without a content length, the body may reach the limit.
            reservation = Some(reserve_bytes(memory, limit, deadline).await);
        }
        body.extend_from_slice(&chunk);
    }
    if let Some(reservation) = &mut reservation {
        reservation.shrink_to(body.len());
    }
    Ok(Body {
        bytes: body,
        _reservation: reservation,
        values: None,
    })
}

/// Waits for memory and extends the deadline accordingly.
async fn reserve_bytes(
    memory: &ResponseMemory,
    bytes: usize,
    deadline: &mut Deadline,
) -> ByteReservation {
    let start = Instant::now();
    let reservation = memory.reserve_bytes(bytes).await;
    deadline.extend(start.elapsed());
    reservation
}

/// Reads the start of an error body. A truncated body is still useful, because the status is known.
pub(super) async fn read_start(response: &mut Response, deadline: &Deadline) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(Ok(Some(chunk))) = deadline.bound(response.chunk()).await {
        let remaining = MAX_ERROR_BYTES.saturating_sub(body.len());
        body.extend(chunk.iter().take(remaining));
        if chunk.len() >= remaining {
            break;
        }
    }
    body
}

//! The output side of a connection. One task owns the stream, so messages never interleave.

use std::{io, sync::Arc};

use serde::Serialize;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
};

use super::backlog::Backlog;

/// Queues lines and writes them in order.
pub(super) struct LineWriter {
    lines: UnboundedSender<Vec<u8>>,
    backlog: Arc<Backlog>,
}

/// Resolves to `Ok` when the transport is dropped and everything is written, or to an error when the stream
/// fails.
pub(crate) type WriterTask = JoinHandle<io::Result<()>>;

impl LineWriter {
    /// Starts the writer task. `backlog` counts what it has not written yet.
    pub(super) fn start<W>(writer: W, backlog: Arc<Backlog>) -> (Self, WriterTask)
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (lines, queue) = unbounded_channel();
        let writer_task = tokio::spawn(write(writer, queue, Arc::clone(&backlog)));
        (Self { lines, backlog }, writer_task)
    }

    /// Queues one JSON message without a line feed.
    pub(super) fn send(&self, mut message: Vec<u8>) -> io::Result<()> {
        message.push(b'\n');
        self.backlog.queue(message.len());
        self.lines
            .send(message)
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }

    /// Waits until the stream is closed.
    pub(super) async fn closed(&self) {
        self.lines.closed().await;
    }
}

async fn write<W>(
    mut writer: W,
    mut queue: UnboundedReceiver<Vec<u8>>,
    backlog: Arc<Backlog>,
) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    while let Some(line) = queue.recv().await {
        writer.write_all(&line).await?;
        writer.flush().await?;
        backlog.dequeue(line.len());
    }
    Ok(())
}

/// Fits most messages without reallocation.
const INITIAL_CAPACITY: usize = 16 * 1024;

/// Serializes a message as JSON on one line.
pub(super) fn to_json<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(INITIAL_CAPACITY);
    serde_json::to_writer(&mut line, message)?;
    Ok(line)
}

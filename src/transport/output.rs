//! The writing end: one task owns the stream, so messages never mix.

use std::{io, sync::Arc};

use serde::Serialize;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
};

use super::backlog::Backlog;

/// Takes lines and has them written in the order of the calls.
pub(super) struct Output {
    lines: UnboundedSender<Vec<u8>>,
    backlog: Arc<Backlog>,
}

/// Ends with `Ok` when the transport is gone and everything is written, with an error when the
/// stream takes no more.
pub(crate) type Written = JoinHandle<io::Result<()>>;

impl Output {
    /// Starts the task that writes; `backlog` counts what it has not written yet.
    pub(super) fn start<W>(writer: W, backlog: Arc<Backlog>) -> (Self, Written)
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (lines, queue) = unbounded_channel();
        let written = tokio::spawn(write(writer, queue, Arc::clone(&backlog)));
        (Self { lines, backlog }, written)
    }

    /// Queues one message, written as JSON without a line feed.
    pub(super) fn put(&self, mut message: Vec<u8>) -> io::Result<()> {
        message.push(b'\n');
        self.backlog.queue(message.len());
        self.lines
            .send(message)
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }

    /// Waits until the stream takes no more.
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

/// Room for most messages: one that grows from nothing is copied again and again.
const ROOM: usize = 16 * 1024;

/// Writes a message as JSON on one line.
pub(super) fn json<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(ROOM);
    serde_json::to_writer(&mut line, message)?;
    Ok(line)
}

//! Serves one connection of one message a line: standard input and output, or the legacy HTTP transport.

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use rmcp::{
    RoleServer, ServerHandler,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    service::serve_directly,
    transport::Transport,
};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};

use super::Backlog;
use super::stdio::{StdioTransport, Written};

/// How long running calls may take to be told that they are stopped after a signal.
const STOPPING: Duration = Duration::from_secs(2);

/// How long the client may take to read the last answers.
pub(crate) const FLUSHING: Duration = Duration::from_secs(5);

/// Why the server could not go on.
#[derive(Debug, Error)]
pub(crate) enum ServeError {
    /// The runtime or the signal handlers could not be set up.
    #[error("the server could not start: {0}")]
    Start(#[source] io::Error),
    /// Standard output failed in another way than by being closed.
    #[error("standard output failed: {0}")]
    Output(#[source] io::Error),
}

/// A transport that shows each message before it is handled.
struct Observed<T, F> {
    transport: T,
    received: F,
}

impl<T, F> Transport<RoleServer> for Observed<T, F>
where
    T: Transport<RoleServer>,
    F: Fn(&ClientJsonRpcMessage) + Send + 'static,
{
    type Error = T::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let message = self.transport.receive().await;
        message.inspect(&self.received)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

/// Serves one connection of one message a line until it ends or `stop` does. `received` sees each message before
/// it is handled, and `backlog` counts what waits to be answered or written; `settle` is what remains to be done before the last answers are written.
pub(crate) async fn serve_lines<H, R, W>(
    handler: H,
    input: R,
    output: W,
    backlog: Arc<Backlog>,
    received: impl Fn(&ClientJsonRpcMessage) + Send + 'static,
    stop: impl Future<Output = ()>,
    settle: impl Future<Output = ()>,
) -> Result<(), ServeError>
where
    H: ServerHandler,
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (transport, mut written) = StdioTransport::new(input, output, backlog);
    let transport = Observed {
        transport,
        received,
    };
    // Not rmcp's handshake: it ends the connection on an unexpected first message.
    let service = serve_directly::<RoleServer, _, _, _, _>(handler, transport, None);
    let token = service.cancellation_token();
    let mut ended = pin!(service.waiting());
    let closed = tokio::select! {
        // At the end of the input rmcp waits up to five seconds for running calls.
        _ = &mut ended => None,
        result = &mut written => Some(result),
        () = stop => {
            token.cancel();
            let _ = timeout(STOPPING, ended).await;
            None
        }
    };
    settle.await;
    match closed {
        Some(result) => verdict(result.unwrap_or_else(|e| Err(e.into()))),
        None => flush(written).await,
    }
}

/// Waits for the last answers to be written.
async fn flush(written: Written) -> Result<(), ServeError> {
    match timeout(FLUSHING, written).await {
        Ok(result) => verdict(result.unwrap_or_else(|e| Err(e.into()))),
        // The client lives but does not read: there is nobody to tell.
        Err(_) => Ok(()),
    }
}

/// A client that went away is no failure.
fn verdict(written: io::Result<()>) -> Result<(), ServeError> {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    match written {
        Err(error) => match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected => Ok(()),
            _ => Err(ServeError::Output(error)),
        },
        Ok(()) => Ok(()),
    }
}

/// Ends when the process is asked to end.
#[cfg(unix)]
pub(crate) fn termination() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Ends when the process is asked to end.
#[cfg(not(unix))]
pub(crate) fn termination() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

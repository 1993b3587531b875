//! Serves one line-delimited connection: standard input and output, or the legacy HTTP+SSE transport.

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
use super::stdio::{StdioTransport, WriterTask};

/// How long running calls may take to stop after a signal.
const CANCELLATION_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the client may take to read the last responses.
pub(crate) const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason the server stopped.
#[derive(Debug, Error)]
pub(crate) enum ServeError {
    /// The runtime or the signal handlers could not be set up.
    #[error("the server could not start: {0}")]
    Start(#[source] io::Error),
    /// Writing to standard output failed for a reason other than a closed pipe.
    #[error("standard output failed: {0}")]
    Output(#[source] io::Error),
}

/// A transport that reports each message before it is handled.
struct ObservedTransport<T, F> {
    transport: T,
    on_message: F,
}

impl<T, F> Transport<RoleServer> for ObservedTransport<T, F>
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
        message.inspect(&self.on_message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

/// Serves one line-delimited connection until it ends or `stop` resolves. Calls `on_message` for each
/// message before it is handled, counts pending work in `backlog`, and awaits `before_flush` before it
/// waits for the last responses to be written.
pub(crate) async fn serve_lines<H, R, W>(
    handler: H,
    input: R,
    output: W,
    backlog: Arc<Backlog>,
    on_message: impl Fn(&ClientJsonRpcMessage) + Send + 'static,
    stop: impl Future<Output = ()>,
    before_flush: impl Future<Output = ()>,
) -> Result<(), ServeError>
where
    H: ServerHandler,
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (transport, mut writer_task) = StdioTransport::new(input, output, backlog);
    let transport = ObservedTransport {
        transport,
        on_message,
    };
    // rmcp's own handshake would end the connection on an unexpected first message.
    let service = serve_directly::<RoleServer, _, _, _, _>(handler, transport, None);
    let token = service.cancellation_token();
    let mut ended = pin!(service.waiting());
    let closed = tokio::select! {
        // At the end of the input rmcp waits up to five seconds for running calls.
        _ = &mut ended => None,
        result = &mut writer_task => {
            // The service has noticed, too. Dropping it before it ends would look like a failure in the log.
            let _ = timeout(CANCELLATION_TIMEOUT, ended).await;
            Some(result)
        }
        () = stop => {
            token.cancel();
            let _ = timeout(CANCELLATION_TIMEOUT, ended).await;
            None
        }
    };
    before_flush.await;
    match closed {
        Some(result) => ignore_disconnect(result.unwrap_or_else(|e| Err(e.into()))),
        None => flush(writer_task).await,
    }
}

/// Waits until the last responses are written.
async fn flush(writer_task: WriterTask) -> Result<(), ServeError> {
    match timeout(FLUSH_TIMEOUT, writer_task).await {
        Ok(result) => ignore_disconnect(result.unwrap_or_else(|e| Err(e.into()))),
        // The client is connected but does not read, so the error cannot be delivered.
        Err(_) => Ok(()),
    }
}

/// Treats a disconnected client as success.
fn ignore_disconnect(result: io::Result<()>) -> Result<(), ServeError> {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    match result {
        Err(error) => match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected => Ok(()),
            _ => Err(ServeError::Output(error)),
        },
        Ok(()) => Ok(()),
    }
}

/// Resolves when the process receives a termination signal.
#[cfg(unix)]
pub(crate) fn shutdown_signal() -> io::Result<impl Future<Output = ()>> {
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

/// Resolves when the process receives a termination signal.
#[cfg(not(unix))]
pub(crate) fn shutdown_signal() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

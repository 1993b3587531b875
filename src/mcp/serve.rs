//! Runs the server over standard input and output.

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use rmcp::{
    RoleServer, ServerHandler,
    model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, ServerJsonRpcMessage},
    service::serve_directly,
    transport::{Transport, stdio_pipes},
};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};

use super::{calls::Calls, handler::Handler, scope::Scope, tools::Tools, traced::Traced};
use crate::{
    accounts::LocalUser,
    tools::ToolExecutor,
    transport::stdio::{StdioTransport, Written},
};
use exa_mcp_store::Store;

/// How long running calls may take to be told that they are stopped after a signal.
const STOPPING: Duration = Duration::from_secs(2);

/// How long the client may take to read the last answers.
const FLUSHING: Duration = Duration::from_secs(5);

/// How long the store may take to be closed.
const CLOSING: Duration = Duration::from_secs(3);

/// Why the server could not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The runtime or the signal handlers could not be set up.
    #[error("the server could not start: {0}")]
    Start(#[source] io::Error),
    /// Standard output failed in another way than by being closed.
    #[error("standard output failed: {0}")]
    Output(#[source] io::Error),
}

/// Serves MCP over standard input and output until the input ends, the output is closed, or the
/// process is asked to end (SIGINT, SIGTERM); each of them is a good end.
///
/// After the end of the input running calls have five seconds to finish; a signal stops them at once,
/// and their callers are told so. Must run inside a Tokio runtime with its drivers enabled; where
/// standard input is no pipe, that runtime must be ended by `shutdown_background`.
pub async fn serve_stdio(executor: ToolExecutor) -> Result<(), ServeError> {
    let stop = termination().map_err(ServeError::Start)?;
    let (input, output) = stdio_pipes();
    let store = executor.store();
    let user = LocalUser::of_this_process();
    // The user of a stdio server sits in front of this machine.
    let scope = Scope::local(executor.with_key_page(&user), user);
    let result = serve(scope, input, output, stop).await;
    close(&*store).await;
    result
}

/// Closes a store at the end of the server.
pub(super) async fn close(store: &dyn Store) {
    match timeout(CLOSING, store.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!("{error}"),
        Err(_) => tracing::warn!("the store was not closed in time; nothing is lost"),
    }
}

/// Serves one connection until it ends or `stop` does.
pub(super) async fn serve<T, R, W>(
    scope: Scope<T>,
    input: R,
    output: W,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError>
where
    T: Tools,
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let tasks = scope.tasks.clone();
    let handler = Handler::new(scope, Arc::new(Calls::default()));
    if let Some(tasks) = tasks.clone() {
        let resume = async move { tasks.resume().await };
        tokio::spawn(handler.listener().during(resume));
    }
    let settle = async move {
        if let Some(tasks) = tasks {
            tasks.settle(FLUSHING).await;
        }
    };
    // rmcp handles a notification beside the requests after it, which must not rely on what it takes back.
    let roots = handler.roots.clone();
    let received = move |message: &ClientJsonRpcMessage| {
        if let JsonRpcMessage::Notification(notification) = message
            && let ClientNotification::RootsListChangedNotification(_) = &notification.notification
        {
            roots.forget();
        }
    };
    let (transport, written) = StdioTransport::new(input, output);
    let transport = Observed {
        transport,
        received,
    };
    let handler = Traced::piped(handler);
    connection(handler, transport, written, stop, settle).await
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

/// Serves one connection until it ends or `stop` does; `settle` is what remains to be done before the last
/// answers are written.
pub(super) async fn connection<H, T>(
    handler: H,
    transport: T,
    mut written: Written,
    stop: impl Future<Output = ()>,
    settle: impl Future<Output = ()>,
) -> Result<(), ServeError>
where
    H: ServerHandler,
    T: Transport<RoleServer> + 'static,
{
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
pub(super) fn termination() -> io::Result<impl Future<Output = ()>> {
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
pub(super) fn termination() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

//! The stdio server.

use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::stdio_pipes;
use tokio::time::timeout;

use super::{FAILED, Failure};
use crate::mcp::McpServer;
use crate::telemetry;
use crate::tools::ToolExecutor;
use crate::transport::connection::{FLUSHING, ServeError, serve_lines, termination};
use exa_mcp_model::LocalUser;
use exa_mcp_store::Store;

/// How long the store may take to be closed.
const CLOSING: Duration = Duration::from_secs(3);

/// Said to someone who starts the server by hand.
const NOTE: &str = "\
This is an MCP server: it talks JSON-RPC over standard input and output, and waits for a client now.
Connect one with, for example:  claude mcp add exa -e EXA_API_KEY=... -- exa-mcp-server
See what it offers:             exa-mcp-server tools
Check the set-up:               exa-mcp-server doctor
End it with Ctrl-C.";

/// Serves until the client goes away.
pub(super) async fn stdio(executor: ToolExecutor, by_hand: bool) -> Result<String, Failure> {
    if by_hand {
        super::complain(NOTE);
    }
    match telemetry::exporting(serve_stdio(executor)).await {
        Ok(()) => Ok(String::new()),
        Err(error) => Err(Failure {
            text: format!("error: {error}"),
            code: FAILED,
        }),
    }
}

/// Serves MCP over standard input and output until the input ends, the output is closed, or the
/// process is asked to end (SIGINT, SIGTERM); each of them is a good end.
///
/// After the end of the input running calls have five seconds to finish; a signal stops them at once,
/// and their callers are told so. Must run inside a Tokio runtime with its drivers enabled; where
/// standard input is no pipe, that runtime must be ended by `shutdown_background`.
async fn serve_stdio(executor: ToolExecutor) -> Result<(), ServeError> {
    let stop = termination().map_err(ServeError::Start)?;
    let (input, output) = stdio_pipes();
    let store = executor.store();
    let user = LocalUser::of_this_process();
    // The user of a stdio server sits in front of this machine.
    let server = McpServer::local(executor.with_key_page(&user), user);
    let settle = server.settle(FLUSHING);
    let (handler, received) = server.only_handler();
    let result = serve_lines(
        handler,
        input,
        output,
        Arc::default(),
        received,
        stop,
        settle,
    )
    .await;
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

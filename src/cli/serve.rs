//! The stdio server.

use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::stdio_pipes;
use tokio::time::timeout;

use super::{FAILED, Failure, command_name};
use crate::mcp::McpServer;
use crate::telemetry;
use crate::tools::ToolExecutor;
use crate::transport::connection::{FLUSH_TIMEOUT, ServeError, serve_lines, shutdown_signal};
use exa_mcp_model::LocalUser;
use exa_mcp_store::Store;

/// How long closing the store may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Returns what is printed when the server is started in a terminal.
fn interactive_hint() -> String {
    let program = command_name();
    format!(
        "\
This is an MCP server: it speaks JSON-RPC over standard input and output, and is now waiting for a client.
Connect your clients:  {program} install
List its tools:        {program} tools
Check the setup:       {program} doctor
Stop it with Ctrl-C."
    )
}

/// Serves until the client disconnects.
pub(super) async fn stdio(executor: ToolExecutor, is_interactive: bool) -> Result<String, Failure> {
    if is_interactive {
        super::print_stderr(&interactive_hint());
    }
    match telemetry::with_exporter(serve_stdio(executor)).await {
        Ok(()) => Ok(String::new()),
        Err(error) => Err(Failure {
            text: format!("error: {error}"),
            code: FAILED,
        }),
    }
}

/// Serves MCP over standard input and output until the input ends, the output is closed, or the process
/// receives SIGINT or SIGTERM. None of these is an error.
///
/// After the end of the input, running calls have five seconds to finish. A signal cancels them immediately,
/// with an error response. Must run inside a Tokio runtime with its drivers enabled. If standard input is not a
/// pipe, that runtime must be shut down without waiting for blocking tasks.
async fn serve_stdio(executor: ToolExecutor) -> Result<(), ServeError> {
    let stop = shutdown_signal().map_err(ServeError::Start)?;
    let (input, output) = stdio_pipes();
    let store = executor.store();
    let user = LocalUser::of_this_process();
    // The user of a stdio server works on this machine.
    let server = McpServer::local(executor.with_key_page(&user), user);
    let before_flush = server.settle(FLUSH_TIMEOUT);
    let (handler, on_message) = server.only_handler();
    let result = serve_lines(
        handler,
        input,
        output,
        Arc::default(),
        on_message,
        stop,
        before_flush,
    )
    .await;
    close(&*store).await;
    result
}

/// Closes the store on shutdown.
pub(super) async fn close(store: &dyn Store) {
    match timeout(CLOSE_TIMEOUT, store.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!("{error}"),
        Err(_) => tracing::warn!("closing the store timed out; no data is lost"),
    }
}

//! The stdio server.

use super::{FAILED, Failure};
use crate::mcp;
use crate::telemetry;
use crate::tools::ToolExecutor;

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
    match telemetry::exporting(mcp::serve_stdio(executor)).await {
        Ok(()) => Ok(String::new()),
        Err(error) => Err(Failure {
            text: format!("error: {error}"),
            code: FAILED,
        }),
    }
}

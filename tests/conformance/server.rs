//! The server with what the conformance suite asks for in place of the Exa tools.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:0");
    match exa_mcp_server::mcp::conformance::serve(address).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

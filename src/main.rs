//! The program: parses the command line and hands over to the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    exa_mcp_server::cli::main()
}

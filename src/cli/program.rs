//! The name of the program on the command line.

use std::ffi::OsStr;
use std::path::Path;

/// The name of the program.
pub(super) const PROGRAM: &str = "exa-mcp-server";

/// The command of the npm package, which starts the program under its own name.
const NPM_COMMAND: &str = "exa-mcp-rs";

/// Returns the command that starts this program, for hints that can be copied.
pub(super) fn command_name() -> &'static str {
    let name = std::env::args_os().next().unwrap_or_default();
    if Path::new(&name).file_stem() == Some(OsStr::new(NPM_COMMAND)) {
        NPM_COMMAND
    } else {
        PROGRAM
    }
}

//! Help, shell completions and manual pages.

use std::path::Path;

use super::arguments::command;
use super::{FAILED, Failure, command_name};

/// Returns the help of `call`, whose flag `--help` describes operations.
pub(super) fn call_help() -> String {
    let mut command = command();
    command.build();
    let call = command.find_subcommand_mut("call");
    call.map_or_else(String::new, |call| call.render_long_help().to_string())
}

/// Returns completions for a shell.
pub(super) fn completions(shell: clap_complete::Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command(), command_name(), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the manual page, or writes a page for each command to a folder.
pub(super) fn write(folder: Option<&Path>) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure {
        text: format!("error: the manual pages cannot be written: {error}"),
        code: FAILED,
    };
    let Some(folder) = folder else {
        let mut text = Vec::new();
        let page = clap_mangen::Man::new(command());
        page.render(&mut text).map_err(failed)?;
        return Ok(String::from_utf8_lossy(&text).into_owned());
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(command(), folder).map_err(failed)?;
    Ok(format!("Wrote the manual pages to {}.", folder.display()))
}

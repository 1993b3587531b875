//! Help, shell completions and manual pages.

use std::path::Path;

use clap::builder::PossibleValue;
use clap::{Arg, Command};
use clap_complete::Shell;
use exa_mcp_text::is_identifier;

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
pub(super) fn completions(shell: Shell) -> String {
    let mut text = Vec::new();
    let program = command_name();
    let mut command = command();
    clap_complete::generate(shell, &mut command, program, &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    match shell {
        // The generator writes the hyphens of the program's name in two ways, so that no command below it is found.
        Shell::Bash => text.replace(
            &program.replace('-', "__subcmd__"),
            &program.replace('-', "__"),
        ),
        Shell::Fish => text + &fish_values(&command),
        _ => text,
    }
}

/// Returns completions of values that the generator omits: those of positional arguments, and those of global flags,
/// whose condition fails while their value is missing.
fn fish_values(command: &Command) -> String {
    let program = command_name();
    let mut text = String::new();
    for flag in command.get_opts() {
        let values = values(flag);
        if let (Some(long), false) = (flag.get_long(), values.is_empty()) {
            text += &format!("complete -c {program} -l {long} -x -a \"{values}\"\n");
        }
    }
    let using = format!("__fish_{}_using_subcommand", program.replace('-', "_"));
    for outer in command.get_subcommands() {
        let name = outer.get_name();
        let mut add = |condition: &str, command: &Command| {
            let values: Vec<String> = command.get_positionals().map(values).collect();
            let values = values.join(" ");
            if !values.trim().is_empty() {
                text += &format!("complete -c {program} -n \"{condition}\" -f -a \"{values}\"\n");
            }
        };
        let condition = format!("{using} {name}");
        add(&condition, outer);
        for inner in outer.get_subcommands() {
            let inner_name = inner.get_name();
            let condition = format!("{condition}; and __fish_seen_subcommand_from {inner_name}");
            add(&condition, inner);
        }
    }
    text
}

/// Returns the possible values of an argument as words.
fn values(arg: &Arg) -> String {
    let values = arg.get_possible_values();
    let names = values.iter().map(PossibleValue::get_name);
    let names: Vec<&str> = names.filter(|name| is_identifier(name)).collect();
    names.join(" ")
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

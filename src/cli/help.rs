//! The help of the program: its commands in sections, and examples.

use clap::Command;

use super::command_name;
use super::environment::ENVIRONMENT;
use exa_mcp_generated::tools::COMMANDS;

/// Returns what is shown below the commands.
pub(super) fn examples() -> String {
    let program = command_name();
    format!(
        "\
Examples:
  {program} login                                # store an API key
  {program} search \"solid-state batteries\" -n 5
  {program} call search query=quark --dry-run    # show the request
  {program} --sandbox answer \"Who founded Exa?\" # try it without a key

COMMAND --help shows the flags of a command, --help the environment variables."
    )
}

/// The layout of the help; the sections take the place of the list of commands.
const TEMPLATE: &str = "\
{before-help}{about-with-newline}
{usage-heading} {usage}

SECTIONS
Options:
{options}{after-help}";

/// The commands that are not views of operations, by section. All others come last.
const SECTIONS: [(&str, &[&str]); 3] = [
    ("Call any operation", &["call", "operations", "batch"]),
    ("Serve", &["http", "tools", "sandbox", "health", "sdk"]),
    (
        "Set up",
        &["login", "logout", "whoami", "config", "install", "doctor"],
    ),
];

/// Returns what follows the long help.
pub(super) fn long() -> String {
    format!("{}\n\n{ENVIRONMENT}", examples())
}

/// Returns the command line with its commands in sections.
pub(super) fn with_sections(command: Command) -> Command {
    let mut views: Vec<&str> = Vec::new();
    for plan in &COMMANDS.plans {
        let name = plan.split_name();
        let name = name.0.unwrap_or(name.1);
        if !views.contains(&name) {
            views.push(name);
        }
    }
    let mut sections = vec![("Search and build", views)];
    sections.extend(SECTIONS.map(|(heading, names)| (heading, names.to_vec())));
    let is_listed = |name: &str| sections.iter().any(|(_, names)| names.contains(&name));
    let names = command.get_subcommands().map(Command::get_name);
    let others: Vec<&str> = names.filter(|name| !is_listed(name)).collect();
    sections.push(("More", others));
    let texts: String = sections
        .iter()
        .map(|(heading, names)| section(&command, heading, names))
        .collect();
    command.help_template(TEMPLATE.replace("SECTIONS\n", &texts))
}

fn section(command: &Command, heading: &str, names: &[&str]) -> String {
    let lines = names.iter().filter_map(|name| {
        let about = command.find_subcommand(name)?.get_about()?;
        Some(format!("  {name:12}  {about}\n"))
    });
    let lines: String = lines.collect();
    format!("{heading}:\n{lines}\n")
}

#[cfg(test)]
mod tests {
    use super::super::arguments::command;

    /// Lines that the terminal has to wrap are hard to read.
    #[test]
    fn the_help_lists_every_command_in_80_columns() {
        let mut command = command();
        let help = command.render_help().to_string();
        for line in super::examples().lines() {
            assert!(line.len() <= 80, "{line}");
        }
        for known in command.get_subcommands() {
            let name = known.get_name();
            // `help` does what --help does.
            if name == "help" {
                continue;
            }
            let mut lines = help.lines();
            let line = lines.find(|line| line.starts_with(&format!("  {name} ")));
            let line = line.unwrap_or_else(|| unreachable!("`{name}` is not in the help"));
            assert!(line.len() <= 80, "{line}");
        }
        assert!(!help.contains("EXA_API_KEY"), "-h is short");
        assert!(
            command
                .render_long_help()
                .to_string()
                .contains("EXA_API_KEY")
        );
    }
}

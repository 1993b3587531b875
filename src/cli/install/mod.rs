//! `exa-mcp-server install`: writes the server into the configuration of clients.

mod change;
mod choice;
mod clients;
mod connection;
mod document;
mod entry;
mod file;
mod json_document;
mod json_tree;
mod platform;
mod redaction;
mod report;
mod toml_document;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use change::{Change, ChangeOutcome, Target};
use clients::{CLIENTS, Client};
use connection::connect;
use file::ClientFile;
use platform::Machine;

use super::{FAILED, Failure};

/// What to install, and where.
#[derive(Debug, clap::Args)]
pub(super) struct InstallArguments {
    /// Clients to configure; without any, shows those on this machine and asks
    #[arg(value_name = "CLIENT", value_parser = clap::builder::PossibleValuesParser::new(clients::ids()))]
    clients: Vec<String>,
    /// Configure all clients on this machine
    #[arg(long, conflicts_with = "clients")]
    all: bool,
    /// Connect to a team server at this address instead of starting the program
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Token of the team server [default: a reference to EXA_MCP_TOKEN, if it is set]
    #[arg(long, value_name = "TOKEN", requires = "url")]
    token: Option<String>,
    /// Name of the server in the client
    #[arg(long, default_value = "exa", value_name = "NAME", value_parser = server_name)]
    name: String,
    /// Show the change and write nothing
    #[arg(long)]
    print: bool,
    /// Remove the server from the clients
    #[arg(long, conflicts_with_all = ["url", "token"])]
    remove: bool,
    /// Replace or remove a server of this name that is another program
    #[arg(long)]
    force: bool,
}

/// Checks the name of a server. Some clients accept no other characters.
fn server_name(name: &str) -> Result<String, &'static str> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(is_valid) {
        return Err("clients accept letters, digits, `-` and `_`");
    }
    Ok(name.to_owned())
}

/// The flags of every command.
pub(super) struct CommonFlags {
    pub(super) tools: Option<String>,
    pub(super) config: Option<PathBuf>,
    pub(super) sandbox: bool,
}

/// A place in a file that is not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    line: usize,
    message: String,
}

impl Problem {
    fn at(text: &str, position: usize, message: &str) -> Self {
        let before = text.as_bytes().get(..position).unwrap_or(text.as_bytes());
        Self {
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            message: message.to_owned(),
        }
    }

    fn in_file(self, path: &Path) -> InstallError {
        InstallError::Broken {
            path: path.to_owned(),
            line: self.line,
            message: self.message,
        }
    }
}

/// A document that cannot be edited.
#[derive(Debug, PartialEq, Eq)]
enum EditError {
    Problem(Problem),
    /// A part of the document is not of the expected kind.
    Unexpected {
        path: String,
        expected: &'static str,
        line: usize,
    },
    /// The document would have to be formatted anew.
    Formatting,
}

impl From<Problem> for EditError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl EditError {
    fn in_file(self, path: &Path) -> InstallError {
        match self {
            Self::Problem(problem) => problem.in_file(path),
            Self::Unexpected {
                path: part,
                expected,
                line,
            } => InstallError::Broken {
                path: path.to_owned(),
                line,
                message: format!("`{part}` is not {expected}"),
            },
            Self::Formatting => InstallError::Unsafe(path.to_owned()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum InstallError {
    #[error("cannot read {}: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot write {}: {source}; nothing was changed", path.display())]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}:{line}: {message}; the file was not touched: correct it and try again", path.display())]
    Broken {
        path: PathBuf,
        line: usize,
        message: String,
    },
    #[error("{} is read-only and was not touched; make it writable and try again", .0.display())]
    ReadOnly(PathBuf),
    #[error("{} was changed by another program meanwhile and was not touched; try again", .0.display())]
    Changed(PathBuf),
    #[error(
        "{} cannot be changed without rewriting other settings, and was not touched; run with --print on an empty file \
         and copy the entry by hand", .0.display()
    )]
    Unsafe(PathBuf),
    #[error(
        "{} already has a server `{name}`, which is not this program; it was not touched: choose another name with \
         --name, or replace it with --force", path.display()
    )]
    Foreign { path: PathBuf, name: String },
    #[error(
        "{0} reads only local programs from its configuration file, so it cannot be given a team server there; install \
         the program itself, without --url"
    )]
    NoHttp(&'static str),
    #[error("the home directory is unknown: set HOME (USERPROFILE on Windows)")]
    NoHome,
    #[error("--url `{0}` is not an address such as https://exa.example.com/mcp")]
    Url(String),
    #[error("the path of this program cannot be found: {0}")]
    Program(std::io::Error),
    #[error("--tools: {0}")]
    Tools(String),
    #[error("the token contains characters that a header cannot have")]
    Token,
}

/// Runs the command and returns what to print.
pub(super) fn run(arguments: &InstallArguments, common: &CommonFlags) -> Result<String, Failure> {
    let machine = Machine::current();
    let found: Vec<&Client> = CLIENTS
        .iter()
        .filter(|client| is_found(client, &machine))
        .collect();
    let chosen: Vec<&Client> = if arguments.all {
        found
    } else if arguments.clients.is_empty() {
        let states = states(&found, &machine, &arguments.name);
        let overview = choice::overview(&states, arguments.remove);
        if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) || found.is_empty()
        {
            return Ok(format!("{overview}\n\n{}", choice::next_steps(&found)));
        }
        super::print(&overview);
        choice::ask(&found, arguments.remove).map_err(Failure::usage)?
    } else {
        let ids = CLIENTS.iter();
        ids.filter(|client| arguments.clients.iter().any(|id| id == client.id))
            .collect()
    };
    if chosen.is_empty() {
        return Ok("Nothing was changed.".to_owned());
    }
    configure(&chosen, &machine, arguments, common)
}

/// Configures clients, one after the other. The failure of one does not prevent the others.
fn configure(
    chosen: &[&Client],
    machine: &Machine,
    arguments: &InstallArguments,
    common: &CommonFlags,
) -> Result<String, Failure> {
    let connection = connect(machine, arguments, common).map_err(Failure::usage)?;
    let target = Target {
        name: &arguments.name,
        force: arguments.force,
    };
    let (mut reports, mut errors) = (Vec::new(), Vec::new());
    for client in chosen {
        let prepared = client_file(client, machine).and_then(|file| {
            if arguments.remove {
                Change::remove(client, file, target)
            } else {
                Change::install(client, file, target, &connection.connection)
            }
        });
        let result = prepared.and_then(|change| {
            if arguments.print {
                let secrets = report::secrets(&change, &connection.connection);
                return Ok(report::difference(&change, &secrets));
            }
            let text = report::describe(client, &arguments.name, &change, &connection.connection);
            change.apply().map(|()| text)
        });
        match result {
            Ok(report) => reports.push(report),
            Err(error) => errors.push(format!("error: {}: {error}", client.title)),
        }
    }
    if !arguments.remove {
        reports.extend(connection.warnings);
    }
    if errors.is_empty() {
        return Ok(reports.join("\n"));
    }
    if !reports.is_empty() {
        super::print(&reports.join("\n"));
    }
    Err(Failure {
        text: errors.join("\n"),
        code: FAILED,
    })
}

fn client_file(client: &Client, machine: &Machine) -> Result<ClientFile, InstallError> {
    let path = machine.resolve(client.file).ok_or(InstallError::NoHome)?;
    ClientFile::read(path)
}

/// Returns whether a client was used on this machine.
fn is_found(client: &Client, machine: &Machine) -> bool {
    let mut traces = client.traces.iter();
    traces.any(|trace| machine.resolve(*trace).is_some_and(|path| path.exists()))
        || client
            .commands
            .iter()
            .any(|command| machine.has_command(command))
}

/// Returns each client with its file and whether the server is in it.
fn states<'a>(found: &[&'a Client], machine: &Machine, name: &str) -> Vec<choice::ClientState<'a>> {
    let target = Target { name, force: true };
    let state = |client: &&'a Client| {
        let path = machine.resolve(client.file)?;
        let change =
            ClientFile::read(path.clone()).and_then(|file| Change::remove(client, file, target));
        Some(choice::ClientState {
            client,
            path,
            is_installed: change
                .map(|change| change.outcome == ChangeOutcome::Removed)
                .ok(),
        })
    };
    found.iter().filter_map(state).collect()
}

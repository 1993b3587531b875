//! Shows the clients on this machine and asks which ones to configure.

use std::io::{BufRead, Write};
use std::path::PathBuf;

use super::clients::{Client, ids};
use crate::cli::command_name;

/// A client on this machine.
pub(super) struct ClientState<'a> {
    pub(super) client: &'a Client,
    pub(super) path: PathBuf,
    /// Nothing if the file cannot be read.
    pub(super) is_installed: Option<bool>,
}

/// Lists the clients.
pub(super) fn overview(states: &[ClientState<'_>], removing: bool) -> String {
    if states.is_empty() {
        return "No client was found on this machine.".to_owned();
    }
    let lines = states.iter().map(|state| {
        let mark = match state.is_installed {
            Some(true) => "installed",
            Some(false) => "not installed",
            None => "cannot be read",
        };
        let (id, title) = (state.client.id, state.client.title);
        format!("  {id:<15} {title:<15} {mark:<14} {}", state.path.display())
    });
    let verb = if removing {
        "remove from"
    } else {
        "install in"
    };
    let lines: Vec<String> = lines.collect();
    format!(
        "Clients on this machine that exa-mcp-server can {verb}:\n{}",
        lines.join("\n")
    )
}

/// Says how to go on without a terminal.
pub(super) fn next_steps(found: &[&Client]) -> String {
    let example = found.first().map_or("cursor", |client| client.id);
    let all = if found.is_empty() {
        ""
    } else {
        ", or --all for all of the above"
    };
    format!(
        "Nothing was changed. To go on: {} install {example}{all}; --print shows the change.\nPossible clients: {}",
        command_name(),
        ids().join(", ")
    )
}

/// Asks on the terminal.
pub(super) fn ask<'a>(found: &[&'a Client], removing: bool) -> Result<Vec<&'a Client>, String> {
    let verb = if removing {
        "Remove from"
    } else {
        "Install in"
    };
    print_prompt(&format!(
        "{verb} which clients? Names, `all`, or Enter for none: "
    ));
    let mut reply = String::new();
    let read = std::io::stdin().lock().read_line(&mut reply);
    read.map_err(|error| format!("the reply cannot be read: {error}"))?;
    choose(found, &reply)
}

fn print_prompt(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Returns the clients that a reply names.
fn choose<'a>(found: &[&'a Client], reply: &str) -> Result<Vec<&'a Client>, String> {
    let separators = [',', ' ', '\t', '\r', '\n'];
    let words = reply.split(separators).filter(|word| !word.is_empty());
    let mut chosen: Vec<&Client> = Vec::new();
    for word in words {
        if word.eq_ignore_ascii_case("all") {
            return Ok(found.to_vec());
        }
        let client = found
            .iter()
            .find(|client| client.id.eq_ignore_ascii_case(word));
        let client = client.ok_or_else(|| {
            let known: Vec<&str> = found.iter().map(|client| client.id).collect();
            format!(
                "`{word}` is not one of the clients found: {}",
                known.join(", ")
            )
        })?;
        chosen.push(client);
    }
    Ok(chosen)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::clients::CLIENTS;
    use super::*;

    #[test]
    fn replies_name_clients() {
        let found: Vec<&Client> = CLIENTS.iter().take(3).collect();
        let chosen = |reply: &str| {
            let chosen = choose(&found, reply);
            chosen.map(|clients| clients.iter().map(|client| client.id).collect::<Vec<_>>())
        };
        assert_eq!(chosen("\n").unwrap(), Vec::<&str>::new());
        assert_eq!(chosen("ALL\n").unwrap().len(), 3);
        assert_eq!(
            chosen(" cursor, claude-code\r\n").unwrap(),
            ["cursor", "claude-code"]
        );
        assert!(chosen("zed").unwrap_err().contains("claude-desktop"));
    }
}

//! What `install` tells the user.

use std::fmt::Write;

use super::change::{Action, Change, ChangeOutcome};
use super::clients::{Client, SecretReference};
use super::entry::{Connection, KEY_VARIABLE, Key, TOKEN_VARIABLE, Token};
use super::redaction::MASK;

/// Lines of context around a change.
const CONTEXT: usize = 2;

/// Describes what was done.
pub(super) fn describe(
    client: &Client,
    name: &str,
    change: &Change,
    connection: &Connection,
) -> String {
    let path = change.file.path.display();
    let title = client.title;
    let mut text = match (change.outcome, &change.action) {
        (ChangeOutcome::Added, _) => format!("{title}: added `{name}` to {path}"),
        (ChangeOutcome::Updated, _) => format!("{title}: updated `{name}` in {path}"),
        (ChangeOutcome::Current, _) => format!("{title}: `{name}` in {path} is up to date"),
        (ChangeOutcome::Removed, Action::Delete) => {
            format!("{title}: removed `{name}` and {path}, which had nothing else")
        }
        (ChangeOutcome::Removed, _) => format!("{title}: removed `{name}` from {path}"),
        (ChangeOutcome::NotInstalled, _) => format!("{title}: no `{name}` in {path}"),
    };
    if change.backs_up() && change.action != Action::Delete {
        let _ = write!(text, "\n  backup: {}", change.file.backup_path().display());
    }
    if let Some(note) = note(client, change, connection) {
        let _ = write!(text, "\n  {note}");
    }
    if matches!(
        change.outcome,
        ChangeOutcome::Added | ChangeOutcome::Updated
    ) {
        let _ = write!(text, "\n  restart {title} to use it");
    }
    text
}

/// Explains where the secret of an entry comes from.
fn note(client: &Client, change: &Change, connection: &Connection) -> Option<String> {
    let entry = change.entry.as_ref()?;
    let title = client.title;
    let variable = match connection {
        Connection::Local {
            key: Key::Unneeded, ..
        }
        | Connection::Remote { token: None, .. } => return None,
        Connection::Local { .. } => KEY_VARIABLE,
        Connection::Remote { .. } => TOKEN_VARIABLE,
    };
    let what = match connection {
        Connection::Local { .. } => "key",
        Connection::Remote { .. } => "token",
    };
    if entry.secret.is_some() {
        return Some(match (client.secrets, connection) {
            (SecretReference::Unsupported, _) => format!(
                "the {what} is in this file, because {title} cannot refer to variables: do not share it"
            ),
            (_, Connection::Remote { .. }) => format!(
                "the {what} is in this file: do not share it; to keep it out, set {variable} and leave out --token"
            ),
            _ => format!("the {what} that was in this file stays there: do not share it"),
        });
    }
    let unknown = matches!(
        connection,
        Connection::Local {
            key: Key::Unknown,
            ..
        }
    );
    Some(match client.secrets {
        SecretReference::Prompt => format!("{title} asks for the {what} when it starts the server"),
        SecretReference::Unsupported => format!(
            "no key: set {variable} and run this again, or put it into the configuration file of exa-mcp-server"
        ),
        _ if unknown => format!(
            "{title} takes the {what} from {variable}, which is not set here: set it where {title} starts"
        ),
        _ => format!("{title} takes the {what} from the variable {variable}"),
    })
}

/// Returns a change as lines with `-` and `+`, without secrets.
pub(super) fn difference(change: &Change, secrets: &[String]) -> String {
    let path = change.file.path.display();
    let before = change.file.text().unwrap_or_default();
    let after = match &change.action {
        Action::Nothing => return format!("{path}: nothing to change"),
        Action::Write(text) => text.as_str(),
        Action::Delete => return format!("{path}: would be deleted, it has nothing else"),
    };
    let (shown_before, shown_after) = (change.redact(before), change.redact(after));
    let before: Vec<&str> = before.lines().collect();
    let after: Vec<&str> = after.lines().collect();
    let pairs = before.iter().zip(&after);
    let head = pairs.take_while(|(old, new)| old == new).count();
    let longest = before.len().min(after.len()) - head;
    let pairs = before.iter().rev().zip(after.iter().rev()).take(longest);
    let tail = pairs.take_while(|(old, new)| old == new).count();
    let start = head.saturating_sub(CONTEXT);
    let mut text = format!("{path}, line {}:", start + 1);
    let mut lines = |mark: char, lines: &[&str], from: usize, to: usize| {
        for line in lines.get(from..to).unwrap_or_default() {
            let _ = write!(text, "\n{mark} {line}");
        }
    };
    let (old_end, end) = (before.len() - tail, after.len() - tail);
    // What changed is found in the files, and shown without their secrets.
    let before: Vec<&str> = shown_before.lines().collect();
    let after: Vec<&str> = shown_after.lines().collect();
    lines(' ', &after, start, head);
    lines('-', &before, head, old_end);
    lines('+', &after, head, end);
    lines(' ', &after, end, after.len().min(end + CONTEXT));
    let hidden = secrets.iter().filter(|secret| !secret.is_empty());
    hidden.fold(text, |text, secret| text.replace(secret.as_str(), MASK))
}

/// Returns the secrets that must not be shown.
pub(super) fn secrets(change: &Change, connection: &Connection) -> Vec<String> {
    let mut secrets: Vec<String> = Vec::new();
    secrets.extend(change.entry.as_ref().and_then(|entry| entry.secret.clone()));
    match connection {
        Connection::Local {
            key: Key::Known(key),
            ..
        } => secrets.push(key.clone()),
        Connection::Remote {
            token: Some(Token::Literal(token) | Token::InVariable(token)),
            ..
        } => secrets.push(token.clone()),
        _ => {}
    }
    secrets
}

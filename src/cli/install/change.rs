//! What to change in one client's configuration.

use serde_json::Value;

use super::InstallError;
use super::clients::{Client, Format};
use super::document::Document;
use super::entry::{Connection, Entry, INPUTS, build, is_own, referenced_inputs};
use super::file::ClientFile;

/// A change of a configuration file.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) file: ClientFile,
    pub(super) outcome: ChangeOutcome,
    pub(super) action: Action,
    /// The entry as it will be.
    pub(super) entry: Option<Entry>,
    format: Format,
    /// The existing backup is the state before the first installation, and is not replaced.
    has_original_backup: bool,
}

/// What a change means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeOutcome {
    Added,
    Updated,
    Current,
    Removed,
    NotInstalled,
}

/// What happens to the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    Write(String),
    Delete,
}

/// Which entry to write, and whether one that is not this program's may be replaced.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) name: &'a str,
    pub(super) force: bool,
}

impl Change {
    /// Prepares to add or update the entry.
    pub(super) fn install(
        client: &Client,
        file: ClientFile,
        target: Target<'_>,
        connection: &Connection,
    ) -> Result<Self, InstallError> {
        let mut document = open(client, &file)?;
        let old = document.clone();
        let existing = old.entry(client.servers, target.name);
        check_owner(&file, existing.as_ref(), target)?;
        let own = existing.as_ref().filter(|entry| is_own(entry));
        let Some(entry) = build(client, connection, own) else {
            return Err(InstallError::NoHttp(client.title));
        };
        let edited = document
            .set_entry(client.servers, target.name, &entry)
            .and_then(|()| document.remove_unused_inputs(&INPUTS));
        edited.map_err(|error| error.in_file(&file.path))?;
        check_others(&old, &document, client, target.name, &file)?;
        let outcome = if document.text() == old.text() {
            ChangeOutcome::Current
        } else if existing.is_some() {
            ChangeOutcome::Updated
        } else {
            ChangeOutcome::Added
        };
        let action = match outcome {
            ChangeOutcome::Current => Action::Nothing,
            _ => Action::Write(document.text().to_owned()),
        };
        let has_original_backup = original(client, &file, &old, target.name).is_some();
        Ok(Self {
            file,
            outcome,
            action,
            entry: Some(entry),
            format: client.format,
            has_original_backup,
        })
    }

    /// Prepares to remove the entry. If nothing else has changed since it was added, the file becomes what it was.
    pub(super) fn remove(
        client: &Client,
        file: ClientFile,
        target: Target<'_>,
    ) -> Result<Self, InstallError> {
        let mut document = open(client, &file)?;
        let old = document.clone();
        let Some(existing) = old.entry(client.servers, target.name) else {
            return Ok(Self {
                file,
                outcome: ChangeOutcome::NotInstalled,
                action: Action::Nothing,
                entry: None,
                format: client.format,
                has_original_backup: false,
            });
        };
        check_owner(&file, Some(&existing), target)?;
        let original = original(client, &file, &old, target.name);
        let has_original_backup = original.is_some();
        let action = if let Some(original) = original {
            Action::Write(original)
        } else {
            document
                .remove_entry(client.servers, target.name, &referenced_inputs(&existing))
                .map_err(|error| error.in_file(&file.path))?;
            check_others(&old, &document, client, target.name, &file)?;
            if is_empty(&document, client) && is_created(client, &file, target.name) {
                Action::Delete
            } else {
                Action::Write(document.text().to_owned())
            }
        };
        Ok(Self {
            file,
            outcome: ChangeOutcome::Removed,
            action,
            entry: None,
            format: client.format,
            has_original_backup,
        })
    }

    /// Returns a text of the file with secrets hidden, line by line.
    pub(super) fn redact(&self, text: &str) -> String {
        Document::new(text, self.format).map_or_else(|_| String::new(), |text| text.redacted())
    }

    /// Returns whether the file is copied before it is changed.
    pub(super) fn backs_up(&self) -> bool {
        self.action != Action::Nothing && self.file.exists() && !self.has_original_backup
    }

    /// Carries out the change.
    pub(super) fn apply(&self) -> Result<(), InstallError> {
        if self.action != Action::Nothing {
            self.file.check_writable()?;
        }
        if self.backs_up() && self.action != Action::Delete {
            self.file.back_up()?;
        }
        match &self.action {
            Action::Nothing => Ok(()),
            Action::Write(text) => self.file.write(text),
            Action::Delete => self.file.delete(),
        }
    }
}

fn open(client: &Client, file: &ClientFile) -> Result<Document, InstallError> {
    let document = Document::new(file.text()?, client.format);
    document.map_err(|problem| problem.in_file(&file.path))
}

/// Reports an entry with this name that belongs to another server.
fn check_owner(
    file: &ClientFile,
    existing: Option<&Value>,
    target: Target<'_>,
) -> Result<(), InstallError> {
    let is_foreign = existing.is_some_and(|entry| !is_own(entry));
    if is_foreign && !target.force {
        return Err(InstallError::Foreign {
            path: file.path.clone(),
            name: target.name.to_owned(),
        });
    }
    Ok(())
}

/// Checks that an edit changed nothing but the entry. This guards against errors in the editing itself.
fn check_others(
    old: &Document,
    new: &Document,
    client: &Client,
    name: &str,
    file: &ClientFile,
) -> Result<(), InstallError> {
    let reread = Document::new(new.text(), client.format);
    let reread = reread.map_err(|_| InstallError::Unsafe(file.path.clone()))?;
    let others = |document: &Document| {
        let mut value = document.to_value();
        let members = value.as_object_mut()?;
        if let Some(servers) = members
            .get_mut(client.servers)
            .and_then(Value::as_object_mut)
        {
            servers.shift_remove(name);
            if servers.is_empty() {
                members.shift_remove(client.servers);
            }
        }
        if let Some(inputs) = members.get_mut("inputs").and_then(Value::as_array_mut) {
            inputs.retain(|input| {
                !INPUTS
                    .iter()
                    .any(|id| input.get("id") == Some(&(*id).into()))
            });
            if inputs.is_empty() {
                members.shift_remove("inputs");
            }
        }
        Some(value)
    };
    if others(old) == others(&reread) {
        Ok(())
    } else {
        Err(InstallError::Unsafe(file.path.clone()))
    }
}

/// Returns the backup, if adding the entry to it gives the current text.
fn original(client: &Client, file: &ClientFile, current: &Document, name: &str) -> Option<String> {
    let backup = file.backup()?;
    let mut document = Document::new(&backup, client.format).ok()?;
    if document.entry(client.servers, name).is_some() {
        return None;
    }
    let value = current.entry(client.servers, name)?;
    let ids = referenced_inputs(&value);
    let root = current.to_value();
    let inputs = root.get("inputs").and_then(Value::as_array);
    let own = |input: &&Value| ids.iter().any(|id| input.get("id") == Some(&(*id).into()));
    let entry = Entry {
        inputs: inputs.into_iter().flatten().filter(own).cloned().collect(),
        value,
        secret: None,
    };
    document.set_entry(client.servers, name, &entry).ok()?;
    (document.text() == current.text()).then_some(backup)
}

/// Returns whether the command created a file: there is no backup, or that of an update.
fn is_created(client: &Client, file: &ClientFile, name: &str) -> bool {
    let Some(backup) = file.backup() else {
        return !file.backup_path().exists();
    };
    let document = Document::new(&backup, client.format).ok();
    document.is_some_and(|mut document| {
        let entry = document.entry(client.servers, name);
        let removed = entry
            .as_ref()
            .filter(|entry| is_own(entry))
            .map(|entry| document.remove_entry(client.servers, name, &referenced_inputs(entry)));
        matches!(removed, Some(Ok(()))) && is_empty(&document, client)
    })
}

/// Returns whether only empty containers are left, and no comments.
fn is_empty(document: &Document, client: &Client) -> bool {
    let value = document.to_value();
    let members = value.as_object().filter(|_| document.is_bare());
    members.is_some_and(|members| {
        members.iter().all(|(key, value)| {
            let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty)
                || value.as_array().is_some_and(Vec::is_empty);
            is_empty && (key == client.servers || key == "inputs")
        })
    })
}

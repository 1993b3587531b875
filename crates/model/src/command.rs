//! Commands of the command line that are views of operations.
//!
//! The generator checks the section `commands` of `surface.yaml` and writes it as one [`CommandFile`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// All commands that call operations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CommandFile {
    /// What groups of commands are for, by the first word of their names.
    pub groups: BTreeMap<String, String>,
    /// The commands.
    pub plans: Vec<CommandPlan>,
    /// The command that makes many calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchPlan>,
    /// The operation that describes the account of a key; it costs nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// One command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CommandPlan {
    /// The name: one word, or a group and a word.
    pub name: String,
    /// What it does, in one line.
    pub about: String,
    /// The operation that it calls.
    pub operation: String,
    /// The positional arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<CommandArgument>,
    /// The flags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<CommandArgument>,
    /// Values that are always sent, by dotted path.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub fixed: Map<String, Value>,
    /// Values that are sent if nothing else is given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<CommandDefault>,
    /// The columns of its table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<CommandColumn>,
    /// Whether a terminal shows the entries one after another with their whole text, instead of as rows of a table.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub documents: bool,
    /// The texts of the response that a person wants to read, as dotted paths; the first one present is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub text: Vec<String>,
    /// The list in the response that the text refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<String>,
    /// Whether it waits for the end of the work that it starts or shows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
    /// Whether a terminal shows the response while it is written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
    /// Whether it reads all pages of a list.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Whether a pipe gets one line for each entry.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lines: bool,
    /// An example of its arguments.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub example: String,
}

impl CommandPlan {
    /// Returns the group and the last word of the name.
    #[must_use]
    pub fn split_name(&self) -> (Option<&str>, &str) {
        match self.name.split_once(' ') {
            Some((group, word)) => (Some(group), word),
            None => (None, &self.name),
        }
    }
}

/// A positional argument or a flag of a command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CommandArgument {
    /// The name of the flag, or of the positional argument.
    pub name: String,
    /// The short form of the flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<char>,
    /// The argument of the operation, as a dotted path.
    pub to: String,
    /// What it takes.
    pub takes: CommandValue,
    /// For a switch: the value that it sends, if not `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Whether a call without it is rejected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// For a list of objects: the field of each object that holds the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// What it is for.
    pub help: String,
    /// Known values, for help and completion. Filled by the generator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// The operation that lists the possible ids, for completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<String>,
}

impl CommandArgument {
    /// Returns whether it sets the argument of the operation at a path, or a part of it.
    #[must_use]
    pub fn sets(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.to.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }
}

/// What an argument of a command takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandValue {
    /// One text.
    #[default]
    Text,
    /// Several words that are one text.
    Words,
    /// A number.
    Number,
    /// A day or a time.
    Date,
    /// Several texts.
    List,
    /// JSON, or a file with JSON.
    Json,
    /// Nothing.
    Switch,
}

/// A value that is sent if nothing else is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandDefault {
    /// The argument, as a dotted path.
    pub path: String,
    /// The value.
    pub value: Value,
    /// Arguments each of which replaces it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<String>,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandColumn {
    /// The heading.
    pub title: String,
    /// Where an entry has the value, as dotted paths; the first one present counts.
    pub paths: Vec<String>,
    /// Where an entry has the address that the value links to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// The command that makes many calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct BatchPlan {
    /// The operation of lines that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// How Exa runs the calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteBatch>,
}

/// How Exa itself runs many calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct RemoteBatch {
    /// The operation that starts them.
    pub operation: String,
    /// Its argument with the list of requests.
    pub requests: String,
    /// Its argument with an object of texts that the batch carries.
    pub metadata: String,
    /// The field of a request with its id.
    pub id: String,
    /// The field of a request with the HTTP method.
    pub method: String,
    /// The field of a request with the path.
    pub url: String,
    /// The field of a request with the body.
    pub body: String,
    /// The field of the finished batch with the address of the results.
    pub results: String,
}

//! Prompts: their arguments and templates.
//!
//! In a template, `{name}` stands for an argument, a value or a shared text, and `{steps}` for the numbered steps.
//! Inside a step, `{call}` stands for the instruction to call its operation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The contents of `prompts.yaml`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PromptFile {
    /// Texts that several prompts use, by placeholder.
    pub texts: BTreeMap<String, String>,
    /// The prompts, in the order in which they are listed.
    pub prompts: Vec<Prompt>,
}

/// One prompt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// The name of the prompt.
    pub name: String,
    /// The title for users.
    pub title: String,
    /// The purpose.
    pub description: String,
    /// Its arguments.
    pub arguments: Vec<PromptArgument>,
    /// What must be available for the prompt to be listed.
    pub needs: PromptRequirement,
    /// Whether the caller's notes are attached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notes: bool,
    /// Values of further placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, PromptValue>,
    /// The template of the whole text.
    pub text: String,
    /// The steps; those that the available tools do not support are omitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PromptStep>,
}

/// One argument of a prompt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptArgument {
    /// The name of the argument.
    pub name: String,
    /// The title for users.
    pub title: String,
    /// The purpose.
    pub description: String,
    /// Whether a call without it is rejected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// The accepted values.
    #[serde(default)]
    pub takes: PromptArgumentKind,
}

/// The accepted values of a prompt argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PromptArgumentKind {
    /// Any text.
    #[default]
    Text,
    /// A whole number from 1 to this.
    Number(u32),
    /// One of these.
    OneOf(Vec<String>),
    /// One of these, or other short text.
    Suggested(Vec<String>),
    /// Several, separated by commas.
    Several {
        /// The minimum number.
        least: usize,
        /// Suggested values.
        #[serde(default)]
        suggested: Vec<String>,
    },
    /// Ids of notes, separated by commas.
    Notes,
}

/// A requirement of a prompt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PromptRequirement {
    /// A tool that calls this operation.
    Operation(String),
    /// This tool.
    Tool(String),
}

/// The value of a placeholder.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum PromptValue {
    /// A text that depends on the value of an argument.
    Choice {
        /// The argument.
        argument: String,
        /// Texts by its value.
        cases: BTreeMap<String, String>,
        /// The text for all other values.
        otherwise: String,
    },
    /// The members of an argument, separated by commas.
    List {
        /// The argument.
        argument: String,
        /// The text if the list is empty.
        #[serde(default)]
        otherwise: String,
    },
    /// A text that is omitted unless an argument is given.
    Given {
        /// The argument.
        argument: String,
        /// The text; `{value}` stands for the argument.
        text: String,
    },
    /// A text that is omitted unless an operation can be called.
    Call {
        /// The operation.
        operation: String,
        /// The text; `{call}` stands for the instruction to call it.
        text: String,
    },
    /// The arguments for creating the webset that the prompt describes, as JSON.
    WebsetArguments,
}

/// One step of a prompt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptStep {
    /// The operation that the step requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// A tool to name instead of the operation call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer: Option<String>,
    /// The tool that the step requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The argument values that the step requires.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, String>,
    /// The template of the step.
    pub text: String,
}

//! Prompts: their arguments, and the templates of their texts.
//!
//! In a template `{name}` stands for an argument, a value or a shared text. `{steps}` stands for the
//! numbered steps, and inside a step `{call}` for the way to call its operation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `prompts.yaml`.
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
    /// Its title for people.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// Its arguments.
    pub arguments: Vec<PromptArgument>,
    /// Without this the prompt is not offered.
    pub needs: PromptRequirement,
    /// Whether the caller's notes are attached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notes: bool,
    /// Values of further placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, PromptValue>,
    /// The template of the whole text.
    pub text: String,
    /// The steps; those that cannot be taken with the available tools are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PromptStep>,
}

/// One argument of a prompt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptArgument {
    /// The name of the argument.
    pub name: String,
    /// Its title for people.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// Whether a call without it is rejected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// What it may be.
    #[serde(default)]
    pub takes: PromptArgumentKind,
}

/// What an argument of a prompt may be.
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
    /// One of these, or a few other words.
    Suggested(Vec<String>),
    /// Several, separated by commas.
    Several {
        /// How many there must be.
        least: usize,
        /// What they could be.
        #[serde(default)]
        suggested: Vec<String>,
    },
    /// Ids of notes, separated by commas.
    Notes,
}

/// What a prompt cannot do without.
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
    /// A text that the value of an argument selects.
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
        /// The text if there are none.
        #[serde(default)]
        otherwise: String,
    },
    /// A text that is left out unless an argument is given.
    Given {
        /// The argument.
        argument: String,
        /// The text; `{value}` stands for the argument.
        text: String,
    },
    /// A text that is left out unless an operation can be called.
    Call {
        /// The operation.
        operation: String,
        /// The text; `{call}` stands for the way to call it.
        text: String,
    },
    /// The arguments for creating a webset that the arguments of the prompt ask for, as JSON.
    WebsetArguments,
}

/// One step of a prompt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptStep {
    /// The operation without which the step is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// A tool that is named instead of the way to call the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer: Option<String>,
    /// The tool without which the step is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Values of arguments without which the step is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, String>,
    /// The template of the step.
    pub text: String,
}

//! Checks that `prompts.yaml` refers only to existing operations and tools.

use exa_mcp_model::{Prompt, PromptFile, PromptRequirement, PromptStep, PromptValue};

use crate::error::{Error, Notice, Result};
use crate::model::Model;
use crate::tools::ToolRegistry;

const FILE: &str = "prompts.yaml";

/// Omits and reports what needs an operation or tool that no longer exists.
///
/// # Errors
/// Fails if a template has an unknown placeholder.
pub fn check(
    mut file: PromptFile,
    model: &Model,
    tools: &ToolRegistry,
    notices: &mut Vec<Notice>,
) -> Result<PromptFile> {
    for prompt in &file.prompts {
        check_placeholders(prompt, &file)?;
    }
    let mut is_usable = |prompt: &mut Prompt| {
        let mut report = |message: String| {
            notices.push(Notice {
                file: FILE.to_owned(),
                location: format!("prompt {}", prompt.name),
                message,
            });
        };
        let missing = match &prompt.needs {
            PromptRequirement::Operation(name) => model.find(name).is_none().then_some(name),
            PromptRequirement::Tool(name) => (!tools.tools.contains_key(name)).then_some(name),
        };
        if let Some(missing) = missing {
            report(format!("`{missing}` no longer exists; prompt omitted"));
            return false;
        }
        let missing_in = |step: &PromptStep| {
            let operation = step.operation.clone();
            let operation = operation.filter(|name| model.find(name).is_none());
            let tool = step.tool.clone();
            operation.or(tool.filter(|name| !tools.tools.contains_key(name)))
        };
        prompt.steps.retain(|step| {
            let missing = missing_in(step);
            if let Some(missing) = &missing {
                report(format!("`{missing}` no longer exists; step omitted"));
            }
            missing.is_none()
        });
        for value in prompt.values.values_mut() {
            if let PromptValue::Call { operation, text } = value
                && model.find(operation).is_none()
            {
                report(format!("`{operation}` no longer exists; text omitted"));
                text.clear();
            }
        }
        true
    };
    file.prompts.retain_mut(&mut is_usable);
    Ok(file)
}

fn check_placeholders(prompt: &Prompt, file: &PromptFile) -> Result<()> {
    let known = |name: &str| {
        prompt
            .arguments
            .iter()
            .any(|argument| argument.name == name)
            || prompt.values.contains_key(name)
            || file.texts.contains_key(name)
    };
    let texts = prompt.steps.iter().map(|step| (step.text.as_str(), "call"));
    for (text, built_in) in texts.chain([(prompt.text.as_str(), "steps")]) {
        let mut names = placeholders(text).into_iter();
        if let Some(name) = names.find(|name| *name != built_in && !known(name)) {
            return Err(Error::Document {
                file: FILE.to_owned(),
                pointer: format!(" prompt {}", prompt.name),
                message: format!("unknown placeholder `{{{name}}}`"),
            });
        }
    }
    Ok(())
}

/// Returns the names in braces.
fn placeholders(text: &str) -> Vec<&str> {
    let parts = text.split('{').skip(1);
    parts
        .filter_map(|part| Some(part.split_once('}')?.0))
        .collect()
}

//! `prompts.yaml`: prompts speak only of operations and tools that exist.

use exa_mcp_model::{Prompt, PromptFile, PromptRequirement, PromptStep, PromptValue};

use crate::error::{Error, Notice, Result};
use crate::model::Model;
use crate::tools::Catalogue;

const FILE: &str = "prompts.yaml";

/// Leaves out and reports what needs an operation or a tool that is gone.
///
/// # Errors
/// A template has a placeholder that nothing fills.
pub fn check(
    mut file: PromptFile,
    model: &Model,
    tools: &Catalogue,
    notices: &mut Vec<Notice>,
) -> Result<PromptFile> {
    for prompt in &file.prompts {
        check_placeholders(prompt, &file)?;
    }
    let mut keep = |prompt: &mut Prompt| {
        let mut report = |text: String| {
            notices.push(Notice {
                file: FILE.to_owned(),
                place: format!("prompt {}", prompt.name),
                text,
            });
        };
        let needed = match &prompt.needs {
            PromptRequirement::Operation(name) => model.find(name).is_none().then_some(name),
            PromptRequirement::Tool(name) => (!tools.tools.contains_key(name)).then_some(name),
        };
        if let Some(gone) = needed {
            report(format!(
                "`{gone}` does not exist any more; the prompt was left out"
            ));
            return false;
        }
        let gone = |step: &PromptStep| {
            let operation = step.operation.clone();
            let operation = operation.filter(|name| model.find(name).is_none());
            let tool = step.tool.clone();
            operation.or(tool.filter(|name| !tools.tools.contains_key(name)))
        };
        prompt.steps.retain(|step| {
            let gone = gone(step);
            if let Some(gone) = &gone {
                report(format!(
                    "`{gone}` does not exist any more; its step was left out"
                ));
            }
            gone.is_none()
        });
        for value in prompt.values.values_mut() {
            if let PromptValue::Call { operation, text } = value
                && model.find(operation).is_none()
            {
                report(format!(
                    "`{operation}` does not exist any more; its text was left out"
                ));
                text.clear();
            }
        }
        true
    };
    file.prompts.retain_mut(&mut keep);
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
    for (text, own) in texts.chain([(prompt.text.as_str(), "steps")]) {
        let mut names = placeholders(text).into_iter();
        if let Some(name) = names.find(|name| *name != own && !known(name)) {
            return Err(Error::Document {
                file: FILE.to_owned(),
                pointer: format!(" prompt {}", prompt.name),
                message: format!("nothing fills the placeholder `{{{name}}}`"),
            });
        }
    }
    Ok(())
}

/// The names in braces.
fn placeholders(text: &str) -> Vec<&str> {
    let parts = text.split('{').skip(1);
    parts
        .filter_map(|part| Some(part.split_once('}')?.0))
        .collect()
}

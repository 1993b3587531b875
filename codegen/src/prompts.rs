//! Checks that `prompts.yaml` refers only to existing operations and tools.

use exa_mcp_model::{
    Prompt, PromptArgument, PromptArgumentKind, PromptFile, PromptRequirement, PromptStep,
    PromptValue,
};

use crate::error::{Error, Findings, Result};
use crate::model::Model;
use crate::surface_check::Report;
use crate::tools::ToolRegistry;

const FILE: &str = "prompts.yaml";

/// Omits and reports what needs an operation, tool or argument that does not exist.
///
/// # Errors
/// Fails if a template has an unknown placeholder.
pub fn check(
    mut file: PromptFile,
    model: &Model,
    tools: &ToolRegistry,
    findings: &mut Findings,
) -> Result<PromptFile> {
    for prompt in &file.prompts {
        check_placeholders(prompt, &file)?;
    }
    let mut known: Vec<String> = Vec::new();
    file.prompts.retain_mut(|prompt| {
        let mut report = Report::on_file(FILE, findings, format!("prompt {}", prompt.name));
        if known.contains(&prompt.name) {
            report.omit("a second prompt has this name; omitted");
            return false;
        }
        known.push(prompt.name.clone());
        let missing = match &prompt.needs {
            PromptRequirement::Operation(name) => model.find(name).is_none().then_some(name),
            PromptRequirement::Tool(name) => (!tools.tools.contains_key(name)).then_some(name),
        };
        if let Some(missing) = missing {
            report.omit(format!("`{missing}` no longer exists; prompt omitted"));
            return false;
        }
        check_steps(prompt, model, tools, &mut report);
        check_values(prompt, model, &mut report);
        true
    });
    Ok(file)
}

/// Removes steps that cannot be taken.
fn check_steps(prompt: &mut Prompt, model: &Model, tools: &ToolRegistry, report: &mut Report<'_>) {
    let has_tool = |name: &String| tools.tools.contains_key(name);
    let arguments = &prompt.arguments;
    prompt.steps.retain_mut(|step| {
        step.prefer.take_if(|name| {
            let missing = !has_tool(name);
            if missing {
                report.omit(format!("`{name}` no longer exists; not preferred"));
            }
            missing
        });
        let operation = step.operation.clone();
        let operation = operation.filter(|name| model.find(name).is_none());
        let tool = step.tool.clone().filter(|name| !has_tool(name));
        let missing = operation.or(tool);
        let problem = missing
            .map(|missing| format!("`{missing}` no longer exists"))
            .or_else(|| condition_problem(step, arguments));
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; step omitted"));
        }
        problem.is_none()
    });
}

/// Returns why the condition of a step is never met, if so.
fn condition_problem(step: &PromptStep, arguments: &[PromptArgument]) -> Option<String> {
    step.when.iter().find_map(|(name, value)| {
        let Some(argument) = arguments.iter().find(|argument| argument.name == *name) else {
            return Some(format!("the prompt has no argument `{name}`"));
        };
        case_problem(argument, value)
    })
}

/// Returns why an argument never has a value, if so.
fn case_problem(argument: &PromptArgument, value: &String) -> Option<String> {
    let PromptArgumentKind::OneOf(values) = &argument.takes else {
        return None;
    };
    let missing = !values.contains(value);
    missing.then(|| format!("`{}` is never `{value}`", argument.name))
}

/// Removes the texts of operations that do not exist, and reports arguments that do not.
fn check_values(prompt: &mut Prompt, model: &Model, report: &mut Report<'_>) {
    let arguments = &prompt.arguments;
    let find = |name: &String| arguments.iter().find(|argument| argument.name == *name);
    for (placeholder, value) in &mut prompt.values {
        let argument = match value {
            PromptValue::Call { operation, text } => {
                if model.find(operation).is_none() {
                    report.omit(format!("`{operation}` no longer exists; text omitted"));
                    text.clear();
                }
                continue;
            }
            PromptValue::WebsetArguments => continue,
            PromptValue::Choice { argument, .. }
            | PromptValue::List { argument, .. }
            | PromptValue::Given { argument, .. } => argument.clone(),
        };
        let Some(found) = find(&argument) else {
            report.omit(format!(
                "the prompt has no argument `{argument}`; `{placeholder}` is the same for all"
            ));
            continue;
        };
        if let PromptValue::Choice { cases, .. } = value {
            cases.retain(|case, _| {
                let problem = case_problem(found, case);
                if let Some(problem) = &problem {
                    report.omit(format!("{problem}; case omitted"));
                }
                problem.is_none()
            });
        }
    }
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

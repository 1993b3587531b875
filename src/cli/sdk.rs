//! `exa-mcp-server sdk`.

use std::path::Path;

use exa_mcp_sdkgen::{Language, SdkError, SdkOperation};
use serde_json::Value;

use super::{FAILED, Failure};
use crate::operations::all;
use crate::tools::dispatcher_of;
use exa_mcp_model::{LongRunning, Operation};

/// The languages of generated modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SdkLanguage {
    /// TypeScript, for any runtime with ES2022.
    Typescript,
    /// Python, 3.10 or newer.
    Python,
}

impl From<SdkLanguage> for Language {
    fn from(language: SdkLanguage) -> Self {
        match language {
            SdkLanguage::Typescript => Self::Typescript,
            SdkLanguage::Python => Self::Python,
        }
    }
}

/// Writes the modules and returns a summary.
pub(super) fn run(language: SdkLanguage, folder: &Path, force: bool) -> Result<String, Failure> {
    let language = Language::from(language);
    let operations = offered().map(operation).collect::<Result<_, _>>()?;
    let files = exa_mcp_sdkgen::generate(language, operations);
    exa_mcp_sdkgen::write(folder, language, &files, force).map_err(|error| match error {
        SdkError::Occupied { .. } | SdkError::NotAFolder(_) => Failure::usage(error),
        other => failed(&other),
    })?;
    let readme = folder.join("README.md");
    let mut text = format!("Wrote {} files to {}.", files.len(), folder.display());
    if language == Language::Python && !can_be_imported(folder) {
        text.push_str(
            "\nPython cannot import a directory with this name; use only letters, digits and _.",
        );
    }
    text.push_str(&format!("\n{} explains how to use them.", readme.display()));
    Ok(text)
}

/// Returns the operations of the modules, which are those of the default tools.
fn offered() -> impl Iterator<Item = &'static Operation> {
    all().iter().filter(|operation| !operation.api.admin_only)
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure {
        text: format!("error: {error}"),
        code: FAILED,
    }
}

/// Converts an operation to the generator's type.
fn operation(operation: &Operation) -> Result<SdkOperation, Failure> {
    const REGENERATE: &str = "run `cargo build --features codegen`";
    let name = operation.name;
    let schema = |text: &str| {
        serde_json::from_str::<Value>(text).map_err(|error| {
            let text =
                format!("the generated schema of `{name}` cannot be read: {error}; {REGENERATE}");
            failed(&text)
        })
    };
    let tool = dispatcher_of(name).ok_or_else(|| {
        failed(&format!(
            "no tool provides the operation `{name}`; {REGENERATE}"
        ))
    })?;
    let long_running = operation.behavior.long_running.as_ref();
    Ok(SdkOperation {
        name: name.to_owned(),
        domain: operation.domain.to_owned(),
        tool: tool.to_owned(),
        summary: operation.summary.to_owned(),
        description: operation.description.to_owned(),
        deprecated: operation.deprecated,
        follow: long_running.filter(|_| !operation.read_only).map(follow),
        input: schema(operation.input_schema)?,
        output: schema(operation.output_schema)?,
    })
}

fn follow(long_running: &LongRunning) -> String {
    format!(
        "The job continues after the response: set the option wait_seconds, or call {} until {} is one of {}.",
        long_running.get,
        long_running.status,
        long_running.final_states.join(", ")
    )
}

fn can_be_imported(folder: &Path) -> bool {
    // Only the file system knows the names of `.` and `..`.
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    exa_mcp_sdkgen::is_python_name(&name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn generated(language: Language, path: &str) -> String {
        let operations = offered().map(|it| operation(it).map_err(|error| error.text));
        let operations = operations.collect::<Result<_, _>>().unwrap();
        let files = exa_mcp_sdkgen::generate(language, operations);
        let mut files = files.into_iter();
        files.find(|file| file.path == path).unwrap().text
    }

    /// The options are hand-written for the sake of their comments; none may be missing.
    #[test]
    fn modules_have_every_option_of_the_server() {
        let schema: Value = serde_json::from_str(exa_mcp_generated::tools::OPTIONS).unwrap();
        let object = |pointer: &str| schema.pointer(pointer).and_then(Value::as_object).unwrap();
        let options = object("/properties");
        let filters = object("/properties/filters/properties");
        let typescript = generated(Language::Typescript, "core.ts");
        let python = generated(Language::Python, "core.py");
        for name in options.keys().chain(filters.keys()) {
            if name != "output_format" {
                assert!(typescript.contains(&format!("\n  {name}?: ")), "{name}");
                assert!(python.contains(&format!("\n    {name}: ")), "{name}");
            }
        }
        let max = schema.pointer("/properties/max_tokens/maximum").unwrap();
        let max = max.to_string();
        let max = max.strip_suffix("000000").unwrap();
        assert!(typescript.contains(&format!("MOST_TOKENS = {max}_000_000;")));
        assert!(python.contains(&format!("MOST_TOKENS = {max}_000_000\n")));
    }

    #[test]
    fn the_readme_lists_every_operation() {
        for language in [Language::Typescript, Language::Python] {
            let readme = generated(language, "README.md");
            let rows = readme.lines().filter(|line| line.starts_with("| `exa."));
            assert_eq!(rows.count(), offered().count());
        }
    }
}

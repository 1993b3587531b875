//! `exa-mcp-server sdk`.

use std::path::Path;

use super::{FAILED, Failure};
use crate::sdk::{self, Language, SdkError};

/// Writes a tree and tells what to do with it.
pub(super) fn run(language: Language, folder: &Path, force: bool) -> Result<String, Failure> {
    let written = sdk::generate(language).and_then(|files| {
        sdk::write(folder, language, &files, force)?;
        Ok(files.len())
    });
    let count = written.map_err(|error| match error {
        SdkError::Occupied { .. } | SdkError::NotAFolder(_) => Failure::usage(error),
        other => Failure {
            text: format!("error: {other}"),
            code: FAILED,
        },
    })?;
    let readme = folder.join("README.md");
    let mut text = format!("Wrote {count} files to {}.", folder.display());
    if language == Language::Python && !can_be_imported(folder) {
        text.push_str(
            "\nPython cannot import a folder of this name; give it one of letters, digits and _.",
        );
    }
    text.push_str(&format!("\n{} tells how to use them.", readme.display()));
    Ok(text)
}

fn can_be_imported(folder: &Path) -> bool {
    // The name of `.` or `..` is known only to the file system.
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    sdk::is_python_name(&name)
}

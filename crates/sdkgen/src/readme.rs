//! The README of a package: how to use it, and a table of all calls.

use super::package::Package;
use super::text::lines;
use super::{HEADER, Language, SdkFile};

const TYPESCRIPT: &str = include_str!("templates/README.typescript.md");
const PYTHON: &str = include_str!("templates/README.python.md");

/// Fills in the README template of a language.
pub(super) fn file(language: Language, package: &Package<'_>) -> SdkFile {
    let template = match language {
        Language::Typescript => TYPESCRIPT,
        Language::Python => PYTHON,
    };
    let calls: Vec<String> = package
        .calls()
        .iter()
        .map(|(call, method)| {
            let summary = lines(&method.source.summary, 0)
                .join(" ")
                .replace('|', "\\|");
            let note = if method.source.deprecated {
                " (deprecated)"
            } else {
                ""
            };
            let pages = if method.all.is_some() { "yes" } else { "" };
            format!("| `{call}` | {summary}{note} | {pages} |")
        })
        .collect();
    let body = template
        .replace("{{version}}", env!("CARGO_PKG_VERSION"))
        .replace("{{calls}}", &calls.join("\n"));
    SdkFile {
        path: "README.md".to_owned(),
        text: format!("<!-- {HEADER}. -->\n\n{body}"),
    }
}

//! The README of a tree: how to plug it in, and every call in a line.

use super::package::Package;
use super::text::lines;
use super::{File, HEADER, Language};

const TYPESCRIPT: &str = include_str!("templates/README.typescript.md");
const PYTHON: &str = include_str!("templates/README.python.md");

/// Fills in what is the same for all languages.
pub(super) fn file(language: Language, package: &Package<'_>) -> File {
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
    File {
        path: "README.md".to_owned(),
        text: format!("<!-- {HEADER}. -->\n\n{body}"),
    }
}

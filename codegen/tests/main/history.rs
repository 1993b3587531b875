//! Past revisions of upstream's specs regenerate with the overlays and the surface of today.

use std::path::PathBuf;

use codegen::load;
use serde_json::Value;

use crate::project::{Project, stderr};
use crate::support::{DesignCopy, repository, snapshot};

const SPECS: [&str; 2] = ["exa-search-spec.yaml", "exa-websets-spec.yaml"];

/// Returns the revisions with their specs, oldest first. A revision without a file has that of the previous one.
fn revisions() -> Vec<(String, [PathBuf; 2])> {
    let folder = repository().join("codegen/tests/fixtures/history");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut current = SPECS.map(|_| PathBuf::new());
    let revisions = names.into_iter().map(|name| {
        for (path, file) in current.iter_mut().zip(SPECS) {
            let own = folder.join(&name).join(file);
            if own.exists() {
                *path = own;
            }
        }
        (name, current.clone())
    });
    revisions.collect()
}

#[test]
fn past_revisions_regenerate() {
    let revisions = revisions();
    assert_eq!(revisions.len(), 9);
    for (name, specs) in revisions {
        let copy = DesignCopy::new();
        for (path, file) in specs.iter().zip(SPECS) {
            copy.write(file, &std::fs::read_to_string(path).unwrap());
        }
        let output = copy.generate().unwrap();
        // What data-design/ has for later revisions is left out with a notice, and so are references that upstream
        // broke. Anything else would be a construct that the generator does not support.
        let omissions: Vec<String> = output.omissions.iter().map(ToString::to_string).collect();
        let unexpected: Vec<&String> = omissions.iter().filter(|it| !is_expected(it)).collect();
        assert!(unexpected.is_empty(), "{name}: {unexpected:#?}");
        for (path, file) in specs.iter().zip(SPECS) {
            check_operations(&name, path, file, &output);
        }
        // The overlay calls the variable `id`, some revisions `researchId`.
        let research = snapshot(&output, "research.get");
        assert_eq!(research["arguments"]["researchId"]["in"], "path", "{name}");
    }
}

/// Returns whether a notice is about a broken reference, or about something of `data-design/` that a revision lacks.
fn is_expected(notice: &str) -> bool {
    let sources = ["surface.yaml ", "prompts.yaml ", "prices.yaml "];
    notice.contains("`$ref: ") || sources.iter().any(|source| notice.starts_with(source))
}

/// Checks that all operations of a spec exist.
fn check_operations(
    name: &str,
    path: &std::path::Path,
    file: &str,
    output: &codegen::GeneratedOutput,
) {
    let spec = load::load(path.parent().unwrap(), file).unwrap().root;
    let known: Vec<Value> = output
        .files
        .iter()
        .filter(|(file, _)| file.starts_with("codegen-snapshots/operations/"))
        .map(|(_, text)| serde_json::from_str(text).unwrap())
        .collect();
    for (path, item) in spec["paths"].as_object().unwrap() {
        for method in ["get", "post", "put", "patch", "delete"] {
            if item.get(method).is_none() {
                continue;
            }
            let found = known.iter().any(|operation| {
                operation["method"] == method.to_uppercase()
                    && operation["path"]
                        .as_str()
                        .is_some_and(|it| it.ends_with(path))
            });
            assert!(found, "{name}: {method} {path} is missing");
        }
    }
}

/// Slow: compiles the server nine times.
#[test]
#[ignore = "compiles the server for each revision"]
fn past_revisions_compile() {
    let project = Project::new("spec-history");
    for (name, specs) in revisions() {
        for (path, file) in specs.iter().zip(SPECS) {
            std::fs::copy(path, project.root.join("data-design").join(file)).unwrap();
        }
        let built = project.cargo(&["check", "--features", "codegen"], false);
        assert!(built.status.success(), "{name}: {}", stderr(&built));
    }
}

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files_below(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
fn every_file_of_the_folder_is_embedded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("skills");
    let mut expected: Vec<String> = files_below(&root)
        .iter()
        .map(|path| {
            path.strip_prefix(&root)
                .unwrap()
                .to_str()
                .unwrap()
                .replace('\\', "/")
        })
        .collect();
    expected.sort();
    let embedded: Vec<String> = FILES
        .iter()
        .map(|file| format!("{}/{}", file.skill, file.path))
        .collect();
    assert_eq!(embedded, expected);
}

/// The parser of the frontmatter is simpler than YAML; the skills may only use what it understands.
#[test]
fn frontmatter_is_read_as_yaml_reads_it() {
    for file in skills() {
        let yaml = file.content.split("---\n").nth(1).unwrap();
        let expected: Value = serde_saphyr::from_str(yaml).unwrap();
        assert_eq!(frontmatter(file.content), expected, "{}", file.skill);
        assert_eq!(expected.get("name").unwrap(), file.skill);
    }
}

#[test]
fn directories_are_listed_level_by_level() {
    let uris = |uri: &str| -> Vec<String> {
        let children = children(uri).unwrap();
        children.into_iter().map(|child| child.uri).collect()
    };
    let top = [
        "skill://build-a-webset/SKILL.md",
        "skill://build-a-webset/references",
    ];
    assert_eq!(uris("skill://build-a-webset"), top);
    assert_eq!(uris("skill://build-a-webset/"), top);
    let below = ["skill://build-a-webset/references/criteria.md"];
    assert_eq!(uris("skill://build-a-webset/references"), below);
    for uri in [
        "",
        "/",
        "skill:",
        "skill://",
        "skill:///",
        "skill://none",
        "skill://build",
        "skill://build-a-webset/SKILL.md",
        "file:///skills",
        "skill://build-a-webset/..",
    ] {
        assert_eq!(children(uri).unwrap_err().code.0, -32602, "{uri}");
    }
}

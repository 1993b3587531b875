//! Checks that the files in docs/architecture.md exist.

use std::fs;

use super::root;

/// Returns the code spans of a page that look like paths: they contain a slash or end with a file extension.
fn paths(page: &str) -> Vec<&str> {
    const EXTENSIONS: [&str; 5] = [".rs", ".toml", ".yaml", ".json", ".md"];
    let outside_of_blocks = page.split("```").step_by(2);
    outside_of_blocks
        .flat_map(|text| text.split('`').skip(1).step_by(2))
        .filter(|name| !name.starts_with('/') && !name.contains(char::is_whitespace))
        .filter(|name| name.contains('/') || EXTENSIONS.iter().any(|end| name.ends_with(end)))
        .collect()
}

#[test]
fn paths_in_architecture_page_exist() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let paths = paths(&page);
    assert!(paths.len() > 40, "only {} paths are named", paths.len());
    let missing: Vec<&str> = paths
        .into_iter()
        .filter(|path| !root().join(path).exists())
        .collect();
    assert!(missing.is_empty(), "no such files: {missing:?}");
}

#[test]
fn distinguishes_paths_from_other_code_spans() {
    let page = "`src/mcp` calls `ToolCall` in `build.rs`, see `/mcp`\n```\n`src/none`\n```\nand `cargo run a/b`, `docs/`";
    assert_eq!(paths(page), ["src/mcp", "build.rs", "docs/"]);
}

//! Checks that links between pages lead to existing files and headings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::{pages, root};

/// Returns the anchor that GitHub gives a heading.
fn slug(heading: &str) -> String {
    let heading = heading.trim().to_lowercase();
    let characters = heading.chars().filter_map(|character| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        _ => character.is_alphanumeric().then_some(character),
    });
    characters.collect()
}

/// Returns the anchors of all headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                anchors.extend(heading.take().map(|heading| slug(&heading)));
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    anchors
}

/// Returns the targets of all links and images of a page that lead to the repository.
fn local_links(text: &str) -> Vec<String> {
    let targets = Parser::new(text).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url),
        _ => None,
    });
    targets
        .map(|target| target.to_string())
        .filter(|target| !target.contains("://"))
        .collect()
}

/// Resolves `..` without touching the file system.
fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        if component == Component::ParentDir {
            normal.pop();
        } else {
            normal.push(component);
        }
    }
    normal
}

#[test]
fn local_links_lead_to_files_and_headings() {
    let pages = pages();
    let anchors: BTreeMap<&PathBuf, BTreeSet<String>> = pages
        .iter()
        .map(|(path, text)| (path, anchors(text)))
        .collect();
    let (mut checked, mut broken) = (0, Vec::new());
    for (page, text) in &pages {
        for link in local_links(text) {
            checked += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() {
                page.clone()
            } else {
                normalize(&page.with_file_name("").join(file))
            };
            let has_anchor = anchor.is_empty()
                || anchors
                    .get(&target)
                    .is_some_and(|anchors| anchors.contains(anchor));
            if !root().join(&target).exists() || !has_anchor {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
    assert!(checked > 100, "only {checked} links were checked");
}

#[test]
fn slugs_are_those_of_github() {
    assert_eq!(slug("0.2.0"), "020");
    assert_eq!(slug("If Redis loses its data"), "if-redis-loses-its-data");
    assert_eq!(slug("Classic: the `names`"), "classic-the-names");
}

//! The files and classes of a tree: where every operation is found.
//!
//! The way to an operation is its name: `agent.runs.create` is `exa.agent.runs.create`. Every
//! domain has a file; what its names nest below it is a further class in the same file.

use std::collections::BTreeMap;

use super::names::{is_python_keyword, pascal, snake};
use super::operation::SdkOperation;

/// The class of the whole API.
pub(super) const ROOT: &str = "Exa";

/// Names of files and functions that every tree has.
const OWN: [&str; 4] = ["core", "first", "index", "paginate"];

/// One part of a dotted name, with everything below it.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// The parts of the name that lead here.
    pub(super) path: Vec<String>,
    /// It has a file of its own.
    pub(super) is_file: bool,
    /// Its operations, by the last part of their names.
    pub(super) operations: Vec<(String, SdkOperation)>,
    pub(super) children: BTreeMap<String, Space>,
}

impl Space {
    /// The name of its class.
    pub(super) fn class(&self) -> String {
        match self.path.as_slice() {
            [] => ROOT.to_owned(),
            path => pascal(&path.join("_")),
        }
    }

    /// The name of its file without ending, from the top folder on.
    pub(super) fn file(&self, folder_file: &str) -> String {
        let holds_files = self.children.values().any(|child| child.is_file);
        let mut parts = self.path.clone();
        if holds_files || parts.is_empty() {
            parts.push(folder_file.to_owned());
        }
        parts.join("/")
    }

    /// The way from the file `from` to the file `to`: how many folders up, and what follows.
    pub(super) fn way<'b>(from: &str, to: &'b str) -> (usize, &'b str) {
        let folders = |path: &str| path.matches('/').count();
        let mut common = 0;
        for (a, b) in from.split('/').zip(to.split('/')) {
            if a != b || common >= folders(from).min(folders(to)) {
                break;
            }
            common += 1;
        }
        let rest = to.splitn(common + 1, '/').last().unwrap_or(to);
        (folders(from) - common, rest)
    }

    /// Spaces that stand in the same file, this one last: classes before their users.
    pub(super) fn in_file(&self) -> Vec<&Space> {
        let inner = self.children.values().filter(|child| !child.is_file);
        let mut spaces: Vec<&Space> = inner.flat_map(Space::in_file).collect();
        spaces.push(self);
        spaces
    }

    /// All spaces with a file of their own, this one first.
    pub(super) fn files(&self) -> Vec<&Space> {
        let below = self.children.values().flat_map(Space::files);
        let own = self.is_file.then_some(self);
        own.into_iter().chain(below).collect()
    }

    fn at(&mut self, path: &[String]) -> &mut Space {
        match path.split_first() {
            None => self,
            Some((first, rest)) => {
                let here = self.path.clone();
                let child = self.children.entry(first.clone()).or_default();
                child.path = here;
                child.path.push(first.clone());
                child.at(rest)
            }
        }
    }
}

/// The tree of all operations, and apart from it those whose names have no dot.
pub(super) struct Tree {
    pub(super) root: Space,
    /// Operations that the client itself has; their class is the base of the root's.
    pub(super) top: Option<Space>,
}

impl Tree {
    /// Puts operations where they belong.
    pub(super) fn new(sources: Vec<SdkOperation>) -> Self {
        let mut root = Space {
            is_file: true,
            ..Space::default()
        };
        let mut top: Option<Space> = None;
        for source in sources {
            let mut parts: Vec<String> = source.name.split('.').map(segment).collect();
            parts.pop();
            let verb = snake(source.name.rsplit('.').next().unwrap_or_default());
            if parts.is_empty() {
                let space = top.get_or_insert_with(|| Space {
                    path: vec![segment(&source.domain)],
                    is_file: true,
                    ..Space::default()
                });
                space.operations.push((verb, source));
                continue;
            }
            let inside = source.name.starts_with(&format!("{}.", source.domain));
            let domain = if inside {
                source.domain.split('.').count()
            } else {
                parts.len()
            };
            for length in 1..=domain.min(parts.len()) {
                root.at(parts.get(..length).unwrap_or_default()).is_file = true;
            }
            root.at(&parts).operations.push((verb, source));
        }
        if let Some(part) = top.as_mut().and_then(|top| top.path.first_mut())
            && root.children.contains_key(part)
        {
            part.push_str("_top");
        }
        Self { root, top }
    }
}

/// A part of a name as a folder, file and attribute, which must be none of the tree's own names
/// and no word that Python keeps for itself.
fn segment(part: &str) -> String {
    let mut name = snake(part);
    if OWN.contains(&name.as_str()) || is_python_keyword(&name) {
        name.push('_');
    }
    name
}

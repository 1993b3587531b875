//! The namespaces of a package, and where each operation belongs.
//!
//! Operations keep their names: `agent.runs.create` becomes `exa.agent.runs.create`. Every domain has
//! a file; deeper levels become further classes in the same file.

use std::collections::BTreeMap;

use super::names::{is_python_keyword, pascal, snake};
use super::operation::SdkOperation;

/// The class of the whole API.
pub(super) const ROOT: &str = "Exa";

/// Names of files and functions that every package has.
const RESERVED: [&str; 4] = ["core", "first", "index", "paginate"];

/// One level of dotted names, with everything below it.
#[derive(Debug, Default)]
pub(super) struct Namespace {
    /// The parts of its dotted name.
    pub(super) path: Vec<String>,
    /// Whether it has a file of its own.
    pub(super) is_file: bool,
    /// Its operations, with the last parts of their names.
    pub(super) operations: Vec<(String, SdkOperation)>,
    pub(super) children: BTreeMap<String, Namespace>,
}

impl Namespace {
    /// Returns the name of its class.
    pub(super) fn class(&self) -> String {
        match self.path.as_slice() {
            [] => ROOT.to_owned(),
            path => pascal(&path.join("_")),
        }
    }

    /// Returns the path of its file, without extension.
    pub(super) fn file(&self, index_file: &str) -> String {
        let holds_files = self.children.values().any(|child| child.is_file);
        let mut parts = self.path.clone();
        if holds_files || parts.is_empty() {
            parts.push(index_file.to_owned());
        }
        parts.join("/")
    }

    /// Returns the namespaces in the same file, this one last, so that classes precede their uses.
    pub(super) fn in_file(&self) -> Vec<&Namespace> {
        let inner = self.children.values().filter(|child| !child.is_file);
        let mut namespaces: Vec<&Namespace> = inner.flat_map(Namespace::in_file).collect();
        namespaces.push(self);
        namespaces
    }

    /// Returns all namespaces with a file of their own, this one first.
    pub(super) fn files(&self) -> Vec<&Namespace> {
        let below = self.children.values().flat_map(Namespace::files);
        let own = self.is_file.then_some(self);
        own.into_iter().chain(below).collect()
    }

    fn at(&mut self, path: &[String]) -> &mut Namespace {
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

/// The namespaces of all operations; those without a dot in their names are separate.
pub(super) struct Tree {
    pub(super) root: Namespace,
    /// Operations of the client itself; their class is the base class of the client.
    pub(super) top: Option<Namespace>,
}

impl Tree {
    /// Sorts operations into namespaces.
    pub(super) fn new(sources: Vec<SdkOperation>) -> Self {
        let mut root = Namespace {
            is_file: true,
            ..Namespace::default()
        };
        let mut top: Option<Namespace> = None;
        for source in sources {
            let mut parts: Vec<String> = source.name.split('.').map(segment).collect();
            parts.pop();
            let verb = snake(source.name.rsplit('.').next().unwrap_or_default());
            if parts.is_empty() {
                let namespace = top.get_or_insert_with(|| Namespace {
                    path: vec![segment(&source.domain)],
                    is_file: true,
                    ..Namespace::default()
                });
                namespace.operations.push((verb, source));
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

/// Turns a part of a name into a folder, file and attribute name that is neither reserved nor a Python
/// keyword.
fn segment(part: &str) -> String {
    let mut name = snake(part);
    if RESERVED.contains(&name.as_str()) || is_python_keyword(&name) {
        name.push('_');
    }
    name
}

/// Returns the relative path from the file `from` to the file `to`: the number of folders up, and the rest.
pub(super) fn relative_path<'b>(from: &str, to: &'b str) -> (usize, &'b str) {
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

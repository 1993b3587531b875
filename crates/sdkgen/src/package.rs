//! All files of a tree together: what each class is called and how it is reached.

use std::collections::BTreeMap;

use super::module::{Class, Method, Module, Style};
use super::tree::{Space, Tree};

/// What the examples and tables call the client.
const CLIENT: &str = "exa";

/// The files of a tree.
pub(super) struct Package<'a> {
    /// The file of the client itself.
    pub(super) root: Module<'a>,
    /// The file of the operations without a dot in their names.
    pub(super) top: Option<Module<'a>>,
    pub(super) others: Vec<Module<'a>>,
    folder_file: &'static str,
    classes: BTreeMap<Vec<String>, String>,
}

impl<'a> Package<'a> {
    /// Makes all files.
    pub(super) fn new(tree: &'a Tree, style: &Style) -> Self {
        let top = tree.top.as_ref().map(|space| Module::new(space, style));
        let mut root = Module::new(&tree.root, style);
        // The client has the members of both classes.
        if let (Some(class), Some(top)) = (root.classes.last_mut(), &top) {
            let names: Vec<&str> = top.methods().flat_map(Method::names).collect();
            for (name, _) in &mut class.children {
                while names.contains(&name.as_str()) {
                    name.push('_');
                }
            }
        }
        let files = tree.root.files().into_iter().skip(1);
        let others: Vec<Module<'a>> = files.map(|space| Module::new(space, style)).collect();
        let all = others
            .iter()
            .chain([&root])
            .flat_map(|module| &module.classes);
        let classes = all
            .map(|class| (class.space.path.clone(), class.name.clone()))
            .collect();
        Self {
            root,
            top,
            others,
            folder_file: style.folder_file,
            classes,
        }
    }

    /// The name of the class of a space.
    pub(super) fn class_of(&self, space: &Space) -> &str {
        self.classes.get(&space.path).map_or("", String::as_str)
    }

    /// The file of a space, from the top folder on and without its ending.
    pub(super) fn file_of(&self, space: &Space) -> String {
        space.file(self.folder_file)
    }

    /// Every method with the words that call it, in the order of the operations.
    pub(super) fn calls(&self) -> Vec<(String, &Method<'a>)> {
        let mut calls = Vec::new();
        if let Some(top) = &self.top {
            for class in &top.classes {
                list(class, CLIENT, &mut calls);
            }
        }
        self.below(&self.root.space.path, CLIENT, &mut calls);
        calls.sort_by(|a, b| a.1.source.name.cmp(&b.1.source.name));
        calls
    }

    fn below<'b>(&'b self, path: &[String], way: &str, calls: &mut Vec<(String, &'b Method<'a>)>) {
        let modules = self.others.iter().chain([&self.root]);
        let mut classes = modules.flat_map(|module| &module.classes);
        let Some(class) = classes.find(|class| class.space.path == path) else {
            return;
        };
        list(class, way, calls);
        for (name, child) in &class.children {
            self.below(&child.path, &format!("{way}.{name}"), calls);
        }
    }
}

fn list<'b, 'a>(class: &'b Class<'a>, way: &str, calls: &mut Vec<(String, &'b Method<'a>)>) {
    for method in &class.methods {
        calls.push((format!("{way}.{}", method.name), method));
    }
}

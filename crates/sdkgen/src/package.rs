//! All files of a package: the name of each class and the path to it.

use std::collections::BTreeMap;

use super::SdkFile;
use super::module::{Class, Method, Module};
use super::target::Target;
use super::tree::{Namespace, Tree};

/// The variable that holds the client in examples and tables.
const CLIENT: &str = "exa";

/// Methods with the expressions that call them.
type Calls<'b, 'a> = Vec<(String, &'b Method<'a>)>;

/// The files of a package.
pub(super) struct Package<'a> {
    /// The file of the client itself.
    pub(super) root: Module<'a>,
    /// The file of the operations without a dot in their names.
    pub(super) top: Option<Module<'a>>,
    pub(super) others: Vec<Module<'a>>,
    target: &'static Target,
    classes: BTreeMap<Vec<String>, String>,
}

impl<'a> Package<'a> {
    /// Lays out all files.
    pub(super) fn new(tree: &'a Tree, target: &'static Target) -> Self {
        let top = tree.top.as_ref().map(|top| Module::new(top, target));
        let mut root = Module::new(&tree.root, target);
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
        let others: Vec<_> = files.map(|file| Module::new(file, target)).collect();
        let modules = others.iter().chain([&root]);
        let classes = modules
            .flat_map(|module| &module.classes)
            .map(|class| (class.namespace.path.clone(), class.name.clone()))
            .collect();
        Self {
            root,
            top,
            others,
            target,
            classes,
        }
    }

    /// Returns all files except the README.
    pub(super) fn files(&self) -> Vec<SdkFile> {
        let target = self.target;
        let domains = self.others.iter().chain(&self.top);
        let mut files: Vec<SdkFile> = domains.map(|module| self.module_file(module)).collect();
        files.push(target.file(target.index_file, &(target.client)(self)));
        files.push(target.file("core", target.core));
        files.extend(
            target
                .marker_files
                .iter()
                .map(|path| target.marker_file(path)),
        );
        files
    }

    fn module_file(&self, module: &Module<'_>) -> SdkFile {
        let (target, names) = (self.target, &module.declarations);
        let path = self.file_of(module.namespace);
        let mut body = String::new();
        for class in module.classes.iter().rev() {
            body += &(target.class)(self, names, class);
        }
        for method in module.methods() {
            body += &(target.response)(names, method);
        }
        for declaration in names.all() {
            body += &(target.declaration)(names, declaration);
        }
        let imports = (target.imports)(self, module, &path, &body);
        target.file(&path, &format!("{imports}{body}"))
    }

    /// Returns the class name of a namespace.
    pub(super) fn class_of(&self, namespace: &Namespace) -> &str {
        self.classes.get(&namespace.path).map_or("", String::as_str)
    }

    /// Returns the path of the file of a namespace, without extension.
    pub(super) fn file_of(&self, namespace: &Namespace) -> String {
        namespace.file(self.target.index_file)
    }

    /// Returns every method with the expression that calls it, sorted by operation.
    pub(super) fn calls(&self) -> Calls<'_, 'a> {
        let mut calls = Vec::new();
        if let Some(top) = &self.top {
            for class in &top.classes {
                add_calls(class, CLIENT, &mut calls);
            }
        }
        self.add_calls_below(&self.root.namespace.path, CLIENT, &mut calls);
        calls.sort_by(|a, b| a.1.source.name.cmp(&b.1.source.name));
        calls
    }

    fn add_calls_below<'b>(&'b self, path: &[String], receiver: &str, calls: &mut Calls<'b, 'a>) {
        let modules = self.others.iter().chain([&self.root]);
        let mut classes = modules.flat_map(|module| &module.classes);
        let Some(class) = classes.find(|class| class.namespace.path == path) else {
            return;
        };
        add_calls(class, receiver, calls);
        for (name, child) in &class.children {
            self.add_calls_below(&child.path, &format!("{receiver}.{name}"), calls);
        }
    }
}

fn add_calls<'b, 'a>(class: &'b Class<'a>, receiver: &str, calls: &mut Calls<'b, 'a>) {
    for method in &class.methods {
        calls.push((format!("{receiver}.{}", method.name), method));
    }
}

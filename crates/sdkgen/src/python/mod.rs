//! A tree in Python.

mod types;

pub(super) use types::is_attribute;
use types::{answer_text, declaration_text, docstring, type_text};

use crate::module::{Class, Method, Module, Style};
use crate::names::{is_python_keyword, snake};
use crate::package::Package;
use crate::text::python_string;
use crate::tree::{Space, Tree};
use crate::types::{Declarations, Side};
use crate::{File, HEADER};

const CORE: &str = include_str!("../templates/core.py");

const STYLE: Style = Style {
    types: &[
        "Any",
        "AsyncIterator",
        "CallTool",
        "False",
        "Literal",
        "Mapping",
        "Metadata",
        "None",
        "NotRequired",
        "Options",
        "PageOptions",
        "True",
        "TypeAlias",
        "TypedDict",
        "Union",
    ],
    members: &[],
    member,
    all: "_all",
    folder_file: "__init__",
};

/// The names of `core.py` that a client needs.
const PUBLIC: [&str; 9] = [
    "CallTool",
    "ExaToolError",
    "Filters",
    "Metadata",
    "Options",
    "PageOptions",
    "Problem",
    "first",
    "paginate",
];

fn member(name: &str) -> String {
    let mut name = snake(name);
    if is_python_keyword(&name) {
        name.push('_');
    }
    name
}

/// Makes ready what the files are made from.
pub(super) fn package(tree: &Tree) -> Package<'_> {
    Package::new(tree, &STYLE)
}

/// All files but the README.
pub(super) fn files(package: &Package<'_>) -> Vec<File> {
    let domains = package.others.iter().chain(&package.top);
    let mut files: Vec<File> = domains.map(|module| domain(package, module)).collect();
    files.push(root(package));
    files.push(file("core", CORE));
    files.push(File {
        path: "py.typed".to_owned(),
        text: format!("# {HEADER}.\n"),
    });
    files
}

fn file(path: &str, body: &str) -> File {
    File {
        path: format!("{path}.py"),
        text: format!("# {HEADER}.\n{}\n", body.trim_end()),
    }
}

/// The module `to` as the file `from` imports it.
fn import_path(from: &str, to: &str) -> String {
    let (up, rest) = Space::way(from, to);
    let module = rest.trim_end_matches("/__init__").replace('/', ".");
    format!("{}{module}", ".".repeat(up + 1))
}

fn domain(package: &Package<'_>, module: &Module<'_>) -> File {
    let path = package.file_of(module.space);
    let names = &module.declarations;
    let mut body = String::new();
    for class in module.classes.iter().rev() {
        body.push_str(&class_text(package, names, class));
    }
    for method in module.methods() {
        body.push_str(&answer_text(names, method));
    }
    for declaration in names.all() {
        body.push_str(&declaration_text(names, declaration));
    }
    let words = format!("`{}` of the Exa API.", module.space.path.join("."));
    let mut head = format!("\"\"\"{words}\"\"\"\n\nfrom __future__ import annotations\n\n");
    for (from, names) in [
        ("collections.abc", &["AsyncIterator", "Mapping"][..]),
        (
            "typing",
            &["Any", "Literal", "TypeAlias", "TypedDict", "Union"],
        ),
    ] {
        let used: Vec<&str> = names
            .iter()
            .copied()
            .filter(|n| has_word(&body, n))
            .collect();
        if !used.is_empty() {
            head.push_str(&format!("from {from} import {}\n", used.join(", ")));
        }
    }
    let core = match (
        module.methods().next(),
        module.methods().any(|m| m.all.is_some()),
    ) {
        (None, _) => "CallTool",
        (_, false) => "CallTool, Metadata, NotRequired, Options, call",
        (_, true) => "CallTool, Metadata, NotRequired, Options, PageOptions, call, each",
    };
    let from = import_path(&path, "core");
    head.push_str(&format!("\nfrom {from} import {core}\n"));
    head.push_str(&child_imports(package, module, &path));
    file(&path, &format!("{head}\n\n{body}"))
}

/// Whether a name stands alone somewhere in a text.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !part(c)).any(|found| found == word)
}

fn child_imports(package: &Package<'_>, module: &Module<'_>, path: &str) -> String {
    let mut text = String::new();
    for (_, child) in module.classes.iter().flat_map(|class| &class.children) {
        if child.is_file {
            let from = import_path(path, &package.file_of(child));
            let class = package.class_of(child);
            let (parent, module) = from.rsplit_once('.').unwrap_or_default();
            text.push_str(&format!("from {parent}. import {module} as {module}\n"));
            text.push_str(&format!("from {from} import {class} as {class}\n"));
        }
    }
    text
}

/// The file of the client itself.
fn root(package: &Package<'_>) -> File {
    let words = "The Exa API through the tools of exa-mcp-server: see README.md.";
    let mut head = format!("\"\"\"{words}\"\"\"\n\nfrom __future__ import annotations\n\n");
    let mut base = None;
    if let Some(top) = &package.top {
        let from = import_path("__init__", &package.file_of(top.space));
        base = top.classes.last().map(|class| class.name.as_str());
        let base = base.unwrap_or_default();
        head.push_str(&format!("from {from} import {base}\n"));
    }
    head.push_str(&child_imports(package, &package.root, "__init__"));
    let public: Vec<String> = PUBLIC
        .iter()
        .map(|name| format!("{name} as {name}"))
        .collect();
    head.push_str(&format!(
        "from .core import (\n    {},\n)\n",
        public.join(",\n    ")
    ));
    let Some(class) = package.root.classes.last() else {
        return file("__init__", &head);
    };
    let base = base.map_or_else(String::new, |base| format!("({base})"));
    let doc = "The whole Exa API: `exa.` and the name of an operation calls it.";
    let made = children_text(package, class, !base.is_empty());
    let text = format!("class {}{base}:\n{}\n{made}", class.name, docstring(doc, 4));
    file("__init__", &format!("{head}\n\n{text}"))
}

fn class_text(package: &Package<'_>, names: &Declarations, class: &Class<'_>) -> String {
    let mut text = format!("class {}:\n{}\n", class.name, docstring(&class.words(), 4));
    text.push_str(&children_text(package, class, false));
    for method in &class.methods {
        text.push('\n');
        text.push_str(&method_text(names, method));
    }
    text.push_str("\n\n");
    text
}

fn children_text(package: &Package<'_>, class: &Class<'_>, derived: bool) -> String {
    let mut text = String::from("    def __init__(self, call_tool: CallTool) -> None:\n");
    if derived {
        text.push_str("        super().__init__(call_tool)\n");
    }
    if !derived {
        text.push_str("        self._call_tool = call_tool\n");
    }
    for (name, child) in &class.children {
        let made = package.class_of(child);
        text.push_str(&format!("        self.{name} = {made}(call_tool)\n"));
    }
    text
}

fn method_text(names: &Declarations, method: &Method<'_>) -> String {
    let source = method.source;
    // The defaults are only read; `None` beside the types would blur what type checkers say.
    let default = if method.optional { " = {}" } else { "" };
    let arguments = format!("args: {}{default}", method.arguments);
    let call = format!(
        "(\n            self._call_tool, {}, {}, args, options\n        )",
        python_string(&source.tool),
        python_string(&source.name)
    );
    let (name, answer) = (&method.name, &method.answer);
    let mut words = method.words();
    if source.deprecated {
        words.push_str("\n\nDeprecated.");
    }
    let mut text = format!(
        "    async def {name}(self, {arguments}, options: Options = {{}}) -> {answer}:\n{}\
         \x20       answer: {answer} = await call{call}\n        return answer\n",
        docstring(&words, 8)
    );
    if let Some(all) = &method.all {
        let result = type_text(names, &method.result, Side::Output);
        let words = format!("The results of all pages of {name}, one page fetched at a time.");
        text.push_str(&format!(
            "\n    def {all}(self, {arguments}, options: PageOptions = {{}}) -> AsyncIterator[{result}]:\n{}\
             \x20       results: AsyncIterator[{result}] = each{call}\n        return results\n",
            docstring(&words, 8)
        ));
    }
    text
}

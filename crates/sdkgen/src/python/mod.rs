//! Writes a package in Python.

mod types;

pub(super) use types::is_attribute;
use types::{declaration_text, docstring, response_text, type_text};

use crate::module::{Class, Method, Module};
use crate::names::{is_python_keyword, snake};
use crate::package::Package;
use crate::target::Target;
use crate::text::python_string;
use crate::tree::relative_path;
use crate::types::{Declarations, Side};

pub(super) static TARGET: Target = Target {
    reserved_types: &[
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
    reserved_members: &[],
    member_name,
    all_suffix: "_all",
    index_file: "__init__",
    extension: "py",
    header: ("# ", "\n"),
    core: include_str!("../templates/core.py"),
    marker_files: &["py.typed"],
    class: class_text,
    response: response_text,
    declaration: declaration_text,
    imports: module_imports,
    client: client_text,
};

/// The public names of `core.py`, which the client re-exports.
const PUBLIC: [&str; 13] = [
    "CallTool",
    "ExaToolError",
    "Filters",
    "Metadata",
    "Options",
    "PageOptions",
    "Problem",
    "dedupe",
    "filter_by_date",
    "filter_by_score",
    "first",
    "paginate",
    "to_csv",
];

fn member_name(name: &str) -> String {
    let mut name = snake(name);
    if is_python_keyword(&name) {
        name.push('_');
    }
    name
}

/// Returns the module name by which the file `from` imports the file `to`.
fn import_path(from: &str, to: &str) -> String {
    let (up, rest) = relative_path(from, to);
    let module = rest.trim_end_matches("/__init__").replace('/', ".");
    format!("{}{module}", ".".repeat(up + 1))
}

fn module_imports(package: &Package<'_>, module: &Module<'_>, path: &str, body: &str) -> String {
    let summary = format!("`{}` of the Exa API.", module.namespace.path.join("."));
    let mut head = format!("\"\"\"{summary}\"\"\"\n\nfrom __future__ import annotations\n\n");
    for (from, names) in [
        ("collections.abc", &["AsyncIterator", "Mapping"][..]),
        (
            "typing",
            &[
                "Any",
                "Literal",
                "TypeAlias",
                "TypedDict",
                "Union",
                "overload",
            ],
        ),
    ] {
        let used: Vec<&str> = names
            .iter()
            .copied()
            .filter(|n| has_word(body, n))
            .collect();
        if !used.is_empty() {
            head.push_str(&format!("from {from} import {}\n", used.join(", ")));
        }
    }
    let takes_query = module.methods().any(|method| method.options.is_some());
    let core = match module.method_kinds() {
        (false, _) => "CallTool",
        (_, false) => "CallTool, Metadata, NotRequired, Options, call",
        (_, true) => "CallTool, Metadata, NotRequired, Options, PageOptions, call, each",
    };
    let from = import_path(path, "core");
    let query = if takes_query { ", with_query" } else { "" };
    head.push_str(&format!("\nfrom {from} import {core}{query}\n"));
    head.push_str(&child_imports(package, module, path));
    format!("{head}\n\n")
}

/// Returns whether a text contains a word.
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

/// Writes the file of the client class.
fn client_text(package: &Package<'_>) -> String {
    let summary = "The Exa API through the tools of exa-mcp-server: see README.md.";
    let mut head = format!("\"\"\"{summary}\"\"\"\n\nfrom __future__ import annotations\n\n");
    let mut base = None;
    if let Some(top) = &package.top {
        let from = import_path("__init__", &package.file_of(top.namespace));
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
        return head;
    };
    let base = base.map_or_else(String::new, |base| format!("({base})"));
    let doc = "The whole Exa API: `exa.` and the name of an operation calls it.";
    let children = children_text(package, class, !base.is_empty());
    let (name, doc) = (&class.name, docstring(doc, 4));
    format!("{head}\n\nclass {name}{base}:\n{doc}\n{children}")
}

fn class_text(package: &Package<'_>, names: &Declarations, class: &Class<'_>) -> String {
    let mut text = format!(
        "class {}:\n{}\n",
        class.name,
        docstring(&class.description(), 4)
    );
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
    text.push_str(if derived {
        "        super().__init__(call_tool)\n"
    } else {
        "        self._call_tool = call_tool\n"
    });
    for (name, child) in &class.children {
        let class = package.class_of(child);
        text.push_str(&format!("        self.{name} = {class}(call_tool)\n"));
    }
    text
}

fn method_text(names: &Declarations, method: &Method<'_>) -> String {
    let source = method.source;
    // The default `{}` is never modified; `None` would weaken the types.
    let parameter = method.parameter();
    let given = match method.options {
        Some(_) => "arguments, view",
        None => "args, options",
    };
    let call = format!(
        "(\n            self._call_tool, {}, {}, {given}\n        )",
        python_string(&source.tool),
        python_string(&source.name)
    );
    let (name, response) = (&method.name, &method.response);
    let mut doc = method.description();
    if source.deprecated {
        doc.push_str("\n\nDeprecated.");
    }
    let mut text = String::new();
    let mut begin = "";
    let parameters = match &method.options {
        None => format!("{parameter}, options: Options = {{}}"),
        Some(more) => {
            let (arguments, more) = (&method.arguments, &more.name);
            for parameters in [
                format!("query: str, options: {more} = {{}}, /"),
                format!("args: {arguments}, options: Options = {{}}"),
            ] {
                text.push_str(&format!(
                    "    @overload\n    async def {name}(self, {parameters}) -> {response}: ...\n"
                ));
            }
            begin = "        arguments, view = with_query(args, options)\n";
            format!("args: {arguments} | str, options: Mapping[str, Any] = {{}}")
        }
    };
    text.push_str(&format!(
        "    async def {name}(self, {parameters}) -> {response}:\n{}{begin}\
         \x20       answer: {response} = await call{call}\n        return answer\n",
        docstring(&doc, 8)
    ));
    if let Some(all) = &method.all {
        let result = type_text(names, &method.result, Side::Output);
        text.push_str(&format!(
            "\n    def {all}(self, {parameter}, options: PageOptions = {{}}) -> AsyncIterator[{result}]:\n{}\
             \x20       results: AsyncIterator[{result}] = each{call}\n        return results\n",
            docstring(&method.all_description(), 8)
        ));
    }
    text
}

//! A tree in TypeScript.

mod types;

use types::{answer_text, comment, declaration_text, type_text};

use crate::module::{Class, Method, Module, Style};
use crate::names::camel;
use crate::package::Package;
use crate::text::typescript_string;
use crate::tree::{Space, Tree};
use crate::types::Declarations;
use crate::{File, HEADER};

const CORE: &str = include_str!("../templates/core.ts");

const STYLE: Style = Style {
    types: &[
        "Answer",
        "Array",
        "AsyncGenerator",
        "CallTool",
        "Options",
        "PageOptions",
        "Promise",
    ],
    // The first is no method, the second would make a promise of the object, and the others are
    // inherited.
    members: &[
        "constructor",
        "then",
        "toString",
        "toLocaleString",
        "valueOf",
    ],
    member: camel,
    all: "All",
    folder_file: "index",
};

/// The names of `core.ts` that a client needs.
const PUBLIC: &str = "\
export { ExaToolError, first, paginate } from \"./core.js\";
export type { Answer, CallTool, Filters, Metadata, Options, PageOptions, Problem } from \"./core.js\";
";

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
    files
}

fn file(path: &str, body: &str) -> File {
    File {
        path: format!("{path}.ts"),
        text: format!("// {HEADER}.\n\n{}\n", body.trim_end()),
    }
}

/// The path of `to` as `from` imports it.
fn import_path(from: &str, to: &str) -> String {
    let (up, rest) = Space::way(from, to);
    let start = if up == 0 {
        "./".to_owned()
    } else {
        "../".repeat(up)
    };
    format!("{start}{rest}.js")
}

fn domain(package: &Package<'_>, module: &Module<'_>) -> File {
    let path = package.file_of(module.space);
    let mut body = String::new();
    for class in module.classes.iter().rev() {
        body.push_str(&class_text(package, &module.declarations, class));
    }
    for method in module.methods() {
        body.push_str(&answer_text(&module.declarations, method));
    }
    for declaration in module.declarations.all() {
        body.push_str(&declaration_text(&module.declarations, declaration));
    }
    let core = import_path(&path, "core");
    let (imports, exports) = child_imports(package, module, &path);
    let head = core_imports(module, &core);
    file(&path, &format!("{head}{imports}{exports}\n{body}"))
}

/// Imports what the methods of a file need.
fn core_imports(module: &Module<'_>, core: &str) -> String {
    let (some, paged) = (
        module.methods().next().is_some(),
        module.methods().any(|method| method.all.is_some()),
    );
    let (functions, types) = match (some, paged) {
        (false, _) => ("", "CallTool"),
        (true, false) => ("call", "Answer, CallTool, Options"),
        (true, true) => ("call, each", "Answer, CallTool, Options, PageOptions"),
    };
    let mut text = String::new();
    if some {
        text.push_str(&format!("import {{ {functions} }} from \"{core}\";\n"));
    }
    text.push_str(&format!("import type {{ {types} }} from \"{core}\";\n"));
    text
}

/// Imports the classes of files further down, and hands these files on as namespaces.
fn child_imports(package: &Package<'_>, module: &Module<'_>, path: &str) -> (String, String) {
    let (mut imports, mut exports) = (String::new(), String::new());
    for (name, child) in module.classes.iter().flat_map(|class| &class.children) {
        if child.is_file {
            let from = import_path(path, &package.file_of(child));
            let class = package.class_of(child);
            imports.push_str(&format!("import {{ {class} }} from \"{from}\";\n"));
            exports.push_str(&format!("export * as {name} from \"{from}\";\n"));
        }
    }
    if !exports.is_empty() {
        exports.insert(0, '\n');
    }
    (imports, exports)
}

/// The file of the client itself.
fn root(package: &Package<'_>) -> File {
    let mut head = core_imports(&package.root, "./core.js");
    let (imports, mut exports) = child_imports(package, &package.root, "index");
    exports.push_str(PUBLIC);
    let mut base = None;
    if let Some(top) = &package.top {
        let from = import_path("index", &package.file_of(top.space));
        let name = top.classes.last().map_or("", |class| &class.name);
        head.push_str(&format!("import {{ {name} }} from \"{from}\";\n"));
        exports.push_str(&format!("export * from \"{from}\";\n"));
        base = Some(name);
    }
    head.push_str(&imports);
    head.push_str(&exports);
    let class = package.root.classes.last();
    let text = class.map_or_else(String::new, |class| {
        let extends = base.map_or_else(String::new, |base| format!(" extends {base}"));
        let doc =
            "The whole Exa API: `exa.` and the name of an operation, in camel case, calls it.";
        let children = children_text(package, class, base.is_some());
        let name = &class.name;
        let doc = comment(doc, false, 0);
        format!("{doc}export class {name}{extends} {{\n{children}}}\n")
    });
    file("index", &format!("{head}\n{text}"))
}

fn class_text(package: &Package<'_>, names: &Declarations, class: &Class<'_>) -> String {
    let mut text = comment(&class.words(), false, 0);
    text.push_str(&format!("export class {} {{\n", class.name));
    text.push_str(&children_text(package, class, false));
    for method in &class.methods {
        text.push('\n');
        text.push_str(&method_text(names, method));
    }
    text.push_str("}\n\n");
    text
}

/// The fields and the constructor of a class.
fn children_text(package: &Package<'_>, class: &Class<'_>, derived: bool) -> String {
    let mut text = String::new();
    let mut made = String::new();
    if !class.methods.is_empty() {
        text.push_str("  readonly #callTool: CallTool;\n");
        made.push_str("    this.#callTool = callTool;\n");
    }
    if derived {
        made.push_str("    super(callTool);\n");
    }
    for (name, child) in &class.children {
        let type_name = package.class_of(child);
        text.push_str(&format!("  readonly {name}: {type_name};\n"));
        made.push_str(&format!("    this.{name} = new {type_name}(callTool);\n"));
    }
    format!("{text}\n  constructor(callTool: CallTool) {{\n{made}  }}\n")
}

fn method_text(names: &Declarations, method: &Method<'_>) -> String {
    let source = method.source;
    let default = if method.optional { " = {}" } else { "" };
    let arguments = format!("args: {}{default}", method.arguments);
    let call = format!(
        "(this.#callTool, {}, {}, args, options)",
        typescript_string(&source.tool),
        typescript_string(&source.name)
    );
    let (name, answer) = (&method.name, &method.answer);
    let mut text = comment(&method.words(), source.deprecated, 2);
    text.push_str(&format!(
        "  {name}({arguments}, options: Options = {{}}): Promise<{answer}> {{\n    return call{call};\n  }}\n"
    ));
    if let Some(all) = &method.all {
        let words = format!("The results of all pages of {name}, one page fetched at a time.");
        text.push('\n');
        text.push_str(&comment(&words, source.deprecated, 2));
        let result = type_text(names, &method.result);
        text.push_str(&format!(
            "  {all}({arguments}, options: PageOptions = {{}}): AsyncGenerator<{result}, void> {{\n    \
             return each{call};\n  }}\n"
        ));
    }
    text
}

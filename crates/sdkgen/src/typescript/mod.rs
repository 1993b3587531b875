//! Writes a package in TypeScript.

mod types;

use types::{comment, declaration_text, response_text, type_text};

use crate::module::{Class, Method, Module};
use crate::names::camel;
use crate::package::Package;
use crate::target::Target;
use crate::text::typescript_string;
use crate::tree::relative_path;
use crate::types::Declarations;

pub(super) static TARGET: Target = Target {
    reserved_types: &[
        "Answer",
        "Array",
        "AsyncGenerator",
        "CallTool",
        "Options",
        "PageOptions",
        "Promise",
    ],
    // `constructor` is not a method, `then` would make the object awaitable, and the others are
    // inherited.
    reserved_members: &[
        "constructor",
        "then",
        "toString",
        "toLocaleString",
        "valueOf",
    ],
    member_name: camel,
    all_suffix: "All",
    index_file: "index",
    extension: "ts",
    header: ("// ", "\n\n"),
    core: include_str!("../templates/core.ts"),
    marker_files: &[],
    class: class_text,
    response: response_text,
    declaration: declaration_text,
    imports: module_imports,
    client: client_text,
};

/// Re-exports the public names of `core.ts`.
const PUBLIC: &str = "\
export { ExaToolError, dedupe, filterByDate, filterByScore, first, paginate, toCsv } from \"./core.js\";
export type { Answer, CallTool, Filters, Metadata, Options, PageOptions, Problem } from \"./core.js\";
";

/// Returns the path by which the file `from` imports the file `to`.
fn import_path(from: &str, to: &str) -> String {
    let (up, rest) = relative_path(from, to);
    let start = if up == 0 {
        "./".to_owned()
    } else {
        "../".repeat(up)
    };
    format!("{start}{rest}.js")
}

fn module_imports(package: &Package<'_>, module: &Module<'_>, path: &str, _body: &str) -> String {
    let (imports, exports) = child_imports(package, module, path);
    let core = core_imports(module, &import_path(path, "core"));
    format!("{core}{imports}{exports}\n")
}

/// Imports the runtime functions and types that the methods of a module need.
fn core_imports(module: &Module<'_>, core: &str) -> String {
    let (functions, types) = match module.method_kinds() {
        (false, _) => ("", "CallTool"),
        (true, false) => ("call", "Answer, CallTool, Options"),
        (true, true) => ("call, each", "Answer, CallTool, Options, PageOptions"),
    };
    let takes_query = module.methods().any(|method| method.options.is_some());
    let functions = if takes_query {
        format!("{functions}, withQuery")
    } else {
        functions.to_owned()
    };
    let mut text = String::new();
    if !functions.is_empty() {
        text.push_str(&format!("import {{ {functions} }} from \"{core}\";\n"));
    }
    text.push_str(&format!("import type {{ {types} }} from \"{core}\";\n"));
    text
}

/// Imports the classes of child modules and re-exports these modules as namespaces.
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

/// Writes the file of the client class.
fn client_text(package: &Package<'_>) -> String {
    let mut head = core_imports(&package.root, "./core.js");
    let (imports, mut exports) = child_imports(package, &package.root, "index");
    exports.push_str(PUBLIC);
    let mut base = None;
    if let Some(top) = &package.top {
        let from = import_path("index", &package.file_of(top.namespace));
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
    format!("{head}\n{text}")
}

fn class_text(package: &Package<'_>, names: &Declarations, class: &Class<'_>) -> String {
    let mut text = comment(&class.description(), false, 0);
    text.push_str(&format!("export class {} {{\n", class.name));
    text.push_str(&children_text(package, class, false));
    for method in &class.methods {
        text.push('\n');
        text.push_str(&method_text(names, method));
    }
    text.push_str("}\n\n");
    text
}

/// Writes the fields and the constructor of a class.
fn children_text(package: &Package<'_>, class: &Class<'_>, derived: bool) -> String {
    let mut text = String::new();
    let mut body = String::new();
    if !class.methods.is_empty() {
        text.push_str("  readonly #callTool: CallTool;\n");
        body.push_str("    this.#callTool = callTool;\n");
    }
    if derived {
        body.push_str("    super(callTool);\n");
    }
    for (name, child) in &class.children {
        let type_name = package.class_of(child);
        text.push_str(&format!("  readonly {name}: {type_name};\n"));
        body.push_str(&format!("    this.{name} = new {type_name}(callTool);\n"));
    }
    format!("{text}\n  constructor(callTool: CallTool) {{\n{body}  }}\n")
}

fn method_text(names: &Declarations, method: &Method<'_>) -> String {
    let source = method.source;
    let parameter = method.parameter();
    let call = format!(
        "(this.#callTool, {}, {}, args, options)",
        typescript_string(&source.tool),
        typescript_string(&source.name)
    );
    let (name, response) = (&method.name, &method.response);
    let mut text = comment(&method.description(), source.deprecated, 2);
    match &method.options {
        None => text.push_str(&format!(
            "  {name}({parameter}, options: Options = {{}}): Promise<{response}> {{\n    return call{call};\n  }}\n"
        )),
        Some(options) => {
            let (arguments, more) = (&method.arguments, &options.name);
            text.push_str(&format!(
                "  {name}(query: string, options?: {more}): Promise<{response}>;\n  \
                 {name}(args: {arguments}, options?: Options): Promise<{response}>;\n  \
                 {name}(given: {arguments} | string, more: {more} = {{}}): Promise<{response}> {{\n    \
                 const [args, options] = withQuery(given, more);\n    return call{call};\n  }}\n"
            ));
        }
    }
    if let Some(all) = &method.all {
        text.push('\n');
        text.push_str(&comment(&method.all_description(), source.deprecated, 2));
        let result = type_text(names, &method.result);
        text.push_str(&format!(
            "  {all}({parameter}, options: PageOptions = {{}}): AsyncGenerator<{result}, void> {{\n    \
             return each{call};\n  }}\n"
        ));
    }
    text
}

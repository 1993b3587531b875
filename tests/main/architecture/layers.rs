//! Checks which layer uses which.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

use toml::de::DeTable;

use super::rust_source::layer_uses;
use super::{root, sources};

/// A layer is a module of `src/`, or a package of the workspace.
#[derive(PartialEq, Eq)]
enum Kind {
    Module,
    Package,
}
use Kind::{Module, Package};

/// Each layer with the layers that it may use, from top to bottom. docs/decisions/0013-layers.md gives the reasons.
#[rustfmt::skip]
const LAYERS: &[(&str, Kind, &[&str])] = &[
    ("cli", Module, &[
        "config", "transport", "admin", "mcp", "http_response", "spending", "tools", "operations", "render",
        "telemetry", "generated", "accounts", "exa-client", "sandbox", "sdkgen", "store", "text", "model",
    ]),
    ("config", Module, &["transport", "tools", "operations", "accounts", "exa-client", "store", "text", "model"]),
    ("transport", Module, &["mcp", "http_response", "telemetry", "accounts", "exa-client", "store", "text", "model"]),
    ("admin", Module, &["http_response", "telemetry", "accounts", "exa-client", "store", "model"]),
    ("http_response", Module, &["accounts", "model"]),
    ("mcp", Module, &[
        "tools", "spending", "operations", "telemetry", "generated", "accounts", "exa-client", "store", "text", "model",
    ]),
    ("tools", Module, &[
        "operations", "render", "telemetry", "generated", "accounts", "exa-client", "store", "text", "model",
    ]),
    ("spending", Module, &["operations", "accounts", "exa-client", "store", "model"]),
    ("operations", Module, &["telemetry", "generated", "exa-client", "text", "model"]),
    ("render", Module, &["text", "model"]),
    ("telemetry", Module, &["exa-client", "text", "model"]),
    ("generated", Package, &["exa-client", "model"]),
    ("accounts", Package, &["exa-client", "store", "model"]),
    ("exa-client", Package, &["text", "model"]),
    ("store", Package, &["model"]),
    ("codegen", Package, &["model"]),
    ("sandbox", Package, &["model"]),
    ("sdkgen", Package, &["model"]),
    ("text", Package, &[]),
    ("model", Package, &[]),
];

/// A dependency of one layer on another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edge {
    from: String,
    to: String,
    file: String,
    line: usize,
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            from,
            to,
            file,
            line,
        } = self;
        write!(f, "{file}:{line}: `{from}` must not use `{to}`")
    }
}

fn layer(name: &str) -> Option<&'static (&'static str, Kind, &'static [&'static str])> {
    LAYERS.iter().find(|(layer, ..)| *layer == name)
}

fn is_allowed(edge: &Edge) -> bool {
    let allowed = layer(&edge.from).map_or(&[][..], |(_, _, allowed)| *allowed);
    allowed.contains(&edge.to.as_str())
}

/// Returns the uses of other layers in a file of `src/`.
fn module_edges(file: &str, text: &str) -> Vec<Edge> {
    let path = file.trim_start_matches("src/").trim_end_matches(".rs");
    let mut modules: Vec<&str> = path.split('/').collect();
    if modules.last() == Some(&"mod") {
        modules.pop();
    }
    let from = modules.first().copied().unwrap_or_default();
    let uses = layer_uses(text, modules.len()).into_iter();
    let others = uses.filter(|found| found.layer != from && layer(&found.layer).is_some());
    let edges = others.map(|found| Edge {
        from: from.to_owned(),
        to: found.layer,
        file: file.to_owned(),
        line: found.line,
    });
    edges.collect()
}

/// Returns the name of a package's layer and its dependencies on other packages of the workspace.
fn package_edges(file: &str, text: &str) -> (String, Vec<Edge>) {
    let manifest = DeTable::parse(text).unwrap();
    let manifest = manifest.get_ref();
    let name = manifest["package"].get_ref()["name"].get_ref().as_str();
    let from = name.unwrap().trim_start_matches("exa-mcp-");
    let dependencies = manifest.get("dependencies");
    let dependencies = dependencies.and_then(|found| found.get_ref().as_table());
    let mut edges = Vec::new();
    for key in dependencies.into_iter().flat_map(|found| found.keys()) {
        let package = key.get_ref();
        let to = package.trim_start_matches("exa-mcp-");
        if package.starts_with("exa-mcp-") || layer(to).is_some() {
            edges.push(Edge {
                from: from.to_owned(),
                to: to.to_owned(),
                file: file.to_owned(),
                line: text[..key.span().start].lines().count() + 1,
            });
        }
    }
    (from.to_owned(), edges)
}

/// Returns the manifests of the workspace's packages, without that of the root.
fn manifests() -> Vec<String> {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let crates = crates.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let folders = crates.map(|name| format!("crates/{name}"));
    let folders = folders.chain(["codegen".to_owned(), "generated".to_owned()]);
    let manifests = folders.map(|folder| format!("{folder}/Cargo.toml"));
    manifests
        .filter(|manifest| root().join(manifest).exists())
        .collect()
}

/// Returns all uses of a layer by another, and the names of all modules and packages.
fn actual_edges() -> (Vec<Edge>, BTreeSet<String>) {
    let mut edges = Vec::new();
    let mut names = BTreeSet::new();
    for source in sources("src") {
        let top = source.path.split('/').nth(1).unwrap_or_default();
        let module = top.trim_end_matches(".rs");
        if ["lib", "main"].contains(&module) {
            continue;
        }
        names.insert(module.to_owned());
        if !source.is_test() {
            edges.extend(module_edges(&source.path, &source.text));
        }
    }
    for file in manifests() {
        let text = fs::read_to_string(root().join(&file)).unwrap();
        let (name, found) = package_edges(&file, &text);
        names.insert(name);
        edges.extend(found);
    }
    (edges, names)
}

/// Returns the layers of a cycle, if there is one.
fn find_cycle(graph: &BTreeMap<&str, BTreeSet<&str>>) -> Option<Vec<String>> {
    fn visit<'a>(
        layer: &'a str,
        graph: &BTreeMap<&'a str, BTreeSet<&'a str>>,
        path: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(start) = path.iter().position(|earlier| *earlier == layer) {
            let cycle = path[start..].iter().chain([&layer]);
            return Some(cycle.map(|layer| (*layer).to_owned()).collect());
        }
        if !done.insert(layer) {
            return None;
        }
        path.push(layer);
        let used = graph.get(layer).into_iter().flatten();
        let cycle = used
            .copied()
            .find_map(|used| visit(used, graph, path, done));
        path.pop();
        cycle
    }
    let (mut path, mut done) = (Vec::new(), BTreeSet::new());
    let mut layers = graph.keys().copied();
    layers.find_map(|layer| visit(layer, graph, &mut path, &mut done))
}

/// Returns which layers each layer uses.
fn graph(edges: &[Edge]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for edge in edges {
        graph.entry(&edge.from).or_default().insert(&edge.to);
    }
    graph
}

#[test]
fn layers_use_only_permitted_layers() {
    let (edges, _) = actual_edges();
    let forbidden = edges.iter().filter(|edge| !is_allowed(edge));
    let forbidden: Vec<String> = forbidden.map(Edge::to_string).collect();
    assert!(forbidden.is_empty(), "\n{}", forbidden.join("\n"));
}

#[test]
fn layers_form_no_cycle() {
    let (edges, _) = actual_edges();
    assert_eq!(find_cycle(&graph(&edges)), None);
    let table = LAYERS.iter();
    let table = table.map(|(name, _, allowed)| (*name, allowed.iter().copied().collect()));
    assert_eq!(find_cycle(&table.collect()), None);
}

#[test]
fn every_module_and_package_is_a_layer() {
    let (_, names) = actual_edges();
    let unknown: Vec<&String> = names.iter().filter(|name| layer(name).is_none()).collect();
    assert!(unknown.is_empty(), "not in the table: {unknown:?}");
    let unknown: Vec<&str> = LAYERS
        .iter()
        .flat_map(|(_, _, allowed)| allowed.iter().copied())
        .filter(|name| layer(name).is_none())
        .collect();
    assert!(unknown.is_empty(), "no such layers: {unknown:?}");
}

#[test]
fn reports_the_line_of_a_forbidden_use() {
    let source = "use exa_mcp_model::Owner;\n\nfn show() {\n    crate::tools::run();\n}\n";
    let edges = module_edges("src/render/show.rs", source);
    let forbidden: Vec<String> = edges
        .iter()
        .filter(|edge| !is_allowed(edge))
        .map(Edge::to_string)
        .collect();
    let expected = "src/render/show.rs:4: `render` must not use `tools`";
    assert_eq!(forbidden, [expected]);
}

#[test]
fn reports_the_line_of_a_forbidden_dependency() {
    let manifest = "[package]\nname = \"exa-mcp-model\"\n\n[dependencies]\nserde = \"1\"\n\
                    exa-mcp-store.workspace = true\n\n[dev-dependencies]\nexa-mcp-text = \"1\"\n";
    let (name, edges) = package_edges("crates/model/Cargo.toml", manifest);
    assert_eq!(name, "model");
    let found: Vec<String> = edges.iter().map(Edge::to_string).collect();
    let expected = "crates/model/Cargo.toml:6: `model` must not use `store`";
    assert_eq!(found, [expected]);
    assert!(!is_allowed(&edges[0]));
}

#[test]
fn packages_do_not_depend_on_the_server() {
    let manifest = "[package]\nname = \"exa-mcp-text\"\n[dependencies]\n\
                    exa-mcp-server = { path = \"../..\" }\n";
    let (_, edges) = package_edges("crates/text/Cargo.toml", manifest);
    assert!(!is_allowed(&edges[0]), "{edges:?}");
}

#[test]
fn detects_a_cycle() {
    let edge = |from: &str, to: &str| Edge {
        from: from.to_owned(),
        to: to.to_owned(),
        file: String::new(),
        line: 1,
    };
    let edges = [
        edge("cli", "mcp"),
        edge("mcp", "tools"),
        edge("tools", "render"),
        edge("tools", "transport"),
        edge("transport", "mcp"),
    ];
    let cycle = find_cycle(&graph(&edges)).unwrap();
    assert_eq!(cycle, ["mcp", "tools", "transport", "mcp"]);
    assert_eq!(find_cycle(&graph(&edges[..3])), None);
}

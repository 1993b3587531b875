//! Checks `surface.yaml` against the specs. What does not fit is reported and left out.

mod behavior;
mod hints;
mod long_running;
mod places;
mod report;
mod values;

use std::collections::BTreeMap;

use exa_mcp_model::{OperationBehavior, Resources};
use serde_json::Value;

use crate::error::Findings;
use crate::model::{Model, Operation, Parameter};
use crate::surface::{OperationEntry, Surface, signature, signature_of};

pub(crate) use long_running::unfilled;
pub(crate) use places::{Place, has_property, listed, locate, members, schemas_at};
pub(crate) use report::Report;
pub(crate) use values::{misfit, problem as value_problem, validate};

/// The operations by name.
pub(crate) type Catalog<'a> = BTreeMap<&'a str, &'a Operation>;

/// Checks the settings of all operations.
pub fn check(surface: &Surface, operations: &mut [Operation], findings: &mut Findings) {
    check_names(surface, findings);
    let mut known = Vec::new();
    for entry in &surface.operations {
        let mut report = Report::new(findings, entry_location(entry));
        let signature = entry.signature();
        if known.contains(&signature) {
            report.omit("a second entry for the same operation; ignored");
            continue;
        }
        known.push(signature);
        match find_entry_operation(entry, operations) {
            None => report.omit("the operation no longer exists; entry ignored"),
            Some(operation) => check_entry(entry, operation, &mut report),
        }
    }
    check_headers(surface, operations, findings);
    check_behavior(surface, operations, findings);
}

fn entry_location(entry: &OperationEntry) -> String {
    format!("entry {}", entry.matches)
}

fn find_entry_operation<'a>(
    entry: &OperationEntry,
    operations: &'a mut [Operation],
) -> Option<&'a mut Operation> {
    let wanted = entry.signature();
    operations
        .iter_mut()
        .find(|operation| signature(&operation.method, &operation.path) == wanted)
}

/// Checks that the configured names are unique.
fn check_names(surface: &Surface, findings: &mut Findings) {
    let mut signatures: BTreeMap<String, &str> = BTreeMap::new();
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for (matches, name) in &surface.names {
        let mut report = Report::new(findings, format!("names {matches}"));
        if let Some(first) = signatures.insert(signature_of(matches), matches) {
            report.omit(format!(
                "`{first}` is the same operation; one of them is ignored"
            ));
        }
        if let Some(first) = names.insert(name, matches) {
            report.omit(format!(
                "`{first}` has the name `{name}`, too; one of them gets another"
            ));
        }
    }
    for entry in &surface.operations {
        let other = surface.operation_name(&entry.signature());
        if let (Some(own), Some(other)) = (&entry.name, other)
            && own != other
        {
            let mut report = Report::new(findings, entry_location(entry));
            report.omit(format!(
                "`names` calls the operation `{other}`, not `{own}`"
            ));
        }
    }
}

fn check_headers(surface: &Surface, operations: &[Operation], findings: &mut Findings) {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for (header, name) in &surface.headers {
        let mut report = Report::new(findings, format!("header {header}"));
        let used = operations
            .iter()
            .flat_map(|operation| &operation.parameters)
            .any(|parameter| parameter.wire_name.eq_ignore_ascii_case(header));
        if !used {
            report.omit("no operation has this header; entry ignored");
        }
        if let Some(first) = names.insert(name, header) {
            report.omit(format!("`{first}` is called `{name}`, too"));
        }
    }
}

fn check_entry(entry: &OperationEntry, operation: &mut Operation, report: &mut Report<'_>) {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for (wire_name, name) in &entry.parameters {
        if !operation
            .parameters
            .iter()
            .any(|parameter| is_named_by(entry, wire_name, parameter, &operation.path))
        {
            report.omit(format!(
                "the operation has no parameter `{wire_name}`; its name is ignored"
            ));
        }
        if let Some(first) = names.insert(name, wire_name) {
            report.omit(format!(
                "the parameters `{first}` and `{wire_name}` are both called `{name}`; one of them gets another name"
            ));
        }
    }
    if entry.timeout_seconds == Some(0) {
        report.omit("`timeoutSeconds` is 0; every call would fail");
    }
    for argument in &entry.server_arguments {
        if !operation
            .server_arguments
            .iter()
            .any(|known| known.name == argument.name)
        {
            report.note(format!(
                "upstream now has `{}`; its version is used",
                argument.name
            ));
        }
    }
    check_server_arguments(operation, report);
    for name in &entry.show_first {
        let is_field = name.contains('.') && locate(&operation.input_schema, name).exists();
        if !is_field && !operation.has_argument(name) {
            report.omit(format!(
                "the operation has no argument `{name}`; it is not shown"
            ));
        }
    }
}

/// Removes replacements of arguments that do not exist, and defaults that do not fit.
fn check_server_arguments(operation: &mut Operation, report: &mut Report<'_>) {
    let mut arguments = std::mem::take(&mut operation.server_arguments);
    for argument in &mut arguments {
        argument.replaces.retain(|name| {
            let known = operation.has_argument(name);
            if !known {
                report.omit(format!(
                    "the operation has no argument `{name}` for `{}` to replace; ignored",
                    argument.name
                ));
            }
            known
        });
        let schema = Value::Object(argument.schema.clone());
        if !jsonschema::meta::is_valid(&schema) {
            report.omit(format!(
                "the schema of `{}` is not a JSON Schema",
                argument.name
            ));
        } else if let Some(default) = argument.schema.get("default")
            && let Some(problem) = validate(&schema, &schema, default)
        {
            report.omit(format!(
                "the default of `{}` does not fit: {problem}",
                argument.name
            ));
        }
    }
    operation.server_arguments = arguments;
}

/// Returns whether the entry means this parameter with `wire_name`.
fn is_named_by(entry: &OperationEntry, wire_name: &str, parameter: &Parameter, path: &str) -> bool {
    let configured = entry.parameter_name(&parameter.wire_name, path);
    parameter.wire_name == wire_name
        || configured.is_some_and(|name| entry.parameters.get(wire_name) == Some(name))
}

/// Removes the parts of each operation's behavior that need missing arguments, fields or operations.
fn check_behavior(surface: &Surface, operations: &mut [Operation], findings: &mut Findings) {
    let mut behaviors: Vec<OperationBehavior> = operations
        .iter_mut()
        .map(|operation| std::mem::take(&mut operation.behavior))
        .collect();
    let catalog: Catalog<'_> = operations
        .iter()
        .map(|operation| (operation.name.as_str(), operation))
        .collect();
    let filters = surface.tools.filter_names();
    for (operation, behavior) in operations.iter().zip(&mut behaviors) {
        let operation_signature = signature(&operation.method, &operation.path);
        let mut entries = surface.operations.iter();
        let entry = entries.find(|entry| entry.signature() == operation_signature);
        if let Some(entry) = entry {
            let mut report = Report::new(findings, entry_location(entry));
            behavior::check(behavior, operation, &catalog, &filters, &mut report);
        }
    }
    for (operation, behavior) in operations.iter_mut().zip(behaviors) {
        operation.behavior = behavior;
    }
}

/// Returns the operations behind resources that exist.
pub fn check_resources(resources: &Resources, model: &Model, findings: &mut Findings) -> Resources {
    let mut resources = resources.clone();
    let mut report = Report::new(findings, "resources".to_owned());
    let mut is_missing = |name: &str, argument: Option<&str>, what: &str| {
        let problem = match (model.find(name), argument) {
            (None, _) => Some(format!("`{name}` no longer exists")),
            (Some(operation), Some(argument)) if !operation.has_argument(argument) => {
                Some(format!("`{name}` has no argument `{argument}`"))
            }
            _ => None,
        };
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; {what} omitted"));
        }
        problem.is_some()
    };
    resources.websets.take_if(|websets| {
        websets
            .list
            .take_if(|list| is_missing(list, None, "completion"));
        let argument = Some(websets.argument.as_str());
        is_missing(&websets.get, argument, "`websets`")
            || is_missing(&websets.items, argument, "`websets`")
    });
    resources
}

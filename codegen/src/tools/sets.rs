//! Sets of tools, and the options that tools share.

use serde_json::Value;

use super::definitions::{OutputOption, ToolDefinitions};
use super::{ToolRegistry, admin, tool_report};
use crate::error::Findings;
use crate::model::Model;
use crate::surface_check::{Report, validate};

/// Adds the sets of `surface.yaml`. `defined` are the tools of this file.
pub(super) fn add_sets(
    definitions: &ToolDefinitions,
    defined: &[String],
    model: &Model,
    registry: &mut ToolRegistry,
    findings: &mut Findings,
) {
    for (set, names) in &definitions.sets {
        let mut report = tool_report(set, findings);
        if defined.contains(set) {
            report.omit("the set has the name of a tool; set omitted");
            continue;
        }
        if registry.tools.contains_key(set) {
            report.note("the set has the name of an operation's tool; the name means the set");
        }
        if registry.sets.contains_key(set) {
            report.omit("the set has the name of a domain, whose own set is omitted");
        }
        let mut known: Vec<String> = Vec::new();
        for name in names {
            let problem = match registry.tools.get(name) {
                None => Some("which is not a tool".to_owned()),
                Some(tool) => admin::set_of(tool, model)
                    .filter(|own| own != set)
                    .map(|own| format!("which belongs to the set `{own}` alone")),
            };
            if let Some(problem) = problem {
                report.omit(format!("the set contains `{name}`, {problem}; ignored"));
            } else if known.contains(name) {
                report.omit(format!("the set contains `{name}` twice"));
            } else {
                known.push(name.clone());
            }
        }
        registry.sets.insert(set.clone(), known);
    }
}

/// Reports output options with the same name, and values in `tools/list` that the option does not accept.
pub(super) fn check_options(options: &[OutputOption], findings: &mut Findings) {
    for (index, option) in options.iter().enumerate() {
        let mut report = Report::new(findings, format!("option {}", option.name));
        if options.iter().take(index).any(|it| it.name == option.name) {
            report.omit("a second option has this name; the last one is used");
        }
        let schema = Value::Object(option.schema.clone());
        if !jsonschema::meta::is_valid(&schema) {
            report.omit("its schema is not a JSON Schema");
            continue;
        }
        let listed = option.listed.as_ref().and_then(|listed| listed.get("enum"));
        for value in listed.and_then(Value::as_array).into_iter().flatten() {
            if let Some(problem) = validate(&schema, &schema, value) {
                report.omit(format!(
                    "it lists {value}, which it does not accept: {problem}"
                ));
            }
        }
    }
}

/// Reports tools that an output option excepts and that do not exist.
pub(super) fn check_exceptions(
    options: &[OutputOption],
    registry: &ToolRegistry,
    findings: &mut Findings,
) {
    for option in options {
        let mut report = Report::new(findings, format!("option {}", option.name));
        for name in &option.except {
            if !registry.tools.contains_key(name) {
                report.omit(format!("it excepts `{name}`, which is not a tool; ignored"));
            }
        }
    }
}
